// Alerts, one for each condition with its labels, and where they are sent.
import { useState } from "preact/hooks";
import { call, Problem, withQuery } from "../../api/client.ts";
import { useResource } from "../../api/resource.ts";
import type { Alert, AlertPage } from "../../api/types.ts";
import { announce } from "../../app/announce.ts";
import { useKeys } from "../../app/keys.ts";
import { navigate, query } from "../../app/router.ts";
import { can } from "../../app/session.ts";
import { Age, Button, Empty, Id, Moment, Panel, Shown, Text } from "../../ui/basics.tsx";
import { CommandLine, Dialog, Field } from "../../ui/dialog.tsx";
import { capital, count, plural } from "../../ui/format.ts";
import { Icon, StateSign } from "../../ui/icons.tsx";
import { commandLine } from "../../ui/shell.ts";
import { alertSign, isTask, worstFirst } from "./row.tsx";

const STATES = ["open", "acknowledged", "resolved"] as const;

export default function AlertsPage() {
  const wanted = query.value.get("state") ?? "";
  const page = useResource<AlertPage>(`/v1/alerts?limit=200${wanted ? `&state=${wanted}` : ""}`, 5000);
  useKeys({ r: page.reload });
  const open = query.value.get("alert");
  const [known, setKnown] = useState<Alert | null>(null);
  return (
    <div class="page">
      <header class="page-head"><h1>Alerts</h1></header>
      <div class="switches" role="group" aria-label="State">
        {STATES.map((s) => <button key={s} type="button" class="switch" aria-pressed={wanted === s} onClick={() => navigate(wanted === s ? "/alerts" : `/alerts?state=${s}`)}>{s}</button>)}
      </div>
      <Shown of={page}>{({ alerts, sinks }) => (
        <>
          {alerts.length === 0 ? <Empty title={wanted ? `No alert is ${wanted}` : "No alerts"} icon="done" /> : <ul class="cards joined">{worstFirst(alerts).sort((a, b) => STATES.indexOf(a.state) - STATES.indexOf(b.state)).map((a) => <Card key={a.id} a={a} isAt={a.id === open} onKnow={() => setKnown(a)} />)}</ul>}
          <Panel title="Sinks"><div class="table-wrap" tabIndex={0} role="group" aria-label="Sinks"><table class="table">
            <thead><tr><th>Sink</th><th class="number">Delivered</th><th class="number">Failed</th><th>Last</th><th>Trouble</th></tr></thead>
            <tbody>{sinks.map((s) => <tr key={s.sink}><td class="wide-cell"><Text>{s.sink}</Text></td><td class="number">{count(s.delivered)}</td><td class="number">{count(s.failed)}</td><td><Age at={s.last_at} /></td><td class="wide-cell"><Text>{s.trouble ?? "–"}</Text></td></tr>)}</tbody>
          </table></div></Panel>
        </>
      )}</Shown>
      {known && <Acknowledge alert={known} onClose={() => setKnown(null)} onDone={() => { setKnown(null); page.reload(); }} />}
    </div>
  );
}

// The list of the tasks that an alert is about.
export function tasksOf(a: Alert): string | null {
  const { workflow, code, agent, step } = a.labels;
  switch (a.condition) {
    case "task_error": case "compensation_failed": return withQuery("/tasks", { state: "error", closed: "false", workflow, step, error: code });
    case "overdue_no_agent": case "breaker_open": return withQuery("/tasks", { agent });
    case "approval_waiting": return withQuery("/tasks", { workflow, step });
    default: return null;
  }
}

function Card({ a, isAt, onKnow }: { a: Alert; isAt: boolean; onKnow: () => void }) {
  const href = a.state === "resolved" ? null : tasksOf(a);
  return (
    <li class={`panel card alert-card ${isAt ? "at" : ""}`}>
      <div class="card-head"><StateSign state={alertSign(a)} /><h2><Text>{capital(a.summary)}</Text></h2>{a.state !== "open" && <span class="chip">{a.state}</span>}
        <span class="card-end card-foot">
          {href && <a class="button plain" href={href}><span>These tasks</span></a>}
          {a.state === "open" && can("repair") && <Button onClick={onKnow}>Acknowledge…</Button>}
        </span>
      </div>
      {a.story && <p><Text>{a.story}</Text></p>}
      <p class="muted alert-facts">
        <span>{a.count === a.total ? plural(a.count, isTask(a) ? "task" : "time") : `${count(a.count)} now, ${count(a.total)} in all`}</span><span>since <Moment at={a.first_at} /></span><span>latest <Age at={a.latest_at} /></span>{a.resolved_at && <span>resolved <Age at={a.resolved_at} /></span>}
        {a.examples.map((id) => <Id key={id} id={id} {...(isTask(a) ? { href: `/tasks/${encodeURIComponent(id)}` } : {})} />)}
      </p>
      {a.acknowledged_by && <p>Acknowledged by <b><Text>{a.acknowledged_by}</Text></b>: <Text>{a.acknowledged_why ?? ""}</Text></p>}
    </li>
  );
}

function Acknowledge({ alert, onClose, onDone }: { alert: Alert; onClose: () => void; onDone: () => void }) {
  const [reason, setReason] = useState("");
  const [problem, setProblem] = useState<string | null>(null);
  const send = async () => {
    if (reason.trim() === "") return setProblem("Say why: the audit keeps it.");
    try {
      await call(`/v1/alerts/${encodeURIComponent(alert.id)}/acknowledge`, { method: "POST", body: { reason: reason.trim() } });
      announce("Acknowledged");
      onDone();
    } catch (cause) {
      setProblem((cause as Problem).message);
    }
  };
  return (
    <Dialog title="Acknowledge the alert" onClose={onClose} onSubmit={send} foot={<><Button onClick={onClose}>Cancel</Button><Button kind="primary" type="submit">Acknowledge</Button></>}>
      <blockquote><Text>{alert.summary}</Text></blockquote>
      <p class="says">No reminder is sent any more. The alert stays until its condition is over.</p>
      <Field label="Reason">{(id) => <input id={id} value={reason} autofocus autocomplete="off" maxLength={1000} onInput={(e) => setReason(e.currentTarget.value)} />}</Field>
      {problem && <p class="note error" role="alert"><Icon name="warning" /><Text>{problem}</Text></p>}
      <CommandLine line={commandLine(["alert", "acknowledge", alert.id, ["--reason", reason.trim() || "..."]])} />
    </Dialog>
  );
}
