#!/usr/bin/python3
"""Receivers that misbehave, and what the channel of webhooks makes of it: what counts as delivered, words that say what happened,
and nobody else who waits.

Usage: hostile_test.py DRIVER [TEST...]
"""

import base64
import gzip
import hashlib
import hmac
import json
import os
import queue
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "http_agent"))

import kit  # noqa: E402
from kit import answer, eventually, flood, reset  # noqa: E402

DRIVER = os.path.realpath(sys.argv.pop(1))
KEYS = [os.urandom(32) for _ in range(3)]
SECRETS = ["whsec_" + base64.b64encode(k).decode() for k in KEYS]
GOOD = answer(204, b"", type_=None)
hold = threading.Event()


def signature(request, key):
    h = request["headers"]
    text = f"{h['webhook-id']}.{h['webhook-timestamp']}.".encode() + request["body"]
    return "v1," + base64.b64encode(hmac.new(key, text, hashlib.sha256).digest()).decode()


def says(data, keep=True):
    def case(connection, request, number):
        connection.sendall(data)
        return keep

    return case


def stalls(data):
    def case(connection, request, number):
        connection.sendall(data)
        hold.wait(kit.PATIENCE_S)
        return False

    return case


def floods(head, piece):
    def case(connection, request, number):
        connection.sendall(head)
        return flood(connection, piece)

    return case


def cut_at(connection, request, number):
    connection.sendall(answer(200, b"fine")[:number])
    reset(connection)
    return False


def closed_at(connection, request, number):
    connection.sendall(answer(200, b"fine")[:number])
    return False


def bomb(connection, request, number):
    connection.sendall(answer(200, gzip.compress(b" " * (64 << 20)), [("Content-Encoding", "gzip")]))
    return False


def drips(connection, request, number):
    for byte in answer(200, b"a" * 100000):
        connection.sendall(bytes([byte]))
        if hold.wait(0.3):
            break
    return False


def only_small(connection, request, number):
    events = json.loads(request["body"])
    if len(events) > number:
        connection.sendall(answer(413, b"too many"))
    else:
        connection.sendall(GOOD)
    return True


def no_poison(connection, request, number):
    events = json.loads(request["body"])
    connection.sendall(answer(422, b"poison") if any("poison" in e["id"] for e in events) else GOOD)
    return True


def repeats(connection, request, number):
    """What it was sent, as a receiver does whose errors are for its developers."""
    secret = request["headers"]["authorization"]
    key = secret.split(" ", 1)[1]
    if "escaped" in request["target"]:
        connection.sendall(answer(401, json.dumps({"bad": secret}).encode()))
    elif "alone" in request["target"]:
        connection.sendall(answer(401, f"no such key: {key}".encode(), type_="text/plain"))
    else:
        connection.sendall(answer(302, b"", [("Location", f"/sign-in?key={key}")]))
    return True


