#!/usr/bin/env python3
"""The exec agent with real commands under a real server: what they are given, what becomes of what they say, and that
nothing of them outlives their time, the agent, or themselves.

Usage: exec_test.py INTACT [TEST...]
"""

import ctypes
import json
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), ".."))

from ports import free_port  # noqa: E402 pylint: disable=wrong-import-position

INTACT = os.path.realpath(sys.argv.pop(1))
PATIENCE_S = 240  # for what has to happen: only a failing test waits so long
HIDDEN = ("INTACT_SERVER", "INTACT_TOKEN", "INTACT_CA", "INTACT_INSTALLATION", "http_proxy", "HTTP_PROXY")
ENVIRONMENT = {k: v for k, v in os.environ.items() if k not in HIDDEN}


def wait_for(what, condition):
    end = time.monotonic() + PATIENCE_S
    while not (found := condition()):
        if time.monotonic() > end:
            raise AssertionError(f"in {PATIENCE_S} s there was not: {what}")
        time.sleep(0.02)
    return found


def read(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as f:
            return f.read()
    except (FileNotFoundError, ProcessLookupError):  # of a process that ends while it is read
        return ""


def is_alive(pid):
    """A zombie has ended, too: who reaps it is another question."""
    stat = read(f"/proc/{pid}/stat")
    return bool(stat) and stat.rsplit(")", 1)[1].split()[0] != "Z"


def children_of(pid):
    return [int(p) for p in read(f"/proc/{pid}/task/{pid}/children").split()]


class Server:
    def __init__(self, folder):
        self.folder = folder
        self.log = open(folder + "/server.log", "w", encoding="utf-8")
        while True:
            port = free_port()
            self.process = subprocess.Popen(
                [INTACT, "serve", "--data", folder + "/data", "--listen", f"127.0.0.1:{port}", "--open", "--log", "error",
                 "--scan-every", "100ms", "--grace", "100ms", "--drain", "100ms"],
                env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=self.log, text=True)
            if "listening" in self.process.stdout.readline():
                break
            self.process.wait()
            if "in use" not in read(folder + "/server.log"):
                raise RuntimeError(read(folder + "/server.log"))
        self.url = f"http://127.0.0.1:{port}"

    def close(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self.log.close()

    def call(self, path, body=None, method=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {"Content-Type": "application/json"}, method=method)
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
            return json.load(answer)

    def task(self, name):
        return self.call(f"/v1/tasks/{name}")

    def wait(self, name, *states):
        return wait_for(f"{name} is one of {states}", lambda: (t := self.task(name))["state"] in states and t)


class Agent:
    def __init__(self, server, config, flags=(), env=None):
        self.path = os.path.join(server.folder, "exec.json")
        with open(self.path, "w", encoding="utf-8") as f:
            json.dump(config, f)
        self.log = open(server.folder + "/agent.log", "a", encoding="utf-8")
        self.process = subprocess.Popen([INTACT, "agent", "exec", "--config", self.path, *flags],
                                        env=ENVIRONMENT | {"INTACT_SERVER": server.url} | (env or {}), stderr=self.log)

    def pid(self):
        return self.process.pid

    def end(self, status=0):
        if self.process.poll() is None:
            self.process.terminate()
        self.finish(status)

    def finish(self, status):
        got = self.process.wait(PATIENCE_S)
        self.log.close()
        if status is not None and got != status:
            raise AssertionError(f"the agent ended with {got}: {read(self.log.name)}")

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.log.close()


def shell(text):
    return {"command": ["/bin/sh", "-c", text]}


class ExecTest(unittest.TestCase):
    def setUp(self):
        self.temp = tempfile.TemporaryDirectory(prefix="intact-exec.")
        self.dir = self.temp.name
        os.chmod(self.dir, 0o755)
        self.server = Server(self.dir)
        self.agent = None
        self.serial = 0

    def tearDown(self):
        if self.agent and self.agent.process.poll() is None:
            self.agent.end(None)
        self.server.close()
        self.temp.cleanup()

    def start(self, actions, flags=(), env=None, stop_wait="5m", **more):
        config = {"intact_exec": 1, "stop_wait": stop_wait,
                  "agents": {"tools": {"instance": "tools-1", "places": 16, "actions": actions} | more}}
        self.agent = Agent(self.server, config, flags, env)
        return self.agent

    def submit(self, action, value=None, undo="none", **more):
        """A task of one step; its id."""
        self.serial += 1
        name = f"{action}-{self.serial}"
        step = {"name": "s", "agent": "tools", "action": action, "undo": undo, "complete_by": "10m",
                "retry": {"attempts": 1, "wait": "1ms"}, "input": "${ .input.value }"} | more
        self.server.call(f"/v1/workflows/{name}", {"intact": 1, "workflow": name, "steps": [step]}, "PUT")
        self.server.call("/v1/tasks", {"workflow": name, "id": name, "input": {"value": value}})
        return name

    def run_one(self, action, value=None, **more):
        """The step at its end."""
        return self.server.wait(self.submit(action, value, **more), "processed", "compensated", "error")["steps"][0]

    def wait_pid(self, name):
        """What a command has written into that file."""
        return int(wait_for(name, lambda: (t := read(f"{self.dir}/{name}")).endswith("\n") and t))

    def gone(self, *pids):
        for pid in pids:
            wait_for(f"{pid} has ended", lambda: not is_alive(pid))

    # ---- what a command is given, and what it says

    def test_a_command_reads_its_request_and_writes_its_output(self):
        self.start({"echo": {"command": ["cat"], "undo": {"command": ["cat"]}}, "fail": shell("exit 65")})
        step = self.run_one("echo", {"n": [1, 2.50, "ü"]})
        got = step["output"]
        self.assertEqual(got["input"], {"n": [1, 2.5, "ü"]})
        self.assertEqual((got["step"], got["action"], got["direction"], got["attempt"]), ("s", "echo", "forward", 1))
        self.assertEqual(got["idempotency_key"], got["task"] + "/s")
        self.assertGreater(got["time_left_ms"], 0)
        self.assertRegex(got["complete_by"], r"^20\d\d-.*Z$")
        self.assertRegex(got["traceparent"], r"^00-")
        self.assertNotIn("token", json.dumps(got))
        # An undo has what it undoes.
        self.server.call("/v1/workflows/two", {"intact": 1, "workflow": "two", "steps": [
            {"name": "a", "agent": "tools", "action": "echo", "undo": {"action": "echo"}},
            {"name": "b", "agent": "tools", "action": "fail", "undo": "none"}]}, "PUT")
        self.server.call("/v1/tasks", {"workflow": "two", "id": "two", "input": 7})
        task = self.server.wait("two", "compensated", "error")
        self.assertEqual(task["state"], "compensated", task)
        undo = [a for a in task["steps"][0]["attempts"] if a["direction"] == "undo"]
        self.assertEqual(len(undo), 1)

    def test_its_environment_is_what_the_configuration_says(self):
        secret = self.dir + "/secret"
        with open(secret, "w", encoding="utf-8") as f:
            f.write("pass word\n")
        # Text with NULs is what no JSON of ours may have: an error that says so.
        self.start({"nul": {"command": ["env", "-0"], "output": "text"},
                    "behind": shell("printf '{}\\0 and more'"),
                    "latin": shell("printf '\\344'") | {"output": "text"},
                    "pry": shell("for p in $PPID $(cut -d ' ' -f 4 /proc/$PPID/stat); do tr '\\0' '\\n' < /proc/$p/environ; done") | {"output": "text"},
                    "key": shell('[ "$KEY" = "pass word" ] && echo right') | {"output": "text"},
                    "env": {"command": ["env"], "output": "text", "environment": {"OWN": "1 2"}}},
                   env={"TAKEN": "yes", "LEFT": "no", "INTACT_TOKEN": "hidden-0815"},
                   environment={"OWN": "0", "KEY": {"file": secret}, "TAKEN": {"from": "TAKEN"}, "NONE": {"from": "NONE"}})
        for action in ("nul", "behind", "latin"):
            step = self.server.wait(self.submit(action, on_failure="hold"), "error")["steps"][0]
            self.assertEqual(step["error"]["code"], "output_not_json")
        if os.geteuid() == 0:  # others are not let in at all
            pried = self.run_one("pry")["output"]
            self.assertIn("LEFT=no", pried)
            self.assertNotIn("0815", pried)
        step = self.run_one("env")
        got = dict(line.split("=", 1) for line in step["output"].split("\n"))
        self.assertEqual((got["OWN"], got["KEY"], got["TAKEN"]), ("1 2", "***", "yes"))
        self.assertEqual(self.run_one("key")["output"], "right")
        self.assertEqual(set(got) - {"OWN", "KEY", "TAKEN", "PATH", "TRACEPARENT"},
                         {"INTACT_" + n for n in ("TASK", "STEP", "ACTION", "DIRECTION", "ATTEMPT", "IDEMPOTENCY_KEY",
                                                  "PROGRESS_FD")})

    def test_it_has_no_descriptor_of_ours_and_a_session_of_its_own(self):
        self.start({"look": {"command": [sys.executable, "-I", "-c", """
import json, os, signal
fds = [int(n) for n in os.listdir("/proc/self/fd")]
print(json.dumps({"fds": sorted(f for f in fds if os.path.exists(f"/proc/self/fd/{f}")),
                  "leads": os.getsid(0) == os.getpid() == os.getpgid(0), "cwd": os.getcwd(),
                  "pipe": str(signal.getsignal(signal.SIGPIPE)),
                  "blocked": list(signal.pthread_sigmask(signal.SIG_BLOCK, []))}))
"""], "directory": "/tmp"}})
        got = self.run_one("look")["output"]
        self.assertEqual((got["fds"], got["leads"], got["cwd"], got["blocked"]), ([0, 1, 2, 3], True, "/tmp", []))

    def test_its_exit_status_says_how_it_went(self):
        self.start({"exit": shell("exit $(python3 -c 'import json, sys; print(json.load(sys.stdin)[\"input\"])')"),
                    "signal": shell("kill -ABRT $$"), "silent": shell(": > /dev/null"),
                    "garbage": shell("echo '{'"), "missing": {"command": ["no-such-program"]},
                    "gone": {"command": ["/no/such/program"]}, "nowhere": {"command": ["true"], "directory": "/no/such"}})
        # status: (attempts of two, in doubt)
        for status, attempts, doubt in ((1, 2, True), (64, 1, False), (65, 1, False), (69, 2, False), (75, 2, True),
                                        (77, 1, False), (255, 2, True)):
            name = self.submit("exit", status, retry={"attempts": 2, "wait": "1ms"}, on_failure="hold")
            step = self.server.wait(name, "error")["steps"][0]
            self.assertEqual((len(step["attempts"]), step["in_doubt"]), (attempts, doubt), step)
            self.assertEqual(step["error"]["code"], f"exit_{status}")
        self.assertIsNone(self.run_one("silent")["output"])
        self.assertEqual(self.run_one("exit", 0)["state"], "completed")
        for action, code in (("signal", "signal_6"), ("garbage", "output_not_json"), ("missing", "cannot_run"),
                             ("gone", "cannot_run"), ("nowhere", "cannot_run")):
            step = self.server.wait(self.submit(action, on_failure="hold"), "error")["steps"][0]
            self.assertEqual(step["error"]["code"], code)
            self.assertEqual(step["in_doubt"], code != "cannot_run", step)
        self.assertIn("No such file", step["error"]["message"])

    def test_it_may_say_itself_what_went_wrong(self):
        error = {"code": "sold_out", "message": "none \x1b[31mleft", "retryable": False, "effect": "none"}
        self.start({"say": shell("cat > /dev/null; echo '%s'; exit 1" % json.dumps({"error": error})),
                    "later": shell("""cat > /dev/null; echo '{"error": {"retry_after": "1h", "resume": [3]}}'; exit 75""")})
        step = self.server.wait(self.submit("say", on_failure="hold", retry={"attempts": 3}), "error")["steps"][0]
        self.assertEqual((step["error"]["code"], step["error"]["message"]), ("sold_out", "none  [31mleft"))
        self.assertEqual((len(step["attempts"]), step["in_doubt"]), (1, False))
        name = self.submit("later", retry={"attempts": 3})
        step = wait_for("it waits", lambda: (s := self.server.task(name)["steps"][0]).get("resume") and s)
        self.assertEqual((step["state"], step["resume"], len(step["attempts"])), ("waiting", [3], 1))

    def test_what_it_complains_of_is_told_without_secrets_and_controls(self):
        secret = self.dir + "/secret"
        with open(secret, "w", encoding="utf-8") as f:
            f.write("first-line-0815\nsecond-line-4711\n")
        long = self.dir + "/long"
        with open(long, "w", encoding="utf-8") as f:
            f.write("6" + "7" * 20000)
        cut = shell("""printf '{"error": {"code": "c-%s", "message": "%490s%s"}}' "${KEY%?????????????????}" x "$KEY" | tr '\\n' ' '; exit 75""")
        self.start({"moan": shell(r"""printf 'dropped %9000s\n' x >&2; printf 'bad\033[31m \200\302\233 key %s\n' "$KEY" >&2
                                      exit 75""") | {"environment": {"KEY": {"file": secret}}},
                    "left": shell(r"""k=$(printf %s "$KEY" | head -1); cat > /dev/null
                                      printf '{"error": {"retryable": false, "resume": {"at": "a%s \\u0022q", "n": 815}}}' "$k"; exit 75""")
                    | {"environment": {"KEY": {"file": secret}}},
                    "long": shell("""printf %s "$LONG" >&2; exit 75""") | {"environment": {"LONG": {"file": long}}},
                    "cut": cut | {"environment": {"KEY": {"file": secret}}}})
        error = self.server.wait(self.submit("cut", on_failure="hold"), "error")["steps"][0]["error"]
        self.assertEqual(error["code"], "c-***")
        self.assertNotIn("first", error["message"])
        self.assertIn("x***", error["message"])
        message = self.server.wait(self.submit("moan", on_failure="hold"), "error")["steps"][0]["error"]["message"]
        self.assertIn("the command ended with status 75: ...", message)
        self.assertRegex(message, r"bad \[31m \?   key \*{3} \*{3}$")
        self.assertNotIn("0815", message + read(self.dir + "/agent.log") + read(self.dir + "/server.log"))
        self.assertLess(len(message), 600)
        step = self.server.wait(self.submit("left", on_failure="hold"), "error")["steps"][0]
        self.assertEqual(step["resume"], {"at": "a*** \"q", "n": 815})
        message = self.server.wait(self.submit("long", on_failure="hold"), "error")["steps"][0]["error"]["message"]
        self.assertEqual(message, "the command ended with status 75: ***")
        os.remove(secret)
        error = self.server.wait(self.submit("moan", on_failure="hold"), "error")["steps"][0]["error"]
        self.assertEqual(error["code"], "cannot_run")
        self.assertIn(secret, error["message"])

    def test_what_it_outputs_is_stored_without_secrets(self):
        secret = self.dir + "/secret"
        with open(secret, "w", encoding="utf-8") as f:
            f.write('first "line" 0815\nsecond-line-4711\n')
        quoted = '"$(printf %s "$KEY" | sed \'s/"/\\\\"/g\' | head -1)"'
        self.start({"json": shell(f"""printf '{{"at": "a%s b", "%s": [4711, "%s"]}}' {quoted} {quoted} "$(printf %s "$KEY" | tail -1)" """),
                    "text": shell('printf "the key\n%s\tis %s\n" "$KEY" "$KEY"') | {"output": "text"},
                    "taken": shell('printf "%s %s %s %s" "$A_TOKEN" "$B" "$C" "$D_KEY"') | {"output": "text"},
                    "broken": shell("""printf '["%s\\x"]' "$(printf %s "$KEY" | tail -1)" """)},
                   env={"A_TOKEN": "value-of-a", "B_PASSWORD": "value-of-b", "C": "value-of-c", "D_KEY": "value-of-d", "E": "value-of-e"},
                   environment={"KEY": {"file": secret}, "A_TOKEN": {"from": "A_TOKEN"}, "B": {"from": "B_PASSWORD"},
                                "C": {"from": "C", "secret": True}, "D_KEY": {"from": "D_KEY", "secret": False}})
        self.assertEqual(self.run_one("json")["output"], {"at": "a*** b", "***": [4711, "***"]})
        self.assertEqual(self.run_one("text")["output"], "the key\n***\n***\tis ***\n***")
        self.assertEqual(self.run_one("taken")["output"], "*** *** *** value-of-d")
        error = self.server.wait(self.submit("broken", on_failure="hold"), "error")["steps"][0]["error"]
        self.assertEqual(error["code"], "output_not_json")
        self.assertNotIn("4711", error["message"])

    # ---- pipes

    def test_pipes_in_any_state_hang_nobody(self):
        big = "x" * 600000
        self.start({"unread": shell("echo 1"), "read": shell("wc -c"), "late": shell("sleep 0.3; wc -c"),
                    "closed": shell("exec 0<&-; sleep 0.3; echo 2"),
                    "mute": shell("exec 1>&- 2>&- 3>&-; sleep 0.3; exit 0"),
                    "holder": shell("sleep 100000 & echo 3"),
                    "noise": shell("head -c 30000000 /dev/zero | tr '\\0' 'e' >&2; echo 4"),
                    "chatter": shell("yes progress | head -n 200000 >&3; echo 5"),
                    "line": shell("head -c 3000000 /dev/zero | tr '\\0' 'p' >&3; echo 6"),
                    "full": shell("head -c 524288 /dev/zero | tr '\\0' ' '")})
        expected = {"unread": 1, "closed": 2, "mute": None, "holder": 3, "noise": 4, "chatter": 5, "line": 6, "full": None}
        names = {self.submit(action, big): action for action in expected}
        for name, action in names.items():
            step = self.server.wait(name, "processed", "compensated", "error")["steps"][0]
            self.assertEqual((step["state"], step["output"]), ("completed", expected[action]), action)
        for action in ("read", "late"):
            self.assertGreater(self.run_one(action, big)["output"], 600000)
        wait_for("nothing is left", lambda: not children_of(self.agent.pid()))

    def test_a_flood_is_cut_off(self):
        self.start({"flood": {"command": ["yes"]}, "short": shell("echo 12345678") | {"limits": {"output": 8}},
                    "fits": shell("printf 12345678") | {"limits": {"output": 8}},
                    "trash": {"command": ["head", "-c", "30000000", "/dev/zero"], "output": "none"}})
        for action in ("flood", "short"):
            step = self.server.wait(self.submit(action, on_failure="hold", retry={"attempts": 3}), "error")["steps"][0]
            self.assertEqual((step["error"]["code"], len(step["attempts"])), ("output_too_long", 1))
            self.assertTrue(step["in_doubt"])
        self.assertEqual(self.run_one("fits")["output"], 12345678)
        self.assertEqual(self.run_one("trash")["state"], "completed")
        wait_for("nothing is left", lambda: not children_of(self.agent.pid()))

    # ---- ends

    ESCAPE = ("echo $$ > D/one; setsid sh -c 'echo $$ > D/two; exec sleep 100000' & "
              "(setsid setsid sh -c 'trap \"\" TERM; echo $$ > D/three; while :; do sleep 1; done' &); ")

    def escape(self, more):
        return shell(self.ESCAPE.replace("D/", self.dir + "/") + more)

    def pids(self):
        return [self.wait_pid(n) for n in ("one", "two", "three")]

    def test_what_a_command_leaves_behind_ends_with_it(self):
        wait = "".join(f"until [ -s {self.dir}/{n} ]; do sleep 0.02; done; " for n in ("two", "three"))
        self.start({"leave": self.escape(wait + "echo 1")})
        self.assertEqual(self.run_one("leave")["output"], 1)
        for pid in self.pids():
            self.assertFalse(is_alive(pid))
        wait_for("no zombies", lambda: not children_of(self.agent.pid()))

    def test_its_time_is_up_for_all_that_it_started(self):
        self.start({"long": self.escape("trap '' TERM; while :; do sleep 1; done")})
        # If it was not even begun in its time, it may not have escaped yet: then it tries again.
        name = self.submit("long", complete_by="2s", retry={"attempts": 1000, "wait": "1ms", "max_wait": "1ms"})
        pids = self.pids()
        self.gone(*pids)
        wait_for("an attempt has ended", lambda: len(self.server.task(name)["steps"][0]["attempts"]) > 1)

    def test_a_limit_of_its_own_ends_it_sooner(self):
        self.start({"polite": shell("trap 'echo \"{\\\"error\\\": {\\\"code\\\": \\\"half\\\"}}\"; exit 69' TERM; "
                                    "while :; do sleep 0.05; done") | {"limits": {"time": "300ms", "grace": "5m"}},
                    "rude": {"command": ["sleep", "100000"], "limits": {"time": "300ms", "grace": "0s"}}})

        def says_half():
            step = self.server.wait(self.submit("polite", on_failure="hold"), "error")["steps"][0]
            # A shell that did not come so far as to set its trap is ended like any other command.
            self.assertIn((step["error"]["code"], step["in_doubt"]), (("half", False), ("out_of_time", True)))
            return step["error"]["code"] == "half"

        wait_for("it says what it left", says_half)
        step = self.server.wait(self.submit("rude", on_failure="hold"), "error")["steps"][0]
        self.assertEqual((step["error"]["code"], step["in_doubt"]), ("out_of_time", True))

    def test_it_is_told_when_its_task_is_called_off(self):
        self.start({"work": shell(f"trap 'echo told > {self.dir}/told; exit 69' TERM; echo $$ > {self.dir}/one; "
                                  "while :; do sleep 0.05; done")})
        name = self.submit("work")
        self.wait_pid("one")
        self.server.call(f"/v1/tasks/{name}/cancel", {"reason": "no more"})
        task = self.server.wait(name, "compensated")
        self.assertEqual(read(self.dir + "/told"), "told\n")
        self.assertFalse(task["steps"][0]["in_doubt"])

    def test_who_kills_the_agent_kills_its_commands(self):
        self.start({"long": self.escape(f"[ -e {self.dir}/again ] && exit 0; sleep 100000")})
        name = self.submit("long")
        pids = self.pids()
        keepers = children_of(self.agent.pid())
        self.assertEqual(len(keepers), 1)
        self.agent.kill()
        self.gone(*pids, *keepers)
        with open(self.dir + "/again", "w", encoding="utf-8"):
            pass
        self.start({"long": self.escape(f"[ -e {self.dir}/again ] && exit 0; sleep 100000")})
        step = self.server.wait(name, "processed")["steps"][0]
        self.assertEqual(len(step["attempts"]), 1, "the same attempt was given to the next process of that name")

    def test_who_kills_a_keeper_kills_its_command(self):
        self.start({"long": self.escape("sleep 100000")})
        name = self.submit("long", on_failure="hold")
        pids = self.pids()
        os.kill(children_of(self.agent.pid())[0], signal.SIGKILL)
        step = self.server.wait(name, "error")["steps"][0]
        self.assertEqual((step["error"]["code"], step["in_doubt"]), ("lost", True))
        self.gone(*pids)
        wait_for("they are reaped", lambda: not children_of(self.agent.pid()))

    def test_an_agent_that_ends_lets_commands_end_first(self):
        self.start({"slow": shell(f"echo $$ > {self.dir}/one; until [ -e {self.dir}/go ]; do sleep 0.05; done; echo 8")})
        name = self.submit("slow")
        self.wait_pid("one")
        self.agent.process.terminate()
        wait_for("it has heard", lambda: "event=stopping" in read(self.dir + "/agent.log"))
        with open(self.dir + "/go", "w", encoding="utf-8"):
            pass
        self.agent.finish(0)
        self.assertEqual(self.server.wait(name, "processed")["steps"][0]["output"], 8)

    def test_but_not_for_ever(self):
        for flags in ({"stop_wait": "10ms"}, {"stop_wait": "1h"}):
            self.start({"slow": shell(f"trap 'exit 69' TERM; echo $$ > {self.dir}/one; while :; do sleep 0.05; done")}, **flags)
            name = self.submit("slow", on_failure="hold")
            pid = self.wait_pid("one")
            self.agent.process.terminate()
            wait_for("it has heard", lambda: "event=stopping" in read(self.dir + "/agent.log"))
            if flags["stop_wait"] == "1h":
                self.agent.process.terminate()
            self.agent.end(0)
            self.assertEqual(self.server.wait(name, "error")["steps"][0]["error"]["code"], "exit_69")
            self.gone(pid)
            os.remove(self.dir + "/one")
            os.remove(self.dir + "/agent.log")

    # ---- heartbeats

    def test_progress_is_shown_and_what_is_left_is_handed_on(self):
        more = f"until [ -e {self.dir}/go ]; do sleep 0.05; done; exit 75"
        self.start({"work": shell("""if grep -q '"resume":{"at":5}'; then echo '"resumed"'; exit 0; fi
            echo 'plain words' >&3; sleep 0.1; echo '{"progress": {"done": 5}, "message": "half", "resume": {"at":5}}' >&3;
            """ + more)})
        name = self.submit("work", retry={"attempts": 3, "wait": "1ms"})
        attempt = wait_for("its progress", lambda: (
            a := self.server.task(name)["steps"][0]["attempts"]) and a[-1].get("progress") and a[-1])
        self.assertEqual((attempt["progress"], attempt["message"]), ({"done": 5}, "half"))
        with open(self.dir + "/go", "w", encoding="utf-8"):
            pass
        self.assertEqual(self.server.wait(name, "processed")["steps"][0]["output"], "resumed")

    def test_the_agent_beats_for_a_command_unless_that_does(self):
        self.start({"quiet": shell(f"until [ -e {self.dir}/go ]; do sleep 0.05; done; echo 1"),
                    "still": self.escape("sleep 100000") | {"heartbeats": "command"}})
        # More than its time for a heartbeat passes; on a machine that stands still, it may pass again.
        name = self.submit("quiet", heartbeat="3s", retry={"attempts": 1000, "wait": "1ms", "max_wait": "1ms"})
        wait_for("heartbeats", lambda: (a := self.server.task(name)["steps"][0]["attempts"]) and a[-1].get("heartbeat_at"))
        first = self.server.task(name)["steps"][0]["attempts"][-1]["heartbeat_at"]
        wait_for("more", lambda: self.server.task(name)["steps"][0]["attempts"][-1].get("heartbeat_at") not in (None, first))
        with open(self.dir + "/go", "w", encoding="utf-8"):
            pass
        self.server.wait(name, "processed")
        name = self.submit("still", heartbeat="1s", on_failure="hold")
        pids = self.pids()
        step = self.server.wait(name, "error")["steps"][0]
        self.assertEqual(step["error"]["code"], "heartbeat", step)
        self.gone(*pids)

    # ---- many, and the surroundings

    def test_many_at_once_leave_nothing_behind(self):
        self.start({"quick": {"command": ["cat"]}})
        self.submit("quick")
        lines = "\n".join(json.dumps({"workflow": "quick-1", "id": f"m-{i}", "input": {"value": i}}) for i in range(300))
        request = urllib.request.Request(self.server.url + "/v1/tasks", lines.encode(),
                                         {"Content-Type": "application/x-ndjson"})
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
            answer.read()
        for i in range(300):
            task = self.server.wait(f"m-{i}", "processed", "compensated", "error")
            self.assertEqual(task["state"], "processed", task["steps"])
            self.assertEqual(task["steps"][0]["output"]["input"], i)
        wait_for("no zombies", lambda: not children_of(self.agent.pid()))
        if os.getuid() == 0:  # nobody else may look into a process that has secrets
            self.assertLess(len(os.listdir(f"/proc/{self.agent.pid()}/fd")), 40)

    def test_memory_and_user_are_as_configured(self):
        actions = {"hungry": {"command": [sys.executable, "-c", "x = bytearray(3 << 30); print(1)"],
                              "limits": {"memory": "1GiB"}}}
        if os.geteuid() == 0:
            actions["who"] = {"command": ["sh", "-c", "id -u; id -G; echo $HOME $USER"], "user": "nobody", "output": "text"}
        self.start(actions)
        step = self.server.wait(self.submit("hungry", on_failure="hold"), "error")["steps"][0]
        self.assertIn("MemoryError", step["error"]["message"])
        if os.geteuid() == 0:
            nobody = pwd.getpwnam("nobody")
            groups = " ".join(str(g) for g in os.getgrouplist("nobody", nobody.pw_gid))
            self.assertEqual(self.run_one("who")["output"], f"{nobody.pw_uid}\n{groups}\n{nobody.pw_dir} nobody")

    def test_a_secret_that_begins_another_one_leaves_no_rest(self):
        for name, text in ("short", "secretabcd"), ("long", "secretabcd-and-more-tail"):
            with open(self.dir + "/" + name, "w", encoding="utf-8") as f:
                f.write(text)
        self.start({"moan": shell('printf "%s" "$LONG" >&2; exit 75') | {
            "environment": {"A": {"file": self.dir + "/short"}, "LONG": {"file": self.dir + "/long"}}}})
        message = self.server.wait(self.submit("moan", on_failure="hold"), "error")["steps"][0]["error"]["message"]
        self.assertIn("***", message)
        self.assertNotIn("tail", message)

    def test_a_secret_of_many_lines_is_one_in_each(self):
        """Lines of a file from Windows, more of them than a key has, and lines that overlap."""
        with open(self.dir + "/many", "w", encoding="utf-8", newline="") as f:
            f.write("".join(f"secret-line-number-{i:04}\r\n" for i in range(1000)) + "abcd-1234\r\n1234-wxyz\r\n")
        self.start({"tell": {"command": ["printf", "<%s> <%s> <%s>", "secret-line-number-0003", "secret-line-number-0999", "abcd-1234-wxyz"],
                             "output": "text", "environment": {"S": {"file": self.dir + "/many"}}}})
        self.assertEqual(self.run_one("tell")["output"], "<***> <***> <***>")

    def test_a_secret_is_none_as_a_number_or_a_name(self):
        secrets = {"PIN": "1234567890", "A": "secret-a", "B": "secret-b"}
        for name, text in secrets.items():
            with open(f"{self.dir}/{name}", "w", encoding="utf-8") as f:
                f.write(text)
        keeps = {"environment": {name: {"file": f"{self.dir}/{name}"} for name in secrets}}
        self.start({"pin": shell("""printf '{"pin": %s, "list": [%s,1,-2.5e3], "other": 12345678901}' $PIN $PIN""") | keeps,
                    "names": shell("""printf '{"%s" : 1, "%s":{"%s": 2}, "c": "%s"}' $A $B $A $B""") | keeps})
        self.assertEqual(self.run_one("pin")["output"], {"pin": "***", "list": ["***", 1, -2500.0], "other": 12345678901})
        self.assertEqual(self.run_one("names")["output"], {"***": 1, "***2": {"***3": 2}, "c": "***"})

    def test_a_command_that_stops_its_keeper_ends_in_time(self):
        self.start({"once": shell(f"echo $$ > {self.dir}/one; kill -STOP $PPID; exec sleep 100000"),
                    "always": shell(f"echo $$ > {self.dir}/one; trap '' TERM; (while :; do kill -STOP $PPID; done) & "
                                    "while :; do kill -STOP $PPID; done"),
                    "next": shell("echo 1")},
                   places=1)
        for action in ("once", "always"):
            self.actions_own_time(action)
            self.assertEqual(self.run_one("next")["output"], 1, "its place is free")
        wait_for("nothing is left", lambda: not children_of(self.agent.pid()))

    def actions_own_time(self, action):
        name = self.submit(action, complete_by="3s", on_failure="hold", retry={"attempts": 1000, "wait": "1ms", "max_wait": "1ms"})
        pid = self.wait_pid("one")
        self.server.call(f"/v1/tasks/{name}/cancel", {"reason": "it does not end"})
        self.gone(pid)
        self.server.wait(name, "compensated", "error")
        os.remove(self.dir + "/one")

    def test_a_stopped_keeper_does_not_outlive_the_agent(self):
        self.start({"once": shell(f"echo $$ > {self.dir}/one; kill -STOP $PPID; exec sleep 100000")})
        self.submit("once")
        pid = self.wait_pid("one")
        keeper = children_of(self.agent.pid())[0]
        wait_for("it stands still", lambda: read(f"/proc/{keeper}/stat").rsplit(")", 1)[1].split()[0] == "T")
        self.agent.kill()
        self.gone(pid, keeper)

    def test_a_code_cannot_pass_for_fields_of_the_log(self):
        code = "x by=admin event=alert"
        self.start({"forge": shell(f"""echo '{{"error": {{"code": "{code}", "retryable": false}}}}'; exit 1""")})
        self.assertEqual(self.run_one("forge")["error"]["code"], code)
        self.assertIn(f'code="{code}"', wait_for("a line", lambda: read(self.dir + "/agent.log")))

    def test_a_command_gets_no_new_privileges(self):
        status = {"command": ["sed", "-n", "s/^NoNewPrivs:\\s*//p", "/proc/self/status"], "output": "text"}
        actions = {"usual": status, "sudo": status | {"no_new_privileges": False},
                   "back": {"command": ["false"], "no_new_privileges": False, "undo": status | {"no_new_privileges": True}}}
        program = self.dir + "/id"  # a set-user-id one of root's
        if os.geteuid() == 0:
            shutil.copy("/usr/bin/id", program)
            os.chmod(program, 0o4755)
            who = {"command": [program, "-u"], "user": "nobody", "output": "text"}
            actions |= {"who": who, "who_sudo": who | {"no_new_privileges": False}}
        self.start(actions)
        self.assertEqual(self.run_one("usual")["output"], "1")
        already = read("/proc/self/status").split("NoNewPrivs:\t")[1][0]
        self.assertEqual(self.run_one("sudo")["output"], already)
        if os.geteuid() == 0:
            nobody = str(pwd.getpwnam("nobody").pw_uid)
            self.assertEqual(self.run_one("who")["output"], nobody)
            obeyed = already == "0" and not os.statvfs(self.dir).f_flag & os.ST_NOSUID
            self.assertEqual(self.run_one("who_sudo")["output"], "0" if obeyed else nobody)

    def test_a_confined_command_has_its_files_alone(self):
        for name in ("open", "closed", "work"):
            os.mkdir(f"{self.dir}/{name}")
        for name in ("open", "closed"):
            with open(f"{self.dir}/{name}/file", "w", encoding="utf-8") as f:
                f.write(name + "\n")
        confine = {"read": [self.dir + "/open"], "write": [self.dir + "/work"]}
        tries = (f"cd {self.dir}\n"
                 "cat open/file\n"
                 "echo made > work/file && mv work/file work/moved && cat work/moved\n"
                 "cat closed/file || echo no\n"
                 "(echo x > open/file) || echo no\n"
                 "(: > open/new) || echo no\n"
                 "rm closed/file || echo no\n"
                 "cat /etc/passwd || echo no\n"
                 "id -u > /dev/null && echo end\n")
        self.start({"walled": shell(tries) | {"confine": confine, "output": "text"},
                    "inner": shell(f"cat {self.dir}/closed/file") | {"confine": {"read": [self.dir + "/closed"]}, "output": "text"},
                    "free": shell(f"cat {self.dir}/closed/file") | {"output": "text"},
                    "gone": shell("true") | {"confine": {"read": [self.dir + "/missing"]}},
                    "script": {"command": [self.dir + "/open/run"], "output": "text", "confine": {}}})
        with open(self.dir + "/open/run", "w", encoding="utf-8") as f:
            f.write(f"#!/bin/sh\necho runs; cat {self.dir}/open/file || echo no\n")
        os.chmod(self.dir + "/open/run", 0o755)
        if not self.has_landlock():
            step = self.server.wait(self.submit("walled", on_failure="hold"), "error")["steps"][0]
            self.assertEqual((step["error"]["code"], step["in_doubt"]), ("cannot_run", False))
            self.assertIn("Landlock", step["error"]["message"])
            self.skipTest("this kernel has no Landlock")
        self.assertEqual(self.run_one("walled")["output"], "open\nmade\nno\nno\nno\nno\nno\nend")
        self.assertEqual(self.run_one("inner")["output"], "closed")
        self.assertEqual(self.run_one("free")["output"], "closed")
        self.assertEqual(self.run_one("script")["output"], "runs\nno")
        self.assertEqual(read(self.dir + "/open/file"), "open\n")
        step = self.server.wait(self.submit("gone", on_failure="hold"), "error")["steps"][0]
        self.assertEqual((step["error"]["code"], step["in_doubt"]), ("cannot_run", False))
        self.assertIn(f"confine: {self.dir}/missing: No such file", step["error"]["message"])
        # A path that comes later is taken then.
        os.mkdir(self.dir + "/missing")
        self.assertEqual(self.run_one("gone")["state"], "completed")

    def has_landlock(self):
        version = ctypes.CDLL(None, use_errno=True).syscall(444, None, 0, 1)
        return version > 0

    def test_what_is_not_in_the_list_is_not_run(self):
        self.start({"undo_only": {"undo": {"command": ["true"]}}, "forward_only": {"command": ["false"]}})
        for action in ("sh", "undo_only", "../sh", "forward_only/undo"):
            if "/" not in action:
                step = self.server.wait(self.submit(action, on_failure="hold"), "error")["steps"][0]
                self.assertEqual((step["error"]["code"], step["in_doubt"]), ("unknown_action", False))

    def test_mistakes_are_told_in_one_go(self):
        config = self.dir + "/bad.yaml"
        with open(config, "w", encoding="utf-8") as f:
            f.write("intact_exec: 2\nagents:\n  Tools: {}\n  tools:\n    places: 0\n    actions:\n"
                    "      a: {comand: [x]}\n      b: {command: ls -l}\n      c: {command: [bin/ls]}\n"
                    "      d: {command: [ls, 3], user: nobodyatall, limits: {memory: 3MB, output: 1GiB}, directory: tmp}\n"
                    "      e: {command: [ls], environment: {INTACT_X: '1', Y: 1, Z: {file: rel}, 'a b': x}, output: xml}\n"
                    "      f: {command: [ls], confine: {read: tmp, write: [rel, /no/such], run: []}, no_new_privileges: 1}\n"
                    "      g: {command: [ls], confine: {read: [/tmp]}, no_new_privileges: false}\n"
                    "      h: {command: [ls], confine: true}\n")
        done = subprocess.run([INTACT, "agent", "exec", "--config", config, "--check"], env=ENVIRONMENT, capture_output=True,
                              text=True, timeout=PATIENCE_S, check=False)
        self.assertEqual(done.returncode, 1)
        expected = ["1:14: error: intact_exec: found 2, expected 1", "3:3: error: agents.Tools:", "actions",
                    "5:13: error: agents.tools.places: found 0", 'did you mean "command"?', "no shell reads it",
                    "an absolute path, or a name to be found in PATH", "a text, in quotes", "the name of a user",
                    "found \"3MB\"", "at most 512KiB", "directory", "not INTACT_ at its beginning", "{from: NAME}",
                    "Z.file", "json, text or none", "a list of at most 100 absolute paths", "f.confine.write[0]: found \"rel\"",
                    "f.confine.run: ", "f.no_new_privileges: found 1",
                    "actions.g: found confine and no_new_privileges: false, expected one of them",
                    "h.confine: found true"]
        for text in expected:
            self.assertIn(text, done.stderr)
        self.assertEqual(len([l for l in done.stderr.splitlines() if "a b" in l]), 1)


if __name__ == "__main__":
    unittest.main(verbosity=1)
