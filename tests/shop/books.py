"""The shop's books: what each order came to, to the last unit, from the databases of the shop and of its three services.

Nothing here asks Intact or a program of the shop: the sums are made from what lies in the databases, and each database is
believed only as far as the others agree with it.
"""

import collections
import json
import os
import sqlite3
import subprocess

# What each database has to say. Tables of the shop and tasks of Intact lie in one.
SHOP = {
    "prices": "SELECT sku, price FROM shop_product",
    "orders": "SELECT id, items, amount, address FROM shop_order",
    "news": "SELECT order_id, sequence, event FROM shop_news",
    "tasks": "SELECT id, state FROM task_view WHERE workflow = 'shop_order'",
}
SERVICES = {
    "stock": {
        "items": "SELECT sku, delivered, on_shelf, reserved, sold FROM item",
        "reservations": "SELECT order_id, sku, quantity, state FROM reservation",
    },
    "payment": {
        "charges": "SELECT order_id, card, amount, state FROM charge",
        "accounts": "SELECT card, credit, charged FROM account",
    },
    "shipping": {
        "parcels": "SELECT order_id, items, address FROM parcel",
        "letters": "SELECT order_id FROM outbox",
    },
}


class Away(Exception):
    """A database that does not answer just now, perhaps since it is starting."""


def ask_sqlite(path, questions):
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=60)
    connection.row_factory = sqlite3.Row
    with connection:  # all of it as of one moment
        connection.execute("BEGIN")
        found = {name: [dict(row) for row in connection.execute(sql)] for name, sql in questions.items()}
    connection.close()
    return found


def ask_postgres(url, questions):
    told = ", ".join(f"'{name}', (SELECT coalesce(json_agg(q), '[]') FROM ({sql}) q)" for name, sql in questions.items())
    done = subprocess.run(["psql", "--no-psqlrc", "-qAt", url, "-c", f"SELECT json_build_object({told})"], check=False,
                          capture_output=True, text=True, env=os.environ | {"PGOPTIONS": "-c search_path=public,intact"})
    if done.returncode:
        raise Away(done.stderr)
    return json.loads(done.stdout)


def load(shop_db, services):
    """`shop_db` as SHOP_DB says it; `services`: the file of each service's database."""
    found = (ask_postgres if shop_db.startswith("postgres") else ask_sqlite)(shop_db, SHOP)
    for name, questions in SERVICES.items():
        found |= ask_sqlite(services[name], questions)
    return found


def by_order(rows, key="order_id"):
    found = collections.defaultdict(list)
    for row in rows:
        found[row[key]].append(row)
    return found


def quantities(items):
    wanted = collections.Counter()
    for item in json.loads(items) if isinstance(items, str) else items:
        wanted[item["sku"]] += item["quantity"]
    return wanted


