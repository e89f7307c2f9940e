"""An installation that is measured: servers, agents, a database, each a real process in a fresh folder, and what the kernel
and the servers count of them. All of it ends with this process, however that ends."""

import argparse
import ctypes
import glob
import json
import os
import pwd
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request

ROOT = os.path.realpath(f"{os.path.dirname(os.path.abspath(__file__))}/../..")
TICK_NS = 1000000000 // os.sysconf("SC_CLK_TCK")
PATIENCE_S = 300
AGENTS = "abc"


class Trouble(Exception):
    """Something that is to be told to people, without a trace."""


def count_of(text):
    """An option's number."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text}: a number from 1 is expected")
    return int(text)


def die_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def end(process, how=signal.SIGTERM):
    if process.poll() is None:
        process.send_signal(how)
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
    process.wait()


def stat_of(pid):
    """Fields of /proc/PID/stat behind the name, which may hold anything: state is the first."""
    with open(f"/proc/{pid}/stat") as f:
        return f.read().rpartition(")")[2].split()


def cpu_of(pid):
    """Seconds of all threads that live, to the nanosecond: ticks of /proc/PID/stat are too coarse for short runs. And of children that
    have ended, such as the database's process of a connection, in ticks."""
    fields = stat_of(pid)
    ns = (int(fields[13]) + int(fields[14])) * TICK_NS
    for path in glob.glob(f"/proc/{pid}/task/*/schedstat"):
        with open(path) as f:
            ns += int(f.read().split()[0])
    return ns / 1e9


class Count:
    """What some processes have had so far: CPU seconds, bytes written."""

    def __init__(self, pids):
        self.cpu = self.written = 0
        for pid in pids:
            try:
                self.cpu += cpu_of(pid)
                with open(f"/proc/{pid}/io") as f:
                    self.written += int(re.search(r"^write_bytes: (\d+)", f.read(), re.M)[1])
            except (FileNotFoundError, ProcessLookupError):
                pass  # a connection's that has ended


def memory_mib(pid, key):
    with open(f"/proc/{pid}/status") as f:
        return int(re.search(rf"^{key}:\s+(\d+)", f.read(), re.M)[1]) / 1024


def children_of(pid):
    found = []
    for path in glob.glob("/proc/[0-9]*/stat"):
        other = int(path.split("/")[2])
        try:
            if int(stat_of(other)[1]) == pid:
                found.append(other)
        except (FileNotFoundError, ProcessLookupError):
            pass
    return found


