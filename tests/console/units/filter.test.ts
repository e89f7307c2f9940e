import assert from "node:assert/strict";
import test from "node:test";
import { fromOperation, fromQuery, isEmpty, momentOf, parts, toFlags, toOperation, toQuery, unknownTexts, withoutUnknown, type TaskFilter } from "../src/ui/filter.ts";

const NOW = Date.parse("2026-01-31T12:00:00.000Z");
const ALL: TaskFilter = {
  states: ["error", "compensating"], ids: ["o-1", "o-2"], tags: [["shop", "a=b & c"], ["x.y", "ü"]], workflow: "order", version: "3", step: "charge", agent: "bank",
  error: "declined", submitted_after: "2h", submitted_before: "2026-01-31T11:00:00Z", ended_after: "1d", ended_before: "5m", parent: "p-1", root: "r-1", id_prefix: "o_a",
  paused: false, closed: true, children: true,
};

test("a filter survives the address", () => {
  assert.deepEqual(fromQuery(new URLSearchParams(toQuery(ALL).toString())), ALL);
  assert.ok(isEmpty(fromQuery(new URLSearchParams(""))));
});

test("what the address has beside filters is kept apart, and is not sent to the server", () => {
  const filter = fromQuery(new URLSearchParams("state=error,broken&color=red&paused=perhaps&tag.=x&workflow=%20&ids=,,o-1,&closed=&flag"));
  assert.deepEqual(withoutUnknown(filter), { states: ["error"], ids: ["o-1"], tags: [] });
  assert.deepEqual(unknownTexts(filter), ["state=broken", "color=red", "paused=perhaps", "tag.=x", "flag"]);
  assert.deepEqual(fromQuery(toQuery(filter)), filter, "it stays in the address until it is removed");
  assert.ok(!isEmpty(fromQuery(new URLSearchParams("state=eror"))));
  assert.equal(toQuery(filter, NOW).toString(), "state=error&ids=o-1");
  assert.deepEqual(toOperation(filter, NOW), { state: ["error"], ids: ["o-1"] });
  assert.deepEqual(unknownTexts(fromQuery(toQuery(ALL))), []);
});

test("ages become moments when the server is asked", () => {
  const query = toQuery(ALL, NOW);
  assert.equal(query.get("submitted_after"), "2026-01-31T10:00:00.000Z");
  assert.equal(query.get("submitted_before"), "2026-01-31T11:00:00Z");
  assert.equal(query.get("tag.shop"), "a=b & c");
  assert.equal(momentOf("90s", NOW), "2026-01-31T11:58:30.000Z");
});

test("the filter of an operation has the members of the API", () => {
  assert.deepEqual(toOperation(ALL, NOW), {
    state: ["error", "compensating"], workflow: "order", version: 3, step: "charge", agent: "bank", error: "declined",
    submitted_after: "2026-01-31T10:00:00.000Z", submitted_before: "2026-01-31T11:00:00Z", ended_after: "2026-01-30T12:00:00.000Z",
    ended_before: "2026-01-31T11:55:00.000Z", parent: "p-1", root: "r-1", id_prefix: "o_a", paused: false, closed: true, children: true,
    tag: { shop: "a=b & c", "x.y": "ü" }, ids: ["o-1", "o-2"],
  });
  assert.deepEqual(toOperation({ states: [], ids: [], tags: [] }, NOW), { all: true }, "an empty filter is refused by the server");
});

test("the filter of an operation is read back", () => {
  const plain: TaskFilter = { ...ALL, submitted_after: "2026-01-31T10:00:00.000Z", ended_after: "2026-01-30T12:00:00.000Z", ended_before: "2026-01-31T11:55:00.000Z" };
  assert.deepEqual(fromOperation(toOperation(plain, NOW)), plain);
  assert.ok(isEmpty(fromOperation({ all: true })));
});

test("flags of the command line", () => {
  const flags = toFlags({ states: ["error"], ids: [], tags: [["shop", "x"]], step: "pay", closed: false, submitted_after: "1h" }, NOW);
  assert.deepEqual(flags, [["--state", "error"], ["--at-step", "pay"], ["--after", "2026-01-31T11:00:00.000Z"], ["--closed", "no"], ["--tag", "shop=x"]]);
});

test("each part can be removed by itself", () => {
  const found = parts(ALL);
  assert.deepEqual(found.map((p) => p.name), ["workflow", "version", "step", "agent", "error", "submitted_after", "submitted_before", "ended_after", "ended_before",
    "parent", "root", "id_prefix", "paused", "closed", "children", "tag.shop", "tag.x.y", "ids"]);
  for (const part of found) {
    assert.equal(parts(part.without).length, found.length - 1, part.name);
    assert.ok(!parts(part.without).some((p) => p.name === part.name), part.name);
  }
});
