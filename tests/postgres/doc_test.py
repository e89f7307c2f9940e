#!/usr/bin/env python3
"""Runs what docs/postgresql.md shows, on a database of its own: SQL, settings, commands; the rights of each role are tried.

Usage: doc_test.py ROOT INTACT
"""

import atexit
import glob
import json
import os
import pwd
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

ROOT, INTACT = sys.argv[1], os.path.abspath(sys.argv[2])
BIN = sorted(glob.glob("/usr/lib/postgresql/*/bin"))[-1]
PLACE = tempfile.mkdtemp(prefix="intact-pgdoc-", dir="/tmp")
USER = "postgres" if os.getuid() == 0 else None
RUNNING = []


def end():
    for process in reversed(RUNNING):
        process.kill()
        process.wait()
    shutil.rmtree(PLACE, ignore_errors=True)


def begin(command, log, **more):
    with open(f"{PLACE}/{log}", "a", encoding="utf-8") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, stdin=subprocess.DEVNULL, cwd=PLACE, **more)
    RUNNING.append(process)
    return process


def wait_until(true, what):
    for _ in range(3000):
        if true():
            return
        time.sleep(0.05)
    sys.exit(f"{what}: it never came to that\n" + "".join(f"{p}:\n{open(p).read()[-3000:]}" for p in glob.glob(f"{PLACE}/*.log")))


def blocks():
    """(mark, text) of each block that has one; what is in the last table."""
    with open(f"{ROOT}/docs/postgresql.md", encoding="utf-8") as f:
        text = f.read()
    found = re.findall(r"<!-- ([^>]+) -->\n```\w+\n(.*?)\n```\n", text, re.DOTALL)
    if len(found) != len(re.findall("(?m)^```", text)) / 2:
        sys.exit("docs/postgresql.md has a block without a mark")
    says = re.findall(r"(?m)^\| `([^`]+)` \|", text.split("## When something is wrong")[1])
    return found, says


def psql(user, sql, database="intact", fails=None):
    done = subprocess.run(["psql", "-h", PLACE, "-U", user, "-d", database, "-XqAt", "-v", "ON_ERROR_STOP=1"], input=sql,
                          capture_output=True, text=True, check=False)
    if fails:
        assert done.returncode and fails in done.stderr, f"{user}: {sql}: expected {fails}, got {done.stderr or done.stdout}"
    elif done.returncode:
        sys.exit(f"{user}: {sql}\n{done.stderr}")
    return done.stdout.strip()


def start_database(settings):
    subprocess.run([f"{BIN}/initdb", "-D", f"{PLACE}/data", "-U", "admin", "-A", "trust", "--no-sync", "--locale=C", "-E", "UTF8"],
                   check=True, user=USER, stdout=subprocess.DEVNULL, cwd=PLACE)
    with open(f"{PLACE}/data/postgresql.conf", "a", encoding="utf-8") as f:
        f.write(f"listen_addresses=''\nunix_socket_directories='{PLACE}'\nfsync=off\n{settings}\n")
    begin([f"{BIN}/postgres", "-D", f"{PLACE}/data"], "postgres.log", user=USER)
    wait_until(lambda: subprocess.run(["pg_isready", "-q", "-h", PLACE], check=False).returncode == 0, "the database")


def check_settings(settings):
    """Does the server understand them?"""
    path = f"{PLACE}/data/more.conf"
    with open(path, "w", encoding="utf-8") as f:
        f.write(settings)
    os.chmod(path, 0o644)
    names = re.findall(r"(?m)^(\w+) =", settings)
    for name in names:
        subprocess.run([f"{BIN}/postgres", "-D", f"{PLACE}/data", "-c", f"config_file={path}", "-C", name], check=True, user=USER,
                       stdout=subprocess.DEVNULL, cwd=PLACE)


def free_port():
    """Below those that the kernel gives to outgoing connections."""
    while True:
        port = random.randrange(4096, 32000)
        with socket.socket() as s:
            if s.connect_ex(("127.0.0.1", port)) != 0:
                return port


