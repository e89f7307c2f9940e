// The client against a real server, of which INTACT_SERVER and INTACT_TOKEN tell.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Agent, Client, Problem, Unreachable, WaitTimeout } from "intact-client";

const client = new Client();
const quiet = { info() {}, warn() {}, error() {} };

test("a task from its definition to its end", async () => {
  const definition = {
    intact: 1,
    workflow: "hello",
    steps: [
      { name: "greet", agent: "greeter", action: "greet", input: "${ .input.name }", undo: { action: "forget" } },
      { name: "seal", agent: "greeter", action: "seal", undo: "none", on_failure: "hold" },
    ],
    output: "${ .steps.greet.output }",
  };
  assert.equal((await client.putWorkflow(definition)).version, 1);
  assert.equal((await client.putWorkflow(JSON.stringify(definition))).version, 1);
  assert.equal((await client.putWorkflow(JSON.stringify(definition), "hello")).version, 1);
  assert.equal((await client.getWorkflow("hello")).version, 1);
  assert.equal((await client.getWorkflow("hello", 1)).name, "hello");

  const agent = new Agent("greeter", { places: 4, logger: quiet });
  agent.action("greet", ({ input }) => `hello, ${input}`);
  agent.action("seal", ({ task }) => {
    if (task.startsWith("bad")) throw new RangeError("no wax");
  });
  agent.undo("forget", () => null);
  agent.start();

  const made = await client.submit("hello", { id: "h-1", input: { name: "Ann" }, tags: { shop: "north" } });
  assert.equal(made.id, "h-1");
  assert.equal((await client.submit("hello", { id: "h-1", input: { name: "Ann" }, tags: { shop: "north" } })).id, "h-1");
  await assert.rejects(client.submit("hello", { id: "h-1", input: { name: "Bob" } }), (e) => e instanceof Problem && e.kind === "task-exists");
  assert.equal((await client.wait("h-1")).output, "hello, Ann");
  assert.equal((await client.get("h-1")).state, "processed");

  const lines = await client.submitMany(Array.from({ length: 1500 }, (_, i) => ({ workflow: i === 7 ? "nothing" : "hello", id: `m-${i}`, input: { name: `n${i}` } })));
  assert.equal(lines.length, 1500);
  assert.deepEqual(lines.map((l) => l.line), lines.map((_, i) => i + 1));
  assert.deepEqual(lines.filter((l) => l.status !== 201).map((l) => l.id), ["m-7"]);
  for (const line of lines) if (line.status === 201) assert.equal((await client.wait(line.id)).state, "processed");

  assert.deepEqual((await client.list({ tags: { shop: "north" }, state: ["processed"] })).tasks.map((t) => t.id), ["h-1"]);
  let count = 0;
  for await (const task of client.listAll({ workflow: "hello", limit: 400 })) count += task.workflow === "hello" ? 1 : 0;
  assert.equal(count, 1500);
  assert.equal(await agent.stop() ?? (await agent.join()), true);
});

test("the tasks of a family are listed", async () => {
  await client.putWorkflow({ intact: 1, workflow: "leaf", steps: [{ name: "rest", wait: "1d" }] });
  await client.putWorkflow({ intact: 1, workflow: "stem", steps: [{ name: "grow", task: { workflow: "leaf" } }] });
  await client.submit("stem", { id: "f-1" });
  let found = [];
  while (found.length === 0) found = (await client.list({ root: "f-1" })).tasks;
  assert.deepEqual(found.map((t) => [t.id, t.parent, t.root]), [["f-1@grow", "f-1", "f-1"]]);
  assert.deepEqual((await client.list({ parent: "f-1", children: true })).tasks.map((t) => t.id), ["f-1@grow"]);
  assert.deepEqual((await client.list({ parent: "f-1", children: false })).tasks, []);
  const child = await client.get("f-1@grow");
  assert.equal(child.parent_step, "grow");
  const parent = await client.get("f-1");
  assert.deepEqual(parent.family, { leaf: 1 });
  assert.equal(parent.steps[0].kind, "task");
  assert.equal(parent.steps[0].workflow, "leaf");
  assert.deepEqual(parent.steps[0].child, { id: "f-1@grow", state: "running", asked: null });
  await client.cancel("f-1", "not wanted");
});

