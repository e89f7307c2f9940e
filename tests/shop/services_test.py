#!/usr/bin/env python3
"""The shop's three services with a real server, without its web pages: what their own databases say after orders that go through,
are declined, find nothing on the shelf, are undone, hang, and after services that are killed again and again.

Usage: services_test.py ROOT INTACT STOCK PAYMENT [TEST...]
"""

import os
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import unittest
import urllib.error
import urllib.request

ROOT, INTACT, STOCK, PAYMENT = (os.path.realpath(p) for p in sys.argv[1:5])
sys.path.insert(0, f"{ROOT}/tests/http_agent")

from kit import ENVIRONMENT, Server, eventually, free_port  # noqa: E402

SHOP = f"{ROOT}/examples/shop"
KEY = "not-for-everybody"
CARD = "4242 4242 4242 4242"
PRICES = {"kettle": 3900, "teapot": 2400, "cup": 950, "lamp": 5200, "chair": 8900, "clock": 4500}


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


class Shop:
    """A server with the HTTP agent, and the services, in one folder."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="intact-shop-services.")
        self.port = free_port()
        config = f"{self.folder}/http-agent.yaml"
        with open(config, "w", encoding="utf-8") as f:
            f.write(read(f"{SHOP}/http-agent.yaml").replace(":8082", f":{self.port}"))
        keys = {"PAYMENT_KEY": KEY, "SHOP_KEY": "for-reminders"}
        self.server = Server(INTACT, flags=["--http", config], environment=keys, folder=f"{self.folder}/server")
        os.mkdir(self.server.folder)
        self.server.start()
        self.processes = {}
        for name in ("parcel", "shop"):
            self.put(read(f"{SHOP}/{name}.yaml"))
        for name in ("stock", "payment", "shipping"):
            os.mkdir(f"{self.folder}/{name}")
            self.start(name)

    def put(self, text):
        name = re.search("^workflow: (.*)$", text, re.MULTILINE)[1]
        request = urllib.request.Request(f"http://127.0.0.1:{self.server.port}/v1/workflows/{name}", text.encode(), method="PUT",
                                         headers={"Content-Type": "application/yaml", "Authorization": f"Bearer {self.server.token}"})
        urllib.request.urlopen(request).close()

    def path(self, name):
        return f"{self.folder}/{name}/{name}.db"

    def start(self, name):
        words = {"stock": [STOCK, self.path(name)], "payment": [PAYMENT, self.path(name), str(self.port)],
                 "shipping": [sys.executable, f"{SHOP}/services/shipping.py", self.path(name)]}[name]
        environment = ENVIRONMENT | {"INTACT_SERVER": f"http://127.0.0.1:{self.server.port}", "INTACT_TOKEN": self.server.token,
                                     "PAYMENT_KEY": KEY, "PYTHONPATH": f"{ROOT}/lib/python"}
        with open(f"{self.folder}/{name}.log", "ab") as log:
            self.processes[name] = subprocess.Popen(words, env=environment, stderr=log)

    def kill(self, name):
        self.processes[name].kill()
        self.processes[name].wait()

    def mode(self, name, mode):
        with open(f"{self.folder}/{name}/MODE.new", "w", encoding="utf-8") as f:
            f.write(mode)
        os.rename(f"{self.folder}/{name}/MODE.new", f"{self.folder}/{name}/MODE")

    def restock(self, what):
        subprocess.run([STOCK, self.path("stock"), "--restock", what], check=True)

    def sql(self, name, sql):
        """Rows; a database that is not there yet has none."""
        if not os.path.exists(self.path(name)):
            return []
        db = sqlite3.connect(self.path(name), timeout=60)
        try:
            return db.execute(sql).fetchall()
        except sqlite3.OperationalError as e:
            assert "no such table" in str(e)
            return []
        finally:
            db.close()

    def order(self, id_, card=CARD, address="12 Hill Road", **lines):
        self.server.submit("shop_order", id_, {
            "lines": [{"sku": sku, "quantity": quantity} for sku, quantity in lines.items()], "card": card, "address": address, "customer": id_,
            "amount": sum(PRICES[sku] * quantity for sku, quantity in lines.items())})

    def operator(self, verb, id_):
        try:
            self.server.call("POST", f"/v1/tasks/{id_}/{verb}", {"reason": "a test"})
        except urllib.error.HTTPError as e:
            assert e.code == 409, e.read()

    def step(self, id_, name):
        return next(s for s in self.server.task(id_)["steps"] if s["name"] == name)

    def log(self, name):
        return read(f"{self.folder}/{name}.log")

    def books(self, test, tasks):
        """What the services' own databases say, against how the tasks ended; then both, in total."""
        sold, paid, lines = dict.fromkeys(PRICES, 0), {}, []
        through = {t["id"] for t in tasks if t["state"] == "processed"}
        test.assertEqual({t["state"] for t in tasks} - {"processed", "compensated"}, set())
        for task in tasks:
            if task["id"] in through:
                paid[task["input"]["card"].replace(" ", "")] = paid.get(task["input"]["card"].replace(" ", ""), 0) + task["input"]["amount"]
                for number, line in enumerate(task["input"]["lines"], 1):
                    sold[line["sku"]] += line["quantity"]
                    lines.append((task["id"], number, line["sku"], line["quantity"]))
        for sku, delivered, on_shelf, reserved, out in self.sql("stock", "SELECT sku, delivered, on_shelf, reserved, sold FROM item"):
            test.assertEqual((on_shelf, reserved, out), (delivered - sold[sku], 0, sold[sku]), sku)
        for service, table in (("stock", "reservation WHERE state = 'sold'"), ("shipping", "parcel")):
            test.assertEqual(sorted(self.sql(service, f"SELECT order_id, line, sku, quantity FROM {table}")), sorted(lines), table)
        test.assertEqual(self.sql("stock", "SELECT * FROM reservation WHERE state IN ('reserved', 'packed')"), [])
        test.assertEqual(dict(self.sql("payment", "SELECT card, charged FROM account WHERE charged <> 0")), paid)
        for service, table in (("payment", "charge WHERE state = 'charged'"), ("shipping", "outbox")):
            test.assertEqual(sorted(self.sql(service, f"SELECT order_id FROM {table}")), sorted((i,) for i in through), table)

    def close(self):
        for process in self.processes.values():
            process.send_signal(signal.SIGTERM)
        ends = {name: process.wait() for name, process in self.processes.items()}
        said = {name: self.log(name) for name in ends}
        self.server.stop()
        self.server.close()
        shutil.rmtree(self.folder)
        for name, status in ends.items():
            # SIGTERM: it was not ready yet.
            assert status in (0, -signal.SIGTERM), f"{name} ended with {status}: {said[name]}"
            assert "Sanitizer" not in said[name] and "runtime error" not in said[name], said[name]


