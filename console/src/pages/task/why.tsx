// The answer to "why does it not go on", and what would change that: its commands as buttons.
import { useState } from "preact/hooks";
import { call, Problem, taskPath } from "../../api/client.ts";
import type { Reason, Task, Why } from "../../api/types.ts";
import { movesOf, type Suggestion } from "../../actions/suggested.ts";
import { labelOf, verb, type Arguments, type VerbName } from "../../actions/verbs.ts";
import { announce } from "../../app/announce.ts";
import { can, mayDecide } from "../../app/session.ts";
import { Age, Button, Failed, Loading, Text } from "../../ui/basics.tsx";
import { CommandLine, Dialog, Field, JsonInput, readJson } from "../../ui/dialog.tsx";
import { Icon, StateSign } from "../../ui/icons.tsx";
import { capital } from "../../ui/format.ts";
import { commandLine } from "../../ui/shell.ts";

const STOPPED = new Set(["failed", "undo-failed", "pivot-unclear", "child-stopped", "deadline", "stopped", "store-trouble"]);
const ENDED: Record<string, string> = { processed: "processed", compensated: "compensated", closed: "closed" };
const DOUBT = new Set(["no-agent", "breaker-open", "breaker-trials", "owner-gone", "overdue", "deadline-due", "in-doubt", "late", "health"]);

const signOf = (kind: string) => ENDED[kind] ?? (STOPPED.has(kind) ? "error" : DOUBT.has(kind) ? "doubt" : kind === "paused" ? "paused" : kind.startsWith("undo") ? "compensating" : "processing");

type Act = (verb: VerbName, given: Arguments) => void;

export function WhyCard({ why, task, onAct, onChanged }: {
  why: { data: Why | undefined; problem: Problem | undefined; reload: () => void }; task: Task; onAct: Act; onChanged: () => void;
}) {
  const [showsAll, setShowsAll] = useState(false);
  if (!why.data) return <section class="why">{why.problem ? <Failed problem={why.problem} retry={why.reload} /> : <Loading rows={2} />}</section>;
  const { summary, reasons, messages, alerts } = why.data;
  const first = reasons[0] as Reason;
  const kind = signOf(first.kind);
  return (
    <section class={`why s-${kind}`} aria-label="Why">
      <div class="why-head">
        <StateSign state={kind} />
        <p class="why-summary" role="status"><Text>{withoutName(summary, task.id)}</Text></p>
      </div>
      <ReasonBody reason={first} task={task} onAct={onAct} onChanged={onChanged} />
      {reasons.length > 1 && (
        <div class="why-more">
          <Button kind="quiet" icon={showsAll ? "down" : "right"} aria-expanded={showsAll} onClick={() => setShowsAll(!showsAll)}>{reasons.length - 1} more {reasons.length === 2 ? "reason" : "reasons"}</Button>
          {showsAll && reasons.slice(1).map((r, n) => (
            <div class="why-other" key={n}><p><StateSign state={signOf(r.kind)} /> <Text>{r.text}</Text></p><ReasonBody reason={r} task={task} onAct={onAct} onChanged={onChanged} /></div>
          ))}
        </div>
      )}
      {messages.length > 0 && <p class="why-note"><Icon name="warning" /> {messages.length} status {messages.length === 1 ? "message was" : "messages were"} not delivered.</p>}
      {alerts.map((a) => <p class="why-note" key={a.id}><Icon name="alerts" /> <a href={`/alerts?alert=${encodeURIComponent(a.id)}`}><Text>{capital(a.summary)}</Text></a></p>)}
    </section>
  );
}

// The summary begins with the id, which is the title of the page.
function withoutName(summary: string, id: string): string {
  return summary.startsWith(`Task ${id} `) ? `The task ${summary.slice(id.length + 6)}` : summary;
}

