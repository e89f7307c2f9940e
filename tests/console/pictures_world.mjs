// The installation of the pictures in docs/img/console: a web shop in the middle of an ordinary morning, on which a few
// things have gone wrong. Its server runs by a clock of its own (libfaketime), SPEED times as fast until the hour before
// the pictures has passed, and then at the usual pace: so the days, ages and charts are the same each time, and nobody
// waits for an hour. `node tests/console/pictures_world.mjs INTACT FOLDER` keeps it running for development.
import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { configuration, startReceiver } from "./places_world.mjs";
import { caller, startAgent, startServer } from "./world.mjs";

const BEGIN = "2026-10-14 07:00:00"; // UTC, when the server starts
const MINUTES = 66; // that pass before the pictures
const SPEED = 40;
const OUTAGE_ENDS = 56; // the minute from which the bank is back
const RECEIVER = 7480; // the port of who is told of tasks: it is in the pictures

const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

// Chance that is the same in each run.
function dice(seed) {
  let state = seed;
  return () => (state = (state * 48271) % 2147483647) / 2147483647;
}

// The clock of the server: `hurry` and `slow` change its pace, `now` reads it.
export function clock(folder) {
  const lib = ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", ...readdirSync("/usr/lib").map((d) => `/usr/lib/${d}`)]
    .map((d) => `${d}/faketime/libfaketimeMT.so.1`).find(existsSync);
  if (!lib) throw new Error("there is no libfaketime: tools/setup screenshots installs it");
  const file = `${folder}/clock`;
  mkdirSync(folder, { recursive: true });
  const begin = Date.parse(`${BEGIN.replace(" ", "T")}Z`);
  let started = Date.now();
  let offset = null;
  return {
    env: { LD_PRELOAD: lib, FAKETIME_TIMESTAMP_FILE: file, FAKETIME_NO_CACHE: "1", TZ: "UTC" },
    hurry: () => { writeFileSync(file, `@${BEGIN} x${SPEED}\n`); started = Date.now(); },
    slow: (now) => { offset = Math.ceil((now - Date.now()) / 1000) + 3; writeFileSync(file, `${offset < 0 ? "" : "+"}${offset} x1\n`); },
    minute: 0,
    now: () => (offset === null ? begin + (Date.now() - started) * SPEED : Date.now() + offset * 1000),
    file,
  };
}

const undo = (action) => ({ action });

const REPORT = `# The books of the day: closed at night, checked in the morning.
intact: 1
workflow: close-books
complete_by: 2h
steps:
  - name: freeze
    agent: erp
    action: freeze
    undo: {action: thaw}
  - name: totals
    agent: erp
    action: totals
    undo: none
    retry: {attempts: 5, wait: 10s}
  - {name: report, agent: mail, action: report, undo: none, after: [totals]}
  - {name: archive, agent: archive, action: keep, undo: {action: drop}, after: [totals]}
`;

