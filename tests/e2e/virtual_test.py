#!/usr/bin/env python3
"""`intact serve --virtual-time`: whole workflows of weeks against a real server, with agents by HTTP. What is asserted is
virtual time; how long it takes is not. Usage: virtual_test.py INTACT [NAME...]"""
import concurrent.futures
import datetime
import http.client
import http.server
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import unittest.mock

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "lib", "python"))
sys.dont_write_bytecode = True

from intact_client import Agent, Problem, StepError  # noqa: E402
from intact_client.testing import Server  # noqa: E402

START = "2026-01-01T09:00:00Z"
DAY = datetime.timedelta(days=1)
PATIENCE_S = 300
INTACT = ""


def at(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))


MONTH = """
intact: 1
workflow: month
complete_by: 60d
steps:
  - {name: a, agent: x, action: go, undo: none}
  - {name: rest, after: [a], wait: 10d}
  - {name: b, after: [rest], agent: x, action: go, undo: none, complete_by: 2d, retry: {attempts: 4, wait: 1h, factor: 2, max_wait: 1d, jitter: false}}
  - {name: date, after: [b], wait: {until: "2026-01-25T00:00:00Z"}}
  - {name: poll, after: [date], agent: x, action: poll, undo: none, repeat: {until: .output.ready, every: 6h, for: 4d}}
  - {name: c, after: [poll], agent: x, action: go, undo: none}
"""
ORDER = """
intact: 1
workflow: order
complete_by: 10d
steps:
  - {name: charge, agent: payment, action: charge, undo: {action: refund}, complete_by: 30s, retry: {attempts: 3, wait: 1m, jitter: false}}
  - {name: paid, after: [charge], signal: {name: paid}, complete_by: 3d}
  - {name: ship, after: [paid], agent: shipping, action: ship, undo: {action: recall}}
"""
ASK = """
intact: 1
workflow: ask
complete_by: 10d
steps:
  - {name: allow, approve: {by: [finance], question: "Pay?"}, complete_by: 3d}
  - {name: pay, after: [allow], agent: payment, action: charge, undo: none}
"""
TICK = """
intact: 1
workflow: tick
complete_by: 1h
steps:
  - {name: go, agent: x, action: go, undo: none}
"""
WAIT = """
intact: 1
workflow: sleep
complete_by: 20d
steps:
  - {name: rest, wait: 5d}
"""


