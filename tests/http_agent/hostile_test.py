#!/usr/bin/python3
"""Services that misbehave, and what the HTTP agent makes of it: the right kind of error, with words that say what happened.

Usage: hostile_test.py INTACT [TEST...]
"""

import gzip
import os
import shutil
import socket
import sys
import tempfile
import threading
import time
import unittest
import zlib

import kit
from kit import answer, eventually, flood, reset

INTACT = os.path.realpath(sys.argv.pop(1))
SECRET = "s3cr3t-value-never-to-be-seen"
GOOD = answer(200, b'{"receipt": 17}')
hold = threading.Event()


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


def cut_at(connection, request, number):
    connection.sendall(GOOD[:number])
    reset(connection)
    return False


def closed_at(connection, request, number):
    connection.sendall(GOOD[:number])
    return False


def stalled_at(connection, request, number):
    connection.sendall(GOOD[:number])
    hold.wait(kit.PATIENCE_S)
    return False


def endless_body(connection, request, number):
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n[")
    return flood(connection, b"1," * 32768)


def endless_chunks(connection, request, number):
    connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: application/json\r\n\r\n")
    return flood(connection, b"10000\r\n" + b" " * 65536 + b"\r\n")


def endless_head(connection, request, number):
    connection.sendall(b"HTTP/1.1 200 OK\r\n")
    return flood(connection, b"X-A: b\r\n" * 1000)


def endless_line(connection, request, number):
    connection.sendall(b"HTTP/1.1 200 OK\r\nX-A: ")
    return flood(connection, b"a" * 65536)


def endless_continue(connection, request, number):
    return flood(connection, b"HTTP/1.1 100 Continue\r\n\r\n" * 1000)


def bomb(connection, request, number):
    packed = gzip.compress(b" " * (64 << 20))
    connection.sendall(answer(200, packed, [("Content-Encoding", "gzip")]))
    return False


def echo(connection, request, number):
    said = ", ".join(f"{k}: {v}" for k, v in request["headers"].items())
    connection.sendall(answer(500, said.encode(), type_="text/plain"))
    return True


def echo_ok(connection, request, number):
    connection.sendall(answer(200, ('{"auth": "' + request["headers"].get("authorization", "") + '"}').encode(),
                              [("X-Echo", request["headers"].get("authorization", ""))]))
    return True


def not_utf8(connection, request, number):
    connection.sendall(answer(200, b'{"a": "\xff\xfe"}'))
    return True


counters = {}
counters_lock = threading.Lock()


def nth(request):
    key = request["headers"]["idempotency-key"]
    with counters_lock:
        counters[key] = counters.get(key, 0) + 1
        return counters[key]


def fails_once(status, headers=()):
    def case(connection, request, number):
        connection.sendall(answer(status, b"later", headers, "text/plain") if nth(request) == 1 else GOOD)
        return True

    return case


def working(connection, request, number):
    n = nth(request)
    if n == 1:
        connection.sendall(answer(202, b"", [("Location", "/jobs/working"), ("Retry-After", "0")]))
    elif n == 2:
        connection.sendall(answer(202, b"", [("Retry-After", "0")]))
    else:
        connection.sendall(answer(200, ('{"by": "' + request["method"] + " " + request["target"] + '"}').encode()))
    return True


def too_early(connection, request, number):
    connection.sendall(answer(425, b"", [("Retry-After", "0")]) if nth(request) < 4 else GOOD)
    return True


def echo_json(connection, request, number):
    connection.sendall(answer(200, ('{"target": "' + request["target"] + '"}').encode()))
    return True


CASES = {
    "good": says(GOOD),
    "garbage": says(b"\x00\x01\x02 this is no HTTP at all\r\n\r\n", False),
    "ssh": says(b"SSH-2.0-OpenSSH_9.2\r\n", False),
    "nothing": says(b"", False),
    "not-json": says(answer(200, b"<html>sorry</html>")),
    "half-json": says(answer(200, b'{"receipt": 1')),
    "two-json": says(answer(200, b'{"a": 1} {"b": 2}')),
    "twice": says(answer(200, b'{"a": 1, "a": 2}')),
    "deep": says(answer(200, b"[" * 200 + b"]" * 200)),
    "not-utf8": not_utf8,
    "utf16": says(answer(200, "{}".encode("utf-16"), type_="application/json; charset=utf-16")),
    "latin1": says(answer(200, "Grüße".encode("latin-1"), type_="text/plain; charset=ISO-8859-1")),
    "bom": says(answer(200, b'\xef\xbb\xbf{"a": 1}')),
    "text": says(answer(200, b"all is well", type_="text/plain")),
    "empty": says(answer(204, b"")),
    "long-length": says(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{}", False),
    "short-length": says(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1\r\n\r\n{}", False),
    "two-lengths": says(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 7\r\n\r\n{}12345", False),
    "bad-length": says(b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n{}", False),
    "bad-chunk": says(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n", False),
    "cut-chunk": says(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n", False),
    "trailers": says(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nX-Sum: 7\r\nContent-Length: 9\r\n\r\n", False),
    "bad-gzip": says(answer(200, b"not packed", [("Content-Encoding", "gzip")])),
    "cut-gzip": says(answer(200, gzip.compress(b'{"a": "' + os.urandom(500).hex().encode() + b'"}')[:200], [("Content-Encoding", "gzip")])),
    "gzip": says(answer(200, gzip.compress(b'{"receipt": 17}'), [("Content-Encoding", "gzip")])),
    "deflate": says(answer(200, zlib.compress(b'{"receipt": 17}'), [("Content-Encoding", "deflate")])),
    "bomb": bomb,
    "large": says(answer(200, b'"' + b"a" * (600 << 10) + b'"')),
    "endless-body": endless_body,
    "endless-chunks": endless_chunks,
    "endless-head": endless_head,
    "endless-line": endless_line,
    "endless-continue": endless_continue,
    "stall-accept": stalls(b""),
    "stall-head": stalls(b"HTTP/1.1 200 OK\r\nContent-"),
    "stall-body": stalls(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"),
    "redirect": says(answer(302, b"", [("Location", "/good")])),
    "redirect-away": says(answer(307, b"", [("Location", "http://169.254.169.254/latest/meta-data")])),
    "redirect-loop": says(answer(302, b"", [("Location", "/redirect-loop")])),
    "redirect-nowhere": says(answer(302, b"")),
    "redirect-file": says(answer(302, b"", [("Location", "file:///etc/passwd")])),
    "working-away": says(answer(202, b"", [("Location", "http://127.0.0.2:1/jobs/1")])),
    "working": working,
    "early": too_early,
    "s400": says(answer(400, b"what?", type_="text/plain")),
    "s404": says(answer(404, b"no such thing", type_="text/plain")),
    "s408": says(answer(408, b"")),
    "s409": says(answer(409, b'{"why": "taken"}')),
    "s422": says(answer(422, b'{"why": "nonsense"}')),
    "s429": says(answer(429, b"", [("Retry-After", "7200")])),
    "s500": says(answer(500, b"oh\x00\x1b[31m dear\r\n\xff", type_="text/plain")),
    "s503-date": says(answer(503, b"", [("Retry-After", "Fri, 31 Dec 2100 23:59:59 GMT")])),
    "s500-text": says(answer(500, b"odd, but done", type_="text/plain")),
    "s503-odd": says(answer(503, b"", [("Retry-After", "soon")])),
    "s999": says(answer(999, b"")),
    "once-503": fails_once(503),
    "once-429": fails_once(429, [("Retry-After", "0")]),
    "once-500": fails_once(500),
    "echo": echo,
    "echo-ok": echo_ok,
    "cut": cut_at,
    "closed": closed_at,
    "stalled": stalled_at,
    "a b": says(GOOD),
    "target": echo_json,
}

# case: error code, effect, a part of the message
EXPECTED = {
    "garbage": ("bad_answer", "unknown", "not HTTP"),
    "ssh": ("bad_answer", "unknown", "not HTTP"),
    "nothing": ("bad_answer", "unknown", "closed before an answer"),
    "not-json": ("bad_answer", "unknown", "not JSON"),
    "half-json": ("bad_answer", "unknown", "not JSON"),
    "two-json": ("bad_answer", "unknown", "not JSON"),
    "twice": ("bad_answer", "unknown", "not JSON"),
    "deep": ("bad_answer", "unknown", "not JSON"),
    "not-utf8": ("bad_answer", "unknown", "not text in UTF-8"),
    "utf16": ("bad_answer", "unknown", "utf-16"),
    "long-length": ("bad_answer", "unknown", "cut off"),
    "short-length": ("bad_answer", "unknown", "not JSON"),
    "two-lengths": ("bad_answer", "unknown", "more than one"),
    "bad-length": ("bad_answer", "unknown", ""),
    "bad-chunk": ("bad_answer", "unknown", ""),
    "cut-chunk": ("bad_answer", "unknown", ""),
    "bad-gzip": ("bad_answer", "unknown", "Content-Encoding"),
    "cut-gzip": ("bad_answer", "unknown", ""),
    "bomb": ("too_large", "unknown", "max_answer"),
    "large": ("too_large", "unknown", "max_answer"),
    "endless-body": ("too_large", "unknown", "max_answer"),
    "endless-chunks": ("too_large", "unknown", "max_answer"),
    "endless-head": ("too_large", "unknown", "headers"),
    "endless-line": ("too_large", "unknown", "headers"),
    "endless-continue": ("too_large", "unknown", "headers"),
    "stall-accept": ("timeout", "unknown", "did not come"),
    "stall-head": ("timeout", "unknown", "within"),
    "stall-body": ("timeout", "unknown", "bytes of its body"),
    "redirect": ("redirect", "unknown", "/good"),
    "redirect-away": ("redirect", "unknown", "169.254"),
    "redirect-loop": ("redirect", "unknown", "redirect-loop"),
    "redirect-nowhere": ("redirect", "unknown", "302"),
    "redirect-file": ("redirect", "unknown", "file:"),
    "working-away": ("bad_answer", "unknown", "127.0.0.2"),
    "s400": ("http_400", "none", "what?"),
    "s404": ("http_404", "none", "no such thing"),
    "s408": ("http_408", "unknown", "408"),
    "s409": ("http_409", "none", "taken"),
    "s422": ("http_422", "none", "nonsense"),
    "s429": ("http_429", "none", "429"),
    "s500": ("http_500", "unknown", "oh"),
    "s503-date": ("http_503", "unknown", "503"),
    "s503-odd": ("http_503", "unknown", "503"),
    "s999": ("bad_answer", "unknown", "999"),
    "echo": ("http_500", "unknown", "authorization: Bearer ***"),
}

OUTPUTS = {
    "good": {"receipt": 17},
    "latin1": "Grüße",
    "bom": {"a": 1},
    "text": "all is well",
    "empty": None,
    "gzip": {"receipt": 17},
    "trailers": {},
    "deflate": {"receipt": 17},
    "early": {"receipt": 17},
    "working": {"by": "GET /jobs/working"},
    "once-503": {"receipt": 17},
    "once-429": {"receipt": 17},
    "once-500": {"receipt": 17},
    "echo-ok": {"auth": "Bearer ***"},
}


def workflow(name, agent, **http):
    return {"intact": 1, "workflow": name, "steps": [
        {"name": "call", "agent": agent, "undo": "none", "complete_by": "2m", "retry": {"attempts": 1},
         "http": {"path": "/${ .input.case }", "body": {"n": 1}, **http}}]}


def attempt_of(task):
    return task["steps"][0]["attempts"][-1]


class Hostile(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="intact-http-tls.")
        kit.certificates(cls.folder)
        cls.service = kit.Service(CASES)
        cls.tls = {name: kit.Service(CASES, kit.tls_context(cls.folder, name)) for name in ("good", "wrong", "expired", "self")}
        cls.mutual = kit.Service(CASES, kit.tls_context(cls.folder, "good", client_ca=True))
        cls.nobody = socket.socket()
        cls.nobody.bind(("127.0.0.1", 0))  # and does not listen
        cls.gone = cls.nobody.getsockname()[1]
        with open(f"{cls.folder}/secret", "w") as f:
            f.write(SECRET + "\n")
        plain = {"private": ["127.0.0.1"], "places": 1000, "connections": 500, "retry": {"attempts": 1}, "connect_timeout": "1m",
                 "headers": {"Authorization": "Bearer ${ secret.key }"}}
        url = f"http://127.0.0.1:{cls.service.port}"
        ca = {"tls": {"ca": f"{cls.folder}/ca.pem"}}
        services = {
            "plain": plain | {"url": url},
            "hasty": plain | {"url": url, "timeout": "10s"},
            "small": plain | {"url": url, "max_answer": "1MiB"},
            "again": plain | {"url": url, "retry": {"attempts": 3, "wait": "10ms"}},
            "guided": plain | {"url": url, "redirects": 5},
            "gone": plain | {"url": f"http://127.0.0.1:{cls.gone}", "retry": {"attempts": 2, "wait": "10ms"}},
            "half": plain | {"url": f"http://localhost:{cls.gone}"},  # ::1 is not allowed, and 127.0.0.1 refuses
            "unknown": plain | {"url": "http://no-such-host.invalid"},
            "keyed": plain | {"url": url, "query": {"key": "${ secret.key }"}},
            "mutual": plain | {"url": f"https://127.0.0.1:{cls.mutual.port}",
                               "tls": {"ca": f"{cls.folder}/ca.pem", "cert": f"{cls.folder}/client.pem", "key": f"{cls.folder}/client.key"}},
            "anonymous": plain | {"url": f"https://127.0.0.1:{cls.mutual.port}"} | ca,
            "clear": plain | {"url": f"http://127.0.0.1:{cls.tls['good'].port}"},
            "secure": plain | {"url": f"https://127.0.0.1:{cls.service.port}", "connect_timeout": "3s"} | ca,
        }
        for name, service in cls.tls.items():
            services[f"tls-{name}"] = plain | {"url": f"https://127.0.0.1:{service.port}"} | ca
        services["tls-system"] = plain | {"url": f"https://127.0.0.1:{cls.tls['good'].port}"}
        config = {"intact_http": 1, "secrets": {"key": {"file": f"{cls.folder}/secret"}}, "services": services}
        cls.server = kit.Server(INTACT, config, ["--open"],
                                {"http_proxy": "http://127.0.0.1:1", "https_proxy": "http://127.0.0.1:1", "ALL_PROXY": "http://127.0.0.1:1"})
        cls.server.start()
        for name in services:
            cls.server.call("PUT", f"/v1/agents/{name}", {"breaker": {"enabled": False}})  # they shall misbehave all the time
            cls.server.put(workflow(name, name))
        cls.server.put(workflow("careful", "plain", permanent=[404], completed=[500], output="{s: .status, t: .headers[\"content-type\"]}"))
        cls.server.put(workflow("queried", "keyed", query={"q": "${ .input.q }"}, headers={"X-A": "${ .input.a }"}))

    @classmethod
    def tearDownClass(cls):
        hold.set()
        cls.server.stop()
        text = cls.server.close()
        shutil.rmtree(cls.folder)
        assert SECRET not in text, "a secret in the log"

    def submit(self, name, case, **more):
        id_ = f"{name}-{case}".replace("~", ".").replace(" ", "_")
        self.server.submit(name, id_, {"case": case, **more})
        return id_

    def check_error(self, id_, code, effect, part):
        task = self.server.ended(id_)
        attempt = attempt_of(task)
        self.assertIn("error", attempt, task)
        error = attempt["error"]
        self.assertEqual(error["code"], code, (id_, error))
        self.assertEqual(attempt["effect"], effect, (id_, error))
        self.assertIn(part, error["message"], id_)
        self.assertNotIn(SECRET, str(task))
        self.assertTrue(all(c.isprintable() for c in error["message"]), error["message"])
        return attempt

    def test_each_kind_of_misbehaviour(self):
        ids = {case: self.submit("hasty" if case.startswith("stall") else "small" if case == "bomb" else "plain", case) for case in EXPECTED}
        for case, expected in EXPECTED.items():
            self.check_error(ids[case], *expected)

    def test_each_kind_of_answer(self):
        ids = {case: self.submit("again", case) for case in OUTPUTS}
        for case, output in OUTPUTS.items():
            task = self.server.ended(ids[case])
            self.assertEqual(task["state"], "processed", (case, task))
            self.assertEqual(task["steps"][0]["output"], output, case)
            self.assertNotIn(SECRET, str(task))

    def test_cut_at_every_byte(self):
        ids = {(kind, n): self.submit("hasty" if kind == "stalled" else "plain", f"{kind}~{n}") for kind in ("cut", "closed", "stalled") for n in range(len(GOOD))}
        for (kind, n), id_ in ids.items():
            self.check_error(id_, "timeout" if kind == "stalled" else "bad_answer", "unknown", "")

    def test_certificates(self):
        for name, part in (("wrong", "no alternative certificate subject name"), ("expired", "expired"), ("self", "self-signed certificate")):
            self.check_error(self.submit(f"tls-{name}", "good"), "tls", "none", part)
            self.assertEqual(self.tls[name].requests, [])
        self.check_error(self.submit("tls-system", "good"), "tls", "none", "unable to get local issuer")
        self.assertEqual(self.server.ended(self.submit("tls-good", "good"))["state"], "processed")
        self.assertEqual(self.server.ended(self.submit("mutual", "good"))["state"], "processed")
        self.assertEqual(self.server.ended(self.submit("anonymous", "good"))["state"], "compensated")
        self.check_error(self.submit("secure", "good"), "unreachable", "none", "no connection came about")
        self.check_error(self.submit("clear", "good"), "bad_answer", "unknown", "")

    def test_nobody_there(self):
        attempt = self.check_error(self.submit("gone", "good"), "unreachable", "none", "refused")
        self.assertIn(f"127.0.0.1:{self.gone}", attempt["error"]["message"])
        self.check_error(self.submit("half", "good"), "unreachable", "none", "refused")
        self.check_error(self.submit("unknown", "good"), "unreachable", "none", "resolve")

    def test_lists_of_the_step_decide(self):
        task = self.server.ended(self.submit("careful", "s500-text"))
        self.assertEqual(task["state"], "processed", task)
        self.assertEqual(task["steps"][0]["output"], {"s": 500, "t": "text/plain"})
        self.check_error(self.submit("careful", "s404"), "http_404", "none", "no such thing")

    def test_redirects_where_they_are_allowed(self):
        self.assertEqual(self.server.ended(self.submit("guided", "redirect"))["steps"][0]["output"], {"receipt": 17})
        self.check_error(self.submit("guided", "redirect-loop"), "redirect", "unknown", "too often")
        self.check_error(self.submit("guided", "redirect-away"), "redirect", "unknown", "another server")
        self.check_error(self.submit("guided", "redirect-file"), "redirect", "unknown", "another server")

    def test_values_stay_values(self):
        for case in ("../admin", "a/b", "x?y=z", "x#y", "%2e%2e", "a\r\nX-Evil: 1", "ü"):
            self.server.submit("plain", f"v-{abs(hash(case))}", {"case": case})
        for case in ("..", "."):
            self.server.submit("plain", f"dots-{len(case)}", {"case": case})
            self.check_error(f"dots-{len(case)}", "bad_request", "none", "neither")
        self.server.submit("plain", "null", {"case": None})
        self.check_error("null", "bad_request", "none", "path[1]")
        self.server.submit("queried", "q-1", {"case": "target", "q": "a&b=c ü", "a": "fine"})
        self.assertIn("q=a%26b%3Dc%20%C3%BC&key=***", str(self.server.ended("q-1")["steps"][0]["output"]))
        for n, value in enumerate(("a\r\nX-Evil: 1", "a\nb", "a\x7f", "x" * 9000)):
            self.server.submit("queried", f"q-evil-{n}", {"case": "target", "q": "", "a": value})
            self.check_error(f"q-evil-{n}", "bad_request", "none", "headers.X-A")
        for request in list(self.service.requests):
            self.assertNotIn("x-evil", request["headers"])
            self.assertNotIn("/admin", request["target"].replace("%2F", ""))

    def test_what_is_sent(self):
        self.server.submit("plain", "sent-1", {"case": "good"})
        self.server.ended("sent-1")
        [request] = self.service.of_key("sent-1/call")
        headers = request["headers"]
        self.assertEqual(headers["authorization"], f"Bearer {SECRET}")
        self.assertEqual((headers["intact-task"], headers["intact-step"], headers["intact-attempt"], headers["intact-direction"]),
                         ("sent-1", "call", "1", "forward"))
        self.assertRegex(headers["intact-complete-by"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")
        self.assertRegex(headers["traceparent"], r"^00-[0-9a-f]{32}-[0-9a-f]{16}-01$")
        self.assertNotIn("intact-token", headers)
        self.assertEqual((request["method"], request["body"], headers["content-type"]), ("POST", b'{"n": 1}', "application/json"))

    def test_connections_are_used_again(self):
        for n in range(20):
            self.server.submit("plain", f"reuse-{n}", {"case": "good"})
            self.server.ended(f"reuse-{n}")
        self.assertLess(self.service.connections, len(self.service.requests))


if __name__ == "__main__":
    unittest.main(verbosity=2)