class Books:
    """Each discrepancy is a sentence in `wrong`; `table` is for people."""

    def __init__(self, found, accepted):
        """`accepted`: the orders that the web server said yes to."""
        self.found, self.accepted = found, set(accepted)
        self.orders = {row["id"]: row for row in found["orders"]}
        self.tasks = {row["id"]: row["state"] for row in found["tasks"]}
        self.reservations, self.charges = by_order(found["reservations"]), by_order(found["charges"])
        self.parcels, self.letters, self.news = (by_order(found[name]) for name in ("parcels", "letters", "news"))
        self.prices = {row["sku"]: row["price"] for row in found["prices"]}
        self.wrong = []
        self.each_order()
        self.each_item()
        self.each_account()
        self.sums()

    def expect(self, is_right, sentence):
        if not is_right:
            self.wrong.append(sentence)

    def ended(self, state):
        return [self.orders[i] for i in self.orders if self.tasks.get(i) == state]

    def each_order(self):
        known = self.accepted | set(self.orders) | set(self.tasks) | set(self.news)
        for services in (self.reservations, self.charges, self.parcels, self.letters):
            known |= set(services)
        for order in sorted(known):
            self.expect(order in self.accepted, f"{order}: nobody placed it")
            self.expect(order in self.orders, f"{order}: has no row in shop_order")
            self.expect(order in self.tasks, f"{order}: has no task")
            if order in self.orders and order in self.tasks:
                self.one_order(order, self.orders[order], self.tasks[order])

    def one_order(self, order, row, state):
        self.expect(state in ("processed", "compensated"), f"{order}: has not ended, it is {state}")
        wanted = quantities(row["items"])
        amount = sum(self.prices.get(sku, 0) * quantity for sku, quantity in wanted.items())
        self.expect(row["amount"] == amount, f"{order}: its amount is {row['amount']}, and its goods cost {amount}")
        last = max(self.news.get(order, []), key=lambda n: n["sequence"], default={"event": "nothing"})["event"]
        self.expect(last == f"intact.task.{state}", f"{order}: it is {state}, and the last that the shop heard is {last}")

        charged = [c["amount"] for c in self.charges.get(order, []) if c["state"] == "charged"]
        parcels = [(quantities(p["items"]), p["address"]) for p in self.parcels.get(order, [])]
        letters = len(self.letters.get(order, []))
        held = collections.defaultdict(collections.Counter)
        for r in self.reservations.get(order, []):
            held[r["state"]][r["sku"]] += r["quantity"]
        if state == "processed":
            self.expect(held["sold"] == wanted, f"{order}: wants {dict(wanted)}, and {dict(held['sold'])} was sold")
            self.expect(charged == [row["amount"]], f"{order}: costs {row['amount']}, and {charged} was charged")
            self.expect(parcels == [(wanted, row["address"].strip())], f"{order}: wants one parcel of {dict(wanted)}, and {parcels} left")
            self.expect(letters == 1, f"{order}: wants one letter, and {letters} were written")
        elif state == "compensated":
            self.expect(not held["sold"], f"{order}: was undone, and {dict(held['sold'])} was sold")
            self.expect(not charged, f"{order}: was undone, and {charged} is still charged")
            self.expect(not parcels, f"{order}: was undone, and a parcel left")
            self.expect(not letters, f"{order}: was undone, and a letter was written")
        self.expect(not held["reserved"], f"{order}: is {state}, and {dict(held['reserved'])} is still held")

    def each_item(self):
        for item in self.found["items"]:
            sku = item["sku"]
            rows = [r for r in self.found["reservations"] if r["sku"] == sku]
            for state in ("reserved", "sold"):
                total = sum(r["quantity"] for r in rows if r["state"] == state)
                self.expect(item[state] == total, f"{sku}: {item[state]} {state}, and orders have {total}")
            left = item["delivered"] - item["reserved"] - item["sold"]
            self.expect(item["on_shelf"] == left >= 0, f"{sku}: {item['on_shelf']} on the shelf, where {left} should be")

    def each_account(self):
        for account in self.found["accounts"]:
            spent = sum(c["amount"] for c in self.found["charges"] if c["card"] == account["card"] and c["state"] == "charged")
            self.expect(account["charged"] == spent, f"card {account['card']}: {account['charged']} is charged to it, and its charges are {spent}")
            self.expect(spent <= account["credit"], f"card {account['card']}: {spent} charged, over its limit of {account['credit']}")

    def sums(self):
        done = self.ended("processed")
        goods = sum((quantities(o["items"]) for o in done), collections.Counter())
        sold = collections.Counter({i["sku"]: i["sold"] for i in self.found["items"]})
        money = sum(c["amount"] for c in self.found["charges"] if c["state"] == "charged")
        cost = sum(o["amount"] for o in done)
        self.expect(+sold == goods, f"{dict(+sold)} was sold, and the orders that were processed have {dict(goods)}")
        self.expect(money == cost, f"{money} was charged, and the orders that were processed cost {cost}")
        self.expect(len(self.found["parcels"]) == len(done), f"{len(self.found['parcels'])} parcels, {len(done)} orders processed")
        self.table = [
            ("orders accepted by the shop", len(self.accepted)),
            ("rows in shop_order", len(self.orders)),
            ("tasks", len(self.tasks)),
            ("  processed", len(done)),
            ("  compensated", len(self.ended("compensated"))),
            ("units delivered", sum(i["delivered"] for i in self.found["items"])),
            ("  on the shelf", sum(i["on_shelf"] for i in self.found["items"])),
            ("  held", sum(i["reserved"] for i in self.found["items"])),
            ("  sold", sum(sold.values())),
            ("  ordered and processed", sum(goods.values())),
            ("EUR charged", f"{money / 100:.2f}"),
            ("EUR of orders processed", f"{cost / 100:.2f}"),
            ("parcels", len(self.found["parcels"])),
            ("letters", len(self.found["letters"])),
        ]
