// Submissions by SQL or from queues that were refused: why, and what to do with them.
import { useState } from "preact/hooks";
import { call, withQuery } from "../../api/client.ts";
import { usePaged } from "../../api/paged.ts";
import type { StoredSubmission, SubmissionsDone } from "../../api/types.ts";
import { useKeys } from "../../app/keys.ts";
import { navigate, query } from "../../app/router.ts";
import { can } from "../../app/session.ts";
import { ActionForm } from "../../ui/action_form.tsx";
import { Age, Button, Copy, Empty, Moment, Text } from "../../ui/basics.tsx";
import { bytes, capital, plural } from "../../ui/format.ts";
import { StateSign } from "../../ui/icons.tsx";
import { PagedList } from "../../ui/paged.tsx";
import { commandLine } from "../../ui/shell.ts";

const STATES = ["refused", "waiting"] as const;
const FIELDS = ["version", "priority", "not_before", "reply_to", "tags"] as const;

interface Act {
  verb: "retry" | "drop";
  seq: number | null; // null: all
}

export default function SubmissionsPage() {
  const state = query.value.get("state") === "waiting" ? "waiting" : "refused";
  const source = query.value.get("source");
  const list = usePaged<StoredSubmission>(withQuery("/v1/submissions", { state, source, limit: 100 }), "submissions", 5000);
  const [act, setAct] = useState<Act | null>(null);
  const go = (changes: Record<string, string | null>) => navigate(withQuery("/submissions", { state: state === "waiting" ? "waiting" : null, source, ...changes }));
  const sources = [...new Set((list.rows ?? []).map((s) => s.source))];
  useKeys({ r: list.reload });
  return (
    <div class="page">
      <header class="page-head"><h1>Refused submissions</h1></header>
      <p class="muted lead">Submissions in SQL and messages of queues have nobody who could be told of a mistake: those that cannot become a task are kept here.</p>
      <div class="switches" role="group" aria-label="State">
        {STATES.map((s) => <button key={s} type="button" class={`switch ${s === "refused" ? "s-error" : "s-waiting"}`} aria-pressed={state === s} onClick={() => go({ state: s === "waiting" ? "waiting" : null })}><StateSign state={s === "refused" ? "error" : "waiting"} />{s}</button>)}
        {source ? <button type="button" class="part" onClick={() => go({ source: null })}>source <Text>{source}</Text> ×</button>
          : sources.length > 1 && sources.slice(0, 6).map((s) => <button key={s} type="button" class="switch" onClick={() => go({ source: s })}>only <Text>{s}</Text></button>)}
        {can("repair") && state === "refused" && (list.rows?.length ?? 0) > 0 && (
          <span class="switches-end">
            <Button onClick={() => setAct({ verb: "retry", seq: null })}>Retry all…</Button>
            <Button kind="danger" onClick={() => setAct({ verb: "drop", seq: null })}>Drop all…</Button>
          </span>
        )}
      </div>
      <PagedList of={list} empty={<Empty title={state === "refused" ? "No submission was refused" : "No submission waits"} icon="done" />}>{(rows) => (
        <ul class="cards joined">{rows.map((s) => <Card key={s.seq} s={s} onAct={(verb) => setAct({ verb, seq: s.seq })} />)}</ul>
      )}</PagedList>
      {act && <Form act={act} source={source} onClose={() => setAct(null)} onDone={() => { setAct(null); list.reload(); }} />}
    </div>
  );
}

function Card({ s, onAct }: { s: StoredSubmission; onAct: (verb: "retry" | "drop") => void }) {
  const isRefused = s.refused_at !== null;
  return (
    <li class="panel card">
      <div class="card-head">
        <StateSign state={isRefused ? "error" : "waiting"} />
        <h2>{s.reason ? <Text>{capital(s.reason)}</Text> : "Waits to become a task"}</h2>
        {can("repair") && isRefused && <span class="card-end"><Button kind="quiet" onClick={() => onAct("retry")}>Retry…</Button><Button kind="quiet" onClick={() => onAct("drop")}>Drop…</Button></span>}
      </div>
      <dl class="facts-line">
        <div><dt>number</dt><dd>{s.seq} <span class="muted">from</span> {s.source}</dd></div>
        <div><dt>submitted</dt><dd><Moment at={s.submitted_at} /></dd></div>
        {isRefused && <div><dt>refused</dt><dd><Age at={s.refused_at} /></dd></div>}
        <div><dt>id</dt><dd>{s.id === null ? <span class="none">none</span> : <Text>{s.id}</Text>}</dd></div>
        <div><dt>workflow</dt><dd>{s.workflow === null ? <span class="none">none</span> : <Text>{s.workflow}</Text>}</dd></div>
        {FIELDS.map((f) => s[f] !== null && <div key={f}><dt>{f.replace("_", " ")}</dt><dd><Text>{s[f] as string}</Text></dd></div>)}
      </dl>
      {s.input !== null && <Input text={s.input} size={s.input_bytes} />}
    </li>
  );
}

// The text as it was submitted: it need not be JSON.
function Input({ text, size }: { text: string; size: number }) {
  const [isOpen, setOpen] = useState(text.length <= 400);
  return (
    <div class="raw">
      <button type="button" class="link" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>Input, {bytes(size)}</button> <Copy text={text} label="Copy the input" />
      {isOpen && <pre class="raw-text"><Text>{text}</Text>{size > text.length && text.length >= 4000 ? "…" : ""}</pre>}
    </div>
  );
}

const SAYS = {
  retry: "They are submitted again as they are, for example after their workflow was stored. What is refused again comes back here.",
  drop: "They are deleted, and never become tasks.",
};

function Form({ act, source, onClose, onDone }: { act: Act; source: string | null; onClose: () => void; onDone: () => void }) {
  const { verb, seq } = act;
  const of = seq !== null ? `number ${seq}` : source ? `all from ${source}` : "all";
  const send = async (reason: string) => {
    const body = { ...(seq !== null ? { seq } : { all: true }), ...(seq === null && source ? { source } : {}), reason };
    const answer = await call<SubmissionsDone>(`/v1/submissions/${verb}`, { method: "POST", body });
    return `${plural(answer.submissions, "submission")} ${verb === "retry" ? "retried" : "dropped"}${answer.more ? "; there are more" : ""}`;
  };
  return (
    <ActionForm title={verb === "retry" ? "Retry submissions" : "Drop submissions"} of={of} button={verb === "retry" ? "Retry" : "Drop"} isFinal={verb === "drop"} says={SAYS[verb]}
      command={(reason) => commandLine(["submission", verb, ...(seq !== null ? [String(seq)] : ["--all"]), ["--source", seq === null && source ? source : undefined], ["--reason", reason]])}
      send={send} onClose={onClose} onDone={onDone} />
  );
}
