#!/usr/bin/env python3
"""An outage of one service: so many tasks fail, and a real receiver counts what it is told. Ends with 1 if that was 10 times
or more, or if not all failures were counted. Usage: bench/alerts.py INTACT [TASKS]"""

import http.server
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

intact = os.path.realpath(sys.argv[1])
tasks = int(sys.argv[2]) if len(sys.argv) > 2 else 100_000
heard = []
PART = 5000


class Receiver(http.server.BaseHTTPRequestHandler):
    def do_POST(self):  # noqa: N802 - the library's name
        heard.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *args):
        pass


def call(url, body, kind="application/json", method=None):
    request = urllib.request.Request(url, data=body, headers={"Content-Type": kind}, method=method)
    with urllib.request.urlopen(request, timeout=300) as answer:
        return answer.read()


def fail_all(url):
    error = {"code": "unavailable", "message": "no answer", "retryable": False, "effect": "none"}
    results, done = [], 0
    while done < tasks:
        work = {"instance": "b-1", "max": 1000, "wait": "5s", "results": results}
        given = json.loads(call(f"{url}/v1/agents/bank/work", json.dumps(work).encode()))["requests"]
        done += len(results)
        results = [{"token": r["token"], "error": error} for r in given]


def main():
    folder = tempfile.mkdtemp(prefix="intact-bench-alerts.")
    receiver = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=receiver.serve_forever, daemon=True).start()
    hook = f"http://127.0.0.1:{receiver.server_port}/"
    with open(f"{folder}/secret", "w", encoding="utf-8") as f:
        f.write("whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=\n")
    with open(f"{folder}/config.yaml", "w", encoding="utf-8") as f:
        f.write(f"intact_server: 1\nwebhooks: [{{url: '{hook}', secret: {{file: secret}}, private: ['127.0.0.0/8']}}]\n"
                f"alerts: {{sinks: [{{webhook: '{hook}'}}]}}\n")
    server = subprocess.Popen([intact, "serve", "--data", f"{folder}/data", "--listen", "127.0.0.1:0", "--open",
                               "--config", "config.yaml"], cwd=folder, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True)
    try:
        port = re.search(r"port (\d+)", server.stdout.readline()).group(1)
        url = f"http://127.0.0.1:{port}"
        step = {"name": "charge", "agent": "bank", "action": "x", "undo": "none"}
        call(f"{url}/v1/workflows/order", json.dumps(
            {"intact": 1, "workflow": "order", "on_failure": "hold", "steps": [step]}).encode(), method="PUT")
        began = time.monotonic()
        agent = threading.Thread(target=fail_all, args=(url,))
        agent.start()
        for first in range(0, tasks, PART):
            lines = "".join(json.dumps({"id": f"t-{i}", "workflow": "order"}) + "\n"
                            for i in range(first, min(first + PART, tasks)))
            call(f"{url}/v1/tasks", lines.encode(), "application/x-ndjson")
        agent.join()
        failed_s = time.monotonic() - began
        count, end = 0, time.monotonic() + 300
        while count < tasks and time.monotonic() < end:
            alerts = json.loads(call(f"{url}/v1/alerts?state=open", None))["alerts"]
            count = sum(a["count"] for a in alerts)
            time.sleep(1)
        told = sum(len(event["data"]["alerts"]) for event in heard)
        print(f"{tasks} tasks failed in {failed_s:.1f} s; counted: {count}, {time.monotonic() - began - failed_s:.1f} s later; "
              f"deliveries: {len(heard)}, of {told} notices; alerts open: {len(alerts)}")
        return 0 if 0 < len(heard) < 10 and count == tasks else 1
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(60)
        shutil.rmtree(folder)


sys.exit(main())
