#!/usr/bin/env python3
"""The example agents, as a user would copy them, against what happens to agents.

First against a server that is played here and answers by a script: undo before forward, repeats, lost
acknowledgements, deadlines, refusals, SIGTERM. Then against the real one: all of them, and the server, are killed with
SIGKILL again and again, behind a wire that loses, doubles and delays messages, and the books are compared at the end.

Usage: agents_test.py ROOT INTACT RECONCILE [TEST...]
"""

import glob
import http.server
import json
import os
import queue
import random
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.error
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), ".."))
sys.dont_write_bytecode = True
import side_by_side  # pylint: disable=wrong-import-position
from ports import free_port  # pylint: disable=wrong-import-position

ROOT, INTACT, RECONCILE = (os.path.realpath(p) for p in sys.argv[1:4])
AGENTS = os.path.join(ROOT, "examples/agents")
PATIENCE_S = 240  # for what has to happen: only a failing test waits so long
UNDO = {"direction": "undo"}
ID_A, ID_B = "aaaaaaaa-0000-4000-8000-00000000000a", "bbbbbbbb-0000-4000-8000-00000000000b"

os.environ["no_proxy"] = "*"  # of who runs the tests
for name in ("NOTIFY_SOCKET", "WATCHDOG_USEC"):
    os.environ.pop(name, None)


def wait_for(what, condition, patience_s=PATIENCE_S):
    end = time.monotonic() + patience_s
    while not (found := condition()):
        if time.monotonic() > end:
            raise AssertionError(f"in {patience_s} s there was not: {what}")
        time.sleep(0.02)
    return found


def clean_environment(**more):
    names = ("INTACT_SERVER", "INTACT_TOKEN", "INTACT_CA", "INTACT_INSTALLATION", "http_proxy", "HTTP_PROXY")
    return {**{k: v for k, v in os.environ.items() if k not in names}, **more}


