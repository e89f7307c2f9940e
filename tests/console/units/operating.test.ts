import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { movesOf, suggestion } from "../src/actions/suggested.ts";
import { drawnState, isOffered, isUnread, requestBody, stepsFor, taskCommand, VERBS, type VerbName } from "../src/actions/verbs.ts";
import { match } from "../src/app/router.ts";
import { allows, allowsFor } from "../src/app/session.ts";
import type { Alert, AlertPage, AuditEntry, Stats, Task, TaskChange, TaskSummary } from "../src/api/types.ts";
import { withoutPace } from "../src/api/stream.ts";
import { worstFirst } from "../src/pages/alerts/row.tsx";
import { keysOf } from "../src/pages/audit/keys.ts";
import { concerns, missingAgents } from "../src/pages/overview/concerns.ts";
import { changed, faultOf, NO_ROWS, ofChosen, partsOf, refreshed, withPage } from "../src/pages/tasks/model.ts";
import { timelineOf } from "../src/pages/task/timeline.ts";
import { STATES } from "../src/ui/filter.ts";

const ROOT = process.env["ROOT"] as string;

function task(more: Record<string, unknown> = {}, steps: Record<string, unknown>[] = []): Task {
  return {
    id: "o-1", state: "processing", direction: "forward", paused_at: null, closed_at: null, submitted_at: "2026-01-31T10:00:00.000Z", ended_at: null, complete_by: null,
    not_before: null, owner: "admin", ...more,
    steps: steps.map((s, n) => ({ name: `s${n}`, state: "waiting", agent: "a", action: "b", attempts: [], in_doubt: false, error: null, wait_until: null, complete_by: null, failure_count: 0, ...s })),
  } as unknown as Task;
}

test("every command that `why` suggests is understood", () => {
  const lines = readFileSync(`${ROOT}/src/why/why_texts.md`, "utf8").split("\n").flatMap((l) => (/^> {5}intact /.test(l) ? [l.slice(6)] : []));
  assert.ok(lines.length > 40, `${lines.length} commands`);
  for (const line of lines) {
    const found = suggestion(line);
    if (/ why --server /.test(line)) continue; // it is for another node: shown as it is
    assert.notEqual(found.kind, "line", line);
  }
});

test("verbs of `why` keep their step and attempt", () => {
  assert.deepEqual(suggestion("intact resolve o-17 --step charge --effect none --attempt 3 --reason '...'"), {
    kind: "verb", verb: "resolve", task: "o-17", given: { step: "charge", attempt: 3 }, line: "intact resolve o-17 --step charge --effect none --attempt 3 --reason '...'",
  });
  assert.equal((suggestion("intact retry --step x --reason '...' -- -odd") as { task: string }).task, "-odd");
  const { text, commands } = movesOf("Fix it:\nintact retry o-1 --reason '...'\nintact agent close bank");
  assert.equal(text, "Fix it:");
  assert.deepEqual(commands.map((c) => c.kind), ["verb", "breaker"]);
});

test("a flag of the command line is said in the words of its button", () => {
  const { text } = movesOf("If it did not, resolve it with --effect none: then it can be undone.\nintact resolve o-1 --step pay --effect none --reason '...'");
  assert.equal(text, "If it did not, say that it took no effect: then it can be undone.");
});

test("a row says why its task has stopped or is undone", () => {
  const of = (more: Record<string, unknown>) => faultOf({ state: "error", error: null, cause: null, ...more } as unknown as TaskSummary)?.text;
  const declined = { code: "declined", message: "the card is blocked" };
  assert.equal(of({ error: declined, cause: { step: "pay", ...declined } }), "pay: declined");
  assert.equal(of({ error: { code: "no-refund", message: null }, cause: { step: "ship", ...declined } }), "ship: declined, then no-refund");
  assert.equal(of({ state: "compensated", cause: { step: "pay", ...declined } }), "pay: declined");
  assert.equal(of({ error: { code: "deadline", message: "too late" } }), "deadline");
  assert.equal(of({ state: "processing", error: declined }), undefined, "it goes on");
  assert.equal(of({ error: undefined, cause: undefined }), undefined, "an earlier server does not tell");
});

