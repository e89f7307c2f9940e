#!/usr/bin/python3
"""The shop's submission process with a real broker and real databases: an order and its task are both there or neither, once,
whatever is killed when.

Usage: submission_test.py INTACT SHOP-SUBMISSION [TEST...]
"""

import ctypes
import glob
import json
import os
import pwd
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import psycopg2

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "amqp"))

import broker_kit as kit  # noqa: E402
from broker_kit import Client, body_of, eventually  # noqa: E402

INTACT, SUBMISSION = os.path.realpath(sys.argv.pop(1)), os.path.realpath(sys.argv.pop(1))
SHOP = os.path.normpath(f"{HERE}/../../examples/shop")
ROUNDS = int(os.environ.get("INTACT_ROUNDS", "1"))
EACH = "INTACT_EACH" in os.environ  # what takes longest on each database, rather than on one of them
POSTGRES = sorted(glob.glob("/usr/lib/postgresql/*/bin"))[-1:]
AWAY = (sqlite3.OperationalError, psycopg2.OperationalError, psycopg2.InterfaceError)


def order(id_, **more):
    return {"order": id_, "lines": [{"sku": "cup", "quantity": 2}, {"sku": "lamp", "quantity": 1}], "amount": 7100,
            "card": "4242424242424242", "address": "Ada O'Hara\n1 Quay; DROP TABLE shop_order", "at": "2026-01-31T10:00:00Z",
            "customer": f"Ada of {id_}", "pay": "later"} | more


def end_with_us(number):
    """A test that is killed leaves no process behind."""
    ctypes.CDLL(None).prctl(1, number)  # PR_SET_PDEATHSIG


class Lite:
    """SQLite: the shop's tables are in the server's file."""

    flags = ()

    def __init__(self, server):
        self.server = server
        self.url = f"{server.folder}/data/intact.db"

    def rows(self, sql):
        connection = sqlite3.connect(self.url, timeout=60)
        try:
            return connection.execute(sql).fetchall()
        finally:
            connection.close()

    def change(self, sql):
        connection = sqlite3.connect(self.url, timeout=60)
        try:
            connection.executescript(sql)
        finally:
            connection.close()

    def kill(self):
        """What there is of it: the server, which looks after the file."""
        self.server.kill()

    def start(self):
        self.server.start()

    def close(self):
        pass

    # From now on an order's row takes its transaction forever.
    hang = """CREATE VIEW forever AS WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n) SELECT n FROM n;
              CREATE TRIGGER hang AFTER INSERT ON shop_order BEGIN SELECT count(*) FROM forever; END;"""
    go_on = "DROP TRIGGER hang; DROP VIEW forever;"

    def hangs(self):
        connection = sqlite3.connect(self.url, timeout=0)
        try:
            connection.execute("BEGIN IMMEDIATE")
            return False
        except sqlite3.OperationalError:
            return True
        finally:
            connection.close()

    def clear(self):
        pass

    goes_on_without = "base-5 is placed"