test("items are read page by page", async () => {
  const take = { agent: "stock", action: "take", input: "${ .item }", retry: { attempts: 1 } };
  await client.putWorkflow({
    intact: 1,
    workflow: "order",
    steps: [
      { name: "pack", for_each: "${ .input }", max_items: 1000, on_item_failure: "continue", ...take, undo: "none" },
      { name: "rest", wait: "1d" },
    ],
  });
  const agent = new Agent("stock", { places: 8, logger: quiet });
  agent.action("take", ({ input }) => {
    if (input === 600) throw new RangeError("none is left");
    return input * 2;
  });
  agent.start();
  await client.submit("order", { id: "i-1", input: Array.from({ length: 700 }, (_, i) => i) });
  let task = await client.get("i-1");
  while (task.steps[0].state !== "completed") task = await client.get("i-1");
  const { count, completed, failed } = task.steps[0].items;
  assert.deepEqual([task.steps[0].kind, count, completed, failed], ["for_each", 700, 699, 1]);
  const found = [];
  for await (const item of client.items("i-1", "pack")) found.push(item);
  assert.deepEqual(found.map((i) => i.name), Array.from({ length: 700 }, (_, i) => `pack.${i}`));
  assert.deepEqual([found[699].item, found[699].state, found[699].output], [699, "completed", 1398]);
  const bad = [];
  for await (const item of client.items("i-1", "pack", { state: "failed" })) bad.push(item.name);
  assert.deepEqual(bad, ["pack.600"]);
  await assert.rejects(client.items("i-1", "rest").next(), (e) => e instanceof Problem && e.kind === "bad-step");
  assert.equal(await agent.stop() ?? (await agent.join()), true);
  await client.cancel("i-1", "not wanted");
});

test("a definition is stored under the name that it says", async () => {
  const yaml = "intact: 1\nworkflow: in-yaml\nsteps:\n  - {name: a, agent: b, action: c, undo: none}\n";
  assert.deepEqual(await client.putWorkflow(yaml), { name: "in-yaml", version: 1, warnings: [] });
  assert.deepEqual(await client.putWorkflow(yaml, "in-yaml"), { name: "in-yaml", version: 1, warnings: [] });
  assert.equal((await client.getWorkflow("in-yaml")).text, yaml);
  await assert.rejects(client.putWorkflow(yaml, "other"), (e) => e instanceof Problem && e.kind === "other-name");
  await assert.rejects(client.putWorkflow("intact: 1\n"), (e) => e instanceof Problem && e.kind === "bad-definition");
});

test("operating", async () => {
  const retry = { attempts: 1 };
  await client.putWorkflow({
    intact: 1, workflow: "letter", on_failure: "hold",
    steps: [{ name: "write", agent: "mail", action: "write", undo: { action: "take-back" }, retry }, { name: "post", agent: "mail", action: "post", undo: "none", retry }],
  });
  let paper = false;
  const agent = new Agent("mail", { logger: quiet });
  agent.action("write", () => { if (!paper) throw new RangeError("no paper"); });
  agent.action("post", () => { throw new RangeError("closed"); });
  agent.undo("take-back", () => null);
  agent.start();
  await client.submit("letter", { id: "l-1" });
  assert.equal((await client.wait("l-1")).state, "error");
  paper = true;
  await client.retry("l-1", "bought some");
  assert.equal((await client.wait("l-1")).state, "error");
  assert.equal((await client.skip("l-1", "post", "by hand", { by: "hand" })).state, "processed");
  await client.submit("letter", { id: "l-2" });
  assert.equal((await client.wait("l-2")).state, "error");
  await client.undo("l-2", "nobody lives there");
  assert.equal((await client.wait("l-2")).state, "compensated");
  assert.ok((await client.why("l-2")).summary);
  await assert.rejects(client.retry("l-2", "once more"), (e) => e.kind === "conflict");
  agent.stop();
  await agent.join();
});

test("a wait that is over, one that is broken off, and what does not answer", async () => {
  await client.putWorkflow({ intact: 1, workflow: "never", steps: [{ name: "s", agent: "nobody", action: "x", undo: "none" }] });
  const { id } = await client.submit("never", {});
  await assert.rejects(client.wait(id, { timeoutMs: 50 }), (e) => e instanceof WaitTimeout && e.task.id === id);
  await assert.rejects(client.wait(id, { signal: AbortSignal.timeout(50) }), { name: "TimeoutError" });
  assert.equal((await client.cancel(id, "not wanted")).direction, "undo");
  await assert.rejects(client.complete("no-such-token", 1), (e) => e.kind === "unknown-attempt");
  await assert.rejects(client.get("no such"), Problem);
  await assert.rejects(new Client({ token: "intact_wrong" }).get("x"), (e) => e.status === 401);
  await assert.rejects(new Client({ server: "http://127.0.0.1:1", timeoutMs: 200 }).get("x"), Unreachable);
  const two = new Client({ server: `http://127.0.0.1:1,${process.env.INTACT_SERVER}` });
  assert.equal((await two.get("h-1")).id, "h-1");
});

test("it ends by itself", () => client.close());
