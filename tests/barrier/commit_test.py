#!/usr/bin/env python3
"""Commits of unknown outcome: the connection to a real database is cut when COMMIT is sent, or the disk fails in it. Whatever came of it,
the step is asked for again, or undone, and then its effect is there once, or not at all. And there is no commit past the deadline.

Usage: commit_test.py ROOT pq|python|typescript|mariadb|python-sqlite|typescript-sqlite DRIVER
       DRIVER: the program in C; for python-sqlite what is loaded so that syncs can fail; else not looked at
       skipped (77) where a database or a driver is not there
"""

import json
import os
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time

ROOT, KIND, DRIVER = sys.argv[1:4]
HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, f"{ROOT}/tests/libraries")
sys.path.insert(0, HERE)
from kit import LIB, Place, wait_for  # pylint: disable=wrong-import-position

COMMIT = re.compile(rb"(?<![A-Z])COMMIT\b")  # and not what is said of AUTOCOMMIT


def must(right, *words):
    if not right:
        sys.exit(f"{KIND}: " + " ".join(map(str, words)))


# These leave open what came of a commit.
STATES = ("08006", "40003", "57P01", "58030", "XX000")


def error(state):
    """As PostgreSQL says it, outside of a transaction: fields, each with a letter in front and a zero behind."""
    fields = b"".join(f"{key}{value}".encode() + b"\0" for key, value in (("S", "ERROR"), ("V", "ERROR"), ("C", state), ("M", "a test")))
    return b"E" + (len(fields) + 5).to_bytes(4, "big") + fields + b"\0Z" + (5).to_bytes(4, "big") + b"I"


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


class Wire:
    """Between a driver and its database. `plan` says what becomes of the next COMMIT: "pass"; "before": the connection is cut, and it
    never gets there; "after": cut when the database has answered; "late": cut at once, and it gets there when `release` is called; a
    SQLSTATE: the database has committed, and a pooler in between answers that instead."""

    def __init__(self, place, to):
        self.to, self.plan, self.held, self.cuts = to, "pass", [], 0
        self.path = place
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(place)
        self.listener.listen(16)
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            near = self.listener.accept()[0]
            far = socket.socket(socket.AF_UNIX)
            far.connect(self.to)
            link = {"near": near, "far": far, "is_cut": False}
            threading.Thread(target=self.forth, args=(link,), daemon=True).start()
            threading.Thread(target=self.back, args=(link,), daemon=True).start()

    def cut(self, link):
        link["is_cut"] = True
        self.cuts += 1
        link["near"].shutdown(socket.SHUT_RDWR)

    def forth(self, link):
        try:
            while data := link["near"].recv(65536):
                plan = self.plan if COMMIT.search(data) else "pass"
                if plan == "pass":
                    link["far"].sendall(data)
                    continue
                self.plan = "pass"
                if plan in STATES:
                    link["instead"] = error(plan)
                    link["far"].sendall(data)
                    continue
                if plan == "after":
                    link["is_answer_cut"] = True
                    link["far"].sendall(data)
                    return
                if plan == "late":
                    self.held.append((link, data))
                    self.cut(link)
                    return
                self.cut(link)
                break
        except OSError:
            pass
        self.end(link["far"])

    def back(self, link):
        try:
            while data := link["far"].recv(65536):
                if link.get("is_answer_cut"):
                    self.cut(link)
                    break
                if instead := link.pop("instead", None):
                    self.cuts += 1
                    data = instead
                if not link["is_cut"]:
                    link["near"].sendall(data)
        except OSError:
            pass
        self.end(link["far"])
        self.end(link["near"])

    def release(self):
        """What was held goes on its way, and then the database sees that nobody is there any more."""
        for link, data in self.held:
            link["far"].sendall(data)
            link["far"].shutdown(socket.SHUT_WR)
        self.held = []

    @staticmethod
    def end(one):
        try:
            one.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


class Driver:
    """A process that is told what is asked for, and says what it would answer."""

    def __init__(self, command, **more):
        environment = {**os.environ, "PYTHONPATH": LIB, "PYTHONDONTWRITEBYTECODE": "1", **more.pop("environment", {})}
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment, **more)

    def tell(self, direction, key):
        self.process.stdin.write(f"{direction} {key}\n")
        self.process.stdin.flush()

    def hear(self):
        line = self.process.stdout.readline()
        must(line, "the driver has ended:", self.process.wait() if not line else "")
        said = json.loads(line)
        return said.get("error") or said["output"]

    def ask(self, direction, key):
        self.tell(direction, key)
        return self.hear()

    def end(self):
        self.process.stdin.close()
        must(self.process.wait() == 0, "the driver ended", self.process.returncode)


# ---- databases: each gives the rows of `world`, and says whether somebody waits for a lock ----

