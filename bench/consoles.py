#!/usr/bin/env python3
"""What open consoles cost a server at work: CPU time of the server for each task, while so many pages are open and while none
is, by turns in one run. A page is a client that does what the page of the console does: its stream of events, and what it reads
again and again. Goal: 20 pages cost a server with 5000 tasks a second less than 3 %.
Usage: bench/consoles.py BUILD [--rate R] [--consoles N] [--seconds S] [--rounds N] [--every] [--counted]
--every: streams without a limit, as for programs that want each change.
--counted: instructions instead of time, under callgrind: so many seconds of load at that rate, and what pages ask in that time.
           For machines that do other things as well."""

import argparse
import http.client
import json
import os
import re
import statistics
import subprocess
import threading
import time

from server import Agent, Server

INPUT = {"text": "x" * 280}
SHOWN = 25  # rows of the list that are in view
PACE = "per_second=50"


class Page:
    """A page that is open: each of `reads` again after so many seconds, and a stream."""

    def __init__(self, server, stream, reads, on_gap=()):
        self.server, self.reads, self.on_gap = server, reads, on_gap
        self.is_open, self.events, self.calls, self.gap_at = True, 0, 0, 0
        self.threads = [threading.Thread(target=self.listen, args=(stream,)), threading.Thread(target=self.read)]
        for thread in self.threads:
            thread.start()

    def listen(self, path):
        self.connection = self.server.connect()
        self.connection.request("GET", path)
        self.answer = self.connection.getresponse()
        assert self.answer.status == 200, self.answer.read()
        while self.is_open:
            try:
                line = self.answer.readline()
            except (OSError, ValueError, AttributeError, http.client.HTTPException):
                return
            if not line:
                return
            self.events += line.startswith(b"event:")
            if line.startswith(b"event: gap"):
                self.gap_at = time.monotonic()

    def read(self):
        connection = self.server.connect()
        due = {path: 0 for path in self.reads}
        looked = 0
        while self.is_open:
            now = time.monotonic()
            todo = [path for path, every in self.reads.items() if now >= due[path]]
            for path in todo:
                due[path] = now + self.reads[path]
            if self.gap_at > looked and now >= looked + 2:
                looked = now
                todo += self.on_gap
            for path in todo:
                self.server.call("GET", path, connection=connection)
                self.calls += 1
            time.sleep(0.05)
        connection.close()

    def close(self):
        self.is_open = False
        self.connection.sock.shutdown(2)
        for thread in self.threads:
            thread.join()


FRAME = {"/v1/alerts?state=open&limit=50": 10, "/v1/approvals?limit=50": 15}


def kinds_of(server, is_paced, pending, pace=PACE):
    """What one page of each kind asks: its stream, {path: seconds}, and what it reads when its stream has a gap."""
    asked = f"?{pace}" if is_paced else "?"
    ids = ",".join(t["id"] for t in json.loads(server.call("GET", f"/v1/tasks?limit={SHOWN}"))["tasks"])
    rows = ["/v1/tasks?limit=50", f"/v1/tasks?ids={ids}&limit={SHOWN}"]
    return [
        lambda n: (f"/v1/events{asked}&state=error", {**FRAME, "/v1/stats": 5, "/v1/overview": 10, "/v1/alerts?state=open&limit=50": 5,
                                                      "/v1/agents": 10, "/v1/nodes": 10}, []),
        lambda n: (f"/v1/events{asked}", {**FRAME, **{path: 10 for path in rows}}, rows),
        lambda n: (f"/v1/tasks/{pending[n % len(pending)]}/events", {**FRAME, f"/v1/tasks/{pending[n % len(pending)]}/why": 15}, []),
    ]


def open_pages(server, count, is_paced, pending):
    kinds = kinds_of(server, is_paced, pending)
    return [Page(server, *kinds[n % len(kinds)](n)) for n in range(count)]


# ---- instructions ----

