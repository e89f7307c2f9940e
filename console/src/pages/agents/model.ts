// Why an agent gets no work, and its settings as the fields of a form.
import type { Agent, AgentSettings } from "../../api/types.ts";
import { plural } from "../../ui/format.ts";

const HELD: Record<string, string> = {
  breaker: "its breaker is open", limit: "a limit is reached", "no-instance": "no instance is connected", "no-place": "all places are taken",
  health: "only ill instances have free places",
};
const REMEDY: Record<string, string> = {
  breaker: "They start when its trials succeed, or when it is closed by hand.", limit: "They start as attempts end, or when the limit is raised.",
  "no-instance": "Start the agent, or look why it cannot reach the server.", "no-place": "They start as attempts end; more instances, or more places, would start them sooner.",
  health: "Look at the ill instances: most of their attempts fail.",
};

// What waits for an agent: steps in this node's memory, and tasks in the store.
export interface Waiting {
  tasks: number;
  isLeast: boolean; // there may be more
  since: string | null;
}

export const NOTHING: Waiting = { tasks: 0, isLeast: false, since: null };

// The sentence of an agent for which something waits: null if nothing does.
export function heldText(a: Agent, waiting: Waiting): { text: string; remedy: string } | null {
  if (!a.held_by) return null;
  const steps = a.waiting_steps > 0 ? plural(a.waiting_steps, "step") : "";
  const tasks = waiting.tasks > 0 ? `${plural(waiting.tasks, "task")}${waiting.isLeast ? " or more" : ""}` : "";
  const what = [steps, tasks].filter(Boolean).join(" and ") || "Steps";
  const isOne = a.waiting_steps + waiting.tasks === 1;
  const by = a.held_by === "breaker" && a.breaker.by_hand ? "its breaker was opened by hand" : (HELD[a.held_by] ?? a.held_by);
  return { text: `${what} ${isOne ? "waits" : "wait"}: ${by}.`, remedy: a.held_by === "breaker" && a.breaker.by_hand ? "They start when it is closed by hand." : (REMEDY[a.held_by] ?? "") };
}

// Attempts at work, and for how many more the instances asked when they last called.
export function placesOf(a: Agent): { used: number; free: number } {
  const instances = a.instances ?? [];
  return { used: instances.reduce((sum, i) => sum + i.open_attempts, 0), free: instances.reduce((sum, i) => sum + i.places, 0) };
}

const NUMBERS = ["concurrency", "calls", "failures", "slow_calls", "trials"] as const;
const LENGTHS = ["slow", "window", "wait", "max_wait"] as const;

export interface SettingsForm extends Record<(typeof NUMBERS)[number] | (typeof LENGTHS)[number] | "rate" | "actions", string> {
  enabled: boolean;
}

const text = (value: unknown) => (value === null || value === undefined ? "" : String(value));

export function showSettings({ limits, breaker }: AgentSettings): SettingsForm {
  const b = (breaker ?? {}) as Record<string, unknown>;
  const actions = Object.entries(limits?.actions ?? {}).map(([name, l]) => `${name}=${[l.concurrency, l.rate].filter((v) => v !== null && v !== undefined).join(",")}`);
  return {
    concurrency: text(limits?.concurrency), rate: text(limits?.rate), actions: actions.join("\n"), enabled: b["enabled"] !== false,
    calls: text(b["calls"]), failures: text(b["failures"]), slow_calls: text(b["slow_calls"]), trials: text(b["trials"]),
    slow: text(b["slow"]), window: text(b["window"]), wait: text(b["wait"]), max_wait: text(b["max_wait"]),
  };
}

const RATE = /^\d{1,7}\/[smh]$/;
const LENGTH = /^\d+(ms|s|m|h|d)$/;
const COUNT = /^[1-9]\d{0,6}$/;

function readActions(lines: string): { actions: Record<string, { concurrency?: number; rate?: string }> } | { mistake: string } {
  const actions: Record<string, { concurrency?: number; rate?: string }> = {};
  for (const line of lines.split("\n").map((l) => l.trim()).filter(Boolean)) {
    const [, name, rest] = /^([A-Za-z0-9._:-]{1,128})=(\S+)$/.exec(line) ?? [];
    const parts = (rest ?? "").split(",");
    if (!name || !rest || parts.some((p) => !COUNT.test(p) && !RATE.test(p))) return { mistake: `A limit of an action is like charge=5 or charge=600/m; this is none: ${line}` };
    const limit: { concurrency?: number; rate?: string } = {};
    for (const p of parts) if (RATE.test(p)) limit.rate = p; else limit.concurrency = Number(p);
    actions[name] = limit;
  }
  return { actions };
}

export function readSettings(form: SettingsForm): { settings: AgentSettings } | { mistake: string } {
  const badNumber = NUMBERS.find((n) => form[n].trim() && !COUNT.test(form[n].trim()));
  if (badNumber) return { mistake: `${badNumber.replace("_", " ")} is a whole number from 1.` };
  const badLength = LENGTHS.find((n) => form[n].trim() && !LENGTH.test(form[n].trim()));
  if (badLength) return { mistake: `${badLength.replace("_", " ")} is a duration such as 500ms, 30s or 2m.` };
  if (form.rate.trim() && !RATE.test(form.rate.trim())) return { mistake: "The rate is a number a second, minute or hour: 100/s." };
  const read = readActions(form.actions);
  if ("mistake" in read) return read;
  const breaker: Record<string, unknown> = { enabled: form.enabled };
  for (const n of NUMBERS) if (n !== "concurrency" && form[n].trim()) breaker[n] = Number(form[n]);
  for (const n of LENGTHS) if (form[n].trim()) breaker[n] = form[n].trim();
  const limits: Record<string, unknown> = {};
  if (form.concurrency.trim()) limits["concurrency"] = Number(form.concurrency);
  if (form.rate.trim()) limits["rate"] = form.rate.trim();
  if (Object.keys(read.actions).length > 0) limits["actions"] = read.actions;
  return { settings: { limits, breaker } as AgentSettings };
}

// What an empty field of the breaker means (docs/breakers.md); it may be unlimited, "none", only for `slow`.
const DEFAULTS = { calls: "20", failures: "80", slow: "none", slow_calls: "80", window: "30s", wait: "5s", max_wait: "1m", trials: "3" } as const;

// The form replaces all settings, and the command changes those that it has a flag for: so it has all flags.
export function settingsFlags(form: SettingsForm, was: AgentSettings): [string, string][] {
  const limits = form.actions.split("\n").map((l) => l.trim()).filter(Boolean);
  const gone = Object.keys(was.limits?.actions ?? {}).filter((name) => !limits.some((l) => l.startsWith(`${name}=`)));
  const breaker = (Object.keys(DEFAULTS) as (keyof typeof DEFAULTS)[]).map((name) => [`--${name.replace("_", "-")}`, form[name].trim() || DEFAULTS[name]] as [string, string]);
  return [
    ["--concurrency", form.concurrency.trim() || "none"], ["--rate", form.rate.trim() || "none"],
    ...[...limits, ...gone.map((name) => `${name}=none`)].map((l) => ["--action", l] as [string, string]),
    ["--breaker", form.enabled ? "on" : "off"], ...breaker,
  ];
}