class Postgres:
    """A cluster of our own. It ends by SIGQUIT: as if it was killed, but no shared memory is left behind."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="intact-shop-test.")
        self.user = "postgres" if os.getuid() == 0 else None
        if self.user:
            os.chown(self.folder, pwd.getpwnam(self.user).pw_uid, -1)
        self.url = f"postgresql:///shop?host={self.folder}&user=shop"
        self.flags = ("--store", self.url)
        subprocess.run([f"{POSTGRES[0]}/initdb", "-D", f"{self.folder}/data", "-U", "shop", "-A", "trust", "--no-sync", "-E", "UTF8",
                        "--locale=C"], check=True, user=self.user, stdout=subprocess.DEVNULL, cwd="/")
        with open(f"{self.folder}/data/postgresql.conf", "a") as f:
            f.write(f"listen_addresses=''\nunix_socket_directories='{self.folder}'\nfsync=off\ndynamic_shared_memory_type=mmap\n")
        self.start()
        self.change("CREATE DATABASE shop", "postgres")

    def start(self):
        with open(f"{self.folder}/log", "ab") as log:
            self.process = subprocess.Popen([f"{POSTGRES[0]}/postgres", "-D", f"{self.folder}/data"], stdout=log, stderr=log,
                                            user=self.user, cwd="/", preexec_fn=lambda: end_with_us(signal.SIGQUIT))

    def connect(self, name):
        def look():
            try:
                connection = psycopg2.connect(host=self.folder, user="shop", dbname=name, options="-c search_path=public,intact")
                connection.autocommit = True
                return connection
            except psycopg2.OperationalError:
                return None

        return eventually("the database is there", look)

    def rows(self, sql, name="shop"):
        connection = self.connect(name)
        try:
            with connection.cursor() as cursor:
                cursor.execute(sql)
                return cursor.fetchall() if cursor.description else []
        finally:
            connection.close()

    def change(self, sql, name="shop"):
        self.rows(sql, name)

    def kill(self):
        self.process.send_signal(signal.SIGQUIT)
        self.process.wait()

    def close(self):
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    hang = """CREATE FUNCTION hang() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(100000); RETURN NEW; END $$;
              CREATE TRIGGER hang AFTER INSERT ON shop_order FOR EACH ROW EXECUTE FUNCTION hang();"""
    go_on = "DROP FUNCTION hang() CASCADE"
    goes_on_without = "base-2 comes again"

    def hangs(self):
        return self.rows("SELECT 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep'")

    def clear(self):
        """A client that is killed while its statement runs is noticed when that ends."""
        self.rows("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'PgSleep'")
        eventually("its session has ended", lambda: not self.hangs())


class Process:
    """The submission process. Its words are read as they come."""

    def __init__(self, database, port):
        environment = kit.ENVIRONMENT | {"SHOP_DB": database.url, "SHOP_AMQP": f"amqp://intact:{kit.PASSWORD}@127.0.0.1:{port}"}
        self.process = subprocess.Popen([SUBMISSION], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                        preexec_fn=lambda: end_with_us(signal.SIGKILL))
        self.words, self.placed = "", threading.Event()
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            self.words += line
            if "is placed" in line:
                self.placed.set()

    def says(self, text):
        def look():
            assert self.process.poll() is None, self.words
            return text in self.words

        eventually(f"it says {text}", look)

    def end(self, number):
        self.process.send_signal(number)
        status = self.process.wait(kit.PATIENCE_S)
        self.reader.join()
        self.process.stdout.close()
        for word in ("AddressSanitizer", "runtime error:", "ThreadSanitizer", "LeakSanitizer"):
            assert word not in self.words, self.words
        return status

    def close(self):
        if self.process.poll() is None:
            self.end(signal.SIGKILL)


class Tests:
    """For each database."""

    @classmethod
    def setUpClass(cls):
        cls.broker = kit.Broker()
        cls.addClassCleanup(cls.broker.close)
        cls.broker.launch()  # it takes its time
        cls.server = kit.Server(INTACT, environment={"SHOP_BROKER_PASSWORD": kit.PASSWORD})
        cls.addClassCleanup(cls.server.close)
        cls.database = cls.make_database()
        cls.addClassCleanup(cls.database.close)
        cls.server.flags += [*cls.database.flags, "--config", f"{cls.server.folder}/intact.json"]
        section = {"brokers": [{"name": "main", "url": f"amqp://127.0.0.1:{cls.broker.port}", "user": "intact", "addresses": "/queue/{}",
                                "password": {"env": "SHOP_BROKER_PASSWORD"}}], "messages": {"allow": ["shop.replies"]}}
        with open(f"{cls.server.folder}/intact.json", "w") as f:
            json.dump({"intact_server": 1, "amqp": section}, f)
        cls.server.start()
        eventually("the broker is there", cls.broker.is_ready)

    def setUp(self):
        self.client = Client(self.broker)
        self.addCleanup(self.client.close)

    @classmethod
    def set_up_shop(cls):
        with open(f"{SHOP}/schema.sql") as f:
            cls.database.change(f.read())
        cls.put("parcel")
        cls.put("shop")

    @classmethod
    def put(cls, name):
        environment = kit.ENVIRONMENT | {"INTACT_SERVER": f"http://127.0.0.1:{cls.server.port}", "INTACT_TOKEN": cls.server.token or ""}
        subprocess.run([INTACT, "workflow", "put", f"{SHOP}/{name}.yaml"], env=environment, check=True, stdout=subprocess.DEVNULL)

    def begin(self, port=None):
        process = Process(self.database, port or self.broker.port)
        self.addCleanup(process.close)
        return process

    def on_one_only(self, which):
        """Each start of a broker takes seconds of a processor."""
        if not EACH and type(self).__name__ != which:
            self.skipTest(f"{which} has it; on each database with INTACT_EACH")

    def send(self, what, **properties):
        body = what if isinstance(what, bytes) else json.dumps(what).encode()
        self.client.send("shop.orders", body, **({"id": what["order"]} if isinstance(what, dict) and "order" in what else {}) | properties)

    def orders(self, prefix):
        return self.database.rows(f"SELECT id, lines, amount, card, address, placed_at, customer, pay FROM shop_order WHERE id LIKE '{prefix}%' ORDER BY id")

    def tasks(self, prefix):
        return [id_ for id_, in self.database.rows(f"SELECT id FROM task WHERE id LIKE '{prefix}%' ORDER BY id")]

    def both(self, ids):
        """An order and a task of each, and of nothing else with this prefix."""
        prefix = min(ids).split("-")[0] + "-"
        eventually(f"{len(ids)} orders of {prefix}", lambda: [o[0] for o in self.orders(prefix)] == sorted(ids))
        eventually(f"{len(ids)} tasks of {prefix}", lambda: self.tasks(prefix) == sorted(ids))
        self.assertEqual(self.database.rows("SELECT * FROM submission"), [])

    # ---- by itself ----

    def test_a_begin(self):
        """Before there are tables, and before there is a workflow, orders wait. Then it does what it is for."""
        process = self.begin()
        self.send(order("first-1"))
        process.says("it waits for the database")
        with open(f"{SHOP}/schema.sql") as f:
            self.database.change(f.read())
        process.says("it waits for the workflows")
        self.put("shop")
        waits = process.words.count("it waits for the workflows")
        eventually("it waits for the other one", lambda: process.words.count("it waits for the workflows") > waits + 1)
        self.set_up_shop()
        self.both(["first-1"])
        ((_, lines, amount, card, address, at, customer, pay),) = self.orders("first-")
        self.assertEqual((json.loads(lines), amount, card, address, at, customer, pay),
                         (order("x")["lines"], 7100, "4242", order("x")["address"], "2026-01-31T10:00:00Z", "Ada of first-1", "later"))
        task = self.server.task("first-1")
        self.assertEqual(task["input"], {k: order("first-1")[k] for k in ("lines", "amount", "card", "address", "customer", "pay")})
        message = self.client.receive("shop.replies")
        self.assertEqual((body_of(message)["type"], message.correlation_id), ("intact.task.received", "first-1"))
        self.assertEqual(process.end(signal.SIGTERM), 0)

    def test_b_twice_is_once(self):
        process = self.begin()
        for _ in range(20):
            self.send(order("twice-1"))
        self.send(order("twice-1", at="2026-01-31T10:00:02Z"))  # pressed again
        self.send({k: order("twice-1")[k] for k in reversed(order("twice-1"))})  # in another order
        self.send(order("twice-2"))
        self.both(["twice-1", "twice-2"])
        self.assertEqual(process.words.count("twice-1 is placed"), 1)
        self.assertEqual(process.words.count("twice-1 came again"), 21)

    def test_c_what_can_be_no_order_is_kept(self):
        process = self.begin()
        self.send(order("poor-1"))
        good, cup = order("poor-2"), {"sku": "cup", "quantity": 1}
        cases = [
            (b"", "it is not JSON"), (b"{", "it is not JSON"), (b"\xff\xfe", "it is not JSON"), (b"[]", "Expected object"), (b"[" * 5000, "it is not JSON"),
            ({k: v for k, v in good.items() if k != "amount"}, "amount"), (good | {"amount": "7"}, "Expected integer"), (good | {"amount": -1}, "amount"),
            (good | {"amount": 10**12}, "amount"), (good | {"lines": []}, "lines"), (good | {"lines": [cup | {"quantity": 0}]}, "lines"),
            (good | {"lines": [cup | {"more": 1}]}, "lines"), (good | {"lines": {}}, "lines"), (good | {"lines": [cup] * 21}, "lines"),
            (good | {"card": ""}, "card"), (good | {"customer": ""}, "customer"), (good | {"customer": 5}, "Expected string"),
            (good | {"pay": "x" * 41}, "pay"), (order("poor-1", customer="Bob"), "another order"), (order("poor-1", pay="now"), "another order"), (good | {"more\n\x7f": 1}, "more"), (order("no id"), "order is no id"), (order(".."), "order is no id"),
            (order("poor-1", amount=1), "another order"), (order("poor-1", card="4000000000000002"), "another order"),
        ]
        for body, _ in cases:
            self.send(body)
        self.send(good, id="poor-3")
        self.client.send("shop.orders", json.dumps(good))  # without an id
        self.client.send("shop.orders", good, id="poor-2")  # a map, which is no JSON
        self.send(good, subject="last")
        for body, reason in [*cases, (good, "its message-id is poor-3"), (good, "its message-id is missing"), (None, "it is not JSON")]:
            message = self.client.receive("shop.orders.refused")
            self.assertIn(reason, message.subject)
            self.assertNotRegex(message.subject, "[\\x00-\\x1f\\x7f]")
            if isinstance(body, dict):
                self.assertEqual(body_of(message), body)
            elif body is not None:
                self.assertEqual(bytes(message.body or b""), body)
            self.assertTrue(message.durable)
        self.both(["poor-1", "poor-2"])
        self.assertIsNone(process.process.poll())

    def test_c_what_intact_refuses_is_kept_and_leaves_no_order(self):
        self.server.submit("shop_order", "odd-1", {k: order("x")[k] for k in ("lines", "card", "address", "customer")} | {"amount": 1})
        process = self.begin()
        self.send(order("odd-1"))
        self.send(order("odd-2"))
        message = self.client.receive("shop.orders.refused")
        self.assertEqual((body_of(message), message.id), (order("odd-1"), "odd-1"))
        self.assertIn("is that of another task", message.subject)
        process.says("odd-2 is placed")
        self.assertEqual([o[0] for o in self.orders("odd-")], ["odd-2"])

    def test_d_usage(self):
        for broker in ("", "amqps://127.0.0.1", "amqp://", "amqp://user@127.0.0.1", "amqp://127.0.0.1:"):
            done = subprocess.run([SUBMISSION], env={"SHOP_DB": "/nowhere", "SHOP_AMQP": broker}, capture_output=True, text=True)
            self.assertEqual(done.returncode, 2, broker)
            self.assertIn("usage:", done.stderr)

    # ---- killed at a certain point ----

    def test_e_killed_in_its_transaction(self):
        ids = ["middle-1", "middle-2"]
        self.server.kill()  # on SQLite nobody else writes
        self.database.change(self.database.hang)
        process = self.begin()
        for id_ in ids:
            self.send(order(id_))
        eventually("it is in the middle", self.database.hangs)
        process.end(signal.SIGKILL)
        self.database.clear()
        self.database.change(self.database.go_on)
        self.assertEqual(self.orders("middle-"), [])
        self.server.start()
        process = self.begin()
        self.both(ids)
        self.assertNotIn("came again", process.words)

    def test_f_killed_before_it_accepts(self):
        wire = kit.Wire(self.broker.port)
        self.addCleanup(wire.close)
        process = self.begin(wire.port)
        self.send(order("late-0"))
        process.says("late-0 is placed")
        wire.is_mute = True  # what it says to the broker gets nowhere from now on
        ids = [f"late-{i}" for i in range(5)]
        for id_ in ids[1:]:
            self.send(order(id_))
        process.says("late-4 is placed")
        process.end(signal.SIGKILL)
        wire.cut()
        process = self.begin()
        for id_ in ids[1:]:
            process.says(f"{id_} came again")
        self.both(ids)

    # ---- what it needs is away ----

    def test_g_the_broker_goes(self):
        self.on_one_only("OnPostgres" if POSTGRES else "OnSqlite")
        process = self.begin()
        self.send(order("broker-1"))
        process.says("broker-1 is placed")
        self.broker.kill()
        process.says("has no broker")
        self.broker.start()
        self.send(order("broker-2"))
        process.end(signal.SIGTERM)
        self.send(order("broker-3"))  # nobody takes it
        self.broker.kill()
        process = self.begin()  # before the broker is there
        self.broker.start()
        self.both(["broker-1", "broker-2", "broker-3"])

    def test_h_the_database_goes(self):
        process = self.begin()
        self.send(order("base-1"))
        process.says("base-1 is placed")
        self.database.kill()
        for i in range(2, 6):
            self.send(order(f"base-{i}"))
        process.says(self.database.goes_on_without)
        self.database.start()
        self.both([f"base-{i}" for i in range(1, 6)])
        self.assertEqual(process.end(signal.SIGTERM), 0)

    def test_h_a_table_is_away(self):
        """The fault is the database's, and not the order's: it waits."""
        process = self.begin()
        self.send(order("table-1"))
        process.says("table-1 is placed")
        self.database.change("ALTER TABLE shop_order RENAME TO shop_order_away")
        self.send(order("table-2"))
        process.says("table-2 comes again")
        self.database.change("ALTER TABLE shop_order_away RENAME TO shop_order")
        self.both(["table-1", "table-2"])

    # ---- all of it ----

    def test_i_everything_is_killed_while_orders_come(self):
        self.on_one_only("OnSqlite")
        seed = int(os.environ.get("INTACT_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 31)
        chance = random.Random(seed)
        print(f"{type(self).__name__}: INTACT_SEED={seed}", file=sys.stderr)
        ids = [f"load-{i:05d}" for i in range(200 * ROUNDS)]
        poor = [f"bad-{i}" for i in range(0, len(ids), 20)]
        sender = threading.Thread(target=self.send_all, args=(ids, poor, random.Random(seed)), daemon=True)
        sender.start()
        kills = ["broker", "database", "server"] * ROUNDS + ["submission"] * 15 * ROUNDS
        chance.shuffle(kills)
        process = self.begin()
        for who in kills:
            if chance.random() < 0.5:
                process.placed.wait(1)  # most likely it is about to accept
            else:
                time.sleep(chance.random() * 0.4)
            if who == "submission":
                process.end(signal.SIGKILL)
                process = self.begin()
            elif who == "broker":
                self.broker.kill()
                self.broker.start()
            elif who == "database":
                self.database.kill()
                self.database.start()
            else:
                self.server.kill()
                self.server.start()
        sender.join()
        self.both(ids)
        self.send(order("bad-last", amount=-1))
        kept = set()
        while "bad-last" not in kept:
            kept.add(self.client.receive("shop.orders.refused").id)
        self.assertEqual(kept, {*poor, "bad-last"})
        again = {id_: (json.loads(lines), amount) for id_, lines, amount, *_ in self.orders("load-")}
        self.assertEqual(again, {id_: (order(id_)["lines"], i) for i, id_ in enumerate(ids)})
        self.assertEqual(process.end(signal.SIGTERM), 0)

    def send_all(self, ids, poor, chance):
        """Each at least once; what the broker did not answer goes again."""
        client = Client(self.broker)
        for i, id_ in enumerate(ids):
            body = json.dumps(order(id_, amount=i)).encode()
            for _ in range(2 if chance.random() < 0.2 else 1):
                client.send("shop.orders", body, id=id_)
            if i % 20 == 0:
                client.send("shop.orders", json.dumps(order(poor[i // 20], lines=[])).encode(), id=poor[i // 20])
            time.sleep(chance.random() * 0.02)
        client.close()


class OnSqlite(Tests, unittest.TestCase):
    @classmethod
    def make_database(cls):
        return Lite(cls.server)


@unittest.skipUnless(POSTGRES, "there is no PostgreSQL")
class OnPostgres(Tests, unittest.TestCase):
    @classmethod
    def make_database(cls):
        return Postgres()


if __name__ == "__main__":
    unittest.main(verbosity=2)
