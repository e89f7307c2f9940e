import { nowMs, sleep } from "./clock.js";
import { Again, StepError, TooLate } from "./errors.js";
import { isOfConnection, retryWait, type RetryOptions } from "./retry.js";

const PROGRESS_MAX = 2048;
const MESSAGE_MAX = 256;
const BEAT_MS = 250;
const AUTO_BEAT_MS = 5000;

/** Of an undo: the step that is to be undone. `I` and `O` are the types of its input and output. */
export interface Forward<I = unknown, O = unknown> {
  idempotency_key: string;
  input: I;
  /** null: it is not known, or there was none. */
  output: O | null;
  attempts: number;
  in_doubt: boolean;
}

/** A sign of life. What is undefined stays as it was. */
export interface Beat {
  progress?: unknown;
  message?: string;
  resume?: unknown;
}

function within(name: string, value: unknown): unknown {
  const text = JSON.stringify(value);
  if (text === undefined) throw new TypeError(`${name} is not JSON`);
  const size = Buffer.byteLength(text);
  if (size > PROGRESS_MAX) throw new RangeError(`${name} has ${size} bytes as JSON, at most ${PROGRESS_MAX} are allowed`);
  return JSON.parse(text) as unknown; // as it is now: the handler may go on changing its own
}

/** Cut between characters. */
function shortMessage(text: string): string {
  const bytes = Buffer.from(text);
  if (bytes.length <= MESSAGE_MAX) return bytes.toString();
  let end = MESSAGE_MAX;
  while (end > 0 && ((bytes[end] ?? 0) & 0xc0) === 0x80) end--;
  return bytes.subarray(0, end).toString();
}

/** What the agent keeps of a request besides; not for handlers. */
export interface Inner {
  deadlineMs: number;
  acknowledgedMs: number; // when the latest beat that was taken had been sent
  isElsewhere: boolean;
  isWorking: boolean;
  autoHeartbeat: boolean;
  beat: Beat | undefined; // to be sent
  beatAtMs: number; // the latest was sent
  readonly abort: AbortController;
  onBeat: () => void;
}

const inner = new WeakMap<Request, Inner>();

/** The agent's part of a request. */
export function innerOf(request: Request): Inner {
  return inner.get(request) as Inner;
}

function text(fields: Record<string, unknown>, name: string): string {
  const value = fields[name];
  if (typeof value !== "string") throw new TypeError(`${name} of a request is not a string`);
  return value;
}

function whole(fields: Record<string, unknown>, name: string): number {
  const value = fields[name];
  if (!Number.isSafeInteger(value)) throw new TypeError(`${name} of a request is not an integer`);
  return value as number;
}

/** A request to undo a step whose input is of type `FI` and whose output is of type `FO`. `I`: of the undo's own input. */
export type UndoRequest<FI = unknown, FO = unknown, I = unknown> = Request<I, Forward<FI, FO>>;

/** What a request for a test says. What is left out has a value that fits. */
export interface TestRequestOptions<I> {
  /** Default: null. */
  input?: I;
  action?: string;
  task?: string;
  step?: string;
  attempt?: number;
  /** Default: TASK/STEP, of an undo TASK/STEP/undo. */
  idempotencyKey?: string;
  resume?: unknown;
  /** Default: 60 000. */
  timeLeftMs?: number;
  heartbeatMs?: number;
  traceparent?: string;
  token?: string;
}

/**
 * One attempt of a step, handed to a handler. Agents make them; for tests of handlers there is `Request.forTest`. `I` is
 * the type of its input, `F` that of `forward`; nothing of them is checked.
 */
export class Request<I = unknown, F extends Forward | undefined = Forward | undefined> {
  /** Names this attempt; who knows it may answer it from elsewhere (Client.complete). Keep it secret. */
  readonly token: string;
  readonly task: string;
  readonly step: string;
  readonly action: string;
  readonly direction: "forward" | "undo";
  /** Which try of the step it is, from 1. */
  readonly attempt: number;
  /** The same for all attempts of the step in this direction. */
  readonly idempotencyKey: string;
  readonly input: I;
  /** Of an undo: the step that is to be undone. */
  readonly forward: F;
  /** What an earlier attempt left for the next one; undefined: nothing. */
  readonly resume: unknown;
  /** Beats have to be acknowledged at least so often; undefined: they need not. */
  readonly heartbeatMs: number | undefined;
  /** The deadline as the server's clock has it. Go by `timeLeftMs` and `signal`. */
  readonly completeBy: string;
  /** W3C trace context, to be passed on. */
  readonly traceparent: string | undefined;
  /** The whole request, as it came. */
  readonly fields: Readonly<Record<string, unknown>>;
  /**
   * Aborts when the request is over (reason: TooLate) or the server asks to stop it (reason: a StepError with the code
   * "stopped"). Hand it to fetch and the like.
   */
  readonly signal: AbortSignal;
  /** How many calls to the service this attempt has made; shown in the record. `call` counts by itself. */
  tries = 0;
  #isOver = false;
  #alarm: NodeJS.Timeout | undefined;

