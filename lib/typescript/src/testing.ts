/**
 * Tests of workflows with your own agents, against a real server whose time is virtual: a workflow that takes a month ends at
 * once. For node:test, vitest and the like; `intact-client/testing` needs no other package.
 *
 * ```ts
 * test("an order is taken back", async (t) => {
 *   const server = await startServer({ definitions: ["order.yaml"] });
 *   t.after(() => server.close());
 *   server.agent(payment); // an Agent of your own
 *   server.agent("shipping", { ship: new StepError("no-address") });
 *   const task = await server.submit("order", { input: { total: 20 } });
 *   await server.advance("2d");
 *   await task.expect("compensated", { error: "no-address", within: "3d" });
 * });
 * ```
 *
 * The server is the program `intact` (`intact serve --virtual-time`): it keeps nothing, and ends with the test, however that
 * ends. Its clock moves while somebody waits for the end of a task (`Task.ended`, `Task.expect`), and by `Server.advance`; else
 * it stands still. An agent at work holds it.
 *
 * @packageDocumentation
 */
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { isDeepStrictEqual } from "node:util";
import { Agent, type Handler, type UndoHandler } from "./agent.js";
import { Client, ENDED } from "./client.js";
import { ServerEnded, StepError } from "./errors.js";
import type { Answer } from "./http.js";
import type { Submission, Task as TaskRecord, Why } from "./types.js";

const START_WITHIN_MS = 30_000;
const END_WITHIN_MS = 10_000;
const EXIT_WITHIN_MS = 1_000; // that a process whose connection broke may take to be seen to have ended
const FIRST_WAIT_MS = 300;
const WAIT_MS = 2_000;
const UNITS_MS: Record<string, number> = { d: 86_400_000, h: 3_600_000, m: 60_000, s: 1_000, ms: 1 };
const DURATION = /^(\d+)(ms|d|h|m|s)$/;

/** How a server is started. */
export interface ServerOptions {
  /** The program intact. Default: $INTACT_PROGRAM, then the one in $PATH. */
  program?: string;
  /** The time at which it begins, such as "2026-01-01T09:00:00Z". Default: now. */
  at?: string;
  /**
   * When its clock moves by itself: "waits" (while somebody waits for the end of a task; the default), "auto" (whenever nothing is
   * under way), "manual" (never).
   */
  clock?: "waits" | "auto" | "manual";
  /** Definitions to store: files, texts of more than a line, or objects. */
  definitions?: readonly (string | object)[];
  /** More flags of `intact serve`. */
  arguments?: readonly string[];
  /** Real time that it may take to start. Default: 30 000. */
  startWithinMs?: number;
  /** Real time that handlers at work have when their agent is stopped. Default: 10 000. */
  endWithinMs?: number;
}

/** Its time, the next moment at which something is due (null: nothing is), and what holds the clock. */
export interface Clock {
  now: string;
  mode: "waits" | "auto" | "manual";
  next: string | null;
  held_by: Record<string, unknown>[];
}

/** What an action of a test's agent does: a handler, the output, or the error. */
export type Act = Handler | StepError | object | string | number | boolean | null;

/** What the end of a task has to be. */
export interface Expected {
  /** The code of the first failure; null: there is none. */
  error?: string | null;
  output?: unknown;
  /** The virtual time that it may take, such as "3d". */
  within?: string;
  /** States of steps by their names. */
  steps?: Record<string, string>;
  /** Real time. Default: 60 000. */
  timeoutMs?: number;
}

function durationMs(text: string): number {
  const found = DURATION.exec(text);
  if (!found) throw new RangeError(`"${text}" is no duration such as "2d", "90m" or "500ms"`);
  return Number(found[1]) * (UNITS_MS[found[2] as string] as number);
}

function handler(what: Act): Handler {
  if (typeof what === "function") return what as Handler;
  return () => {
    if (what instanceof StepError) throw what;
    return what;
  };
}

const quiet = { info: () => undefined, warn: (line: string) => console.warn(line), error: (line: string) => console.error(line) };

/** The record of a task that has ended, and what tests ask for. */
export class Ended {
  constructor(readonly record: TaskRecord) {}

  get state(): string {
    return this.record.state;
  }

  get output(): unknown {
    return (this.record as { output?: unknown }).output ?? null;
  }

