"""For tests in Python: a database of their own in a temporary folder, and nodes on it. All of it ends with the test."""

import atexit
import ctypes
import glob
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), ".."))

from ports import free_port  # noqa: E402 pylint: disable=wrong-import-position

ROOT, INTACT = sys.argv[1], os.path.abspath(sys.argv[2])
BIN = sorted(glob.glob("/usr/lib/postgresql/*/bin"))[-1]
PLACE = tempfile.mkdtemp(prefix="intact-pgdoc-", dir="/tmp")
USER = "postgres" if os.getuid() == 0 else None
RUNNING = []


def pids_of(process):
    """It and all of its processes, which are its children."""
    children = subprocess.run(["ps", "-o", "pid=", "--ppid", str(process.pid)], capture_output=True, text=True, check=False).stdout.split()
    return [process.pid] + [int(child) for child in children]


def signal_all(process, number):
    for pid in pids_of(process):
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass  # a connection that has ended


def end_of(command):
    """A server that is killed leaves its shared memory to the machine: it ends by SIGQUIT, "immediate"."""
    return signal.SIGQUIT if os.path.basename(command[0]) == "postgres" else signal.SIGKILL


def end():
    for process in reversed(RUNNING):
        process.send_signal(end_of(process.args))
        signal_all(process, signal.SIGCONT)
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    shutil.rmtree(PLACE, ignore_errors=True)


def begin(command, log, **more):
    def die_with_the_test():
        ctypes.CDLL(None).prctl(1, end_of(command))  # PR_SET_PDEATHSIG

    with open(f"{PLACE}/{log}", "a", encoding="utf-8") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, stdin=subprocess.DEVNULL, cwd=PLACE,
                                   preexec_fn=die_with_the_test, **more)
    RUNNING.append(process)
    return process


def wait_until(true, what):
    for _ in range(3000):
        if true():
            return
        time.sleep(0.05)
    sys.exit(f"{what}: it never came to that\n" + "".join(f"{p}:\n{open(p).read()[-3000:]}" for p in glob.glob(f"{PLACE}/*.log")))


def psql(user, sql, database="intact", fails=None):
    done = subprocess.run(["psql", "-h", PLACE, "-U", user, "-d", database, "-XqAt", "-v", "ON_ERROR_STOP=1"], input=sql,
                          capture_output=True, text=True, check=False)
    if fails:
        assert done.returncode and fails in done.stderr, f"{user}: {sql}: expected {fails}, got {done.stderr or done.stdout}"
    elif done.returncode:
        sys.exit(f"{user}: {sql}\n{done.stderr}")
    return done.stdout.strip()


def start_database(settings, again=False):
    if again:
        RUNNING[0] = begin([f"{BIN}/postgres", "-D", f"{PLACE}/data"], "postgres.log", user=USER)
        RUNNING.pop()
        wait_until(lambda: subprocess.run(["pg_isready", "-q", "-h", PLACE], check=False).returncode == 0, "the database")
        return
    subprocess.run([f"{BIN}/initdb", "-D", f"{PLACE}/data", "-U", "admin", "-A", "trust", "--no-sync", "--locale=C", "-E", "UTF8"],
                   check=True, user=USER, stdout=subprocess.DEVNULL, cwd=PLACE)
    with open(f"{PLACE}/data/postgresql.conf", "a", encoding="utf-8") as f:
        f.write(f"listen_addresses=''\nunix_socket_directories='{PLACE}'\nfsync=off\ndynamic_shared_memory_type=mmap\n{settings}\n")
    begin([f"{BIN}/postgres", "-D", f"{PLACE}/data"], "postgres.log", user=USER)
    wait_until(lambda: subprocess.run(["pg_isready", "-q", "-h", PLACE], check=False).returncode == 0, "the database")


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


atexit.register(end)
os.chmod(PLACE, 0o755)
if USER:
    shutil.chown(PLACE, USER)
