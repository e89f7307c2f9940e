// What can be said of the parts alone, of the package as it is installed. Run by tests/libraries/typescript.sh.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import os from "node:os";
import { createRequire, syncBuiltinESMExports } from "node:module";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import {
  Agent, Again, Busy, Client, Problem, Request, SqliteBarrier, StepError, TooLate, Unreachable, WaitTimeout, retryWait,
} from "intact-client";

// Parts that the package does not give away.
const part = (name) => import(pathToFileURL(`node_modules/intact-client/dist/${name}.js`).href);
const { Discovery } = await part("discovery");
const { innerOf } = await part("request");
const { nowMs } = await part("clock");
const { isServer, servers } = await part("http");

function request({ left = 600000, direction = "forward", key = "t/s", ...more } = {}) {
  const isUndo = direction === "undo";
  return Request.sent(
    {
      token: "x", task: "t", step: "s", action: "a", direction, attempt: 1, input: null, time_left_ms: left,
      idempotency_key: isUndo ? `${key}/undo` : key,
      ...(isUndo ? { forward: { idempotency_key: key, input: null, output: null, attempts: 1, in_doubt: true } } : {}),
      ...more,
    },
    nowMs(),
  );
}

test("waits double up to the most, and half is chance", () => {
  for (const [calls, longest] of [[1, 1000], [2, 2000], [4, 8000], [5, 10000], [500, 10000]]) {
    const waits = Array.from({ length: 200 }, () => retryWait({ first: 1000 }, calls, 1e6));
    assert.ok(Math.min(...waits) >= longest / 2 && Math.max(...waits) <= longest && new Set(waits).size > 1);
  }
});

test("retries give up", () => {
  assert.equal(retryWait({ tries: 3 }, 3, 1e6), undefined);
  assert.equal(retryWait({ first: 1000, most: 1000 }, 1, 400), undefined);
  assert.equal(retryWait({ first: 10, leave: 1000 }, 1, 1004), undefined);
  assert.equal(retryWait({}, 1, 5000, 5000), undefined);
  assert.ok(retryWait({}, 1, 50000, 5000) >= 5000);
});

test("call counts, and tells what it was", async () => {
  const answers = [Object.assign(new Error("away"), { code: "ECONNRESET" }), new Again("later"), new StepError("busy", { retryable: true }), 7];
  const r = request();
  const service = () => {
    const answer = answers.shift();
    if (answer instanceof Error) throw answer;
    return answer;
  };
  assert.equal(await r.call(service, { first: 1, most: 2 }), 7);
  assert.equal(r.tries, 4);
});

test("what is not to be called again", async () => {
  for (const error of [new RangeError("mistake"), new StepError("declined")]) {
    const r = request();
    await assert.rejects(r.call(() => Promise.reject(error)), error);
    assert.equal(r.tries, 1);
  }
});

test("call gives up with the last failure", async () => {
  await assert.rejects(request().call(() => { throw new Again("ask later", 7_200_000); }), (e) => {
    assert.deepEqual(e.toJSON(), { code: "again", message: "ask later", retryable: true, effect: "unknown", retry_after: "7200000ms" });
    return true;
  });
});

test("what is over is not called, and stays over", async () => {
  const late = request({ left: 0 });
  await assert.rejects(late.call(() => assert.fail("called")), TooLate);
  assert.equal(late.tries, 0);
  assert.ok(late.signal.aborted);
  const silent = request({ heartbeat_ms: 1 });
  while (!silent.isOver);
  innerOf(silent).acknowledgedMs = nowMs() + 10000;
  assert.ok(silent.isOver);
});

test("a stop ends a pause", async () => {
  const r = request();
  setTimeout(() => innerOf(r).abort.abort(new StepError("stopped")), 20);
  assert.equal(await r.pause(600_000), false);
  assert.throws(() => r.check(), StepError);
});

