// The pages of workflows, schedules, approvals, messages, refused submissions, access, agents, alerts and the overview, long
// lists, and a server without tokens, in a real browser: what people see, and what the store says came of their clicks.
import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import { axeFindsNothing, heading, openPage, PHONE, settled, sql, startBrowser, until } from "./kit.mjs";
import { startPlaces } from "./places_world.mjs";
import { startServer } from "./world.mjs";

const { INTACT, WORK } = process.env;
const PAGES = {
  "/workflows": "Workflows", "/workflows/order": "order", "/workflows/close-books?step=close&tab=versions": "close-books", "/workflows/wide": "wide",
  "/workflows/close-books/edit": "Edit close-books", "/schedules": "Schedules", "/schedules/nightly": "nightly", "/schedules/often": "often",
  "/schedules/nightly/edit": "Edit nightly", "/approvals": "Approvals", "/messages": "Messages", "/messages?state=dead": "Messages",
  "/submissions": "Refused submissions", "/access": "Access", "/agents?agent=bank": "Agents",
};

let browser;
let server;
let people;
const open = (t, path, options) => openPage(t, browser, server, people, path, options);
const get = (path) => server.call("GET", path);

before(async () => {
  browser = await startBrowser();
  server = await startPlaces(INTACT, WORK, 30);
  people = {
    admin: { token: server.token, name: "admin", roles: ["admin"] },
    ann: { token: server.tokens.ann, name: "ann", roles: ["read", "approve"], groups: ["finance"] },
    reader: { token: server.tokens.reader, name: "reader", roles: ["read"] },
  };
  await until(() => get("/v1/outbox?state=dead"), (p) => p.messages.length > 0, "the outbox");
  await until(() => get("/v1/tasks?workflow=order&state=processed"), (p) => p.tasks.length > 10, "the orders");
});

after(async () => {
  await browser?.close();
  await server?.stop();
});

const MISSING = [/status of 404/]; // the sessions of servers that have none

axeFindsNothing("these pages", PAGES, (t, options) => open(t, "/", { ...options, expected: MISSING }));

test("none of these pages is wider than a phone", async (t) => {
  const page = await open(t, "/", { viewport: PHONE, expected: MISSING });
  const front = new URL(page.url()).origin;
  for (const [path, name] of Object.entries(PAGES)) {
    await page.goto(front + path);
    await heading(page, name);
    await settled(page);
    const [wide, window] = await page.evaluate(() => [document.documentElement.scrollWidth, document.documentElement.clientWidth]);
    assert.ok(wide <= window, `${path} is ${wide} pixels wide`);
  }
});

test("a workflow shows its steps, how its tasks do, and how two versions differ", async (t) => {
  const page = await open(t, "/workflows");
  await page.getByRole("link", { name: "order", exact: true }).click();
  await heading(page, "order");
  await page.getByRole("row").filter({ hasText: "charge" }).getByText("declined").waitFor();
  await page.getByRole("button", { name: "Most failing first" }).click();
  await page.locator("tbody tr").first().filter({ hasText: "charge" }).waitFor();
  await page.goto(`${new URL(page.url()).origin}/workflows/close-books`);
  await page.locator(".node").filter({ hasText: "archive" }).click();
  await page.getByRole("heading", { name: /^Step archive/ }).waitFor();
  await page.getByRole("tab", { name: "Versions (3)" }).click();
  await page.locator(".diff-gone").filter({ hasText: "complete_by: 2h" }).waitFor();
  await page.locator(".diff-new").filter({ hasText: "complete_by: 3h" }).waitFor();
  await page.getByLabel("From version").selectOption("1");
  await page.locator(".diff-gone").filter({ hasText: "complete_by: 1h" }).waitFor();
  await page.reload();
  await page.locator(".diff-gone").filter({ hasText: "complete_by: 1h" }).waitFor();
});