const WORKFLOWS = {
  order: {
    intact: 1, workflow: "order", complete_by: "4h",
    inputs: { sku: { type: "string", required: true }, quantity: { type: "integer", required: true }, customer: { type: "string", required: true }, card: { type: "string", required: true }, city: { type: "string", required: true } },
    steps: [
      { name: "reserve", agent: "stock", action: "reserve", undo: undo("release") },
      { name: "charge", agent: "bank", action: "charge", after: ["reserve"], undo: undo("refund"), complete_by: "2m", retry: { attempts: 4, wait: "4s" } },
      { name: "label", agent: "carrier", action: "label", after: ["reserve"], undo: undo("void") },
      { name: "invoice", agent: "mail", action: "invoice", after: ["charge"], on_failure: "continue", undo: "none" },
      { name: "pack", agent: "stock", action: "pack", after: ["charge", "label"], undo: undo("unpack") },
      { name: "ship", agent: "carrier", action: "ship", after: ["pack"], pivot: true },
      { name: "thank", agent: "mail", action: "thank", after: ["ship", "invoice"], on_failure: "continue", undo: "none" },
    ],
    output: { parcel: "${ .steps.ship.output.parcel }" },
  },
  payout: {
    intact: 1, workflow: "payout", on_failure: "hold",
    steps: [
      { name: "balance", agent: "bank", action: "balance", undo: "none" },
      { name: "transfer", agent: "bank", action: "transfer", undo: undo("claw-back"), complete_by: "1m", retry: { attempts: 3, wait: "8s" } },
      { name: "notify", agent: "mail", action: "notify", undo: "none" },
    ],
  },
  refund: {
    intact: 1, workflow: "refund",
    steps: [
      { name: "history", agent: "crm", action: "history", undo: "none" },
      { name: "allow", approve: { by: ["finance"], question: "Refund ${ .input.amount } to ${ .input.customer } for ${ .input.sku }?", people: 2, escalate: { after: "1d", to: ["cfo"] } }, complete_by: "3d" },
      { name: "refund", agent: "bank", action: "refund", undo: undo("charge") },
      { name: "letter", agent: "mail", action: "letter", undo: "none" },
    ],
  },
  restock: {
    intact: 1, workflow: "restock", on_failure: "hold",
    steps: [
      { name: "count", agent: "stock", action: "count", undo: "none" },
      { name: "purchase", for_each: "${ .input.lines }", max_items: 10000, concurrency: 40, on_item_failure: "continue", agent: "supplier", action: "order", input: { sku: "${ .item.sku }", n: "${ .index }" }, undo: undo("cancel"), complete_by: "1h" },
      { name: "book", agent: "erp", action: "book", undo: undo("unbook") },
    ],
  },
  delivery: {
    intact: 1, workflow: "delivery",
    steps: [
      { name: "plan", agent: "carrier", action: "plan", undo: "none" },
      { name: "parcel", for_each: "${ .input.parcels }", max_items: 50, task: { workflow: "parcel", input: "${ .item }" }, complete_by: "3d" },
      { name: "bill", agent: "erp", action: "bill", undo: undo("credit") },
    ],
  },
  parcel: {
    intact: 1, workflow: "parcel", on_failure: "hold",
    steps: [
      { name: "book", agent: "carrier", action: "book", undo: undo("unbook") },
      { name: "collect", agent: "carrier", action: "collect", complete_by: "20m", undo: undo("return") },
      { name: "delivered", signal: { name: "delivered" }, complete_by: "2d" },
    ],
  },
  trial: {
    intact: 1, workflow: "trial",
    steps: [
      { name: "open", agent: "crm", action: "open", undo: undo("close") },
      { name: "two-weeks", wait: "14d" },
      { name: "remind", agent: "mail", action: "remind", undo: "none" },
    ],
  },
  "catalogue-sync": {
    intact: 1, workflow: "catalogue-sync",
    steps: [{ name: "push", agent: "search", action: "push", undo: "none", retry: { attempts: 4, wait: "2s" } }],
  },
  export: {
    intact: 1, workflow: "export", complete_by: "6h",
    steps: [
      { name: "snapshot", agent: "archive", action: "snapshot", undo: undo("drop") },
      { name: "dump", agent: "archive", action: "dump", complete_by: "2h", heartbeat: "5m", undo: "none" },
      { name: "upload", agent: "archive", action: "upload", undo: undo("remove") },
    ],
  },
};

const unavailable = (what) => ({ error: { code: "unavailable", message: `503 Service Unavailable from ${what}`, retryable: true } });

// What the services of the shop answer: it depends on the card, the city and the account, as in a shop.
function answers(time) {
  const chance = dice(7);
  const took = { charge: 3200, transfer: 5200, label: 1500, ship: 6400, pack: 8000, dump: 60_000, order: 2600, reserve: 700, collect: 20_000 };
  return async (request, beat) => {
    const input = request.input && typeof request.input === "object" ? request.input : {};
    const { card = "", city = "", iban = "", to = "", quantity = 1, sku = "" } = input.input ?? input; // an undo has input and output of its step
    const fails = (code, message, more = {}) => ({ error: { code, message, retryable: false, ...more } });
    const ms = (took[request.action] ?? 900) * (0.5 + chance() + (chance() < 0.04 ? 4 : 0));
    await sleep(ms / time.pace());
    if (request.direction === "undo") {
      if (request.step === "charge" && card === "tok_closed_0077") return fails("account-closed", "the account to refund is closed");
      return { output: { undone: request.step } };
    }
    switch (request.step) {
      case "charge":
        if (card === "tok_empty_9995") return fails("declined", "the issuer declined the card (51: insufficient funds)");
        if (card === "tok_slow_0341" && request.attempt < 3) return unavailable("the bank");
        break;
      case "pack": if (quantity > 20) return fails("out-of-stock", `the shelf has 12 of ${sku}, not ${quantity}`); break;
      case "ship": if (city === "Longyearbyen") return fails("connection-lost", "the connection to the carrier broke before its answer", { effect: "unknown" }); break;
      case "collect": if (to === "Kassel") return fails("connection-lost", "the connection to the depot broke before its answer", { effect: "unknown" }); break;
      case "transfer":
        if (iban.startsWith("DE00")) return fails("bad-iban", `IBAN ${iban} has wrong check digits`);
        if (iban.startsWith("IT60") && time.minute < OUTAGE_ENDS) return unavailable("the bank");
        break;
      case "push": return unavailable("search-1.internal");
      case "dump":
        for (let part = 1; part <= 480 && request.task === "export-tuesday"; part += 1) {
          await sleep(4000 / Math.min(time.pace(), 10));
          await beat({ part, of: 480 }, `table ${part} of 480`);
        }
        break;
      default: if (request.action === "order" && input.n % 83 === 40) return fails("discontinued", `${sku} is not made any more`);
    }
    const number = 10_000 + Math.floor(chance() * 89_999);
    return { output: { charge: { receipt: `ch_${number}`, amount: "€ 48.20" }, ship: { parcel: `JD0140${number}`, carrier: "DHL" }, label: { label: `L-${number}` } }[request.action] ?? { reference: `${request.action}-${number}` } };
  };
}

