#!/usr/bin/python3
"""Alerts at real receivers: Debian's Alertmanager, as it shows them itself, and a webhook that checks signatures.

Usage: alert_sinks_test.py INTACT [TEST...]
"""

import base64
import fcntl
import hashlib
import hmac
import http.server
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.error
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), ".."))

from ports import free_port  # noqa: E402 pylint: disable=wrong-import-position

INTACT = os.path.realpath(sys.argv.pop(1))
PATIENCE_S = 240  # only a failing test waits so long
KEY = base64.b64encode(b"0123456789abcdef0123456789abcdef").decode()
DEFINITION = {
    "intact": 1, "workflow": "order", "on_failure": "hold",
    "steps": [{"name": "charge", "agent": "bank", "action": "x", "undo": "none"}]}


def wait_for(what, probe):
    end = time.monotonic() + PATIENCE_S
    while True:
        found = probe()
        if found:
            return found
        if time.monotonic() > end:
            raise AssertionError(f"{what}: it does not come")
        time.sleep(0.1)


def call(url, body=None, method=None):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data=data, method=method, headers={"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
            return json.loads(answer.read() or b"null")
    except urllib.error.HTTPError as e:
        raise AssertionError(f"{url}: {e.code} {e.read()}") from e


class Receiver(http.server.ThreadingHTTPServer):
    """Takes down what it is sent; answers `status`."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.heard = []
        self.status = 200
        self.url = f"http://127.0.0.1:{self.server_port}/alerts"
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):  # noqa: N802 - the library's name
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.heard.append((dict(self.headers), body, self.server.status))
        self.send_response(self.server.status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *args):
        pass


class Server:
    def __init__(self, alerts, webhooks="", files=()):
        self.files = files  # that whoever starts it left open
        self.dir = tempfile.mkdtemp(prefix="intact-alerts.")
        self.url = f"http://127.0.0.1:{free_port()}"
        with open(f"{self.dir}/config.yaml", "w", encoding="utf-8") as f:
            f.write(f"intact_server: 1\n{webhooks}alerts:\n  group_wait: 1s\n  resolve_after: 1s\n{alerts}")
        with open(f"{self.dir}/secret", "w", encoding="utf-8") as f:
            f.write(f"whsec_{KEY}\n")
        self.log = open(f"{self.dir}/log", "w", encoding="utf-8")
        self.process = None
        self.start()
        call(f"{self.url}/v1/workflows/order", DEFINITION, "PUT")

    def start(self):
        self.process = subprocess.Popen(
            [INTACT, "serve", "--data", f"{self.dir}/data", "--listen", self.url.removeprefix("http://"), "--open",
             "--config", f"{self.dir}/config.yaml"], cwd=self.dir, stdout=subprocess.DEVNULL, stderr=self.log,
            pass_fds=self.files)
        wait_for("the server", self.is_ready)

    def is_ready(self):
        assert self.process.poll() is None, open(f"{self.dir}/log", encoding="utf-8").read()
        try:
            return call(f"{self.url}/readyz")
        except (AssertionError, urllib.error.URLError, ConnectionError):
            return None

    def fail(self, task, code="declined"):
        call(f"{self.url}/v1/tasks", {"id": task, "workflow": "order", "input": {}})
        self.end_one({"error": {"code": code, "message": "no money", "retryable": False, "effect": "none"}})

    def end_one(self, result):
        work = {"instance": "b-1", "max": 1, "wait": "20s"}
        given = wait_for("work", lambda: call(f"{self.url}/v1/agents/bank/work", work)["requests"])
        call(f"{self.url}/v1/agents/bank/work",
             {"instance": "b-1", "max": 0, "results": [{"token": given[0]["token"]} | result]})

    def mend(self, task):
        call(f"{self.url}/v1/tasks/{task}/retry", {"reason": "mended"})
        self.end_one({"output": 1})

    def close(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            status = self.process.wait(PATIENCE_S)
        finally:
            self.log.close()
        if status != 0:
            print(open(f"{self.dir}/log", encoding="utf-8").read())
        shutil.rmtree(self.dir)
        assert status == 0, status


class AlertmanagerTest(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="intact-alertmanager.")
        with open(f"{self.dir}/config.yml", "w", encoding="utf-8") as f:
            f.write("route: {receiver: nobody}\nreceivers: [{name: nobody}]\n")
        self.url = f"http://127.0.0.1:{free_port()}"
        self.process = subprocess.Popen(
            ["prometheus-alertmanager", f"--config.file={self.dir}/config.yml", f"--storage.path={self.dir}/data",
             "--cluster.listen-address=", f"--web.listen-address={self.url.removeprefix('http://')}"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_for("Alertmanager", self.is_ready)
        self.server = Server(f"  sinks: [{{alertmanager: '{self.url}'}}]\n")

    def is_ready(self):
        try:
            return call(f"{self.url}/api/v2/status")
        except (AssertionError, urllib.error.URLError, ConnectionError):
            return None

    def tearDown(self):
        self.server.close()
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.dir)

    def alerts(self):
        return call(f"{self.url}/api/v2/alerts")

    def test_it_shows_what_holds_until_it_is_over(self):
        for i in range(3):
            self.server.fail(f"t-{i}")
        found = wait_for("an alert", self.alerts)
        self.assertEqual(len(found), 1)
        self.assertEqual(found[0]["labels"], {"alertname": "intact_task_error", "workflow": "order",
                                              "step": "charge", "code": "declined"})
        self.assertIn("tasks stopped in error", found[0]["annotations"]["summary"])
        self.assertIn("t-0", found[0]["annotations"]["description"])
        self.assertEqual(found[0]["status"]["state"], "active")
        for i in range(3):
            self.server.mend(f"t-{i}")
        wait_for("its end", lambda: not self.alerts())

    def test_a_test_is_taken(self):
        sinks = call(f"{self.server.url}/v1/alerts/test", method="POST")["sinks"]
        self.assertEqual([s["took"] for s in sinks], [True, True], sinks)


class WebhookTest(unittest.TestCase):
    def setUp(self):
        self.receiver = Receiver()
        self.server = Server(
            f"  sinks: [{{webhook: '{self.receiver.url}'}}]\n",
            f"webhooks: [{{url: '{self.receiver.url}', secret: {{file: secret}}, private: ['127.0.0.0/8']}}]\n")

    def tearDown(self):
        self.server.close()
        self.receiver.shutdown()
        self.receiver.server_close()

    def check_signature(self, headers, body):
        headers = {k.lower(): v for k, v in headers.items()}
        signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
        want = base64.b64encode(hmac.new(base64.b64decode(KEY), signed, hashlib.sha256).digest()).decode()
        self.assertIn(f"v1,{want}", headers["webhook-signature"].split(" "))

    def test_it_is_told_by_signed_events(self):
        self.server.fail("t-0")
        wait_for("an event", lambda: self.receiver.heard)
        headers, body, _ = self.receiver.heard[0]
        self.check_signature(headers, body)
        event = json.loads(body)
        self.assertEqual((event["specversion"], event["type"]), ("1.0", "intact.alert"))
        alert = event["data"]["alerts"][0]
        self.assertEqual((alert["condition"], alert["notice"], alert["count"]), ("task_error", "opened", 1))
        self.server.mend("t-0")
        wait_for("its end", lambda: any(b'"notice":"resolved"' in body for _, body, _ in self.receiver.heard))
        self.assertEqual(len(self.receiver.heard), 2)

    def test_one_that_fails_is_told_later_under_the_same_name(self):
        self.receiver.status = 500
        self.server.fail("t-0")
        wait_for("two tries", lambda: len(self.receiver.heard) >= 2)
        self.receiver.status = 204
        wait_for("success", lambda: self.receiver.heard[-1][2] == 204)
        names = {json.loads(body)["id"] for _, body, _ in self.receiver.heard}
        self.assertEqual(len(names), 1, names)
        self.server.fail("t-1", "other")
        wait_for("the next one", lambda: any(b'"code":"other"' in body for _, body, _ in self.receiver.heard))


class Endless(threading.Thread):
    """An Alertmanager whose answers have no end."""

    def __init__(self, head):
        super().__init__(daemon=True)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        self.head, self.sent = head, []
        self.start()

    def run(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            with connection:
                self.sent.append(0)
                try:
                    connection.recv(65536)
                    connection.sendall(self.head)
                    while self.sent[-1] < 1 << 30:
                        connection.sendall(b" " * 65536)
                        self.sent[-1] += 65536
                except OSError:
                    pass

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.join()


class HostileTest(unittest.TestCase):
    def test_an_answer_without_end_is_not_read(self):
        for status, took in ("200 OK", True), ("500 Oh", False):
            endless = Endless(f"HTTP/1.1 {status}\r\n\r\n".encode())
            server = Server(f"  sinks: [{{alertmanager: '{endless.url}'}}]\n")
            try:
                sinks = call(f"{server.url}/v1/alerts/test", method="POST")["sinks"]
                self.assertEqual(sinks[1]["took"], took, sinks)
                self.assertLess(max(endless.sent), 32 << 20, "what the sockets hold, and no more")
            finally:
                server.close()
                endless.close()

    def test_a_command_gets_no_file_of_the_server(self):
        with open("/etc/hostname", encoding="utf-8") as secret:
            number = fcntl.fcntl(secret, fcntl.F_DUPFD, 50)
            server = Server("  sinks:\n    - command: [/bin/sh, -c, 'ls -l /proc/self/fd > files']\n", files=(number,))
            try:
                self.assertIn(str(number), os.listdir(f"/proc/{server.process.pid}/fd"))
                sinks = call(f"{server.url}/v1/alerts/test", method="POST")["sinks"]
                self.assertTrue(sinks[1]["took"], sinks)
                with open(f"{server.dir}/files", encoding="utf-8") as f:
                    self.assertNotIn("hostname", f.read())
            finally:
                server.close()
                os.close(number)


class CommandTest(unittest.TestCase):
    def test_one_that_is_not_there_is_told_of_at_the_start(self):
        server = Server("  sinks:\n    - command: [/nowhere/page]\n    - command: [/bin/true]\n    - command: [/etc/passwd]\n")
        try:
            with open(f"{server.dir}/log", encoding="utf-8") as f:
                told = [line for line in f if "event=alert_command_missing" in line]
            self.assertEqual(len(told), 2, told)
            self.assertIn('path="/nowhere/page"', told[0])
            self.assertIn("alerts.sinks[0].command", told[0])
            self.assertIn("No such file or directory", told[0])
            self.assertIn("alerts.sinks[2].command", told[1])
            self.assertIn("Permission denied", told[1])
        finally:
            server.close()


if __name__ == "__main__":
    unittest.main()
