// The steps of a task as a graph, from left to right. Below it, as a second lane that runs back, what is undone.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Step, Task } from "../../api/types.ts";
import { drawnState, isUndone } from "../../actions/verbs.ts";
import { Panel, useWidth } from "../../ui/basics.tsx";
import { Icon, StateSign } from "../../ui/icons.tsx";
import { BOX, curve, graphOf, layout, type Layout } from "../../ui/layout.ts";

export interface Definition {
  steps?: { name: string; after?: string[] | null; undo?: unknown; pivot?: boolean; on_undo?: unknown }[];
  on_undo?: { name: string; after?: string[] | null }[];
}

const LANE = 34; // between the lanes
const SMALLEST = 0.7;
const MARGIN = 300; // drawn around what is in view

// Steps that are undone, are being undone, or will be.
export function undoLane(task: Task, definition: Definition | undefined): Step[] {
  const undoable = new Map((definition?.steps ?? []).map((s) => [s.name, s.undo !== "none" && !s.pivot]));
  return task.steps.filter((s) => {
    if (isUndone(s) || s.attempts.some((a) => a.direction === "undo")) return true;
    return task.direction === "undo" && undoable.get(s.name) !== false && (s.state === "completed" || s.in_doubt);
  });
}

export function Graph({ task, definition, step, onStep }: {
  task: Task; definition: Definition | undefined; step: string | null; onStep: (name: string) => void;
}) {
  const shape = task.steps.map((s) => s.name).join("\n");
  const drawn = useMemo<Layout>(() => {
    const forward = task.steps.filter((s) => !s.on_undo);
    const known = new Map((definition?.steps ?? []).map((s) => [s.name, s]));
    return layout(graphOf(forward.map((s) => { const after = known.get(s.name)?.after; return after ? { name: s.name, after } : { name: s.name }; })));
  }, [shape, definition]);
  const by = new Map(task.steps.map((s) => [s.name, s]));
  const pivots = new Set((definition?.steps ?? []).filter((s) => s.pivot).map((s) => s.name));
  const lane = undoLane(task, definition);
  const onUndo = task.steps.filter((s) => s.on_undo);
  const inLane = new Set(lane.map((s) => s.name));
  const hasLane = lane.length > 0;
  const high = drawn.height + (hasLane ? drawn.height + LANE : 0);
  const [ref, width] = useWidth<HTMLDivElement>();
  const [whole, setWhole] = useState(false);
  const fit = width > 0 ? Math.min(1, (width - 2) / drawn.width) : 1;
  const scale = whole ? Math.min(fit, 520 / high) : Math.max(fit, SMALLEST);
  const area = useArea(ref, scale);
  const mirrored = (y: number) => drawn.height + LANE + (drawn.height - y);
  const isSeen = (x: number, y: number) => !area || (x > area.left - MARGIN && x < area.right + MARGIN && y > area.top - MARGIN && y < area.bottom + MARGIN);
  const edgeSeen = (points: { x: number; y: number }[]) => {
    const xs = points.map((p) => p.x);
    const ys = points.map((p) => p.y);
    return !area || (Math.max(...xs) > area.left && Math.min(...xs) < area.right && Math.max(...ys) > area.top && Math.min(...ys) < area.bottom);
  };
  const done = (s: Step | undefined) => s && (["completed", "skipped"].includes(s.state) || isUndone(s));
  return (
    <Panel title="Steps" class="graph-panel" aside={fit < SMALLEST && <button type="button" class="button quiet" aria-pressed={whole} onClick={() => setWhole(!whole)}><Icon name="fit" /><span>{whole ? "Readable size" : "Whole graph"}</span></button>}>
      <div ref={ref} class="graph-scroll" tabIndex={0} role="group" aria-label="Graph of the steps">
        <div class="graph-space" style={{ width: drawn.width * scale, height: high * scale }}>
          <div class="graph" style={{ width: drawn.width, height: high, transform: `scale(${scale})` }}>
            <svg width={drawn.width} height={high} aria-hidden="true">
              {drawn.edges.filter((e) => edgeSeen(e.points)).map((e) => (
                <path key={`${e.from} ${e.to}`} class={`edge ${done(by.get(e.from)) ? "done" : ""}`} d={curve(e.points)} />
              ))}
              {hasLane && drawn.edges.filter((e) => inLane.has(e.from) && inLane.has(e.to)).map((e) => {
                const points = [...e.points].reverse().map((p) => ({ x: p.x, y: mirrored(p.y) }));
                return edgeSeen(points) && <path key={`u ${e.from} ${e.to}`} class={`edge back ${by.get(e.to)?.state === "undone" ? "done" : ""}`} d={curve(points)} />;
              })}
              {hasLane && <line class="lane-line" x1={0} x2={drawn.width} y1={drawn.height + LANE / 2} y2={drawn.height + LANE / 2} />}
            </svg>
            {hasLane && <span class="lane-name" style={{ top: drawn.height + LANE / 2 - 8 }}><Icon name="right" />undo, runs back</span>}
            {[...drawn.boxes.values()].filter((b) => isSeen(b.x, b.y)).map((b) => {
              const s = by.get(b.name);
              return s && <Node key={b.name} step={s} x={b.x} y={b.y} isAt={step === b.name} isPivot={pivots.has(b.name)} onStep={onStep} />;
            })}
            {lane.map((s) => {
              const box = drawn.boxes.get(s.name);
              return box && isSeen(box.x, mirrored(box.y)) && <Node key={`u ${s.name}`} step={s} x={box.x} y={mirrored(box.y)} isUndo isAt={step === s.name} isPivot={false} onStep={onStep} />;
            })}
          </div>
        </div>
      </div>
      {onUndo.length > 0 && (
        <div class="on-undo"><span class="muted">on undo:</span>{onUndo.map((s) => (
          <button type="button" key={s.name} class={`node-chip s-${s.state}`} aria-pressed={step === s.name} onClick={() => onStep(s.name)}><StateSign state={s.state} />{s.name}</button>
        ))}</div>
      )}
    </Panel>
  );
}

