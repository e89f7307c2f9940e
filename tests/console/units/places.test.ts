import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import type { Agent, AgentSettings, Schedule, Task, TaskSummary } from "../src/api/types.ts";
import { isDefinition, parseDefinition, textOf } from "../src/api/definition.ts";
import { exampleInput, readTags } from "../src/actions/submit.tsx";
import { expiryOf, newToken, NO_TOKEN, tokenFlags } from "../src/pages/access/model.ts";
import { heldText, NOTHING, placesOf, readSettings, settingsFlags, showSettings } from "../src/pages/agents/model.ts";
import { fromField, lately, localText, missedText, scheduleSign } from "../src/pages/schedules/sign.ts";
import { ends, percent, quantile, sorted, stepFigures } from "../src/pages/workflows/model.ts";
import { choicesAt, placeAt, stepNames, type Schema } from "../src/ui/complete.ts";
import { difference, folded } from "../src/ui/difference.ts";
import { found, mistakesIn, rangeAt, wordsOf } from "../src/ui/mistakes.ts";

const SCHEMA = JSON.parse(readFileSync(`${process.env["ROOT"]}/docs/workflow.schema.json`, "utf8")) as Schema;

// The place of | in a text.
function at(text: string) {
  const place = placeAt(text.replace("|", ""), text.indexOf("|"));
  return place;
}
const labels = (text: string) => {
  const place = at(text);
  return place ? choicesAt(SCHEMA, place).map((c) => c.label) : null;
};

test("a place in a text has a path, and knows what is beside it", () => {
  const cases: [string, string[], string | null, string[]][] = [
    ["inta|", [], null, []],
    ["intact: 1\n|", [], null, ["intact"]],
    ["steps:\n  - na|", ["steps", "[]"], null, []],
    ["steps:\n  - name: a\n    ag|\n    undo: none", ["steps", "[]"], null, ["name", "undo"]],
    ["steps:\n  - name: a\n    retry:\n      wa|", ["steps", "[]", "retry"], null, []],
    ["steps:\n- name: a\n  on_failure: h|", ["steps", "[]"], "on_failure", ["name"]],
    ["steps:\n  - {name: a, un|", ["steps", "[]"], null, ["name"]],
    ["steps:\n  - {name: a, undo: {ac|", ["steps", "[]", "undo"], null, []],
    ["steps:\n  - {name: a, undo: n|", ["steps", "[]"], "undo", ["name"]],
    ["steps:\n  - name: b\n    after: [a, |", ["steps", "[]", "after"], "[]", []],
    ["steps:\n  - name: b\n    after:\n      - a|", ["steps", "[]", "after", "[]"], null, []],
    ["steps:\n  - name: a\n    input: {x: \"${ .a }\", y|", ["steps", "[]", "input"], null, ["x"]],
    ["lock:\n  key: x\nsteps: []\n|", [], null, ["steps", "lock"]],
  ];
  for (const [text, path, key, siblings] of cases) {
    const place = at(text);
    assert.deepEqual([place?.path, place?.key, place?.siblings.sort()], [path, key, siblings.sort()], text);
  }
  assert.equal(at("# a comment na|"), null);
});

test("what fits a place comes from the schema", () => {
  assert.ok(labels("|")?.includes("workflow"));
  assert.ok(!labels("workflow: x\n|")?.includes("workflow"), "a key that is there is not offered");
  assert.deepEqual(labels("on_failure: |"), ["undo", "hold", "continue"]);
  assert.deepEqual(labels("steps:\n  - name: a\n    pivot: |"), ["true", "false"]);
  const any = labels("steps:\n  - name: a\n    |") as string[];
  for (const key of ["agent", "wait", "signal", "approve", "task"]) assert.ok(any.includes(key), key);
  const ofAgent = labels("steps:\n  - name: a\n    agent: x\n    |") as string[];
  assert.ok(ofAgent.includes("action") && ofAgent.includes("heartbeat") && !ofAgent.includes("approve"), String(ofAgent));
  const ofApproval = labels("steps:\n  - name: a\n    approve: {}\n    |") as string[];
  assert.ok(!ofApproval.includes("agent") && ofApproval.includes("complete_by"), String(ofApproval));
  assert.ok(labels("steps:\n  - name: a\n    agnt: x\n    |")?.includes("agent"), "a key that nothing knows rules out nothing");
  assert.ok(labels("steps:\n  - name: a\n    agent: b\n    retry:\n      |")?.includes("attempts"));
  assert.deepEqual(labels("steps:\n  - name: a\n    agent: b\n    http:\n      method: |")?.slice(0, 2), ["GET", "HEAD"]);
  assert.deepEqual(stepNames("steps:\n  - name: one\n  - {name: two, agent: x}\n  - agent: y\n    name: three"), ["one", "two", "three"]);
});

