// Makes the pictures of the console in docs/img/console: each page in both colour schemes, some on a phone and on a large
// screen. tools/screenshots calls it. Usage: node pictures.mjs OUT INTACT FOLDER [OPTION...]
//   --only NAME,...   these pictures
//   --schemes, --widths LIST   in these schemes (light,dark), in these widths, whole pages
//   --world FILE      of an installation that pictures_world.mjs keeps running; --front URL: its console, by console/dev.mjs
//   --png             in place of WebP, to be looked at
import { spawnSync } from "node:child_process";
import { createRequire } from "node:module";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { startPictures } from "./pictures_world.mjs";

const from = createRequire(`${process.env.BROWSER_HOME}/`);
const { chromium } = from("playwright-core");
const SIZE = { width: 1280, height: 800 };
const PHONE = 390;
const LARGE = 2560;
const TALL = 2400; // pixels at most

const openDialog = (button) => async (page) => {
  await page.getByRole("button", { name: button }).first().click();
  await page.getByRole("dialog").waitFor();
};

// The pages in the order of docs/console.md. `tall`: as much of the page as there is; `also`: these widths besides.
const PICTURES = [
  { name: "overview", path: "/", also: [PHONE, LARGE] },
  { name: "tasks", path: "/tasks", also: [PHONE] },
  { name: "tasks-error", path: "/tasks?state=error&closed=false" },
  { name: "task", path: "/tasks/order-48001" },
  { name: "task-error", path: "/tasks/payout-612", tall: true, also: [PHONE, LARGE] },
  { name: "task-undo", path: "/tasks/order-48001", tall: true },
  { name: "task-running", path: "/tasks/export-tuesday", tall: true },
  { name: "task-items", path: "/tasks/restock-autumn?step=purchase", tall: true },
  { name: "task-children", path: "/tasks/delivery-311?step=parcel", tall: true, act: (page) => page.getByRole("tab", { name: "Children" }).click() },
  { name: "retry", path: "/tasks/payout-612", act: openDialog(/^Correct input of/) },
  { name: "operate", path: "/tasks?state=error&closed=false", act: openDialog("Operate on all…") },
  { name: "approvals", path: "/approvals", also: [PHONE] },
  { name: "workflows", path: "/workflows" },
  { name: "workflow", path: "/workflows/order", tall: true },
  { name: "workflow-versions", path: "/workflows/close-books?tab=versions", tall: true },
  { name: "workflow-edit", path: "/workflows/close-books/edit", act: mistake },
  { name: "schedules", path: "/schedules" },
  { name: "schedule", path: "/schedules/close-books-nightly", tall: true },
  { name: "operations", path: "/operations" },
  { name: "operation", path: operationPath },
  { name: "alerts", path: "/alerts" },
  { name: "agents", path: "/agents", tall: true },
  { name: "nodes", path: "/nodes" },
  { name: "messages", path: "/messages" },
  { name: "submissions", path: "/submissions" },
  { name: "access", path: "/access" },
  { name: "audit", path: "/audit" },
  { name: "signin", path: "/signin", isSignedOut: true },
];

async function mistake(page) {
  await page.locator(".cm-line").filter({ hasText: "complete_by" }).click();
  await page.keyboard.press("End");
  await page.keyboard.type("ours", { delay: 5 });
  await page.getByText("expected a duration").first().waitFor();
}

async function operationPath(world) {
  const answer = await fetch(`${world.url}/v1/operations`, { headers: { Authorization: `Bearer ${world.token}` } });
  const { operations } = await answer.json();
  return `/operations/${(operations.find((o) => o.verb === "retry") ?? operations[0]).id}`;
}

// The page's clock is the server's.
const setClock = (offset) => {
  const Real = Date;
  globalThis.Date = class extends Real {
    constructor(...given) { if (given.length > 0) super(...given); else super(Real.now() + offset); }
    static now() { return Real.now() + offset; }
  };
};

let cookies;

