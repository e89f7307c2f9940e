// Entries of the audit have no ids. Each gets a key that it keeps when newer ones come above it, so that what was unfolded
// stays with its entry: alike ones are numbered from the oldest on.
import type { AuditEntry } from "../../api/types.ts";

export function keysOf(newestFirst: AuditEntry[]): string[] {
  const seen = new Map<string, number>();
  return [...newestFirst].reverse().map((e) => {
    const key = JSON.stringify([e.at, e.actor, e.verb, e.task, e.step]);
    const n = (seen.get(key) ?? 0) + 1;
    seen.set(key, n);
    return `${key} ${n}`;
  }).reverse();
}
