// One workflow: its steps, how its tasks do, its text, and how its versions differ.
import { useMemo, useState } from "preact/hooks";
import { textOf, useDefinition, type Definition } from "../../api/definition.ts";
import { useResource } from "../../api/resource.ts";
import type { Workflow } from "../../api/types.ts";
import { SubmitForm } from "../../actions/submit.tsx";
import { useKeys } from "../../app/keys.ts";
import { navigate, path, query } from "../../app/router.ts";
import { allowsFor, can, session } from "../../app/session.ts";
import { Button, Copy, Empty, Failed, Loading, Panel } from "../../ui/basics.tsx";
import { count, duration, plural } from "../../ui/format.ts";
import { Icon } from "../../ui/icons.tsx";
import { Json } from "../../ui/json.tsx";
import { Listing } from "../../ui/listing.tsx";
import { Tabs } from "../../ui/tabs.tsx";
import { FiguresPanel, useFigures } from "./figures.tsx";
import { DefinitionGraph, whatOf } from "./graph.tsx";
import { percent, type StepFigures } from "./model.ts";
import { Versions } from "./versions.tsx";

function go(changes: Record<string, string | null>) {
  const next = new URLSearchParams(query.value);
  for (const [k, v] of Object.entries(changes)) if (v === null) next.delete(k); else next.set(k, v);
  navigate(next.size > 0 ? `${path.value}?${next}` : path.value, { replace: true });
}

const number = (text: string | null, highest: number): number | null => {
  const n = Number(text);
  return text && Number.isInteger(n) && n >= 1 && n <= highest ? n : null;
};

const maySubmit = (name: string) => allowsFor(session.value?.roles ?? [], "submit", name);

export default function WorkflowOnePage({ name }: { name: string }) {
  const at = `/v1/workflows/${encodeURIComponent(name)}`;
  const newest = useResource<Workflow>(at, 30_000);
  const version = newest.data ? number(query.value.get("version"), newest.data.version) : null;
  const older = useResource<Workflow>(version && version !== newest.data?.version ? `${at}/versions/${version}` : null);
  useKeys({ r: newest.reload });
  if (!newest.data) {
    if (newest.problem?.status === 404) {
      return <Empty isPage title={`There is no workflow ${name}`} icon="search">{can("define") ? <a href={`/workflows/${encodeURIComponent(name)}/edit`}>Write it</a> : <a href="/workflows">All workflows</a>}</Empty>;
    }
    return newest.problem ? <Failed problem={newest.problem} retry={newest.reload} /> : <Loading rows={10} />;
  }
  const isOlder = version !== null && version !== newest.data.version;
  const shown = isOlder ? older.data : newest.data;
  if (!shown) return older.problem ? <Failed problem={older.problem} retry={older.reload} /> : <Loading rows={10} />;
  return <One key={`${shown.name} ${shown.version}`} shown={shown} newest={newest.data.version} />;
}

