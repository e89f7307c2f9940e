// The shop in a real browser: Debian's Chromium, driven by playwright-core. See browser_test.py, which starts the shop.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import test, { after, before } from "node:test";

const { SHOP_URL, CONSOLE_URL, BROWSER_HOME, PICTURES, ACCEPTED, INTACT, INTACT_ADMIN, DEFINITION } = process.env;
const from = createRequire(`${BROWSER_HOME}/`);
const { chromium } = from("playwright-core");
const axe = readFileSync(from.resolve("axe-core/axe.min.js"), "utf8");

const PATIENCE = 300_000; // only a failing test waits so long
const PHONE = { width: 360, height: 740 };
const DESKTOP = { width: 1280, height: 900 };
const GOOD = "4242 4242 4242 4242";
const DECLINED = "4000 0000 0000 0002";

let browser;
const accepted = new Set(); // the orders that the shop said yes to: their page was opened

before(async () => {
  const args = ["--no-sandbox", "--disable-gpu"]; // whoever tests may be root, in a container
  browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium-headless-shell", args });
  mkdirSync(PICTURES, { recursive: true });
});

after(async () => {
  writeFileSync(ACCEPTED, JSON.stringify([...accepted]));
  await browser?.close();
});

// A person with a browser of their own. What the browser complains of fails the test, but for what is `expected`.
async function person(t, { expected = [], viewport = DESKTOP, ...options } = {}) {
  const context = await browser.newContext({ viewport, reducedMotion: "reduce", ...options });
  context.setDefaultTimeout(PATIENCE);
  const complaints = [];
  const complain = (text) => expected.some((pattern) => pattern.test(text)) || complaints.push(text);
  const page = await context.newPage();
  page.on("console", (said) => ["error", "warning"].includes(said.type()) && complain(`${said.text()} (${said.location().url})`));
  page.on("pageerror", (error) => complain(String(error)));
  page.on("request", (request) => {
    const { origin, protocol } = new URL(request.url());
    if (protocol.startsWith("http") && ![SHOP_URL, CONSOLE_URL].some((url) => new URL(url).origin === origin)) complain(`asks ${origin}`);
  });
  page.on("framenavigated", (frame) => {
    const { pathname, searchParams } = new URL(frame.url());
    if (pathname === "/order.html") accepted.add(searchParams.get("id"));
  });
  t.after(async () => {
    await context.close();
    assert.deepEqual(complaints, [], "the browser has nothing to complain of");
  });
  return page;
}

const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

async function eventually(what, condition) {
  for (const end = Date.now() + PATIENCE; Date.now() < end; await sleep(200)) {
    const found = await condition();
    if (found) return found;
  }
  assert.fail(`never: ${what}`);
}

async function choose(page, name, count = 1) {
  await page.goto(SHOP_URL);
  for (let i = 0; i < count; i++) await page.getByRole("button", { name: `Add to basket: ${name}` }).click();
}

// To the page of the order that came of it.
let customers = 0;
const newCustomer = () => `Customer ${++customers}`; // whose orders wait for nobody's

async function checkout(page, { card = GOOD, address = "1 Long Lane\nWien", customer = newCustomer(), pay = "Now" } = {}) {
  await page.getByRole("link", { name: /^Basket/ }).click();
  await page.getByLabel("Your name").fill(customer);
  await page.getByLabel("Delivery address").fill(address);
  await page.getByLabel("Card number").fill(card);
  await page.getByRole("radio", { name: pay }).check();
  await page.getByRole("button", { name: /^Place order/ }).click();
  await page.waitForURL(/order\.html\?id=/);
  return new URL(page.url()).searchParams.get("id");
}

const comesTo = (page, head) => page.getByRole("heading", { level: 1, name: head, exact: true }).waitFor(); // "Being cancelled" is not "Cancelled"
const steps = (page) => page.getByRole("region", { name: "Status" }).getByRole("listitem").allInnerTexts();
const noScrolling = async (page, what) =>
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= document.documentElement.clientWidth), `${what} is not too wide`);

