#!/usr/bin/env python3
"""What open consoles cost a server at work: CPU time of the server for each task, while so many pages are open and while none
is, by turns in one run. A page is a client that does what the page of the console does: its stream of events, and what it reads
again and again. Goal: 20 pages cost a server with 5000 tasks a second less than 3 %.
Usage: bench/consoles.py BUILD [--rate R] [--consoles N] [--seconds S] [--rounds N] [--every]
--every: streams without a limit, as for programs that want each change."""

import argparse
import http.client
import json
import os
import statistics
import subprocess
import threading
import time

from server import Server

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


def open_pages(server, count, is_paced, pending):
    pace = f"?{PACE}" if is_paced else "?"
    ids = ",".join(t["id"] for t in json.loads(server.call("GET", f"/v1/tasks?limit={SHOWN}"))["tasks"])
    rows = ["/v1/tasks?limit=50", f"/v1/tasks?ids={ids}&limit={SHOWN}"]
    kinds = [
        lambda n: Page(server, f"/v1/events{pace}&state=error", {**FRAME, "/v1/stats": 5, "/v1/overview": 10, "/v1/alerts?state=open&limit=50": 5,
                                                                  "/v1/agents": 10, "/v1/nodes": 10}),
        lambda n: Page(server, f"/v1/events{pace}", {**FRAME, **{path: 10 for path in rows}}, rows),
        lambda n: Page(server, f"/v1/tasks/{pending[n % len(pending)]}/events", {**FRAME, f"/v1/tasks/{pending[n % len(pending)]}/why": 15}),
    ]
    return [kinds[n % len(kinds)](n) for n in range(count)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    for name, kind, value in (("rate", int, 5000), ("consoles", int, 20), ("seconds", float, 8), ("rounds", int, 3)):
        parser.add_argument(f"--{name}", type=kind, default=value)
    parser.add_argument("--every", action="store_true")
    args = parser.parse_args()
    server = Server(f"{args.build}/src/cli/intact")
    url = f"http://127.0.0.1:{server.port}"
    environment = {**os.environ, "INTACT_SERVER": url}
    one = {"intact": 1, "workflow": "bench", "steps": [{"name": "do", "agent": "a", "action": "do", "undo": "none"}]}
    rests = {"intact": 1, "workflow": "rests", "steps": [{"name": "do", "agent": "nobody", "action": "do", "undo": "none"}]}
    for definition in (one, rests):
        server.call("PUT", f"/v1/workflows/{definition['workflow']}", json.dumps(definition))
    pending = [f"r-{n}" for n in range(20)]
    server.submit(json.dumps({"workflow": "rests", "id": name}) for name in pending)
    agent = subprocess.Popen([f"{args.build}/bench/bench-agent", "200", "a"], env=environment)
    total = int(args.rate * (2 * args.rounds + 2) * (args.seconds + 3))
    flow = subprocess.Popen([f"{args.build}/bench/bench-flow", "--tasks", str(total), "--rate", str(args.rate), "--lines", "50", "--ends", "count"],
                            env=environment, stdout=subprocess.DEVNULL)
    try:
        time.sleep(4)
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
        # Each turn with pages is compared with those without before and after it: the machine does other things, too.
        pairs = [some / statistics.mean(cost[False][n:n + 2]) - 1 for n, some in enumerate(cost[True])]
        print(f"{args.consoles} pages: {statistics.median(pairs):+.1%} CPU time for each task (goal: less than 3 %), from {min(pairs):+.1%} to {max(pairs):+.1%}")
    finally:
        for process in (flow, agent):
            process.kill()
            process.wait()
        server.end()


main()
