// What docs/operating.md and docs/bulk.md have operators do, done by clicks. The store, read by SQL, says what came of it.
//
//   docs/operating.md                                        test
//   the list of verbs, and `why` with their buttons          all of these
//   Retry                                                    "retry: ..."
//   Correct an input: of a step, of the task; retry --from   "correct: a step's input", "correct: the task's input"
//   A lost result: correct is refused, supply                "a lost result is supplied"
//   skip, with an output                                     "a step is skipped"
//   A step that did not take effect: resolve, undo           "a step took no effect"
//   Pause: submit --paused, pause, resume                    "pause"
//   Undo what was processed                                  "a processed task is undone"
//   Close, reopen                                            "close"
//   cancel, by who submitted the task                        "cancel"
//   STEP is an item                                          "items", "an item in doubt"
//   Retry and skip of an undo; skip in doubt                 "a failed undo", "a step that is skipped while in doubt"
//   A family is paused and closed by its root                "a family"
//   on_undo, undo_until, retry --from refused                "undo: ...", "retry from a step that took effect"
//   Only an admin corrects what people allowed               "only an admin"
//
//   docs/bulk.md
//   Dry run, Start, audit and list of operations             "bulk: dry run, start"
//   Filters                                                  "bulk: each filter", "bulk: chosen tasks"
//   Verbs                                                    "bulk: VERB" for each, "bulk: skip, of an item"
//   An incomplete dry run; no filter (--all)                 "bulk: a dry run that was not complete", "bulk: no filter"
//   --limit, --rate, Stop and continue, get --wait           "bulk: an operation is followed, stopped and continued"
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import test, { after, before } from "node:test";
import { handAgent, heading, openPage, sleep, sql, startBrowser, until } from "./kit.mjs";
import { caller, startServer } from "./world.mjs";

const { INTACT, WORK } = process.env;
const data = `${WORK}/data`;

const ORDER = {
  intact: 1, workflow: "order", on_failure: "hold", inputs: { sum: { type: "integer", required: true } },
  steps: [
    { name: "price", agent: "desk", action: "price", undo: "none" },
    { name: "charge", agent: "desk", action: "charge", input: { sum: "${ .input.sum }" }, undo: { action: "refund" } },
  ],
};
const PARCEL = {
  intact: 1, workflow: "parcel",
  steps: [
    { name: "book", agent: "desk", action: "book", undo: { action: "unbook" } },
    { name: "ship", agent: "desk", action: "ship", complete_by: "5s", retry: { attempts: 2, wait: "100ms" }, pivot: true },
  ],
};
const PACKING = {
  intact: 1, workflow: "packing", on_failure: "hold",
  steps: [
    { name: "pack", for_each: "${ .input }", max_items: 10, concurrency: 1, on_item_failure: "continue", agent: "desk", action: "take", input: { sku: "${ .item }" }, undo: { action: "put-back" } },
    { name: "book", agent: "desk", action: "book", undo: "none" },
  ],
};
// In bulk nobody answers but for `single`, whose agent is called as a task needs it.
const SINGLE = { intact: 1, workflow: "single", on_failure: "hold", steps: [{ name: "do", agent: "clerk", action: "do", input: "${ .input }", undo: { action: "undo" } }] };
// Whether an attempt took effect is certain a second after its complete-by.
const LOSSY = { ...SINGLE, workflow: "lossy", steps: [{ ...SINGLE.steps[0], complete_by: "3s", retry: { attempts: 1 } }] };
const RESTS = { intact: 1, workflow: "rests", steps: [{ name: "send", agent: "nobody", action: "send", undo: "none" }] };
const ASKS = { intact: 1, workflow: "asks", steps: [{ name: "paid", signal: { name: "payment" }, complete_by: "2d" }] };
const FAMILY = { intact: 1, workflow: "family", steps: [{ name: "part", task: { workflow: "rests" }, complete_by: "2d" }] };

// For what goes beyond one step: an undo that fails, an end after the undo, a time limit, people who decide, children that
// stop. The agent `till` is led by hand.
const till = (name, more = {}) => ({ name, agent: "till", action: name, ...more });
const PAIR = { intact: 1, workflow: "pair", on_failure: "hold", steps: [till("hold", { undo: { action: "free" } }), till("pay", { undo: { action: "refund" } })] };
const TELLS = { ...PAIR, workflow: "tells", on_undo: [till("tell", { undo: "none" })] };
const BRIEF = { intact: 1, workflow: "brief", undo_until: "1s", steps: [till("give", { undo: { action: "take" } })] };
const LOST = { intact: 1, workflow: "lost", on_failure: "hold", steps: [till("wire", { complete_by: "2s", retry: { attempts: 1 }, undo: { action: "recall" } })] };
const LETTERS = {
  intact: 1, workflow: "letters", on_failure: "hold",
  steps: [{ name: "letter", for_each: "${ .input }", max_items: 10, agent: "till", action: "letter", complete_by: "2s", retry: { attempts: 1 }, undo: { action: "recall" } }],
};
const ALLOWED = {
  intact: 1, workflow: "allowed", on_failure: "hold",
  steps: [{ name: "allow", approve: { by: ["finance"], question: "Pay ${ .input.sum }?" }, complete_by: "2d" }, till("pay", { input: "${ .input }", undo: "none" })],
};
const CHILD = { intact: 1, workflow: "child", on_failure: "hold", steps: [till("sort", { undo: "none" })] };
const PARENT = { intact: 1, workflow: "parent", on_failure: "hold", steps: [{ name: "kid", task: { workflow: "child" }, complete_by: "2d" }] };

let browser;
let server;
let people;
let desk;
let clerk;
let cash;

before(async () => {
  browser = await startBrowser();
  server = await startServer(INTACT, WORK);
  for (const d of [ORDER, PARCEL, PACKING, SINGLE, LOSSY, RESTS, ASKS, FAMILY, PAIR, TELLS, BRIEF, LOST, LETTERS, ALLOWED, CHILD, PARENT]) await server.call("PUT", `/v1/workflows/${d.workflow}`, d);
  const shop = await server.call("POST", "/v1/tokens", { name: "shop", roles: ["submit:*", "read"] });
  const mender = await server.call("POST", "/v1/tokens", { name: "mender", roles: ["read", "repair"] });
  people = { admin: { token: server.token }, shop: { token: shop.token }, mender: { token: mender.token } };
  desk = handAgent(server.call, "desk");
  clerk = handAgent(server.call, "clerk");
  cash = handAgent(server.call, "till");
});

after(async () => {
  await browser?.close();
  await server?.stop();
});

const open = (t, path, options) => openPage(t, browser, server, people, path, options);
const submit = (workflow, id, more = {}) => server.call("POST", "/v1/tasks", { workflow, id, ...more });

// ---- the store ----

const rows = (statement) => sql(data, statement);
const stateOf = (id) => rows(`SELECT state FROM task_view WHERE id = '${id}'`)[0]?.state;
const stepOf = (id, name) => rows(`SELECT s.* FROM task_step s WHERE s.task = '${id}' AND s.name = '${name}'`)[0];
const reaches = (id, state) => until(() => stateOf(id), (found) => found === state, id);
const said = (id) => rows(`SELECT actor, verb, step, reason FROM audit_view WHERE task = '${id}' ORDER BY seq`).map((r) => [r.actor, r.verb, r.step, r.reason]);