def counted(args, with_pages, took=None):
    """Instructions of a server that has so many seconds of the load, and how long that took."""
    counts = f"/tmp/intact-consoles.{os.getpid()}"
    server = Server(f"{args.build}/src/cli/intact", before=["valgrind", "--tool=callgrind", f"--callgrind-out-file={counts}", "-q"])
    pending, tasks = define(server), int(args.rate * args.seconds)
    agent, connections, due = Agent(server), [], {}
    if with_pages:
        pace = f"per_second={max(1, round(50 * args.seconds / took))}"
        kinds = kinds_of(server, not args.every, pending, pace)
        for n in range(args.consoles):
            stream, reads, on_gap = kinds[n % len(kinds)](n)
            connection = server.connect()
            connection.request("GET", stream)
            threading.Thread(target=connection.getresponse().read, daemon=True).start()
            connections.append(connection)
            for path, every in [*reads.items(), *((path, 2) for path in on_gap)]:
                due[path] = due.get(path, 0) + args.seconds / every
    began = time.monotonic()
    for first in range(0, tasks, 50):
        server.submit(json.dumps({"workflow": "bench", "id": f"t-{n}", "input": INPUT}) for n in range(first, first + 50))
        agent.serve(50)
    took = time.monotonic() - began
    for path, often in due.items():
        for _ in range(round(often)):
            server.call("GET", path)
    server.process.terminate()
    server.process.wait()
    server.end()
    with open(counts, encoding="utf-8", errors="replace") as f:
        total = int(re.search(r"^(?:totals|summary): (\d+)", f.read(), re.M)[1])
    os.remove(counts)
    return total, took


def define(server):
    """The workflow of the load, and tasks that rest, for pages of one task."""
    for workflow, agent in (("bench", "a"), ("rests", "nobody")):
        server.call("PUT", f"/v1/workflows/{workflow}",
                    json.dumps({"intact": 1, "workflow": workflow, "steps": [{"name": "do", "agent": agent, "action": "do", "undo": "none"}]}))
    names = [f"r-{n}" for n in range(20)]
    server.submit(json.dumps({"workflow": "rests", "id": name}) for name in names)
    return names


def compare_counts(args):
    none, took = counted(args, False)
    some, _ = counted(args, True, took)
    print(f"{args.seconds:g} s of {args.rate} tasks a second: {none:,} instructions; with {args.consoles} pages {some:,}: {some / none - 1:+.2%} "
          "(goal: less than 3 %)")


# ---- time ----

def measure(args, server, pending, flow):
    cost = {False: [], True: []}
    for turn in range(2 * args.rounds + 1):
        has_pages = turn % 2 == 1
        pages = open_pages(server, args.consoles, not args.every, pending) if has_pages else []
        time.sleep(2)
        cpu, ended, events, began = server.cpu_s(), server.ended(), sum(p.events for p in pages), time.monotonic()
        time.sleep(args.seconds)
        cpu, ended, took = server.cpu_s() - cpu, server.ended() - ended, time.monotonic() - began
        events = sum(p.events for p in pages) - events
        for page in pages:
            page.close()
        cost[has_pages].append(cpu / ended * 1e6)
        print(f"{len(pages):3} pages: {ended / took:6.0f} tasks a second, {cpu / took * 100:5.1f} % of a CPU, {cost[has_pages][-1]:6.1f} us a task, "
              f"{events / took:8.0f} events a second", flush=True)
        assert flow.poll() is None, "the load has ended"
    # Each turn with pages is compared with those without before and after it: the machine may do other things, too.
    pairs = [some / statistics.mean(cost[False][n:n + 2]) - 1 for n, some in enumerate(cost[True])]
    print(f"{args.consoles} pages: {statistics.median(pairs):+.1%} CPU time for each task (goal: less than 3 %), from {min(pairs):+.1%} to {max(pairs):+.1%}")


def compare_times(args):
    server = Server(f"{args.build}/src/cli/intact")
    environment = {**os.environ, "INTACT_SERVER": f"http://127.0.0.1:{server.port}"}
    pending = define(server)
    agent = subprocess.Popen([f"{args.build}/bench/bench-agent", "200", "a"], env=environment)
    total = int(args.rate * (2 * args.rounds + 2) * (args.seconds + 3))
    flow = subprocess.Popen([f"{args.build}/bench/bench-flow", "--tasks", str(total), "--rate", str(args.rate), "--lines", "50", "--ends", "count"],
                            env=environment, stdout=subprocess.DEVNULL)
    try:
        time.sleep(4)
        measure(args, server, pending, flow)
    finally:
        for process in (flow, agent):
            process.kill()
            process.wait()
        server.end()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    for name, kind, value in (("rate", int, 5000), ("consoles", int, 20), ("seconds", float, 8), ("rounds", int, 3)):
        parser.add_argument(f"--{name}", type=kind, default=value)
    parser.add_argument("--every", action="store_true")
    parser.add_argument("--counted", action="store_true")
    args = parser.parse_args()
    (compare_counts if args.counted else compare_times)(args)


main()
