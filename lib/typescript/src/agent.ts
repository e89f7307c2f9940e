import { hostname } from "node:os";
import { Changed, duration, nowMs } from "./clock.js";
import { Discovery } from "./discovery.js";
import { AnotherInstallation, readable, StepError, TooLate } from "./errors.js";
import { accessToken, certificates, servers, Wire } from "./http.js";
import { Installation } from "./installation.js";
import { asFailure, CallFailed, list, Node, readObject, type Json } from "./node.js";
import { type Beat, innerOf, Request, stopped, type UndoRequest } from "./request.js";

const PLACES_MAX = 1000;
const HOLDING_MAX = 1000; // that the server reads
const INSTANCE_MAX = 150;
const CALL_WITHIN_MS = 20_000;
const HAND_IN_WITHIN_MS = 2_000; // if there is another node
const ASK_WITHIN_MS = 5_000;
const BODY_MAX = 3 * 1024 * 1024; // of results in one call
const BEATS_MAX = 1024;
const IDLE_MS = 10; // a call that was silent for so long is that of an idle node
const EXCESS_MS = 20;
const HOME_MS = 2_000;
const POLL_MS = 1_000; // without a free place: asks what is to be stopped
const REFRESH_MS = 8_000;
const LOST_MS = 500;
const KEPT_MS = 2_000; // what is over is still held for so long, or it would be sent again

/** Where lines go; `console` is one. */
export interface Logger {
  info(line: string): void;
  warn(line: string): void;
  error(line: string): void;
}

/** How an agent is set up. Times are milliseconds. */
export interface AgentOptions {
  /** Unique among the agent's processes, and the same after a restart. Default: HOST-PID (not the same). */
  instance?: string;
  /** Requests in work at a time, 1 to 1000. Default: 1. */
  places?: number;
  /** The address of a node, or several with commas between. Default: $INTACT_SERVER. */
  server?: string;
  /** With the role agent:NAME. Default: $INTACT_TOKEN. */
  token?: string;
  /** File of certificates (PEM) that an https:// server's must be signed by. Default: $INTACT_CA, then those of Node. */
  ca?: string;
  /**
   * The id of the installation that is meant. Default: $INTACT_INSTALLATION, then the one that answers first. Servers of another
   * one get neither calls for work nor results. If none is stated, and the addresses given belong to two when it starts, it ends:
   * run() and join() reject with AnotherInstallation.
   */
  installation?: string;
  /** Ask for the other nodes, and work for all of them. Default: true. */
  discovery?: boolean;
  /** How long a call for work may be parked. Default: 30 000. */
  waitMs?: number;
  /** How long a stopping agent tries to deliver its last answers if no server takes them. Default: 10 000. */
  stopWaitMs?: number;
  /** Default: `console`. */
  logger?: Logger;
}

/** Returns the output, any JSON, or a promise of it; throws StepError to answer with an error. */
export type Handler<I = unknown> = (request: Request<I>) => unknown;

/** The same for an undo of a step whose input is of type `FI` and whose output is of type `FO`. `I`: of the undo's own input. */
export type UndoHandler<FI = unknown, FO = unknown, I = unknown> = (request: UndoRequest<FI, FO, I>) => unknown;

/** How an action is handled. */
export interface HandlerOptions {
  /**
   * The agent beats while the handler runs. That shows only that the process lives: a handler that hangs is then not found
   * before its deadline.
   */
  autoHeartbeat?: boolean;
}

interface Result {
  request: Request;
  home: Node;
  text: string;
  isInFlight: boolean;
  isReplaced: boolean;
}

interface Handling {
  run: Handler;
  options: HandlerOptions;
}

/**
 * An agent, as the server knows it by its name: fetches requests, runs a handler for each, hands in the answers until they
 * are settled.
 *
 * ```ts
 * const agent = new Agent("payment", { instance: "payment-1", places: 8 });
 * agent.action("charge", async (request) => ({ receipt: 17 }));
 * agent.undo("refund", async (request) => null);
 * await agent.run();
 * ```
 *
 * While its token is refused, answers are kept and tried again, slowly. RangeError if a setting makes no sense.
 */
