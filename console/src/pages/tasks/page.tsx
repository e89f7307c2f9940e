// The list of tasks: filtered, live, by keyboard, and from a filter to an operation on all of it.
import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import { call, Problem } from "../../api/client.ts";
import { PACE, useSoon, useStream } from "../../api/stream.ts";
import type { TaskChange, TaskPage, TaskSummary } from "../../api/types.ts";
import { Bulk } from "../../actions/bulk.tsx";
import { announce } from "../../app/announce.ts";
import { useKeys } from "../../app/keys.ts";
import { navigate, query } from "../../app/router.ts";
import { can } from "../../app/session.ts";
import { Age, Button, Copy, CutId, Empty, Failed, Length, Loading, State, Tags, Text } from "../../ui/basics.tsx";
import { fromQuery, isEmpty, NO_FILTER, toFlags, toQuery, type TaskFilter } from "../../ui/filter.ts";
import { count, plural } from "../../ui/format.ts";
import { memo } from "../../ui/memo.tsx";
import { plain } from "../../ui/visible.ts";
import { commandLine } from "../../ui/shell.ts";
import { rangeOf, Windowed } from "../../ui/window.tsx";
import { Filters } from "./filters.tsx";
import { changed, faultOf, NO_ROWS, ofChosen, partsOf, refreshed, withPage, type Rows } from "./model.ts";

// Pixels: rows have two lines where there is no room for columns (pages.css).
const HIGH = 41;
const HIGH_NARROW = 58;
const NARROW = "(max-width: 760px)";
const PAGE = 200;
const LOOK_AGAIN = 10_000;

// Pages of the list, read as far as one scrolls.
function useRows(filter: TaskFilter) {
  const [rows, setRows] = useState<Rows>(NO_ROWS);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [isLoading, setLoading] = useState(true);
  const turn = useRef(0);
  const reading = useRef(false);
  const text = toQuery(filter).toString();
  const read = async (cursor: string | null) => {
    const mine = cursor ? turn.current : ++turn.current;
    if (cursor && reading.current) return;
    reading.current = true;
    setLoading(true);
    try {
      const asked = toQuery(filter, Date.now());
      asked.set("limit", String(PAGE));
      if (cursor) asked.set("cursor", cursor);
      const page = await call<TaskPage>(`/v1/tasks?${asked}`);
      if (mine !== turn.current) return;
      setProblem(null);
      setRows((was) => withPage(cursor ? was : { ...NO_ROWS, fresh: new Set() }, page));
    } catch (cause) {
      if (mine === turn.current) setProblem(cause as Problem);
    } finally {
      if (mine === turn.current) {
        reading.current = false;
        setLoading(false);
      }
    }
  };
  useEffect(() => {
    setRows(NO_ROWS);
    reading.current = false;
    void read(null);
  }, [text]);
  return { rows, setRows, problem, isLoading, reload: () => void read(null), more: () => void (rows.next && !problem && read(rows.next)) };
}

