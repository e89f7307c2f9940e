#!/usr/bin/env python3
"""Whether a real server ends tasks as `intact simulate` says. The same schedules of faults are played by `intact test`, and by a
real `intact serve` with a real agent that loses requests and answers, fails and refuses as the schedule says; both have to come
to the same end. Then the server is killed with SIGKILL again and again: each task has to come to one of the ends that `intact
simulate` predicts, and a compensated one leaves no effect behind.

Usage: real_test.py INTACT [--tasks N] [--seed N] [--brief]: N tasks of each of the two; --brief: with three steps, so that all orders
of two faults are simulated sooner"""

import argparse
import http.client
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

parser = argparse.ArgumentParser()
parser.add_argument("intact")
parser.add_argument("--tasks", type=int, default=300)
parser.add_argument("--seed", type=int, default=1)
parser.add_argument("--brief", action="store_true")
WORDS = parser.parse_args()

OPEN_MAX = 300  # tasks at once
SCHEDULES_MAX = 500
DRAWN_PER_TASK = 40
PATIENCE_S = 300
RETRY = "complete_by: 1s, retry: {attempts: 3, wait: 20ms, max_wait: 50ms}"
STEPS = {
    "reserve": "undo: {action: release, %s}",
    "pack": "on_failure: continue, undo: {action: unpack, %s}",
    "charge": "undo: {action: refund, %s}",
    "ship": "pivot: true",
    "mail": "undo: none",
}
if WORDS.brief:
    del STEPS["pack"], STEPS["mail"]
WORKFLOW = "intact: 1\nworkflow: real\nsteps:\n" + "".join(
    f"  - {{name: {name}, agent: shop, action: {name}, {RETRY}, {rest.replace('%s', RETRY)}}}\n" for name, rest in STEPS.items())
HEAD = """workflow: real.yaml
world: {effects: 0}
agents:
  shop: {effect: {effects: .world.effects + 1}}
"""
KINDS = ("request lost", "answer lost", "refused", "fails", "fails after effect")
LASTING = ("request lost", "answer lost", "fails")


def draw(seed):
    """A schedule: 0 to 3 faults, as a test file has them."""
    r, faults = random.Random(seed), {}
    for _ in range(r.choice((0, 1, 1, 1, 2, 2, 3))):
        step = r.choice(list(STEPS))
        place = "undo" if r.random() < 0.35 and step not in ("ship", "mail") else "request"
        fault = {place: step, "number": r.choice((1, 1, 1, 2)), "is": r.choice(KINDS)}
        if fault["is"] in LASTING and r.random() < 0.4:
            fault["always"] = True
        faults[place, step, fault["number"]] = fault
    return list(faults.values())


