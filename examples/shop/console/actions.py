"""What may be done on the page: mischief, and the operator's work. Everything is told in the feed."""

import json
import os
import subprocess

from keeper import Failed

MODES = ("ok", "slow", "failing", "hanging", "down")
VERBS = ("retry", "skip", "supply", "undo", "close")
DID = {"retry": "tries {} again", "skip": "leaves the step of {} out", "supply": "says what the step of {} has come to",
       "undo": "has {} undone", "close": "leaves {} as it is"}
WORDS = {"ok": "is well again", "slow": "is slow: two seconds for each call", "failing": "fails each call",
         "hanging": "hangs: no call is answered", "down": "is down"}


class Actions:
    services = ("stock", "payment", "shipping")

    def __init__(self, place, keeper, watch, feed):
        self.place, self.keeper, self.watch, self.feed = place, keeper, watch, feed

    def do(self, path, given):
        """`path` is /api/ACTION/...; what comes of it is a sentence."""
        words = path.removeprefix("/api/").split("/") if path.startswith("/api/") else []
        match words:
            case ["mode", service]:
                done = self.set_mode(service, given.get("mode"))
            case ["kill", process]:
                done = self.kill(process)
            case ["start", process]:
                done = self.start(process)
            case ["kill-leader"]:
                done = self.kill_leader()
            case ["restock", sku]:
                done = self.restock(sku, given.get("number"))
            case ["operator", verb, task] if verb in VERBS:
                return self.operate(verb, task, given)
            case ["alerts", alert, "acknowledge"]:
                return self.acknowledge(alert, given)
            case _:
                raise Failed("there is no such action")
        self.feed.tell("mischief", done)
        return done

    # ---- Mischief ----

    def mode(self, service):
        try:
            with open(f"{self.place.work}/{service}/MODE", encoding="ascii") as f:
                return f.read().strip()
        except OSError:
            return "ok"

    def set_mode(self, service, mode):
        """The service reads the file before each call. It is replaced as a whole: nobody reads half of it."""
        if service not in self.services or mode not in MODES:
            raise Failed(f"services are {', '.join(self.services)}; modes are {', '.join(MODES)}")
        was = self.mode(service)
        path = f"{self.place.work}/{service}/MODE"
        with open(path + ".new", "w", encoding="ascii") as f:
            f.write(mode + "\n")
        os.rename(path + ".new", path)
        if mode == "down":
            self.keeper.kill(service)
        elif was == "down":
            self.keeper.start(service)
        return f"{service} {WORDS[mode]}."

    def kill(self, name):
        if not self.keeper.kill(name):
            raise Failed(f"{name} is not running")
        return f"{name} was killed."

    def start(self, name):
        if name in self.services and self.mode(name) == "down":
            self.set_mode(name, "ok")
        self.keeper.start(name)
        return f"{name} was started."

    def kill_leader(self):
        leader = self.watch.seen["leader"]
        if not leader:
            raise Failed("nobody leads just now")
        return self.kill(leader).replace(" was", ", which led, was")

    def restock(self, sku, number):
        if not isinstance(number, int) or not 0 <= number <= 1_000_000 or not sku.isalnum():
            raise Failed("a number of goods is from 0 to 1000000")
        done = subprocess.run([f"{self.place.programs}/shop-stock", self.place.service_database("stock"), "--restock", f"{sku}={number}"],
                              capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
        if done.returncode:
            raise Failed((done.stderr or done.stdout).strip())
        return f"{number} of {sku} are on the shelf."

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
            except (TypeError, ValueError):
                raise Failed('the output is no JSON; a text is written with quotes: "p-17"') from None
        self.ask(f"/v1/tasks/{self.plain(task)}/{verb}", body)
        done = f"The operator {DID[verb].format(task)}: {body['reason']}"
        self.feed.tell("operator", done)
        return done

    def acknowledge(self, alert, given):
        self.ask(f"/v1/alerts/{self.plain(alert)}/acknowledge", {"reason": self.reason(given)})
        done = f"The operator knows of {alert}: {given['reason']}"
        self.feed.tell("operator", done)
        return done

    def reason(self, given):
        if not isinstance(given.get("reason"), str) or not given["reason"].strip():
            raise Failed("say why: it stays on record")
        return given["reason"].strip()

    def plain(self, name):
        if not name.replace("-", "").replace("_", "").replace(".", "").isalnum():
            raise Failed("nothing is called so")
        return name
