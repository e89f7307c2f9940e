// What waits for people to decide; what waits for the reader comes first.
import { useState } from "preact/hooks";
import { useResource } from "../../api/resource.ts";
import type { ApprovalList } from "../../api/types.ts";
import { can } from "../../app/session.ts";
import { Age, Button, Empty, Id, Shown, Text } from "../../ui/basics.tsx";
import { DecideForm } from "../task/why.tsx";

type Approval = ApprovalList["approvals"][number];

export default function ApprovalsPage() {
  const list = useResource<ApprovalList>(`/v1/approvals?limit=100${can("read") ? "&all=true" : ""}`, 5000);
  const [decides, setDecides] = useState<{ of: Approval; agrees: boolean } | null>(null);
  return (
    <div class="page">
      <header class="page-head"><h1>Approvals</h1></header>
      <Shown of={list}>{({ approvals }) => {
        if (approvals.length === 0) return <Empty title="Nothing waits for a decision" icon="done" />;
        const mine = approvals.filter((a) => a.waits_for_you);
        const others = approvals.filter((a) => !a.waits_for_you);
        return (
          <>
            {mine.length > 0 && <><h2>Waits for you</h2><ul class="cards">{mine.map((a) => <Card key={a.task + a.step} a={a} onDecide={(agrees) => setDecides({ of: a, agrees })} />)}</ul></>}
            {others.length > 0 && <><h2>{mine.length > 0 ? "Waits for others" : "Waits for people"}</h2><ul class="cards">{others.map((a) => <Card key={a.task + a.step} a={a} />)}</ul></>}
          </>
        );
      }}</Shown>
      {decides && <DecideForm task={decides.of.task} step={decides.of.step} asking={decides.of.asking} question={decides.of.question} agrees={decides.agrees}
        onClose={() => setDecides(null)} onDone={() => { setDecides(null); list.reload(); }} />}
    </div>
  );
}

function Card({ a, onDecide }: { a: Approval; onDecide?: (agrees: boolean) => void }) {
  return (
    <li class="panel card">
      <blockquote><Text>{a.question ?? "No question is recorded."}</Text></blockquote>
      <p class="muted"><Id id={a.task} href={`/tasks/${encodeURIComponent(a.task)}`} /> · {a.workflow}, step {a.step} · asks {a.by.join(", ")} · {a.agreed} of {a.people} agreed · asked <Age at={a.asked_at} />{a.complete_by && <> · until <Age at={a.complete_by} /></>}</p>
      {a.votes.map((v) => <p key={v.by}><b><Text>{v.by}</Text></b> {v.agrees ? "agreed" : "rejected"}{v.comment && <>: <Text>{v.comment}</Text></>}</p>)}
      {onDecide && <div class="card-foot"><Button onClick={() => onDecide(false)}>Reject…</Button><Button kind="primary" onClick={() => onDecide(true)}>Approve…</Button></div>}
    </li>
  );
}