def intact(folder, *words, statuses=(0,), env=None):
    done = subprocess.run([INTACT, *words], cwd=folder, env={**os.environ, **(env or {})}, capture_output=True, text=True, check=False,
                          timeout=PATIENCE_S)
    if done.returncode not in statuses:
        sys.exit(f"intact {' '.join(words)}: exit status {done.returncode}\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    return done.stdout


def predict(folder, schedules):
    """The end of each schedule, as `intact test` fills it in, and with these all ends that `intact simulate` finds: of all orders of two
    faults, and of drawn runs, as kills come on top of the faults of a schedule."""
    with open(folder + "/real.yaml", "w", encoding="utf-8") as file:
        file.write(WORKFLOW)
    asked = {"state": "?", "error": "?", "steps": {s: "?" for s in STEPS}}
    tests = "".join(f'  - {json.dumps({"name": f"schedule {i}", "faults": f, "expect": asked})}\n' for i, f in enumerate(schedules))
    with open(folder + "/schedules.test.yaml", "w", encoding="utf-8") as file:
        file.write(HEAD + "tests:\n" + tests)
    intact(folder, "test", "--update", "schedules.test.yaml")
    with open(folder + "/schedules.test.yaml", encoding="utf-8") as file:
        expected = [read_expected(line) for line in file if "schedule " in line]
    with open(folder + "/real.test.yaml", "w", encoding="utf-8") as file:
        file.write(HEAD + "tests: [{name: real, expect: {state: processed}}]\n")
    ends = set(expected)
    for words in (["--exhaustive"], ["--runs", str(DRAWN_PER_TASK * WORDS.tasks)]):
        found = json.loads(intact(folder, "simulate", "real.test.yaml", "--json", *words, statuses=(0, 1)))
        ends |= {end_of(e["end"]["state"], e["end"]["error"], e["end"]["steps"]) for e in found["ends"]}
    return expected, ends


def read_expected(line):
    quoted = re.sub(r'": (?!null|true|false)([a-z_]+)(?=[,}])', r'": "\1"', line)  # what was filled in is plain
    expect = json.loads(quoted.strip().removeprefix("- "))["expect"]
    return end_of(expect["state"], expect["error"], expect["steps"])


def end_of(state, error, steps):
    return state, error, tuple(sorted(steps.items()))


def give_up(story):
    """From any thread."""
    print(story, flush=True)
    os._exit(1)


class Server:
    def __init__(self, folder):
        self.folder, self.port = folder, 0
        self.start()
        with open(folder + "/data/admin-token", encoding="utf-8") as file:
            self.token = file.read().strip()

    def start(self):
        with open(self.folder + "/log", "ab") as log:
            self.process = subprocess.Popen(
                [INTACT, "serve", "--data", self.folder + "/data", "--listen", f"127.0.0.1:{self.port}", "--scan-every", "100ms",
                 "--grace", "100ms"], stdout=subprocess.PIPE, stderr=log, text=True)
        line = self.process.stdout.readline()
        if "listening" not in line:
            sys.exit(f"the server did not start: {open(self.folder + '/log', encoding='utf-8').read()[-3000:]}")
        self.port = int(line.split()[3])

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


class Client:
    """One connection, made again after each failure."""

    def __init__(self, server):
        self.server, self.connection = server, None

    def call(self, method, path, body=None, kind="application/json"):
        """Until it is answered."""
        began = time.monotonic()
        while time.monotonic() - began < PATIENCE_S:
            try:
                return self.once(method, path, body, kind)
            except (OSError, http.client.HTTPException):
                self.connection = None
                time.sleep(0.02)
        give_up(f"{method} {path}: no answer for {PATIENCE_S} s")

    def once(self, method, path, body, kind):
        if not self.connection:
            self.connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=20)
        headers = {"Authorization": "Bearer " + self.server.token, "Content-Type": kind}
        self.connection.request(method, path, body if body is None or isinstance(body, str) else json.dumps(body), headers)
        answer = self.connection.getresponse()
        text = answer.read()
        if answer.status >= 500:
            raise OSError(f"{answer.status}")
        if answer.status >= 400:
            give_up(f"{method} {path}: {answer.status} {text.decode()[:500]}")
        return json.loads(text) if kind == "application/json" else None


class Agent(threading.Thread):
    """Does what the schedule in the task's input says. Its world is in memory: it is never killed, its messages are."""

    def __init__(self, server):
        super().__init__(daemon=True)
        self.client, self.ends = Client(server), False
        self.counts, self.done, self.undone, self.task_of, self.disturbed = {}, set(), set(), {}, set()

    def run(self):
        results = []
        while not self.ends:
            answer = self.client.call("POST", "/v1/agents/shop/work",
                                      {"instance": "shop-1", "max": 1000, "wait": "1s", "results": results[:1000]})
            for o in answer.get("outcomes") or []:
                if o["status"] not in ("accepted", "duplicate"):
                    self.disturbed.add(self.task_of[o["token"]])
            results = results[1000:] + [r for q in answer["requests"] if (r := self.answer(q))]

    def answer(self, q):
        task, step, key, is_undo = q["task"], q["step"], q["idempotency_key"], q["direction"] == "undo"
        self.task_of[q["token"]] = task
        place = (task, step, is_undo)
        number = self.counts[place] = self.counts.get(place, 0) + 1
        forward = q["forward"]["idempotency_key"] if is_undo else key
        took = forward in self.done and (not is_undo or forward in self.undone)
        word = self.fault_of((q["forward"]["input"] if is_undo else q["input"])["faults"], step, is_undo, number, took)
        if word == "request lost":
            return None
        if word == "refused":
            return {"token": q["token"], "error": {"code": "refused", "message": "m", "retryable": False, "effect": "none"}}
        failed = {"token": q["token"], "error": {"code": "failed", "message": "m", "retryable": True, "effect": "unknown"}}
        if word == "fails":
            return failed
        if is_undo:
            self.undone.add(forward)
        elif forward not in self.undone:
            self.done.add(forward)
        if word == "answer lost":
            return None
        return failed if word == "fails after effect" else {"token": q["token"], "output": None}

    def fault_of(self, faults, step, is_undo, number, took):
        """The one of this request, or the latest that lasts."""
        best = None
        for f in faults:
            there = f.get("undo" if is_undo else "request") == step
            if there and (f["number"] == number or (f.get("always") and f["number"] < number)) \
                    and (not best or f["number"] > best["number"]):
                best = f
        return None if not best or (best["is"] == "refused" and took) else best["is"]


