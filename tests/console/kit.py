"""The console below build/: its sources beside the modules that console/package-lock.json pins."""

import os
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
sys.path.insert(0, f"{ROOT}/tests")

import npm_modules  # noqa: E402 pylint: disable=wrong-import-position


def prepare(folder):
    """Copies console/ to `folder`, with its modules; returns `folder`."""
    home = npm_modules.install(f"{ROOT}/console", "console-modules")
    shutil.copytree(f"{ROOT}/console", folder, ignore=shutil.ignore_patterns("node_modules", "dist", "openapi.d.ts"), dirs_exist_ok=True)
    os.symlink(f"{home}/node_modules", f"{folder}/node_modules")
    return folder


def bundle(folder):
    """Bundles the console that is in `folder`, and returns where the result is."""
    subprocess.run(["node", "build.mjs", f"{folder}/out"], cwd=folder, check=True)
    return f"{folder}/out"
