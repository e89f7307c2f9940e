#!/usr/bin/python3
"""Agent, server and service are killed in the middle of their work, again and again; then the books are reconciled by idempotency key.

Usage: kill_test.py INTACT [TEST...]
"""

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import kit
from kit import eventually

INTACT = os.path.realpath(sys.argv.pop(1))
TASKS = 120

# A service with a durable book: an effect happens once for each key, whatever else happens.
SERVICE = r'''
import http.server, json, os, random, sqlite3, sys, time
book = sqlite3.connect(sys.argv[2], timeout=60, check_same_thread=False, isolation_level=None)
book.execute("CREATE TABLE IF NOT EXISTS booking (key TEXT PRIMARY KEY, amount INTEGER)")
dice = random.Random(os.getpid())
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        time.sleep(dice.random() * 0.02)
        book.execute("INSERT OR IGNORE INTO booking VALUES (?, ?)", (self.headers["Idempotency-Key"], body["amount"]))
        text = json.dumps({"receipt": self.headers["Idempotency-Key"]}).encode()
        if dice.random() < 0.1:
            self.close_connection = True
            return  # done, and nobody is told
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)
    def log_message(self, *words):
        pass
class Server(http.server.HTTPServer):
    allow_reuse_address = True
    request_queue_size = 200
import socketserver
class Threaded(socketserver.ThreadingMixIn, Server):
    daemon_threads = True
Threaded(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
'''


class Kill(unittest.TestCase):
    def start_service(self):
        self.service = subprocess.Popen([sys.executable, "-c", SERVICE, str(self.port), f"{self.folder}/book"], stderr=subprocess.DEVNULL)

    def test_books_agree(self):
        self.folder = tempfile.mkdtemp(prefix="intact-http-kill.")
        self.addCleanup(subprocess.run, ["rm", "-rf", self.folder])
        self.port = kit.free_port()
        self.start_service()
        self.addCleanup(lambda: (self.service.kill(), self.service.wait()))
        config = {"intact_http": 1, "private": ["127.0.0.1"], "services": {
            "payment": {"url": f"http://127.0.0.1:{self.port}", "places": 20, "retry": {"attempts": 2, "wait": "20ms"}}}}
        server = kit.Server(INTACT, config, ["--open"])
        self.addCleanup(server.close)
        server.start()
        seed = int.from_bytes(os.urandom(4), "big")
        print("seed", seed, flush=True)
        dice = random.Random(seed)
        server.put({"intact": 1, "workflow": "pay", "steps": [
            {"name": f"s{n}", "agent": "payment", "undo": "none", "complete_by": "2m", "retry": {"attempts": 1000, "wait": "50ms", "max_wait": "200ms"},
             "http": {"path": "/charges", "body": {"amount": f"${{ .input.amount + {n} }}"}, "output": ".body.receipt"}} for n in range(3)]})
        for n in range(TASKS):
            server.submit("pay", f"t-{n}", {"amount": n})
        for _ in range(12):
            time.sleep(dice.random() * 0.4)
            victim = dice.choice(("agent", "service", "server"))
            if victim == "agent":
                child = server.child()
                if child:
                    os.kill(child, signal.SIGKILL)
            elif victim == "service":
                self.service.kill()
                self.service.wait()
                self.start_service()
            else:
                server.kill()
                server.start()
        for n in range(TASKS):
            task = server.ended(f"t-{n}")
            self.assertEqual(task["state"], "processed", task)
            self.assertEqual([s["output"] for s in task["steps"]], [f"t-{n}/s{k}" for k in range(3)])
        import sqlite3
        with sqlite3.connect(f"{self.folder}/book") as book:
            rows = dict(book.execute("SELECT key, amount FROM booking"))
        self.assertEqual(rows, {f"t-{n}/s{k}": n + k for n in range(TASKS) for k in range(3)})
        server.stop()


if __name__ == "__main__":
    unittest.main(verbosity=2)