class PlayedServer(http.server.ThreadingHTTPServer):
    """Hands out what stands in `requests`, remembers every call, and fails calls as `faults` says."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), PlayedCall)
        self.calls, self.results, self.beats = [], queue.Queue(), queue.Queue()
        self.requests, self.faults = queue.Queue(), queue.Queue()
        self.stop, self.serial, self.sent = [], 0, {}
        self.installation, self.misdirected = ID_A, []
        self.parked, self.lock = 0, threading.Lock()
        threading.Thread(target=self.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server_port}"

    def count_parked(self, change):
        with self.lock:
            self.parked += change

    def handle_error(self, request, client_address):
        """Agents are killed here: that their connections break is nothing to tell."""

    def ask(self, key, action, text=None, left=60000, **more):
        """Queues a request; its token."""
        self.serial += 1
        request = {
            "token": f"token-{self.serial}", "task": key.split("/")[0], "step": key.split("/")[1],
            "action": action, "direction": "forward", "attempt": 1, "idempotency_key": key,
            "input": {"text": text or "hello", "customer": "ann", "amount": 7},
            "complete_by": "2000-01-01T00:00:00.000Z",  # clocks disagree: only time_left_ms counts
            "time_left_ms": left, "traceparent": "00-1-1-01", **more}
        if request["direction"] == "undo":
            request["forward"] = {"idempotency_key": key.removesuffix("/undo"), "input": request["input"],
                                  "output": None, "attempts": 1, "in_doubt": True}
        self.sent[request["token"]] = request
        self.requests.put(request)
        return request["token"]

    def answer_to(self, token):
        """The result that is handed in for a token; others are in the way and a mistake."""
        result = self.results.get(timeout=PATIENCE_S)
        if result["token"] != token:
            raise AssertionError(f"expected the result of {token}, not {result}")
        return result


class PlayedCall(http.server.BaseHTTPRequestHandler):
    def log_message(self, *args):
        pass

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        call = json.loads(body)
        wanted = self.headers["Intact-Installation"]
        if wanted and wanted.lower() != self.server.installation:
            self.server.misdirected.append(wanted)
            self.say(421, {"type": "urn:intact:problem:another-installation"})
            return
        self.server.calls.append((self.path, call, dict(self.headers)))
        if self.path.endswith("/heartbeats"):
            self.server.beats.put(call)
            self.say(200, {"now": "", "outcomes": [], "stop": self.server.stop})
            return
        results, requests = call.get("results", []), []
        if results and not self.server.faults.empty():
            self.fail(self.server.faults.get())
            return
        for result in results:
            self.server.results.put(result)
        if not results and call["max"] > 0:
            self.server.count_parked(1)
            try:
                requests.append(self.server.requests.get(timeout=0.3))
            except queue.Empty:
                pass
            self.server.count_parked(-1)
        self.say(200, {"now": "", "waited_ms": 0, "requests": requests, "stop": self.server.stop,
                       "outcomes": [{"token": r["token"], "status": "accepted"} for r in results]})

    def fail(self, status):
        if status == 0:
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True
        else:
            self.say(status, {"title": "no", "status": status}, {"Retry-After": "1"})

    def say(self, status, body, headers=()):
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Intact-Installation", self.server.installation)
        for name, value in dict(headers).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)


class PythonKind:
    """How the tests start agent.py and look at its effects."""

    name, action, undo = "payment", "charge", "refund"

    @staticmethod
    def command(folder, instance):
        return [sys.executable, f"{AGENTS}/agent.py", "--instance", instance, "--record", f"{folder}/payment.db"]

    @staticmethod
    def effects(folder):
        """By task: how often there is an effect that stands."""
        with sqlite3.connect(f"{folder}/payment.db") as db:
            return dict(db.execute("SELECT task, sum(sign(amount)) FROM booking GROUP BY task").fetchall())

    @staticmethod
    def happened(folder):
        """By task: how often it took effect, undone or not."""
        with sqlite3.connect(f"{folder}/payment.db") as db:
            return dict(db.execute("SELECT task, count(*) FROM booking WHERE amount > 0 GROUP BY task").fetchall())


class ShellKind:
    name, action, undo = "letters", "write", "take-back"

    @staticmethod
    def command(folder, instance):
        return [f"{AGENTS}/agent.sh", "letters", instance, f"{folder}/record", f"{AGENTS}/letters.sh"]

    @staticmethod
    def effects(folder):
        # One letter a step: the key is its name.
        return {os.path.basename(path).split("=")[0]: 1 for path in glob.glob(f"{folder}/letters/*=*")}


class Kept:
    """A process that is started again when it dies, as systemd would; strike() kills it."""

    def __init__(self, command, environment, log):
        self.command, self.environment, self.log = command, environment, log
        self.retired, self.status = False, None
        self.lock = threading.Lock()  # each process that is to retire is told once
        self.process = self.spawn()
        self.thread = threading.Thread(target=self.keep, daemon=True)
        self.thread.start()

    def spawn(self):
        with open(self.log, "ab") as log:
            return subprocess.Popen(self.command, env=self.environment, stdin=subprocess.DEVNULL,
                                    stdout=log, stderr=log)

    def keep(self):
        while True:
            self.status = self.process.wait()
            if self.retired:
                return
            time.sleep(0.05)
            with self.lock:
                if self.retired:
                    return
                self.process = self.spawn()

    def strike(self):
        """Back when the next one was started: a process that is still dying would be taken for one that retires."""
        struck = self.process
        struck.kill()
        wait_for("the next process", lambda: self.process is not struck)

    def retire(self, number=signal.SIGTERM):
        with self.lock:
            self.retired = True
            self.process.send_signal(number)
        self.thread.join(PATIENCE_S)
        return self.status


class PlayedTests:
    """Against the played server; of both agents."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="intact-agents.")
        self.server = PlayedServer()
        self.agent = None

    def tearDown(self):
        if self.agent and self.agent.poll() is None:
            self.agent.kill()
        if self.agent:
            self.agent.communicate()
        self.server.shutdown()
        self.server.server_close()
        subprocess.run(["rm", "-rf", self.folder], check=True)

    def start(self, **environment):
        if self.agent:  # the calls of the one before must not take what is for this one
            self.agent.communicate()
            wait_for("the end of its calls", lambda: not self.server.parked)
        self.agent = subprocess.Popen(
            self.kind.command(self.folder, "one"), stderr=subprocess.PIPE, text=True,
            env=clean_environment(INTACT_SERVER=self.server.url, LETTERS=f"{self.folder}/letters", **environment))

    def end(self):
        self.agent.terminate()
        story = self.agent.communicate(timeout=PATIENCE_S)[1]
        return self.agent.returncode, story

    def forward(self, key, **more):
        return self.server.ask(key, self.kind.action, **more)

    def undo(self, key, **more):
        return self.server.ask(key + "/undo", self.kind.undo, **UNDO, **more)

    def test_an_effect_and_its_undo(self):
        self.start()
        done = self.server.answer_to(self.forward("t1/s"))
        self.assertIn("output", done)
        self.assertEqual(self.kind.effects(self.folder), {"t1": 1})
        again = self.server.answer_to(self.forward("t1/s", attempt=2))
        self.assertEqual(again["output"], done["output"])
        self.assertEqual(self.kind.effects(self.folder), {"t1": 1})
        undone = self.server.answer_to(self.undo("t1/s"))
        self.assertNotIn("error", undone)
        self.assertFalse(self.kind.effects(self.folder).get("t1"))
        self.assertEqual(self.server.answer_to(self.undo("t1/s"))["output"], undone["output"])
        # A server restored from an old backup asks again. Neither may it happen, nor the old output be told.
        again = self.server.answer_to(self.forward("t1/s"))
        self.assertEqual(again["error"], {"code": "undone", "message": "this step took effect and was undone",
                                          "retryable": False, "effect": "none"})
        self.assertFalse(self.kind.effects(self.folder).get("t1"))
        self.assertEqual(self.server.answer_to(self.undo("t1/s"))["output"], undone["output"])
        self.assertEqual(self.end()[0], 0)

    def test_an_undo_before_its_forward_request(self):
        self.start()
        self.assertIsNone(self.server.answer_to(self.undo("t2/s"))["output"])
        for _ in range(2):
            late = self.server.answer_to(self.forward("t2/s"))
            self.assertEqual(late["error"]["code"], "undone")
            self.assertEqual((late["error"]["retryable"], late["error"]["effect"]), (False, "none"))
        self.assertEqual(self.kind.effects(self.folder), {})
        self.assertIsNone(self.server.answer_to(self.undo("t2/s"))["output"])

    def test_what_was_begun_before_a_kill(self):
        """The tombstones and the record are there for the next process of that name."""
        self.start()
        self.server.answer_to(self.undo("t3/s"))
        done = self.server.answer_to(self.forward("t4/s"))
        self.agent.kill()
        self.start()
        self.assertEqual(self.server.answer_to(self.forward("t3/s"))["error"]["code"], "undone")
        self.assertEqual(self.server.answer_to(self.forward("t4/s"))["output"], done["output"])
        self.assertEqual(self.kind.effects(self.folder), {"t4": 1})

    def test_past_its_deadline_nothing_is_begun_or_said(self):
        self.start()
        self.forward("t5/s", left=0)
        self.server.answer_to(self.forward("t6/s"))  # the first answer is of this one
        self.assertEqual(self.kind.effects(self.folder), {"t6": 1})

    def test_a_result_is_handed_in_until_it_is_acknowledged(self):
        for fault in (0, 503, 0, 500, 429, 404):
            self.server.faults.put(fault)
        self.start()
        token = self.forward("t7/s")
        self.server.answer_to(token)
        self.assertEqual(self.kind.effects(self.folder), {"t7": 1})
        sent = [r for path, call, _ in self.server.calls for r in call.get("results", [])]
        self.assertGreaterEqual(len(sent), 7)
        self.assertTrue(all(r == sent[0] for r in sent))

    def test_a_result_that_cannot_be_read_is_replaced(self):
        self.server.faults.put(413)
        self.start()
        self.assertEqual(self.server.answer_to(self.forward("t8/s"))["error"]["code"], "unacceptable")
        self.assertIn("output", self.server.answer_to(self.forward("t9/s")))

    def test_what_it_cannot_do_is_a_permanent_error(self):
        self.start()
        error = self.server.answer_to(self.server.ask("t10/s", "dance"))["error"]
        self.assertIs(error["retryable"], False)

    def test_the_token_is_sent(self):
        self.start(INTACT_TOKEN="intact_abc")
        self.server.answer_to(self.forward("t11/s"))
        self.assertTrue(all(headers["Authorization"] == "Bearer intact_abc" for _, _, headers in self.server.calls))

    def test_without_a_token_none_is_sent(self):
        self.start()
        self.server.answer_to(self.forward("t12/s"))
        self.assertFalse(any("Authorization" in headers for _, _, headers in self.server.calls))

    def test_a_refused_token_ends_it(self):
        self.server.faults.put(401)
        self.start(INTACT_TOKEN="intact_old")
        self.forward("t13/s")
        story = self.agent.communicate(timeout=PATIENCE_S)[1]
        self.assertEqual(self.agent.returncode, 1)
        self.assertIn("INTACT_TOKEN", story)
        self.start(INTACT_TOKEN="intact_new")  # what was done is on record
        self.server.answer_to(self.forward("t13/s"))
        self.assertEqual(self.kind.effects(self.folder), {"t13": 1})

    def test_the_installation_of_the_first_answer_is_named(self):
        self.start()
        self.server.answer_to(self.forward("t15/s"))
        named = [headers.get("Intact-Installation") for _, _, headers in self.server.calls]
        self.assertEqual((named[0], set(named[1:])), (None, {ID_A}))

    def test_another_installation_ends_it(self):
        self.server.faults.put(503)
        self.start()
        self.forward("t16/s")
        wait_for("a result", self.server.faults.empty)
        self.server.installation = ID_B
        self.forward("t17/s")
        story = self.agent.communicate(timeout=PATIENCE_S)[1]
        self.assertEqual(self.agent.returncode, 1)
        self.assertIn(ID_A, story)
        self.assertIn(ID_B, story)
        # None, if the answer to a call that was parked meanwhile has shown it.
        self.assertLessEqual(set(self.server.misdirected), {ID_A})
        self.assertTrue(self.server.results.empty())
        self.assertEqual(self.kind.effects(self.folder), {"t16": 1})

    def test_the_installation_can_be_stated(self):
        self.start(INTACT_INSTALLATION=ID_A.upper())
        self.server.answer_to(self.forward("t18/s"))
        self.assertTrue(all(headers["Intact-Installation"] == ID_A.upper() for _, _, headers in self.server.calls))
        self.assertEqual(self.end()[0], 0)
        self.start(INTACT_INSTALLATION=ID_B)
        self.assertIn(ID_B, self.agent.communicate(timeout=PATIENCE_S)[1])
        self.assertEqual((self.agent.returncode, set(self.server.misdirected)), (1, {ID_B}))

    def test_sigterm_delivers_what_is_in_work(self):
        for _ in range(3):
            self.server.faults.put(503)
        self.start()
        token = self.forward("t14/s")
        wait_for("a result", lambda: any(call.get("results") for _, call, _ in self.server.calls))
        self.agent.terminate()
        self.server.answer_to(token)
        self.assertEqual(self.agent.wait(PATIENCE_S), 0)