class Database:
    """A PostgreSQL of its own, durable as installed; it takes connections through a socket in its folder alone."""

    def __init__(self, folder):
        programs = sorted(glob.glob("/usr/lib/postgresql/*/bin"), key=lambda p: int(p.split("/")[4]))
        if not programs:
            raise Trouble("there is no PostgreSQL server; tools/setup nodes installs it")
        self.folder = folder
        os.makedirs(folder)
        run_as = []
        if os.getuid() == 0:
            shutil.chown(folder, "postgres")
            run_as = ["setpriv", "--reuid", "postgres", "--regid", str(pwd.getpwnam("postgres").pw_gid),
                      "--clear-groups", "--pdeathsig", "QUIT"]
        made = subprocess.run(run_as + [f"{programs[-1]}/initdb", "-D", f"{folder}/data", "-U", "intact", "-A", "trust",
                                        "-E", "UTF8", "--locale=C", "--no-instructions"], cwd=folder,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if made.returncode != 0:
            raise Trouble(f"initdb: {made.stdout.decode()}")
        with open(f"{folder}/log", "wb") as log:
            self.process = subprocess.Popen(
                run_as + [f"{programs[-1]}/postgres", "-D", f"{folder}/data", "-k", folder, "-c", "listen_addresses=",
                          "-c", "max_wal_size=4GB"], cwd=folder, stdout=log, stderr=log)
        self.conninfo = f"host={folder} user=intact dbname=postgres"
        until = time.monotonic() + PATIENCE_S
        while self.ask("SELECT 1", False) != "1":
            if self.process.poll() is not None or time.monotonic() > until:
                raise Trouble("the database does not start:\n" + open(f"{folder}/log").read())
            time.sleep(0.05)

    def ask(self, sql, must=True):
        done = subprocess.run(["psql", "-h", self.folder, "-U", "intact", "-d", "postgres", "-qAtX", "-c", sql],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if must and done.returncode != 0:
            raise Trouble(f"psql: {done.stderr.decode()}")
        return done.stdout.decode().strip()

    def pids(self):
        return [self.process.pid] + children_of(self.process.pid)

    def syncs(self):
        """Of the log, which is what a commit waits for. Connections tell theirs once a second."""
        time.sleep(1.2)
        return int(self.ask("SELECT wal_sync FROM pg_stat_wal"))

    def close(self):
        end(self.process, signal.SIGQUIT)


class Rig:
    """The build's programs and a folder; makes installations, one after the other."""

    def __init__(self, build, folder):
        self.build = os.path.realpath(build)
        self.work = tempfile.mkdtemp(prefix="intact-bench.", dir=folder)
        os.chmod(self.work, 0o711)  # the database is run by another user
        self.database = None
        self.turn = 0
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda *_: sys.exit(1))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.database:
            self.database.close()
        shutil.rmtree(self.work, ignore_errors=True)

    def program(self, name):
        return f"{self.build}/src/cli/intact" if name == "intact" else f"{self.build}/bench/bench-{name}"

    def start(self, name, *args, env=None, **more):
        return subprocess.Popen([self.program(name), *map(str, args)], env={**os.environ, "no_proxy": "*", **(env or {})},
                                preexec_fn=die_with_parent, **more)

    def run(self, name, *args, env=None):
        """A program that prints one JSON object."""
        process = self.start(name, *args, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            out, err = process.communicate()
        finally:
            end(process, signal.SIGKILL)
        if process.returncode != 0:
            raise Trouble(f"{name} failed: {err.decode().strip()}")
        return json.loads(out)

    def the_database(self):
        if not self.database:
            self.database = Database(f"{self.work}/database")
        return self.database

    def folder(self, name):
        self.turn += 1
        path = f"{self.work}/{name}-{self.turn}"
        os.mkdir(path)
        return path


class Installation:
    """Fresh servers and agents. With `store` postgres: nodes of a fresh schema of the one database."""

    def __init__(self, rig, definition, store="sqlite", nodes=1, answer=300, places=256):
        self.rig, self.store = rig, store
        self.servers, self.agents, self.urls = [], None, []
        self.folder = rig.folder("installation")
        self.env = {"INTACT_SERVER": "", "INTACT_TOKEN": ""}
        try:
            self._start(definition, nodes, answer, places)
        except BaseException:
            self.close()
            raise

    def _start(self, definition, nodes, answer, places):
        self.database = self.rig.the_database() if self.store == "postgres" else None
        self.schema = f"turn{self.rig.turn}"
        for n in range(1, nodes + 1):
            self._start_server(n)
            if n == 1:  # later nodes find the definition when they start
                self.env["INTACT_SERVER"] = self.urls[0]
                self._put(definition)
        self.env["INTACT_SERVER"] = ",".join(self.urls)
        with open(f"{self.folder}/agents.log", "wb") as log:
            self.agents = self.rig.start("agent", "--answer", answer, places, *AGENTS, env=self.env, stderr=log)
        self._wait_for_agents()
        self.idle_mib = [memory_mib(s.pid, "VmRSS") for s in self.servers]

    def _start_server(self, n):
        where = ["--data", f"{self.folder}/node{n}", "--listen", "127.0.0.1:0", "--open"]
        if self.database:
            where += ["--store", self.database.conninfo, "--schema", self.schema, "--node", f"n{n}"]
        with open(f"{self.folder}/server{n}.log", "wb") as log:
            server = self.rig.start("intact", "serve", *where, stdout=subprocess.PIPE, stderr=log)
        self.servers.append(server)
        said = re.search(rb"port (\d+)", server.stdout.readline())
        if not said:
            raise Trouble("the server does not start:\n" + open(f"{self.folder}/server{n}.log").read())
        self.urls.append(f"http://127.0.0.1:{int(said[1])}")

    def _put(self, definition):
        done = subprocess.run([self.rig.program("intact"), "workflow", "put", definition], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, env={**os.environ, "no_proxy": "*", **self.env})
        if done.returncode != 0:
            raise Trouble(f"{definition}: {done.stdout.decode()}")

    def _wait_for_agents(self):
        until = time.monotonic() + PATIENCE_S
        while any(self.metric("intact_parked_calls", url) < len(AGENTS) for url in self.urls):
            if time.monotonic() > until or self.agents.poll() is not None:
                raise Trouble("the agents do not connect:\n" + open(f"{self.folder}/agents.log").read())
            time.sleep(0.02)

    def metrics(self, url):
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(f"{url}/metrics", timeout=60) as answer:
            return answer.read().decode()

    def metric(self, name, url=None):
        """The sum of all samples of that name, of one server or of all."""
        pattern = re.compile(rf"^{name}(?:\{{[^}}]*\}})? (\S+)$", re.M)
        return sum(float(v) for u in ([url] if url else self.urls) for v in pattern.findall(self.metrics(u)))

    def flow(self, *args):
        return self.rig.run("flow", *args, env=self.env)

    def counts(self):
        """All that has been counted so far."""
        pids = [s.pid for s in self.servers]
        found = {"server": Count(pids), "agents": Count([self.agents.pid])}
        if self.database:
            found["syncs"] = self.database.syncs()
            found["database"] = Count(self.database.pids())
        else:
            found["syncs"] = self.metric("intact_store_syncs_total")
        for name in ("state_changes", "claims", "batches", "conflicts", "http_requests"):
            found[name] = self.metric(f"intact_{name}_total")
        found["commits"] = self.metric("intact_batch_changes_count")
        return found

    def memory(self):
        """The largest of the servers: MiB before the load, at the peak, and now."""
        return {"idle_mib": round(max(self.idle_mib), 1),
                "peak_mib": round(max(memory_mib(s.pid, "VmHWM") for s in self.servers), 1),
                "after_mib": round(max(memory_mib(s.pid, "VmRSS") for s in self.servers), 1)}

    def close(self):
        for process in [self.agents, *self.servers]:
            if process:
                end(process)
        for server in self.servers:
            server.stdout.close()
        if self.store == "postgres" and getattr(self, "database", None):
            self.database.ask(f"DROP SCHEMA IF EXISTS {self.schema} CASCADE")
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def difference(before, after, tasks):
    """What the load cost, of each 1000 tasks or of each task."""
    delta = {k: after[k] - before[k] for k in after if not isinstance(after[k], Count)}
    cost = {"changes_per_task": delta["state_changes"] / tasks, "claims_per_task": delta["claims"] / tasks,
            "changes_per_commit": (delta["state_changes"] + delta["claims"]) / max(delta["commits"], 1),
            "commits_per_task": delta["commits"] / tasks, "conflicts": delta["conflicts"],
            "requests_per_task": delta["http_requests"] / tasks, "syncs_per_task": delta["syncs"] / tasks,
            "bytes_per_task": 0}
    for who in ("server", "agents", "database"):
        if who in after:
            cost[f"{who}_cpu_s_per_1000"] = (after[who].cpu - before[who].cpu) / tasks * 1000
            cost["bytes_per_task"] += (after[who].written - before[who].written) / tasks
    return {k: round(v, 4) for k, v in cost.items()}
