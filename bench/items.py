#!/usr/bin/env python3
"""What items cost: a task of many items (for_each) beside the same number of plain steps, ten to a task, as many of them at
a time, in one run. The agent answers at once, so what is measured is the server and its store: SQLite, or, with --store,
PostgreSQL by a connection string without a database. Prints one line for each kind: the rate, the server's processor time
for each, and how much memory it has at the end.
Usage: bench/items.py SERVER_PROGRAM [--items N] [--store CONNECTION]"""

import argparse
import json
import subprocess
import time
import uuid

from server import Agent, Server

STEPS = 10  # of a task with plain steps
CALL = {"agent": "a", "action": "do", "input": {"n": "${ .input.n }"}}
PLAIN = {"intact": 1, "workflow": "plain",
         "steps": [{"name": f"do-{n}", **CALL, "undo": {"action": "undo"}} for n in range(STEPS)]}


def each(concurrency):
    step = {"name": "do", "for_each": "${ .input.list }", "max_items": 10000, "concurrency": concurrency, "agent": "a", "action": "do",
            "input": {"n": "${ .item }"}, "undo": {"action": "undo"}}
    return {"intact": 1, "workflow": f"each-{concurrency}", "steps": [step]}


def measure(server, agent, count):
    used, began = server.cpu_s(), time.monotonic()
    agent.serve(count)
    return time.monotonic() - began, server.cpu_s() - used


def tell(name, count, seconds, cpu, server):
    print(f"{name}: {count / seconds:.0f} a second, {cpu / count * 1e6:.0f} us of processor time each, "
          f"{server.resident_mib():.0f} MiB", flush=True)
    return cpu / count


def submit(server, workflow, count):
    if workflow == "plain":
        lines = (f'{{"workflow":"plain","id":"p-{n}","input":{{"n":{n}}}}}' for n in range(count // STEPS))
    else:
        lines = [json.dumps({"workflow": workflow, "id": workflow, "input": {"list": list(range(count))}})]
    server.submit(lines)


def run(program, workflow, at_once, count, store):
    server = Server(program, store)
    try:
        for w in (PLAIN, each(10), each(100)):
            server.call("PUT", f"/v1/workflows/{w['workflow']}", json.dumps(w))
        agent = Agent(server, at_once)
        submit(server, workflow, count)
        cost = tell(f"{workflow}, {at_once} at a time", count, *measure(server, agent, count), server)
        if workflow != "plain":
            while server.ended() < 1:
                time.sleep(0.01)
            server.call("POST", f"/v1/tasks/{workflow}/undo", json.dumps({"reason": "bench"}))
            tell(f"{workflow}, undo", count, *measure(server, agent, count), server)
        return cost
    finally:
        server.end()


def make_database(store):
    name = f"items_{uuid.uuid4().hex}"
    subprocess.run(["psql", "-q", "-d", f"{store} dbname=postgres", "-c", f"CREATE DATABASE {name}"], check=True)
    return f"{store} dbname={name}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("--items", type=int, default=10_000)
    parser.add_argument("--store")
    o = parser.parse_args()
    for at_once in (10, 100):
        costs = {w: run(o.program, w, at_once, o.items, make_database(o.store) if o.store else None)
                 for w in ("plain", f"each-{at_once}")}
        print(f"each-{at_once}: {costs[f'each-{at_once}'] / costs['plain']:.2f} times a plain step")


main()
