// The page of a link in a real browser: Debian's Chromium, driven by playwright-core. See approval_browser_test.py.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import test, { after, before } from "node:test";

const { MAILS, BROWSER_HOME } = process.env;
const LINKS = JSON.parse(process.env.LINKS);
const from = createRequire(`${BROWSER_HOME}/`);
const { chromium } = from("playwright-core");
const axe = readFileSync(from.resolve("axe-core/axe.min.js"), "utf8");

const PATIENCE = 300_000; // only a failing test waits so long
const ICON = /status of 401/; // where the page forbids nothing, or is none of ours, browsers ask for one
const PHONE = { width: 360, height: 740 };

let browser;

before(async () => {
  const args = ["--no-sandbox", "--disable-gpu"]; // whoever tests may be root, in a container
  browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium-headless-shell", args });
});

after(() => browser?.close());

// What the browser complains of fails the test, but for what is `expected`.
async function person(t, { expected = [], ...options } = {}) {
  const context = await browser.newContext(options);
  context.setDefaultTimeout(PATIENCE);
  const complaints = [];
  const page = await context.newPage();
  page.on("console", (said) => {
    if (["error", "warning"].includes(said.type()) && !expected.some((pattern) => pattern.test(said.text()))) complaints.push(said.text());
  });
  t.after(async () => {
    await context.close();
    assert.deepEqual(complaints, [], "the browser has nothing to complain of");
  });
  return page;
}

// From a page of another site, as people read their mails.
async function follow(page, name) {
  await page.goto(`${MAILS}/?link=${encodeURIComponent(LINKS[name])}`);
  await page.getByRole("link", { name: "Decide" }).click();
}

const comesTo = (page, head) => page.getByRole("heading", { level: 1, name: head, exact: true }).waitFor();

test("a person follows the link of a mail, and approves", async (t) => {
  const page = await person(t);
  await follow(page, "approve");
  await comesTo(page, "Your decision is asked");
  assert.match(await page.locator("blockquote").innerText(), /^Pay 80 to Zoe\?$/);
  const button = page.getByRole("button", { name: "Approve" });
  assert.equal(await button.evaluate((b) => getComputedStyle(b).color), "rgb(255, 255, 255)", "the style is let in");
  await page.getByLabel(/^Comment/).fill("within the budget\nü");
  await button.click();
  await comesTo(page, "You approved");
  await page.reload(); // sends it once more
  await comesTo(page, "You approved");
  await follow(page, "approve");
  await comesTo(page, "You approved this");
  assert.equal(await page.getByRole("button").count(), 0);
});

test("to reject takes a comment", async (t) => {
  const page = await person(t, { expected: [/status of 422/] });
  await follow(page, "reject");
  await page.getByRole("button", { name: "Reject" }).click();
  await comesTo(page, "A comment is required");
  await page.getByRole("link", { name: "Back to the question" }).click();
  await comesTo(page, "Your decision is asked");
  await page.getByLabel(/^Comment/).fill("too much");
  await page.getByRole("button", { name: "Reject" }).click();
  await comesTo(page, "You rejected");
});

test("everybody can use it, also on a phone", async (t) => {
  const page = await person(t, { viewport: PHONE, bypassCSP: true, expected: [ICON] }); // what looks at it is a script
  await follow(page, "long");
  await comesTo(page, "Your decision is asked");
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= document.documentElement.clientWidth), "not too wide");
  await page.evaluate(axe);
  const { violations } = await page.evaluate(async () => ({ violations: (await globalThis.axe.run(document, { resultTypes: ["violations"] })).violations }));
  assert.deepEqual(violations.map((v) => `${v.id}: ${v.nodes.map((n) => n.html).join(" ")}`), [], "what axe finds");
});

test("tags of a question are text", async (t) => {
  const page = await person(t);
  await follow(page, "tags");
  await comesTo(page, "Your decision is asked");
  assert.match(await page.locator("blockquote").innerText(), /<img src=x onerror=alert\(1\)>/);
  assert.equal(await page.locator("img, script").count(), 0);
});

test("a page of another site neither sends the form nor shows the page in a frame", async (t) => {
  const page = await person(t, { expected: [ICON, /status of 403/, /frame-ancestors|X-Frame-Options|Refused to display/i] });
  await page.goto(`${MAILS}/steal?link=${encodeURIComponent(LINKS.steal)}`);
  await page.getByRole("button", { name: "Win" }).click();
  await page.waitForURL(LINKS.steal);
  assert.match(await page.locator("body").innerText(), /urn:intact:problem:foreign/);
  await page.goto(`${MAILS}/frame?link=${encodeURIComponent(LINKS.steal)}`);
  const frame = page.frames().find((f) => f !== page.mainFrame());
  assert.equal(await frame.getByRole("button").count(), 0);
});
