// The timeline of a task, to scale: zoomed by buttons, keys, Ctrl and the wheel, moved by dragging.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Task } from "../../api/types.ts";
import { drawnState } from "../../actions/verbs.ts";
import { now, Panel, useWidth } from "../../ui/basics.tsx";
import { duration, exact, moment } from "../../ui/format.ts";
import { Icon, StateSign } from "../../ui/icons.tsx";
import { at, label, marks, pan, stepOf, timeAt, zoom, type View } from "../../ui/scale.ts";
import { memo } from "../../ui/memo.tsx";
import { Windowed } from "../../ui/window.tsx";
import { timelineOf, type Bar, type Row, type Timeline } from "./timeline.ts";

const ROW = 30;
const MIN_BAR = 3;

export function TimelinePanel({ task, step, onStep }: { task: Task; step: string | null; onStep: (name: string) => void }) {
  const isOpen = !["processed", "compensated", "error"].includes(task.state);
  const second = isOpen ? now.value : 0;
  const timeline = useMemo(() => timelineOf(task, isOpen ? second : Date.now()), [task, second]);
  const [chosen, setChosen] = useState<View | null>(null);
  const view = chosen ?? timeline.first;
  const [ref, width] = useWidth<HTMLDivElement>();
  const list = useRef<HTMLDivElement>(null);
  const change = (next: View) => setChosen(next);
  const grid = useMemo(() => marks(view, width).map((t) => `M${at(view, width, t)} 0V${ROW}`).join(""), [view, width]);
  const current = isOpen || task.state === "error" ? Math.floor(now.value / 1000) * 1000 : 0;
  const around = (factor: number) => change(zoom(view, factor, (view.from + view.to) / 2, timeline.whole));
  usePointer(ref, { view, width, timeline, change });
  const onKey = (e: KeyboardEvent) => {
    const span = view.to - view.from;
    const acts: Record<string, () => void> = {
      "+": () => around(0.5), "=": () => around(0.5), "-": () => around(2), "0": () => setChosen(null),
      ArrowLeft: () => change(pan(view, -span / 5, timeline.whole)), ArrowRight: () => change(pan(view, span / 5, timeline.whole)),
    };
    const act = acts[e.key];
    if (!act || e.ctrlKey || e.metaKey) return;
    e.preventDefault();
    act();
  };
  const isLong = timeline.rows.length > 16;
  return (
    <Panel title="Timeline" class="timeline-panel" aside={<>
      {timeline.lostMs >= 1 && <span class="muted timeline-lost" title="Attempts that failed, and the waits after them, of all steps together"><i class="key lost" />{duration(timeline.lostMs)} lost to failures</span>}
      <span class="muted">{duration(view.to - view.from)} shown</span>
      <span class="button-group">
        <button type="button" class="icon-button" aria-label="Zoom in" title="Zoom in (+)" onClick={() => around(0.5)}><Icon name="plus" /></button>
        <button type="button" class="icon-button" aria-label="Zoom out" title="Zoom out (-)" onClick={() => around(2)}><Icon name="minus" /></button>
        <button type="button" class="icon-button" aria-label="Show all" title="From the submission until now (0)" onClick={() => setChosen(null)}><Icon name="fit" /></button>
      </span>
    </>}>
      <svg class="off-screen" aria-hidden="true"><defs>
        <pattern id="doubt" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect width="6" height="6" class="doubt-ground" /><rect width="3" height="6" class="doubt-stripe" /></pattern>
      </defs></svg>
      <div class={`timeline ${isLong ? "long" : ""}`} tabIndex={0} role="group" aria-label="Timeline: plus and minus zoom, arrows move, 0 shows all" onKeyDown={onKey}>
        <div class="timeline-head">
          <div class="timeline-label"><span title={exact(view.from)}>from {moment(view.from, now.value)}</span></div>
          <div ref={ref} class="timeline-space">{width > 0 && <Axis view={view} width={width} />}</div>
        </div>
        <Windowed list={list} row={ROW} total={timeline.rows.length} ownScroll={isLong} class="timeline-rows">{(n) => {
          const row = timeline.rows[n] as Row;
          return (
            <div class={`timeline-row ${step === row.step.name ? "at" : ""}`} key={row.step.name}>
              <button type="button" class="timeline-label" aria-pressed={step === row.step.name} onClick={() => onStep(row.step.name)}>
                <StateSign state={drawnState(row.step)} /><span>{row.step.name}</span>
              </button>
              <div class="timeline-space">{width > 0 && <RowBars row={row} complete={timeline.complete} paused={timeline.paused} current={current} grid={grid} view={view} width={width} />}</div>
            </div>
          );
        }}</Windowed>
      </div>
      <Legend timeline={timeline} view={view} />
    </Panel>
  );
}

