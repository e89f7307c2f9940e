#!/usr/bin/env python3
"""The statements of lib/barrier, as programs in any language run them: those of SQLite are the ones in libintact, and do what the
barrier has to do in every sequence; those of MariaDB in every interleaving of two sessions at each isolation level.

Usage: sql_test.py ROOT sqlite|mariadb     mariadb: skipped (77) where there is no server or no python3-pymysql
"""

import ctypes
import itertools
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time

ROOT, KIND = sys.argv[1:3]
KEY = "t/s"
MARIADB = "/usr/sbin/mariadbd"  # not in the PATH of users
PATIENCE_S = 240  # only a failing test waits so long


def statements(name):
    """By their names in brackets."""
    with open(f"{ROOT}/lib/barrier/{name}.sql", encoding="utf-8") as f:
        text = "".join(line[2:] for line in f.read().splitlines(True) if line.startswith("--"))
    found = re.findall(r"^ \[([\w-]+)\]\n\n?((?:.*\n)*?.*;)$", text, re.M)
    return {name: " ".join(sql.rstrip(";").split()) for name, sql in found}


def ask(run, sql, undo):
    """The verdict and the output, as the comments in the file say. `run` gives the rows and how many were changed."""
    if undo:
        if run(sql["undo"], KEY)[1] == 1:
            return "nothing", None
        if run(sql["undo-done"], KEY)[1] == 1:
            return "do", run(sql["forward-output"], KEY)[0][0][0]
        return run(sql["undo-again"], KEY)[0][0]
    if run(sql["forward"], KEY)[1] == 1:
        return "do", None
    return run(sql["forward-again"], KEY)[0][0]


class Model:
    """One record, and what was committed."""

    def __init__(self, done):
        self.record, self.output, self.undo_output = ("done", '"before"', None) if done else (None, None, None)
        self.forward, self.undo, self.version = int(done), 0, 0

    def verdict(self, undo):
        if undo:
            return {None: ("nothing", None), "barred": ("nothing", None), "done": ("do", self.output),
                    "undone": ("repeat", self.undo_output)}[self.record]
        return {None: ("do", None), "done": ("repeat", self.output)}.get(self.record, ("undone", None))

    def changes(self, undo):
        return self.record is None or (undo and self.record == "done")

    def commit(self, undo, verdict, output):
        if verdict == "do":
            self.record = "undone" if undo else "done"
            if undo:
                self.undo, self.undo_output = self.undo + 1, output
            else:
                self.forward, self.output = self.forward + 1, output
        elif undo and self.record is None:
            self.record = "barred"
        else:
            return
        self.version += 1


def must(right, *words):
    if not right:
        sys.exit(" ".join(map(str, words)))


# ---- SQLite ----

def libintact_has_the_same(sql):
    with open(f"{ROOT}/src/libintact/barrier_sqlite.c", encoding="utf-8") as f:
        table = f.read().split("#define STATEMENTS(X)")[1].split("/* clang-format on */")[0]
    ours = {}
    for name, text in re.findall(r"X\((\w+),((?:[^X]|X(?!\())*)\)", table.replace("\\\n", "\n")):
        ours[name.lower().replace("_", "-")] = " ".join("".join(re.findall(r'"([^"]*)"', text)).split())
    theirs = {name: text for name, text in sql.items() if name != "clean"}
    must(ours == theirs, "libintact and lib/barrier/sqlite.sql differ:", *(f"\n{n}: {ours.get(n)}\n{n}: {theirs.get(n)}"
                                                                    for n in sorted(ours | theirs) if ours.get(n) != theirs.get(n)))


def changed(db):
    """By the last statement. In a Turkish locale a cursor's rowcount is -1 for an INSERT."""
    return db.execute("SELECT changes()").fetchone()[0]


def play_sqlite(sql, db, turns):
    model = Model(False)

    def run(text, key, output=None):
        cursor = db.execute(text, {"key": key, "output": output} if ":output" in text else {"key": key})
        return cursor.fetchall(), changed(db)

    for number, (undo, commits) in enumerate(turns):
        db.execute("BEGIN IMMEDIATE")
        verdict, output = ask(run, sql, undo)
        must((verdict, output) == model.verdict(undo), turns, number, verdict, output, "expected", model.verdict(undo))
        if verdict == "do":
            output = f'"{number}"'
            db.execute("INSERT INTO world VALUES (?)", (-1 if undo else 1,))
            must(run(sql["done-undo" if undo else "done"], KEY, output)[1] == 1, turns, "it is not recorded")
        else:
            must(run(sql["done-undo" if undo else "done"], KEY, '"x"')[1] == 0, turns, "recorded, and was not to be done")
        db.execute("COMMIT" if commits else "ROLLBACK")
        if commits:
            model.commit(undo, verdict, output)
    must(db.execute("SELECT coalesce(sum(delta), 0) FROM world").fetchone()[0] == model.forward - model.undo, turns, "effects")
    db.execute("DELETE FROM world")


