#!/usr/bin/python3
"""Places orders in a shop of its own while services misbehave and processes are killed, then compares the books to the last unit.

Usage: reconcile.py BUILD [--orders 1000] [--sqlite] [--seed N] [--keep] [--plant] [--plan]

People order by HTTP, as the page does, and press again until the shop has said yes; some press twice. Meanwhile a second
pair of hands makes mischief on the console. In the end all is well again, an operator retries what has stopped, and when every
order has ended the books are made, see books.py.

The seed fixes who orders what, and the plan of the mischief: what it does, in which order, for how long, and at which order's
number (--plan shows it, and does nothing). It does not fix how far the orders before have come by then, who leads, or in
which instruction a kill falls: a run with the same seed meets the same blows, and each of them at a moment of its own.
"""

import argparse
import collections
import contextlib
import os
import random
import shutil
import sqlite3
import sys
import threading
import time

import books
import mischief
from shop_kit import AWAY, Shop, ask, eventually

PRODUCTS = ("kettle", "teapot", "cup", "lamp", "chair", "clock")
CUSTOMERS = 8


class Customers:
    """They order one after the other, each of them again and again."""

    def __init__(self, shop, count, seed):
        self.shop, self.count, self.seed = shop, count, seed
        self.lock, self.begun = threading.Lock(), 0
        self.accepted, self.later, self.wrong, self.pressed = [], [], [], 0
        self.threads = [threading.Thread(target=self.run, daemon=True) for _ in range(CUSTOMERS)]
        for thread in self.threads:
            thread.start()

    def order(self, number):
        """Every ninth card is declined, every eleventh order is paid by the same one, which comes to its limit, and of every
        thirteenth the parcels cannot leave, when all else was done. Every third goes to a P.O. box: if one of its lines is chairs,
        the other parcels are unpacked. Every seventh is paid later, see Hands."""
        draw = random.Random(f"{self.seed}/{number}")
        lines = [{"sku": sku, "quantity": draw.randint(1, 3)} for sku in draw.sample(PRODUCTS, draw.randint(1, 4))]
        card = f"4000 {number:08d} 0002" if number % 9 == 8 else f"4242 {0 if number % 11 == 10 else number + 1:08d} 4242"
        address = f"{f'P.O. Box {number}' if number % 3 == 1 else f'{number} Long Lane'}\n{'Moon' if number % 13 == 12 else 'Wien'}"
        return {"lines": lines, "card": card, "address": address, "key": f"{self.seed}-order-{number}",
                "customer": f"Customer {draw.randrange(2 * CUSTOMERS)}", "pay": "later" if number % 7 == 3 else "now"}

    def press(self, order):
        """Until there is an answer that says yes or no."""
        while True:
            with self.lock:
                self.pressed += 1
            with contextlib.suppress(*AWAY):
                status, answer = self.shop.order(order)
                if status == 202:
                    return answer["order"]
                if status < 500:
                    self.wrong.append(f"{order['key']}: the shop said {status}: {answer}")
                    return None
            time.sleep(0.3)

    def run(self):
        while True:
            with self.lock:
                number = self.begun
                if number == self.count:
                    return
                self.begun += 1
            order = self.order(number)
            placed = self.press(order)
            if number % 5 == 4 and self.press(order) != placed:
                self.wrong.append(f"{order['key']}: pressed twice, and it is two orders")
            if placed:
                self.accepted.append(placed)
                if order["pay"] == "later":
                    self.later.append(placed)
            time.sleep(random.random())  # they have other things to do, too

    def wait(self):
        for thread in self.threads:
            thread.join()


