// One order, live: what the shop is told of it comes as server-sent events.
import { ask, basket, find, make, money, orders, say, time } from "./shop.js";

const id = new URLSearchParams(location.search).get("id") ?? "";
const news = new Map(); // by sequence: one that comes twice is there once
let order = orders.get(id) ?? {};
let products = new Map();

// The steps of shop.yaml, as customers know them.
const steps = [
  { name: "reserve", todo: "Set your goods aside", done: "Goods set aside", undone: "Goods put back" },
  { name: "charge", todo: "Charge your card", done: "Card charged", undone: "Money given back" },
  { name: "route", todo: "Find the way to you", done: "Way to you found" },
  { name: "ship", todo: "Hand over the parcel", done: "Parcel handed over", undone: "Parcel called back" },
  { name: "notify", todo: "Write you a letter", done: "Letter sent to you", undone: "Letter withdrawn" },
];

// What our services say in words for customers. All other errors are for people who run the shop.
const forCustomers = ["out_of_stock", "card_declined", "card_unknown", "limit_exceeded", "no_address", "no_such_place"];

const heads = {
  handed_in: ["Handed in", "Your order is in our queue. It is safe there; we look at it in a moment."],
  pending: ["Received", "We have it, and begin as soon as it is its turn."],
  processing: ["In progress", "What does not work at once is tried again by itself."],
  processed: ["On its way", "All is done, and your parcel has left."],
  compensating: ["Being undone", "It cannot be done. What was done already is being undone."],
  compensated: ["Undone", "Nothing will be sent, and you pay nothing."],
  error: ["A person looks into it", "Something went wrong that we cannot mend by ourselves. You need not do anything."],
  closed: ["Closed", "A person has closed this order."],
};

const list = () => [...news.values()].sort((a, b) => (a.sequence < b.sequence ? -1 : 1));

function reason(all) {
  const error = all.findLast((item) => item.told.error)?.told.error ?? all.findLast((item) => item.told.step?.error)?.told.step.error;
  if (!error) return "";
  // Of a plain HTTP service the message quotes the answer, which is a line of its own: "card_declined: The bank ...".
  const [, code, text] = /answered \d+: (\w+): (.*)$/.exec(error.message ?? "") ?? ["", error.code, error.message];
  return forCustomers.includes(code) ? text : "A part of our shop was away for too long.";
}

function stateOf(all) {
  const last = all.at(-1);
  if (!last) return "handed_in";
  return last.event === "closed" ? "closed" : last.told.state;
}

// What became of a step: done, failed, undone, or nothing yet.
function outcome(all, name) {
  const step = all.findLast((item) => item.told.step?.name === name)?.told.step;
  if (!step) return "";
  return { completed: "done", skipped: "done", failed: "failed", undone: "undone" }[step.state] ?? "";
}

function words(all, state) {
  const last = all.at(-1);
  const parcel = last?.told.output?.parcel;
  if (last?.event === "paused") return "A person has paused it for now.";
  if (last?.event === "needs_operator" && state !== "error") return `${heads[state][1]} A person sees to it, too.`;
  if (state === "processed" && parcel) return `All is done. Your parcel is ${parcel}.`;
  if (state === "closed" && last.told.closed_reason) return `A person has closed it: ${last.told.closed_reason}`;
  if (state === "compensating" || state === "compensated" || state === "error") return `${reason(all)} ${heads[state][1]}`.trim();
  const next = steps.find((each) => !outcome(all, each.name));
  if (state === "processing" && next) return `Now: ${next.todo.toLowerCase()}. ${heads[state][1]}`;
  return heads[state]?.[1] ?? "";
}

const marks = { done: "✓", now: "…", failed: "✕", undone: "↶", never: "–", later: "" };
const spoken = { done: "done", now: "in progress", failed: "not possible", undone: "undone", never: "not needed any more", later: "later" };

function step(words, mark, note) {
  return make("li", { class: mark, "aria-current": mark === "now" ? "step" : null },
    make("span", { class: "mark", "aria-hidden": "true" }, marks[mark]),
    make("span", {}, words, make("span", { class: "quiet" }, ` ${note ?? spoken[mark]}`)));
}

function stepList(all, state) {
  const back = ["compensating", "compensated", "closed"].includes(state);
  const when = (event) => all.find((item) => item.event === event)?.at;
  const rows = [
    step("Handed in", "done", order.at || order.placed_at ? time(order.placed_at ?? order.at) : undefined),
    step("Received", all.length ? "done" : "now", when("received") ? time(when("received")) : undefined),
  ];
  let current = all.length > 0 && state === "processing";
  for (const each of steps) {
    let mark = outcome(all, each.name) || (back || state === "processed" ? "never" : current ? "now" : "later");
    const isBack = mark === "done" && state === "compensating" && each.undone;
    if (isBack) mark = "now";
    if (mark !== "done" && mark !== "undone") current = false;
    rows.push(step(isBack ? each.done : each[mark] ?? each.todo, mark,
      isBack ? "being undone" : mark === "failed" && state === "error" ? "did not work" : undefined));
  }
  return rows;
}

function message(item) {
  return make("li", {},
    make("code", {}, `intact.task.${item.event}`), make("span", { class: "quiet" }, ` ${item.at}`),
    make("pre", { tabindex: 0 }, JSON.stringify(item.told, null, 2)));
}

function line({ sku, quantity }) {
  const product = products.get(sku);
  return make("li", { class: "line" },
    make("img", { src: `/${product?.picture ?? "icon.svg"}`, alt: "", width: 80, height: 60 }),
    make("span", {}, `${quantity} × ${product?.name ?? sku}`),
    make("span", { class: "quiet" }, product ? money(product.price * quantity) : ""));
}

function showOrder() {
  find("lines").replaceChildren(...(order.items ?? []).map(line));
  say(find("total"), order.amount === undefined ? "" : money(order.amount));
  say(find("address"), order.address ? `To: ${order.address}` : "");
}

function show() {
  const all = list();
  const state = stateOf(all);
  find("head").className = `head ${state}`;
  say(find("state"), heads[state]?.[0] ?? state);
  say(find("words"), words(all, state));
  document.title = `${heads[state]?.[0] ?? state} - The Shop`;
  find("steps").replaceChildren(...stepList(all, state));
  const messages = find("messages");
  messages.append(...all.slice(messages.childElementCount).map(message));
  find("again").hidden = state !== "compensated" || !order.items;
}

function take(items) {
  for (const item of items) news.set(item.sequence, item);
  show();
}

// All there is, by a plain question: what was ordered, and the news so far.
async function load() {
  try {
    const answer = await ask(`/api/orders/${encodeURIComponent(id)}`);
    order = { ...order, ...answer };
    say(find("trouble"), "");
    take(answer.news);
    showOrder();
  } catch (error) {
    say(find("trouble"), error.message);
    if (error.status === 404) say(find("state"), "No such order");
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
    say(find("trouble"), "The connection to the shop is interrupted. This page goes on by itself.");
    if (source.readyState !== EventSource.CLOSED) return; // the browser tries again
    setTimeout(async () => (await load()) && follow(), 3000);
  });
}

async function start() {
  say(find("id"), id);
  if (!id) return say(find("trouble"), "Which order? See the list of your orders.");
  show();
  const answer = await ask("/api/products").catch(() => ({ products: [] }));
  products = new Map(answer.products.map((product) => [product.sku, product]));
  showOrder();
  if (await load()) follow();
}

find("again").addEventListener("click", () => {
  for (const item of order.items) basket.add(item.sku, item.quantity);
  location.assign("/basket.html");
});
start();
