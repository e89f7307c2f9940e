// What pages show while something fails: the server is killed, a node dies, a session ends, the connection is slow, stalls
// or breaks. They say how old what they show is, and go on where they were.
import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import { startDatabase } from "./database.mjs";
import { handAgent, heading, openPage, sql, sqlWrite, startBrowser, until } from "./kit.mjs";
import { startProxy } from "./stall.mjs";
import { freePort, startServer } from "./world.mjs";

const { INTACT, WORK } = process.env;
const PAY = { intact: 1, workflow: "pay", on_failure: "hold", steps: [{ name: "do", agent: "bank", action: "do", undo: "none" }, { name: "then", agent: "nobody", action: "do", undo: "none" }] };
// What a browser says of requests that fail, and of sessions that have ended.
const BROKEN = [/net::ERR|Failed to load|status of (401|50\d)/];

let browser;
let server;
let people;
let port;

before(async () => {
  browser = await startBrowser();
  port = freePort();
  server = await startServer(INTACT, WORK, { port });
  await server.call("PUT", "/v1/workflows/pay", PAY);
  const reader = await server.call("POST", "/v1/tokens", { name: "reader", roles: ["read"] });
  people = { admin: { token: server.token }, reader: { token: reader.token } };
  for (const n of [1, 2, 3, 4, 5, 6, 7]) await stopped(server, `t-${n}`);
});

after(async () => {
  await browser?.close();
  await server?.stop();
});

// A task that has stopped in error.
async function stopped(on, id) {
  const bank = handAgent(on.call, "bank");
  await on.call("POST", "/v1/tasks", { workflow: "pay", id });
  await bank.do(`${id}/do`, { error: { code: "declined", message: "the card is blocked", retryable: false } });
  await until(() => on.call("GET", `/v1/tasks/${id}`), (x) => x.state === "error", id);
}

const open = (t, path, options) => openPage(t, browser, server, people, path, { expected: BROKEN, ...options });
const again = async () => { server = await startServer(INTACT, WORK, { port }); };
const close = (id, on = server) => on.call("POST", `/v1/tasks/${id}/close`, { reason: "settled" });
const live = (page) => page.getByText("Live", { exact: true }).waitFor();
const stale = (page) => page.getByText(/The server does not answer\. What is shown is from .*, .* ago\./);
const closedState = (page) => page.locator(".page-head .state").getByText("closed");

// ---- the server ----

test("the server is killed and comes again: pages say how old they are, keep what they show, and go on", async (t) => {
  const pages = {};
  for (const path of ["/", "/tasks?workflow=pay", "/tasks/t-1", "/alerts", "/workflows/pay", "/nodes"]) {
    pages[path] = await open(t, path);
    await pages[path].locator("h1").waitFor();
  }
  for (const path of ["/", "/tasks?workflow=pay", "/tasks/t-1"]) await live(pages[path]);
  await server.stop();
  for (const page of Object.values(pages)) await stale(page).waitFor();
  await pages["/tasks/t-1"].getByText(/The task has stopped in error/).waitFor();
  await pages["/tasks?workflow=pay"].getByRole("row").filter({ hasText: "t-1" }).getByText("error").waitFor();
  await pages["/nodes"].getByRole("cell", { name: /alive/ }).waitFor();
  await again();
  await close("t-1");
  await server.call("POST", "/v1/tasks", { workflow: "pay", id: "t-new" });
  for (const page of Object.values(pages)) await stale(page).waitFor({ state: "detached" });
  await closedState(pages["/tasks/t-1"]).waitFor();
  await pages["/tasks?workflow=pay"].getByRole("row").filter({ hasText: "t-1" }).getByText("closed").waitFor();
  for (const path of ["/", "/tasks?workflow=pay", "/tasks/t-1"]) await live(pages[path]);
});

