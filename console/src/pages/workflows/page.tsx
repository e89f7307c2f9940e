// The workflows, each in its newest version.
import { useResource } from "../../api/resource.ts";
import type { WorkflowList } from "../../api/types.ts";
import { Empty, Shown } from "../../ui/basics.tsx";
import { count } from "../../ui/format.ts";

export default function WorkflowsPage() {
  const list = useResource<WorkflowList>("/v1/workflows", 15_000);
  return (
    <div class="page">
      <header class="page-head"><h1>Workflows</h1></header>
      <Shown of={list}>{({ workflows }) => workflows.length === 0
        ? <Empty title="No workflow is stored yet" icon="tasks">Store one: <code>intact workflow put FILE</code></Empty>
        : (
          <div class="table-wrap"><table class="table">
            <thead><tr><th>Workflow</th><th class="number">Newest version</th><th class="number">Steps</th><th>Written in</th><th>Tasks</th></tr></thead>
            <tbody>{workflows.map((w) => (
              <tr key={w.name}>
                <td><a class="id" href={`/workflows/${encodeURIComponent(w.name)}`}>{w.name}</a></td>
                <td class="number">{count(w.version)}</td><td class="number">{count(w.steps)}</td><td>{w.format.toUpperCase()}</td>
                <td><a href={`/tasks?workflow=${encodeURIComponent(w.name)}`}>its tasks</a></td>
              </tr>
            ))}</tbody>
          </table></div>
        )}
      </Shown>
    </div>
  );
}
