#!/usr/bin/python3
"""Families under SIGKILL: roots with children and grandchildren, agents that refuse and that lose answers, operators who cancel, undo,
pause and resume, while the nodes are killed at random. When all has come to rest, each family has ended as one, nothing is left
between its tasks, and the ledger of the agents agrees with their states.

Usage: families.py PROGRAM sqlite|postgres [--rounds N] [--seconds N] [--seed N]
    PROGRAM    intact
    sqlite     one node; postgres: two nodes, and a database of their own
    --seconds  how long there is trouble in a round (15)
A round that fails prints its seed, and keeps its folder. The seed decides what is done, not when threads and processes do it.
"""

import argparse
import collections
import http.client
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
import traceback
import urllib.error
import urllib.request

import commits_kit
import kit

AGENTS = 4
NOT_NOW = (0, 429, 503)  # 0: no answer


def step(name, action, **more):
    """One that is undone by un-ACTION, unless it is said otherwise. What is called `may` is refused now and then."""
    common = {"name": name, "agent": "a", "action": action, "complete_by": "2s", "retry": {"attempts": 500, "wait": "100ms"}}
    return common | (more if more.get("pivot") else {"undo": {"action": f"un-{action}"}} | more)


def child(name, workflow, **more):
    return {"name": name, "task": {"workflow": workflow}} | more


WORKFLOWS = {
    "leaf": [step("x", "do"), step("y", "may")],
    "middle": [child("l", "leaf"), step("m", "do")],
    "firm": [step("x", "do"), step("t", "may", pivot=True)],
    "tree": [child("a", "middle"), child("b", "leaf", after=["a"]), child("c", "leaf", after=["a"]), step("e", "may", after=["b", "c"])],
    "pivoted": [child("a", "leaf"), child("p", "firm", after=["a"], pivot=True), step("q", "may", after=["a"])],
    "loose": [child("a", "leaf"), child("b", "leaf", after=["a"], undo="none"), step("e", "may", after=["b"])],
}
ROOTS = ("tree", "tree", "pivoted", "loose")
Task = collections.namedtuple("Task", "id root parent workflow state")


class Ledger:
    """What the agents did, by idempotency key. What was decided about a key stays, whoever is asked again."""

    def __init__(self):
        self.lock, self.done = threading.Lock(), {}

    def does(self, key, would):
        with self.lock:
            return self.done.setdefault(key, would)

    def effects(self):
        with self.lock:
            return {key for key, done in self.done.items() if done}


