// The difference of two texts, line by line, with the unchanged parts between folded.
import { diffLines, diffWordsWithSpace } from "diff";

export interface DiffLine {
  kind: "same" | "gone" | "new";
  text: string;
  parts?: { text: string; isChanged: boolean }[]; // of a line that has a counterpart
  before: number | null; // line numbers
  after: number | null;
}

export type DiffRow = DiffLine | { kind: "fold"; lines: DiffLine[] };

const AROUND = 3;

export function difference(before: string, after: string): DiffLine[] {
  const lines: DiffLine[] = [];
  let a = 0;
  let b = 0;
  for (const part of diffLines(before, after)) {
    const texts = part.value.replace(/\n$/, "").split("\n");
    for (const text of texts) {
      if (part.removed) lines.push({ kind: "gone", text, before: ++a, after: null });
      else if (part.added) lines.push({ kind: "new", text, before: null, after: ++b });
      else lines.push({ kind: "same", text, before: ++a, after: ++b });
    }
  }
  markWords(lines);
  return lines;
}

// Runs of as many removed as added lines are changes of lines, in which the words differ.
function markWords(lines: DiffLine[]) {
  for (let n = 0; n < lines.length; ) {
    let gone = n;
    while (lines[gone]?.kind === "gone") gone += 1;
    let added = gone;
    while (lines[added]?.kind === "new") added += 1;
    const size = gone - n;
    if (size > 0 && added - gone === size) {
      for (let i = 0; i < size; i += 1) markPair(lines[n + i] as DiffLine, lines[gone + i] as DiffLine);
    }
    n = Math.max(added, n + 1);
  }
}

function markPair(old: DiffLine, fresh: DiffLine) {
  const parts = diffWordsWithSpace(old.text, fresh.text);
  const kept = parts.filter((p) => !p.added && !p.removed).reduce((sum, p) => sum + p.value.trim().length, 0);
  if (kept * 3 < Math.max(old.text.trim().length, fresh.text.trim().length)) return;
  old.parts = parts.filter((p) => !p.added).map((p) => ({ text: p.value, isChanged: p.removed }));
  fresh.parts = parts.filter((p) => !p.removed).map((p) => ({ text: p.value, isChanged: p.added }));
}

export function folded(lines: DiffLine[]): DiffRow[] {
  const rows: DiffRow[] = [];
  const isNear = lines.map(() => false);
  lines.forEach((line, n) => {
    if (line.kind === "same") return;
    for (let i = Math.max(0, n - AROUND); i <= Math.min(lines.length - 1, n + AROUND); i += 1) isNear[i] = true;
  });
  let fold: DiffLine[] = [];
  const close = () => {
    if (fold.length > 0) rows.push(...(fold.length <= 2 ? fold : [{ kind: "fold" as const, lines: fold }]));
    fold = [];
  };
  lines.forEach((line, n) => {
    if (isNear[n]) {
      close();
      rows.push(line);
    } else fold.push(line);
  });
  close();
  return rows;
}
