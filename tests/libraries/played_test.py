#!/usr/bin/env python3
"""The libraries' agents against a server that is played here: lost answers, refusals, deadlines, signs of life, two nodes.

Usage: played_test.py python|typescript [TEST...]
"""

import http.server
import json
import os
import queue
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), ".."))
sys.dont_write_bytecode = True
import side_by_side  # pylint: disable=wrong-import-position
from kit import LIB, PATIENCE_S, Kind, wait_for  # pylint: disable=wrong-import-position

KIND = Kind(sys.argv[1])
if hasattr(sys, "set_int_max_str_digits"):
    sys.set_int_max_str_digits(0)  # the server that is played has no limit


ID_A, ID_B = "aaaaaaaa-0000-4000-8000-00000000000a", "bbbbbbbb-0000-4000-8000-00000000000b"


class Played(http.server.ThreadingHTTPServer):
    """A node that hands out what stands in `requests`; `judge` may spoil a call."""

    daemon_threads = True

    def __init__(self, name="n1", port=0, installation=None):
        super().__init__(("127.0.0.1", port), Call)
        self.installation, self.misdirected, self.submitted = installation, 0, []
        self.name, self.url = name, f"http://127.0.0.1:{self.server_port}"
        self.requests, self.results, self.beats = [], queue.Queue(), queue.Queue()
        self.calls, self.serial, self.stop, self.nodes = [], 0, [], None
        self.fetched, self.parked, self.is_down = [], 0, False
        self.judge = lambda what, call: None
        self.beat_status = "accepted"
        self.changed = threading.Condition()
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()

    def handle_error(self, request, client_address):
        pass

    def ask(self, action, given=None, left=600000, key=None, **more):
        """Queues a request; its token."""
        with self.changed:
            self.serial += 1
            token = f"{self.name}-{self.serial}"
            key = key or f"t{self.serial}/{self.name}"
            request = {"token": token, "task": key.split("/")[0], "step": key.split("/")[1], "action": action,
                       "direction": "forward", "attempt": 1, "idempotency_key": key, "input": given,
                       "complete_by": "2000-01-01T00:00:00.000Z", "time_left_ms": left, "news": [1], **more}
            if request["direction"] == "undo":
                request["idempotency_key"] = key + "/undo"
                request["forward"] = {"idempotency_key": key, "input": given, "output": None, "attempts": 1,
                                      "in_doubt": True}
            self.requests.append(request)
            self.changed.notify_all()
            return token

    def undo(self, action, key, **more):
        return self.ask(action, key=key, direction="undo", **more)

    def answer_to(self, token):
        """The next result; it has to be of that token."""
        result = self.results.get(timeout=PATIENCE_S)
        if result["token"] != token:
            raise AssertionError(f"expected the result of {token}, not {result}")
        return result

    def go(self):
        self.is_down = True
        with self.changed:
            self.changed.notify_all()
        self.shutdown()
        self.server_close()

    def take(self, call):
        """Requests for a parked call."""
        end = time.monotonic() + min(int(call.get("wait", "0ms")[:-2]) / 1000, 5)
        with self.changed:
            self.parked += 1
            mine = self.serial_of_home()
            while not self.requests and time.monotonic() < end and not self.is_down and mine == self.serial_of_home():
                self.changed.wait(end - time.monotonic())
            self.parked -= 1
            taken, self.requests = self.requests[:call["max"]], self.requests[call["max"]:]
            return taken

    home = 0

    def serial_of_home(self):
        return self.home


