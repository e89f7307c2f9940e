#!/usr/bin/env bash
# `intact agent check` on the conformance agent of a library. Usage: check.sh ROOT INTACT python|typescript
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
if [ "$3" = python ]; then
    export PYTHONPATH=$1/lib/python PYTHONDONTWRITEBYTECODE=1
    "$2" agent check -- python3 "$1/lib/python/tests/conformance_agent.py"
else
    "$1/lib/typescript/try" "$work/app" >/dev/null # as users have it
    cd app
    "$2" agent check -- node conformance_agent.mjs
fi
