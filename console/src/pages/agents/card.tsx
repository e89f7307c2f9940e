// One agent.
import { useState } from "preact/hooks";
import type { Agent } from "../../api/types.ts";
import { can } from "../../app/session.ts";
import { Age, Button, Length, Menu, Text } from "../../ui/basics.tsx";
import { count, plural } from "../../ui/format.ts";
import { Icon, StateSign } from "../../ui/icons.tsx";
import { heldText, placesOf, type Waiting } from "./model.ts";
import { agentTrouble } from "./trouble.ts";

export type AgentAct = "open" | "close" | "settings" | "reset";

const SHOWN = 50; // instances
const HEALTH = { good: "processed", poor: "doubt", ill: "error" } as const;

export function AgentCard({ a, waiting, isAt, onAct }: { a: Agent; waiting: Waiting; isAt: boolean; onAct: (act: AgentAct) => void }) {
  const trouble = agentTrouble(a);
  const held = heldText(a, waiting);
  const instances = a.instances ?? [];
  const isIll = instances.some((i) => i.health !== "good");
  const [isOpen, setOpen] = useState(isAt || isIll);
  const { used, free } = placesOf(a);
  return (
    <li class={`panel card agent-card ${isAt ? "at" : ""}`}>
      <div class="card-head">
        <StateSign state={trouble ? (trouble.grade === "bad" ? "error" : "doubt") : held ? "doubt" : "processed"} />
        <h2 class="id">{a.agent}</h2>
        <span class={trouble ? `s-${trouble.grade === "bad" ? "error" : "doubt"} told` : "muted"}>{trouble ? trouble.text : "connected"}</span>
        <span class="card-end">
          <a class="button quiet" href={`/tasks?agent=${encodeURIComponent(a.agent)}`} title={`Tasks that are at agent ${a.agent}`}>Its tasks</a>
          {instances.length > 0 && <Button kind="quiet" icon={isOpen ? "down" : "right"} aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>{plural(instances.length, "instance")}</Button>}
          <Verbs a={a} onAct={onAct} />
        </span>
      </div>
      {held && <p class="note warning"><Icon name="warning" /><span><b>{held.text}</b> {held.remedy}</span></p>}
      <dl class="facts-line">
        <div><dt>attempts</dt><dd><Places used={used} free={free} /></dd></div>
        <div><dt>waiting</dt><dd>{waiting.tasks + a.waiting_steps === 0 ? "nothing" : <a href={`/tasks?agent=${encodeURIComponent(a.agent)}&state=pending,processing,compensating`}>{[a.waiting_steps > 0 && plural(a.waiting_steps, "step"), waiting.tasks > 0 && `${plural(waiting.tasks, "task")}${waiting.isLeast ? " or more" : ""}`].filter(Boolean).join(", ")}</a>}{waiting.since && waiting.tasks > 0 && <span class="muted">, the oldest <Age at={waiting.since} /></span>}</dd></div>
        <div><dt>breaker</dt><dd>
          <span class={a.breaker.state === "open" ? "s-error told" : a.breaker.state === "half-open" ? "s-doubt told" : ""}>{a.breaker.state}</span>
          {a.breaker.since && a.breaker.state !== "closed" && <> for <Length from={a.breaker.since} to={null} /></>}
          {a.breaker.until && <span class="muted">, trials <Age at={a.breaker.until} /></span>}{a.breaker.reason && <span class="muted">: <Text>{a.breaker.reason}</Text></span>}
        </dd></div>
        <Limits a={a} />
      </dl>
      {isOpen && instances.length > 0 && <InstanceTable agent={a.agent} instances={instances} />}
    </li>
  );
}

function Verbs({ a, onAct }: { a: Agent; onAct: (act: AgentAct) => void }) {
  const isClosed = a.breaker.state === "closed";
  const entries = [
    ...(can("define") || can("repair") ? [{ label: "Settings…", hint: "Limits, and when the breaker opens", act: () => onAct("settings") }, { label: "Reset the settings…", hint: "All get their defaults", isFinal: true, act: () => onAct("reset") }] : []),
    ...(can("repair") && isClosed ? [{ label: "Open the breaker…", hint: "Nothing starts until it is closed", isFinal: true, act: () => onAct("open") }] : []),
  ];
  return (
    <>
      {can("repair") && !isClosed && <Button onClick={() => onAct("close")}>Close the breaker…</Button>}
      {entries.length > 0 && <Menu isCompact label="Actions" entries={entries} />}
    </>
  );
}

function Places({ used, free }: { used: number; free: number }) {
  if (used + free === 0) return <>none at work</>;
  return <span class="places"><span class="places-bar" aria-hidden="true"><i style={{ width: `${(100 * used) / (used + free)}%` }} /></span>{count(used)} at work, asks for up to {count(free)} more</span>;
}

function Limits({ a: { limits } }: { a: Agent }) {
  const texts = [limits.concurrency !== null && `${count(limits.open_attempts)} of ${count(limits.concurrency)} at a time`, limits.rate].filter(Boolean);
  const actions = Object.entries(limits.actions);
  if (texts.length === 0 && actions.length === 0) return null;
  return (
    <>
      {texts.length > 0 && <div><dt>limits</dt><dd>{texts.join(", ")}{limits.part !== null && limits.concurrency !== null && limits.part !== limits.concurrency && <span class="muted"> ({count(limits.part)} at this node)</span>}</dd></div>}
      {actions.map(([name, l]) => (
        <div key={name}><dt>limit of {name}</dt><dd>{[l.concurrency !== null && `${count(l.open_attempts)} of ${count(l.concurrency)} at a time`, l.rate].filter(Boolean).join(", ")}{l.waiting_steps > 0 && <span class="s-doubt told"> {plural(l.waiting_steps, "step waits", "steps wait")}</span>}</dd></div>
      ))}
    </>
  );
}

function InstanceTable({ agent, instances }: { agent: string; instances: Agent["instances"] }) {
  return (
    <div class="table-wrap"><table class="table stacks" aria-label={`Instances of ${agent}`}>
      <thead><tr><th>Instance</th><th>Health</th><th class="number">Attempts</th><th class="number">Asks for</th><th class="number">Failed lately</th><th>Seen</th><th>Heartbeat</th></tr></thead>
      <tbody>{instances.slice(0, SHOWN).map((i) => (
        <tr key={i.instance}>
          <td class="id"><Text>{i.instance}</Text></td>
          <td><span class={`state s-${HEALTH[i.health]}`}><StateSign state={HEALTH[i.health]} />{i.health}</span>{i.trial_at && <span class="muted"> tried again <Age at={i.trial_at} /></span>}</td>
          <td data-label="Attempts" class="number">{count(i.open_attempts)}</td>
          <td data-label="Asks for" class="number">{count(i.places)}{i.health !== "good" && <span class="muted"> ({count(i.places_given)} given)</span>}</td>
          <td data-label="Failed lately" class="number">{i.failures} %</td><td data-label="Seen" class="muted"><Age at={i.seen_at} /></td><td data-label="Heartbeat" class="muted"><Age at={i.heartbeat_at} /></td>
        </tr>
      ))}</tbody>
    </table>{instances.length > SHOWN && <p class="muted">and {plural(instances.length - SHOWN, "more instance")}</p>}</div>
  );
}
