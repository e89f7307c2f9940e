#!/usr/bin/python3
"""The console in Debian's Chromium before a real server: see FILE.

Usage: browser_test.py ROOT INTACT FILE [--test-name-pattern=...]
"""

import os
import shutil
import subprocess
import sys
import tempfile

import kit  # first: it finds the others

import browsers

HERE = os.path.dirname(os.path.realpath(__file__))
MODULES = "shop-browser"


def main():
    kit.npm_modules.install(f"{kit.ROOT}/tests/shop/npm", MODULES)
    browsers.wait_for_turn(kit.ROOT)
    folder = tempfile.mkdtemp(prefix="intact-console-")
    try:
        told = {"INTACT": os.path.realpath(sys.argv[2]), "WORK": f"{folder}/work",
                "BROWSER_HOME": f"{kit.ROOT}/build/{MODULES}", "TZ": "Europe/Rome"}
        return subprocess.run(["node", "--test-reporter=spec", *sys.argv[4:], f"{HERE}/{sys.argv[3]}"], env=os.environ | told, check=False).returncode
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    sys.exit(main())