class ServicesTest(unittest.TestCase):
    def setUp(self):
        self.shop = Shop()
        self.addCleanup(self.shop.close)

    def ended(self, id_, state):
        task = self.shop.server.ended(id_)
        self.assertEqual(task["state"], state, task)
        return task

    def test_orders(self):
        shop = self.shop
        shop.order("o-1", kettle=1, cup=4)
        first = self.ended("o-1", "processed")
        self.assertEqual(first["output"], {"parcels": [1, 2], "receipt": 1})
        self.assertIn("o-1", shop.sql("shipping", "SELECT letter FROM outbox")[0][0])

        shop.order("o-2", card="4000 0000 0000 0002", lamp=2)
        declined = self.ended("o-2", "compensated")
        self.assertEqual(declined["error"]["code"], "http_402")
        self.assertTrue(declined["error"]["message"].endswith("answered 402: card_declined: The bank declined the card."), declined["error"])
        self.assertEqual(shop.sql("stock", "SELECT sku, quantity, state FROM reservation WHERE order_id = 'o-2'"), [("lamp", 2, "released")])

        shop.order("o-3", clock=1, chair=4)
        short = self.ended("o-3", "compensated")
        self.assertEqual((short["error"]["code"], short["error"]["message"]), ("out_of_stock", "Line 2, chair: 4 ordered, 3 left in stock."))
        shop.restock("chair=30")
        shop.order("o-4", chair=4)
        fourth = self.ended("o-4", "processed")

        shop.order("o-5", chair=20)
        limited = self.ended("o-5", "compensated")
        self.assertIn("limit_exceeded: Only 1567.00 EUR of the card limit is left.", limited["error"]["message"])
        shop.order("o-6", address="Sea of Tranquility\nMoon", cup=1)
        moon = self.ended("o-6", "compensated")
        self.assertEqual(moon["error"]["message"], "We do not deliver to the Moon.")
        self.assertEqual(shop.sql("payment", "SELECT state FROM charge WHERE order_id = 'o-6'"), [("refunded",)])

        strange = [7, {"sku": "table", "quantity": 1}, None, {}, {"sku": "cup"}, {"sku": "cup", "quantity": "x"}, {"sku": "cup", "quantity": 0.5},
                   {"sku": "cup", "quantity": -1}, {"sku": None, "quantity": 1}, {"quantity": 1},
                   {"sku": "cup", "quantity": True}, {"sku": "cup", "quantity": 2**63 - 1}]
        for i, line in enumerate(strange):
            lines = [{"sku": "cup", "quantity": 1}, line]
            shop.server.submit("shop_order", f"odd-{i}", {"lines": lines, "amount": 1, "card": CARD, "address": "-", "customer": f"odd-{i}"})
        for i, line in enumerate(strange):
            self.assertEqual(self.ended(f"odd-{i}", "compensated")["error"]["code"], "expression" if line == 7 else "bad_line", line)
        shop.server.submit("shop_order", "odd", {"lines": [{"sku": "cup", "quantity": 1}] * 21, "amount": 1, "card": CARD, "address": "-", "customer": "odd"})
        self.assertEqual(self.ended("odd", "compensated")["error"]["code"], "list")
        shop.books(self, [first, declined, short, fourth, limited, moon])

    def lines(self, id_):
        return self.shop.sql("stock", f"SELECT line, sku, quantity, state FROM reservation WHERE order_id = '{id_}' ORDER BY line, id")

    def barrier(self, id_):
        """What the warehouse keeps of the requests for an order and its parcels."""
        return dict(self.shop.sql("stock", f"SELECT forward_key, outcome FROM intact_barrier WHERE forward_key GLOB '{id_}[/@]*'"))

    def test_three_lines(self):
        """Each has goods and a parcel of its own, and the card is charged once."""
        shop = self.shop
        shop.order("o-1", kettle=1, cup=4, clock=2)
        task = self.ended("o-1", "processed")
        self.assertEqual(task["output"], {"parcels": [1, 2, 3], "receipt": 1})
        self.assertEqual(self.lines("o-1"), [(1, "kettle", 1, "sold"), (2, "cup", 4, "sold"), (3, "clock", 2, "sold")])
        self.assertEqual(self.barrier("o-1"), {f"o-1/reserve.{i}": "done" for i in range(3)} | {f"o-1@parcel.{i}/pack": "done" for i in range(3)}
                         | {"o-1/book_out": "done"})
        self.assertEqual(shop.sql("payment", "SELECT amount, state FROM charge"), [(3900 + 4 * 950 + 2 * 4500, "charged")])
        self.assertIn("parcels: 1, 2, 3.", shop.sql("shipping", "SELECT letter FROM outbox")[0][0])
        shop.books(self, [task])

    def test_one_line_is_out_of_stock(self):
        """All three are asked for at once; those that were there go back, and the customer is told which was not."""
        shop = self.shop
        shop.mode("stock", "hanging")
        shop.order("o-1", clock=1, chair=4, cup=2)
        eventually("all lines are asked for", lambda: [
            bool(line["attempts"]) for line in shop.step("o-1", "reserve")["items"]["at_work"]] == [True] * 3)
        shop.mode("stock", "ok")
        task = self.ended("o-1", "compensated")
        self.assertEqual((task["error"]["code"], task["error"]["message"]), ("out_of_stock", "Line 2, chair: 4 ordered, 3 left in stock."))
        outcomes = self.barrier("o-1")  # barred: it was undone before it was done
        self.assertEqual(set(outcomes), {"o-1/reserve.0", "o-1/reserve.2"})
        self.assertLessEqual(set(outcomes.values()), {"undone", "barred"})
        self.assertLessEqual(set(self.lines("o-1")), {(1, "clock", 1, "released"), (3, "cup", 2, "released")})
        self.assertEqual(shop.sql("payment", "SELECT * FROM charge"), [])
        shop.books(self, [task])

    def test_one_parcel_cannot_be_sent(self):
        """The others are unpacked, everything goes back on the shelf, and the payment is refunded."""
        shop = self.shop
        shop.order("o-1", address="P.O. Box 7\nWien", cup=2, chair=1, lamp=1)
        task = self.ended("o-1", "compensated")
        self.assertEqual((task["error"]["code"], task["error"]["message"]), ("too_large", "Line 2, chair: too large for a P.O. box."))
        self.assertEqual([line[3] for line in self.lines("o-1")], ["released"] * 3)
        self.assertEqual(set(self.barrier("o-1").values()) - {"barred"}, {"undone"})
        self.assertEqual(shop.sql("payment", "SELECT amount, state FROM charge"), [(2 * 950 + 8900 + 5200, "refunded")])
        shop.order("o-2", address="P.O. Box 7\nWien", cup=2, lamp=1)
        shop.books(self, [task, self.ended("o-2", "processed")])

    def test_a_parcel_stops(self):
        """Its goods can be neither packed nor unpacked: a person is asked about that parcel, and the order follows it."""
        shop = self.shop
        quick = re.sub("complete_by: 5s", "complete_by: 1s", re.sub("retry: {.*}", "retry: {attempts: 1}", read(f"{SHOP}/parcel.yaml")))
        shop.put(quick)
        shop.mode("payment", "hanging")
        shop.order("o-1", cup=2, lamp=1)
        eventually("it is to be charged", lambda: shop.step("o-1", "charge")["attempts"])
        shop.mode("stock", "hanging")
        shop.mode("payment", "ok")
        task = self.ended("o-1", "error")
        self.assertEqual(task["error"]["code"], "child")
        self.assertEqual([line[3] for line in self.lines("o-1")], ["reserved"] * 2)
        shop.mode("stock", "ok")

        def goes_on():
            for child in shop.server.call("GET", "/v1/tasks?parent=o-1&state=error")["tasks"]:
                shop.operator("retry", child["id"])
            task = shop.server.ended("o-1")
            return task if task["state"] == "compensated" else None

        task = eventually("it goes on", goes_on)
        self.assertEqual(shop.sql("payment", "SELECT state FROM charge"), [("refunded",)])
        shop.books(self, [task])

    def test_undo(self):
        """An operator takes an order back that does not get on: its parcels are packed, and are unpacked."""
        shop = self.shop
        shop.mode("shipping", "failing")
        shop.order("o-1", teapot=2, cup=1)
        eventually("it was to be shipped", lambda: shop.step("o-1", "ship")["failure_count"] > 0)
        self.assertEqual(shop.sql("payment", "SELECT state FROM charge"), [("charged",)])
        self.assertEqual([line[3] for line in self.lines("o-1")], ["packed"] * 2)
        shop.operator("undo", "o-1")
        shop.books(self, [self.ended("o-1", "compensated")])
        self.assertEqual(set(self.barrier("o-1").values()), {"undone"})
        self.assertEqual(shop.sql("payment", "SELECT amount, state FROM charge"), [(5750, "refunded")])

    def test_late(self):
        """Payment hangs, and wakes up when the order has long been given up: nothing is charged for good."""
        shop = self.shop
        shop.mode("payment", "hanging")
        shop.order("o-1", cup=1)
        eventually("it hangs", lambda: len(shop.step("o-1", "charge")["attempts"]) > 1)
        shop.operator("undo", "o-1")
        shop.mode("payment", "ok")
        task = self.ended("o-1", "compensated")
        shop.books(self, [task])
        self.assertNotEqual(shop.sql("payment", "SELECT state FROM charge"), [("charged",)])

    def test_cancelled(self):
        """A refund comes first: what it would give back is not taken any more."""
        def call(method, path, body=None, key=KEY):
            request = urllib.request.Request(f"http://127.0.0.1:{self.shop.port}{path}", body and body.encode(), method=method,
                                             headers={"Idempotency-Key": "o-1/charge", "Authorization": f"Bearer {key}"})
            try:
                with urllib.request.urlopen(request) as answer:
                    return answer.status, answer.read().decode()
            except urllib.error.HTTPError as e:
                return e.code, e.read().decode()

        charge = '{"order": "o-%d", "card": "4242424242424242", "amount": 500}'
        eventually("payment is there", lambda: "ready" in self.shop.log("payment"))
        self.assertEqual(call("DELETE", "/charges/o-1"), (200, '{"refunded":0}'))
        self.assertEqual(call("POST", "/charges", charge % 1), (409, "cancelled: This order was cancelled."))
        self.assertEqual(call("POST", "/charges", charge % 2), (201, '{"receipt":2}'))
        self.assertEqual(call("POST", "/charges", charge % 2), (200, '{"receipt":2}'))
        for other in (charge % 3, (charge % 2).replace("500", "501"), (charge % 2).replace("4242", "4243", 1)):
            self.assertEqual(call("POST", "/charges", other), (422, "key_reused: This key stands for another charge."))
        self.assertEqual(call("DELETE", "/charges/o-2"), (200, '{"refunded":500}'))
        self.assertEqual(call("DELETE", "/charges/o-2"), (200, '{"refunded":500}'))
        self.assertEqual(call("POST", "/charges", charge % 2)[0], 409)
        self.assertEqual(call("POST", "/charges", charge % 3, key="another-key")[0], 401)
        self.assertEqual(call("POST", "/charges", "{")[0], 400)
        self.assertEqual(call("POST", "/charges", "x" * 100000)[0], 413)
        self.assertEqual(call("POST", "/charges", '{"order": "o-3", "card": 1, "amount": 5}')[0], 422)
        self.assertEqual(self.shop.sql("payment", "SELECT sum(charged) FROM account"), [(0,)])

    def test_pivot(self):
        """Nobody knows whether the parcel has left: nothing is undone, and a person is asked. Later it goes on."""
        shop = self.shop
        before, ship, after = read(f"{SHOP}/shop.yaml").partition("- name: ship")
        shop.put(before + ship + after.replace("defer: 15s", "defer: 200ms", 1).replace("complete_by: 5s", "complete_by: 1s", 1))
        shop.mode("shipping", "hanging")
        shop.order("o-1", lamp=1)
        task = self.ended("o-1", "error")
        self.assertTrue(next(s for s in task["steps"] if s["name"] == "ship")["in_doubt"], task)
        self.assertEqual(shop.sql("payment", "SELECT state FROM charge"), [("charged",)])
        shop.mode("shipping", "ok")

        def goes_on():
            shop.operator("retry", "o-1")
            task = shop.server.ended("o-1")
            return task if task["state"] == "processed" else None

        shop.books(self, [eventually("it goes on", goes_on)])

    def parcel(self, id_):
        """The task of its first parcel, once it is there."""
        try:
            return self.shop.server.task(f"{id_}@parcel.0")
        except urllib.error.HTTPError as e:
            self.assertEqual(e.code, 404)
            return {"steps": []}

    def test_refused_after_a_lost_request(self):
        """What is sent again cannot say for certain that nothing happened. A refusal leads to the undo all the same: it is none of
        the pivot."""
        shop = self.shop
        shop.put(read(f"{SHOP}/parcel.yaml").replace("complete_by: 5s", "complete_by: 5m"))  # time to be sent again
        eventually("shipping calls for work", lambda: next(
            (a for a in shop.server.call("GET", "/v1/agents")["agents"] if a["agent"] == "shipping" and a["parked_calls"]), None))
        shop.processes["shipping"].send_signal(signal.SIGSTOP)  # it takes the request, and never looks at it
        shop.order("o-1", address="Moon", lamp=1)
        eventually("its request is lost", lambda: any(
            s["agent"] == "shipping" and s["attempts"] for s in self.parcel("o-1")["steps"]))
        shop.kill("shipping")
        shop.start("shipping")
        task = self.ended("o-1", "compensated")
        self.assertTrue(any(a.get("resent") for s in self.parcel("o-1")["steps"] for a in s["attempts"]), task)
        shop.books(self, [task])

    def test_kills(self):
        """All three are killed while they work, again and again."""
        shop, orders = self.shop, 40
        chance = random.Random(seed := int(os.environ.get("SEED") or random.randrange(1 << 30)))
        print(f"SEED={seed}")
        for sku in PRICES:
            shop.restock(f"{sku}=20")
        for i in range(orders):
            lines = {sku: chance.randint(1, 2) for sku in chance.sample(sorted(PRICES), chance.randint(1, 4))}  # no person approves them
            shop.order(f"o-{i}", card=f"4000 0000 0{i % 5:03} {2 if i % 7 == 0 else 4242:04}",
                       address="P.O. Box 7" if i % 4 == 0 else "12 Hill Road", **lines)
            name = chance.choice(sorted(shop.processes))
            if i % 3 == 0:
                shop.kill(name)
                shop.start(name)

        def all_ended():
            for stopped in shop.server.call("GET", "/v1/tasks?state=error&limit=200")["tasks"]:  # orders and parcels
                shop.operator("retry", stopped["id"])
            tasks = [shop.server.ended(f"o-{i}") for i in range(orders)]
            return tasks if not any(task["state"] == "error" for task in tasks) else None

        tasks = eventually("all have ended", all_ended)
        print(sum(task["state"] == "processed" for task in tasks), "of", orders, "went through")
        shop.books(self, tasks)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[5:])
