// The console in a real browser, Debian's Chromium: what people see, and what the store says came of their clicks.
import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import { axeFinds, axeFindsNothing, heading, openPage, PHONE, settled, signIn, startBrowser, until as untilFound } from "./kit.mjs";
import { fill, startAgent, startServer } from "./world.mjs";

const { INTACT, WORK } = process.env;
const PAGES = {
  "/": "Overview", "/tasks": "Tasks", "/tasks?state=error&closed=false": "Tasks", "/tasks/payout-1": "payout-1", "/tasks/order-stuck": "order-stuck",
  "/tasks/parcel-lost": "parcel-lost", "/tasks/packing-1?step=pack": "packing-1", "/tasks/expense-1": "expense-1", "/tasks/nasty": "nasty",
  "/tasks/delivery-1": "delivery-1", "/tasks/export-1": "export-1", "/approvals": "Approvals", "/operations": "Operations", "/alerts": "Alerts",
  "/workflows": "Workflows", "/workflows/order": "order",
  "/agents": "Agents", "/nodes": "Nodes", "/audit": "Audit",
};

let browser;
let server;
let agents;
let people;

before(async () => {
  browser = await startBrowser();
  server = await startServer(INTACT, WORK);
  agents = ["stock", "bank", "carrier", "mail", "archive"].map((name) => startAgent(server.call, name, { places: 100 }));
  const tokens = await fill(server.call, { orders: 40 });
  people = {
    admin: { token: server.token, name: "admin", roles: ["admin"] },
    ann: { token: tokens.ann, name: "ann", roles: ["read", "approve"], groups: ["finance"] },
    reader: { token: tokens.reader, name: "reader", roles: ["read"] },
  };
  for (const id of ["payout-1", "payout-4", "payout-flaky", "order-stuck", "parcel-lost", "nasty"]) await until(id, (t) => t.state === "error");
});

after(async () => {
  await browser?.close();
  await Promise.all((agents ?? []).map((a) => a.stop()));
  await server?.stop();
});

const read = (id) => server.call("GET", `/v1/tasks/${id}`);
const until = (id, is) => untilFound(() => read(id), is, id);
const open = (t, path, options) => openPage(t, browser, server, people, path, options);

// What signs in once.
const newCode = async () => (await server.call("POST", "/v1/session/codes")).code;

axeFindsNothing("any page", PAGES, (t, options) => open(t, "/", options));

test("dialogs are accessible, too", async (t) => {
  const page = await open(t, "/tasks/payout-3", { bypassCSP: true });
  for (const name of ["Retry pay…", "Correct input of pay…", "Close…", "?"]) {
    await page.locator(".why").getByRole("button", { name: "Close…" }).waitFor();
    if (name === "?") await page.keyboard.press("?");
    else {
      await page.locator(".why").getByRole("button", { name }).click();
      await page.getByText("The server would accept this now.").waitFor();
    }
    assert.deepEqual(await axeFinds(page, "dialog"), [], name);
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
  }
});

test("no page is wider than a phone", async (t) => {
  const page = await open(t, "/", { viewport: PHONE });
  const front = new URL(page.url()).origin;
  for (const [path, name] of Object.entries(PAGES)) {
    await page.goto(front + path);
    await heading(page, name);
    await settled(page);
    const [wide, window] = await page.evaluate(() => [document.documentElement.scrollWidth, document.documentElement.clientWidth]);
    assert.ok(wide <= window, `${path} is ${wide} pixels wide`);
  }
  await page.getByRole("button", { name: "Pages" }).click();
  await page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name: "Tasks" }).click();
  await heading(page, "Tasks");
});

test("one signs in with a token, and out", async (t) => {
  const page = await open(t, "/alerts", { isSignedIn: false, expected: [/status of 401/] });
  await page.getByLabel("Token").fill("intact_wrong");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByText("does not know this token").waitFor();
  await page.getByLabel("Token").fill(server.token);
  await page.keyboard.press("Enter");
  await heading(page, "Alerts");
  const kept = await page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie]));
  assert.ok(!kept.includes("intact_"), "the browser does not keep the token");
  await page.getByRole("button", { name: "Sign out admin" }).click();
  await page.getByLabel("Token").waitFor();
});

