// The mistakes that the server finds in a text: their places in it, and their words.
import type { Mistake } from "../api/types.ts";

export type Found = Mistake & { grade: "error" | "warning" };

export function wordsOf(m: Mistake): string {
  if (m.expected.startsWith("did you mean")) return `${m.found}: ${m.expected}`;
  return m.found === "nothing" ? `missing: ${m.expected}` : `found ${m.found}, expected ${m.expected}`;
}

// From the place of a mistake to the end of the word there.
export function rangeAt(text: string, line: number, column: number): { from: number; to: number } {
  const lines = text.split("\n");
  const at = Math.min(Math.max(1, line), lines.length) - 1;
  const start = lines.slice(0, at).reduce((sum, l) => sum + l.length + 1, 0);
  const own = lines[at] as string;
  const from = Math.min(Math.max(1, column) - 1, own.length);
  const word = /^[^\s,\]}]+/.exec(own.slice(from))?.[0].length ?? 0;
  return word > 0 ? { from: start + from, to: start + from + word } : { from: start + Math.max(0, Math.min(from, own.trimEnd().length - 1)), to: start + own.trimEnd().length };
}

export const found = (errors: Mistake[], warnings: Mistake[]): Found[] => [
  ...errors.map((m) => ({ ...m, grade: "error" as const })), ...warnings.map((m) => ({ ...m, grade: "warning" as const })),
];

// The lists of mistakes in the body of a refusal, if it has any.
export function mistakesIn(body: Record<string, unknown>): Found[] | null {
  const list = (name: string) => (Array.isArray(body[name]) ? (body[name] as Mistake[]) : []);
  const all = found(list("errors"), list("warnings"));
  return all.length > 0 ? all : null;
}
