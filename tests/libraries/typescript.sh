#!/usr/bin/env bash
# The TypeScript package: compiled strictly, packed, installed into a fresh folder, its own tests run there, with a real
# server. Usage: typescript.sh ROOT INTACT [NODE]      NODE: 18, 20 or 22; the one in PATH if it is not given
set -eu
root=$1 intact=$(realpath "$2")
node=node
[ $# -lt 3 ] || node=$("$root/tests/libraries/nodes/get" "$3")
work=$(mktemp -d)
server=
finish() {
    [ -z "$server" ] || kill -KILL "$server" 2>/dev/null || true
    wait
    rm -rf "$work"
}
trap finish EXIT
unset INTACT_SERVER INTACT_TOKEN INTACT_CA NOTIFY_SOCKET WATCHDOG_USEC
! grep -n '"resolved"' "$root/lib/typescript/package-lock.json" || {
    echo "package-lock.json names hosts: make it with npm --omit-lockfile-registry-resolved" >&2
    exit 1
}
"$root/lib/typescript/try" "$work/app" >/dev/null
cd "$work/app"
# Not one of those that the kernel gives to outgoing connections.
port=$((2048 + $$ % 20000))
start_server() { # false: the port is taken
    "$intact" serve --data "$work/data" --listen "127.0.0.1:$port" --log warn >"$work/ready" 2>"$work/server.log" &
    server=$!
    until [ -s "$work/ready" ]; do
        kill -0 $server 2>/dev/null || return 1
        sleep 0.05
    done
}
until start_server; do
    grep -q 'in use' "$work/server.log" || { cat "$work/server.log" >&2; exit 1; }
    port=$((port + 1))
done
export INTACT_SERVER=http://127.0.0.1:$port
until INTACT_TOKEN=$(cat "$work/data/admin-token" 2>/dev/null) && [ -n "$INTACT_TOKEN" ]; do sleep 0.05; done
export INTACT_TOKEN
"$node" --version
DRIVERS=$root/build/typescript "$node" --test units.test.mjs client.test.mjs gathering.test.mjs require.test.cjs
# intact-client/testing starts servers of its own.
cp "$root/examples/testing/trial.test.mjs" "$root/examples/testing/trial.yaml" .
INTACT_PROGRAM=$intact "$node" --test trial.test.mjs testing.test.mjs
