#!/usr/bin/env bash
# The Python module: its own tests, its types, and that pip installs it into a fresh environment without any other
# package. Usage: python.sh ROOT
set -eu
root=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export PYTHONDONTWRITEBYTECODE=1
python3 "$root/lib/python/tests/test_units.py"
if command -v mypy >/dev/null; then
    (cd "$root/lib/python" && mypy --strict --python-version 3.9 --cache-dir "$work/mypy" intact_client)
else
    echo "mypy is missing; tools/setup test installs it" >&2
    exit 1
fi
version=$(sed -n "s/^  version: '\(.*\)',/\1/p" "$root/meson.build")
for place in "lib/python/pyproject.toml:version = \"$version\"" "lib/python/intact_client/__init__.py:__version__ = \"$version\"" \
    "lib/typescript/package.json:\"version\": \"$version\""; do
    grep -qF "${place#*:}" "$root/${place%%:*}" || {
        echo "${place%%:*} does not say that the version is $version" >&2
        exit 1
    }
done
python3 -m venv "$work/venv"
# Nothing is to be fetched: there is no index.
"$work/venv/bin/pip" install --quiet --disable-pip-version-check --no-index "$root/lib/python"
cd "$work"
"$work/venv/bin/python" -c 'import intact_client, intact_client.barrier, intact_client.types; print(intact_client.__file__)' | grep -q "^$work/venv"
"$work/venv/bin/pip" --disable-pip-version-check show --files intact-client | grep intact_client/py.typed >/dev/null
cat >user.py <<'PY'
from typing import Any, Dict, List, Literal, assert_type

import intact_client

agent = intact_client.Agent("greeter")


@agent.action("greet")
def greet(request: intact_client.Request) -> str:
    return f"hello, {request.input}"


@agent.undo("forget")
def forget(request: intact_client.Request) -> None:
    assert_type(request.direction, Literal["forward", "undo"])
    if request.forward is not None:
        assert_type(request.forward["in_doubt"], bool)


def test() -> None:
    request = intact_client.Request.for_test({"name": "you"}, attempt=2)
    request.stop()
    assert_type(request.beats, List[Dict[str, Any]])
    assert greet(request) == "hello, you"
    forget(intact_client.Request.for_test(forward={"output": "hello, you"}))


client = intact_client.Client("http://127.0.0.1:1")
assert_type(client.submit("greeting", {"name": "you"})["version"], int)
assert_type(client.get("x")["steps"][0]["attempts"][0]["effect"], Literal["none", "unknown", "happened"])
assert_type(client.put_workflow("intact: 1")["name"], str)
try:
    client.wait("x", 1)
except intact_client.WaitTimeout as timeout:
    assert_type(timeout.task["closed_reason"], str | None)
PY
mypy --strict --python-executable "$work/venv/bin/python" --cache-dir "$work/mypy" user.py
[ ! -e "$root/lib/python/build" ] && [ ! -e "$root/lib/python/intact_client.egg-info" ] || {
    echo "installing it left something in lib/python" >&2
    exit 1
}