test("a request for a test asks to act, or to undo", () => {
  const r = Request.forTest({ input: { at: new Date(0) }, action: "charge", task: "o-1", step: "pay", attempt: 3 });
  assert.ok(r instanceof Request && !r.shouldStop && r.timeLeftMs > 50_000);
  assert.deepEqual([r.input, r.action, r.direction, r.attempt], [{ at: "1970-01-01T00:00:00.000Z" }, "charge", "forward", 3]);
  assert.deepEqual([r.idempotencyKey, r.forward, r.resume], ["o-1/pay", undefined, undefined]);
  const u = Request.forTest({ forward: { output: { receipt: 17 } }, resume: { at: 1 }, idempotencyKey: "other" });
  assert.deepEqual([u.direction, u.idempotencyKey, u.resume, u.input], ["undo", "other", { at: 1 }, null]);
  assert.deepEqual(u.forward, { idempotency_key: "test/test", input: null, output: { receipt: 17 }, attempts: 1, in_doubt: false });
  assert.throws(() => Request.forTest({ input: 7n }), TypeError);
});

test("what the handler of a request for a test told can be looked at", async () => {
  const r = Request.forTest({ heartbeatMs: 5000 });
  assert.equal(await r.call(() => 7), 7);
  r.heartbeat({ done: 1 }, "copying", { at: 1 });
  r.heartbeat({ done: 2 });
  assert.deepEqual(r.beats, [{ progress: { done: 1 }, message: "copying", resume: { at: 1 } }, { progress: { done: 2 } }]);
  assert.deepEqual([r.isElsewhere, r.elsewhere(), r.isElsewhere], [false, undefined, true]);
});

test("a request for a test can be stopped, and expire", async () => {
  for (const [end, Kind] of [["stop", StepError], ["expire", TooLate]]) {
    const r = Request.forTest();
    setTimeout(() => r[end](), 20);
    assert.equal(await r.pause(600_000), false);
    assert.ok(r.shouldStop && r.signal.aborted && r.signal.reason instanceof Kind);
    assert.throws(() => r.check(), Kind);
  }
});

test("beats have limits, and the latest of each is sent", () => {
  const r = request();
  for (const bad of ["x".repeat(2047), undefined === 1, 7n, () => 1])
    if (typeof bad !== "boolean") assert.throws(() => r.heartbeat(bad));
  r.heartbeat("x".repeat(2046), "é".repeat(200));
  assert.equal(innerOf(r).beat.message, "é".repeat(128));
  r.heartbeat(2, undefined, { at: 1 });
  assert.deepEqual(innerOf(r).beat, { progress: 2, message: "é".repeat(128), resume: { at: 1 } });
});

test("a machine that slept is noticed", () => {
  const real = os.uptime;
  const before = nowMs();
  assert.ok(Math.abs(nowMs() - before) < 60_000);
  const r = request({ left: 3_000_000 });
  os.uptime = () => real() + 3600;
  syncBuiltinESMExports();
  try {
    const end = performance.now() + 60_000;
    while (nowMs() - before < 3_600_000 - 1000) assert.ok(performance.now() < end, "the hour is not noticed");
    assert.ok(r.isOver);
  } finally {
    os.uptime = real;
    syncBuiltinESMExports();
  }
  assert.ok(nowMs() - before >= 3_600_000 - 1000, "it does not go back");
});

const told = (self, nodes) => ({
  self,
  nodes: Object.entries(nodes).map(([node, url]) => ({ node, url, alive: true, roles: ["scheduler"] })),
});

test("discovery: a seed stands for its node", () => {
  const d = new Discovery(["http://seed:1"]);
  assert.deepEqual(d.wanted(), []);
  d.hear("http://seed:1", told("n1", { n1: "http://inside:1", n2: "http://two:1" }));
  assert.deepEqual(d.toAsk(), ["http://seed:1", "http://two:1"]);
  assert.deepEqual(d.wanted(), ["http://seed:1"]);
  d.hear("http://two:1", told("n2", { n1: "http://inside:1", n2: "http://two:1" }));
  assert.deepEqual(d.wanted(), ["http://seed:1", "http://two:1"]);
  d.lose("http://seed:1");
  assert.deepEqual(d.wanted(), ["http://two:1"]);
});