test("a code signs in once, and leaves the address at once", async (t) => {
  const code = await newCode();
  const page = await open(t, `/signin#code=${code}`, { isSignedIn: false, expected: [/status of 401/] });
  await heading(page, "Overview");
  assert.equal(new URL(page.url()).hash, "");
  assert.equal(new URL(page.url()).pathname, "/");
  await page.getByRole("button", { name: "Sign out admin" }).click();
  await page.getByLabel("Token").waitFor();
  await page.goto(`${new URL(page.url()).origin}/signin#code=${code}`);
  await page.getByText("This code was used").waitFor();
});

test("a code replaces a session only if one agrees, and is taken at one address only", async (t) => {
  const page = await open(t, `/tasks#code=${await newCode()}`, { who: "reader" });
  await heading(page, "Tasks");
  await page.getByRole("button", { name: "Sign out reader" }).waitFor();
  await page.goto(`${new URL(page.url()).origin}/signin#code=${await newCode()}`);
  await page.getByRole("button", { name: "Stay signed in as reader" }).click();
  await heading(page, "Overview");
  await page.getByRole("button", { name: "Sign out reader" }).waitFor();
  await page.goto(`${new URL(page.url()).origin}/signin#code=${await newCode()}`);
  await page.getByText("You are signed in as reader.").waitFor();
  await page.getByRole("button", { name: "Sign in as the owner of the link" }).click();
  await page.getByRole("button", { name: "Sign out admin" }).waitFor();
});

test("a tab shows what is of the one who signed in at another", async (t) => {
  const page = await open(t, "/tasks", { who: "reader" });
  await page.getByRole("button", { name: "Sign out reader" }).waitFor();
  await signIn(page.context(), server, people.ann.token);
  await page.evaluate(() => dispatchEvent(new Event("focus")));
  await page.getByRole("button", { name: "Sign out ann" }).waitFor();
});

test("the text of one's own token stays in view when it is rotated and the session ends", async (t) => {
  const { token } = await server.call("POST", "/v1/tokens", { name: "rota", roles: ["admin"] });
  people.rota = { token };
  const page = await open(t, "/access", { who: "rota", expected: [/status of 401/] });
  await page.getByRole("row").filter({ hasText: "this browser" }).waitFor();
  await page.getByRole("row").filter({ hasText: "rota" }).first().getByRole("button", { name: "Actions" }).click();
  await page.getByRole("menuitem", { name: /^Rotate/ }).click();
  await page.getByLabel("The old text stays valid for").fill("0s");
  await page.getByRole("dialog").getByRole("button", { name: "Rotate" }).click();
  await page.getByRole("heading", { name: "Sign in to Intact" }).waitFor({ state: "attached" });
  const text = await page.locator(".secret code").innerText();
  await page.getByRole("button", { name: "I have kept it" }).click();
  await page.getByLabel("Token").fill(text);
  await page.keyboard.press("Enter");
  await heading(page, "Access");
});

test("the overview says what is wrong", async (t) => {
  const page = await open(t, "/");
  await page.getByText(/things need attention/).waitFor();
  await page.getByText(/Agent fax is not connected, and 1 task waits for it/).waitFor();
  await page.getByRole("link", { name: /tasks have stopped in error/ }).click();
  await heading(page, "Tasks");
  await page.getByRole("row").filter({ hasText: "order-stuck" }).waitFor();
});

test("filters are in the address, and the list obeys them", async (t) => {
  const page = await open(t, "/tasks");
  const states = () => page.locator(".task-rows .c-state .state > span:first-of-type").allTextContents();
  await page.getByRole("button", { name: "error", exact: true }).click();
  await page.waitForFunction(() => new URLSearchParams(location.search).get("state") === "error");
  await page.waitForFunction(() => [...document.querySelectorAll(".task-rows .c-state .state")].length > 0 && [...document.querySelectorAll(".task-rows .c-state .state")].every((e) => e.textContent.startsWith("error")));
  await page.getByRole("button", { name: "More filters" }).click();
  await page.getByLabel("Tags, one a line").fill("desk=north");
  await page.getByRole("button", { name: "Filter", exact: true }).click();
  await page.waitForFunction(() => document.querySelectorAll(".task-rows .task-row").length === 4);
  assert.equal(new URL(page.url()).search, "?state=error&tag.desk=north");
  await page.reload();
  await page.waitForFunction(() => document.querySelectorAll(".task-rows .task-row").length === 4);
  await page.getByRole("button", { name: "Remove the filter: desk=north" }).click();
  await page.waitForFunction(() => document.querySelectorAll(".task-rows .task-row").length > 4);
  await page.goBack();
  await page.waitForFunction(() => document.querySelectorAll(".task-rows .task-row").length === 4);
  assert.deepEqual(new Set(await states()), new Set(["error"]));
});

