#!/usr/bin/env bash
# Does literally what README.md says under "A first workflow of your own": the indented blocks, in order.
# `./run build` is left out (a build is given), its programs are found where the README has them, and TOKEN is
# the token that was answered. Usage: readme.sh ROOT INTACT
set -eu
root=$1
intact=$(realpath "$2")
work=$(mktemp -d "${TMPDIR:-/tmp}/intact-readme.XXXXXX")
section="A first workflow of your own"

fail() {
    echo "readme: $*" >&2
    exit 1
}

finish() {
    local status=$?
    [ -n "${server:-}" ] && kill "$server" 2>/dev/null && wait "$server" 2>/dev/null
    [ -n "${made:-}" ] && rm -rf /tmp/first /tmp/greet.json
    rm -rf "$work"
    exit "$status"
}
trap finish EXIT

# What the README writes to must not be somebody's own.
if [ -e /tmp/first ] || [ -e /tmp/greet.json ] || (exec 3<>/dev/tcp/127.0.0.1/7420) 2>/dev/null; then
    echo "readme: /tmp/first, /tmp/greet.json or port 7420 is in use: skipped" >&2
    exit 77
fi
made=1

# Blocks of the section, each in a file of its own: runs of indented lines and the empty ones between.
awk -v section="## $section" -v work="$work" '
    /^## / { inside = $0 == section; next }
    !inside { next }
    /^    / { if (!block) file = sprintf("%s/block-%d", work, ++count); block = 1
              while (empty-- > 0) print "" > file
              empty = 0; print substr($0, 5) > file; next }
    /^$/ { if (block) empty++; next }
    { block = 0; empty = 0 }' "$root/README.md"
[ -e "$work/block-3" ] || fail "the section \"$section\" has fewer blocks than it had"

mkdir -p "$work/clone/build/release/src/cli"
ln -s "$intact" "$work/clone/build/release/src/cli/intact"
cd "$work/clone"
unset INTACT_SERVER INTACT_TOKEN

# Runs one block; what it starts in the background is the server. Usage: run_block FILE
run_block() {
    sed -e '/^\.\/run build$/d' -e "s/TOKEN/${token:-}/" -e 's|\(intact serve .*\) &$|\1 2>>"$work/server.log" >/dev/null \& server=$!; wait_ready|' \
        "$1" >"$1.sh"
    . "$1.sh" >"$1.out" || fail "block $(basename "$1") failed: $(cat "$1" "$1.out")"
}

wait_ready() {
    local i
    for i in $(seq 200); do
        curl -fs -o /dev/null localhost:7420/readyz && return 0
        sleep 0.05
    done
    fail "the server does not become ready: $(cat "$work/server.log")"
}

run_block "$work/block-1"
[ -n "${server:-}" ] || fail "block 1 starts no server"
grep -q first-1 "$work/block-1.out" || fail "the submission does not name its task: $(cat "$work/block-1.out")"
run_block "$work/block-2"
token=$(jq -re '.requests[0].token' "$work/block-2.out") || fail "no token: $(cat "$work/block-2.out")"
[ "$(jq -r '.requests[0].input.text' "$work/block-2.out")" = "Hello, world" ] ||
    fail "not the input that the definition makes: $(cat "$work/block-2.out")"
run_block "$work/block-3"
grep -q '"status":"accepted"' "$work/block-3.out" || fail "not accepted: $(cat "$work/block-3.out")"
grep -q processed "$work/block-3.out" || fail "not processed: $(cat "$work/block-3.out")"
