// The nodes of the installation, and which of them leads.
import { useResource } from "../../api/resource.ts";
import type { NodeList } from "../../api/types.ts";
import { useKeys } from "../../app/keys.ts";
import { Age, Copy, Shown, Text } from "../../ui/basics.tsx";
import { StateSign } from "../../ui/icons.tsx";

const signOf = (node: NodeList["nodes"][number]) => (node.alive ? (node.draining ? "paused" : "processed") : "error");

export default function NodesPage() {
  const list = useResource<NodeList>("/v1/nodes", 3000);
  useKeys({ r: list.reload });
  return (
    <div class="page">
      <header class="page-head"><h1>Nodes</h1></header>
      <Shown of={list}>{(n) => (
        <>
          <dl class="facts-line">
            <div><dt>installation</dt><dd class="id">{n.installation} <Copy text={n.installation} label="Copy the installation's id" /></dd></div>
            <div><dt>you talk to</dt><dd class="id">{n.self}</dd></div>
          </dl>
          <div class="table-wrap"><table class="table stacks">
            <thead><tr><th>Node</th><th>State</th><th>Roles</th><th>Address</th><th>Version</th><th>Started</th><th>Lease until</th></tr></thead>
            <tbody>{n.nodes.map((node) => (
              <tr key={node.node}>
                <td class="id">{node.node} {node.leads && <span class="chip">leads</span>}</td>
                <td><span class={`state s-${signOf(node)}`}><StateSign state={signOf(node)} />{node.alive ? (node.draining ? "shutting down" : "alive") : "does not answer"}</span></td>
                <td data-label="Roles">{node.roles.join(", ")}</td><td data-label="Address" class="wide-cell"><Text>{node.url ?? "–"}</Text></td>
                <td data-label="Version">{node.version}{node.build && <span class="muted"> <Text>{node.build}</Text></span>}</td>
                <td data-label="Started"><Age at={node.started_at} /></td><td data-label="Lease until" class="muted"><Age at={node.lease_until} /></td>
              </tr>
            ))}</tbody>
          </table></div>
        </>
      )}</Shown>
    </div>
  );
}
