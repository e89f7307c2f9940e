#!/usr/bin/env python3
"""What children cost: tasks that start one child, or several, beside the same number of tasks without a parent, in one run.
A child has one step, for an agent that answers at once, and so have the tasks without a parent; with --idle it has none, and ends by
itself. What is measured is the server and its store: SQLite, or, with --store, PostgreSQL by a connection string without a database.
Prints one line for each kind.
Usage: bench/families.py SERVER_PROGRAM [--tasks N] [--only KIND] [--idle] [--store CONNECTION]"""

import argparse
import json
import subprocess
import time
import uuid

from server import Agent, Server

LINES = 5000  # of a batch
SEVERAL = 10
IDLE = {"intact": 1, "workflow": "leaf", "steps": [{"name": "do", "wait": {"until": "2026-01-01T00:00:00Z"}}]}
LEAF = {"intact": 1, "workflow": "leaf", "steps": [{"name": "do", "agent": "a", "action": "do", "undo": {"action": "undo"}}]}
ONE = {"intact": 1, "workflow": "one", "steps": [{"name": "child", "task": {"workflow": "leaf"}}]}
MANY = {"intact": 1, "workflow": "many",
        "steps": [{"name": f"child-{n}", "after": [], "task": {"workflow": "leaf"}} for n in range(SEVERAL)]}
LIST = {"intact": 1, "workflow": "list", "steps": [
    {"name": f"each-{n}", "after": [], "for_each": "${ .input.list }", "max_items": 10000, "concurrency": 100,
     "task": {"workflow": "leaf", "input": None}} for n in range(SEVERAL)]}


def measure(program, workflow, tasks, each, store, leaf):
    """How long `tasks` tasks take, of which each starts so many children, with the commits and the processor time."""
    server = Server(program, store)
    try:
        for w in (leaf, ONE, MANY, LIST):
            server.call("PUT", f"/v1/workflows/{w['workflow']}", json.dumps(w))
        agent = Agent(server, 500)
        used, began = server.cpu_s(), time.monotonic()
        given = f', "input": {{"list": {list(range(each // SEVERAL))}}}' if workflow == "list" else ""
        for first in range(0, tasks, LINES):
            server.submit(f'{{"workflow":"{workflow}","id":"t-{n}"{given}}}' for n in range(first, min(tasks, first + LINES)))
        if leaf is LEAF:
            agent.serve(tasks * max(each, 1))
        while server.ended() < tasks * (1 + each):
            time.sleep(0.05)
        seconds = time.monotonic() - began
        return seconds, server.cpu_s() - used, server.resident_mib()
    finally:
        server.end()


def make_database(store):
    name = f"families_{uuid.uuid4().hex}"
    subprocess.run(["psql", "-q", "-d", f"{store} dbname=postgres", "-c", f"CREATE DATABASE {name}"], check=True)
    return f"{store} dbname={name}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("--tasks", type=int, default=20_000)
    parser.add_argument("--store")
    parser.add_argument("--only", choices=("leaf", "one", "many", "list"), action="append")
    parser.add_argument("--idle", action="store_true")
    o = parser.parse_args()
    for name, workflow, tasks, each in (("alone", "leaf", o.tasks, 0), ("with one child", "one", o.tasks // 2, 1),
                                        (f"with {SEVERAL} children", "many", o.tasks // (SEVERAL + 1), SEVERAL),
                                        (f"with {SEVERAL} lists of children", "list", 1, o.tasks // SEVERAL * SEVERAL)):
        if o.only and workflow not in o.only:
            continue
        store = make_database(o.store) if o.store else None
        seconds, cpu, mib = measure(o.program, workflow, tasks, each, store, IDLE if o.idle else LEAF)
        count = tasks * (1 + each)
        print(f"{name}: {tasks} tasks, {count} with their children: {count / seconds:.0f} a second, "
              f"{cpu / count * 1e6:.0f} us of processor time each, {mib:.0f} MiB", flush=True)


if __name__ == "__main__":
    main()