function ReasonBody({ reason, task, onAct, onChanged }: { reason: Reason; task: Task; onAct: Act; onChanged: () => void }) {
  const { text, commands } = movesOf(reason.moves);
  return (
    <>
      <p class="why-times muted">
        {reason.since && <>since <Age at={reason.since} /></>}{reason.since && reason.until && ", "}{reason.until && <>until <Age at={reason.until} /></>}
      </p>
      <p class="why-moves"><Text>{text}</Text></p>
      <div class="why-buttons">{commands.map((c, n) => <Suggested key={c.line} suggestion={c} task={task} isFirst={n === 0} onAct={onAct} onChanged={onChanged} />)}</div>
    </>
  );
}

function Suggested({ suggestion: s, task, isFirst, onAct, onChanged }: {
  suggestion: Suggestion; task: Task; isFirst: boolean; onAct: Act; onChanged: () => void;
}) {
  const [isOpen, setOpen] = useState(false);
  const kind = isFirst ? "primary" : "plain";
  if (s.kind === "link") return <a class={`button ${kind}`} href={s.href}><span>{s.label}</span></a>;
  if (s.kind === "line") return <CommandLine line={s.line} />;
  if (s.kind === "verb") {
    if (!can("repair") || s.task !== task.id) return null;
    const isFinal = verb(s.verb)?.isFinal;
    return <Button kind={isFinal ? (isFirst ? "danger" : "plain") : kind} title={s.line} onClick={() => onAct(s.verb, s.given)}>{labelOf(s.verb, s.given.step)}…</Button>;
  }
  if (s.kind === "decide") {
    const asked = task.steps.find((t) => t.name === s.step)?.approval;
    if (!mayDecide([...(asked?.by ?? []), ...(asked?.escalates_to ?? [])])) return null;
  } else if (!can("repair")) return null;
  const label = s.kind === "signal" ? `Send signal ${s.name}…` : s.kind === "breaker" ? `Close the breaker of ${s.agent}…` : s.agrees ? "Approve…" : "Reject…";
  return (
    <>
      <Button kind={s.kind === "decide" && !s.agrees ? "plain" : kind} title={s.line} onClick={() => setOpen(true)}>{label}</Button>
      {isOpen && s.kind === "signal" && <SignalForm task={s.task} name={s.name} onClose={() => setOpen(false)} onDone={() => { setOpen(false); onChanged(); }} />}
      {isOpen && s.kind === "decide" && <DecideForm {...s} onClose={() => setOpen(false)} onDone={() => { setOpen(false); onChanged(); }} />}
      {isOpen && s.kind === "breaker" && <BreakerForm agent={s.agent} state="closed" onClose={() => setOpen(false)} onDone={() => { setOpen(false); onChanged(); }} />}
    </>
  );
}

function useSend(onDone: () => void) {
  const [problem, setProblem] = useState<string | null>(null);
  const [isBusy, setBusy] = useState(false);
  const send = async (path: string, body: unknown, said: string) => {
    setBusy(true);
    try {
      await call(path, { method: "POST", body });
      announce(said);
      onDone();
    } catch (cause) {
      setProblem((cause as Problem).message);
      setBusy(false);
    }
  };
  return { problem, setProblem, isBusy, send };
}

const Mistake = ({ text }: { text: string | null }) => (text ? <p class="note error" role="alert"><Icon name="warning" /><Text>{text}</Text></p> : null);

function SignalForm({ task, name, onClose, onDone }: { task: string; name: string; onClose: () => void; onDone: () => void }) {
  const [text, setText] = useState("{}");
  const { problem, setProblem, isBusy, send } = useSend(onDone);
  const value = readJson(text);
  return (
    <Dialog title={<>Send signal <span class="dialog-of">{name}</span></>} onClose={onClose}
      onSubmit={() => ("value" in value ? void send(`${taskPath(task)}/signals/${encodeURIComponent(name)}`, value.value, "Signal sent") : setProblem(value.mistake))}
      foot={<><Button onClick={onClose}>Cancel</Button><Button kind="primary" type="submit" isBusy={isBusy}>Send</Button></>}>
      <p class="says">The first step that waits for this name takes it, now or later.</p>
      <Field label="Its value (JSON)">{(id, described) => <JsonInput id={id} value={text} onValue={setText} described={described} rows={4} />}</Field>
      <Mistake text={problem} />
      <CommandLine line={commandLine(["signal", task, name, ["--data", "value" in value ? JSON.stringify(value.value) : "..."]])} />
    </Dialog>
  );
}

