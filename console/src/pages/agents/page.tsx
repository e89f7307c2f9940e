// Agents: who is connected, why steps wait for one, their instances and places, breakers and limits.
import { useState } from "preact/hooks";
import { useResource } from "../../api/resource.ts";
import type { Agent, AgentList, Stats } from "../../api/types.ts";
import { useKeys } from "../../app/keys.ts";
import { query } from "../../app/router.ts";
import { Age, Empty, Panel, Shown } from "../../ui/basics.tsx";
import { plural } from "../../ui/format.ts";
import { StateSign } from "../../ui/icons.tsx";
import { Search } from "../../ui/search.tsx";
import { BreakerForm } from "../task/why.tsx";
import { AgentCard, type AgentAct } from "./card.tsx";
import { NOTHING, type Waiting } from "./model.ts";
import { ResetSettings, Settings } from "./settings.tsx";
import { agentTrouble } from "./trouble.ts";

export default function AgentsPage() {
  const list = useResource<AgentList>("/v1/agents", 3000);
  const stats = useResource<Stats>("/v1/stats", 5000).data;
  const at = query.value.get("agent");
  const [act, setAct] = useState<{ agent: string; kind: AgentAct } | null>(null);
  const [wanted, setWanted] = useState("");
  useKeys({ r: list.reload });
  const close = () => setAct(null);
  const done = () => { setAct(null); list.reload(); };
  return (
    <div class="page">
      <header class="page-head"><h1>Agents</h1></header>
      <Shown of={list}>{({ agents }) => {
        if (agents.length === 0) return <Empty title="No agent has called yet" icon="agents">An agent is a program that executes steps. It appears here when it first asks for work.</Empty>;
        const shown = agents.filter((a) => a.agent.includes(wanted.trim())).sort((a, b) => rank(a) - rank(b) || a.agent.localeCompare(b.agent));
        return (
          <>
            {agents.length > 8 && <Search label="Filter by name" value={wanted} onValue={setWanted} />}
            {shown.length === 0 && <Empty title="No agent has this name" icon="search" />}
            <ul class="cards joined">{shown.map((a) => <AgentCard key={a.agent} a={a} waiting={waitingFor(stats, a.agent)} isAt={a.agent === at} onAct={(kind) => setAct({ agent: a.agent, kind })} />)}</ul>
          </>
        );
      }}</Shown>
      <Missing stats={stats} known={list.data?.agents ?? []} />
      {act?.kind === "open" && <BreakerForm agent={act.agent} state="open" onClose={close} onDone={done} />}
      {act?.kind === "close" && <BreakerForm agent={act.agent} state="closed" onClose={close} onDone={done} />}
      {act?.kind === "settings" && <Settings agent={act.agent} onClose={close} onDone={done} />}
      {act?.kind === "reset" && <ResetSettings agent={act.agent} onClose={close} onDone={done} />}
    </div>
  );
}

function waitingFor(stats: Stats | undefined, agent: string): Waiting {
  const found = stats?.agents.find((a) => a.agent === agent);
  return found ? { tasks: found.waiting_tasks, isLeast: found.waiting_tasks >= (stats?.stored?.agents_counted_to ?? Infinity), since: found.first_submitted_at } : NOTHING;
}

// Agents that steps wait for, and that have never called this node.
function Missing({ stats, known }: { stats: Stats | undefined; known: Agent[] }) {
  const names = new Set(known.map((a) => a.agent));
  const missing = (stats?.agents ?? []).filter((a) => !names.has(a.agent) && !a.connected && a.waiting_tasks > 0);
  if (missing.length === 0) return null;
  return (
    <Panel title="Waited for, and not connected"><ul class="rows">{missing.map((a) => (
      <li class="row" key={a.agent}><StateSign state="error" /><span class="id">{a.agent}</span> <a href={`/tasks?agent=${encodeURIComponent(a.agent)}`}>{plural(a.waiting_tasks, "task waits", "tasks wait")}</a><span class="row-end muted">the oldest <Age at={a.first_submitted_at} /></span></li>
    ))}</ul></Panel>
  );
}

const rank = (a: Agent) => ({ bad: 0, fair: 1, none: 2 })[agentTrouble(a)?.grade ?? "none"];