const CUSTOMERS = ["M. Okafor", "J. Lindqvist", "A. Rossi", "K. Tanaka", "S. Novak", "L. Moreau", "P. Silva", "R. Haas"];
const GOODS = ["oak-desk", "desk-lamp", "office-chair", "bookshelf", "rug-blue", "wall-clock", "side-table"];
const SHOPS = ["berlin", "rome", "oslo"];

async function people(call) {
  const token = (name, roles, rest) => call("POST", "/v1/tokens", { name, roles, ...rest });
  const ann = await token("ann", ["admin"], { person: "ann@shop.example", groups: ["finance"], expires_in: "30d" });
  const bob = await token("bob", ["operate", "approve"], { person: "bob@shop.example", groups: ["finance", "cfo"], expires_in: "60d" });
  await token("shop", ["submit:order", "submit:refund", "read:order"], { expires_in: "90d" });
  await token("payment-agents", ["agent:bank"], { expires_in: "never" });
  await token("warehouse-agents", ["agent:stock", "agent:carrier"], { expires_in: "180d" });
  await token("dashboards", ["read"], { expires_in: "12h" });
  const reader = await token("reader", ["read"], { expires_in: "90d" });
  return { ann: ann.token, bob: bob.token, reader: reader.token };
}

async function definitions(call) {
  for (const definition of Object.values(WORKFLOWS)) await call("PUT", `/v1/workflows/${definition.workflow}`, definition);
  const put = (text) => call("PUT", "/v1/workflows/close-books", text, "application/yaml");
  await put(REPORT);
  await put(REPORT.replace("complete_by: 2h", "complete_by: 4h").replace("attempts: 5, wait: 10s", "attempts: 8, wait: 30s"));
  await put(REPORT.replace("complete_by: 2h", "complete_by: 4h").replace("attempts: 5, wait: 10s", "attempts: 8, wait: 30s, max_wait: 5m")
    .replace("  - {name: archive", "  - {name: ledger, agent: erp, action: post, undo: {action: reverse}, after: [totals]}\n  - {name: archive").replace("after: [totals]}\n`", "after: [ledger]}\n`"));
  const schedule = (s) => call("PUT", `/v1/schedules/${s.schedule}`, { intact: 1, ...s });
  await schedule({ schedule: "close-books-nightly", workflow: "close-books", cron: "30 2 * * *", timezone: "Europe/Berlin", input: { day: "${ .local }" }, spread: "10m" });
  await schedule({ schedule: "catalogue", workflow: "catalogue-sync", every: "20m", overlap: "skip", input: { full: false } });
  await schedule({ schedule: "export-hourly", workflow: "export", cron: "5 * * * *", timezone: "UTC", overlap: "skip", input: { tables: "all" } });
  await schedule({ schedule: "quarter-end", workflow: "close-books", at: ["2027-01-01T05:00:00Z", "2027-04-01T04:00:00Z"] });
}

const sold = (rest) => ({ sku: "wall-clock", quantity: 1, customer: "P. Silva", card: "tok_visa_4242", city: "Porto", ...rest });

