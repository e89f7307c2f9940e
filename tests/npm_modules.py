"""Modules from npm for tests: what a package-lock.json pins, installed once below build/."""

import fcntl
import filecmp
import os
import shutil
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
FILES = ("package.json", "package-lock.json")


def install(folder, name):
    """Installs what `folder` pins into build/NAME, and returns that folder. Several tests may do so at the same time."""
    home = f"{ROOT}/build/{name}"
    lockfile, installed = f"{folder}/package-lock.json", f"{home}/installed"
    os.makedirs(home, exist_ok=True)
    with open(f"{home}/.lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (os.path.exists(installed) and filecmp.cmp(lockfile, installed, shallow=False)):
            for file in FILES:
                shutil.copy(f"{folder}/{file}", home)
            subprocess.run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=home, check=True, stdout=subprocess.DEVNULL)
            shutil.copy(lockfile, installed)
    return home
