#!/usr/bin/env python3
"""Barriers in Python, as commit_test.py drives them: reads "forward KEY", "undo KEY", or "late KEY" (forward, and
stopped when the effect is made), has the effect (a row in the table `world`) in a transaction, and prints what it would answer the server. Usage: commit_driver.py postgres CONNINFO | sqlite FILE | mariadb SOCKET SQL
"""

import json
import re
import sqlite3
import sys

from intact_client import Request, StepError
from intact_client.barrier import PostgresBarrier, SqliteBarrier


class MariaBarrier:
    """As docs/barrier.md has it for any language: no library of ours has one for MariaDB."""

    def __init__(self, socket, file):
        import pymysql
        self.pymysql, self.socket, self.db = pymysql, socket, None
        with open(file, encoding="utf-8") as f:
            text = "".join(line[2:] for line in f.read().splitlines(True) if line.startswith("--"))
        found = re.findall(r"^ \[([\w-]+)\]\n\n?((?:.*\n)*?.*;)$", text, re.M)
        self.sql = {name: " ".join(sql.rstrip(";").split()).replace("?", "%s") for name, sql in found}

    def run(self, name, *values):
        with self.db.cursor() as cursor:
            count = cursor.execute(self.sql[name], values)
            return count, cursor.fetchone()

    def judge(self, key, is_undo):
        if is_undo:
            if self.run("undo", key)[0] == 1:
                return "nothing", None
            if self.run("undo-done", key)[0] == 1:
                return "do", None
            return self.run("undo-again", key)[1]
        return ("do", None) if self.run("forward", key)[0] == 1 else self.run("forward-again", key)[1]

    def once(self, request, effect):
        is_undo = request.direction == "undo"
        key = request.forward_key if is_undo else request.idempotency_key
        is_committing = False
        try:
            if self.db is None:
                self.db = self.pymysql.connect(unix_socket=self.socket, user="root", database="mysql", autocommit=False)
            self.db.begin()
            verdict, output = self.judge(key, is_undo)
            if verdict == "do":
                output = json.dumps(effect(self.db))
                self.run("done-undo" if is_undo else "done", output, key)
            is_committing = True
            self.db.commit()
        except self.pymysql.err.Error as e:
            self.db = None  # rolled back with its connection, if it was
            raise StepError("database", str(e), True, "unknown" if is_committing else "none") from e
        if verdict == "undone":
            raise StepError("undone", "this step was undone", False, "none")
        return None if verdict == "nothing" or output is None else json.loads(output)


def open_barrier(kind, where, *more):
    if kind == "postgres":
        import psycopg2
        return PostgresBarrier(lambda: psycopg2.connect(where))
    if kind == "mariadb":
        return MariaBarrier(where, *more)
    return SqliteBarrier(sqlite3.connect(where, isolation_level=None))


def main():
    barrier = open_barrier(*sys.argv[1:])
    mark = "?" if sys.argv[1] == "sqlite" else "%s"
    for line in sys.stdin:
        direction, key = line.split()
        is_undo = direction == "undo"
        more = {"forward": {"idempotency_key": key}} if is_undo else {"idempotency_key": key}
        request = Request.for_test(**more)

        def effect(db):
            db.cursor().execute(f"INSERT INTO world VALUES ({mark}, {mark})", (key, -1 if is_undo else 1))
            if direction == "late":
                request.stop()
            return "undone" if is_undo else "done"

        try:
            said = {"output": barrier.once(request, effect)}
        except StepError as e:
            said = {"error": {"code": e.code, "retryable": e.retryable, "effect": e.effect}}
        print(json.dumps(said), flush=True)


main()
