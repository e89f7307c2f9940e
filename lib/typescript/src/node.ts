import { nowMs } from "./clock.js";
import { AnotherInstallation } from "./errors.js";
import { retryAfter, Wire, type Answer } from "./http.js";
import type { Installation } from "./installation.js";

const RETRY_MS = 100;
const RETRY_MAX_MS = 5_000;
const REFUSED_MS = 2_000;
const REFUSED_MAX_MS = 30_000;

/** A call that was not answered as it should be. */
export class CallFailed extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly retryAfterMs = 0,
  ) {
    super(message);
  }
  /** What is sent again as it is will not be taken. */
  get isAboutUs(): boolean {
    return [400, 413, 422].includes(this.status);
  }
}

export type Json = Record<string, unknown>;

export function readObject(answer: Answer): Json {
  if (answer.status !== 200)
    throw new CallFailed(answer.status, `${answer.status} ${answer.body.subarray(0, 500).toString()}`, retryAfter(answer));
  let found: unknown;
  try {
    found = JSON.parse(answer.body.toString());
  } catch (e) {
    throw new CallFailed(200, `the answer is not JSON: ${String(e)}`);
  }
  if (typeof found !== "object" || found === null || Array.isArray(found)) throw new CallFailed(200, "the answer is not a JSON object");
  return found as Json;
}

export function list(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}

export function asFailure(e: unknown): CallFailed {
  return e instanceof CallFailed ? e : new CallFailed(0, String(e));
}

/** One server that an agent works for. */
export class Node {
  readonly wire: Wire;
  readonly abort = new AbortController();
  isUsed = true;
  failures = 0;
  retryAtMs = 0;
  parkedMax = 0; // what the parked call asks for; 0: there is none
  parkedAtMs = 0;
  excessSinceMs = 0; // it asks for too much since then
  calledHomeMs = 0;
  isWaiting = false; // for places to ask for
  resultMax = 1000; // results a call
  running = 3; // loops

  constructor(
    readonly url: string,
    private readonly agent: string,
    token: string,
    ca: Buffer | undefined,
    installation: Installation,
  ) {
    this.wire = new Wire(url, token, ca, installation);
  }

  async call(what: "work" | "heartbeats", body: string, withinMs: number): Promise<Json> {
    let answer: Answer;
    try {
      answer = await this.wire.call("POST", `/v1/agents/${encodeURIComponent(this.agent)}/${what}`, {
        body: Buffer.from(body),
        withinMs,
        signal: this.abort.signal,
      });
    } catch (e) {
      throw e instanceof AnotherInstallation ? new CallFailed(421, e.message) : new CallFailed(0, String(e));
    }
    return readObject(answer);
  }

  /** Puts its next calls off. True: it is worth telling. */
  failed(e: CallFailed): boolean {
    this.failures++;
    const isRefusal = e.status >= 400 && e.status < 500 && e.status !== 408 && e.status !== 429;
    const [first, most] = isRefusal ? [REFUSED_MS, REFUSED_MAX_MS] : [RETRY_MS, RETRY_MAX_MS];
    const pause = Math.min(most, first * 2 ** Math.min(this.failures - 1, 20)) * (0.5 + Math.random() / 2);
    this.retryAtMs = nowMs() + Math.max(pause, e.retryAfterMs);
    return this.failures === 1 || this.failures % 64 === 0;
  }

  close(): void {
    this.abort.abort();
    this.wire.close();
  }
}
