// What an operator does with a schedule.
import { useState } from "preact/hooks";
import { call } from "../../api/client.ts";
import type { Schedule, ScheduleBackfill, ScheduleRun } from "../../api/types.ts";
import { ActionForm } from "../../ui/action_form.tsx";
import { Field } from "../../ui/dialog.tsx";
import { plural } from "../../ui/format.ts";
import { commandLine } from "../../ui/shell.ts";
import { fromField } from "./sign.ts";

export type ScheduleVerbName = "run" | "pause" | "resume" | "backfill" | "delete";

const SAYS = {
  run: "A task is submitted now, beside those of the moments, whatever else runs.",
  pause: "No moment gets a task until it is resumed. Running tasks go on. Moments of the pause are not caught up.",
  resume: "From now on, moments get tasks again. Those of the pause do not.",
  backfill: "Each moment of this time that has no task gets one, one by one, whenever no other run of the schedule is open.",
  delete: "The schedule and its versions are deleted; no moment gets a task any more. Its tasks stay.",
};
const BUTTONS = { run: "Run now", pause: "Pause", resume: "Resume", backfill: "Backfill", delete: "Delete" };
const TITLES = { run: "Run now", pause: "Pause the schedule", resume: "Resume the schedule", backfill: "Run past moments of", delete: "Delete the schedule" };

export function ScheduleVerb({ verb, s, onClose, onDone }: { verb: ScheduleVerbName; s: Schedule; onClose: () => void; onDone: () => void }) {
  const at = `/v1/schedules/${encodeURIComponent(s.name)}`;
  const [from, setFrom] = useState("");
  const [to, setTo] = useState("");
  const begin = fromField(from);
  const end = fromField(to);
  const mistake = verb !== "backfill" ? null : !begin || !end ? "Give both times." : begin > end ? "The first time is after the last one." : null;
  const send = async (reason: string) => {
    if (verb === "delete") {
      await call(at, { method: "DELETE" });
      return `${s.name} is deleted`;
    }
    if (verb === "backfill") {
      const { moments } = await call<ScheduleBackfill>(`${at}/backfill`, { method: "POST", body: { from: begin, to: end, reason } });
      return `${plural(moments, "moment")} run one by one`;
    }
    if (verb === "run") return `Task ${(await call<ScheduleRun>(`${at}/run`, { method: "POST", body: { reason } })).task} is submitted`;
    await call(`${at}/${verb}`, { method: "POST", body: { reason } });
    return `${s.name} is ${verb === "pause" ? "paused" : "active"}`;
  };
  return (
    <ActionForm title={TITLES[verb]} of={s.name} says={SAYS[verb]} button={BUTTONS[verb]} isFinal={verb === "delete"} asksReason={verb !== "delete"} mistake={mistake}
      {...(verb === "delete" ? { confirm: s.name } : {})}
      command={(reason) => commandLine(["schedule", verb, s.name, ...(verb === "backfill" ? [["--from", begin ?? "..."], ["--to", end ?? "..."]] as [string, string][] : []), ["--reason", verb === "delete" ? undefined : reason]])}
      send={send} onClose={onClose} onDone={onDone}>
      {verb === "backfill" && (
        <div class="field-pair">
          <Field label="From" hint={begin ?? "In your time zone"}>{(id, described) => <input id={id} type="datetime-local" value={from} aria-describedby={described} onInput={(e) => setFrom(e.currentTarget.value)} />}</Field>
          <Field label="To" hint={end ?? "In your time zone"}>{(id, described) => <input id={id} type="datetime-local" value={to} aria-describedby={described} onInput={(e) => setTo(e.currentTarget.value)} />}</Field>
        </div>
      )}
    </ActionForm>
  );
}
