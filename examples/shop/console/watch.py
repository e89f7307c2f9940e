"""Looks at all of it once a second: what the page shows, and a line in the feed for what has changed."""

import contextlib
import itertools
import sqlite3
import threading
import time

import postgres
from intact_api import Away, Refused

SERVICES = ("stock", "payment", "shipping")
FEED_MAX = 200
ERRORS_MAX = 20
STATES = ("pending", "processing", "processed", "compensating", "compensated", "error")
WAITING_MAX = 5
WAITING_AFTER_S = 4


class Feed:
    """What happened, newest last. Who: console, intact, alert, operator, or shop."""

    def __init__(self):
        self.lock, self.numbers, self.entries = threading.Lock(), itertools.count(1), []

    def tell(self, who, text):
        with self.lock:
            self.entries = self.entries[-FEED_MAX:] + [{"id": next(self.numbers), "at": time.time(), "who": who, "text": text}]


class Watch:
    def __init__(self, place, keeper, feed):
        self.place, self.keeper, self.feed = place, keeper, feed
        self.api = None  # until Intact is there
        self.seen = {"nodes": [], "leader": None, "agents": [], "tasks": {}, "errors": [], "alerts": [],
                     "waiting": [], "trouble": "The shop is starting."}
        self.records = {}  # of tasks in error
        self.followed = set()  # those that were

    def look(self):
        """One round. What fails keeps its last value, and the page says so."""
        self.keeper.look()
        if not self.api:
            return
        try:
            now = self.ask()
        except (Away, Refused) as error:
            self.seen = self.seen | {"trouble": str(error)}
            return
        before, self.seen = self.seen, now
        self.tell_nodes(before, now)
        self.tell_breakers(before, now)
        self.tell_errors(now)

    def ask(self):
        nodes = self.api.ask("/v1/nodes")["nodes"]
        stats = self.each_node("/v1/stats")
        return {
            "nodes": nodes,
            "leader": next((node["node"] for node in nodes if node["leads"] and node["alive"]), None),
            "agents": [self.agent(name, stats) for name in SERVICES],
            "tasks": self.counts(),
            "waiting": self.waiting(),
            "errors": self.errors(),
            "alerts": self.api.ask("/v1/alerts?limit=20")["alerts"],
            "trouble": next((one["trouble"] for one in stats if one["trouble"]), None),
        }

    def each_node(self, path):
        """What each of them says that answers."""
        said = []
        for name in self.place.node_names:
            try:
                said.append(self.api.ask(path, node=name))
            except (Away, Refused):
                pass
        return said

    def agent(self, name, stats):
        """Each node has counts and breakers of its own, which follow each other. What waits is in a node's work, or still in the store.
        `breaker` is None if its settings have none."""
        figures = [agent for one in stats for agent in one["agents"] if agent["agent"] == name]
        said = self.each_node(f"/v1/agents/{name}")
        breakers = [one["breaker"] for one in said if ((one["settings"] or {}).get("breaker") or {}).get("enabled", True)]
        stored = max((agent["waiting_tasks"] for agent in figures), default=0)
        return {
            "agent": name,
            "connected": any(agent["connected"] for agent in figures),
            "waiting": stored + sum(agent["waiting_steps"] for agent in figures),
            "breaker": next((b for b in breakers if b["state"] != "closed"), breakers[0] if breakers else None),
        }

    def counts(self):
        """How many orders are in each state, all at one moment: the state store knows, also of those that have ended. Nothing: it is away."""
        sql = "SELECT state, count(*) FROM task_view WHERE workflow = 'shop_order' AND closed_at IS NULL GROUP BY state"
        try:
            if not self.place.sqlite:
                rows = [line.split("|") for line in postgres.sql(self.place, "reader", "SET search_path = intact; " + sql).splitlines()]
            else:
                with contextlib.closing(sqlite3.connect(f"file:{self.place.work}/node-n1/intact.db?mode=ro", uri=True)) as db:
                    rows = db.execute(sql).fetchall()
        except (RuntimeError, sqlite3.Error):
            return {}
        return dict.fromkeys(STATES, 0) | {state: int(count) for state, count in rows}

    def waiting(self):
        """The latest orders that are in progress for longer than usual, and what each of them is waiting for."""
        before = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - WAITING_AFTER_S))
        path = f"/v1/tasks?workflow=shop_order&state=pending,processing,compensating&submitted_before={before}&limit={WAITING_MAX}"
        found = []
        for task in self.api.ask(path)["tasks"]:
            found.append({"id": task["id"], "submitted_at": task["submitted_at"], "why": self.why(task["id"])})
        return found

    def why(self, task):
        """What it waits for; of an order that waits for its parcels, what the latest of those waits for."""
        why = self.api.ask(f"/v1/tasks/{task}/why")
        reason = next(iter(why["reasons"]), {"kind": "", "text": why["summary"]})  # it may have ended by now
        parcels = []
        if reason["kind"] == "items":
            parcels = self.api.ask(f"/v1/tasks?parent={task}&state=pending,processing,compensating&limit=1")["tasks"]
        return self.why(parcels[0]["id"]) if parcels else reason["text"]

    def errors(self):
        """The tasks that have stopped. An order that has stopped because its parcel has is left out: it goes on when that one does."""
        stopped = self.api.ask(f"/v1/tasks?state=error&closed=false&limit={ERRORS_MAX}")["tasks"]
        return [one for one in map(self.record, stopped) if one["error"]["code"] != "child"]

    def record(self, task):
        """A task in error, with the step that it has stopped at, or the item of a step, and Intact's own words on it."""
        key = (task["id"], task["ended_at"], task["failure_count"])
        if key not in self.records:
            whole = self.api.ask(f"/v1/tasks/{task['id']}")
            why = self.api.ask(f"/v1/tasks/{task['id']}/why")
            reason = why["reasons"][0]
            self.records[key] = {"id": task["id"], "direction": task["direction"], "error": whole["error"], "step": reason["step"],
                                 "steps": [{"name": one["name"], "state": one["state"]}
                                           for step in whole["steps"] for one in (step, *step.get("items", {}).get("at_work", []))],
                                 "why": reason["text"]}
        return self.records[key]

    def tell_nodes(self, before, now):
        if now["leader"] and now["leader"] != before["leader"]:
            self.feed.tell("intact", f"{now['leader']} is the leader: it looks for what is overdue.")
        alive = {node["node"]: node["alive"] for node in before["nodes"]}
        for node in now["nodes"]:
            if alive.get(node["node"]) and not node["alive"]:
                self.feed.tell("intact", f"{node['node']} is gone: its lease has expired, and other nodes take over its tasks.")
            elif node["alive"] and alive.get(node["node"]) is False:
                self.feed.tell("intact", f"{node['node']} is back.")

    def tell_breakers(self, before, now):
        states = {agent["agent"]: (agent["breaker"] or {}).get("state", "closed") for agent in before["agents"]}
        for agent in now["agents"]:
            breaker, was = agent["breaker"] or {"state": "closed"}, states.get(agent["agent"], "closed")
            if breaker["state"] == "open" and was == "closed":
                self.feed.tell("intact", f"The circuit breaker of {agent['agent']} opened: {breaker['reason']}. Work for it waits.")
            elif breaker["state"] == "closed" and was != "closed":
                self.feed.tell("intact", f"The circuit breaker of {agent['agent']} closed: {breaker['reason']}. What was waiting continues.")

    def tell_errors(self, now):
        current = {task["id"] for task in now["errors"]}
        for task in now["errors"]:
            if task["id"] not in self.followed:
                self.feed.tell("intact", f"{task['id']} stopped and needs attention. {task['why']}")
        for gone in self.followed - current:
            try:
                state = self.api.ask(f"/v1/tasks/{gone}")["state"]
            except (Away, Refused):
                continue
            if state in ("processed", "compensated", "error"):
                words = {"processed": "was processed", "compensated": "was cancelled", "error": "was closed"}
                self.feed.tell("intact", f"{gone} {words[state]}.")
                self.followed.discard(gone)
        self.followed |= current
        if len(self.records) > 10 * ERRORS_MAX:
            self.records.clear()
