"""What can be said of the parts alone. Run by tests/libraries/python.sh, or: python3 -m unittest discover lib/python/tests"""

import json
import os
import sqlite3
import sys
import threading
import unittest

sys.path.insert(0, os.path.realpath(os.path.join(os.path.dirname(__file__), "..")))
import intact  # pylint: disable=wrong-import-position
from intact import _clock, _http  # pylint: disable=wrong-import-position
from intact._discovery import Discovery  # pylint: disable=wrong-import-position
from intact.barrier import SqliteBarrier  # pylint: disable=wrong-import-position
from intact.request import Request, read_all  # pylint: disable=wrong-import-position


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
        retry = intact.Retry(first=1, most=10)
        for calls, longest in ((1, 1), (2, 2), (3, 4), (4, 8), (5, 10), (500, 10)):
            waits = [retry.wait(calls, 1000) for _ in range(200)]
            self.assertGreaterEqual(min(waits), longest / 2)
            self.assertLessEqual(max(waits), longest)
            self.assertGreater(len(set(waits)), 1)

    def test_it_gives_up(self):
        self.assertIsNone(intact.Retry(tries=3).wait(3, 1000))
        self.assertIsNotNone(intact.Retry(tries=3).wait(2, 1000))
        self.assertIsNone(intact.Retry(first=1, most=1).wait(1, 0.4))
        self.assertIsNone(intact.Retry(first=1, most=1, leave=100).wait(1, 100.4))
        self.assertIsNone(intact.Retry().wait(1, 5, after=5))
        self.assertGreaterEqual(intact.Retry().wait(1, 50, after=5), 5)

    def test_settings_that_make_no_sense(self):
        for bad in ({"first": 0}, {"first": 2, "most": 1}, {"tries": 0}):
            with self.assertRaises(ValueError):
                intact.Retry(**bad)


class CallTest(unittest.TestCase):
    """Request.call."""

    def test_it_counts_and_tells_what_it_was(self):
        r, answers = request(), [OSError("away"), intact.Again("still working"), intact.StepError("busy", retryable=True), 7]

        def service():
            answer = answers.pop(0)
            if isinstance(answer, Exception):
                raise answer
            return answer

        self.assertEqual(r.call(service, intact.Retry(first=0.001, most=0.002)), 7)
        self.assertEqual(r.tries, 4)

    def test_what_is_not_to_be_called_again(self):
        for error in (ValueError("mistake"), intact.StepError("declined")):
            r = request()

            def service(error=error):
                raise error

            with self.assertRaises(type(error)):
                r.call(service)
            self.assertEqual(r.tries, 1)

    def test_it_gives_up_with_the_last_failure(self):
        r = request()

        def service():
            raise intact.Again("ask later", after=7200)

        with self.assertRaises(intact.StepError) as caught:
            r.call(service)
        self.assertEqual(caught.exception.told, {"code": "again", "message": "ask later", "retryable": True,
                                                 "effect": "unknown", "retry_after": "7200000ms"})

    def test_a_stop_ends_a_pause(self):
        r = request()
        threading.Timer(0.05, r._stop).start()
        self.assertFalse(r.pause(600))
        with self.assertRaises(intact.StepError):
            r.check()

    def test_what_is_over_is_not_called(self):
        r = request(left=0)
        with self.assertRaises(intact.TooLate):
            r.call(lambda: self.fail("called"))
        self.assertEqual((r.tries, r.time_left()), (0, 0.0))

    def test_what_is_over_stays_over(self):
        r = request(heartbeat_ms=1)
        while not r.is_over:
            pass
        r._beat_was_taken(_clock.now_ms() + 10000)
        self.assertTrue(r.is_over)


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


class SettingsTest(unittest.TestCase):
    """What makes no sense is said at once."""

    def test_settings(self):
        for bad in ({"places": 0}, {"places": 1001}, {"server": "localhost:7420"}, {"server": "http://x/path"},
                    {"server": ","}, {"ca": "/nowhere.pem"}, {"token": "a\nb"}, {"instance": "x" * 151}, {"wait": 0}):
            with self.assertRaises(ValueError, msg=bad):
                intact.Agent("a", **bad)
        with self.assertRaises(ValueError):
            intact.Agent("")
        with self.assertRaises(ValueError):
            intact.Agent("a").start()
        agent = intact.Agent("a")
        agent.action("x")(print)
        agent.undo("x")(print)
        with self.assertRaises(ValueError):
            agent.action("x")
        with self.assertRaises(ValueError):
            intact.StepError("x", effect="some")

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
        with self.assertRaises(intact.StepError) as caught:
            self.once()
        self.assertEqual((caught.exception.code, caught.exception.retryable, caught.exception.effect),
                         ("undone", False, "none"))
        self.assertIsNone(self.once(direction="undo", key="t2/s"))
        self.assertIsNone(self.once(direction="undo", key="t2/s"))
        with self.assertRaises(intact.StepError):
            self.once(key="t2/s")
        self.assertEqual(self.effects, 2)

    def test_what_fails_leaves_nothing(self):
        def broken(db):
            db.execute("CREATE TABLE some(thing)")
            raise KeyError("mistake")

        with self.assertRaises(KeyError):
            self.barrier.once(request(), broken)
        with self.assertRaises(intact.StepError) as caught:
            self.barrier.once(request(), lambda db: db.execute("SELECT * FROM some"))
        self.assertEqual((caught.exception.code, caught.exception.retryable, caught.exception.effect),
                         ("database", True, "none"))
        with self.assertRaises(intact.StepError) as caught:
            self.barrier.once(request(), lambda db: object())
        self.assertEqual(caught.exception.code, "bad_output")
        stopped = request()
        with self.assertRaises(intact.StepError):
            self.barrier.once(stopped, lambda db: stopped._stop())
        self.assertEqual(self.once(), {"n": 1})

    def test_an_effect_that_ends_the_transaction_is_told(self):
        with self.assertRaises((RuntimeError, intact.StepError)):
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
        p = intact.Problem(422, {"type": "urn:intact:problem:bad-definition", "title": "no", "errors": [
            {"line": 7, "path": "steps[0]", "found": "nothing", "expected": "a key"}]})
        self.assertEqual(p.kind, "bad-definition")
        self.assertEqual(str(p), "422 bad-definition: line 7: steps[0]: found nothing, expected a key")
        told = intact.StepError("x", "m", True, "none", 1.5, {"at": 1}).told
        self.assertEqual(json.loads(json.dumps(told)), {"code": "x", "message": "m", "retryable": True, "effect": "none",
                                                        "retry_after": "1500ms", "resume": {"at": 1}})


if __name__ == "__main__":
    unittest.main(verbosity=2)
