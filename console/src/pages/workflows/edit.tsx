// The editor of a workflow: mistakes as the server finds them, completion by the schema, the graph of what is written.
import { useEffect, useRef, useState } from "preact/hooks";
import { parseDefinition, textOf, type Definition } from "../../api/definition.ts";
import { call } from "../../api/client.ts";
import { useResource } from "../../api/resource.ts";
import type { AgentList, Workflow, WorkflowList, WorkflowStored } from "../../api/types.ts";
import { query } from "../../app/router.ts";
import { can } from "../../app/session.ts";
import { Empty, Failed, Loading } from "../../ui/basics.tsx";
import { choicesAt, placeAt, stepNames, type Choice, type Schema } from "../../ui/complete.ts";
import { commandLine } from "../../ui/shell.ts";
import { TextPage, typeOf, type Format } from "../../ui/text_page.tsx";
import schema from "../../ui/workflow.schema.json";
import { DefinitionGraph } from "./graph.tsx";

const template = (name: string) => `intact: 1
workflow: ${name}
steps:
  - name: reserve
    agent: stock
    action: reserve
    undo: {action: release}
  - name: ship
    agent: carrier
    action: ship
    pivot: true
`;

const choice = (label: string): Choice => ({ label, info: "", isKey: false, opens: "value" });

function useComplete() {
  const agents = useResource<AgentList>(can("read") ? "/v1/agents" : null).data?.agents ?? [];
  const workflows = useResource<WorkflowList>("/v1/workflows").data?.workflows ?? [];
  return (text: string, at: number) => {
    const place = placeAt(text, at);
    if (!place) return null;
    const { path, key, from } = place;
    const list = [...path, key ?? ""].filter((p) => p !== "[]").at(key === null ? -2 : -1);
    if (list === "after") return { from, choices: stepNames(text).map(choice) };
    if (key === "agent") return { from, choices: agents.map((a) => choice(a.agent)) };
    if (key === "workflow" && path.at(-1) === "task") return { from, choices: workflows.map((w) => choice(w.name)) };
    return { from, choices: choicesAt(schema as Schema, place) };
  };
}

export default function EditWorkflowPage({ name }: { name: string }) {
  const at = `/v1/workflows/${encodeURIComponent(name)}`;
  const newest = useResource<Workflow>(at, 15_000);
  const wanted = Number(query.value.get("version")) || null;
  const older = useResource<Workflow>(newest.data && wanted && wanted !== newest.data.version ? `${at}/versions/${wanted}` : null);
  const complete = useComplete();
  const opened = useRef<number | null>(null);
  opened.current ??= newest.data?.version ?? null;
  const isNew = newest.problem?.status === 404;
  if (!can("define")) return <Empty isPage title="Your token may not store workflows">It needs the role define. <a href={`/workflows/${encodeURIComponent(name)}`}>Read the workflow</a></Empty>;
  if (!newest.data && !isNew) return newest.problem ? <Failed problem={newest.problem} retry={newest.reload} /> : <Loading rows={10} />;
  if (older.problem) return <Failed problem={older.problem} retry={older.reload} />;
  const from = newest.data && wanted && wanted !== newest.data.version ? older.data : newest.data;
  if (!isNew && !from) return <Loading rows={10} />;
  const format: Format = from?.format ?? "yaml";
  const nameOf = (text: string) => (format === "yaml" ? /^workflow:\s*["']?([a-z0-9_-]+)/m : /"workflow"\s*:\s*"([a-z0-9_-]+)"/).exec(text)?.[1] ?? null;
  return (
    <div class="page">
      <nav class="crumbs" aria-label="Path"><a href="/workflows">Workflows</a>{!isNew && <a href={`/workflows/${name}`}>{name}</a>}</nav>
      <header class="page-head"><h1>{isNew ? "New workflow" : `Edit ${name}`}</h1>{from && <span class="chip">from version {from.version}</span>}</header>
      <TextPage
        id={`workflow ${name} ${wanted ?? ""}`} label={`Definition of ${name}`} format={format} validates complete={complete}
        before={newest.data ? textOf(newest.data) : null} start={from ? textOf(from) : template(name === "new" ? "my-workflow" : name)} nameOf={nameOf}
        meanwhile={newest.data && opened.current !== newest.data.version ? `Version ${newest.data.version} was stored since you opened this page. What you store follows it, and does not contain it.` : null}
        store={async (text) => {
          const isOwn = !isNew && nameOf(text) === name;
          const stored = await call<WorkflowStored>(isOwn ? at : "/v1/workflows", { method: isOwn ? "PUT" : "POST", text: { type: typeOf(format), text } });
          return { name: stored.name, version: stored.version, href: `/workflows/${stored.name}` };
        }}
        says={(of, first) => (first || of !== name ? `Stored as the newest version of ${of}.${first ? "" : ` ${name} stays as it is.`} ` : `Stored as version ${(newest.data?.version ?? 0) + 1} of ${of}. `) + "New tasks use it at once. Tasks that have begun keep their version."}
        command={(of) => commandLine(["workflow", "put", `${of}.${format}`])}
      >
        {(text) => <Preview text={text} format={format} />}
      </TextPage>
    </div>
  );
}

// The graph of the text, of its last moment without mistakes.
function Preview({ text, format }: { text: string; format: Format }) {
  const [definition, setDefinition] = useState<Definition | null>(null);
  const [step, setStep] = useState<string | null>(null);
  useEffect(() => {
    let isOpen = true;
    const timer = setTimeout(() => void parseDefinition(text, format).then((d) => {
      const isSound = d && d.steps.length > 0 && new Set(d.steps.map((s) => s.name)).size === d.steps.length && d.steps.every((s) => (s.after ?? []).every?.((a) => d.steps.some((o) => o.name === a)));
      if (isOpen && isSound) setDefinition(d);
    }), 300);
    return () => { isOpen = false; clearTimeout(timer); };
  }, [text, format]);
  return definition && <DefinitionGraph definition={definition} figures={new Map()} step={step} onStep={setStep} />;
}
