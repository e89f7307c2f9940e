#!/usr/bin/env python3
"""The libraries' agents and Python's client with real servers: what is killed, cut off and started again, and the books
compared at the end; long steps; two nodes and the barrier over PostgreSQL.

Usage: real_test.py python|typescript [TEST...]
"""

import json
import os
import random
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
import unittest
import warnings

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from kit import INTACT, LIB, PATIENCE_S, ROOT, Kind, Place, definition, free_port, wait_for  # pylint: disable=wrong-import-position

sys.path.insert(0, LIB)
sys.dont_write_bytecode = True
warnings.simplefilter("ignore", ResourceWarning)
import intact_client  # pylint: disable=wrong-import-position

KIND = Kind(sys.argv[1])
COUNT = {"action": "count", "undo": {"action": "uncount"}}
PATIENT = {"attempts": 50, "wait": "100ms", "max_wait": "500ms"}
SALE = [{"name": "a", **COUNT, "retry": PATIENT},
        {"name": "b", **COUNT, "retry": PATIENT},
        {"name": "c", "action": "judge", "undo": "none", "retry": PATIENT, "input": {"refuse": "${ .input.refuse }"}},
        {"name": "d", "action": "retry", "undo": "none", "retry": PATIENT, "input": {"fail": 1}}]

EFFECTS = ("same-key", "undo", "undo-first", "forward-after-undo", "record-killed", "undo-killed", "effect-killed", "undo-races", "count-once",
           "count-steps", "count-anew", "count-undo", "undo-at-work")


class Lossy:
    """Between agents and a server: cuts some answers off, after the server has done what it was asked."""

    def __init__(self, port, seed):
        self.port, self.random, self.calm, self.lost = port, random.Random(seed), False, 0
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.socket.getsockname()[1]}"
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                there = self.socket.accept()[0]
            except OSError:
                return
            threading.Thread(target=self.serve, args=(there,), daemon=True).start()

    def serve(self, there):
        try:
            here = socket.create_connection(("127.0.0.1", self.port))
        except OSError:
            there.close()
            return
        threading.Thread(target=self.pump, args=(there, here, False), daemon=True).start()
        self.pump(here, there, True)

    def pump(self, source, sink, spoils):
        try:
            while True:
                data = source.recv(1 << 16)
                if not data:
                    break
                if spoils and not self.calm and self.random.random() < 0.05:
                    self.lost += 1
                    break
                sink.sendall(data)
        except OSError:
            pass
        for end in (source, sink):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        sink.close()


