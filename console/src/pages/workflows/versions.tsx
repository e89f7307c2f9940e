// The versions of a workflow or schedule, and how two of them differ.
import { useMemo, useState } from "preact/hooks";
import { useResource, type Resource } from "../../api/resource.ts";
import { Failed, Loading, Text } from "../../ui/basics.tsx";
import { difference, folded, type DiffLine, type DiffRow } from "../../ui/difference.ts";
import { plural } from "../../ui/format.ts";
import { textOf } from "../../api/definition.ts";

type Stored = { format: "yaml" | "json"; text?: string; definition?: unknown };

export function Versions({ path, newest, from, to, onChoose }: { path: string; newest: number; from: number; to: number; onChoose: (from: number, to: number) => void }) {
  const before = useResource<Stored>(from > 0 ? `${path}/versions/${from}` : null);
  const after = useResource<Stored>(`${path}/versions/${to}`);
  const numbers = Array.from({ length: newest }, (_, n) => newest - n);
  if (newest === 1) return <p class="muted">There is one version only.</p>;
  const choose = (label: string, at: number, onAt: (n: number) => void) => (
    <label class="choose">{label} <select value={String(at)} onChange={(e) => onAt(Number(e.currentTarget.value))}>
      {numbers.map((n) => <option key={n} value={n}>{n === newest ? `${n} (newest)` : n}</option>)}
    </select></label>
  );
  return (
    <div class="stack">
      <div class="filter-line">{choose("From version", from, (n) => onChoose(n, to))}{choose("to", to, (n) => onChoose(from, n))}</div>
      <Both before={before} after={after} />
    </div>
  );
}

function Both({ before, after }: { before: Resource<Stored>; after: Resource<Stored> }) {
  const problem = before.problem ?? after.problem;
  if (problem) return <Failed problem={problem} retry={() => { before.reload(); after.reload(); }} />;
  if (!before.data || !after.data) return <Loading rows={6} />;
  const note = before.data.format === after.data.format ? "" : `The older text is ${before.data.format.toUpperCase()}, the newer one ${after.data.format.toUpperCase()}.`;
  return <>{note && <p class="muted">{note}</p>}<Difference before={textOf(before.data)} after={textOf(after.data)} /></>;
}

export function Difference({ before, after }: { before: string; after: string }) {
  const lines = useMemo(() => difference(before, after), [before, after]);
  const rows = useMemo(() => folded(lines), [lines]);
  const gone = lines.filter((l) => l.kind === "gone").length;
  const added = lines.filter((l) => l.kind === "new").length;
  if (gone + added === 0) return <p class="muted" role="status">The texts are equal.</p>;
  return (
    <div class="difference">
      <p class="muted">{plural(added, "line")} added, {plural(gone, "line")} removed</p>
      <div class="diff-scroll" tabIndex={0} role="group" aria-label="The difference">
        <table class="diff"><tbody>{rows.map((row, n) => <Row key={n} row={row} />)}</tbody></table>
      </div>
    </div>
  );
}

function Row({ row }: { row: DiffRow }) {
  const [isOpen, setOpen] = useState(false);
  if (row.kind !== "fold") return <Line line={row} />;
  if (isOpen) return <>{row.lines.map((l, n) => <Line key={n} line={l} />)}</>;
  return <tr class="diff-fold"><td colSpan={4}><button type="button" onClick={() => setOpen(true)}>{plural(row.lines.length, "equal line")}</button></td></tr>;
}

const MARKS = { same: " ", gone: "−", new: "+" } as const;
const SAID = { same: "", gone: "removed: ", new: "added: " } as const;

function Line({ line }: { line: DiffLine }) {
  return (
    <tr class={`diff-${line.kind}`}>
      <td class="diff-number">{line.before ?? ""}</td><td class="diff-number">{line.after ?? ""}</td>
      <td class="diff-mark"><span aria-hidden="true">{MARKS[line.kind]}</span><span class="off-screen">{SAID[line.kind]}</span></td>
      <td class="diff-text">{line.parts ? line.parts.map((p, n) => (p.isChanged ? <mark key={n}><Text>{p.text}</Text></mark> : <Text key={n}>{p.text}</Text>)) : <Text>{line.text}</Text>}</td>
    </tr>
  );
}
