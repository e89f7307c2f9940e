"""What the tests of the command line share: a real server, an agent, a terminal.

Whoever imports it was started with ROOT INTACT DOCUMENT [TEST...].
"""

import json
import os
import pty
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.request

ROOT, INTACT, DOCUMENT = (os.path.realpath(p) for p in sys.argv[1:4])
PATIENCE_S = 240  # only a failing test waits so long
WORKFLOW = """intact: 1
workflow: order
inputs:
  sku: {type: string, required: true}
steps:
  - name: reserve
    agent: stock
    action: reserve
    input: {sku: "${ .input.sku }"}
    retry: {attempts: 1}
    undo: none
"""
SGR = re.compile(r"\x1b\[[0-9;]*m")
CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\x80-\x9f\u202e]")


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


class Server:
    """A server on a port of its own; the same one again after a kill."""

    def __init__(self, *flags):
        self.folder = tempfile.mkdtemp(prefix="intact-cli-")
        self.flags = flags
        self.port = 0
        self.start()

    def start(self):
        with open(self.folder + "/log", "ab") as log:
            self.process = self.popen(log)
        line = self.process.stdout.readline()
        if "listening" not in line:
            raise RuntimeError(read(self.folder + "/log"))
        self.port = int(line.split()[3])
        self.token = read(self.folder + "/data/admin-token").strip()
        self.url = f"http://127.0.0.1:{self.port}"
        self.env = dict(os.environ, INTACT_SERVER=self.url, INTACT_TOKEN=self.token, LC_ALL="C.UTF-8", TERM="xterm")
        self.env.pop("NO_COLOR", None)

    def popen(self, log):
        return subprocess.Popen(
            [INTACT, "serve", "--data", self.folder + "/data", "--listen", f"127.0.0.1:{self.port}", "--drain", "100ms",
             "--scan-every", "100ms", "--grace", "100ms", *self.flags],
            stdout=subprocess.PIPE, stderr=log, text=True)

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def end(self):
        """Who waits for an answer has it by then."""
        self.process.terminate()
        self.process.wait()
        self.process.stdout.close()

    def close(self):
        self.kill()
        shutil.rmtree(self.folder)

    def run(self, *words, status=0, input=None, env=None):
        done = subprocess.run([INTACT, *words], env={**self.env, **(env or {})}, input=input, capture_output=True,
                              text=True, timeout=PATIENCE_S, check=False)
        if status is not None and done.returncode != status:
            raise AssertionError(f"intact {' '.join(words)}: {done.returncode}, expected {status}: {done.stdout}{done.stderr}")
        return done

    def call(self, path, body=None):
        request = urllib.request.Request(self.url + path, data=json.dumps(body).encode() if body is not None else None,
                                         headers={"Authorization": "Bearer " + self.token,
                                                  "Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
            return json.load(answer)

    def answered(self, method, route):
        """How many such requests have got the whole of a good answer."""
        request = urllib.request.Request(self.url + "/metrics", headers={"Authorization": "Bearer " + self.token})
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
            text = answer.read().decode()
        found = re.search(rf'^intact_http_requests_total\{{method="{method}",route="{route}",code="2xx"\}} (\d+)$', text, re.M)
        return int(found[1]) if found else 0

    def count(self):
        ids, cursor = [], ""
        while True:
            page = self.call("/v1/tasks?limit=500" + cursor)
            ids += [t["id"] for t in page["tasks"]]
            if not page["next"]:
                return ids
            cursor = "&cursor=" + page["next"]

    def path(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        return path

    def at_terminal(self, *words, env=None):
        return on_terminal(words, {**self.env, **(env or {})})


def on_terminal(words, env, types=b""):
    """What a terminal is sent, on which somebody types that."""
    pid, fd = pty.fork()
    if pid == 0:
        os.execve(INTACT, [INTACT, *words], env)
    os.write(fd, types)
    out = b""
    while True:
        try:
            part = os.read(fd, 65536)
        except OSError:
            break
        if not part:
            break
        out += part
    os.close(fd)
    os.waitpid(pid, 0)
    return out.decode("utf-8", "replace").replace("\r\n", "\n")


class Agent(threading.Thread):
    """Does all that it is given: what has "fail" for its sku fails."""

    def __init__(self, server, error=None):
        super().__init__(daemon=True)
        self.server, self.error, self.ends = server, error, False
        self.start()

    def run(self):
        results = []
        while not self.ends:
            answer = self.server.call("/v1/agents/stock/work", {"instance": "one", "max": 100, "wait": "200ms",
                                                                "results": results})
            results = []
            for r in answer["requests"]:
                result = {"token": r["token"]}
                if "fail" in json.dumps(r["input"]):
                    result["error"] = self.error or {"code": "sold_out", "message": "no more", "retry": "no"}
                else:
                    result["output"] = {"id": 7}
                results.append(result)

    def close(self):
        self.ends = True
        self.join()


def wait_for(condition, what):
    end = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > end:
            raise AssertionError("not within patience: " + what)
        time.sleep(0.02)


def lines(count, start=0):
    return "".join(f'{{"workflow": "order", "id": "o-{i}", "input": {{"sku": "s{i}"}}}}\n' for i in range(start, start + count))


class WithServer(unittest.TestCase):
    flags = ()

    def setUp(self):
        self.s = Server(*self.flags)
        self.s.run("workflow", "put", self.s.path("order.yaml", WORKFLOW))

    def tearDown(self):
        self.s.close()
