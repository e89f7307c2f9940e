"""The idempotency barrier: each effect once, and none after its undo, in a database of the agent's own.

One transaction holds the effect and the record of it, so both are there or neither is:

    barrier = SqliteBarrier(sqlite3.connect("bank.db", check_same_thread=False, isolation_level=None))

    @agent.action("charge")
    def charge(request):
        return barrier.once(request, lambda db: book(db, request.input))

The table is made if it is not there. What it is for, and how long its rows are to be kept, is told in docs/barrier.md.
"""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from contextlib import contextmanager
from typing import Any, Callable, Iterator, Mapping, NamedTuple, Optional, TypeVar

from .errors import StepError
from .request import Request

__all__ = ["PostgresBarrier", "SqliteBarrier"]

C = TypeVar("C")

_TABLE = """CREATE TABLE IF NOT EXISTS intact_barrier(
    forward_key TEXT NOT NULL PRIMARY KEY,
    outcome TEXT NOT NULL DEFAULT 'done' CHECK (outcome IN ('done', 'undone', 'barred')),
    output TEXT,
    undo_output TEXT,
    at INTEGER NOT NULL DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER))
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS intact_barrier_at ON intact_barrier(at);"""
_FORWARD = "INSERT INTO intact_barrier(forward_key) VALUES (:key) ON CONFLICT DO NOTHING"
_FORWARD_AGAIN = """SELECT CASE outcome WHEN 'done' THEN 'repeat' ELSE 'undone' END,
    CASE outcome WHEN 'done' THEN output END FROM intact_barrier WHERE forward_key = :key"""
_UNDO = "INSERT INTO intact_barrier(forward_key, outcome) VALUES (:key, 'barred') ON CONFLICT DO NOTHING"
_UNDO_DONE = """UPDATE intact_barrier
    SET outcome = 'undone', at = CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)
    WHERE forward_key = :key AND outcome = 'done'"""
_UNDO_AGAIN = """SELECT CASE outcome WHEN 'undone' THEN 'repeat' ELSE 'nothing' END, undo_output
    FROM intact_barrier WHERE forward_key = :key"""
_DONE = """UPDATE intact_barrier SET output = :output
    WHERE forward_key = :key AND outcome = 'done' AND output IS NULL"""
_DONE_UNDO = """UPDATE intact_barrier SET undo_output = :output
    WHERE forward_key = :key AND outcome = 'undone' AND undo_output IS NULL"""
_CLEAN = """DELETE FROM intact_barrier WHERE forward_key IN
    (SELECT forward_key FROM intact_barrier WHERE at < :before ORDER BY at LIMIT 1000)"""


class _Verdict(NamedTuple):
    word: str  # do, repeat, undone or nothing
    output: Optional[str]  # JSON


def _answer(verdict: _Verdict) -> Any:
    """What is to be answered by a request that is not to take effect."""
    if verdict.word == "undone":
        raise StepError("undone", "this step was undone, or barred by its undo", False, "none")
    return json.loads(verdict.output) if verdict.word == "repeat" and verdict.output is not None else None


def _encode(output: Any) -> str:
    try:
        text = json.dumps(output, allow_nan=False)
        text.encode()
        return text
    except (TypeError, ValueError, RecursionError) as e:
        raise StepError("bad_output", f"the handler's output is not JSON: {e}", False, "none") from e


def _key(request: Request) -> str:
    """The record is of the request going forward."""
    key = request.forward_key if request.direction == "undo" else request.idempotency_key
    if key is None:
        raise StepError("bad_request", "an undo without the key of its forward request", False, "none")
    return key


class SqliteBarrier:
    """On a connection of sqlite3, opened with isolation_level=None, and check_same_thread=False if the agent has more
    than one place: the effects of all threads are made one by one, under a lock."""

    def __init__(self, db: sqlite3.Connection) -> None:
        if db.isolation_level is not None:
            raise ValueError("the connection needs isolation_level=None: the barrier begins and ends transactions")
        self.db = db
        self._lock = threading.RLock()
        with self._lock:
            db.execute("PRAGMA busy_timeout = 10000")
            db.executescript(_TABLE)

    def once(self, request: Request, effect: Callable[[sqlite3.Connection], Any]) -> Any:
        """The output of effect(db), made now in a transaction together with its record, or as it was when the request came
        before. None for an undo that has nothing to undo. Whatever the effect raises rolls all of it back; a failure
        of the database becomes a retryable StepError."""
        key, is_undo = _key(request), request.direction == "undo"
        with self._lock:
            with self._transaction():
                verdict = self._judge(key, is_undo)
                if verdict.word != "do":
                    output = None
                else:
                    request.check()
                    output = effect(self.db)
                    if self._change(_DONE_UNDO if is_undo else _DONE, {"key": key, "output": _encode(output)}) != 1:
                        raise RuntimeError("the effect has ended the transaction, or changed the barrier's record")
                    request.check()  # the last moment: what comes after it is there to stay
        return output if verdict.word == "do" else _answer(verdict)

    def _change(self, sql: str, parameters: Mapping[str, Any]) -> int:
        """How many rows were changed. In a Turkish locale sqlite3 does not take INSERT for a change: its rowcount is -1."""
        self.db.execute(sql, parameters)
        return int(self.db.execute("SELECT changes()").fetchone()[0])

    def _judge(self, key: str, is_undo: bool) -> _Verdict:
        parameters = {"key": key}
        if self._change(_UNDO if is_undo else _FORWARD, parameters) == 1:
            return _Verdict("nothing" if is_undo else "do", None)
        if is_undo and self._change(_UNDO_DONE, parameters) == 1:
            return _Verdict("do", None)
        row = self.db.execute(_UNDO_AGAIN if is_undo else _FORWARD_AGAIN, parameters).fetchone()
        return _Verdict(row[0], row[1])

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        try:
            self.db.execute("BEGIN IMMEDIATE")
            yield
        except sqlite3.Error as e:
            self._roll_back()
            raise StepError("database", str(e), True, "none") from e
        except BaseException:
            self._roll_back()
            raise
        try:
            self.db.execute("COMMIT")
        except sqlite3.Error as e:
            self._roll_back()
            raise StepError("database", str(e), True, "unknown") from e

    def _roll_back(self) -> None:
        try:
            if self.db.in_transaction:
                self.db.execute("ROLLBACK")
        except sqlite3.Error:
            pass

    def clean(self, older_than: float) -> int:
        """Deletes records older than so many seconds; how many. A request that comes after its record is gone takes
        effect again."""
        count, before = 0, int((time.time() - older_than) * 1000)
        while True:
            with self._lock:
                some = self._change(_CLEAN, {"before": before})
            count += some
            if some == 0:
                return count


