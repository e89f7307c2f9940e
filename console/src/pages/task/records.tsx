// All that is on record of a task, in tabs: input and output, children, messages, what people did, the definition, JSON.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { useResource } from "../../api/resource.ts";
import type { MessagePage, Task, TaskPage, Workflow } from "../../api/types.ts";
import { can } from "../../app/session.ts";
import { Age, Copy, Empty, Length, Moment, Reason, Shown, State, Text } from "../../ui/basics.tsx";
import { count } from "../../ui/format.ts";
import { Folded, Json } from "../../ui/json.tsx";
import { plain } from "../../ui/visible.ts";

interface Tab {
  name: string;
  label: string;
  show: () => ComponentChildren;
}

export function Records({ task, definition, hasChildren }: { task: Task; definition: Workflow | undefined; hasChildren: boolean }) {
  const tabs: Tab[] = [
    { name: "data", label: "Input and output", show: () => <Data task={task} /> },
    ...(hasChildren ? [{ name: "children", label: "Children", show: () => <Children task={task} /> }] : []),
    ...(can("read") ? [{ name: "messages", label: "Messages", show: () => <Messages task={task} /> }] : []),
    { name: "history", label: `What people did${task.operations.length > 0 ? ` (${task.operations.length})` : ""}`, show: () => <History task={task} /> },
    { name: "definition", label: "Definition", show: () => <DefinitionText definition={definition} /> },
    { name: "json", label: "JSON", show: () => <Json value={task} name="the record" /> },
  ];
  const [at, setAt] = useState("data");
  const tab = tabs.find((t) => t.name === at) ?? (tabs[0] as Tab);
  const onKey = (e: KeyboardEvent) => {
    const by = e.key === "ArrowRight" ? 1 : e.key === "ArrowLeft" ? -1 : 0;
    if (by === 0) return;
    const next = tabs[(tabs.indexOf(tab) + by + tabs.length) % tabs.length] as Tab;
    setAt(next.name);
    document.getElementById(`tab-${next.name}`)?.focus();
  };
  return (
    <section class="panel records">
      <div class="tabs" role="tablist" aria-label="Records" onKeyDown={onKey}>
        {tabs.map((t) => (
          <button key={t.name} id={`tab-${t.name}`} type="button" role="tab" aria-selected={t === tab} aria-controls="tab-panel" tabIndex={t === tab ? 0 : -1} onClick={() => setAt(t.name)}>{t.label}</button>
        ))}
      </div>
      <div id="tab-panel" class="tab-panel" role="tabpanel" aria-labelledby={`tab-${tab.name}`} tabIndex={0}>{tab.show()}</div>
    </section>
  );
}

function Data({ task }: { task: Task }) {
  return (
    <div class="values">
      <Folded name="Input" value={task.input} />
      {task.output === null || task.output === undefined ? <p class="muted">No output.</p> : <Folded name="Output" value={task.output} />}
      {task.signals && task.signals.length > 0 && <Folded name="Signals that no step has taken" value={task.signals} />}
    </div>
  );
}

function Children({ task }: { task: Task }) {
  const page = useResource<TaskPage>(`/v1/tasks?parent=${encodeURIComponent(task.id)}&limit=100`, 5000);
  return (
    <Shown of={page}>{({ tasks, next }) => tasks.length === 0 ? <Empty title="No child was started" /> : (
      <>
        <div class="table-wrap"><table class="table stacks">
          <thead><tr><th>State</th><th>Task</th><th>Workflow</th><th>Took</th><th>Submitted</th></tr></thead>
          <tbody>{tasks.map((t) => (
            <tr key={t.id}>
              <td><State state={t.state} note={t.closed_at ? "closed" : undefined} /></td><td><a class="id" href={`/tasks/${encodeURIComponent(t.id)}`}>{plain(t.id)}</a></td>
              <td>{t.workflow}</td><td data-label="Took"><Length from={t.submitted_at} to={t.ended_at} /></td><td class="muted"><Age at={t.submitted_at} /></td>
            </tr>
          ))}</tbody>
        </table></div>
        {next && <p><a href={`/tasks?parent=${encodeURIComponent(task.id)}`}>All children</a></p>}
      </>
    )}</Shown>
  );
}

function Messages({ task }: { task: Task }) {
  const page = useResource<MessagePage>(`/v1/outbox?task=${encodeURIComponent(task.id)}&limit=100`, 10_000);
  return (
    <Shown of={page} rows={2}>{({ messages }) => messages.length === 0 ? <Empty title="No message waits" icon="done">All status messages of this task were delivered, or it has none.</Empty> : (
      <div class="table-wrap"><table class="table">
        <thead><tr><th>State</th><th>Target</th><th>Type</th><th class="number">Tries</th><th>Next try</th><th>Error</th></tr></thead>
        <tbody>{messages.map((m) => (
          <tr key={m.id}>
            <td><span class={m.state === "dead" ? "s-error" : "muted"}>{m.state}</span></td><td class="wide-cell"><Text>{m.target}</Text></td><td>{m.event.type}</td>
            <td class="number">{count(m.tries)}</td><td><Age at={m.retry_at} /></td><td class="wide-cell"><Text>{m.error ?? ""}</Text></td>
          </tr>
        ))}</tbody>
      </table></div>
    )}</Shown>
  );
}

function History({ task }: { task: Task }) {
  if (task.operations.length === 0) return <Empty title="Nobody has acted on this task" icon="audit" />;
  return (
    <ol class="history">{[...task.operations].reverse().map((o, n) => (
      <li key={n}>
        <p><b><Text>{o.actor}</Text></b> {o.verb}{o.step && <> of step <span class="id">{o.step}</span></>} <span class="muted"><Moment at={o.at} />, <Age at={o.at} /></span></p>
        {o.reason && <p class="history-reason"><Reason text={o.reason} /></p>}
        {o.detail && Object.keys(o.detail).length > 0 && <Folded name="Detail" value={o.detail} isOpen={false} />}
      </li>
    ))}</ol>
  );
}

function DefinitionText({ definition }: { definition: Workflow | undefined }) {
  if (!definition) return <Empty title="The definition cannot be read" />;
  const text = definition.text ?? JSON.stringify(definition.definition, null, 2);
  return (
    <div class="text-block">
      <div class="json-copy"><Copy text={text} label="Copy the definition" /></div>
      <pre tabIndex={0}><Text>{text}</Text></pre>
    </div>
  );
}
