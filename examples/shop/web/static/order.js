// One order, live: what the shop is told of it comes as server-sent events.
import { APPROVED_ABOVE, ask, basket, clock, date, find, make, money, orders, say, waitWords } from "./shop.js";

const id = new URLSearchParams(location.search).get("id") ?? "";
const news = new Map(); // by sequence: one that comes twice is there once
let order = orders.get(id) ?? {};
let products = new Map();
let ahead = 0; // milliseconds by which the server's clock is ahead of ours

// The steps of shop.yaml, as customers know them, and who does them.
const steps = [
  { name: "reserve", isForEach: true, service: "The warehouse", todo: "Reserve your items", done: "Items reserved", undone: "Items returned to stock", back: "Return your items to stock" },
  { name: "pay_day", service: "Your day of payment", todo: "Keep your items until the day of payment", done: "Day of payment has come", is: () => !["now", "later", undefined].includes(order.pay) },
  { name: "paid", service: "Your payment", todo: "Wait for your payment", done: "Payment confirmed by you", is: () => order.pay === "later" },
  { name: "charge", service: "Payment", todo: "Charge your card", done: "Card charged", undone: "Payment refunded", back: "Refund your payment" },
  { name: "allow", service: "A person of our staff", todo: "Have your order approved", done: "Order approved", is: () => order.amount > APPROVED_ABOVE },
  { name: "parcel", isForEach: true, service: "The warehouse", todo: "Pack a parcel for each line", done: "Parcels packed", undone: "Parcels unpacked", back: "Unpack your parcels" },
  { name: "ship", service: "Shipping", todo: "Ship your parcels", done: "Parcels shipped" },
  { name: "notify", service: "Shipping", todo: "Send you a confirmation", done: "Confirmation sent" },
];

const ours = () => steps.filter((step) => !step.is || step.is());

// When nothing has happened for so long, the page says what the order is waiting for.
const WAITS_AFTER_S = 5;

// What our services say in words for customers. All other errors are for people who run the shop.
const forCustomers = ["out_of_stock", "card_declined", "card_unknown", "limit_exceeded", "no_address", "no_such_place", "too_large"];

// What the workflow says by itself.
const inWords = {
  no_signal: "You did not pay in time, and the reservation has ended.",
  not_approved: "Nobody approved this order in time.",
  signal: "You have cancelled this order.",
};

const heads = {
  handed_in: ["Order placed", "Your order is safely in our queue. We will pick it up in a moment."],
  pending: ["Order received", "We have your order and are about to start."],
  processing: ["In progress", "We are completing your order."],
  processed: ["Shipped", "Your parcels are on their way."],
  compensating: ["Being cancelled", "We are undoing what was already done."],
  compensated: ["Cancelled", "Nothing will be shipped, and your card was not charged."],
  error: ["Needs attention", "We cannot complete this order automatically. Our staff are looking into it; you do not need to do anything."],
  closed: ["Closed", "Our staff have closed this order."],
};

const list = () => [...news.values()].sort((a, b) => (a.sequence < b.sequence ? -1 : 1));

function reason(all) {
  const error = all.findLast((item) => item.told.error)?.told.error ?? all.findLast((item) => item.told.step?.error)?.told.step.error;
  if (!error) return "";
  if (inWords[error.code]) return inWords[error.code];
  if (error.code === "rejected") return `Our staff have rejected this order: ${error.message}`;
  // Of a plain HTTP service the message quotes the answer, which is a line of its own: "card_declined: The bank ...".
  const [, code, text] = /answered \d+: (\w+): (.*)$/.exec(error.message ?? "") ?? ["", error.code, error.message];
  return forCustomers.includes(code) ? text : "Part of our shop was unavailable for too long.";
}

