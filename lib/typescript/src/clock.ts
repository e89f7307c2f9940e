import { uptime } from "node:os";

// Node's own clock (process.hrtime, performance.now, timers) stands still while the machine sleeps. The machine's uptime
// does not: what it gains on that clock is time slept. It is less precise, so only leaps count.
const LEAP_MS = 250;
const LOOK_EVERY_MS = 20;

const monotonic = (): number => Number(process.hrtime.bigint() / 1_000n) / 1_000;

const start = uptime() * 1000 - monotonic();
let slept = 0;
let lookAt = 0;

/**
 * Milliseconds since some moment, on a clock that nobody sets and that goes on while the machine sleeps.
 */
export function nowMs(): number {
  const now = monotonic();
  if (now >= lookAt) {
    lookAt = now + LOOK_EVERY_MS;
    const gained = uptime() * 1000 - now - start;
    if (gained > slept + LEAP_MS) slept = gained;
  }
  return now + slept;
}

/** As the server reads durations. */
export function duration(ms: number): string {
  return `${Math.max(0, Math.round(ms))}ms`;
}

/** Whoever waits is woken by `notify`, or when the time is over. */
export class Changed {
  #wakers = new Set<() => void>();

  notify(): void {
    const wakers = this.#wakers;
    this.#wakers = new Set();
    for (const wake of wakers) wake();
  }

  wait(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const wake = (): void => {
        clearTimeout(timer);
        this.#wakers.delete(wake);
        resolve();
      };
      const timer = setTimeout(wake, Math.max(1, Math.min(ms, 1000)));
      this.#wakers.add(wake);
    });
  }
}

export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) {
      resolve();
      return;
    }
    const wake = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", wake);
      resolve();
    };
    const timer = setTimeout(wake, ms);
    signal?.addEventListener("abort", wake);
  });
}
