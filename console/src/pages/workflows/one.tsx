// One version of a workflow: the graph of its steps, and its definition as it was written.
import { useMemo, useState } from "preact/hooks";
import { useResource } from "../../api/resource.ts";
import type { Workflow } from "../../api/types.ts";
import { navigate, path, query } from "../../app/router.ts";
import { Copy, Panel, Shown, Text, useWidth } from "../../ui/basics.tsx";
import { plural } from "../../ui/format.ts";
import { Json } from "../../ui/json.tsx";
import { BOX, curve, graphOf, layout } from "../../ui/layout.ts";
import type { Definition } from "../task/graph.tsx";

type StepText = NonNullable<Definition["steps"]>[number] & Record<string, unknown>;

export default function WorkflowOnePage({ name }: { name: string }) {
  const base = `/v1/workflows/${encodeURIComponent(name)}`;
  const newest = useResource<Workflow>(base, 30_000);
  const wanted = Number(query.value.get("version")) || null;
  const version = useResource<Workflow>(wanted ? `${base}/versions/${wanted}` : null);
  const shown = wanted ? version : newest;
  const last = newest.data?.version ?? 1;
  return (
    <div class="page">
      <nav class="crumbs" aria-label="Path"><a href="/workflows">Workflows</a></nav>
      <header class="page-head">
        <h1 class="id">{name}</h1>
        <div class="page-actions">
          <select class="filter-age" aria-label="Version" value={String(wanted ?? last)} onChange={(e) => navigate(`${path.value}?version=${e.currentTarget.value}`)}>
            {Array.from({ length: last }, (_, n) => <option key={n} value={String(last - n)}>{`version ${last - n}${n === 0 ? ", the newest" : ""}`}</option>)}
          </select>
          <a class="button plain" href={`/tasks?workflow=${encodeURIComponent(name)}${wanted ? `&version=${wanted}` : ""}`}><span>Its tasks</span></a>
        </div>
      </header>
      <Shown of={shown}>{(w) => <Shape workflow={w} />}</Shown>
    </div>
  );
}

function Shape({ workflow: w }: { workflow: Workflow }) {
  const steps = ((w.definition as Definition | undefined)?.steps ?? []) as StepText[];
  const [at, setAt] = useState<string | null>(null);
  const chosen = steps.find((s) => s.name === at);
  const text = w.text ?? JSON.stringify(w.definition, null, 2);
  return (
    <>
      <Panel title={plural(steps.length, "step")} class="graph-panel">
        <Drawing steps={steps} at={at} onStep={setAt} />
      </Panel>
      {chosen && <Panel title={<><span class="muted">Step</span> {chosen.name}</>}><Json key={chosen.name} value={chosen} name={`step ${chosen.name}`} /></Panel>}
      <Panel title="Definition" aside={<Copy text={text} label="Copy the definition" />}>
        <div class="text-block"><pre tabIndex={0}><Text>{text}</Text></pre></div>
      </Panel>
    </>
  );
}

function kindOf(s: StepText): string {
  for (const kind of ["wait", "signal", "approve", "task"]) if (s[kind] !== undefined) return kind === "approve" ? "people decide" : kind;
  return `${String(s["agent"] ?? "")}${s["for_each"] !== undefined ? ", each item" : ""}`;
}

function Drawing({ steps, at, onStep }: { steps: StepText[]; at: string | null; onStep: (name: string) => void }) {
  const drawn = useMemo(() => layout(graphOf(steps)), [steps]);
  const [ref, width] = useWidth<HTMLDivElement>();
  const scale = width > 0 ? Math.max(0.7, Math.min(1, (width - 2) / drawn.width)) : 1;
  return (
    <div ref={ref} class="graph-scroll" tabIndex={0} role="group" aria-label="Graph of the steps">
      <div class="graph-space" style={{ width: drawn.width * scale, height: drawn.height * scale }}>
        <div class="graph" style={{ width: drawn.width, height: drawn.height, transform: `scale(${scale})` }}>
          <svg width={drawn.width} height={drawn.height} aria-hidden="true">{drawn.edges.map((e) => <path key={`${e.from} ${e.to}`} class="edge" d={curve(e.points)} />)}</svg>
          {steps.map((s) => {
            const box = drawn.boxes.get(s.name);
            return box && (
              <button type="button" key={s.name} class={`node s-pending ${at === s.name ? "at" : ""}`} aria-pressed={at === s.name} onClick={() => onStep(s.name)}
                style={{ left: box.x - BOX.width / 2, top: box.y - BOX.height / 2, width: BOX.width, height: BOX.height }}>
                <span class="node-text">
                  <span class="node-name">{s.name}{s.pivot && <span class="pivot">pivot</span>}</span>
                  <span class="node-more">{kindOf(s)}{s.undo && s.undo !== "none" ? " · has an undo" : ""}</span>
                </span>
              </button>
            );
          })}
        </div>
      </div>
    </div>
  );
}
