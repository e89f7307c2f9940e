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

async function problemOf(answer: Response): Promise<Problem> {
  const body = (await answer.json().catch(() => ({}))) as Record<string, unknown>;
  const text = (name: string) => (typeof body[name] === "string" ? (body[name] as string) : "");
  return new Problem(answer.status, text("type"), text("title") || `The server answered ${answer.status}`, text("detail"), body);
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
  let answer: Response;
  try {
    answer = await fetch(path, { method, headers, body: text?.text ?? (body === undefined ? null : JSON.stringify(body)), signal: signal ?? null });
  } catch (cause) {
    if (signal?.aborted) throw cause;
    unheard();
    throw new Problem(0, "unreachable", "The server does not answer", "Check the connection, and that the server runs.");
  }
  if (answer.status >= 502 && answer.status <= 504 && !answer.headers.get("content-type")?.includes("json")) {
    unheard();
    throw new Problem(0, "unreachable", "The server does not answer", `A proxy answered ${answer.status} in its place.`);
  }
  heard();
  const isSigningIn = method === "POST" && path === "/v1/session"; // a code that is refused ends no session
  if (answer.status === 401 && !isSigningIn) signedOut.value += 1;
  if (!answer.ok) throw await problemOf(answer);
  return (answer.status === 204 ? undefined : await answer.json()) as T;
}

// A path with the parameters that have a value.
export function withQuery(path: string, query: Record<string, string | number | boolean | null | undefined>): string {
  const pairs = Object.entries(query).filter(([, v]) => v !== null && v !== undefined && v !== "");
  const text = new URLSearchParams(pairs.map(([k, v]) => [k, String(v)])).toString();
  return text ? `${path}?${text}` : path;
}

export const taskPath = (id: string) => `/v1/tasks/${encodeURIComponent(id)}`;