class RealTest(unittest.TestCase):
    """A place of its own for each test."""

    def setUp(self):
        self.place = Place()
        self.seed = int(os.environ.get("SEED", random.randrange(1 << 30)))
        self.random = random.Random(self.seed)
        KIND.prepare(self.place.folder)
        self.record = f"{self.place.folder}/record"

    def tearDown(self):
        result = self._outcome.result
        failed = any(self in t for t in result.failures + result.errors)
        if failed:
            print(f"again with SEED={self.seed}", file=sys.stderr)
        self.place.end(keep=failed)

    def agent(self, name, url, **environment):
        return self.place.agent(name, KIND.command(self.record), url, INTACT_PLACES="8", **environment)

    def compare_books(self, client, ids, total, outcomes):
        """Each step that its task says was done was done once, and no other."""
        expected = 0
        states = {}
        for task_id in ids:
            task = client.get(task_id)
            states[task["state"]] = states.get(task["state"], 0) + 1
            for step in ("a", "b"):
                outcome = outcomes.get(f"{task_id}/{step}")
                if task["state"] == "processed":
                    self.assertEqual(outcome, "done", f"{task_id}/{step}")
                    expected += 1
                else:
                    self.assertEqual(task["state"], "compensated", task_id)
                    self.assertIn(outcome, ("undone", "barred", None), f"{task_id}/{step}")
        self.assertEqual(total, expected)
        print(f"{states}, books agree", file=sys.stderr)
        return states

    def lines(self, count):
        return [{"workflow": "sale", "id": f"o{i}", "input": {"refuse": i % 3 == 0}} for i in range(count)]

    def take_place(self, name, port):
        """A server with a store of its own at that port, and the tokens of the first; a client."""
        url = self.place.serve(name, port=port)
        if name != "n1":
            self.place.kept[name].retire()
            with sqlite3.connect(f"{self.place.folder}/data-{name}/intact.db") as db:
                db.execute("ATTACH ? AS one", (f"{self.place.folder}/data/intact.db",))
                db.execute("DELETE FROM token")
                db.execute("INSERT INTO token SELECT * FROM one.token")
            db.close()
            self.place.serve(name, port=port)
        client = intact_client.Client(url, token=self.place.token)
        self.addCleanup(client.close)
        client.put_workflow(definition("w", "conformance", [{"name": "s", "action": "echo", "undo": "none"}]))
        return client

    def test_a_server_in_the_place_of_another_takes_no_task(self):
        port = free_port()
        one = self.take_place("n1", port)
        program = subprocess.Popen(KIND.client(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={
            **os.environ, "INTACT_SERVER": f"http://127.0.0.1:{port}", "INTACT_TOKEN": self.place.token, "PYTHONPATH": LIB,
            "PYTHONDONTWRITEBYTECODE": "1"})
        self.addCleanup(program.communicate)

        def submit(task):
            program.stdin.write(task + "\n")
            program.stdin.flush()
            return json.loads(program.stdout.readline())

        self.assertEqual(submit("t"), {"id": "t", "installation": one.installation})
        self.place.kept["n1"].retire(signal.SIGKILL)
        other = self.take_place("n2", port)
        told = submit("t")
        self.assertEqual(told["error"], "AnotherInstallation")
        self.assertIn(one.installation, told["message"])
        self.assertIn(other.installation, told["message"])
        with self.assertRaises(intact_client.Problem) as missing:
            other.get("t")
        self.assertEqual(missing.exception.status, 404)
        self.place.kept["n2"].retire(signal.SIGKILL)
        self.take_place("n1", port)
        self.assertEqual(submit("t")["id"], "t")

    def test_thousands_of_tasks(self):
        url = self.place.serve()
        client = intact_client.Client(url, token=self.place.token)
        client.put_workflow(definition("sale", "conformance", SALE))
        agent = self.agent("one-1", url)
        found = client.submit_many(self.lines(3000))
        self.assertEqual({line["status"] for line in found}, {201})
        for line in found:
            client.wait(line["id"], timeout=PATIENCE_S)
        self.assertEqual(agent.retire(), 0, agent.story())
        states = self.compare_books(client, [line["id"] for line in found], *KIND.books(self.record))
        self.assertEqual(states, {"processed": 2000, "compensated": 1000})
        record = client.get("o1")
        self.assertEqual(record["steps"][3]["attempts"][-1]["tries"], 2)

    def test_whatever_is_killed(self):
        url = self.place.serve()
        client = intact_client.Client(url, token=self.place.token, timeout=PATIENCE_S)
        client.put_workflow(definition("sale", "conformance", [{**s, "complete_by": "5s"} for s in SALE]))
        lossy = Lossy(int(url.rsplit(":", 1)[1]), self.seed)
        names = ["one-1", "two-1"] if KIND.has_shared_record else ["one-1"]
        for name in names:
            self.agent(name, lossy.url)
        lines = self.lines(600)
        found = client.submit_many(lines)
        kills = 0

        def is_open():
            return client.list(state=["pending", "processing", "compensating"], limit=1)["tasks"]

        while kills < 40 and is_open():
            time.sleep(self.random.uniform(0.05, 0.5))
            name = self.random.choice(names + ["n1"])
            self.place.kept[name].strike()
            if name == "n1":
                self.place.wait_ready(url)
            kills += 1
        lossy.calm = True
        wait_for("the end of all tasks", lambda: not is_open(), 4 * PATIENCE_S)
        for name in names:
            self.assertIn(self.place.kept[name].retire(), (0, -15))
        print(f"{kills} kills, {lossy.lost} answers lost", file=sys.stderr)
        self.compare_books(client, [line["id"] for line in found], *KIND.books(self.record))

    def test_long_steps(self):
        url = self.place.serve()
        client = intact_client.Client(url, token=self.place.token)
        quick = {"attempts": 3, "wait": "10ms"}
        client.put_workflow(definition("long", "conformance", [
            {"name": "r", "action": "resume", "undo": "none", "retry": quick},
            {"name": "e", "action": "elsewhere", "undo": "none", "input": {"complete": True}},
            {"name": "s", "action": "slow", "undo": "none", "input": {"ms": 1500, "beats": 100}, "heartbeat": "20s"},
            {"name": "h", "action": "hang", "undo": "none", "input": {"ms": 6000}, "heartbeat": "5s"}]))
        client.put_workflow(definition("mute", "conformance", [
            {"name": "s", "action": "slow", "undo": "none", "input": {"ms": 600000}, "heartbeat": "500ms",
             "retry": {"attempts": 1}}]))
        client.put_workflow(definition("stop", "conformance", [
            {"name": "s", "action": "slow", "undo": "none", "input": {"ms": 600000, "beats": 100}}]))
        self.agent("one-1", url)
        for name in ("long", "mute", "stop"):
            client.submit(name, {}, id=name)
        task = client.wait("long", timeout=PATIENCE_S)
        self.assertEqual(task["state"], "processed", task)
        steps = {step["name"]: step for step in task["steps"]}
        self.assertEqual(steps["r"]["output"], {"at": 1})
        self.assertEqual(steps["e"]["output"], {"elsewhere": True})
        self.assertEqual(len(steps["s"]["attempts"]), 1)
        self.assertEqual(steps["h"]["output"], "awake")
        task = client.wait("mute", timeout=PATIENCE_S)
        self.assertEqual(task["steps"][0]["error"]["code"], "heartbeat")
        self.assertEqual(client.cancel("stop", "not wanted")["direction"], "undo")
        task = client.wait("stop", timeout=PATIENCE_S)
        self.assertEqual(task["state"], "compensated")
        self.assertEqual(self.place.kept["one-1"].retire(), 0)

    def test_items(self):
        """Each of many is taken once, whatever is killed, and the client reads them all."""
        url = self.place.serve()
        client = intact_client.Client(url, token=self.place.token, timeout=PATIENCE_S)
        self.addCleanup(client.close)
        client.put_workflow(definition("list", "conformance", [
            {"name": "pack", "for_each": "${ .input }", "max_items": 1000, **COUNT, "retry": PATIENT, "complete_by": "5s"}]))
        self.agent("one-1", url)
        client.submit("list", list(range(700)), id="l-1")

        def is_open():
            return client.get("l-1")["state"] in ("pending", "processing")

        for kill in range(20):
            if is_open():
                time.sleep(self.random.uniform(0.05, 0.5))
                name = "n1" if kill % 2 else "one-1"
                self.place.kept[name].strike()
                if name == "n1":
                    self.place.wait_ready(url)
        wait_for("its end", lambda: not is_open(), 4 * PATIENCE_S)
        self.assertIn(self.place.kept["one-1"].retire(), (0, -15))
        task = client.get("l-1")
        self.assertEqual(task["state"], "processed", task["error"])
        self.assertEqual((task["steps"][0]["items"]["count"], task["steps"][0]["items"]["completed"]), (700, 700))
        self.assertEqual([item["name"] for item in client.items("l-1", "pack")], [f"pack.{i}" for i in range(700)])
        self.assertEqual(list(client.items("l-1", "pack", "failed")), [])
        total, outcomes = KIND.books(self.record)
        self.assertEqual(total, 700)
        self.assertEqual({outcomes.get(f"l-1/pack.{i}") for i in range(700)}, {"done"})

    def test_signals(self):
        """Sent by the library's client while the server is killed: each counts once, and in its order."""
        url = self.place.serve()
        client = intact_client.Client(url, token=self.place.token)
        client.put_workflow({"intact": 1, "workflow": "w", "steps": [
            {"name": f"s{i}", "signal": {"name": "go"}} for i in range(10)]})
        program = subprocess.Popen(KIND.client(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={
            **os.environ, "INTACT_SERVER": url, "INTACT_TOKEN": self.place.token, "PYTHONPATH": LIB,
            "PYTHONDONTWRITEBYTECODE": "1"})
        self.addCleanup(program.communicate)

        def say(line):
            program.stdin.write(line + "\n")
            program.stdin.flush()
            return json.loads(program.stdout.readline())

        self.assertEqual(say("t-1")["id"], "t-1")
        for i in range(10):
            if i % 3 == 2:
                self.place.kept["n1"].strike()  # it is started again
            for _ in range(2):  # under the same key it is the same signal
                told = say(f'signal t-1 go k-{i} {{"i": {i}}}')
                self.assertEqual((told.get("task"), told.get("id"), told.get("name")), ("t-1", f"k-{i}", "go"), told)
        task = client.wait("t-1", timeout=PATIENCE_S)
        self.assertEqual([s["output"]["data"]["i"] for s in task["steps"]], list(range(10)))
        self.assertEqual(say("signal nobody go k null")["error"], "Problem")

    def test_tls(self):
        cert, key = self.place.certificate()
        url = self.place.serve("n1", "--tls-cert", cert, "--tls-key", key)
        client = intact_client.Client(url, token=self.place.token, ca=cert)
        client.put_workflow(definition("one", "conformance", [{"name": "s", "action": "echo", "undo": "none"}]))

        def is_refused():
            try:
                intact_client.Client(url, token=self.place.token, timeout=1).get("x")
            except intact_client.Unreachable as e:
                return "CERTIFICATE_VERIFY_FAILED" in str(e)  # or it got no answer in time
            raise AssertionError("a certificate of nobody was taken")

        wait_for("the certificate is refused", is_refused)
        distrustful = self.agent("two-1", url)  # it knows no authority that has signed this
        wait_for("it says why", lambda: "certificate" in distrustful.story().lower())
        self.agent("one-1", url, INTACT_CA=cert)
        client.submit("one", {}, id="t")
        self.assertEqual(client.wait("t", timeout=PATIENCE_S)["steps"][0]["attempts"][0]["instance"], "one-1")
        for name in ("one-1", "two-1"):
            self.assertEqual(self.place.kept[name].retire(), 0)

    def database(self):
        """With the barrier in it, and the table of the agents' effects; and what the agents have to know."""
        where = self.place.database()
        if where is None:
            self.skipTest("there is no PostgreSQL server; tools/setup test installs it")
        if not KIND.with_postgres():
            self.skipTest("there is no psycopg2 for Python; tools/setup test installs it")
        self.assertEqual(self.place.psql(file=f"{ROOT}/lib/barrier/postgresql.sql").returncode, 0)
        self.place.psql("CREATE TABLE counter(n integer)")
        return where, {"RECORD_POSTGRES": f"{self.place.folder}/pg", "PG_MODULE": f"{ROOT}/build/typescript/node_modules/pg/lib/index.js"}

    def test_effects_checked_with_the_barrier_in_a_database(self):
        """What `intact agent check` has on effects, for the barrier over PostgreSQL; the record in a file has all scenarios elsewhere."""
        _, told = self.database()
        only = [word for name in EFFECTS for word in ("--only", name)]
        done = subprocess.run([INTACT, "agent", "check", "--patience", "4m", *only, "--", *KIND.command(self.record)], check=False,
                              env={**os.environ, "PYTHONPATH": LIB, "PYTHONDONTWRITEBYTECODE": "1", **told}, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn(f"{len(EFFECTS)} ok, 0 wrong, 0 skipped", done.stdout)

    def test_two_nodes_and_the_barrier_in_a_database(self):
        where, told = self.database()
        urls = [self.place.serve(name, "--store", where, "--node", name) for name in ("n1", "n2")]
        token = self.place.token
        client = intact_client.Client(",".join(urls), token=token, timeout=PATIENCE_S)
        client.put_workflow(definition("sale", "conformance", [{**s, "complete_by": "30s"} for s in SALE]))
        # The agents know one node, and find the other.
        for name, url in zip(("one-1", "two-1"), urls):
            self.agent(name, url, **told)
        found = client.submit_many(self.lines(400))

        def is_open():
            return client.list(state=["pending", "processing", "compensating"], limit=1)["tasks"]

        for _ in range(6):
            if not is_open():
                break
            time.sleep(self.random.uniform(0.1, 1))
            self.place.kept[self.random.choice(["n1", "n2", "one-1", "two-1"])].strike()
        wait_for("the end of all tasks", lambda: not is_open(), 4 * PATIENCE_S)
        for name in ("one-1", "two-1"):
            self.assertIn(self.place.kept[name].retire(), (0, -15), self.place.kept[name].story())
        outcomes = json.loads(self.place.psql("SELECT coalesce(json_object_agg(forward_key, outcome), '{}') FROM "
                                              "intact_barrier").stdout)
        total = int(self.place.psql("SELECT coalesce(sum(n), 0) FROM counter").stdout)
        self.compare_books(client, [line["id"] for line in found], total, outcomes)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:], verbosity=2)
