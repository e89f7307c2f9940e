#!/usr/bin/python3
"""The shop's web server with a real broker and a real database: what it takes, what it refuses, and that news gets to its pages.

Usage: web_test.py SHOP-WEB [TEST...]
"""

import contextlib
import glob
import http.client
import json
import os
import pwd
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import unittest

import psycopg2

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "amqp"))

import broker_kit as kit  # noqa: E402
from broker_kit import Client, body_of, eventually  # noqa: E402

WEB = os.path.realpath(sys.argv.pop(1))
SHOP = os.path.normpath(f"{HERE}/../../examples/shop")
KEY = "of-the-schedule"
POSTGRES = sorted(glob.glob("/usr/lib/postgresql/*/bin"))[-1:]


class Lite:
    def __init__(self, folder):
        self.url = f"{folder}/intact.db"
        self.do("PRAGMA journal_mode = WAL")

    def do(self, sql):
        connection = sqlite3.connect(self.url, timeout=60, isolation_level=None)
        try:
            return connection.execute(sql).fetchall()
        finally:
            connection.close()

    def leave(self):
        """The database is away, as far as the server can see."""
        os.rename(self.url, f"{self.url}.away")

    def come_back(self):
        os.rename(f"{self.url}.away", self.url)

    def close(self):
        pass


class Postgres:
    """A cluster of our own. It ends by SIGQUIT: as if it was killed, but no shared memory is left behind."""

    def __init__(self, folder):
        self.folder = f"{folder}/postgres"
        os.mkdir(self.folder)
        self.user = "postgres" if os.getuid() == 0 else None
        if self.user:
            os.chmod(folder, 0o755)
            os.chown(self.folder, pwd.getpwnam(self.user).pw_uid, -1)
        self.url = f"postgresql:///postgres?host={self.folder}&user=shop"
        subprocess.run([f"{POSTGRES[0]}/initdb", "-D", f"{self.folder}/data", "-U", "shop", "-A", "trust", "--no-sync", "-E", "UTF8",
                        "--locale=C"], check=True, user=self.user, stdout=subprocess.DEVNULL, cwd="/")
        with open(f"{self.folder}/data/postgresql.conf", "a") as f:
            f.write(f"listen_addresses=''\nunix_socket_directories='{self.folder}'\nfsync=off\ndynamic_shared_memory_type=mmap\n")
        self.come_back()

    def come_back(self):
        with open(f"{self.folder}/log", "ab") as log:
            self.process = subprocess.Popen([f"{POSTGRES[0]}/postgres", "-D", f"{self.folder}/data"], stdout=log, stderr=log,
                                            user=self.user, cwd="/", start_new_session=True)

    def connect(self):
        try:
            return [psycopg2.connect(self.url)]
        except psycopg2.OperationalError:
            return None

    def do(self, sql):
        connection = eventually("the database is there", self.connect)[0]
        try:
            with connection, connection.cursor() as cursor:
                cursor.execute(sql)
                return cursor.fetchall() if cursor.description else []
        finally:
            connection.close()

    def leave(self):
        self.process.send_signal(signal.SIGQUIT)
        self.process.wait()

    close = leave


class Web:
    def __init__(self, folder, database, broker):
        self.folder = folder
        self.port = kit.free_port()
        self.environment = kit.ENVIRONMENT | {"SHOP_DB": database.url, "SHOP_AMQP": f"amqp://intact:{kit.PASSWORD}@127.0.0.1:{broker.port}",
                                              "INTACT_SERVER": f"http://127.0.0.1:{kit.free_port()}", "SHOP_KEY": KEY}
        self.start()

    def start(self):
        self.log = open(f"{self.folder}/web.log", "ab")
        self.process = subprocess.Popen([WEB, "--port", str(self.port), "--pages", f"{SHOP}/web/static", "--schema", f"{SHOP}/schema.sql"],
                                        env=self.environment, stdout=subprocess.PIPE, stderr=self.log)
        assert self.process.stdout.readline() == f"shop-web: http://127.0.0.1:{self.port}/\n".encode()

    def kill(self, number=signal.SIGKILL):
        self.process.send_signal(number)
        code = self.process.wait(kit.PATIENCE_S)
        self.process.stdout.close()
        self.log.close()
        return code

    def open(self, method, path, body=None, headers=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=kit.PATIENCE_S)
        connection.request(method, path, body, headers or {})
        return connection, connection.getresponse()

    def ask(self, path, method="GET", body=None, headers=None):
        connection, response = self.open(method, path, body, headers)
        with contextlib.closing(connection):
            text = response.read()
            self.headers = response.headers
            return response.status, json.loads(text) if response.headers["Content-Type"] == "application/json" else text

    def post(self, order, **headers):
        body = order if isinstance(order, (str, bytes)) else json.dumps(order)
        return self.ask("/api/orders", "POST", body, {"Content-Type": "application/json"} | {k.replace("_", "-"): v for k, v in headers.items()})

    def placed(self, order):
        status, answer = eventually("the order is taken", lambda: (lambda a: a if a[0] != 503 else None)(self.post(order)))
        assert status == 202, answer
        return answer["order"]

    def events(self, order):
        return [item["event"] for item in self.ask(f"/api/orders/{order}")[1].get("news", [])]


