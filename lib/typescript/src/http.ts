import { readFileSync } from "node:fs";
import * as http from "node:http";
import * as https from "node:https";
import type { Installation } from "./installation.js";

const ANSWER_MAX = 256 * 1024 * 1024;
const RETRY_AFTER_MAX_MS = 60_000;
export const DEFAULT_SERVER = "http://127.0.0.1:7420";

/** What a server said. */
export interface Answer {
  status: number;
  headers: http.IncomingHttpHeaders;
  body: Buffer;
}

/** How to call. */
export interface CallOptions {
  body?: Buffer | undefined;
  withinMs: number;
  contentType?: string;
  isRepeatable?: boolean;
  /** The Idempotency-Key. */
  key?: string | undefined;
  signal?: AbortSignal | undefined;
}

/** Milliseconds that it asks for; 0: it does not. */
export function retryAfter(answer: Answer): number {
  const text = answer.headers["retry-after"] ?? "";
  return /^\d+$/.test(text) ? Math.min(Number(text) * 1000, RETRY_AFTER_MAX_MS) : 0;
}

/** Is it the address of a server: http or https, host, perhaps a port, and nothing else? */
export function isServer(text: string): boolean {
  if (!/^https?:\/\/[!-~]+$/.test(text) || text.includes("@") || text.includes("?") || text.includes("#")) return false;
  try {
    const url = new URL(text);
    return url.hostname !== "" && url.pathname === "/" && url.port !== "0";
  } catch {
    return false;
  }
}

/** The addresses that were given, or those of the environment; RangeError if one is none. */
export function servers(given: string | undefined): string[] {
  const text = given || process.env["INTACT_SERVER"] || DEFAULT_SERVER;
  const found: string[] = [];
  for (const part of text.split(",")) {
    const url = part.trim().replace(/\/+$/, "");
    if (url === "" || found.includes(url)) continue;
    if (!isServer(url)) throw new RangeError(`server is ${JSON.stringify(url)}, expected an address like ${DEFAULT_SERVER}`);
    found.push(url);
  }
  if (found.length === 0) throw new RangeError(`server is ${JSON.stringify(text)}, expected an address like ${DEFAULT_SERVER}`);
  return found;
}

/** The certificates to trust: of the file that is given, else of $INTACT_CA, else undefined for those of Node. */
export function certificates(ca: string | undefined): Buffer | undefined {
  const path = ca || process.env["INTACT_CA"];
  if (!path) return undefined;
  try {
    return readFileSync(path);
  } catch (e) {
    throw new RangeError(`the certificates of ${JSON.stringify(path)} cannot be read: ${String(e)}`);
  }
}

/** The access token that is given, or that of the environment. */
export function accessToken(given: string | undefined): string {
  const text = (given ?? process.env["INTACT_TOKEN"] ?? "").trim();
  if (!/^[ -~]*$/.test(text)) throw new RangeError("the token has invalid characters");
  return text;
}

/** Calls to one server, over connections that are kept open. */
export class Wire {
  readonly url: string;
  readonly #isTls: boolean;
  readonly #token: string;
  readonly #ca: Buffer | undefined;
  readonly #agent: http.Agent;
  readonly #installation: Installation | undefined;

  constructor(url: string, token: string, ca: Buffer | undefined, installation?: Installation) {
    this.url = url;
    this.#isTls = url.startsWith("https:");
    this.#token = token;
    this.#ca = ca;
    this.#installation = installation;
    this.#agent = this.#isTls ? new https.Agent({ keepAlive: true }) : new http.Agent({ keepAlive: true });
  }

  /**
   * Rejects if there is no whole answer in time, the signal aborts, or the server belongs to another installation. A kept connection that the server had closed
   * meanwhile does not count, if the call may be repeated.
   */
  async call(method: string, path: string, options: CallOptions): Promise<Answer> {
    const end = performance.now() + options.withinMs;
    try {
      return await this.#once(method, path, options, end);
    } catch (e) {
      const isStale = (e as { isStale?: boolean }).isStale === true && options.isRepeatable !== false;
      if (!isStale || options.signal?.aborted || performance.now() >= end) throw e;
      return await this.#once(method, path, options, end);
    }
  }

  #once(method: string, path: string, options: CallOptions, end: number): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const { body, signal } = options;
      const request = (this.#isTls ? https : http).request(this.url + path, {
        method,
        // A connection of its own for what must not be done twice.
        agent: options.isRepeatable === false ? false : this.#agent,
        ...(this.#isTls && this.#ca ? { ca: this.#ca } : {}),
        headers: {
          ...(this.#token ? { authorization: `Bearer ${this.#token}` } : {}),
          ...this.#installation?.headers,
          ...(options.key ? { "idempotency-key": options.key } : {}),
          ...(body ? { "content-type": options.contentType ?? "application/json", "content-length": body.length } : {}),
        },
      });
      let isHeard = false;
      const fail = (e: Error): void => {
        settle();
        request.destroy();
        reject(Object.assign(e, { isStale: request.reusedSocket && !isHeard && isReset(e) }));
      };
      const timer = setTimeout(() => fail(timeLimit()), Math.max(1, end - performance.now()));
      const onAbort = (): void => fail(new Error("cancelled"));
      const settle = (): void => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", onAbort);
      };
      signal?.addEventListener("abort", onAbort);
      if (signal?.aborted) queueMicrotask(onAbort);
      request.on("error", fail);
      request.on("response", (response) => {
        isHeard = true;
        const parts: Buffer[] = [];
        let size = 0;
        response.on("error", fail);
        response.on("data", (part: Buffer) => {
          parts.push(part);
          size += part.length;
          if (size > ANSWER_MAX) fail(new Error(`the answer exceeds ${ANSWER_MAX} bytes`));
        });
        response.on("end", () => {
          if (!response.complete) {
            fail(new Error("the answer was cut off"));
            return;
          }
          settle();
          try {
            this.#installation?.hear(this.url, response.headers["intact-installation"]);
          } catch (e) {
            reject(e as Error);
            return;
          }
          resolve({ status: response.statusCode ?? 0, headers: response.headers, body: Buffer.concat(parts) });
        });
      });
      request.end(body);
    });
  }

  /** The installation to which the server says that it belongs; for that alone, and closed behind it. */
  async whose(withinMs: number): Promise<unknown> {
    try {
      return (await this.call("GET", "/healthz", { withinMs })).headers["intact-installation"];
    } finally {
      this.close();
    }
  }

  /** Closes what is kept open, and cuts off what is on. */
  close(): void {
    this.#agent.destroy();
  }
}

function timeLimit(): Error {
  return Object.assign(new Error("timed out waiting for the answer"), { name: "TimeoutError", code: "ETIMEDOUT" });
}

function isReset(e: Error): boolean {
  return ["ECONNRESET", "EPIPE"].includes((e as { code?: string }).code ?? "");
}
