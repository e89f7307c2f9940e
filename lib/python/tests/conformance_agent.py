#!/usr/bin/env python3
"""The agent that `intact agent check` is shown: actions whose behaviour the checker knows. INTACT_SERVER and INTACT_TOKEN
say where; the record is the SQLite file of the first argument, `conformance.db` if there is none, or the PostgreSQL
database that RECORD_POSTGRES names (a socket's folder)."""

import logging
import os
import sqlite3
import sys
import threading
import time

import intact_client
from intact_client.barrier import PostgresBarrier, SqliteBarrier

NAME = os.environ.get("INTACT_AGENT", "conformance")
logging.basicConfig(format="%(message)s", level=os.environ.get("LOG", "WARNING"))
agent = intact_client.Agent(NAME, instance=os.environ.get("INTACT_INSTANCE", "python-1"),
                     places=int(os.environ.get("INTACT_PLACES", "4")), stop_wait=30)
if os.environ.get("RECORD_POSTGRES"):
    import psycopg2
    barrier = PostgresBarrier(lambda: psycopg2.connect(host=os.environ["RECORD_POSTGRES"], user="intact", dbname="postgres"))
else:
    db = sqlite3.connect(sys.argv[1] if len(sys.argv) > 1 else "conformance.db", isolation_level=None,
                         check_same_thread=False)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("CREATE TABLE IF NOT EXISTS counter(n INTEGER)")
    barrier = SqliteBarrier(db)


@agent.action("echo")
def echo(request):
    """Answers its input."""
    return request.input


@agent.undo("echo")
def unecho(_):
    """There is nothing to undo."""
    return None


@agent.action("fail")
def fail(request):
    """Fails as its input says."""
    told = request.input
    if not isinstance(told, dict):
        told = {}
    more = {"resume": told["resume"]} if "resume" in told else {}
    raise intact_client.StepError(told.get("code", "failed"), told.get("message", ""), told.get("retryable", False),
                           told.get("effect"), told.get("retry_after"), **more)


@agent.action("slow")
def slow(request):
    """Takes so many ms, and beats every `beats` of them."""
    took, every = 0, request.input.get("beats") or request.input["ms"]
    while took < request.input["ms"]:
        step = min(every, request.input["ms"] - took)
        request.pause(step / 1000)
        request.check("none")
        took += step
        if request.input.get("beats"):
            request.heartbeat({"done": took // every})
    return {"ms": took}


def _count(database, by):
    cursor = database.cursor()
    cursor.execute("SELECT coalesce(sum(n), 0) FROM counter")
    n = int(cursor.fetchone()[0]) + by
    cursor.execute(f"INSERT INTO counter VALUES ({by})")
    return {"n": n}


@agent.action("count")
def count(request):
    """An effect that is there once. With `ms` its transaction stays open for so long, or until it is told to stop."""
    def effect(database):
        output = _count(database, 1)
        if isinstance(request.input, dict) and "ms" in request.input:
            request.heartbeat({})
            request.pause(request.input["ms"] / 1000)
        return output

    return barrier.once(request, effect)


@agent.undo("count")
@agent.undo("uncount")
def uncount(request):
    """And is taken back once."""
    return barrier.once(request, lambda database: _count(database, -1))


@agent.action("judge")
def judge(request):
    """Refuses what its input says is to be refused."""
    if request.input.get("refuse"):
        raise intact_client.StepError("refused", "as it was to be", effect="none")
    return {"tries": request.tries}


@agent.action("hang", auto_heartbeat=True)
def hang(request):
    """Takes so many ms, whatever anybody says; the agent beats for it."""
    time.sleep(request.input["ms"] / 1000)
    return "awake"


class Unspeakable(Exception):
    """Cannot even be shown."""

    def __str__(self):
        raise RuntimeError("no text")


@agent.action("nonsense")
def nonsense(request):
    """What is no JSON, or what no server takes."""
    if request.input["kind"] == "thrown":
        raise Unspeakable
    if request.input["kind"] == "message":
        raise intact_client.StepError("odd", ValueError("half a pair: \ud800, zero: \0"), retryable=True)
    if request.input["kind"] == "beat":
        progress = {"done": 1}
        request.heartbeat(progress)
        progress["done"] = object()  # what was told stays told
        request.pause(0.6)
        return "beaten"
    return {"object": object(), "nan": float("nan"), "function": print, "zero": "\0", "text": request.input.get("text")}[request.input["kind"]]


@agent.action("retry")
def retry(request):
    """A service that fails at first."""
    failures = [request.input.get("fail", 0)]

    def service():
        if failures[0] > 0:
            failures[0] -= 1
            raise ConnectionError("the service is away")
        return {"tries": request.tries}

    return request.call(service, intact_client.Retry(first=0.01, most=0.1, leave=1.0))


@agent.action("elsewhere")
def elsewhere(request):
    """The result comes by another way: told by the token, from a thread that is not the agent's."""
    request.elsewhere()

    def complete():
        try:
            intact_client.Client().complete(request.token, {"elsewhere": True})
        except intact_client.IntactError as e:
            logging.warning("elsewhere: %s", e)

    if isinstance(request.input, dict) and request.input.get("complete"):
        threading.Timer(0.1, complete).start()


@agent.action("resume")
def resume(request):
    """Fails first, and goes on from there."""
    if request.resume is None:
        raise intact_client.StepError("interrupted", "half of it is done", True, "none", resume={"at": 1})
    return request.resume


if __name__ == "__main__":
    sys.exit(0 if agent.run() else 1)
