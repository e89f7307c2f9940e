#!/usr/bin/env bash
# The bank of examples/barrier under load: two of its processes are killed again and again, the database now and then, until
# every task has ended; then the books have to agree: what the server says of each task with the entries, the entries with the
# balances, and the entries with what is on record. Usage: bank.sh ROOT INTACT BANK
set -eu
tests=$(cd "$(dirname "$0")/.." && pwd)
root=$1 intact=$2 bank=$3
# shellcheck source=tools/database.sh
. "$root/tools/database.sh"
[ -n "$database_programs" ] || { echo "there is no PostgreSQL server; tools/setup test installs it"; exit 77; }
work=$(mktemp -d /tmp/intact-bank-XXXXXX)
chmod 755 "$work"
pids=()
finish() {
    [ ${#pids[@]} = 0 ] || kill -KILL "${pids[@]}" 2>/dev/null || true
    stop_database "$work/db" immediate
    wait
    rm -rf "$work"
}
trap finish EXIT
fail() {
    echo "not so: $1" >&2
    tail -n 30 "$work"/*.log >&2 || true
    exit 1
}
books() { psql -XqAt "$database" -c "$1"; }

start_database "$work/db" fsync=off dynamic_shared_memory_type=mmap
# shellcheck source=tests/server.sh
. "$tests/server.sh"

agents=()
start_agent() { # NUMBER
    "$bank" "$database" "bank-$1" 2>>"$work/bank-$1.log" &
    agents[$1]=$!
    pids+=("$!")
}
running() { kill -0 "${agents[$1]}" 2>/dev/null; }
start_agent 0
start_agent 1
until books "SELECT count(*) FROM account" >/dev/null 2>&1; do sleep 0.05; done
books "INSERT INTO account SELECT 'a' || n, 1000 FROM generate_series(0, 9) AS n"
"$intact" workflow put "$root/examples/barrier/transfer.yaml" >/dev/null || fail "the workflow is stored"

# One in three asks for more than there is, and goes back. Each goes over an account of its own neighbours: they meet.
tasks=90
for n in $(seq $tasks); do
    fee=1
    [ $((n % 3)) != 0 ] || fee=5000
    echo "{\"workflow\": \"transfer\", \"id\": \"t-$n\", \"input\": {\"from\": \"a$((n % 10))\", \"over\": \"a$(((n + 3) % 10))\", \"to\": \"a$(((n + 7) % 10))\", \"amount\": 2, \"fee\": $fee}}"
done | while read -r task; do
    curl -fsS -o /dev/null -H "Authorization: Bearer $INTACT_TOKEN" -H 'Content-Type: application/json' \
        "$INTACT_SERVER/v1/tasks" -d "$task" || fail "a task is taken"
done &
submitter=$!
ended() { "$intact" list --state processed,compensated,error --all --json | jq -s 'map(.tasks | length) | add'; }

kills=0 crashes=0 round=0
while :; do
    sleep 0.3
    round=$((round + 1))
    if [ $round -le 24 ]; then
        kill -KILL "${agents[round % 2]}" 2>/dev/null && kills=$((kills + 1))
    fi
    if [ $round = 5 ] || [ $round = 11 ]; then # one of its processes; it recovers from that by itself
        books "SELECT pid FROM pg_stat_activity WHERE usename = 'intact' AND pid <> pg_backend_pid() LIMIT 1" |
            xargs -r kill -KILL 2>/dev/null && crashes=$((crashes + 1))
    fi
    if [ $round = 8 ] || [ $round = 16 ]; then # all of its processes at once
        stop_database "$work/db" immediate
        start_database "$work/db" fsync=off dynamic_shared_memory_type=mmap || fail "the database starts again"
        crashes=$((crashes + 1))
    fi
    for i in 0 1; do
        running $i || { wait "${agents[i]}" 2>/dev/null || true; start_agent $i; }
    done
    if [ $round -gt 24 ] && ! kill -0 $submitter 2>/dev/null; then
        [ "$(ended)" != $tasks ] || break
    fi
done
wait $submitter || fail "all tasks are taken"

state() { curl -fsS -H "Authorization: Bearer $INTACT_TOKEN" "$INTACT_SERVER/v1/tasks/$1" | jq -r .state; }
processed=0 compensated=0
for n in $(seq $tasks); do
    case $(state "t-$n") in
    processed) want=2/0 processed=$((processed + 1)) ;;
    compensated) want=0/0 compensated=$((compensated + 1)) ;;
    *) fail "t-$n ends whole or not at all" ;;
    esac
    stands=$(books "SELECT count(*) FILTER (WHERE key NOT LIKE '%/undo') - count(*) FILTER (WHERE key LIKE '%/undo') || '/' ||
        count(*) FILTER (WHERE key LIKE '%/undo' AND NOT EXISTS (SELECT FROM entry f WHERE f.key || '/undo' = e.key))
        FROM entry AS e WHERE key LIKE 't-$n/%'")
    [ "$stands" = "$want" ] || fail "t-$n: $stands transfers stand, not $want"
done
[ $processed -gt 0 ] || fail "some get through"
[ $compensated -gt 0 ] || fail "some go back"
[ "$(books "SELECT sum(balance) FROM account")" = 10000 ] || fail "no money is made or lost"
[ "$(books "SELECT count(*) FROM account AS a WHERE balance <> 1000
    + (SELECT coalesce(sum(amount), 0) FROM entry WHERE target = a.name)
    - (SELECT coalesce(sum(amount), 0) FROM entry WHERE source = a.name)")" = 0 ] || fail "balances are the sums of their entries"
[ "$(books "SELECT count(*) FROM intact_barrier AS b WHERE
    (outcome <> 'barred') <> EXISTS (SELECT FROM entry WHERE key = forward_key) OR
    (outcome = 'undone') <> EXISTS (SELECT FROM entry WHERE key = forward_key || '/undo')")" = 0 ] || fail "records and entries agree"
[ "$(books "SELECT count(*) FROM entry WHERE NOT EXISTS (SELECT FROM intact_barrier WHERE forward_key = regexp_replace(key, '/undo$', ''))")" = 0 ] ||
    fail "there is no entry without a record"
for i in 0 1; do
    kill -TERM "${agents[i]}"
    wait "${agents[i]}" || fail "the agent ends well"
done
echo "$processed processed, $compensated compensated; $kills processes killed, the database $crashes times"
