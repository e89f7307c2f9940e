// The steps of a task as a graph, from left to right. Below it, as a second lane that runs back, what is undone.
import { useMemo } from "preact/hooks";
import type { Step, Task } from "../../api/types.ts";
import { drawnState, isUndone } from "../../actions/verbs.ts";
import { GraphPanel, type DrawnLine, type DrawnNode } from "../../ui/graph.tsx";
import { Icon, StateSign } from "../../ui/icons.tsx";
import { memo } from "../../ui/memo.tsx";
import { BOX, graphOf, layout, type Box, type Layout } from "../../ui/layout.ts";

export interface Definition {
  steps?: { name: string; after?: string[] | null; undo?: unknown; pivot?: boolean; on_undo?: unknown; task?: unknown }[];
  on_undo?: { name: string; after?: string[] | null }[];
}

const LANE = 34; // between the lanes
const UNDO = "undo "; // no name of a step has a space

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
  const pivots = useMemo(() => new Set((definition?.steps ?? []).filter((s) => s.pivot).map((s) => s.name)), [definition]);
  const undone = undoLane(task, definition).filter((s) => drawn.boxes.has(s.name));
  const onUndo = task.steps.filter((s) => s.on_undo);
  const inLane = new Set(undone.map((s) => s.name));
  const hasLane = undone.length > 0;
  const high = drawn.height + (hasLane ? drawn.height + LANE : 0);
  const mirrored = (y: number) => drawn.height + LANE + (drawn.height - y);
  const done = (s: Step | undefined) => s && (["completed", "skipped"].includes(s.state) || isUndone(s));
  const lines: DrawnLine[] = drawn.edges.map((e) => ({ points: e.points, kind: done(by.get(e.from)) ? "done" : "plain" }));
  if (hasLane) {
    for (const e of drawn.edges.filter((e) => inLane.has(e.from) && inLane.has(e.to)))
      lines.push({ points: [...e.points].reverse().map((p) => ({ x: p.x, y: mirrored(p.y) })), kind: by.get(e.to)?.state === "undone" ? "back done" : "back" });
  }
  const stepOf = (name: string) => by.get(name) as Step;
  const nodes: DrawnNode[] = [
    ...[...drawn.boxes.values()].filter((b) => by.has(b.name)).map((b) => ({ key: b.name, x: b.x, y: b.y, state: stateIn(stepOf(b.name), false) })),
    ...undone.map((s) => { const b = drawn.boxes.get(s.name) as Box; return { key: `${UNDO}${s.name}`, x: b.x, y: mirrored(b.y), state: stateIn(s, true) }; }),
  ];
  return (
    <GraphPanel width={drawn.width} height={high} nodes={nodes} lines={lines}
      lane={hasLane && <span class="lane-name" style={{ top: drawn.height + LANE / 2 - 8, width: drawn.width }}><Icon name="right" />undo, runs back</span>}
      draw={(n) => {
        const isUndo = n.key.startsWith(UNDO);
        const name = isUndo ? n.key.slice(UNDO.length) : n.key;
        return <Node key={n.key} name={name} more={nodeMore(stepOf(name), isUndo)} x={n.x} y={n.y} state={n.state} isUndo={isUndo} isAt={step === name} isPivot={!isUndo && pivots.has(name)} onStep={onStep} />;
      }}>
      {onUndo.length > 0 && (
        <div class="on-undo"><span class="muted">on undo:</span>{onUndo.map((s) => (
          <button type="button" key={s.name} class={`node-chip s-${s.state}`} aria-pressed={step === s.name} onClick={() => onStep(s.name)}><StateSign state={s.state} />{s.name}</button>
        ))}</div>
      )}
    </GraphPanel>
  );
}

function stateIn(s: Step, isUndo: boolean): string {
  if (isUndo) return isUndone(s) ? s.state : "waiting";
  return isUndone(s) ? forwardState(s) : drawnState(s);
}

const Node = memo(({ name, more, x, y, state, isAt, isPivot, isUndo, onStep }: {
  name: string; more: string; x: number; y: number; state: string; isAt: boolean; isPivot: boolean; isUndo: boolean; onStep: (name: string) => void;
}) => (
    <button type="button" class={`node s-${state} ${isAt ? "at" : ""} ${isUndo ? "undo" : ""}`} aria-pressed={isAt}
      style={{ left: x - BOX.width / 2, top: y - BOX.height / 2, width: BOX.width, height: BOX.height }} onClick={() => onStep(name)}>
      <StateSign state={state} />
      <span class="node-text">
        <span class="node-name">{isUndo ? `undo ${name}` : name}{isPivot && <span class="pivot" title="pivot: after it the task cannot be undone">pivot</span>}</span>
        <span class="node-more">{more}</span>
      </span>
    </button>
));

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
  if (s.child?.state === "error" && s.state === "waiting") return "child in error";
  if (s.kind === "approve") return "people decide";
  if (s.kind === "signal") return "signal";
  if (s.kind === "wait") return "wait";
  if (s.kind === "task") return `task ${s.workflow ?? ""}`;
  return `${s.agent ?? ""}${s.failure_count > 0 && s.state !== "completed" ? `, ${s.failure_count} failed` : ""}`;
}