test("the figures of a workflow, and what a decision rests on, are read again", async (t) => {
  const page = await open(t, "/", { expected: MISSING });
  await page.clock.install(); // half a minute passes at once
  await server.call("PUT", "/v1/workflows/brief", { intact: 1, workflow: "brief", steps: [{ name: "note", agent: "mail", action: "note", undo: "none" }] });
  const submit = async (id) => {
    await server.call("POST", "/v1/tasks", { workflow: "brief", id, input: {} });
    await until(() => get(`/v1/tasks/${id}`), (x) => x.state === "processed", id);
  };
  await submit("brief-1");
  await page.goto(`${server.url}/workflows/brief`);
  await page.getByText("From the records of the newest 1 task that stopped").waitFor();
  await submit("brief-2");
  await page.clock.fastForward(30_000);
  await page.getByText("From the records of the newest 2 tasks that stopped").waitFor();
  await page.goto(`${server.url}/approvals`);
  const card = page.locator(".approval").filter({ hasText: "expense-high" });
  await card.getByRole("button", { name: "Details" }).click();
  await card.getByText("4711").waitFor();
  const again = page.waitForRequest((r) => new URL(r.url()).pathname === "/v1/tasks/expense-high");
  await page.clock.fastForward(30_000);
  await again;
});

// The list ignores keys that come as soon as it opens, lest one chooses by chance: a click does not.
const choose = (page, name) => page.getByRole("option", { name, exact: true }).click();
const lineOf = (page, n) => page.locator(".cm-line").nth(n);