// ---- the page of a task ----

const front = (page) => new URL(page.url()).origin;
const dialogOf = (page) => page.getByRole("dialog");

async function goTo(page, id, step) {
  await page.goto(`${front(page)}/tasks/${id}${step ? `?step=${step}` : ""}`);
  await heading(page, id);
}

async function menu(page, label) {
  await page.locator(".page-actions").getByRole("button", { name: "Actions" }).click();
  await page.getByRole("menuitem", { name: label }).click();
}

const ofStep = (page, label) => page.locator(".step-panel").getByRole("button", { name: `${label}…`, exact: true }).first().click();

// Fills in the form that is open, waits until the server would accept it, and sends it.
async function send(page, label, reason, fields = {}) {
  const dialog = dialogOf(page);
  for (const [name, value] of Object.entries(fields)) {
    const field = dialog.getByLabel(name, { exact: true });
    if ((await field.evaluate((e) => e.tagName)) === "SELECT") await field.selectOption(value);
    else await field.fill(value);
  }
  await dialog.getByLabel("Reason").fill(reason);
  await dialog.getByText("The server would accept this now.").waitFor();
  const line = await dialog.locator(".command-line code").innerText();
  await dialog.locator(".dialog-foot").getByRole("button", { name: label, exact: true }).click();
  await dialog.waitFor({ state: "detached" });
  return line;
}

const REFUSED = { expected: [/status of (403|409)/] };

// Sends a form that the server refuses. The form stays open and shows why.
async function refusedWhenSent(page, label, text) {
  const dialog = dialogOf(page);
  await dialog.getByLabel("Reason").fill("let us see");
  await dialog.locator(".dialog-foot").getByRole("button", { name: label, exact: true }).click();
  await dialog.locator(".note.error").filter({ hasText: text }).waitFor();
  await page.keyboard.press("Escape");
}

// What the menu of a task's page offers.
async function offered(page) {
  await page.locator(".page-actions").getByRole("button", { name: "Actions" }).click();
  const found = (await page.getByRole("menuitem").allInnerTexts()).map((x) => x.split("\n")[0]);
  await page.keyboard.press("Escape");
  return found;
}

const why = (page, text) => page.locator(".why-summary").filter({ hasText: text }).waitFor();
const FAILS = (code, message) => ({ error: { code, message, retryable: false } });

// Submits by the form of the workflow's page, and stays on the page of the task.
async function submitByForm(page, workflow, id, input, { isPaused = false } = {}) {
  await page.goto(`${front(page)}/workflows/${workflow}`);
  await page.getByRole("button", { name: "Submit a task…" }).click();
  const dialog = dialogOf(page);
  await dialog.getByLabel("Input (JSON)").fill(JSON.stringify(input));
  await dialog.getByLabel("Id", { exact: true }).fill(id);
  if (isPaused) await dialog.getByLabel(/^Paused/).check();
  const line = await dialog.locator(".command-line code").innerText();
  await dialog.getByRole("button", { name: "Submit", exact: true }).click();
  await heading(page, id);
  return line;
}

// ---- docs/operating.md ----

test("retry: of all that failed, and of one step", async (t) => {
  const page = await open(t, "/");
  await submitByForm(page, "order", "o-1", { sum: 12 });
  await desk.do("o-1/price", { output: "dear" });
  await desk.do("o-1/charge", FAILS("blocked", "the card is blocked"));
  await page.getByRole("link", { name: "Tasks" }).first().click();
  await page.getByRole("button", { name: "error", exact: true }).click();
  await page.getByRole("row").filter({ hasText: "o-1" }).click();
  await why(page, /has stopped in error\. Step charge failed for good after 1 attempt/);
  await menu(page, /^Retry/);
  assert.equal(await send(page, "Retry", "the bank says it is unblocked"), "intact retry o-1 --reason 'the bank says it is unblocked'");
  await desk.do("o-1/charge", FAILS("too-much", "more than 10"));
  await why(page, /too-much/);
  await ofStep(page, "Retry");
  assert.equal(await send(page, "Retry", "once more"), "intact retry o-1 --step charge --reason 'once more'");
  await desk.do("o-1/charge", FAILS("too-much", "more than 10"));
  await reaches("o-1", "error");
  assert.deepEqual(said("o-1"), [["admin", "retry", null, "the bank says it is unblocked"], ["admin", "retry", "charge", "once more"]]);
});

test("correct: a step's input, then retry; the record and the audit show it", async (t) => {
  const page = await open(t, "/tasks/o-1?step=charge");
  await ofStep(page, "Correct input");
  await send(page, "Correct input", "agreed on 10 by telephone", { "Input (JSON)": '{"sum": 10}' });
  await ofStep(page, "Retry");
  await send(page, "Retry", "agreed on 10 by telephone");
  const request = await desk.do("o-1/charge~2", { output: { receipt: 1 } });
  assert.deepEqual(request.input, { sum: 10 });
  await page.locator(".page-head .state").getByText("processed").waitFor();
  assert.equal(stateOf("o-1"), "processed");
  assert.equal(stepOf("o-1", "charge").key_generation, 2);
  await page.locator(".step-panel").getByText("o-1/charge~2").waitFor();
  await page.getByRole("tab", { name: "What people did (4)" }).click();
  await page.getByRole("tabpanel").getByText("agreed on 10 by telephone").first().waitFor();
  await page.goto(`${front(page)}/audit`);
  await page.getByRole("row").filter({ hasText: "correct" }).first().waitFor();
  const [{ detail }] = rows("SELECT detail FROM audit_view WHERE task = 'o-1' AND verb = 'correct'");
  assert.deepEqual(JSON.parse(detail), { before: { sum: 12 }, after: { sum: 10 } });
});

