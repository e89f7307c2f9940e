#!/usr/bin/python3
"""Items under SIGKILL: lists of some kinds, agents that refuse, lose answers and die, operators who retry, skip, supply and resolve single
items, cancel, undo and pause, while the nodes are killed at random. All the time the sums of each document are those of its rows; when
all has come to rest, the ledger of the agents agrees with the items: what took effect was undone if its task was, and only then.

Usage: items.py PROGRAM sqlite|postgres [--rounds N] [--seconds N] [--seed N]
    PROGRAM    intact
    sqlite     one node; postgres: two nodes, and a database of their own
    --seconds  how long there is trouble in a round (15)
A round that fails prints its seed, and keeps its folder. The seed decides what is done, not when threads and processes do it.
"""

import collections
import random
import time

import chaos_kit
import items_rules
import kit

ITEMS = 60  # of the longest list
OPEN_MAX = 30  # tasks
LONG = 3000  # characters: a value that does not fit into the document


def pack(**more):
    return {"name": "pack", "for_each": "${ .input.lines }", "max_items": 1000, "agent": "a", "action": "may", "complete_by": "2s",
            "retry": {"attempts": 500, "wait": "100ms"}, "input": {"n": "${ .index }", "line": "${ .item }"}} | more


UNDO = {"undo": {"action": "un-may", "input": {"n": "${ .index }", "line": "${ .item }"}}}
LAST = {"name": "last", "agent": "a", "action": "seldom", "undo": "none", "complete_by": "2s", "retry": {"attempts": 500, "wait": "100ms"},
        "input": "${ .steps.pack.output | length }"}
WORKFLOWS = {
    "stops": {"steps": [pack(concurrency=5, **UNDO), LAST]},
    "wide": {"steps": [pack(concurrency=20, on_item_failure={"tolerate": "10%"}, **UNDO), LAST]},
    "goes-on": {"steps": [pack(concurrency=4, on_item_failure="continue", retry={"attempts": 2, "wait": "100ms"}, **UNDO), LAST]},
    "holds": {"steps": [pack(concurrency=3, on_failure="hold", **UNDO), LAST]},
    "pivot": {"steps": [pack(concurrency=3, pivot=True)]},
}
REFUSED = {"may": 0.02, "seldom": 0.3}  # how many, by action
LOST = 0.03  # answers; as many agents die
VERBS = ("cancel", "undo", "pause", "resume", "retry", "skip", "supply", "resolve")
END = ("processed", "compensated", "error")


