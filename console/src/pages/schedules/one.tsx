// One schedule: its next moments in its own zone and the reader's, its runs, the moments without a task, and its verbs.
import { useState } from "preact/hooks";
import { textOf } from "../../api/definition.ts";
import { withQuery } from "../../api/client.ts";
import { useResource } from "../../api/resource.ts";
import type { Schedule, ScheduleMoments, TaskPage } from "../../api/types.ts";
import { useKeys } from "../../app/keys.ts";
import { navigate, path, query } from "../../app/router.ts";
import { can } from "../../app/session.ts";
import { Age, Button, Copy, Empty, Failed, Id, Length, Loading, Menu, Moment, now, Panel, Shown, State, Text } from "../../ui/basics.tsx";
import { capital, count, duration, exact } from "../../ui/format.ts";
import { Icon, StateSign } from "../../ui/icons.tsx";
import { Listing } from "../../ui/listing.tsx";
import { Tabs } from "../../ui/tabs.tsx";
import { Versions } from "../workflows/versions.tsx";
import { gapText, localText, missedText, scheduleSign } from "./sign.ts";
import { ScheduleVerb, type ScheduleVerbName } from "./verbs.tsx";

const OVERLAP = { skip: "a moment that finds a run open is skipped", allow: "runs may overlap", wait: "a moment waits for the open run", undo: "the open run is cancelled" };

export default function ScheduleOnePage({ name }: { name: string }) {
  const at = `/v1/schedules/${encodeURIComponent(name)}`;
  const schedule = useResource<Schedule>(at, 5000);
  const [amount, setAmount] = useState(8);
  const moments = useResource<ScheduleMoments>(schedule.data ? `${at}/next?count=${amount}` : null, 5000);
  const tasks = useResource<TaskPage>(schedule.data && can("read") ? withQuery("/v1/tasks", { workflow: schedule.data.workflow, limit: 500 }) : null, 10_000);
  const [verb, setVerb] = useState<ScheduleVerbName | null>(null);
  const reload = () => { schedule.reload(); moments.reload(); tasks.reload(); };
  useKeys({ r: reload });
  const s = schedule.data;
  if (!s) {
    if (schedule.problem?.status === 404) return <Empty isPage title={`There is no schedule ${name}`} icon="search"><a href="/schedules">All schedules</a></Empty>;
    return schedule.problem ? <Failed problem={schedule.problem} retry={schedule.reload} /> : <Loading rows={8} />;
  }
  const tab = query.value.get("tab") ?? "text";
  const go = (next: Record<string, string>) => navigate(`${path.value}?${new URLSearchParams({ ...Object.fromEntries(query.value), ...next })}`, { replace: true });
  const to = Number(query.value.get("to")) || s.version;
  const from = Number(query.value.get("from")) || Math.max(1, to - 1);
  return (
    <div class="page">
      <nav class="crumbs" aria-label="Path"><a href="/schedules">Schedules</a></nav>
      <header class="page-head">
        <h1 class="id">{s.name}</h1><Copy text={s.name} label="Copy the name" />
        <span class={`state s-${scheduleSign(s)}`}><StateSign state={scheduleSign(s)} />{s.state}</span>
        <Verbs s={s} onVerb={setVerb} />
      </header>
      {s.paused_at && <p class="note warning" role="status"><Icon name="info" /><span>Paused <Age at={s.paused_at} />. Moments of the pause are not caught up.</span></p>}
      {s.waiting_at && <p class="note" role="status"><Icon name="clock" /><span>The moment of <Moment at={s.waiting_at} /> waits until the open run has ended.</span></p>}
      <dl class="facts-line">
        <div><dt>workflow</dt><dd><a href={`/workflows/${s.workflow}`}>{s.workflow}</a></dd></div>
        <div><dt>times</dt><dd>{s.kind}{s.kind === "cron" && <span class="muted"> in {s.timezone}</span>}</dd></div>
        <div><dt>overlap</dt><dd>{s.overlap}<span class="muted">: {OVERLAP[s.overlap]}</span></dd></div>
        <div><dt>catches up</dt><dd>{s.missed === "all" ? "all moments" : "the latest moment"} missed within {s.catch_up}</dd></div>
        <div><dt>fired</dt><dd>{count(s.counts.fired)}</dd></div>
        <div><dt>without a task</dt><dd>{missedText(s)}</dd></div>
        {s.run && <div><dt>open run</dt><dd><Id id={s.run} href={`/tasks/${encodeURIComponent(s.run)}`} /></dd></div>}
        {s.backfills && <div><dt>backfill</dt><dd>still runs</dd></div>}
        <div><dt>stored</dt><dd>version {s.version} by <Text>{s.author}</Text>, <Age at={s.stored_at} /></dd></div>
      </dl>
      <div class="columns lead-column">
        <Panel title="Next moments" aside={amount < 100 && s.state === "active" && <Button kind="quiet" onClick={() => setAmount(Math.min(100, amount * 4))}>Show more</Button>}>
          <Shown of={moments} rows={4}>{(m) => <Next m={m} />}</Shown>
        </Panel>
        <Panel title="Moments without a task"><Gaps s={s} /></Panel>
      </div>
      {can("read") && <Panel title="Latest runs" aside={<a href={`/tasks?workflow=${s.workflow}`}>All tasks of {s.workflow}</a>}><Shown of={tasks} rows={4}>{(page) => <Runs page={page} s={s} />}</Shown></Panel>}
      <Tabs label="Text and versions" at={tab} onTab={(t) => go({ tab: t })} tabs={[
        { name: "text", label: "Definition", show: () => <Listing text={textOf(s as Parameters<typeof textOf>[0])} name="the definition" /> },
        { name: "versions", label: `Versions (${s.version})`, show: () => <Versions path={at} newest={s.version} from={from} to={to} onChoose={(a, b) => go({ from: String(a), to: String(b) })} /> },
      ]} />
      {verb && <ScheduleVerb verb={verb} s={s} onClose={() => setVerb(null)} onDone={() => { setVerb(null); if (verb === "delete") navigate("/schedules"); else reload(); }} />}
    </div>
  );
}

