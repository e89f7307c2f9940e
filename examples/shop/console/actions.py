"""What may be done on the page: breaking things, and the operator's work. Everything is told in the feed."""

import json
import os
import re
import subprocess
import threading

from keeper import Failed
from watch import SERVICES

MODES = ("ok", "slow", "failing", "hanging", "down")
VERBS = ("retry", "skip", "supply", "resolve", "undo", "close")
DID = {"retry": "retried {}", "skip": "skipped step {step} of {}", "supply": "marked step {step} of {} as done",
       "resolve": "marked step {step} of {} as not done", "undo": "cancelled {}", "close": "closed {}"}
WORDS = {"ok": "is healthy", "slow": "is slow: every call takes two seconds", "failing": "fails every call",
         "hanging": "hangs: no call is answered", "down": "is down"}


class Actions:
    def __init__(self, place, keeper, watch, feed):
        self.place, self.keeper, self.watch, self.feed = place, keeper, watch, feed
        self.lock = threading.Lock()

    def do(self, path, given):
        """`path` is /api/ACTION/...; what comes of it is a sentence."""
        words = path.removeprefix("/api/").split("/") if path.startswith("/api/") else []
        match words:
            case ["operator", verb, task] if verb in VERBS:
                who, done = "operator", self.operate(verb, task, given)
            case ["remind"]:
                who, done = "operator", self.remind()
            case ["alerts", alert, "acknowledge"]:
                who, done = "operator", self.acknowledge(alert, given)
            case _:
                with self.lock:
                    who, done = "console", self.make_mischief(words, given)
        self.feed.tell(who, done)
        return done

    # ---- Mischief: one at a time. Whoever presses last has the last word ----

    def make_mischief(self, words, given):
        match words:
            case ["mode", service]:
                return self.set_mode(service, given.get("mode"))
            case ["kill", process]:
                return self.kill(process)
            case ["start", process]:
                return self.start(process)
            case ["kill-leader"]:
                return self.kill_leader()
            case ["restock", sku]:
                return self.restock(sku, given.get("number"))
        raise Failed("there is no such action")

    def mode(self, service):
        """What it does now. A process that was killed, or died, is down, whatever its file says; and one that runs is not."""
        written = self.written_mode(service)
        if not self.keeper.is_running(service):
            return "down"
        return written if written != "down" else "ok"

    def written_mode(self, service):
        try:
            with open(f"{self.place.work}/{service}/MODE", encoding="ascii") as f:
                return f.read().strip()
        except OSError:
            return "ok"

    def set_mode(self, service, mode):
        """The service reads the file before each call. It is replaced as a whole: nobody reads half of it."""
        if service not in SERVICES or mode not in MODES:
            raise Failed(f"services are {', '.join(SERVICES)}; modes are {', '.join(MODES)}")
        self.keeper.find(service)  # while the shop is starting there is none yet
        path = f"{self.place.work}/{service}/MODE"
        with open(path + ".new", "w", encoding="ascii") as f:
            f.write(mode + "\n")
        os.rename(path + ".new", path)
        if mode == "down":
            self.keeper.kill(service)
        else:
            self.keeper.start(service)  # if it does not run
        return f"{service} {WORDS[mode]}."

    def kill(self, name):
        if not self.keeper.kill(name):
            raise Failed(f"{name} is not running")
        return f"{name} was killed."

    def start(self, name):
        if name in SERVICES and self.written_mode(name) == "down":
            self.set_mode(name, "ok")
        self.keeper.start(name)
        return f"{name} was started."

    def kill_leader(self):
        leader = self.watch.seen["leader"]
        if not leader:
            raise Failed("there is no leader at the moment")
        return self.kill(leader).replace(" was", ", the leader, was")

    def restock(self, sku, number):
        if type(number) is not int or not 0 <= number <= 1_000_000:  # True would be one, too
            raise Failed("a stock level is a whole number from 0 to 1000000")
        done = subprocess.run([f"{self.place.programs}/shop-stock", self.place.service_database("stock"), "--restock", f"{self.plain(sku)}={number}"],
                              capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
        if done.returncode:
            raise Failed((done.stderr or done.stdout).strip())
        return f"The stock level of {sku} is {number}."

    # ---- The operator ----

    def ask(self, path, body):
        if not self.watch.api:
            raise Failed("the shop is still opening")
        return self.watch.api.ask(path, "POST", body)

    def operate(self, verb, task, given):
        body = {"reason": self.reason(given)}
        if given.get("step"):
            body["step"] = given["step"]
        if given.get("output"):
            try:
                body["output"] = json.loads(given["output"])
            except (TypeError, ValueError, RecursionError):
                raise Failed('the output is not JSON; a text is written in quotes: "p-17"') from None
        if verb == "resolve":
            body["effect"] = "none"
        order = task.partition("@")[0]  # of a parcel that has stopped: see parcel.yaml
        whose = order if verb in ("undo", "close") else task
        self.ask(f"/v1/tasks/{self.plain(whose)}/{verb}", body)
        return f"The operator {DID[verb].format(whose, step=body.get('step', ''))}: {body['reason']}"

    def remind(self):
        """What the schedule does each morning; nobody wants to wait for that here."""
        run = self.ask("/v1/schedules/morning/run", {"reason": "for who looks"})
        return f"The schedule morning was run now: {run['task']} writes the reminders."

    def acknowledge(self, alert, given):
        self.ask(f"/v1/alerts/{self.plain(alert)}/acknowledge", {"reason": self.reason(given)})
        return f"The operator acknowledged {alert}: {given['reason'].strip()}"

    def reason(self, given):
        if not isinstance(given.get("reason"), str) or not given["reason"].strip():
            raise Failed("please give a reason: it is kept in the audit log")
        return given["reason"].strip()

    def plain(self, name):
        """It becomes a part of a URL or of a command."""
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._@:-]*", name):
            raise Failed("there is nothing of that name")
        return name
