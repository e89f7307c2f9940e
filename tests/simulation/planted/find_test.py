#!/usr/bin/env python3
"""How many of the planted mistakes `intact simulate` finds with its own rules alone, and whether it finds anything once
they are mended.

Usage: find_test.py INTACT [--runs N] [NAME...]
    --runs    of each simulation (3000)
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

FOLDER = os.path.dirname(os.path.realpath(__file__))
PARSER = argparse.ArgumentParser()
PARSER.add_argument("intact")
PARSER.add_argument("names", nargs="*")
PARSER.add_argument("--runs", default="3000")
CHOSEN = PARSER.parse_args()
INTACT, NAMES = os.path.realpath(CHOSEN.intact), CHOSEN.names
LEAST = 23
WITHOUT_RULE = {"14-input-misses-member"}  # only a rule of the file's own could find it


def simulate(folder, name):
    done = subprocess.run([INTACT, "simulate", f"{name}.test.yaml", "--json", "--runs", CHOSEN.runs], cwd=folder,
                          capture_output=True, text=True, check=False, timeout=300)
    if done.returncode not in (0, 1):
        sys.exit(f"{name}: exit status {done.returncode}\n{done.stderr}")
    return [f"{f['kind']} {f['subject']}" for f in json.loads(done.stdout)["findings"]]


def mends():
    with open(os.path.join(FOLDER, "mends.txt"), encoding="utf-8") as file:
        for line in file:
            if not line.startswith("#"):
                yield line.rstrip("\n").split(" ", 1)


def mend(folder, file, script):
    before = open(os.path.join(folder, file), encoding="utf-8").read()
    subprocess.run(["sed", "-i", script, file], cwd=folder, check=True)
    if open(os.path.join(folder, file), encoding="utf-8").read() == before:
        sys.exit(f"mends.txt: the mend of {file} changes nothing")


def main():
    found = bad = count = 0
    with tempfile.TemporaryDirectory(prefix="intact-planted-") as folder:
        for name in os.listdir(FOLDER):
            if name.endswith(".yaml"):
                shutil.copy(os.path.join(FOLDER, name), folder)
        for file, script in mends():
            name = re.sub(r"(\.test)?\.yaml$", "", file)
            if NAMES and name not in NAMES:
                continue
            count += 1
            findings = simulate(folder, name)
            mend(folder, file, script)
            left = simulate(folder, name)
            found += bool(findings)
            bad += bool(left) or (bool(findings) == (name in WITHOUT_RULE))
            print(f"{name}: {', '.join(findings) or 'NOTHING FOUND'}" + (f"; MENDED: {', '.join(left)}" if left else ""))
    print(f"{found} of {count} found")
    return 1 if bad or (not NAMES and found < LEAST) else 0


sys.exit(main())