class Hands:
    """Customers who pay later, and the staff, who approves large orders or rejects them. What did not work is tried again."""

    def __init__(self, shop, customers):
        self.shop, self.customers = shop, customers
        self.key = shop.state()["staff"]["ann"].rpartition(":")[2]
        self.paid, self.approved, self.rejected = set(), set(), set()
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        while not self.ended.wait(0.5):
            for work in (self.pay, self.decide):
                with contextlib.suppress(*AWAY):
                    work()

    def pay(self):
        for order in sorted(set(self.customers.later) - self.paid):
            waits = ask(self.shop.url, f"/api/orders/{order}")[1].get("waits_for") == "signal"
            if waits and ask(self.shop.url, f"/api/orders/{order}/pay", {})[0] == 200:
                self.paid.add(order)

    def decide(self):
        person = {"Authorization": f"Bearer {self.key}"}
        for one in ask(self.shop.url, "/api/approvals", headers=person)[1].get("approvals", []):
            agrees = int(one["order"][2:], 16) % 3 > 0
            body = {"step": one["step"], "asking": one["asking"], "approve": agrees, "comment": "" if agrees else "not in this month"}
            if ask(self.shop.url, f"/api/approvals/{one['order']}", body, headers=person)[0] == 200:
                (self.approved if agrees else self.rejected).add(one["order"])

    def end(self):
        self.ended.set()
        self.thread.join()


def tell(words):
    print(words, flush=True)


def operate(shop, accepted):
    """An operator retries what has stopped, until every order has ended and the shop knows it."""
    retried = set()

    def look():
        shop.start_all()
        for task in shop.stopped():
            retried.add(task)
            shop.operator("retry", task)
        try:
            found = books.load(*shop.databases())
        except books.Away:
            return False
        news = books.by_order(found["news"])
        last = {order: max(told, key=lambda n: n["sequence"])["event"] for order, told in news.items()}
        states = {row["id"]: row["state"] for row in found["tasks"]}
        return all(states.get(o) in ("processed", "compensated") and last.get(o) == f"intact.task.{states[o]}" for o in accepted)

    eventually("every order has ended, and the shop knows it", look, pause=1)
    return retried


# One wrong row each, and what has to be said of it.
PLANTED = [
    ("payment", "UPDATE charge SET amount = amount + 1 WHERE state = 'charged' AND id = (SELECT min(id) FROM charge WHERE state = 'charged')",
     "was charged"),
    ("payment", "DELETE FROM charge WHERE id = (SELECT min(id) FROM charge WHERE state = 'charged')", "was charged"),
    ("payment", "UPDATE charge SET state = 'charged' WHERE id = (SELECT min(id) FROM charge WHERE state = 'refunded')", "still charged"),
    ("payment", "UPDATE account SET charged = charged + 1", "is charged to it"),
    ("stock", "UPDATE reservation SET state = 'released' WHERE rowid = (SELECT min(rowid) FROM reservation WHERE state = 'sold')", "was sold"),
    ("stock", "UPDATE reservation SET state = 'reserved' WHERE rowid = (SELECT min(rowid) FROM reservation WHERE state = 'released')",
     "still held"),
    ("stock", "UPDATE item SET delivered = delivered + 1, sold = sold + 1 WHERE sku = 'cup'", "sold, and orders have"),
    ("stock", "UPDATE item SET delivered = delivered + 1 WHERE sku = 'cup'", "on the shelf, where"),
    ("stock", "UPDATE reservation SET state = 'packed' WHERE rowid = (SELECT min(rowid) FROM reservation WHERE state = 'released')",
     "still held"),
    ("stock", "UPDATE reservation SET line = line + 1 WHERE rowid = (SELECT max(rowid) FROM reservation WHERE state = 'sold')", "was sold"),
    ("shipping", "DELETE FROM parcel WHERE id = (SELECT min(id) FROM parcel)", "wants one parcel"),
    ("shipping", "UPDATE parcel SET quantity = 77 WHERE id = (SELECT min(id) FROM parcel)", "wants one parcel"),
    ("shipping", "UPDATE parcel SET line = line + 20 WHERE id = (SELECT min(id) FROM parcel)", "wants one parcel"),
    ("shipping", "INSERT INTO parcel(order_id, line, sku, quantity, address) SELECT order_id, 21, sku, quantity, address FROM parcel LIMIT 1",
     "wants one parcel"),
    ("shipping", "DELETE FROM outbox WHERE id = (SELECT min(id) FROM outbox)", "wants one letter"),
    ("shop", "DELETE FROM shop_order WHERE id = (SELECT min(id) FROM shop_order)", "no row in shop_order"),
    ("shop", "UPDATE shop_order SET amount = amount + 100 WHERE id = (SELECT min(id) FROM shop_order)", "its goods cost"),
    ("shop", "DELETE FROM shop_news WHERE event IN ('intact.task.processed', 'intact.task.compensated')", "the last that the shop heard"),
]