export class Agent {
  readonly name: string;
  readonly instance: string;
  readonly places: number;
  readonly #waitMs: number;
  readonly #stopWaitMs: number;
  readonly #log: Logger;
  readonly #seeds: string[];
  readonly #token: string;
  readonly #ca: Buffer | undefined;
  readonly #installation: Installation;
  readonly #discovery: Discovery | undefined;
  readonly #handlers = new Map<string, Handling>();
  readonly #changed = new Changed();
  readonly #held = new Map<string, Request>(); // in work, not settled, or over a moment ago
  readonly #homes = new WeakMap<Request, { node: Node; beats: Node }>();
  readonly #results = new Map<string, Result>();
  readonly #queue: Request[] = [];
  readonly #nodes = new Map<string, Node>();
  readonly #leaving = new Set<Node>();
  readonly #toldMs = new Map<string, number>();
  #over: { atMs: number; token: string }[] = [];
  #working = 0; // requests that have a place, or wait for one
  #running = 0; // handlers
  #isStopping = false;
  #isEnded = false;
  #isGivenUp = false;
  #refreshAtMs = 0;
  #progressMs = 0; // the latest result was settled, or came to be
  #ended: Promise<boolean> | undefined;

  constructor(name: string, options: AgentOptions = {}) {
    if (!name) throw new RangeError("an agent needs a name");
    this.name = name;
    this.places = options.places ?? 1;
    if (!Number.isInteger(this.places) || this.places < 1 || this.places > PLACES_MAX)
      throw new RangeError(`places is ${this.places}, expected 1 to ${PLACES_MAX}`);
    this.instance = options.instance ?? `${hostname().slice(0, 100)}-${process.pid}`;
    if (Buffer.byteLength(this.instance) > INSTANCE_MAX) throw new RangeError(`instance is longer than ${INSTANCE_MAX} bytes`);
    this.#waitMs = options.waitMs ?? 30_000;
    if (!(this.#waitMs > 0 && this.#waitMs <= 300_000))
      throw new RangeError(`waitMs is ${this.#waitMs}, expected more than 0, at most 300000`);
    this.#stopWaitMs = options.stopWaitMs ?? 10_000;
    this.#log = options.logger ?? console;
    this.#seeds = servers(options.server);
    this.#token = accessToken(options.token);
    this.#ca = certificates(options.ca);
    this.#installation = new Installation(options.installation);
    this.#discovery = options.discovery === false ? undefined : new Discovery(this.#seeds);
  }

  // ---- setting up ----

  /** The function takes effect when this action is asked for. */
  action<I = unknown>(name: string, handler: Handler<I>, options: HandlerOptions = {}): this {
    return this.#on(`forward ${name}`, handler as Handler, options);
  }

  /** The function undoes effects. It has to succeed if there is nothing to undo. */
  undo<FI = unknown, FO = unknown, I = unknown>(
    name: string,
    handler: UndoHandler<FI, FO, I>,
    options: HandlerOptions = {},
  ): this {
    return this.#on(`undo ${name}`, handler as Handler, options);
  }

  /** An agent with the same name, places and handlers, not started, at another server: for tests. */
  copy(server: string, options: Omit<AgentOptions, "server"> = {}): Agent {
    const agent = new Agent(this.name, {
      places: this.places,
      waitMs: this.#waitMs,
      stopWaitMs: this.#stopWaitMs,
      logger: this.#log,
      token: "",
      discovery: false,
      installation: "any",
      ...options,
      server,
    });
    for (const [key, handling] of this.#handlers) agent.#handlers.set(key, handling);
    return agent;
  }

  #on(key: string, run: Handler, options: HandlerOptions): this {
    if (this.#handlers.has(key)) throw new RangeError(`a handler for "${key}" exists already`);
    this.#handlers.set(key, { run, options });
    return this;
  }

  // ---- running ----

  /**
   * Runs until SIGTERM, SIGINT or stop(): then it fetches no more, waits for what is in work, and hands in all answers.
   * True: everything was delivered. A second signal ends the process as if there were no agent.
   */
  async run(): Promise<boolean> {
    const onSignal = (): void => {
      forget();
      this.stop();
    };
    const forget = (): void => {
      process.off("SIGTERM", onSignal);
      process.off("SIGINT", onSignal);
    };
    this.start();
    process.on("SIGTERM", onSignal);
    process.on("SIGINT", onSignal);
    try {
      return await this.join();
    } finally {
      forget();
    }
  }

  /** Starts it, and returns; once. */
  start(): void {
    if (this.#ended) throw new RangeError("an agent can be started only once");
    if (this.#handlers.size === 0) throw new RangeError("an agent needs a handler: agent.action(...)");
    this.#progressMs = nowMs();
    this.#ended = this.#manage();
    this.#ended.catch(() => undefined); // it is for whoever joins
  }

  /** Asks it to end; as often as you like. */
  stop(): void {
    if (!this.#isStopping) {
      this.#log.info(`${this.name}: stopping, ${this.#working} requests running`);
      this.#progressMs = nowMs();
    }
    this.#isStopping = true;
    for (const node of this.#nodes.values()) node.retryAtMs = Math.min(node.retryAtMs, nowMs() + 200);
    this.#changed.notify();
  }

  /** Once it has ended. True: everything was delivered. */
  join(): Promise<boolean> {
    return this.#ended ?? Promise.resolve(true);
  }

  /**
   * Ends it now, as far as that can be done from outside: handlers at work are told so by their signals, and nobody
   * waits for them or for answers that were not delivered. It holds the process no longer. For intact-client/testing.
   * @internal
   */
  giveUp(): void {
    this.stop();
    this.#isGivenUp = true;
    for (const request of this.#held.values()) {
      innerOf(request).abort.abort(stopped("unknown"));
      request.unwatch();
    }
    this.#changed.notify();
  }

  // ---- nodes ----

  async #manage(): Promise<boolean> {
    await this.#meet();
    if (!this.#discovery && !this.#isStopping) this.#use(this.#seeds);
    for (;;) {
      this.#forgetOver();
      this.#forgetLeft();
      if (this.#isStopping && this.#mayEnd()) return this.#end();
      const now = nowMs();
      if (this.#discovery && now >= this.#refreshAtMs && !this.#isStopping) {
        this.#refreshAtMs = now + REFRESH_MS;
        await this.#refresh(this.#discovery);
      } else {
        await this.#changed.wait(this.#isStopping ? 50 : Math.max(10, Math.min(500, this.#refreshAtMs - now)));
      }
    }
  }

  /** No call for work before all servers have said where they belong. */
  async #meet(): Promise<void> {
    try {
      await this.#installation.meet(this.#seeds, (url, withinMs) => new Wire(url, "", this.#ca).whose(withinMs));
    } catch (e) {
      this.#isStopping = this.#isEnded = true;
      this.#log.error(`${this.name}: ${String(e)}`);
      throw e;
    }
  }

  #mayEnd(): boolean {
    if (this.#isGivenUp) return true;
    if (this.#working === 0 && this.#results.size === 0)
      return this.#allNodes().every(
        (n) => n.parkedMax === 0 || n.failures > 0 || (n.calledHomeMs > 0 && nowMs() - n.calledHomeMs > HOME_MS),
      );
    if (this.#working > 0)
      for (const request of this.#held.values()) if (innerOf(request).isWorking && !request.isOver) return false;
    return nowMs() - this.#progressMs > this.#stopWaitMs;
  }

  #end(): boolean {
    this.#isEnded = true;
    const lost = this.#results.size + this.#working;
    if (lost > 0) this.#log.error(`${this.name}: stopped, ${lost} results could not be delivered`);
    else this.#log.info(`${this.name}: stopped, all results were delivered`);
    for (const node of this.#allNodes()) node.close();
    this.#changed.notify();
    return lost === 0;
  }

  #allNodes(): Node[] {
    return [...this.#nodes.values(), ...this.#leaving];
  }

  async #refresh(discovery: Discovery): Promise<void> {
    const asked = new Set<string>();
    // Twice: what the seeds tell of is asked for itself.
    for (let round = 0; round < 2; round++) {
      const fresh = discovery.toAsk().filter((url) => !asked.has(url));
      for (const url of fresh) asked.add(url);
      await Promise.all(fresh.map((url) => this.#ask(discovery, url)));
    }
    const wanted = discovery.wanted();
    if (wanted.length > 0 && !this.#isStopping) this.#use(wanted);
    if (this.#nodes.size === 0) this.#refreshAtMs = Math.min(this.#refreshAtMs, nowMs() + LOST_MS);
  }

  async #ask(discovery: Discovery, url: string): Promise<void> {
    // Behind some addresses there are several nodes: another connection may show that.
    const wire = new Wire(url, this.#token, this.#ca, this.#installation);
    let found: Json | undefined;
    try {
      found = readObject(await wire.call("GET", "/v1/nodes", { withinMs: ASK_WITHIN_MS }));
    } catch (e) {
      const status = e instanceof CallFailed ? e.status : 0;
      if (e instanceof AnotherInstallation) this.#tellSeldom(url, e.message, "installation");
      else if ((status === 0 && !this.#nodes.has(url) && this.#seeds.includes(url)) || status === 401 || status === 403)
        this.#tellSeldom(url, String(e));
      if (status === 0) {
        discovery.lose(url);
        return;
      }
    } finally {
      wire.close();
    }
    if (!discovery.hear(url, found)) this.#tellSeldom(url, "it is ignored, because another node answers there");
  }

  /** Each kind of story of an address once a minute. */
  #tellSeldom(url: string, story: string, kind = ""): void {
    const now = nowMs();
    if (now < (this.#toldMs.get(url + kind) ?? 0)) return;
    this.#toldMs.set(url + kind, now + 60_000);
    this.#log.error(`${this.name}: ${url}: ${story}`);
  }

  #use(urls: readonly string[]): void {
    for (const url of urls) {
      if (this.#nodes.has(url)) continue;
      const node = new Node(url, this.name, this.#token, this.#ca, this.#installation);
      this.#nodes.set(url, node);
      this.#log.info(`${this.name}: connected to ${url} as ${this.instance}`);
      for (const loop of [this.#fetch(node), this.#deliver(node), this.#sendBeats(node)])
        void loop.finally(() => {
          node.running--;
          this.#changed.notify();
        });
    }
    for (const [url, node] of this.#nodes) {
      if (urls.includes(url)) continue;
      this.#nodes.delete(url);
      node.isUsed = false;
      this.#leaving.add(node);
      this.#log.info(`${this.name}: leaves ${url}`);
    }
    this.#changed.notify();
  }

  #forgetLeft(): void {
    for (const node of this.#leaving) {
      if (node.running > 0) continue;
      this.#leaving.delete(node);
      node.close();
    }
  }

  #others(node: Node): Node[] {
    return [...this.#nodes.values()].filter((n) => n !== node && n.failures === 0);
  }

  #failed(node: Node, what: string, e: CallFailed): void {
    if (this.#isEnded) return;
    if (node.failed(e)) {
      const hint =
        e.status === 401
          ? " (set INTACT_TOKEN to a valid token)"
          : e.status === 403
            ? ` (the token needs the role agent:${this.name})`
            : "";
      const line = `${this.name}: ${node.url}: ${what}: ${e.message}${hint}`;
      if (e.status >= 400 && e.status < 500) this.#log.error(line);
      else this.#log.warn(line);
    }
    // A stopping agent has little time, and tries often.
    if (this.#isStopping) node.retryAtMs = Math.min(node.retryAtMs, nowMs() + 200);
    if (e.status === 0) this.#refreshAtMs = Math.min(this.#refreshAtMs, nowMs() + LOST_MS);
    this.#changed.notify();
  }

  #recovered(node: Node): void {
    if (node.failures > 0) this.#log.info(`${this.name}: ${node.url} answers again`);
    node.failures = 0;
  }

  // ---- fetching ----

  #free(): number {
    const unsettled = this.#working + this.#results.size;
    return this.#isStopping ? 0 : Math.max(0, Math.min(this.places - this.#working, HOLDING_MAX - unsettled));
  }

  /** What the server is told of: if it is too much, rather what may still be answered. */
  #holding(): string[] {
    const held = [...this.#held.keys()];
    if (held.length <= HOLDING_MAX) return held;
    const isOver = (token: string): boolean => {
      const request = this.#held.get(token);
      return !this.#results.has(token) && !(request && innerOf(request).isWorking);
    };
    return [...held.filter((token) => !isOver(token)), ...held.filter(isOver)].slice(0, HOLDING_MAX);
  }

  /** How much to ask for, when it is time to; undefined: nothing any more. */
  async #allot(node: Node): Promise<number | undefined> {
    const pollAt = nowMs() + POLL_MS;
    node.isWaiting = true;
    try {
      for (;;) {
        if (this.#isEnded || !node.isUsed || (this.#isStopping && this.#working === 0)) return undefined;
        const now = nowMs();
        let wake = pollAt;
        if (now < node.retryAtMs) {
          wake = node.retryAtMs;
        } else {
          const all = [...this.#nodes.values()];
          const busy = all.filter((n) => n.parkedMax > 0 && now < n.parkedAtMs + IDLE_MS);
          const spare = this.#free() - busy.reduce((sum, n) => sum + n.parkedMax, 0);
          if (spare > 0) return Math.ceil(spare / Math.max(1, all.filter((n) => n.isWaiting && now >= n.retryAtMs).length));
          if (this.#working > 0 && now >= pollAt) return 0;
          wake = Math.min(now < pollAt ? pollAt : now + POLL_MS, ...busy.map((n) => n.parkedAtMs + IDLE_MS));
        }
        await this.#changed.wait(wake - now);
      }
    } finally {
      node.isWaiting = false;
    }
  }

  async #fetch(node: Node): Promise<void> {
    let idle = 0;
    for (;;) {
      const most = await this.#allot(node);
      if (most === undefined) return;
      const sentMs = nowMs();
      node.parkedAtMs = sentMs;
      node.parkedMax = most;
      node.calledHomeMs = node.excessSinceMs = 0;
      try {
        const body = JSON.stringify({
          instance: this.instance,
          max: most,
          holding: this.#holding(),
          ...(most > 0 ? { wait: duration(this.#waitMs) } : {}),
        });
        const answer = await node.call("work", body, (most > 0 ? this.#waitMs : 0) + CALL_WITHIN_MS);
        const requests = this.#read(answer, sentMs);
        this.#recovered(node);
        this.#heedStops(answer);
        this.#take(requests, node);
        const isUseful = most === 0 || requests.length > 0 || node.calledHomeMs > 0 || list(answer["stop"]).length > 0;
        idle = isUseful || nowMs() - sentMs >= this.#waitMs / 2 ? 0 : idle + 1;
        // Who answers at once with nothing is not called in a circle.
        if (idle > 2) node.retryAtMs = nowMs() + Math.min(1000, 10 * 2 ** Math.min(idle, 10));
      } catch (e) {
        this.#failed(node, "work", asFailure(e));
      }
      node.parkedMax = 0;
      this.#changed.notify();
    }
  }

  /** The time of requests counts from when we sent the call: too early rather than too late. */
  #read(answer: Json, sentMs: number): Request[] {
    try {
      const waited = Math.max(0, Math.min(Number(answer["waited_ms"] ?? 0) || 0, nowMs() - sentMs));
      return list(answer["requests"]).map((fields) => Request.sent(fields as Json, sentMs + waited));
    } catch (e) {
      throw new CallFailed(200, `the answer has invalid requests: ${String(e)}`);
    }
  }

  #take(requests: Request[], node: Node): void {
    for (const request of requests) {
      if (this.#held.has(request.token)) continue; // sent again: it is in work, or its answer on the way
      this.#held.set(request.token, request);
      this.#homes.set(request, { node, beats: node });
      const mine = innerOf(request);
      mine.autoHeartbeat = this.#handlers.get(`${request.direction} ${request.action}`)?.options.autoHeartbeat ?? false;
      mine.onBeat = () => this.#changed.notify();
      this.#working++;
      this.#queue.push(request);
    }
    this.#begin();
  }

  #heedStops(answer: Json): void {
    for (const token of list(answer["stop"])) {
      const request = typeof token === "string" ? this.#held.get(token) : undefined;
      if (request) innerOf(request).abort.abort(stopped("unknown"));
    }
  }

  // ---- work ----

  /** What waits gets the places that are free. */
  #begin(): void {
    while (this.#running < this.places) {
      const request = this.#queue.shift();
      if (!request) return;
      this.#running++;
      void this.#work(request);
    }
  }

  async #work(request: Request): Promise<void> {
    request.watch();
    const text = await this.#handle(request);
    request.unwatch();
    this.#running--;
    this.#working--;
    const home = this.#homes.get(request)?.node;
    if (text !== undefined && home) {
      this.#results.set(request.token, { request, home, text, isInFlight: false, isReplaced: false });
      this.#progressMs = nowMs();
    } else {
      this.#over.push({ atMs: Math.max(nowMs(), innerOf(request).deadlineMs) + KEPT_MS, token: request.token });
    }
    this.#begin();
    this.#changed.notify();
  }

  /** The result as it is handed in; undefined: nothing is to be said. */
  async #handle(request: Request): Promise<string | undefined> {
    let text: string;
    try {
      text = await this.#askHandler(request);
    } catch (e) {
      if (e instanceof TooLate) return undefined;
      text = this.#encodeError(request, this.#asError(request, e));
    }
    return request.isOver ? undefined : text;
  }

  async #askHandler(request: Request): Promise<string> {
    if (request.isOver) throw new TooLate("the deadline has passed");
    const handling = this.#handlers.get(`${request.direction} ${request.action}`);
    if (!handling) {
      const what = request.direction === "undo" ? "undo by" : "action";
      throw new StepError("no-such-action", { message: `this agent has no ${what} ${request.action}`, effect: "none" });
    }
    const output = (await handling.run(request)) ?? null;
    if (innerOf(request).isElsewhere) return JSON.stringify({ token: request.token, elsewhere: true, ...tries(request) });
    try {
      const text = JSON.stringify(output) as string | undefined;
      if (text === undefined) throw new TypeError(`it is a ${typeof output}`);
      return `${JSON.stringify({ token: request.token, ...tries(request) }).slice(0, -1)},"output":${text}}`;
    } catch (e) {
      throw new StepError("bad_output", { message: `the handler's output is not JSON: ${readable(e)}`, effect: "unknown" });
    }
  }

  /** An error that is not one of a step: a mistake in a handler, which may have taken effect before. */
  #asError(request: Request, e: unknown): unknown {
    if (e instanceof StepError) return e;
    const isAbort = e instanceof Error && e.name === "AbortError" && request.signal.aborted;
    if (isAbort) return stopped("unknown");
    this.#log.error(`${request.idempotencyKey}: the handler failed: ${readable((e instanceof Error && e.stack) || e)}`);
    return { code: "exception", message: readable(e).slice(0, 1000) };
  }

  #encodeError(request: Request, error: unknown): string {
    try {
      return JSON.stringify({ token: request.token, error, ...tries(request) });
    } catch (e) {
      const message = `the handler's error is not JSON: ${readable(e)}`;
      return JSON.stringify({ token: request.token, error: { code: "bad_error", message, retryable: false, effect: "unknown" } });
    }
  }

  #forgetOver(): void {
    const now = nowMs();
    for (const { atMs, token } of this.#over) if (atMs <= now) this.#held.delete(token);
    this.#over = this.#over.filter((o) => o.atMs > now);
  }

  // ---- results ----

  /** What to hand in there now. */
  #pick(node: Node): Result[] {
    if (nowMs() < node.retryAtMs) return [];
    if (node.failures > 0 && this.#others(node).length > 0) return []; // they do it
    const batch: Result[] = [];
    let size = 0;
    for (const result of this.#results.values()) {
      const { home } = result;
      const isOurs = home === node || home.failures > 0 || !home.isUsed;
      if (result.isInFlight || !isOurs) continue;
      size += Buffer.byteLength(result.text);
      if (batch.length > 0 && (size > BODY_MAX || batch.length >= node.resultMax)) break;
      batch.push(result);
    }
    return batch;
  }

  /** The parked call asks for more than twice the free places, or nothing is wanted any more. */
  #callsHome(node: Node): boolean {
    if (node.parkedMax === 0 || node.calledHomeMs > 0 || node.failures > 0) return false;
    const now = nowMs();
    const free = this.#free();
    if (this.#isStopping || !node.isUsed) return true;
    if (this.#nodes.size < 2 || (free > 0 && node.parkedMax <= 2 * free)) {
      node.excessSinceMs = 0;
      return false;
    }
    node.excessSinceMs ||= now;
    return now - node.excessSinceMs >= EXCESS_MS;
  }

  async #deliver(node: Node): Promise<void> {
    for (;;) {
      const home = this.#callsHome(node);
      const batch = this.#pick(node);
      if (home || batch.length > 0) {
        for (const result of batch) result.isInFlight = true;
        if (home) node.calledHomeMs = nowMs();
        await this.#handIn(node, batch, home);
        continue;
      }
      if (this.#isEnded || (!node.isUsed && node.running === 1)) return;
      const waits = node.retryAtMs - nowMs();
      const soon = node.excessSinceMs > 0 ? 10 : this.#results.size > 0 && waits > 0 ? Math.min(200, waits) : 200;
      await this.#changed.wait(this.#results.size > 0 || node.parkedMax > 0 ? soon : 1000);
    }
  }

  async #handIn(node: Node, batch: Result[], home: boolean): Promise<void> {
    const instead = home ? ',"instead":true' : "";
    const body = `{"instance":${JSON.stringify(this.instance)},"max":0${instead},"results":[${batch.map((r) => r.text).join()}]}`;
    let failure: CallFailed | undefined;
    try {
      const answer = await node.call("work", body, this.#others(node).length > 0 ? HAND_IN_WITHIN_MS : CALL_WITHIN_MS);
      this.#recovered(node);
      this.#settle(answer);
      this.#heedStops(answer);
      if (batch.some((r) => this.#results.get(r.request.token) === r))
        failure = new CallFailed(200, "the answer has no outcomes of results");
      else if (batch.length > 0) node.resultMax = Math.min(1000, node.resultMax * 2);
    } catch (e) {
      failure = asFailure(e);
    }
    for (const result of batch) result.isInFlight = false;
    if (failure?.isAboutUs && batch.length > 0) {
      // One that cannot be taken must not keep back the others.
      node.resultMax = 1;
      if (batch.length === 1 && batch[0]) this.#replace(batch[0], failure.message);
    } else if (failure) {
      this.#failed(node, "results", failure);
    }
    this.#changed.notify();
  }

  /** Whatever became of a result (accepted, repeated, late, unknown): it is with the server. */
  #settle(answer: Json): void {
    for (const outcome of list(answer["outcomes"]) as (Json | null)[]) {
      const result = this.#results.get(String(outcome?.["token"]));
      if (!outcome || !result) continue;
      this.#results.delete(result.request.token);
      this.#held.delete(result.request.token);
      this.#progressMs = nowMs();
      if (outcome["status"] === "late" || outcome["status"] === "unknown")
        this.#log.warn(
          `${result.request.idempotencyKey}: the result is ${outcome["status"]}` +
            (outcome["problem"] ? `: ${JSON.stringify(outcome["problem"])}` : ""),
        );
    }
  }

  #replace(result: Result, story: string): void {
    const { request } = result;
    if (result.isReplaced) {
      this.#log.error(`${request.idempotencyKey}: the result is dropped: ${story}`);
      this.#results.delete(request.token);
      this.#held.delete(request.token);
      return;
    }
    this.#log.error(`${request.idempotencyKey}: the server cannot accept the result: ${story}`);
    const message = story.slice(0, 500).replace(/[^ -~]/g, "?");
    result.isReplaced = true;
    result.text = JSON.stringify({
      token: request.token,
      error: { code: "unacceptable", message, retryable: false, effect: "unknown" },
    });
  }

  // ---- signs of life ----

  #nextBeatNode(at: Node): Node {
    const all = [...this.#nodes.values()];
    return all[(all.indexOf(at) + 1) % all.length] ?? at;
  }

  async #sendBeats(node: Node): Promise<void> {
    while (!this.#isEnded && node.isUsed) {
      const now = nowMs();
      const due: Request[] = [];
      let wake = now + 1000;
      for (const request of this.#held.values()) {
        const at = request.beatDueMs;
        const homes = this.#homes.get(request);
        if (at === undefined || !homes) continue;
        const others = this.#others(homes.beats);
        if ((!homes.beats.isUsed || homes.beats.failures > 0) && others[0]) homes.beats = others[0];
        if (homes.beats !== node) continue;
        if (at <= now && due.length < BEATS_MAX) due.push(request);
        else wake = Math.min(wake, at);
      }
      if (due.length > 0) await this.#beat(node, due, now);
      else await this.#changed.wait(wake - now);
    }
  }

  async #beat(node: Node, due: Request[], now: number): Promise<void> {
    const sent = new Map<string, { request: Request; beat: Beat }>();
    for (const request of due) {
      const mine = innerOf(request);
      sent.set(request.token, { request, beat: mine.beat ?? {} });
      mine.beat = undefined;
      mine.beatAtMs = now;
    }
    const beats = [...sent].map(([token, { beat }]) => ({ token, ...beat }));
    try {
      const body = JSON.stringify({ instance: this.instance, beats });
      const answer = await node.call("heartbeats", body, this.#others(node).length > 0 ? HAND_IN_WITHIN_MS : ASK_WITHIN_MS);
      this.#heedStops(answer);
      for (const outcome of list(answer["outcomes"]) as (Json | null)[]) {
        const found = sent.get(String(outcome?.["token"]));
        if (outcome && found) this.#beatAnswered(found.request, found.beat, outcome, now);
      }
    } catch {
      for (const { request, beat } of sent.values()) this.#beatLost(request, beat);
    }
  }

  #beatAnswered(request: Request, beat: Beat, outcome: Json, sentMs: number): void {
    const mine = innerOf(request);
    if (outcome["status"] === "accepted") {
      mine.acknowledgedMs = Math.max(mine.acknowledgedMs, sentMs);
    } else if (outcome["status"] === "late") {
      mine.abort.abort(stopped("unknown"));
    } else if (outcome["problem"]) {
      this.#log.warn(`${request.idempotencyKey}: heartbeat: ${JSON.stringify(outcome["problem"])}`);
    } else {
      this.#beatLost(request, request.heartbeatMs === undefined ? undefined : beat);
    }
  }

  /** It goes again, unless there is a newer one, and to the next node. */
  #beatLost(request: Request, beat: Beat | undefined): void {
    const mine = innerOf(request);
    if (mine.isWorking && beat) mine.beat = { ...beat, ...mine.beat };
    const homes = this.#homes.get(request);
    if (homes && this.#nodes.size > 1) homes.beats = this.#nextBeatNode(homes.beats);
  }
}

function tries(request: Request): { tries?: number } {
  return request.tries > 0 ? { tries: Math.min(Math.trunc(request.tries), 1_000_000) } : {};
}
