// What a form of a new token says, as the API takes it, and the same as flags of the command line.
export const ROLES: [role: string, may: string][] = [
  ["read", "read everything: tasks, agents, definitions, events, metrics"],
  ["repair", "read everything; retry, undo and the other verbs; agents, alerts, messages, schedules; the audit"],
  ["define", "read and store definitions and schedules; limits of agents"],
  ["submit", "submit tasks to every workflow; read and cancel its own"],
  ["operate", "all of submit, read, define and repair"],
  ["approve", "decide what its groups are asked"],
  ["link", "make links with which any person decides: for a program that sends them"],
  ["admin", "everything, and the tokens"],
];

const SCOPED = /^(submit|read|agent):([a-z0-9_-]+\*?|\*)$|^signal:[a-z0-9_-]+\*?\/[a-z0-9_-]+\*?$/;
const WORD = /^[A-Za-z0-9._:-]{1,64}$/;
const LENGTH = /^\d+(s|m|h|d)$/;

const list = (text: string) => text.split(/[\s,]+/).filter(Boolean);

export interface TokenForm {
  name: string;
  roles: string[]; // chosen from ROLES
  scoped: string; // others, as text
  person: string;
  groups: string;
  expires: string;
}

export const NO_TOKEN: TokenForm = { name: "", roles: [], scoped: "", person: "", groups: "", expires: "90d" };

export interface NewToken {
  name: string;
  roles: string[];
  person?: string;
  groups?: string[];
  expires_in: string;
}

export function newToken(form: TokenForm): { token: NewToken } | { mistake: string } {
  const roles = [...form.roles, ...list(form.scoped)];
  const wrong = list(form.scoped).find((r) => !SCOPED.test(r));
  const groups = list(form.groups);
  const badGroup = groups.find((g) => !WORD.test(g));
  const expires = form.expires.trim();
  if (!WORD.test(form.name.trim())) return { mistake: "The name is 1 to 64 of A-Z a-z 0-9 . _ : -" };
  if (wrong) return { mistake: `${wrong} is no role: write submit:WORKFLOW, read:WORKFLOW, agent:NAME or signal:WORKFLOW/NAME` };
  if (roles.length === 0) return { mistake: "Choose at least one role." };
  if (badGroup) return { mistake: `${badGroup} is not a name of a group.` };
  if (expires !== "never" && !LENGTH.test(expires)) return { mistake: "How long it is valid is like 12h or 30d, or never." };
  return { token: { name: form.name.trim(), roles, ...(form.person.trim() ? { person: form.person.trim() } : {}), ...(groups.length > 0 ? { groups } : {}), expires_in: expires } };
}

export function tokenFlags(t: NewToken): [string, string | undefined][] {
  return [...t.roles.map((r) => ["--role", r] as [string, string]), ["--person", t.person], ...(t.groups ?? []).map((g) => ["--group", g] as [string, string]),
    ["--expires-in", t.expires_in === "90d" ? undefined : t.expires_in]];
}

export const LIMITS = ["calls", "submissions", "readings", "bytes", "waiting", "cpu", "open_tasks"] as const;
export const LIMIT_SAYS: Record<(typeof LIMITS)[number], string> = {
  calls: "calls a second", submissions: "submissions a second", readings: "calls a second that read the store", bytes: "bytes a second sent in bodies",
  waiting: "calls that wait at a time", cpu: "ms of the event loop a second", open_tasks: "tasks that have not ended",
};

export type Expiry = "over" | "soon" | "fine";
const DAY = 86_400_000;

export function expiryOf(at: string | null, now: number): Expiry {
  if (!at) return "fine";
  const left = Date.parse(at) - now;
  return left <= 0 ? "over" : left < 7 * DAY ? "soon" : "fine";
}
