// The console in Chromium, opened as a person; what the browser complains of fails the test. And what tests in the browser
// have in common: servers over one store, the store itself, an agent that is led by hand.
import assert from "node:assert/strict";
import test from "node:test";
import { execFileSync } from "node:child_process";
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";

const { BROWSER_HOME } = process.env;
const from = createRequire(`${BROWSER_HOME}/`);
const { chromium } = from("playwright-core");
const axe = readFileSync(from.resolve("axe-core/axe.min.js"), "utf8");

export const PATIENCE = Number(process.env.PATIENCE_MS ?? 300_000); // only a failing test waits so long
export const PHONE = { width: 390, height: 844 };

export const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

export function startBrowser() {
  const args = ["--no-sandbox", "--disable-gpu"]; // whoever tests may be root, in a container
  return chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium-headless-shell", args });
}

export async function signIn(context, server, token) {
  const answer = await context.request.post(`${server.url}/v1/session`, { headers: { Authorization: `Bearer ${token}` } });
  assert.equal(answer.status(), 201);
}

// A browser of a person who is signed in, at a page. `people` by name: {token}. What it complains of fails the test, but for
// what is `expected`.
export async function openPage(t, browser, server, people, path, { who = "admin", expected = [], isSignedIn = true, ...options } = {}) {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, reducedMotion: "reduce", ...options });
  if (isSignedIn) await signIn(context, server, people[who].token);
  context.setDefaultTimeout(PATIENCE);
  if (options.bypassCSP) await context.addInitScript(axe); // sent once: it is large
  const complaints = [];
  // What the policy keeps from running is told by an event, too: nothing of it may stay unseen.
  await context.addInitScript(() => addEventListener("securitypolicyviolation", (e) => console.error(`policy: ${e.violatedDirective} ${e.blockedURI} ${e.sample}`)));
  const watch = (page) => {
    page.on("console", (said) => {
      if (["error", "warning"].includes(said.type()) && !expected.some((p) => p.test(said.text()))) complaints.push(said.text());
    });
    page.on("pageerror", (error) => complaints.push(error.stack));
    page.on("dialog", (dialog) => { complaints.push(`dialog: ${dialog.message()}`); void dialog.dismiss(); });
  };
  context.on("page", watch);
  const page = await context.newPage();
  t.after(async () => {
    await context.close();
    assert.deepEqual(complaints, [], "the browser has nothing to complain of");
  });
  await page.goto(server.url + path);
  return page;
}

export const heading = (page, name) => page.getByRole("heading", { level: 1, name, exact: true }).waitFor();
export const settled = (page) => page.waitForFunction(() => !document.querySelector(".loading"));

// Only what is wrong leaves the page: what is right has a hundred times the size.
export async function axeFinds(page, where, rules = {}) {
  return page.evaluate(async ([on, given]) => {
    const { violations } = await globalThis.axe.run(on, { resultTypes: ["violations"], ...given });
    return violations.map((v) => `${v.id}: ${v.nodes.slice(0, 3).map((n) => `${n.html.slice(0, 200)} ${n.failureSummary}`).join(" ")}`);
  }, [where ?? "html", rules]);
}

// Tests of all pages, a path and its heading each. What depends on the colours is looked at in both schemes, the rest in
// one. `open` is openPage with all but the page's options. INTACT_AXE=0 leaves them out.
export function axeFindsNothing(what, pages, open) {
  for (const [scheme, rules] of [["light", {}], ["dark", { runOnly: ["color-contrast", "link-in-text-block"] }]]) {
    test(`axe finds nothing on ${what}, ${scheme}`, { skip: process.env.INTACT_AXE === "0" }, async (t) => {
      const page = await open(t, { colorScheme: scheme, bypassCSP: true });
      const front = new URL(page.url()).origin;
      for (const [path, name] of Object.entries(pages)) {
        await page.goto(front + path);
        await heading(page, name);
        await settled(page);
        assert.deepEqual(await axeFinds(page, null, rules), [], path);
      }
    });
  }
}

// Waits until `is` holds for what `read` finds, and returns that.
export async function until(read, is, what) {
  const end = Date.now() + PATIENCE;
  for (;;) {
    const found = await read();
    if (is(found)) return found;
    assert.ok(Date.now() < end, `${what} is ${JSON.stringify(found).slice(0, 2000)}`);
    await sleep(50);
  }
}

// The rows that SQL finds in the store of a server with the data folder `data`.
export function sql(data, statement) {
  const text = execFileSync("sqlite3", ["-readonly", "-json", "-cmd", ".timeout 60000", `${data}/intact.db`, statement], { encoding: "utf8" });
  return text.trim() === "" ? [] : JSON.parse(text);
}

// Changes the store beside its server: times are moved, instead of waited for.
export function sqlWrite(data, statement) {
  execFileSync("sqlite3", ["-cmd", ".timeout 60000", `${data}/intact.db`, statement]);
}

// An agent whose requests are taken and answered one by one, as tests want it.
export function handAgent(call, agent) {
  const holding = new Set();
  const work = (body) => call("POST", `/v1/agents/${agent}/work`, { instance: `${agent}-1`, holding: [...holding], ...body });
  return {
    // The next request, when it comes.
    async take() {
      for (;;) {
        const { requests } = await work({ max: 1, wait: "30s" });
        const [request] = requests.filter((r) => !holding.has(r.token));
        if (!request) continue;
        holding.add(request.token);
        return request;
      }
    },
    async answer(request, result) {
      holding.delete(request.token);
      const { outcomes } = await work({ max: 0, results: [{ token: request.token, ...result }] });
      assert.equal(outcomes[0].status, "accepted");
    },
    // Takes the next request, which must be the one with this key, and answers it.
    async do(key, result) {
      const request = await this.take();
      assert.equal(request.idempotency_key, key);
      await this.answer(request, result);
      return request;
    },
  };
}