class Call(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def is_misdirected(self):
        """It is meant for another installation, and was refused. Over a connection of a server that has gone it is cut."""
        s = self.server
        if s.is_down and s.installation:
            self.cut()
            return True
        wanted = self.headers.get("Intact-Installation")
        if not s.installation or wanted in (None, s.installation):
            return False
        s.misdirected += 1
        self.say(421, {"type": "urn:intact:problem:another-installation"})
        return True

    def do_GET(self):
        s = self.server
        if self.is_misdirected():
            return
        if self.path == "/healthz" and not s.is_down:
            self.say(200, {"status": "ok"})
            return
        if s.is_down or s.nodes is None:
            self.say(404, {"title": "no"})
            return
        self.say(200, {"self": s.name, "nodes": [
            {"node": n.name, "boot": 1, "roles": ["scheduler", "supervisor"], "alive": not n.is_down, "url": n.url}
            for n in s.nodes]})

    def do_POST(self):
        s = self.server
        call = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        what = self.path.rsplit("/", 1)[1]
        if self.is_misdirected():
            return
        if what == "tasks" and not s.is_down:
            s.submitted.append(call["id"])
            self.say(201, {"id": call["id"], "workflow": "w", "version": 1})
            return
        with s.changed:
            s.calls.append((time.monotonic(), what, call))
        if s.is_down:
            self.cut()
            return
        fault = s.judge(what, call)
        if fault == 0:
            self.cut()
        elif fault == "garbage":
            self.write(200, b"{{{", {})
        elif fault == "silent":
            self.say(200, {"now": "", "waited_ms": 0, "requests": [], "outcomes": [], "stop": []})
        elif fault:
            self.say(fault, {"title": "no", "status": fault}, {"Retry-After": "1"})
        elif what == "heartbeats":
            s.beats.put(call)
            self.say(200, {"now": "", "stop": s.stop, "outcomes": [
                {"token": b["token"], "status": s.beat_status} for b in call["beats"]]})
        else:
            self.work(s, call)

    def work(self, s, call):
        if call.get("instead"):
            with s.changed:
                s.home += 1
                s.changed.notify_all()
        for result in call.get("results", []):
            s.results.put(result)
        begin = time.monotonic()
        requests = s.take(call) if call.get("max", 1) > 0 and not call.get("results") else []
        self.say(200, {"now": "", "waited_ms": int((time.monotonic() - begin) * 1000), "requests": requests, "more": {},
                       "stop": s.stop, "outcomes": [{"token": r["token"], "status": "accepted"}
                                                    for r in call.get("results", [])]})

    def cut(self):
        self.close_connection = True
        try:
            self.connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

    def say(self, status, body, more=()):
        self.write(status, json.dumps(body).encode(), dict(more))

    def write(self, status, body, more):
        self.send_response(status)
        for name, value in more.items():
            self.send_header(name, value)
        if self.server.installation:
            self.send_header("Intact-Installation", self.server.installation)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Once:
    """Spoils calls that hand in results, one fault after the other."""

    def __init__(self, *faults):
        self.faults, self.lock = list(faults), threading.Lock()

    def __call__(self, what, call):
        with self.lock:
            return self.faults.pop(0) if call.get("results") and self.faults else None


class PlayedTest(unittest.TestCase):
    """One agent, one or two nodes."""

    @classmethod
    def setUpClass(cls):
        cls.common = tempfile.mkdtemp(prefix="intact-pyts.")
        KIND.prepare(cls.common)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.common, ignore_errors=True)

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="intact-pyts.")
        self.server = Played()
        self.agent = None

    def tearDown(self):
        if self.agent:
            if self.agent.poll() is None:
                self.agent.kill()
            self.agent.communicate()
        if not self.server.is_down:
            self.server.go()
        shutil.rmtree(self.folder, ignore_errors=True)

    def start(self, server=None, **environment):
        self.agent = subprocess.Popen(
            KIND.command(f"{self.folder}/record"), stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True, env={
                **os.environ, "INTACT_SERVER": server or self.server.url, "PYTHONPATH": LIB, "PYTHONDONTWRITEBYTECODE": "1",
                **environment})

    def end(self, number=signal.SIGTERM):
        """Its status and what it said."""
        self.agent.send_signal(number)
        story = self.agent.communicate(timeout=PATIENCE_S)[1]
        return self.agent.returncode, story

    def books(self):
        return KIND.books(f"{self.folder}/record")

    def sent_results(self):
        return [r for _, _, call in self.server.calls for r in call.get("results", [])]

    # ---- results ----

    def test_an_output_an_error_and_what_it_cannot_do(self):
        self.start()
        given = {"text": "ä\u2028\U0001f600", "list": [1, 2.5, None, True]}
        self.assertEqual(self.server.answer_to(self.server.ask("echo", given))["output"], given)
        error = {"code": "declined", "message": "no", "retryable": True, "effect": "none", "retry_after": "90s",
                 "resume": {"at": 7}}
        self.assertEqual(self.server.answer_to(self.server.ask("fail", error))["error"], error)
        error = self.server.answer_to(self.server.ask("dance"))["error"]
        self.assertEqual((error["retryable"], error["effect"]), (False, "none"))
        error = self.server.answer_to(self.server.ask("nonsense", {"kind": "object"}))["error"]
        self.assertEqual((error["code"], error["retryable"], error["effect"]), ("bad_output", False, "unknown"))
        error = self.server.answer_to(self.server.ask("slow", None))["error"]
        self.assertEqual(error["code"], "exception")
        self.assertNotIn("effect", error)
        self.assertEqual(self.end()[0], 0)

    def test_whatever_a_handler_does_its_place_is_free_again(self):
        self.start(INTACT_PLACES="1")
        for kind, code in (("function", "bad_output"), ("thrown", "exception"), ("nan", "bad_output"), ("thrown", "exception")):
            self.assertEqual(self.server.answer_to(self.server.ask("nonsense", {"kind": kind}))["error"]["code"], code)
        error = self.server.answer_to(self.server.ask("nonsense", {"kind": "message"}))["error"]
        self.assertEqual((error["code"], error["retryable"]), ("odd", True))
        self.assertTrue(error["message"].startswith("half a pair: "))
        json.dumps(error, ensure_ascii=False).encode()
        self.assertNotIn("\0", error["message"])
        self.assertEqual(self.server.answer_to(self.server.ask("echo", 7))["output"], 7)
        self.assertEqual(self.end()[0], 0)

    def test_a_number_that_is_too_long_keeps_nothing_back(self):
        self.start()
        long = self.server.ask("nonsense", {"kind": "text", "text": "n", "long": 10 ** 5000})
        self.assertEqual(self.server.answer_to(long)["output"], "n")
        self.assertEqual(self.server.answer_to(self.server.ask("echo", 7))["output"], 7)

    def test_what_a_beat_said_is_what_was_told_then(self):
        self.start()
        token = self.server.ask("nonsense", {"kind": "beat"})
        beat = self.server.beats.get(timeout=PATIENCE_S)["beats"][0]
        self.assertEqual((beat["token"], beat["progress"]), (token, {"done": 1}))
        self.assertEqual(self.server.answer_to(token)["output"], "beaten")
        later = self.server.ask("slow", {"ms": 600, "beats": 300})
        self.assertEqual(self.server.beats.get(timeout=PATIENCE_S)["beats"][0]["token"], later)
        self.server.answer_to(later)

    def test_no_more_is_held_than_a_server_reads(self):
        refusals = {"count": 0, "is_open": False}

        def judge(_, call):
            if call.get("results") and not refusals["is_open"]:
                refusals["count"] += 1
                return 503
            return 422 if len(call.get("holding", [])) > 1000 else None

        self.server.judge = judge
        self.start(INTACT_PLACES="1000")
        for i in range(1500):
            self.server.ask("echo", i)
        wait_for("results that are not taken", lambda: refusals["count"] > 1)
        refusals["is_open"] = True
        outputs = {self.server.results.get(timeout=PATIENCE_S)["output"] for _ in range(1500)}
        self.assertEqual(outputs, set(range(1500)))
        for _, what, call in list(self.server.calls):
            if what == "work":
                self.assertLessEqual(call["max"] + len(call.get("holding", [])), 1000)

    def test_a_result_is_handed_in_until_it_is_settled(self):
        self.server.judge = Once(0, 503, 500, "garbage", 429, 404, "silent")
        self.start()
        self.server.answer_to(self.server.ask("count", {}))
        sent = self.sent_results()
        self.assertEqual(len(sent), 8)
        self.assertTrue(all(r == sent[0] for r in sent))
        self.assertEqual(self.books()[0], 1)

    def test_retry_after_is_obeyed(self):
        self.server.judge = Once(503, 503)
        self.start()
        self.server.answer_to(self.server.ask("echo"))
        times = [at for at, _, call in self.server.calls if call.get("results")]
        self.assertGreater(times[1] - times[0], 0.9)
        self.assertGreater(times[2] - times[1], 0.9)

    def test_one_result_that_cannot_be_taken_does_not_keep_back_others(self):
        is_ready = threading.Event()

        def judge(_, call):
            if call.get("results") and not is_ready.is_set():
                return 0
            return 422 if any((r.get("output") or {}).get("poison") for r in call.get("results", [])) else None

        self.server.judge = judge
        self.start()
        tokens = {self.server.ask("echo", {"poison": i == 2, "i": i}): i for i in range(4)}
        wait_for("a call with all", lambda: any(len(c.get("results", [])) == 4 for _, _, c in self.server.calls))
        is_ready.set()
        found = {}
        for _ in tokens:
            result = self.server.results.get(timeout=PATIENCE_S)
            found[tokens[result["token"]]] = result
        for i in (0, 1, 3):
            self.assertEqual(found[i]["output"]["i"], i)
        self.assertEqual(found[2]["error"]["code"], "unacceptable")
        self.assertEqual(found[2]["error"]["effect"], "unknown")

    def test_a_refused_token_is_told_and_nothing_is_lost(self):
        self.server.judge = Once(401, 403)
        self.start(INTACT_TOKEN="intact_abc")
        self.server.answer_to(self.server.ask("count", {}))
        status, story = self.end()
        self.assertEqual(status, 0)
        self.assertIn("INTACT_TOKEN", story)

    # ---- requests ----

    def test_holding_and_repeats(self):
        self.start()
        first = self.server.ask("slow", {"ms": 1500})
        wait_for("it is fetched", lambda: any(c.get("holding") == [first] for _, _, c in self.server.calls))
        with self.server.changed:  # sent again under its token
            again = {"token": first, "task": "t1", "step": "n1", "action": "slow", "direction": "forward", "attempt": 1,
                     "idempotency_key": "t1/n1", "input": {"ms": 1500}, "time_left_ms": 600000}
            self.server.requests.append(again)
            self.server.changed.notify_all()
        self.server.answer_to(first)
        self.server.answer_to(self.server.ask("echo"))
        self.assertEqual(len([r for r in self.sent_results() if r["token"] == first]), 1)
        self.assertTrue(all("holding" in c for _, what, c in self.server.calls if what == "work" and c["max"] > 0))

    def test_no_more_than_there_are_places(self):
        self.start(INTACT_PLACES="3")
        tokens = {self.server.ask("slow", {"ms": 300}) for _ in range(12)}
        for _ in range(12):
            tokens.remove(self.server.results.get(timeout=PATIENCE_S)["token"])
        done = 0
        for _, what, call in list(self.server.calls):
            if what == "work":
                done += len(call.get("results", []))
                self.assertLessEqual(call["max"], 3)
                self.assertLessEqual(len(call.get("holding", [])), 6)  # some may be answered and not yet settled

    def test_past_its_deadline_nothing_is_begun_or_said(self):
        self.start()
        self.server.ask("count", {}, left=0)
        over = self.server.ask("slow", {"ms": 600000}, left=400)
        self.server.answer_to(self.server.ask("slow", {"ms": 900}))
        self.assertEqual(self.books()[0], 0)
        # It is still held, or it would be sent again.
        fetches = [(at, c["holding"]) for at, what, c in self.server.calls if what == "work" and c["max"] > 0]
        fetched = next(at for at, holding in fetches if over in holding)
        for at, holding in fetches:
            if fetched < at < fetched + 2:
                self.assertIn(over, holding)
        self.assertEqual(self.end()[0], 0)

    def test_effects_once_and_undone_once(self):
        self.start()
        done = self.server.answer_to(self.server.ask("count", {}, key="o1/s"))
        again = self.server.answer_to(self.server.ask("count", {}, key="o1/s", attempt=2))
        self.assertEqual(again["output"], done["output"])
        undone = self.server.answer_to(self.server.undo("count", "o1/s"))
        self.assertEqual(self.server.answer_to(self.server.undo("count", "o1/s"))["output"], undone["output"])
        late = self.server.answer_to(self.server.ask("count", {}, key="o1/s"))["error"]
        self.assertEqual((late["code"], late["retryable"], late["effect"]), ("undone", False, "none"))
        self.assertIsNone(self.server.answer_to(self.server.undo("count", "o2/s"))["output"])
        late = self.server.answer_to(self.server.ask("count", {}, key="o2/s"))["error"]
        self.assertEqual(late["code"], "undone")
        self.assertEqual(self.books(), (0, {"o1/s": "undone", "o2/s": "barred"}))

    def test_stop(self):
        self.start()
        token = self.server.ask("slow", {"ms": 600000})
        self.server.stop.append(token)
        error = self.server.answer_to(token)["error"]
        self.assertEqual((error["code"], error["effect"]), ("stopped", "none"))

    def test_stop_when_all_places_are_taken(self):
        self.start(INTACT_PLACES="1")
        token = self.server.ask("slow", {"ms": 600000})
        wait_for("it is fetched", lambda: not self.server.requests)
        self.server.stop.append(token)
        self.assertEqual(self.server.answer_to(token)["error"]["code"], "stopped")

    # ---- retries, resuming, elsewhere ----

    def test_tries_resume_and_elsewhere(self):
        self.start(INTACT_PLACES="1")
        result = self.server.answer_to(self.server.ask("retry", {"fail": 3}))
        self.assertEqual((result["output"], result["tries"]), ({"tries": 4}, 4))
        error = self.server.answer_to(self.server.ask("resume"))["error"]
        self.assertEqual(error["resume"], {"at": 1})
        self.assertEqual(self.server.answer_to(self.server.ask("resume", resume={"at": 1}))["output"], {"at": 1})
        result = self.server.answer_to(self.server.ask("elsewhere"))
        self.assertEqual(result, {"token": result["token"], "elsewhere": True})
        self.assertNotIn("tries", self.server.answer_to(self.server.ask("echo")))

    def test_a_service_that_stays_away_until_the_deadline(self):
        self.start()
        self.server.ask("retry", {"fail": 10 ** 9}, left=5000)
        result = self.server.results.get(timeout=PATIENCE_S)
        self.assertTrue(result["error"])
        self.assertGreater(result["tries"], 1)

    # ---- signs of life ----

    def test_beats_with_progress(self):
        self.start()
        token = self.server.ask("slow", {"ms": 2000, "beats": 100})
        beats = [b for call in (self.server.beats.get(timeout=PATIENCE_S) for _ in range(3)) for b in call["beats"]]
        self.assertEqual({b["token"] for b in beats}, {token})
        done = [b["progress"]["done"] for b in beats]
        self.assertEqual(done, sorted(set(done)))
        self.assertIn("output", self.server.answer_to(token))

    def test_stop_in_the_answer_to_a_beat(self):
        self.start()
        token = self.server.ask("slow", {"ms": 600000, "beats": 50})
        wait_for("it is fetched", lambda: not self.server.requests)
        self.server.judge = lambda what, _: None if what == "heartbeats" else 503
        wait_for("a beat", lambda: not self.server.beats.empty())
        self.server.stop.append(token)
        wait_for("a result", lambda: [r for r in self.sent_results() if r.get("error", {}).get("code") == "stopped"])

    def test_beats_that_nobody_acknowledges(self):
        self.server.beat_status = "unknown"
        self.start()
        silent = self.server.ask("slow", {"ms": 600000, "beats": 50}, heartbeat_ms=3000)
        wait_for("beats", lambda: self.server.beats.qsize() > 1)
        self.server.answer_to(self.server.ask("slow", {"ms": 5000}))
        self.assertNotIn(silent, [r["token"] for r in self.sent_results()])

    def test_beats_that_are_acknowledged_keep_it_going(self):
        self.start()
        tokens = {self.server.ask("slow", {"ms": 12000, "beats": 100}, heartbeat_ms=10000),
                  self.server.ask("hang", {"ms": 12000}, heartbeat_ms=10000)}  # the agent beats for it
        for _ in range(2):
            result = self.server.results.get(timeout=PATIENCE_S)
            self.assertIn("output", result)
            tokens.remove(result["token"])

    # ---- ending ----

    def test_sigterm_delivers_what_is_in_work(self):
        self.server.judge = Once(503, 0, 500)
        self.start()
        token = self.server.ask("slow", {"ms": 500})
        wait_for("it is fetched", lambda: not self.server.requests)
        self.assertEqual(self.end()[0], 0)
        self.assertIn("output", self.server.answer_to(token))

    def test_sigterm_calls_the_parked_call_home(self):
        self.start()
        wait_for("it is parked", lambda: self.server.parked)
        self.assertEqual(self.end(signal.SIGINT)[0], 0)
        self.assertTrue(any(c.get("instead") for _, _, c in self.server.calls))

    def test_sigterm_without_a_server(self):
        self.server.go()
        self.start()
        story = wait_for("it says so", self.agent.stderr.readline)
        self.assertIn(self.server.url, story)
        self.assertEqual(self.end()[0], 0)

    # ---- several nodes ----

    def two(self):
        other = Played("n2")
        self.addCleanup(lambda: other.is_down or other.go())
        self.server.nodes = other.nodes = [self.server, other]
        return other

    def test_it_finds_the_other_node(self):
        other = self.two()
        self.start()
        other.answer_to(other.ask("echo"))
        self.server.answer_to(self.server.ask("echo"))

    def test_a_node_that_goes(self):
        other = self.two()
        self.start()
        token = other.ask("slow", {"ms": 700})
        wait_for("it is fetched", lambda: not other.requests)
        other.go()
        self.assertIn("output", self.server.answer_to(token))
        self.server.answer_to(self.server.ask("echo"))

    def answer_to_either(self, other, token):
        """One who is slow to take a result, on a busy machine, leaves it to the other."""
        both = (self.server, other)
        wait_for("a result", lambda: any(not one.results.empty() for one in both))
        next(one for one in both if not one.results.empty()).answer_to(token)

    def test_the_same_request_from_both(self):
        other = self.two()
        self.start()
        token = other.ask("slow", {"ms": 1000})
        wait_for("it is fetched", lambda: not other.requests)
        with self.server.changed:
            self.server.requests.append({
                "token": token, "task": "t1", "step": "n2", "action": "slow", "direction": "forward", "attempt": 1,
                "idempotency_key": "t1/n2", "input": {"ms": 1000}, "time_left_ms": 600000})
            self.server.changed.notify_all()
        wait_for("it is sent again", lambda: not self.server.requests)
        self.answer_to_either(other, token)
        self.server.answer_to(self.server.ask("echo"))
        other.answer_to(other.ask("echo"))

    def test_one_place_is_offered_to_both(self):
        other = self.two()
        self.start(INTACT_PLACES="1")
        for _ in range(5):
            other.answer_to(other.ask("echo"))
            self.server.answer_to(self.server.ask("echo"))
        # While it is taken, nobody is to send more: the other parked call is called home.
        token = other.ask("slow", {"ms": 3000})
        wait_for("it is fetched", lambda: not other.requests)
        wait_for("none is parked", lambda: not self.server.parked)
        other.answer_to(token)

    # ---- servers of another installation ----

    def of(self, installation, name="n2", port=0):
        """A server that belongs to it."""
        server = Played(name, port, installation)
        self.addCleanup(lambda: server.is_down or server.go())
        return server

    def names_both(self, story, one, other):
        for server in (one, other):
            self.assertIn(server.installation, story)
            self.assertIn(server.url, story)

    def test_an_agent_of_two_installations_ends(self):
        one, other = self.of(ID_A, "n1"), self.of(ID_B)
        self.start(f"{one.url},{other.url}")
        story = self.agent.communicate(timeout=PATIENCE_S)[1]
        self.assertNotEqual(self.agent.returncode, 0)
        self.names_both(story, one, other)
        self.assertEqual(one.calls + other.calls, [])

    def test_results_stay_in_their_installation(self):
        one, other = self.of(ID_A, "n1"), self.of(ID_B)
        port = other.server_port
        other.go()
        self.start(f"{one.url},{other.url}")
        token = one.ask("slow", {"ms": 2000})
        wait_for("it is fetched", lambda: not one.requests)
        one.go()
        other = self.of(ID_B, port=port)
        other.ask("echo")
        wait_for("it is asked", lambda: other.misdirected > 1)
        again = self.of(ID_A, "n1", one.server_port)
        self.assertIn("output", again.answer_to(token))
        _, story = self.end()
        self.names_both(story, again, other)
        self.assertEqual(other.calls, [])

    def test_a_server_that_was_replaced_gets_nothing(self):
        one = self.of(ID_A, "n1")
        self.start(one.url)
        token = one.ask("slow", {"ms": 500})
        wait_for("it is fetched", lambda: not one.requests)
        one.go()
        other = self.of(ID_B, "n1", one.server_port)
        wait_for("it is called", lambda: other.misdirected > 1)
        other.go()
        self.assertEqual(other.calls, [])
        self.assertIn("output", self.of(ID_A, "n1", one.server_port).answer_to(token))
        self.assertIn("restart this program", self.end()[1])

    def test_an_agent_works_for_the_stated_installation(self):
        one, other = self.of(ID_A, "n1"), self.of(ID_B)
        one.ask("echo")
        self.start(f"{one.url},{other.url}", INTACT_INSTALLATION=ID_B.upper())
        other.answer_to(other.ask("echo"))
        self.assertEqual(one.calls, [])

    def client(self, *servers, **environment):
        """Asks a client to submit a task; what it says of it."""
        client = subprocess.Popen(KIND.client(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={
            **os.environ, "INTACT_SERVER": ",".join(s.url for s in servers), "PYTHONPATH": LIB,
            "PYTHONDONTWRITEBYTECODE": "1", **environment})
        self.addCleanup(client.communicate)

        def submit(task):
            client.stdin.write(task + "\n")
            client.stdin.flush()
            return json.loads(client.stdout.readline())
        return submit

    def test_a_client_of_two_installations_submits_nothing(self):
        one, other = self.of(ID_A, "n1"), self.of(ID_B)
        submit = self.client(one, other)
        for _ in range(2):
            told = submit("t")
            self.assertEqual(told["error"], "AnotherInstallation")
            self.names_both(told["message"], one, other)
        self.assertEqual(one.submitted + other.submitted, [])

    def test_a_task_is_not_submitted_to_another_installation(self):
        one, other, third = self.of(ID_A, "n1"), self.of(ID_B), self.of(ID_A, "n3")
        for server in (other, third):
            server.go()
        submit = self.client(one, other, third)
        self.assertEqual(submit("t"), {"id": "t", "installation": ID_A})
        one.go()
        other = self.of(ID_B, port=other.server_port)
        told = submit("t")
        self.assertEqual(told["error"], "AnotherInstallation")
        self.names_both(told["message"], one, other)
        third = self.of(ID_A, "n3", third.server_port)
        self.assertEqual(submit("t")["id"], "t")  # by the one that belongs to it
        self.assertEqual((other.submitted, third.submitted), ([], ["t"]))

    def test_a_client_of_the_stated_installation(self):
        one, other = self.of(ID_A, "n1"), self.of(ID_B)
        submit = self.client(one, other, INTACT_INSTALLATION=ID_B)
        self.assertEqual(submit("t"), {"id": "t", "installation": ID_B})
        other.go()
        self.assertIn(f"{ID_B} was expected", submit("t")["message"])
        self.assertEqual(one.submitted, [])

    def test_a_beat_goes_to_the_node_that_knows(self):
        other = self.two()
        self.start()
        other.beat_status = "unknown"
        token = other.ask("slow", {"ms": 3000, "beats": 50}, heartbeat_ms=60000)
        self.assertEqual(self.server.beats.get(timeout=PATIENCE_S)["beats"][0]["token"], token)
        self.assertIn("output", other.answer_to(token))


if __name__ == "__main__":
    if len(sys.argv) == 2:
        side_by_side.in_threads(PlayedTest)
    unittest.main(argv=sys.argv[:1] + sys.argv[2:], verbosity=2)