class Round(chaos_kit.Round):
    def __init__(self, *words):
        self.tasks, self.paused, self.checks, self.verbs = {}, set(), 0, collections.Counter()
        super().__init__(*words)

    def submit(self):
        workflow = self.random.choice(list(WORKFLOWS))
        id_ = f"{workflow}-{len(self.tasks)}"
        lines = [{"n": n, "text": "x" * (LONG if self.random.random() < 0.1 else 5)} for n in range(self.random.randint(0, ITEMS))]
        status, said = self.ask("POST", "/v1/tasks", {"workflow": workflow, "id": id_, "input": {"lines": lines}})
        assert status in (200, 201), f"{id_}: {status} {said}"
        self.tasks[id_] = len(lines)

    def handle(self, chance, request):
        """The result; None: the agent dies, before its effect or after it."""
        key, action = request["idempotency_key"], request["action"]
        if action in ("may", "un-may"):
            given, name = request["input"], f"/pack.{request['input']['n']}"
            assert name in key and given["line"]["n"] == given["n"], f"{key} is asked for {given}"
        if chance.random() < LOST:
            return None
        if not self.ledger.does(key, chance.random() >= REFUSED.get(action, 0)):
            return {"token": request["token"], "error": {"code": "no", "message": "no", "retryable": False, "effect": "none"}}
        return {"token": request["token"], "output": "y" * (LONG if chance.random() < 0.1 else 5)} if chance.random() >= LOST else None

    # ---- a round ----

    def operate(self):
        task, verb = self.random.choice(list(self.tasks)), self.random.choice(VERBS)
        if verb == "pause":
            self.paused.add(task)
        body = {"reason": "chaos"}
        if verb in ("retry", "skip", "supply", "resolve"):
            held = [row[0] for row in self.store.rows("SELECT id FROM task WHERE state = 'error'")]
            task = self.random.choice(held or [task])
            body["step"] = self.random.choice(self.failed_items(task) or [f"pack.{self.random.randint(0, ITEMS)}", "pack"])
        if verb == "supply":
            body["output"] = "supplied"
        status, _ = self.ask("POST", f"/v1/tasks/{task}/{verb}", body)
        self.verbs[verb] += status == 200

    def failed_items(self, task):
        return [f"pack.{row[0]}" for row in
                self.store.rows("SELECT number FROM task_item WHERE task = :id AND state = 'failed' AND at_work ORDER BY number", id=task)]

    def look(self):
        """At one of the tasks."""
        id_ = self.random.choice(list(self.tasks))
        for sql in items_rules.ALL:
            found = self.store.rows(sql, id=id_)
            assert found and found[0][0], f"not so: {sql} {id_}: {found}"
        self.checks += 1

    def trouble(self, seconds):
        self.end = time.monotonic() + seconds
        self.thread(self.kill)
        while time.monotonic() < self.end or not self.kills:
            if self.store.rows("SELECT count(*) FROM task WHERE state NOT IN ('processed', 'compensated', 'error')")[0][0] < OPEN_MAX:
                self.submit()
            if self.random.random() < 0.4:
                self.operate()
            self.look()
            time.sleep(0.05)
        self.calm.set()
        self.threads[-1].join()

    def bring_to_an_end(self, task):
        """A task in error is undone if it can be, else what failed is skipped: the items, and then the step if others are at rest."""
        status, _ = self.ask("POST", f"/v1/tasks/{task}/undo", {"reason": "chaos"})
        for unit in [*self.failed_items(task), "pack"] if status != 200 else ():
            self.ask("POST", f"/v1/tasks/{task}/skip", {"step": unit, "reason": "chaos"})

    def rest(self):
        def once():
            assert not self.broken, self.broken[0]
            self.look()
            for row in self.store.rows("SELECT id FROM task WHERE state = 'error'"):
                self.bring_to_an_end(row[0])
            return self.store.rows("SELECT count(*) FROM task WHERE state NOT IN ('processed', 'compensated')")[0][0] == 0

        kit.eventually("all has ended", once)

    def play(self, seconds):
        self.define(WORKFLOWS)
        self.begin_work()
        self.submit()
        self.trouble(seconds)
        for task in self.paused:
            self.ask("POST", f"/v1/tasks/{task}/resume", {"reason": "chaos"})
        self.rest()
        self.end_work()
        self.check()

    # ---- the rules ----

    def check(self):
        states = {row[0]: row[1] for row in self.store.rows("SELECT id, state FROM task")}
        items = {(row[0], row[1]): row for row in self.store.rows("SELECT task, number, state, in_doubt FROM task_item")}
        wrong = [f"lost: {id_}" for id_ in self.tasks if id_ not in states]
        for id_ in self.tasks:
            wrong += [f"not so: {sql} {id_}" for sql in items_rules.ALL if not self.store.rows(sql, id=id_)[0][0]]
        wrong += self.wrong_effects(states)
        wrong += self.wrong_items(states, items)
        print(f"{len(self.tasks)} tasks, {len(items)} items, {self.kills} kills, {len(self.ledger.effects())} effects, {self.checks} looks, "
              f"{dict(self.verbs)}: {dict(collections.Counter(states.values()))}", flush=True)
        assert not wrong, "\n".join(wrong[:20])
        assert {"processed", "compensated"} <= set(states.values()), "there was too little to see"

    def wrong_effects(self, states):
        effects = {key for key in self.ledger.effects() if "/pack." in key}
        for key in effects:
            state = states.get(key.split("/")[0])
            if state == "compensated" and not key.endswith("/undo") and f"{key}/undo" not in effects:
                yield f"{key} is not undone, and its task is compensated"
            elif state != "compensated" and key.endswith("/undo"):
                yield f"{key} was done, and its task is {state}"

    def wrong_items(self, states, items):
        """What is completed took effect, unless an operator said so; in a task that is compensated nothing is."""
        effects = self.ledger.effects()
        late = {(row[0], row[1]) for row in self.store.rows(
            "SELECT task, number FROM item_document WHERE replace(CAST(value AS text), '\"late\"', '') <> CAST(value AS text)")}
        for (id_, number), (_, _, state, in_doubt) in items.items():
            took = any(key == f"{id_}/pack.{number}" for key in effects)
            if states[id_] == "compensated" and (state in ("completed", "undoing") or took and state not in ("undone", "failed", "skipped")):
                yield f"{id_}/pack.{number} is {state}, and its task is compensated"
            if state == "undone" and f"{id_}/pack.{number}/undo" not in effects:
                yield f"{id_}/pack.{number} is {state}, and nobody was asked"
            if states[id_] == "processed" and state == "failed" and took and not in_doubt and (id_, number) not in late:
                yield f"{id_}/pack.{number} took effect, and has failed without a doubt"
            if states[id_] == "processed" and state in ("undone", "undoing", "waiting", "running"):
                yield f"{id_}/pack.{number} is {state}, and its task is processed"
            if number >= self.tasks[id_]:
                yield f"{id_} has no item {number}"


chaos_kit.main(Round, "items", __doc__, 15)
