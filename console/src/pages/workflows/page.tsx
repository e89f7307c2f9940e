// The stored workflows, with what is at work and in error of each.
import { useMemo, useState } from "preact/hooks";
import { useResource } from "../../api/resource.ts";
import type { TaskPage, WorkflowList } from "../../api/types.ts";
import { useKeys } from "../../app/keys.ts";
import { can } from "../../app/session.ts";
import { Empty, Shown } from "../../ui/basics.tsx";
import { count, plural } from "../../ui/format.ts";
import { Icon } from "../../ui/icons.tsx";
import { Search } from "../../ui/search.tsx";

interface Numbers {
  of: (workflow: string) => number;
  isWhole: boolean; // otherwise there may be more
}

// Counted from one page of tasks: the API does not count by workflow.
function useNumbers(query: string): Numbers | null {
  const page = useResource<TaskPage>(can("read") ? `/v1/tasks?${query}&limit=500` : null, 15_000).data;
  return useMemo(() => {
    if (!page) return null;
    const by = new Map<string, number>();
    for (const t of page.tasks) by.set(t.workflow, (by.get(t.workflow) ?? 0) + 1);
    return { of: (workflow) => by.get(workflow) ?? 0, isWhole: page.next === null };
  }, [page]);
}

export default function WorkflowsPage() {
  const list = useResource<WorkflowList>("/v1/workflows", 30_000);
  const work = useNumbers("state=pending,processing,compensating");
  const error = useNumbers("state=error&closed=false");
  const [wanted, setWanted] = useState("");
  useKeys({ r: list.reload });
  return (
    <div class="page">
      <header class="page-head">
        <h1>Workflows</h1>
        {can("define") && <div class="page-actions"><a class="button plain" href="/workflows/new/edit"><Icon name="plus" /><span>New workflow</span></a></div>}
      </header>
      <Shown of={list}>{({ workflows }) => {
        if (workflows.length === 0) {
          return <Empty title="No workflow is stored" icon="workflows">{can("define") ? <a href="/workflows/new/edit">Write the first one</a> : "Somebody with the role define stores them."}</Empty>;
        }
        const shown = workflows.filter((w) => w.name.includes(wanted.trim().toLowerCase())).sort((a, b) => a.name.localeCompare(b.name));
        return (
          <>
            {workflows.length > 8 && <Search label="Filter by name" value={wanted} onValue={setWanted} />}
            {shown.length === 0 ? <Empty title="No workflow has this name" icon="search" /> : (
              <div class="table-wrap"><table class="table stacks">
                <thead><tr><th>Workflow</th><th class="number">Version</th><th class="number">Steps</th>{work && <th class="number">At work</th>}{error && <th class="number">In error</th>}<th>Stored as</th></tr></thead>
                <tbody>{shown.map((w) => (
                  <tr key={w.name}>
                    <td class="wide-cell"><a class="id" href={`/workflows/${w.name}`}>{w.name}</a></td>
                    <td data-label="Version" class="number">{w.version}</td><td data-label="Steps" class="number">{count(w.steps)}</td>
                    {work && <td data-label="At work" class="number"><Tally n={work.of(w.name)} isWhole={work.isWhole} href={`/tasks?workflow=${w.name}&state=pending,processing,compensating`} /></td>}
                    {error && <td data-label="In error" class="number"><Tally n={error.of(w.name)} isWhole={error.isWhole} isBad href={`/tasks?workflow=${w.name}&state=error&closed=false`} /></td>}
                    <td data-label="Stored as" class="muted">{w.format.toUpperCase()}</td>
                  </tr>
                ))}</tbody>
              </table></div>
            )}
            <p class="muted">{plural(shown.length, "workflow")}{work && !work.isWhole && ". Tasks are counted among the newest 500 of all workflows"}</p>
          </>
        );
      }}</Shown>
    </div>
  );
}

function Tally({ n, isWhole, isBad = false, href }: { n: number; isWhole: boolean; isBad?: boolean; href: string }) {
  if (n === 0) return <span class="none">{isWhole ? "0" : "–"}</span>;
  return <a class={isBad ? "s-error told" : ""} href={href}>{count(n)}{isWhole ? "" : "+"}</a>;
}