async function accessible(page, what) {
  await page.evaluate(axe);
  const { violations } = await page.evaluate(async () => ({ violations: (await globalThis.axe.run(document, { resultTypes: ["violations"] })).violations }));
  const serious = violations.filter((v) => ["serious", "critical"].includes(v.impact));
  assert.deepEqual(serious.map((v) => `${v.id}: ${v.nodes.map((n) => n.html).join(" ")}`), [], `${what}: what axe finds`);
  const bare = await page.evaluate(() =>
    [...document.querySelectorAll("input, textarea, select, button")]
      .filter((field) => !field.labels?.length && !field.getAttribute("aria-label") && !field.textContent.trim() && !field.hidden)
      .map((field) => field.outerHTML));
  assert.deepEqual(bare, [], `${what}: every field has a label`);
}

test("an order is placed, and followed until it is shipped", async (t) => {
  const page = await person(t);
  await choose(page, "Cup", 2);
  await page.getByRole("button", { name: "Add to basket: Teapot" }).click();
  const id = await checkout(page);
  await comesTo(page, "Shipped");
  const told = await steps(page);
  for (const words of ["Order placed", "Order received", "Items reserved", "Card charged", "Parcels packed", "Parcels shipped", "Confirmation sent"])
    assert.ok(told.some((step) => step.includes(words)), `${words}: ${told}`);
  for (const step of told) assert.match(step, /\d\d:\d\d:\d\d/, "every step that is done has its time");
  assert.match(await page.getByRole("status").first().innerText(), /parcels no\. \d+, \d+/);
  assert.match(await page.getByRole("region", { name: "Your order" }).innerText(), /Line 1: 2 × Cup[^]*Line 2: 1 × Teapot[^]*Total[^]*€43\.00[^]*Long Lane/);

  await page.getByRole("link", { name: "My orders" }).click();
  await page.getByRole("link", { name: /3 items, €43\.00/ }).click();
  await comesTo(page, "Shipped");
  assert.equal(new URL(page.url()).searchParams.get("id"), id);
});

test("a declined card: what was done is undone, and the reason is said", async (t) => {
  const page = await person(t);
  await choose(page, "Lamp");
  await checkout(page, { card: DECLINED });
  await comesTo(page, "Cancelled");
  assert.match(await page.getByRole("status").first().innerText(), /declined/);
  assert.match(await page.getByRole("status").first().innerText(), /your card was not charged/);
  assert.match((await steps(page)).join("\n"), /Items returned to stock\s+\d\d:\d\d:\d\d/);
  await page.getByRole("button", { name: "Add these items to my basket again" }).click();
  await page.getByLabel("Lamp", { exact: true }).waitFor();
});

test("more than there is: undone, with the reason", async (t) => {
  const page = await person(t);
  await choose(page, "Chair", 4); // of which there are three
  await checkout(page);
  await comesTo(page, "Cancelled");
  assert.match(await page.getByRole("status").first().innerText(), /^Cancelled\s+Line 1, chair: 4 ordered, 3 left in stock\./);
});

test("one of three lines is out of stock: the reason names it, and the others go back", async (t) => {
  const page = await person(t);
  await choose(page, "Cup", 2);
  for (let i = 0; i < 4; i++) await page.getByRole("button", { name: "Add to basket: Chair" }).click();
  await page.getByRole("button", { name: "Add to basket: Clock" }).click();
  await checkout(page);
  await comesTo(page, "Cancelled");
  assert.match(await words(page), /Line 2, chair: 4 ordered, 3 left in stock\. Nothing will be shipped, and your card was not charged/);
  assert.match(await page.getByRole("region", { name: "Your order" }).innerText(), /Line 1: 2 × Cup[^]*Line 2: 4 × Chair[^]*Line 3: 1 × Clock/);
  await pictures(page, "lines");
});

test("one parcel of three cannot be sent: the others are unpacked, and the payment is refunded", async (t) => {
  const page = await person(t);
  await choose(page, "Cup");
  for (const name of ["Chair", "Clock"]) await page.getByRole("button", { name: `Add to basket: ${name}` }).click();
  await checkout(page, { address: "P.O. Box 7, Wien" });
  await comesTo(page, "Cancelled");
  assert.match(await words(page), /Line 2, chair: too large for a P\.O\. box\. Nothing will be shipped, and your payment has been refunded/);
  assert.match((await steps(page)).join("\n"), /Items returned to stock[^]*Payment refunded/);
});