class Postgres:
    def __init__(self):
        self.place = Place()
        if self.place.database() is None:
            skip("there is no PostgreSQL")
        must(self.place.psql(file=f"{ROOT}/lib/barrier/postgresql.sql").returncode == 0, "the barrier's table")
        self.place.psql("CREATE TABLE world(key text, delta integer)")
        os.mkdir(f"{self.place.folder}/wire")
        self.wire = Wire(f"{self.place.folder}/wire/.s.PGSQL.5432", f"{self.place.folder}/pg/.s.PGSQL.5432")
        self.where = f"host={self.place.folder}/wire user=intact dbname=postgres"

    def deltas(self, key):
        return [int(n) for n in self.place.psql(f"SELECT delta FROM world WHERE key = '{key}' ORDER BY delta").stdout.split()]

    def is_waiting(self):
        return self.place.psql("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'").stdout.strip() != "0"

    def is_idle(self):
        """Nobody has a transaction: what was cut is over for the database, too."""
        return self.place.psql("SELECT count(*) FROM pg_stat_activity WHERE xact_start IS NOT NULL AND pid <> pg_backend_pid()"
                               ).stdout.strip() == "0"

    def end(self):
        self.place.end()


class Maria:
    def __init__(self):
        import sql_test  # which has a server of its own
        if not os.path.exists(sql_test.MARIADB) or not sql_test.pymysql:
            skip("there is no MariaDB server, or no python3-pymysql")
        self.server = sql_test.Server()
        self.db = self.server.connect()
        self.db.autocommit(True)
        with open(f"{ROOT}/lib/barrier/mariadb.sql", encoding="utf-8") as f:
            subprocess.run(["mariadb", "--no-defaults", f"--socket={self.server.place}/s", "-u", "root", "mysql"], stdin=f, check=True)
        self.rows("CREATE TABLE world(k VARCHAR(60), delta INTEGER) ENGINE = InnoDB")
        self.wire = Wire(f"{self.server.place}/wire", f"{self.server.place}/s")
        self.where = self.wire.path

    def rows(self, sql):
        with self.db.cursor() as cursor:
            cursor.execute(sql)
            return list(cursor.fetchall())

    def deltas(self, key):
        return [int(row[0]) for row in self.rows(f"SELECT delta FROM world WHERE k = '{key}' ORDER BY delta")]

    def is_waiting(self):
        return int(self.rows("SHOW GLOBAL STATUS LIKE 'Innodb_row_lock_current_waits'")[0][1]) > 0

    def is_idle(self):
        """Transactions of the server's own threads do not count: their number is 0. MariaDB reads this table anew only when nobody has
        looked at it for 100 ms: who asks more often sees the same for ever."""
        time.sleep(0.2)
        return self.rows("SELECT count(*) FROM information_schema.innodb_trx WHERE trx_mysql_thread_id <> 0")[0][0] == 0

    def end(self):
        self.server.end()


# ---- the cases ----

def must_be_unknown(said, *words):
    must(isinstance(said, dict) and said["retryable"] and said["effect"] == "unknown", *words, "it said", said)


def must_be_undone(said, *words):
    must(isinstance(said, dict) and said["code"] == "undone" and not said["retryable"], *words, "it said", said)


def must_come_too_late(driver, deltas, key):
    """Its time is over, or it was stopped, between the effect and the commit: then the effect is taken back, and may be made later."""
    said = driver.ask("late", key)
    must(said == "late" or isinstance(said, dict) and said["code"] == "stopped", "late: it said", said)
    must(deltas(key) == [], "late:", deltas(key))
    must(driver.ask("forward", key) == "done" and deltas(key) == [1], "after a late one:", deltas(key))


class Play:
    def __init__(self, database, driver):
        self.database, self.driver, self.number = database, driver, 0

    def unknown(self, plan, direction, key):
        """The commit of that is cut."""
        cuts = self.database.wire.cuts
        self.database.wire.plan = plan
        must_be_unknown(self.driver.ask(direction, key), plan, direction)
        must(self.database.wire.cuts == cuts + 1, "it was cut at the commit, once")

    def then(self, plan, direction, key):
        """What is asked next while it is still open, if it is: whoever asks has to wait for that."""
        if plan != "late":
            wait_for("the end of what was cut", self.database.is_idle)
            return self.driver.ask(direction, key)
        self.driver.tell(direction, key)
        wait_for("somebody waits for the one that is late", self.database.is_waiting)
        self.database.wire.release()
        return self.driver.hear()

    def forward_again(self, plan, key):
        self.unknown(plan, "forward", key)
        must(self.then(plan, "forward", key) == "done", plan, "asked again")
        must(self.driver.ask("forward", key) == "done", plan, "and once more")
        must(self.database.deltas(key) == [1], plan, self.database.deltas(key))

    def undo_again(self, plan, key):
        must(self.driver.ask("forward", key) == "done", "first")
        self.unknown(plan, "undo", key)
        must(self.then(plan, "undo", key) == "undone", plan, "undone again")
        must(self.database.deltas(key) == [-1, 1], plan, self.database.deltas(key))
        must_be_undone(self.driver.ask("forward", key), plan)

    def forward_then_undo(self, plan, key):
        self.unknown(plan, "forward", key)
        said = self.then(plan, "undo", key)
        must(said == (None if plan == "before" else "undone"), plan, "the undo of what may be there said", said)
        must(self.database.deltas(key) == ([] if plan == "before" else [-1, 1]), plan, self.database.deltas(key))
        must_be_undone(self.driver.ask("forward", key), plan)
        must(sum(self.database.deltas(key)) == 0, plan, self.database.deltas(key))

    def undo_before(self, plan, key):
        """That there was nothing to undo is on record by a commit, too."""
        self.unknown(plan, "undo", key)
        must(self.then(plan, "undo", key) is None, plan, "there is nothing to undo")
        must_be_undone(self.driver.ask("forward", key), plan)
        must(self.database.deltas(key) == [], plan, self.database.deltas(key))

    def all(self):
        if KIND != "mariadb":  # which no library of ours is for
            must_come_too_late(self.driver, self.database.deltas, "late/s")
        for plan in "before", "after", "late":
            for case in self.forward_again, self.undo_again, self.forward_then_undo, self.undo_before:
                self.number += 1
                case(plan, f"t{self.number}/s")
        for state in STATES if KIND != "mariadb" else ():
            self.number += 1
            self.forward_again(state, f"t{self.number}/s")
        print(f"{KIND}: {self.number} commits of unknown outcome")


