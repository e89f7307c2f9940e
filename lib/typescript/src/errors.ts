import { duration } from "./clock.js";
import type { Task } from "./types.js";

/** A text that can be sent, of anything: of what a handler threw, say, which may have none. */
export function readable(what: unknown): string {
  let text: string;
  try {
    text = String(what);
  } catch {
    text = Object.prototype.toString.call(what);
  }
  return Buffer.from(text.replaceAll("\0", "?")).toString(); // without halves of surrogate pairs
}

/** All errors of this package. */
export class IntactError extends Error {
  constructor(message: string, options?: { cause?: unknown }) {
    super(message, options as ErrorOptions);
    this.name = new.target.name;
  }
}

/** What an error of a step says beyond its code. */
export interface StepErrorOptions {
  /** For people. */
  message?: string;
  /** May another try help? If not, the step has failed for good. Default: false. */
  retryable?: boolean;
  /**
   * Of this attempt alone: "none" if it certainly changed nothing. If not given: "unknown" if retryable, else "none".
   */
  effect?: "none" | "unknown";
  /** No sooner than that: milliseconds, or a duration as text ("15m"). */
  retryAfter?: number | string;
  /** Any JSON up to 2048 bytes, handed to the next attempt as `request.resume`. */
  resume?: unknown;
}

/** Thrown by a handler to answer with an error. */
export class StepError extends IntactError {
  readonly code: string;
  readonly retryable: boolean;
  readonly effect: "none" | "unknown" | undefined;
  readonly retryAfter: number | string | undefined;
  readonly resume: unknown;

  constructor(code: string, options: StepErrorOptions = {}) {
    super(options.message || code);
    this.code = code;
    this.retryable = options.retryable ?? false;
    this.effect = options.effect;
    this.retryAfter = options.retryAfter;
    this.resume = options.resume;
  }

  /** The error as it goes to the server. */
  toJSON(): Record<string, unknown> {
    const after = this.retryAfter;
    return {
      code: this.code,
      message: readable(this.message),
      retryable: this.retryable,
      ...(this.effect === undefined ? {} : { effect: this.effect }),
      ...(after === undefined ? {} : { retry_after: typeof after === "string" ? after : duration(after) }),
      ...(this.resume === undefined ? {} : { resume: this.resume }),
    };
  }
}

/** The server of a test has ended: a call is not tried again. @internal */
export class ServerEnded extends IntactError {}

/**
 * The request is not ours any more: its deadline has passed, or no heartbeat was acknowledged for too long. The reason of
 * `request.signal` then; a handler that throws it, or lets it pass, answers nothing.
 */
export class TooLate extends IntactError {}

/** Thrown by a function that `request.call` calls: not yet; once more, no sooner than in `after` milliseconds. */
export class Again extends IntactError {
  readonly after: number;

  constructor(message = "retry requested", after = 0) {
    super(message);
    this.after = after;
  }
}

/** No server gave an answer. Whether the call took effect is not known. */
export class Unreachable extends IntactError {}

/**
 * A server belongs to another installation than the one that is worked with. Nothing was done there. Trying again does not
 * help: the addresses are wrong, or the server was replaced.
 */
export class AnotherInstallation extends IntactError {
  /** Where that was. */
  readonly server: string;
  /** The installation there. */
  readonly found: string;
  /** The other one. */
  readonly expected: string;
  /** The server that had answered as it; undefined if it was stated. */
  readonly knownFrom: string | undefined;

  constructor(server: string, found: string, knownFrom: string | undefined, expected: string) {
    const rest =
      knownFrom === undefined
        ? `, but ${expected} was expected (installation, or INTACT_INSTALLATION)`
        : knownFrom === server
          ? ` now, but belonged to ${expected} before; if it was replaced intentionally, restart this program`
          : `, but ${knownFrom}, which answered before, belongs to ${expected}; name servers of one installation only, ` +
            "or select one (installation, or INTACT_INSTALLATION)";
    super(`${server} belongs to the installation ${found}${rest}`);
    this.server = server;
    this.found = found;
    this.expected = expected;
    this.knownFrom = knownFrom;
  }
}

/** One mistake of a definition. */
export interface Mistake {
  line: number;
  column: number;
  path: string;
  found: string;
  expected: string;
}

/** The server said no (RFC 9457). */
export class Problem extends IntactError {
  /** Of HTTP. */
  readonly status: number;
  /** "urn:intact:problem:..." */
  readonly type: string;
  /** The last word of the type, for programs. */
  readonly kind: string;
  readonly title: string;
  readonly detail: string;
  /** Of a definition with mistakes. */
  readonly errors: Mistake[];
  readonly warnings: Mistake[];
  /** The whole document. */
  readonly body: Record<string, unknown>;
  /** Milliseconds that the server asks for; 0: it does not. */
  readonly retryAfter: number;

  constructor(status: number, body: Record<string, unknown>, retryAfter = 0) {
    const type = String(body["type"] ?? "about:blank");
    const kind = type.slice(type.lastIndexOf(":") + 1);
    const errors = (Array.isArray(body["errors"]) ? body["errors"] : []) as Mistake[];
    const mistakes = errors.map((e) => `line ${e.line}: ${e.path}: found ${e.found}, expected ${e.expected}`).join("; ");
    super(`${status} ${kind}: ${String(body["detail"] ?? "") || mistakes || String(body["title"] ?? "")}`);
    this.status = status;
    this.type = type;
    this.kind = kind;
    this.title = String(body["title"] ?? "");
    this.detail = String(body["detail"] ?? "");
    this.errors = errors;
    this.warnings = (Array.isArray(body["warnings"]) ? body["warnings"] : []) as Mistake[];
    this.body = body;
    this.retryAfter = retryAfter;
  }
}

/** 429 or 5xx: the same call may succeed later. */
export class Busy extends Problem {}

/** That of a status and its document. */
export function problemOf(status: number, body: Record<string, unknown>, retryAfter = 0): Problem {
  // A task that keeps too many signals does so until it goes on, or an operator drops some: nothing to wait for.
  const isFull = String(body["type"]).endsWith(":too-many-signals");
  const Kind = (status === 429 && !isFull) || status >= 500 ? Busy : Problem;
  return new Kind(status, body, retryAfter);
}

/** The task has not ended in time. */
export class WaitTimeout extends IntactError {
  /** Its record. */
  readonly task: Task;

  constructor(task: Task) {
    super(`task ${task.id} is ${task.state}`);
    this.task = task;
  }
}
