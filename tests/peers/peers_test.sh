#!/usr/bin/env bash
# `./run peers` without a network: what its table says of canned lines, what it refuses, what it says where npm or its registry are
# missing; and one peer that needs no packages, measured: ourselves. Usage: peers_test.sh ROOT BUILD
set -eu
root=$1 build=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() {
    echo "peers_test: $1" >&2
    [ ! -e "$work/out" ] || cat "$work/out" "$work/err" >&2
    exit 1
}
# Usage: expect STATUS COMMAND...; what it says is in $work/out and $work/err
expect() {
    local wanted=$1 status=0
    shift
    "$@" >"$work/out" 2>"$work/err" || status=$?
    [ $status = "$wanted" ] || fail "$*: status $status, expected $wanted"
}
says() { grep -qF -- "$1" "$work/out" "$work/err" || fail "expected it to say: $1"; }

# Medians of odd and even numbers, spread, ratios, goals; a median is not a mean, and 0.2 is not below 0.2.
expect 0 node "$root/bench/peers/table.mjs" "$root/tests/peers/lines.json"
tr -s ' -' <"$work/out" >"$work/table"
cmp -s "$work/table" "$root/tests/peers/table.txt" || { diff "$work/table" "$root/tests/peers/table.txt" >&2 || true; fail "the table is another one"; }
printf '{"peer":"restate","mode":"inside","tasks_per_s":5}\n{"peer":"rest\n' >"$work/torn"
expect 2 node "$root/bench/peers/table.mjs" "$work/torn"
says "torn, line 2:"
: >"$work/empty"
expect 2 node "$root/bench/peers/table.mjs" "$work/empty"
says "no lines of measurements"

expect 0 "$root/run" peers --help
says "usage: ./run peers"
expect 2 "$root/run" peers nobody
says "nobody is called 'nobody'; there are intact-sqlite/calls"
expect 2 "$root/run" peers --killed dbos
says "nobody is called 'dbos'; there are intact-sqlite/calls-js"
expect 2 "$root/run" peers --rounds many
says "--rounds wants a number above 0, and not 'many'"
expect 0 "$root/bench/peers/run" --help
says "usage: bench/peers/run"

# Without npm; with an npm that does not reach its registry.
export PEERS_HOME=$work/home
mkdir "$work/bin"
for program in bash dirname mkdir cmp cp node; do ln -s "$(command -v $program)" "$work/bin/$program"; done
expect 1 env PATH="$work/bin" "$root/bench/peers/run" restate
says "peers: npm is needed to install the peers"
rm "$work/bin/node"
expect 1 env PATH="$work/bin" "$root/bench/peers/run" intact-sqlite
says "peers: Node.js (20 or later) is needed"
expect 1 env npm_config_registry=http://127.0.0.1:9/ npm_config_fetch_retries=0 npm_config_cache="$work/cache" npm_config_offline=false \
    "$root/bench/peers/run" restate
says "peers: npm could not install the peers. Its registry"

# A real measurement, of few tasks: each figure is there and above nothing, and nothing is left behind.
export PEERS_BUILD=$build TMPDIR=$work/tmp
mkdir "$TMPDIR"
for mode in calls calls-singly; do
    expect 0 "$root/bench/peers/run" intact-sqlite/$mode --tasks 100 --one 5 --idle 1
    jq -e --arg mode $mode '.peer == "intact-sqlite" and .mode == $mode and .tasks == 100 and ([.tasks_per_s, .p50_ms, .p99_ms,
        .server_cpu_s_per_1000, .rss_mib, .idle_mib] | all(. > 0)) and .p50_ms <= .p99_ms and .idle_mib <= .rss_mib' "$work/out" >/dev/null ||
        fail "figures of $mode"
done
expect 2 "$root/bench/peers/run" intact-sqlite/inside
says "intact-sqlite has no mode inside; it has calls, calls-singly"
expect 2 "$root/bench/peers/run" intact-sqlite --set place=1
says "intact-sqlite/calls has no setting place; it has places, lines, tasks"
expect 2 "$root/bench/peers/run" intact-sqlite --killed
says "--killed is for restate and calls-js of Intact"
[ -z "$(ls "$TMPDIR")" ] || fail "it leaves behind $(ls "$TMPDIR")"