  /** `beginMs`: from when on the time that is left counts, on our own clock. */
  protected constructor(fields: Record<string, unknown>, beginMs: number) {
    this.fields = fields;
    this.token = text(fields, "token");
    this.task = text(fields, "task");
    this.step = text(fields, "step");
    this.action = text(fields, "action");
    this.direction = text(fields, "direction") === "undo" ? "undo" : "forward";
    this.attempt = whole(fields, "attempt");
    this.idempotencyKey = text(fields, "idempotency_key");
    this.input = fields["input"] as I;
    this.forward = (fields["forward"] ?? undefined) as F;
    this.resume = fields["resume"] ?? undefined;
    this.heartbeatMs = fields["heartbeat_ms"] === undefined ? undefined : whole(fields, "heartbeat_ms");
    this.completeBy = String(fields["complete_by"] ?? "");
    this.traceparent = typeof fields["traceparent"] === "string" ? fields["traceparent"] : undefined;
    const abort = new AbortController();
    this.signal = abort.signal;
    inner.set(this, {
      deadlineMs: beginMs + whole(fields, "time_left_ms"),
      acknowledgedMs: beginMs,
      isElsewhere: false,
      isWorking: true,
      autoHeartbeat: false,
      beat: undefined,
      beatAtMs: beginMs,
      abort,
      onBeat: () => undefined,
    });
  }

