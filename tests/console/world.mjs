// An installation to look at: a real server, agents that succeed, fail, hang and lose results, and tasks in every state.
// The browser test asks it for the truth; `node tests/console/world.mjs INTACT FOLDER` keeps it running for development.
import { execFileSync, spawn } from "node:child_process";
import { mkdirSync, openSync, readFileSync } from "node:fs";
import { dirname } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath, pathToFileURL } from "node:url";

const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
const work = (ms) => new Promise((done) => setTimeout(done, ms).unref()); // an agent at work does not keep a test from its end

// `port` 0: a free one. A server that is to come again needs one of its own (freePort).
export async function startServer(intact, folder, { args = [], port = 0, token: given, env = {} } = {}) {
  mkdirSync(folder, { recursive: true });
  const log = openSync(`${folder}/log`, "a");
  const process = spawn(intact, ["serve", "--data", `${folder}/data`, "--listen", `127.0.0.1:${port}`, ...args], {
    stdio: ["ignore", "pipe", log], env: { ...global.process.env, ...env },
  });
  const line = await new Promise((done, failed) => {
    createInterface({ input: process.stdout }).once("line", done);
    process.once("exit", (code) => failed(new Error(`the server ended with ${code}: see ${folder}/log`)));
  });
  const url = `http://127.0.0.1:${Number(line.split(" ")[3])}`;
  const token = given ?? readFileSync(`${folder}/data/admin-token`, "ascii").trim();
  return { process, url, token, call: caller(url, token), stop: () => stop(process) };
}

const TESTS = dirname(dirname(fileURLToPath(import.meta.url)));

// One that the kernel gives to nobody else while the server is down (tests/ports.py).
export const freePort = () => Number(execFileSync("python3", ["-B", "-c", "import ports; print(ports.free_port())"], { cwd: TESTS, encoding: "ascii" }));

async function stop(process) {
  if (process.exitCode !== null || process.signalCode !== null) return;
  const ended = new Promise((done) => process.once("exit", done));
  process.kill("SIGKILL");
  await ended;
}

