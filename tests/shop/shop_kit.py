"""What the tests of the shop share: a shop of their own, with its console, and what people do by HTTP."""

import http.client
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), ".."))

from ports import free_port  # noqa: E402 pylint: disable=wrong-import-position

PATIENCE_S = 600  # only a failing test waits so long
ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", ".."))
CONSOLE = f"{ROOT}/examples/shop/console/console.py"
HIDDEN = ("INTACT_SERVER", "INTACT_TOKEN", "INTACT_CA", "INTACT_INSTALLATION", "http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "ALL_PROXY")
ENVIRONMENT = {k: v for k, v in os.environ.items() if k not in HIDDEN} | {
    "LC_ALL": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1", "SHOP_PATIENCE_S": str(PATIENCE_S)}
AWAY = (OSError, http.client.HTTPException, json.JSONDecodeError)


def eventually(what, condition, pause=0.2):
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(pause)
    raise AssertionError(f"never: {what}")


def definition(name):
    with open(f"{ROOT}/examples/shop/{name}.yaml", encoding="utf-8") as f:
        return f.read()


def ask(url, path, body=None, timeout=30, headers=None):
    """One request: its status and its JSON."""
    where = urllib.parse.urlsplit(url)
    connection = http.client.HTTPConnection(where.hostname, where.port, timeout=timeout)
    try:
        headers = (headers or {}) | ({"Content-Type": "application/json", "Origin": f"http://{where.netloc}"} if body is not None else {})
        connection.request("GET" if body is None else "POST", path, None if body is None else json.dumps(body), headers)
        response = connection.getresponse()
        text = response.read()
        return response.status, json.loads(text) if text else None
    finally:
        connection.close()


class Shop:
    """One of its own, in a temporary folder: `with Shop(build) as shop`. A shop that turned out to be wrong is kept, to look at."""

    def __init__(self, build, sqlite=False, keep=False, respawn=False):
        self.sqlite, self.keep, self.is_good = sqlite, keep, False
        self.work = tempfile.mkdtemp(prefix="intact-shop-test.")
        os.chmod(self.work, 0o711)  # PostgreSQL does not run as root, and has to get through
        web, console = free_port(), free_port()
        self.url, self.console_url = f"http://127.0.0.1:{web}", f"http://127.0.0.1:{console}"
        self.log = f"{self.work}/console.log"
        words = [sys.executable, CONSOLE, "--build", os.path.realpath(build), "--work", f"{self.work}/shop", "--port", str(web),
                 "--console-port", str(console), *(["--sqlite"] if sqlite else []), *(["--respawn"] if respawn else [])]
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=ENVIRONMENT)

    def __enter__(self):
        try:
            eventually("the shop is open", self.is_open)
        except BaseException:
            self.close()
            raise
        return self

    def said(self):
        with open(self.log, encoding="utf-8", errors="replace") as f:
            return f.read()

    def is_open(self):
        assert self.process.poll() is None, self.said()
        return f"console: {self.console_url}/" in self.said()

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()
        if self.is_good and not self.keep:
            shutil.rmtree(self.work)
        else:
            print(f"kept in {self.work}", flush=True)

    # ---- People ----

    def order(self, order):
        return ask(self.url, "/api/orders", order, timeout=30)

    def console(self, path, body):
        """True: it was done. What cannot be done just now is no mistake of ours: it may be dead already, or nobody leads."""
        status, answer = ask(self.console_url, path, body, timeout=60)
        assert status in (200, 409, 422, 503), f"the console said {status} to {path}: {answer}"
        return status == 200

    def state(self):
        return ask(self.console_url, "/api/state")[1]

    def mode(self, service, mode):
        self.console(f"/api/mode/{service}", {"mode": mode})

    def restock(self, sku, number):
        assert self.console(f"/api/restock/{sku}", {"number": number}), f"{number} of {sku}"

    def operator(self, verb, task, **more):
        return self.console(f"/api/operator/{verb}/{task}", {"reason": "it is well again"} | more)

    def stopped(self):
        return [task["id"] for task in self.state()["errors"]]

    def start_all(self):
        for process in self.state()["processes"]:
            if process["state"] != "running":
                self.console(f"/api/start/{process['name']}", {})

    def intact(self):
        """Where its first node is, and the admin's token."""
        pid = next(p["pid"] for p in self.state()["processes"] if p["name"] == "n1")
        with open(f"/proc/{pid}/cmdline", encoding="utf-8") as f:
            words = f.read().split("\0")
        with open(f"{self.work}/shop/node-n1/admin-token", encoding="ascii") as f:
            return "http://" + words[words.index("--listen") + 1], f.read().strip()

    def reservations(self, length):
        """Who pays later has so long from now on: a test neither waits for minutes, nor is it too slow."""
        text = definition("shop")
        assert text.count("complete_by: 2m") == 1
        self.put("workflows/shop_order", text.replace("complete_by: 2m", f"complete_by: {length}"))

    def put(self, path, body):
        """To Intact, as its admin: a definition, or JSON."""
        url, token = self.intact()
        kind, text = ("yaml", body) if isinstance(body, str) else ("json", json.dumps(body))
        request = urllib.request.Request(f"{url}/v1/{path}", text.encode(), method="PUT",
                                         headers={"Authorization": f"Bearer {token}", "Content-Type": f"application/{kind}"})
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=60) as answer:
            assert answer.status in (200, 201)

    def databases(self):
        """Of the shop, as books.load() takes it, and of each service."""
        shop = f"{self.work}/shop/node-n1/intact.db" if self.sqlite else f"postgresql://reader@/shop?host={self.work}/shop/db/socket"
        return shop, {name: f"{self.work}/shop/{name}/{name}.db" for name in ("stock", "payment", "shipping")}
