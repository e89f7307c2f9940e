#!/usr/bin/python3
"""The console by HTTP: who may call it, what it says to nonsense, and what comes of many who press at the same time.

Usage: console_test.py BUILD [TEST...]
"""

import http.client
import json
import os
import random
import socket
import subprocess
import sys
import threading
import unittest
import urllib.parse

import mischief
from shop_kit import Shop, ask, eventually

HERE = os.path.dirname(os.path.realpath(__file__))
BUILD = sys.argv.pop(1)
JSON = {"Content-Type": "application/json"}


class ConsoleTest(unittest.TestCase):
    shop = None  # one for all tests

    def setUp(self):
        self.port = urllib.parse.urlsplit(self.shop.console_url).port

    def call(self, method, path, body=None, headers=None):
        """Its status, headers and JSON, if that is what it is."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            try:
                connection.request(method, path, body, headers or {})
            except BrokenPipeError:
                pass  # it was answered before its body was there
            response = connection.getresponse()
            text = response.read()
            is_json = response.headers["Content-Type"] == "application/json"
            return response.status, response.headers, json.loads(text) if is_json and text else None
        finally:
            connection.close()

    def post(self, path, given, **headers):
        status, _, said = self.call("POST", path, json.dumps(given), JSON | headers)
        return status, said

    def process(self, name):
        return next(p for p in self.shop.state()["processes"] if p["name"] == name)

    def mode(self, name):
        return next(s for s in self.shop.state()["services"] if s["name"] == name)["mode"]

    def is_well(self):
        self.assertEqual({p["state"] for p in self.shop.state()["processes"]}, {"running"})

    # ---- Who may call ----

    def test_this_machine_only(self):
        with socket.socket() as elsewhere, self.assertRaises(ConnectionRefusedError):
            elsewhere.connect(("127.0.0.2", self.port))  # stands for every other address of this machine

    def test_pages_of_others(self):
        """What a browser sends for a page that is not ours, whatever that page tries. Nothing of it kills."""
        kill, own = "/api/kill/stock", f"127.0.0.1:{self.port}"
        starts = self.process("stock")["starts"]
        simple = ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x")  # sent without asking us first
        for kind in (*simple, "", "application/jsonp", "text/json"):
            self.assertEqual(self.call("POST", kill, "{}", {"Content-Type": kind})[0], 403, kind)
        self.assertEqual(self.call("POST", kill, "{}")[0], 403)
        for origin in ("https://example.org", "null", "http://127.0.0.1", f"http://127.0.0.1:{self.port + 1}", f"https://{own}",
                       f"http://{own}.example.org", f"http://{own}@example.org", self.shop.url):
            self.assertEqual(self.post(kill, {}, Origin=origin)[0], 403, origin)
        for host in ("example.org", f"example.org:{self.port}", "127.0.0.1", f"127.0.0.1:{self.port}.example.org", ""):
            for method in ("GET", "POST", "HEAD"):  # a name of theirs leads to this machine
                status, _, said = self.call(method, "/api/state" if method != "POST" else kill, "{}", JSON | {"Host": host})
                self.assertEqual((status, said and list(said)), (403, None if method == "HEAD" else ["error"]), host)
        status, headers, _ = self.call("OPTIONS", kill, headers={"Origin": "https://example.org", "Access-Control-Request-Method": "POST",
                                                                  "Access-Control-Request-Headers": "content-type"})
        self.assertGreaterEqual(status, 400)
        self.assertEqual([name for name in headers if name.lower().startswith("access-control")], [])
        self.is_well()
        self.assertEqual(self.process("stock")["starts"], starts)

    def test_pages_cannot_be_embedded(self):
        for path in ("/", "/api/state"):
            _, headers, _ = self.call("GET", path)
            self.assertIn("frame-ancestors 'none'", headers["Content-Security-Policy"])
            self.assertNotIn("Access-Control-Allow-Origin", headers)

    def test_our_page(self):
        for headers in ({}, {"Origin": f"http://127.0.0.1:{self.port}"}, {"Origin": f"http://localhost:{self.port}"},
                        {"Host": f"localhost:{self.port}"}, {"Content-Type": "application/json; charset=utf-8"}):
            self.assertEqual(self.post("/api/restock/cup", {"number": 25}, **headers)[0], 200, headers)

    def test_alerts_are_signed(self):
        event = json.dumps({"id": "e-1", "data": {"alerts": [{"notice": "opened", "summary": "all is lost"}]}})
        for headers in ({}, {"webhook-id": "e-1", "webhook-timestamp": "0", "webhook-signature": "v1,AAAA"},
                        {"webhook-id": "e-1", "webhook-timestamp": "x", "webhook-signature": ""}):
            self.assertEqual(self.call("POST", "/alerts", event, JSON | headers)[0], 401)
        self.assertNotIn("all is lost", json.dumps(self.shop.state()["feed"]))

    # ---- Nonsense ----

    def test_nonsense(self):
        deep = "[" * 100_000
        for body in ("", "{", "[]", "null", "7", '"kill"', "\udcff", deep, '{"mode": ' + deep):
            status, _, said = self.call("POST", "/api/mode/stock", body.encode(errors="surrogateescape"), JSON)
            self.assertEqual((status, said), (400, {"error": "The body is no JSON object."}), body[:20])
        for length in ("-1", "x", "\xb2", "1" * 10, "9" * 5000, str((1 << 20) + 1), "0x5"):
            status, _, said = self.call("POST", "/api/mode/stock", None, JSON | {"Content-Length": length})
            self.assertEqual((status, list(said)), (413, ["error"]), length[:20])
        self.assertEqual(self.call("POST", "/api/mode/stock", iter([b"{}"]), JSON)[0], 413)  # chunked
        for path in ("/api/nothing", "/index.html", "/../console.py", "/%2e%2e/console.py", "/api/state/", "/api/mode/stock"):
            self.assertEqual(self.call("GET", path)[0], 404, path)
        self.assertEqual(self.call("DELETE", "/api/state")[0], 501)
        self.is_well()

    def test_names_and_values_that_are_none(self):
        good = {"reason": "a test"}
        for path, given in (
                ("/api/mode/nobody", {"mode": "slow"}), ("/api/mode/..", {"mode": "slow"}), ("/api/mode/", {"mode": "slow"}), ("/api/mode/web", {"mode": "down"}),
                *(("/api/mode/stock", {"mode": mode}) for mode in ("", "OK", "ok\n", None, 5, True, ["slow"], {"ok": 1})), ("/api/mode/stock", {}),
                ("/api/kill/nobody", {}), ("/api/kill/", {}), ("/api/kill/%73tock", {}), ("/api/start/nobody", {}), ("/api/kill/stock/now", {}), ("/api/kill", {}),
                *(("/api/restock/cup", {"number": number}) for number in (-1, 1_000_001, 10**40, 1.5, "5", True, None, [5])),
                ("/api/restock/table", {"number": 5}), ("/api/restock/--restock", {"number": 5}), ("/api/restock/cup=1", {"number": 5}), ("/api/restock/", {"number": 5}),
                ("/api/operator/retry/o-1", {}), ("/api/operator/retry/o-1", {"reason": " "}), ("/api/operator/retry/o-1", {"reason": 5}),
                ("/api/operator/delete/o-1", good), ("/api/operator/retry/", good), ("/api/operator/retry/..", good), ("/api/operator/retry/o-1?x", good),
                ("/api/operator/retry/o-1%2f", good), ("/api/operator/retry/%e9", good), ("/api/operator/supply/o-1", good | {"step": "ship", "output": "{"}),
                ("/api/operator/resolve/", good), ("/api/operator/supply/o-1", good | {"step": "ship", "output": 5}), ("/api/operator/supply/o-1", good | {"step": "ship", "output": "[" * 100_000}),
                ("/api/alerts/../acknowledge", good), ("/api/alerts/a-1/acknowledge", {}), ("/api/", {}), ("/kill/stock", {}), ("/api/state", {})):
            status, said = self.post(path, given)
            self.assertEqual((status, list(said)), (422, ["error"]), (path, str(given)[:50], said))
            self.assertLess(len(said["error"]), 300)
        for path, given in (("/api/operator/retry/o-nobody", good), ("/api/operator/skip/o-nobody", good | {"step": 5}), ("/api/operator/resolve/o-nobody", good | {"step": "ship"}), ("/api/alerts/a-nobody/acknowledge", good),
                            ("/api/operator/retry/o-nobody", {"reason": "x" * 100_000})):
            status, said = self.post(path, given)  # Intact says so
            self.assertEqual((status, list(said)), (409, ["error"]), (path, said))
        for verb, named in (("undo", "o-nobody"), ("close", "o-nobody"), ("retry", "o-nobody@parcel.0")):  # of a parcel, or of its order
            status, said = self.post(f"/api/operator/{verb}/o-nobody@parcel.0", good)
            self.assertEqual((status, "@" in named, named in said["error"]), (409, "@" in said["error"], True), said)
        self.assertEqual({self.mode(name) for name in ("stock", "payment", "shipping")}, {"ok"})
        self.is_well()

    def test_dead_twice_and_alive_twice(self):
        self.assertEqual(self.post("/api/kill/submission", {})[0], 200)
        self.assertEqual(self.post("/api/kill/submission", {}), (422, {"error": "submission is not running"}))
        for _ in range(2):
            self.assertEqual(self.post("/api/start/submission", {})[0], 200)
        self.assertEqual(self.process("submission")["starts"], 2)

    def test_a_killed_service_is_down(self):
        """However it was killed, and whatever mode it was left in; each way to start it brings it back."""
        for mode in ("ok", "slow"):
            self.assertEqual(self.post("/api/mode/payment", {"mode": mode})[0], 200)
            self.assertEqual(self.post("/api/kill/payment", {})[0], 200)
            self.assertEqual(self.mode("payment"), "down")
            self.assertEqual(self.post("/api/start/payment", {})[0], 200)
            self.assertEqual(self.mode("payment"), mode)
        self.assertEqual(self.post("/api/kill/payment", {})[0], 200)
        self.assertEqual(self.post("/api/mode/payment", {"mode": "ok"})[0], 200)
        self.assertEqual((self.mode("payment"), self.process("payment")["state"]), ("ok", "running"))
        self.assertEqual(self.post("/api/mode/payment", {"mode": "down"})[0], 200)
        self.assertEqual(self.post("/api/start/payment", {})[0], 200)
        self.assertEqual(self.mode("payment"), "ok")

    # ---- At the same time ----

    def together(self, calls):
        """All at once, or as nearly as threads can; what each of them was answered."""
        answers, gate = [], threading.Barrier(len(calls))

        def one(path, given):
            gate.wait()
            answers.append(self.post(path, given))

        threads = [threading.Thread(target=one, args=call) for call in calls]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(answers), len(calls))
        return answers

    def test_two_switches_at_once(self):
        """Each answer is one that was meant, and in the end a service is down if, and only if, its switch says so."""
        for _ in range(10):
            modes = random.choices(("ok", "slow", "failing", "hanging", "down"), k=8)
            answers = self.together([("/api/mode/stock", {"mode": mode}) for mode in modes])
            self.assertEqual({status for status, _ in answers}, {200}, answers)
            self.assertEqual((self.mode("stock") == "down"), (self.process("stock")["state"] != "running"))
            self.assertIn(self.mode("stock"), modes)
        answers = self.together([("/api/mode/stock", {"mode": "down"}), ("/api/start/stock", {}), ("/api/kill/stock", {}), ("/api/mode/payment", {"mode": "slow"})])
        self.assertLessEqual({status for status, _ in answers}, {200, 422})
        for service in ("stock", "payment"):
            self.assertEqual(self.post(f"/api/mode/{service}", {"mode": "ok"})[0], 200)
            self.post(f"/api/start/{service}", {})
        self.is_well()

    def test_killed_once(self):
        answers = self.together([("/api/kill/web", {})] * 6)
        self.assertEqual(sorted(status for status, _ in answers), [200, 422, 422, 422, 422, 422])
        starts = self.process("web")["starts"]
        self.together([("/api/start/web", {})] * 6)
        self.assertEqual(self.process("web")["starts"], starts + 1)
        eventually("the shop answers", lambda: self.answers(self.shop.url))

    def answers(self, url):
        try:
            return ask(url, "/api/products")[0] == 200
        except OSError:
            return False

    # ---- The plan of what reconcile.py does here ----

    def test_the_same_seed_is_the_same_plan(self):
        def plan(seed, hashes, *more):
            done = subprocess.run([sys.executable, "-B", f"{HERE}/reconcile.py", BUILD, "--plan", "--seed", seed, *more], check=True,
                                  capture_output=True, text=True, env=os.environ | {"PYTHONHASHSEED": hashes})
            return done.stdout

        self.assertEqual(plan("7", "1", "--orders", "300"), plan("7", "2", "--orders", "300"))
        self.assertNotEqual(plan("7", "1", "--orders", "300"), plan("8", "1", "--orders", "300"))
        many = mischief.draw("7", 1000, sqlite=True)
        known = {p["name"] for p in self.shop.state()["processes"]} - {"epmd"}
        self.assertEqual({act.name for act in many if act.kind == "kill"}, known)
        self.assertEqual(many, sorted(many, key=lambda act: act.at))
        self.assertEqual({act.mode for act in many if act.kind == "mode"}, set(mischief.MODES))

    # ---- One truth ----

    def test_breakers(self):
        """What the page shows of breakers is what Intact says, also where there is none."""
        def shown():
            found = {agent["agent"]: agent["breaker"] and agent["breaker"]["state"] for agent in self.shop.state()["agents"]}
            return found if found.get("stock") else None

        self.assertEqual(eventually("breakers are shown", shown), {"stock": "closed", "payment": "closed", "shipping": None})


if __name__ == "__main__":
    with Shop(BUILD, sqlite=True) as ConsoleTest.shop:
        result = unittest.main(verbosity=2, exit=False).result
        ConsoleTest.shop.is_good = result.wasSuccessful()
    sys.exit(not result.wasSuccessful())
