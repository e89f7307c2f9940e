#!/usr/bin/env bash
# An agent for Intact in shell, curl and jq. It fetches requests, one at a time, and runs a program for each:
#
#     agent.sh AGENT INSTANCE RECORD HANDLER
#
#   INSTANCE  unique among the agent's processes, the same after a restart
#   RECORD    folder that remembers what was begun, done and undone; all processes of the agent share it
#   HANDLER   gets the request as JSON on standard input (see docs/agents.md) and writes its output as JSON.
#             Exit status 0: done. 1: refused, nothing happened. 2: may be tried again, nothing happened.
#             Anything else: may be tried again, and may have happened. What it writes to standard error is
#             the error's message. At the deadline it is killed, and nothing is answered.
#
# A handler that is killed half-way is asked again, with the same .idempotency_key: it has to see to it that its
# effect is there once, as letters.sh does by the name of a file. INTACT_SERVER and INTACT_TOKEN as for all
# clients; INTACT_CA is a file of certificates to trust, for https. It works for the installation whose id is in
# INTACT_INSTALLATION, otherwise for the first one that answers, and ends when it meets another one.
set -u
if [ $# != 4 ]; then
    echo "usage: agent.sh AGENT INSTANCE RECORD HANDLER" >&2
    exit 2
fi
agent=$1 instance=$2 record=$3 handler=$4
server=${INTACT_SERVER:-http://127.0.0.1:7420}
installation=${INTACT_INSTALLATION:-any} # "any": that of the first answer
wait=10 # seconds that a call for work is parked; a stopping agent waits for the end of it
mkdir -p "$record" && sync "$record/.." || exit 1

stopping=
trap 'stopping=1' TERM INT

# Milliseconds that also count while the machine sleeps, and that nobody sets.
now() {
    local up
    read -r up _ </proc/uptime
    up=${up/./}0
    echo $((10#$up))
}

# What follows from an answer, a line each, all in one run of jq, which takes its time to start: the results that have no
# outcome yet (what has one is with the server, whatever it is); the request, if there is one that is not answered
# already; its token, the key of its step, its direction; and how many milliseconds it has from when the call was sent.
# shellcheck disable=SC2016 # they are variables of jq
news_of='
if has("requests") and has("outcomes") then . else error end
| [.outcomes[].token] as $settled
| ($results[0] | map(select(.token as $token | $settled | index($token) | not))) as $left
| .requests[0] as $request
| $left,
  if $request == null or any($left[]; .token == $request.token) then ""
  else $request, $request.token, (if $request.direction == "undo" then $request.forward else $request end).idempotency_key,
      $request.direction, .waited_ms + $request.time_left_ms end'

# Makes a work call. What follows from the answer is in $news; without one the status is not 0, and $pause is how many
# seconds the server wants to be left alone. Usage: call BODY
call() {
    local settings='silent' status told after
    pause=0
    [ -z "${INTACT_TOKEN:-}" ] || settings+=$'\n'"header = \"Authorization: Bearer $INTACT_TOKEN\""
    [ -z "${INTACT_CA:-}" ] || settings+=$'\n'"cacert = \"$INTACT_CA\""
    [ "$installation" = any ] || settings+=$'\n'"header = \"Intact-Installation: $installation\""
    if ! answer=$(curl -K <(echo "$settings") -m $((wait + 20)) \
        -w '\n%{http_code}|%header{intact-installation}|%header{retry-after}' \
        --data-binary @- -H 'Content-Type: application/json' "$server/v1/agents/$agent/work" <<<"$1"); then
        answer=$'\n'"000||" # not reached, or cut off in the middle
    fi
    IFS='|' read -r status told after <<<"${answer##*$'\n'}"
    [[ $after =~ ^[0-9]{1,4}$ ]] && pause=$after
    answer=${answer%$'\n'*}
    [[ $told =~ ^[0-9A-Fa-f-]{36}$ ]] || told= # an older server, or a proxy, says nothing
    [ "$installation" != any ] || installation=${told:-any}
    [ -z "$told" ] || [ "${told,,}" = "${installation,,}" ] || status=421
    case $status in
    200)
        news=$(jq -ecr --slurpfile results <(echo "$results") "$news_of" <<<"$answer" 2>/dev/null) && return 0
        echo "agent.sh: $server answers what is not of Intact" >&2
        ;;
    401 | 403)
        echo "agent.sh: the server refuses INTACT_TOKEN: $answer" >&2
        exit 1
        ;;
    421)
        echo "agent.sh: $server is of the installation $told, and this agent works for $installation:" \
            "use the right address, or start it again" >&2
        exit 1
        ;;
    000) echo "agent.sh: $server is not reached" >&2 ;;
    *) echo "agent.sh: $server says $status $answer" >&2 ;;&
    400 | 413 | 422) # it cannot read the result, and never will
        results=$(jq -c --arg message "${answer:0:1000}" \
            'map({token, error: {code: "unacceptable", message: $message}})' <<<"$results")
        ;;
    esac
    return 1
}

