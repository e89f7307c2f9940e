// Status messages that are not delivered: the targets that fail, and what waits for them or is dead.
import { useState } from "preact/hooks";
import { call, withQuery } from "../../api/client.ts";
import { usePaged } from "../../api/paged.ts";
import { useResource } from "../../api/resource.ts";
import type { MessagePage, TargetList } from "../../api/types.ts";
import { useKeys } from "../../app/keys.ts";
import { navigate, query } from "../../app/router.ts";
import { can } from "../../app/session.ts";
import { ActionForm } from "../../ui/action_form.tsx";
import { Age, Button, Empty, Id, Moment, Panel, Shown, Text } from "../../ui/basics.tsx";
import { count, countTo, plural } from "../../ui/format.ts";
import { StateSign } from "../../ui/icons.tsx";
import { Json } from "../../ui/json.tsx";
import { PagedList } from "../../ui/paged.tsx";
import { commandLine } from "../../ui/shell.ts";

type Row = MessagePage["messages"][number];
type Target = TargetList["targets"][number];
type Selection = { target: string } | { task: string } | { message: string } | { all: true };

const COUNTED = 10_000;
const STATES = ["waiting", "dead"] as const;

export default function MessagesPage() {
  const state = query.value.get("state") === "dead" ? "dead" : "waiting";
  const target = query.value.get("target");
  const task = query.value.get("task");
  const targets = useResource<TargetList>("/v1/targets", 5000);
  const messages = usePaged<Row>(withQuery("/v1/outbox", { state, target, task, limit: 100 }), "messages", 5000);
  const [act, setAct] = useState<{ verb: "retry" | "drop"; of: Selection } | null>(null);
  const reload = () => { targets.reload(); messages.reload(); };
  const go = (changes: Record<string, string | null>) => navigate(withQuery("/messages", { state: state === "dead" ? "dead" : null, target, task, ...changes }));
  useKeys({ r: reload });
  const isAll = !target && !task;
  const isBoth = Boolean(target && task); // the server takes one of them: it would do more than is shown
  const here: Selection = target ? { target } : task ? { task } : { all: true };
  return (
    <div class="page">
      <header class="page-head"><h1>Messages</h1></header>
      <p class="muted lead">Status messages that applications have not received yet. A message that was delivered is not listed any more.</p>
      <Panel title="Targets"><Shown of={targets} rows={3}>{({ targets: list }) => <Targets list={list} onAct={(verb, name) => setAct({ verb, of: { target: name } })} onShow={(name, s) => go({ target: name, task: null, state: s === "dead" ? "dead" : null })} />}</Shown></Panel>
      <div class="switches" role="group" aria-label="State">
        {STATES.map((s) => <button key={s} type="button" class={`switch ${s === "dead" ? "s-error" : "s-waiting"}`} aria-pressed={state === s} onClick={() => go({ state: s === "dead" ? "dead" : null })}><StateSign state={s === "dead" ? "error" : "waiting"} />{s}</button>)}
        {target && <button type="button" class="part" onClick={() => go({ target: null })}>target <Text>{target}</Text> ×</button>}
        {task && <button type="button" class="part" onClick={() => go({ task: null })}>task <Text>{task}</Text> ×</button>}
        {can("repair") && !isBoth && (messages.rows?.length ?? 0) > 0 && (
          <span class="switches-end">
            <Button onClick={() => setAct({ verb: "retry", of: here })}>{isAll ? "Retry all…" : "Retry these…"}</Button>
            {state === "dead" && <Button kind="danger" onClick={() => setAct({ verb: "drop", of: here })}>{isAll ? "Delete all dead…" : "Delete these dead…"}</Button>}
          </span>
        )}
      </div>
      <PagedList of={messages} empty={<Empty title={state === "dead" ? "No message is dead" : "No message waits"} icon="done">{isAll ? "" : "Of this target or task."}</Empty>}>{(rows) => (
        <div class="table-wrap"><table class="table stacks">
          <thead><tr><th>Event</th><th>Task</th><th>Target</th><th>Made</th><th class="number">Tries</th><th>{state === "dead" ? "Error" : "Next try"}</th><th><span class="off-screen">Actions</span></th></tr></thead>
          <tbody>{rows.map((m) => <Message key={m.id + m.target} m={m} onAct={(verb) => setAct({ verb, of: { message: m.id } })} />)}</tbody>
        </table></div>
      )}</PagedList>
      {act && <OutboxForm {...act} onClose={() => setAct(null)} onDone={() => { setAct(null); reload(); }} />}
    </div>
  );
}