function usePointer(ref: { current: HTMLDivElement | null }, given: { view: View; width: number; timeline: Timeline; change: (v: View) => void }) {
  const latest = useRef(given);
  latest.current = given;
  useEffect(() => {
    const host = ref.current?.closest(".timeline");
    if (!(host instanceof HTMLElement)) return;
    let from: { x: number; view: View } | null = null;
    const left = () => ref.current?.getBoundingClientRect().left ?? 0;
    const onWheel = (e: WheelEvent) => {
      const { view, width, timeline, change } = latest.current;
      if (e.ctrlKey || e.metaKey) {
        e.preventDefault();
        change(zoom(view, Math.exp(e.deltaY / 200), timeAt(view, width, e.clientX - left()), timeline.whole));
      } else if (Math.abs(e.deltaX) > Math.abs(e.deltaY)) {
        e.preventDefault();
        change(pan(view, (e.deltaX / width) * (view.to - view.from), timeline.whole));
      }
    };
    const onDown = (e: PointerEvent) => {
      if (e.button !== 0 || e.pointerType === "touch" || (e.target as Element).closest("button")) return;
      from = { x: e.clientX, view: latest.current.view };
    };
    const onMove = (e: PointerEvent) => {
      if (!from || Math.abs(e.clientX - from.x) < 3) return;
      const { width, timeline, change } = latest.current;
      host.classList.add("moving");
      change(pan(from.view, ((from.x - e.clientX) / width) * (from.view.to - from.view.from), timeline.whole));
    };
    const onUp = () => { from = null; host.classList.remove("moving"); };
    const onDouble = (e: MouseEvent) => {
      if ((e.target as Element).closest("button")) return;
      const { view, width, timeline, change } = latest.current;
      change(zoom(view, 0.4, timeAt(view, width, e.clientX - left()), timeline.whole));
    };
    host.addEventListener("wheel", onWheel, { passive: false });
    host.addEventListener("pointerdown", onDown);
    host.addEventListener("dblclick", onDouble);
    addEventListener("pointermove", onMove);
    addEventListener("pointerup", onUp);
    return () => {
      host.removeEventListener("wheel", onWheel);
      host.removeEventListener("pointerdown", onDown);
      host.removeEventListener("dblclick", onDouble);
      removeEventListener("pointermove", onMove);
      removeEventListener("pointerup", onUp);
    };
  }, []);
}

function Axis({ view, width }: { view: View; width: number }) {
  const step = stepOf(view, width);
  return (
    <svg class="axis" width={width} height={26} aria-hidden="true">
      {marks(view, width).map((t) => {
        const x = at(view, width, t);
        return <g key={t}><line x1={x} x2={x} y1={20} y2={26} /><text x={Math.min(Math.max(x, 22), width - 24)} y={14} text-anchor="middle">{label(t, step)}</text></g>;
      })}
    </svg>
  );
}

const RowBars = memo(({ row, complete, paused, current, grid, view, width }: {
  row: Row; complete: number | null; paused: number | null; current: number; grid: string; view: View; width: number;
}) => {
  const x = (t: number) => at(view, width, t);
  const isIn = (from: number, to: number) => to >= view.from && from <= view.to;
  const vertical = (t: number | null, kind: string, title: string) => t !== null && isIn(t, t) && (
    <g class={kind}><line x1={x(t)} x2={x(t)} y1={0} y2={ROW} /><title>{title}</title></g>
  );
  return (
    <svg class="row-bars" width={width} height={ROW} role="img" aria-label={summary(row)}>
      <path class="grid" d={grid} />
      {paused !== null && isIn(paused, view.to) && <rect class="paused-time" x={Math.max(0, x(paused))} y={0} width={Math.max(0, width - Math.max(0, x(paused)))} height={ROW}><title>paused</title></rect>}
      {row.bars.filter((b) => isIn(b.from, b.to)).map((b, n) => <BarOf key={n} bar={b} x={x} width={width} />)}
      {row.beats.filter((t) => isIn(t, t)).map((t) => <g key={t} class="beat"><path d={`M${x(t)} 6l3 4-3 4-3-4z`} /><title>{`last heartbeat ${moment(t, Date.now(), true)}`}</title></g>)}
      {row.deadlines.map((t) => vertical(t, "deadline", `complete-by of ${row.step.name}\n${exact(t)}`))}
      {vertical(complete, "deadline whole", `complete-by of the task\n${complete ? exact(complete) : ""}`)}
      {vertical(current, "now-line", "now")}
    </svg>
  );
});