  /** The code of the first failure; null: there was none. */
  get error(): string | null {
    const { cause, error } = this.record as { cause?: { code: string } | null; error?: { code: string } | null };
    return (cause ?? error)?.code ?? null;
  }

  /** From its submission to its end, in virtual time. */
  get tookMs(): number {
    const { submitted_at, ended_at } = this.record as { submitted_at: string; ended_at: string };
    return Date.parse(ended_at) - Date.parse(submitted_at);
  }

  /** The states of its steps by their names. */
  get steps(): Record<string, string> {
    return Object.fromEntries(this.record.steps.map((step) => [step.name, step.state]));
  }
}

/** A task of a server. */
export class Task {
  readonly #server: Server;

  constructor(
    server: Server,
    readonly id: string,
  ) {
    this.#server = server;
  }

  /** Its record as it is now. */
  get(): Promise<TaskRecord> {
    return this.#server.client.get(this.id);
  }

  /** What it waits for. */
  why(): Promise<Why> {
    return this.#server.client.why(this.id);
  }

  /** Sends it a signal. */
  async signal(name: string, data: unknown = null, key?: string): Promise<void> {
    await this.#server.client.signal(this.id, name, data, key);
  }

  /**
   * Waits for its end while time passes. Rejects if it does not end by itself, because it waits for something that no time
   * brings, or after `timeoutMs` of real time, and says what the task waits for.
   */
  async ended(options: { timeoutMs?: number } = {}): Promise<Ended> {
    const end = performance.now() + (options.timeoutMs ?? 60_000);
    for (let waitMs = FIRST_WAIT_MS; ; waitMs = WAIT_MS) {
      const path = `/v1/tasks/${encodeURIComponent(this.id)}?wait=${waitMs}ms`;
      const record = await this.#server.client.call<TaskRecord>("GET", path);
      if (ENDED.includes(record.state)) return new Ended(record);
      const clock = await this.#server.clock();
      if (clock.next === null && clock.held_by.length === 0) {
        const last = await this.get();
        if (ENDED.includes(last.state)) return new Ended(last);
        throw new Error(`task ${this.id} does not end by itself: ${await this.#story()}`);
      }
      if (performance.now() >= end)
        throw new Error(
          `task ${this.id} has not ended in time: ${await this.#story()}; the clock is held by ${JSON.stringify(clock.held_by)}`,
        );
    }
  }

  /** Waits for its end, which has to be this; rejects with what is otherwise. */
  async expect(state: string, expected: Expected = {}): Promise<Ended> {
    const found = await this.ended(expected.timeoutMs === undefined ? {} : { timeoutMs: expected.timeoutMs });
    const told: string[] = [];
    const compare = (what: string, wanted: unknown, value: unknown): void => {
      if (wanted !== undefined && !isDeepStrictEqual(wanted, value))
        told.push(`${what} is ${JSON.stringify(value)}, expected ${JSON.stringify(wanted)}`);
    };
    compare("state", state, found.state);
    compare("error", expected.error, found.error);
    compare("output", expected.output, found.output);
    for (const [name, wanted] of Object.entries(expected.steps ?? {})) compare(`step ${name}`, wanted, found.steps[name]);
    if (expected.within !== undefined && found.tookMs > durationMs(expected.within))
      told.push(`it took ${found.tookMs} ms, expected at most ${expected.within}`);
    if (told.length > 0) throw new Error(`task ${this.id}: ${told.join("; ")}; its steps: ${JSON.stringify(found.steps)}`);
    return found;
  }

  async #story(): Promise<string> {
    return this.why().then(
      (why) => JSON.stringify(why),
      (e: unknown) => String(e),
    );
  }
}

/** Whether that is settled before so much real time has passed. Rejects as it does. */
async function isSettled(what: Promise<unknown>, withinMs: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(false), withinMs);
  });
  try {
    return await Promise.race([what.then(() => true), late]);
  } finally {
    clearTimeout(timer);
  }
}

/** The process of a server, and what it has said. */
class Program {
  readonly #exited: Promise<unknown>;
  #log = "";

  constructor(readonly child: ChildProcess) {
    this.#exited = once(child, "exit");
    this.#exited.catch(() => undefined); // it did not even start, which whoever starts it says
    child.stderr?.on("data", (bytes: Buffer) => {
      this.#log = (this.#log + bytes.toString()).slice(-10_000);
    });
  }

