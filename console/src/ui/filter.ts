// A filter of tasks, in its four forms: the address of the page, the query of GET /v1/tasks, the `filter` of an operation,
// and the flags of the command line.
import type { Filter } from "../api/types.ts";

export const STATES = ["pending", "processing", "compensating", "error", "processed", "compensated"] as const;
const TEXTS = ["workflow", "version", "step", "agent", "error", "submitted_after", "submitted_before", "ended_after", "ended_before", "parent", "root", "id_prefix"] as const;
const CHOICES = ["paused", "closed", "children"] as const;
const isTime = (name: string) => /_(after|before)$/.test(name);
type Textual = (typeof TEXTS)[number];
type Choice = (typeof CHOICES)[number];

export interface TaskFilter extends Partial<Record<Textual, string>>, Partial<Record<Choice, boolean>> {
  states: string[];
  ids: string[];
  tags: [key: string, value: string][];
  unknown?: [name: string, value: string][]; // of the address: no filters, or values that these cannot have
}

export const NO_FILTER: TaskFilter = { states: [], ids: [], tags: [] };

const list = (text: string | null) => (text ?? "").split(",").map((t) => t.trim()).filter(Boolean);

const isTag = (name: string) => name.startsWith("tag.") && name.length > 4;
const isState = (text: string) => (STATES as readonly string[]).includes(text);

// The parts of an address that are no filters. A filter without a value asks for nothing.
function unknownIn(query: URLSearchParams): [name: string, value: string][] {
  return [...query].flatMap(([name, value]): [string, string][] => {
    if (name === "state") return list(value).filter((s) => !isState(s)).map((s) => [name, s]);
    if ((CHOICES as readonly string[]).includes(name)) return ["true", "false", ""].includes(value) ? [] : [[name, value]];
    return name === "ids" || isTag(name) || (TEXTS as readonly string[]).includes(name) ? [] : [[name, value]];
  });
}

// What is not known is kept apart: an old link still opens, and the page says what it does not obey.
export function fromQuery(query: URLSearchParams): TaskFilter {
  const unknown = unknownIn(query);
  const filter: TaskFilter = {
    states: list(query.getAll("state").join()).filter(isState),
    ids: list(query.get("ids")),
    tags: [...query].filter(([k]) => isTag(k)).map(([k, v]) => [k.slice(4), v]),
    ...(unknown.length > 0 ? { unknown } : {}),
  };
  for (const name of TEXTS) {
    const value = query.get(name)?.trim();
    if (value) filter[name] = value;
  }
  for (const name of CHOICES) {
    const value = query.get(name);
    if (value === "true" || value === "false") filter[name] = value === "true";
  }
  return filter;
}

// Times may be ages in an address ("1h": an hour ago), so that a link stays useful. With `now` it is the query for
// the server: ages become moments, and what is not known is left out.
export function toQuery(filter: TaskFilter, now?: number): URLSearchParams {
  const query = new URLSearchParams();
  if (filter.states.length > 0) query.set("state", filter.states.join(","));
  for (const name of TEXTS) {
    const value = filter[name];
    if (value) query.set(name, now !== undefined && isTime(name) ? momentOf(value, now) : value);
  }
  for (const name of CHOICES) if (filter[name] !== undefined) query.set(name, String(filter[name]));
  for (const [key, value] of filter.tags) query.set(`tag.${key}`, value);
  if (filter.ids.length > 0) query.set("ids", filter.ids.join(","));
  if (now === undefined) for (const [name, value] of filter.unknown ?? []) query.append(name, value);
  return query;
}

const UNITS: Record<string, number> = { s: 1e3, m: 60e3, h: 3600e3, d: 86400e3 };

export function momentOf(text: string, now: number): string {
  const age = /^(\d+)([smhd])$/.exec(text);
  return age ? new Date(now - Number(age[1]) * (UNITS[age[2] as string] as number)).toISOString() : text;
}

export const isEmpty = (filter: TaskFilter) => toQuery(filter).size === 0;

export function toOperation(filter: TaskFilter, now: number): Filter {
  const found: Record<string, unknown> = {};
  if (filter.states.length > 0) found["state"] = filter.states;
  for (const name of TEXTS) {
    const value = filter[name];
    if (value) found[name] = name === "version" ? Number(value) : isTime(name) ? momentOf(value, now) : value;
  }
  for (const name of CHOICES) if (filter[name] !== undefined) found[name] = filter[name];
  if (filter.tags.length > 0) found["tag"] = Object.fromEntries(filter.tags);
  if (filter.ids.length > 0) found["ids"] = filter.ids;
  if (Object.keys(found).length === 0) found["all"] = true;
  return found as Filter;
}

