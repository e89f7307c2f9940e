// What waits for people to decide: first what waits for the reader, with all that is needed to decide it here.
import { useMemo } from "preact/hooks";
import { usePaged, type Paged } from "../../api/paged.ts";
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
  // Two lists, each in pages: among what waits for everybody, what waits for the reader might be far behind.
  const mayDecide = can("approve");
  const seesAll = can("read") || can("link");
  const forMe = usePaged<Approval>(mayDecide ? "/v1/approvals?limit=100" : null, "approvals", 5000);
  const forAll = usePaged<Approval>(seesAll ? "/v1/approvals?limit=100&all=true" : null, "approvals", 5000);
  const reload = () => { forMe.reload(); forAll.reload(); };
  useKeys({ r: reload });
  const mine = useMemo(() => (forMe.rows ?? []).filter((a) => a.waits_for_you).sort(urgent), [forMe.rows]);
  const others = useMemo(() => (forAll.rows ?? []).filter((a) => !a.waits_for_you).sort(urgent), [forAll.rows]);
  const cards = (list: Approval[]) => <ul class="cards">{list.map((a) => <ApprovalCard key={keyOf(a)} a={a} onDecided={reload} />)}</ul>;
  const isNone = (list: Paged<Approval>, isRead: boolean) => !isRead || (list.rows?.length === 0 && !list.hasMore);
  const isQuiet = isNone(forMe, mayDecide) && isNone(forAll, seesAll) && !forMe.problem && !forAll.problem;
  return (
    <div class="page">
      <header class="page-head"><h1>Approvals</h1></header>
      {isQuiet && <Empty title="Nothing waits for a decision" icon="done">When a step asks a group of yours, it appears here.</Empty>}
      {!isQuiet && (
        <section class="stack" aria-labelledby="mine">
          <h2 id="mine">{mine.length > 0 ? `${plural(mine.length, "decision")}${forMe.hasMore ? " or more" : ""} ${mine.length === 1 && !forMe.hasMore ? "waits" : "wait"} for you` : "Waits for you"}</h2>
          {!mayDecide && <p class="panel muted">Nothing: your token may not decide. It needs the role approve.</p>}
          {mayDecide && <PagedList of={forMe} empty={!forMe.hasMore && <Nothing />}>{() => (mine.length > 0 ? cards(mine) : !forMe.hasMore && <Nothing />)}</PagedList>}
        </section>
      )}
      {!isQuiet && seesAll && (others.length > 0 || forAll.hasMore || forAll.problem) && (
        <section class="stack" aria-labelledby="others">
          <h2 id="others">Waits for others</h2>
          <PagedList of={forAll} empty={null}>{() => others.length > 0 && cards(others)}</PagedList>
        </section>
      )}
    </div>
  );
}

function Nothing() {
  return <p class="panel muted">Nothing: no group of yours is asked, or you have decided.</p>;
}
