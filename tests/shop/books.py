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
    "orders": "SELECT id, lines, amount, address FROM shop_order",
    "news": "SELECT order_id, sequence, event FROM shop_news",
    "tasks": "SELECT id, state FROM task_view WHERE workflow = 'shop_order'",
    "children": "SELECT parent AS order_id, state FROM task_view WHERE workflow = 'shop_parcel'",
}
SERVICES = {
    "stock": {
        "items": "SELECT sku, delivered, on_shelf, reserved, sold FROM item",
        "reservations": "SELECT order_id, line, sku, quantity, state FROM reservation",
    },
    "payment": {
        "charges": "SELECT order_id, card, amount, state FROM charge",
        "accounts": "SELECT card, credit, charged FROM account",
    },
    "shipping": {
        "parcels": "SELECT order_id, line, sku, quantity, address FROM parcel",
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


def lines_of(order):
    """Each line of an order: its number, what, and how many."""
    return [(number, line["sku"], line["quantity"]) for number, line in enumerate(json.loads(order["lines"]), 1)]


def lines_in(rows, *more):
    """The same of rows of a service."""
    return sorted(tuple(row[name] for name in ("line", "sku", "quantity", *more)) for row in rows)


class Books:
    """Each discrepancy is a sentence in `wrong`; `table` is for people."""

    def __init__(self, found, accepted):
        """`accepted`: the orders that the web server said yes to."""
        self.found, self.accepted = found, set(accepted)
        self.orders = {row["id"]: row for row in found["orders"]}
        self.tasks = {row["id"]: row["state"] for row in found["tasks"]}
        self.reservations, self.charges = by_order(found["reservations"]), by_order(found["charges"])
        self.parcels, self.letters, self.news, self.children = (by_order(found[name]) for name in ("parcels", "letters", "news", "children"))
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
        for of_orders in (self.reservations, self.charges, self.parcels, self.letters, self.children):
            known |= set(of_orders)
        for order in sorted(known):
            self.expect(order in self.accepted, f"{order}: nobody placed it")
            self.expect(order in self.orders, f"{order}: has no row in shop_order")
            self.expect(order in self.tasks, f"{order}: has no task")
            if order in self.orders and order in self.tasks:
                self.one_order(order, self.orders[order], self.tasks[order])

    def one_order(self, order, row, state):
        self.expect(state in ("processed", "compensated"), f"{order}: has not ended, it is {state}")
        wanted = lines_of(row)
        amount = sum(self.prices.get(sku, 0) * quantity for _, sku, quantity in wanted)
        self.expect(row["amount"] == amount, f"{order}: its amount is {row['amount']}, and its goods cost {amount}")
        last = max(self.news.get(order, []), key=lambda n: n["sequence"], default={"event": "nothing"})["event"]
        self.expect(last == f"intact.task.{state}", f"{order}: it is {state}, and the last that the shop heard is {last}")

        charged = [c["amount"] for c in self.charges.get(order, []) if c["state"] == "charged"]
        parcels = lines_in(self.parcels.get(order, []), "address")
        letters = len(self.letters.get(order, []))
        goods = by_order(self.reservations.get(order, []), "state")
        sold, held = lines_in(goods["sold"]), lines_in(goods["reserved"] + goods["packed"])
        packed = collections.Counter(child["state"] for child in self.children.get(order, []))
        if state == "processed":
            self.expect(sold == wanted, f"{order}: wants {wanted}, and {sold} was sold")
            self.expect(charged == [row["amount"]], f"{order}: costs {row['amount']}, and {charged} was charged")
            sent = [(*line, row["address"].strip()) for line in wanted]
            self.expect(parcels == sent, f"{order}: wants one parcel for each line, {sent}, and {parcels} left")
            self.expect(packed["processed"] == len(wanted), f"{order}: has {len(wanted)} lines, and its parcels are {dict(packed)}")
            self.expect(letters == 1, f"{order}: wants one letter, and {letters} were written")
        elif state == "compensated":
            self.expect(not sold, f"{order}: was undone, and {sold} was sold")
            self.expect(not packed["processed"], f"{order}: was undone, and its parcels are {dict(packed)}")
            self.expect(not charged, f"{order}: was undone, and {charged} is still charged")
            self.expect(not parcels, f"{order}: was undone, and a parcel left")
            self.expect(not letters, f"{order}: was undone, and a letter was written")
        self.expect(not held, f"{order}: is {state}, and {held} is still held")
        self.expect(not set(packed) - {"processed", "compensated"}, f"{order}: is {state}, and its parcels are {dict(packed)}")

    def each_item(self):
        for item in self.found["items"]:
            sku = item["sku"]
            rows = [r for r in self.found["reservations"] if r["sku"] == sku]
            for column, states in (("reserved", ("reserved", "packed")), ("sold", ("sold",))):
                total = sum(r["quantity"] for r in rows if r["state"] in states)
                self.expect(item[column] == total, f"{sku}: {item[column]} {column}, and orders have {total}")
            left = item["delivered"] - item["reserved"] - item["sold"]
            self.expect(item["on_shelf"] == left >= 0, f"{sku}: {item['on_shelf']} on the shelf, where {left} should be")

    def each_account(self):
        for account in self.found["accounts"]:
            spent = sum(c["amount"] for c in self.found["charges"] if c["card"] == account["card"] and c["state"] == "charged")
            self.expect(account["charged"] == spent, f"card {account['card']}: {account['charged']} is charged to it, and its charges are {spent}")
            self.expect(spent <= account["credit"], f"card {account['card']}: {spent} charged, over its limit of {account['credit']}")

    def sums(self):
        done = self.ended("processed")
        lines = [line for order in done for line in lines_of(order)]
        goods = collections.Counter()
        for _, sku, quantity in lines:
            goods[sku] += quantity
        sold = collections.Counter({i["sku"]: i["sold"] for i in self.found["items"]})
        money = sum(c["amount"] for c in self.found["charges"] if c["state"] == "charged")
        cost = sum(o["amount"] for o in done)
        self.expect(+sold == goods, f"{dict(+sold)} was sold, and the orders that were processed have {dict(goods)}")
        self.expect(money == cost, f"{money} was charged, and the orders that were processed cost {cost}")
        self.expect(len(self.found["parcels"]) == len(lines), f"{len(self.found['parcels'])} parcels, {len(lines)} lines of orders processed")
        self.table = [
            ("orders accepted by the shop", len(self.accepted)),
            ("rows in shop_order", len(self.orders)),
            ("tasks", len(self.tasks)),
            ("  processed", len(done)),
            ("  compensated", len(self.ended("compensated"))),
            ("tasks of parcels", len(self.found["children"])),
            ("  compensated", sum(child["state"] == "compensated" for child in self.found["children"])),
            ("units delivered", sum(i["delivered"] for i in self.found["items"])),
            ("  on the shelf", sum(i["on_shelf"] for i in self.found["items"])),
            ("  held", sum(i["reserved"] for i in self.found["items"])),
            ("  sold", sum(sold.values())),
            ("  ordered and processed", sum(goods.values())),
            ("EUR charged", f"{money / 100:.2f}"),
            ("EUR of orders processed", f"{cost / 100:.2f}"),
            ("lines of orders processed", len(lines)),
            ("parcels", len(self.found["parcels"])),
            ("letters", len(self.found["letters"])),
        ]
