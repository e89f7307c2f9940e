// The schedules: when each is due next, and what became of its moments.
import { useState } from "preact/hooks";
import { useResource } from "../../api/resource.ts";
import type { Schedule, SchedulePage } from "../../api/types.ts";
import { useKeys } from "../../app/keys.ts";
import { can } from "../../app/session.ts";
import { Age, CutId, Empty, Moment, Shown } from "../../ui/basics.tsx";
import { count, plural } from "../../ui/format.ts";
import { Icon, StateSign } from "../../ui/icons.tsx";
import { Search } from "../../ui/search.tsx";
import { lately, missedText, scheduleSign } from "./sign.ts";

const soonest = (a: Schedule, b: Schedule) => (a.next_at ?? "~").localeCompare(b.next_at ?? "~") || a.name.localeCompare(b.name);

export default function SchedulesPage() {
  const list = useResource<SchedulePage>("/v1/schedules?limit=500", 10_000);
  const [wanted, setWanted] = useState("");
  useKeys({ r: list.reload });
  return (
    <div class="page">
      <header class="page-head">
        <h1>Schedules</h1>
        {can("define") && <div class="page-actions"><a class="button plain" href="/schedules/new/edit"><Icon name="plus" /><span>New schedule</span></a></div>}
      </header>
      <Shown of={list}>{({ schedules, next }) => {
        if (schedules.length === 0) {
          return <Empty title="No schedule is stored" icon="schedules">A schedule submits tasks of a workflow at given times. {can("define") && <a href="/schedules/new/edit">Write the first one</a>}</Empty>;
        }
        const text = wanted.trim().toLowerCase();
        const shown = schedules.filter((s) => s.name.includes(text) || s.workflow.includes(text)).sort(soonest);
        return (
          <>
            {schedules.length > 8 && <Search label="Filter by name or workflow" value={wanted} onValue={setWanted} />}
            {shown.length === 0 ? <Empty title="No schedule has this name" icon="search" /> : (
              <div class="table-wrap"><table class="table stacks">
                <thead><tr><th>Schedule</th><th>Workflow</th><th>State</th><th>Due next</th><th>Latest</th><th class="number">Fired</th><th>Without a task</th><th>Open run</th></tr></thead>
                <tbody>{shown.map((s) => (
                  <tr key={s.name}>
                    <td><a class="id" href={`/schedules/${s.name}`}>{s.name}</a></td>
                    <td data-label="Workflow"><a href={`/workflows/${s.workflow}`}>{s.workflow}</a></td>
                    <td><span class={`state s-${scheduleSign(s)}`}><StateSign state={scheduleSign(s)} />{s.state}</span></td>
                    <td data-label="Due next">{s.next_at ? <><Age at={s.next_at} /> <span class="muted"><Moment at={s.next_at} /></span></> : <span class="muted">{s.state === "paused" ? "paused" : s.waiting_at ? "waits for its run" : "never"}</span>}</td>
                    <td data-label="Latest">{s.fired_at ? <Age at={s.fired_at} /> : <span class="none">–</span>}</td>
                    <td data-label="Fired" class="number">{count(s.counts.fired)}</td>
                    <td data-label="Without a task" class={lately(s) ? "s-doubt told" : ""}>{missedText(s)}</td>
                    <td data-label="Open run" class="run-cell">{s.run ? <CutId id={s.run} href={`/tasks/${encodeURIComponent(s.run)}`} /> : <span class="none">–</span>}</td>
                  </tr>
                ))}</tbody>
              </table></div>
            )}
            <p class="muted">{plural(shown.length, "schedule")}{next && ", the first 500 by name"}</p>
          </>
        );
      }}</Shown>
    </div>
  );
}
