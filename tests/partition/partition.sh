#!/usr/bin/env bash
# Three nodes over a PostgreSQL database and six agents, each on a host of its own (a network namespace), and trouble in
# the network between them. After each case the agents' ledgers and the tasks must agree, and what was accepted must
# have ended. Usage: partition.sh ROOT BUILD [CASE...] [--rounds N] [--seed N] [--short]
# The cases are the functions trouble_CASE in cases.sh.
set -eu
root=$(realpath "$1")
build=$(realpath "$2")
. "$root/tests/partition/net.sh"
net_enter "$0" "$@"
shift 2

rounds=1
seed=$(($(date +%s) % 100000 + $$))
size=long
cases=
while [ $# -gt 0 ]; do
    case $1 in
    --rounds) rounds=$2; shift ;;
    --seed) seed=$2; shift ;;
    --short) size=short size_flag=' --short' ;;
    *) cases="$cases $1" ;;
    esac
    shift
done
RANDOM=$seed
work=$(mktemp -d "${TMPDIR:-/tmp}/intact-partition.XXXXXX")
. "$root/tools/installation.sh"
at_net=$(declare -f at)
. "$root/tools/cluster.sh"
eval "$at_net" # as the network has it
. "$root/tests/partition/cases.sh"
good=
round=0
kind=start

finish() {
    if [ -n "$good" ]; then
        # Whoever still writes there: all others of this process namespace, the first process of which we are.
        if [ $$ = 1 ]; then
            { kill -KILL -- -1 && wait; } 2>/dev/null || true
        fi
        rm -rf "$work"
    else
        echo "partition: $kind failed; again: tests/partition/partition.sh . $build $kind --seed $seed${size_flag:-}" >&2
        echo "partition: what is left of it: $work" >&2
    fi
}
trap finish EXIT
trap 'exit 130' INT TERM

fail() {
    echo "$kind, round $round: $*" >&2
    exit 1
}

long() { [ "$size" = long ]; }
nap() { sleep "0.$(printf %03d $((RANDOM % 900)))"; }

# Only what fails waits so long. Usage: wait_until WHAT COMMAND...
wait_until() {
    local end=$((SECONDS + ${INTACT_PATIENCE:-300})) what=$1
    shift
    until "$@"; do
        [ "$SECONDS" -lt "$end" ] || fail "waited for ever until $what"
        [ ! -e "$work/refused" ] || fail "$(cat "$work/refused")"
        sleep 0.05
    done
}

# ---- the installation ----

nodes=(n1 n2 n3)
agents=(stock-1 stock-2 payment-1 payment-2 shipping-1 shipping-2)

make_hosts() {
    local i
    net_up
    host_add database 10
    host_add wan 20 # links that delay lead through it
    host_add client 30
    for i in 1 2 3; do host_add "n$i" $((10 + i)); done
    for i in "${!agents[@]}"; do host_add "${agents[i]}" $((40 + i)); done
}

# What leads to whom: straight, or through the links that delay. Read at each start of a node or agent.
route() { # straight|wan
    local i host=database
    [ "$1" = straight ] || host=wan
    echo "host=$(address_of $host) port=5432 user=intact dbname=postgres" >"$work/store"
    for i in 1 2 3; do
        host=n$i
        [ "$1" = straight ] || host=wan
        echo "http://$(address_of $host):742$i" >"$work/url-n$i"
    done
    cat "$work"/url-n? | paste -sd, >"$work/urls"
}

# What partition-delay reads, for the way to the nodes or to the database. Usage: plan nodes|database [LINE...]
plan() {
    local where=$1
    shift
    printf '%s\n' "$@" >"$work/plan.new"
    mv "$work/plan.new" "$work/plan-$where"
}

start_wan() {
    local i delay=$build/tests/partition/partition-delay
    plan nodes
    plan database
    keep wan-database at wan "$delay" --listen "$(address_of wan):5432" --to "$(address_of database):5432" \
        --plan "$work/plan-database" --seed "$seed"
    for i in 1 2 3; do
        keep "wan-n$i" at wan "$delay" --listen "$(address_of wan):742$i" --to "$(address_of "n$i"):742$i" \
            --plan "$work/plan-nodes" --seed "$seed$i"
    done
}

# A proxy that would end TLS is not there: the network is ours alone.
run_node() { # NUMBER
    local n=$1
    INTACT_STORE=$(cat "$work/store") at "n$n" "$server_bin" serve --data "$work/data-n$n" --node "n$n" \
        --listen "$(address_of "n$n"):742$n" --behind-proxy --host "$(address_of wan)" \
        --advertise "$(cat "$work/url-n$n")" --scan-every 500ms --grace 2s
}

run_agent() { # NAME OPTIONS...
    local name=$1 kind=${1%-*}
    shift
    at "$name" "$build/examples/order/order-$kind" --server "$(cat "$work/urls")" --instance "$name" \
        --ledger "$work/$kind.db" "$@"
}

start_agents() {
    local name
    for name in "${agents[@]}"; do
        keep "$name" run_agent "$name" --delay 20 --fail 20 --seed $RANDOM
    done
}

status_of() { # NODE PATH
    (at client curl -s -m 5 -o /dev/null -w '%{http_code}' -H "Authorization: Bearer $INTACT_TOKEN" \
        "http://$(address_of "$1"):742${1#n}$2") || true
}
is_ready() { [ "$(status_of "$1" /readyz)" = 200 ]; }
all_ready() {
    local n
    for n in "${nodes[@]}"; do is_ready "$n" || return 1; done
}