test("alerts: those of most tasks first, after them what can wait", () => {
  const alert = (id: string, condition: string, count: number) => ({ id, condition, count }) as unknown as Alert;
  const sorted = worstFirst([alert("a", "approval_waiting", 90), alert("b", "task_error", 1), alert("c", "task_error", 40)]);
  assert.deepEqual(sorted.map((a) => a.id), ["c", "b", "a"]);
});

test("an entry of the audit keeps its key when newer ones come above it", () => {
  const entry = (at: number, verb: string) => ({ at: `2026-01-31T10:00:0${at}.000Z`, actor: "ann", verb, task: "o-1", step: null }) as unknown as AuditEntry;
  const before = keysOf([entry(2, "pause"), entry(2, "pause"), entry(1, "retry")]);
  const after = keysOf([entry(3, "pause"), entry(2, "pause"), entry(2, "pause"), entry(2, "pause"), entry(1, "retry")]);
  assert.deepEqual(after.slice(2), before);
  assert.equal(new Set(after).size, 5);
});

test("agents that have never called are missing only if tasks wait for them", () => {
  const agent = (name: string, connected: boolean, waiting_tasks: number) => ({ agent: name, connected, waiting_tasks });
  const stats = { agents: [agent("fax", false, 3), agent("bank", false, 2), agent("old", false, 0)] } as unknown as Stats;
  assert.deepEqual(missingAgents(stats, [{ agent: "bank" }]).map((a) => a.agent), ["fax"]);
});

test("a stream without its pace keeps the rest of its address", () => {
  assert.equal(withoutPace("/v1/events?per_second=50&workflow=a%26b"), "/v1/events?workflow=a%26b");
  assert.equal(withoutPace("/v1/events?per_second=50"), "/v1/events");
  assert.equal(withoutPace("/v1/tasks/o-1/events"), "/v1/tasks/o-1/events");
});

test("a verb is offered where it makes sense", () => {
  const offered = (t: Task) => VERBS.map((v) => v.name).filter((n) => isOffered(n, t));
  assert.deepEqual(offered(task({ state: "error" }, [{ state: "failed" }])), ["retry", "correct", "supply", "skip", "undo", "close"]);
  assert.deepEqual(offered(task({ state: "error", closed_at: "x" }, [{ state: "failed" }])), ["reopen"]);
  assert.deepEqual(offered(task({ state: "processed" })), ["undo"]);
  assert.deepEqual(offered(task({ state: "compensated", direction: "undo" })), []);
  assert.ok(offered(task({ paused_at: "x" })).includes("resume") && !offered(task({ paused_at: "x" })).includes("pause"));
  assert.ok(!offered(task({ state: "error", parent: "p-1" }, [{ state: "failed" }])).includes("close"), "a family is closed at its root");
  const undoing = task({ state: "error", direction: "undo" }, [{ state: "failed", attempts: [{ direction: "undo" }] }]);
  assert.deepEqual(stepsFor("correct", undoing), [], "the input of an undo is not corrected");
});

test("the command line of a verb does what its request does", () => {
  assert.equal(taskCommand("resolve", "o-1", { step: "pay", attempt: 2 }, "none came"), "intact resolve o-1 --step pay --effect none --attempt 2 --reason 'none came'");
  assert.deepEqual(requestBody("resolve", { step: "pay", attempt: 2 }, "none came"), { reason: "none came", step: "pay", attempt: 2, effect: "none" });
  assert.equal(taskCommand("correct", "-odd", { input: { a: [1] } }, ""), "intact correct --input '{\"a\":[1]}' --reason ... -- -odd");
  for (const v of VERBS) assert.ok(v.says({ task: null }).length > 20 && v.says({ task: task() }).length > 20, v.name);
});

