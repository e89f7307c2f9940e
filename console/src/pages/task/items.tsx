// The items of a step with for_each: a field for each, coloured and shaped by its state, read in pages as far as one looks.
import { useEffect, useRef, useState } from "preact/hooks";
import { call, Problem, taskPath, withQuery } from "../../api/client.ts";
import type { ItemPage, Step, Task } from "../../api/types.ts";
import { stepsFor, VERBS, type Arguments, type VerbName } from "../../actions/verbs.ts";
import { can } from "../../app/session.ts";
import { Age, Button, Failed, State, Text, useWidth } from "../../ui/basics.tsx";
import { drawnState } from "../../actions/verbs.ts";
import { count, plural } from "../../ui/format.ts";
import { StateSign } from "../../ui/icons.tsx";
import { Json } from "../../ui/json.tsx";
import { Windowed } from "../../ui/window.tsx";

const CELL = 22;
const FEW = 24; // with so many at most, each has its name
const ROWS = 14; // with more the grid scrolls by itself
const FRAME = 26; // its border and its scroll bar
const PAGE = 500;

// What the grid keeps of an item. The whole item is read when it is opened.
interface Cell {
  state: string; // as it is drawn
}

// An item that is a task is as that task is.
const shownState = (i: Step) => (!i.in_doubt && i.child?.state === "error" && !AT_REST.has(i.state) ? "error" : drawnState(i));

const AT_REST = new Set(["completed", "failed", "skipped", "undone"]);
const BETWEEN = 1000; // a grid whose items are at work is read again so often

// All cells, page after page; then, while the sums change, the pages that are not at rest.
function useCells(task: Task, step: Step) {
  const [cells, setCells] = useState<Cell[]>([]);
  const [problem, setProblem] = useState<Problem | null>(null);
  const items = step.items as NonNullable<Step["items"]>;
  const stamp = useRef("");
  stamp.current = [items.count, items.begun, items.completed, items.failed, items.skipped, items.undone, items.in_doubt].join();
  useEffect(() => {
    const stop = new AbortController();
    const pages: { cursor: string | null; isAtRest: boolean }[] = [{ cursor: null, isAtRest: false }];
    const readPage = async (n: number) => {
      const { cursor } = pages[n] as { cursor: string | null };
      const page = await call<ItemPage>(withQuery(`${taskPath(task.id)}/items`, { step: step.name, limit: PAGE, cursor }), { signal: stop.signal });
      pages[n] = { cursor, isAtRest: page.items.length > 0 && page.items.every((i) => AT_REST.has(i.state) && !i.in_doubt) };
      if (page.next && !pages[n + 1]) pages.push({ cursor: page.next, isAtRest: false });
      setCells((was) => {
        const next = was.slice();
        for (const i of page.items) if (i.item !== undefined) next[i.item] = { state: shownState(i) };
        return next;
      });
    };
    const run = async () => {
      let known = "";
      while (!stop.signal.aborted) {
        if (known !== stamp.current && !document.hidden) {
          known = stamp.current;
          for (let n = 0; n < pages.length; n += 1) if (!pages[n]?.isAtRest) await readPage(n);
          setProblem(null);
        }
        await new Promise((done) => setTimeout(done, BETWEEN));
      }
    };
    run().catch((cause) => { if (!stop.signal.aborted) setProblem(cause as Problem); });
    return () => stop.abort();
  }, [task.id, step.name, task.direction]);
  return { cells, problem };
}

const KINDS = ["completed", "failed", "skipped", "undone"] as const;

type Act = (verb: VerbName, given: Arguments) => void;