pid_of() { cat "$work/$1.pid"; }
pids_of_nodes() { echo "$(pid_of n1) $(pid_of n2) $(pid_of n3)"; }

start_all() {
    make_hosts
    route straight
    start_wan
    make_database "host all all 10.77.0.0/24 trust"
    start_database -c "listen_addresses=$(address_of database)" -c fsync=off
    keep n1 run_node 1
    wait_until "n1 is ready" is_ready n1
    INTACT_TOKEN=$(cat "$work/data-n1/admin-token")
    for n in 2 3; do # they have the token that the first one made
        mkdir -m 700 "$work/data-n$n"
        cp "$work/data-n1/admin-token" "$work/data-n$n"
        keep "n$n" run_node "$n"
    done
    wait_until "all nodes are ready" all_ready
    (INTACT_SERVER=$(cat "$work/url-n1") at client "$server_bin" workflow put "$root/examples/order/order.yaml") >/dev/null
    for n in 2 3; do # which of them read the workflows at their start only
        strike n$n
    done
    wait_until "all nodes are ready" all_ready
    start_agents
    watch_leases &
}

# Who led under which epoch, looked at ten times a second.
watch_leases() {
    while :; do
        sql "SELECT epoch, holder FROM lease WHERE name = 'supervisor'" 2>/dev/null >>"$work/leases" || true
        sleep 0.1
    done
}

# ---- the load ----

# Sends one order until some node has accepted it; a node that does not answer is left for another. Usage: ID LINE
submit_order() {
    local n status
    for ((;;)); do
        n=$((1 + RANDOM % 3))
        [ -z "$only" ] || n=${only#n}
        status=$( (at client curl -s -m $answer_within -o "$work/answer" -w '%{http_code}' \
            -H "Authorization: Bearer $INTACT_TOKEN" -H 'Content-Type: application/json' -d "$2" \
            "$(cat "$work/url-n$n")/v1/tasks") || true)
        case $status in
        20?)
            echo "$1" >>"$work/accepted"
            return
            ;;
        000 | 5?? | 429) sleep 0.05 ;;
        *)
            echo "$1 was answered $status: $(cat "$work/answer")" >"$work/refused"
            return
            ;;
        esac
    done
}

# Orders come in, one after the other, until load_end. Usage: load_begin [NODE]
load_begin() {
    only=${1:-}
    rm -f "$work/enough"
    part_number=$((part_number + 1))
    orders "r$round-$kind-$part_number" 2000 >"$work/orders"
    (
        RANDOM=$((seed + part_number))
        sent=0
        while read -r line; do
            [ ! -e "$work/enough" ] || [ "$sent" -lt 20 ] || break
            sent=$((sent + 1))
            submit_order "r$round-$kind-$part_number-$sent" "$line"
        done <"$work/orders"
    ) &
    submitter=$!
}
part_number=0
answer_within=3 # seconds, before another node is asked

load_end() {
    touch "$work/enough"
    wait $submitter
}

accepted() { wc -l <"$work/accepted"; }
has_accepted() { [ "$(accepted)" -ge "$1" ]; }

# ---- what must be ----

all_ended() { [ "$(open_tasks 2>/dev/null)" = 0 ]; }

# Descriptors of a node: those of its agents, and what it always has.
descriptors() { find "/proc/$(pid_of "$1")/fd" -mindepth 1 2>/dev/null | wc -l; }
none_leaks() {
    local n
    for n in "${nodes[@]}"; do
        [ "$(descriptors "$n")" -le "$1" ] || return 1
    done
}

check_accepted() {
    local lost
    sql "SELECT id FROM task WHERE state IN ('processed', 'compensated', 'error')" | sort >"$work/ended"
    lost=$(sort "$work/accepted" | comm -23 - "$work/ended" | head -n 3)
    [ -z "$lost" ] || fail "accepted, and lost: $lost"
    [ ! -e "$work/refused" ] || fail "$(cat "$work/refused")"
    # That of one cause: an agent that was not heard in time is asked again, for long enough here.
    [ "$(sql "SELECT count(*) FROM task WHERE state = 'error'")" = 0 ] || fail "tasks ended in error"
}

check_round() {
    net_mend
    wait_until "all nodes are ready" all_ready
    wait_until "all tasks have ended" all_ended
    check_accepted
    reconcile >"$work/reconcile.out" || fail "$(cat "$work/reconcile.out")"
    [ "$(sort -u "$work/leases" | cut -d'|' -f1 | uniq -d)" = "" ] || fail "two led under one epoch: $work/leases"
    ! grep -hE "assertion failed|AddressSanitizer|LeakSanitizer|runtime error|ThreadSanitizer" "$work"/*.log >&2 ||
        fail "see above"
    wait_until "connections that broke are closed" none_leaks 50
}

tell_round() {
    local states
    states=$(sql "SELECT string_agg(n, ', ')
        FROM (SELECT state || ' ' || count(*) AS n FROM task GROUP BY state ORDER BY 1) AS s")
    echo "$kind, round $round: $states${note:+; $note} (${SECONDS}s)"
}

touch "$work/accepted"
echo "partition: seed $seed"
start_all
for round in $(seq "$rounds"); do
    for kind in ${cases:-$all_cases}; do
        declare -F "trouble_$kind" >/dev/null || fail "there is no such case"
        note=
        "trouble_$kind"
        check_round
        tell_round
    done
done
good=1
