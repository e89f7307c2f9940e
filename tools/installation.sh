# A whole installation for demo and crash tests: a server and agents of the order example in $work, each
# restarted when it dies, as systemd would. To be sourced with $build (folder of the build) and $work set.
# shellcheck shell=bash

server_bin=$build/src/cli/intact
export INTACT_SERVER= INTACT_TOKEN= no_proxy='*'

# Keeps a program running until its stop file appears. Usage: keep NAME COMMAND...
keep() {
    local name=$1
    shift
    rm -f "$work/$name.stop"
    (
        trap '' INT
        while [ ! -e "$work/$name.stop" ]; do
            "$@" >>"$work/$name.out" 2>>"$work/$name.log" &
            echo $! >"$work/$name.pid"
            wait $! 2>/dev/null || true
            [ -e "$work/$name.stop" ] || sleep 0.1
        done
    ) 2>/dev/null &
    echo $! >"$work/$name.keeper"
}

# Kills it with SIGKILL; its keeper starts it again. Usage: strike NAME
strike() {
    kill -KILL "$(cat "$work/$1.pid")" 2>/dev/null || true
}

# Ends it for good. Usage: retire NAME [SIGNAL]
retire() {
    local keeper pid told=
    keeper=$(cat "$work/$1.keeper" 2>/dev/null || true)
    touch "$work/$1.stop"
    # Its keeper may be starting it again at this very moment: each one it starts is told, once.
    while kill -0 "$keeper" 2>/dev/null; do
        pid=$(cat "$work/$1.pid" 2>/dev/null || true)
        [ "$pid" = "$told" ] || kill "-${2:-TERM}" "$pid" 2>/dev/null || true
        told=$pid
        sleep 0.02
    done
    wait "$keeper" 2>/dev/null || true
}

retire_all() {
    local pid
    for pid in "$work"/*.pid; do
        [ -e "$pid" ] && retire "$(basename "$pid" .pid)" "${1:-TERM}"
    done
    return 0
}

# Below the ports that the kernel gives to outgoing connections: one of those could take the port of a
# server that is down for a moment.
free_port() {
    local port lowest
    lowest=$(cut -f1 /proc/sys/net/ipv4/ip_local_port_range)
    [ "$lowest" -gt 4096 ] || lowest=32768
    while :; do
        port=$((2048 + (RANDOM * 32768 + RANDOM) % (lowest - 2048)))
        (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || break
    done
    echo "$port"
}

# Usage: start_server [OPTIONS...]
start_server() {
    [ -e "$work/port" ] || free_port >"$work/port"
    export INTACT_SERVER=http://127.0.0.1:$(cat "$work/port")
    keep server "$server_bin" serve --data "$work/data" --listen "127.0.0.1:$(cat "$work/port")" "$@"
}

# Agents and clients that are started afterwards are let in as the admin.
wait_ready() {
    local end=$((SECONDS + 300))
    while [ "$SECONDS" -lt "$end" ]; do
        if curl -fs -o /dev/null "$INTACT_SERVER/readyz"; then
            INTACT_TOKEN=$(cat "$work/data/admin-token")
            return 0
        fi
        sleep 0.05
    done
    echo "the server did not become ready:" >&2
    tail -n 5 "$work/server.log" >&2
    return 1
}

# Usage: start_agent KIND NUMBER [OPTIONS...]; all instances of a kind share a ledger
start_agent() {
    local kind=$1 number=$2
    shift 2
    keep "$kind-$number" "$build/examples/order/order-$kind" --server "$INTACT_SERVER" \
        --instance "$kind-$number" --ledger "$work/$kind.db" "$@"
}

sql() {
    sqlite3 -readonly -cmd '.timeout 60000' "$work/data/intact.db" "$1"
}

# How many tasks have not ended yet (error is an end too).
open_tasks() {
    sql "SELECT count(*) FROM task WHERE state NOT IN ('processed', 'compensated', 'error')"
}

# Orders as lines of NDJSON. Usage: orders PREFIX COUNT
orders() {
    awk -v prefix="$1" -v count="$2" 'BEGIN {
        for (i = 1; i <= count; i++) {
            card = i % 9 == 0 ? "declined" : "visa-" i
            sku = i % 11 == 0 ? "rarity" : i % 2 ? "widget" : "gadget"
            printf "{\"workflow\":\"order\",\"id\":\"%s-%d\",\"priority\":%d,\"input\":", prefix, i, i % 10
            printf "{\"sku\":\"%s\",\"quantity\":%d,\"amount\":%d,\"card\":\"%s\"}}\n", sku, 1 + i % 3, i % 13 ? 10 * i : 0, card
        }
    }'
}

reconcile() {
    "$build/examples/order/intact-reconcile" "$@" "$work/data/intact.db" \
        "$work/stock.db" "$work/payment.db" "$work/shipping.db"
}
