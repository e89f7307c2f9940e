#!/usr/bin/env python3
"""The console: starts the shop with all that it needs, and serves a page on which its parts are made slow, broken,
killed and started again, and Intact is watched while it copes.

    console.py --build BUILD [--work DIR] [--sqlite] [--port 8080] [--console-port 8081] [--respawn]

Whoever reaches the page may do all that. So it listens on this machine only, and takes nothing from other pages.
"""

import argparse
import json
import os
import re
import shutil
import signal
import sys
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import webhook
from actions import Actions
from intact_api import Away, Refused
from keeper import Failed, Keeper
from opening import open_shop
from place import Place, is_free
from processes import STAFF
from postgres import programs as postgres_programs
from watch import SERVICES, Feed, Watch

STATIC = os.path.join(os.path.dirname(os.path.realpath(__file__)), "static")
PAGES = {"/": ("index.html", "text/html"), "/console.css": ("console.css", "text/css"), "/console.js": ("console.js", "text/javascript"),
         "/icon.svg": ("icon.svg", "image/svg+xml")}
BODY_MAX = 1 << 20


def read_json(body):
    """None: it is none, or nests deeper than anybody means."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 30
    console = None  # the Console

    def do_GET(self):
        if not self.is_called_by_name():
            return
        if self.path == "/api/state":
            self.answer(200, self.console.state())
        elif self.path in PAGES:
            name, kind = PAGES[self.path]
            with open(os.path.join(STATIC, name), "rb") as f:
                self.send(200, kind + "; charset=utf-8", f.read())
        else:
            self.answer(404, {"error": "There is nothing here."})

    do_HEAD = do_GET

    def do_POST(self):
        body = self.body()
        if body is None or not self.is_called_by_name():
            return
        if self.path == "/alerts":
            self.answer(*self.console.take_alert(self.headers, body))
            return
        if not self.is_from_our_page():
            self.answer(403, {"error": "This is for the console's own page."})
            return
        given = read_json(body)
        if not isinstance(given, dict):
            self.answer(400, {"error": "The body is no JSON object."})
            return
        self.answer(*self.act(given))

    def act(self, given):
        try:
            return 200, {"done": self.console.actions.do(self.path, given)}
        except Failed as error:
            return 422, {"error": str(error)}
        except Refused as error:
            return 409, {"error": str(error)}
        except Away as error:
            return 503, {"error": str(error)}
        except OSError as error:
            return 500, {"error": f"It cannot be done: {error}"}

    def body(self):
        length = self.headers["Content-Length"] or "0"
        if not re.fullmatch(r"[0-9]{1,9}", length) or int(length) > BODY_MAX or self.headers["Transfer-Encoding"]:
            self.close_connection = True
            self.answer(413, {"error": "The body is too long, or does not say how long it is."})
            return None
        return self.rfile.read(int(length))

    def is_called_by_name(self):
        """A page elsewhere may have its own name lead to this machine; then that is the Host."""
        if self.headers["Host"] in self.console.names:
            return True
        self.close_connection = True
        self.answer(403, {"error": "The console is not called so."})
        return False

    def is_from_our_page(self):
        """A browser says where a page is from; and without asking us first it sends no JSON from elsewhere."""
        origin, kind = self.headers["Origin"], (self.headers["Content-Type"] or "").partition(";")[0]
        return kind.strip() == "application/json" and origin in (None, *(f"http://{name}" for name in self.console.names))

    def answer(self, status, body):
        self.send(status, "application/json", json.dumps(body).encode())

    def send(self, status, kind, body):
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(body)), "Cache-Control": "no-store",
                            "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
                            "Content-Security-Policy": "default-src 'self'; frame-ancestors 'none'; base-uri 'none'"}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *words):
        pass


class Console:
    def __init__(self, place, keeper, feed):
        self.place, self.keeper, self.feed = place, keeper, feed
        self.watch = Watch(place, keeper, feed)
        self.actions = Actions(place, keeper, self.watch, feed)
        self.names = [f"{host}:{place.ports['console']}" for host in ("127.0.0.1", "localhost")]
        self.told = set()

    def state(self):
        return self.watch.seen | {
            "shop": f"http://127.0.0.1:{self.place.ports['web']}/", "store": "SQLite" if self.place.sqlite else "PostgreSQL",
            "staff": {person: self.place.staff_url(person) for person in STAFF} if self.watch.api else {},
            "now": time.time(), "feed": self.feed.entries,
            "services": [{"name": name, "mode": self.actions.mode(name)} for name in SERVICES],
            "processes": [{"name": name, "kind": kept.process.kind, "about": kept.process.about, "state": kept.state,
                           "pid": kept.child.pid if kept.state == "running" else None, "since": kept.since, "starts": kept.starts}
                          for name, kept in list(self.keeper.kept.items())]}

    def take_alert(self, headers, body):
        """Intact tells its operator here."""
        secret = self.place.secret("webhook", lambda: "")
        if not secret or not webhook.is_signed(secret, headers, body):
            return 401, {"error": "The signature is not Intact's."}
        event = json.loads(body)
        if event["id"] not in self.told:  # it may come twice
            self.told.add(event["id"])
            for alert in event["data"]["alerts"]:
                self.feed.tell("alert", f"{alert['notice'].capitalize()}: {alert['summary']}.")
        return 200, {"taken": event["id"]}


def arguments():
    parser = argparse.ArgumentParser(description="The shop, and a page on which to break it.")
    parser.add_argument("--build", required=True, help="folder of the build: build/release")
    parser.add_argument("--work", help="where everything lies; kept [a temporary folder, removed at the end]")
    parser.add_argument("--sqlite", action="store_true", help="no PostgreSQL: one server, and its SQLite file")
    parser.add_argument("--port", type=int, default=8080, help="of the shop [8080]")
    parser.add_argument("--console-port", type=int, default=8081, help="of this page [8081]")
    parser.add_argument("--respawn", action="store_true", help="what dies, or is killed, comes back by itself")
    return parser.parse_args()


def run(given, work, ends):
    def say(text):
        print(text, flush=True)

    feed = Feed()
    keeper = Keeper(work, feed.tell, ends, given.respawn)
    try:
        place = Place(work, os.path.realpath(given.build), given.sqlite, given.port, given.console_port)
        console = Console(place, keeper, feed)
        Handler.console = console
        server = ThreadingHTTPServer(("127.0.0.1", given.console_port), Handler)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        console.watch.api = open_shop(place, keeper, say)
        feed.tell("shop", "The shop is open.")
        if not given.sqlite:
            say(f"to look into its database: psql '{place.database_url('reader')}'")
        say(f"staff, who approve large orders: {place.staff_url(STAFF[0])}")
        say(f"shop: http://127.0.0.1:{given.port}/\nconsole: http://127.0.0.1:{given.console_port}/")
        while not ends.wait(1):
            console.watch.look()
        say("closing the shop")
    finally:
        keeper.stop_all()


def main():
    given = arguments()
    if not given.sqlite and not postgres_programs():
        sys.exit("console: there is no PostgreSQL here; tools/setup shop installs it, --sqlite does without")
    for port in (given.port, given.console_port):
        if not is_free(port):
            sys.exit(f"console: port {port} is taken; --port and --console-port choose others")
    ends, asked = threading.Event(), []

    def end(*_):
        asked.append(True)
        ends.set()

    for one in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(one, end)
    work = os.path.realpath(given.work) if given.work else tempfile.mkdtemp(prefix="intact-shop.")
    os.makedirs(work, mode=0o700, exist_ok=True)
    try:
        run(given, work, ends)
    except (Failed, RuntimeError, OSError) as error:
        if asked:
            return 0
        print(f"console: {error}", file=sys.stderr)
        return 1
    finally:
        if not given.work:
            shutil.rmtree(work, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