class Live:
    """A live page."""

    def __init__(self, web, order, last=None):
        self.connection, self.response = web.open("GET", f"/api/orders/{order}/events", headers={"Last-Event-ID": last} if last else {})
        assert self.response.status == 200 and self.response.headers["Content-Type"] == "text/event-stream"

    def next(self):
        """The next event; None: the stream is over."""
        event = {}
        while line := self.response.readline():
            name, _, value = line.decode().rstrip("\n").partition(": ")
            if name in ("id", "event", "data"):
                event[name] = value
            elif event and not name:
                return event
        return None

    def close(self):
        self.connection.close()


def order(key, **more):
    return {"key": key, "lines": [{"sku": "cup", "quantity": 2}, {"sku": "lamp", "quantity": 1}], "card": "4242 4242-4242 4242",
            "address": "Ada O'Hara\n1 Quay; DROP TABLE shop_order", "amount": 1, "customer": " Ada O'Hara ", "pay": "now"} | more


def news(order_id, number, event, state="processing", **data):
    return json.dumps({"specversion": "1.0", "id": f"{order_id}/{number}/{event}", "source": "/intact/x", "type": f"intact.task.{event}",
                       "subject": order_id, "time": "2026-01-31T10:00:00.000Z", "sequence": f"{number:020}",
                       "data": {"task": order_id, "state": state, **data}}).encode()


