import { Busy, Problem, problemOf, Unreachable } from "./errors.js";
import type { Submitted, SubmittedLine } from "./types.js";

export const LINES_MAX = 1000;
export const LINES_SIZE_MAX = 2 * 1024 * 1024;

const GATHER_MS = 1; // at most, while another request is under way
const PAUSE_MAX_MS = 5000;

/** A submission that has no answer yet. */
interface Waiting {
  workflow: string;
  /** As JSON, with its id: so it may be sent again. */
  line: string;
  size: number;
  /** When there is no more time for it. */
  end: number;
  failures: number;
  resolve: (submitted: Submitted) => void;
  reject: (reason: unknown) => void;
}

/** How submissions are sent: each fails as the client's calls do, and is tried again until `end`. */
export interface Sender {
  one(line: string, end: number): Promise<Submitted>;
  many(lines: string[], end: number): Promise<SubmittedLine[]>;
}

/**
 * Submissions that are made together go as the lines of one request: those of the same turn, and while another request is
 * under way those of a millisecond. Each has an answer or an error of its own, and one that is alone is a request of its own.
 */
export class Gathering {
  readonly #sender: Sender;
  readonly #timeoutMs: number;
  #waiting: Waiting[] = [];
  #size = 0;
  #underWay = 0;
  #immediate: NodeJS.Immediate | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(sender: Sender, timeoutMs: number) {
    this.#sender = sender;
    this.#timeoutMs = timeoutMs;
  }

  submit(workflow: string, line: string): Promise<Submitted> {
    return new Promise((resolve, reject) => {
      const end = performance.now() + this.#timeoutMs;
      this.#add({ workflow, line, size: Buffer.byteLength(line), end, failures: 0, resolve, reject });
    });
  }

  #add(one: Waiting): void {
    const isFull = this.#waiting.length >= LINES_MAX || this.#size + one.size > LINES_SIZE_MAX;
    if (this.#waiting.length > 0 && isFull) this.#flush();
    this.#waiting.push(one);
    this.#size += one.size;
    if (this.#underWay === 0) this.#immediate ??= setImmediate(() => this.#flush());
    else this.#timer ??= setTimeout(() => this.#flush(), GATHER_MS);
  }

  #flush(): void {
    clearImmediate(this.#immediate);
    clearTimeout(this.#timer);
    this.#immediate = this.#timer = undefined;
    const batch = this.#waiting;
    this.#waiting = [];
    this.#size = 0;
    if (batch.length > 0) void this.#send(batch);
  }

  async #send(batch: Waiting[]): Promise<void> {
    this.#underWay++;
    try {
      if (batch.length === 1) await this.#sendOne(batch[0] as Waiting);
      else await this.#sendMany(batch);
    } finally {
      this.#underWay--;
      if (this.#underWay === 0) this.#flush();
    }
  }

  async #sendOne(one: Waiting): Promise<void> {
    try {
      one.resolve(await this.#sender.one(one.line, one.end));
    } catch (e) {
      one.reject(e);
    }
  }

  async #sendMany(batch: Waiting[]): Promise<void> {
    let lines: SubmittedLine[];
    try {
      lines = await this.#sender.many(
        batch.map((one) => one.line),
        Math.min(...batch.map((one) => one.end)),
      );
      if (lines.length !== batch.length) throw new Unreachable(`${lines.length} lines answer ${batch.length}`);
    } catch (e) {
      const isTooLarge = e instanceof Problem && e.status === 413; // together: one alone may fit
      await Promise.all(batch.map((one) => (isTooLarge ? this.#sendOne(one) : this.#failed(one, e))));
      return;
    }
    await Promise.all(batch.map((one, i) => this.#answered(one, lines[i] as SubmittedLine)));
  }

  async #answered(one: Waiting, line: SubmittedLine): Promise<void> {
    const { status, problem, line: _number, version, ...rest } = line;
    if (problem) this.#failed(one, problemOf(status, problem));
    else if (version === undefined) await this.#sendOne(one); // the node is older than this library: as a repetition
    else one.resolve({ ...rest, id: rest.id as string, workflow: one.workflow, version } as Submitted);
  }

  /** Others have used up their time, or the server has none: those that have some left are sent once more. */
  #failed(one: Waiting, reason: unknown): void {
    const isBusy = reason instanceof Busy && [429, 502, 503, 504].includes(reason.status);
    const pause = Math.min(PAUSE_MAX_MS, 100 * 2 ** Math.min(++one.failures, 10)) * (0.5 + Math.random() / 2);
    if (!(isBusy || reason instanceof Unreachable) || performance.now() + pause >= one.end) one.reject(reason);
    else setTimeout(() => this.#add(one), pause);
  }
}
