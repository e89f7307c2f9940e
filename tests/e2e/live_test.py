#!/usr/bin/python3
"""`intact watch` and `intact top` on a real terminal: a pty, with an emulator that tells what is on the screen.

Usage: live_test.py INTACT [TEST...]
"""

import fcntl
import json
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unittest
import urllib.error
import urllib.request

import pyte

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), ".."))

from ports import free_port  # noqa: E402 pylint: disable=wrong-import-position

INTACT = os.path.realpath(sys.argv.pop(1))
PATIENCE_S = 240  # only a failing test waits so long
HIDDEN = ("INTACT_SERVER", "INTACT_TOKEN", "INTACT_CA", "INTACT_INSTALLATION", "NO_COLOR", "http_proxy", "HTTP_PROXY")
ENVIRONMENT = {k: v for k, v in os.environ.items() if k not in HIDDEN} | {
    "TERM": "xterm", "LC_ALL": "C.UTF-8", "XDG_STATE_HOME": "/dev/null"}  # nothing is remembered of servers


class Server:
    def __init__(self, copy_of=None):
        self.dir = tempfile.mkdtemp(prefix="intact-live.")
        if copy_of:  # of the same installation
            copy = f"{self.dir}/copy.db"
            for words in (["backup", copy], ["restore", copy, "--data", f"{self.dir}/data"]):
                subprocess.run([INTACT, *words], env={**ENVIRONMENT, "INTACT_SERVER": copy_of.url}, check=True,
                               stdout=subprocess.DEVNULL)
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.start()

    def start(self):
        self.process = subprocess.Popen(
            [INTACT, "serve", "--data", f"{self.dir}/data", "--listen", f"127.0.0.1:{self.port}", "--open"],
            env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            try:
                with urllib.request.urlopen(f"{self.url}/readyz", timeout=PATIENCE_S):
                    return
            except OSError:
                time.sleep(0.05)
        raise RuntimeError("the server does not become ready")

    def kill(self):
        self.process.kill()
        self.process.wait()

    def end(self):
        self.kill()
        shutil.rmtree(self.dir)

    def call(self, path, body=None, method=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {"Content-Type": "application/json"}, method=method)
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
            return json.load(answer)

    def workflow(self, name, steps, **more):
        definition = {"intact": 1, "workflow": name, "steps": steps} | more
        self.call(f"/v1/workflows/{name}", definition, "PUT")

    def submit(self, workflow, task):
        self.call("/v1/tasks", {"workflow": workflow, "id": task, "input": {}})

    def fetch(self, agent):
        """One request of work."""
        while True:
            got = self.call(f"/v1/agents/{agent}/work", {"instance": "me", "max": 1, "wait": "30s"})["requests"]
            if got:
                return got[0]

    def answer(self, agent, request, **result):
        body = {"instance": "me", "max": 0, "results": [{"token": request["token"]} | result]}
        self.call(f"/v1/agents/{agent}/work", body)


class Program:
    """A program on a terminal of its own, in the foreground of a session as a shell has it."""

    def __init__(self, args, server, columns=100, rows=24, environment=None):
        self.screen = pyte.Screen(columns, rows)
        self.stream = pyte.ByteStream(self.screen)
        self.raw = b""
        self.told, tells = os.pipe()
        orders, self.orders = os.pipe()
        pid, self.fd = pty.fork()
        if pid == 0:
            signal.signal(signal.SIGTTOU, signal.SIG_IGN)
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
            shell(args, ENVIRONMENT | {"INTACT_SERVER": server.url} | (environment or {}), tells, orders)
        self.shell = pid
        os.close(tells)
        os.close(orders)
        self.events = b""
        self.before = self.event("began")["modes"]

    def read(self, wait_s=0.05):
        """False: there is nothing more to come."""
        ready, _, _ = select.select([self.fd, self.told], [], [], wait_s)
        if self.told in ready:
            got = os.read(self.told, 65536)
            self.events += got
            if not got:
                return False
        if self.fd in ready:
            try:
                got = os.read(self.fd, 65536)
            except OSError:
                return False
            self.raw += got
            self.stream.feed(got)
        return True

    def text(self):
        return "\n".join(line.rstrip() for line in self.screen.display).rstrip()

    def wait(self, what, because=""):
        """Until it is on the screen: a text, or what a function says."""
        holds = what if callable(what) else lambda text: what in text
        end = time.monotonic() + PATIENCE_S
        while not holds(self.text()):
            if time.monotonic() > end or not self.read():
                if holds(self.text()):
                    break
                raise AssertionError(f"not on the screen: {because or what}\n{self.text()}")

    def event(self, name):
        """What the shell tells."""
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            for line in self.events.split(b"\n")[:-1]:
                told = json.loads(line)
                if told["event"] == name:
                    self.events = self.events.replace(line + b"\n", b"", 1)
                    return told
            self.read()
        raise AssertionError(f"the program has not {name}\n{self.text()}")

    def type(self, keys):
        os.write(self.fd, keys)

    def resize(self, columns, rows):
        self.screen.resize(rows, columns)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def go_on(self):
        os.write(self.orders, b"c")

    def read_rest(self):
        """All that was written: it may be on its way when the writer has ended. Behind it comes an error, once nobody has the terminal."""
        while True:
            try:
                got = os.read(self.fd, 65536)
            except OSError:
                return
            self.raw += got
            self.stream.feed(got)

    def end(self):
        """What it ended with: a status, or minus a signal; the terminal has to be as it was."""
        told = self.event("ended")
        self.read_rest()
        os.waitpid(self.shell, 0)
        for fd in (self.fd, self.told, self.orders):
            os.close(fd)
        assert told["modes"] == self.before, "the modes of the terminal were not restored"
        last = max(self.raw.rfind(b"\x1b[?25l"), self.raw.rfind(b"\x1b[?25h"))
        assert last < 0 or self.raw[last:last + 6] == b"\x1b[?25h", "the cursor was left hidden"
        assert self.raw.count(b"\x1b[?1049h") == self.raw.count(b"\x1b[?1049l"), "left on the other screen"
        return told["status"]


def modes():
    return [x if isinstance(x, int) else [c if isinstance(c, int) else c.hex() for c in x] for x in termios.tcgetattr(0)]


def shell(args, environment, tells, orders):
    """Runs one job, as a shell with job control does. Never returns."""
    def tell(event, **more):
        os.write(tells, json.dumps({"event": event, "modes": modes()} | more).encode() + b"\n")

    tell("began")
    go, gone = os.pipe()
    job = os.fork()
    if job == 0:
        os.setpgid(0, 0)
        os.read(go, 1)
        # Whoever was started in the background of a script has these ignored, and so would we.
        for number in (signal.SIGTTOU, signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        os.execve(args[0], args, environment)
    os.setpgid(job, job)
    os.tcsetpgrp(0, job)
    os.write(gone, b"x")
    while True:
        _, status = os.waitpid(job, os.WUNTRACED)
        if os.WIFSTOPPED(status) and os.WSTOPSIG(status) == signal.SIGSTOP:
            continue  # by tools/shake, which lets it go on: no key did that
        os.tcsetpgrp(0, os.getpgrp())
        if not os.WIFSTOPPED(status):
            break
        tell("stopped")
        os.read(orders, 1)
        os.tcsetpgrp(0, job)
        os.kill(job, signal.SIGCONT)
    tell("ended", status=os.waitstatus_to_exitcode(status))
    os._exit(0)


STEPS = [
    {"name": "reserve", "agent": "stock", "action": "reserve", "undo": {"action": "release"}},
    {"name": "charge", "agent": "payment", "action": "charge", "undo": "none",
     "retry": {"attempts": 3, "wait": "200ms"}},
]
HOSTILE = "gone\x1b]0;owned\x07\x1b[2J\u009b31m"


class Live(unittest.TestCase):
    def setUp(self):
        self.server = Server()
        self.addCleanup(self.server.end)
        self.server.workflow("order", STEPS)
        self.server.workflow("slow", [{"name": "only", "agent": "slow", "action": "x", "undo": "none",
                                       "complete_by": "1h",
                                       "retry": {"attempts": 3, "wait": "1h", "max_wait": "2h"}}])

    def watch(self, task, **how):
        return Program([INTACT, "watch", task], self.server, **how)

    def test_a_task_is_followed_until_it_is_compensated(self):
        s = self.server
        s.submit("order", "back")
        p = self.watch("back")
        p.wait("pending")
        first = s.fetch("stock")
        p.wait(lambda text: "▶ reserve" in text and "reserve: attempt 1 on me" in text and "left" in text, "the first step at work")
        beat = {"token": first["token"], "progress": {"done": 3, "of": 7}, "message": "counting" + HOSTILE}
        s.call("/v1/agents/stock/heartbeats", {"instance": "me", "beats": [beat]})
        p.wait(lambda text: re.search(r'"done": ?3.*counting', text), "the heartbeat")
        s.answer("stock", first, output={"id": 7})
        p.wait("✓ reserve")
        failed = s.fetch("payment")
        s.answer("payment", failed, error={"code": "no-funds", "message": HOSTILE, "retryable": False})
        p.wait("going back")
        undo = s.fetch("stock")
        p.wait("◀ reserve")
        s.answer("stock", undo, output=None)
        p.wait("compensated")
        self.assertEqual(p.end(), 1)
        text = p.text()
        self.assertIn("↶ reserve", text)
        self.assertIn("✗ charge", text)
        self.assertIn("no-funds: gone", text)
        for sequence in (b"\x1b]0", b"\x1b[2J", b"\x07", "\u009b".encode()):
            self.assertNotIn(sequence, p.raw)
        self.assertNotIn("q leaves", text)

    def test_what_is_elsewhere_is_said(self):
        s = self.server
        s.submit("slow", "away")
        p = self.watch("away")
        request = s.fetch("slow")
        p.wait("only: attempt 1 on me for")
        s.answer("slow", request, elsewhere=True)
        p.wait("only: attempt 1 on me, now elsewhere, for")
        s.call(f"/v1/attempts/{request['token']}", {"output": 1, "tries": 3})
        p.wait("processed")
        self.assertEqual(p.end(), 0)

    def test_what_is_in_doubt_and_tried_again_is_said(self):
        s = self.server
        s.submit("slow", "doubt")
        p = self.watch("doubt")
        request = s.fetch("slow")
        s.answer("slow", request, error={"code": "lost", "message": "no answer", "retryable": True})
        for words in ("waiting ?", "next try in", "lost: no answer", "×"):  # of one view, which may come in parts
            p.wait(words)
        p.type(b"q")
        self.assertEqual(p.end(), 1)

    def test_a_server_that_dies_and_comes_back_is_followed_again(self):
        s = self.server
        s.submit("order", "killed")
        p = self.watch("killed")
        request = s.fetch("stock")
        p.wait("▶ reserve")
        s.kill()
        p.wait("not connected")
        s.start()
        p.wait(lambda text: "not connected" not in text, "connected again")
        s.answer("stock", request, output={})
        p.wait("✓ reserve")
        s.answer("payment", s.fetch("payment"), output={})
        self.assertEqual(p.end(), 0)
        self.assertIn("processed", p.text())

    def test_a_view_follows_the_size_of_the_terminal(self):
        self.server.submit("slow", "sizes")
        p = self.watch("sizes")
        p.wait("q leaves")
        for columns, rows in ((50, 20), (30, 8), (120, 30)):
            shown = len(p.raw)
            p.resize(columns, rows)
            p.type(b"x")  # means nothing, and is drawn
            # What is drawn for a size that has passed is wrapped as no terminal would leave it: one after the other.
            p.wait(lambda _, shown=shown: b"\x1b[J" in p.raw[shown:], "drawn for the new size")
            p.wait(lambda text: text.count("q leaves") == 1 and text.count("sizes  slow") == 1, "one view")
        p.type(b"\x03")
        self.assertEqual(p.end(), -signal.SIGINT)

    def test_keys_and_signals_leave_the_terminal_as_it_was(self):
        self.server.submit("slow", "left")
        for verb in (["watch", "left"], ["top"]):
            for send, status in ((b"q", 1 if verb[0] == "watch" else 0), (b"\x03", -signal.SIGINT),
                                 (b"\x1c", -signal.SIGQUIT)):
                p = Program([INTACT] + verb, self.server)
                p.wait("q leaves" if verb[0] == "watch" else "q quits")
                self.assertIn(b"\x1b[?25l", p.raw)
                p.type(send)
                self.assertEqual(p.end(), status, verb)

    def test_a_program_that_is_stopped_gives_the_terminal_back(self):
        self.server.submit("slow", "stopped")
        p = self.watch("stopped")
        p.wait("q leaves")
        for _ in range(2):
            p.type(b"\x1a")
            self.assertEqual(p.event("stopped")["modes"], p.before)
            p.wait(lambda _: p.raw.endswith(b"\x1b[?25h"), "the cursor is back")
            shown = len(p.raw)
            p.go_on()
            p.wait(lambda _, shown=shown: b"q leaves" in p.raw[shown:], "drawn again")
        p.type(b"q")
        self.assertEqual(p.end(), 1)

    def test_a_terminal_that_is_gone_ends_a_view_that_ignores_hangups(self):
        self.server.submit("slow", "alone")
        for verb in (["watch", "alone"], ["top"]):
            pid, fd = pty.fork()
            if pid == 0:
                signal.signal(signal.SIGHUP, signal.SIG_IGN)
                os.execve(INTACT, [INTACT] + verb, ENVIRONMENT | {"INTACT_SERVER": self.server.url})
            shown = b""
            while b"q leaves" not in shown and b"q quits" not in shown:
                shown += os.read(fd, 65536)
            os.close(fd)
            self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), -signal.SIGHUP, verb)

    def test_ascii_and_no_colours_where_that_is_asked_for(self):
        self.server.submit("slow", "plain")
        p = self.watch("plain", environment={"LC_ALL": "C", "NO_COLOR": "1"})
        p.wait(". only")
        p.type(b"q")
        p.end()
        self.assertNotRegex(p.raw, rb"\x1b\[[1-9][0-9]*m")
        self.assertTrue(all(b < 0x80 for b in p.raw))

    def run_plain(self, *args):
        done = subprocess.run([INTACT, *args], env=ENVIRONMENT | {"INTACT_SERVER": self.server.url, "TZ": "UTC"},
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE_S, check=False)
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    def test_elsewhere_it_is_a_line_for_each_change(self):
        s = self.server
        s.submit("order", "lines")
        watching = subprocess.Popen([INTACT, "watch", "lines"], env=ENVIRONMENT | {"INTACT_SERVER": s.url},
                                    stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        lines = [watching.stdout.readline()]
        s.answer("stock", s.fetch("stock"), output={})
        s.answer("payment", s.fetch("payment"),
                 error={"code": "no", "message": "no" + HOSTILE, "retryable": True, "retry_after": "50ms"})
        s.answer("payment", s.fetch("payment"), output={})
        lines += watching.stdout.readlines()
        self.assertEqual(watching.wait(), 0)
        watching.stdout.close()
        said = [re.sub(r" +", " ", re.sub(r"\d+(\.\d+)?m?s\b", "N", line.split("  ", 1)[1])).strip() for line in lines]
        self.assertEqual(said[0], "- pending")
        rest = [line for line in said[1:] if line not in ("- pending", "- processing")]  # it waits, or not
        self.assertEqual(rest, [
            "reserve running attempt 1 on me",
            "reserve completed attempt 1 completed after N",
            "charge running attempt 1 on me",
            rest[3],
            "charge running attempt 2 on me",
            "charge completed attempt 2 completed after N",
            "- processed"])
        self.assertRegex(rest[3], r"^charge waiting attempt 1 failed after N, in doubt: no: nogone\?")
        self.assertNotIn("\x1b", "".join(lines))
        status, out, err = self.run_plain("watch", "lines")  # afterwards it is the same story
        self.assertEqual((status, err), (0, ""))
        self.assertEqual(len(out.splitlines()), 7)

    def test_json_is_a_document_a_line(self):
        s = self.server
        s.submit("order", "docs")
        s.answer("stock", s.fetch("stock"), output={})
        s.answer("payment", s.fetch("payment"), error={"code": "no", "retryable": False})
        s.answer("stock", s.fetch("stock"), output=None)
        status, out, err = self.run_plain("watch", "docs", "--json")
        self.assertEqual((status, err), (1, ""))
        documents = [json.loads(line) for line in out.splitlines()]
        self.assertEqual(documents[-1], {"event": "end", "data": {"id": "docs", "state": "compensated"}})
        self.assertEqual(documents[-2]["data"]["state"], "compensated")

    def test_all_tasks_are_a_line_for_each_change(self):
        s = self.server
        watching = subprocess.Popen([INTACT, "watch", "--workflow", "order", "--state", "processed,error"],
                                    env=ENVIRONMENT | {"INTACT_SERVER": s.url}, stdin=subprocess.DEVNULL,
                                    stdout=subprocess.PIPE, text=True)
        listeners = 'intact_events_listeners{of="all"} 1'
        while listeners not in urllib.request.urlopen(f"{s.url}/metrics", timeout=PATIENCE_S).read().decode():
            time.sleep(0.05)
        s.submit("order", "one-of-all")
        s.answer("stock", s.fetch("stock"), output={})
        s.answer("payment", s.fetch("payment"), output={})
        self.assertRegex(watching.stdout.readline(), r"processed +one-of-all  order v1$")
        watching.terminate()
        watching.wait()
        watching.stdout.close()

    def test_mistakes_are_told_before_anything_is_drawn(self):
        self.assertEqual(self.run_plain("watch", "nobody")[0], 1)
        self.assertIn("there is no task nobody", self.run_plain("watch", "nobody")[2])
        self.assertEqual(self.run_plain("watch", "nobody", "--state", "error")[0], 2)
        self.assertEqual(self.run_plain("watch", "--state", "error,nonsense")[0], 2)
        self.assertEqual(self.run_plain("watch", "x", "--color", "blue")[0], 2)
        self.assertEqual(self.run_plain("top", "--sort", "luck")[0], 2)
        self.assertEqual(self.run_plain("top", "--every", "1ms")[0], 2)
        self.assertEqual(self.run_plain("top", "--server", "http://127.0.0.1:1")[0], 3)
        self.assertEqual(self.run_plain("watch", "x", "--server", "http://127.0.0.1:1")[0], 3)

    def top_that_says(self, pattern):
        """A server that has just begun may not have counted yet."""
        end = time.monotonic() + PATIENCE_S
        while True:
            status, out, err = self.run_plain("top", "--every", "100ms")
            self.assertEqual((status, err), (0, ""))
            if re.search(pattern, out):
                return out
            self.assertLess(time.monotonic(), end, out)

    def test_top_shows_queues_and_what_stopped(self):
        s = self.server
        s.workflow("held", [{"name": "a", "agent": "holder", "action": "x", "undo": "none"}], on_failure="hold")
        s.workflow("lonely", [{"name": "a", "agent": "nobody", "action": "x", "undo": "none"}])
        for i in range(3):
            s.submit("lonely", f"lonely-{i}")
        s.submit("held", "held-1")
        s.answer("holder", s.fetch("holder"), error={"code": "stuck", "message": HOSTILE, "retryable": False})
        p = Program([INTACT, "top", "--every", "100ms"], s)
        p.wait(lambda text: re.search(r"nobody +no +3 ", text), "the queue of the agent that is not there")
        p.wait("held-1")
        p.wait("stuck: gone")
        for pattern in (r"pending \d+ +sleeping \d+ +processing \d+", r"error [1-9]"):
            p.wait(lambda text, pattern=pattern: re.search(pattern, text), pattern)
        p.type(b"s")
        p.wait("now: agent")
        p.resize(60, 16)
        p.wait(lambda text: text.count("intact 0") == 1 and text.count("q quits") == 1, "one view")
        s.kill()
        p.wait("not connected")
        s.start()
        p.wait(lambda text: "not connected" not in text, "connected again")
        p.type(b"q")
        self.assertEqual(p.end(), 0)
        self.assertNotIn(b"\x1b]0", p.raw)
        out = self.top_that_says(r"nobody +no +3 ")
        self.assertNotIn("\x1b", out)
        status, out, _ = self.run_plain("top", "--json", "--once")
        self.assertEqual(status, 0)
        stats = json.loads(out)
        self.assertEqual([a["waiting_tasks"] + a["waiting_steps"] for a in stats["agents"] if a["agent"] == "nobody"], [3])
        self.assertEqual(stats["stored"]["counted_to"], 10000)

    def test_top_asks_the_next_server_when_its_own_is_gone(self):
        other = Server(copy_of=self.server)
        self.addCleanup(other.end)
        both = {"INTACT_SERVER": f"{self.server.url},{other.url}"}
        p = Program([INTACT, "top", "--every", "100ms"], self.server, columns=140, environment=both)
        p.wait(self.server.url)
        self.server.kill()
        p.wait(lambda text: other.url in text and "not connected" not in text, "the other one")
        p.type(b"q")
        self.assertEqual(p.end(), 0)
        p = Program([INTACT, "node", "list"], self.server, environment=both)
        p.wait("leads")
        self.assertEqual(p.end(), 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
