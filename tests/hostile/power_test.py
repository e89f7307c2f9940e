#!/usr/bin/python3
"""Power cuts: what was not synced is gone, and nothing that was promised is.

The server archives before it deletes, and an agent that answers has its record on the disk. The power is cut at each
sync of such a run, and after it; then the disk holds what was synced by then (power.c), and all begins again on that.

Usage: power_test.py INTACT POWER PAYMENT ROOT [TEST...]
"""

import glob
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import unittest
import urllib.error
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../libraries"))
INTACT, POWER, PAYMENT, ROOT = (os.path.realpath(sys.argv.pop(1)) for _ in range(4))

from kit import PATIENCE_S, free_port, wait_for  # noqa: E402
from power_kit import Disk  # noqa: E402

HOUR_MS = 3600_000
STEPS = [{"name": "a", "agent": "ag", "action": "x", "undo": "none", "if": "false"}]
WORKFLOWS = "wv"


class Server:
    def __init__(self, folder, data, config=""):
        self.folder, self.data = folder, data
        self.url = f"http://127.0.0.1:{free_port()}"
        self.process = None
        with open(f"{folder}/config.yaml", "w", encoding="utf-8") as f:
            f.write(f"intact_server: 1\n{config}")

    def start(self, env=None):
        with open(f"{self.folder}/log", "ab") as log:
            self.process = subprocess.Popen(
                [INTACT, "serve", "--data", self.data, "--listen", self.url.removeprefix("http://"), "--open",
                 "--config", f"{self.folder}/config.yaml"], env=env, stdout=log, stderr=log)
        return wait_for("the server, or its end", lambda: self.process.poll() is not None or self.call("/readyz"))

    def call(self, path, body=None, method=None):
        """What it answers; None if it is not there."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data=data, method=method,
                                         headers={"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
                return json.loads(answer.read() or b"null")
        except urllib.error.HTTPError as e:
            if e.code == 503:
                return None
            raise AssertionError(f"{path}: {e.code} {e.read()}") from e
        except OSError:
            return None

    def define(self, workflow):
        return self.call(f"/v1/workflows/{workflow}", {"intact": 1, "workflow": workflow, "steps": STEPS}, "PUT")

    def is_there(self, task):
        try:
            return self.call(f"/v1/tasks/{task}") is not None
        except AssertionError as e:
            if ": 404 " in str(e) or ": 410 " in str(e):
                return False
            raise

    def end(self, number=signal.SIGTERM):
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(PATIENCE_S)


class PowerTest(unittest.TestCase):
    def setUp(self):
        self.place = tempfile.mkdtemp(prefix="intact-power.")
        self.machine = f"{self.place}/machine"
        os.mkdir(self.machine)
        self.running = []

    def tearDown(self):
        for process in self.running:
            process.kill()
            process.wait()
        shutil.rmtree(self.place)

    # ---- the archive ----

    def archive_server(self):
        os.mkdir(f"{self.machine}/kept")  # not beside the data, whose own name is synced
        server = Server(self.place, f"{self.machine}/data",
                        f"archive: {{folder: {self.machine}/kept/archive, compress: false, max_size: 4KiB}}\n")
        server.start()
        self.running.append(server.process)
        for each in WORKFLOWS:
            server.define(each)
        server.end()
        return server

    def end_long_ago(self, server, tasks):
        """So many tasks that ended an hour ago, and nothing runs."""
        server.start()
        self.running.append(server.process)
        for n, task in enumerate(tasks):  # one fills a file of the archive
            workflow = WORKFLOWS[n % len(WORKFLOWS)]
            server.call("/v1/tasks", {"id": task, "workflow": workflow, "input": {"text": "x" * 4096}})
            wait_for(task, lambda each=task: server.call(f"/v1/tasks/{each}")["state"] == "processed")
        self.assertEqual(server.end(), 0)
        with sqlite3.connect(f"{self.machine}/data/intact.db") as db:
            db.execute(f"UPDATE task SET submitted_at = submitted_at - {HOUR_MS}, ended_at = ended_at - {HOUR_MS}")
        db.close()

    def archived(self):
        found = set()
        for name in glob.glob(f"{self.machine}/kept/archive/*.ndjson"):
            with open(name, encoding="utf-8") as f:
                found |= {json.loads(line)["id"] for line in f if line.endswith("\n")}
        return found

    def delete_under(self, server, disk, syncs):
        """Deletes, each workflow for itself: the next one needs another file. The power is cut after so many syncs, or (None)
        at the end. Whether it was cut on the way."""
        self.assertTrue(server.start(disk.env(slow=f"{self.machine}/kept/archive")))
        self.running.append(server.process)
        if syncs is not None:
            disk.cut_after(syncs)
        for each in WORKFLOWS:
            while server.process.poll() is None:
                done = server.call("/v1/retire", {"workflow": each, "older_than": "5m"})
                if done and done.get("tasks") == 0:
                    break
        was_cut = server.process.poll() is not None
        server.end(signal.SIGKILL)
        disk.cut_power()
        return was_cut

    def test_what_is_deleted_is_in_the_archive(self):
        server = self.archive_server()
        disk = Disk(POWER, self.machine, f"{self.place}/disk")
        tasks, gone, syncs, was_cut = [], set(), None, True
        while was_cut or syncs in (None, 0):
            fresh = [f"r{len(tasks)}-{n}" for n in range(3)]
            self.end_long_ago(server, fresh)
            tasks += fresh
            if syncs is None:  # it is made anew, and that only now
                shutil.rmtree(f"{self.machine}/kept/archive")
            disk.settle()
            was_cut = self.delete_under(server, disk, syncs)
            self.assertTrue(server.start())
            self.running.append(server.process)
            there = {task for task in tasks if server.is_there(task)}
            kept = self.archived()
            self.assertEqual(set(tasks) - there - kept, set(), f"deleted and not archived, syncs {syncs}")
            gone |= set(tasks) - there
            server.end()
            syncs = 0 if syncs is None else syncs + 1
        self.assertTrue(gone, "nothing was deleted at all")
        self.assertGreater(syncs, 2, "the power was never cut on the way")

    # ---- the store, from its first start on ----

    def accept_under(self, server, disk, syncs):
        """Submits until the power is cut; or, with None, ten, and it is cut then. What was accepted."""
        accepted = []
        if syncs is not None:
            disk.cut_after(syncs)
        if server.start(disk.env()) and server.define("w"):
            while server.process.poll() is None and (syncs is not None or len(accepted) < 10):
                task = f"t{len(accepted)}"
                if server.call("/v1/tasks", {"id": task, "workflow": "w", "input": {}}):
                    accepted.append(task)
        self.running.append(server.process)
        server.end(signal.SIGKILL)
        disk.cut_power()
        return accepted

    def test_what_was_accepted_is_there_from_the_first_start_on(self):
        count = 0
        for syncs in (0, 1, 2, 3, 5, 8, 13, 21, 40, None):
            shutil.rmtree(self.machine)
            os.mkdir(self.machine)
            server = Server(self.place, f"{self.machine}/data")
            accepted = self.accept_under(server, Disk(POWER, self.machine, f"{self.place}/disk"), syncs)
            self.assertTrue(server.start(), f"it does not start again, after {syncs} syncs")
            self.running.append(server.process)
            lost = [task for task in accepted if not server.is_there(task)]
            self.assertEqual(lost, [], f"after {syncs} syncs")
            count += len(accepted)
            self.assertEqual(server.end(), 0)
        self.assertGreater(count, 10, "hardly anything was accepted")

    # ---- agents ----

    def run_agent(self, server, command, disk, tasks):
        """One life of an agent, until the tasks are over or its power is cut."""
        with open(f"{self.place}/agent.log", "ab") as log:
            env = disk.env() | {"INTACT_SERVER": server.url, "PYTHONPATH": f"{ROOT}/lib/python",
                                "LETTERS": f"{self.machine}/box", "PYTHONDONTWRITEBYTECODE": "1"}
            agent = subprocess.Popen(command, env=env, cwd=self.machine, stdout=log, stderr=log, start_new_session=True)
        self.running.append(agent)
        wait_for("the end of tasks, or of power", lambda: agent.poll() is not None or self.is_cut(disk)
                 or all(self.is_over(server, task) for task in tasks))
        try:
            os.killpg(agent.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        agent.wait()

    @staticmethod
    def is_cut(disk):
        try:
            with open(f"{disk.place}/cut", encoding="utf-8") as f:
                return f.read().strip() == "0"
        except FileNotFoundError:
            return False

    @staticmethod
    def is_over(server, task):
        return server.call(f"/v1/tasks/{task}")["state"] != "processing" and \
            server.call(f"/v1/tasks/{task}")["state"] != "pending"

    def play(self, agent, action, body, command, effects_of, cuts=(None, 0, 1, 2, 3, 4, 5, None)):
        """Each task that is processed has its effect once, wherever the power was cut before; at last all have."""
        os.mkdir(f"{self.place}/server")
        server = Server(self.place, f"{self.place}/server")
        server.start()
        self.running.append(server.process)
        server.call("/v1/workflows/pay", {"intact": 1, "workflow": "pay", "steps": [
            {"name": "a", "agent": agent, "action": action, "undo": "none", "input": "${ .input }",
             "complete_by": "3s", "retry": {"attempts": 100, "wait": "100ms"}}]}, "PUT")
        disk = Disk(POWER, self.machine, f"{self.place}/disk")
        tasks = []
        for syncs in cuts:
            fresh = [f"t{len(tasks) + n}" for n in range(2)]
            for task in fresh:
                server.call("/v1/tasks", {"id": task, "workflow": "pay", "input": body})
            tasks += fresh
            if syncs is not None:
                disk.cut_after(syncs)
            self.run_agent(server, command, disk, tasks)
            disk.cut_power()
            done = [task for task in tasks if server.call(f"/v1/tasks/{task}")["state"] == "processed"]
            counts = {task: effects_of(task) for task in done}
            self.assertEqual(counts, {task: 1 for task in done}, f"after {syncs} syncs")
            disk.settle()  # counting has opened the file, and may have changed it
        self.assertEqual(done, tasks)
        server.end()

    def rows(self, db, table):
        def count(task):
            connection = sqlite3.connect(f"{self.machine}/{db}")
            try:
                return connection.execute(f"SELECT count(*) FROM {table} WHERE task = ?", (task,)).fetchone()[0]
            finally:
                connection.close()
        return count

    def test_libintacts_ledger_is_on_the_disk(self):
        self.play("payment", "charge", {"card": "x", "amount": 7},
                  [PAYMENT, "--ledger", f"{self.machine}/bank.db", "--instance", "p-1"], self.rows("bank.db", "entry"))

    def test_the_record_of_the_agent_in_plain_python_is_on_the_disk(self):
        self.play("payment", "charge", {"customer": "ann", "amount": 7},
                  [sys.executable, f"{ROOT}/examples/agents/agent.py", "--record", f"{self.machine}/bank.db"],
                  self.rows("bank.db", "booking"))

    def test_the_barrier_of_the_library_in_python_is_on_the_disk(self):
        self.play("bank", "charge", {"customer": "ann", "amount": 7},
                  [sys.executable, f"{ROOT}/examples/python/bank.py", "bank-1", f"{self.machine}/bank.db"],
                  self.rows("bank.db", "payment"))

    def test_the_letters_of_the_agent_in_shell_are_on_the_disk(self):
        def letters(task):
            return len(glob.glob(f"{self.machine}/box/{task}=a"))
        self.play("letters", "write", {"text": "hello"},
                  [f"{ROOT}/examples/agents/agent.sh", "letters", "letters-1", f"{self.machine}/record",
                   f"{ROOT}/examples/agents/letters.sh"], letters, cuts=(None, 1, 3, 5, None))


if __name__ == "__main__":
    unittest.main()