function Targets({ list, onAct, onShow }: { list: Target[]; onAct: (verb: "retry" | "drop", target: string) => void; onShow: (target: string, state: "waiting" | "dead") => void }) {
  if (list.length === 0) return <Empty title="Every message was delivered" icon="done" />;
  return (
    <div class="table-wrap"><table class="table stacks">
      <thead><tr><th>Target</th><th class="number">Waiting</th><th class="number">Dead</th><th>Oldest</th><th>Paused until</th><th>Latest error</th>{can("repair") && <th><span class="off-screen">Actions</span></th>}</tr></thead>
      <tbody>{list.map((t) => (
        <tr key={t.target}>
          <td class="wide-cell id"><Text>{t.target}</Text></td>
          <td data-label="Waiting" class="number">{t.waiting > 0 ? <button type="button" class="link" onClick={() => onShow(t.target, "waiting")}>{countTo(t.waiting, COUNTED)}</button> : 0}</td>
          <td data-label="Dead" class="number">{t.dead > 0 ? <button type="button" class="link s-error told" onClick={() => onShow(t.target, "dead")}>{countTo(t.dead, COUNTED)}</button> : 0}</td>
          <td data-label="Oldest"><Age at={t.oldest_at} /></td><td data-label="Paused until">{t.paused_until ? <Age at={t.paused_until} /> : <span class="none">–</span>}</td>
          <td data-label="Latest error" class="wide-cell">{t.error ? <Text>{t.error}</Text> : <span class="none">–</span>}</td>
          {can("repair") && <td class="verbs"><Button kind="quiet" onClick={() => onAct("retry", t.target)}>Retry now…</Button></td>}
        </tr>
      ))}</tbody>
    </table></div>
  );
}

function Message({ m, onAct }: { m: Row; onAct: (verb: "retry" | "drop") => void }) {
  const [isOpen, setOpen] = useState(false);
  const event = m.event.type.replace("intact.task.", "");
  return (
    <>
      <tr>
        <td><button type="button" class="link" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>{event}</button>{m.event.data.step && <span class="muted"> {m.event.data.step.name}</span>}</td>
        <td data-label="Task"><Id id={m.task} href={`/tasks/${encodeURIComponent(m.task)}`} /></td>
        <td data-label="Target" class="wide-cell"><Text>{m.target}</Text></td><td data-label="Made"><Moment at={m.created_at} /></td><td data-label="Tries" class="number">{count(m.tries)}</td>
        <td class="wide-cell">{m.state === "waiting" && (m.retry_at ? <Age at={m.retry_at} /> : <span class="muted">waits for its turn</span>)} {m.error && <span class={m.state === "dead" ? "s-error told" : "muted"}><Text>{m.error}</Text></span>}</td>
        <td class="verbs">{can("repair") && <><Button kind="quiet" onClick={() => onAct("retry")}>Retry…</Button>{m.state === "dead" && <Button kind="quiet" onClick={() => onAct("drop")}>Delete…</Button>}</>}</td>
      </tr>
      {isOpen && <tr class="opened"><td colSpan={7}><Json value={m.event} name="the message" /></td></tr>}
    </>
  );
}

const SAID = {
  retry: "They are tried now, including dead ones. A message that was delivered, but whose answer was lost, is sent again with the same id.",
  drop: "The dead messages are deleted and never delivered. The next ones of their tasks follow.",
};

function OutboxForm({ verb, of, onClose, onDone }: { verb: "retry" | "drop"; of: Selection; onClose: () => void; onDone: () => void }) {
  const [kind, value] = Object.entries(of)[0] as [string, string | true];
  return (
    <ActionForm title={verb === "retry" ? "Retry messages" : "Delete dead messages"} of={value === true ? "all" : `${kind} ${value}`} button={verb === "retry" ? "Retry" : "Delete"} isFinal={verb === "drop"} says={SAID[verb]}
      command={(reason) => commandLine(["outbox", verb, ...(value === true ? ["--all"] : [[`--${kind}`, value] as [string, string]]), ["--reason", reason]])}
      send={async (reason) => {
        const { messages } = await call<{ messages: number }>(`/v1/outbox/${verb}`, { method: "POST", body: { ...of, reason } });
        return `${plural(messages, "message")} ${verb === "retry" ? "tried now" : "deleted"}`;
      }}
      onClose={onClose} onDone={onDone} />
  );
}
