// What people did, the newest first.
import { useEffect, useState } from "preact/hooks";
import { call, Problem, withQuery } from "../../api/client.ts";
import type { AuditEntry, AuditPage } from "../../api/types.ts";
import { navigate, query } from "../../app/router.ts";
import { Age, Button, Empty, Failed, Id, Loading, Moment, Reason, Text } from "../../ui/basics.tsx";
import { Folded } from "../../ui/json.tsx";

export default function AuditListPage() {
  const task = query.value.get("task") ?? "";
  const [entries, setEntries] = useState<AuditEntry[]>([]);
  const [next, setNext] = useState<string | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [isLoading, setLoading] = useState(true);
  const read = async (cursor: string | null) => {
    setLoading(true);
    try {
      const page = await call<AuditPage>(withQuery("/v1/audit", { task, limit: 100, cursor }));
      setEntries((was) => (cursor ? [...was, ...page.entries] : page.entries));
      setNext(page.next);
      setProblem(null);
    } catch (cause) {
      setProblem(cause as Problem);
    }
    setLoading(false);
  };
  useEffect(() => void read(null), [task]);
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
      {problem && <Failed problem={problem} retry={() => void read(null)} />}
      {entries.length === 0 && !problem && (isLoading ? <Loading /> : <Empty title="Nothing is recorded" icon="audit" />)}
      {entries.length > 0 && (
        <div class="table-wrap"><table class="table stacks">
          <thead><tr><th>When</th><th>Who</th><th>Did</th><th>To</th><th>Reason</th><th>Address</th></tr></thead>
          <tbody>{entries.map((e, n) => (
            <tr key={n}>
              <td><Moment at={e.at} /> <span class="muted"><Age at={e.at} /></span></td>
              <td data-label="By"><Text>{e.actor}</Text></td><td>{e.verb}</td>
              <td class="to-cell">{e.task && <Id id={e.task} href={`/tasks/${encodeURIComponent(e.task)}`} />}{e.step && <span class="muted"> step {e.step}</span>}</td>
              <td class="wide-cell"><Reason text={e.reason ?? ""} />{e.detail && Object.keys(e.detail).length > 0 && <Folded name="Detail" value={e.detail} isOpen={false} />}</td>
              <td class="muted">{e.address ?? "–"}</td>
            </tr>
          ))}</tbody>
        </table></div>
      )}
      {next && <Button onClick={() => void read(next)} isBusy={isLoading}>Show more</Button>}
    </div>
  );
}