class Node:
    def __init__(self, command, host):
        self.port = free_port()
        command = command.replace("host=db1", f"host={host}")
        command = command.replace("intact serve", f"exec {INTACT} serve --open --listen 127.0.0.1:{self.port} --data {PLACE}/home")
        self.process = begin(["bash", "-c", command], "node.log")
        wait_until(self.is_ready, command)

    def call(self, method, path, body=None, kind="application/json"):
        body = body if body is None or isinstance(body, str) else json.dumps(body)
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", body.encode() if body else None, {"Content-Type": kind},
                                         method=method)
        with urllib.request.urlopen(request, timeout=600) as answer:
            return json.loads(answer.read() or b"null")

    def is_ready(self):
        if self.process.poll() is not None:
            sys.exit("the node ended:\n" + open(f"{PLACE}/node.log", encoding="utf-8").read())
        try:
            self.call("GET", "/readyz")
        except (urllib.error.URLError, ConnectionError, json.JSONDecodeError):
            return False
        return True

    def run_task(self, name):
        self.call("PUT", "/v1/workflows/w", "intact: 1\nworkflow: w\nsteps:\n  - {name: a, agent: x, action: do, undo: none}\n", "application/yaml")
        self.call("POST", "/v1/tasks", {"workflow": "w", "id": name, "tags": {"k": "v"}, "input": {"long": "x" * 5000}})
        work = {"instance": "i", "max": 1, "wait": "60s"}
        request = self.call("POST", "/v1/agents/x/work", work)["requests"][0]
        work = {"instance": "i", "max": 0, "results": [{"token": request["token"], "output": {"long": "y" * 5000}}]}
        self.call("POST", "/v1/agents/x/work", work)
        self.has(name)
        self.call("GET", "/v1/tasks?tag.k=v")

    def has(self, name):
        task = self.call("GET", f"/v1/tasks/{name}?wait=60s")
        assert task["state"] == "processed", task

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(600) == 0, open(f"{PLACE}/node.log", encoding="utf-8").read()


def shell(text):
    text = text.replace("host=db1", f"host={PLACE}").replace("intact serve", f"{INTACT} serve")
    subprocess.run(["bash", "-ec", text], check=True, cwd=PLACE, env=dict(os.environ, PGHOST=PLACE, PGUSER="intact_owner"))


def try_rights():
    psql("intact_node", "DELETE FROM intact.audit", fails="permission denied")
    psql("intact_node", "DROP TABLE intact.task", fails="must be owner")
    psql("intact_node", "CREATE TABLE intact.mine (a int)", fails="permission denied")
    for view in ("task_view", "task_step", "task_attempt", "audit_view"):
        psql("intact_report", f"SELECT * FROM intact.{view}")
    assert psql("intact_report", "SELECT state FROM intact.task_view WHERE id = 'first'") == "processed"
    for table in ("meta", "token", "task"):
        psql("intact_report", f"SELECT * FROM intact.{table}", fails="permission denied")
    psql("intact_report", "DELETE FROM intact.task_view", fails="cannot delete")


def start_pooler(ini):
    """As it stands there, but for where the database is and who may come."""
    changes = {"host=db1 port=5432": f"host={PLACE}", "listen_addr = 127.0.0.1": f"listen_addr =\nunix_socket_dir = {PLACE}",
               "auth_type = scram-sha-256": "auth_type = trust", "/etc/pgbouncer": PLACE}
    for old, new in changes.items():
        assert old in ini, old
        ini = ini.replace(old, new)
    for name, text in (("pgbouncer.ini", ini), ("userlist.txt", '"intact_node" ""\n')):
        with open(f"{PLACE}/{name}", "w", encoding="utf-8") as f:
            f.write(text)
    begin(["/usr/sbin/pgbouncer", f"{PLACE}/pgbouncer.ini"], "pgbouncer.log", user=USER)
    wait_until(lambda: subprocess.run(["pg_isready", "-q", "-h", PLACE, "-p", "6432"], check=False).returncode == 0, "the pooler")


def check_says(says):
    """Is every message that the table shows one that is written, or that a test has seen?"""
    source = "".join(open(p, encoding="utf-8").read() for p in glob.glob(f"{ROOT}/src/store/postgres*.c") + glob.glob(f"{ROOT}/tests/postgres/*.c"))
    source = re.sub(r'"\s*\n\s*"', "", source)
    for text in says:
        assert text in source, f"nobody says: {text}"
    assert len(says) > 10


def main():
    atexit.register(end)
    os.chmod(PLACE, 0o755)
    if USER:
        shutil.chown(PLACE, USER)
        pwd.getpwnam(USER)
    shown, says = blocks()
    check_says(says)
    of = {}
    for mark, text in shown:
        of.setdefault(mark, []).append(text)
    migrate, serve, backup = [text for mark, text in shown if mark.startswith("not run")]

    start_database("\n".join(of["conf: any"]))
    for settings in of["conf: any"] + of["conf: primary"]:
        check_settings(settings)
    psql("admin", of["sql: admin"][0], "postgres")
    shell(migrate)
    for sql in of["sql: owner"]:
        psql("intact_owner", sql)
    shell(migrate)
    shell(migrate.replace("intact_owner", "intact_node"))  # there is nothing to do

    node = Node(serve, PLACE)
    node.run_task("first")
    try_rights()
    node.end()

    start_pooler(of["ini: pgbouncer"][0])
    pooled = Node(serve, f"{PLACE} port=6432")
    pooled.run_task("pooled")
    pooled.end()

    shell(backup.split("\n")[0])
    psql("intact_owner", "DELETE FROM intact.task")
    shell(backup.split("\n")[1])
    node = Node(serve, PLACE)
    node.has("first")
    node.run_task("second")
    try_rights()
    node.end()
    print(f"{len(shown)} blocks of docs/postgresql.md do what it shows")


main()
