// Is the installation well, and if not, what is wrong: what needs a person comes first, then the figures.
import { useMemo } from "preact/hooks";
import { useResource } from "../../api/resource.ts";
import { PACE, useSoon, useStream } from "../../api/stream.ts";
import type { AlertPage, AgentList, NodeList, Overview, Stats } from "../../api/types.ts";
import { useKeys } from "../../app/keys.ts";
import { Empty, Length, Loading, now, Panel, Shown, Text } from "../../ui/basics.tsx";
import { Chart } from "../../ui/chart.tsx";
import { count, countTo, duration, plural, time } from "../../ui/format.ts";
import { StateSign } from "../../ui/icons.tsx";
import { AlertRow, worstFirst } from "../alerts/row.tsx";
import { agentTrouble } from "../agents/trouble.ts";
import { concerns, missingAgents, type Concern } from "./concerns.ts";

export default function OverviewPage() {
  const stats = useResource<Stats>("/v1/stats", 5000);
  const overview = useResource<Overview>("/v1/overview", 10_000);
  const alerts = useResource<AlertPage>("/v1/alerts?state=open&limit=50", 10_000);
  const agents = useResource<AgentList>("/v1/agents", 10_000);
  const nodes = useResource<NodeList>("/v1/nodes", 10_000);
  const lookSoon = useSoon(() => { stats.reload(); alerts.reload(); });
  useStream(`/v1/events?${new URLSearchParams({ ...PACE, state: "error" })}`, { onRefused: stats.reload, on: { task: lookSoon, gap: lookSoon } });
  useKeys({ r: () => { for (const read of [stats, overview, alerts, agents, nodes]) read.reload(); } });
  const found = stats.data && concerns({ stats: stats.data, alerts: alerts.data, agents: agents.data, nodes: nodes.data });
  return (
    <div class="page overview">
      <header class="page-head"><h1>Overview</h1></header>
      <Shown of={stats} rows={8}>{(s) => (
        <>
          <Health concerns={found ?? []} isWhole={[alerts, agents, nodes].every((r) => r.data && !r.problem)} unread={[alerts, agents, nodes].find((r) => r.problem)?.problem?.message ?? null} />
          <States stats={s} />
          <div class="columns">
            <Panel title="Open alerts" aside={<a href="/alerts">All alerts</a>}>
              <Shown of={alerts} rows={3}>{(a) => a.alerts.length === 0
                ? <Empty title="No open alerts" icon="done" />
                : <ul class="rows">{worstFirst(a.alerts).slice(0, 6).map((alert) => <AlertRow key={alert.id} alert={alert} />)}</ul>}
              </Shown>
            </Panel>
            <div class="stack">
              <Agents agents={agents} stats={s} />
              <Nodes nodes={nodes} />
            </div>
          </div>
          <LastHour overview={overview} />
        </>
      )}</Shown>
    </div>
  );
}