export default function TasksPage() {
  const text = query.value.toString();
  const filter = useMemo(() => fromQuery(query.value), [text]);
  const { rows, setRows, problem, isLoading, reload, more } = useRows(filter);
  const [at, setAt] = useState(-1);
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const [bulk, setBulk] = useState<TaskFilter | null>(null);
  const list = useRef<HTMLDivElement>(null);
  const rowHeight = useNarrow() ? HIGH_NARROW : HIGH;
  const waiting = useRef<TaskChange[]>([]);

  // Changes are shown a few times a second, however many there are. Of more than people can follow the server tells no more
  // than that they are.
  const lookSoon = useSoon(() => latestLook.current());
  useStream(can("read") ? streamPath(filter) : null, {
    onOpen: () => { if (rows.tasks.length > 0 && scrollY < 200) reload(); },
    onRefused: () => lookAgain(),
    on: { task: (data) => void waiting.current.push(data as TaskChange), gap: lookSoon },
  });
  useEffect(() => {
    const timer = setInterval(() => {
      if (waiting.current.length === 0) return;
      const changes = waiting.current;
      waiting.current = [];
      setRows((was) => changed(was, changes, (c) => isNew(c, filter)));
    }, 300);
    return () => clearInterval(timer);
  }, [text]);

  // Streams tell of the changes of one node only. For those of the others the newest page is read now and then, and the
  // rows that are in view or chosen.
  const lookAgain = () => {
    const ask = (asked: URLSearchParams) => call<TaskPage>(`/v1/tasks?${asked}`).then((page) => { if (textNow.current === text) setRows((was) => refreshed(was, page.tasks)); }, () => {});
    const newest = toQuery(filter, Date.now());
    newest.set("limit", "50");
    void ask(newest);
    const { first, last } = rangeOf(Math.max(0, -(list.current?.getBoundingClientRect().top ?? 0)), innerHeight, rowHeight, rows.tasks.length);
    const ids = rows.tasks.filter((t, n) => (n >= first && n < last) || chosen.has(t.id)).map((t) => t.id);
    for (const part of partsOf(ids)) void ask(new URLSearchParams({ ids: part.join(","), limit: String(part.length) }));
  };
  const textNow = useRef(text); // the answer to an earlier filter is dropped
  textNow.current = text;
  const latestLook = useRef(lookAgain);
  latestLook.current = lookAgain;
  useEffect(() => {
    const timer = setInterval(() => { if (!document.hidden) latestLook.current(); }, LOOK_AGAIN);
    return () => clearInterval(timer);
  }, [text]);

  const go = (next: TaskFilter) => navigate(`/tasks${isEmpty(next) ? "" : `?${toQuery(next)}`}`);
  const move = (by: number) => {
    const next = Math.min(Math.max(at + by, 0), rows.tasks.length - 1);
    setAt(next);
    const top = (list.current?.getBoundingClientRect().top ?? 0) + next * rowHeight;
    if (top < 140) scrollBy(0, top - 140);
    else if (top + rowHeight > innerHeight - 20) scrollBy(0, top + rowHeight - innerHeight + 20);
    requestAnimationFrame(() => list.current?.querySelector<HTMLElement>(`[aria-rowindex="${next + 1}"] a.id`)?.focus({ preventScroll: true }));
    const task = rows.tasks[next];
    if (task) announce(`${task.id}, ${task.state}`);
  };
  const choose = useCallback((id: string) => setChosen((was) => {
    const next = new Set(was);
    if (!next.delete(id)) next.add(id);
    return next;
  }), []);
  const current = rows.tasks[at];
  useKeys({
    j: () => move(1), k: () => move(-1), ArrowDown: (e) => { e.preventDefault(); move(1); }, ArrowUp: (e) => { e.preventDefault(); move(-1); },
    Enter: (e) => { if (current && !(e.target instanceof HTMLAnchorElement || e.target instanceof HTMLButtonElement)) navigate(`/tasks/${encodeURIComponent(current.id)}`); },
    x: () => current && choose(current.id), r: reload, Escape: () => setChosen(new Set()),
  });
  useEffect(() => { setAt(-1); setChosen(new Set()); }, [text]);
  const hasFresh = rows.fresh.size > 0;
  useEffect(() => { if (hasFresh) announce("There are new tasks above the list"); }, [hasFresh]);

  const withTag = useCallback((key: string, value: string) => `/tasks?${toQuery({ ...filter, tags: [...filter.tags.filter(([k]) => k !== key), [key, value]] })}`, [filter]);
  const shownNumber = `${count(rows.tasks.length)}${rows.next ? "+" : ""}`;
  const mayOperate = can("repair");
  return (
    <div class="page tasks-page">
      <header class="page-head">
        <h1>Tasks</h1>
        <span class="muted" role="status">{(isLoading || problem) && rows.tasks.length === 0 ? "" : `${shownNumber} ${rows.tasks.length === 1 && !rows.next ? "task" : "tasks"}`}</span>
        <div class="page-actions">
          <Copy text={() => commandLine(["list", ...toFlags(filter, Date.now())])} label="Copy as command" small={false} />
          {mayOperate && !filter.unknown && <Button icon="operations" onClick={() => setBulk(filter)} disabled={rows.tasks.length === 0}>Operate on all…</Button>}
        </div>
      </header>
      <Filters filter={filter} onChange={go} />
      {chosen.size > 0 && (
        <div class="chosen-bar" role="status">
          <span>{plural(chosen.size, "task")} chosen</span>
          {mayOperate && <Button kind="primary" onClick={() => setBulk(ofChosen(rows.tasks, chosen))}>Operate on these…</Button>}
          <Button kind="quiet" onClick={() => setChosen(new Set())}>Choose none</Button>
        </div>
      )}
      <div class="task-table" role="table" aria-label="Tasks" aria-rowcount={rows.tasks.length}>
        <div class="task-row task-head" role="row">
          {mayOperate && <span role="columnheader" class="c-choose"><span class="off-screen">Chosen</span></span>}
          <span role="columnheader" class="c-state">State</span>
          <span role="columnheader" class="c-id">Task</span>
          <span role="columnheader" class="c-workflow">Workflow</span>
          <span role="columnheader" class="c-tags">Tags</span>
          <span role="columnheader" class="c-detail">Detail</span>
          <span role="columnheader" class="c-took">Took</span>
          <span role="columnheader" class="c-at">Submitted</span>
          {rows.fresh.size > 0 && <span role="cell" class="c-fresh"><button type="button" class="fresh" onClick={() => { reload(); scrollTo(0, 0); }}>{plural(rows.fresh.size, "new task")}: show</button></span>}
        </div>
        {rows.tasks.length === 0 && isLoading && <Loading rows={8} />}
        {problem && rows.tasks.length === 0 && <Failed problem={problem} retry={reload} />}
        {rows.tasks.length === 0 && !isLoading && !problem && (
          <Empty title={isEmpty(filter) ? "There are no tasks yet" : "No task matches"} icon="tasks">
            {isEmpty(filter) ? <>Submit one: <code>intact submit WORKFLOW --id ID</code></> : <Button onClick={() => go(NO_FILTER)}>Remove all filters</Button>}
          </Empty>
        )}
        <Windowed list={list} row={rowHeight} total={rows.tasks.length} class="task-rows" role="rowgroup">{(n) => {
          const task = rows.tasks[n] as TaskSummary;
          if (n > rows.tasks.length - 60) queueMicrotask(more);
          return <Row key={task.id} task={task} isAt={n === at} isChosen={chosen.has(task.id)} onChoose={mayOperate ? choose : null} tagHref={withTag} n={n} />;
        }}</Windowed>
        {rows.next && <div class="list-end muted">{isLoading ? "Loading more…" : problem ? <Button onClick={more}>Load more</Button> : "\u00A0"}</div>}
      </div>
      {bulk && <Bulk filter={bulk} onClose={() => setBulk(null)} />}
    </div>
  );
}