test("the list says why tasks have stopped, and is narrowed by what ids begin with", async (t) => {
  const page = await open(t, "/tasks?state=error", { expected: [/status of 404/] });
  const row = (id) => page.getByRole("row").filter({ has: page.getByRole("link", { name: id, exact: true }) });
  await row("payout-4").getByText("pay: declined", { exact: true }).waitFor();
  await row("order-stuck").getByText("ship: declined, then no-refund", { exact: true }).waitFor();
  assert.equal(await row("payout-4").locator(".c-detail").getAttribute("title"), "pay: declined: the card is blocked");
  await page.keyboard.press("/");
  await page.keyboard.type("payout-*");
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "Remove the filter: id payout-…" }).waitFor();
  assert.equal(new URL(page.url()).search, "?id_prefix=payout-");
  await page.waitForFunction(() => [...document.querySelectorAll(".task-rows .c-id")].every((e) => e.textContent.startsWith("payout-")) && document.querySelectorAll(".task-rows .c-id").length >= 5);
  await page.goto(`${server.url}/tasks/payout-`);
  await page.getByRole("link", { name: "those whose ids begin so" }).click();
  await row("payout-4").waitFor();
});

test("exact times are had by a key, for all times of the page", async (t) => {
  const page = await open(t, "/tasks/payout-4");
  const shown = page.locator(".facts-line time").first();
  const at = (await read("payout-4")).submitted_at;
  await shown.waitFor();
  assert.match(await shown.innerText(), /^(\d+ \w{3}, )?\d\d:\d\d:\d\d$/);
  await page.keyboard.press("t");
  await page.waitForFunction(() => /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}$/.test(document.querySelector(".facts-line time").textContent));
  await page.getByRole("button", { name: /^Times to the ms/ }).click();
  await page.waitForFunction((utc) => document.querySelector(".facts-line time").textContent === utc, at);
  await page.keyboard.press("g");
  await page.keyboard.press("t");
  await heading(page, "Tasks");
  await page.waitForFunction(() => [...document.querySelectorAll(".c-at time")].every((e) => e.textContent.endsWith("Z")) && document.querySelector(".c-at time"));
  await page.keyboard.press("t");
  await page.waitForFunction(() => document.querySelector(".c-at time").textContent.endsWith(" ago"));
});

test("a step whose child has stopped is drawn as failed", async (t) => {
  await until("delivery-1", (x) => x.state === "error");
  const page = await open(t, "/tasks/delivery-1");
  await page.locator(".node.s-failed").filter({ hasText: "child in error" }).waitFor();
});

test("the list is used by keyboard", async (t) => {
  const page = await open(t, "/tasks?state=error&tag.desk=north");
  await page.waitForFunction(() => document.querySelectorAll(".task-rows .task-row").length === 4);
  await page.keyboard.press("j");
  await page.keyboard.press("j");
  await page.keyboard.press("x");
  await page.getByText("1 task chosen").waitFor();
  const id = await page.locator(".task-row.at .c-id").innerText();
  await page.keyboard.press("Enter");
  await heading(page, id);
  await page.keyboard.press("/");
  await page.keyboard.type("order-stuck");
  await page.keyboard.press("Enter");
  await heading(page, "order-stuck");
  await page.keyboard.press("g");
  await page.keyboard.press("e");
  await page.waitForFunction(() => location.search === "?state=error&closed=false");
});

test("new tasks are announced and move nothing, changes are shown in place", async (t) => {
  const page = await open(t, "/tasks?workflow=payout");
  await page.getByRole("row").filter({ hasText: "payout-flaky" }).waitFor();
  await page.getByText("Live", { exact: true }).waitFor();
  const order = () => page.locator(".task-rows .c-id").allInnerTexts();
  const before = await order();
  await server.call("POST", "/v1/tasks", { workflow: "payout", id: "payout-new", input: { fail: "check" } });
  await page.getByRole("button", { name: /^\d new tasks?: show$/ }).waitFor();
  await server.call("POST", "/v1/tasks/payout-2/close", { reason: "settled" });
  await page.getByRole("row").filter({ hasText: "payout-2" }).getByText("closed").waitFor();
  assert.deepEqual(await order(), before);
  await page.getByRole("button", { name: /new task/ }).click();
  await page.getByRole("row").filter({ hasText: "payout-new" }).waitFor();
});

