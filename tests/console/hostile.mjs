// Text of others that is markup, scripts, or characters that hide and reorder; values of 1 MB, tasks of 1 000 steps and of
// 10 000 items: on every page nothing of it runs, all of it is text, and no page holds more of it than one can look at.
import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import { heading, openPage, settled, startBrowser, until } from "./kit.mjs";
import { startPlaces } from "./places_world.mjs";

const { INTACT, WORK } = process.env;
const NASTY = '"><img src=x onerror="globalThis.ran=1;alert(1)"><script>globalThis.ran=1</script></textarea></style>javascript:globalThis.ran=1 '
  + "\u202Egnp.exe\u202C \u2066iso\u2069 \u0007\u001B[31m \u200B\uFEFF {{constructor.constructor('globalThis.ran=1')()}} ${globalThis.ran=1} &lt;b&gt; \uD83D\uDE00";
const LITERAL = NASTY.replaceAll("${", "$ {"); // where a definition would take it for an expression
const escaped = (text) => JSON.stringify(text.replaceAll(/[\uD800-\uDFFF]/g, "")).replaceAll(/[^ -~]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
const MB = 1_000_000;
const LIMITS = { nodes: 15_000, text: 300_000 };

let browser;
let server;
let people;

before(async () => {
  browser = await startBrowser();
  server = await startPlaces(INTACT, WORK, 20);
  people = { admin: { token: server.token }, ann: { token: server.tokens.ann } };
  await fillNasty();
});

after(async () => {
  await browser?.close();
  await server?.stop();
});

const call = (...args) => server.call(...args);
const get = (path) => call("GET", path);

// What an agent, submitters, operators and queues can write, wherever they can write text.
async function fillNasty() {
  const put = (definition) => call("PUT", `/v1/workflows/${definition.workflow}`, definition);
  await put({
    intact: 1, workflow: "evil", on_failure: "hold", lock: { key: "${ .input.key }", max: 1 },
    steps: [
      { name: "do", agent: "evil", action: "do", input: { note: "${ .input.note }", [LITERAL]: LITERAL }, undo: "none", heartbeat: "10m", complete_by: "20m" },
      { name: "then", agent: "evil", action: "then", undo: "none" },
    ],
    output: { note: "${ .steps.do.output }" },
  });
  await call("PUT", "/v1/workflows/evil-text", `# ${LITERAL.replaceAll(/[\u0000-\u001F\u007F-\u009F\u2028\u2029\uFEFF\uD800-\uDFFF]/g, "")}\nintact: 1\nworkflow: evil-text\nsteps:\n  - {name: do, agent: nobody, action: do, undo: none, input: ${escaped(LITERAL)}}\n`, "application/yaml");
  await put({ intact: 1, workflow: "evil-ask", steps: [{ name: "allow", approve: { by: ["finance"], question: "Pay ${ .input }?", people: 2 }, complete_by: "3d" }] });
  await put({ intact: 1, workflow: "evil-items", steps: [{ name: "pack", for_each: "${ .input }", max_items: 10000, concurrency: 50, on_item_failure: "continue", agent: "stock", action: "take", input: { sku: "${ .item }", bad: true }, undo: "none", complete_by: "1h" }] });
  await call("PUT", "/v1/schedules/evil", { intact: 1, schedule: "evil", workflow: "evil-text", cron: "0 3 * * *", input: { [LITERAL]: LITERAL } });
  const submit = (workflow, id, input, more = {}) => call("POST", "/v1/tasks", { workflow, id, input, ...more });
  const tags = { note: NASTY.slice(0, 200) };
  await submit("evil", "evil-1", { key: NASTY.slice(0, 100), note: NASTY, [NASTY]: NASTY }, { tags });
  await submit("evil", "evil-2", { key: NASTY.slice(0, 100), note: 1 }, { tags });
  await submit("evil", "evil-run", { key: "2", note: "x".repeat(MB) }, { tags });
  await submit("evil-ask", "evil-ask-1", NASTY);
  await submit("wide", "evil-wide", { note: NASTY });
  await submit("evil-items", "evil-items-1", Array.from({ length: 10_000 }, (_, n) => `${n} ${NASTY.slice(0, 60)}`));
  // The agent: two tasks at work, of which one beats and goes on, the other fails.
  const instance = "evil-1";
  const work = (body) => call("POST", "/v1/agents/evil/work", { instance, holding: [], ...body });
  const taken = [];
  while (taken.length < 2) taken.push(...(await work({ max: 2 - taken.length, wait: "30s", holding: taken.map((r) => r.token) })).requests);
  const [fails] = taken.filter((r) => r.task === "evil-1");
  const [runs] = taken.filter((r) => r.task === "evil-run");
  await call("POST", "/v1/agents/evil/heartbeats", { instance, beats: [{ token: runs.token, progress: { [NASTY]: NASTY }, message: NASTY.slice(0, 200) }] });
  await work({ max: 0, holding: [runs.token], results: [{ token: fails.token, error: { code: "evil", message: NASTY, retryable: false } }] });
  await until(() => get("/v1/tasks/evil-1"), (x) => x.state === "error", "evil-1");
  await submit("evil", "evil-big", { key: "3", note: "y".repeat(MB) });
  const [big] = (await work({ max: 1, wait: "30s", holding: [runs.token] })).requests;
  await work({ max: 0, holding: [runs.token], results: [{ token: big.token, output: { long: `${NASTY}${"z".repeat(MB)}`, deep: JSON.parse(`${"[".repeat(40)}${"]".repeat(40)}`), many: Array.from({ length: 20_000 }, (_, n) => n) } }] });
  // People: reasons, comments, names.
  for (const verb of ["pause", "resume"]) await call("POST", `/v1/tasks/evil-ask-1/${verb}`, { reason: NASTY.slice(0, 500) });
  await call("POST", "/v1/tasks/evil-1/correct", { step: "do", input: { note: NASTY }, reason: NASTY.slice(0, 500) });
  await call("POST", "/v1/operations", { verb: "pause", filter: { tag: tags }, arguments: {}, reason: NASTY.slice(0, 500) });
  await call("POST", "/v1/agents/evil/breaker", { state: "open", reason: NASTY.slice(0, 100) });
  const approved = await fetch(`${server.url}/v1/approvals/evil-ask-1/allow/approve`, { method: "POST", headers: { Authorization: `Bearer ${server.tokens.ann}`, "Content-Type": "application/json" }, body: JSON.stringify({ comment: NASTY }) });
  assert.equal(approved.status, 200, await approved.text());
  await call("POST", "/v1/submissions/refused", { source: "amqp:evil", reason: NASTY.slice(0, 400), message: NASTY + "w".repeat(100_000), message_id: NASTY.slice(0, 100) });
  await call("POST", "/v1/submissions/refused", { source: "amqp:evil", reason: "x", submission: { workflow: NASTY.slice(0, 60), id: NASTY.slice(0, 60), input: NASTY, tags: { a: NASTY } } });
  await call("POST", "/v1/tokens", { name: "evil-token", roles: ["read"], person: "x+script@example.org" });
  await until(() => get("/v1/tasks/evil-items-1"), (x) => x.state === "processed" || x.steps[0].state === "completed", "evil-items-1");
  await until(() => get("/v1/tasks/evil-wide"), (x) => x.state === "processed", "evil-wide");
}

const PAGES = {
  "/": "Overview", "/tasks": "Tasks", "/tasks?workflow=evil": "Tasks", "/tasks/evil-1": "evil-1", "/tasks/evil-1?step=do": "evil-1", "/tasks/evil-2": "evil-2",
  "/tasks/evil-run": "evil-run", "/tasks/evil-big?step=do": "evil-big", "/tasks/evil-ask-1": "evil-ask-1", "/tasks/evil-wide": "evil-wide", "/tasks/evil-items-1?step=pack": "evil-items-1",
  "/approvals": "Approvals", "/workflows": "Workflows", "/workflows/evil": "evil", "/workflows/evil-text": "evil-text", "/workflows/evil-text?tab=versions": "evil-text",
  "/workflows/evil-text/edit": "Edit evil-text", "/workflows/evil-items": "evil-items", "/workflows/wide": "wide", "/schedules": "Schedules", "/schedules/evil": "evil", "/schedules/evil/edit": "Edit evil",
  "/operations": "Operations", "/alerts": "Alerts", "/agents": "Agents", "/agents?agent=evil": "Agents", "/nodes": "Nodes", "/messages": "Messages",
  "/submissions": "Refused submissions", "/access": "Access", "/audit": "Audit",
};

// Nothing ran, nothing became markup, and what would reorder or hide text is shown by name: on the page, in the editor,
// which is in a shadow root, and in texts that are to be edited. The editor itself puts images without a source beside the
// names of characters.
async function harmless(page, where) {
  const found = await page.evaluate(() => {
    const hosts = [...document.querySelectorAll("*")].filter((e) => e.shadowRoot);
    const all = (selector) => [document, ...hosts.map((e) => e.shadowRoot)].flatMap((root) => [...root.querySelectorAll(selector)]);
    const shown = [document.body, ...hosts.flatMap((e) => [...e.shadowRoot.children])].map((e) => e.innerText ?? "");
    const text = [...shown, ...all("textarea").map((e) => e.value)].join("\n");
    const bad = /[\u202A-\u202E\u2066-\u2069\u0007\u001B\u0000]/.exec(text);
    return {
      ran: globalThis.ran,
      markup: all("img:is([src], :not(.cm-widgetBuffer)), iframe, object, embed, base, meta[http-equiv], script:not([src^='/assets/']), [onerror], [onload], a[href^='javascript:' i]").map((e) => e.outerHTML.slice(0, 200)),
      hidden: bad?.[0].codePointAt(0).toString(16),
      near: bad && text.slice(Math.max(0, bad.index - 60), bad.index),
      nodes: all("*").length,
      text: text.length,
    };
  });
  assert.deepEqual([found.ran, found.markup, found.hidden], [undefined, [], undefined], `${where}: ${found.near}`);
  assert.ok(found.nodes < LIMITS.nodes && found.text < LIMITS.text, `${where} has ${found.nodes} elements and ${found.text} characters`);
}

const MISSING = [/status of 404/];

test("no page runs or obeys what others wrote, and none is flooded by it", async (t) => {
  const page = await openPage(t, browser, server, people, "/", { expected: MISSING });
  for (const [path, name] of Object.entries(PAGES)) {
    await page.goto(server.url + path);
    await heading(page, name);
    await settled(page);
    await harmless(page, path);
  }
});

// Opens all that is folded, then makes each long text and list longer, once. Returns how often it clicked.
async function unfold(part) {
  const folds = part.locator(".json-fold[aria-expanded=false], .folded > button[aria-expanded=false]");
  const long = part.locator(".json-more");
  let clicks = 0;
  for (; (await folds.count()) > 0; clicks += 1) {
    assert.ok(clicks < 1000, "what was unfolded is folded again");
    await folds.first().click();
  }
  for (let n = (await long.count()) - 1; n >= 0; n -= 1, clicks += 1) await long.nth(n).click();
  return clicks;
}

// What each task has that is to come into view.
const LONG = { "evil-1": /<img src=x onerror/, "evil-big": /z{5000}/, "evil-run": /x{5000}/ };

test("nor do the records of a task, opened one by one and unfolded", async (t) => {
  const page = await openPage(t, browser, server, people, "/", { expected: MISSING });
  const records = page.locator(".records");
  for (const [id, long] of Object.entries(LONG)) {
    await page.goto(`${server.url}/tasks/${id}?step=do`);
    await heading(page, id);
    await page.locator(".step-panel .json").first().waitFor();
    await unfold(page.locator(".step-panel"));
    assert.match(await page.locator(".step-panel").innerText(), long, id);
    const tabs = page.getByRole("tablist", { name: "Records" }).getByRole("tab");
    for (let n = 0; n < (await tabs.count()); n += 1) {
      await tabs.nth(n).click();
      await settled(page);
      const clicks = await unfold(records);
      await harmless(page, `${id}, record ${n}`);
      if ((await tabs.nth(n).innerText()) !== "JSON") continue;
      assert.ok(clicks > 0, `nothing was unfolded in the record of ${id}`);
      assert.match(await records.innerText(), long, `the record of ${id}`);
    }
  }
});

test("nor does one of ten thousand items, at the end of their grid", async (t) => {
  const page = await openPage(t, browser, server, people, "/tasks/evil-items-1?step=pack");
  await page.locator(".cell").nth(200).waitFor({ state: "attached" });
  await page.locator(".item-grid").evaluate((e) => { e.scrollTop = e.scrollHeight; });
  await page.getByRole("button", { name: "pack.9999: failed", exact: true }).click();
  await page.locator(".item-card").getByText('no 9999 "><img src=x', { exact: false }).first().waitFor();
  await unfold(page.locator(".item-card"));
  await harmless(page, "an item");
});

test("the editor shows characters that hide others by name, and stores them as they are", async (t) => {
  const page = await openPage(t, browser, server, people, "/workflows/evil-text/edit", { expected: MISSING });
  const line = page.locator(".cm-line").first();
  for (const name of ["U+202E", "U+2066", "U+200B"]) await line.locator(".cm-specialChar").getByText(name, { exact: true }).first().waitFor();
  await page.getByText("No changes", { exact: true }).waitFor();
  await line.click();
  await page.keyboard.press("Control+Home");
  await page.keyboard.type("# by hand\n");
  await page.getByRole("button", { name: "Store…" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Store", exact: true }).click();
  await heading(page, "evil-text");
  const { text: before } = await get("/v1/workflows/evil-text/versions/1");
  assert.ok(before.includes("\u202E"));
  assert.equal((await get("/v1/workflows/evil-text")).text, `# by hand\n${before}`);
});

test("`why` and its forms, with what others wrote in them", async (t) => {
  const page = await openPage(t, browser, server, people, "/tasks/evil-1?step=do");
  await page.locator(".why-summary").getByText("evil", { exact: false }).first().waitFor();
  await page.locator(".why").getByText("<img src=x", { exact: false }).first().waitFor();
  for (const label of ["Retry", "Correct input", "Supply output", "Skip step"]) {
    await page.locator(".step-panel").getByRole("button", { name: `${label}…`, exact: true }).first().click();
    const dialog = page.getByRole("dialog");
    if (label === "Correct input") {
      const text = await dialog.getByLabel("Input (JSON)").inputValue();
      assert.ok(text.includes("\\u202egnp.exe"), text);
      assert.deepEqual(JSON.parse(text), { note: NASTY }, "it means the same");
    }
    await dialog.getByLabel("Reason").fill(NASTY);
    await dialog.getByText(/The server would|Not known beforehand/).waitFor();
    await harmless(page, label);
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "detached" });
  }
});

test("an operation on many: the filter, the dry run, its page", async (t) => {
  const page = await openPage(t, browser, server, people, "/tasks?workflow=evil");
  await page.locator(".task-rows a.tag").first().click();
  await page.waitForFunction(() => location.search.includes("tag.note"));
  await settled(page);
  await page.getByRole("button", { name: "Operate on all…" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Verb").selectOption("skip");
  await dialog.getByLabel("Step", { exact: true }).fill(NASTY);
  await dialog.getByText(/task matches|tasks match|not|step/).first().waitFor();
  await harmless(page, "the form");
  await page.keyboard.press("Escape");
  await page.goto(`${server.url}/operations`);
  await page.locator("tbody a").first().click();
  await page.locator(".counts").waitFor();
  await harmless(page, "the operation");
});

test("an address made of it", async (t) => {
  const page = await openPage(t, browser, server, people, "/", { expected: [/status of 4\d\d/] });
  const coded = encodeURIComponent(NASTY);
  for (const path of [`/tasks/${coded}`, `/workflows/${coded}`, `/schedules/${coded}`, `/operations/${coded}`, `/tasks?workflow=${coded}&tag.x=${coded}`, `/tasks?state=${coded}&${coded}=1`, `/agents?agent=${coded}`,
    `/messages?target=${coded}`, `/audit?task=${coded}`, `/tasks/evil-1?step=${coded}`, `/${coded}`, `/signin#code=${coded}`, "/tasks/%E0%A4%A", "/tasks/..%2f..%2fv1%2ftokens"]) {
    const answer = await page.goto(server.url + path);
    if (answer && answer.status() >= 400) continue; // the server itself refused it
    await page.locator("h1, .empty").first().waitFor();
    await settled(page);
    await harmless(page, path);
  }
});