function Verbs({ s, onVerb }: { s: Schedule; onVerb: (verb: ScheduleVerbName) => void }) {
  const more = [
    ...(can("repair") ? [{ label: "Backfill…", hint: "Run past moments, one by one", act: () => onVerb("backfill") }] : []),
    ...(can("define") ? [{ label: "Delete…", hint: "Its tasks stay", isFinal: true, act: () => onVerb("delete") }] : []),
  ];
  return (
    <div class="page-actions">
      {can("repair") && <Button onClick={() => onVerb("run")}>Run now…</Button>}
      {can("repair") && s.state !== "ended" && <Button onClick={() => onVerb(s.state === "paused" ? "resume" : "pause")}>{s.state === "paused" ? "Resume…" : "Pause…"}</Button>}
      {can("define") && <a class="button plain" href={`/schedules/${s.name}/edit`}><Icon name="edit" /><span>Edit</span></a>}
      {more.length > 0 && <Menu label="More" entries={more} />}
    </div>
  );
}

function Next({ m }: { m: ScheduleMoments }) {
  const ahead = m.moments.filter((x) => Date.parse(x.due_at) >= now.value - 1000);
  if (m.moments.length === 0) return <Empty title={m.state === "paused" ? "None while it is paused" : "No moment is ahead"} icon="clock" />;
  const later = (x: ScheduleMoments["moments"][number]) => Date.parse(x.due_at) - Date.parse(x.time);
  const isSpread = m.moments.some((x) => later(x) > 0);
  return (
    <div class="table-wrap" tabIndex={0} role="group" aria-label="Next moments"><table class="table">
      <thead><tr><th>In {m.timezone}</th><th>For you</th><th>From now</th>{isSpread && <th>Its task</th>}</tr></thead>
      <tbody>{ahead.map((x) => {
        const { day, clock, offset } = localText(x.local);
        return (
          <tr key={x.time}>
            <td>{day} <b>{clock}</b> <span class="muted">{offset}</span></td><td><Moment at={x.time} /></td><td class="muted"><Age at={x.time} /></td>
            {isSpread && <td class="muted" title={exact(Date.parse(x.due_at))}>{later(x) > 0 ? `${duration(later(x))} later` : "at once"}</td>}
          </tr>
        );
      })}</tbody>
    </table></div>
  );
}

function Gaps({ s }: { s: Schedule }) {
  if (s.gaps.length === 0) return <Empty title="Every moment got its task" icon="done" />;
  return (
    <ul class="rows">{[...s.gaps].reverse().map((g) => (
      <li class="row" key={g.from + g.kind}>
        <StateSign state={g.kind === "failed" ? "error" : "doubt"} />
        <div class="row-main">
          {capital(gapText(g.kind, g.count))} <span class="muted"><Moment at={g.from} />{g.count > 1 && <> to <Moment at={g.to} /></>}</span>
          {g.why && <div class="row-more">{g.kind === "skipped" ? <>run <Id id={g.why} href={`/tasks/${encodeURIComponent(g.why)}`} /> was open</> : <Text>{g.why}</Text>}</div>}
        </div>
      </li>
    ))}</ul>
  );
}

function Runs({ page, s }: { page: TaskPage; s: Schedule }) {
  const runs = page.tasks.filter((t) => t.id.startsWith(`${s.name}@`)).slice(0, 25);
  if (runs.length === 0 && s.counts.fired === 0) return <Empty title="It has not run yet" icon="clock">{s.next_at && <>The first run is due <Age at={s.next_at} />.</>}</Empty>;
  if (runs.length === 0) return <Empty title="No run is among the newest 500 tasks of the workflow" icon="tasks" />;
  return (
    <div class="table-wrap"><table class="table stacks">
      <thead><tr><th>Run</th><th>State</th><th>Submitted</th><th class="number">Took</th></tr></thead>
      <tbody>{runs.map((t) => (
        <tr key={t.id}>
          <td class="wide-cell"><Id id={t.id} href={`/tasks/${encodeURIComponent(t.id)}`} /></td>
          <td><State state={t.state} note={t.closed_at ? "closed" : undefined} /></td><td><Moment at={t.submitted_at} /> <span class="muted"><Age at={t.submitted_at} /></span></td><td data-label="Took" class="number"><Length from={t.submitted_at} to={t.ended_at} /></td>
        </tr>
      ))}</tbody>
    </table></div>
  );
}
