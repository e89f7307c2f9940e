// The keys of a schedule, for completion (docs/schedules.md).
import type { Schema } from "../../ui/complete.ts";

const text = (description: string) => ({ type: "string", description });

export const SCHEDULE_SCHEMA: Schema = {
  type: "object",
  properties: {
    intact: { const: 1, description: "The version of the grammar." },
    schedule: text("Its name: 1 to 64 of a-z, 0-9, _ and -."),
    workflow: text("The workflow of its tasks; the newest version at each moment."),
    cron: { type: "string", enum: ["@hourly", "@daily", "@weekly", "@monthly", "@yearly"], description: "Five fields: minute, hour, day of month, month, day of week; or one of these words." },
    every: text("Full seconds that divide a day, such as 15m, counted from 00:00 UTC."),
    at: { type: "array", items: { type: "string" }, description: "A list of up to 1000 times with Z or an offset." },
    timezone: text("Of cron and .local: a name such as Europe/Rome. Default: UTC."),
    input: { description: "The input of the tasks, with expressions over the moment: .time, .local, .previous." },
    overlap: { enum: ["skip", "allow", "wait", "undo"], description: "What happens while a run is open. Default: skip." },
    catch_up: text("Missed moments that are not older than this still get a task: 1m to 366d. Default: 1h."),
    missed: { enum: ["latest", "all"], description: "Which missed moments get a task. Default: latest." },
    spread: text("The task comes later by a part of this, the same for all moments of a schedule; at most 1d."),
    tags: { type: "object", additionalProperties: { type: "string" }, description: "Tags of the tasks." },
    priority: { type: "integer", description: "0 to 9, higher first. Default: 5." },
    reply_to: { description: "Where status messages of the tasks are sent." },
  },
  additionalProperties: false,
};