test("a parcel that cannot leave: goods and money go back", async (t) => {
  const page = await person(t);
  await choose(page, "Clock");
  await checkout(page, { address: "Sea of Tranquility, Moon" });
  await comesTo(page, "Cancelled");
  assert.match(await page.getByRole("status").first().innerText(), /Moon[^]*your payment has been refunded/);
  assert.match((await steps(page)).join("\n"), /Items returned to stock[^]*Payment refunded/);
});

test("pressed twice, and once more when the answer was lost: one order", async (t) => {
  const page = await person(t, { expected: [/ERR_FAILED/] });
  const posted = [];
  page.on("request", (request) => request.method() === "POST" && posted.push(request.postDataJSON()));
  await choose(page, "Kettle");
  await page.getByRole("link", { name: /^Basket/ }).click();
  await page.getByLabel("Your name").fill(newCustomer());
  await page.getByLabel("Delivery address").fill("2 Long Lane");
  await page.getByLabel("Card number").fill(GOOD);
  let lost; // the shop says yes, and the browser never hears it
  await page.route("**/api/orders", async (route) => {
    lost = await (await route.fetch()).json();
    await route.abort();
  }, { times: 1 });
  const button = page.getByRole("button", { name: /^Place order and pay/ });
  await button.dblclick();
  await page.getByRole("alert").filter({ hasText: "basket is kept" }).waitFor();
  await button.click();
  await page.waitForURL(/order\.html\?id=/);
  const id = new URL(page.url()).searchParams.get("id");
  assert.equal(lost.order, id);
  assert.equal(posted.length, 2, "a double click is one press");
  const again = await page.request.post(`${SHOP_URL}/api/orders`, { data: posted[0], headers: { Origin: new URL(SHOP_URL).origin } });
  assert.equal((await again.json()).order, id);
  await comesTo(page, "Shipped");
});

test("what is missing or wrong is said at its field", async (t) => {
  const page = await person(t, { expected: [/status of 422/] });
  await choose(page, "Cup");
  await page.getByRole("link", { name: /^Basket/ }).click();
  const button = page.getByRole("button", { name: /^Place order and pay/ });
  await button.click();
  await page.locator("#customer[aria-invalid=true]:focus").waitFor();
  await page.getByLabel("Your name").fill(newCustomer());
  await button.click();
  await page.locator("#address[aria-invalid=true]:focus").waitFor();
  await page.getByLabel("Delivery address").fill("3 Long Lane");
  await page.getByLabel("Card number").fill("my card");
  await button.click();
  await page.locator("#card[aria-invalid=true]:focus").waitFor();
  assert.match(await page.locator("#card").evaluate((e) => document.getElementById(e.getAttribute("aria-describedby").split(" ")[0]).textContent), /digits/);
});

test("what people type is text, wherever it is shown", async (t) => {
  const page = await person(t);
  const address = `<img src=x onerror="document.title='caught'"> "quoted" & 'so' \\ on`;
  await choose(page, "Cup");
  await checkout(page, { address });
  await comesTo(page, "Shipped");
  await page.getByText(`To: ${address}`).waitFor();
  assert.doesNotMatch(await page.title(), /caught/);
});

// Tab by Tab, each of which has to be seen.
async function tabTo(page, selector) {
  for (let i = 0; i < 80; i++) {
    await page.keyboard.press("Tab");
    const at = await page.evaluate((wanted) => {
      const e = document.activeElement;
      const style = getComputedStyle(e);
      const isSeen = (style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0) || style.boxShadow !== "none";
      return { isBody: e === document.body, isSeen, isThere: e.matches(wanted), what: e.outerHTML.slice(0, 100) };
    }, selector);
    assert.ok(at.isBody || at.isSeen, `the focus is seen: ${at.what}`);
    if (at.isThere) return;
  }
  assert.fail(`Tab never comes to ${selector}`);
}

