#!/usr/bin/python3
"""Attacks on items: lists and values as large as they may be while the servers are killed, results that come twice, late and for a former
list, a task that is deleted while its items are read, and a node that stands still until another one has taken its task.

Usage: items_attacks_test.py PROGRAM sqlite|postgres [--items N] [CASE...]
    --items    of the longest list (2000)
"""

import argparse
import json
import os
import random
import signal
import sys
import threading
import time
import urllib.request

import chaos_kit
import commits_kit
import items_rules
import kit

LONG = 100 * 1024
LIST_MAX = 4 << 20  # bytes of a list



def pack(**more):
    return {"name": "pack", "for_each": "${ .input.lines }", "max_items": 10000, "concurrency": 100, "agent": "a", "action": "take",
            "retry": {"attempts": 20, "wait": "1ms"}, "input": {"n": "${ .index }", "line": "${ .item }"},
            "undo": {"action": "put-back", "input": {"n": "${ .index }", "taken": "${ .output }"}}} | more


WORKFLOWS = {
    "list": {"steps": [pack()]},
    "told": {"steps": [pack(), {"name": "tell", "agent": "b", "action": "tell", "undo": "none", "input": "${ .steps.pack.output | length }"}]},
    "slow": {"steps": [pack(concurrency=1, complete_by="300ms", retry={"attempts": 1}, on_item_failure="continue")]},
    "again": {"steps": [pack(undo="none", on_failure="hold", concurrency=3)]},
}


