// What all pages share: the basket and the orders of this browser, asking the server, and making elements.

export const money = (cents) =>
  new Intl.NumberFormat("en-IE", { style: "currency", currency: "EUR" }).format(cents / 100);

export const date = (text) => new Date(text).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "medium" });

export const clock = (text) => new Date(text).toLocaleTimeString("en-GB"); // to the second

export const time = (text) => new Date(text).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" });

export const find = (id) => document.getElementById(id);

// Text goes in as text, never as HTML: make("li", {class: "line"}, "Cup").
export function make(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

// Changes what is said only if it is something else, so that screen readers do not say it again.
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
  if (element.hasAttribute("role") && element.id === "trouble") element.hidden = text === "";
}

export class Refused extends Error {
  constructor(status, answer) {
    super(answer.error ?? "The shop cannot be reached just now. Please try again.");
    this.status = status;
    this.field = answer.field;
  }
}

export async function ask(path, options) {
  let response;
  let answer = {};
  try {
    response = await fetch(path, options);
    answer = await response.json();
  } catch {
    if (!response || response.ok) throw new Refused(0, {});
  }
  if (!response.ok) throw new Refused(response.status, answer);
  return answer;
}

// Orders above are approved by a person: shop.yaml, step allow.
export const APPROVED_ABOVE = 50000;

// The next Friday at 18:00, as the clock of this browser goes.
export function friday() {
  const day = new Date();
  day.setDate(day.getDate() + ((5 - day.getDay() + 7) % 7));
  day.setHours(18, 0, 0, 0);
  if (day <= new Date()) day.setDate(day.getDate() + 7);
  return day.toISOString().replace(".000", "");
}

function read(name, otherwise) {
  try {
    return JSON.parse(localStorage.getItem(name)) ?? otherwise;
  } catch {
    return otherwise;
  }
}

const write = (name, value) => localStorage.setItem(name, JSON.stringify(value));

// Made once for a basket as it is. The server makes one order of it, however often it is handed in.
const newKey = () =>
  Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");

export const basket = {
  read: () => read("basket", { key: "", items: {} }),
  lines: () => Object.entries(basket.read().items).map(([sku, quantity]) => ({ sku, quantity })),
  count: () => basket.lines().reduce((sum, line) => sum + line.quantity, 0),
  set(sku, quantity) {
    const { items } = basket.read();
    if (quantity > 0) items[sku] = Math.min(quantity, 99);
    else delete items[sku];
    write("basket", { key: newKey(), items });
    showCount();
  },
  add: (sku, quantity = 1) => basket.set(sku, (basket.read().items[sku] ?? 0) + quantity),
  clear() {
    write("basket", { key: newKey(), items: {} });
    showCount();
  },
};

export const customer = {
  read: () => read("customer", ""),
  keep: (name) => write("customer", name),
};

export const orders = {
  read: () => read("orders", []).filter((order) => order.lines), // an earlier version of the shop kept others
  get: (id) => orders.read().find((order) => order.order === id),
  add(order) {
    const others = orders.read().filter((other) => other.order !== order.order);
    write("orders", [order, ...others].slice(0, 50));
  },
};

// What orders wait for, and who does it.
export const waitWords = {
  lock: "Waiting for your other order",
  wait: "Reserved",
  signal: "Waiting for your payment",
  approve: "Waiting for approval",
};

// What customers call the states of an order.
export const stateWords = {
  handed_in: "Order placed",
  pending: "Order received",
  processing: "In progress",
  processed: "Shipped",
  compensating: "Being cancelled",
  compensated: "Cancelled",
  error: "Needs attention",
  closed: "Closed",
};

function showCount() {
  const element = find("basket-count");
  const count = basket.count();
  element.hidden = count === 0;
  element.replaceChildren(String(count), make("span", { class: "hidden" }, count === 1 ? " item" : " items"));
}

showCount();
addEventListener("storage", showCount); // another tab