class PythonPlayed(PlayedTests, unittest.TestCase):
    kind = PythonKind

    # A handler that takes long, in place of those of the example.
    SLOW = """
import sys, time
sys.path.insert(0, sys.argv[1])
sys.dont_write_bytecode = True
import agent
agent.BEAT_S = 0.1
record = agent.Record(sys.argv[2], agent.SCHEMA)
def slow(db, request):
    agent.book(db, request, "ann", 7)
    request.progress = {"half": True}
    while True:
        request.check()
        time.sleep(0.01)
handlers = {("charge", "forward"): lambda request: record.once(request, slow)}
sys.exit(0 if agent.Agent("payment", "one", handlers, int(sys.argv[3])).run() else 1)
"""

    def start_slow(self, places=1):
        self.agent = subprocess.Popen(
            [sys.executable, "-c", self.SLOW, AGENTS, f"{self.folder}/payment.db", str(places)], stderr=subprocess.PIPE,
            text=True, env=clean_environment(INTACT_SERVER=self.server.url))

    def test_what_is_stopped_leaves_nothing(self):
        self.start_slow()
        token = self.forward("t20/s")
        beat = self.server.beats.get(timeout=PATIENCE_S)["beats"][0]
        self.assertEqual((beat["token"], beat["progress"]), (token, {"half": True}))
        self.server.stop = [token]
        error = self.server.answer_to(token)["error"]
        self.assertEqual((error["code"], error["effect"]), ("stopped", "none"))
        self.assertEqual(self.kind.effects(self.folder), {})

    def test_at_the_deadline_it_stops_and_says_nothing(self):
        self.start_slow()
        self.forward("t21/s", left=300)
        token = self.forward("t22/s", left=60000)
        while self.server.beats.get(timeout=PATIENCE_S)["beats"][0]["token"] != token:
            pass  # one place: the second is begun when the first is given up
        self.assertTrue(self.server.results.empty())
        self.assertEqual(self.kind.effects(self.folder), {})

    def test_what_it_holds_is_said_and_not_begun_twice(self):
        self.start_slow(places=2)
        token = self.forward("t23/s")
        wait_for("a call that says so", lambda: any(
            call.get("max") == 1 and call["holding"] == [token] for _, call, _ in self.server.calls))
        self.server.requests.put(self.server.sent[token])  # it is sent again all the same
        wait_for("its arrival", self.server.requests.empty)
        count = len(self.server.calls)
        after = wait_for("the call after it", lambda: [
            call for _, call, _ in self.server.calls[count:] if call.get("max", 0) > 0])
        self.assertEqual((after[0]["max"], after[0]["holding"]), (1, [token]))
        self.server.stop = [token]
        self.server.answer_to(token)
        self.server.stop = []
        self.server.answer_to(self.server.ask("t24/s", "dance"))  # and of the first there is no second answer


