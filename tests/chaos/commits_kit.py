"""Stores for commits_test.py and chaos_kit.py: a server on SQLite that kills itself at a commit, or one on PostgreSQL that is killed by
the wire between the two. Words of SQL are written as :name."""

import contextlib
import glob
import os
import pwd
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

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "http_agent"))

from kit import PATIENCE_S, eventually  # noqa: E402

POSTGRES = sorted(glob.glob("/usr/lib/postgresql/*/bin"))[-1:]
HEARD_S = 0.1  # what is said too early is heard


def rows_of(database, sql, words):
    connection = sqlite3.connect(database, timeout=PATIENCE_S, isolation_level=None)
    try:
        return connection.execute(sql, words).fetchall()
    finally:
        connection.close()


class Sqlite:
    """intact-faulty, which has its plan in the environment."""

    ways = ("before", "torn", "after")
    flags = ()

    def __init__(self, server):
        self.database = f"{server.folder}/data/intact.db"

    def plan(self, way=None, commit=0):
        """What it is started with."""
        return {"INTACT_KILL": f"{way} {commit}"} if way else {}

    def rows(self, sql, **words):
        return rows_of(self.database, sql, words)

    @contextlib.contextmanager
    def left(self):
        """What a dead server has left: a copy, since whoever looks at it would tidy it up."""
        with tempfile.TemporaryDirectory(prefix="intact-left.") as folder:
            for end in ("", "-wal"):
                if os.path.exists(self.database + end):
                    shutil.copy(self.database + end, f"{folder}/intact.db{end}")
            yield lambda sql, **words: rows_of(f"{folder}/intact.db", sql, words)

    def close(self):
        pass


class Wire:
    """Between the server and its database. It kills the server when it sends its n-th COMMIT, or when that is answered."""

    def __init__(self, path, to, victim):
        self.to, self.victim, self.way, self.left = to, victim, None, 0
        self.lock = threading.Lock()
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(path)
        os.chmod(path, 0o777)
        self.listener.listen(16)
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                near = self.listener.accept()[0]
            except OSError:
                return
            far = socket.socket(socket.AF_UNIX)
            try:
                far.connect(self.to)
            except OSError:
                near.close()
                continue
            link = {"near": near, "far": far, "last": False}
            for pump in (self.forth, self.back):
                threading.Thread(target=pump, args=(link,), daemon=True).start()

    def is_the_one(self, data):
        """It is a statement of its own, and no word of another one."""
        with self.lock:
            if not self.way or b"\0COMMIT\0" not in data:
                return False
            self.left -= 1
            return self.left == 0

    def forth(self, link):
        try:
            while data := link["near"].recv(1 << 20):
                if self.is_the_one(data):
                    if self.way == "before":
                        time.sleep(HEARD_S)
                        self.victim.process.kill()
                        break
                    link["last"] = True
                link["far"].sendall(data)
        except OSError:
            pass
        self.end(link)

    def back(self, link):
        try:
            while data := link["far"].recv(1 << 20):
                if link["last"] and b"COMMIT\0" in data:
                    self.victim.process.kill()
                    break
                link["near"].sendall(data)
        except OSError:
            pass
        self.end(link)

    @staticmethod
    def end(link):
        for one in (link["near"], link["far"]):
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


class Postgres:
    """A cluster of our own. It ends by SIGQUIT: as if it was killed, but no shared memory is left behind."""

    ways = ("before", "after")

    def __init__(self, server):
        import psycopg2
        self.folder = tempfile.mkdtemp(prefix="intact-commits.")
        os.chmod(self.folder, 0o755)
        user, home = "postgres" if os.getuid() == 0 else None, f"{self.folder}/pg"
        os.mkdir(home)
        if user:
            os.chown(home, pwd.getpwnam(user).pw_uid, -1)
        subprocess.run([f"{POSTGRES[0]}/initdb", "-D", f"{home}/data", "-U", "intact", "-A", "trust", "--no-sync", "-E", "UTF8", "--locale=C"],
                       check=True, user=user, stdout=subprocess.DEVNULL, cwd="/")
        with open(f"{self.folder}/log", "wb") as log:
            self.process = subprocess.Popen([f"{POSTGRES[0]}/postgres", "-D", f"{home}/data", "-k", home, "-c", "listen_addresses=", "-c",
                                             "dynamic_shared_memory_type=mmap", "-c", "fsync=off"], user=user, stdout=log, stderr=log, cwd="/")
        self.wire = Wire(f"{self.folder}/.s.PGSQL.5432", f"{home}/.s.PGSQL.5432", server)
        self.flags = ("--store", f"postgresql:///postgres?host={self.folder}&user=intact", "--node", "n1")
        self.where = f"host={home} user=intact dbname=postgres options='-c search_path=intact'"

        def connect():
            try:
                return psycopg2.connect(self.where)
            except psycopg2.OperationalError:
                return None

        self.connection = eventually("the database is there", connect)
        self.connection.autocommit = True

    def plan(self, way=None, commit=0):
        with self.wire.lock:
            self.wire.way, self.wire.left = way, commit
        return {}

    def rows(self, sql, **words):
        with self.connection.cursor() as cursor:
            cursor.execute(re.sub(r":(\w+)", r"%(\1)s", sql), words)
            return cursor.fetchall() if cursor.description else []

    @contextlib.contextmanager
    def left(self):
        """The database sees that nobody is there any more, and no transaction is left open."""
        none_is_open = """SELECT count(*) = 0 FROM pg_stat_activity WHERE xact_start IS NOT NULL AND backend_type = 'client backend'
            AND pid <> pg_backend_pid()"""
        eventually("its transactions have ended", lambda: self.rows(none_is_open)[0][0])
        yield self.rows

    def close(self, keep=False):
        self.wire.listener.close()
        self.connection.close()
        self.process.send_signal(signal.SIGQUIT)
        self.process.wait()
        if not keep:
            shutil.rmtree(self.folder, ignore_errors=True)