// The attribute, or the colour, of each part of a drawing.
const attributes = (parts, name) => parts.evaluateAll((list, n) => list.map((e) => Number(e.getAttribute(n))), name);
const colours = (parts, name) => parts.evaluateAll((list, n) => list.map((e) => getComputedStyle(e)[n]), name);

test("the timeline hatches what is in doubt, and shades the time that failures cost", async (t) => {
  const page = await open(t, "/tasks/parcel-lost");
  const row = (name) => page.locator(".timeline-row").filter({ has: page.getByRole("button", { name, exact: true }) });
  const legend = page.locator(".timeline-legend");
  await row("ship").locator(".hatched").waitFor();
  assert.deepEqual(await colours(row("ship").locator(".hatched"), "fill"), ['url("#doubt")']);
  assert.equal(await page.locator("pattern#doubt .doubt-stripe").count(), 1);
  await legend.getByText("in doubt", { exact: true }).waitFor();
  assert.equal(await row("book").locator(".hatched").count(), 0);
  await page.goto(`${server.url}/tasks/payout-flaky`);
  const lost = row("pay").locator(".bar-lost rect");
  await lost.waitFor();
  assert.notEqual((await colours(lost, "fill"))[0], "none");
  const tries = await attributes(row("pay").locator(".bar-attempt > rect:not(.hatched)"), "x");
  const [[from], [wide]] = [await attributes(lost, "x"), await attributes(lost, "width")];
  assert.ok(tries.length === 2 && tries[0] < from && wide > 0 && Math.abs(from + wide - tries[1]) < 1, `${tries} ${from} ${wide}`);
  await page.locator(".timeline-lost").getByText(/ms lost to failures$/).waitFor();
  await legend.getByText("wait after a failure", { exact: true }).waitFor();
});

test("the timeline shows the last heartbeat, and, if one looks so far, until when a step and the task are to be complete", async (t) => {
  const page = await open(t, "/tasks/export-1");
  const row = (name) => page.locator(".timeline-row").filter({ has: page.getByRole("button", { name, exact: true }) });
  const lines = (kind) => row("dump").locator(`${kind} line`);
  await row("dump").locator(".beat path").waitFor();
  assert.notEqual((await colours(row("dump").locator(".beat path"), "fill"))[0], "none");
  assert.equal(await row("upload").locator(".beat").count(), 0);
  assert.equal(await page.locator(".deadline").count(), 0, "they are far away");
  await page.getByRole("group", { name: /^Timeline/ }).focus();
  for (let n = 0; n < 20 && (await lines(".deadline.whole").count()) === 0; n += 1) await page.keyboard.press("-");
  const [now, step, task] = (await Promise.all([".now-line", ".deadline:not(.whole)", ".deadline.whole"].map((kind) => attributes(lines(kind), "x1")))).flat();
  assert.ok(now < step && step < task, `${now} ${step} ${task}`);
  assert.ok(Math.abs((task - now) / (step - now) - 3) < 0.5, "to scale: an hour, and a third of it");
  assert.ok(!(await colours(lines(".deadline"), "stroke")).includes("none"));
  await page.locator(".timeline-legend").getByText("complete-by", { exact: true }).waitFor();
  assert.equal(await row("upload").locator(".deadline:not(.whole)").count(), 0);
});