  get log(): string {
    return this.#log.trim();
  }

  /** How it has ended; undefined: it runs. */
  get end(): string | undefined {
    const { exitCode, signalCode } = this.child;
    if (exitCode === null && signalCode === null) return undefined;
    const how = signalCode === null ? `with ${exitCode}` : `by ${signalCode}`;
    return `the server has ended ${how}: ${this.log || "it said nothing"}`;
  }

  /** Once it has ended, or so much time has passed. */
  async exits(withinMs: number): Promise<void> {
    if (this.end === undefined) await isSettled(this.#exited, withinMs);
  }

  /** Throws if it has ended. */
  check(): void {
    if (this.end !== undefined) throw new ServerEnded(this.end);
  }
}

/** A client that does not wait for a server that has ended. */
class Watched extends Client {
  readonly #program: Program;

  constructor(program: Program, server: string, token: string, timeoutMs: number) {
    super({ server, token, installation: "any", timeoutMs });
    this.#program = program;
  }

  protected override async tryOnce(call: () => Promise<Answer>): Promise<Answer> {
    this.#program.check();
    try {
      return await call();
    } catch (e) {
      await this.#program.exits(EXIT_WITHIN_MS);
      this.#program.check();
      throw e;
    }
  }
}

/** A server in memory whose time is virtual. Made by startServer. */
export class Server {
  readonly client: Client;
  readonly #program: Program;
  readonly #endWithinMs: number;
  readonly #agents = new Set<Agent>();
  readonly #clients = new Set<Client>();

  /** @internal */
  constructor(
    program: Program,
    readonly url: string,
    endWithinMs: number,
  ) {
    this.#program = program;
    this.#endWithinMs = endWithinMs;
    this.client = this.#connect("");
  }

  #connect(token: string, timeoutMs = 30_000): Client {
    const client = new Watched(this.#program, this.url, token, timeoutMs);
    this.#clients.add(client);
    return client;
  }