function order(n, chance) {
  const any = (list) => list[Math.floor(chance() * list.length)];
  const card = n % 17 === 9 ? "tok_empty_9995" : n % 13 === 4 ? "tok_slow_0341" : "tok_visa_4242";
  const input = sold({ sku: any(GOODS), quantity: 1 + Math.floor(chance() * 3), customer: any(CUSTOMERS), card, city: any(["Rome", "Berlin", "Oslo", "Pisa", "Kiel"]) });
  return { workflow: "order", id: `order-${48_200 + n}`, tags: { shop: any(SHOPS), channel: chance() < 0.7 ? "web" : "app" }, input };
}

// Orders come as they do in a shop: few at seven, many at nine.
async function morning(call, time, minutes) {
  const chance = dice(11);
  let n = 0;
  time.next = () => { n += 1; return call("POST", "/v1/tasks", order(n, chance)); };
  for (let minute = 0; minute < minutes; minute += 1) {
    const many = Math.round(4 + 3 * Math.sin(minute / 9) + minute / 12 + chance() * 3);
    for (let k = 0; k < many; k += 1) {
      await time.next();
      await sleep(60_000 / many / SPEED);
    }
    await (EVENTS[minute] ?? (() => {}))(call);
    time.minute = minute;
  }
}

// Orders go on while pictures are made.
async function goOn(time) {
  while (!time.hasEnded) {
    await sleep(8000 / time.pace());
    await time.next().catch(() => {});
  }
}

const submit = (call, workflow, id, input, more = {}) => call("POST", "/v1/tasks", { workflow, id, input, ...more });
const reason = (call, id, verb, why, more = {}) => call("POST", `/v1/tasks/${id}/${verb}`, { reason: why, ...more });

// What happens besides, by the minute.
const EVENTS = {
  2: async (call) => {
    await submit(call, "trial", "trial-ogbs", { plan: "team" }, { tags: { plan: "team" } });
    await submit(call, "restock", "restock-autumn", { lines: Array.from({ length: 640 }, (_, n) => ({ sku: `${GOODS[n % GOODS.length]}-${n}` })) });
  },
  6: async (call) => submit(call, "delivery", "delivery-311", { parcels: [{ to: "Turin" }, { to: "Bergen" }, { to: "Kassel" }, { to: "Pisa" }] }, { tags: { route: "north" } }),
  12: async (call) => {
    for (const [n, amount, sku] of [[901, "€ 1,240.00", "oak-desk"], [902, "€ 86.00", "desk-lamp"], [903, "€ 412.50", "office-chair"]])
      await submit(call, "refund", `refund-${n}`, { amount, sku, customer: CUSTOMERS[n % 8], order: `order-4${n}7`, why: "arrived damaged", photos: 3 }, { tags: { shop: "rome" } });
  },
  20: async (call) => { for (let n = 1; n <= 3; n += 1) await submit(call, "payout", `payout-${610 + n}`, { seller: CUSTOMERS[n], iban: "DE00 5001 0517 5407 3249 31", amount: `€ ${n}20.00` }, { tags: { desk: "north" } }); },
  26: async (call) => submit(call, "order", "order-48000", sold({ sku: "oak-desk", customer: "S. Novak", city: "Longyearbyen" }), { tags: { shop: "rome", channel: "web" } }),
  30: async (call) => {
    await reason(call, "payout-611", "correct", "the seller gave a new IBAN by telephone", { step: "transfer", input: { seller: "J. Lindqvist", iban: "DE89 3704 0044 0532 0130 00", amount: "€ 120.00" } });
    await reason(call, "payout-611", "retry", "the seller gave a new IBAN by telephone");
  },
  34: async (call) => { for (let n = 0; n < 9; n += 1) await submit(call, "payout", `payout-${640 + n}`, { seller: CUSTOMERS[n % 8], iban: "IT60 X054 2811 1010 0000 0123 456", amount: `€ ${40 + n * 7}.00` }, { tags: { desk: "south" } }); },
  40: async (call) => submit(call, "export", "export-tuesday", { tables: "all" }),
  48: async (call) => submit(call, "order", "order-48001", sold({ sku: "rug-blue", quantity: 40, customer: "A. Rossi", card: "tok_closed_0077", city: "Rome" }), { tags: { shop: "oslo", channel: "app" } }),
  50: async (call) => { for (let n = 1; n <= 30; n += 1) await submit(call, "catalogue-sync", `sync-${n}`, { from: n * 500 }); },
  56: async (call) => {
    for (let n = 1; n <= 3; n += 1) await submit(call, "order", `order-4801${n}`, sold({}), { reply_to: { to: `${receiver.url}/${n === 3 ? "gone" : "hook"}`, events: "all" }, tags: { shop: "berlin", channel: "web" } });
    await submit(call, "close-books", "close-books-again", { day: "2026-10-13" });
  },
};

