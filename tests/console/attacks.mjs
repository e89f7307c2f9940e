// What other sites, thieves and broken clients try with a browser that is signed in, or with an address that they have got
// hold of: the answer is clear, the store says that nothing was done, and others go on.
import assert from "node:assert/strict";
import { createServer, request } from "node:http";
import { readFileSync } from "node:fs";
import test, { after, before } from "node:test";
import { heading, openPage, settled, signIn, sql, startBrowser, until } from "./kit.mjs";
import { startServer } from "./world.mjs";

const { INTACT, WORK } = process.env;
const data = `${WORK}/data`;
const ANYTHING = [/./]; // the pages of others may be full of mistakes
const SECRET = "a secret of the customer";

let browser;
let server;
let people;
let evil;

before(async () => {
  browser = await startBrowser();
  server = await startServer(INTACT, WORK);
  people = { admin: { token: server.token } };
  await server.call("PUT", "/v1/workflows/rests", { intact: 1, workflow: "rests", steps: [{ name: "send", agent: "nobody", action: "send", undo: "none" }] });
  await server.call("POST", "/v1/tasks", { workflow: "rests", id: "victim", input: { note: SECRET } });
  evil = createServer((from, to) => to.writeHead(200, { "Content-Type": "text/html" }).end("<!doctype html><title>prizes</title><body></body>"));
  await new Promise((done) => evil.listen(0, "127.0.0.1", done));
});

after(async () => {
  await browser?.close();
  await server?.stop();
  evil?.closeAllConnections();
  evil?.close();
});

const open = (t, path, options) => openPage(t, browser, server, people, path, options);
const log = () => readFileSync(`${WORK}/log`, "utf8");
const untouched = () => {
  assert.deepEqual(sql(data, "SELECT state, paused_at FROM task_view WHERE id = 'victim'"), [{ state: "pending", paused_at: null }]);
  assert.deepEqual(sql(data, "SELECT verb FROM audit_view WHERE verb NOT IN ('session.create', 'session.delete', 'workflow.put', 'token.create')"), []);
  assert.deepEqual(sql(data, "SELECT verb FROM operation_view"), []);
};

// As another site, to which browsers send no cookie; and as another port of the same host, to which they do.
for (const host of ["localhost", "127.0.0.1"]) {
  test(`a page of another origin, ${host}, neither changes nor reads anything`, async (t) => {
    const page = await open(t, "/", { expected: ANYTHING });
    await heading(page, "Overview");
    await page.goto(`http://${host}:${evil.address().port}/`);
    const answers = await page.evaluate(async (url) => {
      const told = {};
      const body = JSON.stringify({ reason: "x" });
      const attempt = async (name, path, options) => {
        try {
          const answer = await fetch(url + path, { credentials: "include", ...options });
          told[name] = answer.type === "opaque" ? "opaque" : `${answer.status} ${await answer.text()}`;
        } catch {
          told[name] = "refused";
        }
      };
      await attempt("simple", "/v1/tasks/victim/pause", { method: "POST", mode: "no-cors", headers: { "Content-Type": "text/plain" }, body });
      await attempt("json", "/v1/tasks/victim/pause", { method: "POST", headers: { "Content-Type": "application/json" }, body });
      await attempt("header", "/v1/tasks/victim/pause", { method: "POST", headers: { "Content-Type": "application/json", "Intact-Console": "1" }, body });
      await attempt("delete", "/v1/session", { method: "DELETE", headers: { "Intact-Console": "1" } });
      await attempt("read", "/v1/tasks/victim", {});
      await attempt("read blindly", "/v1/tasks/victim", { mode: "no-cors" });
      told.stream = await new Promise((done) => {
        const source = new EventSource(`${url}/v1/events`, { withCredentials: true });
        source.onopen = () => done("open");
        source.onerror = () => { source.close(); done("refused"); };
      });
      told.script = await new Promise((done) => {
        const script = document.createElement("script");
        script.src = `${url}/v1/tasks/victim`;
        script.onload = () => done("loaded");
        script.onerror = () => done("refused");
        document.head.append(script);
      });
      return told;
    }, server.url);
    assert.deepEqual(answers, {
      simple: "opaque", json: "refused", header: "refused", delete: "refused", read: "refused", "read blindly": answers["read blindly"], stream: "refused", script: "refused",
    });
    assert.ok(["opaque", "refused"].includes(answers["read blindly"]), answers["read blindly"]);
    untouched();
    // A form takes the browser to the answer, which is the same refusal.
    const sent = page.waitForResponse((a) => a.url().endsWith("/v1/tasks/victim/pause"));
    await page.evaluate((url) => {
      const form = Object.assign(document.createElement("form"), { method: "POST", action: `${url}/v1/tasks/victim/pause`, enctype: "text/plain" });
      form.append(Object.assign(document.createElement("input"), { name: '{"reason": "', value: 'x"}' }));
      document.body.append(form);
      form.submit();
    }, server.url);
    const refusal = await sent;
    assert.equal(refusal.status(), 403);
    assert.equal(JSON.parse(await refusal.text()).type, "urn:intact:problem:foreign");
    untouched();
    await page.goto(server.url);
    await heading(page, "Overview");
  });
}

