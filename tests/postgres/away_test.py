#!/usr/bin/env python3
"""What clients see, and what the log says, while the database is gone, hangs or comes back; and that a node can be ended meanwhile.

Usage: away_test.py ROOT INTACT
"""

import os
import re
import signal
import subprocess
import sys
import time
import urllib.error

from place import PLACE, RUNNING, Node, psql, start_database, wait_until

SERVE = 'INTACT_STORE="host=db1 dbname=postgres user=admin" intact serve --node n1 --drain 1s'


def database_pids():
    """The server and all of its processes, which are its children."""
    pid = RUNNING[0].pid
    children = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True, check=False).stdout.split()
    return [pid] + [int(child) for child in children]


def signal_database(number):
    for pid in database_pids():
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass  # a connection that has ended


def is_refused(node, name):
    """503 with a time to come back; True once it is so."""
    try:
        node.call("POST", "/v1/tasks", {"workflow": "w", "id": name, "input": {}})
    except urllib.error.HTTPError as error:
        assert error.code == 503 and int(error.headers["Retry-After"]) > 0, (error.code, error.headers)
        assert error.headers["Content-Type"] == "application/problem+json", error.headers
        assert "admin" not in error.read().decode()
        return True
    return False


def log():
    with open(f"{PLACE}/node.log", encoding="utf-8") as f:
        return f.read()


def end(node, what):
    """How long it takes is told, and nothing is asserted of it."""
    began = time.monotonic()
    node.process.send_signal(signal.SIGTERM)
    node.process.wait(600)
    print(f"{what}: ended after {time.monotonic() - began:.1f} s")


def goes_on(node, name):
    wait_until(node.is_ready, "ready again")
    wait_until(lambda: not is_refused(node, name), "tasks are taken again")
    node.call("GET", f"/v1/tasks/{name}")


def hangs(node):
    signal_database(signal.SIGSTOP)
    wait_until(lambda: is_refused(node, "while-it-hangs"), "refused")
    signal_database(signal.SIGCONT)
    goes_on(node, "after-it-hung")


def is_gone(node):
    troubles = log().count("event=store_trouble")
    os.kill(RUNNING[0].pid, signal.SIGINT)  # "fast": connections are ended
    assert RUNNING[0].wait(600) == 0
    wait_until(lambda: is_refused(node, "while-it-is-gone"), "refused")
    for i in range(40):  # of many refusals in a row the log tells a few times
        is_refused(node, f"gone-{i}")
        time.sleep(0.05)
    told = log().count("event=store_trouble") - troubles
    assert 0 < told < 10, log()


def main():
    start_database("")
    node = Node(SERVE, PLACE)
    node.run_task("first")
    hangs(node)
    is_gone(node)
    end(node, "while the database is gone")
    assert re.search("event=(ended|draining)", log()), log()

    start_database("", again=True)
    node = Node(SERVE, PLACE)
    node.has("first")
    goes_on(node, "second")
    signal_database(signal.SIGSTOP)
    end(node, "while the database hangs")
    signal_database(signal.SIGCONT)
    node = Node(SERVE, PLACE)
    node.has("first")
    assert psql("admin", "SELECT count(*) FROM intact.task WHERE id LIKE 'gone%' AND state = 'processed'", "postgres") == "0"
    node.end()
    print("clients were told, and the node went on")


sys.exit(main())
