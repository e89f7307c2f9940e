// What waits for people to decide: first what waits for the reader, with all that is needed to decide it here.
import { useMemo } from "preact/hooks";
import { usePaged } from "../../api/paged.ts";
import type { Approval } from "../../api/types.ts";
import { useKeys } from "../../app/keys.ts";
import { can } from "../../app/session.ts";
import { Empty } from "../../ui/basics.tsx";
import { plural } from "../../ui/format.ts";
import { PagedList } from "../../ui/paged.tsx";
import { ApprovalCard } from "./card.tsx";

// Which deadline comes first.
export const urgent = (a: Approval, b: Approval) => (a.complete_by ?? "~").localeCompare(b.complete_by ?? "~") || (a.asked_at ?? "~").localeCompare(b.asked_at ?? "~");
const keyOf = (a: Approval) => `${a.task} ${a.step} ${a.asking}`;

export default function ApprovalsPage() {
  const list = usePaged<Approval>(`/v1/approvals?limit=100${can("read") || can("link") ? "&all=true" : ""}`, "approvals", 5000);
  useKeys({ r: list.reload });
  const [mine, others] = useMemo(() => {
    const all = [...(list.rows ?? [])].sort(urgent);
    return [all.filter((a) => a.waits_for_you), all.filter((a) => !a.waits_for_you)];
  }, [list.rows]);
  return (
    <div class="page">
      <header class="page-head"><h1>Approvals</h1></header>
      <PagedList of={list} empty={<Empty title="Nothing waits for a decision" icon="done">When a step asks a group of yours, it appears here.</Empty>}>{() => (
        <>
          <section class="stack" aria-labelledby="mine">
            <h2 id="mine">{mine.length > 0 ? `${plural(mine.length, "decision")} ${mine.length === 1 ? "waits" : "wait"} for you` : "Waits for you"}</h2>
            {mine.length === 0 ? <p class="panel muted">Nothing: {can("approve") ? "no group of yours is asked, or you have decided." : "your token may not decide. It needs the role approve."}</p>
              : <ul class="cards">{mine.map((a) => <ApprovalCard key={keyOf(a)} a={a} onDecided={list.reload} />)}</ul>}
          </section>
          {others.length > 0 && (
            <section class="stack" aria-labelledby="others">
              <h2 id="others">Waits for others</h2>
              <ul class="cards">{others.map((a) => <ApprovalCard key={keyOf(a)} a={a} onDecided={list.reload} />)}</ul>
            </section>
          )}
        </>
      )}</PagedList>
    </div>
  );
}