class PostgresBarrier:
    """On connections of any DB-API driver for PostgreSQL (psycopg, psycopg2, pg8000), with the functions of
    share/intact/barrier/postgresql.sql in the database.

    connect: gives a connection, in a transaction or about to begin one (no autocommit). Each thread has one of its own,
        which is opened again when it is broken.
    tries: how often a transaction is done that another one was in the way of (serialization failure, deadlock).
    """

    def __init__(self, connect: Callable[[], Any], *, tries: int = 10) -> None:
        self._connect, self._tries = connect, tries
        self._mine = threading.local()

    def _connection(self) -> Any:
        if getattr(self._mine, "db", None) is None:
            self._mine.db = self._connect()
        return self._mine.db

    def _drop(self) -> None:
        db, self._mine.db = getattr(self._mine, "db", None), None
        try:
            if db is not None:
                db.close()
        except Exception:  # pylint: disable=broad-except # it is broken anyhow
            pass

    def once(self, request: Request, effect: Callable[[Any], Any]) -> Any:
        """The output of effect(connection), made now in a transaction together with its record, or as it was when the
        request came before. None for an undo that has nothing to undo. Whatever the effect raises rolls all of it back;
        a failure of the database becomes a retryable StepError. The effect neither commits nor rolls back, and may be
        called again after a rollback."""
        keys = (request.idempotency_key, request.forward_key, request.direction)
        _key(request)
        for calls in range(1, self._tries + 1):
            is_committing = False
            try:
                db = self._connection()
                verdict = self._one(db, "SELECT verdict, output FROM intact_barrier(%s, %s, %s)", keys)
                output = None
                if verdict.word == "do":
                    request.check()
                    output = effect(db)
                    self._one(db, "SELECT intact_barrier_done(%s, %s, %s, %s)", keys + (_encode(output),))
                    request.check()  # the last moment: what comes after it is there to stay
                is_committing = True
                db.commit()
            except BaseException as e:
                self._roll_back()
                state = getattr(e, "sqlstate", None) or getattr(e, "pgcode", None) or _state_of(e)
                if state in ("40001", "40P01") and calls < self._tries:
                    if request.pause(0.01 * calls):
                        continue
                if is_committing or type(e).__module__.split(".")[0] in ("psycopg", "psycopg2", "pg8000"):
                    unknown = is_committing and state not in ("40001", "40P01")
                    raise StepError("database", str(e), True, "unknown" if unknown else "none") from e
                raise
            return output if verdict.word == "do" else _answer(verdict)
        raise AssertionError("not reached")

    @staticmethod
    def _one(db: Any, sql: str, parameters: Any) -> _Verdict:
        cursor = db.cursor()
        try:
            cursor.execute(sql, parameters)
            row = cursor.fetchone()
            return _Verdict(row[0], row[1] if len(row) > 1 else None)
        finally:
            cursor.close()

    def _roll_back(self) -> None:
        try:
            db = getattr(self._mine, "db", None)
            if db is not None:
                db.rollback()
        except Exception:  # pylint: disable=broad-except # the connection is of no use any more
            self._drop()

    def clean(self, older_than: float) -> int:
        """Deletes records older than so many seconds; how many. A request that comes after its record is gone takes
        effect again."""
        count = 0
        while True:
            db = self._connection()
            try:
                some = int(self._one(db, "SELECT intact_barrier_clean(make_interval(secs => %s))", (older_than,)).word)
                db.commit()
            except BaseException:
                self._roll_back()
                raise
            count += some
            if some == 0:
                return count


def _state_of(e: BaseException) -> Optional[str]:
    """pg8000 has it in a dictionary."""
    told = e.args[0] if e.args else None
    return str(told.get("C")) if isinstance(told, dict) else None
