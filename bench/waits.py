#!/usr/bin/env python3
"""What tasks cost that wait for a moment: memory and processor time while they wait, and, when all are due in the same second, how
fast they go on and how long other tasks take to start meanwhile. Prints one line.
Usage: bench/waits.py SERVER_PROGRAM [TASKS]"""

import http.client
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time

IDLE_S = 10
LINES = 5000  # of a batch


class Server:
    def __init__(self, program):
        self.folder = tempfile.mkdtemp(prefix="intact-waits.")
        self.process = subprocess.Popen([program, "serve", "--open", "--data", f"{self.folder}/data", "--listen", "127.0.0.1:0"],
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.port = int(self.process.stdout.readline().split()[-1])

    def call(self, method, path, body=None, kind="application/json"):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
        connection.request(method, path, body, {"Content-Type": kind})
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        assert answer.status < 300, text
        return text

    def resident_mib(self):
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as f:
            return next(int(line.split()[1]) for line in f if line.startswith("VmRSS")) / 1024

    def cpu_s(self):
        with open(f"/proc/{self.process.pid}/stat", encoding="ascii") as f:
            fields = f.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def ended(self):
        for line in self.call("GET", "/metrics").decode().splitlines():
            if line.startswith('intact_tasks_ended_total{state="processed"}'):
                return int(float(line.split()[-1]))
        raise AssertionError("there is no such metric")

    def end(self):
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.folder)


def start_others(server, stop, took):
    """Submits a task and fetches its request, again and again."""
    n = 0
    while not stop.is_set():
        began = time.monotonic()
        server.call("POST", "/v1/tasks", json.dumps({"workflow": "other", "id": f"other-{n}"}))
        answer = json.loads(server.call("POST", "/v1/agents/one/work", '{"instance": "i", "max": 1, "wait": "30s"}'))
        took.append((time.monotonic() - began) * 1000)
        results = [{"token": r["token"], "output": 1} for r in answer.get("requests", [])]
        server.call("POST", "/v1/agents/one/work", json.dumps({"instance": "i", "max": 0, "results": results}))
        n += 1
        time.sleep(0.01)


def main():
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 1_000_000
    server = Server(sys.argv[1])
    try:
        server.call("PUT", "/v1/workflows/waits", json.dumps({"intact": 1, "workflow": "waits", "steps": [
            {"name": "wait", "wait": {"until": "${ .input.at }"}}]}))
        server.call("PUT", "/v1/workflows/other", json.dumps({"intact": 1, "workflow": "other", "steps": [
            {"name": "do", "agent": "one", "action": "do", "undo": "none"}]}))
        due = time.time() + count / 10_000 + IDLE_S + 20
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(due))
        for first in range(0, count, LINES):
            lines = "".join(f'{{"workflow":"waits","id":"w-{n}","input":{{"at":"{at}"}}}}\n' for n in range(first, min(count, first + LINES)))
            server.call("POST", "/v1/tasks", lines, "application/x-ndjson")
        assert time.time() + IDLE_S < due, "submitting took too long"
        cpu = server.cpu_s()
        time.sleep(IDLE_S)
        idle = (server.cpu_s() - cpu) / IDLE_S
        resident = server.resident_mib()
        stop, took = threading.Event(), []
        other = threading.Thread(target=start_others, args=(server, stop, took))
        before = server.ended()
        time.sleep(max(0, due - time.time()))
        began = time.monotonic()
        other.start()
        while server.ended() - before < count:
            time.sleep(0.1)
        seconds = time.monotonic() - began
        stop.set()
        other.join()
        took.sort()
        print(f"waits: {count} tasks: {resident:.0f} MiB resident, {idle * 100:.1f} % of a core while they wait; all due at once: "
              f"{count / seconds:.0f}/s, other tasks start after {statistics.median(took):.1f} ms (99 %: {took[int(len(took) * 0.99)]:.1f})")
    finally:
        server.end()


if __name__ == "__main__":
    main()
