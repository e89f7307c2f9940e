// What needs a person, the worst first. An alert that says the same as another line here is left out.
import type { AgentList, AlertPage, NodeList, Stats } from "../../api/types.ts";
import { capital, countTo, plural } from "../../ui/format.ts";
import { agentTrouble } from "../agents/trouble.ts";
import { CALM } from "../alerts/row.tsx";

export interface Concern {
  grade: "bad" | "fair";
  text: string;
  href: string;
  since?: string | null;
}

const SAID_ELSEWHERE = new Set(["task_error", "compensation_failed", "breaker_open", "overdue_no_agent"]);

// Agents that tasks wait for, and that have never called.
export function missingAgents(stats: Stats, called: { agent: string }[]): Stats["agents"] {
  const known = new Set(called.map((a) => a.agent));
  return stats.agents.filter((a) => !a.connected && a.waiting_tasks > 0 && !known.has(a.agent));
}

export function concerns({ stats, alerts, agents, nodes }: {
  stats: Stats; alerts: AlertPage | undefined; agents: AgentList | undefined; nodes: NodeList | undefined;
}): Concern[] {
  const found: Concern[] = [];
  const add = (grade: Concern["grade"], text: string, href: string, since?: string | null) => found.push({ grade, text, href, since: since ?? null });
  if (stats.trouble) add("bad", `The state store accepts no writes: ${stats.trouble}`, "/alerts");
  for (const node of nodes?.nodes ?? []) if (!node.alive) add("bad", `Node ${node.node} does not answer`, "/nodes", node.lease_until);
  if (nodes && nodes.nodes.length > 0 && !nodes.nodes.some((n) => n.leads)) add("bad", "No node leads", "/nodes");
  if (stats.stored && stats.stored.overdue > 0)
    add("bad", `${plural(stats.stored.overdue, "task is", "tasks are")} overdue: the supervisor is behind`, "/tasks?state=processing,compensating", stats.stored.overdue_since);
  if (stats.stored && stats.stored.error > 0) {
    const n = countTo(stats.stored.error, stats.stored.counted_to);
    add("bad", `${n} ${stats.stored.error === 1 ? "task has" : "tasks have"} stopped in error`, "/tasks?state=error&closed=false");
  }
  for (const agent of agents?.agents ?? []) {
    const trouble = agentTrouble(agent);
    if (trouble) add(trouble.grade, `Agent ${agent.agent} ${trouble.text}`, `/agents?agent=${encodeURIComponent(agent.agent)}`, trouble.since);
  }
  for (const agent of missingAgents(stats, agents?.agents ?? [])) {
    add("bad", `Agent ${agent.agent} is not connected, and ${plural(agent.waiting_tasks, "task waits", "tasks wait")} for it`, `/tasks?agent=${encodeURIComponent(agent.agent)}`, agent.first_submitted_at);
  }
  for (const alert of alerts?.alerts ?? []) {
    // stats are of the node that answers, alerts of all
    const isSaid = SAID_ELSEWHERE.has(alert.condition) || (alert.condition === "store_trouble" && stats.trouble);
    if (!isSaid) add(CALM.has(alert.condition) ? "fair" : "bad", capital(alert.summary), `/alerts?alert=${encodeURIComponent(alert.id)}`, alert.first_at);
  }
  return found.sort((a, b) => Number(a.grade === "fair") - Number(b.grade === "fair"));
}
