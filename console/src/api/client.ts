// Calls of the server. A refusal is thrown as a Problem with the server's own words; no answer is a Problem of status 0.
import { signal } from "@preact/signals";

export class Problem extends Error {
  constructor(
    readonly status: number,
    readonly type: string,
    readonly title: string,
    readonly detail: string,
    readonly body: Record<string, unknown> = {},
  ) {
    super(detail || title);
  }

  get isForbidden() {
    return this.status === 403;
  }
}

// When the server last answered, and since when it has not.
export const heardAt = signal(Date.now());
export const silentSince = signal<number | null>(null);
export const signedOut = signal(0);

export function heard() {
  heardAt.value = Date.now();
  silentSince.value = null;
}

export function unheard() {
  silentSince.value ??= Date.now();
}

function problemOf(answer: Response, body: Record<string, unknown>): Problem {
  const text = (name: string) => (typeof body[name] === "string" ? (body[name] as string) : "");
  return new Problem(answer.status, text("type"), text("title") || `The server answered ${answer.status}`, text("detail"), body);
}

// A connection may stall without an end: after so long it counts as broken.
const PATIENCE = 30_000;
const PATIENCE_CHANGE = 60_000;

// Whether a change was done is not known if its answer is lost.
function unreachable(method: string, detail: string): Problem {
  unheard();
  return new Problem(0, "unreachable", "The server does not answer", method === "GET" ? detail : `${detail} Whether this was done is not known: look before you repeat it.`);
}

async function exchange(path: string, init: RequestInit & { method: string }, given: AbortSignal | undefined): Promise<{ answer: Response; text: string }> {
  const stop = new AbortController();
  const abort = () => stop.abort();
  const timer = setTimeout(abort, init.method === "GET" ? PATIENCE : PATIENCE_CHANGE);
  given?.addEventListener("abort", abort);
  try {
    const answer = await fetch(path, { ...init, signal: stop.signal });
    return { answer, text: await answer.text() };
  } catch (cause) {
    if (given?.aborted) throw cause;
    throw unreachable(init.method, "Check the connection, and that the server runs.");
  } finally {
    clearTimeout(timer);
    given?.removeEventListener("abort", abort);
  }
}

function read(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

export interface Options {
  method?: "GET" | "POST" | "PUT" | "DELETE";
  body?: unknown;
  text?: { type: string; text: string }; // a body that is not JSON, or is to be sent as it was written
  signal?: AbortSignal;
  token?: string;
}

export async function call<T>(path: string, { method = "GET", body, text, signal, token }: Options = {}): Promise<T> {
  if (token && !/^[!-~]+$/.test(token)) throw new Problem(0, "bad-token", "This is no token", "This is no token: it has spaces, or characters that no token has. Copy it anew.");
  const headers: Record<string, string> = { Accept: "application/json" };
  if (method !== "GET") headers["Intact-Console"] = "1";
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (text) headers["Content-Type"] = text.type;
  if (token) headers["Authorization"] = `Bearer ${token}`;
  const { answer, text: got } = await exchange(path, { method, headers, body: text?.text ?? (body === undefined ? null : JSON.stringify(body)) }, signal);
  const found = read(got);
  if (found === undefined && answer.status !== 204 && (answer.ok || (answer.status >= 502 && answer.status <= 504))) {
    throw unreachable(method, `A proxy answered ${answer.status} in its place.`);
  }
  heard();
  const isSigningIn = method === "POST" && path === "/v1/session"; // a code that is refused ends no session
  if (answer.status === 401 && !isSigningIn) signedOut.value += 1;
  if (!answer.ok) throw problemOf(answer, (found ?? {}) as Record<string, unknown>);
  return found as T;
}

// A path with the parameters that have a value.
export function withQuery(path: string, query: Record<string, string | number | boolean | null | undefined>): string {
  const pairs = Object.entries(query).filter(([, v]) => v !== null && v !== undefined && v !== "");
  const text = new URLSearchParams(pairs.map(([k, v]) => [k, String(v)])).toString();
  return text ? `${path}?${text}` : path;
}

export const taskPath = (id: string) => `/v1/tasks/${encodeURIComponent(id)}`;