def test_sqlite():
    sql = statements("sqlite")
    must(len(sql) == 9, "statements:", sorted(sql))
    libintact_has_the_same(sql)
    db = sqlite3.connect(":memory:", isolation_level=None)
    db.execute("CREATE TABLE world(delta INTEGER)")
    with open(f"{ROOT}/lib/barrier/sqlite.sql", encoding="utf-8") as f:
        db.executescript(f.read())
    count = 0
    for turns in itertools.product(itertools.product((False, True), (True, False)), repeat=5):
        play_sqlite(sql, db, turns)
        db.execute(sql["clean"], {"before": 0})
        must(changed(db) == 0, "young ones are deleted")
        db.execute(sql["clean"], {"before": 1 << 60})
        must(db.execute("SELECT count(*) FROM intact_barrier").fetchone()[0] == 0, "old ones stay")
        count += 1
    print(f"SQLite: {count} sequences of 5")


# ---- MariaDB ----

class Server:
    """A server of our own in a temporary folder, which ends with us."""

    def __init__(self):
        self.place = tempfile.mkdtemp(prefix="intact-maria-", dir="/tmp")
        self.user = "nobody" if os.getuid() == 0 else None
        if self.user:
            shutil.chown(self.place, self.user)
        options = {"user": self.user, "cwd": self.place, "extra_groups": [] if self.user else None,
                   "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        base = ["--no-defaults", f"--datadir={self.place}/data", f"--tmpdir={self.place}"]
        subprocess.run(["mariadb-install-db", *base, "--auth-root-authentication-method=normal", "--skip-test-db",
                        "--innodb-flush-method=nosync"], check=True, **options)
        self.process = subprocess.Popen(
            [MARIADB, *base, f"--socket={self.place}/s", "--skip-networking", f"--pid-file={self.place}/pid",
             "--innodb-flush-method=nosync", "--innodb-buffer-pool-size=32M", "--innodb-lock-wait-timeout=600"],
            preexec_fn=lambda: ctypes.CDLL(None).prctl(1, signal.SIGKILL), **options)  # PR_SET_PDEATHSIG

    def connect(self):
        for _ in range(6000):
            try:
                return pymysql.connect(unix_socket=f"{self.place}/s", user="root", database="mysql", autocommit=False)
            except pymysql.err.OperationalError:
                must(self.process.poll() is None, "MariaDB ended")
                time.sleep(0.05)
        sys.exit("MariaDB does not answer")

    def end(self):
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.place, ignore_errors=True)


class Session:
    """One connection, with a thread that asks on it, since it may have to wait."""

    def __init__(self, server):
        self.db = server.connect()
        self.thread = None

    def run(self, text, *values):
        with self.db.cursor() as cursor:
            count = cursor.execute(text.replace("?", "%s"), values)
            return list(cursor.fetchall()), count

    def ask(self, sql, undo):
        def work():
            try:
                self.said = ask(self.run, sql, undo)
            except pymysql.err.Error as error:
                self.said = error

        self.said = None
        self.thread = threading.Thread(target=work, daemon=True)
        self.thread.start()

    def waits(self, monitor, may_wait):
        """Until it is answered or, if the other one may hold a lock, really waits for it, which the server knows."""
        while self.thread.is_alive():
            self.thread.join(0.001 if may_wait else PATIENCE_S)
            must(may_wait or not self.thread.is_alive(), "it waits, and for nobody")
            with monitor.cursor() as cursor:
                cursor.execute("SHOW GLOBAL STATUS LIKE 'Innodb_row_lock_current_waits'")
                if int(cursor.fetchone()[1]) and self.thread.is_alive():
                    return True
        self.thread = None
        return False


PASSING = 1213, 1205, 1020


