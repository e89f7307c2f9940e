// Submissions that are made together: against a real server behind a counter of requests, and against played ones.
import assert from "node:assert/strict";
import { createServer, request as forward } from "node:http";
import { test } from "node:test";
import { Busy, Client, Problem, Unreachable } from "intact-client";

const real = new Client();

/** A server on a port of its own, for the time of the test. */
async function listening(t, answer) {
  const server = createServer((request, response) => {
    const parts = [];
    request.on("data", (part) => parts.push(part));
    request.on("end", () => answer(request, response, Buffer.concat(parts).toString()));
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    server.closeAllConnections?.();
    server.close();
  });
  return `http://127.0.0.1:${server.address().port}`;
}

/** Passes submissions on to the real server, and keeps their bodies; `hold`: what each waits for before. */
async function counting(t, hold = async () => {}) {
  const seen = [];
  const url = await listening(t, async (request, response, body) => {
    if (request.method === "POST") seen.push(body.split("\n"));
    if (request.method === "POST") await hold(seen.length);
    const to = forward(process.env.INTACT_SERVER + request.url, { method: request.method, headers: request.headers }, (from) => {
      response.writeHead(from.statusCode, from.headers);
      from.pipe(response);
    });
    to.end(body);
  });
  return { url, seen };
}

/** A client that is closed behind the test. */
function clientOf(t, options) {
  const client = new Client({ timeoutMs: 120_000, ...options });
  t.after(() => client.close());
  return client;
}

const settled = (calls) => Promise.allSettled(calls);

test("its workflow", async () => {
  await real.putWorkflow({ intact: 1, workflow: "gathered", steps: [{ name: "rest", wait: "1d" }] });
  await real.putWorkflow({ intact: 1, workflow: "gathered", steps: [{ name: "rest", wait: "2d" }] });
});

test("calls of one turn are one request, and each has its own answer", async (t) => {
  const { url, seen } = await counting(t);
  const client = clientOf(t, { server: url });
  await client.submit("gathered", { id: "g-there", input: 1 });
  const calls = [
    client.submit("gathered", { id: "g-new" }),
    client.submit("gathered", { id: "g-there", input: 1 }),
    client.submit("gathered", { id: "g-there", input: 2 }),
    client.submit("nothing", { id: "g-none" }),
    client.submit("gathered", { id: "" }),
    client.submit("gathered"),
    client.submit("gathered", { id: "g-old", version: 1 }),
  ];
  const [made, again, conflict, none, bad, named, old] = await settled(calls);
  assert.deepEqual(seen.map((lines) => lines.length), [1, 7]);
  assert.deepEqual(made.value, { id: "g-new", workflow: "gathered", version: 2 });
  assert.deepEqual(again.value, { id: "g-there", workflow: "gathered", version: 2 });
  assert.deepEqual(old.value, { id: "g-old", workflow: "gathered", version: 1 });
  assert.equal((await real.get(named.value.id)).workflow, "gathered");
  for (const [what, kind, status] of [[conflict, "task-exists", 409], [none, "no-such-workflow", 422], [bad, "bad-id", 422]]) {
    assert.ok(what.reason instanceof Problem && !(what.reason instanceof Busy), String(what.reason));
    assert.deepEqual([what.reason.kind, what.reason.status], [kind, status]);
  }
});

test("an answer is the same as that of a request of its own", async (t) => {
  const apart = clientOf(t, { gather: false });
  const { url, seen } = await counting(t);
  const client = clientOf(t, { server: url });
  const kinds = (id) => [
    ["gathered", { id, input: { a: [1, "\n", "\u2028"] }, tags: { shop: "north" }, priority: 7 }],
    ["gathered", { id, input: "another" }],
    ["nothing", { id: `${id}-n` }],
    ["gathered", { id: `${id}-v`, version: 99 }],
    ["gathered", { id: `${id}-p`, priority: 77 }],
    ["gathered", { id: `${id}-s`, signals: [{ name: "nobody", data: 1 }] }],
  ];
  const told = (all) =>
    all.map((one) => (one.status === "fulfilled" ? one.value : [one.reason.constructor.name, one.reason.status, one.reason.kind, one.reason.detail]));
  const one = [];
  for (const [workflow, options] of kinds("same-1")) one.push(...(await settled([apart.submit(workflow, options)])));
  const many = await settled(kinds("same-2").map(([workflow, options]) => client.submit(workflow, options)));
  assert.equal(seen.length, 1);
  const text = JSON.stringify(told(many)).replaceAll("same-2", "same-1").replaceAll(/line \d+: /g, "");
  assert.equal(text, JSON.stringify(told(one)));
});

test("calls that are made while a request is under way are gathered", async (t) => {
  let release;
  const held = new Promise((resolve) => (release = resolve));
  const { url, seen } = await counting(t, (n) => (n === 1 ? held : undefined));
  const client = clientOf(t, { server: url });
  const calls = [client.submit("gathered")];
  while (seen.length === 0) await new Promise((resolve) => setTimeout(resolve, 1));
  // Each in a turn of its own, and not at once: they do not wait for the first request.
  for (let i = 0; i < 40; i++) {
    calls.push(client.submit("gathered"));
    await new Promise((resolve) => setImmediate(resolve));
  }
  await Promise.all(calls.slice(1));
  assert.ok(seen.length < 21, `${seen.length} requests`);
  assert.equal(seen.flat().length, 41);
  release();
  await calls[0];
});