  get #inner(): Inner {
    return innerOf(this);
  }

  /** @internal */
  static sent(fields: Record<string, unknown>, beginMs: number): Request {
    return new Request(fields, beginMs);
  }

  /**
   * One that no server sent, to call a handler with in a unit test. With `forward`, of which any members may be left out, it
   * asks to undo. Values become what an agent gets of them: JSON.
   *
   * ```ts
   * const request = Request.forTest({ input: { amount: 20 } });
   * assert.deepEqual(await charge(request), { receipt: 17 });
   * await refund(Request.forTest({ forward: { input: { amount: 20 }, output: { receipt: 17 } } }));
   * ```
   */
  static forTest<FI = null, FO = never, I = null>(
    options: TestRequestOptions<I> & { forward: Partial<Forward<FI, FO>> },
  ): TestRequest<I, Forward<FI, FO>>;
  static forTest<I = null>(options?: TestRequestOptions<I> & { forward?: undefined }): TestRequest<I, undefined>;
  static forTest(options: TestRequestOptions<unknown> & { forward?: Partial<Forward> | undefined } = {}): TestRequest {
    const { task = "test", step = "test", timeLeftMs = 60_000, forward } = options;
    const key = `${task}/${step}`;
    const fields = {
      token: options.token ?? "test",
      task,
      step,
      action: options.action ?? "test",
      direction: forward ? "undo" : "forward",
      attempt: options.attempt ?? 1,
      idempotency_key: options.idempotencyKey ?? (forward ? `${key}/undo` : key),
      input: options.input ?? null,
      resume: options.resume,
      complete_by: new Date(Date.now() + timeLeftMs).toISOString(),
      time_left_ms: Math.round(timeLeftMs),
      heartbeat_ms: options.heartbeatMs,
      traceparent: options.traceparent,
      forward: forward && { idempotency_key: key, input: null, output: null, attempts: 1, in_doubt: false, ...forward },
    };
    return new TestRequest(JSON.parse(JSON.stringify(fields)) as Record<string, unknown>);
  }

  #endsAtMs(): number {
    const { deadlineMs, acknowledgedMs } = this.#inner;
    return this.heartbeatMs === undefined ? deadlineMs : Math.min(deadlineMs, acknowledgedMs + this.heartbeatMs);
  }

  /**
   * Until the deadline, 0 once it has passed: for the time limits of your own calls. Beats that are missing move it up.
   */
  get timeLeftMs(): number {
    return this.#isOver ? 0 : Math.max(0, this.#endsAtMs() - nowMs());
  }

  /**
   * The deadline has passed, or no beat was acknowledged for `heartbeatMs`: nothing may happen any more, and what is
   * answered is not sent. Once true, always true.
   */
  get isOver(): boolean {
    if (!this.#isOver && nowMs() >= this.#endsAtMs()) {
      this.#isOver = true;
      this.#inner.abort.abort(new TooLate(`${this.idempotencyKey}: the deadline has passed`));
    }
    return this.#isOver;
  }

  /** It is over, or the server asks to stop. A long handler looks at it before each effect. */
  get shouldStop(): boolean {
    return this.isOver || this.signal.aborted;
  }

  /**
   * Call it before each effect: throws what `signal` has as its reason if the handler should stop. `effect`: "unknown" if
   * something may have happened already.
   */
  check(effect: "none" | "unknown" = "none"): void {
    if (this.isOver) throw new TooLate(`${this.idempotencyKey}: the deadline has passed`);
    if (this.signal.aborted) throw stopped(effect);
  }

  /** Sleeps; false, and at once, if the handler should stop. */
  async pause(ms: number): Promise<boolean> {
    const end = nowMs() + ms;
    while (!this.shouldStop) {
      const left = end - nowMs();
      if (left <= 0) return true;
      await sleep(Math.max(1, Math.min(left, 1000)), this.signal);
    }
    return false;
  }

  /**
   * Calls a function until it succeeds, counting `tries`: once more after errors that `options.on` names, after Again, and
   * after a StepError that is retryable, for as long as options and deadline allow; then the last error is thrown, Again
   * as a StepError. Nothing is called when the request is over or to be stopped. Use one idempotency key for all calls.
   */
  async call<T>(run: () => T | Promise<T>, options: RetryOptions = {}): Promise<T> {
    const begin = nowMs();
    const on = options.on ?? isOfConnection;
    for (let calls = 1; ; calls++) {
      this.check(calls > 1 ? "unknown" : "none");
      this.tries++;
      let after = 0;
      let failure: unknown;
      try {
        return await run();
      } catch (e) {
        failure = e;
        if (e instanceof Again) {
          after = e.after;
          failure = new StepError("again", {
            message: e.message,
            retryable: true,
            effect: "unknown",
            ...(e.after > 0 ? { retryAfter: e.after } : {}),
          });
        } else if (e instanceof StepError) {
          if (!e.retryable) throw e;
          if (typeof e.retryAfter === "number") after = e.retryAfter;
        } else if (e instanceof TooLate || !on(e)) {
          throw e;
        }
      }
      const budget = options.budget === undefined ? Infinity : options.budget - (nowMs() - begin);
      const wait = retryWait(options, calls, Math.min(this.timeLeftMs, budget), after);
      if (wait === undefined) throw failure;
      await this.pause(wait);
    }
  }

  /**
   * Tells the server that this is being worked on, and how far it is. Returns at once: the latest is sent, at most a few
   * times a second; the answer to it may ask to stop. `progress` and `resume` are any JSON of at most 2048 bytes, of
   * `message` 256 bytes are sent. `resume` is handed to the next attempt if this one fails or times out.
   */
  heartbeat(progress?: unknown, message?: string, resume?: unknown): void {
    const beat: Beat = {
      ...(progress === undefined ? {} : { progress: within("progress", progress) }),
      ...(message === undefined ? {} : { message: shortMessage(message) }),
      ...(resume === undefined ? {} : { resume: within("resume", resume) }),
    };
    const mine = this.#inner;
    if (!mine.isWorking) return;
    mine.beat = { ...mine.beat, ...beat };
    mine.onBeat();
  }

  /**
   * This handler is done, and the result will come from elsewhere, by the token (Client.complete): a webhook, a person.
   * What the handler returns is of no account then; what it throws is.
   */
  elsewhere(): void {
    this.#inner.isElsewhere = true;
  }

  /** @internal Sees to it that `signal` aborts in time, also if the machine sleeps meanwhile. */
  watch(): void {
    if (this.isOver || !this.#inner.isWorking) return;
    this.#alarm = setTimeout(() => this.watch(), Math.max(1, Math.min(1000, this.#endsAtMs() - nowMs())));
  }

  /** @internal */
  unwatch(): void {
    clearTimeout(this.#alarm);
    this.#inner.isWorking = false;
  }

  /** @internal When the next beat is to go; undefined: there is none. */
  get beatDueMs(): number | undefined {
    const mine = this.#inner;
    if (!mine.isWorking || (this.signal.aborted && this.heartbeatMs === undefined)) return undefined;
    if (mine.beat) {
      const every = this.heartbeatMs === undefined ? BEAT_MS : Math.max(10, Math.min(BEAT_MS, this.heartbeatMs / 4));
      return mine.beatAtMs + every;
    }
    if (!mine.autoHeartbeat) return undefined;
    return mine.beatAtMs + (this.heartbeatMs === undefined ? AUTO_BEAT_MS : Math.min(AUTO_BEAT_MS, this.heartbeatMs / 3));
  }
}

/** A request that no server sent, as `Request.forTest` makes it, and what its handler told. */
export class TestRequest<I = unknown, F extends Forward | undefined = Forward | undefined> extends Request<I, F> {
  /** The heartbeats, as the server would get them. All are acknowledged. */
  readonly beats: Beat[] = [];

  /** @internal */
  constructor(fields: Record<string, unknown>) {
    super(fields, nowMs());
    const mine = innerOf(this);
    mine.onBeat = () => {
      if (mine.beat) this.beats.push(mine.beat);
      mine.beat = undefined;
      mine.beatAtMs = mine.acknowledgedMs = nowMs();
    };
  }

  /** The handler said that the result will come from elsewhere. */
  get isElsewhere(): boolean {
    return innerOf(this).isElsewhere;
  }

  /** As if the server asked to stop: the task is going to be undone. `signal` aborts. */
  stop(): void {
    innerOf(this).abort.abort(stopped("unknown"));
  }

  /** As if the deadline had passed. `signal` aborts. */
  expire(): void {
    innerOf(this).deadlineMs = -Infinity;
    void this.isOver;
  }
}

export function stopped(effect: "none" | "unknown"): StepError {
  return new StepError("stopped", { message: "the server asked to stop", retryable: true, effect });
}
