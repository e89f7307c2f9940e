// What the pages of workflows, schedules, approvals, messages, refused submissions and access show: versions, schedules
// with gaps, a receiver that fails, texts of queues that are no tasks, tokens. `node tests/console/places_world.mjs INTACT
// FOLDER` keeps such an installation running for development.
import { createServer } from "node:http";
import { mkdirSync, writeFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { fill, startAgent, startServer, WORKFLOWS } from "./world.mjs";

export const AGENTS = ["stock", "bank", "carrier", "mail", "archive"];

// A receiver of status messages that answers 503, and 410 to those of paths that end in "gone".
export async function startReceiver(port = 0) {
  const server = createServer((from, to) => {
    from.resume();
    to.writeHead(from.url.endsWith("gone") ? 410 : 503).end();
  });
  await new Promise((done) => server.listen(port, "127.0.0.1", done));
  return { url: `http://127.0.0.1:${server.address().port}`, stop: () => { server.closeAllConnections(); server.close(); } };
}

export function configuration(folder, receiver) {
  mkdirSync(folder, { recursive: true });
  writeFileSync(`${folder}/secret`, `whsec_${Buffer.alloc(32, 7).toString("base64")}\n`, { mode: 0o600 });
  const file = `${folder}/config.yaml`;
  writeFileSync(file, `intact_server: 1\nwebhooks:\n  - url: ${receiver}/\n    secret: {file: ${folder}/secret}\n    private: [127.0.0.0/8]\n`);
  return file;
}

const YAML = `# Books are closed each night.
intact: 1
workflow: close-books
complete_by: 1h
steps:
  - name: close
    agent: bank
    action: close
    undo: none
  - {name: report, agent: mail, action: report, undo: none, after: [close]}
  - {name: archive, agent: archive, action: keep, undo: {action: drop}, after: [close], retry: {attempts: 5}}
`;

export const SCHEDULES = {
  nightly: { intact: 1, schedule: "nightly", workflow: "close-books", cron: "30 2 * * *", timezone: "America/New_York", input: { day: "${ .local }" }, spread: "10m" },
  quarterly: { intact: 1, schedule: "quarterly", workflow: "close-books", at: ["2027-01-01T00:00:00Z", "2027-04-01T00:00:00Z"] },
  often: { intact: 1, schedule: "often", workflow: "fax", every: "1s", overlap: "skip", input: { to: "+39 06 1" } },
};

export async function fillPlaces(call, receiver) {
  const put = (name, text) => call("PUT", `/v1/workflows/${name}`, text, "application/yaml");
  await put("close-books", YAML);
  await put("close-books", YAML.replace("complete_by: 1h", "complete_by: 2h").replace("action: close\n", "action: close-all\n").replace(", retry: {attempts: 5}", ""));
  await put("close-books", YAML.replace("complete_by: 1h", "complete_by: 3h").replace("undo: none\n  - {name: report", "undo: none\n    retry: {attempts: 3, wait: 5s}\n  - {name: report"));
  for (const schedule of Object.values(SCHEDULES)) await call("PUT", `/v1/schedules/${schedule.schedule}`, schedule);
  const submit = (workflow, id, input, more = {}) => call("POST", "/v1/tasks", { workflow, id, input, ...more });
  await submit("expense", "expense-high", { amount: "€ 99,000", who: "Mae", cost_centre: "4711", receipts: [{ at: "Rome", sum: 90_000 }, { at: "Oslo", sum: 9000 }] }, { tags: { desk: "south" } });
  for (let n = 1; n <= 3; n += 1) await submit("order", `told-${n}`, { sku: "tea" }, { reply_to: { to: `${receiver}/${n === 3 ? "gone" : "hook"}`, events: "all" } });
  const refused = (source, reason, rest) => call("POST", "/v1/submissions/refused", { source, reason, ...rest });
  await refused("amqp:orders", "not JSON, at line 1, column 1", { message: '<b>hello</b> "world" \u202Egnp', message_id: "m-1" });
  await refused("amqp:orders", "there is no workflow \"oder\"", { submission: { workflow: "oder", id: "q-17", input: { sku: "tea" }, tags: { shop: "rome" } }, message_id: "m-2" });
  await refused("amqp:returns", "the input has no amount", { submission: { workflow: "payout", id: "q-18", input: {}, priority: 9 }, message_id: "m-3" });
  const token = (name, roles, rest) => call("POST", "/v1/tokens", { name, roles, ...rest });
  await token("shop", ["submit:order", "read:order"], { expires_in: "12h" });
  await token("payment-agents", ["agent:bank", "agent:mail"], { expires_in: "never" });
  await token("bob", ["approve", "repair"], { person: "bob@example.org", groups: ["finance", "cfo"] });
}

export async function startPlaces(intact, folder, orders) {
  const receiver = await startReceiver();
  const server = await startServer(intact, folder, { args: ["--config", configuration(folder, receiver.url)] });
  const agents = AGENTS.map((name) => startAgent(server.call, name, { places: 100 }));
  const tokens = await fill(server.call, { orders });
  await fillPlaces(server.call, receiver.url);
  const stop = async () => {
    await Promise.all(agents.map((a) => a.stop()));
    await server.stop();
    receiver.stop();
  };
  return { ...server, tokens, stop };
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const [intact, folder, orders = "200"] = process.argv.slice(2);
  const world = await startPlaces(intact, folder, Number(orders));
  console.log(JSON.stringify({ url: world.url, token: world.token, workflows: Object.keys(WORKFLOWS).length }));
  const end = () => world.stop().then(() => process.exit(0));
  process.on("SIGTERM", end);
  process.on("SIGINT", end);
}