test("a workflow is edited: mistakes in their place, completion, then a version is stored", async (t) => {
  const page = await open(t, "/workflows/close-books/edit", { expected: [/status of 4(00|22)/] });
  await lineOf(page, 3).filter({ hasText: "complete_by: 3h" }).click();
  await page.keyboard.press("End");
  await page.keyboard.type("ours", { delay: 1 }); // faster than the page is drawn: no key is lost
  await lineOf(page, 3).filter({ hasText: "complete_by: 3hours" }).waitFor();
  await page.getByRole("button", { name: /4:14.*found "3hours", expected a duration/ }).waitFor();
  assert.equal(await page.getByRole("button", { name: "Store…" }).isDisabled(), true);
  for (let n = 0; n < 4; n += 1) await page.keyboard.press("Backspace");
  await page.getByText("No mistakes").waitFor();
  await page.keyboard.press("Enter");
  await page.keyboard.type("on_fail");
  await choose(page, "on_failure");
  await choose(page, "hold");
  await lineOf(page, 4).filter({ hasText: "on_failure: hold" }).waitFor();
  await page.getByText("No mistakes").waitFor();
  await page.keyboard.press("Control+s");
  const dialog = page.getByRole("dialog");
  await dialog.locator(".diff-new").filter({ hasText: "on_failure: hold" }).waitFor();
  await dialog.getByText("Stored as version 4 of close-books.", { exact: false }).waitFor();
  await dialog.getByRole("button", { name: "Store", exact: true }).click();
  await page.getByText("version 4", { exact: true }).waitFor();
  const stored = await get("/v1/workflows/close-books");
  assert.equal(stored.version, 4);
  assert.match(stored.text, /^complete_by: 3h\non_failure: hold$/m);
  assert.match(stored.text, /^# Books are closed each night\.$/m, "comments stay");
});

test("a text that is not stored yet is kept while one looks elsewhere", async (t) => {
  const page = await open(t, "/workflows/new/edit", { expected: [/status of 4(00|04|22)/] });
  await lineOf(page, 1).filter({ hasText: "workflow: my-workflow" }).click();
  await page.keyboard.press("End");
  await page.keyboard.type("-two");
  await page.getByRole("link", { name: "Workflows" }).first().click();
  await heading(page, "Workflows");
  await page.getByRole("link", { name: "New workflow" }).click();
  await lineOf(page, 1).filter({ hasText: "workflow: my-workflow-two" }).waitFor();
  await page.getByText("No mistakes").waitFor();
  await page.getByRole("button", { name: "Store…" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Store", exact: true }).click();
  await heading(page, "my-workflow-two");
  assert.equal((await get("/v1/workflows/my-workflow-two")).version, 1);
});

test("a task is submitted from its workflow", async (t) => {
  const page = await open(t, "/workflows/order");
  await page.getByRole("button", { name: "Submit a task…" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Input (JSON)").fill('{"sku": "tea"}');
  await dialog.getByLabel("Id").fill("by-hand");
  await dialog.getByLabel("Tags").fill("shop=rome");
  assert.equal(await dialog.locator("code").innerText(), `intact submit order --id by-hand --input '{"sku":"tea"}' --tag shop=rome`);
  await dialog.getByRole("button", { name: "Submit", exact: true }).click();
  await heading(page, "by-hand");
  const task = await get("/v1/tasks/by-hand");
  assert.deepEqual([task.input, task.tags], [{ sku: "tea" }, { shop: "rome" }]);
});

test("a schedule shows its moments in both zones, is paused, resumed and run", async (t) => {
  const page = await open(t, "/schedules");
  await page.getByRole("row").filter({ hasText: "often" }).getByText(/skipped/).waitFor();
  await page.getByRole("link", { name: "nightly" }).click();
  await heading(page, "nightly");
  const moments = page.getByRole("group", { name: "Next moments" });
  await moments.getByRole("columnheader", { name: "In America/New_York" }).waitFor();
  assert.match(await moments.getByRole("row").nth(1).innerText(), /02:30.*0[89]:30:00/s);
  await page.getByRole("button", { name: "Pause…" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Pause", exact: true }).click();
  await page.getByText("Say why: the audit keeps it.").waitFor();
  await page.getByRole("dialog").getByLabel("Reason").fill("month end");
  await page.keyboard.press("Enter");
  await page.getByText("Moments of the pause are not caught up.", { exact: false }).first().waitFor();
  assert.equal((await get("/v1/schedules/nightly")).state, "paused");
  await page.getByRole("button", { name: "Resume…" }).click();
  await page.getByRole("dialog").getByLabel("Reason").fill("it is over");
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "Pause…" }).waitFor();
  await page.getByRole("button", { name: "Run now…" }).click();
  await page.getByRole("dialog").getByLabel("Reason").fill("the books were corrected");
  await page.keyboard.press("Enter");
  await page.getByRole("link", { name: /^nightly@run-/ }).first().waitFor();
  const { entries } = await get("/v1/audit?limit=20");
  for (const reason of ["month end", "it is over", "the books were corrected"]) assert.ok(entries.some((e) => e.reason?.includes(reason)), reason);
});

test("a schedule is deleted after its name was typed", async (t) => {
  const page = await open(t, "/schedules/quarterly", { expected: MISSING });
  await page.getByRole("button", { name: "More", exact: true }).click();
  await page.getByRole("menuitem", { name: /Delete/ }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("button", { name: "Delete" }).click();
  await dialog.getByText("It is not the same.").waitFor();
  await dialog.getByLabel("Type quarterly to confirm").fill("quarterly");
  await dialog.getByRole("button", { name: "Delete" }).click();
  await heading(page, "Schedules");
  assert.ok(!(await get("/v1/schedules")).schedules.some((s) => s.name === "quarterly"));
});

test("a person decides in place, with the grounds before her; a rejection needs a comment", async (t) => {
  const page = await open(t, "/approvals", { who: "ann" });
  await page.getByRole("heading", { name: "3 decisions wait for you" }).waitFor();
  const card = page.getByRole("listitem").filter({ hasText: "Pay € 99,000 to Mae?" });
  await card.getByText('"4711"').waitFor();
  await card.getByRole("button", { name: "Reject" }).click();
  await card.getByText("A rejection requires a comment.").waitFor();
  await card.getByLabel(/Comment/).fill("too much");
  await card.getByRole("button", { name: "Reject" }).click();
  await card.waitFor({ state: "detached" });
  const rejected = await until(() => get("/v1/tasks/expense-high"), (x) => x.state === "compensated", "expense-high");
  assert.deepEqual([rejected.error.code, rejected.error.message], ["rejected", "too much"]);
});

test("dead messages are deleted, waiting ones stay", async (t) => {
  const page = await open(t, "/messages");
  const row = page.getByRole("row").filter({ hasText: "/gone" });
  await row.getByRole("button", { name: /^\d+$/ }).click();
  await page.waitForFunction(() => new URLSearchParams(location.search).get("state") === "dead");
  await page.getByRole("button", { name: "received" }).first().click();
  await page.getByText('"intact.task.received"').waitFor();
  await page.getByRole("button", { name: "Delete these dead…" }).click();
  await page.getByRole("dialog").getByLabel("Reason").fill("the shop is closed");
  await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
  await page.getByText("No message is dead").waitFor();
  assert.equal((await get("/v1/outbox?state=dead")).messages.length, 0);
  assert.ok((await get("/v1/outbox?state=waiting")).messages.length > 0);
});

test("a refused submission is shown as text, retried after its workflow was stored, another dropped", async (t) => {
  const page = await open(t, "/submissions");
  await page.getByText('<b>hello</b> "world"', { exact: false }).waitFor();
  await page.getByText("U+202E").waitFor();
  assert.equal(await page.locator("b", { hasText: "hello" }).count(), 0);
  await server.call("PUT", "/v1/workflows/oder", { intact: 1, workflow: "oder", steps: [{ name: "take", agent: "stock", action: "take", undo: "none" }] });
  await page.getByRole("listitem").filter({ hasText: "oder" }).getByRole("button", { name: "Retry…" }).click();
  await page.getByRole("dialog").getByLabel("Reason").fill("the workflow is stored");
  await page.keyboard.press("Enter");
  await until(() => get("/v1/tasks?ids=q-17"), (p) => p.tasks.length === 1, "q-17");
  const returns = page.getByRole("listitem").filter({ hasText: "amqp:returns" });
  await returns.getByRole("button", { name: "Drop…" }).click();
  await page.getByRole("dialog").getByLabel("Reason").fill("a test");
  await page.keyboard.press("Enter");
  await returns.waitFor({ state: "detached" });
  assert.deepEqual((await get("/v1/submissions?state=refused")).submissions.map((s) => s.id), [null]);
});

test("a token is made, its text shown once; it is limited, rotated and revoked", async (t) => {
  const page = await open(t, "/access", { expected: MISSING });
  await page.getByRole("button", { name: "Make a token…" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Name", { exact: true }).fill("till");
  await dialog.getByRole("button", { name: "Make it" }).click();
  await dialog.getByText("Choose at least one role.").waitFor();
  await dialog.getByLabel("Narrower roles").fill("submit:order");
  assert.equal(await dialog.locator(".command-line code").innerText(), "intact token create till --role submit:order");
  await dialog.getByRole("button", { name: "Make it" }).click();
  const text = await dialog.locator(".secret code").innerText();
  assert.match(text, /^intact_[A-Za-z0-9_-]{43}$/);
  await page.keyboard.press("Escape");
  await dialog.locator(".secret").waitFor(); // it does not vanish by chance
  await dialog.getByRole("button", { name: "I have kept it" }).click();
  const row = page.getByRole("row").filter({ hasText: "till" });
  await row.getByText("submit:order").waitFor();
  assert.ok(!(await page.content()).includes(text), "the text is gone from the page");
  const answer = (token) => fetch(`${server.url}/v1/tasks`, { method: "POST", headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json" }, body: '{"workflow": "order", "input": {}}' }).then((a) => a.status);
  assert.equal(await answer(text), 201);
  const verb = async (name) => { await row.getByRole("button", { name: "Actions" }).click(); await page.getByRole("menuitem", { name }).click(); };
  await verb(/Limits/);
  await dialog.getByLabel("calls", { exact: true }).fill("50");
  await dialog.getByRole("button", { name: "Set them" }).click();
  await dialog.waitFor({ state: "detached" });
  assert.equal((await get("/v1/tokens")).tokens.find((x) => x.name === "till").limits.calls, 50);
  await verb(/Rotate/);
  await dialog.getByLabel(/old text stays valid/).fill("0s");
  await dialog.getByRole("button", { name: "Rotate" }).click();
  const next = await dialog.locator(".secret code").innerText();
  await dialog.getByRole("button", { name: "I have kept it" }).click();
  assert.deepEqual([await answer(text), await answer(next)], [401, 201]);
  await verb(/Revoke/);
  await dialog.getByLabel("Type till to confirm").fill("till");
  await dialog.getByRole("button", { name: "Revoke" }).click();
  await row.waitFor({ state: "detached" });
  assert.equal(await answer(next), 401);
});

test("an agent's breaker is opened by hand, steps say why they wait, limits are set", async (t) => {
  const page = await open(t, "/agents?agent=mail");
  const card = page.getByRole("listitem").filter({ has: page.getByRole("heading", { name: "mail", exact: true }) });
  const verb = async (name) => { await card.getByRole("button", { name: "Actions" }).click(); await page.getByRole("menuitem", { name }).click(); };
  await card.getByRole("cell", { name: "mail-1" }).waitFor();
  await verb(/Open the breaker/);
  await page.getByRole("dialog").getByLabel("Reason").fill("the post office moves");
  await page.keyboard.press("Enter");
  await card.getByText("the post office moves").waitFor();
  await server.call("POST", "/v1/tasks", { workflow: "close-books", id: "held-1", input: {}, version: 1 });
  await card.getByText(/^1 (task|step) waits: its breaker was opened by hand\.$/).waitFor();
  await verb(/^Settings/);
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Attempts at a time").fill("7");
  await dialog.getByLabel("Limits of single actions").fill("report=2,600/m");
  await dialog.getByRole("button", { name: "Set them" }).click();
  await card.getByText(/of 7 at a time/).waitFor();
  const { limits } = (await get("/v1/agents/mail")).settings;
  assert.deepEqual([limits.concurrency, limits.actions.report.concurrency, limits.actions.report.rate], [7, 2, "600/m"]);
  await card.getByRole("button", { name: "Close the breaker…" }).click();
  await page.getByRole("dialog").getByLabel("Reason").fill("it has moved");
  await page.keyboard.press("Enter");
  await until(() => get("/v1/tasks/held-1"), (x) => x.state === "processed", "held-1");
});

test("what a role may not do is not offered here", async (t) => {
  const page = await open(t, "/workflows/order", { who: "reader", expected: MISSING });
  const front = new URL(page.url()).origin;
  await heading(page, "order");
  assert.equal(await page.getByRole("button", { name: /Submit/ }).count() + await page.getByRole("link", { name: "Edit" }).count(), 0);
  await page.goto(`${front}/workflows/order/edit`);
  await page.getByText("Your token may not store workflows").waitFor();
  await page.goto(`${front}/schedules/nightly`);
  await heading(page, "nightly");
  assert.equal(await page.getByRole("button", { name: /Pause|Run|More$/ }).count(), 0);
  await page.goto(`${front}/access`);
  await heading(page, "Access");
  assert.equal(await page.getByRole("button", { name: /Make a token/ }).count() + await page.getByRole("heading", { name: "Tokens" }).count(), 0);
  await page.goto(`${front}/agents`);
  await heading(page, "Agents");
  await settled(page);
  assert.equal(await page.getByRole("button", { name: "Actions" }).count(), 0);
});

// ---- verbs beside those for tasks: the store and its audit are the judges ----

const rows = (statement) => sql(`${WORK}/data`, statement);
// The reason of a verb that is not for a task also names what it was done to.
const audited = (reason) => rows(`SELECT actor, verb FROM audit_view WHERE reason LIKE '%${reason}%'`).map((r) => `${r.actor} ${r.verb}`);
const why = (page) => page.locator(".why");

test("an alert is acknowledged, with a reason", async (t) => {
  const alert = await until(async () => (await get("/v1/alerts?state=open&limit=200")).alerts.find((a) => a.condition === "task_error") ?? null, (a) => a !== null, "an alert");
  const page = await open(t, `/alerts?alert=${alert.id}`);
  await page.locator(".alert-card.at").getByRole("button", { name: "Acknowledge…" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Reason").fill("the bank knows");
  await dialog.getByRole("button", { name: "Acknowledge", exact: true }).click();
  await page.locator(".alert-card.at").getByText("Acknowledged by admin: the bank knows").waitFor();
  const { state, acknowledged_by, acknowledged_why } = (await get("/v1/alerts?state=acknowledged&limit=200")).alerts.find((a) => a.id === alert.id);
  assert.deepEqual([state, acknowledged_by, acknowledged_why], ["acknowledged", "admin", "the bank knows"]);
  assert.deepEqual(audited("the bank knows"), ["admin alert.acknowledge"]);
});

test("a signal is sent to the task that waits for it, by the button of its `why`", async (t) => {
  await server.call("PUT", "/v1/workflows/asks", { intact: 1, workflow: "asks", steps: [{ name: "paid", signal: { name: "payment" }, complete_by: "2d" }] });
  await server.call("POST", "/v1/tasks", { workflow: "asks", id: "asks-1" });
  const page = await open(t, "/tasks/asks-1");
  await why(page).getByRole("button", { name: "Send signal payment…" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Its value (JSON)").fill('{"amount": 3}');
  assert.equal(await dialog.locator(".command-line code").innerText(), `intact signal asks-1 payment --data '{"amount":3}'`);
  await dialog.getByRole("button", { name: "Send", exact: true }).click();
  const [{ output }] = await until(() => rows("SELECT s.output FROM task_step s JOIN task_view t ON t.id = s.task WHERE t.id = 'asks-1' AND t.state = 'processed'"), (found) => found.length === 1, "asks-1");
  assert.deepEqual(JSON.parse(output), { name: "payment", data: { amount: 3 } });
});

test("a breaker is closed by the button of the `why` of a task that waits for it", async (t) => {
  await server.call("POST", "/v1/agents/archive/breaker", { state: "open", reason: "the archive moves" });
  await server.call("PUT", "/v1/workflows/keep", { intact: 1, workflow: "keep", steps: [{ name: "keep", agent: "archive", action: "keep", undo: "none" }] });
  await server.call("POST", "/v1/tasks", { workflow: "keep", id: "keep-1" });
  const overview = await open(t, "/");
  await overview.locator(".concerns").getByText("Agent archive has an open breaker, opened by hand").waitFor();
  const page = await open(t, "/tasks/keep-1");
  await why(page).getByRole("button", { name: "Close the breaker of archive…" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Reason").fill("the archive has moved");
  await dialog.getByRole("button", { name: "Close", exact: true }).last().click();
  await until(() => rows("SELECT state FROM task_view WHERE id = 'keep-1'")[0].state, (state) => state === "processed", "keep-1");
  assert.equal((await get("/v1/agents/archive")).breaker.state, "closed");
  assert.deepEqual(audited("the archive has moved"), ["admin agent.close"]);
  await overview.locator(".concerns").getByText("Agent archive has an open breaker").waitFor({ state: "detached" });
});

test("past moments of a schedule get their tasks by a backfill", async (t) => {
  const runs = () => rows("SELECT id FROM task_view WHERE id LIKE 'nightly@2%'").length;
  const before_ = runs();
  const day = (ago) => new Date(Date.now() - ago * 86_400_000).toISOString().slice(0, 10);
  const page = await open(t, "/schedules/nightly");
  await page.getByRole("button", { name: "More", exact: true }).click();
  await page.getByRole("menuitem", { name: /Backfill/ }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Reason").fill("two nights are missing");
  await dialog.getByRole("button", { name: "Backfill", exact: true }).click();
  await dialog.getByText("Give both times.").waitFor();
  await dialog.getByLabel("From").fill(`${day(4)}T00:00`);
  await dialog.getByLabel("To").fill(`${day(2)}T00:00`);
  await dialog.getByRole("button", { name: "Backfill", exact: true }).click();
  await dialog.waitFor({ state: "detached" });
  await until(runs, (n) => n === before_ + 2, "the runs of nightly");
  assert.deepEqual(audited("two nights are missing"), ["admin schedule.backfill"]);
});

test("a new schedule is stored, then a version of it", async (t) => {
  const page = await open(t, "/schedules/new/edit", { expected: [/status of 4(00|04|22)/] });
  const write = async (text) => {
    await page.locator(".cm-line").first().click();
    await page.keyboard.press("Control+a");
    await page.locator(".cm-content").evaluate((e, pasted) => {
      const clipboardData = new DataTransfer();
      clipboardData.setData("text/plain", pasted);
      e.dispatchEvent(new ClipboardEvent("paste", { clipboardData, bubbles: true, cancelable: true }));
    }, text);
    await page.getByRole("button", { name: "Store…" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Store", exact: true }).click();
    await heading(page, "yearly");
  };
  await write('intact: 1\nschedule: yearly\nworkflow: fax\nat: ["2031-01-01T00:00:00Z"]\n');
  const first = await get("/v1/schedules/yearly");
  assert.deepEqual([first.version, first.workflow, first.author], [1, "fax", "admin"]);
  await page.getByRole("link", { name: "Edit" }).click();
  await heading(page, "Edit yearly");
  await write('intact: 1\nschedule: yearly\nworkflow: fax\nat: ["2032-01-01T00:00:00Z"]\n');
  const second = await until(() => get("/v1/schedules/yearly"), (s) => s.version === 2, "yearly");
  assert.match(second.text, /2032-01-01/);
});

test("messages of a target are tried again at once", async (t) => {
  const { messages } = await get("/v1/outbox?state=waiting");
  const [{ target }] = messages;
  const page = await open(t, "/messages");
  await page.getByRole("row").filter({ hasText: target }).getByRole("button", { name: "Retry now…" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Reason").fill("the receiver is mended");
  const answer = page.waitForResponse((r) => r.url().endsWith("/v1/outbox/retry"));
  await dialog.getByRole("button", { name: "Retry", exact: true }).click();
  assert.ok((await (await answer).json()).messages > 0);
  await dialog.waitFor({ state: "detached" });
  assert.deepEqual(audited("the receiver is mended"), ["admin outbox.retry"]);
});

test("the settings of an agent are reset", async (t) => {
  const { settings } = await get("/v1/agents/carrier");
  await server.call("PUT", "/v1/agents/carrier", { ...settings, limits: { ...settings.limits, concurrency: 70 } });
  const page = await open(t, "/agents?agent=carrier");
  const card = page.getByRole("listitem").filter({ has: page.getByRole("heading", { name: "carrier", exact: true }) });
  await card.getByText(/of 70 at a time/).waitFor();
  await card.getByRole("button", { name: "Actions" }).click();
  await page.getByRole("menuitem", { name: /Reset the settings/ }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Reset", exact: true }).click();
  await card.getByText(/of 70 at a time/).waitFor({ state: "detached" });
  assert.deepEqual((await get("/v1/agents/carrier")).settings, settings);
  assert.equal(rows("SELECT count(*) AS n FROM audit_view WHERE verb = 'agent.reset'")[0].n, 1);
});

test("the overview has the numbers of the server, charts have names, and the node that leads says so", async (t) => {
  const page = await open(t, "/");
  const tiles = () => page.locator(".tile").evaluateAll((all) => Object.fromEntries(all.map((e) => [e.querySelector(".tile-label").innerText.trim(), Number(e.querySelector(".tile-number").innerText.replaceAll(/\D/g, ""))])));
  const told = async () => {
    const { stored, counters } = await get("/v1/stats");
    return { "in error": stored.error, pending: stored.pending, processing: stored.processing, compensating: stored.compensating, processed: counters.processed, compensated: counters.compensated };
  };
  await page.locator(".tile").first().waitFor();
  await until(async () => [await told(), await tiles(), await told()], ([a, b, c]) => JSON.stringify(a) === JSON.stringify(b) || JSON.stringify(b) === JSON.stringify(c), "the tiles");
  assert.ok((await told())["in error"] > 0);
  await page.getByRole("img", { name: /^Tasks a minute in the last hour\. / }).waitFor();
  await page.getByRole("img", { name: /^Time from submission to end in the last hour\. / }).waitFor();
  const { nodes } = await get("/v1/nodes");
  const leader = nodes.find((n) => n.leads).node;
  await page.locator(".panel").filter({ hasText: "All nodes" }).locator(".row").filter({ hasText: leader }).getByText("leads", { exact: true }).waitFor();
  await page.goto(`${server.url}/nodes`);
  await page.getByRole("row").filter({ hasText: leader }).getByText("leads", { exact: true }).waitFor();
});

test("thousands of tasks are listed to the last one, and only rows in view are drawn", async (t) => {
  const lines = Array.from({ length: 2000 }, (_, n) => JSON.stringify({ workflow: "asks", id: `row-${n}`, tags: { set: "rows" }, paused: true })).join("\n");
  await server.call("POST", "/v1/tasks", lines, "application/x-ndjson");
  const page = await open(t, "/tasks?tag.set=rows");
  const drawn = page.locator(".task-rows .task-row");
  await drawn.first().waitFor();
  const oldest = page.getByRole("link", { name: "row-0", exact: true });
  await until(async () => {
    await page.evaluate(() => scrollTo(0, document.documentElement.scrollHeight));
    assert.ok(await drawn.count() < 100, "few rows are drawn");
    return oldest.isVisible();
  }, (seen) => seen, "the oldest task");
  assert.equal(await page.getByRole("table", { name: "Tasks" }).getAttribute("aria-rowcount"), "2000");
});

test("a server that was started with --open lets everybody in, says so, and audits", async (t) => {
  const free = await startServer(INTACT, `${WORK}/open`, { args: ["--open"], token: "none" });
  t.after(free.stop);
  const send = (method, path, body) => fetch(free.url + path, { method, headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) }).then((a) => assert.ok(a.ok, `${path}: ${a.status}`));
  await send("PUT", "/v1/workflows/asks", { intact: 1, workflow: "asks", steps: [{ name: "paid", signal: { name: "payment" }, complete_by: "2d" }] });
  await send("POST", "/v1/tasks", { workflow: "asks", id: "free-1" });
  const page = await openPage(t, browser, free, people, "/", { isSignedIn: false, expected: [...MISSING, /net::ERR/] }); // its server stops first
  await heading(page, "Overview");
  assert.equal(await page.getByText("Sign out").count(), 0);
  await page.goto(`${free.url}/access`);
  await page.getByText("This server was started with --open: nobody signs in, and everybody may do everything.").waitFor();
  await page.goto(`${free.url}/tasks/free-1`);
  await page.locator(".page-actions").getByRole("button", { name: "Actions" }).click();
  await page.getByRole("menuitem", { name: /^Pause/ }).click();
  await page.getByRole("dialog").getByLabel("Reason").fill("anybody may");
  await page.getByRole("dialog").getByRole("button", { name: "Pause", exact: true }).click();
  await page.locator(".page-head .state").getByText("paused").waitFor();
  const found = sql(`${WORK}/open/data`, "SELECT a.verb, a.reason, t.paused_at IS NOT NULL AS paused FROM audit_view a JOIN task_view t ON t.id = a.task WHERE a.task = 'free-1'");
  assert.deepEqual(found, [{ verb: "pause", reason: "anybody may", paused: 1 }]);
});