test("the whole order by the keyboard alone", async (t) => {
  const page = await person(t);
  await page.goto(SHOP_URL);
  await page.getByRole("button", { name: "Add to basket: Cup" }).waitFor();
  await tabTo(page, "a.skip");
  await page.keyboard.press("Enter");
  await tabTo(page, "button[aria-label='Add to basket: Cup']");
  await page.keyboard.press("Enter");
  await page.keyboard.press("Space");
  await page.getByRole("status").filter({ hasText: "Cup: 2 in your basket" }).waitFor();
  await tabTo(page, "a[href='/basket.html']");
  await page.keyboard.press("Enter");
  await page.getByLabel("Cup", { exact: true }).waitFor();
  await tabTo(page, "#quantity-cup");
  await page.keyboard.press("ArrowUp");
  await tabTo(page, "#customer");
  await page.keyboard.type(newCustomer());
  await tabTo(page, "#address");
  await page.keyboard.type("4 Long Lane");
  await tabTo(page, "#card");
  await page.keyboard.type(GOOD);
  await tabTo(page, "#order");
  await page.keyboard.press("Enter");
  await page.waitForURL(/order\.html\?id=/);
  await comesTo(page, "Shipped");
  assert.match(await page.getByRole("region", { name: "Your order" }).innerText(), /3 × Cup/);
});

test("every page on a phone and on a desk, light and dark: pictures, no scrolling sideways, nothing that axe finds", async (t) => {
  for (const colorScheme of ["light", "dark"]) {
    const page = await person(t, { colorScheme, viewport: PHONE });
    for (const [size, viewport] of [["phone", PHONE], ["desktop", DESKTOP]]) {
      await page.setViewportSize(viewport);
      const look = async (name) => {
        await page.screenshot({ path: `${PICTURES}/${name}-${size}-${colorScheme}.png`, fullPage: true });
        await noScrolling(page, `${name}, ${size}`);
        if (size === "phone") await accessible(page, `${name}, ${colorScheme}`); // the same elements as on a desk
      };
      await page.goto(`${SHOP_URL}/basket.html`);
      await look("empty");
      await choose(page, "Cup", 2);
      await page.getByRole("button", { name: "Add to basket: Lamp" }).click();
      await look("products");
      await page.getByRole("link", { name: /^Basket/ }).click();
      await page.getByLabel("Lamp", { exact: true }).waitFor();
      await look("basket");
      await checkout(page, { card: size === "phone" ? GOOD : DECLINED, address: `5 ${"Longest".repeat(12)} Lane` });
      await comesTo(page, size === "phone" ? "Shipped" : "Cancelled");
      await page.getByText("Messages about this order").click();
      await look("order");
      await page.getByRole("link", { name: "My orders" }).click();
      await page.getByRole("link", { name: /3 items/ }).first().waitFor();
      await look("orders");
    }
  }
});

// ---- Orders that wait for people, for a day, and for each other ----

const words = (page) => page.getByRole("status").first().innerText();

// The staff's page, by the console's link.
async function staffPage(t, who) {
  const mischief = await person(t);
  await mischief.goto(CONSOLE_URL);
  const [page] = await Promise.all([mischief.context().waitForEvent("page"), mischief.getByRole("link", { name: `Decide as ${who}` }).click()]);
  await page.getByText(`You decide as ${who}.`).waitFor();
  return page;
}

// Who pays later has so long from now on.
async function reservations(length) {
  const body = readFileSync(DEFINITION, "utf8").replace("complete_by: 2m", `complete_by: ${length}`);
  const headers = { Authorization: `Bearer ${INTACT_ADMIN}`, "Content-Type": "application/yaml" };
  assert.ok((await fetch(`${INTACT}/v1/workflows/shop_order`, { method: "PUT", headers, body })).ok);
}

const question = (page, id) => page.getByRole("listitem").filter({ hasText: id });

