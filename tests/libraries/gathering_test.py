#!/usr/bin/env python3
"""Python's submissions that threads make together: against a real server behind a counter of requests, and against played
ones. Needs INTACT_PROGRAM.

Usage: gathering_test.py [TEST...]
"""

import http.client
import http.server
import json
import os
import re
import sys
import threading
import unittest
import unittest.mock
import warnings
from urllib.parse import urlsplit

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from kit import LIB, Place, wait_for  # pylint: disable=wrong-import-position

sys.path.insert(0, LIB)
sys.dont_write_bytecode = True
warnings.simplefilter("ignore", ResourceWarning)
import intact_client  # pylint: disable=wrong-import-position
from intact_client import _gathering  # pylint: disable=wrong-import-position


class Server:
    """Answers with answer(handler, body), on a port of its own."""

    def __init__(self, answer):
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):  # pylint: disable=invalid-name
                answer(self, self.rfile.read(int(self.headers["Content-Length"])))

            def do_GET(self):  # pylint: disable=invalid-name
                answer(self, None)

            def log_message(self, *_):  # pylint: disable=arguments-differ
                pass

            def tell(self, status, body, kind="application/json"):
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def end(self):
        self.server.shutdown()
        self.server.server_close()


def settled(*calls):
    """The result or the exception of each, called by threads of their own."""
    found = [None] * len(calls)

    def go(i):
        try:
            found[i] = calls[i]()
        except intact_client.IntactError as e:
            found[i] = e

    threads = [threading.Thread(target=go, args=(i,), daemon=True) for i in range(len(calls))]
    for t in threads:
        t.start()
    for t in threads:
        t.join(120)
        assert not t.is_alive(), "a submission hangs"
    return found


class Gate:
    """Holds the first request until it is opened."""

    def __init__(self):
        self.begun, self.opened = threading.Event(), threading.Event()

    def hold(self):
        is_first = not self.begun.is_set()
        self.begun.set()
        if is_first:
            assert self.opened.wait(60)


def together(client, gate, *calls):
    """The result or the exception of each. All of them are made before the first request ends, and sent behind it."""
    first = threading.Thread(target=lambda: settled(lambda: client.submit("gathered", id="first")), daemon=True)
    with unittest.mock.patch.object(_gathering, "GATHER_S", 60):
        first.start()
        assert gate.begun.wait(60)

        def opens():
            wait_for("the calls", lambda: client._gathering._batch is not None and len(client._gathering._batch.waiting) == len(calls))
            gate.opened.set()

        threading.Thread(target=opens, daemon=True).start()
        found = settled(*calls)
    first.join(60)
    return found


