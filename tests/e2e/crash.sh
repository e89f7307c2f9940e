#!/usr/bin/env bash
# Real processes, real disk, random kills: after each round the agents' ledgers and the tasks must
# agree. Usage: crash.sh ROOT BUILD [ROUNDS] [SEED]
set -eu
root=$1
build=$2
rounds=${3:-3}
RANDOM=${4:-$((SECONDS + $$))}
work=$(mktemp -d "${TMPDIR:-/tmp}/intact-crash.XXXXXX")
. "$root/tools/installation.sh"
good=
finish() {
    retire_all KILL
    if [ -n "$good" ]; then
        rm -rf "$work"
    else
        echo "what is left of it: $work" >&2
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

for round in $(seq "$rounds"); do
    # The submitter asks again until it is told: what is accepted twice is one task.
    orders "r$round" 150 >"$work/orders"
    (
        until "$server_bin" submit -f "$work/orders" >/dev/null 2>&1; do sleep 0.1; done
    ) &
    submitter=$!
    for kill in $(seq 8); do
        sleep "0.$((RANDOM % 9))"
        strike "${names[RANDOM % ${#names[@]}]}"
    done
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
