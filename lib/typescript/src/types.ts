/** A state of a task. The last three are ends: it does not go on by itself. */
export type TaskState = "pending" | "processing" | "compensating" | "processed" | "compensated" | "error";

/** A task to be. Give ids of your own: then it may be submitted twice, and is there once. */
export interface Submission {
  workflow: string;
  id?: string;
  version?: number;
  input?: unknown;
  /** 0 to 9, higher ones first; 5 if not given. */
  priority?: number;
  /** RFC 3339. */
  not_before?: string;
  reply_to?: string;
  tags?: Record<string, string>;
  /** The W3C trace context that it belongs to. */
  traceparent?: string;
}

/** A task that is there, durably. */
export interface Submitted {
  id: string;
  workflow: string;
  version: number;
  /** It ended, and was deleted; the next two are what is left of it. */
  deleted?: boolean;
  state?: TaskState;
  ended_at?: string | null;
}

/** What became of one of many. */
export interface SubmittedLine {
  line: number;
  /** As of HTTP: 201, 200 for one that existed, or that of the problem. */
  status: number;
  id: string | null;
  state?: TaskState | null;
  problem?: Record<string, unknown>;
}

/** What went wrong. */
export interface Fault {
  code: string;
  message: string;
}

/** A task in a list. Times are RFC 3339. */
export interface TaskSummary {
  id: string;
  workflow: string;
  version: number;
  state: TaskState;
  direction: "forward" | "undo";
  priority: number;
  failure_count: number;
  locked_by: string | null;
  complete_by: string | null;
  not_before: string | null;
  waiting_for: string | null;
  submitted_at: string;
  started_at: string | null;
  ended_at: string | null;
  tags: Record<string, string> | null;
}

/** One hand-over of a step to an agent. */
export interface Attempt {
  attempt: number;
  direction: "forward" | "undo";
  instance: string;
  started_at: string;
  ended_at: string | null;
  complete_by: string;
  outcome: string;
  effect: string;
  /** Calls to the service that it made. */
  tries?: number;
  output?: unknown;
  error?: Fault | null;
  heartbeat_at?: string | null;
  progress?: unknown;
  message?: string | null;
}

/** A step of a task. */
export interface Step {
  name: string;
  state: string;
  agent: string;
  action: string;
  failure_count: number;
  in_doubt: boolean;
  complete_by: string | null;
  wait_until: string | null;
  input: unknown;
  output: unknown;
  error: Fault | null;
  /** What the latest attempt left for the next. */
  resume?: unknown;
  attempts: Attempt[];
}

/** The whole record of a task. */
export interface Task extends TaskSummary {
  input: unknown;
  output: unknown;
  error: Fault | null;
  steps: Step[];
  operations: Record<string, unknown>[];
}

/** A page of a list. */
export interface TaskPage {
  tasks: TaskSummary[];
  /** The cursor of the page after it; null: there is none. */
  next: string | null;
}

/** A version of a workflow. */
export interface Workflow {
  name: string;
  version: number;
  definition?: Record<string, unknown>;
  text?: string;
  warnings?: Record<string, unknown>[];
}