export function DecideForm({ task, step, agrees, asking, question, onClose, onDone }: {
  task: string; step: string; agrees: boolean; asking?: number; question?: string | null; onClose: () => void; onDone: () => void;
}) {
  const [comment, setComment] = useState("");
  const { problem, setProblem, isBusy, send } = useSend(onDone);
  const verbName = agrees ? "approve" : "reject";
  const submit = () => {
    if (!agrees && comment.trim() === "") return setProblem("A rejection requires a comment.");
    void send(`/v1/approvals/${encodeURIComponent(task)}/${encodeURIComponent(step)}/${verbName}`,
      { ...(comment.trim() ? { comment: comment.trim() } : {}), ...(asking ? { asking } : {}) }, agrees ? "Approved" : "Rejected");
  };
  return (
    <Dialog title={<>{agrees ? "Approve" : "Reject"} <span class="dialog-of">{task}</span></>} onClose={onClose} onSubmit={submit}
      foot={<><Button onClick={onClose}>Cancel</Button><Button kind={agrees ? "primary" : "danger"} type="submit" isBusy={isBusy}>{agrees ? "Approve" : "Reject"}</Button></>}>
      {question && <blockquote><Text>{question}</Text></blockquote>}
      <p class="says">{agrees ? "Your agreement is recorded under your name. When enough people agree, the task continues." : "One rejection is enough: the step fails for good."}</p>
      <Field label={agrees ? "Comment" : "Comment (required)"}>{(id) => <textarea id={id} rows={3} autofocus value={comment} maxLength={1000} onInput={(e) => setComment(e.currentTarget.value)} />}</Field>
      <Mistake text={problem} />
      <CommandLine line={commandLine([verbName, task, step, ["--asking", asking ? String(asking) : undefined], ["--comment", comment.trim() || undefined]])} />
    </Dialog>
  );
}

export function BreakerForm({ agent, state, onClose, onDone }: { agent: string; state: "open" | "closed"; onClose: () => void; onDone: () => void }) {
  const [reason, setReason] = useState("");
  const { problem, setProblem, isBusy, send } = useSend(onDone);
  const word = state === "open" ? "Open" : "Close";
  return (
    <Dialog title={<>{word} the breaker of <span class="dialog-of">{agent}</span></>} onClose={onClose}
      onSubmit={() => (reason.trim() ? void send(`/v1/agents/${encodeURIComponent(agent)}/breaker`, { state, reason: reason.trim() }, `Breaker ${state}`) : setProblem("Say why: the audit keeps it."))}
      foot={<><Button onClick={onClose}>Cancel</Button><Button kind={state === "open" ? "danger" : "primary"} type="submit" isBusy={isBusy}>{word}</Button></>}>
      <p class="says">{state === "open" ? "No step of this agent starts until it is closed. Running attempts may end. Waiting uses up no attempts." : "All steps that wait for this agent start."}</p>
      <Field label="Reason" hint="Kept in the audit.">{(id, described) => <input id={id} value={reason} autofocus autocomplete="off" aria-describedby={described} maxLength={159} onInput={(e) => setReason(e.currentTarget.value)} />}</Field>
      <Mistake text={problem} />
      <CommandLine line={commandLine(["agent", state === "open" ? "open" : "close", agent, ["--reason", reason.trim() || "..."]])} />
    </Dialog>
  );
}
