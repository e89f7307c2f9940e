// One question: who asks what, who has said what, until when, on what grounds, and the answer.
import { useId, useState } from "preact/hooks";
import { call, Problem, taskPath } from "../../api/client.ts";
import { useResource } from "../../api/resource.ts";
import type { Approval, Task } from "../../api/types.ts";
import { announce } from "../../app/announce.ts";
import { allowsFor, session } from "../../app/session.ts";
import { Age, Button, Id, Loading, Moment, now, Tags, Text } from "../../ui/basics.tsx";
import { time } from "../../ui/format.ts";
import { Icon, StateSign } from "../../ui/icons.tsx";
import { Folded, Json } from "../../ui/json.tsx";

const SOON = 3_600_000;
const AGAIN = 30_000; // an input may be corrected, an output supplied, while people decide

export function ApprovalCard({ a, onDecided }: { a: Approval; onDecided: () => void }) {
  const roles = session.value?.roles ?? [];
  const mayRead = allowsFor(roles, "read", a.workflow);
  const isMine = a.waits_for_you;
  const [isOpen, setOpen] = useState(isMine);
  return (
    <li class="panel card approval">
      <blockquote><Text>{a.question ?? "No question is recorded."}</Text></blockquote>
      <dl class="facts-line">
        <div><dt>task</dt><dd><Id id={a.task} {...(mayRead ? { href: `/tasks/${encodeURIComponent(a.task)}?step=${encodeURIComponent(a.step)}` } : {})} /></dd></div>
        <div><dt>step</dt><dd>{a.step} <span class="muted">of {a.workflow}</span></dd></div>
        <div><dt>asks</dt><dd>{a.by.map((g) => <span class="tag" key={g}>{g}</span>)}</dd></div>
        <div><dt>asked</dt><dd>{a.asked_at ? <Age at={a.asked_at} /> : "not yet"}{a.asking > 1 && <span class="muted"> for the {a.asking === 2 ? "second" : `${a.asking}th`} time: earlier votes are void</span>}</dd></div>
        {a.complete_by && <div><dt>decide by</dt><dd class={(time(a.complete_by) as number) - now.value < SOON ? "s-error told" : ""}><Moment at={a.complete_by} />, <Age at={a.complete_by} /></dd></div>}
        {a.escalates_at && <div><dt>{(time(a.escalates_at) as number) > now.value ? "escalates" : "escalated"}</dt><dd><Age at={a.escalates_at} /> to {a.escalates_to.join(", ")}</dd></div>}
      </dl>
      <div class="approval-body">
        {mayRead && (
          <div class="details">
            <Button kind="quiet" icon={isOpen ? "down" : "right"} aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>Details</Button>
            {isOpen && <Details id={a.task} />}
          </div>
        )}
        <div class="approval-end">
          <Votes a={a} />
          {isMine && <Decide a={a} onDecided={onDecided} />}
        </div>
      </div>
    </li>
  );
}

function Votes({ a }: { a: Approval }) {
  return (
    <div class="votes">
      <p class="votes-count">
        <span class="votes-marks" aria-hidden="true">{Array.from({ length: Math.min(a.people, 20) }, (_, n) => <StateSign key={n} state={n < a.agreed ? "processed" : "pending"} />)}</span>
        {a.agreed} of {a.people} agreed
      </p>
      {a.votes.map((v) => (
        <p key={v.by + v.at}><b><Text>{v.by}</Text></b> {v.agrees ? "agreed" : "rejected"} <span class="muted"><Age at={v.at} /></span>{v.comment && <>: <Text>{v.comment}</Text></>}</p>
      ))}
    </div>
  );
}

// The task as far as it helps to decide: who wants it, with what input, and what came out of the steps before.
function Details({ id }: { id: string }) {
  const task = useResource<Task>(taskPath(id), AGAIN);
  if (!task.data) return task.problem ? <p class="muted"><Text>{task.problem.message}</Text></p> : <Loading rows={2} />;
  const t = task.data;
  const before = t.steps.filter((s) => s.state === "completed" && s.output !== null && s.output !== undefined);
  return (
    <div class="details">
      <p class="muted">Submitted <Age at={t.submitted_at} />{t.owner && <> by <b><Text>{t.owner}</Text></b></>} <Tags tags={t.tags} /></p>
      <Json value={t.input ?? null} name="the input of the task" />
      {before.map((s) => <Folded key={s.name} name={`Output of ${s.name}`} value={s.output} isOpen={false} />)}
    </div>
  );
}

function Decide({ a, onDecided }: { a: Approval; onDecided: () => void }) {
  const [comment, setComment] = useState("");
  const [problem, setProblem] = useState<string | null>(null);
  const [busy, setBusy] = useState<"approve" | "reject" | null>(null);
  const id = useId();
  const decide = async (verb: "approve" | "reject") => {
    if (verb === "reject" && comment.trim() === "") {
      setProblem("A rejection requires a comment.");
      document.getElementById(id)?.focus();
      return;
    }
    setBusy(verb);
    setProblem(null);
    try {
      const said = await call<{ agreed: number; people: number }>(`/v1/approvals/${encodeURIComponent(a.task)}/${encodeURIComponent(a.step)}/${verb}`, {
        method: "POST", body: { asking: a.asking, ...(comment.trim() ? { comment: comment.trim() } : {}) },
      });
      announce(verb === "approve" ? `Approved, ${said.agreed} of ${said.people} agreed` : "Rejected");
      onDecided();
    } catch (cause) {
      setProblem((cause as Problem).message);
      setBusy(null);
      if ((cause as Problem).status === 409) onDecided();
    }
  };
  return (
    <form class="decide" onSubmit={(e) => { e.preventDefault(); void decide("approve"); }}>
      <label for={id}>Comment <span class="muted">(a rejection needs one)</span></label>
      <textarea id={id} rows={2} maxLength={1000} value={comment} onInput={(e) => setComment(e.currentTarget.value)} />
      {problem && <p class="note error" role="alert"><Icon name="warning" /><Text>{problem}</Text></p>}
      <div class="card-foot">
        <span class="muted decide-says">{a.people - a.agreed === 1 ? "Your agreement lets the task go on. " : ""}One rejection fails the step. A vote is final.</span>
        <Button kind="danger" isBusy={busy === "reject"} disabled={busy !== null} onClick={() => void decide("reject")}>Reject</Button>
        <Button kind="primary" type="submit" isBusy={busy === "approve"} disabled={busy !== null}>Approve</Button>
      </div>
    </form>
  );
}