export function Items({ task, step, onAct }: { task: Task; step: Step; onAct: Act }) {
  const items = step.items as NonNullable<Step["items"]>;
  const { cells, problem } = useCells(task, step);
  const [open, setOpen] = useState<number | null>(null);
  const [ref, width] = useWidth<HTMLDivElement>();
  const list = useRef<HTMLDivElement>(null);
  const isLong = items.count / Math.max(1, Math.floor(width / CELL)) > ROWS;
  const columns = Math.max(1, Math.floor((width - (isLong ? FRAME : 0)) / CELL));
  const rows = Math.ceil(items.count / columns);
  const busy = items.begun - items.completed - items.failed - items.skipped - items.undone;
  const move = (by: number) => setOpen((was) => Math.min(Math.max((was ?? 0) + by, 0), items.count - 1));
  const onKey = (e: KeyboardEvent) => {
    const by: Record<string, number> = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns };
    const step = by[e.key];
    if (step === undefined) return;
    e.preventDefault();
    move(step);
  };
  return (
    <div class="items">
      <div class="items-head">
        <h3>{plural(items.count, "item")}</h3>
        {busy > 0 && <span class="state s-running"><StateSign state="running" />{count(busy)} at work</span>}
        {KINDS.map((k) => items[k] > 0 && <span key={k} class={`state s-${k}`}><StateSign state={k} />{count(items[k])} {k}</span>)}
        {items.in_doubt > 0 && <span class="state s-doubt"><StateSign state="doubt" />{count(items.in_doubt)} in doubt</span>}
        {items.count > items.begun && <span class="state s-waiting"><StateSign state="waiting" />{count(items.count - items.begun)} not begun</span>}
      </div>
      {problem && <Failed problem={problem} />}
      <div ref={ref} tabIndex={0} role="group" aria-label={`Items of ${step.name}: arrows choose one`} onKeyDown={onKey}>
        {items.count <= FEW && (
          <div class="item-chips">{Array.from({ length: items.count }, (_, n) => {
            const state = cells[n]?.state ?? "waiting";
            return (
              <button type="button" key={n} tabIndex={-1} class={`node-chip s-${state} ${n === open ? "at" : ""}`} aria-label={`${step.name}.${n}: ${state}`} onClick={() => setOpen(n)}>
                <StateSign state={state} /><span class="id">{step.name}.{n}</span> <span class="muted">{state === "doubt" ? "in doubt" : state}</span>
              </button>
            );
          })}</div>
        )}
        {items.count > FEW && <Windowed list={list} row={CELL} total={width > 0 ? rows : 0} ownScroll={isLong} class={`item-grid ${isLong ? "long" : ""}`}>{(row) => (
          <div class="item-line" key={row}>
            {Array.from({ length: Math.min(columns, items.count - row * columns) }, (_, c) => {
              const n = row * columns + c;
              const cell = cells[n];
              const state = cell?.state ?? "waiting";
              return <button type="button" key={n} tabIndex={-1} class={`cell s-${state} ${n === open ? "at" : ""}`} title={`${step.name}.${n}: ${state === "doubt" ? "in doubt" : state}`} aria-label={`${step.name}.${n}: ${state}`} onClick={() => setOpen(n)} />;
            })}
          </div>
        )}</Windowed>}
      </div>
      {open !== null && <Item key={open} task={task} step={step.name} n={open} state={cells[open]?.state ?? ""} onAct={onAct} onClose={() => setOpen(null)} />}
    </div>
  );
}

// The verbs for one item, also for one at rest, which the record of its task does not have.
function ItemVerbs({ task, item, onAct }: { task: Task; item: Step; onAct: Act }) {
  const isOpen = !["processed", "compensated"].includes(task.state) && !task.closed_at;
  if (!isOpen || !can("repair")) return null;
  const alone = { ...task, steps: [item] } as Task;
  const verbs = VERBS.filter((v) => v.step !== "no" && stepsFor(v.name, alone).length > 0 && (task.direction === "forward" || v.name === "skip"));
  return <div class="step-verbs">{verbs.map((v) => <Button key={v.name} title={v.hint} onClick={() => onAct(v.name, { step: item.name, ...(v.value === "input" ? { input: item.input } : {}) })}>{v.label}…</Button>)}</div>;
}

function Item({ task, step, n, state, onAct, onClose }: { task: Task; step: string; n: number; state: string; onAct: Act; onClose: () => void }) {
  const [item, setItem] = useState<Step | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  useEffect(() => {
    const stop = new AbortController();
    // The cursor of a page of items is the number of its first item.
    call<ItemPage>(withQuery(`${taskPath(task.id)}/items`, { step, limit: 1, cursor: n === 0 ? null : String(n) }), { signal: stop.signal })
      .then((page) => { setItem(page.items.find((i) => i.item === n) ?? null); setProblem(null); }, (cause) => { if (!stop.signal.aborted) setProblem(cause as Problem); });
    return () => stop.abort();
  }, [task.id, step, n, state, task.operations.at(-1)?.at]);
  return (
    <div class="item-card" role="status">
      <div class="item-head">
        <b class="id">{step}.{n}</b>
        {item && <State state={item.in_doubt ? "doubt" : item.state} />}
        {item?.child && <a class="id" href={`/tasks/${encodeURIComponent(item.child.id)}`}>{item.child.id}</a>}
        <Button kind="quiet" icon="close" onClick={onClose} aria-label="Close the item" />
      </div>
      {problem && <Failed problem={problem} />}
      {item && (
        <>
          <ItemVerbs task={task} item={item} onAct={onAct} />
          {item.error && <p class="note error"><b><Text>{item.error.code}</Text></b> <Text>{item.error.message ?? ""}</Text></p>}
          <p class="muted">{plural(item.attempts.length, "attempt")}{item.attempts.at(-1) && <>, the last began <Age at={item.attempts.at(-1)?.started_at} /></>}</p>
          <Json value={{ input: item.input, output: item.output, attempts: item.attempts }} name={`item ${n}`} />
        </>
      )}
      {!item && !problem && <p class="muted">This item has not begun.</p>}
    </div>
  );
}
