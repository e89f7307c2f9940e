#!/usr/bin/env python3
"""The shipping service: an agent in Python. It finds the way of a parcel (route), sends those of an order (ship), and writes to
customers (notify).

    PYTHONPATH=lib/python ./shipping.py shipping/shipping.db

Each request is one transaction: the effect, and the barrier's record of it. So it takes effect once, however often it
comes and whenever this process is killed. Parcels that have left cannot be fetched back: there is no undo.
"""

from __future__ import annotations

import json
import logging
import os
import sqlite3
import sys
import time
from typing import Any, Callable

import intact_client
from intact_client.barrier import SqliteBarrier

SCHEMA = """PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
CREATE TABLE IF NOT EXISTS parcel(
    id INTEGER PRIMARY KEY, order_id TEXT NOT NULL, line INTEGER NOT NULL, sku TEXT NOT NULL, quantity INTEGER NOT NULL,
    address TEXT NOT NULL, UNIQUE (order_id, line));
CREATE TABLE IF NOT EXISTS outbox(
    id INTEGER PRIMARY KEY, order_id TEXT NOT NULL UNIQUE, address TEXT NOT NULL, letter TEXT NOT NULL);"""

if len(sys.argv) != 2:
    sys.exit("usage: shipping.py DATABASE")
mode_file = os.path.join(os.path.dirname(sys.argv[1]), "MODE")
try:
    db = sqlite3.connect(sys.argv[1], isolation_level=None, check_same_thread=False, timeout=10)
    db.executescript(SCHEMA)
    barrier = SqliteBarrier(db)
except sqlite3.Error as e:
    sys.exit(f"{sys.argv[1]}: {e}")
agent = intact_client.Agent("shipping", instance="shipping-1", places=8)


def mode() -> str:
    try:
        with open(mode_file, encoding="utf-8") as f:
            return f.read().strip()
    except FileNotFoundError:
        return "ok"


def serve(request: intact_client.Request, effect: Callable[[sqlite3.Connection], Any]) -> Any:
    """What the file MODE says, by which the console makes mischief; then the effect, once."""
    said = "failed"
    try:
        while mode() == "hanging":
            if not request.pause(0.1):
                raise intact_client.TooLate("nobody waits any more")
        if mode() == "slow":
            time.sleep(2)
        if mode() == "failing":
            raise intact_client.StepError("failing", "no parcels leave at the moment", retryable=True, effect="none")
        output = barrier.once(request, effect)
        said = json.dumps(output)
        return output
    except Exception as e:
        said = str(e)
        raise
    finally:
        logging.info("shipping: %s %s: %s", request.task, request.action, said)


@agent.action("route")
def route(request: intact_client.Request) -> None:
    """Looks at a map and nothing else: there is no effect that could happen twice, and no mischief."""
    line, sku, address = (request.input[name] for name in ("line", "sku", "address"))
    logging.info("shipping: %s route: %s, %r", request.task, sku, address)
    if not address.strip():
        raise intact_client.StepError("no_address", "There is no address to send it to.", effect="none")
    if address.strip().lower().endswith("moon"):
        raise intact_client.StepError("no_such_place", "We do not deliver to the Moon.", effect="none")
    if sku == "chair" and "po box" in address.lower().replace(".", ""):
        raise intact_client.StepError("too_large", f"Line {line}, {sku}: too large for a P.O. box.", effect="none")


@agent.action("ship")
def ship(request: intact_client.Request) -> Any:
    lines, address = request.input["lines"], request.input["address"].strip()

    def send(transaction: sqlite3.Connection) -> Any:
        parcels = [transaction.execute("INSERT INTO parcel(order_id, line, sku, quantity, address) VALUES (?, ?, ?, ?, ?)",
                                       (request.task, number, line["sku"], line["quantity"], address)).lastrowid
                   for number, line in enumerate(lines, 1)]
        return {"parcels": parcels}

    return serve(request, send)


@agent.action("notify")
def notify(request: intact_client.Request) -> Any:
    parcels = ", ".join(str(parcel) for parcel in request.input["parcels"] or ["unknown"])  # an operator may skip ship
    letter = f"Your order {request.task} was shipped. Numbers of its parcels: {parcels}."

    def write(transaction: sqlite3.Connection) -> Any:
        transaction.execute("INSERT INTO outbox(order_id, address, letter) VALUES (?, ?, ?)",
                            (request.task, request.input["address"], letter))

    return serve(request, write)


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    sys.exit(0 if agent.run() else 1)
