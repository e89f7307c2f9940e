import { ask, find, make, money, orders, say, stateWords, time, waitWords } from "./shop.js";

let shown = ""; // what is the same is not made anew: it may have the focus
const isOpen = (state) => ["pending", "processing"].includes(state);
const ended = new Set(["processed", "compensated", "closed"]);

function row(mine, known) {
  const state = known?.state ?? "handed_in";
  const count = mine.lines.reduce((all, line) => all + line.quantity, 0);
  return make("li", {},
    make("a", { href: `/order.html?id=${encodeURIComponent(mine.order)}` },
      make("span", { class: "when" }, time(mine.at)),
      make("span", { class: "quiet" }, `${count} ${count === 1 ? "item" : "items"}, ${money(known?.amount ?? mine.amount)}`),
      make("span", { class: `state ${state}` }, (isOpen(state) && waitWords[known?.waits_for]) || (stateWords[state] ?? state))));
}

async function show() {
  const mine = orders.read();
  let open = mine.length > 0;
  find("empty").hidden = mine.length > 0;
  try {
    const ids = mine.map((order) => encodeURIComponent(order.order)).join(",");
    const answer = mine.length ? await ask(`/api/orders?ids=${ids}`) : { orders: [] };
    const known = new Map(answer.orders.map((order) => [order.order, order]));
    if (shown !== JSON.stringify([mine, answer]))
      find("orders").replaceChildren(...mine.map((order) => row(order, known.get(order.order))));
    shown = JSON.stringify([mine, answer]);
    open = answer.orders.some((order) => !ended.has(order.state));
    say(find("trouble"), "");
  } catch (error) {
    say(find("trouble"), error.message);
  }
  find("orders").setAttribute("aria-busy", "false");
  if (open) setTimeout(show, 3000);
}

show();