// The part of the graph in view, in its own measure.
export function useArea(ref: { current: HTMLDivElement | null }, scale: number) {
  const [area, setArea] = useState<{ left: number; right: number; top: number; bottom: number } | null>(null);
  useEffect(() => {
    const host = ref.current;
    if (!host) return;
    let asked = 0;
    const look = () => {
      asked = 0;
      setArea({
        left: host.scrollLeft / scale, right: (host.scrollLeft + host.clientWidth) / scale,
        top: host.scrollTop / scale, bottom: (host.scrollTop + host.clientHeight) / scale,
      });
    };
    const ask = () => { asked ||= requestAnimationFrame(look); };
    look();
    host.addEventListener("scroll", ask, { passive: true });
    addEventListener("resize", ask);
    return () => { cancelAnimationFrame(asked); host.removeEventListener("scroll", ask); removeEventListener("resize", ask); };
  }, [scale]);
  return area;
}

function Node({ step: s, x, y, isAt, isPivot, isUndo = false, onStep }: {
  step: Step; x: number; y: number; isAt: boolean; isPivot: boolean; isUndo?: boolean; onStep: (name: string) => void;
}) {
  const undoing = isUndone(s);
  const state = isUndo ? (undoing ? s.state : "waiting") : undoing ? forwardState(s) : drawnState(s);
  const host = useRef<HTMLButtonElement>(null);
  return (
    <button ref={host} type="button" class={`node s-${state} ${isAt ? "at" : ""} ${isUndo ? "undo" : ""}`} aria-pressed={isAt}
      style={{ left: x - BOX.width / 2, top: y - BOX.height / 2, width: BOX.width, height: BOX.height }} onClick={() => onStep(s.name)}>
      <StateSign state={state} />
      <span class="node-text">
        <span class="node-name">{isUndo ? `undo ${s.name}` : s.name}{isPivot && <span class="pivot" title="pivot: after it the task cannot be undone">pivot</span>}</span>
        <span class="node-more">{nodeMore(s, isUndo)}</span>
      </span>
    </button>
  );
}

// How a step that is undone stood before.
function forwardState(s: Step): string {
  const last = s.attempts.filter((a) => a.direction === "forward").at(-1);
  return last && last.outcome !== "completed" && last.effect === "unknown" ? "doubt" : "completed";
}

function nodeMore(s: Step, isUndo: boolean): string {
  if (isUndo) return !isUndone(s) ? "to be undone" : s.state === "undone" ? "undone" : s.error ? s.error.code : "being undone";
  if (isUndone(s)) return s.agent ?? "";
  if (s.in_doubt) return "in doubt";
  if (s.items) return `${s.items.completed} of ${s.items.count} items`;
  if (s.state === "failed") return s.error?.code ?? "failed";
  if (s.kind === "approve") return "people decide";
  if (s.kind === "signal") return "signal";
  if (s.kind === "wait") return "wait";
  if (s.kind === "task") return `task ${s.workflow ?? ""}`;
  return `${s.agent ?? ""}${s.failure_count > 0 && s.state !== "completed" ? `, ${s.failure_count} failed` : ""}`;
}
