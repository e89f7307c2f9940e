#!/usr/bin/python3
"""The page of a link, with which people decide, in Debian's Chromium: see approval_browser.mjs. Then what came of it.

Usage: approval_browser_test.py ROOT INTACT
"""

import html
import http.server
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import urllib.parse
import urllib.request

ROOT, INTACT = (os.path.realpath(p) for p in sys.argv[1:3])
sys.path.insert(0, f"{ROOT}/tests")

import browsers  # noqa: E402 pylint: disable=wrong-import-position
import npm_modules  # noqa: E402 pylint: disable=wrong-import-position

HERE = os.path.dirname(os.path.realpath(__file__))
QUESTIONS = {"approve": "80 to Zoe", "reject": "9000 to Zoe", "long": "x" * 300, "tags": "<img src=x onerror=alert(1)>", "steal": "1 to Eve"}
DEFINITION = {"intact": 1, "workflow": "expense",
              "steps": [{"name": "allow", "approve": {"by": "finance", "question": "Pay ${ .input }?", "people": 2}}]}


class Mails(http.server.BaseHTTPRequestHandler):
    """Another site: a mail with a link; a page that sends the form of a link; one that shows its page in a frame."""

    def do_GET(self):
        url = urllib.parse.urlsplit(self.path)
        link = html.escape(urllib.parse.parse_qs(url.query).get("link", [""])[0])
        body = {"/": f'<a href="{link}">Decide</a>',
                "/steal": f'<form method="post" action="{link}"><input type="hidden" name="decision" value="approve"><button>Win</button></form>',
                "/frame": f'<iframe src="{link}"></iframe>'}.get(url.path)
        self.send_response(200 if body else 204)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(f"<!DOCTYPE html><title>Mails</title>{body}".encode() if body else b"")

    def log_message(self, *_):
        pass


class Server:
    def __init__(self, folder):
        with open(f"{folder}/log", "wb") as log:
            self.process = subprocess.Popen([INTACT, "serve", "--data", f"{folder}/data", "--listen", "127.0.0.1:0"],
                                            stdout=subprocess.PIPE, stderr=log, text=True)
        self.url = f"http://127.0.0.1:{int(self.process.stdout.readline().split()[3])}"
        with open(f"{folder}/data/admin-token", encoding="ascii") as f:
            self.token = f.read().strip()

    def call(self, method, path, body=None):
        request = urllib.request.Request(self.url + path, json.dumps(body).encode() if body is not None else None, method=method,
                                         headers={"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"})
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)


def check(server, links):
    """What the browser decided, and nothing else."""
    votes = {name: server.call("GET", f"/v1/tasks/{name}")["steps"][0]["approval"]["votes"] for name in links}
    said = {name: [(v["by"], v["agrees"], v["comment"]) for v in list] for name, list in votes.items()}
    wanted = {name: [] for name in links} | {"approve": [("ann", True, "within the budget\nü")], "reject": [("ann", False, "too much")]}
    for name in links:
        if said[name] != wanted[name]:
            print(f"{name}: {said[name]}, expected {wanted[name]}")
    return said == wanted


def main():
    npm_modules.install(f"{ROOT}/tests/shop/npm", "shop-browser")
    browsers.wait_for_turn(ROOT)
    folder = tempfile.mkdtemp(prefix="intact-links-")
    server = Server(folder)
    mails = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Mails)
    threading.Thread(target=mails.serve_forever, daemon=True).start()
    try:
        server.call("PUT", "/v1/workflows/expense", DEFINITION)
        server.call("POST", "/v1/tokens", {"name": "ann", "roles": ["approve"], "groups": ["finance"]})
        for name, what in QUESTIONS.items():
            server.call("POST", "/v1/tasks", {"workflow": "expense", "id": name, "input": what})
        links = {name: server.call("POST", f"/v1/approvals/{name}/allow/link", {"person": "ann"})["url"] for name in QUESTIONS}
        told = {"LINKS": json.dumps(links), "MAILS": f"http://localhost:{mails.server_port}", "BROWSER_HOME": f"{ROOT}/build/shop-browser"}
        result = subprocess.run(["node", "--test-reporter=spec", f"{HERE}/approval_browser.mjs"], env=os.environ | told, check=False)
        is_good = check(server, links) and result.returncode == 0
    finally:
        server.process.kill()
        server.process.wait()
        mails.shutdown()
        shutil.rmtree(folder)
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