function stateOf(all) {
  const last = all.at(-1);
  if (!last) return "handed_in";
  if (last.event === "closed") return "closed";
  if (last.told.state !== "pending") return last.told.state;
  // So is an order that waits for its parcels, whichever way it goes.
  if (last.told.direction === "undo") return "compensating";
  return all.some(({ event }) => event === "started") ? "processing" : "pending";
}

// The news that it waits, for another order, for a day or for people; undefined: it does not. Who waits for its lines is at work.
function wait(all, state) {
  const last = all.findLast(({ event }) => !["paused", "resumed"].includes(event));
  return ["pending", "processing"].includes(state) && last?.event === "waiting" && waitWords[kindOf(last.told)] ? last.told : undefined;
}

const kindOf = (told) => (told?.lock ? "lock" : told?.step?.kind);

// Orders of the same customer wait for each other. Of those that this browser knows it can say which.
async function lookForOthers() {
  const mine = orders.read().filter((other) => other.order !== id && other.customer?.toLowerCase() === order.customer?.toLowerCase());
  const { orders: known } = mine.length ? await ask(`/api/orders?ids=${mine.map((other) => encodeURIComponent(other.order)).join(",")}`) : { orders: [] };
  const holder = known.find((other) => !["handed_in", "processed", "compensated", "closed"].includes(other.state) && other.waits_for !== "lock");
  find("other").hidden = !holder;
  if (!holder) return;
  find("other-link").href = `/order.html?id=${encodeURIComponent(holder.order)}`;
  say(find("other-link"), `order ${holder.order}`);
}

function waitingWords(told) {
  const until = told.step?.until ? date(told.step.until) : "";
  return {
    lock: "We work on one order of a customer at a time. This one begins by itself when your other order has ended. Nothing is reserved or charged yet.",
    wait: `Your items are reserved for you until ${until}. Then we charge your card, and ship. Until then you can cancel.`,
    signal: `Your items are reserved for you until ${until}. If you do not pay by then, the order is cancelled and the items go back on the shelf.`
      + (order.reminded_at ? ` We reminded you on ${date(order.reminded_at)}.` : ""),
    approve: "Your card is charged. A person of our staff looks at orders over €500: when it is approved, we ship; if it is rejected, your payment is refunded.",
  }[kindOf(told)] ?? "";
}

// What became of a step: done, failed, undone, or nothing yet.
function outcome(all, name) {
  const step = all.findLast((item) => item.told.step?.name === name)?.told.step;
  if (!step) return "";
  return { completed: "done", skipped: "done", failed: "failed", undone: "undone" }[step.state] ?? "";
}

// The step that is at work, or is next, with what it does; going back, the last one that is to be undone.
function current(all, state) {
  if (state === "compensating") {
    const step = ours().findLast((each) => each.undone && outcome(all, each.name) === "done")
      ?? ours().findLast((each) => each.isForEach && outcome(all, each.name) === "failed"); // one line failed, others are undone
    // A step that failed may have to be undone first, if nobody knows whether it took effect. We are not told.
    const isClear = !steps.some((each) => each.undone && outcome(all, each.name) === "failed");
    return step && { ...step, todo: step.back, service: isClear ? step.service : "Part of our shop" };
  }
  if (!all.length || !["pending", "processing"].includes(state) || kindOf(wait(all, state)) === "lock") return undefined;
  return ours().find((each) => !outcome(all, each.name));
}

// What is undone may never have been done: nobody knew whether a request had arrived.
const wasCharged = (all) => all.some(({ told }) => told.step?.name === "charge" && told.step.state === "completed");