test("a step whose items or child are at work is drawn as running, one whose child has stopped as failed", () => {
  const drawn = (s: Record<string, unknown>) => drawnState(task({}, [s]).steps[0] as Task["steps"][number]);
  assert.equal(drawn({ kind: "for_each", begun_at: "x" }), "running");
  assert.equal(drawn({ kind: "task", begun_at: "x", child: { state: "running" } }), "running");
  assert.equal(drawn({ kind: "task", begun_at: "x", child: { state: "error" } }), "failed");
  assert.equal(drawn({ kind: "approve", begun_at: "x" }), "waiting");
  assert.equal(drawn({ kind: "for_each", begun_at: "x", in_doubt: true }), "doubt");
  assert.equal(drawn({ kind: "for_each", begun_at: null }), "waiting");
});

test("roles", () => {
  assert.ok(allows(["admin"], "repair") && allows(["operate"], "read") && allows(["repair"], "read"));
  assert.ok(!allows(["read"], "repair") && !allows(["read:order"], "read") && !allows(["define"], "read"));
});

test("addresses", () => {
  assert.deepEqual(match("/tasks/:id", "/tasks/a%2Fb"), { id: "a/b" });
  assert.deepEqual(match("/tasks", "/tasks/"), {});
  assert.equal(match("/tasks/:id", "/tasks"), null);
  assert.equal(match("/tasks/:id", "/tasks/%E0%A4%A"), null);
});

const row = (id: string, state = "pending") => ({ id, state, direction: "forward", failure_count: 0, paused_at: null, closed_at: null, ended_at: null }) as unknown as TaskSummary;
const change = (id: string, state: string) => ({ id, state, direction: "forward", revision: 1, failure_count: 0, paused_at: null, closed_at: null, at: "2026-01-31T10:00:00.000Z" }) as TaskChange;

test("a change stays in its row, and a new task moves nothing", () => {
  const before = withPage(NO_ROWS, { tasks: [row("a"), row("b")], next: null });
  const after = changed(before, [change("b", "processed"), change("c", "pending")], () => true);
  assert.deepEqual(after.tasks.map((t) => [t.id, t.state]), [["a", "pending"], ["b", "processed"]]);
  assert.deepEqual([...after.fresh], ["c"]);
  assert.equal(changed(after, [change("c", "processing")], () => true), after, "nothing to draw anew");
  assert.deepEqual(withPage(after, { tasks: [row("b"), row("z")], next: null }).tasks.map((t) => t.id), ["a", "b", "z"], "pages may overlap");
});

test("a page that is read again changes rows where they are, and counts newer tasks", () => {
  const at = (id: string, minute: number, state = "pending") => ({ ...row(id, state), submitted_at: `2026-01-31T10:0${minute}:00.000Z` }) as TaskSummary;
  const before = withPage(NO_ROWS, { tasks: [at("b", 2), at("a", 1)], next: null });
  const after = refreshed(before, [at("c", 3), at("b", 2, "processed"), at("old", 0)]);
  assert.deepEqual(after.tasks.map((t) => [t.id, t.state]), [["b", "processed"], ["a", "pending"]]);
  assert.deepEqual([...after.fresh], ["c"]);
});

test("trouble of the store at another node is a concern, that of this one is said once", () => {
  const alerts = { alerts: [{ id: "a", condition: "store_trouble", summary: "the state store of b fails", first_at: "2026-01-31T10:00:00.000Z" }], next: null } as unknown as AlertPage;
  const said = (trouble: string | null) => concerns({ stats: { trouble, agents: [] } as unknown as Stats, alerts, agents: undefined, nodes: undefined }).map((c) => c.text);
  assert.deepEqual(said(null), ["The state store of b fails"]);
  assert.deepEqual(said("disk full"), ["The state store accepts no writes: disk full"]);
});

test("ids are asked in parts that fit into an address", () => {
  assert.deepEqual(partsOf([]), []);
  const short = Array.from({ length: 201 }, (_, n) => `t-${n}`);
  assert.deepEqual(partsOf(short).map((p) => p.length), [100, 100, 1]);
  const long = Array.from({ length: 60 }, (_, n) => ":".repeat(126) + String(n).padStart(2, "0"));
  const parts = partsOf(long);
  assert.deepEqual(parts.flat(), long);
  for (const part of parts) assert.ok(new URLSearchParams({ ids: part.join(",") }).toString().length < 4100);
});