class ShellPlayed(PlayedTests, unittest.TestCase):
    kind = ShellKind

    def test_an_undo_after_a_kill_in_the_middle(self):
        """The handler had begun when everything was killed: nobody knows how far it came."""
        self.start()
        self.server.answer_to(self.forward("t30/s"))
        os.remove(f"{self.folder}/record/t30=s.done")
        self.server.answer_to(self.undo("t30/s"))
        self.assertEqual(self.kind.effects(self.folder), {})
        self.assertEqual(self.server.answer_to(self.forward("t30/s"))["error"]["code"], "undone")

    def test_a_handler_is_killed_at_the_deadline(self):
        handler = f"{self.folder}/slow.sh"
        with open(handler, "w", encoding="utf-8") as f:
            f.write("#!/bin/sh\n[ \"$(jq -r .task)\" = t32 ] && exec echo '{}'\ntouch \"$LETTERS\".begun\nexec sleep 600\n")
        os.chmod(handler, 0o700)
        self.kind = type("Slow", (ShellKind,), {"command": staticmethod(
            lambda folder, instance: [f"{AGENTS}/agent.sh", "letters", instance, f"{folder}/record", handler])})
        self.start()
        self.begin_one()
        self.server.answer_to(self.forward("t32/s"))  # of the others nothing was said

    def begin_one(self):
        """On a busy machine a handler may not begin before its deadline: then another one, with more time, may."""
        for number, left_s in enumerate((3, 12, 48)):
            self.forward(f"t31{number}/s", left=left_s * 1000)
            end = time.monotonic() + left_s
            while time.monotonic() < end:
                if os.path.exists(f"{self.folder}/letters.begun"):
                    return
                time.sleep(0.02)
        self.fail("no handler begins")

    def test_what_the_status_of_a_handler_means(self):
        handler = f"{self.folder}/status.sh"
        with open(handler, "w", encoding="utf-8") as f:
            f.write("#!/bin/sh\necho no >&2\nexit \"$(jq -r .input.text)\"\n")
        os.chmod(handler, 0o700)
        self.kind = type("Status", (ShellKind,), {"command": staticmethod(
            lambda folder, instance: [f"{AGENTS}/agent.sh", "letters", instance, f"{folder}/record", handler])})
        self.start()
        for status, retryable, effect in (("1", False, "none"), ("2", True, "none"), ("7", True, "unknown")):
            error = self.server.answer_to(self.server.ask(f"t4{status}/s", "write", status))["error"]
            self.assertEqual((error["message"], error["retryable"], error["effect"]), ("no", retryable, effect))


