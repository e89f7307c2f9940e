/** How to retry inside the agent: exponential, with jitter, within a budget. Times are milliseconds. */
export interface RetryOptions {
  /** Before the second call. Default: 100. */
  first?: number;
  /** At most; it doubles in between, and half of each wait is chance. Default: 10 000. */
  most?: number;
  /** Calls at most. Default: as many as there is time for. */
  tries?: number;
  /** For all of it. Default: until the deadline of the request. */
  budget?: number;
  /** Kept free before the deadline, for the last call and its answer: no call begins later. Default: 0. */
  leave?: number;
  /** Which errors are worth another call. Default: those of connections, and time limits. */
  on?: (error: unknown) => boolean;
}

/**
 * How long to wait after so many calls, with so much time left; undefined: give up. `after`: what the service asks for.
 */
export function retryWait(options: RetryOptions, calls: number, left: number, after = 0): number | undefined {
  if (options.tries !== undefined && calls >= options.tries) return undefined;
  const longest = Math.min(options.most ?? 10_000, (options.first ?? 100) * 2 ** Math.min(calls - 1, 60));
  const pause = Math.max(after, longest * (0.5 + Math.random() / 2));
  return pause < left - (options.leave ?? 0) ? pause : undefined;
}

/** Errors of connections, and of time limits: of sockets, and of fetch. */
export function isOfConnection(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const code = (error as { code?: unknown }).code;
  const isSystem = typeof code === "string" && /^(E[A-Z]+|UND_ERR_[A-Z_]+)$/.test(code);
  return isSystem || error.name === "TimeoutError" || (error instanceof TypeError && error.message === "fetch failed");
}
