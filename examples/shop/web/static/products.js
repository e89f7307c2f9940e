import { ask, basket, find, make, money, say } from "./shop.js";

let hush;

function put(product) {
  basket.add(product.sku);
  const count = basket.read().items[product.sku];
  say(find("told"), `${product.name}: ${count} in your basket`);
  clearTimeout(hush);
  hush = setTimeout(() => say(find("told"), ""), 5000);
}

function card(product) {
  return make("li", { class: "product" },
    make("img", { src: `/${product.picture}`, alt: "", width: 240, height: 180 }),
    make("h2", {}, product.name),
    make("p", { class: "about" }, product.about),
    make("p", { class: "price" }, money(product.price)),
    make("button", { class: "button", type: "button", "aria-label": `Add to basket: ${product.name}`, click: () => put(product) },
      "Add to basket"));
}

async function show() {
  const list = find("products");
  try {
    const { products } = await ask("/api/products");
    list.replaceChildren(...products.map(card));
    say(find("trouble"), "");
  } catch (error) {
    say(find("trouble"), error.message);
    setTimeout(show, 3000);
  }
  list.setAttribute("aria-busy", "false");
}

show();