class Tests:
    """The same for both databases."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="intact-shop-web.")
        self.addCleanup(shutil.rmtree, self.folder)
        self.database = self.kind(self.folder)
        self.addCleanup(self.database.close)
        self.web = Web(self.folder, self.database, broker)
        self.addCleanup(self.end)
        self.client = Client(broker)
        self.addCleanup(self.client.close)
        eventually("the shop has its tables", lambda: self.web.ask("/api/products")[0] == 200)

    def end(self):
        code = self.web.kill(signal.SIGTERM)
        with open(f"{self.folder}/web.log", errors="replace") as f:
            log = f.read()
        self.assertEqual(code, 0, log)
        self.assertNotIn("Sanitizer", log)

    def tell(self, order_id, number, event, *args, **data):
        self.client.send("shop.replies", news(order_id, number, event, *args, **data), id=f"{order_id}/{number}/{event}")

    def test_the_tables_are_made_all_or_none(self):
        """Else somebody would see a shop that has a table for products, and none in it."""
        with open(f"{self.folder}/half.sql", "w") as f:
            f.write("CREATE TABLE shop_half (id TEXT); INSERT INTO nowhere VALUES (1);")
        with open(f"{self.folder}/half.log", "wb") as log:
            half = subprocess.Popen([WEB, "--port", "0", "--pages", f"{SHOP}/web/static", "--schema", f"{self.folder}/half.sql"],
                                    env=self.web.environment, stdout=subprocess.DEVNULL, stderr=log)

        def look():
            with open(f"{self.folder}/half.log", errors="replace") as log:
                return "nowhere" in log.read()

        eventually("it says so", look)
        half.send_signal(signal.SIGTERM)
        self.assertEqual(half.wait(kit.PATIENCE_S), 0)
        self.database.do("CREATE TABLE shop_half (id TEXT)")

    def test_products_are_those_of_the_database(self):
        self.database.do("UPDATE shop_product SET price = 1234, name = '<b>Cup' WHERE sku = 'cup'")
        status, answer = self.web.ask("/api/products")
        cup = [product for product in answer["products"] if product["sku"] == "cup"]
        self.assertEqual((status, len(answer["products"]), cup[0]["price"], cup[0]["name"]), (200, 6, 1234, "<b>Cup"))

    def test_an_order_becomes_a_message_with_our_prices_and_pressing_twice_is_one_order(self):
        first = self.web.placed(order(f"key-{self.kind.__name__}"))
        self.assertEqual(self.web.placed(order(f"key-{self.kind.__name__}")), first)
        self.assertNotEqual(self.web.placed(order(f"other-{self.kind.__name__}")), first)
        for expected in (True, True, False):
            message = self.client.receive("shop.orders")
            body = body_of(message)
            self.assertEqual(message.id == first, expected)
            self.assertTrue(message.durable)
            self.assertRegex(body.pop("at"), r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
            self.assertEqual(body, {"order": message.id, "lines": order("")["lines"], "amount": 7100, "card": "4242424242424242",
                                    "address": order("")["address"], "customer": "Ada O'Hara", "pay": "now"})
        self.assertEqual(self.database.do("SELECT count(*) FROM shop_order"), [(0,)])
        told = self.web.ask(f"/api/orders/{first}")[1]
        self.assertRegex(told.pop("now"), r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
        self.assertEqual(told, {"order": first, "state": "handed_in", "news": [], "waits_for": ""})

    def test_a_key_that_was_ordered_with_another_address_or_card_is_told(self):
        key = f"again-{self.kind.__name__}"
        first = self.web.placed(order(key))
        lines = json.dumps(order("")["lines"], sort_keys=True, separators=(",", ":"))
        address = order("")["address"].replace("'", "''")
        self.database.do("INSERT INTO shop_order (id, lines, amount, card, address, placed_at, customer, pay)"
                         f" VALUES ('{first}', '{lines}', 7100, '4242', '{address}', '2026-01-31T10:00:00Z', 'Ada O''Hara', 'now')")
        for change in ({"address": "elsewhere"}, {"card": "4000000000000002"}, {"customer": "Eve"}, {"pay": "later"}, {"lines": [{"sku": "cup", "quantity": 1}]}):
            status, answer = self.web.post(order(key, **change))
            self.assertEqual((status, "was already ordered" in answer["error"]), (409, True), answer)
        self.assertEqual(self.web.placed(order(key)), first)
        for _ in range(2):
            self.assertEqual(self.client.receive("shop.orders").id, first)

    def test_what_is_no_order_is_refused_with_the_field(self):
        cases = [(order("key-12345", card="4242"), 422, "card"), (order("key-12345", card="4242x42424242"), 422, "card"),
                 (order("key-12345", card=4242424242424242), 422, "card"), (order("key-12345", card="4" * 20), 422, "card"),
                 (order("key-12345", address=" \n"), 422, "address"), (order("key-12345", address="x" * 501), 422, "address"),
                 (order("key-12345", address="a\x01"), 422, "address"), (order("key-12345", lines=[]), 422, "lines"),
                 (order("key-12345", lines=[{"sku": "cup", "quantity": 1}] * 2), 422, "lines"),
                 (order("key-12345", lines=[{"sku": "cup", "quantity": 0}]), 422, "lines"),
                 (order("key-12345", lines=[{"sku": "cup", "quantity": 1.5}]), 422, "lines"),
                 (order("key-12345", lines=[{"sku": "cup", "quantity": 100}]), 422, "lines"),
                 (order("key-12345", lines=[{"sku": "' OR 1=1", "quantity": 1}]), 422, "lines"),
                 (order("key-12345", lines=["cup"]), 422, "lines"), (order("key-12345", lines={"sku": "cup"}), 422, "lines"),
                 *((order("key-12345", customer=name), 422, "customer") for name in (None, 5, "", "  ", "a\nb", "x" * 101)),
                 *((order("key-12345", pay=pay), 422, "pay") for pay in (None, 5, "", "soon", "2026-01-31", "2026-01-31T10:00:00Z ", "2999-01-31T10:00:00Z")),
                 (order("short"), 422, "key"), (order(None), 422, "key"), ("", 400, None), ("{", 400, None), ("[]", 400, None),
                 ('{"key": "a", "key": "b"}', 400, None), (b"\xff\xfe", 400, None), ("x" * 20000, 413, None)]
        for body, status, field in cases:
            with self.subTest(body=str(body)[:80]):
                found, answer = self.web.post(body)
                self.assertEqual((found, answer.get("field")), (status, field))
                self.assertGreater(len(answer["error"]), 10)
        self.assertEqual(self.web.post(order("key-12345"), Origin="http://elsewhere.example")[0], 403)
        self.assertEqual(self.web.ask("/api/orders", "POST", json.dumps(order("key-12345")))[0], 403)

    def test_paths_that_are_none_of_ours_and_headers(self):
        for path in ("/nope.html", "/../schema.sql", "/%2e%2e/schema.sql", "/..%2fschema.sql", "/.", "/shop.h", "/api/", "/api/nope",
                     "/api/orders/x", "/api/orders/o-0/events", "/api/orders/o-00000000000000000000/nope"):
            self.assertEqual(self.web.ask(path)[0], 404, path)
        for path in ("/", "/index.html", "/basket.html", "/order.html", "/orders.html", "/staff.html", "/staff.js", "/shop.css", "/shop.js", "/cup.svg"):
            self.assertEqual(self.web.ask(path)[0], 200, path)
            self.assertIn("default-src 'none'", self.web.headers["Content-Security-Policy"])
            self.assertEqual(self.web.headers["X-Content-Type-Options"], "nosniff")
        self.assertEqual(self.web.ask("/", "DELETE")[0], 405)
        self.assertEqual(self.web.headers["Allow"], "GET, HEAD")
        self.assertEqual(self.web.ask("/api/orders", "PUT")[0], 405)
        self.assertEqual(self.web.ask("/api/orders?ids=x")[0], 400)

    def test_without_the_broker_nothing_is_ordered_and_the_same_press_later_is(self):
        broker.kill()
        status, answer = self.web.post(order("while-away"))
        self.assertEqual(status, 503, answer)
        self.assertIn("try again", answer["error"])
        self.assertEqual(self.web.ask("/")[0], 200)
        broker.start()
        first = self.web.placed(order("while-away"))
        self.assertEqual(self.client.receive("shop.orders").id, first)
        while self.client.again(lambda: [self.client.receive_raw("shop.orders", 1)])[0]:
            self.client.accept("shop.orders")  # the one of which nobody knew

    def test_an_order_that_is_too_large_for_the_broker_is_refused_and_others_are_taken(self):
        """Whoever orders is told at once, and the others do not suffer, although the broker ends the session that they share."""
        broker.limit(400)
        self.addCleanup(broker.limit, kit.LARGEST)
        self.web.kill()  # sessions keep the limit that they began with
        self.web.start()
        answers = {}

        def press(number):
            address = "1 Long Lane" + " and on" * (60 if number % 3 == 0 else 0)
            answers[number] = eventually("there is an answer", lambda: (lambda a: a if a[0] != 503 else None)(
                Web.post(self.web, order(f"large-{self.kind.__name__}-{number}", address=address))))

        threads = [threading.Thread(target=press, args=(number,)) for number in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual({n: status for n, (status, _) in answers.items()}, {n: 413 if n % 3 == 0 else 202 for n in range(12)})
        self.assertIn("was not placed", answers[0][1]["error"])
        taken = {self.client.receive("shop.orders").id for _ in range(8)}
        self.assertEqual(taken, {answer["order"] for status, answer in answers.values() if status == 202})
        while self.client.again(lambda: [self.client.receive_raw("shop.orders", 1)])[0]:
            self.client.accept("shop.orders")  # one that was sent twice

    def test_without_the_database_pages_say_so_and_go_on_when_it_is_back(self):
        id_ = "o-0000000000000000000d"
        self.database.leave()
        self.web.kill()  # with SQLite it would go on with the file that it has open
        self.web.start()
        self.assertEqual(self.web.ask("/api/products")[0], 503)
        self.assertEqual(self.web.ask(f"/api/orders/{id_}")[0], 503)
        self.assertEqual(self.web.post(order("no-database"))[0], 503)
        self.tell(id_, 1, "received", "pending")
        self.database.come_back()
        eventually("it is back", lambda: self.web.ask("/api/products")[0] == 200)
        eventually("its news came", lambda: self.web.events(id_) == ["received"])

    def test_what_an_order_waits_for(self):
        """The last news says so, but for a pause."""
        id_ = f"o-{'0' * 18}{'a1' if self.kind is Lite else 'a2'}"
        told = [("received", {}, ""), ("waiting", {"lock": "shop_order/ada"}, "lock"), ("started", {}, ""),
                ("waiting", {"step": {"name": "reserve", "kind": "for_each"}}, ""),
                ("waiting", {"step": {"name": "paid", "kind": "signal"}}, "signal"), ("paused", {}, "signal"), ("resumed", {}, "signal"),
                ("progress", {"step": {"name": "paid", "state": "completed"}}, ""), ("waiting", {"step": {"name": "allow", "kind": "approve"}}, "approve"),
                ("compensating", {}, "")]
        for number, (event, data, kind) in enumerate(told, 1):
            self.tell(id_, number, event, **data)
            eventually(f"{event} came", lambda n=number: len(self.web.events(id_)) == n)
            self.assertEqual(self.web.ask(f"/api/orders/{id_}")[1]["waits_for"], kind, event)

    def test_the_state_of_an_order(self):
        """A task is pending before it has begun, and while it waits for its parcels: then it is at work, or on its way back."""
        id_ = f"o-{'0' * 18}{'c1' if self.kind is Lite else 'c2'}"
        told = [("received", "pending", "forward", "pending"), ("started", "processing", "forward", "processing"),
                ("progress", "pending", "forward", "processing"), ("compensating", "pending", "undo", "compensating"),
                ("compensated", "compensated", "undo", "compensated"), ("closed", "compensated", "undo", "closed")]
        for number, (event, state, direction, shown) in enumerate(told, 1):
            self.tell(id_, number, event, state, direction=direction)
            eventually(f"{event} came", lambda n=number: len(self.web.events(id_)) == n)
            self.assertEqual(self.web.ask(f"/api/orders/{id_}")[1]["state"], shown, event)

    def test_reminders_are_written_once_for_each_run(self):
        for number, kind in enumerate(("approve", "signal", "wait", "signal", "approve"), 1):
            id_ = f"o-{'0' * 18}b{number}"
            self.tell(id_, 1, "waiting", step={"name": "x", "kind": kind})
            if number > 3:
                self.tell(id_, 2, "paused" if number == 4 else "progress")
            eventually("it came", lambda i=id_, n=2 if number > 3 else 1: len(self.web.events(i)) == n)
        key = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
        for _ in range(2):
            self.assertEqual(self.web.ask("/api/reminders", "POST", '{"run": "morning@1"}', key), (200, {"approval": 1, "payment": 2}))
        self.tell("o-000000000000000000b1", 2, "progress")
        eventually("it came", lambda: len(self.web.events("o-000000000000000000b1")) == 2)
        self.assertEqual(self.web.ask("/api/reminders", "POST", '{"run": "morning@1"}', key), (200, {"approval": 1, "payment": 2}))
        self.assertEqual(self.web.ask("/api/reminders", "POST", '{"run": "morning@2"}', key), (200, {"approval": 0, "payment": 2}))
        self.assertEqual(self.database.do("SELECT run, count(*) FROM shop_reminder GROUP BY run ORDER BY run"), [("morning@1", 3), ("morning@2", 2)])
        for headers, body, status in (({}, '{"run": "x"}', 401), ({"Authorization": f"Bearer {KEY}x"}, '{"run": "x"}', 401),
                                      (key, "{}", 422), (key, "", 422), (key, '{"run": ""}', 422), (key, json.dumps({"run": "x" * 201}), 422)):
            self.assertEqual(self.web.ask("/api/reminders", "POST", body, headers)[0], status, (headers, body))

    def test_without_intact_buttons_say_so(self):
        id_ = "o-0000000000000000000a"
        for path in (f"/api/orders/{id_}/pay", f"/api/orders/{id_}/cancel", f"/api/approvals/{id_}"):
            body = '{"step": "allow", "asking": 1, "approve": true, "comment": ""}'
            status, answer = self.web.ask(path, "POST", body, {"Content-Type": "application/json"})
            self.assertEqual(status, 503, path)
            self.assertIn("try again", answer["error"])
        self.assertEqual(self.web.ask("/api/approvals")[0], 503)

    def test_news_is_stored_once_in_order_and_what_is_none_is_set_aside(self):
        id_ = "o-0000000000000000000a"
        self.tell(id_, 2, "started")
        self.tell(id_, 1, "received", "pending")
        self.client.send("shop.replies", b"{no json", id="bad-1")
        self.client.send("shop.replies", b'{"id": "x"}', id="bad-2")
        for _ in range(2):
            self.tell(id_, 9, "processed", "processed", output={"parcel": "P-1"})
        eventually("all of it came", lambda: self.web.events(id_) == ["received", "started", "processed"])
        answer = self.web.ask(f"/api/orders?ids={id_},o-0000000000000000000b")[1]
        self.assertEqual([(o["order"], o["state"]) for o in answer["orders"]], [(id_, "processed"), ("o-0000000000000000000b", "handed_in")])
        kept = [self.client.receive("shop.replies.refused") for _ in range(2)]
        self.assertEqual(sorted(message.id for message in kept), ["bad-1", "bad-2"])
        self.assertEqual(self.database.do("SELECT count(*) FROM shop_news"), [(3,)])

    def test_a_live_page_is_woken_resumes_and_ends(self):
        id_ = "o-0000000000000000000c"
        page, other = Live(self.web, id_), Live(self.web, "o-0000000000000000000e")
        self.tell(id_, 1, "received", "pending")
        event = page.next()
        self.assertEqual((event["event"], event["id"], json.loads(event["data"])["event"]), ("news", f"{1:020}", "received"))
        page.close()
        self.tell(id_, 2, "started")
        self.tell(id_, 3, "compensated", "compensated", error={"code": "card_declined", "message": "no"})
        page = Live(self.web, id_, last=event["id"])
        told = [page.next() for _ in range(3)]
        self.assertEqual([e["event"] for e in told], ["news", "news", "end"])
        self.assertEqual(json.loads(told[1]["data"])["told"]["error"]["code"], "card_declined")
        self.assertIsNone(page.next())
        page.close()
        self.addCleanup(other.close)  # still open when the server is told to end

    def test_news_that_was_not_stored_yet_is_not_lost_with_the_server(self):
        id_ = "o-0000000000000000000f"
        for number in range(1, 41):
            self.tell(id_, number, "progress")
            if number % 10 == 5:
                self.web.kill()
                self.web.start()
        eventually("all of it came", lambda: len(self.web.events(id_)) == 40)


class Usage(unittest.TestCase):
    def test_what_is_wrong_is_said_at_the_start(self):
        good = {"--pages": "/tmp", "--schema": f"{SHOP}/schema.sql"}
        cases = [({"--port": "http"}, 2, "usage: shop-web"), ({"--port": "65536"}, 2, "usage: shop-web"), ({"--port": ""}, 2, "usage: shop-web"),
                 ({"--colour": "red"}, 2, "usage: shop-web"), ({"--schema": "/nowhere.sql"}, 1, "/nowhere.sql: No such file or directory"),
                 ({"--schema": "/dev/null"}, 1, "/dev/null: it is empty"), ({"--address": "nowhere"}, 1, "cannot listen at nowhere:0")]
        for more, status, words in cases:
            options = [word for option in (good | {"--port": "0"} | more).items() for word in option]
            done = subprocess.run([WEB, *options], env=kit.ENVIRONMENT | {"SHOP_DB": "/nowhere", "SHOP_AMQP": "amqp://127.0.0.1:1"},
                                  capture_output=True, text=True)
            self.assertEqual(done.returncode, status, done.stderr)
            self.assertIn(words, done.stderr)


class WithSqlite(Tests, unittest.TestCase):
    kind = Lite


@unittest.skipUnless(POSTGRES, "PostgreSQL is not installed")
class WithPostgres(Tests, unittest.TestCase):
    kind = Postgres

    def test_a_connection_that_broke_is_made_again(self):
        self.database.do("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'shop'")
        self.assertEqual(self.web.ask("/api/products")[0], 200)
        self.tell("o-00000000000000000001", 1, "received", "pending")
        eventually("its news came", lambda: self.web.events("o-00000000000000000001") == ["received"])


if __name__ == "__main__":
    broker = kit.Broker().start()
    try:
        unittest.main(verbosity=2)
    finally:
        broker.close()
