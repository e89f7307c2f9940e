"""What can be said of the parts alone. Run by tests/libraries/python.sh, or: python3 -m unittest discover lib/python/tests"""

import http.server
import json
import os
import socket
import sqlite3
import subprocess
import sys
import threading
import time
import unittest

sys.path.insert(0, os.path.realpath(os.path.join(os.path.dirname(__file__), "..")))
import intact_client  # pylint: disable=wrong-import-position
from intact_client import _clock, _http  # pylint: disable=wrong-import-position
from intact_client._discovery import Discovery  # pylint: disable=wrong-import-position
from intact_client.barrier import SqliteBarrier  # pylint: disable=wrong-import-position
from intact_client.request import Request, read_all  # pylint: disable=wrong-import-position


def request(left=600000, direction="forward", key="t/s", **more):
    """One that nobody sent."""
    fields = {"token": "x", "task": "t", "step": "s", "action": "a", "direction": direction, "attempt": 1,
              "idempotency_key": key, "input": None, "time_left_ms": left, **more}
    if direction == "undo":
        fields.update(idempotency_key=key + "/undo", forward={"idempotency_key": key, "input": None, "output": None,
                                                               "attempts": 1, "in_doubt": True})
    return Request(fields, _clock.now_ms(), None)


class RetryTest(unittest.TestCase):
    """How long to wait, or give up."""

    def test_waits_double_up_to_the_most_and_half_is_chance(self):
        retry = intact_client.Retry(first=1, most=10)
        for calls, longest in ((1, 1), (2, 2), (3, 4), (4, 8), (5, 10), (500, 10)):
            waits = [retry.wait(calls, 1000) for _ in range(200)]
            self.assertGreaterEqual(min(waits), longest / 2)
            self.assertLessEqual(max(waits), longest)
            self.assertGreater(len(set(waits)), 1)

    def test_it_gives_up(self):
        self.assertIsNone(intact_client.Retry(tries=3).wait(3, 1000))
        self.assertIsNotNone(intact_client.Retry(tries=3).wait(2, 1000))
        self.assertIsNone(intact_client.Retry(first=1, most=1).wait(1, 0.4))
        self.assertIsNone(intact_client.Retry(first=1, most=1, leave=100).wait(1, 100.4))
        self.assertIsNone(intact_client.Retry().wait(1, 5, after=5))
        self.assertGreaterEqual(intact_client.Retry().wait(1, 50, after=5), 5)

    def test_settings_that_make_no_sense(self):
        for bad in ({"first": 0}, {"first": 2, "most": 1}, {"tries": 0}):
            with self.assertRaises(ValueError):
                intact_client.Retry(**bad)


class CallTest(unittest.TestCase):
    """Request.call."""

    def test_it_counts_and_tells_what_it_was(self):
        r, answers = request(), [OSError("away"), intact_client.Again("still working"),
                                 intact_client.StepError("busy", retryable=True), 7]

        def service():
            answer = answers.pop(0)
            if isinstance(answer, Exception):
                raise answer
            return answer

        self.assertEqual(r.call(service, intact_client.Retry(first=0.001, most=0.002)), 7)
        self.assertEqual(r.tries, 4)

    def test_what_is_not_to_be_called_again(self):
        for error in (ValueError("mistake"), intact_client.StepError("declined")):
            r = request()

            def service(error=error):
                raise error

            with self.assertRaises(type(error)):
                r.call(service)
            self.assertEqual(r.tries, 1)

    def test_an_answer_that_would_come_again_is_not_asked_for_again(self):
        from urllib.error import HTTPError
        for status, calls in ((404, 1), (400, 1), (429, 3), (503, 3)):
            r = request()

            def service(status=status):
                raise HTTPError("http://service/", status, "", {}, None)
            with self.assertRaises(HTTPError):
                r.call(service, intact_client.Retry(first=0.001, most=0.001, tries=3))
            self.assertEqual(r.tries, calls)

    def test_it_gives_up_with_the_last_failure(self):
        r = request()

        def service():
            raise intact_client.Again("ask later", after=7200)

        with self.assertRaises(intact_client.StepError) as caught:
            r.call(service)
        self.assertEqual(caught.exception.told, {"code": "again", "message": "ask later", "retryable": True,
                                                 "effect": "unknown", "retry_after": "7200000ms"})

    def test_a_stop_ends_a_pause(self):
        r = request()
        threading.Timer(0.05, r._stop).start()
        self.assertFalse(r.pause(600))
        with self.assertRaises(intact_client.StepError):
            r.check()

    def test_what_is_over_is_not_called(self):
        r = request(left=0)
        with self.assertRaises(intact_client.TooLate):
            r.call(lambda: self.fail("called"))
        self.assertEqual((r.tries, r.time_left()), (0, 0.0))

    def test_what_is_over_stays_over(self):
        r = request(heartbeat_ms=1)
        while not r.is_over:
            pass
        r._beat_was_taken(_clock.now_ms() + 10000)
        self.assertTrue(r.is_over)


