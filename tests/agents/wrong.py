#!/usr/bin/env python3
"""An agent that has all the known actions of docs/agent-check.md, and of which each part can be made wrong.

Usage: wrong.py FOLDER [FAULT]      without a fault it is right; wrong_test.py says which scenario finds which fault
"""

import contextlib
import http.client
import itertools
import json
import os
import queue
import random
import signal
import sqlite3
import sys
import threading
import time
import urllib.parse

FOLDER, FAULT = sys.argv[1], (sys.argv[2:] or ["none"])[0]
NAME = "wrong" if FAULT != "other-name" else "wrong/../other"
PLACES, WAIT_S = 3, 2
SEED = os.environ["INTACT_SERVER"]
TOKEN = os.environ["INTACT_TOKEN"]
INSTANCE = "one" if FAULT != "new-instance" else f"one-{random.random()}"
serial, lost, fetched = itertools.count(), itertools.count(), itertools.count()
os.makedirs(FOLDER, exist_ok=True)


def has(*faults):
    return FAULT in faults


def now_ms():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000


class StepError(Exception):
    def __init__(self, code, message="", **more):
        super().__init__(code)
        self.told = {"code": code, "message": message, "retryable": False, **more}


class Over(Exception):
    """Silence is the answer."""


class Refused(Exception):
    """The server will never take it."""


class Record:
    def __init__(self):
        self.lock, self.alone = threading.Lock(), threading.Lock()
        self.db = sqlite3.connect(":memory:" if has("in-memory") else f"{FOLDER}/record.db", isolation_level=None, check_same_thread=False)
        self.db.executescript("PRAGMA synchronous = OFF; CREATE TABLE IF NOT EXISTS effect(key PRIMARY KEY, what, output);"
                              "CREATE TABLE IF NOT EXISTS counted(by); CREATE TABLE IF NOT EXISTS seen(token);")

    # One transaction for the effect and its record, as it has to be.
    @contextlib.contextmanager
    def transaction(self):
        with self.lock:
            self.db.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self.db.execute("ROLLBACK")
                raise
            self.db.execute("COMMIT")

    def find(self, key):
        row = self.db.execute("SELECT what, output FROM effect WHERE key = ?", (key,)).fetchone()
        return (row[0], json.loads(row[1])) if row else (None, None)

    def write(self, key, what, output):
        self.db.execute("INSERT OR REPLACE INTO effect VALUES (?, ?, ?)", (key, what, json.dumps(output)))

    def count(self, by):
        self.db.execute("INSERT INTO counted VALUES (?)", (by,))
        return {"n": self.db.execute("SELECT sum(by) FROM counted").fetchone()[0], "at": next(serial)}

    def once(self, request):
        key, is_undo = request["task" if has("by-task") else "idempotency_key"], request["direction"] == "undo"
        if has("by-step"):
            key = key.replace("~2", "")
        if has("effect-first", "record-first", "no-lock"):
            return self.in_two_steps(request, key, is_undo)
        with self.transaction():
            return self.judge(request, key, is_undo)

    def in_two_steps(self, request, key, is_undo):
        """The effect in a transaction of its own. Between the two there is time for a kill, or for an undo."""
        with contextlib.nullcontext() if has("no-lock") else self.alone:
            with self.transaction():
                if is_undo or self.find(key)[0] or self.find(key + "/undo")[0]:
                    return self.judge(request, key, is_undo)
                output = self.count(1) if has("effect-first") else None
                if has("record-first"):
                    output = {"n": self.db.execute("SELECT count(*) FROM counted").fetchone()[0] + 1}
                    self.write(key, "done", output)
            time.sleep(0.1)
            request.hold()
            with self.transaction():
                if not has("effect-first"):
                    output = self.count(1)
                if not has("record-first"):
                    self.write(key, "done", output)
                return output

    def judge(self, request, key, is_undo):
        what, output = self.find(key)
        if what == "barred":
            raise StepError("undone", effect="none")
        if what and not is_undo and self.find(key + "/undo")[0] and not has("forward-again"):
            raise StepError("undone", effect="none")
        if what and not has("again") and not (is_undo and has("undo-twice")):
            return output
        if is_undo and self.find(request["forward"]["idempotency_key"])[0] != "done":
            if not has("no-tombstone"):
                self.write(request["forward"]["idempotency_key"], "barred", None)
            self.write(key, "done", None if not has("undo-of-nothing") else "undone")
            return None if not has("undo-of-nothing") else "undone"
        output = self.count(-1 if is_undo else 1)
        if not is_undo:
            request.hold()
        self.write(key, "done", output)
        return output