class RealTest(unittest.TestCase):
    """Against a real server, behind a counter of requests."""

    @classmethod
    def setUpClass(cls):
        cls.place = Place()
        cls.url = cls.place.serve()
        cls.real = intact_client.Client(cls.url, token=cls.place.token)
        for wait in ("1d", "2d"):
            cls.real.put_workflow({"intact": 1, "workflow": "gathered", "steps": [{"name": "rest", "wait": wait}]})

    @classmethod
    def tearDownClass(cls):
        cls.place.end()

    def setUp(self):
        self.seen, self.hold = [], lambda: None
        self.proxy = Server(self.forward)
        self.addCleanup(self.proxy.end)

    def forward(self, handler, body):
        if body is not None:
            self.seen.append(body.split(b"\n"))
            self.hold()
        to = http.client.HTTPConnection(urlsplit(self.url).netloc)
        to.request(handler.command, handler.path, body, dict(handler.headers))
        answer = to.getresponse()
        handler.tell(answer.status, answer.read(), answer.headers["Content-Type"])
        to.close()

    def client(self, **more):
        found = intact_client.Client(self.proxy.url, token=self.place.token, timeout=60, **more)
        self.addCleanup(found.close)
        return found

    def test_calls_of_a_moment_are_one_request_and_each_has_its_own_answer(self):
        self.real.submit("gathered", 1, id="g-there")
        gate = Gate()
        self.hold = gate.hold
        client = self.client()
        made, again, conflict, none, bad, named, old = together(
            client, gate,
            lambda: client.submit("gathered", id="g-new"),
            lambda: client.submit("gathered", 1, id="g-there"),
            lambda: client.submit("gathered", 2, id="g-there"),
            lambda: client.submit("nothing", id="g-none"),
            lambda: client.submit("gathered", id="g/" + "x" * 300),
            lambda: client.submit("gathered"),
            lambda: client.submit("gathered", id="g-old", version=1))
        self.assertEqual([1, 7], [len(lines) for lines in self.seen])
        self.assertEqual({"id": "g-new", "workflow": "gathered", "version": 2}, made)
        self.assertEqual({"id": "g-there", "workflow": "gathered", "version": 2}, again)
        self.assertEqual({"id": "g-old", "workflow": "gathered", "version": 1}, old)
        self.assertEqual("gathered", self.real.get(named["id"])["workflow"])
        for what, kind, status in ((conflict, "task-exists", 409), (none, "no-such-workflow", 422), (bad, "bad-id", 422)):
            self.assertIs(intact_client.Problem, type(what), what)
            self.assertEqual((kind, status), (what.kind, what.status))

    def test_an_answer_is_the_same_as_that_of_a_request_of_its_own(self):
        gate = Gate()
        self.hold = gate.hold
        client, apart = self.client(), self.client(gather=False)

        def kinds(of, id_):
            signals = [{"name": "nobody", "data": 1}]
            return [lambda: of.submit("gathered", {"a": [1, "\n", "\u2028"]}, id=f"{id_}-a", tags={"shop": "north"}, priority=7),
                    lambda: of.submit("nothing", id=f"{id_}-n"),
                    lambda: of.submit("gathered", id=f"{id_}-v", version=99),
                    lambda: of.submit("gathered", id=f"{id_}-p", priority=77),
                    lambda: of.submit("gathered", id=f"{id_}-s", signals=signals)]

        def told(found):
            return json.dumps([[type(one).__name__, one.status, one.kind, one.detail] if isinstance(one, Exception) else one for one in found], sort_keys=True)

        many = told(together(client, gate, *kinds(client, "same-2")))
        self.assertEqual([1, 5], [len(lines) for lines in self.seen])
        one = told([settled(call)[0] for call in kinds(apart, "same-1")])
        self.assertEqual(one, re.sub(r"line \d+: ", "", many.replace("same-2", "same-1")))

    def test_what_is_gathered_waits_a_moment_and_for_no_other_request(self):
        gate = Gate()
        self.hold = gate.hold
        client = self.client()
        first = threading.Thread(target=client.submit, args=("gathered",), daemon=True)
        first.start()
        self.assertTrue(gate.begun.wait(60))
        for one in settled(*[lambda: client.submit("gathered")] * 20):
            self.assertEqual("gathered", one["workflow"])
        self.assertTrue(first.is_alive())
        gate.opened.set()
        first.join(60)
        self.assertEqual(21, sum(len(lines) for lines in self.seen))

    def test_one_that_is_alone_is_a_request_at_once(self):
        client = self.client()
        with unittest.mock.patch.object(_gathering, "GATHER_S", 3600):
            for _ in range(3):
                client.submit("gathered")
        self.assertEqual([1, 1, 1], [len(lines) for lines in self.seen])

    def test_many_are_several_requests_each_within_its_limits(self):
        client = self.client()
        large = "x" * 700_000

        def submits(of):
            return [client.submit("gathered", large if of == 0 else None, id=f"many-{of}-{i}")["id"] for i in range(40)]

        found = settled(*[lambda of=of: submits(of) for of in range(16)])
        self.assertEqual([[f"many-{of}-{i}" for i in range(40)] for of in range(16)], found)
        self.assertEqual(16 * 40, sum(len(lines) for lines in self.seen))
        self.assertLess(len(self.seen), 16 * 40)
        self.assertLessEqual(max(sum(map(len, lines)) for lines in self.seen), _gathering.LINES_SIZE_MAX)

    def test_limits_of_a_request(self):
        with unittest.mock.patch.object(_gathering, "LINES_MAX", 3):
            gate = Gate()
            self.hold = gate.hold
            client = self.client()
            first = threading.Thread(target=client.submit, args=("gathered",), daemon=True)
            first.start()
            self.assertTrue(gate.begun.wait(60))
            with unittest.mock.patch.object(_gathering, "GATHER_S", 60):
                # The seventh finds two full batches, which are sent; it opens the gate, and is sent behind it.
                threads = [threading.Thread(target=client.submit, args=("gathered",), daemon=True) for _ in range(7)]
                for t in threads:
                    t.start()
                wait_for("two requests", lambda: len(self.seen) >= 3)
                gate.opened.set()
                for t in threads + [first]:
                    t.join(60)
                    self.assertFalse(t.is_alive())
        self.assertEqual([1, 3, 3, 1], [len(lines) for lines in self.seen])

    def test_gathering_is_off_by_one_setting(self):
        client = self.client(gather=False)
        settled(*[lambda: client.submit("gathered")] * 20)
        self.assertEqual([1] * 20, [len(lines) for lines in self.seen])

    def test_what_is_no_json_is_said_at_once_and_harms_no_other(self):
        client = self.client()
        with self.assertRaises(TypeError):
            client.submit("gathered", object())
        self.assertEqual("gathered", client.submit("gathered")["workflow"])