function useNarrow(): boolean {
  const [isNarrow, setNarrow] = useState(() => matchMedia(NARROW).matches);
  useEffect(() => {
    const query = matchMedia(NARROW);
    const look = () => setNarrow(query.matches);
    query.addEventListener("change", look);
    return () => query.removeEventListener("change", look);
  }, []);
  return isNarrow;
}

function streamPath(filter: TaskFilter): string {
  const asked = new URLSearchParams(PACE);
  if (filter.workflow) asked.set("workflow", filter.workflow);
  return `/v1/events?${asked}`;
}

// Whether a change is of a task that would be in the list, as far as the change says.
function isNew(change: TaskChange, filter: TaskFilter): boolean {
  const isPlain = filter.tags.length === 0 && filter.ids.length === 0 && !filter.step && !filter.agent && !filter.error && !filter.parent
    && !filter.root && (!filter.id_prefix || change.id.startsWith(filter.id_prefix)) && !filter.submitted_before && !filter.ended_before && filter.paused === undefined && !change.id.includes("@");
  if (!isPlain) return false;
  if (filter.states.length > 0) return filter.states.includes(change.state) && !(filter.closed === false && change.closed_at);
  return change.revision === 1;
}

const Row = memo(({ task, isAt, isChosen, onChoose, tagHref, n }: {
  task: TaskSummary; tagHref: (key: string, value: string) => string; isAt: boolean; isChosen: boolean; onChoose: ((id: string) => void) | null; n: number;
}) => {
  const note = task.closed_at ? "closed" : task.paused_at ? "paused" : undefined;
  const fault = faultOf(task);
  const detail = fault?.text ?? (task.waiting_for ? `waits for ${waitingFor(task.waiting_for)}` : task.failure_count > 0 ? plural(task.failure_count, "failure") : "");
  const href = `/tasks/${encodeURIComponent(task.id)}`;
  return (
    <div class={`task-row ${isAt ? "at" : ""} ${isChosen ? "chosen" : ""}`} role="row" aria-rowindex={n + 1}
      onClick={(e) => { if (!(e.target as Element).closest("a, input, button") && !getSelection()?.toString()) navigate(href); }}>
      {onChoose && <span role="cell" class="c-choose"><input type="checkbox" aria-label={`Choose ${task.id}`} checked={isChosen} onChange={() => onChoose(task.id)} /></span>}
      <span role="cell" class="c-state"><State state={task.state} note={note} /></span>
      <span role="cell" class="c-id"><CutId id={task.id} href={href} /></span>
      <span role="cell" class="c-workflow">{task.workflow} <span class="muted">v{task.version}</span></span>
      <span role="cell" class="c-tags"><Tags tags={task.tags} hrefOf={tagHref} /></span>
      <span role="cell" class={`c-detail ${fault && task.state === "error" ? "s-error" : "muted"}`} title={fault ? plain(fault.whole) : undefined}><Text>{detail}</Text></span>
      <span role="cell" class="c-took"><Length from={task.submitted_at} to={task.ended_at} /></span>
      <span role="cell" class="c-at muted"><Age at={task.submitted_at} /></span>
    </div>
  );
});

function waitingFor(name: string): string {
  if (name === "@wait") return "a time";
  if (name === "@signal") return "people, or a signal";
  if (name.startsWith("@lock/")) return `lock ${name.slice(6)}`;
  if (name.startsWith("@")) return name.slice(1).replace("/", " ");
  return `agent ${name}`;
}