class Round:
    def __init__(self, program, store, seed):
        self.random, self.seed = random.Random(seed), seed
        self.folder = tempfile.mkdtemp(prefix="intact-families.")
        self.ledger, self.broken, self.threads = Ledger(), [], []
        self.over, self.calm = threading.Event(), threading.Event()  # for the agents; for those who kill
        self.roots, self.paused, self.kept, self.kills, self.end = {}, set(), set(), 0, 0
        self.servers, self.store, self.spent = [], None, {}
        for name in ("n1",) if store == "sqlite" else ("n1", "n2"):
            os.mkdir(f"{self.folder}/{name}")
            self.servers.append(kit.Server(program, folder=f"{self.folder}/{name}"))
        self.store = commits_kit.Sqlite(self.servers[0]) if store == "sqlite" else commits_kit.Postgres(None)
        for number, server in enumerate(self.servers, 1):
            server.flags = ["--open", "--scan-every", "200ms", "--grace", "1s"]
            if store == "postgres":
                server.flags += ["--store", f"postgresql:///postgres?host={self.store.folder}/pg&user=intact", "--node", f"n{number}"]
            server.start()

    # ---- requests ----

    def call(self, chance, method, path, body=None):
        """Of any node: its status and what it says."""
        url = f"http://127.0.0.1:{chance.choice(self.servers).port}{path}"
        request = urllib.request.Request(url, method=method, data=None if body is None else json.dumps(body).encode(),
                                         headers={"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=20) as reply:
                return reply.status, json.loads(reply.read() or b"null")
        except urllib.error.HTTPError as e:
            return e.code, e.read().decode(errors="replace") if e.code not in NOT_NOW else ""
        except (OSError, http.client.HTTPException, ValueError) as e:
            return 0, str(e)

    def ask(self, method, path, body=None):
        """Until there is an answer."""
        def once():
            assert not self.broken, self.broken[0]
            answer = self.call(self.random, method, path, body)
            return None if answer[0] in NOT_NOW else answer

        status, said = kit.eventually(f"{method} {path} is answered", once)
        assert status < 500, f"{method} {path}: {status} {said}"
        return status, said

    def submit(self, workflow):
        id_ = f"{workflow}-{len(self.roots)}"
        status, said = self.ask("POST", "/v1/tasks", {"workflow": workflow, "id": id_})
        assert status in (200, 201), f"{id_}: {status} {said}"
        self.roots[id_] = workflow
        return id_

    # ---- those who work, and those who kill: threads of their own ----

    def thread(self, function, *words):
        def guarded():
            try:
                function(*words)
            except BaseException:  # pylint: disable=broad-except # told by the main thread
                self.broken.append(traceback.format_exc())

        self.threads.append(threading.Thread(target=guarded, daemon=True))
        self.threads[-1].start()

    def work(self, number):
        chance, results = random.Random(f"{self.seed} agent {number}"), []
        while not self.over.is_set():
            status, said = self.call(chance, "POST", "/v1/agents/a/work",
                                     {"instance": f"i{number}", "max": 8, "wait": "1s", "results": results})
            if status in NOT_NOW:
                time.sleep(0.05)
                continue
            assert status == 200, f"work: {status} {said}"
            results = [result for result in (self.handle(chance, request) for request in said["requests"]) if result]

    def handle(self, chance, request):
        """The result; None: it gets lost after the effect."""
        if not self.ledger.does(request["idempotency_key"], request["action"] != "may" or chance.random() >= 0.12):
            return {"token": request["token"], "error": {"code": "no", "message": "no", "retryable": False, "effect": "none"}}
        return {"token": request["token"], "output": 1} if chance.random() >= 0.05 else None

    def kill(self):
        """One node, or all of them, again and again; all are there at the end."""
        chance = random.Random(f"{self.seed} kill")
        while not self.calm.wait(chance.uniform(0.2, 1.5)) and (time.monotonic() < self.end or not self.kills):
            victims = self.servers if chance.random() < 0.2 else [chance.choice(self.servers)]
            for server in victims:
                server.kill()
                self.kills += 1
            time.sleep(chance.uniform(0, 0.8))
            for server in victims:
                server.start()

    # ---- a round ----

    def operate(self):
        root = self.random.choice(list(self.roots))
        verb = self.random.choice(("cancel", "undo", "pause", "resume", "cancel child"))
        if verb == "pause":
            self.paused.add(root)
        if verb == "cancel child":
            root, verb = f"{root}@{self.random.choice('abcp')}", "cancel"
        self.ask("POST", f"/v1/tasks/{root}/{verb}", {"reason": "chaos"})

    def look_at_loose(self):
        """From when the child of a step without undo is processed, it stays so."""
        loose = [id_ for id_, workflow in self.roots.items() if workflow == "loose"]
        if loose:
            kept = f"{self.random.choice(loose)}@b"
            status, task = self.ask("GET", f"/v1/tasks/{kept}")
            if status == 200 and task["state"] == "processed":
                self.kept.add(kept)

    def trouble(self, seconds):
        began = time.monotonic()
        self.end = began + seconds  # for those who kill, too: nobody waits for a server that is killed again and again
        self.thread(self.kill)
        while time.monotonic() < self.end or not self.kills:
            self.submit(self.random.choice(ROOTS))
            if self.random.random() < 0.3:
                self.operate()
            if self.random.random() < 0.2:
                self.look_at_loose()
            time.sleep(0.05)
        self.calm.set()
        self.threads[-1].join()
        self.spent["trouble"] = time.monotonic() - began

    def tasks(self):
        return {row[0]: Task(*row) for row in self.store.rows("SELECT id, root, parent, workflow, state FROM task")}

    def rest(self):
        """All has ended, and nothing is on its way."""
        def once():
            assert not self.broken, self.broken[0]
            left = self.store.rows("""SELECT (SELECT count(*) FROM task WHERE state NOT IN ('processed', 'compensated', 'error')),
                (SELECT count(*) FROM notice WHERE refused_at IS NULL), (SELECT count(*) FROM submission)""")[0]
            return left == (0, 0, 0)

        kit.eventually("all has ended, no notice and no submission is left", once)

    def undo_a_loose_one(self):
        """So that each round has one whose child stays."""
        def once():
            root = self.submit("loose")
            self.rest()
            return root if self.tasks()[root].state == "processed" else None

        root = kit.eventually("a loose one is processed", once)
        self.kept.add(f"{root}@b")
        status, said = self.ask("POST", f"/v1/tasks/{root}/undo", {"reason": "chaos"})
        assert status < 300, f"undo of {root}: {status} {said}"
        self.rest()
        assert self.tasks()[root].state == "compensated", self.tasks()[root]

    def play(self, seconds):
        for name, steps in WORKFLOWS.items():
            status, said = self.ask("PUT", f"/v1/workflows/{name}", {"intact": 1, "workflow": name, "steps": steps})
            assert status in (200, 201), f"{name}: {status} {said}"
        for number in range(AGENTS):
            self.thread(self.work, number)
        self.trouble(seconds)
        for root in self.paused:
            self.ask("POST", f"/v1/tasks/{root}/resume", {"reason": "chaos"})
        began = time.monotonic()
        self.rest()
        self.spent["rest"] = time.monotonic() - began
        self.undo_a_loose_one()
        self.over.set()
        for thread in self.threads:
            thread.join()
        assert not self.broken, self.broken[0]
        self.check()

    # ---- the rules ----

    def check(self):
        tasks = self.tasks()
        wrong = [f"refused notice: {row}" for row in
                 self.store.rows("SELECT task, sender, kind, body, reason FROM notice WHERE refused_at IS NOT NULL")]
        wrong += [f"lost: {root}" for root in self.roots if root not in tasks]
        wrong += [f"not as its root, {tasks[task.root or task.id]}: {task}" for task in tasks.values()
                  if not self.fits(task, tasks[task.root or task.id])]
        wrong += [f"it was processed, and could not be undone: {tasks[id_]}" for id_ in self.kept if tasks[id_].state != "processed"]
        wrong += self.wrong_effects(tasks)
        states = collections.Counter(tasks[root].state for root in self.roots)
        print(f"{len(self.roots)} roots, {len(tasks)} tasks, {self.kills} kills, {len(self.ledger.effects())} effects, "
              f"{len(self.kept)} seen to stay: {dict(states)}; "
              f"{self.spent['trouble']:.0f} s of trouble, at rest {self.spent['rest']:.0f} s later", flush=True)
        assert not wrong, "\n".join(wrong[:20])
        assert states["processed"] and states["compensated"], "there was too little to see"

    def fits(self, task, root):
        """A family ends as one. Only a step that failed for good beside a pivot that took effect can stop, and that is the root's."""
        if root.state == "error":
            return root.workflow == "pivoted" and (task.id == root.id or task.state in ("processed", "compensated"))
        if root.workflow == "loose" and task.id == f"{root.id}@b" and root.state == "compensated":
            return task.state in ("processed", "compensated")  # self.kept has those that must not be the latter
        return task.state == root.state

    def wrong_effects(self, tasks):
        effects = self.ledger.effects()
        for key in effects:
            task = tasks.get(key.split("/")[0])
            if task is None:
                yield f"an effect of no task: {key}"
            elif task.state == "compensated" and not key.endswith("/undo") and f"{key}/undo" not in effects:
                yield f"{key} is not undone, and {task.id} is compensated"
            elif task.state == "processed" and key.endswith("/undo"):
                yield f"{key} was done, and {task.id} is processed"

    def close(self, keep):
        self.over.set()
        self.calm.set()
        for thread in self.threads:
            thread.join(30)
        for server in self.servers:
            server.kill() if keep or not server.process else server.close()
        if self.store:
            self.store.close(*[keep] if isinstance(self.store, commits_kit.Postgres) else [])
        if not keep:
            shutil.rmtree(self.folder, ignore_errors=True)


def play(program, store, seed, seconds):
    this, good = Round(program, store, seed), False
    try:
        this.play(seconds)
        good = True
    finally:
        if not good:
            print(f"failed: --seed {seed}; kept: {this.folder}", getattr(this.store, "folder", ""), flush=True)
        this.close(keep=not good)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("store", choices=("sqlite", "postgres"))
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=15)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    chosen = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # nothing is left running
    if chosen.store == "postgres" and not commits_kit.POSTGRES:
        print("skipped: there is no PostgreSQL")
        sys.exit(77)
    for number in range(chosen.rounds):
        print(f"families: {chosen.store}, seed {chosen.seed + number}", flush=True)
        play(os.path.realpath(chosen.program), chosen.store, chosen.seed + number, chosen.seconds)


main()
