// The staff's page: what waits for the decision of one person. The key is that person's token of Intact; the shop passes it on.
import { ask, date, find, make, money, say } from "./shop.js";

// A link of the console has name and key after its #, where no server sees them.
const [, name, given] = /^#([\w-]+):([\w-]+)$/.exec(location.hash) ?? [];
let key = given ?? "";
let shown = ""; // what is the same is not made anew: somebody may be writing a comment

const call = (path, options = {}) =>
  ask(path, { ...options, headers: { "Content-Type": "application/json", Authorization: `Bearer ${key}` } });

async function decide(one, approve, comment) {
  try {
    const body = JSON.stringify({ step: one.step, asking: one.asking, approve, comment });
    await call(`/api/approvals/${encodeURIComponent(one.order)}`, { method: "POST", body });
    say(find("trouble"), "");
    say(find("told"), `Order ${one.order} is ${approve ? "approved: it is being shipped" : "rejected: it is being undone"}.`);
  } catch (error) {
    say(find("trouble"), error.message);
  }
  await look();
}

function question(one) {
  const id = `comment-${one.order}`;
  const comment = make("textarea", { id, rows: 2, maxlength: 900 });
  const lines = (one.about?.lines ?? []).map(({ sku, quantity }) => `${quantity} × ${sku}`).join(", ");
  return make("li", { class: "card" },
    make("h2", {}, one.question),
    make("p", {}, `${lines}. To: ${one.about?.address ?? "?"}. Total ${money(one.about?.amount ?? 0)}.`),
    make("p", { class: "over" }, `Order ${one.order}, waiting since ${date(one.asked_at)}`),
    make("label", { for: id }, "Comment (needed to reject: the customer reads it then)"),
    comment,
    make("div", { class: "buttons" },
      make("button", { class: "button", type: "button", "aria-label": `Approve and ship order ${one.order}`, click: () => decide(one, true, comment.value) }, "Approve and ship"),
      make("button", { class: "button light", type: "button", "aria-label": `Reject and refund order ${one.order}`, click: () => decide(one, false, comment.value) },
        "Reject and refund")));
}

const reminder = ({ at, approval, payment }) =>
  make("li", {}, `${date(at)}: ${approval} ${approval === 1 ? "order waits" : "orders wait"} for approval, ${payment} for a payment.`);

async function look() {
  find("enter").hidden = key !== "";
  if (!key) return;
  try {
    const answer = await call("/api/approvals");
    find("desk").hidden = false;
    if (shown !== JSON.stringify(answer)) {
      find("questions").replaceChildren(...answer.approvals.map(question));
      find("reminders").replaceChildren(...answer.reminders.map(reminder));
    }
    shown = JSON.stringify(answer);
    find("none").hidden = answer.approvals.length > 0;
    find("no-reminders").hidden = answer.reminders.length > 0;
    find("questions").setAttribute("aria-busy", "false");
  } catch (error) {
    say(find("trouble"), error.message);
    if (error.status !== 401 && error.status !== 403) return;
    key = "";
    find("desk").hidden = true;
    find("enter").hidden = false;
  }
}

find("enter").addEventListener("submit", (event) => {
  event.preventDefault();
  key = find("key").value.trim();
  say(find("trouble"), "");
  look();
});
say(find("who"), name ? `You decide as ${name}.` : "");
addEventListener("hashchange", () => location.reload());
look();
setInterval(() => document.hidden || look(), 2000);
