// The steps of a definition as a graph: what each does, and what it took of late.
import { useMemo, useState } from "preact/hooks";
import type { Definition, StepDefinition } from "../../api/definition.ts";
import { Panel, useWidth } from "../../ui/basics.tsx";
import { duration } from "../../ui/format.ts";
import { Icon } from "../../ui/icons.tsx";
import { BOX, curve, graphOf, layout } from "../../ui/layout.ts";
import { plain } from "../../ui/visible.ts";
import { useArea } from "../task/graph.tsx";
import { percent, type StepFigures } from "./model.ts";

const SMALLEST = 0.7;
const MARGIN = 300;

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
  const [ref, width] = useWidth<HTMLDivElement>();
  const [whole, setWhole] = useState(false);
  const fit = width > 0 ? Math.min(1, (width - 2) / drawn.width) : 1;
  const scale = whole ? Math.min(fit, 520 / drawn.height) : Math.max(fit, SMALLEST);
  const area = useArea(ref, scale);
  const isSeen = (x: number, y: number) => !area || (x > area.left - MARGIN && x < area.right + MARGIN && y > area.top - MARGIN && y < area.bottom + MARGIN);
  const edgeSeen = (points: { x: number; y: number }[]) => {
    const xs = points.map((p) => p.x);
    const ys = points.map((p) => p.y);
    return !area || (Math.max(...xs) > area.left && Math.min(...xs) < area.right && Math.max(...ys) > area.top && Math.min(...ys) < area.bottom);
  };
  return (
    <Panel title="Steps" class="graph-panel" aside={fit < SMALLEST && <button type="button" class="button quiet" aria-pressed={whole} onClick={() => setWhole(!whole)}><Icon name="fit" /><span>{whole ? "Readable size" : "Whole graph"}</span></button>}>
      <div ref={ref} class="graph-scroll" tabIndex={0} role="group" aria-label="Graph of the steps">
        <div class="graph-space" style={{ width: drawn.width * scale, height: drawn.height * scale }}>
          <div class="graph" style={{ width: drawn.width, height: drawn.height, transform: `scale(${scale})` }}>
            <svg width={drawn.width} height={drawn.height} aria-hidden="true">
              {drawn.edges.filter((e) => edgeSeen(e.points)).map((e) => <path key={`${e.from} ${e.to}`} class="edge" d={curve(e.points)} />)}
            </svg>
            {[...drawn.boxes.values()].filter((b) => isSeen(b.x, b.y)).map((b) => {
              const s = by.get(b.name);
              return s && <Node key={b.name} step={s} figures={figures.get(b.name)} x={b.x} y={b.y} isAt={step === b.name} onStep={onStep} />;
            })}
          </div>
        </div>
      </div>
      {definition.on_undo && definition.on_undo.length > 0 && (
        <div class="on-undo"><span class="muted">on undo:</span>{definition.on_undo.map((s) => (
          <button type="button" key={s.name} class="node-chip" aria-pressed={step === s.name} onClick={() => onStep(s.name)}><Icon name={ICONS[kindOf(s)]} />{s.name}</button>
        ))}</div>
      )}
    </Panel>
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