test("no page is shown in a frame, and a window that another site opens tells it nothing", async (t) => {
  const page = await open(t, "/", { expected: ANYTHING });
  await heading(page, "Overview");
  await page.goto(`http://127.0.0.1:${evil.address().port}/`);
  await page.evaluate((url) => document.body.append(Object.assign(document.createElement("iframe"), { src: `${url}/tasks/victim` })), server.url);
  await until(async () => page.frames().length, (n) => n === 2, "the frames");
  const frame = page.frames()[1];
  await frame.waitForLoadState();
  assert.ok(!(await frame.content()).includes("/assets/"), "the frame has no page of the console");
  assert.ok(!(await frame.content()).includes(SECRET));
  const opened = page.context().waitForEvent("page");
  await page.evaluate((url) => { globalThis.opened = open(`${url}/tasks/victim`); }, server.url);
  const window = await opened;
  await window.getByText(SECRET).first().waitFor();
  assert.equal(await window.evaluate(() => globalThis.opener), null, "the page does not know who opened it");
  assert.equal(await page.evaluate(() => globalThis.opened.closed), true, "and who opened it has no hold on it");
  untouched();
});

test("an address that was passed on shows nothing to who is not signed in, and is opened after signing in", async (t) => {
  const page = await open(t, "/tasks/victim?step=send", { isSignedIn: false, expected: [/status of 401/] });
  await page.getByRole("heading", { name: "Sign in to Intact" }).waitFor();
  await settled(page);
  assert.ok(!(await page.content()).includes(SECRET));
  assert.deepEqual(await page.evaluate(() => performance.getEntriesByType("resource").map((e) => new URL(e.name).pathname).filter((p) => p.startsWith("/v1/") && p !== "/v1/session")), [], "nothing is even asked for");
  await page.getByLabel("Token").fill(server.token);
  await page.keyboard.press("Enter");
  await heading(page, "victim");
  await page.getByText(SECRET).first().waitFor();
  assert.equal(new URL(page.url()).search, "?step=send");
  untouched();
});

test("an old session lets nobody in", async (t) => {
  const page = await open(t, "/tasks/victim", { expected: [/status of 401/] });
  await heading(page, "victim");
  const [stolen] = await page.context().cookies();
  assert.deepEqual([stolen.httpOnly, stolen.sameSite], [true, "Strict"]);
  await page.getByRole("button", { name: "Sign out admin" }).click();
  await page.getByLabel("Token").waitFor();
  await page.context().addCookies([stolen]);
  await page.reload();
  await page.getByRole("heading", { name: "Sign in to Intact" }).waitFor();
  assert.ok(!(await page.content()).includes(SECRET));
  untouched();
});

test("a token in an address is refused, and written down nowhere", async (t) => {
  const { token } = await server.call("POST", "/v1/tokens", { name: "careless", roles: ["read"] });
  const page = await open(t, "/", { isSignedIn: false, expected: [/status of 40[01]/] });
  const spellings = [token, token.replace("intact_", "%69ntact%5F")];
  const paths = spellings.flatMap((x) => [`/?token=${x}`, `/tasks/${x}`, `/${x}`, `/tasks?tag.a=${x}`, `/v1/tasks?token=${x}`, `/v1/tasks/${x}`, `/v1/session?code=${x}`]);
  for (const path of paths) {
    const answer = await page.goto(server.url + path);
    assert.equal(answer.status(), 400, path);
    const problem = await answer.json();
    assert.equal(problem.type, "urn:intact:problem:token-in-address", path);
    assert.ok(!JSON.stringify(problem).includes(token.slice(7)), "the answer does not repeat it");
  }
  // In the fragment it is not sent at all.
  await page.goto(`${server.url}/signin#token=${token}`);
  await page.getByLabel("Token").waitFor();
  assert.ok(!log().includes(token.slice(7)), "the log has it");
  assert.ok(!(await page.content()).includes(token.slice(7)));
  assert.equal((await fetch(`${server.url}/v1/tasks`, { headers: { Authorization: `Bearer ${token}` } })).status, 200, "where it belongs it is good");
  untouched();
});

