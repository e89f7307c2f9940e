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

import collections
import random
import time

import chaos_kit
import kit


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


class Round(chaos_kit.Round):
    def __init__(self, *words):
        self.roots, self.paused, self.kept, self.spent = {}, set(), set(), {}
        super().__init__(*words)

    def submit(self, workflow):
        id_ = f"{workflow}-{len(self.roots)}"
        status, said = self.ask("POST", "/v1/tasks", {"workflow": workflow, "id": id_})
        assert status in (200, 201), f"{id_}: {status} {said}"
        self.roots[id_] = workflow
        return id_

    def handle(self, chance, request):
        """The result; None: it gets lost after the effect."""
        if not self.ledger.does(request["idempotency_key"], request["action"] != "may" or chance.random() >= 0.12):
            return {"token": request["token"], "error": {"code": "no", "message": "no", "retryable": False, "effect": "none"}}
        return {"token": request["token"], "output": 1} if chance.random() >= 0.05 else None

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
        self.define({name: {"steps": steps} for name, steps in WORKFLOWS.items()})
        self.begin_work()
        self.trouble(seconds)
        for root in self.paused:
            self.ask("POST", f"/v1/tasks/{root}/resume", {"reason": "chaos"})
        began = time.monotonic()
        self.rest()
        self.spent["rest"] = time.monotonic() - began
        self.undo_a_loose_one()
        self.end_work()
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


chaos_kit.main(Round, "families", __doc__, 15)