test("a task that stopped is retried by its button; the store agrees", async (t) => {
  const page = await open(t, "/tasks/payout-flaky");
  await page.getByText(/The task has stopped in error\. Step pay failed/).waitFor();
  await page.locator(".why").getByRole("button", { name: "Retry pay…" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText("Its idempotency key stays the same", { exact: false }).waitFor();
  await dialog.getByText("The server would accept this now.").waitFor();
  await dialog.getByRole("button", { name: "Retry", exact: true }).click();
  await dialog.getByText("Say why: the audit keeps it.").waitFor();
  assert.equal((await read("payout-flaky")).state, "error", "without a reason nothing is done");
  await dialog.getByLabel("Reason").fill("the bank's line is mended");
  assert.equal(await dialog.locator("code").innerText(), "intact retry payout-flaky --step pay --reason 'the bank'\\''s line is mended'");
  await page.keyboard.press("Enter");
  await page.locator(".page-head .state").getByText("processed").waitFor();
  const task = await until("payout-flaky", (x) => x.state === "processed");
  assert.deepEqual(task.operations.map((o) => [o.actor, o.verb, o.step, o.reason]), [["admin", "retry", "pay", "the bank's line is mended"]]);
  await page.getByRole("tab", { name: /What people did/ }).click();
  await page.getByText("the bank's line is mended").waitFor();
});

test("an input is corrected, then the step retried", async (t) => {
  const page = await open(t, "/tasks/payout-1");
  await page.locator(".why").getByRole("button", { name: "Correct input of pay…" }).click();
  const dialog = page.getByRole("dialog");
  const input = dialog.getByLabel("Input (JSON)");
  assert.deepEqual(JSON.parse(await input.inputValue()), { amount: 100, fail: "pay" }, "the present input is there to be changed");
  await input.fill("{amount");
  await dialog.getByText("This is not JSON", { exact: false }).waitFor();
  await input.fill('{"amount": 99}');
  await dialog.getByLabel("Reason").fill("agreed by telephone");
  await dialog.getByText("The server would accept this now.").waitFor();
  await dialog.getByRole("button", { name: "Correct input" }).click();
  await dialog.waitFor({ state: "detached" });
  assert.deepEqual((await read("payout-1")).steps[1].input, { amount: 99 });
  await page.locator(".why").getByRole("button", { name: "Retry pay…" }).click();
  await dialog.getByLabel("Reason").fill("agreed by telephone");
  await dialog.getByRole("button", { name: "Retry", exact: true }).click();
  const task = await until("payout-1", (x) => x.state === "processed");
  assert.deepEqual(task.operations.map((o) => o.verb), ["correct", "retry"]);
});

test("a refusal is said beforehand", async (t) => {
  const page = await open(t, "/tasks/parcel-lost");
  await page.getByText("It is unknown whether it took effect", { exact: false }).waitFor();
  await page.getByRole("button", { name: "Actions" }).click();
  await page.getByRole("menuitem", { name: /Undo task/ }).click();
  await page.getByText(/The server would refuse this: .*pivot/).waitFor();
});

test("a step in doubt is resolved, and names the attempt that was looked at", async (t) => {
  const page = await open(t, "/tasks/parcel-lost");
  await page.locator(".why").getByRole("button", { name: "ship took no effect…" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Reason").fill("the carrier has no parcel");
  await dialog.getByText("The server would accept this now.").waitFor();
  await dialog.getByRole("button", { name: "Took no effect" }).click();
  const task = await until("parcel-lost", (x) => x.steps[1].resolved === 1);
  assert.equal(task.steps[1].in_doubt, false);
});

test("many tasks are closed by one operation, after a dry run", async (t) => {
  const page = await open(t, "/tasks?state=error&closed=false&tag.desk=north");
  await page.getByRole("row").filter({ hasText: "payout-3" }).waitFor();
  const open_ = (await server.call("GET", "/v1/tasks?state=error&closed=false&tag.desk=north")).tasks.length;
  await page.getByRole("button", { name: "Operate on all…" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Verb").selectOption("close");
  await dialog.getByRole("button", { name: new RegExp(`^Close: ${open_} tasks?$`) }).waitFor();
  assert.match(await dialog.locator("code").innerText(), /^intact close --all --state error --closed no --tag desk=north --reason \.\.\.$/);
  await dialog.getByLabel("Reason").fill("written off");
  await dialog.getByRole("button", { name: /^Close: / }).click();
  await page.waitForFunction(() => location.pathname.startsWith("/operations/"));
  await page.locator(".page-head .state").getByText("done").waitFor();
  const { operations } = await server.call("GET", "/v1/operations");
  assert.deepEqual([operations[0].verb, operations[0].done, operations[0].reason], ["close", open_, "written off"]);
  assert.equal((await server.call("GET", "/v1/tasks?state=error&closed=false&tag.desk=north")).tasks.length, 0);
});

test("a signal is sent to many tasks; those that wait for none refuse beforehand", async (t) => {
  const page = await open(t, "/tasks?state=pending&workflow=reminder");
  await page.getByRole("row").filter({ hasText: "reminder-1" }).waitFor();
  await page.getByRole("button", { name: "Operate on all…" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Verb").selectOption("signal");
  await dialog.getByText("Fill in the fields above").waitFor();
  await dialog.getByLabel("Name of the signal").fill("go");
  await dialog.getByLabel(/^Value/).fill("1");
  await dialog.getByText(/1 task matches\..*refused for/).waitFor();
  assert.equal(await dialog.locator("code").innerText(), "intact operation start signal --state pending --workflow reminder --name go --data 1 --reason ...");
  assert.ok(await dialog.getByRole("button", { name: "Send signal: 0 tasks" }).isDisabled());
});

test("a person approves; the vote has that person's name", async (t) => {
  const page = await open(t, "/approvals", { who: "ann" });
  const card = page.getByRole("listitem").filter({ hasText: "Pay € 1,200 to Zoe?" });
  await card.getByLabel("Comment").fill("within the budget");
  await card.getByRole("button", { name: "Approve" }).click();
  await page.locator(".votes-count").filter({ hasText: "1 of 2 agreed" }).first().waitFor();
  const { votes } = (await read("expense-1")).steps[0].approval;
  assert.deepEqual(votes.map((v) => [v.by, v.agrees, v.comment]), [["ann", true, "within the budget"]]);
});

test("what a role may not do is not offered", async (t) => {
  const page = await open(t, "/tasks/order-stuck", { who: "reader" });
  await page.getByText(/The task has stopped in error/).waitFor();
  assert.equal(await page.getByRole("button", { name: /Retry|Skip|Close…|Actions/ }).count(), 0);
  assert.equal(await page.getByRole("link", { name: "Audit" }).count(), 0);
  await page.getByRole("link", { name: "Tasks" }).first().click();
  await page.getByRole("row").filter({ hasText: "nasty" }).waitFor();
  assert.equal(await page.getByRole("button", { name: /Operate/ }).count(), 0);
  await page.goto(`${new URL(page.url()).origin}/approvals`);
  await heading(page, "Approvals");
  assert.equal(await page.getByRole("button", { name: "Approve" }).count(), 0);
});

test("markup, bidi and control characters of others are text", async (t) => {
  const page = await open(t, "/tasks/nasty");
  await page.getByText("<img src=x onerror=alert(1)>", { exact: false }).first().waitFor();
  await page.getByText("U+202E").first().waitFor();
  assert.equal(await page.locator("img, iframe").count(), 0);
  assert.equal(await page.evaluate(() => document.body.innerText.includes("\u202E")), false);
  assert.ok((await page.evaluate(() => document.body.innerText.length)) < 50_000, "long values are folded");
});

test("a thousand steps and thousands of items are drawn as far as they are in view", async (t) => {
  await server.call("POST", "/v1/tasks", { workflow: "wide", id: "wide-1", input: {} });
  await until("wide-1", (x) => x.state === "processed");
  const page = await open(t, "/tasks/wide-1");
  await page.getByRole("button", { name: /^s0/ }).first().waitFor();
  const count = (selector) => page.locator(selector).count();
  assert.ok((await count(".node")) < 400 && (await count(".timeline-row")) < 80, `${await count(".node")} ${await count(".timeline-row")}`);
  await page.locator(".timeline-rows").evaluate((e) => { e.scrollTop = e.scrollHeight; });
  await page.locator(".timeline-row").filter({ hasText: "s999" }).waitFor();
  await page.locator(".graph-scroll").evaluate((e) => { e.scrollLeft = e.scrollWidth; });
  await page.locator(".node").filter({ hasText: "s999" }).waitFor();
  assert.ok((await count("*")) < 2500, `${await count("*")} elements`);
  await page.getByRole("button", { name: "Whole graph" }).click();
  await page.getByRole("button", { name: "Readable size" }).waitFor();
  assert.ok((await count(".node")) === 0 && (await count(".graph.plan *")) < 50, "the whole is a plan");
  await page.locator(".graph.plan").click({ position: { x: 5, y: 100 } });
  await page.locator(".node").filter({ hasText: /^s0/ }).first().waitFor();
});

test("ten thousand items are drawn as far as they are in view", async (t) => {
  const lines = Array.from({ length: 10_000 }, (_, n) => ({ sku: `pen-${n}`, slow: 600_000 }));
  await server.call("POST", "/v1/tasks", { workflow: "packing", id: "packing-many", input: { lines } });
  await until("packing-many", (x) => x.steps[0].items?.begun === 50);
  const page = await open(t, "/tasks/packing-many?step=pack");
  await page.getByText("9,950 not begun").waitFor();
  const cells = () => page.locator(".cell").count();
  await page.locator(".cell").nth(200).waitFor({ state: "attached" });
  assert.ok((await cells()) < 2500, `${await cells()} cells`);
  await page.locator(".item-grid").evaluate((e) => { e.scrollTop = e.scrollHeight; });
  await page.getByRole("button", { name: "pack.9999: waiting", exact: true }).waitFor();
  assert.ok((await cells()) < 2500, `${await cells()} cells`);
  await server.call("POST", "/v1/tasks/packing-many/pause", { reason: "seen" });
});

test("the focus goes from row to row, and stays while the row changes", async (t) => {
  await server.call("PUT", "/v1/workflows/rest", { intact: 1, workflow: "rest", steps: [{ name: "later", wait: "2d" }] });
  for (const id of ["rest-1", "rest-2"]) await server.call("POST", "/v1/tasks", { workflow: "rest", id, input: {} });
  const page = await open(t, "/tasks?workflow=rest");
  await page.getByRole("row").filter({ hasText: "rest-2" }).waitFor();
  const focused = () => page.evaluate(() => document.activeElement.textContent);
  const focus = (name) => page.waitForFunction((id) => document.activeElement.textContent === id, name);
  await page.keyboard.press("j");
  await focus("rest-2");
  await page.keyboard.press("j");
  await focus("rest-1");
  await page.keyboard.press("k");
  await focus("rest-2");
  await page.getByText("Live", { exact: true }).waitFor();
  await server.call("POST", "/v1/tasks/rest-2/pause", { reason: "not now" });
  await page.getByRole("row").filter({ hasText: "rest-2" }).getByText("paused").waitFor();
  assert.equal(await focused(), "rest-2");
  await page.keyboard.press("?");
  await page.getByRole("dialog").getByText("Next, previous row").waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  assert.equal(await focused(), "rest-2");
  await page.keyboard.press("g");
  await page.keyboard.press("w");
  await heading(page, "Workflows");
  await settled(page);
  await page.getByRole("row").filter({ hasText: "expense" }).first().waitFor();
  await page.keyboard.press("j");
  await page.keyboard.press("j");
  await focus("expense");
});

test("items are a grid, and one opens", async (t) => {
  await until("packing-1", (x) => x.steps[0].items?.failed === 7);
  const page = await open(t, "/tasks/packing-1?step=pack");
  await page.getByRole("button", { name: "pack.13: failed", exact: true }).click();
  await page.getByText("no cup-13 left").last().waitFor();
  await page.keyboard.press("ArrowRight");
  await page.locator(".item-head").getByText("pack.14").waitFor();
  await page.locator(".item-head").getByText("completed").waitFor();
});

test("the timeline zooms by keys and buttons", async (t) => {
  const page = await open(t, "/tasks/order-stuck");
  const timeline = page.getByRole("group", { name: /^Timeline/ });
  await timeline.waitFor();
  const marks = () => page.locator(".axis text").allTextContents();
  const whole = await marks();
  await timeline.focus();
  for (let n = 0; n < 4; n += 1) await page.keyboard.press("+");
  const near = await marks();
  assert.notDeepEqual(near, whole);
  await page.keyboard.press("ArrowRight");
  assert.notDeepEqual(await marks(), near);
  await page.getByRole("button", { name: "Show all" }).click();
  assert.deepEqual(await marks(), whole);
});

test("a record that is not there, or is nobody's business, is said so", async (t) => {
  const page = await open(t, "/tasks/no-such", { expected: [/status of 404/] });
  await page.getByText("There is no task no-such").waitFor();
  await page.goto(`${new URL(page.url()).origin}/nowhere`);
  await page.getByText("There is no such page").waitFor();
});

test("the audit is read again by itself", async (t) => {
  const page = await open(t, "/audit");
  await page.getByRole("row").filter({ hasText: "workflow.put" }).first().waitFor();
  const row = page.getByRole("row").filter({ hasText: "seen from the audit" });
  assert.equal(await row.count(), 0);
  await server.call("POST", "/v1/tasks/reminder-1/pause", { reason: "seen from the audit" });
  await row.getByText("reminder-1", { exact: true }).waitFor();
  await server.call("POST", "/v1/tasks/reminder-1/resume", { reason: "done" });
});

// What r reads, page by page. Of a page that is not in view nothing is read but that.
test("r reads any page again", async (t) => {
  const context = { workflow: "rest-all", id: "rest-all-1" };
  await server.call("PUT", "/v1/workflows/rest-all", { intact: 1, workflow: context.workflow, steps: [{ name: "later", wait: "2d" }] });
  await server.call("POST", "/v1/tasks", { ...context, input: {} });
  const { id } = await server.call("POST", "/v1/operations", { verb: "pause", filter: { ids: [context.id] }, arguments: {}, reason: "r" });
  const page = await open(t, "/", { expected: [/status of 404/] });
  await page.addInitScript(() => Object.defineProperty(document, "hidden", { get: () => true }));
  const READS = {
    "/": "/v1/nodes", "/tasks": "/v1/tasks", "/tasks/rest-all-1": "/v1/tasks/rest-all-1", "/approvals": "/v1/approvals", "/workflows": "/v1/workflows", "/workflows/order": "/v1/workflows/order",
    "/schedules": "/v1/schedules", "/operations": "/v1/operations", [`/operations/${id}`]: `/v1/operations/${id}`, "/alerts": "/v1/alerts", "/agents": "/v1/agents", "/nodes": "/v1/nodes",
    "/messages": "/v1/outbox", "/submissions": "/v1/submissions", "/access": "/v1/tokens", "/audit": "/v1/audit",
  };
  for (const [path, read] of Object.entries(READS)) {
    await page.goto(server.url + path);
    await page.locator("h1").first().waitFor();
    await settled(page);
    let asked = null;
    for (let n = 0; n < 4 && !asked; n += 1) { // a page that was drawn this moment may not listen yet
      const wanted = page.waitForRequest((r) => new URL(r.url()).pathname === read, { timeout: 5000 }).catch(() => null);
      await page.keyboard.press("r");
      asked = await wanted;
    }
    assert.ok(asked, `${path} does not read ${read} again`);
  }
});

test("colours can be chosen", async (t) => {
  const page = await open(t, "/");
  const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = await ground();
  await page.getByRole("button", { name: /^Colours: As the system/ }).click();
  await page.getByRole("button", { name: /^Colours: Light/ }).click();
  assert.notEqual(await ground(), light);
  await page.reload();
  await page.getByRole("button", { name: /^Colours: Dark/ }).waitFor();
  assert.notEqual(await ground(), light);
});

test("a stream that is refused is no server that does not answer, and the page is read instead", async (t) => {
  const page = await open(t, "/", { expected: [/status of 503/] });
  await page.route(/\/events/, (route) => route.fulfill({ status: 503, contentType: "application/problem+json", body: "{}" }));
  const refused = page.waitForResponse((answer) => answer.status() === 503);
  await page.goto(`${server.url}/tasks/order-stuck`);
  await refused;
  await page.getByText("Current", { exact: true }).waitFor();
  await server.call("POST", "/v1/tasks/order-stuck/close", { reason: "looked at" });
  await page.locator(".page-head").getByText("closed").waitFor();
  await server.call("POST", "/v1/tasks/order-stuck/reopen", { reason: "looked at" });
});

test("a task that was processed, and is undone then, is followed", async (t) => {
  await server.call("POST", "/v1/tasks", { workflow: "payout", id: "payout-undone", input: {} });
  const task = await until("payout-undone", (x) => x.state === "processed");
  const page = await open(t, `/tasks/${task.id}`);
  await page.locator(".page-head .state").getByText("processed").waitFor();
  await server.call("POST", `/v1/tasks/${task.id}/undo`, { reason: "sold twice" });
  await page.locator(".page-head .state").getByText("compensated").waitFor();
});

test("when the server is gone, the page says how old it is, and keeps what it shows", async (t) => {
  const page = await open(t, "/tasks/order-stuck", { expected: [/status of 50\d|net::ERR|Failed to load/] });
  await page.getByText(/The task has stopped in error/).waitFor();
  await page.getByText("Live", { exact: true }).waitFor();
  await server.stop();
  await page.getByText(/The server does not answer\. What is shown is from/).waitFor();
  await page.getByText(/The task has stopped in error/).waitFor();
});