def plant(shop, accepted):
    """Each of them in copies of the databases: a discrepancy that nobody notices would be one of ours."""
    shop_db, services = shop.databases()
    missed = []
    for number, (where, sql, sentence) in enumerate(PLANTED):
        if where == "shop" and shop_db.startswith("postgres"):
            continue
        folder = f"{shop.work}/planted-{number}"
        os.mkdir(folder)
        copies = {}
        for name, path in {**services, "shop": shop_db}.items():
            copies[name] = f"{folder}/{name}.db"
            if name != "shop" or not shop_db.startswith("postgres"):
                with contextlib.closing(sqlite3.connect(path)) as source, contextlib.closing(sqlite3.connect(copies[name])) as copy:
                    source.backup(copy)
        with contextlib.closing(sqlite3.connect(copies[where])) as copy, copy:
            copy.execute("PRAGMA ignore_check_constraints = ON")
            rows = copy.execute(sql).rowcount
        found = books.load(copies["shop"] if where == "shop" else shop_db, copies)
        if rows < 1 or not any(sentence in wrong for wrong in books.Books(found, accepted).wrong):
            missed.append(f"planted, and not noticed: {sql}")
        shutil.rmtree(folder)
    found = books.load(shop_db, services)
    if not books.Books(found, accepted + ["o-never"]).wrong or not books.Books(found, accepted[1:]).wrong:
        missed.append("an order too many or too few, and not noticed")
    tell(f"{len(PLANTED) + 1 - len(missed)} planted discrepancies were noticed")
    return missed


def main():
    options = argparse.ArgumentParser(usage=__doc__.split("\n")[2][7:])
    options.add_argument("build")
    options.add_argument("--orders", type=int, default=1000)
    options.add_argument("--sqlite", action="store_true")
    options.add_argument("--seed", default=str(random.SystemRandom().randrange(1_000_000)))
    options.add_argument("--keep", action="store_true")
    options.add_argument("--plant", action="store_true")
    options.add_argument("--plan", action="store_true")
    options = options.parse_args()
    if options.orders < 1:
        sys.exit("reconcile: --orders takes a number from 1")
    tell(f"seed {options.seed}: {options.orders} orders, {'SQLite' if options.sqlite else 'PostgreSQL'}")
    plan = mischief.draw(options.seed, options.orders, options.sqlite)
    if options.plan:
        print(*plan, sep="\n")
        return 0
    with Shop(options.build, options.sqlite, options.keep) as shop:
        for sku in PRODUCTS:  # of chairs there are too few
            shop.restock(sku, options.orders // 10 if sku == "chair" else options.orders)
        started = time.monotonic()
        customers = Customers(shop, options.orders, options.seed)
        hands = Hands(shop, customers)
        mischief.carry_out(shop, plan, lambda: customers.begun)
        mischief.end(shop)
        customers.wait()
        count = collections.Counter(act.kind for act in plan)
        tell(f"{len(customers.accepted)} orders placed in {time.monotonic() - started:.0f} s, {customers.pressed} times pressed; "
             f"{count['mode']} modes of services, {count['kill']} kills, {count['leader']} of the leader")
        retried = operate(shop, customers.accepted)
        hands.end()
        tell(f"{len(hands.paid)} were paid later, {len(hands.approved)} approved, {len(hands.rejected)} rejected")
        tell(f"all have ended after {time.monotonic() - started:.0f} s; the operator retried {len(retried)}")
        result = books.Books(books.load(*shop.databases()), customers.accepted)
        wrong = customers.wrong + result.wrong
        for what, value in result.table:
            tell(f"  {what:28} {value:>12}")
        if options.plant and not wrong:
            wrong += plant(shop, customers.accepted)
        for sentence in wrong:
            tell(sentence)
        tell(f"{len(wrong)} discrepancies")
        shop.is_good = not wrong
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