test("many are several requests, each within its limits", async (t) => {
  const { url, seen } = await counting(t);
  const client = clientOf(t, { server: url });
  const made = await Promise.all(Array.from({ length: 2100 }, (_, i) => client.submit("gathered", { id: `many-${i}` })));
  assert.deepEqual(made.map((one) => one.id), Array.from({ length: 2100 }, (_, i) => `many-${i}`));
  assert.ok(seen.length <= 4 && seen.every((lines) => lines.length <= 1000), String(seen.map((lines) => lines.length)));
  seen.length = 0;
  await Promise.all(Array.from({ length: 5 }, () => client.submit("gathered", { input: "x".repeat(700_000) })));
  // Two requests are under way at once, and may come in any order.
  assert.deepEqual(seen.map((lines) => lines.length).sort(), [1, 2, 2]);
});

test("gathering is off by one setting", async (t) => {
  const { url, seen } = await counting(t);
  const client = clientOf(t, { server: url, gather: false });
  await Promise.all(Array.from({ length: 20 }, () => client.submit("gathered")));
  assert.equal(seen.length, 20);
});

test("what cannot be written as JSON is said at once, and harms no other", async (t) => {
  const client = clientOf(t, {});
  const good = client.submit("gathered");
  assert.throws(() => client.submit("gathered", { input: 1n }), TypeError);
  assert.equal((await good).workflow, "gathered");
});

/** Answers lines by `statusOf(id, n)`, the n-th request, from 1. */
function playing(seen, statusOf) {
  return (request, response, body) => {
    if (request.method !== "POST") {
      response.writeHead(404).end();
      return;
    }
    const lines = body.split("\n").map((line) => JSON.parse(line));
    seen.push(lines.map((line) => line.id));
    const answers = lines.map((line, i) => {
      const status = statusOf(line.id, seen.length);
      const problem = { type: `urn:intact:problem:p${status}`, status, detail: line.id };
      return { line: i + 1, status, id: line.id, ...(status < 300 ? { version: 3 } : { problem }) };
    });
    const isAlone = request.headers["content-type"] === "application/json";
    const { status, problem } = answers[0];
    const alone = problem ?? { id: lines[0].id, workflow: lines[0].workflow, version: 3 };
    response.writeHead(isAlone ? status : 200, { "content-type": isAlone ? "application/json" : "application/x-ndjson" });
    response.end(isAlone ? JSON.stringify(alone) : answers.map((one) => `${JSON.stringify(one)}\n`).join(""));
  };
}

test("a line for which there was no room is sent again, alone of its request", async (t) => {
  const seen = [];
  const server = await listening(t, playing(seen, (id, n) => (id === "b" && n < 3 ? 503 : id === "c" ? 422 : 201)));
  const client = clientOf(t, { server });
  const [a, b, c] = await settled(["a", "b", "c"].map((id) => client.submit("w", { id })));
  assert.deepEqual([a.value.id, b.value.id, c.reason.kind], ["a", "b", "p422"]);
  assert.deepEqual(seen, [["a", "b", "c"], ["b"], ["b"]]);
});

test("one that never finds room fails when its time is over, and no other", async (t) => {
  const server = await listening(t, playing([], (id) => (id === "b" ? 429 : 201)));
  const client = clientOf(t, { server, timeoutMs: 1500 });
  const [a, b] = await settled(["a", "b"].map((id) => client.submit("w", { id })));
  assert.equal(a.value.id, "a");
  assert.ok(b.reason instanceof Busy || b.reason instanceof Unreachable, String(b.reason)); // the last try may be cut off
});

test("a request that fails as a whole fails each of its submissions", async (t) => {
  const refuses = await listening(t, (request, response) => response.writeHead(401).end("{}"));
  const closed = await listening(t, (request, response) => response.destroy());
  const speechless = await listening(t, (request, response) => response.writeHead(200).end("well"));
  for (const [server, Kind] of [[refuses, Problem], [closed, Unreachable], [speechless, Unreachable]]) {
    const client = clientOf(t, { server, timeoutMs: Kind === Problem ? 120_000 : 1000 });
    for (const one of await settled(["a", "b"].map((id) => client.submit("w", { id })))) assert.ok(one.reason instanceof Kind, String(one.reason));
  }
});

test("lines that are missing in an answer are sent again", async (t) => {
  const play = playing([], () => 201);
  const server = await listening(t, (request, response, body) =>
    body.includes("\n") ? response.writeHead(200).end('{"line":1,"status":201,"id":"a","version":3}\n') : play(request, response, body));
  const client = clientOf(t, { server });
  const made = await Promise.all(["a", "b"].map((id) => client.submit("w", { id })));
  assert.deepEqual(made.map((one) => one.id), ["a", "b"]);
});

test("what is too large together is sent apart", async (t) => {
  const seen = [];
  const play = playing(seen, () => 201);
  const server = await listening(t, (request, response, body) =>
    body.includes("\n") ? response.writeHead(413).end("{}") : play(request, response, body));
  const client = clientOf(t, { server });
  const made = await Promise.all(["a", "b"].map((id) => client.submit("w", { id })));
  assert.deepEqual(made.map((one) => one.id), ["a", "b"]);
  assert.deepEqual(seen, [["a"], ["b"]]);
});

test("a node that is older tells the version when it is asked alone", async (t) => {
  const play = playing([], () => 201);
  const server = await listening(t, (request, response, body) =>
    body.includes("\n")
      ? response.writeHead(200).end(body.split("\n").map((line, i) => `{"line":${i + 1},"status":201,"id":"${JSON.parse(line).id}"}\n`).join(""))
      : play(request, response, body));
  const client = clientOf(t, { server });
  const made = await Promise.all(["a", "b"].map((id) => client.submit("w", { id })));
  assert.deepEqual(made, ["a", "b"].map((id) => ({ id, workflow: "w", version: 3 })));
});

test("it ends by itself", () => real.close());
