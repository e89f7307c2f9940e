import { APPROVED_ABOVE, Refused, ask, basket, customer, date, find, friday, make, money, orders, say } from "./shop.js";

let products = new Map();

const sum = () => basket.lines().reduce((all, { sku, quantity }) => all + (products.get(sku)?.price ?? 0) * quantity, 0);

function change(sku, quantity) {
  basket.set(sku, quantity);
  const name = products.get(sku)?.name ?? sku;
  say(find("told"), `${name}: ${Math.max(quantity, 0)}. Total ${money(sum())}.`);
  show();
  // What had the focus was made anew.
  (find(`quantity-${sku}`) ?? document.querySelector("#lines input") ?? find("main")).focus();
}

function line({ sku, quantity }) {
  const product = products.get(sku) ?? { name: `${sku} (no longer available)`, price: 0, picture: "icon.svg" };
  return make("li", { class: "line" },
    make("img", { src: `/${product.picture}`, alt: "", width: 80, height: 60 }),
    make("div", {},
      make("label", { for: `quantity-${sku}` }, product.name),
      make("span", { class: "quiet" }, `${money(product.price)} each`)),
    make("input", { id: `quantity-${sku}`, type: "number", min: 0, max: 99, value: quantity, inputmode: "numeric",
      change: (event) => change(sku, Math.trunc(Number(event.target.value)) || 0) }),
    make("button", { class: "plain", type: "button", "aria-label": `Remove ${product.name}`, click: () => change(sku, 0) }, "Remove"));
}

function show() {
  const lines = basket.lines();
  find("empty").hidden = lines.length > 0;
  find("full").hidden = lines.length === 0;
  find("lines").replaceChildren(...lines.map(line));
  say(find("total"), money(sum()));
  say(find("order"), press());
  find("approval-hint").hidden = sum() <= APPROVED_ABOVE;
}

// What the button does.
const press = () => ({
  now: `Place order and pay ${money(sum())}`,
  later: `Place order, pay ${money(sum())} later`,
  friday: `Place order, pay ${money(sum())} on Friday`,
})[find("form").elements.pay.value];

function wrong(field, text) {
  say(find(`${field}-wrong`), text);
  if (text) find(field).setAttribute("aria-invalid", "true");
  else find(field).removeAttribute("aria-invalid");
}

function complain(error) {
  if (error instanceof Refused && ["customer", "address", "card", "pay"].includes(error.field)) {
    wrong(error.field, error.message);
    find(error.field).focus();
    return;
  }
  const kept = error.status === 0 || error.status >= 500 ? " Your basket is kept." : "";
  say(find("trouble"), error.message + kept);
  find("trouble").scrollIntoView({ block: "nearest" });
}

async function order(event) {
  event.preventDefault();
  const button = find("order");
  if (button.getAttribute("aria-disabled")) return;
  for (const field of ["customer", "address", "card", "pay"]) wrong(field, "");
  say(find("trouble"), "");
  button.setAttribute("aria-disabled", "true");
  say(button, "Placing your order …");

  const { key } = basket.read();
  const lines = basket.lines();
  const form = new FormData(find("form"));
  try {
    const pay = form.get("pay") === "friday" ? friday() : form.get("pay");
    const who = form.get("customer").trim();
    const body = JSON.stringify({ key, lines, card: form.get("card"), address: form.get("address"), customer: who, pay });
    const answer = await ask("/api/orders", { method: "POST", headers: { "Content-Type": "application/json" }, body });
    customer.keep(who);
    orders.add({ order: answer.order, lines, amount: sum(), at: new Date().toISOString(), customer: who, pay });
    basket.clear();
    location.assign(`/order.html?id=${encodeURIComponent(answer.order)}`);
  } catch (error) {
    complain(error);
    button.removeAttribute("aria-disabled");
    say(button, press());
  }
}

async function start() {
  try {
    const answer = await ask("/api/products");
    products = new Map(answer.products.map((product) => [product.sku, product]));
    say(find("trouble"), "");
    show();
  } catch (error) {
    complain(error);
    setTimeout(start, 3000);
  }
}

find("form").addEventListener("submit", order);
find("form").addEventListener("change", () => say(find("order"), press()));
find("customer").value = customer.read();
say(find("friday"), date(friday()).replace(/:00$/, ""));
for (const choice of document.querySelectorAll("[data-card]"))
  choice.addEventListener("click", () => {
    find("card").value = choice.dataset.card;
    wrong("card", "");
    find("card").focus();
  });
addEventListener("pageshow", (event) => event.persisted && location.reload()); // who goes back sees the basket as it is now
start();
