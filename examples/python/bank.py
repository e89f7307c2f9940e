#!/usr/bin/env python3
"""An agent in Python: the agent "bank", which takes money from accounts and gives it back.

    INTACT_SERVER=http://127.0.0.1:7420 PYTHONPATH=lib/python ./bank.py bank-1 bank.db

Each payment is one transaction with its record, so it happens once, however often it is asked for, and not at all after
it was undone. docs/python.md tells more.
"""

from __future__ import annotations

import logging
import sqlite3
import sys
from typing import Any

import intact_client
from intact_client.barrier import SqliteBarrier

instance = sys.argv[1] if len(sys.argv) > 1 else "bank-1"
db = sqlite3.connect(sys.argv[2] if len(sys.argv) > 2 else "bank.db", isolation_level=None, check_same_thread=False)
db.executescript("""PRAGMA journal_mode = WAL;
CREATE TABLE IF NOT EXISTS payment(id INTEGER PRIMARY KEY, task TEXT, customer TEXT, amount INTEGER);""")
barrier = SqliteBarrier(db)
agent = intact_client.Agent("bank", instance=instance, places=8)


def pay(request: intact_client.Request, customer: str, amount: int) -> Any:
    def book(transaction: sqlite3.Connection) -> Any:
        row = transaction.execute("INSERT INTO payment(task, customer, amount) VALUES (?, ?, ?)",
                                  (request.task, customer, amount))
        return {"payment": row.lastrowid}

    return barrier.once(request, book)


@agent.action("charge")
def charge(request: intact_client.Request) -> Any:
    if request.input["amount"] > 1000:
        raise intact_client.StepError("declined", "more than 1000 is not given", effect="none")
    return pay(request, request.input["customer"], request.input["amount"])


@agent.undo("refund")
def refund(request: intact_client.Request) -> Any:
    assert request.forward  # an undo has it: the input and output of what is to be undone
    done = request.forward["input"]
    return pay(request, done["customer"], -done["amount"])


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s")
    sys.exit(0 if agent.run() else 1)