class Request(dict):
    def __init__(self, fields, node, sent_ms, answer):
        super().__init__(fields)
        begin = now_ms() if has("from-receipt") else sent_ms + (0 if has("no-waited") else answer["waited_ms"])
        self.deadline = begin + self["time_left_ms"]
        if has("by-clock"):
            left = time.mktime(time.strptime(self["complete_by"][:19], "%Y-%m-%dT%H:%M:%S")) - time.timezone - time.time()
            self.deadline = now_ms() + left * 1000
        self.node, self.beat, self.stopped = node, None, False
        self.acknowledged = sent_ms

    def is_over(self):
        if has("answers-late"):
            return False
        beat_by = self.acknowledged + self["heartbeat_ms"] if self.get("heartbeat_ms") and not has("no-beat-deadline") else None
        return now_ms() >= self.deadline or (beat_by is not None and now_ms() >= beat_by)

    def sleep(self, ms):
        end = now_ms() + ms
        while now_ms() < end:
            if self.is_over():
                raise Over
            if self.stopped:
                raise StepError("stopped", retryable=True, effect="none")
            time.sleep(min(0.02, max(0.0, (end - now_ms()) / 1000)))


    def hold(self):
        """As the input of count says: it has begun, and waits until it is told to stop."""
        ms = self["input"].get("ms") if isinstance(self["input"], dict) else None
        if ms:
            self.beat = {}
            with contextlib.suppress(StepError):
                self.sleep(ms)


def echo(r):
    return str(r["input"]) if has("mangles") else r["input"]


def fail(r):
    told = dict(r["input"])
    if has("no-effect"):
        told.pop("effect", None)
    raise StepError(**told)


def slow(r):
    ms, beats = r["input"]["ms"], r["input"].get("beats")
    for i in range(max(1, int(ms / (beats or ms)))):
        if beats and not has("no-beats"):
            r.beat = {"done": 1 if has("frozen") else i}
        r.sleep(beats or ms)


def retry(r):
    return ({"tries": r["input"]["fail"] + 1}, {} if has("no-tries") else {"tries": r["input"]["fail"] + 1})


def resume(r):
    if r.get("resume") is None or has("forgets-resume"):
        raise StepError("half", retryable=True, effect="none", **({} if has("no-resume") else {"resume": {"at": 1}}))
    return r["resume"]