test("discovery: somebody else answers, a proxy, https, and what is no list", () => {
  const d = new Discovery(["http://seed:1"]);
  d.hear("http://seed:1", told("n1", { n1: null, n2: "http://two:1" }));
  assert.equal(d.hear("http://two:1", told("n9", { n9: "http://evil:1" })), false);
  assert.deepEqual(d.wanted(), ["http://seed:1"]);

  const nodes = { n1: "http://one:1", n2: "http://two:1" };
  const p = new Discovery(["http://proxy:1"]);
  for (const name of ["n1", "n2"]) p.hear("http://proxy:1", told(name, nodes));
  for (const [name, url] of Object.entries(nodes)) p.hear(url, told(name, nodes));
  assert.deepEqual(p.wanted().sort(), Object.values(nodes));

  const s = new Discovery(["https://seed:1"]);
  s.hear("https://seed:1", told("n1", { n1: null, n2: "http://two:1", n3: "https://three:1" }));
  assert.deepEqual(s.toAsk(), ["https://seed:1", "https://three:1"]);

  for (const bad of [undefined, {}, { nodes: 7 }, { nodes: [7, null, {}, { node: "a b", url: "http://x:1" }, { node: "n", roles: 7, url: 7 }] }]) {
    const q = new Discovery(["http://seed:1"]);
    q.hear("http://seed:1", bad);
    assert.deepEqual([q.wanted(), q.toAsk()], [["http://seed:1"], ["http://seed:1"]]);
  }
});

test("settings that make no sense are said at once", () => {
  for (const bad of [{ places: 0 }, { places: 1001 }, { server: "localhost:7420" }, { server: "http://x/path" }, { server: "," },
    { ca: "/nowhere.pem" }, { token: "a\nb" }, { instance: "x".repeat(151) }, { waitMs: 0 }])
    assert.throws(() => new Agent("a", bad), RangeError, JSON.stringify(bad));
  assert.throws(() => new Agent(""), RangeError);
  assert.throws(() => new Agent("a").start(), RangeError);
  assert.throws(() => new Agent("a").action("x", () => 1).action("x", () => 1), RangeError);
  assert.deepEqual(servers("http://a:1/, https://b,http://a:1"), ["http://a:1", "https://b"]);
  assert.ok(isServer("http://[::1]:7420") && !isServer("http://a:99999") && !isServer("http://u:p@a"));
});

test("problem documents", () => {
  const p = new Problem(422, {
    type: "urn:intact:problem:bad-definition",
    errors: [{ line: 7, path: "steps[0]", found: "nothing", expected: "a key" }],
  });
  assert.equal(p.kind, "bad-definition");
  assert.equal(p.message, "422 bad-definition: line 7: steps[0]: found nothing, expected a key");
});

// SQLite itself, by a driver of WebAssembly with the functions of node:sqlite, which Node brings only from 22 on.
const { Database } = createRequire(`${process.env.DRIVERS}/`)("node-sqlite3-wasm");
const driver = new Database(":memory:");
const database = {
  exec: (sql) => driver.exec(sql),
  prepare: (sql) => ({
    run: (...parameters) => driver.prepare(sql).run(parameters),
    get: (...parameters) => driver.prepare(sql).get(parameters),
  }),
};

test("the barrier on SQLite: all rows of the table of answers", () => {
  const barrier = new SqliteBarrier(database);
  let effects = 0;
  const once = (more) => barrier.once(request(more), () => ({ n: ++effects }));
  assert.deepEqual([once(), once()], [{ n: 1 }, { n: 1 }]);
  assert.deepEqual([once({ direction: "undo" }), once({ direction: "undo" })], [{ n: 2 }, { n: 2 }]);
  assert.throws(() => once(), (e) => e.code === "undone" && !e.retryable && e.effect === "none");
  assert.equal(once({ direction: "undo", key: "t2/s" }), null);
  assert.throws(() => once({ key: "t2/s" }), (e) => e.code === "undone");
  assert.throws(() => barrier.once(request({ key: "t3/s" }), () => { throw new RangeError("mistake"); }), RangeError);
  assert.throws(() => barrier.once(request({ key: "t3/s" }), async () => 1), TypeError);
  assert.throws(() => barrier.once(request({ key: "t3/s" }), (db) => db.exec("SELECT * FROM nowhere")), (e) => e.code === "database");
  assert.deepEqual(once({ key: "t3/s" }), { n: 3 });
  assert.equal(barrier.clean(3_600_000), 0);
  assert.equal(barrier.clean(-3_600_000), 3);
});

