#!/usr/bin/env bash
# Does Prometheus' own checker take what /metrics says, and does docs/metrics.md list just that?
# Usage: metrics.sh ROOT INTACT
set -eu
root=$1
intact=$(realpath "$2")
promtool=$("$root/tools/promtool")
work=$(mktemp -d "${TMPDIR:-/tmp}/intact-metrics.XXXXXX")
export LC_ALL=C no_proxy='*'
trap '[ -z "${server:-}" ] || kill "$server" 2>/dev/null; rm -rf "$work"' EXIT

fail() {
    echo "metrics: $*" >&2
    exit 1
}

flags=
! "$intact" serve --help | grep -q -- '--open' || flags=--open
"$intact" serve --data "$work/data" --listen 127.0.0.1:0 $flags >"$work/ready" 2>"$work/log" &
server=$!
until grep -q listening "$work/ready"; do
    kill -0 "$server" 2>/dev/null || fail "no server: $(cat "$work/log")"
    sleep 0.05
done
url=http://127.0.0.1:$(sed -n 's/^listening on port //p' "$work/ready")

send() { # METHOD PATH BODY
    curl -sS --fail-with-body --max-time 180 -o "$work/answer" -X "$1" -H 'Content-Type: application/json' -d "$3" "$url$2" || fail "$1 $2: $(cat "$work/answer")"
}
scrape() { curl -fsS --max-time 180 -D "$work/head" "$url/metrics" >"$1"; }

check() { # FILE
    "$promtool" check metrics <"$1" >"$work/said" 2>&1 || fail "promtool: $(cat "$work/said")"
    [ ! -s "$work/said" ] || fail "promtool: $(cat "$work/said")"
    grep -v '^#' "$1" | sed 's/ [^ ]*$//' | sort | uniq -d | grep . && fail "samples that are there twice"
    return 0
}

# At the very start, and when there is something of everything.
scrape "$work/first"
check "$work/first"
grep -qi '^content-type: text/plain; version=0.0.4; charset=utf-8' "$work/head" || fail "$(cat "$work/head")"

send PUT /v1/workflows/w '{"intact": 1, "workflow": "w", "steps": [
    {"name": "a", "agent": "other", "action": "x", "undo": "none"}]}'
for i in 1 2 3; do send POST /v1/tasks "{\"workflow\": \"w\", \"id\": \"w-$i\"}"; done
for i in $(seq 130); do
    send POST "/v1/agents/a:$i.-_/work" '{"instance": "i", "max": 1, "wait": "0s"}'
done
send POST /v1/agents/other/work '{"instance": "i", "max": 2, "wait": "2m"}'
token=$(sed 's/.*"token":"\([^"]*\)".*/\1/' "$work/answer")
send POST /v1/agents/other/heartbeats "{\"instance\": \"i\", \"beats\": [{\"token\": \"$token\"}]}"
send POST /v1/agents/other/work "{\"instance\": \"i\", \"max\": 0, \"results\": [{\"token\": \"$token\", \"output\": 1}]}"
curl -s -o /dev/null "$url/nowhere%22%7D%201"
curl -s -o /dev/null "$url/v1/tasks/nobody"
scrape "$work/second"
check "$work/second"

has() { grep -qF -- "$1" "$work/second" || fail "there is no $1: $(cat "$work/second")"; }
has 'intact_tasks_submitted_total 3'
has 'intact_tasks_ended_total{state="processed"} 1'
has 'intact_attempts_total{direction="forward",outcome="completed"} 1'
has 'intact_heartbeats_total{status="accepted"} 1'
has 'intact_http_requests_total{method="POST",route="/v1/agents/*/heartbeats",code="2xx"} 1'
has 'intact_http_requests_total{method="GET",route="/v1/tasks/*",code="4xx"} 1'
has 'intact_http_requests_total{method="any",route="none",code="4xx"} 1'
has 'intact_agent_instances{agent="a:1.-_"} 1'
has 'intact_agent_instances{agent="other"} 31' # 30 beyond the first hundred, and the one of that name
for family in waiting_steps parked_calls instances limited limited_total; do
    count=$(grep -c "^intact_agent_$family{" "$work/second")
    [ "$count" = 101 ] || fail "$count agents in intact_agent_$family, expected 100 and the others"
done

# The document says the same names, and no others; and the same kinds.
sed -n 's/^# TYPE \([a-z_]*\) \([a-z]*\)$/\1 \2/p' "$work/second" | sort >"$work/real"
sed -n 's/^| `\([a-z_]*\)` | \([a-z]*\) |.*/\1 \2/p' "$root/docs/metrics.md" | sort >"$work/told"
diff "$work/real" "$work/told" >"$work/differences" ||
    fail "docs/metrics.md differs from what there is (< is, > told): $(cat "$work/differences")"
