/**
 * Intact for Node: agents that take and undo effects, and clients that submit tasks. No dependencies at run time.
 *
 * @packageDocumentation
 */
export {
  Agent,
  type AgentOptions,
  type Handler,
  type HandlerOptions,
  type Logger,
  type UndoHandler,
} from "./agent.js";
export {
  PostgresBarrier,
  SqliteBarrier,
  type PostgresClient,
  type PostgresPool,
  type SqliteDatabase,
} from "./barrier.js";
export { Client, ENDED, type ClientOptions, type ListOptions } from "./client.js";
export {
  Again,
  AnotherInstallation,
  Busy,
  IntactError,
  Problem,
  StepError,
  TooLate,
  Unreachable,
  WaitTimeout,
  type Mistake,
  type StepErrorOptions,
} from "./errors.js";
export {
  Request,
  type Beat,
  type Forward,
  type TestRequest,
  type TestRequestOptions,
  type UndoRequest,
} from "./request.js";
export { retryWait, type RetryOptions } from "./retry.js";
export type * from "./types.js";