test("a large order: its page says that a person looks at it; approved, it is shipped", async (t) => {
  const page = await person(t);
  await choose(page, "Lamp");
  await page.getByRole("link", { name: /^Basket/ }).click();
  await page.getByLabel("Lamp", { exact: true }).fill("9");
  await page.getByLabel("Lamp", { exact: true }).press("Tab");
  assert.equal(await page.getByText(/approved by a person/).isVisible(), false, "EUR 468 are not");
  await page.getByLabel("Lamp", { exact: true }).fill("10");
  await page.getByLabel("Lamp", { exact: true }).press("Tab");
  await page.getByText(/Orders over €500 are approved by a person/).waitFor();
  const id = await checkout(page, { customer: "Ann's friend" });
  await comesTo(page, "Waiting for approval");
  assert.match(await words(page), /card is charged[^]*orders over €500[^]*refunded/);
  const staff = await staffPage(t, "ann");
  const asked = question(staff, id);
  assert.match(await asked.innerText(), /Ship the order of Ann's friend for EUR 520\?[^]*10 × lamp[^]*Long Lane[^]*€520\.00/);
  await pictures(staff, "staff");
  await asked.getByRole("button", { name: `Approve and ship order ${id}` }).click();
  await staff.getByRole("status").filter({ hasText: "is approved" }).waitFor();
  await asked.waitFor({ state: "detached" });
  await comesTo(page, "Shipped");
  assert.match((await steps(page)).join("\n"), /Card charged[^]*Order approved[^]*Parcels shipped/);
});

test("a large order is rejected with a comment: the customer reads it, and the payment is refunded", async (t) => {
  const page = await person(t);
  await choose(page, "Kettle", 13);
  const id = await checkout(page);
  await comesTo(page, "Waiting for approval");
  const staff = await staffPage(t, "bob");
  const asked = question(staff, id);
  await asked.getByRole("button", { name: `Reject and refund order ${id}` }).click();
  await staff.getByRole("alert").filter({ hasText: "a rejection needs a comment" }).waitFor();
  await asked.getByLabel(/^Comment/).fill("<b>Thirteen</b> kettles?");
  await asked.getByRole("button", { name: `Reject and refund order ${id}` }).click();
  await comesTo(page, "Cancelled");
  assert.match(await words(page), /staff have rejected this order: <b>Thirteen<\/b> kettles\?[^]*your payment has been refunded/);
  assert.match((await steps(page)).join("\n"), /Items returned to stock[^]*Payment refunded/);
});

test("the staff's page asks for a key, and a wrong one shows nothing", async (t) => {
  const page = await person(t, { expected: [/status of 401/] });
  await page.goto(`${SHOP_URL}/staff.html`);
  await page.getByLabel("Your key").fill("intact_wrong");
  await page.getByRole("button", { name: "Show what waits for me" }).click();
  await page.getByRole("alert").filter({ hasText: "not one of a person who approves" }).waitFor();
  assert.equal(await page.getByRole("heading", { name: "Reminders" }).isVisible(), false);
});

test("a link to the staff's page passes the whole key on, whatever characters of base64url it has", async (t) => {
  const page = await person(t, { expected: [/status of 401/] });
  const asked = page.waitForRequest("**/api/approvals");
  await page.goto(`${SHOP_URL}/staff.html#eve-2:intact_-a_B-9-`);
  assert.equal((await asked).headers().authorization, "Bearer intact_-a_B-9-");
  await page.getByText("You decide as eve-2.").waitFor({ state: "attached" });
});

test("paid later: the items are reserved, and a second order of the customer waits for the first and says so", async (t) => {
  const page = await person(t);
  await choose(page, "Cup", 2);
  const first = await checkout(page, { customer: "Sam", pay: /^Later/ });
  await comesTo(page, "Waiting for your payment");
  assert.match(await words(page), /reserved for you until .*\d\d:\d\d:\d\d[^]*order is cancelled/);
  await pictures(page, "later");
  await page.setViewportSize(DESKTOP);
  await choose(page, "Clock");
  await checkout(page, { customer: "sam" });
  await comesTo(page, "Waiting for your other order");
  await page.getByText(`It waits for order ${first}`).waitFor();
  await page.getByRole("link", { name: "My orders" }).click();
  await page.getByText("Waiting for your payment").waitFor();
  await page.getByRole("link", { name: /Waiting for your other order/ }).click();
  await page.getByRole("link", { name: `order ${first}` }).click();
  await comesTo(page, "Waiting for your payment");
  await page.getByRole("button", { name: "Pay €19.00 now" }).click();
  await comesTo(page, "Shipped");
  assert.match((await steps(page)).join("\n"), /Payment confirmed by you[^]*Card charged/);
  await page.getByRole("link", { name: "My orders" }).click();
  await page.getByRole("link", { name: /1 item, €45\.00/ }).click();
  await comesTo(page, "Shipped");
});

test("not paid in time: the reservation ends by itself", async (t) => {
  await reservations("1s");
  t.after(() => reservations("1h"));
  const page = await person(t);
  await choose(page, "Cup");
  await checkout(page, { pay: /^Later/ });
  await comesTo(page, "Cancelled");
  assert.match(await words(page), /did not pay in time, and the reservation has ended[^]*your card was not charged/);
  assert.match((await steps(page)).join("\n"), /Items returned to stock/);
});

test("reserved until Friday, and cancelled before", async (t) => {
  const page = await person(t);
  await choose(page, "Teapot");
  await checkout(page, { pay: /^On / });
  await comesTo(page, "Reserved");
  assert.match(await words(page), /reserved for you until .* 18:00:00\. Then we charge your card/);
  assert.equal(await page.getByRole("button", { name: /^Pay/ }).isVisible(), false);
  await page.getByRole("button", { name: "Cancel this order" }).click();
  await comesTo(page, "Cancelled");
  assert.match(await words(page), /You have cancelled this order[^]*your card was not charged/);
});

test("reminders: the console has them written now, the staff and the customer see them", async (t) => {
  const page = await person(t);
  await choose(page, "Cup");
  await checkout(page, { pay: /^Later/ });
  await comesTo(page, "Waiting for your payment");
  const mischief = await consolePage(t);
  await mischief.getByRole("button", { name: "Write the reminders now" }).click();
  await mischief.getByRole("log").getByText(/The schedule morning was run now/).first().waitFor();
  const staff = await staffPage(t, "ann");
  await staff.getByText(/for approval, \d+ for a payment/).first().waitFor();
  await page.reload();
  await eventually("the customer was reminded", async () => {
    await page.reload();
    await comesTo(page, "Waiting for your payment");
    return page.getByText(/We reminded you on/).isVisible();
  });
  await page.getByRole("button", { name: "Cancel this order" }).click();
  await comesTo(page, "Cancelled");
});

// ---- The page of the console, on which the shop is broken ----

async function consolePage(t, options) {
  const page = await person(t, options);
  await page.goto(CONSOLE_URL);
  await page.getByRole("button", { name: "Kill stock" }).waitFor();
  return page;
}

async function mode(page, service, word) {
  const button = page.getByRole("group", { name: `Mode of ${service}` }).getByRole("button", { name: word });
  await button.click();
  await eventually(`${service} is ${word}`, async () => (await button.getAttribute("aria-pressed")) === "true");
}

const serviceCard = (page, name) => page.getByRole("article").filter({ has: page.getByRole("heading", { name, exact: true }) });

async function pictures(page, name) {
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme });
    for (const [size, viewport] of [["phone", PHONE], ["desktop", DESKTOP]]) {
      await page.setViewportSize(viewport);
      await page.screenshot({ path: `${PICTURES}/${name}-${size}-${colorScheme}.png`, fullPage: true });
      await noScrolling(page, `${name}, ${size}`);
      if (size === "phone") await accessible(page, `${name}, ${colorScheme}`);
    }
  }
}

