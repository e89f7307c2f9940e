#!/usr/bin/env bash
# `intact agent check` on the conformance agent of the TypeScript package, as users have it. Usage: check.sh ROOT INTACT
set -eu
intact=$(realpath "$2")
right=$(realpath "$1/tests/agents/right_test.sh")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$1/lib/typescript/try" "$work/app" >/dev/null
cd "$work/app"
"$right" "$intact" -- node conformance_agent.mjs FOLDER/record.json
