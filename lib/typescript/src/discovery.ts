import { isServer } from "./http.js";

const NODES_MAX = 320;
const NAME = /^[A-Za-z0-9._-]{1,100}$/;

interface Listed {
  url: string | undefined;
  works: boolean;
}

function isName(value: unknown): value is string {
  return typeof value === "string" && NAME.test(value);
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** By name. A list that came by https is not followed to http. */
function readList(from: string, answer: Record<string, unknown>): Map<string, Listed> {
  const found = new Map<string, Listed>();
  const nodes = Array.isArray(answer["nodes"]) ? (answer["nodes"] as unknown[]) : [];
  for (const node of nodes.slice(0, NODES_MAX)) {
    if (!isObject(node) || !isName(node["node"])) continue;
    const at = typeof node["url"] === "string" ? node["url"].replace(/\/+$/, "") : "";
    const may = at.length <= 300 && isServer(at) && (at.startsWith("https:") || !from.startsWith("https:"));
    const roles = node["roles"];
    found.set(node["node"], {
      url: may ? at : undefined,
      works:
        (node["alive"] ?? true) === true && node["draining"] !== true && (!Array.isArray(roles) || roles.includes("scheduler")),
    });
  }
  return found;
}

/** Whom to call: fed with answers to GET /v1/nodes; `wanted` says which addresses to work for. No input or output here. */
export class Discovery {
  readonly seeds: readonly string[];
  #listed = new Map<string, Listed>();
  readonly #answered = new Set<string>();
  readonly #nameAt = new Map<string, string>(); // who answers at an address
  readonly #gates = new Map<string, string>(); // a proxy: another node answered there before
  readonly #strangers = new Map<string, string>(); // listed, and somebody else answers there

  constructor(seeds: readonly string[]) {
    this.seeds = seeds;
  }

  /** What came from an address; undefined: an answer, but no list. False: it is somebody else's address. */
  hear(url: string, answer: Record<string, unknown> | undefined): boolean {
    this.#answered.add(url);
    const fresh = answer ? readList(url, answer) : new Map<string, Listed>();
    const name = isName(answer?.["self"]) ? answer["self"] : "";
    if (this.seeds.includes(url)) {
      const before = this.#nameAt.get(url) ?? "";
      if (before && name && before !== name && this.#listed.get(before)?.works) this.#gates.set(url, before);
    } else if (name !== this.#nameOf(url)) {
      this.#strangers.set(url, name);
      return false; // nor is its list believed
    }
    this.#strangers.delete(url);
    if (name) this.#nameAt.set(url, name);
    if (fresh.size > 0) {
      this.#listed = fresh;
      // It may have been its node that was given another name.
      for (const [gate, other] of this.#gates) if (!fresh.get(other)?.works) this.#gates.delete(gate);
    }
    return true;
  }

  /** It cannot be reached. */
  lose(url: string): void {
    this.#answered.delete(url);
  }

  #nameOf(url: string): string {
    for (const [name, node] of this.#listed) if (node.url === url) return name;
    return "";
  }

  /** Those to be asked next: all seeds, and the nodes that are to be called and have not yet said who they are. */
  toAsk(): string[] {
    return [...this.seeds, ...this.#byUrl().filter((u) => !this.#answered.has(u) || this.#strangers.has(u))];
  }

  /** Addresses of nodes that no seed stands for. */
  #byUrl(): string[] {
    const stood = new Set(this.seeds.filter((s) => this.#answered.has(s) && !this.#gates.has(s)).map((s) => this.#nameAt.get(s)));
    const urls = new Set<string>();
    for (const [name, node] of this.#listed)
      if (node.works && node.url && !stood.has(name) && !this.seeds.includes(node.url)) urls.add(node.url);
    return [...urls];
  }

  /** The addresses to work for; none: nobody has answered, go on as before. */
  wanted(): string[] {
    const wanted: string[] = [];
    const taken = new Set<string>();
    for (const seed of this.seeds) {
      const name = this.#nameAt.get(seed) ?? "";
      if (!this.#answered.has(seed) || this.#gates.has(seed) || (name && taken.has(name))) continue;
      if (name && this.#listed.get(name)?.works === false) continue;
      wanted.push(seed);
      taken.add(name);
    }
    wanted.push(...this.#byUrl().filter((u) => this.#answered.has(u) && !this.#strangers.has(u)));
    if (wanted.length > 0) return wanted;
    const answered = this.seeds.filter((s) => this.#answered.has(s));
    const gates = answered.filter((s) => this.#gates.has(s));
    return gates.length > 0 ? gates.slice(0, 1) : answered;
  }
}