test("the difference of texts names lines and words, and folds what is equal", () => {
  const before = Array.from({ length: 20 }, (_, n) => `line ${n}`).join("\n") + "\nend: 1h\n";
  const after = before.replace("line 3\n", "").replace("end: 1h", "end: 2h");
  const lines = difference(before, after);
  assert.deepEqual(lines.filter((l) => l.kind !== "same").map((l) => [l.kind, l.text, l.before, l.after]), [["gone", "line 3", 4, null], ["gone", "end: 1h", 21, null], ["new", "end: 2h", null, 20]]);
  assert.deepEqual(lines.find((l) => l.text === "end: 2h")?.parts?.filter((p) => p.isChanged).map((p) => p.text), ["2h"]);
  const rows = folded(lines);
  const fold = rows.filter((r) => r.kind === "fold");
  assert.deepEqual(fold.map((f) => f.kind === "fold" && f.lines.length), [10]);
  assert.equal(rows.reduce((n, r) => n + (r.kind === "fold" ? r.lines.length : 1), 0), lines.length);
  assert.deepEqual(difference("a\n", "a\n").map((l) => l.kind), ["same"]);
  assert.deepEqual(difference("", "a\nb\n").map((l) => [l.kind, l.text]), [["new", "a"], ["new", "b"]]);
});

test("mistakes have a range in the text, wherever the server says they are", () => {
  const text = "steps:\n  - agnt: b\n\n";
  assert.equal(text.slice(...Object.values(rangeAt(text, 2, 5)) as [number, number]), "agnt:");
  for (const [line, column] of [[1, 1], [2, 99], [3, 1], [4, 1], [99, 99], [0, 0]] as const) {
    const { from, to } = rangeAt(text, line, column);
    assert.ok(from >= 0 && from <= to && to <= text.length, `${line}:${column} ${from} ${to}`);
  }
  const m = { line: 1, column: 1, path: "", found: "key \"agnt\"", expected: "did you mean \"agent\"?" };
  assert.equal(wordsOf(m), 'key "agnt": did you mean "agent"?');
  assert.equal(wordsOf({ ...m, found: "nothing", expected: "a key \"agent\"" }), 'missing: a key "agent"');
  assert.equal(wordsOf({ ...m, found: '"5x"', expected: "a duration" }), 'found "5x", expected a duration');
  assert.deepEqual(mistakesIn({ errors: [m], warnings: [m] })?.map((x) => x.grade), ["error", "warning"]);
  assert.equal(mistakesIn({ detail: "no" }), null);
  assert.equal(found([], []).length, 0);
});

test("definitions are read from both formats, and nothing else is one", async () => {
  const yaml = "intact: 1\nworkflow: x\nsteps:\n  - {name: a, agent: b}\n";
  assert.deepEqual((await parseDefinition(yaml, "yaml"))?.steps.map((s) => s.name), ["a"]);
  assert.equal((await parseDefinition('{"steps": [{"name": "a"}]}', "json"))?.steps.length, 1);
  for (const text of ["", "steps: 1", "steps: [null]", "steps: [{name: 1}]", "a: [", "- x"]) assert.equal(await parseDefinition(text, "yaml"), null, text);
  assert.equal(isDefinition(null), false);
  assert.equal(textOf({ format: "yaml", text: yaml }), yaml);
  assert.equal(textOf({ format: "json", definition: { a: 1 } }), '{\n  "a": 1\n}\n');
});

const summary = (state: string, tookMs: number | null): TaskSummary => ({
  id: "t", state, submitted_at: "2027-01-01T00:00:00.000Z", not_before: null, ended_at: tookMs === null ? null : new Date(Date.parse("2027-01-01T00:00:00.000Z") + tookMs).toISOString(),
}) as unknown as TaskSummary;

test("how tasks do: shares of their ends, and what they took", () => {
  const e = ends([summary("processed", 1000), summary("processed", 3000), summary("compensated", 2000), summary("error", 9000), summary("pending", null)]);
  assert.deepEqual(e.states, [{ state: "processed", n: 2 }, { state: "compensated", n: 1 }, { state: "error", n: 1 }, { state: "pending", n: 1 }]);
  assert.deepEqual([e.half, e.most, e.total], [2000, 3000, 5]);
  assert.deepEqual([ends([]).half, ends([]).total], [null, 0]);
  assert.deepEqual([quantile([], 0.5), quantile([3, 1, 2], 0.5), quantile([1], 0.95)], [null, 2, 1]);
  assert.deepEqual([percent(0, 0), percent(0, 5), percent(1, 200), percent(1, 2), percent(5, 5)], ["–", "0 %", "< 1 %", "50 %", "100 %"]);
});

