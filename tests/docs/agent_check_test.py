#!/usr/bin/env python3
"""The scenarios in docs/agent-check.md are those of the program, and the chapters that they name are there.

Usage: agent_check_test.py ROOT INTACT [--write]      --write: writes them into the document
"""

import json
import os
import re
import subprocess
import sys

ROOT, INTACT = sys.argv[1:3]
PAGE = f"{ROOT}/docs/agent-check.md"
BEGIN, END = r"(<!-- scenarios: [^\n]* -->\n)", r"(<!-- end of scenarios -->\n)"


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def anchor(chapter):
    return re.sub(r"[^a-z0-9 -]", "", chapter.lower()).replace(" ", "-")


def table(scenarios):
    lines = ["| scenario | for | an agent ... |", "|---|---|---|"]
    for s in scenarios:
        must = s["must"].replace("|", "\\|")
        lines.append(f"| [`{s['name']}`](agents.md#{anchor(s['chapter'])}) | {s['level']} | {must} |")
    return "\n".join(lines) + "\n"


def main():
    scenarios = json.loads(subprocess.run([INTACT, "agent", "check", "--list", "--json"], capture_output=True, check=True).stdout)
    page, chapters = read(PAGE), re.findall(r"^#+ (.*)$", read(f"{ROOT}/docs/agents.md"), re.M)
    missing = {s["chapter"] for s in scenarios["scenarios"]} - set(chapters)
    found = re.search(f"{BEGIN}(.*){END}", page, re.S)
    expected = table(scenarios["scenarios"])
    if "--write" in sys.argv:
        with open(PAGE, "w", encoding="utf-8") as f:
            f.write(page[:found.start(2)] + expected + page[found.end(2):])
        return 0
    if missing:
        print(f"docs/agents.md has no chapter {sorted(missing)}")
    if found[2] != expected:
        print(f"docs/agent-check.md is older than the program: {os.path.basename(sys.argv[0])} ROOT INTACT --write")
    return 1 if missing or found[2] != expected else 0


sys.exit(main())
