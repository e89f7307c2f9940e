#!/usr/bin/python3
"""The console without a server: its types against docs/openapi.yaml, its units, what the bundle promises to the server.

Usage: units_test.py ROOT
"""

import gzip
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

import kit

FIRST_PAGE_MAX = 150_000  # bytes, compressed
FORBIDDEN = re.compile(r"innerHTML|outerHTML|insertAdjacentHTML|dangerouslySetInnerHTML|document\.write|\beval\(|new Function|setAttribute\(.style")
ASSET = re.compile(r"[\w.-]+-[A-Z0-9]{8}\.(js|css|svg|woff2)")


def read(path, mode="r"):
    with open(path, mode, **({} if "b" in mode else {"encoding": "utf-8"})) as f:
        return f.read()


def sources(folder):
    for where, _, files in os.walk(folder):
        yield from (os.path.join(where, name) for name in files)


def check_sources():
    """Text of others reaches the page as text only, and the lock file names no host."""
    for path in sources(f"{kit.ROOT}/console/src"):
        if not path.endswith(".d.ts"):
            for number, line in enumerate(read(path).splitlines(), 1):
                if path.endswith((".ts", ".tsx")) and FORBIDDEN.search(line):
                    yield f"{path}:{number}: text must not become markup or code"
    yield from check_colours(f"{kit.ROOT}/console/src/styles")
    lock = read(f"{kit.ROOT}/console/package-lock.json")
    if '"resolved"' in lock:
        yield "console/package-lock.json names hosts: make it with npm --omit-lockfile-registry-resolved"
    if read(f"{kit.ROOT}/console/src/ui/workflow.schema.json") != read(f"{kit.ROOT}/docs/workflow.schema.json"):
        yield "console/src/ui/workflow.schema.json is not docs/workflow.schema.json: copy it"
    licenses = read(f"{kit.ROOT}/console/licenses.md")
    for path, package in json.loads(lock)["packages"].items():
        name, version = path.rpartition("node_modules/")[2], package.get("version")
        if path and not package.get("dev") and not re.search(rf"^\|[^|]*(?<![\w/-]){re.escape(name)}(?![\w/-])[^|]*\|[^|]*(?<![\d.]){re.escape(version)}\b", licenses, re.M):
            yield f"console/licenses.md does not name {name} {version}, which is in the bundle"
    for name, version in re.findall(r'"([^"]+)": "([\^~][^"]*)"', read(f"{kit.ROOT}/console/package.json")):
        yield f"console/package.json: {name} {version} is not an exact version"


def check_colours(folder):
    """Each colour is stated once, in tokens.css."""
    for name in sorted(os.listdir(folder)):
        text = re.sub(r"/\*.*?\*/", "", read(f"{folder}/{name}"), flags=re.S)
        if name != "tokens.css":
            yield from (f"{name}: the colour {found} belongs into tokens.css" for found in re.findall(r"#[0-9a-f]{3,8}\b|rgba?\([^)]*\)", text))
            continue
        stated = re.findall(r"(--[\w-]+):[^;}]*(?:#|rgb)", text)
        yield from (f"tokens.css: {found} is stated twice" for found in sorted({n for n in stated if stated.count(n) > 1}))


def check_bundle(out):
    """The files are those of the contract, the page has nothing inline, and what is loaded at first is small."""
    page = read(f"{out}/index.html")
    if re.search(r"<style|style=|<script(?![^>]*\bsrc=)|\son\w+=|javascript:", page):
        yield "index.html has an inline script or style"
    for host in re.findall(r"(?:src|href)=\"(\w+:)?//", page):
        yield f"index.html names another origin: {host}"
    for name in os.listdir(f"{out}/assets"):
        if not ASSET.fullmatch(name):
            yield f"assets/{name} is not named NAME-HASH"
    first = re.findall(r'(?:src|href)="/(assets/[^"]+)"', page)
    size = sum(len(gzip.compress(read(f"{out}/{path}", "rb"), 9)) for path in ["index.html", *first])
    # The overview is the page that most open first: with all that it loads, charts included.
    entry = "".join(read(f"{out}/{path}") for path in first if path.endswith(".js"))
    overview = re.search(r'at:"/",[^}]*?import\("/assets/([\w.-]+\.js)"\)', entry)
    seen, todo = set(first), [f"assets/{overview.group(1)}"] if overview else []
    if not overview:
        yield "the overview is not loaded by an import of its own"
    while todo:
        path = todo.pop()
        if path not in seen:
            seen.add(path)
            text = read(f"{out}/{path}")
            size += len(gzip.compress(text.encode(), 9))
            todo += [f"assets/{name}" for name in re.findall(r'"/assets/([\w.-]+\.js)"', text)]
    print(f"the first page takes {size} bytes")
    if size > FIRST_PAGE_MAX:
        yield f"the first page takes {size} bytes, more than {FIRST_PAGE_MAX}"


def run_units(folder):
    """Tests are TypeScript, like what they test: each becomes a module that Node reads."""
    shutil.copytree(f"{kit.ROOT}/tests/console/units", f"{folder}/units")
    tests = sorted(os.listdir(f"{folder}/units"))
    subprocess.run(["node_modules/.bin/esbuild", *(f"units/{t}" for t in tests), "--bundle", "--platform=node", "--format=esm", "--outdir=made",
                    "--out-extension:.js=.mjs", "--jsx=automatic", "--jsx-import-source=preact", "--log-level=warning", "--external:yaml", "--define:document=globalThis.document_",
                    "--banner:js=globalThis.document_ = {hidden: true, documentElement: {dataset: {}}}; globalThis.location ??= {pathname: '/', search: ''};"
                    " globalThis.setInterval = () => 0;"],
                   cwd=folder, check=True)
    made = [f"made/{t.removesuffix('.ts')}.mjs" for t in tests]
    return subprocess.run(["node", "--test", *made], cwd=folder, env=os.environ | {"ROOT": kit.ROOT, "TZ": "Europe/Rome"}, check=False).returncode


def main():
    folder = tempfile.mkdtemp(prefix="intact-console-")
    try:
        kit.prepare(folder)
        mistakes = [*check_sources(), *check_bundle(kit.bundle(folder))]
        if subprocess.run(["node", "check.mjs", f"{kit.ROOT}/docs/openapi.yaml"], cwd=folder, check=False).returncode:
            mistakes.append("the sources do not fit their types, or docs/openapi.yaml")
        if run_units(folder):
            mistakes.append("units failed")
    finally:
        shutil.rmtree(folder)
    for mistake in mistakes:
        print("not so:", mistake)
    return 1 if mistakes else 0


if __name__ == "__main__":
    sys.exit(main())