const attempt = (n: number, from: number, to: number | null, outcome: string, direction = "forward", code?: string) => ({
  attempt: n, direction, outcome, started_at: new Date(from).toISOString(), ended_at: to === null ? null : new Date(to).toISOString(), ...(code ? { error: { code } } : {}),
});
const task = (...steps: object[]) => ({ steps }) as unknown as Task;

test("how steps do: from the first attempt to the end of the last one, and what failed", () => {
  const figures = stepFigures([
    task({ name: "pay", agent: "bank", state: "completed", attempts: [attempt(1, 0, 1000, "failed", "forward", "busy"), attempt(2, 5000, 6000, "completed")] }),
    task({ name: "pay", agent: "bank", state: "failed", attempts: [attempt(1, 0, 2000, "failed", "forward", "declined")] }),
    task({ name: "pay", agent: "bank", state: "undone", attempts: [attempt(1, 0, 500, "completed"), attempt(1, 600, 700, "completed", "undo")] }),
    task({ name: "pay", agent: "bank", state: "running", attempts: [attempt(1, 0, null, "open")] }, { name: "ship", agent: "carrier", state: "waiting", attempts: [] }),
  ]);
  const [pay, ship] = figures;
  assert.deepEqual([pay?.half, pay?.most, pay?.attempts, pay?.failures, pay?.failed, pay?.undone, pay?.tasks], [2000, 6000, 4, 2, 1, 1, 4]);
  assert.deepEqual(pay?.codes, [["busy", 1], ["declined", 1]]);
  assert.deepEqual([ship?.tasks, ship?.half], [0, null]);
  const slow = { ...pay, name: "slow", half: 9000, failures: 0, failed: 0 } as NonNullable<typeof pay>;
  assert.deepEqual(sorted([pay as typeof slow, slow], "slow").map((f) => f.name), ["slow", "pay"]);
  assert.deepEqual(sorted([slow, pay as typeof slow], "failing").map((f) => f.name), ["pay", "slow"]);
});

test("the form of a token says what the API takes, or what is wrong", () => {
  const mistake = (form: Partial<typeof NO_TOKEN>) => { const read = newToken({ ...NO_TOKEN, name: "x", roles: ["read"], ...form }); return "mistake" in read ? read.mistake : null; };
  assert.match(mistake({ name: "a b" }) ?? "", /^The name/);
  assert.match(mistake({ roles: [] }) ?? "", /at least one role/);
  assert.match(mistake({ scoped: "sumbit:order" }) ?? "", /^sumbit:order is no role/);
  assert.match(mistake({ scoped: "signal:order" }) ?? "", /no role/);
  assert.match(mistake({ groups: "fi/nance" }) ?? "", /group/);
  assert.match(mistake({ expires: "soon" }) ?? "", /12h/);
  const read = newToken({ ...NO_TOKEN, name: " shop ", roles: ["read"], scoped: "submit:shop-*, agent:* signal:order/paid", person: "ann", groups: "finance cfo", expires: "never" });
  assert.ok("token" in read);
  assert.deepEqual(read.token, { name: "shop", roles: ["read", "submit:shop-*", "agent:*", "signal:order/paid"], person: "ann", groups: ["finance", "cfo"], expires_in: "never" });
  assert.deepEqual(tokenFlags(read.token).filter(([, v]) => v !== undefined).map(([k]) => k), ["--role", "--role", "--role", "--role", "--person", "--group", "--group", "--expires-in"]);
  const now = Date.parse("2027-01-01T00:00:00Z");
  assert.deepEqual([null, "2026-12-31T00:00:00Z", "2027-01-03T00:00:00Z", "2027-03-01T00:00:00Z"].map((t) => expiryOf(t, now)), ["fine", "over", "soon", "fine"]);
});

