#!/usr/bin/env python3
"""Every workflow of examples/ has a test file beside it, whose tests pass, and in which a simulation finds nothing wrong.

Usage: examples_test.py ROOT INTACT [RUNS]"""

import os
import re
import subprocess
import sys

ROOT, INTACT = (os.path.realpath(p) for p in sys.argv[1:3])
EXAMPLES = os.path.join(ROOT, "examples")
RUNS = {"transfer.test.yaml": 30}  # a run may have thousands of attempts
RUNS_USUAL = int(sys.argv[3]) if len(sys.argv) > 3 else 300
DEFINITION = re.compile(r'^intact: 1\nworkflow:|^\{\s*"intact": 1,\s*"workflow":', re.MULTILINE)


def files():
    for folder, _, names in sorted(os.walk(EXAMPLES)):
        for name in sorted(names):
            if name.endswith((".yaml", ".yml", ".json")):
                yield os.path.join(folder, name)


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def run(*words):
    done = subprocess.run([INTACT, *words], capture_output=True, text=True, check=False, timeout=600)
    print(done.stdout.split("\n", 1)[0])
    if done.returncode != 0:
        sys.exit(f"intact {' '.join(words)}: exit status {done.returncode}\n{done.stdout}{done.stderr}")


def main():
    tests = [f for f in files() if f.endswith(".test.yaml")]
    definitions = {f for f in files() if f not in tests and DEFINITION.search(read(f))}
    tested = {os.path.join(os.path.dirname(t), re.search(r"^workflow: (.*)$", read(t), re.MULTILINE)[1]) for t in tests}
    if len(definitions) < 9 or definitions != tested:
        sys.exit(f"{len(definitions)} workflows; without a test file, or not found: {sorted(definitions ^ tested)}")
    for test in tests:
        run("test", test)
        run("simulate", test, "--runs", str(RUNS.get(os.path.basename(test), RUNS_USUAL)))


main()
