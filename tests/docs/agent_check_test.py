#!/usr/bin/env python3
"""The chapters of docs/agents.md that the scenarios of `intact agent check` name are there.

Usage: agent_check_test.py ROOT INTACT
"""

import json
import re
import subprocess
import sys

ROOT, INTACT = sys.argv[1:3]


def main():
    listed = subprocess.run([INTACT, "agent", "check", "--list", "--json"], capture_output=True, check=True).stdout
    named = {s["chapter"] for s in json.loads(listed)["scenarios"]}
    with open(f"{ROOT}/docs/agents.md", encoding="utf-8") as f:
        missing = named - set(re.findall(r"^#+ (.*)$", f.read(), re.M))
    if missing:
        print(f"docs/agents.md has no chapter {sorted(missing)}")
    return 1 if missing or len(named) < 5 else 0


sys.exit(main())