test("payment fails: its breaker opens, the order waits, and goes on when payment is well again", async (t) => {
  const mischief = await consolePage(t);
  const page = await person(t);
  await tabTo(mischief, "#kill-leader"); // past the switches, and each of them is seen
  await mode(mischief, "payment", "Failing");
  await choose(page, "Teapot");
  await checkout(page);
  await serviceCard(mischief, "payment").getByText("circuit breaker open", { exact: true }).waitFor();
  await serviceCard(mischief, "payment").getByText(/order is waiting for it/).waitFor();
  await comesTo(page, "In progress");
  await page.getByText(/^Payment is not responding at the moment \(waiting since \d\d:\d\d:\d\d\)/).waitFor();
  const waiting = mischief.getByRole("region", { name: "Orders in progress" }).getByRole("listitem").filter({ hasText: new URL(page.url()).searchParams.get("id") });
  await waiting.getByText(/the breaker of agent payment/).waitFor();
  const processed = async () => Number(await mischief.getByRole("term").filter({ hasText: /^Processed$/ }).locator("xpath=../dd").innerText());
  const before = await processed();
  await mode(mischief, "payment", "Healthy");
  await comesTo(page, "Shipped");
  assert.equal(await page.getByText("is not responding").isVisible(), false);
  await waiting.waitFor({ state: "detached" });
  await eventually("one more is processed", async () => (await processed()) === before + 1);
  await serviceCard(mischief, "payment").getByText("circuit breaker closed", { exact: true }).waitFor();
});

