// The package as CommonJS programs have it. Run by tests/libraries/typescript.sh.
const assert = require("node:assert/strict");
const { test } = require("node:test");
const required = require("intact-client");

test("require gives what import gives, the very same", async () => {
  const imported = await import("intact-client");
  const names = Object.keys(required).filter((name) => name !== "default").sort();
  assert.ok(names.includes("Agent") && names.includes("Request"));
  assert.deepEqual(Object.keys(imported).filter((name) => name !== "default" && name !== "module.exports").sort(), names);
  // An error of one is an error for the other: an agent in the one form may call helpers in the other.
  for (const name of names) assert.equal(imported[name], required[name], name);
});

test("so it is with intact-client/testing", async () => {
  const { startServer, Server } = require("intact-client/testing");
  const imported = await import("intact-client/testing");
  assert.equal(imported.startServer, startServer);
  assert.equal(imported.Server, Server);
  await assert.rejects(startServer({ program: "/nonexistent" }), /INTACT_PROGRAM/);
});

test("the parts work", () => {
  const { Agent, Request, StepError } = required;
  const agent = new Agent("a", { server: "http://127.0.0.1:1" }).action("x", () => 1);
  assert.equal(agent.name, "a");
  const request = Request.forTest({ input: { amount: 20 } });
  assert.equal(request.input.amount, 20);
  request.stop();
  assert.throws(() => request.check(), StepError);
});

test("its package.json can be read", () => {
  assert.equal(require("intact-client/package.json").name, "intact-client");
});
