#!/usr/bin/env python3
"""What docs/expressions.md says of the versions of jq, held to the jq that is installed: the table of the section
"Where versions of jq differ" has a column for jq 1.6 and one for later versions. Some of what the latter has came with 1.7,
some with 1.8: a jq that is newer than 1.6 may say either. That the third column is what Intact says is held by
expression_test.c. Usage: versions_test.py ROOT; exit status 77 if there is no jq.
"""

import json
import re
import shutil
import subprocess
import sys

HEADING = "### Where versions of jq differ"


def cells(row):
    return [c.strip().strip("`").replace("\\|", "|") for c in re.split(r"(?<!\\)\|", row)[1:-1]]


def rows(path):
    with open(path, encoding="utf-8") as f:
        section = f.read().split(HEADING)[1].split("\n#")[0]
    return [cells(line) for line in section.split("\n") if line.startswith("| `")]


def ask(expression, value):
    """Its values, as an array; "error" if it fails."""
    done = subprocess.run(["jq", "-c", f"[{expression}]"], input=value, capture_output=True, text=True, check=False)
    return json.loads(done.stdout) if done.returncode == 0 else "error"


def meant(cell):
    return {"no value": [], "error": "error"}.get(cell) if cell in ("no value", "error") else [json.loads(cell)]


def main():
    if not shutil.which("jq"):
        print("there is no jq", file=sys.stderr)
        return 77
    version = subprocess.run(["jq", "--version"], capture_output=True, text=True, check=True).stdout.strip()
    table = rows(f"{sys.argv[1]}/docs/expressions.md")
    wrong = 0
    for expression, value, _, old, new in table:
        said = ask(expression, value)
        allowed = [meant(old)] if version.startswith("jq-1.6") else [meant(old), meant(new)]
        if said not in allowed:
            print(f"{expression} on {value}: {version} says {said}, the document {allowed}", file=sys.stderr)
            wrong += 1
        if meant(old) == meant(new):
            print(f"{expression}: both columns say the same", file=sys.stderr)
            wrong += 1
    print(f"{len(table)} rows, {wrong} wrong, {version}")
    return 1 if wrong or len(table) < 4 else 0


sys.exit(main())