test("shipping hangs: the order stops, an alert comes, and the operator's retry brings it to its end", async (t) => {
  const mischief = await consolePage(t);
  const page = await person(t);
  await mode(mischief, "shipping", "Hanging");
  await choose(page, "Cup");
  const id = await checkout(page);
  await comesTo(page, "Needs attention");
  const stopped = mischief.getByRole("article").filter({ has: mischief.getByRole("heading", { name: id }) });
  await stopped.waitFor();
  const alert = mischief.getByRole("region", { name: "Alerts" }).getByRole("listitem").filter({ hasText: "tasks stopped in error" })
    .filter({ has: mischief.locator(".badge", { hasText: /^open$/ }) }).first();
  await alert.waitFor();
  await mischief.getByRole("log").getByText(/Opened/).first().waitFor(); // it was told, not only asked for
  await pictures(mischief, "console");
  await mode(mischief, "shipping", "Healthy");
  // Each button says what it will do, for the step that is chosen; and each needs a reason, which nobody fills in for us.
  for (const [name, what] of [["Retry the order", /again/], ["Mark ship as done", /did take effect/], ["Mark ship as not done", /did not take effect/],
    ["Skip ship", /without step ship/], ["Cancel the order", /Undo/], ["Close the order", /Leave it/]])
    assert.match(await stopped.getByRole("button", { name, exact: true }).locator("xpath=../following-sibling::dd[1]").innerText(), what);
  await stopped.getByLabel("Step").selectOption("notify");
  await stopped.getByRole("button", { name: "Skip notify" }).waitFor();
  await stopped.getByLabel("Step").selectOption("ship");
  assert.equal(await stopped.getByLabel(/^Reason/).inputValue(), "");
  await stopped.getByRole("button", { name: "Retry the order" }).click();
  assert.ok(await stopped.getByLabel(/^Reason/).evaluate((e) => e.matches(":focus:invalid")), "without a reason the field is asked for");
  assert.equal(await alert.getByLabel("Reason").inputValue(), "");
  await alert.getByLabel("Reason").fill("the carrier was called");
  await alert.getByRole("button", { name: /^Acknowledge/ }).click();
  await mischief.getByRole("log").getByText(/acknowledged .*: the carrier was called/).waitFor();
  await stopped.getByLabel(/^Reason/).fill("the van is back");
  await stopped.getByRole("button", { name: "Retry the order" }).click();
  await comesTo(page, "Shipped");
  await stopped.waitFor({ state: "detached" });
});

test("an agent, the leader and the shop itself are killed: the order comes to its end, and its page goes on by itself", async (t) => {
  const mischief = await consolePage(t);
  const page = await person(t, { expected: [/ERR_CONNECTION_REFUSED/, /ERR_INCOMPLETE_CHUNKED/, /ERR_CONNECTION_RESET/, /ERR_EMPTY_RESPONSE/] });
  await mode(mischief, "stock", "Slow");
  await choose(page, "Cup");
  await checkout(page);
  await comesTo(page, "In progress");
  const leader = await mischief.getByRole("listitem").filter({ has: mischief.locator(".leads:visible") }).locator(".name").innerText();
  const killed = ["stock", leader, "web"];
  await mischief.getByRole("button", { name: "Kill stock" }).click();
  await mischief.getByRole("button", { name: "Kill the leader" }).click();
  await mischief.getByRole("button", { name: "Kill web" }).click();
  await page.getByRole("alert").filter({ hasText: "connection to the shop was lost" }).waitFor();
  await serviceCard(mischief, "stock").getByText(/^Not running/).waitFor();
  assert.equal(await serviceCard(mischief, "stock").getByRole("button", { name: "Down" }).getAttribute("aria-pressed"), "true");
  assert.equal(await serviceCard(mischief, "stock").getByText("Working normally").count(), 0);
  for (const name of killed) await mischief.getByRole("button", { name: `Start ${name}` }).click();
  await mode(mischief, "stock", "Healthy");
  await comesTo(page, "Shipped");
});
