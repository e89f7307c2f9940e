#!/usr/bin/env python3
"""A PgBouncer without room: all of its connections to the server are taken, or it lets nobody in any more. What a node says then, and
that it goes on by itself.

Usage: full_pool_test.py ROOT INTACT
"""

import os
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.error

from place import PLACE, RUNNING, USER, Node, begin, psql, start_database, wait_until

SERVE = 'INTACT_STORE="host=db1 port=6432 dbname=postgres user=admin" intact serve --node n1 --drain 1s'
POOL = 4  # what a node needs: its two, and one or two to ask on
SETTINGS = """[databases]
postgres = host={place} port=5432 dbname=postgres user=admin
[pgbouncer]
listen_addr =
listen_port = 6432
unix_socket_dir = {place}
auth_type = any
pool_mode = {mode}
default_pool_size = {pool}
max_client_conn = {clients}
server_login_retry = 1
query_wait_timeout = 0
"""


def settings(mode, clients):
    with open(f"{PLACE}/pool.ini", "w", encoding="utf-8") as f:
        f.write(SETTINGS.format(place=PLACE, mode=mode, pool=POOL, clients=clients))
    os.chmod(f"{PLACE}/pool.ini", 0o644)


def start_pooler(mode, clients=100):
    settings(mode, clients)
    pooler = begin(["/usr/sbin/pgbouncer", f"{PLACE}/pool.ini"], "pool.log", user=USER)
    wait_until(lambda: subprocess.run(["pg_isready", "-q", "-h", PLACE, "-p", "6432"], check=False).returncode == 0, "the pooler")
    return pooler


def end_pooler(pooler):
    pooler.kill()
    pooler.wait()
    RUNNING.remove(pooler)


class Holder:
    """A client that has a connection of the pool for as long as it is there."""

    def __init__(self):
        self.process = subprocess.Popen(["psql", "-h", PLACE, "-p", "6432", "-U", "admin", "-d", "postgres", "-XqAt"], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def hold(self):
        """False: it was not let in."""
        try:
            self.process.stdin.write("BEGIN; SELECT 'held';\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            return False
        return self.process.stdout.readline().strip() == "held"

    def end(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


def log():
    if not os.path.exists(f"{PLACE}/node.log"):
        return ""
    with open(f"{PLACE}/node.log", encoding="utf-8") as f:
        return f.read()


def trouble(node):
    """What /readyz says; empty: it is ready."""
    try:
        node.call("GET", "/readyz")
    except urllib.error.HTTPError as error:
        return error.read().decode()
    return ""


def refusal(node, name):
    """What a submission was refused with, and a time to come back; empty: it was taken."""
    try:
        node.call("POST", "/v1/tasks", {"workflow": "w", "id": name, "input": {}})
    except urllib.error.HTTPError as error:
        assert error.code == 503 and int(error.headers["Retry-After"]) > 0, (error.code, error.headers)
        return error.read().decode()
    return ""


def submit(node, name):
    return not refusal(node, name)


def finish(node, names):
    """Its agent comes; all of them are processed, and each was asked for once."""
    left = set(names)
    while left:
        work = {"instance": "i", "max": 1, "wait": "60s"}
        for request in node.call("POST", "/v1/agents/x/work", work)["requests"]:
            result = {"token": request["token"], "output": {}}
            node.call("POST", "/v1/agents/x/work", {"instance": "i", "max": 0, "results": [result]})
            left.remove(request["task"])
    for name in names:
        node.has(name)


def goes_on(node, accepted):
    wait_until(node.is_ready, "ready again")
    wait_until(lambda: submit(node, "after"), "tasks are taken again")
    finish(node, accepted + ["after"])
    assert "event=store_works_again" in log(), log()


def all_connections_are_taken(mode):
    """Others hold all that the pool has to the server. It lets the node in, and has nothing for it."""
    pooler = start_pooler(mode)
    before = len(log())
    node = Node(SERVE, PLACE)
    node.run_task("first")
    accepted = ["before"]
    assert submit(node, "before")
    holders = [Holder() for _ in range(POOL)]
    waits = [threading.Thread(target=holder.hold, daemon=True) for holder in holders]
    for thread in waits:
        thread.start()
    said = "or all of its connections to it are taken"
    # Where each session has a connection, the node keeps its own: it has to lose it until the others have all of them.
    while mode == "session" and any(thread.is_alive() for thread in waits):
        psql("admin", "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'intact%'", "postgres")
        time.sleep(0.05)
    # The first failure that it notices may be that it lost its connection.
    told = (lambda: log()[before:]) if mode == "session" else (lambda: trouble(node))
    wait_until(lambda: said in told() and trouble(node), f"it says \"{said}\"")
    for i in range(3):
        accepted += [f"full-{i}"] * submit(node, f"full-{i}")
    lines = [line for line in log()[before:].splitlines() if "event=store_trouble" in line]
    assert len(lines) == 1, log()
    for holder in holders:
        holder.end()
    goes_on(node, accepted)
    node.end()
    end_pooler(pooler)


def nobody_is_let_in():
    """It takes no client more than it has: those of the node were lost, and others came."""
    pooler = start_pooler("transaction")
    node = Node(SERVE, PLACE)
    node.run_task("another")
    assert submit(node, "before-it-was-closed")
    end_pooler(pooler)
    wait_until(lambda: trouble(node) != "", "not ready")
    node.process.send_signal(signal.SIGSTOP)  # it comes when the others are in
    pooler = start_pooler("transaction", clients=2)
    holders = []
    while len(holders) < 2:  # what asked whether the pooler is there may not have left
        holder = Holder()
        if holder.hold():
            holders.append(holder)
        else:
            holder.end()
    node.process.send_signal(signal.SIGCONT)
    said = "no more connections allowed (max_client_conn)"
    wait_until(lambda: re.search(f"event=database_unreachable .*{re.escape(said)}", log()), "the log says why")
    wait_until(lambda: "its pooler takes no more connections" in refusal(node, "while-it-is-closed"), "clients are told")
    assert trouble(node), "it has no connection"
    for holder in holders:
        holder.end()
    goes_on(node, ["before-it-was-closed"])
    node.end()
    end_pooler(pooler)


def main():
    start_database("")
    for mode in ("transaction", "session"):
        print(f"pooling by the {mode}", flush=True)
        all_connections_are_taken(mode)
        psql("admin", "DROP SCHEMA intact CASCADE", "postgres")
    nobody_is_let_in()
    print("a full pool is told, and nothing is lost")


sys.exit(main())
