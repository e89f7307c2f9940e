// The console in Chromium, opened as a person; what the browser complains of fails the test.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";

const { BROWSER_HOME } = process.env;
const from = createRequire(`${BROWSER_HOME}/`);
const { chromium } = from("playwright-core");
const axe = readFileSync(from.resolve("axe-core/axe.min.js"), "utf8");

export const PATIENCE = Number(process.env.PATIENCE_MS ?? 300_000); // only a failing test waits so long
export const PHONE = { width: 390, height: 844 };

const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

export function startBrowser() {
  const args = ["--no-sandbox", "--disable-gpu"]; // whoever tests may be root, in a container
  return chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args });
}

// A page of a person who is signed in. `people` by name: {token}.
export async function openPage(t, browser, server, people, path, { who = "admin", expected = [], ...options } = {}) {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, reducedMotion: "reduce", ...options });
  const answer = await context.request.post(`${server.url}/v1/session`, { headers: { Authorization: `Bearer ${people[who].token}` } });
  assert.equal(answer.status(), 201);
  context.setDefaultTimeout(PATIENCE);
  const page = await context.newPage();
  const complaints = [];
  page.on("console", (said) => {
    if (["error", "warning"].includes(said.type()) && !expected.some((p) => p.test(said.text()))) complaints.push(said.text());
  });
  page.on("pageerror", (error) => complaints.push(error.stack));
  t.after(async () => {
    await context.close();
    assert.deepEqual(complaints, [], "the browser has nothing to complain of");
  });
  await page.goto(server.url + path);
  return page;
}

export const heading = (page, name) => page.getByRole("heading", { level: 1, name, exact: true }).waitFor();
export const settled = (page) => page.waitForFunction(() => !document.querySelector(".loading"));

export async function axeFinds(page, where, rules = {}) {
  await page.evaluate(axe);
  const { violations } = await page.evaluate(([on, given]) => globalThis.axe.run(on, given), [where ?? "html", rules]);
  return violations.map((v) => `${v.id}: ${v.nodes.slice(0, 3).map((n) => `${n.html.slice(0, 200)} ${n.failureSummary}`).join(" ")}`);
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
