#!/usr/bin/env bash
# The TypeScript package: compiled strictly, packed, installed into a fresh folder, its own tests run there, with a real
# server; its example is checked by the compiler as a user's program is. Usage: typescript.sh ROOT INTACT
set -eu
root=$1 intact=$(realpath "$2")
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
built=$root/build/typescript
for example in "$root"/examples/typescript/*.mts; do
    cp "$example" .
    "$built/node_modules/.bin/tsc" --strict --noEmit --target es2022 --module nodenext --types node \
        --typeRoots "$built/node_modules/@types" "${example##*/}"
done
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
DRIVERS=$built node --test units.test.mjs client.test.mjs