class ForTestTest(unittest.TestCase):
    """Request.for_test: what those see who test their handlers with it."""

    def test_it_is_a_request_to_act(self):
        r = intact_client.Request.for_test({"amount": (1, 2)}, action="charge", task="o-1", step="pay", attempt=3)
        self.assertEqual((r.input, r.action, r.direction, r.attempt), ({"amount": [1, 2]}, "charge", "forward", 3))
        self.assertEqual((r.idempotency_key, r.forward, r.forward_key, r.resume), ("o-1/pay", None, None, None))
        self.assertTrue(50 < r.time_left() <= 60)
        self.assertFalse(r.should_stop)
        self.assertEqual(r.call(lambda: 7), 7)

    def test_it_is_a_request_to_undo(self):
        r = intact_client.Request.for_test(forward={"output": {"receipt": 17}}, task="o-1", step="pay")
        self.assertEqual((r.direction, r.idempotency_key, r.forward_key), ("undo", "o-1/pay/undo", "o-1/pay"))
        self.assertEqual(r.forward, {"idempotency_key": "o-1/pay", "input": None, "output": {"receipt": 17}, "attempts": 1,
                                     "in_doubt": False})

    def test_what_is_no_json_is_said(self):
        for bad in ({"input": object()}, {"forward": {"output": float("nan")}}, {"resume": {1, 2}}):
            with self.assertRaises(ValueError):
                intact_client.Request.for_test(**bad)

    def test_what_the_handler_told_can_be_looked_at(self):
        r = intact_client.Request.for_test(heartbeat_ms=200)
        r.heartbeat({"done": 1}, "copying", {"at": 1})
        r.heartbeat({"done": 2})
        self.assertEqual(r.beats, [{"progress": {"done": 1}, "message": "copying", "resume": {"at": 1}},
                                   {"progress": {"done": 2}}])
        self.assertFalse(r.is_elsewhere)
        r.elsewhere()
        self.assertTrue(r.is_elsewhere)

    def test_it_can_be_stopped_and_expire(self):
        for end, error in (("stop", intact_client.StepError), ("expire", intact_client.TooLate)):
            r = intact_client.Request.for_test()
            threading.Timer(0.05, getattr(r, end)).start()
            self.assertFalse(r.pause(600))
            self.assertTrue(r.should_stop)
            with self.assertRaises(error):
                r.check()
        self.assertEqual(r.time_left(), 0.0)

    def test_the_barrier_takes_it(self):
        barrier = SqliteBarrier(sqlite3.connect(":memory:", isolation_level=None))
        for forward in (None, {"output": 1}):
            for _ in range(2):
                r = intact_client.Request.for_test(forward=forward)
                self.assertEqual(barrier.once(r, lambda db: "done"), "done")


class BeatTest(unittest.TestCase):
    """Request.heartbeat."""

    def test_limits(self):
        r = request()
        for bad in ("x" * 2047, float("nan"), "\ud800", {1, 2}):
            with self.assertRaises((ValueError, TypeError)):
                r.heartbeat(bad)
        r.heartbeat("x" * 2046, "é" * 200)
        self.assertEqual(r._take_beat(0)["message"], "é" * 128)

    def test_the_latest_of_each_is_sent(self):
        r = request()
        r.heartbeat(1, resume={"at": 1})
        r.heartbeat(2, "two")
        self.assertEqual(r._take_beat(0), {"progress": 2, "resume": {"at": 1}, "message": "two"})
        self.assertIsNone(r._beat_is_due_ms())