/** A server of one function, closed when the test ends. */
async function serve(t, answer) {
  const server = createServer(answer);
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${server.address().port}`;
}

test("a wait is not cut off because there are several servers", async (t) => {
  let calls = 0;
  const park = (request, response) => {
    calls += request.url !== "/healthz"; // which all are asked first
    const wait = Number(/wait=(\d+)ms/.exec(request.url)?.[1] ?? 0);
    setTimeout(() => response.end('{"id": "t", "state": "processing"}'), wait);
  };
  const server = `${await serve(t, park)},${await serve(t, park)}`;
  const client = new Client({ server, timeoutMs: 2000 });
  await assert.rejects(client.wait("t", { timeoutMs: 5000 }), WaitTimeout);
  assert.ok(calls <= 2);
  client.close();
});

test("what has no id is submitted once, and what is given one is tried again", async (t) => {
  let calls = 0;
  const server = await serve(t, (request) => {
    calls++;
    request.socket.destroy();
  });
  const client = new Client({ server, timeoutMs: 500 });
  await assert.rejects(client.call("POST", "/v1/tasks", { workflow: "w" }), Unreachable);
  assert.equal(calls, 1);
  await assert.rejects(client.submit("w", { id: undefined }), Unreachable);
  assert.ok(calls > 2);
  client.close();
});

test("a signal that finds no room is not sent again", async (t) => {
  let calls = 0;
  const server = await serve(t, (request, response) => {
    calls += request.url !== "/healthz";
    response.writeHead(429).end('{"type": "urn:intact:problem:too-many-signals", "title": "x", "status": 429}');
  });
  const client = new Client({ server, timeoutMs: 30_000 });
  await assert.rejects(client.signal("t", "go", 1, "k"), (e) => e instanceof Problem && !(e instanceof Busy) && e.kind === "too-many-signals");
  assert.equal(calls, 1);
  await assert.rejects(client.signal("t", "go", 1, ""), RangeError);
  client.close();
});

test("a decision names the question that was read", async (t) => {
  const seen = [];
  const server = await serve(t, (request, response) => {
    let body = "";
    request.on("data", (part) => { body += part; });
    request.on("end", () => {
      if (request.url !== "/healthz") seen.push(`${request.method} ${request.url} ${body}`);
      response.writeHead(200, { "content-type": "application/json" }).end("{}");
    });
  });
  const client = new Client({ server });
  await client.approvals({ task: "t/1" });
  await client.approve("t/1", "allow", { asking: 2 });
  await client.reject("t", "allow", "too much", { asking: 1 });
  assert.deepEqual(seen, [
    "GET /v1/approvals?task=t%2F1 ",
    'POST /v1/approvals/t%2F1/allow/approve {"asking":2}',
    'POST /v1/approvals/t/allow/reject {"comment":"too much","asking":1}',
  ]);
  client.close();
});

test("a task that was deleted is told of at once", async () => {
  let says = [410, { type: "urn:intact:problem:task-deleted", title: "Gone", status: 410, detail: "task x ended processed, and was deleted" }];
  const heard = [];
  const server = createServer((request, response) => {
    let body = "";
    request.on("data", (part) => { body += part; });
    request.on("end", () => {
      heard.push(body);
      response.writeHead(says[0], { "content-type": "application/json" }).end(JSON.stringify(says[1]));
    });
  });
  await new Promise((done) => { server.listen(0, "127.0.0.1", done); });
  const client = new Client({ server: `http://127.0.0.1:${server.address().port}` });
  for (const ask of [client.get("x"), client.wait("x")])
    await assert.rejects(ask, (e) => e instanceof Problem && e.status === 410 && e.kind === "task-deleted" && /ended processed/.test(e.message));
  assert.equal(heard.length, 2);
  says = [200, { id: "x", workflow: "w", version: 1, deleted: true, state: "processed", ended_at: "2026-01-31T10:00:00.000Z" }];
  assert.equal((await client.submit("w", { id: "x", traceparent: "00-1-1-01" })).deleted, true);
  assert.equal(JSON.parse(heard[2]).traceparent, "00-1-1-01");
  server.close();
});
