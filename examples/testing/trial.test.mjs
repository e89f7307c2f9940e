/** The workflow in trial.yaml with its agents in JavaScript, for node:test: a month takes no time. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { Agent } from "intact-client";
import { startServer } from "intact-client/testing";

const opened = new Set();
const accounts = new Agent("accounts", { places: 4, logger: { info() {}, warn: console.warn, error: console.error } });
accounts.action("open", async (request) => {
  opened.add(request.input.customer);
  return { account: request.idempotencyKey };
});
accounts.undo("close", async (request) => {
  opened.delete(request.forward.input.customer);
});

let server;
before(async () => {
  const trial = process.env.TRIAL ?? fileURLToPath(new URL("trial.yaml", import.meta.url));
  server = await startServer({ at: "2026-01-01T09:00:00Z", definitions: [trial] });
  server.agent(accounts);
  server.agent("mail", { remind: null });
});
after(() => server.close());

test("who pays stays", async () => {
  const task = await server.submit("trial", { input: { customer: "ann" } });
  await server.advance("29d");
  await task.signal("paid", { amount: 20 });
  await task.expect("processed", { within: "29d", steps: { remind: "completed" } });
  assert.ok(opened.has("ann"));
});

test("who does not pay is closed after a month", async () => {
  const task = await server.submit("trial", { input: { customer: "bob" } });
  const end = await task.expect("compensated", { error: "no_signal", within: "30d" });
  assert.equal(end.tookMs, 30 * 86_400_000);
  assert.ok(!opened.has("bob"));
});
