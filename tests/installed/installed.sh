#!/usr/bin/env bash
# Installs into a folder, as a package would, compiles the examples against what is there, as C11 and as C++17,
# and runs them with the server of that folder.
# Usage: installed.sh ROOT BUILD SANITIZERS (as meson names them)
set -eu
tests=$(cd "$(dirname "$0")/.." && pwd)
root=$1 build=$2 sanitize=$3
work=$(mktemp -d)
pids=()
finish() {
    [ ${#pids[@]} = 0 ] || kill -KILL "${pids[@]}" 2>/dev/null || true
    wait
    rm -rf "$work"
}
trap finish EXIT
fail() {
    echo "not so: $1" >&2
    cat "$work"/*.log >&2 || true
    exit 1
}

meson install -C "$build" --no-rebuild --quiet --destdir "$work/dest" >"$work/install.log" 2>&1 || fail "it installs"
pc=$(find "$work/dest" -name libintact.pc)
lib=$(dirname "$(dirname "$pc")")
export PKG_CONFIG_PATH=${pc%/*} PKG_CONFIG_SYSROOT_DIR=$work/dest LD_LIBRARY_PATH=$lib
intact=$(find "$work/dest" -type f -path '*/bin/intact')
[ "$(cd "$lib" && echo libintact.so.0.*)" != 'libintact.so.0.*' ] || fail "libintact.so.0 is there"
[ "$(readlink "$lib/libintact.so")" = libintact.so.0 ] || fail "libintact.so is for linking with"

san=()
[ "$sanitize" = none ] || san=("-fsanitize=$sanitize")
strict=(-O1 -Wall -Wextra -Wpedantic -Werror)
mkdir "$work/c" "$work/cpp" "$work/src"
cp "$root"/examples/installed/* "$root"/examples/loops/* "$work/src" # nothing else of the tree is in reach
cd "$work/src"
compile() { # PROGRAM PACKAGE...
    local program=$1 flags
    shift
    flags=$(pkg-config --cflags --libs "$@")
    # shellcheck disable=SC2086 # flags are words
    {
        ${CC:-cc} -std=c11 "${strict[@]}" "${san[@]}" -o "$work/c/$program" "$program.c" $flags &&
        ${CXX:-c++} -std=c++17 "${strict[@]}" "${san[@]}" -o "$work/cpp/$program" -x c++ "$program.c" -x none $flags
    } 2>"$work/compile.log" || fail "$program compiles"
}
compile greeter libintact
compile submit intact
compile pages libintact
compile approval libintact
compile decide intact
compile many_tasks intact
compile poll_agent intact
compile uv_agent intact libuv

# shellcheck source=tests/server.sh
. "$tests/server.sh"
"$intact" workflow put greeting.json >/dev/null || fail "a workflow is stored"
"$intact" workflow put pages.json >/dev/null || fail "a workflow is stored"
"$intact" workflow put approval.json >/dev/null || fail "a workflow is stored"
"$intact" workflow put alarm.json >/dev/null || fail "a workflow is stored"

play() { # FOLDER AGENT CLIENT ARGUMENTS...: runs the agent and the client; the agent must end well
    local at=$work/$1 agent=$2 client=$3 pid
    shift 3
    "$at/$agent" 2>"$work/$agent.log" &
    pid=$!
    pids+=("$pid")
    "$at/$client" "$@" >"$work/answer.log" 2>&1 || fail "$client ends well"
    kill -TERM "$pid"
    wait "$pid" || fail "$agent ends well"
    grep -q 'event=stopped undelivered=0' "$work/$agent.log" || fail "$agent delivers all"
}
approve() { # FOLDER: two tasks wait for a person when their agent has gone
    local at=$work/$1 pid task
    mkdir -p "$work/asked"
    "$at/approval" "$work/asked" 2>"$work/approval.log" &
    pid=$!
    pids+=("$pid")
    for task in "$1-yes" "$1-no"; do
        "$intact" submit approval --id "$task" --input '"a car"' >/dev/null || fail "it is submitted"
        until "$intact" get "$task" --json | grep -q '"elsewhere":true'; do sleep 0.05; done
    done
    kill -TERM "$pid"
    wait "$pid" || fail "approval ends well"
    for task in "$1-yes" "$1-no"; do # the token there, and no other
        INTACT_TOKEN='' "$at/decide" "$(head -n 1 "$work/asked/$task")" "${task#*-}" >"$work/answer.log" 2>&1 ||
            fail "it is decided"
        grep -q '"accepted"' "$work/answer.log" || fail "the decision is taken"
    done
    [ "$("$intact" get "$1-yes" --json --wait 3m | grep -c '"state":"processed"')" = 1 ] || fail "yes is processed"
    "$intact" get "$1-no" --json | grep -q '"code":"refused"' || fail "no is refused"
}
for language in c cpp; do
    play $language greeter submit greeting '{"name": "you"}'
    grep -q '"hello"' "$work/answer.log" || fail "it greets"
    play $language pages submit pages 6
    grep -q '"begun_at": *3' "$work/answer.log" || fail "the second attempt goes on where the first one was"
    approve $language
    for agent in poll_agent uv_agent; do
        play $language $agent many_tasks alarm '{"ms": 100}' 200
        grep -q '^200 of 200 processed' "$work/answer.log" || fail "all alarms ring"
    done
done
kill -TERM "$server"
wait "$server" || fail "the server ends well"