class ReadTest(unittest.TestCase):
    """Requests of an answer."""

    def test_time_counts_from_the_sending(self):
        fields = request().fields
        sent = _clock.now_ms() - 5000
        for waited, left in ((0, 5), (1000, 6), (10 ** 9, 10), (-5, 5)):
            found = read_all({"waited_ms": waited, "requests": [{**fields, "time_left_ms": 10000}]}, sent, None)[0]
            self.assertAlmostEqual(found.time_left(), left, delta=2)

    def test_what_cannot_be_read(self):
        whole = request().fields
        for bad in ({}, {"token": 1}, 7, None, {**whole, "heartbeat_ms": "x"}, {**whole, "time_left_ms": []}):
            with self.assertRaises((KeyError, TypeError, ValueError)):
                read_all({"requests": [bad]}, 0, None)


class DiscoveryTest(unittest.TestCase):
    """Whom to call."""

    @staticmethod
    def told(name, **nodes):
        listed = [{"node": n, "url": None if u is None else u.strip("!"), "alive": not str(u).endswith("!"),
                   "roles": ["scheduler"]} for n, u in nodes.items()]
        return {"self": name, "nodes": listed}

    def test_a_seed_stands_for_its_node(self):
        d = Discovery(["http://seed:1"])
        self.assertEqual(d.wanted(), [])
        d.hear("http://seed:1", self.told("n1", n1="http://inside:1", n2="http://two:1", n3="http://three:1!"))
        self.assertEqual(d.to_ask(), ["http://seed:1", "http://two:1"])
        self.assertEqual(d.wanted(), ["http://seed:1"])
        d.hear("http://two:1", self.told("n2", n1="http://inside:1", n2="http://two:1"))
        self.assertEqual(d.wanted(), ["http://seed:1", "http://two:1"])
        d.lose("http://seed:1")
        self.assertEqual(d.wanted(), ["http://two:1"])
        self.assertIn("http://inside:1", d.to_ask())

    def test_somebody_else_answers_there(self):
        d = Discovery(["http://seed:1"])
        d.hear("http://seed:1", self.told("n1", n1=None, n2="http://two:1"))
        d.hear("http://two:1", self.told("n9", n9="http://evil:1"))
        self.assertEqual(d.wanted(), ["http://seed:1"])
        d.hear("http://two:1", self.told("n2", n1=None, n2="http://two:1"))
        self.assertEqual(d.wanted(), ["http://seed:1", "http://two:1"])

    def test_a_proxy_before_several_nodes(self):
        d = Discovery(["http://proxy:1"])
        nodes = {"n1": "http://one:1", "n2": "http://two:1"}
        for name in ("n1", "n2"):
            d.hear("http://proxy:1", self.told(name, **nodes))
        for name, url in nodes.items():
            d.hear(url, self.told(name, **nodes))
        self.assertEqual(sorted(d.wanted()), sorted(nodes.values()))
        d.lose("http://one:1")
        d.lose("http://two:1")
        self.assertEqual(d.wanted(), ["http://proxy:1"])

    def test_from_https_nobody_is_led_to_http(self):
        d = Discovery(["https://seed:1"])
        d.hear("https://seed:1", self.told("n1", n1=None, n2="http://two:1", n3="https://three:1"))
        self.assertEqual(d.to_ask(), ["https://seed:1", "https://three:1"])

    def test_what_is_no_list(self):
        for bad in (None, {}, {"nodes": 7}, {"nodes": [7, None, {}, {"node": "a b", "url": "http://x:1"},
                                               {"node": "n4", "roles": 7, "url": 7}]},
                    {"self": 7, "nodes": [{"node": "n2", "url": "http://u:p@x:1"}, {"node": "n3", "url": "ftp://x"}]}):
            d = Discovery(["http://seed:1"])
            d.hear("http://seed:1", bad)
            self.assertEqual(d.wanted(), ["http://seed:1"])
            self.assertEqual(d.to_ask(), ["http://seed:1"])


