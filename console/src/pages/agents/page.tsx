// Agents: who is connected, what waits for them, their breakers and limits.
import { useState } from "preact/hooks";
import { useResource } from "../../api/resource.ts";
import type { Agent, AgentList, Stats } from "../../api/types.ts";
import { query } from "../../app/router.ts";
import { can } from "../../app/session.ts";
import { Age, Button, Empty, Panel, Shown, Text } from "../../ui/basics.tsx";
import { count, plural } from "../../ui/format.ts";
import { StateSign } from "../../ui/icons.tsx";
import { BreakerForm } from "../task/why.tsx";
import { agentTrouble } from "./trouble.ts";

const HELD: Record<string, string> = {
  breaker: "its breaker is open", limit: "a limit is reached", "no-instance": "no instance is connected", "no-place": "all places are taken", health: "only ill instances have free places",
};

export default function AgentsPage() {
  const list = useResource<AgentList>("/v1/agents", 3000);
  const wanted = query.value.get("agent");
  const [breaker, setBreaker] = useState<{ agent: string; state: "open" | "closed" } | null>(null);
  return (
    <div class="page">
      <header class="page-head"><h1>Agents</h1></header>
      <Shown of={list}>{({ agents }) => agents.length === 0
        ? <Empty title="No agent has called yet" icon="agents">An agent is a program that executes steps. It appears here when it first asks for work.</Empty>
        : <ul class="cards">{[...agents].sort((a, b) => rank(a) - rank(b) || a.agent.localeCompare(b.agent)).map((a) => (
          <Card key={a.agent} a={a} isAt={a.agent === wanted} onBreaker={(state) => setBreaker({ agent: a.agent, state })} />
        ))}</ul>}
      </Shown>
      <Missing known={list.data?.agents ?? []} />
      {breaker && <BreakerForm {...breaker} onClose={() => setBreaker(null)} onDone={() => { setBreaker(null); list.reload(); }} />}
    </div>
  );
}

// Agents that steps wait for, and that have never called this node.
function Missing({ known }: { known: Agent[] }) {
  const stats = useResource<Stats>("/v1/stats", 10_000).data;
  const names = new Set(known.map((a) => a.agent));
  const missing = (stats?.agents ?? []).filter((a) => !names.has(a.agent) && !a.connected && a.waiting_tasks > 0);
  if (missing.length === 0) return null;
  return (
    <Panel title="Waited for, and not connected"><ul class="rows">{missing.map((a) => (
      <li class="row" key={a.agent}><StateSign state="error" /><span class="id">{a.agent}</span><a href={`/tasks?agent=${encodeURIComponent(a.agent)}`}>{plural(a.waiting_tasks, "task waits", "tasks wait")}</a><span class="row-end muted"><Age at={a.first_submitted_at} /></span></li>
    ))}</ul></Panel>
  );
}

const rank = (a: Agent) => ({ bad: 0, fair: 1, none: 2 })[agentTrouble(a)?.grade ?? "none"];

function Card({ a, isAt, onBreaker }: { a: Agent; isAt: boolean; onBreaker: (state: "open" | "closed") => void }) {
  const trouble = agentTrouble(a);
  const instances = a.instances ?? [];
  const limits = a.limits;
  return (
    <li class={`panel card ${isAt ? "at" : ""}`}>
      <div class="card-head">
        <StateSign state={trouble ? (trouble.grade === "bad" ? "error" : "doubt") : "processed"} />
        <h2 class="id">{a.agent}</h2>
        <span class="muted">{trouble ? trouble.text : "connected"}</span>
        {can("repair") && <span class="card-end">{a.breaker.state === "closed" ? <Button kind="quiet" onClick={() => onBreaker("open")}>Open the breaker…</Button> : <Button onClick={() => onBreaker("closed")}>Close the breaker…</Button>}</span>}
      </div>
      <dl class="facts-line">
        <div><dt>breaker</dt><dd class={a.breaker.state === "open" ? "s-error" : a.breaker.state === "half-open" ? "s-doubt" : ""}>{a.breaker.state}{a.breaker.reason && <span class="muted">: <Text>{a.breaker.reason}</Text></span>}</dd></div>
        <div><dt>waiting steps</dt><dd>{count(a.waiting_steps)}{a.held_by && <span class="muted">: {HELD[a.held_by] ?? a.held_by}</span>}</dd></div>
        <div><dt>open attempts</dt><dd>{count(limits.open_attempts)}</dd></div>
        {limits.concurrency !== null && <div><dt>at most</dt><dd>{limits.concurrency} at a time</dd></div>}
        {limits.rate && <div><dt>rate</dt><dd>{limits.rate}</dd></div>}
        <div><dt>tasks</dt><dd><a href={`/tasks?agent=${encodeURIComponent(a.agent)}`}>those at this agent</a></dd></div>
      </dl>
      {instances.length > 0 && (
        <div class="table-wrap"><table class="table" aria-label={`Instances of ${a.agent}`}>
          <thead><tr><th>Instance</th><th>Health</th><th class="number">Attempts</th><th class="number">Places</th><th class="number">Failures</th><th>Seen</th></tr></thead>
          <tbody>{instances.slice(0, 50).map((i) => (
            <tr key={i.instance}>
              <td class="id"><Text>{i.instance}</Text></td>
              <td><span class={`state s-${i.health === "good" ? "processed" : i.health === "poor" ? "doubt" : "error"}`}><StateSign state={i.health === "good" ? "processed" : i.health === "poor" ? "doubt" : "error"} />{i.health}</span></td>
              <td class="number">{count(i.open_attempts)}</td><td class="number">{count(i.places_given)}</td><td class="number">{count(i.failures)}</td><td class="muted"><Age at={i.seen_at} /></td>
            </tr>
          ))}</tbody>
        </table>{instances.length > 50 && <p class="muted">and {plural(instances.length - 50, "more instance")}</p>}</div>
      )}
    </li>
  );
}
