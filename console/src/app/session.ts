// Who is signed in, and what the roles of that token allow. Undefined while that is not known, null: nobody.
import { effect, signal } from "@preact/signals";
import { call, Problem, signedOut } from "../api/client.ts";
import { forgetAll, forgetRead } from "../api/resource.ts";
import type { Session } from "../api/types.ts";

export const session = signal<Session | null | undefined>(undefined);
export const sessionProblem = signal<Problem | null>(null);

const MEANS: Record<string, string[]> = {
  admin: ["read", "repair", "define", "submit", "approve", "link", "admin"],
  operate: ["read", "repair", "define", "submit"],
  repair: ["read", "repair"],
};

export function allows(roles: string[], role: string): boolean {
  return roles.some((r) => r === role || (MEANS[r] ?? []).includes(role));
}

// Whether it is allowed for the workflow of that name: by "submit", "submit:order", "submit:or*".
export function allowsFor(roles: string[], role: string, name: string): boolean {
  return allows(roles, role) || roles.filter((r) => r.startsWith(`${role}:`)).some((r) => {
    const wanted = r.slice(role.length + 1);
    return wanted.endsWith("*") ? name.startsWith(wanted.slice(0, -1)) : name === wanted;
  });
}

// Whether the reader is one of those whose decision is asked.
export function mayDecide(groups: readonly string[]): boolean {
  const who = session.value;
  return can("approve") && (who?.open === true || groups.some((g) => who?.groups.includes(g)));
}

export const can = (role: string) => allows(session.value?.roles ?? [], role);

export async function readSession() {
  try {
    session.value = await call<Session>("/v1/session");
    sessionProblem.value = null;
  } catch (cause) {
    if (cause instanceof Problem && cause.status === 401) {
      session.value = null;
      sessionProblem.value = null;
    } else sessionProblem.value = cause as Problem;
  }
}

// Whose session ended while its pages were open. Texts that this person has not stored yet are there after another sign-in.
export const ended = signal<string | null>(null);

export async function signIn(by: { token: string } | { code: string }) {
  const next = await ("token" in by
    ? call<Session>("/v1/session", { method: "POST", token: by.token })
    : call<Session>("/v1/session", { method: "POST", body: { code: by.code } }));
  if (next.name === ended.peek()) forgetRead();
  else forgetAll();
  ended.value = null;
  session.value = next;
}

export const signOutProblem = signal<string | null>(null);

export async function signOut() {
  signOutProblem.value = null;
  try {
    await call("/v1/session", { method: "DELETE" });
    forgetAll();
    session.value = null;
  } catch (cause) {
    if (session.peek()) signOutProblem.value = (cause as Error).message;
  }
}

// Tabs share the cookie: another one may have signed in somebody else. What is shown is of the one for whom one acts.
async function lookAgain() {
  const before = session.peek();
  if (document.hidden || !before) return;
  const next = await call<Session>("/v1/session").catch(() => null);
  if (!next || session.peek() !== before || JSON.stringify(next) === JSON.stringify(before)) return;
  if (next.name !== before.name) forgetAll();
  session.value = next;
}

// A session that ended elsewhere: the next call says so.
export function watchSession() {
  effect(() => {
    const before = session.peek();
    if (signedOut.value > 0 && before) {
      ended.value = before.name;
      forgetRead();
      session.value = null;
    }
  });
  addEventListener("focus", () => void lookAgain());
  document.addEventListener("visibilitychange", () => void lookAgain());
}