def playing(seen, status_of, gate=None):
    """Answers lines by status_of(id, n), the n-th request, from 1."""
    def answer(handler, body):
        if body is None:
            handler.tell(404, b"{}")
            return
        lines = [json.loads(line) for line in body.split(b"\n")]
        seen.append([line["id"] for line in lines])
        n = len(seen)
        if gate:
            gate.hold()
        answers = []
        for i, line in enumerate(lines):
            status = status_of(line["id"], n)
            more = {"version": 3} if status < 300 else {"problem": {"type": f"urn:intact:problem:p{status}", "status": status, "detail": line["id"]}}
            answers.append({"line": i + 1, "status": status, "id": line["id"], **more})
        if handler.headers["Content-Type"] == "application/json":
            alone = answers[0].get("problem") or {"id": lines[0]["id"], "workflow": lines[0]["workflow"], "version": 3}
            handler.tell(answers[0]["status"], json.dumps(alone).encode())
        else:
            handler.tell(200, b"".join(json.dumps(one).encode() + b"\n" for one in answers), "application/x-ndjson")
    return answer


class PlayedTest(unittest.TestCase):
    """What no server does at will."""

    def setUp(self):
        self.seen, self.gate = [], Gate()

    def results(self, answer, *ids, timeout=60):
        """Of submissions under these ids that are one request, behind one for "first"."""
        server = Server(answer)
        self.addCleanup(server.end)
        client = intact_client.Client(server.url, timeout=timeout)
        self.addCleanup(client.close)
        return together(client, self.gate, *[lambda id_=id_: client.submit("w", id=id_) for id_ in ids])

    def test_a_line_for_which_there_was_no_room_is_sent_again_alone_of_its_request(self):
        def status_of(id_, n):
            return 422 if id_ == "c" else 503 if id_ == "b" and n < 4 else 201
        a, b, c = self.results(playing(self.seen, status_of, self.gate), "a", "b", "c")
        self.assertEqual(("a", "b", "p422"), (a["id"], b["id"], c.kind))
        self.assertEqual([["first"], ["a", "b", "c"], ["b"], ["b"]], [sorted(ids) for ids in self.seen])

    def test_one_that_never_finds_room_fails_when_its_time_is_over_and_no_other(self):
        a, b = self.results(playing(self.seen, lambda id_, n: 429 if id_ == "b" else 201, self.gate), "a", "b", timeout=2)
        self.assertEqual("a", a["id"])
        self.assertIsInstance(b, (intact_client.Busy, intact_client.Unreachable))

    def test_a_request_that_fails_as_a_whole_fails_each_of_its_submissions(self):
        def refuses(handler, body):
            if body and b"\n" in body:
                handler.tell(401, b'{"type":"urn:intact:problem:unauthorized","detail":"who?"}')
            else:
                playing(self.seen, lambda *_: 201, self.gate)(handler, body)
        found = self.results(refuses, "a", "b", "c")
        for one in found:
            self.assertEqual((intact_client.Problem, 401, "unauthorized", "who?"), (type(one), one.status, one.kind, one.detail))
            self.assertIn("who?", str(one))
        self.assertEqual(3, len({id(one) for one in found}), "an exception has one traceback")

    def test_a_server_that_closes_or_says_no_sense(self):
        def closes(handler, body):
            handler.close_connection = True

        def speechless(handler, body):
            handler.tell(200, b"well", "application/x-ndjson")

        for bad in (closes, speechless):
            self.setUp()

            def answer(handler, body, bad=bad):
                (playing(self.seen, lambda *_: 201, self.gate) if body and b'"first"' in body else bad)(handler, body)
            for one in self.results(answer, "a", "b", timeout=2):
                self.assertIsInstance(one, intact_client.Unreachable)

    def test_lines_that_are_missing_in_an_answer_are_sent_again(self):
        play = playing(self.seen, lambda *_: 201, self.gate)
        is_first = [True]

        def answer(handler, body):
            if body and b"\n" in body and is_first.pop():
                handler.tell(200, b'{"line":1,"status":201,"id":"a","version":3}\n', "application/x-ndjson")
                is_first.append(False)
            else:
                play(handler, body)
        self.assertEqual(["a", "b"], [one["id"] for one in self.results(answer, "a", "b")])

    def test_what_is_too_large_together_is_sent_apart(self):
        play = playing(self.seen, lambda *_: 201, self.gate)

        def answer(handler, body):
            if body and b"\n" in body:
                handler.tell(413, b"{}")
            else:
                play(handler, body)
        self.assertEqual(["a", "b"], [one["id"] for one in self.results(answer, "a", "b")])
        self.assertEqual([["a"], ["b"], ["first"]], sorted(self.seen))

    def test_an_older_node_is_asked_for_the_version_by_a_repetition(self):
        play = playing(self.seen, lambda *_: 201, self.gate)

        def answer(handler, body):
            if body and b"\n" in body:
                ids = [json.loads(line)["id"] for line in body.split(b"\n")]
                text = "".join(f'{{"line":{i + 1},"status":201,"id":"{id_}"}}\n' for i, id_ in enumerate(ids))
                handler.tell(200, text.encode(), "application/x-ndjson")
            else:
                play(handler, body)
        self.assertEqual([3, 3], [one["version"] for one in self.results(answer, "a", "b")])

    def test_an_interrupted_thread_leaves_no_other_waiting(self):
        play = playing(self.seen, lambda *_: 201, self.gate)
        server = Server(play)
        self.addCleanup(server.end)
        client = intact_client.Client(server.url, timeout=60)
        self.addCleanup(client.close)
        send = client._gathering._sender.many

        def interrupted(lines, end):
            client._gathering._sender = client._gathering._sender._replace(many=send)
            raise KeyboardInterrupt
        client._gathering._sender = client._gathering._sender._replace(many=interrupted)
        results = []

        def submit(id_):
            try:
                results.append(client.submit("w", id=id_)["id"])
            except KeyboardInterrupt:
                results.append("interrupted")
        together(client, self.gate, *[lambda id_=id_: submit(id_) for id_ in "abc"])
        self.assertEqual(1, results.count("interrupted"))
        self.assertEqual(3, len(results))
        self.assertEqual(0, client._gathering._under_way)


if __name__ == "__main__":
    unittest.main(verbosity=2)
