// Operations on many tasks, the newest first.
import { useResource } from "../../api/resource.ts";
import type { Operation, OperationPage } from "../../api/types.ts";
import { useKeys } from "../../app/keys.ts";
import { Age, Empty, Shown, Text } from "../../ui/basics.tsx";
import { count } from "../../ui/format.ts";
import { StateSign } from "../../ui/icons.tsx";

export const stateOf = (o: Operation) => (o.state === "running" ? "processing" : o.state === "stopped" ? "paused" : refusedOf(o) + o.failed > 0 ? "doubt" : "processed");
export const refusedOf = (o: Operation) => Object.values(o.refused).reduce((a, b) => a + b, 0);

export default function OperationsPage() {
  const page = useResource<OperationPage>("/v1/operations?limit=100", 5000);
  useKeys({ r: page.reload });
  return (
    <div class="page">
      <header class="page-head"><h1>Operations</h1><span class="muted">one verb for many tasks</span></header>
      <Shown of={page}>{({ operations }) => operations.length === 0
        ? <Empty title="No operation was started yet" icon="operations"><a href="/tasks">Filter the tasks</a>, then choose “Operate on all”.</Empty>
        : (
          <div class="table-wrap"><table class="table stacks">
            <thead><tr><th>State</th><th>Verb</th><th>Reason</th><th class="number">Matched</th><th class="number">Done</th><th class="number">Refused</th><th>By</th><th>Started</th></tr></thead>
            <tbody>{operations.map((o) => (
              <tr key={o.id}>
                <td><span class={`state s-${stateOf(o)}`}><StateSign state={stateOf(o)} />{o.state}</span></td>
                <td><a class="id" href={`/operations/${encodeURIComponent(o.id)}`}>{o.verb}</a></td>
                <td class="wide-cell"><Text>{o.reason}</Text></td>
                <td data-label="Matched" class="number">{count(o.matched)}</td><td data-label="Done" class="number">{count(o.done)}</td><td data-label="Refused" class={`number ${refusedOf(o) > 0 ? "s-doubt told" : ""}`}>{count(refusedOf(o))}</td>
                <td data-label="By"><Text>{o.by}</Text></td><td class="muted"><Age at={o.started_at} /></td>
              </tr>
            ))}</tbody>
          </table></div>
        )}
      </Shown>
    </div>
  );
}