function words(all, state) {
  const last = all.at(-1);
  const parcels = last?.told.output?.parcels ?? [];
  if (last?.event === "paused") return "Our staff have paused this order.";
  if (last?.event === "needs_operator" && state !== "error") return `${heads[state][1]} Our staff are looking into it, too.`.trim();
  if (state === "processed" && parcels.length === 1) return `Your parcel is on its way: parcel no. ${parcels[0]}.`;
  if (state === "processed" && parcels.length > 1) return `Your parcels are on their way: parcels no. ${parcels.join(", ")}.`;
  if (state === "compensated" && wasCharged(all))
    return `${reason(all)} Nothing will be shipped, and your payment has been refunded.`.trim();
  if (state === "closed" && last.told.closed_reason) return `Our staff have closed this order: ${last.told.closed_reason}`;
  if (state === "compensating" || state === "compensated" || state === "error") return `${reason(all)} ${heads[state][1]}`.trim();
  const waits = wait(all, state);
  if (waits) return waitingWords(waits);
  const step = current(all, state);
  return step && state === "processing" ? `Next: ${step.todo.toLowerCase()}.` : heads[state]?.[1] ?? "";
}

// Since when nothing has happened, by the server's clock; NaN: not known.
const quietSince = (all) => Date.parse(all.at(-1)?.at ?? order.placed_at ?? order.at);

// What the order is waiting for, once it takes longer than usual.
function waiting(all, state) {
  const since = quietSince(all);
  const isPaused = all.at(-1)?.event === "paused";
  if (isPaused || wait(all, state) || !(Date.now() + ahead - since >= WAITS_AFTER_S * 1000)) return "";
  const what = state === "compensating" ? "the cancellation" : "your order";
  const promise = `You do not need to do anything: ${what} continues as soon as it is back.`;
  if (state === "handed_in") return `We have not picked up your order yet (waiting since ${clock(since)}). It is safe in our queue, and you do not need to do anything.`;
  const step = current(all, state);
  return step ? `${step.service} is not responding at the moment (waiting since ${clock(since)}). We keep trying. ${promise}` : "";
}

const marks = { done: "✓", now: "…", failed: "✕", undone: "↶", never: "–", later: "" };
const spoken = { done: "done", now: "in progress", failed: "failed", undone: "undone", never: "not needed", later: "to do" };

function step(words, mark, note) {
  return make("li", { class: mark, "aria-current": mark === "now" ? "step" : null },
    make("span", { class: "mark", "aria-hidden": "true" }, marks[mark]),
    make("span", {}, words, make("span", { class: "quiet" }, ` ${note ?? spoken[mark]}`)));
}

// When a step came to where it is.
const momentOf = (all, name) => all.findLast((item) => item.told.step?.name === name)?.at;

function stepList(all, state) {
  const back = ["compensating", "compensated", "closed"].includes(state);
  const received = all.find((item) => item.event === "received")?.at;
  const placed = order.placed_at ?? order.at;
  const at = current(all, state);
  const rows = [
    step("Order placed", "done", placed ? date(placed) : undefined),
    step("Order received", all.length ? "done" : "now", received ? clock(received) : undefined),
  ];
  for (const each of ours()) {
    const isNow = at?.name === each.name;
    const mark = isNow ? "now" : outcome(all, each.name) || (back || state === "processed" ? "never" : "later");
    const since = outcome(all, each.name) && !isNow ? momentOf(all, each.name) : undefined;
    const note = [mark === "failed" ? (state === "error" ? "needs attention" : spoken.failed) : undefined, since ? clock(since) : undefined].filter(Boolean).join(", ");
    const isUncharged = each.name === "charge" && mark === "undone" && !wasCharged(all);
    rows.push(step(isNow ? at.todo : isUncharged ? "Card not charged" : each[mark] ?? each.todo, mark, note || undefined));
  }
  return rows;
}

function message(item) {
  return make("li", {},
    make("code", {}, `intact.task.${item.event}`), make("span", { class: "quiet" }, ` ${item.at}`),
    make("pre", { tabindex: 0 }, JSON.stringify(item.told, null, 2)));
}

// Numbered, so that a reason can name one of them.
function line({ sku, quantity }, index, all) {
  const product = products.get(sku);
  return make("li", { class: "line" },
    make("img", { src: `/${product?.picture ?? "icon.svg"}`, alt: "", width: 80, height: 60 }),
    make("span", {}, `${all.length > 1 ? `Line ${index + 1}: ` : ""}${quantity} × ${product?.name ?? sku}`),
    make("span", { class: "quiet" }, product ? money(product.price * quantity) : ""));
}