function BarOf({ bar, x, width }: { bar: Bar; x: (t: number) => number; width: number }) {
  const left = Math.max(-4, x(bar.from));
  const right = Math.min(width + 4, x(bar.to));
  const wide = Math.max(right - left, bar.kind === "attempt" ? MIN_BAR : 0);
  const title = `${bar.title}, ${duration(bar.to - bar.from)}\n${moment(bar.from, Date.now(), true)} – ${moment(bar.to, Date.now(), true)}${bar.attempt?.error ? `\n${bar.attempt.error.code}: ${bar.attempt.error.message ?? ""}` : ""}`;
  if (bar.kind === "lost") return <g class="bar-lost"><rect x={left} y={5} width={wide} height={ROW - 10} /><line x1={left} x2={right} y1={ROW / 2} y2={ROW / 2} /><title>{title}</title></g>;
  if (bar.kind === "rest") return <g class={`bar-rest ${bar.state}`}><rect x={left} y={11} width={wide} height={ROW - 22} rx={4} /><title>{title}</title></g>;
  return (
    <g class={`bar-attempt ${bar.state} ${bar.isUndo ? "undo" : ""}`}>
      <rect x={left} y={6} width={wide} height={ROW - 12} rx={Math.min(3, wide / 2)} />
      {bar.inDoubt && <rect class="hatched" x={left} y={6} width={Math.max(wide, 8)} height={ROW - 12} rx={3} fill="url(#doubt)" />}
      {wide > 22 && bar.isUndo && <path class="bar-sign" d={`M${left + 14} 15H${left + 6}m3 -3l-3 3 3 3`} />}
      {wide > 22 && !bar.isUndo && ["failed", "timed_out"].includes(bar.state) && <path class="bar-sign" d={`M${left + 7} 11.5l7 7m0-7l-7 7`} />}
      <title>{title}</title>
    </g>
  );
}

function summary(row: Row): string {
  const attempts = row.bars.filter((b) => b.kind === "attempt");
  const failed = attempts.filter((b) => b.state === "failed" || b.state === "timed_out").length;
  return `${row.step.name}: ${row.step.in_doubt ? "in doubt" : row.step.state}, ${attempts.length} attempts, ${failed} of them failed`;
}

function Legend({ timeline, view }: { timeline: Timeline; view: View }) {
  const bars = timeline.rows.flatMap((r) => r.bars);
  const has = (test: (b: Bar) => boolean) => bars.some(test);
  const entries: [boolean, string, string][] = [
    [has((b) => b.kind === "attempt" && b.state === "completed" && !b.isUndo), "completed", "completed"],
    [has((b) => b.kind === "attempt" && b.state === "open"), "open", "running"],
    [has((b) => b.kind === "attempt" && ["failed", "timed_out"].includes(b.state)), "failed", "failed"],
    [has((b) => b.isUndo && ["completed", "open"].includes(b.state)), "undo", "undo"],
    [has((b) => b.inDoubt), "doubted", "in doubt"],
    [has((b) => b.kind === "lost"), "lost", "wait after a failure"],
    [has((b) => b.kind === "rest"), "rest", "a wait, items or a child"],
    [[timeline.complete, ...timeline.rows.flatMap((r) => r.deadlines)].some((t) => t !== null && t >= view.from && t <= view.to), "by", "complete-by"],
    [timeline.rows.some((r) => r.beats.length > 0), "beaten", "last heartbeat"],
  ];
  const shown = entries.filter(([is]) => is);
  return shown.length > 0 ? <p class="legend timeline-legend" aria-hidden="true">{shown.map(([, kind, text]) => <span key={kind}><i class={`key ${kind}`} />{text}</span>)}</p> : null;
}

