/** Tests of the handlers of till.mts. docs/typescript.md runs them. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Request } from "intact-client";
import { charge, refund } from "./till.mjs";

test("charge", async () => {
  const request = Request.forTest({ input: { amount: 20 }, task: "o-1", step: "pay" });
  assert.deepEqual(await charge(request), { receipt: "o-1/pay" });
});

test("too much is declined", async () => {
  const request = Request.forTest({ input: { amount: 2000 } });
  await assert.rejects(charge(request), { code: "declined", effect: "none" });
});

test("refund", async () => {
  const request = Request.forTest({ forward: { input: { amount: 20 }, in_doubt: true } });
  assert.deepEqual(await refund(request), { returned: 20 });
});