test("filters that are too large, too many or no filters are said so, and do not reach the store", async (t) => {
  const page = await open(t, "/", { expected: [/status of 4(14|22|31)/] });
  const CASES = [
    [`tag.a=${"x".repeat(7000)}`, /No task matches/],
    [Array.from({ length: 200 }, (_, n) => `tag.k${n}=v`).join("&"), /tags|tag\./],
    [`ids=${Array.from({ length: 400 }, (_, n) => `t-${n}`).join(",")}`, /expected 1 to 100 ids/i],
    ["version=0", /Version is "0", expected a number/],
    ["submitted_after=yesterday", /expected a time such as/i],
    ["parent=%3Cscript%3E", /expected the id of a task/i],
    ["state=nonsense&workflow=rests", /victim/], // what is not known is said, and not obeyed
  ];
  for (const [query, text] of CASES) {
    await page.goto(`${server.url}/tasks?${query}`);
    await settled(page);
    await page.locator(".task-table").getByText(text).first().waitFor();
  }
  const answer = await page.goto(`${server.url}/tasks?tag.a=${"x".repeat(20_000)}`);
  assert.equal(answer.status(), 414);
  await page.goto(`${server.url}/tasks`);
  await page.getByRole("row").filter({ hasText: "victim" }).waitFor();
  untouched();
});

test("an operation that is too large, or has too many filters, is refused, and the store does not have it", async (t) => {
  const page = await open(t, "/tasks", { expected: [/status of 4(13|22)/] });
  await heading(page, "Tasks");
  const start = (filter) => page.evaluate(async (given) => {
    const answer = await fetch("/v1/operations", {
      method: "POST", headers: { "Content-Type": "application/json", "Intact-Console": "1" }, body: JSON.stringify({ verb: "pause", arguments: {}, reason: "x", filter: given }),
    });
    return [answer.status, (await answer.json()).type];
  }, filter);
  assert.deepEqual((await start({ workflow: "rests", tag: { a: "x".repeat(5 << 20) } }))[0], 413);
  const many = Object.fromEntries(Array.from({ length: 200 }, (_, n) => [`k${n}`, "v"]));
  assert.deepEqual(await start({ workflow: "rests", tag: many }), [422, "urn:intact:problem:bad-operation"]);
  const ids = ["victim", ...Array.from({ length: 1000 }, (_, n) => `t-${n}`)];
  assert.deepEqual(await start({ ids }), [422, "urn:intact:problem:bad-operation"]);
  untouched();
});

test("a list whose filters are not all known offers no operation on all", async (t) => {
  const page = await open(t, "/tasks?state=eror&color=red&workflow=rests");
  const all = page.getByRole("button", { name: "Operate on all…" });
  const unknown = page.getByText("This address has filters that are not known: state=eror, color=red.", { exact: false });
  await page.getByRole("row").filter({ hasText: "victim" }).waitFor();
  await unknown.waitFor();
  assert.equal(await all.count(), 0);
  // Another filter does not hide them.
  await page.getByRole("button", { name: "pending", exact: true }).click();
  await page.waitForFunction(() => new URLSearchParams(location.search).getAll("state").join() === "pending,eror");
  await page.getByRole("row").filter({ hasText: "victim" }).waitFor();
  assert.equal(await all.count(), 0);
  await page.getByRole("button", { name: "Remove them" }).click();
  await all.waitFor();
  assert.equal(await unknown.count(), 0);
  assert.equal(new URL(page.url()).search, "?state=pending&workflow=rests");
  untouched();
});

// A stream of events that stays open, or the status of the refusal.
function stream(cookie) {
  return new Promise((done, failed) => {
    const asked = request(`${server.url}/v1/events`, { headers: { Cookie: cookie }, agent: false });
    asked.on("response", (answer) => {
      answer.resume();
      done({ status: answer.statusCode, again: answer.headers["retry-after"], end: () => asked.destroy() });
    });
    asked.on("error", failed);
    asked.end();
  });
}

test("streams by the thousand from one session: a bound, a clear answer, and others go on", async (t) => {
  const page = await open(t, "/tasks", { expected: [/status of 429/] });
  await page.getByText("Live", { exact: true }).waitFor();
  const greedy = await browser.newContext();
  t.after(() => greedy.close());
  await signIn(greedy, server, server.token);
  const [{ name, value }] = await greedy.cookies();
  const cookie = `${name}=${value}`;
  const streams = [];
  for (let n = 0; n < 1000; n += 50) streams.push(...(await Promise.all(Array.from({ length: 50 }, () => stream(cookie)))));
  const statuses = (status) => streams.filter((s) => s.status === status);
  assert.deepEqual([statuses(200).length, statuses(429).length], [64, 936]);
  assert.ok(statuses(429).every((s) => Number(s.again) > 0));
  // Another session is not disturbed: its page is live, and told of what happens.
  const other = await open(t, "/tasks");
  await other.getByText("Live", { exact: true }).waitFor();
  await server.call("POST", "/v1/tasks", { workflow: "rests", id: "beside" });
  for (const p of [page, other]) await p.getByRole("button", { name: "1 new task: show" }).waitFor();
  // A page of the greedy session itself gets no stream, and is read instead.
  const poor = await greedy.newPage();
  await poor.goto(`${server.url}/tasks`);
  await poor.getByRole("row").filter({ hasText: "beside" }).waitFor();
  await poor.getByText("Current", { exact: true }).waitFor();
  for (const s of streams) s.end();
  await poor.getByText("Live", { exact: true }).waitFor();
  untouched();
});
