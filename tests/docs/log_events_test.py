#!/usr/bin/env python3
"""Does docs/operations.md tell of every event that the server logs, with its level, and of no other?

Usage: log_events_test.py ROOT
"""

import glob
import re
import sys

root = sys.argv[1]
LAYERS = ("alerts", "base", "core", "definition", "store", "dispatch", "catalog", "tasks", "scheduler", "supervisor", "http", "node",
          "background", "api", "server", "agents", "confine", "net", "amqp", "cli", "schedule", "intake", "operations", "outbox", "archive")


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def logged():
    """By name: the levels at which it is written."""
    events = {}
    for layer in LAYERS:
        for path in glob.glob(f"{root}/src/{layer}/**/*.c", recursive=True):
            if path.endswith(("_test.c", "_fuzz.c")):
                continue
            text = read(path)
            calls = re.findall(r'(?:log_(?:line|refusal)|way_log)\(([^"]*),\s*"event=([^ "]+)([^;]*);', text)
            if len(calls) != len(re.findall(r'"event=', text)):
                sys.exit(f"{path}: writes an event in a way that this test does not understand")
            for level, name in re.findall(r'" ([a-z]+) event=(\w+) ', text):  # a line that the log writes about itself
                events.setdefault(name, set()).add(level)
            for level, name, rest in calls:
                names = [name]
                if "%" in name:  # made at run time: of words that stand there, or of an entry of the audit
                    words = re.findall(r'"([a-z_]+)"', rest) or re.findall(r'"((?:token|agent)\.[a-z]+)"', text)
                    names = [re.sub(r"%(\.\*)?s", word, name) for word in words]
                for one in names:
                    events.setdefault(one, set()).update(word.lower() for word in re.findall("LOG_([A-Z]+)", level))
    return events


def told():
    table = read(f"{root}/docs/operations.md").split("## The log", 1)[1].split("\n## ", 1)[0]
    rows = re.findall(r"(?m)^\| (`.+?`) \| ([a-z, ]+) \| .+ \|$", table)
    if len(rows) < 10:
        sys.exit("operations.md: its table of events is not found")
    return {name: set(levels.split(", ")) for names, levels in rows for name in re.findall("`([^`]+)`", names)}


def main():
    source, table = logged(), told()
    mistakes = [f"docs/operations.md: its table lacks event={name}" for name in sorted(source.keys() - table.keys())]
    mistakes += [f"docs/operations.md: nobody writes event={name}" for name in sorted(table.keys() - source.keys())]
    mistakes += [f"docs/operations.md: event={name} is written as {', '.join(sorted(source[name]))}"
                 for name in sorted(source.keys() & table.keys()) if source[name] != table[name]]
    for mistake in mistakes:
        print(mistake, file=sys.stderr)
    sys.exit(1 if mistakes else 0)


main()