# ---- the real server ----


class Wire(threading.Thread):
    """Between agents and the server: loses answers, makes calls twice, and lets some come late."""

    def __init__(self, to_port, seed):
        super().__init__(daemon=True)
        self.to_port, self.random, self.calm, self.delay_s = to_port, random.Random(seed), True, 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.lost = self.doubled = self.delayed = 0
        self.start()

    def run(self):
        while True:
            try:
                client = self.listener.accept()[0]
            except OSError:
                return
            threading.Thread(target=self.carry, args=(client, self.random.random()), daemon=True).start()

    def carry(self, client, chance):
        with client:
            try:
                message = self.read_message(client)
                if not self.calm:
                    if chance < 0.05:
                        self.doubled += 1
                        self.exchange(message)
                    elif chance < 0.10:
                        self.delayed += 1
                        time.sleep(self.delay_s)
                answer = self.exchange(message)
                if not self.calm and chance > 0.92:
                    self.lost += 1
                    return
                client.sendall(answer)
            except OSError:
                pass

    @staticmethod
    def read_message(client):
        data = b""
        while b"\r\n\r\n" not in data:
            data += Wire.some(client)
        head, body = data.split(b"\r\n\r\n", 1)
        lines = [line for line in head.split(b"\r\n") if not line.lower().startswith((b"connection", b"expect"))]
        length = next(int(line.split(b":")[1]) for line in lines if line.lower().startswith(b"content-length"))
        while len(body) < length:
            body += Wire.some(client)
        return b"\r\n".join(lines + [b"Connection: close", b"", b""]) + body

    @staticmethod
    def some(peer):
        data = peer.recv(65536)
        if not data:
            raise OSError("it is gone")
        return data

    def exchange(self, message):
        with socket.create_connection(("127.0.0.1", self.to_port)) as server:
            server.sendall(message)
            answer = b""
            while data := server.recv(65536):
                answer += data
            return answer