test("correct: the task's input, then retry from a step", async (t) => {
  const page = await open(t, "/");
  await submitByForm(page, "order", "o-2", { sum: 120 });
  await desk.do("o-2/price", { output: "dear" });
  await desk.do("o-2/charge", FAILS("too-much"));
  await why(page, /too-much/);
  await menu(page, /^Correct the task's input/);
  assert.deepEqual(JSON.parse(await dialogOf(page).getByLabel("Input (JSON)").inputValue()), { sum: 120 });
  await send(page, "Correct input", "a nought too many", { "Input (JSON)": '{"sum": 9}' });
  await menu(page, /^Retry/);
  assert.equal(await send(page, "Retry", "a nought too many", { "Restart from": "price" }), "intact retry o-2 --from price --reason 'a nought too many'");
  assert.deepEqual((await desk.do("o-2/price~2", { output: "cheap" })).input, { sum: 9 });
  assert.deepEqual(JSON.parse(rows("SELECT input FROM task_view WHERE id = 'o-2'")[0].input), { sum: 9 });
});

test("a lost result is supplied; the input of a step in doubt cannot be corrected", async (t) => {
  const page = await open(t, "/tasks/o-2");
  const request = await desk.take();
  assert.deepEqual([request.idempotency_key, request.input], ["o-2/charge~2", { sum: 9 }]);
  await desk.answer(request, { error: { code: "lost", retryable: false, effect: "unknown" } });
  await why(page, /has stopped in error/);
  await goTo(page, "o-2", "charge");
  await page.locator(".step-panel .panel-head").getByText("in doubt").waitFor();
  assert.equal(await page.locator(".step-panel").getByRole("button", { name: /^Correct input/ }).count(), 0);
  await ofStep(page, "Supply output");
  await send(page, "Supply output", "found at the bank", { "Output (JSON)": '{"receipt": 2}' });
  await reaches("o-2", "processed");
  const { state, supplied, output } = stepOf("o-2", "charge");
  assert.deepEqual([state, supplied, JSON.parse(output)], ["completed", 1, { receipt: 2 }]);
  await page.locator(".step-panel").getByText("supplied by an operator").waitFor();
});

test("a step is skipped, with an output for later steps", async (t) => {
  const page = await open(t, "/");
  await submitByForm(page, "order", "o-skip", { sum: 1 });
  await desk.do("o-skip/price", FAILS("no-price"));
  await goTo(page, "o-skip", "price");
  await ofStep(page, "Skip step");
  await send(page, "Skip step", "the price was agreed", { "Output (JSON), if later steps need one": '"one"' });
  await desk.do("o-skip/charge", { output: null });
  await reaches("o-skip", "processed");
  assert.deepEqual([stepOf("o-skip", "price").state, stepOf("o-skip", "price").output], ["skipped", '"one"']);
  assert.deepEqual(said("o-skip"), [["admin", "skip", "price", "the price was agreed"]]);
});

test("a step took no effect: it is resolved as soon as that is certain, and the task is undone", async (t) => {
  const page = await open(t, "/");
  await submitByForm(page, "parcel", "p-1", { to: "Bonn" });
  await desk.do("p-1/book", { output: 1 });
  await desk.do("p-1/ship", { error: { code: "lost", retryable: true, effect: "unknown" } });
  await desk.do("p-1/ship", FAILS("no-street"));
  await why(page, /has stopped in error|unknown whether/);
  await reaches("p-1", "error");
  await menu(page, /^Undo task/);
  await page.getByText("The server would refuse this: a pivot took effect, or may have").waitFor();
  await page.keyboard.press("Escape");
  // An effect may still come until a second after the complete-by of the first attempt: until then it is refused.
  const accepted = page.getByText("The server would accept this now.");
  const refused = page.getByText(/The server would refuse this/);
  for (;;) {
    await page.locator(".why").getByRole("button", { name: "ship took no effect…" }).click();
    await accepted.or(refused).waitFor();
    if (await accepted.isVisible()) break;
    await page.keyboard.press("Escape");
    await sleep(500);
  }
  assert.equal(await send(page, "Took no effect", "the carrier has no parcel"), "intact resolve p-1 --step ship --effect none --attempt 2 --reason 'the carrier has no parcel'");
  await until(() => stepOf("p-1", "ship"), (s) => s.resolved === 2 && s.in_doubt === 0, "ship");
  await menu(page, /^Undo task/);
  await send(page, "Undo task", "no street");
  assert.deepEqual((await desk.do("p-1/book/undo", { output: null })).input, { input: { to: "Bonn" }, output: 1 });
  await reaches("p-1", "compensated");
  assert.deepEqual(said("p-1").map(([, verb, step]) => [verb, step]), [["resolve", "ship"], ["undo", null]]);
});

test("pause: a task is submitted paused, found by the filter, resumed; another is paused while it runs", async (t) => {
  const page = await open(t, "/");
  assert.equal(await submitByForm(page, "order", "o-3", { sum: 5 }, { isPaused: true }), `intact submit order --id o-3 --input '{"sum":5}' --paused`);
  await why(page, /is paused/);
  assert.equal(stepOf("o-3", "price").attempt, 0);
  await page.getByRole("link", { name: "Tasks" }).first().click();
  await page.getByRole("button", { name: "More filters" }).click();
  await page.getByLabel("Paused", { exact: true }).selectOption("true");
  await page.getByRole("button", { name: "Filter", exact: true }).click();
  await page.getByRole("row").filter({ hasText: "o-3" }).getByText("paused").waitFor();
  assert.equal(await page.locator(".task-rows .task-row").count(), 1);
  await page.getByRole("row").filter({ hasText: "o-3" }).click();
  await menu(page, /^Resume/);
  await send(page, "Resume", "go");
  const request = await desk.take();
  assert.equal(request.idempotency_key, "o-3/price");
  await menu(page, /^Pause/);
  await send(page, "Pause", "wait for the boss");
  await desk.answer(request, FAILS("no-price"));
  await reaches("o-3", "error");
  assert.deepEqual(said("o-3").map(([, verb]) => verb), ["resume", "pause"]);
  const [{ paused_at }] = rows("SELECT paused_at FROM task_view WHERE id = 'o-3'");
  assert.equal(paused_at, null, "the stop ends the pause");
});

test("a processed task is undone", async (t) => {
  const page = await open(t, "/tasks/o-2");
  await menu(page, /^Undo task/);
  await send(page, "Undo task", "it was meant for o-1");
  assert.deepEqual((await desk.do("o-2/charge~2/undo", { output: null })).input, { input: { sum: 9 }, output: { receipt: 2 } });
  await page.locator(".page-head .state").getByText("compensated").waitFor();
  assert.deepEqual(rows("SELECT state, error_message FROM task_view WHERE id = 'o-2'"), [{ state: "compensated", error_message: "it was meant for o-1" }]);
});

test("close: nothing but reopen is possible then, and afterwards all is", async (t) => {
  const page = await open(t, "/tasks/o-3");
  await menu(page, /^Close/);
  await send(page, "Close", "the customer came to the shop");
  await page.locator(".page-head .state").getByText("closed").waitFor();
  assert.equal(rows("SELECT closed_reason FROM task_view WHERE id = 'o-3'")[0].closed_reason, "the customer came to the shop");
  await page.locator(".page-actions").getByRole("button", { name: "Actions" }).click();
  assert.deepEqual((await page.getByRole("menuitem").allInnerTexts()).map((x) => x.split("\n")[0]), ["Reopen…"]);
  await page.keyboard.press("Escape");
  await page.keyboard.press("g");
  await page.keyboard.press("e");
  await page.waitForFunction(() => location.search === "?state=error&closed=false");
  await page.getByText("No task matches").waitFor();
  await goTo(page, "o-3");
  await menu(page, /^Reopen/);
  await send(page, "Reopen", "he left again");
  await menu(page, /^Undo task/);
  await send(page, "Undo task", "he left again");
  await reaches("o-3", "compensated");
  assert.deepEqual(said("o-3").slice(-3).map(([, verb]) => verb), ["close", "reopen", "undo"]);
});

test("cancel: offered to who submitted the task and may not repair", async (t) => {
  const page = await open(t, "/", { who: "shop" });
  await submitByForm(page, "rests", "r-cancel", {});
  await menu(page, /^Cancel/);
  const dialog = dialogOf(page);
  await dialog.getByLabel("Reason").fill("the customer changed his mind");
  await dialog.getByRole("button", { name: "Cancel", exact: true }).last().click();
  await reaches("r-cancel", "compensated");
  assert.deepEqual(said("r-cancel"), [["shop", "cancel", null, "the customer changed his mind"]]);
});

test("items: an item whose step has ended cannot be retried, and stays as it is", async (t) => {
  const page = await open(t, "/", REFUSED);
  await submitByForm(page, "packing", "pk-1", ["cup", "pen", "vase", "jar"]);
  await desk.do("pk-1/pack.0", { output: 1 });
  for (const n of [1, 2, 3]) await desk.do(`pk-1/pack.${n}`, FAILS("sold-out"));
  await desk.do("pk-1/book", FAILS("closed"));
  await reaches("pk-1", "error");
  const item = (n) => rows(`SELECT state, output FROM task_item WHERE task = 'pk-1' AND number = ${n}`)[0];
  assert.deepEqual([0, 1, 2, 3].map((n) => item(n).state), ["completed", "failed", "failed", "failed"]);
  await goTo(page, "pk-1", "pack");
  await page.getByRole("button", { name: "pack.1: failed", exact: true }).click();
  await page.locator(".item-card").getByRole("button", { name: "Retry…" }).click();
  await refusedWhenSent(page, "Retry", "not possible while task pk-1 is error");
  assert.equal(item(1).state, "failed");
  assert.deepEqual(said("pk-1"), []);
});

test("items: of a step that was held by its items, each is repaired by itself", async (t) => {
  const page = await open(t, "/");
  await server.call("PUT", "/v1/workflows/packing", { ...PACKING, steps: [{ ...PACKING.steps[0], on_item_failure: undefined, concurrency: 3 }, PACKING.steps[1]] });
  await submitByForm(page, "packing", "pk-2", ["cup", "pen", "vase"]);
  const requests = [await desk.take(), await desk.take(), await desk.take()];
  for (const r of requests) await desk.answer(r, FAILS("sold-out"));
  await reaches("pk-2", "error");
  await goTo(page, "pk-2", "pack");
  const choose = async (n) => {
    await page.getByRole("button", { name: `pack.${n}: failed`, exact: true }).click();
    await page.locator(".item-head").getByText(`pack.${n}`).waitFor();
  };
  const act = async (label, ok, reason, fields = {}) => {
    await page.locator(".item-card").getByRole("button", { name: `${label}…` }).click();
    const dialog = dialogOf(page);
    for (const [name, value] of Object.entries(fields)) await dialog.getByLabel(name, { exact: true }).fill(value);
    await dialog.getByLabel("Reason").fill(reason);
    const line = await dialog.locator(".command-line code").innerText();
    await dialog.getByRole("button", { name: ok, exact: true }).click();
    await dialog.waitFor({ state: "detached" });
    return line;
  };
  await choose(0);
  assert.equal(await act("Supply output", "Supply output", "it lies here", { "Output (JSON)": '"here"' }), `intact supply pk-2 --step pack.0 --output '"here"' --reason 'it lies here'`);
  await choose(1);
  await act("Skip step", "Skip step", "nobody needs a pen");
  await choose(2);
  await act("Correct input", "Correct input", "the other vase", { "Input (JSON)": '{"sku": "vase-2"}' });
  await choose(2);
  await act("Retry", "Retry", "the other vase");
  assert.deepEqual((await desk.do("pk-2/pack.2~2", { output: "a vase" })).input, { sku: "vase-2" });
  await desk.do("pk-2/book", { output: null });
  await reaches("pk-2", "processed");
  assert.deepEqual(rows("SELECT state FROM task_item WHERE task = 'pk-2' ORDER BY number").map((r) => r.state), ["completed", "skipped", "completed"]);
  assert.deepEqual(said("pk-2").map(([, verb, step]) => [verb, step]), [["supply", "pack.0"], ["skip", "pack.1"], ["correct", "pack.2"], ["retry", "pack.2"]]);
});

// ---- docs/operating.md: undo, doubt, families, people ----

test("a failed undo: its step is retried in the direction of the undo, then skipped, and the task is undone to its end", async (t) => {
  const page = await open(t, "/");
  await submitByForm(page, "pair", "back-1", {});
  await cash.do("back-1/hold", { output: 1 });
  await cash.do("back-1/pay", { output: 2 });
  await reaches("back-1", "processed");
  await menu(page, /^Undo task/);
  await send(page, "Undo task", "not wanted");
  await cash.do("back-1/pay/undo", FAILS("account-closed"));
  await reaches("back-1", "error");
  await page.getByText("on the way back").waitFor();
  await goTo(page, "back-1", "pay");
  await ofStep(page, "Retry");
  assert.equal(await send(page, "Retry", "the account is open again"), "intact retry back-1 --step pay --reason 'the account is open again'");
  const again = await cash.do("back-1/pay/undo", FAILS("account-closed"));
  assert.equal(again.direction, "undo");
  await reaches("back-1", "error");
  await goTo(page, "back-1", "pay");
  await ofStep(page, "Skip step");
  await send(page, "Skip step", "refunded by hand");
  await cash.do("back-1/hold/undo", { output: null });
  await reaches("back-1", "compensated");
  assert.deepEqual(said("back-1").map(([, verb, step]) => [verb, step]), [["undo", null], ["retry", "pay"], ["skip", "pay"]]);
  assert.equal(stepOf("back-1", "hold").state, "undone");
});

test("a step that is skipped while in doubt stays in doubt, and a later undo includes it", async (t) => {
  const page = await open(t, "/");
  await submitByForm(page, "lost", "lost-1", {});
  await cash.do("lost-1/wire", { error: { code: "lost", retryable: false, effect: "unknown" } });
  await reaches("lost-1", "error");
  await goTo(page, "lost-1", "wire");
  await ofStep(page, "Skip step");
  await send(page, "Skip step", "sent by hand");
  await reaches("lost-1", "processed");
  assert.deepEqual([stepOf("lost-1", "wire").state, stepOf("lost-1", "wire").in_doubt], ["skipped", 1]);
  await menu(page, /^Undo task/);
  await send(page, "Undo task", "sent twice");
  await cash.do("lost-1/wire/undo", { output: null });
  await reaches("lost-1", "compensated");
});

test("an item in doubt is resolved; the request names the attempt that was looked at, and an undo leaves the item out", async (t) => {
  const page = await open(t, "/", REFUSED);
  await submitByForm(page, "letters", "let-1", ["Bonn"]);
  await cash.do("let-1/letter.0", { error: { code: "lost", retryable: false, effect: "unknown" } });
  await reaches("let-1", "error");
  const item = () => rows("SELECT * FROM task_item WHERE task = 'let-1' AND number = 0")[0];
  assert.equal(item().in_doubt, 1);
  await goTo(page, "let-1", "letter");
  await page.getByRole("button", { name: /^letter\.0: / }).click();
  await page.locator(".item-card").getByRole("button", { name: "Took no effect…" }).click();
  const dialog = dialogOf(page);
  await dialog.getByText("Refused if an attempt later than 1 began meanwhile.").waitFor();
  await dialog.getByLabel("Reason").fill("the post has no letter");
  assert.equal(await dialog.locator(".command-line code").innerText(), "intact resolve let-1 --step letter.0 --effect none --attempt 1 --reason 'the post has no letter'");
  // It is refused until a second after the complete-by of the attempt.
  const bodies = [];
  page.on("request", (r) => { if (r.url().endsWith("/v1/tasks/let-1/resolve")) bodies.push(r.postDataJSON()); });
  for (;;) {
    const answer = page.waitForResponse((r) => r.url().endsWith("/v1/tasks/let-1/resolve"));
    await dialog.locator(".dialog-foot").getByRole("button", { name: "Took no effect", exact: true }).click();
    if ((await answer).status() === 200) break;
    await sleep(500);
  }
  await dialog.waitFor({ state: "detached" });
  assert.deepEqual(bodies.at(-1), { reason: "the post has no letter", step: "letter.0", effect: "none", attempt: 1 });
  assert.equal(item().in_doubt, 0);
  await menu(page, /^Undo task/);
  await send(page, "Undo task", "no letter, no undo");
  await reaches("let-1", "compensated");
  assert.equal(item().state, "failed", "it was not undone");
  assert.deepEqual(said("let-1").map(([, verb, step]) => [verb, step]), [["resolve", "letter.0"], ["undo", null]]);
});

test("a family: pause, resume, close and reopen are offered at the root only, and reach its child", async (t) => {
  const page = await open(t, "/");
  await submitByForm(page, "parent", "kin-1", {});
  await until(() => stateOf("kin-1@kid"), (found) => found !== undefined, "the child");
  await goTo(page, "kin-1@kid");
  assert.deepEqual((await offered(page)).filter((x) => /Pause|Resume|Close|Reopen/.test(x)), []);
  await goTo(page, "kin-1");
  await menu(page, /^Pause/);
  await send(page, "Pause", "stock-taking");
  const of = (column) => rows(`SELECT ${column} AS v FROM task_view WHERE id LIKE 'kin-1%' ORDER BY id`).map((r) => r.v);
  await until(() => of("paused_at"), (v) => v.every((x) => x !== null), "both are paused");
  await goTo(page, "kin-1@kid");
  assert.deepEqual((await offered(page)).filter((x) => /Pause|Resume|Close|Reopen/.test(x)), []);
  await goTo(page, "kin-1");
  await menu(page, /^Resume/);
  await send(page, "Resume", "the stock is counted");
  await until(() => of("paused_at"), (v) => v.every((x) => x === null), "both are resumed");
  await cash.do("kin-1@kid/sort", FAILS("no-shelf"));
  await reaches("kin-1", "error");
  await goTo(page, "kin-1@kid");
  assert.ok((await offered(page)).some((x) => /^Retry/.test(x)));
  assert.deepEqual((await offered(page)).filter((x) => /Pause|Resume|Close|Reopen/.test(x)), []);
  await goTo(page, "kin-1");
  await menu(page, /^Close/);
  await send(page, "Close", "written off");
  await until(() => of("closed_at"), (v) => v.every((x) => x !== null), "both are closed");
  await menu(page, /^Reopen/);
  await send(page, "Reopen", "not so fast");
  await until(() => of("closed_at"), (v) => v.every((x) => x === null), "both are open");
});

test("undo: the steps of on_undo run after the last compensation", async (t) => {
  const page = await open(t, "/");
  await submitByForm(page, "tells", "tell-1", {});
  await cash.do("tell-1/hold", { output: 1 });
  await cash.do("tell-1/pay", { output: 2 });
  await reaches("tell-1", "processed");
  assert.equal(stepOf("tell-1", "tell").attempt, 0);
  await menu(page, /^Undo task/);
  await send(page, "Undo task", "not wanted");
  await cash.do("tell-1/pay/undo", { output: null });
  await cash.do("tell-1/hold/undo", { output: null });
  assert.equal(stateOf("tell-1"), "compensating");
  await cash.do("tell-1/tell", { output: "told" });
  await reaches("tell-1", "compensated");
  assert.deepEqual([stepOf("tell-1", "tell").state, stepOf("tell-1", "tell").output], ["completed", '"told"']);
});

test("undo of a processed task is refused after its undo_until", async (t) => {
  const page = await open(t, "/", REFUSED);
  await submitByForm(page, "brief", "brief-1", {});
  await cash.do("brief-1/give", { output: 1 });
  await reaches("brief-1", "processed");
  await sleep(1500);
  await menu(page, /^Undo task/);
  await dialogOf(page).getByText("The server would refuse this: the task was processed too long ago to be undone").waitFor();
  await refusedWhenSent(page, "Undo task", "undo_until");
  assert.equal(stateOf("brief-1"), "processed");
  assert.deepEqual(said("brief-1"), []);
});

test("retry from a step that took effect and has an undo is refused", async (t) => {
  const page = await open(t, "/", REFUSED);
  await submitByForm(page, "pair", "from-1", {});
  await cash.do("from-1/hold", { output: 1 });
  await cash.do("from-1/pay", FAILS("too-much"));
  await reaches("from-1", "error");
  await menu(page, /^Retry/);
  await dialogOf(page).getByLabel("Restart from", { exact: true }).selectOption("hold");
  await dialogOf(page).getByText("The server would refuse this: the step already took effect").waitFor();
  await refusedWhenSent(page, "Retry", "effects can only be reverted by undo");
  assert.deepEqual([stateOf("from-1"), stepOf("from-1", "hold").state, said("from-1")], ["error", "completed", []]);
});

test("only an admin corrects what people allowed", async (t) => {
  await submit("allowed", "allow-1", { input: { sum: 10 } });
  const ann = await server.call("POST", "/v1/tokens", { name: "ann", roles: ["approve"], groups: ["finance"] });
  await caller(server.url, ann.token)("POST", "/v1/approvals/allow-1/allow/approve", {});
  await cash.do("allow-1/pay", FAILS("too-much"));
  await reaches("allow-1", "error");
  const input = () => JSON.parse(rows("SELECT input FROM task_view WHERE id = 'allow-1'")[0].input);
  const theirs = await open(t, "/tasks/allow-1", { who: "mender", ...REFUSED });
  await menu(theirs, /^Correct the task's input/);
  await dialogOf(theirs).getByLabel("Input (JSON)").fill('{"sum": 99}');
  await dialogOf(theirs).getByText("The server would refuse this: people decide, and only an admin may in their place").waitFor();
  await refusedWhenSent(theirs, "Correct input", /admin/);
  const corrected = () => said("allow-1").filter(([, verb]) => verb === "correct");
  assert.deepEqual([input(), corrected()], [{ sum: 10 }, []]);
  const page = await open(t, "/tasks/allow-1");
  await menu(page, /^Correct the task's input/);
  await send(page, "Correct input", "agreed by telephone", { "Input (JSON)": '{"sum": 9}' });
  assert.deepEqual(input(), { sum: 9 });
  assert.deepEqual(corrected(), [["admin", "correct", null, "agreed by telephone"]]);
});

// ---- docs/bulk.md ----

// From a filter in the address to the form on all of it.
async function operateOn(page, query) {
  await page.goto(`${front(page)}/tasks?${query}`);
  await page.locator(".task-rows .task-row").first().waitFor();
  await page.getByRole("button", { name: "Operate on all…" }).click();
}

// Fills in the form, waits for the count, starts it, and waits on its page until it has ended. Returns its row of the store.
async function operate(page, verb, count, reason, fields = {}, { isUnread = false } = {}) {
  const dialog = dialogOf(page);
  await dialog.getByLabel("Verb").selectOption(verb);
  for (const [name, value] of Object.entries(fields)) await dialog.getByLabel(name, { exact: true }).fill(value);
  await dialog.getByLabel("Reason").fill(reason);
  await dialog.locator(".dialog-foot").getByRole("button", { name: new RegExp(`: (up to )?${count} tasks?$`) }).click();
  await page.waitForFunction(() => location.pathname.startsWith("/operations/"));
  await page.locator(".page-head .state").getByText("done").waitFor();
  return operation(page);
}

function operation(page) {
  const id = decodeURIComponent(new URL(page.url()).pathname.split("/").pop());
  const [row] = rows(`SELECT * FROM operation_view WHERE id = '${id}'`);
  return { ...row, refused: JSON.parse(row.refused ?? "{}"), filter: JSON.parse(row.filter), arguments: JSON.parse(row.arguments ?? "{}") };
}

const ids = (...names) => names.join(",");

test("bulk: dry run, start, what was refused, the audit, the list of operations", async (t) => {
  for (const n of [1, 2, 3]) await submit("rests", `b-${n}`, { tags: { shop: "berlin" } });
  const page = await open(t, "/tasks");
  await page.locator(".task-rows").getByRole("link", { name: /berlin/ }).first().click();
  await page.waitForFunction(() => new URLSearchParams(location.search).get("tag.shop") === "berlin");
  await page.getByRole("button", { name: "Operate on all…" }).click();
  const dialog = dialogOf(page);
  await dialog.getByLabel("Verb").selectOption("pause");
  await dialog.getByText("3 tasks match.").waitFor();
  await dialog.getByText("It would be done for 3.").waitFor();
  assert.deepEqual(await dialog.locator(".examples .id").allInnerTexts(), ["b-3", "b-2", "b-1"]);
  assert.equal(rows("SELECT count(*) AS n FROM operation_view")[0].n, 0, "a dry run stores nothing");
  const paused = await operate(page, "pause", 3, "stock-taking in Berlin");
  assert.deepEqual([paused.state, paused.filter, paused.matched, paused.done, paused.actor, paused.reason], ["done", { tag: { shop: "berlin" } }, 3, 3, "admin", "stock-taking in Berlin"]);
  assert.equal(rows("SELECT count(*) AS n FROM task_view WHERE id LIKE 'b-%' AND paused_at IS NOT NULL")[0].n, 3);
  await submit("rests", "b-4");
  await operateOn(page, "workflow=rests");
  await dialog.getByLabel("Verb").selectOption("resume");
  await dialog.locator(".refusals li").filter({ hasText: "1 the task is already in that state" }).waitFor();
  const resumed = await operate(page, "resume", 3, "the stock is counted");
  assert.deepEqual([resumed.matched, resumed.done, resumed.refused], [4, 3, { "the task is already in that state": 1 }]);
  await page.locator(".panel").filter({ hasText: "Refused" }).getByText("the task is already in that state").waitFor();
  assert.deepEqual(said("b-1").map(([, verb, , reason]) => [verb, reason]), [["pause", `operation ${paused.id}: stock-taking in Berlin`], ["resume", `operation ${resumed.id}: the stock is counted`]]);
  await page.getByRole("link", { name: "Audit", exact: true }).first().click();
  await page.getByLabel("Only this task").fill("b-1");
  await page.getByRole("button", { name: "Filter", exact: true }).click();
  await page.waitForFunction(() => location.search === "?task=b-1");
  const shown = () => page.locator("tbody tr").evaluateAll((all) => all.map((tr) => [...tr.cells].slice(1, 5).map((td) => td.innerText.trim()).join("; ")));
  const expected = ["admin; resume; b-1; the stock is counted by an operation", "admin; pause; b-1; stock-taking in Berlin by an operation"];
  await until(shown, (found) => JSON.stringify(found) === JSON.stringify(expected), "the audit page of b-1");
  await page.getByRole("link", { name: "Operations" }).first().click();
  const listed = page.locator("tbody tr");
  await listed.nth(1).waitFor();
  assert.match(await listed.nth(0).innerText(), /resume/);
  assert.match(await listed.nth(1).innerText(), /pause/);
});

test("bulk: chosen tasks", async (t) => {
  const page = await open(t, "/tasks?workflow=rests");
  for (const id of ["b-1", "b-3"]) await page.getByLabel(`Choose ${id}`, { exact: true }).check();
  await page.getByRole("button", { name: "Operate on these…" }).click();
  const done = await operate(page, "pause", 2, "only these");
  assert.deepEqual([new Set(done.filter.ids), done.done], [new Set(["b-1", "b-3"]), 2]);
  assert.deepEqual(rows("SELECT id FROM task_view WHERE paused_at IS NOT NULL AND workflow = 'rests' ORDER BY id").map((r) => r.id), ["b-1", "b-3"]);
});

// Each filter is entered in the form, and the list has what the store has.
test("bulk: each filter, by its field, and as an operation's", async (t) => {
  await submit("family", "f-1");
  await until(() => rows("SELECT id FROM task_view WHERE id LIKE 'f-1%'"), (r) => r.length === 2, "the family");
  await submit("single", "e-1", { input: 1, tags: { shop: "oslo", desk: "b c" } });
  await clerk.do("e-1/do", FAILS("odd-one"));
  await reaches("e-1", "error");
  const [{ at: moment }] = rows("SELECT submitted_at AS at FROM task_view WHERE id = 'b-2'");
  const [{ at: end }] = rows("SELECT max(ended_at) AS at FROM task_view");
  const child = rows("SELECT id FROM task_view WHERE id LIKE 'f-1%' AND id <> 'f-1'")[0].id;
  const ROOTS = "id NOT LIKE '%@%'";
  const CASES = [
    ["Workflow", "order", "--workflow order", `workflow = 'order' AND ${ROOTS}`],
    ["At step", "do", "--at-step do", "id = 'e-1'"],
    ["Agent", "clerk", "--agent clerk", "id = 'e-1'"],
    ["Error code", "odd-one", "--error odd-one", "id = 'e-1'"],
    ["Submitted after", moment, `--after ${moment}`, `submitted_at >= '${moment}' AND ${ROOTS}`],
    ["Submitted before", moment, `--before ${moment}`, `submitted_at < '${moment}' AND ${ROOTS}`],
    ["Ended after", end, `--ended-after ${end}`, `ended_at >= '${end}' AND ${ROOTS}`],
    ["Ended before", end, `--ended-before ${end}`, `ended_at < '${end}' AND ${ROOTS}`],
    ["Descendants of", "f-1", "--root f-1", `id = '${child}'`],
    ["Id begins with", "b-", "--id-prefix b-", `id LIKE 'b-%' AND ${ROOTS}`],
    ["Ids", "b-1, o-2", "--ids b-1,o-2", "id IN ('b-1', 'o-2')"],
    ["Tags, one a line", "shop=oslo\ndesk=b c", "--tag shop=oslo --tag 'desk=b c'", "id = 'e-1'"],
    ["Paused", "true", "--paused yes", `paused_at IS NOT NULL AND ${ROOTS}`],
    ["Closed", "false", "--closed no", `closed_at IS NULL AND ${ROOTS}`],
    ["Children", "true", "--children", "true"],
    ["Version", "2", "--workflow packing --version 2", `workflow = 'packing' AND version = 2 AND ${ROOTS}`, "?workflow=packing"],
    // These two have no field. The first is in the address only, the other is no filter at all.
    [null, "parent", "--parent f-1", `id = '${child}'`, "?parent=f-1"],
    [null, "no filter", "--all --reason", ROOTS],
  ];
  const page = await open(t, "/tasks", { viewport: { width: 1440, height: 4000 } }); // all rows are in view
  for (const [label, value, flags, where, query = ""] of CASES) {
    await page.goto(`${front(page)}/tasks${query}`);
    if (label) {
      await page.getByRole("button", { name: "More filters" }).click();
      const field = page.locator(".more-filters").getByLabel(label, { exact: true });
      if ((await field.evaluate((e) => e.tagName)) === "SELECT") await field.selectOption(value);
      else await field.fill(value);
      await page.getByRole("button", { name: "Filter", exact: true }).click();
    }
    const wanted = rows(`SELECT id FROM task_view WHERE ${where} ORDER BY id`).map((r) => r.id);
    assert.ok(wanted.length > 0, label ?? value);
    await until(() => page.locator(".task-rows .task-row .c-id").allInnerTexts(), (found) => JSON.stringify(found.sort()) === JSON.stringify(wanted), label ?? value);
    await page.getByRole("button", { name: "Operate on all…" }).click();
    const line = await dialogOf(page).locator(".command-line code").innerText();
    assert.ok(line.includes(` --all ${flags} `) || line.includes(` ${flags} `), `${line} has ${flags}`);
    // What the form counts is what the command line counts.
    const told = execFileSync("sh", ["-c", `"$0" ${line.slice("intact ".length).replace("--reason ...", "--reason x")} --dry-run --json`, INTACT], {
      env: { ...process.env, INTACT_SERVER: server.url, INTACT_TOKEN: server.token }, encoding: "utf8",
    });
    const { matched, possible } = JSON.parse(told);
    const dry = dialogOf(page).locator(".dry");
    await dry.getByText("It would be done for").waitFor();
    assert.equal(await dry.locator("b").first().innerText(), matched === 1 ? "1 task matches." : `${matched} tasks match.`, label ?? value);
    assert.match(await dry.innerText(), new RegExp(`It would be done for ${possible}(\\.|, and refused)`));
    // Tasks that have ended match only if their state is named.
    const open_ = rows(`SELECT count(*) AS n FROM task_view WHERE ${where} AND state NOT IN ('processed', 'compensated')`)[0].n;
    assert.equal(matched, open_, label ?? value);
    await page.keyboard.press("Escape");
  }
});

// Two tasks, which an agent has brought to `state`: done, failed or lost.
async function two(word, state) {
  const results = { done: { output: 1 }, failed: FAILS("no"), lost: { error: { code: "lost", retryable: false, effect: "unknown" } } };
  for (const n of [1, 2]) {
    await submit(state === "lost" ? "lossy" : "single", `${word}-${n}`, { input: n, tags: { set: word } });
    await clerk.do(`${word}-${n}/do`, results[state]);
    await reaches(`${word}-${n}`, state === "done" ? "processed" : "error");
  }
}

const bulk = (name, run) => test(`bulk: ${name}`, run);
const both = (word, column) => rows(`SELECT ${column} AS v FROM task_view WHERE id IN ('${word}-1', '${word}-2') ORDER BY id`).map((r) => r.v);

bulk("retry, of one step", async (t) => {
  await two("retry", "failed");
  const page = await open(t, "/tasks");
  await operateOn(page, "state=error&error=no&tag.set=retry");
  const done = await operate(page, "retry", 2, "the bank is back", { "Only the step": "do" });
  assert.deepEqual([done.done, done.arguments], [2, { step: "do" }]);
  const keys = [await clerk.take(), await clerk.take()].map((r) => { void clerk.answer(r, { output: 1 }); return r.idempotency_key; });
  assert.deepEqual(new Set(keys), new Set(["retry-1/do", "retry-2/do"]));
  await reaches("retry-1", "processed");
  await reaches("retry-2", "processed");
});

bulk("retry, of all that failed", async (t) => {
  await two("again", "failed");
  const page = await open(t, "/tasks");
  await operateOn(page, "state=error&tag.set=again");
  const done = await operate(page, "retry", 2, "the bank is back");
  assert.deepEqual([done.done, done.arguments], [2, {}]);
  const keys = [];
  for (let n = 0; n < 2; n += 1) { const r = await clerk.take(); keys.push(r.idempotency_key); await clerk.answer(r, { output: 1 }); }
  assert.deepEqual(keys.sort(), ["again-1/do", "again-2/do"]);
  await until(() => both("again", "state"), (s) => s.every((x) => x === "processed"), "both");
});

bulk("correct, then retry from a step", async (t) => {
  await two("correct", "failed");
  const page = await open(t, "/tasks");
  await operateOn(page, "state=error&tag.set=correct");
  const done = await operate(page, "correct", 2, "one price for all", { "Only the step": "do", "Input (JSON), the same for all": "7" });
  assert.deepEqual([done.done, done.arguments], [2, { step: "do", input: 7 }]);
  assert.deepEqual([1, 2].map((n) => JSON.parse(stepOf(`correct-${n}`, "do").input)), [7, 7]);
  await operateOn(page, "state=error&tag.set=correct");
  assert.equal((await operate(page, "retry", 2, "one price for all", { "Restart from step": "do" })).done, 2);
  const inputs = [];
  for (let n = 0; n < 2; n += 1) { const r = await clerk.take(); inputs.push(r.input); await clerk.answer(r, { output: 1 }); }
  // From a step on, inputs are made anew: those of the tasks.
  assert.deepEqual(inputs.sort(), [1, 2]);
});

bulk("supply", async (t) => {
  await two("supply", "lost");
  const page = await open(t, "/tasks");
  await operateOn(page, "state=error&tag.set=supply");
  assert.equal((await operate(page, "supply", 2, "the bank has them", { Step: "do", "Output (JSON), the same for all": '{"ok": true}' })).done, 2);
  assert.deepEqual(both("supply", "state"), ["processed", "processed"]);
  assert.deepEqual(JSON.parse(stepOf("supply-2", "do").output), { ok: true });
});

bulk("resolve, then undo", async (t) => {
  await two("resolve", "lost");
  const page = await open(t, "/tasks");
  await operateOn(page, "state=error&tag.set=resolve");
  const dialog = dialogOf(page);
  await dialog.getByLabel("Verb").selectOption("resolve");
  await dialog.getByLabel("Step", { exact: true }).fill("do");
  const refused = dialog.locator(".refusals");
  const possible = dialog.locator(".dialog-foot").getByRole("button", { name: "Took no effect: 2 tasks" });
  for (let n = 0; ; n += 1) { // counted anew until both may be resolved
    await refused.or(possible).first().waitFor();
    if (await possible.isVisible()) break;
    await sleep(500);
    await dialog.getByLabel("At most").fill(String(1000 + n));
    await dialog.getByText("Counting…").waitFor();
  }
  assert.equal((await operate(page, "resolve", 2, "the bank has none")).done, 2);
  assert.deepEqual([1, 2].map((n) => stepOf(`resolve-${n}`, "do").in_doubt), [0, 0]);
  await operateOn(page, "state=error&tag.set=resolve");
  assert.equal((await operate(page, "undo", 2, "not wanted")).done, 2);
  await until(() => both("resolve", "state"), (s) => s.every((x) => x === "compensated"), "both");
});

bulk("skip", async (t) => {
  await two("skip", "failed");
  const page = await open(t, "/tasks");
  await operateOn(page, "state=error&tag.set=skip");
  assert.equal((await operate(page, "skip", 2, "done by hand", { Step: "do" })).done, 2);
  assert.deepEqual(both("skip", "state"), ["processed", "processed"]);
});

bulk("skip, of an item", async (t) => {
  for (const n of [1, 2]) {
    await submit("letters", `item-${n}`, { input: ["Bonn", "Rome"], tags: { set: "item" } });
    await cash.do(`item-${n}/letter.0`, { output: 1 });
    await cash.do(`item-${n}/letter.1`, FAILS("no-street"));
    await reaches(`item-${n}`, "error");
  }
  const page = await open(t, "/tasks");
  await operateOn(page, "state=error&tag.set=item");
  const done = await operate(page, "skip", 2, "handed over", { Step: "letter.1" });
  assert.deepEqual([done.done, done.arguments], [2, { step: "letter.1" }]);
  assert.deepEqual(both("item", "state"), ["processed", "processed"]);
  assert.deepEqual(rows("SELECT state FROM task_item WHERE task = 'item-2' ORDER BY number").map((r) => r.state), ["completed", "skipped"]);
});

bulk("a dry run that was not complete says at least, and the number is to be typed", async (t) => {
  for (const n of [1, 2]) await submit("rests", `least-${n}`, { tags: { set: "least" } });
  const page = await open(t, "/tasks");
  await page.route("**/v1/operations", async (route) => {
    if (!route.request().postDataJSON()?.dry_run) return route.continue();
    const response = await route.fetch();
    return route.fulfill({ response, json: { ...(await response.json()), complete: false } });
  });
  await operateOn(page, "tag.set=least");
  const dialog = dialogOf(page);
  await dialog.getByLabel("Verb").selectOption("pause");
  await dialog.getByText("At least 2 tasks match.").waitFor();
  const start = dialog.locator(".dialog-foot").getByRole("button", { name: "Pause: 2 tasks" });
  assert.ok(await start.isDisabled());
  await dialog.getByLabel(/^Type 2 to confirm/).fill("3");
  assert.ok(await start.isDisabled());
  await dialog.getByLabel(/^Type 2 to confirm/).fill("2");
  assert.equal((await operate(page, "pause", 2, "night")).done, 2);
  assert.ok(both("least", "paused_at").every((at) => at !== null));
});

bulk("no filter: all that have not ended, here the newest of them only", async (t) => {
  await submit("rests", "newest-1");
  const page = await open(t, "/tasks");
  await operateOn(page, "");
  const done = await operate(page, "pause", 1, "stop them all", { "At most": "1" });
  assert.deepEqual([done.filter, done.matched, done.done], [{ all: true }, 1, 1]);
  assert.deepEqual(said("newest-1").map(([, verb]) => verb), ["pause"]);
});

bulk("close, reopen", async (t) => {
  await two("close", "failed");
  const page = await open(t, "/tasks");
  await operateOn(page, "state=error&closed=false&tag.set=close");
  assert.equal((await operate(page, "close", 2, "written off")).done, 2);
  assert.ok(both("close", "closed_at").every((at) => at !== null));
  await operateOn(page, "closed=true&state=error&tag.set=close");
  assert.equal((await operate(page, "reopen", 2, "not so fast")).done, 2);
  assert.ok(both("close", "closed_at").every((at) => at === null));
});

bulk("undo of processed tasks, whose state must be named", async (t) => {
  await two("undo", "done");
  const page = await open(t, "/tasks");
  await operateOn(page, "tag.set=undo&state=processed");
  const operating = operate(page, "undo", 2, "sold twice");
  assert.equal((await operating).done, 2);
  for (let n = 0; n < 2; n += 1) await clerk.answer(await clerk.take(), { output: null });
  await until(() => both("undo", "state"), (s) => s.every((x) => x === "compensated"), "both");
});

bulk("cancel", async (t) => {
  for (const n of [1, 2]) await submit("rests", `cancel-${n}`, { tags: { set: "cancel" } });
  const page = await open(t, "/tasks");
  await operateOn(page, "tag.set=cancel");
  assert.equal((await operate(page, "cancel", 2, "not wanted")).done, 2);
  assert.deepEqual(both("cancel", "state"), ["compensated", "compensated"]);
});

bulk("signal", async (t) => {
  for (const n of [1, 2]) await submit("asks", `signal-${n}`, { tags: { set: "signal" } });
  const page = await open(t, "/tasks");
  await operateOn(page, "tag.set=signal");
  const done = await operate(page, "signal", 2, "the bank paid all", { "Name of the signal": "payment", "Value (JSON), the same for all": '{"amount": 3}' });
  assert.deepEqual([done.done, done.arguments.name], [2, "payment"]);
  await until(() => both("signal", "state"), (s) => s.every((x) => x === "processed"), "both");
  assert.deepEqual(JSON.parse(stepOf("signal-1", "paid").output), { name: "payment", data: { amount: 3 } });
});

test("bulk: an operation is followed, stopped and continued; many tasks are confirmed by their number", async (t) => {
  const lines = Array.from({ length: 150 }, (_, n) => JSON.stringify({ workflow: "rests", id: `many-${n}`, tags: { set: "many" } })).join("\n");
  await server.call("POST", "/v1/tasks", lines, "application/x-ndjson");
  const page = await open(t, "/tasks");
  await operateOn(page, "tag.set=many");
  const dialog = dialogOf(page);
  await dialog.getByLabel("Verb").selectOption("pause");
  await dialog.getByLabel("At most").fill("120");
  await dialog.getByLabel("Rate").fill("2/s");
  await dialog.getByLabel("Reason").fill("night");
  const start = dialog.locator(".dialog-foot").getByRole("button", { name: "Pause: 120 tasks" });
  await start.waitFor();
  assert.ok(await start.isDisabled(), "the number is to be typed");
  await dialog.getByLabel(/Type 120 to confirm/).fill("120");
  assert.match(await dialog.locator(".command-line code").innerText(), /--tag set=many --limit 120 --rate 2\/s --reason night$/);
  await start.click();
  await page.waitForFunction(() => location.pathname.startsWith("/operations/"));
  const shown = async () => Number(await page.locator(".counts").getByText("done", { exact: true }).locator("xpath=following-sibling::dd").innerText());
  await until(shown, (n) => n > 0, "what is shown as done");
  await page.getByRole("button", { name: "Stop…" }).click();
  await dialog.getByLabel("Reason").fill("not at noon");
  await dialog.getByRole("button", { name: "Stop", exact: true }).click();
  await page.locator(".page-head .state").getByText("stopped").waitFor();
  const stopped = operation(page);
  assert.ok(stopped.state === "stopped" && stopped.done > 0 && stopped.done < 120, JSON.stringify(stopped));
  const pausedNow = () => rows("SELECT count(*) AS n FROM task_view WHERE id LIKE 'many-%' AND paused_at IS NOT NULL")[0].n;
  await until(() => operation(page).done, (n) => n === pausedNow(), "what was done, and stays done");
  await page.getByRole("button", { name: "Continue…" }).click();
  await dialog.getByLabel("Reason").fill("it is night");
  await dialog.getByRole("button", { name: "Continue", exact: true }).click();
  await page.locator(".page-head .state").getByText("done").waitFor();
  assert.deepEqual([operation(page).done, pausedNow()], [120, 120]);
  const stops = rows("SELECT verb, reason FROM audit_view WHERE verb IN ('operation.stop', 'operation.continue') ORDER BY seq");
  assert.deepEqual(stops.map((r) => [r.verb, r.reason]), [["operation.stop", `${stopped.id}: not at noon`], ["operation.continue", `${stopped.id}: it is night`]]);
});
