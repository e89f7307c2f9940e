#!/usr/bin/python3
"""Draws docs/img/watch.svg: what `intact watch` shows of a real task on a terminal, as a picture for README.md.
A server is started, an order is submitted, and its agents are played: one step is done, one is tried a third time.
Usage: tools/screen.py INTACT_PROGRAM >docs/img/watch.svg"""

import fcntl
import html
import http.client
import json
import os
import pty
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time

import pyte

ROWS, COLUMNS = 12, 100
CHAR, LINE, EDGE = 8.4, 19, 16  # px
COLORS = {"default": "#d0d7de", "green": "#57ab5a", "red": "#f47067", "brown": "#e0a030", "yellow": "#e0a030",
          "blue": "#6cb6ff", "cyan": "#39c5cf", "magenta": "#dcbdfb", "white": "#ffffff", "black": "#768390"}
ORDER = {"intact": 1, "workflow": "order", "complete_by": "15m", "steps": [
    {"name": "reserve", "agent": "stock", "action": "reserve", "undo": {"action": "release"}},
    {"name": "charge", "agent": "payment", "action": "charge", "undo": {"action": "refund"},
     "retry": {"attempts": 5, "wait": "1s", "factor": 1}},
    {"name": "parcel", "agent": "shipping", "action": "send", "pivot": True}]}


class Server:
    def __init__(self, program, folder):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]
        self.process = subprocess.Popen([program, "serve", "--data", f"{folder}/data", "--open", "--listen", f"127.0.0.1:{self.port}"],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end = time.monotonic() + 60
        while not self.is_ready():
            assert time.monotonic() < end and self.process.poll() is None
            time.sleep(0.05)

    def is_ready(self):
        try:
            return self.call("GET", "/readyz")[0] == 200
        except OSError:
            return False

    def call(self, method, path, body=None):
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        c.request(method, path, body and json.dumps(body), {"Content-Type": "application/json"} if body else {})
        answer = c.getresponse()
        text = answer.read()
        assert answer.status < 400 or path == "/readyz", text
        return answer.status, json.loads(text) if text.startswith(b"{") else text

    def request(self, agent):
        while True:
            requests = self.call("POST", f"/v1/agents/{agent}/work", {"instance": f"{agent}-1", "max": 1, "wait": "10s"})[1]["requests"]
            if requests:
                return requests[0]

    def result(self, agent, token, **result):
        self.call("POST", f"/v1/agents/{agent}/work", {"instance": f"{agent}-1", "max": 0, "results": [{"token": token, **result}]})


def play(server):
    """What the agents do, as long as the picture needs it."""
    token = server.request("stock")["token"]
    time.sleep(0.9)
    server.result("stock", token, output={"shelf": 7})
    for took in (0.6, 1.1):
        token = server.request("payment")["token"]
        time.sleep(took)
        server.result("payment", token, error={"code": "busy", "message": "the bank is busy", "retryable": True, "effect": "none"})
    server.request("payment")


def watch(program, server, seconds):
    """The screen of `intact watch` after so long."""
    screen = pyte.Screen(COLUMNS, ROWS)
    stream = pyte.ByteStream(screen)
    pid, fd = pty.fork()
    if pid == 0:
        os.environ.update(TERM="xterm-256color", LANG="C.UTF-8", LC_ALL="C.UTF-8", INTACT_SERVER=f"http://127.0.0.1:{server.port}")
        os.execl(program, program, "watch", "o-1042")
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    os.kill(pid, signal.SIGWINCH)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if select.select([fd], [], [], 0.1)[0]:
            stream.feed(os.read(fd, 65536))
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return screen


def spans(screen, row):
    """Runs of equal looks: first column, color, bold, text."""
    runs = []
    for column in range(COLUMNS):
        cell = screen.buffer[row][column]
        look = COLORS.get(cell.fg, COLORS["default"]), cell.bold
        if runs and runs[-1][1:3] == look:
            runs[-1] = (*runs[-1][:3], runs[-1][3] + cell.data)
        else:
            runs.append((column, *look, cell.data))
    return [run for run in runs if run[3].strip()]


def draw(screen):
    rows = max(r for r in range(ROWS) if spans(screen, r)) + 1
    width, height = round(COLUMNS * CHAR + 2 * EDGE), rows * LINE + 2 * EDGE
    print(f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img" '
          'aria-labelledby="title desc" font-family="ui-monospace,Menlo,Consolas,DejaVu Sans Mono,monospace" font-size="14">\n'
          '<title id="title">intact watch</title>\n'
          '<desc id="desc">A terminal: the steps of an order with state, agent and attempts. One step is completed, '
          'one runs for the third time, one waits; bars show when each attempt ran.</desc>\n'
          f'<rect width="{width}" height="{height}" rx="8" fill="#22272e"/>')
    for row in range(rows):
        y = EDGE + row * LINE + 14
        for column, color, bold, text in spans(screen, row):
            text = text.rstrip()
            lead = len(text) - len(text.lstrip())
            x, shown = EDGE + (column + lead) * CHAR, text.lstrip()
            weight = ' font-weight="bold"' if bold else ""
            print(f'<text x="{x:.1f}" y="{y}" fill="{color}"{weight} textLength="{len(shown) * CHAR:.1f}" '
                  f'xml:space="preserve">{html.escape(shown)}</text>')
    print("</svg>")


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    program, folder = os.path.abspath(sys.argv[1]), tempfile.mkdtemp(prefix="intact-screen.")
    server = Server(program, folder)
    try:
        server.call("PUT", "/v1/workflows/order", ORDER)
        server.call("POST", "/v1/tasks", {"workflow": "order", "id": "o-1042", "input": {}})
        threading.Thread(target=play, args=(server,), daemon=True).start()
        draw(watch(program, server, 7))
    finally:
        server.process.kill()
        server.process.wait()
        shutil.rmtree(folder, ignore_errors=True)


main()