def workflow(name, complete_by):
    return {
        "intact": 1, "workflow": name,
        "steps": [
            {"name": "pay", "agent": "payment", "action": "charge", "complete_by": complete_by,
             "input": {"customer": "${ .input.customer }", "amount": "${ .input.amount }"},
             "retry": {"attempts": 1000, "wait": "50ms", "max_wait": "200ms"},
             "undo": {"action": "refund", "complete_by": complete_by, "retry": {"attempts": 1000, "wait": "50ms", "max_wait": "200ms"}}},
            {"name": "thank", "agent": "letters", "action": "write", "complete_by": complete_by,
             "input": {"text": "Thank you, ${ .input.customer }"},
             "retry": {"attempts": 1000, "wait": "50ms", "max_wait": "200ms"},
             "undo": {"action": "take-back", "complete_by": complete_by, "retry": {"attempts": 1000, "wait": "50ms", "max_wait": "200ms"}}},
            {"name": "tip", "agent": "payment", "action": "charge", "if": ".input.tip > 0", "complete_by": complete_by,
             "input": {"customer": "${ .input.customer }", "amount": "${ .input.tip }"},
             "retry": {"attempts": 1000, "wait": "50ms", "max_wait": "200ms"},
             "undo": {"action": "refund", "complete_by": complete_by, "retry": {"attempts": 1000, "wait": "50ms", "max_wait": "200ms"}}},
        ],
    }


