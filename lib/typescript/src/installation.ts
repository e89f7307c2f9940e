import { AnotherInstallation } from "./errors.js";

const MEET_WITHIN_MS = 1_000; // for a server to say where it belongs, before anything else is asked

/** In small letters; undefined if it is none. */
function read(text: unknown): string | undefined {
  return typeof text === "string" && /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text) ? text.toLowerCase() : undefined;
}

/**
 * To which installation servers belong: a client or an agent stays with the one that was stated, else with the one that
 * answered first. Shared by all of its connections.
 */
export class Installation {
  #id: string | undefined;
  #server: string | undefined; // that answered first; undefined: the id was stated
  #hasMet = false;

  constructor(stated: string | undefined) {
    const text = stated || process.env["INTACT_INSTALLATION"] || "any";
    this.#id = read(text);
    if (!this.#id && text !== "any")
      throw new RangeError(`installation is ${JSON.stringify(text)}, expected an installation id (a UUID) or "any"`);
  }

  /** undefined: not known yet. */
  get id(): string | undefined {
    return this.#id;
  }

  /** Of each request: a server of another installation refuses it before it does anything. */
  get headers(): Record<string, string> {
    return this.#id ? { "intact-installation": this.#id } : {};
  }

  /** An answer came. Throws AnotherInstallation if its server belongs to it. Older servers and proxies say nothing. */
  hear(server: string, told: unknown): void {
    const found = read(told);
    if (!found) return;
    if (!this.#id) {
      this.#id = found;
      this.#server = server;
    }
    if (found !== this.#id) throw new AnotherInstallation(server, found, this.#server, this.#id);
  }

  /** Compares what all servers say that can be reached, in their order. Throws AnotherInstallation if they are of two. */
  async meet(servers: readonly string[], ask: (server: string, withinMs: number) => Promise<unknown>): Promise<void> {
    if (servers.length < 2 || this.#id || this.#hasMet) return;
    const said = await Promise.all(servers.map((server) => ask(server, MEET_WITHIN_MS).catch(() => undefined)));
    if (this.#id || this.#hasMet) return; // by another call
    try {
      servers.forEach((server, i) => this.hear(server, said[i]));
    } catch (e) {
      this.#id = this.#server = undefined; // neither
      throw e;
    }
    this.#hasMet = true;
  }
}