class Agent:
    def __init__(self):
        self.changed = threading.Condition()
        self.held, self.results, self.replaced = {}, {}, set()
        self.nodes, self.threads, self.working = [], [], 0
        self.queue, self.kept, self.stuck = queue.Queue(), [], set()
        self.stopping = False
        self.installation = None
        self.record = Record()
        self.known = {"token", "task", "step", "action", "direction", "attempt", "idempotency_key", "input", "complete_by",
                      "time_left_ms", "traceparent", "forward", "heartbeat_ms", "resume"}
        self.actions = {"echo": echo, "fail": fail, "slow": slow, "count": self.record.once, "retry": retry,
                        "elsewhere": None, "resume": resume}

    # ---- calls ----

    def call(self, node, method, path, body=None, timeout=30):
        """The answer, and its head; OSError or HTTPException if there is none."""
        url = urllib.parse.urlsplit(node)
        connection = http.client.HTTPConnection(url.hostname, url.port, timeout=timeout)
        try:
            headers = {"Content-Type": "text/plain" if has("other-type") else "application/json"}
            if not has("no-bearer"):
                headers["Authorization"] = "Bearer " + TOKEN
            if self.installation and not (has("half-named") and "results" in (body or {})):
                headers["Intact-Installation"] = self.installation
            connection.request(method, path, json.dumps(body) if body is not None else None, headers)
            answer = connection.getresponse()
            if not has("unnamed") and (not self.installation or has("goes-over")):
                self.installation = answer.headers["Intact-Installation"]
            return answer, answer.read()
        finally:
            connection.close()

    def work(self, node, body, failures, timeout=30):
        """The answer as it was read; None after a pause."""
        pause = 0 if has("hammers") else min(5, 0.1 * 2 ** min(failures, 6)) * random.uniform(0.5, 1)
        body = {"instance": f"{INSTANCE}-{next(serial)}" if has("many-names") else INSTANCE, **body}
        if has("bad-max"):
            body["max"] = str(body["max"])
        try:
            answer, text = self.call(node, "POST", f"/v1/agents/{NAME}/work", body, timeout)
            if answer.status in (400, 413, 422):
                raise Refused
            if answer.status in (401, 403):
                self.refuse()
            if answer.status == 421:
                self.meet_other(answer.headers["Intact-Installation"])
            if answer.status == 200:
                return self.understand(text)
            if answer.status == 500 and has("drops-500") or answer.status == 503 and has("drops-503"):
                return {"waited_ms": 0, "requests": [], "outcomes": body.get("results", []), "stop": []}
            if answer.headers["Retry-After"] and not has("no-retry-after"):
                pause = max(pause, int(answer.headers["Retry-After"]))
        except http.client.IncompleteRead:
            if has("drops-truncated"):
                return {"waited_ms": 0, "requests": [], "outcomes": body.get("results", []), "stop": []}
        except (OSError, http.client.HTTPException) as e:
            if has("quits-when-away") and isinstance(e, ConnectionRefusedError):
                os._exit(3)
            if has("drops-cut") and not isinstance(e, ConnectionRefusedError):
                return {"waited_ms": 0, "requests": [], "outcomes": body.get("results", []), "stop": []}
        except ValueError:
            if has("drops-garbage"):
                return {"waited_ms": 0, "requests": [], "outcomes": body.get("results", []), "stop": []}
        time.sleep(pause)
        return None

    def understand(self, text):
        answer = json.loads(text)
        if has("strict") and any(set(r) - self.known for r in answer["requests"]):
            os._exit(4)
        return answer

    @staticmethod
    def refuse():
        if has("ends-well-refused"):
            os._exit(0)
        if not has("quiet-refused"):
            print("the token is refused", file=sys.stderr, flush=True)
        os._exit(1)

    def meet_other(self, other):
        """It keeps its results, and calls again in a while; the right one may come back."""
        if has("ends-well-other"):
            os._exit(0)
        if has("drops-421"):
            with self.changed:
                self.results.clear()
                self.held.clear()
        if not has("quiet-other"):
            print(f"this is the installation {other}, and not {self.installation}", file=sys.stderr, flush=True)

    def settle(self, node, body, answer):
        told = {o["token"]: o.get("status", "accepted") for o in answer["outcomes"]}
        if has("trusts-200"):
            told = {r["token"]: "accepted" for r in body.get("results", [])}
        with self.changed:
            for token, status in told.items():
                if status == "late" and has("resends-late") or status == "unknown" and has("resends-unknown"):
                    self.stuck.add(token)
                if token in self.stuck:
                    continue
                self.results.pop(token, None)
                if has("holds-for-ever"):
                    self.kept.append(token)
                if not has("keeps-place"):
                    self.held.pop(token, None)
                elif self.held.get(token, {}).get("action") != "elsewhere":
                    self.held.pop(token, None)
            self.heed(answer["stop"])
            self.changed.notify_all()

    def heed(self, stops):
        for token in stops:
            if token in self.held:
                self.held[token].stopped = True

    # ---- threads ----

    def fetch(self, node):
        failures = 0
        while not self.stopping or has("fetches-on"):
            with self.changed:
                free = PLACES if has("over-max") else PLACES - len(self.held)
                if free <= 0 and not has("one-place"):
                    self.changed.wait(0.1)
                    continue
                holding = [t for t, r in self.held.items() if not (has("holds-by-node") and r.node != node)]
                if has("nothing-held"):
                    holding = []
                elif has("no-answers-held", "no-work-held"):
                    holding = [t for t in holding if (t in self.results) == has("no-work-held")]
            body = {"max": max(free, 1), **({} if has("circles") else {"wait": f"{WAIT_S}s"}), "holding": holding + self.kept}
            if has("no-holding"):
                del body["holding"]
            if self.stopping:
                next(fetched)
            sent = now_ms()
            answer = self.work(node, body, failures, 0.2 if has("impatient") else 30)
            failures = failures + 1 if answer is None else 0
            if answer is not None:
                self.take(node, answer, sent)

    def take(self, node, answer, sent):
        with self.changed:
            for fields in answer["requests"]:
                if fields["token"] in self.held and not has("takes-repeats"):
                    continue
                if has("remembers-tokens"):
                    if self.record.db.execute("SELECT 1 FROM seen WHERE token = ?", (fields["token"],)).fetchone():
                        continue
                    self.record.db.execute("INSERT INTO seen VALUES (?)", (fields["token"],))
                if has("loses") and next(lost) % 7 == 6:
                    continue
                request = Request(fields, node, sent, answer)
                self.held[fields["token"]] = request
                self.queue.put(request)
            self.heed(answer["stop"])

    def deliver(self):
        failures, batch = 0, 100
        while True:
            with self.changed:
                self.changed.wait_for(lambda: self.results or (self.stopping and not self.held), 0.5)
                if self.stopping and not self.held and not has("never-ends"):
                    return
                results = list(self.results.values())[:batch]
            if not results:
                continue
            node = self.node_of(results[0], failures)
            results = [r for r in results if self.node_of(r, failures) == node]
            body = {"max": 0, "results": results}
            try:
                answer = self.work(node, body, failures)
            except Refused:
                batch = self.isolate(results, batch)
                continue
            failures = failures + 1 if answer is None else 0
            if answer is not None:
                batch = 100
                self.settle(node, body, answer)

    def isolate(self, results, batch):
        if has("stuck-422"):
            time.sleep(0.1)
            return batch
        if len(results) > 1:
            return 1
        token = results[0]["token"]
        with self.changed:
            if has("drops-422"):
                self.results.pop(token, None)
                self.held.pop(token, None)
            else:
                self.results[token] = {"token": token, "error": {"code": "unacceptable", "message": ""}}
        return 1

    def node_of(self, result, failures):
        request = self.held.get(result["token"])
        node = request.node if request is not None else self.nodes[0]
        if failures and not has("loyal"):
            return self.nodes[(self.nodes.index(node) + failures) % len(self.nodes)]
        return node if not has("stranger") else self.nodes[-1 - self.nodes.index(node)]

    def do(self):
        while True:
            request = self.queue.get()
            result = {"token": request["token"]}
            try:
                if request.is_over():
                    raise Over
                action = request["action"]
                if action == "elsewhere" and action in self.actions:
                    result["elsewhere"] = True
                elif action not in self.actions:
                    if has("silent-unknown"):
                        raise Over
                    raise StepError("no-such-action", retryable=has("hopeful"))
                else:
                    output = self.actions[action](request)
                    output, more = output if isinstance(output, tuple) else (output, {})
                    result.update({"output": output, **more})
                if has("both"):
                    result["error"] = {"code": "both"}
            except StepError as e:
                result["error"] = e.told
                if has("silent-stop") and request.stopped:
                    result = None
            except Over:
                result = None
            with self.changed:
                if result and (not request.is_over() or has("answers-late")):
                    self.results[request["token"]] = result
                elif not (has("silent-stop") and request.stopped):
                    self.held.pop(request["token"], None)
                self.changed.notify_all()

    def beat(self):
        while True:
            time.sleep(0.1)
            with self.changed:
                beats = {}
                for token, r in self.held.items():
                    if r.beat is not None and token not in self.results:
                        beats.setdefault(r.node, []).append({"token": token, "progress": r.beat})
            for node, some in beats.items():
                sent = now_ms()
                try:
                    answer, text = self.call(node, "POST", f"/v1/agents/{NAME}/heartbeats",
                                             {"instance": INSTANCE, "beats": some})
                    if answer.status != 200:
                        raise OSError
                    told = json.loads(text)
                except (OSError, ValueError, http.client.HTTPException):
                    if has("quits-beats"):
                        return
                    continue
                with self.changed:
                    for outcome in told["outcomes"]:
                        if outcome["token"] in self.held and outcome["status"] == "accepted" and not has("no-acknowledgement"):
                            self.held[outcome["token"]].acknowledged = sent
                    if not has("deaf"):
                        self.heed(told["stop"])

    def run(self):
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        while not self.nodes:
            try:
                known = json.loads(self.call(SEED, "GET", "/v1/nodes")[1])
                self.nodes = [SEED if n["node"] == known["self"] else n["url"] for n in known["nodes"]]
                if has("one-node"):
                    self.nodes = [SEED]
            except (OSError, ValueError, KeyError, http.client.HTTPException):
                time.sleep(0.1)
        start = [(self.beat, ())] + [(self.fetch, (n,)) for n in self.nodes]
        start += [(self.do, ())] * (1 if has("serial") else PLACES)
        for what, words in start:
            threading.Thread(target=what, args=words, daemon=True).start()
        deliverer = threading.Thread(target=self.deliver, daemon=True)
        deliverer.start()
        signal.sigwait({signal.SIGTERM})
        if has("quits"):
            os._exit(0)
        with self.changed:
            self.stopping = True
            self.changed.notify_all()
        deliverer.join()
        while has("fetches-on") and next(fetched) < 20:
            time.sleep(0.5)
        os._exit(5 if has("bad-end") else 0)


if __name__ == "__main__":
    Agent().run()
