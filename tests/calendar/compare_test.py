#!/usr/bin/python3
"""Cron expressions, compared with npm croner and cron-parser: see compare.mjs.

Usage: compare_test.py DRIVER [COUNT [SEED]]
"""

import os
import random
import subprocess
import sys

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, os.path.join(HERE, ".."))

import npm_modules  # noqa: E402 pylint: disable=wrong-import-position


def main():
    driver = os.path.realpath(sys.argv[1])
    count = sys.argv[2] if len(sys.argv) > 2 else "1000"
    seed = sys.argv[3] if len(sys.argv) > 3 else str(random.randrange(1 << 30))
    home = npm_modules.install(f"{HERE}/npm", "calendar-npm")
    return subprocess.run(["node", f"{HERE}/compare.mjs", driver, count, seed], env=os.environ | {"MODULES": home}, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
