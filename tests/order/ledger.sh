#!/usr/bin/env bash
# Each row of the table in <intact/ledger.h>, with the payment agent of the order example, a real server and real kills:
# an effect and its repeat, an undo and its repeat (each effect's process is killed before it can answer), an undo
# of nothing, and a forward that the undo overtook (its process stands still from before the effect until the undo is
# over). Usage: ledger.sh INTACT PAYMENT
set -eu
tests=$(cd "$(dirname "$0")/.." && pwd)
intact=$1 payment=$2
work=$(mktemp -d)
pids=()
finish() {
    kill -KILL "${pids[@]}" 2>/dev/null || true
    wait
    rm -rf "$work"
}
trap finish EXIT
fail() {
    echo "not so: $1" >&2
    cat "$work"/*.log >&2 || true
    exit 1
}
ledger() { sqlite3 -cmd '.timeout 10000' "$work/bank.db" "$1"; }
record() { curl -fsS -H "Authorization: Bearer $INTACT_TOKEN" "$INTACT_SERVER/v1/tasks/$1"; }
state() { record "$1" | jq -r .state; }

# shellcheck source=tests/server.sh
. "$tests/server.sh"

# Charges one card, then one that the bank does not want: the first charge is undone, once its own time is over.
cat >"$work/two.yaml" <<'YAML'
intact: 1
workflow: two
inputs:
  first: {type: string, required: true}
steps:
  - name: good
    agent: payment
    action: charge
    input: {card: "${ .input.first }", amount: 7}
    complete_by: 10s
    retry: {attempts: 50, wait: 10ms}
    undo: {action: refund, complete_by: 10s, retry: {attempts: 50, wait: 10ms}}
  - name: bad
    agent: payment
    action: charge
    input: {card: declined, amount: 7}
    complete_by: 10s
    retry: {attempts: 50, wait: 10ms}
    undo: {action: refund}
YAML
# One attempt, of two seconds.
cat >"$work/one.yaml" <<'YAML'
intact: 1
workflow: one
steps:
  - name: slow
    agent: payment
    action: charge
    input: {card: x, amount: 9}
    complete_by: 2s
    retry: {attempts: 1}
    undo: {action: refund, complete_by: 10s, retry: {attempts: 50, wait: 10ms}}
YAML
"$intact" workflow put "$work/two.yaml" >/dev/null || fail "a workflow is stored"
"$intact" workflow put "$work/one.yaml" >/dev/null || fail "a workflow is stored"

# Every process that takes an effect dies of it; the next one is asked again and answers from the record.
"$intact" submit two --input '{"first": "card"}' --id repeats >/dev/null || fail "a task is taken"
deaths=0
while [ "$(state repeats)" != compensated ]; do
    "$payment" --ledger "$work/bank.db" --instance killed --crash-after 1000 2>>"$work/killed.log" &
    agent=$!
    pids+=("$agent")
    while kill -0 $agent 2>/dev/null && [ "$(state repeats)" != compensated ]; do sleep 0.05; done
    kill -TERM $agent 2>/dev/null || true
    status=0
    wait $agent || status=$?
    [ $status != 137 ] || deaths=$((deaths + 1))
done
[ "$deaths" = 2 ] || fail "one process died of the charge and one of its refund, not $deaths"
[ "$(ledger "SELECT group_concat(amount) FROM entry WHERE task = 'repeats'")" = 7,-7 ] || fail "each took effect once"
[ "$(ledger "SELECT sum(outcome = 'done') FROM effect WHERE task = 'repeats'")" = 2 ] || fail "both are on record"

# A process stands still between the arrival of a request and its effect, beyond its deadline. The undo comes to
# another one.
"$payment" --ledger "$work/bank.db" --instance still --delay 5000 2>"$work/still.log" &
still=$!
pids+=("$still")
until grep -q event=started "$work/still.log"; do sleep 0.05; done
"$intact" submit one --input '{}' --id overtaken >/dev/null || fail "a task is taken"
until record overtaken | grep -q '"instance": *"still"'; do sleep 0.05; done
sleep 0.1 # it has its answer by now, or never gets it: both must do
kill -STOP $still
"$payment" --ledger "$work/bank.db" --instance other 2>"$work/other.log" &
other=$!
pids+=("$other")
until [ "$(state overtaken)" = compensated ]; do sleep 0.05; done
kill -CONT $still
[ "$(ledger "SELECT group_concat(outcome) FROM (SELECT * FROM effect WHERE task = 'overtaken' ORDER BY direction)")" = barred,nothing ] ||
    fail "the undo left its tombstone"
kill -TERM $still $other
wait $still || fail "it ends well"
wait $other || fail "it ends well"
[ "$(ledger "SELECT count(*) FROM entry WHERE task = 'overtaken'")" = 0 ] || fail "it never took effect"
