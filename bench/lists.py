#!/usr/bin/env python3
"""What a list of 100 tasks costs a server, by filter, in a small store and in a large one: milliseconds of its CPU for one page.
A filter with an index costs the same in both. One without reads on until the page is full, 20 000 rows were looked at, or 200 ms
have passed, and the page says where the next one begins: then "part" is shown.
Usage: bench/lists.py BUILD [SMALL [LARGE]]        numbers of tasks; 50000 and 1000000"""

import json
import sys
import time

from server import Server

PAGE = 100
BATCH = 5000
FILTERS = [
    ("none", ""), ("a state", "state=pending"), ("a state that none has", "state=error"), ("a workflow", "workflow=often"),
    ("a rare workflow", "workflow=rare"), ("a tag", "tag.shop=rome"), ("a rare tag", "tag.customer=c-7"), ("ids", "ids=t-10,t-20,t-30"),
    ("an agent", "agent=nobody"), ("an agent that has none", "agent=somebody"), ("an error that none has", "error=declined&state=pending"), ("a step", "step=do"),
    ("submitted in the last minute", "submitted_after={minute}"), ("submitted before all", "submitted_before=2020-01-01T00:00:00.000Z"),
    ("paused", "paused=true"), ("a version that none has", "version=7"), ("children of one", "parent=t-1"),
]


def fill(server, begin, end):
    for first in range(begin, end, BATCH):
        server.submit(json.dumps({"workflow": "rare" if n % 10_000 == 3 else "often", "id": f"t-{n}", "input": {"n": n},
                                  "tags": {"shop": ("rome", "oslo")[n % 2], "customer": f"c-{n % 1000}"}}) for n in range(first, min(end, first + BATCH)))


def cost(server, query):
    """CPU milliseconds of a page, its number of rows, and whether it ended early."""
    connection = server.connect()
    path = f"/v1/tasks?limit={PAGE}" + (f"&{query}" if query else "")
    page = json.loads(server.call("GET", path, connection=connection))
    calls, cpu = 0, server.cpu_s()
    while server.cpu_s() - cpu < 0.2 and calls < 500:
        server.call("GET", path, connection=connection)
        calls += 1
    return (server.cpu_s() - cpu) / calls * 1000, len(page["tasks"]), page["next"] is not None and len(page["tasks"]) < PAGE


def main():
    build, small, large = sys.argv[1], *(int(n) for n in (sys.argv[2:] + ["50000", "1000000"][len(sys.argv) - 2:]))
    server = Server(f"{build}/src/cli/intact")
    for name in ("often", "rare"):
        server.call("PUT", f"/v1/workflows/{name}", json.dumps({"intact": 1, "workflow": name, "steps": [{"name": "do", "agent": "nobody", "action": "do", "undo": "none"}]}))
    found, stored = {}, 0
    for count in (small, large):
        fill(server, stored, count)
        stored = count
        minute = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(time.time() - 60))
        found[count] = {name: cost(server, query.format(minute=minute)) for name, query in FILTERS}
    print(f"{'filter':32} {small:>12} {large:>12}   ms of CPU; rows")
    for name, _ in FILTERS:
        (a, *_), (b, rows, is_part) = found[small][name], found[large][name]
        print(f"{name:32} {a:12.2f} {b:12.2f}   {rows}{' part' if is_part else ''}")
    server.end()


main()