class Server:
    """Answers each connection by a function of its own, with raw bytes."""

    def __init__(self, answer):
        self.socket, self.calls = socket.create_server(("127.0.0.1", 0)), 0
        self.url = f"http://127.0.0.1:{self.socket.getsockname()[1]}"

        def run(connection):
            with connection:
                try:
                    request = connection.makefile("rb")
                    line = request.readline()
                    if not line:
                        return
                    length = 0
                    for header in iter(request.readline, b"\r\n"):
                        if header.lower().startswith(b"content-length:"):
                            length = int(header.split(b":")[1])
                    request.read(length)
                    self.calls += b"/healthz" not in line  # to which installation it belongs
                    answer(connection, line)
                except OSError:
                    pass

        def accept():
            while True:
                try:
                    threading.Thread(target=run, args=(self.socket.accept()[0],), daemon=True).start()
                except OSError:
                    return
        self.thread = threading.Thread(target=accept, daemon=True)
        self.thread.start()

    def close(self):
        self.socket.shutdown(socket.SHUT_RDWR)  # ends the thread first: its accept would go on with the next socket of this number
        self.thread.join()
        self.socket.close()


def say(connection, body):
    connection.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))


class HttpTest(unittest.TestCase):
    """Servers that are not as they should be."""

    def serve(self, answer):
        server = Server(answer)
        self.addCleanup(server.close)
        return server

    def test_an_answer_that_drips_has_no_more_time_than_another(self):
        def drip(piece):
            def answer(connection, _):
                connection.sendall(b"HTTP/1.1 200 OK\r\n" if piece != b"HTTP/1.1 100 Continue\r\n\r\n" else b"")
                while True:
                    connection.sendall(piece)
                    time.sleep(0.05)
            return answer

        for piece in (b"x: y\r\n", b"z", b"HTTP/1.1 100 Continue\r\n\r\n"):
            connection = _http.Connection(self.serve(drip(piece)).url, None, {})
            with self.assertRaises(TimeoutError):
                connection.call("GET", "/", within=0.3)

    def test_numbers_that_are_too_large(self):
        found = _http.read_json(b'{"a": %s, "b": -%s, "c": [12345678901234567890, 1e999]}' % (b"9" * 5000, b"9" * 5000))
        self.assertEqual(found["a"], float("inf"))
        self.assertEqual(found["b"], float("-inf"))
        self.assertEqual(found["c"], [12345678901234567890, float("inf")])
        with self.assertRaises(ValueError):
            _http.read_json(b"[" * 100000 + b"]" * 100000)

    def test_a_wait_is_not_cut_off_because_there_are_several_servers(self):
        def park(connection, line):
            time.sleep(float(line.split(b"wait=")[1].split(b"ms")[0]) / 1000 if b"wait=" in line else 0)
            say(connection, b'{"id": "t", "state": "processing"}')
        servers = [self.serve(park), self.serve(park)]
        client = intact_client.Client(",".join(s.url for s in servers), timeout=30)
        client._timeout = 2  # pylint: disable=protected-access
        with self.assertRaises(intact_client.WaitTimeout):
            client.wait("t", timeout=5)
        self.assertLessEqual(sum(s.calls for s in servers), 2)

    def test_a_signal_that_finds_no_room_is_not_sent_again(self):
        body = b'{"type": "urn:intact:problem:too-many-signals", "title": "x", "status": 429}'
        server = self.serve(lambda connection, _: connection.sendall(
            b"HTTP/1.1 429 x\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s" % (len(body), body)))
        client = intact_client.Client(server.url, timeout=30)
        with self.assertRaises(intact_client.Problem) as caught:
            client.signal("t", "go", 1, "k")
        self.assertNotIsInstance(caught.exception, intact_client.Busy)
        self.assertEqual(server.calls, 1)
        with self.assertRaises(ValueError):
            client.signal("t", "go", 1, "")

    def test_a_decision_is_sent_again_only_on_the_question_that_was_read(self):
        server = self.serve(lambda connection, _: None)
        client = intact_client.Client(server.url, timeout=0.5)
        with self.assertRaises(intact_client.Unreachable):
            client.reject("t", "allow", "too much")
        self.assertEqual(server.calls, 1)
        with self.assertRaises(intact_client.Unreachable):
            client.approve("t", "allow", asking=1)
        self.assertGreater(server.calls, 2)

    def test_what_has_no_id_is_submitted_once(self):
        server = self.serve(lambda connection, _: None)
        client = intact_client.Client(server.url, timeout=0.5)
        with self.assertRaises(intact_client.Unreachable):
            client.call("POST", "/v1/tasks", {"workflow": "w"})
        self.assertEqual(server.calls, 1)
        with self.assertRaises(intact_client.Unreachable):
            client.submit("w")
        self.assertGreater(server.calls, 2)


