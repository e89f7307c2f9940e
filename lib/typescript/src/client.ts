import { randomUUID } from "node:crypto";
import { duration, nowMs, sleep } from "./clock.js";
import { AnotherInstallation, Busy, ServerEnded, Problem, problemOf, Unreachable, WaitTimeout } from "./errors.js";
import { Gathering, LINES_MAX, LINES_SIZE_MAX } from "./gathering.js";
import { accessToken, certificates, retryAfter, servers, Wire, type Answer } from "./http.js";
import { Installation } from "./installation.js";
import type {
  ApprovalPage,
  Decided,
  ItemPage,
  SentSignal,
  Step,
  StepState,
  Submission,
  Submitted,
  SubmittedLine,
  Task,
  TaskPage,
  TaskState,
  TaskSummary,
  Why,
  Workflow,
  WorkflowStored,
} from "./types.js";

/** States in which a task does not go on by itself. */
export const ENDED: readonly TaskState[] = ["processed", "compensated", "error"];

const WAIT_MAX_MS = 30_000; // that one call is parked for; longer waits are several calls
const ITEMS_MAX = 500; // that a page has

/** How a client is set up. */
export interface ClientOptions {
  /**
   * An address, or those of several nodes with commas between: a call goes to the one that answered last, and on to the
   * next. Default: $INTACT_SERVER.
   */
  server?: string;
  /** Default: $INTACT_TOKEN. */
  token?: string;
  /** File of certificates (PEM) that an https:// server's must be signed by. Default: $INTACT_CA, then those of Node. */
  ca?: string;
  /**
   * The id of the installation that is meant. Default: $INTACT_INSTALLATION, then the one that answers first. A server of
   * another one does nothing, and no other call is made to it.
   */
  installation?: string;
  /**
   * For each call, repetitions among them. A call that may be repeated (reading, and what has a name or an id) is, while no
   * server answers or they answer 503; any other only if it has certainly not begun. Default: 30 000.
   */
  timeoutMs?: number;
  /**
   * Calls of `submit` that are made together go as one request: those of the same turn, and while another one is under way
   * those of a millisecond. Each has its own answer or error. Default: true.
   */
  gather?: boolean;
}

/** Which tasks. */
export interface ListOptions {
  state?: TaskState | TaskState[];
  workflow?: string;
  tags?: Record<string, string>;
  submittedAfter?: string;
  submittedBefore?: string;
  /** Whether tasks are listed that other tasks started; if it is left out, that depends on the other filters. */
  children?: boolean;
  /** Only the children of this task. */
  parent?: string;
  /** Only the descendants of this task, which has no parent. */
  root?: string;
  limit?: number;
  cursor?: string;
}

interface CallOptions {
  body?: Buffer | undefined;
  contentType?: string;
  waitMs?: number;
  isRepeatable?: boolean | undefined;
  key?: string | undefined;
  signal?: AbortSignal | undefined;
  /** When it has no more time; default: after `timeoutMs`. */
  end?: number;
}

function encode(value: unknown): Buffer {
  return Buffer.from(JSON.stringify(value));
}

function pathOf(id: string, verb = ""): string {
  return `/v1/tasks/${encodeURIComponent(id)}${verb && `/${verb}`}`;
}

/**
 * A client of an installation. Rejects with Problem if the server says no, Busy if it might say yes later, Unreachable if
 * there is no answer, AnotherInstallation if the servers that can be reached belong to another installation, or to two.
 */
export class Client {
  readonly #wires: Wire[];
  readonly #timeoutMs: number;
  readonly #installation: Installation;
  readonly #meet: () => Promise<void>;
  readonly #gathering: Gathering | undefined;
  #current = 0;