def play(server, agent, prefix, schedules, count):
    """Submits so many tasks, some at a time -> {id: (number of its schedule, end)}"""
    client, ends, open_tasks, number = Client(server), {}, [], 0
    while number < count or open_tasks:
        fresh = [(f"{prefix}-{n}", n % len(schedules)) for n in range(number, min(count, number + OPEN_MAX - len(open_tasks)))]
        number += len(fresh)
        if fresh:
            lines = "".join(json.dumps({"id": i, "workflow": "real", "input": {"faults": schedules[s]}}) + "\n" for i, s in fresh)
            client.call("POST", "/v1/tasks", lines, "application/x-ndjson")
        open_tasks += fresh
        left = []
        for task, schedule in open_tasks:
            t = client.call("GET", f"/v1/tasks/{task}")
            if t["state"] in ("processed", "compensated", "error"):
                steps = {s["name"]: s["state"] for s in t["steps"]}
                if not all_came(agent, t):
                    agent.disturbed.add(task)
                failure = None if t["state"] == "processed" else t["cause"] or t["error"]  # the first one
                error = failure and failure["code"]
                ends[task] = (schedule, end_of(t["state"], error, steps))
            else:
                left.append((task, schedule))
        if len(left) > len(open_tasks) // 2:
            time.sleep(0.2)
        open_tasks = left
    return ends


def all_came(agent, task):
    """Whether the agent got each attempt: one that is overdue before it could be sent is a fault that no schedule has."""
    for step in task["steps"]:
        for direction in ("forward", "undo"):
            made = sum(a["direction"] == direction for a in step["attempts"])
            if made != agent.counts.get((task["id"], step["name"], direction == "undo"), 0):
                return False
    return True


def check(ends, agent, is_right):
    wrong, kept = [], {}
    for key in agent.done - agent.undone:
        kept.setdefault(key.split("/")[0], []).append(key)
    for task, (schedule, end) in ends.items():
        if not is_right(task, schedule, end):
            wrong.append(f"{task}: schedule {schedule} ends {end}")
        if end[0] == "compensated" and task in kept:
            wrong.append(f"{task}: compensated, and still there: {kept[task]}")
    return wrong


def kill_often(server, seed, is_over):
    r, kills = random.Random(seed), 0
    while not is_over.wait(r.uniform(0.3, 2.5)):
        server.kill()
        server.start()
        kills += 1
    print(f"{kills} kills of the server", flush=True)


def main():
    folder = tempfile.mkdtemp(prefix="intact-real-")
    schedules = [draw(f"{WORDS.seed}/{i}") for i in range(min(SCHEDULES_MAX, WORDS.tasks))]
    expected, predicted = predict(folder, schedules)
    server = Server(folder)
    Client(server).call("PUT", "/v1/workflows/real", WORKFLOW, "application/yaml")
    # One breaker for all tasks: a simulation plays one task, for whose few faults it stays closed.
    intact(folder, "agent", "set", "shop", "--breaker", "off", env={"INTACT_SERVER": f"http://127.0.0.1:{server.port}",
                                                                   "INTACT_TOKEN": server.token})
    agent = Agent(server)
    agent.start()
    ends = play(server, agent, "calm", schedules, WORDS.tasks)
    undisturbed = [t for t in ends if t not in agent.disturbed]
    wrong = check(ends, agent, lambda task, s, end: end == expected[s] or (task in agent.disturbed and end in predicted))
    is_over = threading.Event()
    killer = threading.Thread(target=kill_often, args=(server, WORDS.seed, is_over))
    killer.start()
    killed = play(server, agent, "killed", schedules, WORDS.tasks)
    is_over.set()
    killer.join()
    wrong += check(killed, agent, lambda _task, _s, end: end in predicted)
    agent.ends = True
    server.kill()
    for line in wrong[:20]:
        print(line)
    kinds = {e for _, e in list(ends.values()) + list(killed.values())}
    if not wrong:
        shutil.rmtree(folder)
    print(f"{len(ends)} tasks, {len(undisturbed)} of them with the very end of their schedule; {len(killed)} among kills; "
          f"{len(kinds)} ends of {len(predicted)} predicted; {len(wrong)} not as predicted")
    if len(undisturbed) < len(ends) * 0.9:
        sys.exit("too many answers were late: the machine is too busy to compare")
    sys.exit(1 if wrong else 0)


INTACT = os.path.realpath(WORDS.intact)
main()