function Health({ concerns: list, isWhole, unread }: { concerns: Concern[]; isWhole: boolean; unread: string | null }) {
  const isBad = list.some((c) => c.grade === "bad");
  const title = list.length > 0 ? (list.length === 1 ? "1 thing needs attention" : `${list.length} things need attention`) : isWhole ? "All is well" : unread ? "Not all could be read" : "Looking…";
  const isUnknown = list.length === 0 && !isWhole;
  return (
    <section class={`health ${isUnknown && unread ? "fair" : list.length === 0 ? "good" : isBad ? "bad" : "fair"}`} aria-live="polite">
      <div class="health-head"><StateSign state={isUnknown ? "doubt" : list.length === 0 ? "processed" : isBad ? "error" : "doubt"} /><h2>{title}</h2></div>
      {unread && <p class="muted"><Text>{unread}</Text></p>}
      {list.length > 0 && (
        <ul class="concerns">
          {list.map((c) => (
            <li key={c.text} class={c.grade}>
              <StateSign state={c.grade === "bad" ? "error" : "doubt"} />
              <p><a href={c.href}><Text>{c.text}</Text></a>{c.since && <span class="muted"> for <Length from={c.since} to={null} /></span>}</p>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

function States({ stats }: { stats: Stats }) {
  const stored = stats.stored;
  if (!stored) return <p class="note">This store cannot count its tasks without reading all of them.</p>;
  const tile = (state: string, n: number, label: string, href: string, more?: string) => (
    <a class={`tile ${n === 0 ? "zero" : ""}`} href={href}>
      <span class={`tile-label s-${state}`}><StateSign state={state} />{label}</span>
      <span class="tile-number">{countTo(n, stored.counted_to)}</span>
      <span class="tile-more">{more ?? "\u00A0"}</span>
    </a>
  );
  const { counters } = stats;
  const since = `in the last ${duration(now.value - (time(stats.started_at) ?? now.value))}`;
  return (
    <section class="tiles" aria-label="Tasks by state">
      {tile("error", stored.error, "in error", "/tasks?state=error&closed=false", "an operator decides")}
      {tile("pending", stored.pending, "pending", "/tasks?state=pending", [stored.sleeping > 0 && `${count(stored.sleeping)} wait for a time`, stored.waiting_for_locks > 0 && `${count(stored.waiting_for_locks)} for a lock`].filter(Boolean).join(", "))}
      {tile("processing", stored.processing, "processing", "/tasks?state=processing", plural(stats.open_attempts, "open attempt"))}
      {tile("compensating", stored.compensating, "compensating", "/tasks?state=compensating", "being undone")}
      {tile("processed", counters.processed, "processed", "/tasks?state=processed", since)}
      {tile("compensated", counters.compensated, "compensated", "/tasks?state=compensated", since)}
    </section>
  );
}

const middle = (list: number[]): number | null => [...list].sort((a, b) => a - b)[Math.floor(list.length / 2)] ?? null;
const highest = (list: number[]): number | null => (list.length > 0 ? Math.max(...list) : null);

function LastHour({ overview }: { overview: ReturnType<typeof useResource<Overview>> }) {
  const series = overview.data?.series ?? [];
  const { times, rates, latency } = useMemo(() => {
    const parts = series.map((s) => Date.parse(s.at));
    // At each moment, the tasks of the minute before it.
    const perMinute = (name: "submitted" | "processed" | "compensated" | "error") => series.map((_, n) => {
      const minute = series.slice(Math.max(0, n - 5), n + 1);
      return (minute.reduce((sum, s) => sum + s[name], 0) * 6) / minute.length;
    });
    const minute = (n: number, name: "p50_ms" | "p99_ms") => series.slice(Math.max(0, n - 5), n + 1).map((s) => s[name]).filter((v): v is number => v !== null);
    return {
      times: parts,
      rates: [
        { label: "submitted", color: "--muted", values: perMinute("submitted"), dash: [4, 3] },
        { label: "processed", color: "--good", values: perMinute("processed"), isFilled: true },
        { label: "compensated", color: "--back", values: perMinute("compensated") },
        { label: "error", color: "--bad", values: perMinute("error") },
      ],
      latency: [
        { label: "half within", color: "--go", values: series.map((_, n) => middle(minute(n, "p50_ms"))) },
        { label: "99 % within", color: "--muted", values: series.map((_, n) => highest(minute(n, "p99_ms"))), dash: [4, 3] },
      ],
    };
  }, [overview.data]);
  const hasLatency = series.some((s) => s.p50_ms !== null);
  return (
    <div class="columns">
      <Panel title="Tasks a minute" aside={<span class="muted">last hour</span>}>
        {overview.data && series.length > 1 ? <Chart isWhole name="Tasks a minute in the last hour" times={times} lines={rates} format={(v) => count(Math.round(v))} />
          : <div class="chart-space">{overview.data ? <Empty title="Nothing is recorded yet" icon="clock">The server has just started.</Empty> : overview.problem ? <Empty title={overview.problem.title} /> : <Loading rows={2} />}</div>}
      </Panel>
      <Panel title="From submission to end" aside={<span class="muted">last hour</span>}>
        {hasLatency ? <Chart isLog name="Time from submission to end in the last hour" times={times} lines={latency} format={(v) => duration(v)} />
          : <div class="chart-space">{overview.data ? <Empty title="No task has ended in the last hour" icon="clock" /> : <Loading rows={2} />}</div>}
      </Panel>
    </div>
  );
}

function Agents({ agents, stats }: { agents: ReturnType<typeof useResource<AgentList>>; stats: Stats }) {
  return (
    <Panel title="Agents" aside={<a href="/agents">All agents</a>}>
      <Shown of={agents} rows={2}>{({ agents: list }) => {
        const ill = list.flatMap((a) => { const t = agentTrouble(a); return t ? [{ a, t }] : []; });
        const missing = missingAgents(stats, list);
        if (list.length + missing.length === 0) return <Empty title="No agent has called yet" icon="agents" />;
        if (ill.length + missing.length === 0) return <p class="fine"><StateSign state="processed" /> {list.length === 1 ? "The agent is" : `All ${list.length} agents are`} connected, and no breaker is open.</p>;
        return (
          <ul class="rows">{missing.slice(0, 6).map((m) => (
            <li key={m.agent} class="row"><StateSign state="error" /><a class="id" href={`/tasks?agent=${encodeURIComponent(m.agent)}`}>{m.agent}</a><span class="muted">is not connected, {plural(m.waiting_tasks, "task waits", "tasks wait")} for it</span></li>
          ))}{ill.slice(0, 6).map(({ a, t }) => (
            <li key={a.agent} class="row"><StateSign state={t.grade === "bad" ? "error" : "doubt"} /><a class="id" href={`/agents?agent=${encodeURIComponent(a.agent)}`}>{a.agent}</a><span class="muted">{t.text}</span></li>
          ))}</ul>
        );
      }}</Shown>
    </Panel>
  );
}

function Nodes({ nodes }: { nodes: ReturnType<typeof useResource<NodeList>> }) {
  return (
    <Panel title="Nodes" aside={<a href="/nodes">All nodes</a>}>
      <Shown of={nodes} rows={1}>{(n) => (
        <ul class="rows">{n.nodes.slice(0, 6).map((node) => (
          <li key={node.node} class="row">
            <StateSign state={node.alive ? (node.draining ? "paused" : "processed") : "error"} />
            <span class="id">{node.node}</span>
            {node.leads && <span class="chip">leads</span>}
            <span class="muted">{node.alive ? (node.draining ? "is shutting down" : <>runs for {duration(now.value - (time(node.started_at) ?? now.value))}</>) : "does not answer"}</span>
            <span class="row-end muted">{node.version}</span>
          </li>
        ))}</ul>
      )}</Shown>
    </Panel>
  );
}

