#!/usr/bin/env bash
# Real processes, real disk, random kills: after each round the agents' ledgers and the tasks must
# agree. Usage: crash.sh ROOT BUILD [ROUNDS] [SEED] [KIND]
# Kinds: any (one of them at a time), server (five times a second), agents (all at once),
# submission (the server, while orders come in), pause (nobody is killed, some are stopped for a while).
set -eu
root=$1
build=$2
rounds=${3:-3}
seed=${4:-$((SECONDS + $$))}
RANDOM=$seed
kind=${5:-any}
work=$(mktemp -d "${TMPDIR:-/tmp}/intact-crash.XXXXXX")
. "$root/tools/installation.sh"
good=
finish() {
    retire_all KILL
    if [ -n "$good" ]; then
        rm -rf "$work"
    else
        echo "seed $seed, kind $kind; what is left of it: $work" >&2
    fi
}
trap finish EXIT

start_server --scan-every 200ms --grace 1s
wait_ready
"$server_bin" workflow put "$root/examples/order/order.json" >/dev/null
for n in 1 2; do
    start_agent stock $n --delay 5 --fail 40 --hang 5 --crash-before 4 --crash-after 4 --seed $RANDOM
    start_agent payment $n --delay 5 --fail 40 --late 5 --crash-before 4 --crash-after 4 --seed $RANDOM
    start_agent shipping $n --delay 5 --fail 40 --hang 5 --crash-before 4 --crash-after 4 --seed $RANDOM
done
names=(server server stock-1 stock-2 payment-1 payment-2 shipping-1 shipping-2)

kill_some() {
    local kill name
    case $kind in
    any)
        for kill in $(seq 8); do
            sleep "0.$((RANDOM % 9))"
            strike "${names[RANDOM % ${#names[@]}]}"
        done
        ;;
    server)
        for kill in $(seq 20); do
            sleep 0.2
            strike server
        done
        ;;
    agents)
        for kill in $(seq 6); do
            sleep "0.$((RANDOM % 9))"
            for name in "${names[@]:2}"; do strike "$name"; done
        done
        ;;
    pause)
        for kill in $(seq 3); do
            name=${names[RANDOM % ${#names[@]}]}
            kill -STOP "$(cat "$work/$name.pid")" 2>/dev/null || true
            sleep 1.5
            kill -CONT "$(cat "$work/$name.pid")" 2>/dev/null || true
        done
        ;;
    submission)
        for kill in $(seq 12); do
            sleep "0.$(printf %03d $((100 + RANDOM % 100)))"
            strike server
        done
        ;;
    *)
        echo "there is no kind \"$kind\"" >&2
        exit 2
        ;;
    esac
}

# The submitter asks again until it is told: what is accepted twice is one task.
submit_orders() { # FILE
    local part
    rm -f "$work"/part.*
    if [ "$kind" = submission ]; then
        split -l 5 "$1" "$work/part."
    else
        cp "$1" "$work/part.all"
    fi
    for part in "$work"/part.*; do
        until "$server_bin" submit -f "$part" >/dev/null 2>&1; do sleep 0.05; done
    done
}

for round in $(seq "$rounds"); do
    orders "r$round" 150 >"$work/orders"
    submit_orders "$work/orders" &
    submitter=$!
    kill_some
    wait $submitter
    wait_ready
    for i in $(seq 600); do
        [ "$(open_tasks)" = 0 ] && break
        sleep 0.1
    done
    [ "$(sql "SELECT count(*) FROM task WHERE id LIKE 'r$round-%'")" = 150 ] || {
        echo "round $round: tasks are missing" >&2
        exit 1
    }
    reconcile >"$work/reconcile.out" || {
        cat "$work/reconcile.out" >&2
        exit 1
    }
    echo "round $round: $(sql "SELECT group_concat(n, ', ') FROM (SELECT state || ' ' || count(*) AS n FROM task GROUP BY state)")"
done
grep -E "assertion failed|AddressSanitizer|runtime error|ThreadSanitizer" "$work"/*.log >&2 && exit 1
good=1