class RealTest(unittest.TestCase):
    TASKS = 40

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="intact-agents.")
        self.seed = int(os.environ.get("SEED") or random.randrange(1 << 30))
        self.random = random.Random(self.seed)
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.kept = {}
        token = f"{self.folder}/data/admin-token"
        self.keep("server", [INTACT, "serve", "--data", f"{self.folder}/data", "--listen", f"127.0.0.1:{self.port}",
                             "--scan-every", "100ms", "--grace", "500ms", "--log", "error"])
        wait_for("a server", lambda: self.get("/readyz"))
        self.token = ""
        if os.path.exists(token):
            with open(token, encoding="utf-8") as f:
                self.token = f.read().strip()

    def tearDown(self):
        for process in self.kept.values():
            process.retire(signal.SIGKILL)
        if not self._outcome.result.failures and not self._outcome.result.errors:
            subprocess.run(["rm", "-rf", self.folder], check=True)
        else:
            print(f"kept: {self.folder}; again with SEED={self.seed}", file=sys.stderr)

    def keep(self, name, command, **environment):
        self.kept[name] = Kept(command, clean_environment(**environment), f"{self.folder}/{name}.log")

    def get(self, path, body=None, content_type="application/json", method=None):
        request = urllib.request.Request(self.url + path, body, {"Content-Type": content_type}, method=method)
        if getattr(self, "token", ""):
            request.add_header("Authorization", "Bearer " + self.token)
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
                return answer.read().decode()
        except urllib.error.HTTPError as e:
            raise AssertionError(f"{path}: {e.code} {e.read().decode()}") from e
        except OSError:
            return None

    def open_tasks(self):
        with sqlite3.connect(f"file:{self.folder}/data/intact.db?mode=ro", uri=True) as db:
            return db.execute("SELECT count(*) FROM task WHERE state NOT IN ('processed', 'compensated', 'error')"
                              ).fetchone()[0]

    def define(self, name, complete_by_s):
        text = json.dumps(workflow(name, f"{int(complete_by_s * 1000)}ms")).encode()
        self.assertIn("version", self.get(f"/v1/workflows/{name}", text, method="PUT"))

    def time_of_a_task(self):
        """In seconds, when nothing is in its way."""
        self.define("warm-up", 600)
        for i in range(2):  # the first one waits for agents to start
            begin = time.monotonic()
            self.get("/v1/tasks", json.dumps({"workflow": "warm-up", "id": f"w{i}", "input": {
                "customer": "w", "amount": 10, "tip": 1}}).encode())
            wait_for("the end of a task", lambda: not self.open_tasks())
        return time.monotonic() - begin

    def test_effects_happen_once_whatever_is_killed(self):
        wire = Wire(self.port, self.seed)
        where = {"INTACT_SERVER": f"http://127.0.0.1:{wire.port}", "INTACT_TOKEN": self.token,
                 "LETTERS": f"{self.folder}/letters"}
        for kind in (PythonKind, ShellKind):
            for n in "12":
                self.keep(kind.name + n, kind.command(self.folder, kind.name + n), **where)
        complete_by_s = 2 + 3 * self.time_of_a_task()  # all the same work for a slow machine
        self.define("sale", complete_by_s)
        wire.calm, wire.delay_s = False, complete_by_s + 0.5  # what is delayed comes too late
        lines = [{"workflow": "sale", "id": f"o{i}", "input": {
            "customer": f"c{i}", "amount": 10, "tip": 2000 if i % 3 == 0 else i % 2}} for i in range(self.TASKS)]
        self.get("/v1/tasks", "\n".join(map(json.dumps, lines)).encode(), "application/x-ndjson")
        kills = 0
        while self.open_tasks() and kills < 60:
            time.sleep(self.random.uniform(0.05, 0.6))
            self.kept[self.random.choice(sorted(self.kept))].strike()
            kills += 1
        wire.calm = True
        wait_for("the end of all tasks", lambda: not self.open_tasks(), 5 * PATIENCE_S)
        for name in sorted(self.kept, key=lambda name: name == "server"):
            # One that was just started again may be told before it listens.
            self.assertIn(self.kept[name].retire(), (0, -signal.SIGTERM), name)
        print(f"{kills} kills; {wire.lost} answers lost, {wire.doubled} calls doubled, {wire.delayed} delayed",
              file=sys.stderr)
        self.compare_books()

    def compare_books(self):
        with sqlite3.connect(f"file:{self.folder}/data/intact.db?mode=ro", uri=True) as db:
            states = dict(db.execute("SELECT id, state FROM task WHERE workflow = 'sale'").fetchall())
        self.assertEqual(len(states), self.TASKS)
        letters = ShellKind.effects(self.folder)
        with sqlite3.connect(f"{self.folder}/payment.db") as db:
            paid = dict(db.execute("SELECT task, sum(amount) FROM booking GROUP BY task").fetchall())
        for i in range(self.TASKS):
            task, tip = f"o{i}", (2000 if i % 3 == 0 else i % 2)
            self.assertEqual(states[task], "compensated" if tip == 2000 else "processed", task)
            self.assertEqual(paid.get(task, 0), 0 if tip == 2000 else 10 + tip, task)
            self.assertEqual(letters.get(task, 0), 0 if tip == 2000 else 1, task)
        self.reconcile()

    def reconcile(self):
        """Both records as one ledger, for the program that compares ledgers with tasks. Actions are left out:
        it takes those of its own example for its own accounts."""
        ledger = f"{self.folder}/ledger.db"
        with sqlite3.connect(ledger) as db:
            db.execute("ATTACH ? AS payment", (f"{self.folder}/payment.db",))
            db.execute("CREATE TABLE effect AS SELECT * FROM payment.effect")
            db.execute("UPDATE effect SET action = ''")
            marks = {os.path.basename(p) for p in glob.glob(f"{self.folder}/record/*")}
            for name in {mark.rsplit(".", 1)[0] for mark in marks}:
                task, step = name.split("=")
                begun = f"{name}.begun" in marks
                rows = [("forward", "done")] if begun else [("forward", "barred")]
                if f"{name}.undone" in marks:
                    rows.append(("undo", "done" if begun else "nothing"))
                for direction, outcome in rows:
                    db.execute("INSERT INTO effect VALUES (?, ?, ?, '', ?, ?, NULL, 0)",
                               (f"{name}/{direction}", task, step, direction, outcome))
        done = subprocess.run([RECONCILE, f"{self.folder}/data/intact.db", ledger],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("discrepancies: 0", done.stdout)


if __name__ == "__main__":
    if len(sys.argv) == 5 and "." not in sys.argv[4]:
        side_by_side.in_processes(globals()[sys.argv[4]], sys.argv[:4])
    unittest.main(argv=sys.argv[:1] + sys.argv[4:], verbosity=2)