const T = Date.parse("2026-01-31T10:00:00.000Z");
const time = (ms: number) => new Date(T + ms).toISOString();

test("the timeline shows attempts, the waits after failures, and doubt", () => {
  const attempts = [
    { attempt: 1, direction: "forward", started_at: time(100), ended_at: time(200), complete_by: time(1100), outcome: "failed", effect: "none" },
    { attempt: 2, direction: "forward", started_at: time(500), ended_at: time(900), complete_by: time(1500), outcome: "timed_out", effect: "unknown" },
    { attempt: 3, direction: "forward", started_at: time(1000), ended_at: null, complete_by: time(9000), outcome: "open", effect: "unknown", heartbeat_at: time(1500) },
  ];
  const { rows, lostMs, first, whole } = timelineOf(task({}, [{ state: "running", attempts, complete_by: time(9000) }]), T + 2000);
  const [found] = rows;
  assert.deepEqual(found?.bars.map((b) => [b.kind, b.from - T, b.to - T, b.inDoubt]), [
    ["attempt", 100, 200, false], ["lost", 200, 500, false], ["attempt", 500, 900, true], ["lost", 900, 1000, false], ["attempt", 1000, 2000, false],
  ]);
  assert.deepEqual([found?.deadlines, found?.beats], [[T + 9000], [T + 1500]]);
  assert.equal(lostMs, 100 + 300 + 400 + 100);
  assert.ok(first.to < T + 2200 && whole.to >= T + 9000, "the future is there, but not at first");
});

test("an attempt that was resolved is not in doubt", () => {
  const attempts = [{ attempt: 1, direction: "forward", started_at: time(0), ended_at: time(10), complete_by: time(10), outcome: "timed_out", effect: "unknown" }];
  assert.equal(timelineOf(task({}, [{ attempts, resolved: 1 }]), T + 20).rows[0]?.bars[0]?.inDoubt, false);
});

const NAMES: VerbName[] = ["retry", "correct", "supply", "resolve", "skip", "undo", "cancel", "pause", "resume", "close", "reopen"];
test("all verbs of docs/operating.md are there", () => {
  const text = readFileSync(`${ROOT}/docs/operating.md`, "utf8");
  const named = new Set([...text.matchAll(/`intact (\w+) TASK/g)].map((m) => m[1] as string).filter((v) => v !== "why"));
  for (const name of named) assert.ok(NAMES.includes(name as VerbName) && VERBS.some((v) => v.name === name), name);
  assert.deepEqual(VERBS.map((v) => v.name), NAMES);
});

test("what a dry run has not read is told apart from a refusal", () => {
  const [, said = ""] = /step == UNIT_UNREAD\) \{\s*buf_str\(b, "([^"]*)"/.exec(readFileSync(`${ROOT}/src/api/operations_dry.c`, "utf8")) ?? [];
  assert.ok(isUnread(said));
  assert.ok(!isUnread("the task is already in that state"));
});

test("the filter of chosen rows names their states", () => {
  const rows = [{ id: "a", state: "processed" }, { id: "b", state: "error" }, { id: "c", state: "processed" }, { id: "d", state: "pending" }] as TaskSummary[];
  assert.deepEqual(ofChosen(rows, new Set(["c", "b", "a"])), { states: ["error", "processed"], ids: ["c", "b", "a"], tags: [] });
  assert.deepEqual(ofChosen(rows, new Set(["a", "gone"])).states, [...STATES], "a row that has left the list may be in any");
});

test("roles for some workflows are those that the server takes", () => {
  for (const [roles, name, is] of [[["admin"], "a", true], [["submit"], "a", true], [["submit:order"], "order", true], [["submit:order"], "orders", false], [["submit:or*"], "orders", true],
    [["submit:*"], "a", true], [["read:order"], "order", false], [["submitter:order"], "order", false], [[], "order", false]] as const) {
    assert.equal(allowsFor([...roles], "submit", name), is, `${roles} ${name}`);
  }
});
