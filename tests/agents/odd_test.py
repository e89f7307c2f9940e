#!/usr/bin/env python3
"""`intact agent check` with what is no agent: each ends with a clear message, and leaves no process behind.

Usage: odd_test.py INTACT [TEST...]      without one: all of them, several at a time, each in a process of its own
"""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), ".."))
sys.dont_write_bytecode = True
import side_by_side  # pylint: disable=wrong-import-position
from ports import free_port  # pylint: disable=wrong-import-position

INTACT = os.path.realpath(sys.argv[1])
WRONG = os.path.join(os.path.dirname(os.path.realpath(__file__)), "wrong.py")
PATIENCE_S = 240
ALL_SCENARIOS_S = 1500  # their waits alone take two minutes
LONG = "test_one_that_calls_by_itself", "test_bodies_that_are_no_calls", "test_a_flood_of_bytes_in_calls"  # begin first
MARK = f"intact-odd-{os.getpid()}"

# Reads $INTACT_SERVER into `host`, `port`; further lines are the agent.
HEAD = """
import os, socket, sys, time, urllib.parse
u = urllib.parse.urlsplit(os.environ["INTACT_SERVER"])
def connect():
    return socket.create_connection((u.hostname, u.port))
def call(text, path="/v1/agents/odd/work", more=""):
    c = connect()
    body = text.encode()
    c.sendall((f"POST {path} HTTP/1.1\\r\\nHost: x\\r\\nContent-Type: application/json\\r\\n{more}"
               f"Content-Length: {len(body)}\\r\\n\\r\\n").encode() + body)
    got = c.recv(65536)
    c.close()
    return got
"""


