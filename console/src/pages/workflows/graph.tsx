// The steps of a definition as a graph: what each does, and what it took of late.
import { useMemo } from "preact/hooks";
import type { Definition, StepDefinition } from "../../api/definition.ts";
import { duration } from "../../ui/format.ts";
import { GraphPanel, type DrawnLine, type DrawnNode } from "../../ui/graph.tsx";
import { Icon } from "../../ui/icons.tsx";
import { BOX, graphOf, layout } from "../../ui/layout.ts";
import { plain } from "../../ui/visible.ts";
import { percent, type StepFigures } from "./model.ts";

export function kindOf(s: StepDefinition): "agent" | "wait" | "signal" | "approve" | "task" {
  return s.wait !== undefined ? "wait" : s.signal ? "signal" : s.approve ? "approve" : s.task ? "task" : "agent";
}

const ICONS = { agent: "agents", wait: "clock", signal: "alerts", approve: "approvals", task: "workflows" } as const;
const list = (names: string | string[] | undefined) => (Array.isArray(names) ? names.join(", ") : (names ?? ""));

export function whatOf(s: StepDefinition): string {
  switch (kindOf(s)) {
    case "wait": return typeof s.wait === "string" ? `waits ${s.wait}` : "waits until a moment";
    case "signal": return `signal ${list(s.signal?.name)}`;
    case "approve": return `asks ${list(s.approve?.by)}`;
    case "task": return `task ${s.task?.workflow ?? ""}`;
    default: return s.action && s.action !== s.name ? `${s.agent}: ${s.action}` : s.http ? `${s.agent}: ${s.http.method ?? "GET"} ${s.http.path ?? ""}` : (s.agent ?? "");
  }
}

export function DefinitionGraph({ definition, figures, step, onStep }: {
  definition: Definition; figures: Map<string, StepFigures>; step: string | null; onStep: (name: string) => void;
}) {
  const drawn = useMemo(() => layout(graphOf(definition.steps)), [definition]);
  const by = useMemo(() => new Map(definition.steps.map((s) => [s.name, s])), [definition]);
  const lines = useMemo<DrawnLine[]>(() => drawn.edges.map((e) => ({ points: e.points, kind: "plain" })), [drawn]);
  const nodes = useMemo<DrawnNode[]>(() => [...drawn.boxes.values()].map((b) => ({ key: b.name, x: b.x, y: b.y, state: "waiting" })), [drawn]);
  return (
    <GraphPanel width={drawn.width} height={drawn.height} nodes={nodes} lines={lines}
      draw={(n) => <Node key={n.key} step={by.get(n.key) as StepDefinition} figures={figures.get(n.key)} x={n.x} y={n.y} isAt={step === n.key} onStep={onStep} />}>
      {definition.on_undo && definition.on_undo.length > 0 && (
        <div class="on-undo"><span class="muted">on undo:</span>{definition.on_undo.map((s) => (
          <button type="button" key={s.name} class="node-chip" aria-pressed={step === s.name} onClick={() => onStep(s.name)}><Icon name={ICONS[kindOf(s)]} />{s.name}</button>
        ))}</div>
      )}
    </GraphPanel>
  );
}

function Node({ step: s, figures: f, x, y, isAt, onStep }: {
  step: StepDefinition; figures: StepFigures | undefined; x: number; y: number; isAt: boolean; onStep: (name: string) => void;
}) {
  const isHot = f !== undefined && f.failures * 10 >= f.attempts && f.failures > 0;
  const figures = f && f.attempts > 0 ? `${f.half === null ? "" : duration(f.half)}${f.failures > 0 ? ` · ${percent(f.failures, f.attempts)} failed` : ""}` : "";
  return (
    <button type="button" class={`node defined ${isHot ? "hot" : ""} ${isAt ? "at" : ""}`} aria-pressed={isAt} title={plain(`${s.name}: ${whatOf(s)}`)}
      style={{ left: x - BOX.width / 2, top: y - BOX.height / 2, width: BOX.width, height: BOX.height }} onClick={() => onStep(s.name)}>
      <Icon name={ICONS[kindOf(s)]} />
      <span class="node-text">
        <span class="node-name">
          {s.name}{s.for_each !== undefined && <span class="pivot" title="once for each item of a list">each</span>}
          {s.pivot && <span class="pivot" title="pivot: after it the task cannot be undone">pivot</span>}
        </span>
        <span class="node-more">{figures || plain(whatOf(s))}</span>
      </span>
    </button>
  );
}