class VirtualTest(unittest.TestCase):
    def server(self, **options):
        server = Server(program=INTACT, **{"at": START, **options}).start()
        self.addCleanup(server.close)
        return server

    def raw(self, server, method, path, body=None, headers=None):
        connection = http.client.HTTPConnection("127.0.0.1", int(server.url.rsplit(":", 1)[1]), timeout=PATIENCE_S)
        connection.request(method, path, body, headers or {})
        return connection.getresponse()

    def test_a_month_ends_at_its_virtual_moments(self):
        server = self.server()
        server.define(MONTH)
        polls = []

        def go(request):
            if request.step == "b" and request.attempt < 4:
                raise StepError("busy", "later", retryable=True)
            return request.step

        def poll(_):
            polls.append(1)
            return {"ready": len(polls) == 5}

        with server.agent("x", {"go": go, "poll": poll}):
            end = server.submit("month", {}, not_before="2026-01-05T09:00:00Z").expect("processed", timeout=PATIENCE_S)
        started = {name: at(step["attempts"][0]["started_at"]) for name, step in end.steps.items() if step.get("attempts")}
        self.assertEqual(started["a"], at("2026-01-05T09:00:00Z"))
        self.assertEqual([at(a["started_at"]) for a in end.steps["b"]["attempts"]],
                         [at("2026-01-15T09:00:00Z") + datetime.timedelta(hours=h) for h in (0, 1, 3, 7)])
        self.assertEqual(started["c"], at("2026-01-25T00:00:00Z") + datetime.timedelta(hours=24))
        self.assertEqual(at(end["ended_at"]), started["c"])
        self.assertEqual(server.now, started["c"])

    def test_the_clock_by_itself(self):
        """In the mode auto it moves though nobody waits, and stands when all is done."""
        server = self.server(clock="auto")
        server.define(WAIT)
        task = server.submit("sleep")
        end = time.monotonic() + PATIENCE_S
        while task.state != "processed":
            self.assertLess(time.monotonic(), end)
        self.assertEqual(task.get()["ended_at"], "2026-01-06T09:00:00.000Z")
        self.assertEqual(server.now, at("2026-01-06T09:00:00Z"))

    def test_waits_of_clients_are_real(self):
        """A wait passes no virtual time of its own, and is not ended by a jump."""
        server = self.server(clock="manual")
        server.define(WAIT)
        task = server.submit("sleep")
        self.assertEqual(server.client.call("GET", f"/v1/tasks/{task.id}?wait=50ms")["state"], "pending")
        self.assertEqual(server.now, at(START))
        with concurrent.futures.ThreadPoolExecutor() as pool:
            waiting = pool.submit(server.client.call, "GET", f"/v1/tasks/{task.id}?wait=60s")
            server.advance("4d")
            self.assertFalse(waiting.done())
            server.advance("1d")
            self.assertEqual(waiting.result(PATIENCE_S)["state"], "processed")

    def test_an_agent_at_work_holds_the_clock(self):
        server = self.server()
        server.define(ORDER)
        begun, go_on = threading.Event(), threading.Event()

        def charge(_):
            begun.set()
            go_on.wait(PATIENCE_S)
            return {"id": "c-1"}

        with server.agent("payment", {"charge": charge}, {"refund": None}), server.agent("shipping", {"ship": None}):
            task = server.submit("order")
            begun.wait(PATIENCE_S)
            with self.assertRaises(Problem) as raised:
                server.advance("1d", patience=0.2)
            self.assertEqual(raised.exception.kind, "clock-held")
            self.assertIn("attempt 1 of step charge", str(raised.exception))
            self.assertEqual(server.now, at(START))
            held = server.clock()["held_by"]
            self.assertEqual([(h["kind"], h["task"], h["step"], h["agent"]) for h in held], [("attempt", task.id, "charge", "payment")])
            go_on.set()
            task.signal("paid", {})
            end = task.expect("processed", within="0s", timeout=PATIENCE_S)
            self.assertEqual(end.steps["charge"]["attempts"][0]["effect"], "happened")

    def test_a_handler_may_ask_for_the_time(self):
        """Also while the clock is to be advanced, and waits for that very handler."""
        server = self.server()
        server.define(ORDER)
        asked = []

        def charge(_):
            asked.append(server.now)
            return {}

        with server.agent("payment", {"charge": charge}, {"refund": None}):
            server.submit("order", not_before="2026-01-02T09:00:00Z")
            server.advance("2d", patience=PATIENCE_S)
        self.assertEqual(asked, [at("2026-01-02T09:00:00Z")])

    def test_an_agent_that_hangs_is_passed(self):
        server = self.server()
        server.define(ORDER)
        begun, go_on = threading.Event(), threading.Event()
        self.addCleanup(go_on.set)

        def charge(request):
            if request.attempt == 1:
                begun.set()
                go_on.wait(PATIENCE_S)
            return {}

        with server.agent("payment", {"charge": charge}, {"refund": None}), server.agent("shipping", {"ship": None}):
            task = server.submit("order")
            begun.wait(PATIENCE_S)
            server.advance("2m", regardless=True)
            attempts = task.get()["steps"][0]["attempts"]
            self.assertEqual([at(a["started_at"]) - at(START) for a in attempts],
                             [datetime.timedelta(0), datetime.timedelta(seconds=90)])
            self.assertEqual(server.now, at("2026-01-01T09:02:00Z"))
            go_on.set()
            task.signal("paid", {})
            task.expect("processed", within="2m", timeout=PATIENCE_S)

    def test_what_begins_on_the_way_is_waited_for(self):
        """Regardless is of what holds the clock at the beginning."""
        server = self.server()
        server.define("intact: 1\nworkflow: two\ncomplete_by: 10d\nsteps:\n"
                      "  - {name: stuck, agent: x, action: hang, undo: none, complete_by: 5d}\n"
                      "  - {name: rest, after: [], wait: 1h}\n"
                      "  - {name: b, after: [rest], agent: x, action: go, undo: none}\n")
        begun, go_on, done = threading.Event(), threading.Event(), threading.Event()
        self.addCleanup(go_on.set)

        def hang(_):
            begun.set()
            go_on.wait(PATIENCE_S)

        def go(_):
            time.sleep(0.5)
            done.set()

        with server.agent("x", {"hang": hang, "go": go}):
            task = server.submit("two")
            begun.wait(PATIENCE_S)
            server.advance("2h", regardless=True, patience=PATIENCE_S)
            self.assertTrue(done.is_set())
            attempt = task.get()["steps"][2]["attempts"][0]
            self.assertEqual((attempt["started_at"], attempt["ended_at"]), ("2026-01-01T10:00:00.000Z", "2026-01-01T10:00:00.000Z"))
            go_on.set()

    def test_an_absent_agent_holds_the_clock(self):
        server = self.server()
        server.define(ORDER)
        task = server.submit("order")
        with self.assertRaises(Problem) as raised:
            server.advance("1d", patience=0.2)
        self.assertIn("payment", str(raised.exception))
        server.advance("11d", regardless=True)
        task.expect("compensated", timeout=PATIENCE_S)

    def test_a_receiver_that_hangs_holds_the_clock(self):
        """No longer than `patience`, and it is named; a wait for what holds the clock ends with its answer."""
        called, go_on = threading.Event(), threading.Event()
        self.addCleanup(go_on.set)

        class Receiver(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                self.rfile.read(int(self.headers["Content-Length"]))
                called.set()
                go_on.wait(PATIENCE_S)
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_):
                pass

        receiver = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
        threading.Thread(target=receiver.serve_forever, daemon=True).start()
        self.addCleanup(receiver.server_close)
        self.addCleanup(receiver.shutdown)
        url = f"http://127.0.0.1:{receiver.server_address[1]}/hooks"
        with tempfile.TemporaryDirectory() as folder:
            config = os.path.join(folder, "server.yaml")
            with open(config, "w", encoding="utf-8") as f:
                f.write(f"intact_server: 1\nwebhooks:\n  - url: {url}\n    secret: {{file: {folder}/secret}}\n"
                        f"    private: [127.0.0.1]\n    timeout: {PATIENCE_S}s\n")
            with open(os.path.join(folder, "secret"), "w", encoding="utf-8") as f:
                f.write("whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=\n")
            server = self.server(arguments=["--config", config])
        server.define(WAIT)
        task = server.submit("sleep", reply_to=url)
        self.assertTrue(called.wait(PATIENCE_S))
        with self.assertRaises(Problem) as raised:
            server.advance("1d", patience=0.2)
        self.assertEqual(raised.exception.kind, "clock-held")
        self.assertIn(f"{url} has not answered to a status message", str(raised.exception))
        self.assertEqual((server.now, server.clock()["held_by"]), (at(START), [{"kind": "message", "target": url}]))
        server.advance("1d", regardless=True)
        self.assertEqual(server.now, at(START) + DAY)
        threading.Timer(0.5, go_on.set).start()
        server.advance("5d", patience=PATIENCE_S)
        self.assertEqual((task.state, server.clock()["held_by"]), ("processed", []))

    def test_signals_and_deadlines(self):
        server = self.server()
        server.define(ORDER)
        with server.agent("payment", {"charge": {}}, {"refund": None}), server.agent("shipping", {"ship": None}):
            in_time, late = server.submit("order"), server.submit("order")
            server.advance("2d")
            self.assertEqual(in_time.state, "pending")
            in_time.signal("paid", {})
            in_time.expect("processed", timeout=PATIENCE_S)
            end = late.expect("compensated", error="no_signal", timeout=PATIENCE_S)
            self.assertEqual(at(end["ended_at"]), at(START) + 3 * DAY)

    def test_what_no_time_brings(self):
        """A task that only an operator can end is said to wait for it, at once, and not for its time."""
        server = self.server()
        server.define(WAIT)
        task = server.submit("sleep", paused=True)
        with self.assertRaises(AssertionError) as raised:
            task.ended(PATIENCE_S)
        self.assertIn("does not end by itself", str(raised.exception))
        self.assertEqual(server.now, at(START))

    def test_approvals(self):
        server = self.server()
        server.define(ASK)
        ann = server.person("ann", "finance")
        with server.agent("payment", {"charge": {"receipt": 1}}):
            task = server.submit("ask")
            self.assertEqual(server.submit("ask").ended(PATIENCE_S).error, "not_approved")
            self.assertEqual(server.now, at(START) + 3 * DAY)
            task.expect("compensated", error="not_approved")
            task = server.submit("ask")
            server.advance("1d")
            ann.approve(task.id, "allow", "fine")
            task.expect("processed", within="1d", timeout=PATIENCE_S)
            self.assertEqual(task.get()["steps"][0]["output"]["votes"][0]["by"], "ann")

    def test_schedules_fire_at_virtual_moments(self):
        server = self.server(clock="auto")
        server.define(TICK)
        server.client.call("PUT", "/v1/schedules/nightly",
                           {"intact": 1, "schedule": "nightly", "workflow": "tick", "cron": "30 2 * * *", "timezone": "Europe/Rome"})
        self.assertEqual(server.clock()["next"], "2026-01-02T01:30:00.000Z")
        self.assertEqual(server.now, at(START), "a schedule alone does not move the clock")
        with server.agent("x", {"go": None}):
            server.advance("3d")
            self.assertEqual([(t["id"], t["submitted_at"], t["state"]) for t in reversed(server.client.list()["tasks"])],
                             [(f"nightly@2026-01-0{d}T01:30:00Z", f"2026-01-0{d}T01:30:00.000Z", "processed") for d in (2, 3, 4)])

    def test_retention_by_virtual_time(self):
        server = self.server(arguments=["--keep", "30d"])
        server.define(WAIT)
        task = server.submit("sleep")
        task.expect("processed", timeout=PATIENCE_S)
        server.advance("29d")
        self.assertEqual(task.state, "processed")
        server.advance("2d")
        end = time.monotonic() + PATIENCE_S
        while True:
            try:
                task.get()
            except Problem as e:
                self.assertEqual((e.status, e.kind), (410, "task-deleted"))
                break
            self.assertLess(time.monotonic(), end)
            time.sleep(0.05)

    def test_every_answer_says_so(self):
        server = self.server(clock="manual")
        server.define(WAIT)
        self.assertEqual(json.loads(self.raw(server, "GET", "/healthz").read())["virtual_time"], "2026-01-01T09:00:00.000Z")
        server.advance("90m")
        asked = [("GET", "/healthz", None), ("GET", "/nothing", None), ("POST", "/healthz", None), ("GET", "/v1/events", None),
                 ("POST", "/v1/tasks", "{"), ("GET", "/v1/tasks/none", None), ("GET", "/metrics", None),
                 ("POST", "/v1/agents/x/work", json.dumps({"instance": "i", "max": 1, "wait": "1ms"}))]
        for method, path, body in asked:
            answer = self.raw(server, method, path, body, {"Content-Type": "application/json"} if body else None)
            self.assertEqual(answer.headers["Intact-Virtual-Time"], "2026-01-01T10:30:00.000Z", (method, path, answer.status))
        bad = http.client.HTTPConnection("127.0.0.1", int(server.url.rsplit(":", 1)[1]), timeout=PATIENCE_S)
        bad.putrequest("GET", "/v1/tasks", skip_host=True)
        bad.endheaders()
        answer = bad.getresponse()
        self.assertEqual((answer.status, answer.headers["Intact-Virtual-Time"]), (400, "2026-01-01T10:30:00.000Z"))

    def test_bad_wishes(self):
        server = self.server(clock="manual")
        for body, said in [({}, '"by"'), ({"by": "2d", "to": START}, '"by"'), ({"by": 5}, "by:"), ({"by": "2 days"}, "by:"),
                           ({"to": "tomorrow"}, "to:"), ({"to": "2025-12-31T00:00:00Z"}, "does not go back"),
                           ({"to": "2150-01-01T00:00:00Z"}, "before 2100"), ({"by": "1d", "regardles": True}, "regardless"),
                           ({"by": "1d", "regardless": 1}, "regardless:"), ({"by": "1d", "patience": "1h"}, "patience:"), ([], "object")]:
            with self.assertRaises(Problem, msg=body) as raised:
                server.client.call("POST", "/v1/clock/advance", body)
            self.assertEqual(raised.exception.status, 422, (body, str(raised.exception)))
            self.assertIn(said, str(raised.exception))
        self.assertEqual(server.now, at(START))

    def test_real_time_cannot_be_moved(self):
        with tempfile.TemporaryDirectory() as folder:
            process = subprocess.Popen([INTACT, "serve", "--data", folder, "--open", "--listen", "127.0.0.1:0", "--log", "error"],
                                       stdout=subprocess.PIPE)
            try:
                port = int(process.stdout.readline().split()[-1])
                for method, path in (("GET", "/v1/clock"), ("POST", "/v1/clock/advance")):
                    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
                    connection.request(method, path, b'{"by": "1d"}' if method == "POST" else None, {"Content-Type": "application/json"})
                    answer = connection.getresponse()
                    self.assertEqual((answer.status, answer.headers["Intact-Virtual-Time"]), (404, None))
                    self.assertTrue(json.loads(answer.read())["type"].endswith(":real-time"))
            finally:
                process.terminate()
                process.wait(PATIENCE_S)
                process.stdout.close()

    def test_what_makes_no_sense_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            config = os.path.join(folder, "c.yaml")
            with open(config, "w", encoding="utf-8") as f:
                f.write(f"intact_server: 1\narchive: {{folder: {folder}}}\nretention: [{{keep: 30d, archive: true}}]\n")
            for flags, said in [(["--data", folder], "--data"), (["--store", "postgres://u@h/d"], "--store"), (["--schema", "s"], "--schema"),
                                (["--migrate"], "--migrate"), (["--adopt"], "--adopt"), (["--node", "n"], "--node"),
                                (["--behind-proxy"], "--behind-proxy"), (["--listen", "0.0.0.0:0"], "loopback"),
                                (["--clock", "fast"], "auto"), (["--clock-at", "noon"], "--clock-at"), (["--config", config], "archive")]:
                done = subprocess.run([INTACT, "serve", "--virtual-time", *flags], capture_output=True, text=True, cwd=folder, timeout=PATIENCE_S,
                                      check=False)
                self.assertEqual(done.returncode, 2, (flags, done.stderr))
                self.assertIn(said, done.stderr)
            done = subprocess.run([INTACT, "serve", "--virtual-time"], capture_output=True, text=True, timeout=PATIENCE_S, check=False,
                                  env={**os.environ, "INTACT_STORE": "postgres://u@h/d"})
            self.assertEqual(done.returncode, 2)
            self.assertIn("INTACT_STORE", done.stderr)
            done = subprocess.run([INTACT, "serve", "--clock", "manual"], capture_output=True, text=True, cwd=folder, timeout=PATIENCE_S,
                                  check=False)
            self.assertEqual((done.returncode, "--virtual-time" in done.stderr), (2, True))
            self.assertEqual(sorted(os.listdir(folder)), ["c.yaml"])

    def test_many_servers_side_by_side(self):
        def one(number):
            with Server(program=INTACT, at=START) as server:
                server.define(WAIT)
                end = server.submit("sleep", {"n": number}).expect("processed", timeout=PATIENCE_S)
                return server.url, end["ended_at"]

        with concurrent.futures.ThreadPoolExecutor(20) as pool:
            found = list(pool.map(one, range(20)))
        self.assertEqual({end for _, end in found}, {"2026-01-06T09:00:00.000Z"})

    def test_a_handler_that_hangs_does_not_hold_the_test(self):
        over, began = threading.Event(), threading.Event()

        def go(_request):
            began.set()
            over.wait()

        self.addCleanup(over.set)
        with Server(program=INTACT) as server, unittest.mock.patch("intact_client.testing.END_WITHIN_S", 1.0):
            server.define(TICK)
            with self.assertRaisesRegex(RuntimeError, "agent x has not ended after 1 s: a handler hangs"):
                with server.agent("x", {"go": go}):
                    server.submit("tick")
                    self.assertTrue(began.wait(PATIENCE_S))
            with self.assertRaisesRegex(ValueError, "of the test"):
                with server.agent("x", {"go": go}):
                    raise ValueError("of the test")

    def test_a_program_that_says_nothing_is_no_server(self):
        with tempfile.TemporaryDirectory() as folder, unittest.mock.patch("intact_client.testing.START_WITHIN_S", 1.0):
            program = os.path.join(folder, "mute")
            with open(program, "w", encoding="utf-8") as f:
                f.write("#!/bin/sh\nexec sleep 100\n")
            os.chmod(program, 0o755)
            with self.assertRaisesRegex(RuntimeError, "the server did not start: it said nothing in 1 s"):
                Server(program=program).start()

    def test_a_server_that_was_killed_is_told_at_once(self):
        with Server(program=INTACT) as server:
            server.define(TICK)
            task = server.submit("tick")
            threading.Timer(0.5, server._process.kill).start()
            with self.assertRaisesRegex(RuntimeError, "the server has ended with -9"):
                task.ended(timeout=PATIENCE_S)
            for call in (server.clock, lambda: server.advance("1h"), lambda: server.submit("tick")):
                with self.assertRaisesRegex(RuntimeError, "the server has ended with -9"):
                    call()

    def test_the_server_ends_with_its_test(self):
        script = ("import sys, time; sys.path.insert(0, sys.argv[1])\n"
                  "from intact_client.testing import Server\n"
                  "server = Server(program=sys.argv[2]).start()\n"
                  "print(server._process.pid, flush=True)\n"
                  "time.sleep(3600)\n")
        test = subprocess.Popen([sys.executable, "-c", script, os.path.join(ROOT, "lib", "python"), INTACT], stdout=subprocess.PIPE)
        pid = int(test.stdout.readline())
        os.kill(test.pid, signal.SIGKILL)
        test.wait(PATIENCE_S)
        test.stdout.close()
        end = time.monotonic() + PATIENCE_S
        while True:
            try:
                with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
                    if f.read().rsplit(")", 1)[1].split()[0] == "Z":
                        break
            except OSError:
                break
            self.assertLess(time.monotonic(), end)
            time.sleep(0.05)

    def work(self, server, wait):
        answer = self.raw(server, "POST", "/v1/agents/x/work", json.dumps({"instance": "i", "max": 1, "wait": wait}),
                          {"Content-Type": "application/json"})
        return answer.status, json.loads(answer.read())

    def test_parked_calls_wait_in_real_time(self):
        """A jump does not end them, and they end though the clock stands."""
        server = self.server(clock="manual")
        server.define(TICK)
        self.assertEqual((self.work(server, "200ms")[1]["requests"], server.now), ([], at(START)))
        with concurrent.futures.ThreadPoolExecutor() as pool:
            parked = pool.submit(self.work, server, "60s")
            end = time.monotonic() + PATIENCE_S
            while self.raw(server, "GET", "/metrics").read().decode().find('intact_agent_parked_calls{agent="x"} 1') < 0:
                self.assertLess(time.monotonic(), end)
            server.advance("2d")
            self.assertFalse(parked.done())
            server.submit("tick")
            status, answer = parked.result(PATIENCE_S)
            self.assertEqual((status, len(answer["requests"])), (200, 1))

    def test_two_agents_side_by_side(self):
        """Agents are not taken for absent by jumps."""
        server = self.server()
        server.define(MONTH.replace("{until: .output.ready, every: 6h, for: 4d}", "{until: \"true\", every: 6h, for: 4d}"))
        agent = Agent("x", places=4)
        agent.action("go")(lambda request: request.step)
        agent.action("poll")(lambda request: None)
        with server.agent(agent), server.agent(agent):
            tasks = [server.submit("month") for _ in range(20)]
            for task in tasks:
                task.expect("processed", timeout=PATIENCE_S)
            self.assertEqual(server.clock()["held_by"], [])
            self.assertTrue(server.client.call("GET", "/v1/agents/x")["connected"])


if __name__ == "__main__":
    INTACT = os.path.abspath(sys.argv.pop(1))
    unittest.main()
