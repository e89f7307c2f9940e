"""A service without an agent: books each amount once per idempotency key, and exports the bookings, which takes until it
is asked for the third time. docs/http-agent.md runs it."""

import http.server
import json
import sys

bookings = {}
exports = []


class Shop(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        order = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/exports":
            exports.append(0)
            self.answer(201, {"id": len(exports)})
            return
        if order["amount"] > 1000:
            self.answer(422, {"why": "no more than 1000"})
            return
        bookings.setdefault(self.headers["Idempotency-Key"], order)
        self.answer(201, {"id": len(bookings), "key": self.headers["X-Key"]})

    def do_DELETE(self):
        bookings.pop(self.path.split("/")[-1] + "/book", None)
        self.answer(200, {})

    def do_GET(self):
        if self.path.startswith("/exports/"):
            number = int(self.path.split("/")[-1]) - 1
            exports[number] += 1
            done = exports[number] >= 3
            self.answer(200, {"status": "done", "rows": len(bookings)} if done else {"status": "running"})
            return
        self.answer(200, bookings)

    def answer(self, status, body):
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps(body).encode())

    def log_message(self, *words):
        pass


http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Shop).serve_forever()
