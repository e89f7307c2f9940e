// Durations, moments and numbers as people read them: durations like those of the command line, moments in the zone of
// the reader.
const SECOND = 1000;

const two = (n: number) => String(n).padStart(2, "0");

export function duration(ms: number): string {
  if (!Number.isFinite(ms)) return "";
  const sign = ms < 0 ? "-" : "";
  const m = Math.abs(ms);
  if (m < SECOND) return `${sign}${Math.round(m)}ms`;
  if (m < 9_950) return `${sign}${(m / SECOND).toFixed(1)}s`;
  const s = Math.round(m / SECOND);
  if (s < 60) return `${sign}${s}s`;
  if (s < 3600) return `${sign}${Math.floor(s / 60)}m ${two(s % 60)}s`;
  if (s < 86_400) return `${sign}${Math.floor(s / 3600)}h ${two(Math.floor((s % 3600) / 60))}m`;
  return `${sign}${Math.floor(s / 86_400)}d ${Math.floor((s % 86_400) / 3600)}h`;
}

export function ago(at: number, now: number): string {
  const ms = now - at;
  if (Math.abs(ms) < SECOND) return "now";
  return ms >= 0 ? `${duration(ms)} ago` : `in ${duration(-ms)}`;
}

export function time(at: string | null | undefined): number | null {
  if (!at) return null;
  const ms = Date.parse(at);
  return Number.isNaN(ms) ? null : ms;
}

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

// As short as it can be without another day or year being meant.
export function moment(at: number, now: number, withMs = false): string {
  const d = new Date(at);
  const n = new Date(now);
  const clock = `${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}${withMs ? `.${String(d.getMilliseconds()).padStart(3, "0")}` : ""}`;
  if (d.toDateString() === n.toDateString()) return clock;
  const day = `${d.getDate()} ${MONTHS[d.getMonth()]}`;
  return d.getFullYear() === n.getFullYear() ? `${day}, ${clock}` : `${day} ${d.getFullYear()}, ${clock}`;
}

// Made once: each of them costs more than all else that a row of a list takes.
const ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone;
const NUMBERS = new Intl.NumberFormat("en-GB");

// The moment to the millisecond, in UTC as the API has it and in the reader's zone.
export function exact(at: number): string {
  return `${exactly(at, "local")} ${ZONE}\n${exactly(at, "utc")}`;
}

// How times are shown: as ages and short moments, or to the millisecond, in the reader's zone or in UTC.
export type Times = "short" | "local" | "utc";

export function exactly(at: number, times: "local" | "utc"): string {
  if (times === "utc") return new Date(at).toISOString();
  const d = new Date(at);
  return `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())} ${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}.${String(d.getMilliseconds()).padStart(3, "0")}`;
}

export const count = (n: number) => NUMBERS.format(n);

// Counts that stop at a limit: "10,000 or more".
export const countTo = (n: number, limit: number) => (n >= limit ? `${count(limit)}+` : count(n));

export const plural = (n: number, one: string, many = `${one}s`) => `${count(n)} ${n === 1 ? one : many}`;

export const capital = (text: string) => text.charAt(0).toUpperCase() + text.slice(1);

export function bytes(n: number): string {
  if (n < 1024) return `${n} B`;
  if (n < 1024 * 1024) return `${(n / 1024).toFixed(n < 10240 ? 1 : 0)} KiB`;
  return `${(n / 1024 / 1024).toFixed(1)} MiB`;
}