let receiver;

async function leftovers(url, call, bob) {
  const asBob = caller(url, bob);
  const refused = (source, why, rest) => call("POST", "/v1/submissions/refused", { source, reason: why, ...rest });
  await refused("amqp:orders", "not JSON, at line 1, column 9", { message: "order;48,rug-blue;2;Rossi", message_id: "m-4411" });
  await refused("amqp:orders", "there is no workflow \"oder\"", { submission: { workflow: "oder", id: "order-48020", input: { sku: "desk-lamp", quantity: 1 }, tags: { shop: "rome" } }, message_id: "m-4412" });
  await refused("amqp:returns", "the input has no amount", { submission: { workflow: "refund", id: "refund-904", input: { customer: "K. Tanaka" }, priority: 5 }, message_id: "m-4420" });
  const start = (verb, filter, why, more = {}) => asBob("POST", "/v1/operations", { verb, filter, reason: why, ...more });
  await start("pause", { workflow: "trial" }, "prices change on Thursday");
  await sleep(60_000 / SPEED);
  await start("resume", { workflow: "trial", paused: true }, "prices are final");
  await start("retry", { workflow: "catalogue-sync" }, "the index of the search was built anew");
  await start("retry", { workflow: "payout", state: "error" }, "the bank is back (INC-2231)");
  await asBob("POST", "/v1/approvals/refund-902/allow/approve", { comment: "photos show the broken glass" });
  await asBob("PUT", "/v1/agents/carrier", { limits: { concurrency: 20, rate: "50/s" }, breaker: { enabled: true } });
  await reason(asBob, "delivery-311@parcel.2", "retry", "the depot confirms that nothing was collected", { step: "collect" }).catch(() => {});
  await asBob("POST", "/v1/schedules/quarter-end/pause", { reason: "the auditors choose the date" });
  await fetch(`${url}/v1/session`, { method: "POST", headers: { Authorization: `Bearer ${bob}` } });
  const { alerts } = await call("GET", "/v1/alerts?state=open");
  const known = alerts.find((a) => a.labels.workflow === "order") ?? alerts[0];
  if (known) await asBob("POST", `/v1/alerts/${encodeURIComponent(known.id)}/acknowledge`, { reason: "asked the carrier, case 77-120" });
}

const AGENTS = [["stock", 3], ["bank", 2], ["carrier", 2], ["mail", 1], ["archive", 1], ["supplier", 1], ["search", 2], ["crm", 1]];

// What the clock of the server says.
async function serverTime(call) {
  await submit(call, "trial", "trial-last", { plan: "solo" }, { tags: { plan: "solo" } });
  return Date.parse((await call("GET", "/v1/tasks/trial-last")).submitted_at);
}

async function history({ url, call }, time) {
  const tokens = await people(call);
  await definitions(call);
  await morning(call, time, MINUTES - 4);
  void goOn(time);
  await leftovers(url, call, tokens.bob);
  await sleep(4 * 60_000 / SPEED);
  return tokens;
}

export async function startPictures(intact, folder) {
  receiver = await startReceiver(RECEIVER);
  const time = clock(folder);
  time.hurry();
  const server = await startServer(intact, folder, { args: ["--config", configuration(folder, receiver.url)], env: time.env });
  let pace = SPEED;
  time.pace = () => pace;
  const answer = answers(time);
  const agents = AGENTS.flatMap(([name, many]) => Array.from({ length: many }, (_, n) => startAgent(server.call, name, { instance: `${name}-${n + 1}`, places: 25, answer, idle: "8s" })));
  const tokens = await history(server, time).catch(async (failure) => { await server.stop(); throw failure; });
  time.slow(await serverTime(server.call)); // no moment comes twice
  pace = 1;
  const stop = async () => {
    time.hasEnded = true;
    await Promise.race([Promise.all(agents.map((a) => a.stop())), sleep(5000)]);
    await server.stop();
    receiver.stop();
  };
  return { ...server, tokens, now: time.now, stop };
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const [intact, folder] = process.argv.slice(2);
  const world = await startPictures(intact, folder);
  writeFileSync(`${folder}/world.json`, JSON.stringify({ url: world.url, token: world.token, tokens: world.tokens, offset: world.now() - Date.now() }));
  console.log(`${folder}/world.json says how to sign in`);
  const end = () => world.stop().then(() => process.exit(0));
  process.on("SIGTERM", end);
  process.on("SIGINT", end);
}
