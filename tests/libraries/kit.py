"""Real servers, and processes that are killed, for the tests of the libraries in Python and TypeScript."""

import glob
import json
import os
import shutil
import signal
import sqlite3
import ssl
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), ".."))

from ports import free_port  # noqa: E402 pylint: disable=wrong-import-position

PATIENCE_S = 240  # for what has to happen: only a failing test waits so long
ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), "../.."))
INTACT = os.environ.get("INTACT_PROGRAM", f"{ROOT}/build/asan/src/cli/intact")
LIB = f"{ROOT}/lib/python"
HIDDEN = ("INTACT_SERVER", "INTACT_TOKEN", "INTACT_CA", "INTACT_INSTALLATION", "NOTIFY_SOCKET", "WATCHDOG_USEC")

for _name in HIDDEN:
    os.environ.pop(_name, None)


def wait_for(what, condition, patience_s=PATIENCE_S):
    """What the condition gives, once that is true."""
    end = time.monotonic() + patience_s
    while not (found := condition()):
        if time.monotonic() > end:
            raise AssertionError(f"in {patience_s} s there was not: {what}")
        time.sleep(0.02)
    return found


class Kept:
    """A process that is started again when it dies, as systemd would."""

    def __init__(self, command, log, environment=None):
        self.command, self.log = command, log
        self.environment = {**os.environ, **(environment or {})}
        self.retired, self.status, self.starts = False, None, 0
        self.lock = threading.Lock()
        self.process = self.spawn()
        self.thread = threading.Thread(target=self.keep, daemon=True)
        self.thread.start()

    def spawn(self):
        self.starts += 1
        with open(self.log, "ab") as log:
            return subprocess.Popen(self.command, env=self.environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def keep(self):
        while True:
            status = self.process.wait()
            with self.lock:
                if self.retired:
                    self.status = status
                    return
            time.sleep(0.05)
            with self.lock:
                if self.retired:
                    self.status = status
                    return
                self.process = self.spawn()

    def strike(self):
        """SIGKILL; back when the next one was started."""
        struck = self.process
        struck.kill()
        wait_for("the next process", lambda: self.process is not struck)

    def retire(self, number=signal.SIGTERM):
        with self.lock:
            self.retired = True
            if self.process.poll() is None:
                self.process.send_signal(number)
        self.thread.join(PATIENCE_S)
        return self.status

    def story(self):
        with open(self.log, encoding="utf-8", errors="replace") as f:
            return f.read()


class Place:
    """A folder, servers and agents in it; all of it is gone at the end."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="intact-pyts.")
        self.kept = {}
        self.token = None

    def certificate(self):
        """For 127.0.0.1, signed by itself; the files of it and of its key."""
        cert, key = f"{self.folder}/cert.pem", f"{self.folder}/key.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days",
                        "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out",
                        cert], check=True, capture_output=True)
        return cert, key

    def serve(self, name="n1", *more, port=None):
        """Starts a server; its address."""
        port = port or free_port()
        data = f"{self.folder}/data" if name == "n1" else f"{self.folder}/data-{name}"
        url = f"{'https' if '--tls-cert' in more else 'http'}://127.0.0.1:{port}"
        self.kept[name] = Kept([INTACT, "serve", "--data", data, "--listen", f"127.0.0.1:{port}", "--log", "warn", *more],
                               f"{self.folder}/{name}.log")
        self.wait_ready(url)
        if self.token is None:
            def read():
                try:
                    with open(f"{data}/admin-token", encoding="ascii") as f:
                        return f.read().strip()
                except OSError:
                    return ""
            self.token = wait_for("the first token", read)
        return url

    @staticmethod
    def wait_ready(url):
        from urllib.request import urlopen

        def ready():
            try:
                with urlopen(url + "/readyz", timeout=PATIENCE_S, context=ssl._create_unverified_context()):
                    return True
            except OSError:
                return False
        wait_for(f"{url} is ready", ready)

    def agent(self, name, command, url, **environment):
        self.kept[name] = Kept(command, f"{self.folder}/{name}.log", {
            "INTACT_SERVER": url, "INTACT_TOKEN": self.token, "INTACT_INSTANCE": name, "PYTHONPATH": LIB,
            "PYTHONDONTWRITEBYTECODE": "1", **environment})
        return self.kept[name]

    def database(self):
        """A PostgreSQL server; how to reach it."""
        found = sorted(glob.glob("/usr/lib/postgresql/*/bin"), key=lambda p: int(p.split("/")[4]))
        if not found:
            return None
        home, as_user = f"{self.folder}/pg", []
        os.chmod(self.folder, 0o711)
        os.mkdir(home)
        if os.getuid() == 0:
            shutil.chown(home, "postgres")
            as_user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups", "--"]
        subprocess.run([*as_user, f"{found[-1]}/initdb", "-D", f"{home}/data", "-U", "intact", "-A", "trust", "-E", "UTF8",
                        "--locale=C", "--no-sync", "--no-instructions"], check=True, stdout=subprocess.DEVNULL, cwd="/")
        self.kept["database"] = Kept([*as_user, f"{found[-1]}/postgres", "-D", f"{home}/data", "-k", home, "-c",
                                      "listen_addresses=", "-c", "dynamic_shared_memory_type=mmap"], f"{self.folder}/pg.log")
        self.where = f"host={home} user=intact dbname=postgres"
        wait_for("the database", lambda: self.psql("SELECT 1").returncode == 0)
        return self.where

    def psql(self, sql=None, file=None):
        return subprocess.run(["psql", "-d", self.where, "-AtqX", "-v", "ON_ERROR_STOP=1",
                               *(["-c", sql] if sql else ["-f", file])], capture_output=True, text=True, check=False)

    def end(self, keep=False):
        """Kills what is left. The database by SIGQUIT: one that is killed leaves shared memory behind."""
        for name, kept in reversed(list(self.kept.items())):
            if kept.status is None:
                kept.retire(signal.SIGQUIT if name == "database" else signal.SIGKILL)
        if keep:
            print(f"kept: {self.folder}", file=sys.stderr)
        else:
            shutil.rmtree(self.folder, ignore_errors=True)


class Kind:
    """How the agent for conformance of a library is started, and its record read."""

    def __init__(self, name):
        self.name = name
        self.home = None
        self.python = sys.executable

    def prepare(self, folder):
        if self.name == "typescript":
            self.home = f"{folder}/npm"
            subprocess.run([f"{ROOT}/lib/typescript/try", self.home], check=True, stdout=subprocess.DEVNULL)

    def with_postgres(self):
        """False: the driver is missing."""
        if self.name == "python":
            able = [p for p in (sys.executable, "/usr/bin/python3") if subprocess.run(
                [p, "-c", "import psycopg2"], capture_output=True, check=False).returncode == 0]
            self.python = able[0] if able else None
            return bool(able)
        return True

    def command(self, record):
        if self.name == "typescript":
            return ["node", f"{self.home}/conformance_agent.mjs", record]
        return [self.python, f"{LIB}/tests/conformance_agent.py", record]

    def client(self):
        """The program that submits what it reads."""
        here = os.path.dirname(os.path.realpath(__file__))
        if self.name == "typescript":
            return ["node", shutil.copy(f"{here}/client_lines.mjs", self.home)]
        return [self.python, f"{here}/client_lines.py"]

    @property
    def has_shared_record(self):
        """May several processes have one record? A file that is replaced is for one."""
        return self.name == "python"

    def books(self, record):
        """The sum of all effects, and the outcome of each step by its key."""
        if self.name == "typescript":
            with open(record, encoding="utf-8") as f:
                found = json.load(f)
            return found["n"], {key: step["outcome"] for key, step in found["steps"].items()}
        with sqlite3.connect(record) as db:
            total = db.execute("SELECT coalesce(sum(n), 0) FROM counter").fetchone()[0]
            return total, dict(db.execute("SELECT forward_key, outcome FROM intact_barrier"))


def definition(name, agent, steps, **more):
    """A workflow with these steps, in a row."""
    return {"intact": 1, "workflow": name, "steps": [{"agent": agent, **step} for step in steps], **more}