  /** Ends it, and the agents that still run. Rejects as `stop` does, once the server has ended. */
  async close(): Promise<void> {
    const stops = await Promise.allSettled([...this.#agents].map((agent) => this.stop(agent)));
    for (const client of this.#clients) client.close();
    const { child, end } = this.#program;
    if (end !== undefined) console.warn(end);
    child.stdin?.end();
    await this.#program.exits(END_WITHIN_MS);
    if (this.#program.end === undefined) child.kill("SIGKILL");
    await this.#program.exits(END_WITHIN_MS);
    for (const stop of stops) if (stop.status === "rejected") throw stop.reason;
  }

  /** Stores definitions: files, texts of more than a line, or objects. */
  async define(...definitions: readonly (string | object)[]): Promise<void> {
    for (const definition of definitions)
      await this.client.putWorkflow(
        typeof definition === "string" && !definition.includes("\n") ? await readFile(definition, "utf8") : definition,
      );
  }

  /** Runs an agent of your own until the server is closed or it is stopped: its handlers, for this server. */
  agent(agent: Agent): Agent;
  /** Runs an agent of that name, with these actions and undos. */
  agent(name: string, actions: Record<string, Act>, undos?: Record<string, Act | UndoHandler>): Agent;
  agent(what: Agent | string, actions: Record<string, Act> = {}, undos: Record<string, Act | UndoHandler> = {}): Agent {
    let agent: Agent;
    if (what instanceof Agent) {
      agent = what.copy(this.url);
    } else {
      agent = new Agent(what, {
        places: 8,
        server: this.url,
        token: "",
        discovery: false,
        installation: "any",
        logger: quiet,
      });
      for (const [name, act] of Object.entries(actions)) agent.action(name, handler(act));
      for (const [name, act] of Object.entries(undos)) agent.undo(name, handler(act as Act));
    }
    this.#agents.add(agent);
    agent.start();
    return agent;
  }

  /**
   * Stops an agent that `agent` returned. Handlers at work have `endWithinMs`; rejects if one is still at work then, or
   * an answer was not delivered. If the server has ended, nobody waits for them.
   */
  async stop(agent: Agent): Promise<void> {
    this.#agents.delete(agent);
    agent.stop();
    const ended = agent.join();
    const isServed = this.#program.end === undefined;
    if (await isSettled(ended, isServed ? this.#endWithinMs : 0)) return;
    agent.giveUp();
    await ended;
    if (isServed)
      throw new Error(
        `agent ${agent.name} has not ended after ${this.#endWithinMs / 1000} s: a handler hangs, or an answer was not delivered`,
      );
  }

  /** A client that decides approvals as this person, who has these groups. */
  async person(name: string, ...groups: string[]): Promise<Client> {
    const body = { name, roles: ["approve", "submit"], person: name, groups };
    return this.#connect((await this.client.call<{ token: string }>("POST", "/v1/tokens", body)).token);
  }

  /** Submits a task. */
  async submit(workflow: string, options: Omit<Submission, "workflow"> = {}): Promise<Task> {
    return new Task(this, (await this.client.submit(workflow, options)).id);
  }

  /** A task that exists, such as one of a schedule. */
  task(id: string): Task {
    return new Task(this, id);
  }

  /** Its time, and what holds it. */
  clock(): Promise<Clock> {
    return this.client.call("GET", "/v1/clock");
  }

  /**
   * Lets time pass, for so long ("2d") or until then (a Date, or "2026-03-01T09:00:00Z"), by all that is due on the way, and
   * resolves when what that began is done. Agents at work are waited for. If they take more than `patienceMs` of real time, or work
   * waits for an agent that does not run, it rejects with a Problem of the kind "clock-held". `regardless`: what is at work now, or
   * waits, does not matter: for agents that hang or are missing.
   */
  async advance(moment: string | Date, options: { regardless?: boolean; patienceMs?: number } = {}): Promise<Clock> {
    const text = typeof moment === "string" ? moment : moment.toISOString();
    const client = this.#connect("", 3_600_000);
    try {
      return await client.call("POST", "/v1/clock/advance", {
        [DURATION.test(text) ? "by" : "to"]: text,
        regardless: options.regardless ?? false,
        patience: `${Math.round(options.patienceMs ?? 10_000)}ms`,
      });
    } finally {
      this.#clients.delete(client);
      client.close();
    }
  }
}

/** The port that it says it listens on. Rejects with why it says none; it is ended then. */
async function portOf(running: Program, name: string, withinMs: number): Promise<string> {
  const { child } = running;
  let told = "";
  let late: NodeJS.Timeout | undefined;
  try {
    return await new Promise<string>((resolve, reject) => {
      const fails = (why: string): void => reject(new Error(`the server did not start: ${running.log || told.trim() || why}`));
      late = setTimeout(() => fails(`it said nothing in ${withinMs / 1000} s`), withinMs);
      child.on("error", (e) => {
        reject(new Error(`${name}: ${e.message}; INTACT_PROGRAM may say where the program intact is`));
      });
      child.on("close", () => fails("it ended, and said nothing"));
      child.stdin?.on("error", () => undefined);
      child.stdout?.on("data", (bytes: Buffer) => {
        told += bytes.toString();
        const found = /listening on port (\d+)\n/.exec(told);
        if (found) resolve(found[1] as string);
      });
    });
  } catch (e) {
    child.kill("SIGKILL");
    for (const pipe of [child.stdin, child.stdout, child.stderr]) pipe?.destroy(); // its children may hold the other ends
    throw e;
  } finally {
    clearTimeout(late);
  }
}

/** Starts a server; each test can have its own, on a port of its own. Rejects with why it did not start. */
export async function startServer(options: ServerOptions = {}): Promise<Server> {
  const program = options.program ?? process.env["INTACT_PROGRAM"] ?? "intact";
  const args = ["serve", "--virtual-time", "--clock", options.clock ?? "waits", "--listen", "127.0.0.1:0", "--end-with-stdin"];
  args.push("--no-console", "--log", "error");
  if (options.at !== undefined) args.push("--clock-at", options.at);
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("INTACT_")));
  // Its standard input is a pipe of this process alone: when that ends, so does the server.
  const child = spawn(program, [...args, ...(options.arguments ?? [])], { env, stdio: ["pipe", "pipe", "pipe"] });
  const running = new Program(child);
  const port = await portOf(running, program, options.startWithinMs ?? START_WITHIN_MS);
  const server = new Server(running, `http://127.0.0.1:${port}`, options.endWithinMs ?? END_WITHIN_MS);
  try {
    await server.define(...(options.definitions ?? []));
  } catch (e) {
    await server.close();
    throw e;
  }
  return server;
}