export function caller(url, token) {
  return async (method, path, body, type = "application/json") => {
    const answer = await fetch(url + path, {
      method,
      headers: { Authorization: `Bearer ${token}`, ...(body === undefined ? {} : { "Content-Type": type }) },
      body: body === undefined ? undefined : typeof body === "string" ? body : JSON.stringify(body),
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
    return text && answer.headers.get("content-type")?.includes("json") && type !== "application/x-ndjson" ? JSON.parse(text) : text;
  };
}

// How an agent answers a request: by its action and input. Undefined: never.
async function answerOf(request, beat) {
  const input = request.input && typeof request.input === "object" ? request.input : {};
  const fails = input.fail ?? input.input?.fail;
  if (request.direction === "undo" && input.input?.stuck) return { error: { code: "no-refund", message: "the account is closed", retryable: false } };
  if (request.direction === "undo") return { output: null };
  if (fails === request.step) return { error: { code: "declined", message: "the card is blocked", retryable: false } };
  if (request.action === "push") return { error: { code: "unavailable", message: "502 Bad Gateway", retryable: true } };
  if (input.flaky === request.step && request.attempt < 3) return { error: { code: "unavailable", message: "503 from the bank", retryable: true } };
  if (input.lose === request.step) return { error: { code: "lost", message: "the answer never came", retryable: false, effect: "unknown" } };
  if (input.hang === request.step) {
    for (let part = 1; part < 600; part += 1) {
      await work(1000);
      await beat({ part, of: 600 }, `page ${part} of 600`);
    }
  }
  if (input.silent === request.step) return undefined;
  if (request.step.includes(".") && input.bad) return { error: { code: "sold-out", message: `no ${input.sku} left`, retryable: false } };
  await work(input.slow ?? 5 + Math.random() * 40);
  return { output: { id: `${request.action}-${request.task}`, at: request.step } };
}

export function startAgent(call, agent, { instance = `${agent}-1`, places = 20, answer: answers = answerOf, idle = "1s" } = {}) {
  let open = true;
  let results = [];
  const holding = new Set();
  const run = async () => {
    while (open) {
      const sent = results;
      results = [];
      const answer = await call("POST", `/v1/agents/${agent}/work`, {
        instance, max: Math.max(0, places - holding.size), wait: holding.size > 0 ? "20ms" : idle, results: sent, holding: [...holding],
      }).catch(() => null);
      if (!answer) {
        results = [...sent, ...results];
        await sleep(200);
        continue;
      }
      for (const request of answer.requests ?? []) {
        if (holding.has(request.token)) continue;
        holding.add(request.token);
        const beat = (progress, message) => call("POST", `/v1/agents/${agent}/heartbeats`, {
          instance, beats: [{ token: request.token, progress, message }],
        }).catch(() => {});
        answers(request, beat).then((result) => {
          if (!result) return;
          holding.delete(request.token);
          results.push({ token: request.token, ...result });
        });
      }
      if (holding.size > 0) await sleep(20);
    }
  };
  const done = run();
  return { stop: () => { open = false; return done; } };
}

const undo = (action) => ({ action });

export const WORKFLOWS = {
  order: {
    intact: 1, workflow: "order", complete_by: "2h",
    steps: [
      { name: "reserve", agent: "stock", action: "reserve", undo: undo("release") },
      { name: "charge", agent: "bank", action: "charge", undo: undo("refund"), complete_by: "20s", retry: { attempts: 4, wait: "300ms" } },
      { name: "receipt", agent: "mail", action: "receipt", after: ["charge"], on_failure: "continue", undo: "none" },
      { name: "label", agent: "carrier", action: "label", after: ["reserve"], undo: undo("void") },
      { name: "ship", agent: "carrier", action: "ship", after: ["charge", "label"], pivot: true },
    ],
    output: { parcel: "${ .steps.ship.output.id }" },
  },
  payout: {
    intact: 1, workflow: "payout", on_failure: "hold",
    steps: [
      { name: "check", agent: "bank", action: "check", undo: "none" },
      { name: "pay", agent: "bank", action: "pay", undo: undo("claw-back"), complete_by: "15s", retry: { attempts: 2, wait: "200ms" } },
      { name: "confirm", agent: "mail", action: "confirm", undo: "none" },
    ],
  },
  parcel: {
    intact: 1, workflow: "parcel", on_failure: "hold",
    steps: [
      { name: "book", agent: "carrier", action: "book", undo: undo("unbook") },
      { name: "ship", agent: "carrier", action: "ship", complete_by: "3s", retry: { attempts: 1 }, pivot: true },
    ],
  },
  expense: {
    intact: 1, workflow: "expense",
    steps: [
      { name: "allow", approve: { by: ["finance"], question: "Pay ${ .input.amount } to ${ .input.who }?", people: 2 }, complete_by: "3d" },
      { name: "pay", agent: "bank", action: "pay", undo: undo("claw-back") },
    ],
  },
  reminder: {
    intact: 1, workflow: "reminder",
    steps: [
      { name: "later", wait: "2d" },
      { name: "remind", agent: "mail", action: "remind", undo: "none" },
    ],
  },
  packing: {
    intact: 1, workflow: "packing", on_failure: "hold",
    steps: [
      { name: "pack", for_each: "${ .input.lines }", max_items: 10000, concurrency: 50, on_item_failure: "continue", agent: "stock", action: "take", input: { sku: "${ .item.sku }", bad: "${ .item.bad // false }", slow: "${ .item.slow // 1 }" }, undo: undo("put-back"), complete_by: "20m" },
      { name: "book", agent: "carrier", action: "book", undo: undo("unbook"), input: "${ .input.more }" },
    ],
  },
  fax: { intact: 1, workflow: "fax", steps: [{ name: "send", agent: "fax", action: "send", undo: "none" }] },
  sync: {
    intact: 1, workflow: "sync",
    steps: [{ name: "push", agent: "crm", action: "push", undo: "none", retry: { attempts: 3, wait: "100ms" } }],
  },
  export: {
    intact: 1, workflow: "export", complete_by: "1h",
    steps: [
      { name: "dump", agent: "archive", action: "dump", complete_by: "20m", heartbeat: "30s", undo: "none" },
      { name: "upload", agent: "archive", action: "upload", undo: undo("remove") },
    ],
  },
  delivery: {
    intact: 1, workflow: "delivery",
    steps: [
      { name: "reserve", agent: "stock", action: "reserve", undo: undo("release") },
      { name: "parcel", task: { workflow: "parcel", input: "${ .input }" }, complete_by: "2d", pivot: true },
    ],
  },
  wide: {
    intact: 1, workflow: "wide",
    steps: Array.from({ length: 1000 }, (_, n) => ({
      name: `s${n}`, agent: n % 7 === 3 ? "bank" : "stock", action: "take", undo: "none",
      after: n === 0 ? [] : n < 20 ? ["s0"] : [`s${n - 20}`, ...(n % 9 === 0 ? [`s${n - 13}`] : [])],
    })),
  },
};

const NASTY = '<img src=x onerror=alert(1)> \u202Eright-to-left\u202C \u0007bell "quotes"';

// One task in each situation that an operator meets, under the id that tests use.
export async function fill(call, { orders = 60 } = {}) {
  for (const definition of Object.values(WORKFLOWS)) {
    await call("PUT", `/v1/workflows/${definition.workflow}`, definition);
  }
  const ann = await call("POST", "/v1/tokens", { name: "ann", roles: ["read", "approve"], groups: ["finance"] });
  const reader = await call("POST", "/v1/tokens", { name: "reader", roles: ["read"] });
  const shops = ["berlin", "rome", "oslo"];
  const lines = Array.from({ length: orders }, (_, n) => JSON.stringify({
    workflow: "order", id: `order-${String(n + 1).padStart(5, "0")}`, tags: { shop: shops[n % 3], customer: `c-${n % 17}` },
    input: { sku: `tea-${n % 9}`, quantity: 1 + (n % 4), ...(n % 11 === 5 ? { fail: "charge" } : {}), ...(n % 13 === 7 ? { flaky: "charge" } : {}) },
  })).join("\n");
  if (orders > 0) await call("POST", "/v1/tasks", lines, "application/x-ndjson");
  const submit = (workflow, id, input, more = {}) => call("POST", "/v1/tasks", { workflow, id, input, ...more });
  for (let n = 1; n <= 4; n += 1) await submit("payout", `payout-${n}`, { amount: 100 * n, fail: "pay" }, { tags: { desk: "north" } });
  await submit("payout", "payout-flaky", { amount: 7, flaky: "pay" });
  await submit("order", "order-stuck", { sku: "lamp", stuck: true, fail: "ship" });
  await submit("parcel", "parcel-lost", { to: "Bonn", lose: "ship" });
  await submit("expense", "expense-1", { amount: "€ 1,200", who: "Zoe" });
  await submit("expense", "expense-2", { amount: "€ 80", who: NASTY });
  await submit("reminder", "reminder-1", { who: "ann" });
  for (let n = 1; n <= 25; n += 1) await submit("sync", `sync-${n}`, {});
  await submit("fax", "fax-1", { to: "+39 06 1" });
  await submit("export", "export-1", { hang: "dump" });
  await submit("order", "order-paused", { sku: "cup" }, { paused: true });
  await submit("delivery", "delivery-1", { to: "Rome", lose: "ship" });
  await submit("packing", "packing-1", { lines: Array.from({ length: 600 }, (_, n) => ({ sku: `cup-${n}`, ...(n % 97 === 13 ? { bad: true } : {}), ...(n > 560 ? { slow: 600_000 } : {}) })) });
  await submit("payout", "nasty", { amount: 1, fail: "pay", note: NASTY, [NASTY]: NASTY, big: "x".repeat(200_000) }, { tags: { note: NASTY } });
  return { ann: ann.token, reader: reader.token };
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const [intact, folder, orders = "300"] = process.argv.slice(2);
  const server = await startServer(intact, folder);
  const agents = ["stock", "bank", "carrier", "mail", "archive", "crm"].map((name) => startAgent(server.call, name, { places: 100 }));
  await fill(server.call, { orders: Number(orders) });
  await server.call("POST", "/v1/tasks", { workflow: "wide", id: "wide-1", input: {} });
  await server.call("POST", "/v1/tasks", { workflow: "packing", id: "packing-big", input: { lines: Array.from({ length: 10000 }, (_, n) => ({ sku: `pen-${n}`, ...(n % 997 === 5 ? { bad: true } : {}) })) } });
  console.log(JSON.stringify({ url: server.url, token: server.token }));
  const end = async () => {
    await Promise.all(agents.map((a) => a.stop()));
    await server.stop();
    process.exit(0);
  };
  process.on("SIGTERM", end);
  process.on("SIGINT", end);
  for (let n = 0; ; n += 1) {
    await sleep(700 + Math.random() * 1600);
    const input = { sku: `tea-${n % 9}`, quantity: 1, ...(n % 11 === 5 ? { fail: "charge" } : {}), ...(n % 9 === 7 ? { flaky: "charge" } : {}) };
    await server.call("POST", "/v1/tasks", { workflow: "order", id: `live-${Date.now().toString(36)}`, input, tags: { shop: ["berlin", "rome"][n % 2] } }).catch(() => {});
  }
}
