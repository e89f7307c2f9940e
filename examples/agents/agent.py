#!/usr/bin/env python3
"""An agent for Intact in plain Python: the agent "payment", with the actions charge and refund.

    INTACT_SERVER=http://127.0.0.1:7420 ./agent.py --instance payment-1 --record payment.db

Copy it and put your own actions in place of those at the end. It needs Python 3.9 on Linux and nothing
else. docs/agents.md tells what it does and why. INTACT_TOKEN is sent if it is set; INTACT_CA names a
file of certificates to trust besides those of the system, for https. It works for the installation whose id is
in INTACT_INSTALLATION, otherwise for the first one that answers, and ends when it meets another one.
"""

import argparse
import http.client
import json
import os
import random
import signal
import sqlite3
import ssl
import sys
import threading
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor

WAIT_S = 10  # how long a call for work is parked; a stopping agent waits for the end of it
BEAT_S = 5  # requests that take longer than this get heartbeats
INSTALLATION = "Intact-Installation"
LAST_TRY_S = 10  # how long a stopping agent tries to deliver what nobody takes


def boot_ms():
    """Milliseconds that also count while the machine sleeps, and that nobody sets."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000


def log(text):
    print(text, file=sys.stderr, flush=True)


class StepError(Exception):
    """What a handler raises to answer with an error. `effect`: "none" or "unknown", of this attempt."""

    def __init__(self, code, message="", retryable=False, effect=None, retry_after=None):
        super().__init__(message)
        told = {"code": code, "message": message, "retryable": retryable, "effect": effect,
                "retry_after": retry_after}
        self.error = {name: value for name, value in told.items() if value is not None}


class Unacceptable(Exception):
    """The server cannot read what we sent: sending the same again will not help."""


class EveryStatus(urllib.request.HTTPErrorProcessor):
    """Answers are answers, whatever their status; and no redirect is followed."""

    def http_response(self, request, response):
        return response

    https_response = http_response


class TooLate(Exception):
    """The deadline has passed: nothing may happen any more, and nothing is answered."""


class Request(dict):
    """A request as it came, with its deadline on our own clock."""

    def __init__(self, fields, deadline_ms):
        super().__init__(fields)
        self.deadline_ms = deadline_ms
        self.begun_at = boot_ms()
        self.stopped = False  # the server asks to stop: the task is going to be undone
        self.progress = None  # any JSON; goes out with the next heartbeat

    def check(self):
        """Call it before each effect and now and then in between: ends what is not wanted any more."""
        if boot_ms() >= self.deadline_ms:
            raise TooLate()
        if self.stopped:
            raise StepError("stopped", "the server asked to stop", True, "none")


class Record:
    """Makes each effect happen once: a key and its effect are written by one transaction."""

    def __init__(self, path, schema):
        self.lock = threading.Lock()
        self.db = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=5)
        self.db.executescript("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;" + schema)
        self.db.execute(
            "CREATE TABLE IF NOT EXISTS effect(idempotency_key TEXT PRIMARY KEY, task TEXT, step TEXT,"
            " action TEXT, direction TEXT, outcome TEXT, output TEXT, at INTEGER)")

    def once(self, request, effect):
        """The output of effect(db, request): made now, or as it was when the key was seen before."""
        with self.lock:
            try:
                self.db.execute("BEGIN IMMEDIATE")
                output = self.find_or_make(request, effect)
            except sqlite3.Error as e:
                self.roll_back()
                raise StepError("record", str(e), True, "none") from e
            except BaseException:
                self.roll_back()
                raise
            try:
                self.db.execute("COMMIT")
            except sqlite3.Error as e:
                self.roll_back()
                raise StepError("record", str(e), True, "unknown") from e
            return output

    def find_or_make(self, request, effect):
        key = request["idempotency_key"]
        outcome, output = self.find(key)
        if outcome == "barred":
            raise StepError("undone", "this step was undone before it took effect", False, "none")
        if outcome and request["direction"] == "forward" and self.find(key + "/undo")[0]:
            # Asked again by a server that was restored from a backup. The old output would be a lie.
            raise StepError("undone", "this step took effect and was undone", False, "none")
        if outcome:
            return output
        if request["direction"] == "undo":
            forward_key = request["forward"]["idempotency_key"]
            if self.find(forward_key)[0] != "done":
                # Nothing to undo. The tombstone refuses the forward request, should it come later.
                self.write(request, forward_key, "forward", "barred", None)
                self.write(request, key, "undo", "nothing", None)
                return None
        request.check()
        output = effect(self.db, request)
        self.write(request, key, request["direction"], "done", output)
        request.check()  # the last moment: what comes after it is there to stay
        return output

    def find(self, key):
        row = self.db.execute("SELECT outcome, output FROM effect WHERE idempotency_key = ?", (key,)).fetchone()
        return (row[0], json.loads(row[1])) if row else (None, None)

    def write(self, request, key, direction, outcome, output):
        self.db.execute("INSERT INTO effect VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                        (key, request["task"], request["step"], request["action"], direction, outcome,
                         json.dumps(output, allow_nan=False), int(time.time() * 1000)))

    def roll_back(self):
        if self.db.in_transaction:
            self.db.execute("ROLLBACK")


class Agent:
    """Fetches requests, runs a handler for each, and hands in the answers until they are acknowledged."""

    def __init__(self, name, instance, handlers, places):
        server = (os.environ.get("INTACT_SERVER") or "http://127.0.0.1:7420").rstrip("/")
        self.url = f"{server}/v1/agents/{name}/"
        self.instance, self.handlers, self.places = instance, handlers, places
        self.headers = {"Content-Type": "application/json"}
        if os.environ.get("INTACT_TOKEN"):
            self.headers["Authorization"] = "Bearer " + os.environ["INTACT_TOKEN"]
        if os.environ.get("INTACT_INSTALLATION", "any") not in ("", "any"):
            self.headers[INSTALLATION] = os.environ["INTACT_INSTALLATION"]
        trust = ssl.create_default_context()
        if os.environ.get("INTACT_CA"):
            trust.load_verify_locations(os.environ["INTACT_CA"])
        self.opener = urllib.request.build_opener(EveryStatus, urllib.request.HTTPSHandler(context=trust))
        self.changed = threading.Condition()  # guards all that follows
        self.held = {}  # token: request that is in work, or whose answer is not acknowledged
        self.answers = {}  # token: result to be handed in
        self.stopping = self.refused = False
        self.fetching = True

    def run(self):
        """Runs until SIGTERM or SIGINT. True: everything was delivered."""
        signals = {signal.SIGTERM, signal.SIGINT}
        signal.pthread_sigmask(signal.SIG_BLOCK, signals)  # for all threads: we wait for them here
        self.pool = ThreadPoolExecutor(self.places)
        threading.Thread(target=self.fetch, daemon=True).start()
        deliverer = threading.Thread(target=self.deliver, daemon=True)
        deliverer.start()
        signal.sigwait(signals)
        with self.changed:
            self.stopping = True
            self.changed.notify_all()
        deliverer.join()
        if self.held:
            log(f"{len(self.held)} results could not be delivered; what was done is on record")
        return not self.held and not self.refused

    # ---- calls ----

    def call(self, what, body, failures):
        """The server's answer, or None after a pause if there is none: then the same call is made again."""
        request = urllib.request.Request(self.url + what, json.dumps(body).encode(), self.headers)
        pause = min(10, 0.1 * 2 ** min(failures, 10)) * random.uniform(0.5, 1)
        try:
            with self.opener.open(request, timeout=WAIT_S + 20) as answer:
                text = answer.read().decode()
            told = answer.headers[INSTALLATION]
            wanted = self.headers.setdefault(INSTALLATION, told) if told else None
            if answer.status == 421 or (told and told.lower() != wanted.lower()):
                self.give_up(f"{self.url} is of the installation {told}, and this agent works for "
                             f"{self.headers.get(INSTALLATION)}: use the right address, or start it again: {text}")
                return None
            if answer.status == 200:
                return json.loads(text)
            story = f"{answer.status} {text}"
            if answer.status in (401, 403):
                self.give_up(f"the server refuses INTACT_TOKEN: {story}")
            elif answer.status in (400, 413, 422):
                raise Unacceptable(story)
            if (answer.headers["Retry-After"] or "").isdigit():
                pause = max(pause, int(answer.headers["Retry-After"]))
        except (OSError, ValueError, http.client.HTTPException) as e:  # not reached, cut off, no JSON
            story = repr(e)
        if failures % 20 == 0:
            log(f"{self.url}{what}: {story}")
        self.pause(pause)
        return None

    def pause(self, seconds):
        """A stopping agent has little time and tries often."""
        with self.changed:
            if not self.stopping:
                self.changed.wait_for(lambda: self.stopping, seconds)
                return
        time.sleep(min(seconds, 0.2))

    def give_up(self, story):
        """What no later call will mend: whoever started us has to see to it."""
        with self.changed:
            told, self.refused = self.refused, True
        if not told:
            log(story)
            os.kill(os.getpid(), signal.SIGTERM)

    def fetch(self):
        failures = 0
        while True:
            with self.changed:
                self.changed.wait_for(lambda: self.stopping or len(self.held) < self.places)
                if self.stopping:
                    self.fetching = False
                    self.changed.notify_all()
                    return
                body = {"instance": self.instance, "max": self.places - len(self.held),
                        "wait": f"{WAIT_S}s", "holding": list(self.held)}
            sent_at = boot_ms()
            try:
                answer = self.call("work", body, failures)
            except Unacceptable as e:
                answer = self.give_up(str(e))
            failures = 0 if answer else failures + 1
            if answer:
                self.take(answer, sent_at)
                if not answer["requests"] and boot_ms() - sent_at < 1000:
                    self.pause(0.1)  # a server that answers at once with nothing is not called in a circle

    def take(self, answer, sent_at):
        self.heed_stops(answer)
        for fields in answer["requests"]:
            # From when we sent the call: too early rather than too late, whatever the clocks say.
            request = Request(fields, sent_at + answer["waited_ms"] + fields["time_left_ms"])
            with self.changed:
                if request["token"] in self.held:
                    continue  # sent again: it is in work, or its answer on the way
                self.held[request["token"]] = request
            self.pool.submit(self.work, request)

    def deliver(self):
        failures, batch, beat_at, last_try_at = 0, 100, 0, None
        while True:
            with self.changed:
                self.changed.wait_for(lambda: self.answers or self.is_over(), BEAT_S)
                if self.is_over():
                    return
                results = list(self.answers.values())[:batch]
            if boot_ms() >= beat_at:
                beat_at = boot_ms() + BEAT_S * 1000
                self.beat()
            if not results:
                continue
            try:
                answer = self.call("work", {"instance": self.instance, "max": 0, "results": results}, failures)
            except Unacceptable as e:  # one that cannot be taken must not keep back the others
                batch = 1
                if len(results) == 1:
                    self.replace(results[0]["token"], "unacceptable", str(e)[:1000])
                continue
            if answer:
                failures, batch, last_try_at = 0, 100, None
                self.settle(answer)
                continue
            failures += 1
            if self.stopping:
                last_try_at = last_try_at or boot_ms() + LAST_TRY_S * 1000
                if self.refused or boot_ms() > last_try_at:
                    return

    def replace(self, token, code, message):
        log(f"{code}: {message}")
        with self.changed:
            self.answers[token] = {"token": token, "error": {"code": code, "message": message}}

    def is_over(self):
        return self.stopping and not self.fetching and not self.held

    def settle(self, answer):
        """Whatever became of a result (accepted, repeated, late, unknown): it is with the server."""
        self.heed_stops(answer)
        with self.changed:
            for outcome in answer["outcomes"]:
                self.answers.pop(outcome["token"], None)
                request = self.held.pop(outcome["token"], None)
                if request and outcome["status"] in ("late", "unknown"):
                    log(f"{request['idempotency_key']}: the answer is {outcome['status']}")
            self.changed.notify_all()

    def beat(self):
        """Signs of life for what takes long; the answer tells what to stop. Losing one does no harm."""
        with self.changed:
            beats = [{"token": token, "progress": r.progress} for token, r in self.held.items()
                     if boot_ms() - r.begun_at > BEAT_S * 1000]
        if beats:
            try:
                self.heed_stops(self.call("heartbeats", {"instance": self.instance, "beats": beats}, 1) or {})
            except Unacceptable as e:
                log(f"heartbeats: {e}")

    def heed_stops(self, answer):
        with self.changed:
            for token in answer.get("stop", []):
                if token in self.held:
                    self.held[token].stopped = True

    # ---- work ----

    def work(self, request):
        result = {"token": request["token"]}
        try:
            request.check()
            handler = self.handlers.get((request["action"], request["direction"]))
            if not handler:
                raise StepError("no-such-action", f"this agent has no {request['action']}")
            result["output"] = handler(request)
            json.dumps(result, allow_nan=False)  # what is no JSON shows here
        except StepError as e:
            result["error"] = e.error
        except TooLate:
            result = None
        except Exception as e:  # a mistake in a handler: it may have taken effect before
            log(f"{request['idempotency_key']}: {e!r}")
            result = {"token": request["token"], "error": {"code": "exception", "message": repr(e)}}
        with self.changed:
            if result:
                self.answers[request["token"]] = result
            else:
                del self.held[request["token"]]
            self.changed.notify_all()