# Leaves a mark for the key of the step: begun, done, undone or barred, with an output. Usage: mark WHAT [OUTPUT]
mark() {
    printf '%s\n' "${2-}" >"$marks.new" && sync "$marks.new" && mv "$marks.new" "$marks.$1" && sync "$record"
}

fail() { # CODE MESSAGE RETRYABLE EFFECT
    jq -nc --arg code "$1" --arg message "$2" --argjson retryable "$3" --arg effect "$4" \
        '{error: {code: $code, message: $message, retryable: $retryable, effect: $effect}}'
}

succeed() { echo "{\"output\":${1:-null}}"; } # it is JSON: jq wrote it

one_value='if length == 1 then .[0] else error("the handler wrote more than one JSON value") end'

# Runs the handler and prints the answer; nothing if the deadline passed. Usage: run_handler MARK
run_handler() {
    local left=$((deadline - $(now))) output status
    [ "$left" -gt 0 ] || return
    output=$(timeout -k 1 "$((left / 1000)).$(printf %03d $((left % 1000)))" "$handler" <<<"$request" 2>"$marks.err")
    status=$?
    [ "$status" != 0 ] || output=$(jq -cs "$one_value" <<<"${output:-null}" 2>"$marks.err") || status=3
    case $status in
    0) mark "$1" "$output" && succeed "$output" ;;
    124 | 137) ;; # killed at the deadline: the server has given up too
    1) fail refused "$(<"$marks.err")" false none ;;
    2) fail later "$(<"$marks.err")" true none ;;
    *) fail failed "$(<"$marks.err")" true unknown ;;
    esac
}

# Answers $request by the marks of its step; prints nothing if nothing is to be said. The lock is also held by
# the handler: one that outlives a killed agent.sh keeps the next one waiting.
perform() {
    local wait_s
    marks=$record/${key//\//=}
    wait_s=$(((deadline - $(now)) / 1000))
    [ "$wait_s" -ge 0 ] && exec 9>"$marks.lock" && flock -w "$wait_s" 9 || return
    if [ "$direction" = forward ]; then
        if [ -e "$marks.undone" ] && [ -e "$marks.done" ]; then # asked by a server restored from a backup
            fail undone "this step took effect and was undone" false none
        elif [ -e "$marks.barred" ]; then
            fail undone "this step was undone before it took effect" false none
        elif [ -e "$marks.done" ]; then
            succeed "$(<"$marks.done")"
        else
            mark begun && run_handler "done"
        fi
    elif [ -e "$marks.undone" ]; then
        succeed "$(<"$marks.undone")"
    elif mark barred; then # should the forward request come again, it is refused
        if [ -e "$marks.begun" ]; then
            run_handler undone
        else
            mark undone null && succeed null
        fi
    fi
}

name=$(jq -n --arg instance "$instance" '$instance') || exit 1
results='[]' failures=0
until [ -n "$stopping" ] && [ "$results" = '[]' ]; do
    max=$([ -n "$stopping" ] && echo 0 || echo 1)
    sent=$(now)
    if ! call "{\"instance\":$name,\"max\":$max,\"wait\":\"${wait}s\",\"holding\":[],\"results\":$results}"; then
        failures=$((failures + 1))
        [ -z "$stopping" ] || [ "$failures" -lt 10 ] || exit 1 # what was done is on record
        [ "$pause" -gt "$failures" ] || pause=$((failures < 10 ? failures : 10))
        sleep "$pause.$((RANDOM % 10))"
        continue
    fi
    failures=0 request=
    { read -r results && read -r request && read -r token && read -r key && read -r direction && read -r left; } <<<"$news"
    [ -n "$request" ] || continue
    deadline=$((sent + left)) # from when the call was sent: too early rather than too late, whatever the clocks say
    result=$(perform)
    if [ -n "$result" ]; then
        result="{\"token\":\"$token\",${result#\{}"
        [ "$results" = '[]' ] && results="[$result]" || results="${results%]},$result]"
    fi
done
