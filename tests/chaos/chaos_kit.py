"""What families.py and items.py share: a round of trouble. One node on SQLite, or two on a PostgreSQL of their own, are killed at random
while tasks come in; agents keep a ledger by idempotency key, which outlives everybody; at the end the rules of the test are checked."""

import argparse
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

NOT_NOW = (0, 429, 503)  # 0: no answer


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
    """The test adds handle(), trouble() and play()."""

    agents = 4

    def __init__(self, program, store, seed):
        self.random, self.seed = random.Random(seed), seed
        self.folder = tempfile.mkdtemp(prefix="intact-round.")
        self.ledger, self.broken, self.threads = Ledger(), [], []
        self.over, self.calm = threading.Event(), threading.Event()  # for the agents; for those who kill
        self.kills, self.end = 0, 0
        self.servers, self.store = [], None
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

    def define(self, workflows):
        """{name: what it has}"""
        for name, what in workflows.items():
            status, said = self.ask("PUT", f"/v1/workflows/{name}", {"intact": 1, "workflow": name} | what)
            assert status in (200, 201), f"{name}: {status} {said}"

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

    def begin_work(self):
        for number in range(self.agents):
            self.thread(self.work, number)

    def end_work(self):
        self.over.set()
        for thread in self.threads:
            thread.join()
        assert not self.broken, self.broken[0]

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


def play(kind, program, store, seed, seconds):
    this, good = kind(program, store, seed), False
    try:
        this.play(seconds)
        good = True
    finally:
        if not good:
            print(f"failed: --seed {seed}; kept: {this.folder}", getattr(this.store, "folder", ""), flush=True)
        this.close(keep=not good)


def main(kind, name, doc, seconds):
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("store", choices=("sqlite", "postgres"))
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=seconds)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    chosen = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # nothing is left running
    if chosen.store == "postgres" and not commits_kit.POSTGRES:
        print("skipped: there is no PostgreSQL")
        sys.exit(77)
    for number in range(chosen.rounds):
        print(f"{name}: {chosen.store}, seed {chosen.seed + number}", flush=True)
        play(kind, os.path.realpath(chosen.program), chosen.store, chosen.seed + number, chosen.seconds)