# ---- the service: accounts from which money is taken, and to which it is given back ----

SCHEMA = """CREATE TABLE IF NOT EXISTS booking(
    id INTEGER PRIMARY KEY, task TEXT, customer TEXT, amount INTEGER);"""


def book(db, request, customer, amount):
    row = db.execute("INSERT INTO booking(task, customer, amount) VALUES (?, ?, ?)",
                     (request["task"], customer, amount))
    return {"booking": row.lastrowid}


def charge(db, request):
    amount = request["input"]["amount"]
    if amount > 1000:
        raise StepError("declined", "more than 1000 is not given", effect="none")
    return book(db, request, request["input"]["customer"], amount)


def refund(db, request):
    # What was done is in the record. request["forward"] has the step's input, and its output or null.
    done = request["forward"]["input"]
    return book(db, request, done["customer"], -done["amount"])


def main():
    parser = argparse.ArgumentParser(description="An agent for Intact: payment")
    parser.add_argument("--instance", default="payment-1",
                        help="unique among the agent's processes, the same after a restart [%(default)s]")
    parser.add_argument("--record", default="payment.db", help="SQLite file [%(default)s]")
    parser.add_argument("--places", type=int, default=8, help="requests at a time [%(default)s]")
    options = parser.parse_args()
    record = Record(options.record, SCHEMA)
    handlers = {("charge", "forward"): lambda request: record.once(request, charge),
                ("refund", "undo"): lambda request: record.once(request, refund)}
    sys.exit(0 if Agent("payment", options.instance, handlers, options.places).run() else 1)


if __name__ == "__main__":
    main()