class AgentTest(unittest.TestCase):
    """The agent's own ends."""

    def test_coroutines_are_refused_at_once(self):
        agent = intact_client.Agent("a", server="http://127.0.0.1:1")
        with self.assertRaises(TypeError):
            @agent.action("a")
            async def handle(_):  # pylint: disable=unused-variable
                return None

    def test_a_signal_at_any_moment_ends_it(self):
        program = """
import signal, sys, threading
import intact_client
agent = intact_client.Agent("a", server="http://127.0.0.1:1", discovery=False)
agent.action("a")(print)
at = int(sys.argv[1])
count = 0
def trace(frame, event, _):
    global count
    if frame.f_code.co_filename == threading.__file__ or frame.f_code.co_name == "run":
        if event == "line" and agent._manager:
            count += 1
            if count == at:
                signal.raise_signal(signal.SIGTERM)
        return trace
sys.settrace(trace)
ended = agent.run()
sys.settrace(None)
sys.exit(0 if ended else 1)
"""
        for at in range(1, 40, 2):
            done = subprocess.run([sys.executable, "-c", program, str(at)], check=False, timeout=120, env={
                **os.environ, "PYTHONPATH": os.path.join(os.path.dirname(__file__), "..")})
            self.assertEqual(done.returncode, 0, at)

    def test_a_system_without_threads_to_spare(self):
        agent = intact_client.Agent("a", server="http://127.0.0.1:1", places=4)
        done = threading.Barrier(1)
        agent.action("a")(lambda _: done.wait())
        begin, started = agent._thread, []  # pylint: disable=protected-access

        def thread(run, what, *args):
            if what == "work" and len(started) > 0:
                raise RuntimeError("can't start new thread")
            started.append(what)
            return begin(run, what, *args)

        agent._thread = thread  # pylint: disable=protected-access
        node = intact_client.agent.Node("http://127.0.0.1:1", "a", None, {})
        asked = [Request({**request().fields, "token": str(i)}, _clock.now_ms(), node) for i in range(4)]
        with self.assertLogs("intact_client", "ERROR"):
            with agent._changed:  # pylint: disable=protected-access
                agent._take(asked)  # pylint: disable=protected-access
            end = time.monotonic() + 120
            while len(agent._results) < 4 and time.monotonic() < end:  # pylint: disable=protected-access
                time.sleep(0.01)
        self.assertEqual(len(agent._results), 4)  # pylint: disable=protected-access
        self.assertEqual(started, ["work"])


class SettingsTest(unittest.TestCase):
    """What makes no sense is said at once."""

    def test_settings(self):
        for bad in ({"places": 0}, {"places": 1001}, {"server": "localhost:7420"}, {"server": "http://x/path"},
                    {"server": ","}, {"ca": "/nowhere.pem"}, {"token": "a\nb"}, {"instance": "x" * 151}, {"wait": 0}):
            with self.assertRaises(ValueError, msg=bad):
                intact_client.Agent("a", **bad)
        with self.assertRaises(ValueError):
            intact_client.Agent("")
        with self.assertRaises(ValueError):
            intact_client.Agent("a").start()
        agent = intact_client.Agent("a")
        agent.action("x")(print)
        agent.undo("x")(print)
        with self.assertRaises(ValueError):
            agent.action("x")
        with self.assertRaises(ValueError):
            intact_client.StepError("x", effect="some")

    def test_servers(self):
        self.assertEqual(_http.servers("http://a:1/, https://b,http://a:1"), ["http://a:1", "https://b"])
        self.assertTrue(_http.is_server("http://[::1]:7420"))
        self.assertFalse(_http.is_server("http://a:99999"))