test("the settings of an agent pass through their form unchanged", () => {
  const settings = {
    limits: { concurrency: 50, rate: "100/s", actions: { charge: { concurrency: 5, rate: "600/m" }, refund: { rate: "5/s" } } },
    breaker: { enabled: true, calls: 20, failures: 80, slow: "5s", slow_calls: 80, window: "30s", wait: "5s", max_wait: "1m", trials: 3 },
  };
  const form = showSettings(settings as AgentSettings);
  assert.deepEqual(readSettings(form), { settings });
  assert.equal(form.actions, "charge=5,600/m\nrefund=5/s");
  assert.deepEqual(readSettings(showSettings({})), { settings: { limits: {}, breaker: { enabled: true } } });
  const mistake = (part: Partial<typeof form>) => { const read = readSettings({ ...form, ...part }); return "mistake" in read ? read.mistake : null; };
  assert.match(mistake({ concurrency: "0" }) ?? "", /^concurrency/);
  assert.match(mistake({ rate: "fast" }) ?? "", /rate/);
  assert.match(mistake({ max_wait: "1 minute" }) ?? "", /^max wait/);
  assert.match(mistake({ actions: "charge" }) ?? "", /this is none: charge/);
  // The command leaves alone what it has no flag for: what the form empties is named, too.
  const was = settings as AgentSettings;
  const line = (part: Partial<typeof form>) => settingsFlags({ ...form, ...part }, was).map((f) => f.join(" ")).join(" ");
  const breaker = "--calls 20 --failures 80 --slow 5s --slow-calls 80 --window 30s --wait 5s --max-wait 1m --trials 3";
  assert.equal(line({}), `--concurrency 50 --rate 100/s --action charge=5,600/m --action refund=5/s --breaker on ${breaker}`);
  assert.equal(line({ concurrency: "", rate: "", actions: "refund=5/s", enabled: false, slow: "" , calls: "" }),
    `--concurrency none --rate none --action refund=5/s --action charge=none --breaker off ${breaker.replace("--slow 5s", "--slow none")}`);
});

test("an agent for which steps wait says why, and what would help", () => {
  const agent = { agent: "bank", waiting_steps: 2, held_by: "breaker", breaker: { state: "open", by_hand: true }, instances: [{ places: 3, open_attempts: 1 }, { places: 0, open_attempts: 4 }] } as unknown as Agent;
  assert.deepEqual(heldText(agent, NOTHING), { text: "2 steps wait: its breaker was opened by hand.", remedy: "They start when it is closed by hand." });
  assert.equal(heldText({ ...agent, waiting_steps: 0 } as Agent, { tasks: 1, isLeast: false, since: null })?.text, "1 task waits: its breaker was opened by hand.");
  assert.match(heldText({ ...agent, held_by: "limit" } as Agent, { tasks: 1000, isLeast: true, since: null })?.text ?? "", /^2 steps and 1,000 tasks or more wait: a limit/);
  assert.match(heldText({ ...agent, held_by: "no-instance", waiting_steps: 1 } as Agent, NOTHING)?.text ?? "", /^1 step waits: no instance/);
  assert.equal(heldText({ ...agent, held_by: null } as Agent, NOTHING), null);
  assert.deepEqual(placesOf(agent), { used: 5, free: 3 });
});

test("a schedule in words", () => {
  const s = { state: "active", counts: { fired: 3, missed: 1200, skipped: 0, failed: 2 }, gaps: [{ noted_at: "2027-01-01T00:00:00Z" }] } as unknown as Schedule;
  assert.equal(missedText(s), "1,200 missed, 2 failed");
  assert.equal(missedText({ ...s, counts: { fired: 1, missed: 0, skipped: 0, failed: 0 } } as Schedule), "none");
  assert.equal(lately(s, Date.parse("2027-01-01T12:00:00Z")), true);
  assert.equal(lately(s, Date.parse("2027-01-03T12:00:00Z")), false);
  assert.equal(scheduleSign({ ...s, state: "paused" } as Schedule), "paused");
  const { day, clock, offset } = localText("2031-03-30T03:00:00+02:00");
  assert.deepEqual([day, clock, offset], ["Sun 30 Mar 2031", "03:00", "+02:00"]);
  assert.equal(localText("2031-03-30T03:00:05Z").clock, "03:00:05");
  assert.equal(fromField("2027-07-01T02:30"), "2027-07-01T00:30:00Z", "the reader is in Rome");
  assert.deepEqual([fromField(""), fromField("x")], [null, null]);
});

test("a submission begins with what the definition asks for", () => {
  assert.deepEqual(exampleInput({ workflow: "x", steps: [], inputs: { a: { type: "string" }, n: { type: "integer", default: 3 }, l: { type: "array" } } }), { a: "", n: 3, l: [] });
  assert.deepEqual(exampleInput(undefined), {});
  assert.deepEqual(readTags("shop=rome\n\n note=a=b "), { tags: { shop: "rome", note: "a=b" } });
  assert.match(JSON.stringify(readTags("=x")), /mistake/);
});