// The filter of an operation, as the list of tasks has it.
export function fromOperation(filter: Filter): TaskFilter {
  const { state, tag, ids, all: _, ...rest } = filter;
  const query = new URLSearchParams(Object.entries(rest).filter(([, v]) => v !== null && v !== undefined).map(([k, v]) => [k, String(v)]));
  return { ...fromQuery(query), states: state === undefined ? [] : [state].flat(), ids: ids ?? [], tags: Object.entries(tag ?? {}) };
}

const FLAGS: Record<string, string> = {
  workflow: "--workflow", version: "--version", step: "--at-step", agent: "--agent", error: "--error", submitted_after: "--after",
  submitted_before: "--before", ended_after: "--ended-after", ended_before: "--ended-before", parent: "--parent", root: "--root", id_prefix: "--id-prefix",
};

export function toFlags(filter: TaskFilter, now: number): (string | [string, string])[] {
  const flags: (string | [string, string])[] = [];
  if (filter.states.length > 0) flags.push(["--state", filter.states.join(",")]);
  for (const name of TEXTS) {
    const value = filter[name];
    if (value) flags.push([FLAGS[name] as string, isTime(name) ? momentOf(value, now) : value]);
  }
  if (filter.closed !== undefined) flags.push(["--closed", filter.closed ? "yes" : "no"]);
  if (filter.paused !== undefined) flags.push(["--paused", filter.paused ? "yes" : "no"]);
  if (filter.children) flags.push("--children");
  for (const [key, value] of filter.tags) flags.push(["--tag", `${key}=${value}`]);
  if (filter.ids.length > 0) flags.push(["--ids", filter.ids.join(",")]);
  return flags;
}

const AGES: Record<string, string> = { s: "second", m: "minute", h: "hour", d: "day" };

function when(text: string): string {
  const age = /^(\d+)([smhd])$/.exec(text);
  return age ? `${age[1]} ${AGES[age[2] as string]}${age[1] === "1" ? "" : "s"} ago` : text;
}

export const unknownTexts = (filter: TaskFilter) => (filter.unknown ?? []).map(([name, value]) => (value ? `${name}=${value}` : name));

export function withoutUnknown({ unknown: _, ...rest }: TaskFilter): TaskFilter {
  return rest;
}

// One entry for each part of the filter: what it says, and the filter without it.
export function parts(filter: TaskFilter): { name: string; text: string; without: TaskFilter }[] {
  const found: { name: string; text: string; without: TaskFilter }[] = [];
  const drop = (name: Textual | Choice) => {
    const { [name]: _, ...rest } = filter;
    return rest as TaskFilter;
  };
  const words: Record<Textual, (v: string) => string> = {
    workflow: (v) => `workflow ${v}`, version: (v) => `version ${v}`, step: (v) => `at step ${v}`, agent: (v) => `agent ${v}`,
    error: (v) => `error ${v}`, submitted_after: (v) => `submitted after ${when(v)}`, submitted_before: (v) => `submitted before ${when(v)}`,
    ended_after: (v) => `ended after ${when(v)}`, ended_before: (v) => `ended before ${when(v)}`, parent: (v) => `children of ${v}`,
    root: (v) => `descendants of ${v}`, id_prefix: (v) => `id ${v}…`,
  };
  for (const name of TEXTS) if (filter[name]) found.push({ name, text: words[name](filter[name]), without: drop(name) });
  const choices: Record<Choice, [string, string]> = {
    paused: ["paused", "not paused"], closed: ["closed", "not closed"], children: ["with children", "without children"],
  };
  for (const name of CHOICES) {
    const value = filter[name];
    if (value !== undefined) found.push({ name, text: choices[name][value ? 0 : 1], without: drop(name) });
  }
  filter.tags.forEach(([k, v], n) => found.push({ name: `tag.${k}`, text: `${k}=${v}`, without: { ...filter, tags: filter.tags.filter((_, i) => i !== n) } }));
  if (filter.ids.length > 0) {
    const text = filter.ids.length === 1 ? `task ${filter.ids[0]}` : `${filter.ids.length} chosen tasks`;
    found.push({ name: "ids", text, without: { ...filter, ids: [] } });
  }
  return found;
}
