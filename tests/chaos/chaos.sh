#!/usr/bin/env bash
# Real processes on a real disk, and one kind of trouble: after each round the agents' ledgers and the
# tasks must agree. Usage: chaos.sh ROOT BUILD KIND [ROUNDS] [SEED] [short]
# The kinds are the functions trouble_KIND in kinds.sh.
set -eu
root=$1
build=$2
kind=$3
rounds=${4:-1}
seed=${5:-$((SECONDS + $$))}
size=${6:-long}
RANDOM=$seed
work=$(mktemp -d "${TMPDIR:-/tmp}/intact-chaos.XXXXXX")
. "$root/tools/installation.sh"
. "$root/tests/chaos/kinds.sh"
declare -F "trouble_$kind" >/dev/null || {
    echo "chaos: there is no kind \"$kind\"" >&2
    exit 2
}
program=$server_bin
count=$([ "$size" = short ] && echo 60 || echo 150)
good=

finish() {
    touch "$work/over" # for submitters that still ask
    retire_all KILL
    wait
    if [ -e "$work/mounted" ]; then
        [ -n "$good" ] || cp -r "$work/data" "$work/data.kept"
        umount -l "$work/data"
    fi
    if [ -n "$good" ]; then
        rm -rf "$work"
    else
        echo "chaos: $kind failed; again: ./run chaos $kind --seed $seed --rounds $rounds" >&2
        echo "chaos: what is left of it: $work" >&2
    fi
}
trap finish EXIT
trap 'exit 130' INT TERM

fail() {
    echo "$kind, round $round: $*" >&2
    exit 1
}

# The submitter asks again until it is told: what is accepted twice is one task. Usage: FILE LINES
submit_orders() {
    local part
    rm -f "$1".part.*
    split -l "$2" "$1" "$1.part."
    for part in "$1".part.*; do
        until "$program" submit --retry-for 1s -f "$part" >/dev/null 2>&1; do
            [ ! -e "$work/over" ] || return 0
            sleep 0.05
        done
    done
}

# All orders, by as many at once as the kind says (submitters).
submit_all() {
    local share
    rm -f "$work"/orders-??
    split -n "l/${submitters:-1}" "$work/orders" "$work/orders-"
    for share in "$work"/orders-??; do
        submit_orders "$share" "${lines:-$count}" &
    done
    wait
}

# Only what fails waits so long. Usage: wait_until WHAT COMMAND...
wait_until() {
    local end=$((SECONDS + 300)) what=$1
    shift
    until "$@"; do
        [ "$SECONDS" -lt "$end" ] || fail "waited for ever until $what"
        sleep 0.05
    done
}

all_ended() { [ "$(open_tasks 2>/dev/null)" = 0 ]; }
is_ready() { curl -fs -m 20 -o /dev/null "$INTACT_SERVER/readyz"; }
is_troubled() { [ "$(curl -s -m 20 -o /dev/null -w '%{http_code}' "$INTACT_SERVER/readyz")" = 503 ]; }

# All that was submitted is there, has ended, and is what the ledgers say.
check_round() {
    wait_until "the server is ready" is_ready
    wait_until "all tasks have ended" all_ended
    [ "$(sql "SELECT count(*) FROM task WHERE id LIKE 'r$round-%'")" = "$count" ] ||
        fail "tasks are missing"
    [ "$(sql 'PRAGMA integrity_check')" = ok ] || fail "the database is damaged"
    reconcile >"$work/reconcile.out" || fail "$(cat "$work/reconcile.out")"
    ! grep -hE "assertion failed|AddressSanitizer|runtime error|ThreadSanitizer" "$work"/*.log >&2 ||
        fail "see above"
}

tell_round() {
    local states
    states=$(sql "SELECT group_concat(n, ', ')
        FROM (SELECT state || ' ' || count(*) AS n FROM task GROUP BY state)")
    echo "$kind, round $round: $states${note:+; $note}"
}

prepare_"$kind"
wait_ready
"$program" workflow put "${definition:-$root/examples/order/order.yaml}" >/dev/null
start_agents
for round in $(seq "$rounds"); do
    note=
    orders "r$round" "$count" >"$work/orders"
    submit_all &
    submitter=$!
    "trouble_$kind"
    wait $submitter
    check_round
    "after_$kind"
    tell_round
done
good=1
