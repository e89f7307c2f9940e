// What Lighthouse says of the main pages of the console, with Debian's Chromium: at least 95 of 100 for performance,
// accessibility and best practices. tools/lighthouse calls it. Usage: node lighthouse.mjs INTACT FOLDER [PATH...]
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { startPlaces } from "./places_world.mjs";

const LEAST = 95;
const KINDS = ["performance", "accessibility", "best-practices"];
const PAGES = ["/", "/tasks", "/tasks/payout-1", "/approvals", "/workflows", "/workflows/order", "/schedules", "/alerts", "/agents", "/messages", "/access", "/audit"];
const from = createRequire(`${process.env.LIGHTHOUSE_HOME}/`);
const load = (name) => import(pathToFileURL(from.resolve(name)));

const [intact, folder, ...wanted] = process.argv.slice(2);
const { default: lighthouse } = await load("lighthouse");
const { launch } = await load("chrome-launcher");
const world = await startPlaces(intact, folder, 60);
const signedIn = await fetch(`${world.url}/v1/session`, { method: "POST", headers: { Authorization: `Bearer ${world.token}` } });
const cookie = signedIn.headers.get("set-cookie").split(";")[0];
const chrome = await launch({ chromePath: process.env.CHROMIUM ?? "/usr/bin/chromium", chromeFlags: ["--headless=new", "--no-sandbox", "--disable-gpu"] });
let bad = 0;
for (const [path, headers] of [...(wanted.length > 0 ? wanted : PAGES).map((p) => [p, { Cookie: cookie }]), ...(wanted.length > 0 ? [] : [["/signin", {}]])]) {
  const { lhr } = await lighthouse(world.url + path, {
    port: chrome.port, onlyCategories: KINDS, extraHeaders: headers, logLevel: "error", formFactor: "desktop",
    screenEmulation: { mobile: false, width: 1350, height: 940, deviceScaleFactor: 1, disabled: false },
    throttling: { rttMs: 40, throughputKbps: 10_240, cpuSlowdownMultiplier: 1, requestLatencyMs: 0, downloadThroughputKbps: 0, uploadThroughputKbps: 0 },
    maxWaitForLoad: 15_000,
  });
  const scores = KINDS.map((k) => Math.round((lhr.categories[k].score ?? 0) * 100));
  const isBad = scores.some((s) => s < LEAST) || lhr.finalDisplayedUrl !== world.url + path;
  console.log(`${path.padEnd(20)} ${KINDS.map((k, n) => `${k} ${scores[n]}`).join(", ")}`);
  for (const kind of KINDS) {
    for (const { id, weight } of lhr.categories[kind].auditRefs) {
      const audit = lhr.audits[id];
      if (audit.score === null || audit.score >= 0.9 || weight === 0) continue;
      console.log(`    ${id} ${audit.score}: ${audit.title}${audit.displayValue ? `, ${audit.displayValue}` : ""}`);
      for (const item of (audit.details?.items ?? []).slice(0, 3)) console.log(`        ${JSON.stringify(item).slice(0, 300)}`);
    }
  }
  if (isBad) bad += 1;
}
chrome.kill();
await world.stop();
console.log(bad > 0 ? `lighthouse: ${bad} pages have less than ${LEAST}` : "lighthouse: every page has at least 95");
process.exit(bad > 0 ? 1 : 0);