class Run:
    def __init__(self, sql, monitor, sessions, level, kinds, endings, done):
        self.sql, self.monitor, self.sessions, self.level = sql, monitor, sessions, level
        self.kinds, self.endings, self.model = kinds, endings, Model(done)
        self.phase, self.open, self.story, self.again = [0, 0], [None, None], [], 0
        with monitor.cursor() as cursor:
            cursor.execute("DELETE FROM intact_barrier")
            cursor.execute("DELETE FROM world")
            if done:
                cursor.execute("INSERT INTO intact_barrier(forward_key, output) VALUES (%s, '\"before\"')", (KEY,))
                cursor.execute("INSERT INTO world VALUES (1)")
        monitor.commit()

    def told(self, i):
        said = self.sessions[i].said
        self.story.append(f"{i}:{said}")
        if isinstance(said, Exception):
            must(said.args[0] in PASSING, self.level, self.story)
            self.again += 1
            self.open[i] = "again"
            return
        must(tuple(said) == self.model.verdict(self.kinds[i]), self.level, self.story, "expected", self.model.verdict(self.kinds[i]))
        other = self.open[1 - i]
        must(not (other and other != "again" and other[1]), self.level, self.story, "two at once")
        self.open[i] = (said[0], self.model.changes(self.kinds[i]))

    def look_after_the_other(self, i):
        other = self.sessions[1 - i]
        if other.thread and not other.waits(self.monitor, self.open[i]):
            self.told(1 - i)

    def begin(self, i):
        self.sessions[i].run(f"SET SESSION TRANSACTION ISOLATION LEVEL {self.level}")
        self.sessions[i].db.rollback()
        self.sessions[i].run("START TRANSACTION")
        self.sessions[i].run("SELECT count(*) FROM elsewhere")  # a snapshot, where there are any
        self.story.append(f"{i}:begin")

    def ask(self, i):
        self.sessions[i].ask(self.sql, self.kinds[i])
        if self.sessions[i].waits(self.monitor, self.open[1 - i]):
            self.story.append(f"{i}:waits")
            must(self.open[1 - i], self.level, self.story, "and for nobody")
        else:
            self.told(i)
        self.look_after_the_other(i)

    def end(self, i):
        session, undo = self.sessions[i], self.kinds[i]
        verdict = self.open[i]
        commits = verdict != "again" and self.endings[i]
        if commits:
            output = f'"{i}"'
            if verdict[0] == "do":
                session.run("INSERT INTO world VALUES (?)", -1 if undo else 1)
                must(session.run(self.sql["done-undo" if undo else "done"], output, KEY)[1] == 1, self.story, "not recorded")
            session.db.commit()
            self.model.commit(undo, verdict[0], output)
        else:
            session.db.rollback()
        self.story.append(f"{i}:{'commit' if commits else 'rollback'}")
        self.open[i] = None
        self.look_after_the_other(i)

    def play(self, order):
        """`order`: whose turn it is; who waits lets the other go before."""
        order = list(order)
        while order:
            able = next((k for k, i in enumerate(order) if not self.sessions[i].thread), None)
            must(able is not None, self.level, self.story, "both wait for ever")
            i = order.pop(able)
            (self.begin, self.ask, self.end)[self.phase[i]](i)
            self.phase[i] += 1
        with self.monitor.cursor() as cursor:
            cursor.execute("SELECT coalesce(sum(delta = 1), 0), coalesce(sum(delta = -1), 0) FROM world")
            forward, undo = map(int, cursor.fetchone())
            cursor.execute("SELECT outcome, output, undo_output FROM intact_barrier")
            rows = cursor.fetchall()
        self.monitor.commit()
        model = self.model
        must((forward, undo) == (model.forward, model.undo), self.level, self.story, "effects", forward, undo)
        must(list(rows) == ([(model.record, model.output, model.undo_output)] if model.record else []), self.level, self.story, rows)


def play_mariadb(server):
    sql = statements("mariadb")
    must(len(sql) == 9, "statements:", sorted(sql))
    monitor = server.connect()
    with open(f"{ROOT}/lib/barrier/mariadb.sql", encoding="utf-8") as f:
        subprocess.run(["mariadb", "--no-defaults", f"--socket={server.place}/s", "-u", "root", "mysql"], stdin=f, check=True)
    with monitor.cursor() as cursor:
        cursor.execute("CREATE TABLE world(delta INTEGER) ENGINE = InnoDB")
        cursor.execute("CREATE TABLE elsewhere(n INTEGER) ENGINE = InnoDB")
        cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
    monitor.commit()
    sessions = [Session(server), Session(server)]
    for level in "READ UNCOMMITTED", "READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE":
        count = again = 0
        for order in sorted(set(itertools.permutations([0] * 3 + [1] * 3))):
            for kinds in (False, False), (False, True), (True, False), (True, True):
                for endings in itertools.product((True, False), repeat=2):
                    for done in False, True:
                        run = Run(sql, monitor, sessions, level, kinds, endings, done)
                        run.play(order)
                        count, again = count + 1, again + run.again
        print(f"MariaDB, {level.lower()}: {count} runs, {again} to be begun again", flush=True)
    with monitor.cursor() as cursor:
        cursor.execute("INSERT IGNORE INTO intact_barrier(forward_key) VALUES ('old')")
        cursor.execute(sql["clean"].replace("?", "%s"), ("2000-01-01",))
        must(cursor.rowcount == 0, "young ones are deleted")
        cursor.execute(sql["clean"].replace("?", "%s"), ("2037-01-01",))
        must(cursor.rowcount > 0, "old ones stay")


def test_mariadb():
    if not os.path.exists(MARIADB) or not pymysql:
        print("there is no MariaDB server, or no python3-pymysql")
        sys.exit(77)
    server = Server()
    try:
        play_mariadb(server)
    finally:
        server.end()


try:
    import pymysql
except ImportError:
    pymysql = None
if __name__ == "__main__":
    if KIND == "sqlite":
        test_sqlite()
    else:
        test_mariadb()
