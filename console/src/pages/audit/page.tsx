// What people did, the newest first.
import { withQuery } from "../../api/client.ts";
import { usePaged } from "../../api/paged.ts";
import type { AuditEntry } from "../../api/types.ts";
import { useKeys } from "../../app/keys.ts";
import { navigate, query } from "../../app/router.ts";
import { Age, Button, Empty, Id, Moment, Reason, Text } from "../../ui/basics.tsx";
import { Folded } from "../../ui/json.tsx";
import { PagedList } from "../../ui/paged.tsx";
import { keysOf } from "./keys.ts";

export default function AuditListPage() {
  const task = query.value.get("task") ?? "";
  const entries = usePaged<AuditEntry>(withQuery("/v1/audit", { task, limit: 100 }), "entries", 10_000);
  useKeys({ r: entries.reload });
  return (
    <div class="page">
      <header class="page-head"><h1>Audit</h1></header>
      <form class="filter-line" onSubmit={(e) => {
        e.preventDefault();
        navigate(withQuery("/audit", { task: String(new FormData(e.currentTarget).get("task") ?? "").trim() }));
      }}>
        <input name="task" aria-label="Only this task" placeholder="Only the task with this id" defaultValue={task} autocomplete="off" />
        <Button type="submit">Filter</Button>
        {task && <Button kind="quiet" onClick={() => navigate("/audit")}>Remove</Button>}
      </form>
      <PagedList of={entries} empty={<Empty title="Nothing is recorded" icon="audit" />}>{(rows) => <Entries rows={rows} />}</PagedList>
    </div>
  );
}

function Entries({ rows }: { rows: AuditEntry[] }) {
  const keys = keysOf(rows);
  return (
    <div class="table-wrap"><table class="table stacks">
      <thead><tr><th>When</th><th>Who</th><th>Did</th><th>To</th><th>Reason</th><th>Address</th></tr></thead>
      <tbody>{rows.map((e, n) => (
        <tr key={keys[n]}>
          <td><Moment at={e.at} /> <span class="muted"><Age at={e.at} /></span></td>
          <td data-label="By"><Text>{e.actor}</Text></td><td>{e.verb}</td>
          <td class="to-cell">{e.task && <Id id={e.task} href={`/tasks/${encodeURIComponent(e.task)}`} />}{e.step && <span class="muted"> step {e.step}</span>}</td>
          <td class="wide-cell"><Reason text={e.reason ?? ""} />{e.detail && Object.keys(e.detail).length > 0 && <Folded name="Detail" value={e.detail} isOpen={false} />}</td>
          <td class="muted">{e.address ?? "–"}</td>
        </tr>
      ))}</tbody>
    </table></div>
  );
}