# ---- SQLite: syncs fail while a file is there ----

class Disk:
    def __init__(self, folder):
        self.folder, self.file, self.broken = folder, f"{folder}/effects.db", f"{folder}/broken"
        with sqlite3.connect(self.file) as db:
            db.execute("CREATE TABLE world(key TEXT, delta INTEGER)")

    def fail(self, fails):
        if fails:
            with open(self.broken, "w", encoding="ascii"):
                pass
        else:
            os.unlink(self.broken)

    def deltas(self, key):
        with sqlite3.connect(self.file) as db:
            return sorted(row[0] for row in db.execute("SELECT delta FROM world WHERE key = ?", (key,)))


def play_disk(disk, start):
    """The commit fails; then either the same process is asked again, or another one: it died of it."""
    number = 0
    for dies in False, True:
        for undo in False, True:
            driver, key = start(), f"t{number}/s"
            number += 1
            must(driver.ask("forward", key if undo else f"{key}/before") == "done", "it is at work")
            must_come_too_late(driver, disk.deltas, f"{key}/late")
            disk.fail(True)
            said = driver.ask("undo" if undo else "forward", key)
            disk.fail(False)
            must_be_unknown(said, "undo" if undo else "forward")
            if dies:
                driver.process.kill()
                driver.process.wait()
                shutil.rmtree(f"{disk.file}.lock", ignore_errors=True)  # the lock of node-sqlite3-wasm, which a dead process leaves
                driver = start()
            must(driver.ask("undo" if undo else "forward", key) == ("undone" if undo else "done"), "asked again")
            must(disk.deltas(key) == ([-1, 1] if undo else [1]), disk.deltas(key))
            driver.end()
    print(f"{KIND}: {number} commits of unknown outcome")


# ---- how the drivers are started ----

def python_with(module):
    for python in sys.executable, "/usr/bin/python3":
        if subprocess.run([python, "-c", f"import {module}"], capture_output=True, check=False).returncode == 0:
            return python
    skip(f"there is no {module} for Python")


def typescript(folder, *words, **environment):
    home = f"{folder}/npm"
    if not os.path.exists(home):
        subprocess.run([f"{ROOT}/lib/typescript/try", home], check=True, stdout=subprocess.DEVNULL)
        shutil.copy(f"{HERE}/commit_driver.mjs", home)
    return Driver(["node", "commit_driver.mjs", *words], cwd=home, environment={"DRIVERS": f"{ROOT}/build/typescript", **environment})


def play_database(database):
    try:
        if KIND == "typescript":
            driver = typescript(database.place.folder, "postgres", f"{database.place.folder}/wire")
        elif KIND == "pq":
            driver = Driver([DRIVER, database.where])
        elif KIND == "python":
            driver = Driver([python_with("psycopg2"), f"{HERE}/commit_driver.py", "postgres", database.where])
        else:
            driver = Driver([sys.executable, f"{HERE}/commit_driver.py", "mariadb", database.where, f"{ROOT}/lib/barrier/mariadb.sql"])
        Play(database, driver).all()
        driver.end()
    finally:
        database.end()


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))
    if not KIND.endswith("-sqlite"):
        play_database(Maria() if KIND == "mariadb" else Postgres())
        return
    with tempfile.TemporaryDirectory(prefix="intact-commit.") as folder:
        disk = Disk(folder)
        if KIND == "typescript-sqlite":
            play_disk(disk, lambda: typescript(folder, "sqlite", disk.file, BROKEN=disk.broken))
        else:
            preload = {"LD_PRELOAD": os.path.realpath(DRIVER), "BROKEN": disk.broken}
            play_disk(disk, lambda: Driver([sys.executable, f"{HERE}/commit_driver.py", "sqlite", disk.file], environment=preload))


main()
