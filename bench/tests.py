#!/usr/bin/env python3
"""What `intact test` takes: a test of a workflow of ten steps that lasts 30 days, 100 tests of an order that is undone after lost
answers, and a list of many items, each with a large input. Times are processor times of the whole program, which has one thread, so a
busy machine matters little; the median of some runs. A test alone is the difference between a file with 100 of them and one with a
single one.
Usage: bench/tests.py PROGRAM [--runs N] [--items N]"""

import argparse
import json
import os
import statistics
import subprocess
import tempfile

AGENT = {"agent": "a", "undo": {"action": "un"}}
MONTH = {"intact": 1, "workflow": "month", "steps": [
    step for n in range(5) for step in ({"name": f"do-{n}", "action": "do", **AGENT}, {"name": f"wait-{n}", "wait": "6d"})]}
ORDER = {"intact": 1, "workflow": "order", "steps": [
    {"name": name, "action": name, "complete_by": "30s", **AGENT} for name in ("reserve", "charge", "ship")]}
EACH = {"intact": 1, "workflow": "each", "steps": [
    {"name": "pack", "for_each": "${ .input.list }", "max_items": 10000, "concurrency": 10, "action": "pack", **AGENT}]}
PAYS = {"output": {"n": "${ .input.n }"}, "effect": {"n": ".world.n + .input.n"}}


def order(n):
    return {"name": f"order {n}", "input": {"n": n}, "agents": {"a.charge": [{"silent": "after effect"}, PAYS], "a.ship": {"refuse": "no"}},
            "expect": {"state": "compensated", "world": {"n": 0}, "error": "no"}}


def month(n):
    return {"name": f"month {n}", "input": {"n": n}, "expect": {"state": "processed", "world": {"n": 5 * n}, "within": "31d"}}


def items(count):
    return {"name": "items", "input": {"n": 1, "list": list(range(count)), "text": "x" * 100000},
            "expect": {"state": "processed", "world": {"n": count}}}


def run(program, folder, definition, tests):
    """Seconds of processor time of one run, and the most memory that it had, in MiB."""
    with open(os.path.join(folder, "w.json"), "w", encoding="utf-8") as f:
        json.dump(definition, f)
    with open(os.path.join(folder, "w.test.json"), "w", encoding="utf-8") as f:
        json.dump({"workflow": "w.json", "world": {"n": 0}, "agents": {"a": PAYS, "a.un": {}}, "tests": tests}, f)
    process = subprocess.Popen([program, "test", "w.test.json"], cwd=folder, stdout=subprocess.PIPE, text=True)
    told = process.stdout.read()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    process.stdout.close()
    if told.split("\n")[0] != f"w.test.json: {len(tests)} passed, 0 failed":
        raise SystemExit(told)
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def main():
    p = argparse.ArgumentParser(usage=__doc__)
    p.add_argument("program", type=os.path.realpath)
    p.add_argument("--runs", type=int, default=11)
    p.add_argument("--items", type=int, default=10000)
    a = p.parse_args()
    with tempfile.TemporaryDirectory(prefix="intact-bench-") as folder:
        rounds = [[run(a.program, folder, d, [test(n) for n in range(count)])[0]
                   for d, test, count in ((MONTH, month, 1), (MONTH, month, 100), (ORDER, order, 100))] for _ in range(a.runs)]
        one, many, orders = (statistics.median(column) for column in zip(*rounds))
        seconds, memory = run(a.program, folder, EACH, [items(a.items)])
    print(f"tests: 30 days of 10 steps in {(many - one) / 99 * 1000:.2f} ms, with the program's start {one * 1000:.1f} ms; "
          f"100 tests of 3 steps in {orders * 1000:.0f} ms; {a.items} items in {seconds:.1f} s and {memory:.0f} MiB", flush=True)


if __name__ == "__main__":
    main()