class SqliteBarrierTest(unittest.TestCase):
    """The table of answers in docs/agents.md."""

    def setUp(self):
        self.db = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        self.addCleanup(self.db.close)
        self.barrier = SqliteBarrier(self.db)
        self.effects = 0

    def effect(self, _):
        self.effects += 1
        return {"n": self.effects}

    def once(self, **more):
        return self.barrier.once(request(**more), self.effect)

    def test_all_rows_of_the_table(self):
        self.assertEqual(self.once(), {"n": 1})
        self.assertEqual(self.once(), {"n": 1})
        self.assertEqual(self.once(direction="undo"), {"n": 2})
        self.assertEqual(self.once(direction="undo"), {"n": 2})
        with self.assertRaises(intact_client.StepError) as caught:
            self.once()
        self.assertEqual((caught.exception.code, caught.exception.retryable, caught.exception.effect),
                         ("undone", False, "none"))
        self.assertIsNone(self.once(direction="undo", key="t2/s"))
        self.assertIsNone(self.once(direction="undo", key="t2/s"))
        with self.assertRaises(intact_client.StepError):
            self.once(key="t2/s")
        self.assertEqual(self.effects, 2)

    def test_what_fails_leaves_nothing(self):
        def broken(db):
            db.execute("CREATE TABLE some(thing)")
            raise KeyError("mistake")

        with self.assertRaises(KeyError):
            self.barrier.once(request(), broken)
        with self.assertRaises(intact_client.StepError) as caught:
            self.barrier.once(request(), lambda db: db.execute("SELECT * FROM some"))
        self.assertEqual((caught.exception.code, caught.exception.retryable, caught.exception.effect),
                         ("database", True, "none"))
        with self.assertRaises(intact_client.StepError) as caught:
            self.barrier.once(request(), lambda db: object())
        self.assertEqual(caught.exception.code, "bad_output")
        stopped = request()
        with self.assertRaises(intact_client.StepError):
            self.barrier.once(stopped, lambda db: stopped._stop())
        self.assertEqual(self.once(), {"n": 1})

    def test_an_effect_that_ends_the_transaction_is_told(self):
        with self.assertRaises((RuntimeError, intact_client.StepError)):
            self.barrier.once(request(), lambda db: db.execute("ROLLBACK") and None)

    def test_cleaning(self):
        for i in range(2500):
            self.once(key=f"t{i}/s")
        self.assertEqual(self.barrier.clean(3600), 0)
        self.assertEqual(self.barrier.clean(-3600), 2500)

    def test_threads(self):
        threads = [threading.Thread(target=self.once, kwargs={"key": f"t{i % 10}/s"}) for i in range(100)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(self.effects, 10)

    def test_the_count_of_rows_is_not_that_of_the_cursor(self):
        class Cursor(sqlite3.Cursor):
            rowcount = -1  # as it is of each INSERT in a Turkish locale

        class Connection(sqlite3.Connection):
            def execute(self, *arguments):
                return self.cursor(Cursor).execute(*arguments)

        self.db = sqlite3.connect(":memory:", isolation_level=None, factory=Connection)
        self.addCleanup(self.db.close)
        self.barrier = SqliteBarrier(self.db)
        self.assertEqual(self.once(), {"n": 1})
        self.assertEqual(self.once(), {"n": 1})
        self.assertEqual(self.once(direction="undo"), {"n": 2})
        self.assertEqual(self.barrier.clean(-1), 1)

    def test_the_connection_has_to_leave_transactions_to_it(self):
        with self.assertRaises(ValueError):
            SqliteBarrier(sqlite3.connect(":memory:"))

    def test_the_table_is_that_of_the_documented_file(self):
        path = os.path.join(os.path.dirname(__file__), "../../barrier/sqlite.sql")
        other = sqlite3.connect(":memory:")
        self.addCleanup(other.close)
        with open(path, encoding="utf-8") as f:
            other.executescript(f.read())
        columns = "SELECT name, type, \"notnull\", dflt_value, pk FROM pragma_table_info('intact_barrier')"
        self.assertEqual(self.db.execute(columns).fetchall(), other.execute(columns).fetchall())


class ErrorsTest(unittest.TestCase):
    """Problem documents."""

    def test_what_it_says(self):
        p = intact_client.Problem(422, {"type": "urn:intact:problem:bad-definition", "title": "no", "errors": [
            {"line": 7, "path": "steps[0]", "found": "nothing", "expected": "a key"}]})
        self.assertEqual(p.kind, "bad-definition")
        self.assertEqual(str(p), "422 bad-definition: line 7: steps[0]: found nothing, expected a key")
        told = intact_client.StepError("x", "m", True, "none", 1.5, {"at": 1}).told
        self.assertEqual(json.loads(json.dumps(told)), {"code": "x", "message": "m", "retryable": True, "effect": "none",
                                                        "retry_after": "1500ms", "resume": {"at": 1}})


class Answers(http.server.BaseHTTPRequestHandler):
    """A server that always says the same."""

    def answer(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.server.heard.append((self.command, self.path, body))
        self.server.types.append(self.headers.get("Content-Type"))
        status, body = self.server.says
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_POST = do_PUT = answer

    def log_message(self, *_):  # pylint: disable=arguments-differ
        pass


class ClientTest(unittest.TestCase):
    """What the client makes of answers."""

    def setUp(self):
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers)
        self.server.heard, self.server.types = [], []
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)
        self.client = intact_client.Client(f"http://127.0.0.1:{self.server.server_port}")

    def test_a_task_that_was_deleted_is_told_of_at_once(self):
        self.server.says = 410, {"type": "urn:intact:problem:task-deleted", "title": "Gone", "status": 410,
                                 "detail": "task x ended processed, and was deleted"}
        for ask in (self.client.get, self.client.wait):
            with self.assertRaises(intact_client.Problem) as caught:
                ask("x")
            self.assertEqual((caught.exception.status, caught.exception.kind), (410, "task-deleted"))
            self.assertIn("ended processed", str(caught.exception))
        self.assertEqual(len(self.server.heard), 2)
        self.server.says = 200, {"id": "x", "workflow": "w", "version": 1, "deleted": True, "state": "processed",
                                 "ended_at": "2026-01-31T10:00:00.000Z"}
        self.assertIs(self.client.submit("w", id="x")["deleted"], True)

    def test_a_definition_is_stored_under_the_name_that_it_says(self):
        self.server.says = 201, {"name": "w", "version": 1, "warnings": []}
        yaml, text = "intact: 1\nworkflow: w\n", ' {"intact": 1, "workflow": "w"}'
        for definition in (yaml, text, {"intact": 1, "workflow": "w"}):
            self.assertEqual(self.client.put_workflow(definition)["version"], 1)
        self.client.put_workflow(yaml, "a b")
        self.assertEqual(self.server.heard, [
            ("POST", "/v1/workflows", yaml.encode()), ("POST", "/v1/workflows", text.encode()),
            ("POST", "/v1/workflows", b'{"intact":1,"workflow":"w"}'), ("PUT", "/v1/workflows/a%20b", yaml.encode())])
        self.assertEqual(self.server.types, ["application/yaml", "application/json", "application/json", "application/yaml"])

    def test_children_are_listed_if_they_are_asked_for(self):
        self.server.says = 200, {"tasks": [], "next": None}
        self.client.list(root="o-1", limit=5)
        self.client.list(workflow="ship", children=True)
        self.client.list(parent="o-1@a b", children=False)
        self.assertEqual([path for _, path, _ in self.server.heard], [
            "/v1/tasks?root=o-1&limit=5", "/v1/tasks?workflow=ship&children=true", "/v1/tasks?children=false&parent=o-1%40a+b"])

    def test_items_are_read_page_by_page(self):
        self.server.says = 200, {"step": "pack", "count": 0, "items": [], "next": None}
        self.assertEqual(list(self.client.items("o-1@a", "pa ck")), [])
        self.server.says = 200, {"step": "pack", "count": 2, "items": [{"name": "pack.0"}], "next": "1"}
        items = self.client.items("o-1", "pack", "failed")
        self.assertEqual(next(items)["name"], "pack.0")
        self.assertEqual(len(self.server.heard), 2)  # no page is read before it is needed
        self.server.says = 200, {"step": "pack", "count": 2, "items": [{"name": "pack.1"}], "next": None}
        self.assertEqual([item["name"] for item in items], ["pack.1"])
        self.assertEqual([path for _, path, _ in self.server.heard], [
            "/v1/tasks/o-1%40a/items?step=pa+ck&limit=500", "/v1/tasks/o-1/items?step=pack&state=failed&limit=500",
            "/v1/tasks/o-1/items?step=pack&state=failed&limit=500&cursor=1"])

    def test_a_trace_is_handed_on(self):
        self.server.says = 201, {"id": "x", "workflow": "w", "version": 1}
        self.client.submit("w", 5, id="x", traceparent="00-1-1-01")
        self.client.submit("w", 5, id="x")
        self.assertEqual([json.loads(body) for _, _, body in self.server.heard], [
            {"workflow": "w", "id": "x", "input": 5, "traceparent": "00-1-1-01"}, {"workflow": "w", "id": "x", "input": 5}])


if __name__ == "__main__":
    unittest.main(verbosity=2)