// One browser is signed in, not one for each picture.
async function cookiesOf(browser, world) {
  if (cookies) return cookies;
  const context = await browser.newContext();
  await context.request.post(`${world.url}/v1/session`, { headers: { Authorization: `Bearer ${world.tokens.ann}` } });
  cookies = await context.cookies();
  await context.close();
  return cookies;
}

async function open(browser, world, scheme, width, isSignedOut) {
  const context = await browser.newContext({
    viewport: { ...SIZE, width, ...(width === PHONE ? { height: 844 } : width === LARGE ? { height: 1440 } : {}) }, colorScheme: scheme, reducedMotion: "reduce",
    timezoneId: "Europe/Berlin", locale: "en-GB", ...(width === PHONE ? { deviceScaleFactor: 2 } : {}),
  });
  if (!isSignedOut) await context.addCookies(await cookiesOf(browser, world));
  await context.addInitScript(setClock, world.now() - Date.now());
  return context;
}

async function shoot(context, world, { path, act, tall }, isWhole) {
  const page = await context.newPage();
  await page.goto((world.front ?? world.url) + (typeof path === "string" ? path : await path(world)));
  await page.locator("h1").first().waitFor();
  await page.waitForFunction(() => !document.querySelector(".loading") && document.fonts.status === "loaded");
  await page.waitForTimeout(900); // charts and graphs are loaded by then
  if (act) await act(page);
  await page.waitForTimeout(700);
  const height = await page.evaluate(() => document.documentElement.scrollHeight);
  const { width, height: seen } = page.viewportSize();
  if (tall || isWhole) await page.setViewportSize({ width, height: Math.min(Math.max(height, seen), TALL) });
  await page.waitForTimeout(150);
  const picture = await page.screenshot({ animations: "disabled", caret: "hide" });
  await page.close();
  return picture;
}

// Nearly without loss: text stays sharp, and a picture takes some forty kilobytes.
function toWebp(png) {
  const { stdout, status, error } = spawnSync("cwebp", ["-quiet", "-near_lossless", "60", "-m", "6", "-o", "-", "--", "-"], { input: png, maxBuffer: 1 << 26 });
  if (status !== 0) throw error ?? new Error("cwebp failed: tools/setup screenshots installs it");
  return stdout;
}

async function readWorld(options, intact, folder) {
  if (!options.world) return startPictures(intact, folder);
  const { offset, ...world } = JSON.parse(readFileSync(options.world, "utf8"));
  return { ...world, now: () => Date.now() + offset, stop: () => {} };
}

async function main() {
  const list = { type: "string" };
  const { values: options, positionals: [out, intact, folder] } = parseArgs({
    allowPositionals: true, options: { only: list, schemes: list, widths: list, world: list, front: list, png: { type: "boolean" } },
  });
  mkdirSync(out, { recursive: true });
  const world = { ...(await readWorld(options, intact, folder)), ...(options.front ? { front: options.front } : {}) };
  const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu", "--hide-scrollbars"] });
  try {
    await shootAll(browser, world, out, options);
  } finally {
    await browser.close();
    await world.stop();
  }
}

async function shootAll(browser, world, out, options) {
  let size = 0;
  for (const picture of PICTURES.filter((p) => !options.only || options.only.split(",").includes(p.name))) {
    for (const width of options.widths ? options.widths.split(",").map(Number) : [SIZE.width, ...(picture.also ?? [])]) {
      for (const scheme of (options.schemes ?? "light,dark").split(",")) {
        const context = await open(browser, world, scheme, width, picture.isSignedOut);
        const png = await shoot(context, world, picture, Boolean(options.widths));
        const name = `${picture.name}${width === SIZE.width ? "" : `-${width}`}-${scheme}`;
        const content = options.png ? png : toWebp(png);
        writeFileSync(`${out}/${name}.${options.png ? "png" : "webp"}`, content);
        size += content.length;
        await context.close();
      }
    }
  }
  console.log(`${out}: ${Math.round(size / 1024)} KiB`);
}

await main();
process.exit(0);
