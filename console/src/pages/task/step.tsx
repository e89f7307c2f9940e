// One step: its attempts, what it was given and gave back, and the verbs for it.
import type { Attempt, Step, Task } from "../../api/types.ts";
import { drawnState, isUndone, stepsFor, VERBS, type Arguments, type VerbName } from "../../actions/verbs.ts";
import { can } from "../../app/session.ts";
import { Age, Button, Copy, Id, Length, Moment, Panel, State, Text } from "../../ui/basics.tsx";
import { count, plural } from "../../ui/format.ts";
import { Icon, StateSign } from "../../ui/icons.tsx";
import { Folded } from "../../ui/json.tsx";
import { Items } from "./items.tsx";

export function StepPanel({ task, step: s, onAct }: { task: Task; step: Step; onAct: (verb: VerbName, given: Arguments) => void }) {
  const isOpen = !["processed", "compensated"].includes(task.state) && !task.closed_at;
  const verbs = isOpen && can("repair") ? VERBS.filter((v) => v.step !== "no" && stepsFor(v.name, task).some((f) => f.name === s.name)) : [];
  return (
    <Panel class="step-panel" id="step" title={<><span class="muted">Step</span> {s.name}</>} aside={<State state={drawnState(s)} note={s.in_doubt ? s.state : undefined} />}>
      {verbs.length > 0 && <div class="step-verbs">{verbs.map((v) => <Button key={v.name} title={v.hint} onClick={() => onAct(v.name, { step: s.name })}>{v.label}…</Button>)}</div>}
      <dl class="facts-line">
        {s.agent && <div><dt>agent</dt><dd><a href={`/agents?agent=${encodeURIComponent(s.agent)}`}>{s.agent}</a></dd></div>}
        {s.action && <div><dt>action</dt><dd>{s.action}</dd></div>}
        {s.kind && <div><dt>kind</dt><dd>{KINDS[s.kind] ?? s.kind}</dd></div>}
        {s.failure_count > 0 && <div><dt>failures</dt><dd>{count(s.failure_count)}</dd></div>}
        {s.begun_at && <div><dt>began</dt><dd><Moment at={s.begun_at} /></dd></div>}
        {s.complete_by && <div><dt>complete by</dt><dd><Age at={s.complete_by} /></dd></div>}
        {s.wait_until && <div><dt>{s.kind === "wait" ? "until" : "next attempt"}</dt><dd><Age at={s.wait_until} /></dd></div>}
        {s.round !== undefined && s.round > 0 && <div><dt>round</dt><dd>{s.round}</dd></div>}
        {s.agent && s.item === undefined && <div><dt>idempotency key</dt><dd class="id">{keyOf(task, s)} <Copy text={keyOf(task, s)} label="Copy the idempotency key" /></dd></div>}
        {s.supplied && <div><dt>output</dt><dd>supplied by an operator</dd></div>}
        {s.resolved !== undefined && <div><dt>resolved</dt><dd>attempts up to {s.resolved} took no effect</dd></div>}
        {s.child && <div><dt>child</dt><dd><Id id={s.child.id} href={`/tasks/${encodeURIComponent(s.child.id)}`} /> <span class="muted">{s.child.state}</span></dd></div>}
      </dl>
      {s.error && s.error.code !== s.attempts.at(-1)?.error?.code && <p class="note error"><Icon name="warning" /><span><b><Text>{s.error.code}</Text></b>{s.error.message && <>: <Text>{s.error.message}</Text></>}</span></p>}
      {s.approval && <ApprovalFacts step={s} />}
      {s.attempts.length > 0 && <Attempts step={s} />}
      {s.items && <Items task={task} step={s} onAct={onAct} />}
      <div class="values">
        <Folded name="Input" value={s.input} />
        <Folded name="Output" value={s.output} />
        <Folded name="Resume details" value={s.resume} isOpen={false} />
      </div>
    </Panel>
  );
}

const KINDS: Record<string, string> = { wait: "waits for a time", signal: "waits for a signal", approve: "people decide", task: "a task of its own", for_each: "for each item" };

