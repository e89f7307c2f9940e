// A schedule in a few words, and the sign beside them.
import type { Schedule } from "../../api/types.ts";
import { count, plural } from "../../ui/format.ts";

export const scheduleSign = (s: Schedule) => (s.state === "paused" ? "paused" : s.state === "ended" ? "closed" : lately(s) ? "doubt" : "processing");

const DAY = 86_400_000;

// Whether a moment got no task within the last day.
export const lately = (s: Schedule, now = Date.now()) => s.gaps.some((g) => now - Date.parse(g.noted_at) < DAY);

export function missedText(s: Schedule): string {
  const { missed, skipped, failed } = s.counts;
  return [missed && `${count(missed)} missed`, skipped && `${count(skipped)} skipped`, failed && `${count(failed)} failed`].filter(Boolean).join(", ") || "none";
}

export const gapText = (kind: string, n: number) => `${plural(n, "moment")} ${kind}`;

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const DAYS = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];

// "2027-01-31T02:30:00+01:00" as people read it: the day, the clock, and the offset.
export function localText(local: string): { day: string; clock: string; offset: string } {
  const [, day = local, clock = "", offset = ""] = /^(\d{4}-\d\d-\d\d)T(\d\d:\d\d(?::\d\d)?)(?:\.\d+)?(.*)$/.exec(local) ?? [];
  const [year, month, date] = day.split("-").map(Number) as [number, number, number];
  return { day: `${DAYS[new Date(Date.UTC(year, month - 1, date)).getUTCDay()]} ${date} ${MONTHS[month - 1]}${year === new Date().getFullYear() ? "" : ` ${year}`}`, clock: clock.replace(/:00$/, ""), offset: offset === "Z" || offset === "+00:00" ? "UTC" : offset };
}

// What a field of the kind datetime-local says, in the reader's zone, as the API takes it.
export function fromField(text: string): string | null {
  const at = Date.parse(text);
  return text && !Number.isNaN(at) ? new Date(at).toISOString().replace(".000Z", "Z") : null;
}