CASES = {
    "repeats-escaped": repeats,
    "repeats-alone": repeats,
    "repeats-elsewhere": repeats,
    "good": says(GOOD),
    "text": says(answer(200, b"thank you", type_="text/plain")),
    "s202": says(answer(202, b"")),
    "large": says(answer(200, b"a" * (600 << 10))),
    "endless-body": floods(b"HTTP/1.1 200 OK\r\n\r\n", b"1," * 32768),
    "endless-chunks": floods(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"10000\r\n" + b" " * 65536 + b"\r\n"),
    "bomb": bomb,
    "endless-500": floods(b"HTTP/1.1 500 Oh\r\n\r\n", b"1," * 32768),
    "garbage": says(b"\x00\x01\x02 this is no HTTP at all\r\n\r\n", False),
    "ssh": says(b"SSH-2.0-OpenSSH_9.2\r\n", False),
    "nothing": says(b"", False),
    "long-length": says(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{}", False),
    "two-lengths": says(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 7\r\n\r\n{}12345", False),
    "bad-chunk": says(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n", False),
    "trailers": says(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nX-Sum: 7\r\n\r\n", False),
    "endless-head": floods(b"HTTP/1.1 200 OK\r\n", b"X-A: b\r\n" * 1000),
    "endless-line": floods(b"HTTP/1.1 200 OK\r\nX-A: ", b"a" * 65536),
    "endless-continue": floods(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 1000),
    "endless-hints": floods(b"", b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" * 1000),
    "stall-accept": stalls(b""),
    "stall-head": stalls(b"HTTP/1.1 200 OK\r\nContent-"),
    "stall-body": stalls(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"),
    "drips": drips,
    "redirect": says(answer(302, b"", [("Location", "/good")])),
    "redirect-away": says(answer(307, b"", [("Location", "http://169.254.169.254/latest/meta-data")])),
    "redirect-file": says(answer(301, b"", [("Location", "file:///etc/passwd")])),
    "redirect-nowhere": says(answer(308, b"")),
    "s304": says(b"HTTP/1.1 304 Not Modified\r\n\r\n"),
    "s400": says(answer(400, b"what?", type_="text/plain")),
    "s401": says(answer(401, b"who?", type_="text/plain")),
    "s404": says(answer(404, b"no such thing", type_="text/plain")),
    "s410": says(answer(410, b"gone", type_="text/plain")),
    "s413": says(answer(413, b"", type_="text/plain")),
    "s429": says(answer(429, b"", [("Retry-After", "120")])),
    "s500": says(answer(500, b"oh\x00\x1b[31m dear\r\n\xff", type_="text/plain")),
    "s503-far": says(answer(503, b"", [("Retry-After", "Fri, 31 Dec 2100 23:59:59 GMT")])),
    "s503-year": says(answer(503, b"", [("Retry-After", "Sun, 06 Nov 999999999 08:49:37 GMT")])),
    "s503-odd": says(answer(503, b"", [("Retry-After", "soon")])),
    "s503-minus": says(answer(503, b"", [("Retry-After", "-5")])),
    "s999": says(answer(999, b"")),
    "cut": cut_at,
    "closed": closed_at,
    "small": only_small,
    "poison": no_poison,
}

# case: end, a part of the story
EXPECTED = {
    "good": ("delivered", ""),
    "text": ("delivered", ""),
    "s202": ("delivered", ""),
    "large": ("delivered", ""),  # it is said in the first line; the rest is not needed
    "endless-body": ("delivered", ""),
    "endless-chunks": ("delivered", ""),
    "bomb": ("delivered", ""),
    "endless-500": ("retry", "answered 500"),
    "garbage": ("retry", "not HTTP"),
    "ssh": ("retry", "not HTTP"),
    "nothing": ("retry", "closed before an answer"),
    "long-length": ("retry", "cut off"),
    "two-lengths": ("retry", "more than one"),
    "bad-chunk": ("retry", ""),
    "trailers": ("delivered", ""),
    "endless-head": ("retry", "headers"),
    "endless-line": ("retry", "headers"),
    "endless-continue": ("retry", "headers"),
    "endless-hints": ("retry", "headers"),
    "stall-accept": ("retry", "did not come"),
    "stall-head": ("retry", "within"),
    "stall-body": ("retry", "bytes of its body"),
    "drips": ("retry", "within"),
    "redirect": ("retry", "a redirect, and none is followed: /good"),
    "redirect-away": ("retry", "169.254"),
    "redirect-file": ("retry", "file:"),
    "redirect-nowhere": ("retry", "308"),
    "s304": ("retry", "304"),
    "s400": ("retry", "what?"),
    "s401": ("retry", "who?"),
    "s404": ("retry", "no such thing"),
    "s410": ("refused", "gone"),
    "s413": ("refused", "413"),
    "s429": ("retry", "429"),
    "s500": ("retry", "oh"),
    "s503-far": ("retry", "503"),
    "s503-year": ("retry", "503"),
    "s503-odd": ("retry", "503"),
    "s503-minus": ("retry", "503"),
    "s999": ("retry", "999"),
}
AFTER = {"s429": 120000, "s503-far": 3600000, "s503-year": 3600000, "s503-odd": 0, "s503-minus": 0}


class Driver:
    """The channel, with targets of a configuration."""

    def __init__(self, targets, environment=None, expect_start=True):
        self.folder = tempfile.mkdtemp(prefix="intact-webhook-test.")
        path = f"{self.folder}/config.json"
        with open(path, "w") as f:
            json.dump({"webhooks": targets}, f)
        self.errors = open(f"{self.folder}/errors", "w+")
        self.process = subprocess.Popen([DRIVER, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, text=True,
                                        env=kit.ENVIRONMENT | {"SECRET": SECRETS[0], "OLD": SECRETS[1]} | (environment or {}))
        self.ends = {}
        self.told = queue.Queue()
        self.lock = threading.Lock()
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            words = line.rstrip("\n").split(" ", 3)
            if words[0] in ("takes", "reload"):
                self.told.put(line.rstrip("\n").split(" ", 2))
                continue
            with self.lock:
                assert words[0] not in self.ends, f"{words[0]} ended twice"
                self.ends[words[0]] = (words[1], int(words[2]), words[3])

    def line(self, *words):
        self.process.stdin.write(" ".join(words) + "\n")
        self.process.stdin.flush()

    def ask(self, *words):
        self.line(*words)
        return self.told.get(timeout=kit.PATIENCE_S)

    def end_of(self, id_):
        def look():
            assert self.process.poll() is None, self.read_errors()
            with self.lock:
                return self.ends.get(id_)

        return eventually(f"{id_} ends", look)

    def send(self, target, id_, subject="t"):
        self.line(target, id_, subject)
        return self.end_of(id_)

    def read_errors(self):
        self.errors.seek(0)
        return self.errors.read()

    def close(self):
        """By the end of its input, with whatever is under way."""
        self.process.stdin.close()
        status = self.process.wait(kit.PATIENCE_S)
        self.reader.join()
        text = self.read_errors()
        self.errors.close()
        shutil.rmtree(self.folder)
        assert status == 0, f"ended with {status}: {text}"
        for word in SECRETS:
            assert word[6:] not in text + str(self.ends), "a secret is told"


def target(service, path="/", **more):
    url = f"{'https' if service.context else 'http'}://127.0.0.1:{service.port}{path}"
    return {"url": url, "secret": {"env": "SECRET"}, "private": ["127.0.0.1"], "connections": 100, "connect_timeout": "1m", "timeout": "1m", **more}


class Hostile(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="intact-webhook-tls.")
        kit.certificates(cls.folder)
        cls.service = kit.Service(CASES)
        cls.url = f"http://127.0.0.1:{cls.service.port}"
        cls.drivers = []

    @classmethod
    def tearDownClass(cls):
        hold.set()
        shutil.rmtree(cls.folder)

    def driver(self, *targets, **environment):
        d = Driver(list(targets), environment)
        self.addCleanup(d.close)
        return d

    def of(self, id_, service=None):
        service = service or self.service
        with service.lock:
            return [r for r in service.requests if r["headers"].get("webhook-id") == id_]

    def test_each_kind_of_misbehaviour(self):
        d = self.driver(target(self.service, "/hasty/", timeout="10s"), target(self.service))
        for case in EXPECTED:
            hasty = "/hasty" if case.startswith("stall") or case == "drips" else ""
            d.line(f"{self.url}{hasty}/{case}", case, "t")
        for case, (end, part) in EXPECTED.items():
            found = d.end_of(case)
            self.assertEqual(found[0], end, (case, found))
            self.assertIn(part, found[2], case)
            self.assertEqual(found[1], AFTER.get(case, 0), (case, found))
            self.assertTrue(all(c.isprintable() for c in found[2]), found)
            self.assertLess(len(found[2].encode()), 200)

    def test_cut_at_every_byte(self):
        d = self.driver(target(self.service))
        whole = len(answer(200, b"fine"))
        for kind in ("cut", "closed"):
            for n in range(whole):
                d.line(f"{self.url}/{kind}~{n}", f"{kind}-{n}", "t")
        for kind in ("cut", "closed"):
            for n in range(whole):
                self.assertEqual(d.end_of(f"{kind}-{n}")[0], "retry", (kind, n))

    def test_what_is_sent(self):
        d = self.driver(target(self.service, headers={"X-Shop": "17", "Authorization": {"env": "TOKEN"}}, secret=[{"env": "SECRET"}, {"env": "OLD"}]),
                        TOKEN="Bearer abc")
        self.assertEqual(d.send(f"{self.url}/good?x=1", "o-17/3/processed", "o-17")[0], "delivered")
        [request] = self.of("o-17/3/processed")
        headers = request["headers"]
        self.assertEqual((request["method"], request["target"]), ("POST", "/good?x=1"))
        self.assertEqual(headers["content-type"], "application/cloudevents+json")
        self.assertRegex(headers["user-agent"], r"^intact-webhook/\d")
        self.assertEqual((headers["x-shop"], headers["authorization"]), ("17", "Bearer abc"))
        self.assertNotIn("expect", headers)
        self.assertLess(abs(time.time() - int(headers["webhook-timestamp"])), kit.PATIENCE_S)
        self.assertEqual(headers["webhook-signature"].split(" "), [signature(request, KEYS[0]), signature(request, KEYS[1])])
        self.assertEqual(json.loads(request["body"])["subject"], "o-17")

    def test_the_answer_is_told_without_what_the_headers_said(self):
        path = f"{self.folder}/authorization"
        for turn, key in enumerate(('s3cr"t/1', "another-one")):
            with open(path, "w") as f:
                f.write(f"Bearer {key}\n")
            if turn == 0:
                d = self.driver(target(self.service, headers={"Authorization": {"file": path}}))
            else:
                self.assertEqual(d.ask("reload")[1], "yes")
            for case, told in (("escaped", '401: {"bad": "***"}'), ("alone", "401: no such key: ***"), ("elsewhere", "/sign-in?key=***")):
                end, _, story = d.send(f"{self.url}/repeats-{case}", f"repeats-{case}-{turn}")
                self.assertEqual(end, "retry")
                self.assertTrue(story.endswith(told), story)

    def test_a_value_that_is_also_a_name_changes_no_answer(self):
        d = self.driver(target(self.service, headers={"X-Word": "Retry-After"}))
        self.assertEqual(d.send(f"{self.url}/s429", "named")[:2], ("retry", 120000))

    def test_ids_get_nothing_into_a_header(self):
        d = self.driver(target(self.service))
        self.assertEqual(d.send(f"{self.url}/good", "ö%\t\x7fx\x01webhook-evil:1")[0], "delivered")
        self.assertEqual(len(self.of("%C3%B6%25%09%7Fx%01webhook-evil:1")), 1)

    def test_batches(self):
        d = self.driver(target(self.service, "/batch/", batch=10))
        url = f"{self.url}/batch/good"
        d.line(url, *" ".join(f"b-{n} t-{n}" for n in range(5)).split())
        for n in range(5):
            self.assertEqual(d.end_of(f"b-{n}")[0], "delivered")
        requests = [r for r in list(self.service.requests) if r["target"] == "/batch/good"]
        [request] = requests
        self.assertEqual(request["headers"]["content-type"], "application/cloudevents-batch+json")
        self.assertEqual([e["id"] for e in json.loads(request["body"])], [f"b-{n}" for n in range(5)])
        self.assertEqual(request["headers"]["webhook-signature"], signature(request, KEYS[0]))
        self.assertRegex(request["headers"]["webhook-id"], r"^batch_[0-9a-f]{32}$")
        # One alone is an array all the same: receivers need to know but one form.
        self.assertEqual(d.send(url, "b-alone")[0], "delivered")
        [request] = self.of("b-alone")
        self.assertEqual(len(json.loads(request["body"])), 1)

    def test_a_batch_that_is_too_large_goes_in_parts(self):
        d = self.driver(target(self.service, batch=20))
        d.line(f"{self.url}/small~3", *" ".join(f"p-{n} t-{n}" for n in range(20)).split())
        for n in range(20):
            self.assertEqual(d.end_of(f"p-{n}")[0], "delivered")
        got = [e["id"] for r in list(self.service.requests) if r["target"] == "/small~3" and len(json.loads(r["body"])) <= 3
               for e in json.loads(r["body"])]
        self.assertEqual(got, [f"p-{n}" for n in range(20)])

    def test_one_that_is_not_taken_holds_up_its_own_task_alone(self):
        d = self.driver(target(self.service, batch=20))
        d.line(f"{self.url}/poison", *"q-1 a q-poison b q-2 a q-3 b q-4 c".split())
        ends = {id_: d.end_of(id_)[0] for id_ in ("q-1", "q-poison", "q-2", "q-3", "q-4")}
        self.assertEqual(ends, {"q-1": "delivered", "q-poison": "retry", "q-2": "delivered", "q-3": "retry", "q-4": "delivered"})
        self.assertIn("422", d.ends["q-poison"][2])
        for request in list(self.service.requests):
            if request["target"] == "/poison":
                ids = [e["id"] for e in json.loads(request["body"])]
                self.assertFalse("q-3" in ids and "q-poison" not in ids, "it went before one of the same task")

    def test_certificates(self):
        tls = {name: kit.Service(CASES, kit.tls_context(self.folder, name)) for name in ("good", "wrong", "expired", "self")}
        mutual = kit.Service(CASES, kit.tls_context(self.folder, "good", client_ca=True))
        ca = {"ca": f"{self.folder}/ca.pem"}
        mine = {"cert": f"{self.folder}/client.pem", "key": f"{self.folder}/client.key"}
        d = self.driver(*[target(s, tls=ca) for s in tls.values()], target(mutual, tls=ca | mine), target(tls["good"], "/system/"))
        anonymous = self.driver(target(mutual, tls=ca), target(tls["good"]))
        for name, part in (("wrong", "no alternative certificate subject name"), ("expired", "expired"), ("self", "self-signed certificate")):
            end, _, story = d.send(f"https://127.0.0.1:{tls[name].port}/good", f"tls-{name}")
            self.assertEqual(end, "away")
            self.assertIn(part, story)
            self.assertEqual(tls[name].requests, [])
        self.assertEqual(d.send(f"https://127.0.0.1:{tls['good'].port}/good", "tls-good")[0], "delivered")
        self.assertEqual(d.send(f"https://127.0.0.1:{mutual.port}/good", "tls-mutual")[0], "delivered")
        end, _, _ = anonymous.send(f"https://127.0.0.1:{mutual.port}/good", "tls-anonymous")
        self.assertIn(end, ("away", "retry"))  # with TLS 1.3 the request may be on its way when the refusal comes
        self.assertIn("unable to get local issuer", anonymous.send(f"https://127.0.0.1:{tls['good'].port}/good", "tls-system")[2])

    def test_names_that_lead_elsewhere(self):
        """What the name is allowed for is looked at when it is connected to."""
        inside = kit.Service(CASES)  # on 127.0.0.1, as localhost leads to
        names = {"secret": {"env": "SECRET"}, "connect_timeout": "1m", "timeout": "1m"}
        d = self.driver({"url": f"http://ip6-localhost:{inside.port}/", **names},
                        {"url": f"http://no-such-host.invalid:{inside.port}/", **names, "timeout": "10s"})
        end, _, story = d.send(f"http://ip6-localhost:{inside.port}/good", "rebound")
        self.assertEqual(end, "away")
        self.assertTrue("no public address" in story or "resolve" in story, story)  # not every machine knows that name
        end, _, story = d.send(f"http://no-such-host.invalid:{inside.port}/good", "unknown")
        self.assertEqual(end, "away")
        self.assertEqual(inside.requests, [])
        closed = f"http://127.0.0.1:{kit.free_port()}/"
        end, _, story = self.driver({**target(self.service), "url": closed}).send(closed, "closed")
        self.assertEqual(end, "away")
        self.assertIn("refused", story)

    def test_targets(self):
        d = self.driver(target(self.service, "/hooks/"), {"url": "https://*.example.org/", "secret": {"env": "SECRET"}})
        for url in (f"{self.url}/hooks/17", f"{self.url}/hooks/?a=b", "https://shop.example.org/x"):
            self.assertEqual(d.ask("takes", url)[1], "yes", url)
        for url, part in ((f"{self.url}/admin", "is below none"), (f"{self.url}/hooks/../admin", "a path without"), ("ftp://x.org/", "a URL such as"),
                          ("http://shop.example.org/", "is below none"), ("https://169.254.169.254/", "is below none"), ("o-17", "a URL such as")):
            said = d.ask("takes", url)
            self.assertEqual(said[1], "no", url)
            self.assertIn(part, said[2])
        self.assertEqual(d.send(f"{self.url}/admin", "not-allowed")[0], "away")
        self.assertEqual(self.of("not-allowed"), [])

    def test_secrets_are_read_again(self):
        path = f"{self.folder}/rotating"
        with open(path, "w") as f:
            f.write(SECRETS[0] + "\n")
        d = self.driver(target(self.service, secret={"file": path}))
        self.assertEqual(d.send(f"{self.url}/good", "rotate-1")[0], "delivered")
        with open(path, "w") as f:
            f.write(f"{SECRETS[2]} {SECRETS[0]}\n")
        self.assertEqual(d.ask("reload")[1], "yes")
        self.assertEqual(d.send(f"{self.url}/good", "rotate-2")[0], "delivered")
        with open(path, "w") as f:
            f.write("whsec_short\n")
        said = d.ask("reload")
        self.assertEqual(said[1], "no")
        self.assertEqual(d.send(f"{self.url}/good", "rotate-3")[0], "delivered")
        for id_, keys in (("rotate-1", KEYS[:1]), ("rotate-2", [KEYS[2], KEYS[0]]), ("rotate-3", [KEYS[2], KEYS[0]])):
            [request] = self.of(id_)
            self.assertEqual(request["headers"]["webhook-signature"].split(" "), [signature(request, k) for k in keys])

    def test_slow_ones_hold_up_nobody(self):
        """Neither another target nor another host of the same one, while they keep all their connections."""
        slow = kit.Service(CASES)
        d = self.driver(target(slow, connections=2), target(self.service), {**target(slow), "url": f"http://*.0.0.1:{slow.port}/"})
        for n in range(500):
            d.line(f"http://127.0.0.1:{slow.port}/stall-accept", f"slow-{n}", f"t-{n}")
        eventually("all connections are taken", lambda: len(slow.requests) >= 2)
        for n in range(200):
            self.assertEqual(d.send(f"{self.url}/good", f"quick-{n}")[0], "delivered")
        self.assertEqual(len(slow.requests), 2)
        self.assertEqual([id_ for id_ in d.ends if id_.startswith("slow")], [])
        # And the end comes with them under way.

    def test_connections_are_used_again(self):
        before = self.service.connections
        d = self.driver(target(self.service))
        for n in range(50):
            self.assertEqual(d.send(f"{self.url}/good", f"reuse-{n}")[0], "delivered")
        self.assertEqual(self.service.connections, before + 1)

    def test_http2_that_never_stops(self):
        """Pings without end, which libcurl answers by itself: the others go on, and it is cut off."""
        context = kit.tls_context(self.folder, "good")
        context.set_alpn_protocols(["h2"])
        listener = socket.create_server(("127.0.0.1", 0))
        port = listener.getsockname()[1]
        sent = []

        def frame(kind, flags=0, payload=b"", stream=0):
            return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload

        def drain(connection):
            try:
                while connection.recv(1 << 16):
                    pass
            except OSError:
                pass

        def serve():
            while True:
                try:
                    connection = context.wrap_socket(listener.accept()[0], server_side=True)
                except OSError:
                    return
                try:
                    connection.sendall(frame(4))
                    pings = frame(6, payload=b"12345678") * 4000
                    threading.Thread(target=drain, args=(connection,), daemon=True).start()
                    while not hold.is_set():
                        connection.sendall(pings)
                        sent.append(1)
                except OSError:
                    connection.close()

        threading.Thread(target=serve, daemon=True).start()
        self.addCleanup(listener.close)
        d = self.driver({**target(self.service), "url": f"https://127.0.0.1:{port}/", "tls": {"ca": f"{self.folder}/ca.pem"}, "timeout": "20s"},
                        target(self.service))
        d.line(f"https://127.0.0.1:{port}/x", "pinged", "t")
        eventually("it begins", lambda: sent)
        for n in range(20):
            self.assertEqual(d.send(f"{self.url}/good", f"beside-{n}")[0], "delivered")
        self.assertEqual(d.end_of("pinged")[0], "retry")


class Start(unittest.TestCase):
    def test_secrets_that_are_missing(self):
        service = kit.Service(CASES)
        for secret, part in (({"env": "NOT_SET"}, "environment variable NOT_SET: it is not set"), ({"file": "/nowhere"}, "file /nowhere: No such file"),
                             ({"env": "BAD"}, "environment variable BAD")):
            folder = tempfile.mkdtemp(prefix="intact-webhook-test.")
            with open(f"{folder}/config.json", "w") as f:
                json.dump({"webhooks": [target(service, secret=secret)]}, f)
            done = subprocess.run([DRIVER, f"{folder}/config.json"], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                  env=kit.ENVIRONMENT | {"BAD": "whsec_secret-that-is-none"})
            self.assertEqual(done.returncode, 2)
            self.assertIn(part, done.stderr)
            self.assertNotIn("secret-that-is-none", done.stderr)
            shutil.rmtree(folder)


if __name__ == "__main__":
    unittest.main(verbosity=2)