function showOrder() {
  find("lines").replaceChildren(...(order.lines ?? []).map(line));
  say(find("total"), order.amount === undefined ? "" : money(order.amount));
  say(find("address"), order.address ? `To: ${order.address}` : "");
}

// Time alone makes an order wait.
function showWait() {
  const all = list();
  const text = waiting(all, stateOf(all));
  say(find("wait"), text);
  find("wait").hidden = text === "";
}

function show() {
  const all = list();
  const state = stateOf(all);
  find("head").className = `head ${state}`;
  const waits = wait(all, state);
  const head = waitWords[kindOf(waits)] ?? heads[state]?.[0] ?? state;
  say(find("state"), head);
  say(find("words"), words(all, state));
  find("choices").hidden = !waits;
  find("pay-choice").hidden = kindOf(waits) !== "signal";
  say(find("pay"), order.amount === undefined ? "Pay now" : `Pay ${money(order.amount)} now`);
  find("other").hidden ||= kindOf(waits) !== "lock";
  if (kindOf(waits) === "lock") lookForOthers().catch(() => {});
  showWait();
  document.title = `${head} - The Shop`;
  find("steps").replaceChildren(...stepList(all, state));
  const messages = find("messages");
  messages.append(...all.slice(messages.childElementCount).map(message));
  find("again").hidden = state !== "compensated" || !order.lines;
}

function take(items) {
  for (const item of items) news.set(item.sequence, item);
  show();
}

// All there is, by a plain question: what was ordered, and the news so far.
async function load() {
  try {
    const answer = await ask(`/api/orders/${encodeURIComponent(id)}`);
    ahead = Date.parse(answer.now) - Date.now();
    order = { ...order, ...answer };
    say(find("trouble"), "");
    take(answer.news);
    showOrder();
  } catch (error) {
    say(find("trouble"), error.message);
    if (error.status === 404) say(find("state"), "Order not found");
    return error.status !== 404;
  }
  return true;
}

function follow() {
  const source = new EventSource(`/api/orders/${encodeURIComponent(id)}/events`);
  source.addEventListener("open", () => {
    find("live").hidden = false;
    say(find("trouble"), "");
  });
  source.addEventListener("news", (event) => {
    take([JSON.parse(event.data)]);
    if (!order.address) load(); // it was not written yet when we asked
  });
  source.addEventListener("end", () => {
    source.close();
    find("live").hidden = true;
    load();
  });
  source.addEventListener("error", () => {
    find("live").hidden = true;
    say(find("trouble"), "The connection to the shop was lost. Reconnecting …");
    if (source.readyState !== EventSource.CLOSED) return; // the browser tries again
    setTimeout(async () => (await load()) && follow(), 3000);
  });
}

async function start() {
  say(find("id"), id);
  if (!id) {
    location.replace("/orders.html");
    return;
  }
  show();
  const answer = await ask("/api/products").catch(() => ({ products: [] }));
  products = new Map(answer.products.map((product) => [product.sku, product]));
  showOrder();
  if (await load()) follow();
  setInterval(showWait, 1000);
}

// Pay, or cancel. What comes of it is told by the news.
async function press(verb) {
  try {
    await ask(`/api/orders/${encodeURIComponent(id)}/${verb}`, { method: "POST", headers: { "Content-Type": "application/json" }, body: "{}" });
    say(find("trouble"), "");
  } catch (error) {
    say(find("trouble"), error.message);
  }
}

find("pay").addEventListener("click", () => press("pay"));
find("cancel").addEventListener("click", () => press("cancel"));
find("again").addEventListener("click", () => {
  for (const { sku, quantity } of order.lines) basket.add(sku, quantity);
  location.assign("/basket.html");
});
start();
