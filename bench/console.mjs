// How fast the console is in Chromium, before a real server: when the first content is seen, and how long the page is busy at
// a time while it is drawn, scrolled, and while the task that it shows goes on. Called by `./run bench console`.
// Usage: node console.mjs INTACT FOLDER [CASE...]
//   content   milliseconds from the navigation to the first row, step or item: the middle and the worst of ROUNDS
//   longest   milliseconds of the longest task of the main thread: by the clock, and of processor time, which other programs
//             do not disturb
//   long      tasks over 50 ms, by the long-tasks API
//   elements  in the page
import { createRequire } from "node:module";
import { startAgent, startServer, WORKFLOWS } from "../tests/console/world.mjs";

const from = createRequire(`${process.env.BROWSER_HOME}/`);
const { chromium } = from("playwright-core");
const ROUNDS = Number(process.env.ROUNDS ?? 5);
const ITEMS = 10_000;
const [intact, folder, ...wanted] = process.argv.slice(2);
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

// In the page, before anything else runs.
const watch = (selector) => {
  globalThis.seen = { content: null, long: [] };
  new PerformanceObserver((list) => globalThis.seen.long.push(...list.getEntries().map((e) => e.duration))).observe({ type: "longtask", buffered: true });
  const look = () => {
    if (document.querySelector(selector)) globalThis.seen.content = performance.now();
    else requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
};

const wheel = (selector, x, y) => async (page) => {
  await page.locator(selector).first().hover();
  for (let n = 0; n < 60; n += 1) {
    await page.mouse.wheel(x, y);
    await sleep(16);
  }
};

const CASES = [
  { name: "overview, nothing cached", path: "/", content: ".tile", isCold: true },
  { name: "overview", path: "/", content: ".tile" },
  { name: "tasks", path: "/tasks", content: ".task-rows .task-row", act: wheel(".task-rows", 0, 900) },
  { name: "1000 steps: graph", path: "/tasks/wide-1", content: ".node", act: wheel(".graph-scroll", 400, 0) },
  { name: "1000 steps: timeline", path: "/tasks/wide-1", content: ".timeline-row", act: wheel(".timeline-rows", 0, 400) },
  { name: "1000 steps at work", path: "/tasks/wide-slow", content: ".node", act: () => sleep(6000) },
  { name: "10 000 items", path: "/tasks/packing-big?step=pack", content: ".cell", act: wheel(".item-grid", 0, 300) },
];

async function fill(call) {
  for (const name of ["wide", "packing", "sync"]) await call("PUT", `/v1/workflows/${name}`, WORKFLOWS[name]);
  const slow = { ...WORKFLOWS.wide, workflow: "wide-slow", steps: WORKFLOWS.wide.steps.map((s) => ({ ...s, agent: "slow" })) };
  await call("PUT", "/v1/workflows/wide-slow", slow);
  const submit = (workflow, id, input) => call("POST", "/v1/tasks", { workflow, id, input });
  await submit("packing", "packing-big", { lines: Array.from({ length: ITEMS }, (_, n) => ({ sku: `pen-${n}`, ...(n % 997 === 5 ? { bad: true } : {}) })) });
  await submit("wide", "wide-1", {});
  for (let page = 0; page < 5; page += 1)
    await call("POST", "/v1/tasks", Array.from({ length: 1000 }, (_, n) => JSON.stringify({ workflow: "wide-slow", id: `held-${page}-${n}`, input: {}, paused: true, tags: { shop: "rome" } })).join("\n"), "application/x-ndjson");
  for (const id of ["wide-1", "packing-big"]) {
    for (;;) {
      const task = await call("GET", `/v1/tasks/${id}`);
      if (["processed", "error"].includes(task.state)) break;
      await sleep(500);
    }
  }
  await submit("wide-slow", "wide-slow", {});
}

// Tasks of the main thread of the page, from a trace: [milliseconds by the clock, of the processor].
function tasksOf(trace) {
  const { traceEvents } = JSON.parse(trace.toString());
  const main = new Set(traceEvents.filter((e) => e.name === "thread_name" && e.args.name === "CrRendererMain").map((e) => `${e.pid} ${e.tid}`));
  return traceEvents.filter((e) => e.ph === "X" && e.name.endsWith("RunTask") && main.has(`${e.pid} ${e.tid}`)).map((e) => [e.dur / 1000, (e.tdur ?? 0) / 1000]);
}

async function measure(browser, server, { path, content, isCold, act }) {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
  await context.request.post(`${server.url}/v1/session`, { headers: { Authorization: `Bearer ${server.token}` } });
  if (!isCold) {
    const first = await context.newPage();
    await first.goto(server.url + path);
    await first.locator(content).first().waitFor();
    await first.close();
  }
  const page = await context.newPage();
  await page.addInitScript(watch, content);
  await browser.startTracing(page, { categories: ["toplevel", "__metadata"] });
  await page.goto(server.url + path);
  await page.waitForFunction(() => globalThis.seen.content !== null);
  await sleep(1000);
  const drawn = tasksOf(await browser.stopTracing());
  const loading = (await page.evaluate(() => globalThis.seen.long.splice(0))).length;
  await browser.startTracing(page, { categories: ["toplevel", "__metadata"] });
  if (act) await act(page);
  await sleep(300);
  const acted = tasksOf(await browser.stopTracing());
  const found = await page.evaluate(() => ({ content: globalThis.seen.content, long: globalThis.seen.long.length, elements: document.querySelectorAll("*").length }));
  await context.close();
  return { content: found.content, drawn, acted, loading, long: found.long, elements: found.elements };
}

const middle = (list) => [...list].sort((a, b) => a - b)[Math.floor(list.length / 2)];
const longest = (tasks, n) => Math.max(0, ...tasks.map((t) => t[n]));
const text = (list) => `${Math.round(middle(list))}/${Math.round(Math.max(...list))}`;

const server = await startServer(intact, folder);
const agents = [["stock", 5], ["bank", 5], ["carrier", 5]].map(([name, slow]) => startAgent(server.call, name, { places: 200, answer: async (r) => { await sleep(slow); return r.input?.bad ? { error: { code: "sold-out", retryable: false } } : { output: { id: r.task } }; } }));
agents.push(startAgent(server.call, "slow", { places: 20, answer: async () => { await sleep(400); return { output: { ok: true } }; } }));
await fill(server.call);
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu"] });
console.log(`middle/worst of ${ROUNDS}, ms        content  drawing: longest (cpu) long   acting: longest (cpu) long  elements`);
for (const one of CASES.filter((c) => wanted.length === 0 || wanted.some((w) => c.name.includes(w)))) {
  const rounds = [];
  for (let n = 0; n < ROUNDS; n += 1) rounds.push(await measure(browser, server, one));
  const of = (read) => rounds.map(read);
  console.log(`${one.name.padEnd(26)} ${text(of((r) => r.content)).padStart(9)} ${text(of((r) => longest(r.drawn, 0))).padStart(16)} (${text(of((r) => longest(r.drawn, 1)))}) ${text(of((r) => r.loading)).padStart(5)}`
    + ` ${text(of((r) => longest(r.acted, 0))).padStart(14)} (${text(of((r) => longest(r.acted, 1)))}) ${text(of((r) => r.long)).padStart(5)} ${String(Math.max(...of((r) => r.elements))).padStart(9)}`);
}
await browser.close();
await Promise.race([Promise.all(agents.map((a) => a.stop())), sleep(3000)]);
await server.stop();
process.exit(0);