def check(*words, patience="3s", status=1, within=PATIENCE_S, **more):
    done = subprocess.run([INTACT, "agent", "check", "--patience", patience, *words], capture_output=True, text=True,
                          timeout=within, check=False, **more)
    if status is not None and done.returncode != status:
        raise AssertionError(f"{words}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done


def python(text, *words, **more):
    return check(*words, "--", sys.executable, "-c", HEAD + text, MARK, **more)


def several(look, cases):
    """Calls it with each of these, a few at a time."""
    with ThreadPoolExecutor(4) as pool:
        for end in [pool.submit(look, *case) for case in cases]:
            end.result()


def left():
    """Processes of ours that are there still."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                words = f.read().split(b"\0")
            with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as f:
                is_zombie = ") Z " in f.read()
        except OSError:
            continue
        if MARK.encode() in words and not is_zombie and int(pid) != os.getpid():
            found.append(pid)
    return found


class Odd(unittest.TestCase):
    def tearDown(self):
        end = time.monotonic() + PATIENCE_S
        while left() and time.monotonic() < end:
            time.sleep(0.05)
        self.assertEqual(left(), [])

    def test_no_such_command(self):
        done = check("--", "/nonexistent/agent")
        self.assertIn('"/nonexistent/agent" cannot be started: No such file', done.stdout)
        self.assertIn("has not made a single call", done.stdout)

    def test_one_that_ends_at_once(self):
        done = python("sys.exit('no configuration')")
        self.assertIn("ended with status 1", done.stdout)
        self.assertIn("no configuration", done.stdout)
        self.assertRegex(done.stdout, "0 ok, 1 wrong")

    def test_one_that_is_killed(self):
        self.assertIn("killed by signal 11", python("os.kill(os.getpid(), 11)").stdout)

    def test_one_that_never_calls(self):
        done = python("time.sleep(1000)")
        self.assertIn("it has made no call", done.stdout)

    def test_garbage(self):
        done = python("while True: c = connect(); c.sendall(b'\\x16\\x03\\x01 hello\\r\\n\\r\\n'); c.recv(100); c.close(); time.sleep(.1)")
        self.assertIn("no request in HTTP: 400", done.stdout)

    def test_an_endless_body(self):
        done = python("""
c = connect()
c.sendall(b"POST /v1/agents/odd/work HTTP/1.1\\r\\nHost: x\\r\\nContent-Type: application/json\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n")
try:
    while True:
        c.sendall(b"10000\\r\\n" + b"[" * 65536 + b"\\r\\n")
except OSError:
    time.sleep(1000)
""", patience="10s")
        self.assertIn("413", done.stdout)

    def test_an_endless_head(self):
        done = python("""
c = connect()
try:
    while True:
        c.sendall(b"x" * 65536)
except OSError:
    time.sleep(1000)
""")
        self.assertRegex(done.stdout, "no request in HTTP: 4")

    def test_a_thousand_connections(self):
        done = python("all = [connect() for _ in range(1000)]\ntime.sleep(1000)", preexec_fn=lambda: __import__("resource").setrlimit(
            __import__("resource").RLIMIT_NOFILE, (4096, 4096)))
        self.assertIn("it has made no call", done.stdout)

    def test_calls_without_end(self):
        done = python("while True: call('{\"instance\":\"a\",\"max\":0}')", "--only", "completes", patience="60s", )
        self.assertRegex(done.stdout, "a pause between calls|nothing of the kind")

    def test_bodies_that_are_no_calls(self):
        def look(body, words):
            done = python(f"while True: call({body!r}); time.sleep(.05)", "--only", "completes", "--only", "form", patience="8s")
            self.assertIn("wrong    form", done.stdout, body)
            self.assertIn(words, done.stdout.split("wrong    form")[1], body)

        several(look, (("", "body that is JSON"), ("[1]", "body that is an object"), ("{\"instance\":1}", "instance"),
                            ("{\"instance\":\"a\",\"max\":-1,\"holding\":{}}", "max"),
                            ("{\"instance\":\"a\",\"holding\":[1]}", "holding"),
                            ("{\"instance\":\"a\",\"holding\":[],\"results\":[{}]}", "one of"),
                            ("{\"instance\":\"a\",\"holding\":[],\"results\":[{\"token\":\"x\",\"output\":1}]}", "that were given"),
                            ("{\"instance\":\"a\",\"holding\":[],\"results\":5}", "results"),
                            ("{\"instance\":\"a\",\"holding\":[],\"results\":[7]}", "one of"),
                            ("{\"instance\":\"a\",\"holding\":[],\"wait\":5}", "wait"),
                            ("[" * 5000, "body that is JSON")))

    def test_beats_that_are_none(self):
        def look(body):
            done = python(f"while True: call({body!r}, '/v1/agents/odd/heartbeats'); time.sleep(.05)", "--only", "completes",
                          "--only", "form", patience="2s")
            self.assertIn("wrong    form", done.stdout, body)

        several(look, (("{}",), ("{\"beats\":5}",), ("{\"beats\":[5,{},{\"token\":\"x\",\"message\":1}]}",), ("7",)))

    def test_another_agents_name(self):
        done = python("while True: call('{\"instance\":\"a\",\"holding\":[]}'); time.sleep(.05)", "--agent", "payment", "--only",
                      "completes", "--only", "form", patience="2s")
        self.assertIn('a call for the agent "odd", and not "payment"', done.stdout)

    def test_what_it_sends_is_harmless_for_a_terminal(self):
        done = python("while True: call('{\"instance\":\"\\x7f\\x1b[2J\\xff\",\"holding\":[]}'); time.sleep(.05)", "--only", "completes",
                      patience="2s")
        self.assertIsNone(re.search(r"[\x00-\x09\x0b-\x1f\x7f]", done.stdout), done.stdout)

    def test_output_without_end(self):
        done = python("while True: sys.stdout.write('x' * 65536)")
        self.assertIn("its last words: xxx", done.stdout)

    def test_what_it_started_goes_with_it(self):
        python("""
import subprocess
for _ in range(3):
    subprocess.Popen([sys.executable, "-c", "import os, time; os.setsid(); time.sleep(1000)", sys.argv[1]])
    subprocess.Popen(["sh", "-c", f"setsid sleep 1000 {sys.argv[1]} 2>/dev/null & sleep 1000"])
time.sleep(1000)
""")

    def test_it_ends_on_a_signal(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            p = subprocess.Popen([INTACT, "agent", "check", "--json", "--", sys.executable, "-c", "import time; time.sleep(1000)",
                                  MARK], stdout=subprocess.PIPE, text=True)
            while len(left()) < 2:  # itself, whose words have the mark, and the agent: by then it listens to signals
                time.sleep(0.02)
            p.send_signal(number)
            told = json.loads(p.communicate(timeout=PATIENCE_S)[0])
            self.assertEqual((p.returncode, told["complete"], told["ok"]), (1, False, 0))

    def test_it_dies_and_the_agent_too(self):
        p = subprocess.Popen([INTACT, "agent", "check", "--", sys.executable, "-c", "import time; time.sleep(1000)", MARK],
                             stdout=subprocess.DEVNULL)
        while len(left()) < 2:  # itself, whose words have the mark, and the agent
            time.sleep(0.02)
        p.kill()
        p.wait()

    def test_the_limit(self):
        done = python("time.sleep(1000)", "--limit", "1s", patience="1m")
        self.assertIn("the time limit of all of it is over", done.stdout)

    def test_a_flood_of_bytes_in_calls(self):
        done = python("""
junk = "x" * 3_000_000
while True:
    call('{"instance":"a","max":0,"holding":[],"junk":"' + junk + '"}')
""", "--only", "completes", patience="2m")
        self.assertIn("the agent sent more than 256 MiB", done.stdout)

    def test_effects_that_cannot_be_counted(self):
        """What is wrong is told of the command, and nothing of the agent."""
        def look(command, said):
            with tempfile.TemporaryDirectory(prefix="intact-odd-") as folder:
                done = check("--only", "effect-killed", "--action", "count", "--effects", command, "--", sys.executable, WRONG, folder,
                             patience="12s")
            self.assertIn(said, done.stdout, command)

        several(look, [("echo no database >&2; exit 3", 'ended with status 3, after "no database'), ("echo many", 'after "many'),
                       ("echo 1 2", 'after "1 2'), ("true", 'after ""'), ("kill -9 $$", "killed by signal 9"), ("/nowhere", "status 127"),
                       ("echo 5", "5 before an effect and after it"), ("sleep 1000", "a command of --effects that ends")])
        self.assertEqual(left(), [])

    def test_command_lines(self):
        for words, said in (([], "is missing"), (["--only", "ech", "--", "x"], "did you mean echo"),
                            (["--undo", "x", "--", "x"], "--undo needs --action"), (["--input", "1", "--", "x"], "--input needs"),
                            (["--effects", "true", "--", "x"], "--effects needs --action"),
                            (["--action", "a", "--input", "{", "--", "x"], "--input is no JSON"),
                            (["--patience", "soon", "--", "x"], "expected a duration"),
                            (["http://127.0.0.1:1", "x"], "one word too many"), (["https://127.0.0.1:1"], "http:// alone"),
                            (["http://nonsense"], "nonsense")):
            done = subprocess.run([INTACT, "agent", "check", *words], capture_output=True, text=True, timeout=PATIENCE_S, check=False)
            self.assertEqual(done.returncode, 2, words)
            self.assertIn(said, done.stderr, words)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)

    def test_one_that_calls_by_itself(self):
        """It listens, and an agent that was started elsewhere calls."""
        url = f"http://127.0.0.1:{free_port()}"
        with tempfile.TemporaryDirectory(prefix="intact-odd-") as folder:
            agent = subprocess.Popen([sys.executable, WRONG, folder], env={**os.environ, "INTACT_SERVER": url, "INTACT_TOKEN": "x"})
            try:
                done = check("--json", url, patience="4m", status=None, within=ALL_SCENARIOS_S)
            finally:
                agent.kill()
                agent.wait()
        verdicts = {v["name"]: v["end"] for v in json.loads(done.stdout)["scenarios"]}
        self.assertEqual([n for n, end in verdicts.items() if end == "wrong"], [], done.stdout)
        self.assertEqual({n for n, end in verdicts.items() if end == "skipped"} - {"nodes-found", "nodes-holding", "nodes-same", "record-killed", "undo-killed",
                         "nodes-gone", "effect-killed"}, {"killed", "sigterm", "refused", "another-installation", "bearer"})


if __name__ == "__main__":
    if len(sys.argv) == 2:
        side_by_side.in_processes(Odd, sys.argv, LONG)
    unittest.main(argv=sys.argv[:1] + sys.argv[2:], verbosity=2)