function One({ shown, newest }: { shown: Workflow; newest: number }) {
  const definition = useDefinition(shown) ?? undefined;
  const isOlder = shown.version !== newest;
  const figures = useFigures(shown.name, isOlder ? shown.version : null);
  useKeys({ r: figures.page.reload });
  const bySteps = useMemo(() => new Map(figures.steps.map((s) => [s.name, s])), [figures.steps]);
  const [isSubmitting, setSubmitting] = useState(false);
  const chosen = query.value.get("step");
  const step = definition && [...definition.steps, ...(definition.on_undo ?? [])].find((s) => s.name === chosen);
  const to = number(query.value.get("to"), newest) ?? shown.version;
  const from = number(query.value.get("from"), newest) ?? Math.max(1, to - 1);
  return (
    <div class="page">
      <nav class="crumbs" aria-label="Path"><a href="/workflows">Workflows</a></nav>
      <header class="page-head">
        <h1 class="id">{shown.name}</h1><Copy text={shown.name} label="Copy the name" />
        <span class="chip">version {shown.version}{isOlder ? ` of ${newest}` : ""}</span>
        <div class="page-actions">
          {maySubmit(shown.name) && <Button icon="plus" onClick={() => setSubmitting(true)}>Submit a task…</Button>}
          {can("define") && <a class="button plain" href={`/workflows/${shown.name}/edit${isOlder ? `?version=${shown.version}` : ""}`}><Icon name="edit" /><span>Edit</span></a>}
        </div>
      </header>
      {isOlder && <p class="note warning" role="status"><Icon name="info" /><span>This is an older version. <a href={`/workflows/${shown.name}`}>Show version {newest}</a>, which new tasks use.</span></p>}
      <Facts shown={shown} definition={definition} />
      {definition && <DefinitionGraph definition={definition} figures={bySteps} step={chosen} onStep={(s) => go({ step: s === chosen ? null : s })} />}
      {step && (
        <Panel title={<>Step {step.name} <span class="muted">{whatOf(step)}</span></>} aside={<Button kind="quiet" icon="close" onClick={() => go({ step: null })}>Close</Button>}>
          <div class="stack"><StepNumbers f={bySteps.get(step.name)} /><Json value={step} name={`step ${step.name}`} /></div>
        </Panel>
      )}
      {can("read") && <FiguresPanel workflow={shown.name} figures={figures} onStep={(s) => go({ step: s })} />}
      <Tabs label="Text and versions" at={query.value.get("tab") ?? "text"} onTab={(tab) => go({ tab: tab === "text" ? null : tab, ...(tab === "text" ? { from: null, to: null } : {}) })} tabs={[
        { name: "text", label: "Definition", show: () => <Listing text={textOf(shown)} name="the definition" /> },
        { name: "versions", label: `Versions (${newest})`, show: () => <Versions path={`/v1/workflows/${encodeURIComponent(shown.name)}`} newest={newest} from={from} to={to} onChoose={(a, b) => go({ from: String(a), to: String(b) })} /> },
      ]} />
      {isSubmitting && <SubmitForm workflow={shown.name} definition={definition} onClose={() => setSubmitting(false)} />}
    </div>
  );
}

function Facts({ shown, definition: d }: { shown: Workflow; definition: Definition | undefined }) {
  return (
    <dl class="facts-line">
      <div><dt>steps</dt><dd>{count(shown.steps)}</dd></div>
      {d?.complete_by && <div><dt>complete by</dt><dd>{d.complete_by}</dd></div>}
      <div><dt>on failure</dt><dd>{d?.on_failure ?? "undo"}</dd></div>
      {d?.inputs && <div><dt>inputs</dt><dd>{Object.entries(d.inputs).map(([k, v]) => `${k}${v?.required ? "" : "?"}`).join(", ")}</dd></div>}
      {d?.lock && <div><dt>lock</dt><dd>{d.lock.max && d.lock.max > 1 ? `${d.lock.max} at once` : "one at once"} by <code>{d.lock.key}</code></dd></div>}
      <div><dt>tasks</dt><dd><a href={`/tasks?workflow=${shown.name}`}>all</a>, <a href={`/tasks?workflow=${shown.name}&state=error&closed=false`}>in error</a></dd></div>
      {shown.version > 1 && <div><dt>older</dt><dd><a href={`/workflows/${shown.name}?version=${shown.version - 1}`}>version {shown.version - 1}</a></dd></div>}
    </dl>
  );
}

function StepNumbers({ f }: { f: StepFigures | undefined }) {
  if (!f || f.tasks === 0) return null;
  return (
    <dl class="facts-line">
      {f.half !== null && <div><dt>typically takes</dt><dd>{duration(f.half)}, 95 % within {duration(f.most as number)}</dd></div>}
      <div><dt>attempts that fail</dt><dd>{percent(f.failures, f.attempts)} of {count(f.attempts)}</dd></div>
      <div><dt>failed for good</dt><dd>{count(f.failed)} of {plural(f.tasks, "task")}</dd></div>
      {f.undone > 0 && <div><dt>undone</dt><dd>in {plural(f.undone, "task")}</dd></div>}
    </dl>
  );
}