export function keyOf(task: Task, s: Step): string {
  const isUndo = isUndone(s);
  const generation = (s.key_generation ?? 1) > 1 ? `~${s.key_generation}` : "";
  const round = (s.round ?? 0) > 1 ? `@${s.round}` : "";
  return `${task.id}/${s.name}${generation}${round}${isUndo ? "/undo" : ""}`;
}

function ApprovalFacts({ step }: { step: Step }) {
  const a = step.approval as NonNullable<Step["approval"]>;
  return (
    <div class="approval-facts">
      {a.question && <blockquote><Text>{a.question}</Text></blockquote>}
      <p>Asked: {a.by.join(", ")}. {a.agreed} of {a.people} agreed.{a.escalates_at && <> Escalates <Age at={a.escalates_at} /> to {a.escalates_to.join(", ")}.</>}</p>
      {a.votes.length > 0 && <ul class="plain-list">{a.votes.map((v) => (
        <li key={v.by + v.at}><b><Text>{v.by}</Text></b> {v.agrees ? "agreed" : "rejected"} <span class="muted"><Age at={v.at} /></span>{v.comment && <>: <Text>{v.comment}</Text></>}</li>
      ))}</ul>}
    </div>
  );
}

const WORDS: Record<string, string> = { open: "running", timed_out: "timed out", not_sent: "not sent" };
const SIGNS: Record<string, string> = { open: "running", completed: "completed", failed: "failed", timed_out: "failed", late: "skipped", not_sent: "skipped" };

function Attempts({ step }: { step: Step }) {
  const attempts = [...step.attempts].reverse();
  return (
    <div class="table-wrap"><table class="table stacks attempts" aria-label={`Attempts of ${step.name}`}>
      <thead><tr><th>Attempt</th><th>Outcome</th><th>Effect</th><th>Began</th><th>Took</th><th>Instance</th></tr></thead>
      {attempts.map((a) => (
        <tbody key={`${a.direction} ${a.attempt} ${a.round ?? 0}`}>
          <tr>
            <td data-label="Attempt">{a.direction === "undo" ? "undo " : ""}{a.attempt}{a.round !== undefined && a.round > 1 ? <span class="muted"> of round {a.round}</span> : ""}</td>
            <td><span class={`state s-${SIGNS[a.outcome]}`}><StateSign state={SIGNS[a.outcome] ?? "waiting"} />{WORDS[a.outcome] ?? a.outcome}</span>{a.spared && <span class="muted" title="The breaker was not closed: this failure does not count"> spared</span>}</td>
            <td data-label="Effect" class={a.effect === "unknown" && a.outcome !== "open" ? "s-doubt" : "muted"}>{a.effect}</td>
            <td data-label="Began"><Moment at={a.started_at} withMs /></td>
            <td data-label="Took"><Length from={a.started_at} to={a.ended_at} /></td>
            <td data-label="Instance" class="id"><Text>{a.instance}</Text></td>
          </tr>
          {(a.error || a.heartbeat_at || (a.tries ?? 0) > 1) && <tr class="said"><td colSpan={6}><Said attempt={a} /></td></tr>}
        </tbody>
      ))}
    </table></div>
  );
}

// What the agent said of an attempt: its error, its latest heartbeat.
function Said({ attempt: a }: { attempt: Attempt }) {
  return (
    <>
      {a.error && <><b><Text>{a.error.code}</Text></b>{a.error.message && <>: <Text>{a.error.message}</Text></>}</>}
      {a.heartbeat_at && <span>{a.error && ", "}heartbeat <Age at={a.heartbeat_at} />{a.message && <>: <Text>{a.message}</Text></>}{a.progress !== null && a.progress !== undefined && <code class="muted"> <Text>{JSON.stringify(a.progress).slice(0, 200)}</Text></code>}</span>}
      {(a.tries ?? 0) > 1 && <span class="muted"> {plural(a.tries as number, "call")} of the service</span>}
    </>
  );
}