test("a form that is sent while the server is away says that it is not known what came of it, and can be sent again", async (t) => {
  const page = await open(t, "/tasks/t-2");
  await page.locator(".why").getByRole("button", { name: /^Close/ }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Reason").fill("written off");
  await dialog.getByText("The server would accept this now.").waitFor();
  await server.stop();
  await dialog.getByRole("button", { name: "Close", exact: true }).last().click();
  await dialog.getByText("Whether this was done is not known: look before you repeat it.", { exact: false }).waitFor();
  assert.equal(await dialog.getByLabel("Reason").inputValue(), "written off", "what was entered is kept");
  await again();
  await dialog.getByRole("button", { name: "Close", exact: true }).last().click();
  await dialog.waitFor({ state: "detached" });
  await closedState(page).waitFor();
  assert.equal(sql(`${WORK}/data`, "SELECT count(*) AS n FROM audit_view WHERE task = 't-2' AND verb = 'close'")[0].n, 1);
});

test("whether a verb is possible is not known when the server cannot be asked, which is no refusal", async (t) => {
  const page = await open(t, "/tasks/t-3", { expected: [...BROKEN] });
  await page.route("**/v1/operations", (route) => route.abort());
  await page.locator(".why").getByRole("button", { name: /^Close/ }).click();
  await page.getByText(/Not known beforehand, as the server could not be asked: /).waitFor();
  assert.equal(await page.getByText("The server would refuse this").count(), 0);
});

// ---- sessions ----

const signInAgain = async (page, token) => {
  await page.getByLabel("Token").fill(token);
  await page.keyboard.press("Enter");
};
const ended = (page, name) => page.getByText(`The session of ${name} has ended. Sign in again to continue on this page.`).waitFor();

test("a session that is revoked while a page is open: it says so, shows nothing more, and goes on there after signing in", async (t) => {
  const page = await open(t, "/tasks?state=error&workflow=pay", { who: "reader" });
  await page.getByRole("row").filter({ hasText: "t-3" }).waitFor();
  await live(page);
  const access = await open(t, "/access");
  const theirs = access.locator(".panel").filter({ hasText: "Signed in" }).getByRole("row").filter({ hasText: "reader" });
  await theirs.getByRole("button", { name: "End…" }).click();
  await access.getByRole("dialog").getByRole("button", { name: "End it" }).click();
  await theirs.waitFor({ state: "detached" });
  assert.deepEqual((await server.call("GET", "/v1/sessions")).sessions.filter((s) => s.token === "reader"), []);
  await ended(page, "reader");
  assert.equal(await page.getByText("t-3").count(), 0, "nothing of the list is left");
  await signInAgain(page, people.reader.token);
  await page.getByRole("row").filter({ hasText: "t-3" }).waitFor();
  assert.equal(new URL(page.url()).search, "?state=error&workflow=pay");
  await live(page);
});

test("a session that expires: the same, and a text that was not stored yet is there again for the same person only", async (t) => {
  const page = await open(t, "/workflows/pay/edit");
  await page.locator(".cm-line").first().click();
  await page.keyboard.type("# not stored yet\n");
  const expire = async () => {
    sqlWrite(`${WORK}/data`, "UPDATE session SET expires_at = created_at + 1 WHERE is_code = 0");
    await server.call("POST", "/v1/tokens", { name: `any-${Date.now()}`, roles: ["read"] }); // has the sessions read anew
  };
  await expire();
  await page.evaluate(() => dispatchEvent(new Event("focus")));
  await ended(page, "admin");
  await signInAgain(page, people.admin.token);
  await page.locator(".cm-line").filter({ hasText: "# not stored yet" }).waitFor();
  await expire();
  await page.evaluate(() => dispatchEvent(new Event("focus")));
  await ended(page, "admin");
  const writer = await server.call("POST", "/v1/tokens", { name: `writer-${Date.now()}`, roles: ["read", "define"] });
  await signInAgain(page, writer.token);
  await page.locator(".cm-line").first().waitFor();
  assert.equal(await page.getByText("# not stored yet").count(), 0);
});

// ---- the connection ----

test("a slow connection: pages say that they are loading, then show what there is", async (t) => {
  const page = await open(t, "/");
  await heading(page, "Overview");
  const devtools = await page.context().newCDPSession(page);
  await devtools.send("Network.enable");
  await devtools.send("Network.emulateNetworkConditions", { offline: false, latency: 1500, downloadThroughput: 30_000, uploadThroughput: 30_000 });
  await page.getByRole("link", { name: "Tasks" }).first().click();
  await page.locator(".loading").first().waitFor();
  await page.getByRole("row").filter({ hasText: "t-3" }).waitFor();
  await page.getByRole("row").filter({ hasText: "t-3" }).click();
  await page.getByText(/The task has stopped in error/).waitFor();
  assert.equal(await stale(page).count(), 0, "slow is not gone");
});

test("a connection that breaks and comes again", async (t) => {
  const page = await open(t, "/tasks/t-3");
  await live(page);
  await page.getByText(/The task has stopped in error/).waitFor(); // it is read beside the stream, and stays
  await page.context().setOffline(true);
  await stale(page).waitFor();
  await close("t-3");
  await page.getByText(/The task has stopped in error/).waitFor();
  await page.context().setOffline(false);
  await closedState(page).waitFor();
  await live(page);
  await stale(page).waitFor({ state: "detached" });
});

test("a connection that stalls without a word is found out; when others go through, the page goes on", async (t) => {
  const proxy = await startProxy(server.url);
  t.after(proxy.stop);
  const pages = [];
  for (const path of ["/tasks/t-4", "/tasks?workflow=pay"]) {
    const page = await openPage(t, browser, { url: proxy.url }, people, path, { expected: BROKEN });
    await live(page);
    pages.push(page);
  }
  proxy.hold();
  for (const page of pages) await stale(page).waitFor();
  await close("t-4");
  proxy.pass();
  await closedState(pages[0]).waitFor();
  await pages[1].getByRole("row").filter({ hasText: "t-4" }).getByText("closed").waitFor();
  for (const page of pages) {
    await live(page);
    await stale(page).waitFor({ state: "detached" });
  }
  proxy.cut(); // in the middle of whatever there is
  await close("t-5");
  await pages[1].getByRole("row").filter({ hasText: "t-5" }).getByText("closed").waitFor();
  for (const page of pages) await live(page);
});

test("a stream alone that has died without a word is made anew", async (t) => {
  const proxy = await startProxy(server.url);
  t.after(proxy.stop);
  const page = await openPage(t, browser, { url: proxy.url }, people, "/tasks/t-6", { expected: BROKEN });
  await live(page);
  proxy.holdAlone(/^GET \S*\/events/);
  await close("t-6");
  await closedState(page).waitFor();
  await live(page);
  assert.equal(await stale(page).count(), 0, "the server answered all the time");
});

// What a page asks of the streams of events is answered by `answer`; the rest goes to the server.
const refuse = (page, is) => page.route(/\/events(\?|$)/, (route) => (is(new URL(route.request().url()))
  ? route.fulfill({ status: 422, contentType: "application/problem+json", body: '{"type": "urn:intact:problem:unknown-parameter"}' }) : route.continue()));

test("a server of an earlier version, which knows no pace of streams, is asked without it", async (t) => {
  const page = await open(t, "/alerts", { expected: [...BROKEN, /status of 422/] });
  const asked = [];
  await refuse(page, (url) => { asked.push(url.search); return url.searchParams.has("per_second"); });
  await page.goto(`${server.url}/tasks?workflow=pay`);
  await live(page);
  await page.getByRole("row").filter({ hasText: "t-2" }).waitFor();
  await server.call("POST", "/v1/tasks", { workflow: "pay", id: "t-old" });
  await page.getByRole("button", { name: "1 new task: show" }).waitFor();
  assert.deepEqual(asked, ["?per_second=50&workflow=pay", "?workflow=pay"]);
});

test("a page whose streams are all refused is read now and then, and says so", async (t) => {
  const page = await open(t, "/alerts", { expected: [...BROKEN, /status of 422/] });
  await refuse(page, () => true);
  await page.goto(`${server.url}/tasks/t-7`);
  await page.getByText(/The task has stopped in error/).waitFor();
  await page.getByText("Current", { exact: true }).waitFor();
  await close("t-7");
  await closedState(page).waitFor();
  assert.equal(await page.getByText("Live", { exact: true }).count(), 0);
  await page.goto(`${server.url}/tasks?workflow=pay`);
  await page.getByRole("row").filter({ hasText: "t-7" }).getByText("closed").waitFor();
  await server.call("POST", "/v1/tasks/t-7/reopen", { reason: "a test" });
  await page.getByRole("row").filter({ hasText: "t-7" }).getByText("closed").waitFor({ state: "detached" });
});

// ---- nodes ----

test("over two nodes: changes by others appear, a node that dies is seen, and the other one goes on with the same session", async (t) => {
  const database = await startDatabase(`${WORK}/pg`);
  t.after(database.stop);
  const node = (name, token) => startServer(INTACT, `${WORK}/${name}`, { port: 0, token, args: ["--node", name, "--store", database.store] });
  const one = await node("n1");
  t.after(one.stop);
  const two = await node("n2", one.token);
  t.after(two.stop);
  await one.call("PUT", "/v1/workflows/pay", PAY);
  for (const id of ["n-1", "n-2", "n-3"]) await stopped(one, id);
  const openAt = (at, path) => openPage(t, browser, at, { admin: { token: one.token } }, path, { expected: BROKEN });
  const task = await openAt(one, "/tasks/n-1");
  const list = await openAt(one, "/tasks?workflow=pay");
  const nodes = await openAt(one, "/nodes");
  await live(task);
  await live(list);
  await nodes.getByRole("row").filter({ hasText: "n2" }).getByText("alive").waitFor();
  await list.getByRole("row").filter({ hasText: "n-2" }).waitFor();
  await close("n-1", two);
  await closedState(task).waitFor();
  await close("n-2", two);
  await list.getByRole("row").filter({ hasText: "n-2" }).getByText("closed").waitFor();
  await two.call("POST", "/v1/tasks", { workflow: "pay", id: "n-new" });
  await list.getByRole("button", { name: "1 new task: show" }).waitFor();
  await two.stop();
  await nodes.getByRole("row").filter({ hasText: "n2" }).getByText("does not answer").waitFor();
  assert.equal(await stale(task).count() + await stale(list).count(), 0, "their own node answers");
  await one.call("POST", "/v1/tasks/n-1/reopen", { reason: "a test" });
  await closedState(task).waitFor({ state: "detached" });

  const back = await node("n2", one.token);
  t.after(back.stop);
  await one.stop();
  await stale(task).waitFor();
  await task.getByText(/The task has stopped in error/).waitFor();
  await task.goto(`${back.url}/tasks/n-1`); // the same address at the other node: cookies are of the host
  await heading(task, "n-1");
  await live(task);
  await close("n-1", back);
  await closedState(task).waitFor();
  assert.equal(database.sql("SELECT state FROM intact.task_view WHERE id = 'n-1'"), "error");
});
