"""A receiver of webhooks: verifies the signature, and prints events that it has not seen yet. docs/webhooks.md runs it."""

import base64
import hashlib
import hmac
import http.server
import json
import sys
import time

KEY = base64.b64decode(open("shop-secret").read().strip().removeprefix("whsec_"))
seen = set()  # a table with a unique id, in an application


def is_ours(headers, body):
    if abs(time.time() - int(headers["webhook-timestamp"])) > 300:
        return False  # somebody plays an old one again
    text = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    wanted = "v1," + base64.b64encode(hmac.new(KEY, text, hashlib.sha256).digest()).decode()
    return any(hmac.compare_digest(wanted, given) for given in headers["webhook-signature"].split())


class Receiver(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # connections are used again

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        ours = is_ours(self.headers, body)
        if ours:
            self.take(json.loads(body))
        self.send_response(204 if ours else 401)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def take(self, event):
        if event["id"] not in seen:
            seen.add(event["id"])
            print(event["subject"], event["type"], event["data"]["state"], flush=True)

    def log_message(self, *words):
        pass


http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Receiver).serve_forever()