  constructor(options: ClientOptions = {}) {
    const token = accessToken(options.token);
    const ca = certificates(options.ca);
    const urls = servers(options.server);
    const installation = (this.#installation = new Installation(options.installation));
    this.#wires = urls.map((url) => new Wire(url, token, ca, installation));
    this.#meet = () => installation.meet(urls, (url, withinMs) => new Wire(url, "", ca).whose(withinMs));
    this.#timeoutMs = options.timeoutMs ?? 30_000;
    const sender = {
      one: (line: string, end?: number) => this.#submitOne(line, end),
      many: (lines: string[], end?: number) => this.#submitLines(lines, end),
    };
    this.#gathering = options.gather === false ? undefined : new Gathering(sender, this.#timeoutMs);
  }

  /** The id of the installation that it works with; undefined: not known yet. */
  get installation(): string | undefined {
    return this.#installation.id;
  }

  /** Closes the connections that are kept open. */
  close(): void {
    for (const wire of this.#wires) wire.close();
  }

  // ---- tasks ----

  /**
   * Submits a task; when this resolves it is durable. Without an id it is given one, so that nothing is submitted twice by
   * repetition. The same content again under the same id gives the task that exists. Calls that are made together go as one
   * request (`gather`).
   */
  submit(workflow: string, options: Omit<Submission, "workflow"> = {}): Promise<Submitted> {
    const line = JSON.stringify({ workflow, ...options, id: options.id ?? randomUUID() });
    return this.#gathering ? this.#gathering.submit(workflow, line) : this.#submitOne(line);
  }

  #submitOne(line: string, end?: number): Promise<Submitted> {
    return this.#json("POST", "/v1/tasks", { body: Buffer.from(line), isRepeatable: true, ...(end ? { end } : {}) });
  }

  async #submitLines(lines: string[], end?: number): Promise<SubmittedLine[]> {
    const answer = await this.#answer("POST", "/v1/tasks", {
      body: Buffer.from(lines.join("\n")),
      contentType: "application/x-ndjson",
      isRepeatable: true,
      ...(end ? { end } : {}),
    });
    const texts = answer.body.toString().split("\n");
    return texts.filter((text) => text !== "").map((text) => parsed<SubmittedLine>(text));
  }

  /**
   * Submits many, in calls of up to a thousand; what became of each, in their order. One that is refused has a `problem`,
   * and is of no harm to the others. If this rejects, submit the same again: so give them ids.
   */
  async submitMany(submissions: Iterable<Submission>): Promise<SubmittedLine[]> {
    const found: SubmittedLine[] = [];
    let batch: string[] = [];
    let size = 0;
    const send = async (): Promise<void> => {
      const before = found.length;
      const lines = batch;
      batch = [];
      size = 0;
      for (const line of await this.#submitLines(lines)) found.push({ ...line, line: line.line + before });
    };
    for (const submission of submissions) {
      const line = JSON.stringify({ ...submission, id: submission.id ?? randomUUID() });
      const length = Buffer.byteLength(line);
      if (batch.length > 0 && (batch.length >= LINES_MAX || size + length > LINES_SIZE_MAX)) await send();
      batch.push(line);
      size += length;
    }
    if (batch.length > 0) await send();
    return found;
  }

  /** The whole record of a task. `I` and `O` are the types of its input and output, of which nothing is checked. */
  get<I = unknown, O = unknown>(id: string): Promise<Task<I, O>> {
    return this.#json("GET", pathOf(id));
  }

  /**
   * The record once the task has ended (processed, compensated or error: look at `state`), through restarts of servers.
   * WaitTimeout after `timeoutMs`, Unreachable if then nobody answers.
   */
  async wait<I = unknown, O = unknown>(
    id: string,
    options: { timeoutMs?: number; signal?: AbortSignal } = {},
  ): Promise<Task<I, O>> {
    const end = options.timeoutMs === undefined ? Infinity : nowMs() + options.timeoutMs;
    for (;;) {
      options.signal?.throwIfAborted();
      const waitMs = Math.max(0, Math.min(WAIT_MAX_MS, end - nowMs()));
      const query = waitMs > 0 ? `?wait=${duration(waitMs)}` : "";
      try {
        const task = await this.#json<Task<I, O>>("GET", pathOf(id) + query, { waitMs, signal: options.signal });
        if (ENDED.includes(task.state)) return task;
        if (nowMs() >= end) throw new WaitTimeout(task);
      } catch (e) {
        options.signal?.throwIfAborted();
        if (!(e instanceof Busy || e instanceof Unreachable) || nowMs() >= end) throw e;
        await sleep(100, options.signal);
      }
    }
  }

  /** A page of tasks, newest first. */
  list(options: ListOptions = {}): Promise<TaskPage> {
    const query = new URLSearchParams();
    const add = (name: string, value: string | number | boolean | undefined): void => {
      if (value !== undefined) query.set(name, String(value));
    };
    add("state", Array.isArray(options.state) ? options.state.join() : options.state);
    add("workflow", options.workflow);
    add("submitted_after", options.submittedAfter);
    add("submitted_before", options.submittedBefore);
    add("children", options.children);
    add("parent", options.parent);
    add("root", options.root);
    add("limit", options.limit);
    add("cursor", options.cursor);
    for (const [name, value] of Object.entries(options.tags ?? {})) add(`tag.${name}`, value);
    return this.#json("GET", `/v1/tasks${String(query) && `?${query}`}`);
  }

  /** All tasks that `list` finds, page by page as they are taken. */
  async *listAll(options: ListOptions = {}): AsyncGenerator<TaskSummary, void, undefined> {
    let cursor = options.cursor;
    for (;;) {
      const page = await this.list(cursor === undefined ? options : { ...options, cursor });
      yield* page.tasks;
      if (!page.next) return;
      cursor = page.next;
    }
  }

  /**
   * The items of a step with `for_each`, by their numbers, page by page as they are taken; with `state` only those in it.
   * Each is as it was when its page was read.
   */
  async *items(id: string, step: string, options: { state?: StepState } = {}): AsyncGenerator<Step, void, undefined> {
    const query = new URLSearchParams({ step, ...options, limit: String(ITEMS_MAX) });
    for (;;) {
      const page = await this.#json<ItemPage>("GET", `${pathOf(id, "items")}?${query}`);
      yield* page.items;
      if (!page.next) return;
      query.set("cursor", page.next);
    }
  }

  /** What the task waits for, and what would move it. */
  why(id: string): Promise<Why> {
    return this.#json("GET", pathOf(id, "why"));
  }

  /**
   * Sends a signal: the first step that waits for that name takes it, or it is kept. With the same `key` it is the same
   * signal, so it may be sent again. RangeError if the key is empty.
   */
  async signal(id: string, name: string, data: unknown = null, key: string = randomUUID()): Promise<SentSignal> {
    if (key === "") throw new RangeError("the key is empty");
    return this.#json("POST", pathOf(id, `signals/${encodeURIComponent(name)}`), {
      body: encode(data),
      isRepeatable: true,
      key,
    });
  }

  // ---- deciding ----

  /** What waits for the decision of this token's person. */
  approvals(filters: { task?: string; cursor?: string } = {}): Promise<ApprovalPage> {
    const query = new URLSearchParams(filters);
    return this.#json("GET", `/v1/approvals${String(query) && `?${query}`}`);
  }

  /**
   * Agrees to what the step asks. `asking`: the number of the question that was read; if it was asked anew meanwhile, the
   * decision is refused. Without it, it is whichever question is asked now, and the call is not repeated.
   */
  approve(id: string, step: string, options: { comment?: string; asking?: number } = {}): Promise<Decided> {
    return this.#decide(id, step, "approve", options);
  }

  /** Rejects what the step asks, as `approve` agrees. */
  reject(id: string, step: string, comment: string, options: { asking?: number } = {}): Promise<Decided> {
    return this.#decide(id, step, "reject", { comment, ...options });
  }

  #decide(id: string, step: string, what: string, body: { comment?: string; asking?: number }): Promise<Decided> {
    return this.#json("POST", `/v1/approvals/${encodeURIComponent(id)}/${encodeURIComponent(step)}/${what}`, {
      body: encode(body),
      isRepeatable: body.asking !== undefined,
    });
  }

  // ---- operating ----

  /** Takes the task back, as who submitted it. */
  cancel(id: string, reason?: string): Promise<Task> {
    return this.#json("POST", pathOf(id, "cancel"), { body: encode({ reason }) });
  }

  /** Goes on where the task stopped. */
  retry(id: string, reason: string, step?: string): Promise<Task> {
    return this.#json("POST", pathOf(id, "retry"), { body: encode({ reason, step }) });
  }

  /** Leaves a step out, with an output for those after it if one is given. */
  skip(id: string, step: string, reason: string, output?: unknown): Promise<Task> {
    return this.#json("POST", pathOf(id, "skip"), { body: encode({ step, reason, output }) });
  }

  /** Takes the whole task back, as an operator. */
  undo(id: string, reason: string): Promise<Task> {
    return this.#json("POST", pathOf(id, "undo"), { body: encode({ reason }) });
  }

  // ---- workflows ----

  /**
   * Stores a definition, an object or its text in JSON or YAML, under the name that it says itself. `name`: refuse it if it
   * is of another workflow.
   */
  putWorkflow(definition: string | object, name?: string): Promise<WorkflowStored> {
    const text = typeof definition === "string" ? definition : JSON.stringify(definition);
    const options = {
      body: Buffer.from(text),
      contentType: text.trimStart().startsWith("{") ? "application/json" : "application/yaml",
      isRepeatable: true, // the same content is the same version
    };
    if (name === undefined) return this.#json("POST", "/v1/workflows", options);
    return this.#json("PUT", `/v1/workflows/${encodeURIComponent(name)}`, options);
  }

  /** The newest version, or that one. */
  getWorkflow(name: string, version?: number): Promise<Workflow> {
    const path = `/v1/workflows/${encodeURIComponent(name)}`;
    return this.#json("GET", version === undefined ? path : `${path}/versions/${version}`);
  }

  // ---- attempts ----

  /**
   * Answers an attempt from elsewhere, by its token: "repeated": it was answered before; "late": it had been given up.
   * Problem of the kind "unknown-attempt": there is none of this token. Takes no access token.
   */
  complete(token: string, output: unknown = null): Promise<"accepted" | "repeated" | "late"> {
    return this.#endAttempt(token, { output });
  }

  /** The same with an error. */
  fail(
    token: string,
    error: { code: string; message?: string; retryable?: boolean; effect?: "none" | "unknown" },
  ): Promise<"accepted" | "repeated" | "late"> {
    return this.#endAttempt(token, { error: { retryable: false, ...error } });
  }

  async #endAttempt(token: string, body: unknown): Promise<"accepted" | "repeated" | "late"> {
    const path = `/v1/attempts/${encodeURIComponent(token)}`;
    return (await this.#json<{ status: "accepted" | "repeated" | "late" }>("POST", path, { body: encode(body), isRepeatable: true }))
      .status;
  }

  // ---- calls ----

  /** Any other call: the JSON that it is answered with. `path` with its query, escaped. */
  call<T = unknown>(method: string, path: string, body?: unknown): Promise<T> {
    return this.#json(method, path, body === undefined ? {} : { body: encode(body) });
  }

  async #json<T>(method: string, path: string, options: CallOptions = {}): Promise<T> {
    const answer = await this.#answer(method, path, options);
    return parsed<T>(answer.body.length > 0 ? answer.body.toString() : "{}");
  }

  /** One try of a call. ServerEnded is not followed by another one. For intact-client/testing. @internal */
  protected tryOnce(call: () => Promise<Answer>): Promise<Answer> {
    return call();
  }

  /** 2xx; anything else is thrown. */
  async #answer(method: string, path: string, options: CallOptions): Promise<Answer> {
    const isRepeatable =
      options.isRepeatable ?? (["GET", "PUT", "DELETE"].includes(method) || path === "/v1/validate");
    await this.#meet();
    const end = options.end ?? performance.now() + this.#timeoutMs + (options.waitMs ?? 0);
    let foreign: AnotherInstallation | undefined;
    for (let failures = 1; ; failures++) {
      const wire = this.#wires[this.#current % this.#wires.length] as Wire;
      let failure: Problem | Unreachable | AnotherInstallation;
      let may: boolean;
      try {
        const left = end - performance.now();
        // One that hangs must not take all the time, if there are others and it may be asked twice.
        const hanging = Math.max(left / 2, (options.waitMs ?? 0) + this.#timeoutMs / 2);
        const withinMs = isRepeatable && this.#wires.length > 1 ? Math.min(left, hanging) : left;
        const answer = await this.tryOnce(() => wire.call(method, path, { ...options, withinMs, isRepeatable }));
        if (answer.status >= 200 && answer.status < 300) return answer;
        const { status, kind } = (failure = problem(answer));
        // 503 is said before anything is begun, but for "io".
        const isFull = status === 429 && !(failure instanceof Busy);
        may = ([429, 503].includes(status) && kind !== "io" && !isFull) || (isRepeatable && [502, 503, 504].includes(status));
      } catch (e) {
        if (e instanceof ServerEnded) throw e;
        if (e instanceof AnotherInstallation) foreign = e;
        failure = foreign ?? new Unreachable(`${wire.url}: ${String(e)}`, { cause: e });
        // Nothing was done by one of another installation.
        may = e instanceof AnotherInstallation || isRepeatable || (e as { code?: string }).code === "ECONNREFUSED";
      }
      this.#current++;
      if (foreign && (failures >= this.#wires.length || !may)) throw foreign;
      const asked = failure instanceof Problem ? failure.retryAfter : 0;
      const pause =
        failures < this.#wires.length
          ? 0
          : Math.max(asked, Math.min(5000, 100 * 2 ** Math.min(failures, 10)) * (0.5 + Math.random() / 2));
      if (!may || options.signal?.aborted || performance.now() + pause >= end) {
        if (!may && failure instanceof Problem) this.#current--; // it did answer
        throw failure;
      }
      await sleep(pause, options.signal);
    }
  }
}

function parsed<T>(text: string): T {
  try {
    return JSON.parse(text) as T;
  } catch (e) {
    throw new Unreachable(`the answer is not JSON: ${String(e)}`, { cause: e });
  }
}

function problem(answer: Answer): Problem {
  let body: unknown;
  try {
    body = JSON.parse(answer.body.toString());
  } catch {
    body = undefined;
  }
  const isDocument = typeof body === "object" && body !== null && !Array.isArray(body);
  const document = isDocument ? (body as Record<string, unknown>) : { title: answer.body.subarray(0, 300).toString() };
  return problemOf(answer.status, document, retryAfter(answer));
}