class Attack(chaos_kit.Round):
    """One agent, which does as it is told; the test kills the servers itself."""

    def __init__(self, program, store, count):
        super().__init__(program, store, 1)
        self.count, self.asked, self.output = count, {}, lambda n: n
        self.define(WORKFLOWS)

    def submit(self, workflow, id_, lines):
        status, said = self.ask("POST", "/v1/tasks", {"workflow": workflow, "id": id_, "input": {"lines": lines}})
        assert status in (200, 201), f"{id_}: {status} {said}"

    def work_call(self, most, results=(), wait="200ms", agent="a"):
        return self.ask("POST", f"/v1/agents/{agent}/work", {"instance": "i", "max": most, "wait": wait, "holding": [], "results": results})[1]

    def do(self, request):
        """Once for each key, which stands for one request."""
        key, given = request["idempotency_key"], request["input"]
        assert self.asked.setdefault(key, given) == given, key
        assert f"/pack.{given['n']}" in key, (key, given["n"])
        self.ledger.does(key, True)
        back = request["direction"] == "undo"
        assert not back or given["taken"] == self.output(given["n"]), key
        return {"token": request["token"], "output": None if back else self.output(given["n"])}

    def some(self, most=100):
        """One turn of the agent: how many it did."""
        requests = self.work_call(most)["requests"]
        results = [self.do(request) for request in requests]
        if results:
            outcomes = self.work_call(0, results)["outcomes"]
            assert all(o["status"] in ("accepted", "repeated", "late") for o in outcomes), outcomes
        return len(results)

    def state(self, id_):
        return self.store.rows("SELECT state FROM task WHERE id = :id", id=id_)[0][0]

    def until(self, id_, state, most=100):
        try:
            kit.eventually(f"{id_} is {state}", lambda: self.some(most) < 0 or self.state(id_) == state)
        except AssertionError as error:
            logs = "".join(f"\n{server.log}:\n{server.read_log()[-2000:]}" for server in self.servers)
            why = json.dumps(self.ask("GET", f"/v1/tasks/{id_}/why")[1])
            raise AssertionError(f"{error}: {why[:4000]}{logs}") from error

    def kill(self):
        for server in self.servers:
            server.kill()
        for server in self.servers:
            server.start()

    def rules(self, id_):
        for sql in items_rules.ALL:
            assert self.store.rows(sql, id=id_)[0][0], f"not so: {sql} {id_}"

    def keys(self, id_, back):
        return {key for key in self.ledger.effects() if key.startswith(f"{id_}/") and key.endswith("/undo") == back}

    # ---- cases ----

    def long_list_under_kills(self):
        """All are done, and undone, whoever is killed."""
        self.submit("list", "long", list(range(self.count)))
        for state, back in ("processed", False), ("compensated", True):
            for _ in range(3):
                for _ in range(4):
                    self.some()
                self.kill()
                self.rules("long")
            self.until("long", state)
            self.rules("long")
            assert len(self.keys("long", back)) == self.count, len(self.keys("long", back))
            if not back:
                status, said = self.ask("POST", "/v1/tasks/long/undo", {"reason": "attack"})
                assert status == 200, said

    def long_values(self):
        """Inputs and outputs of 100 KB. What is too much for an expression fails its step, which says so."""
        self.output = lambda n: f"{n}" + "y" * LONG
        self.submit("list", "values", ["x" * LONG] * 20)
        for _ in range(2):
            self.some(7)
            self.kill()
        self.until("values", "processed", 7)
        self.rules("values")
        items = self.ask("GET", "/v1/tasks/values/items?step=pack")[1]["items"]
        assert [item["output"] for item in items] == [self.output(n) for n in range(20)], len(items)
        self.submit("told", "too-long", ["x" * LONG] * 20)
        kit.eventually("its outputs are read", lambda: self.some(7) < 0 or self.work_call(1, wait="10ms", agent="b") is None
                       or self.state("too-long") in ("compensating", "compensated"))
        self.until("too-long", "compensated", 7)
        assert len(self.keys("too-long", True)) == 20, len(self.keys("too-long", True))
        task = self.ask("GET", "/v1/tasks/too-long")[1]
        assert task["error"]["code"] == "expression", task["error"]
        self.rules("too-long")
        self.output = lambda n: n

    def list_of_the_greatest_size(self):
        """What a body of 4 MiB can have."""
        lines = ["x" * 1000] * ((LIST_MAX - 4096) // 1003)
        self.submit("list", "large", lines)
        self.some()
        self.kill()
        self.some()
        self.rules("large")
        assert self.ask("POST", "/v1/tasks/large/cancel", {"reason": "attack"})[0] == 200
        self.until("large", "compensated")
        assert {f"{key}/undo" for key in self.keys("large", False)} == self.keys("large", True)
        self.rules("large")

    def results_twice_and_late(self):
        """Each is answered, and changes nothing."""
        self.submit("list", "twice", list(range(3)))
        results = [self.do(request) for request in kit.eventually("work", lambda: self.work_call(3)["requests"])]
        self.work_call(0, results)
        self.until("twice", "processed")
        before = self.store.rows("SELECT revision, doc FROM task WHERE id = 'twice'")
        for _ in range(2):
            said = [o["status"] for o in self.work_call(0, results * 2)["outcomes"]]
            assert set(said) <= {"repeated", "late"}, said
            self.kill()
        assert self.store.rows("SELECT revision, doc FROM task WHERE id = 'twice'") == before
        self.submit("slow", "late", list(range(2)))
        first = kit.eventually("work", lambda: self.work_call(1)["requests"])[0]
        kit.eventually("it is given up", lambda: self.store.rows(
            "SELECT count(*) FROM task_item WHERE task = 'late' AND number = 0 AND state = 'failed' AND NOT at_work")[0][0])
        assert self.work_call(0, [self.do(first)])["outcomes"][0]["status"] == "late"
        self.until("late", "processed")
        self.rules("late")

    def results_of_a_former_list(self):
        """They are not for the present one, though step and number are the same."""
        self.submit("again", "again", list(range(2)))
        requests = kit.eventually("work", lambda: self.work_call(2)["requests"])
        no = {"code": "no", "message": "no", "retryable": False, "effect": "none"}
        self.work_call(0, [{"token": request["token"], "error": no} for request in requests])
        kit.eventually("it is held", lambda: self.state("again") == "error")
        status, said = self.ask("POST", "/v1/tasks/again/retry", {"from": "pack", "reason": "attack"})
        assert status == 200, said
        anew = kit.eventually("work", lambda: (lambda found: len(found) == 2 and found)(self.work_call(2)["requests"]))
        assert sorted(request["idempotency_key"] for request in anew) == ["again/pack~2.0", "again/pack~2.1"], anew
        said = [o["status"] for o in self.work_call(0, [{"token": r["token"], "output": "old"} for r in requests])["outcomes"]]
        assert set(said) <= {"repeated", "late"}, said
        assert self.store.rows("SELECT count(*) FROM task_item WHERE task = 'again' AND state = 'completed'")[0][0] == 0
        self.work_call(0, [{"token": request["token"], "output": "new"} for request in anew])
        self.until("again", "processed")
        output = self.ask("GET", "/v1/tasks/again/items?step=pack")[1]["items"]
        assert [item["state"] for item in output] == ["completed", "completed"], output

    def deleted_while_it_is_read(self):
        """Readers get its items, or that it is gone; no row is left."""
        self.submit("list", "gone", list(range(500)))
        self.until("gone", "processed")
        for server in self.servers:
            server.kill()
        self.store.rows("UPDATE task SET submitted_at = submitted_at - 3456000000, ended_at = ended_at - 3456000000")
        for server in self.servers:
            server.start()
        self.submit("list", "newest", [])
        seen, over = set(), threading.Event()

        def read():
            chance = random.Random(2)
            while not over.is_set():
                cursor = chance.choice(("", "&cursor=100", "&cursor=400"))
                seen.add(self.call(chance, "GET", f"/v1/tasks/gone/items?step=pack&limit=100{cursor}")[0])

        readers = [threading.Thread(target=read, daemon=True) for _ in range(4)]
        for reader in readers:
            reader.start()
        kit.eventually("readers get it", lambda: 200 in seen)
        status, said = self.ask("POST", "/v1/retire", {"older_than": "30d"})
        assert status == 200 and said["tasks"] > 0, said
        kit.eventually("it is gone", lambda: self.store.rows("SELECT count(*) = 0 FROM task WHERE id = 'gone'")[0][0])
        kit.eventually("readers learn it", lambda: 404 in seen or 410 in seen)
        over.set()
        for reader in readers:
            reader.join()
        assert seen - {503} in ({200, 404}, {200, 410}, {200, 404, 410}), seen
        assert self.store.rows("SELECT count(*) FROM item WHERE task NOT IN (SELECT seq FROM task)")[0][0] == 0

    def node_that_stands_still(self):
        """Until another one has its task; what it would have written then is written by nobody."""
        if len(self.servers) < 2:
            print("there is no other node on SQLite", flush=True)
            return
        self.submit("list", "still", list(range(300)))
        for round_ in range(3):
            self.some(20)
            owner = self.store.rows("SELECT locked_by FROM task WHERE id = 'still'")[0][0]
            victim = self.servers[0 if str(owner).startswith("n1/") else 1]
            other = self.servers[1 - self.servers.index(victim)]
            requests = self.work_call(20)["requests"]
            results = json.dumps({"instance": "i", "max": 0, "results": [self.do(request) for request in requests]}).encode()
            os.kill(victim.process.pid, signal.SIGSTOP)
            self.servers, both = [other], self.servers
            for server in (victim, other):  # the one that stands still decides them when it goes on
                threading.Thread(target=self.post, args=(server, results), daemon=True).start()
            kit.eventually("the other one has it", lambda: self.some(20) < 0 or self.taken_over(owner))
            self.some(20)
            os.kill(victim.process.pid, signal.SIGCONT)
            self.servers = both
            self.rules("still")
            self.some(20)
            print(f"round {round_}: {owner} stood still", flush=True)
        self.until("still", "processed")
        self.rules("still")
        assert len(self.keys("still", False)) == 300, len(self.keys("still", False))

    def taken_over(self, owner):
        return self.store.rows("SELECT coalesce(locked_by, '') <> :owner FROM task WHERE id = 'still'", owner=owner)[0][0]

    @staticmethod
    def post(server, body):
        try:
            urllib.request.urlopen(urllib.request.Request(f"http://127.0.0.1:{server.port}/v1/agents/a/work", method="POST", data=body,
                                                          headers={"Content-Type": "application/json"}), timeout=60).read()
        except OSError:
            pass


CASES = ("long_list_under_kills", "long_values", "list_of_the_greatest_size", "results_twice_and_late", "results_of_a_former_list",
         "deleted_while_it_is_read", "node_that_stands_still")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("store", choices=("sqlite", "postgres"))
    parser.add_argument("cases", nargs="*", default=CASES)
    parser.add_argument("--items", type=int, default=2000)
    chosen = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # nothing is left running
    if chosen.store == "postgres" and not commits_kit.POSTGRES:
        print("skipped: there is no PostgreSQL")
        sys.exit(77)
    attack, good = Attack(os.path.realpath(chosen.program), chosen.store, chosen.items), False
    try:
        for case in chosen.cases:
            began = time.monotonic()
            getattr(attack, case)()
            print(f"{case}: {time.monotonic() - began:.1f} s", flush=True)
        good = True
    finally:
        attack.close(keep=not good)


main()
