#!/usr/bin/env bash
# Does what docs/access.md shows: blocks of ```console, in order, in one shell. Lines that begin with "$ " are
# typed, the others have to come; "..." in them stands for anything, runs of blanks are one.
# Usage: access_doc.sh ROOT INTACT
set -eu
root=$1
intact=$(realpath "$2")
work=$(mktemp -d "${TMPDIR:-/tmp}/intact-doc.XXXXXX")
unset INTACT_SERVER INTACT_TOKEN INTACT_CA NOTIFY_SOCKET WATCHDOG_USEC
export no_proxy='*'

finish() {
    local status=$?
    kill "$server" 2>/dev/null || true
    wait "$server" 2>/dev/null || true
    rm -rf "$work"
    exit "$status"
}
trap finish EXIT

mkdir "$work/bin" && ln -s "$intact" "$work/bin/intact"
PATH=$work/bin:$PATH
cd "$work"
intact serve --listen 127.0.0.1:0 >ready 2>log &
server=$!
until grep -q listening ready; do
    kill -0 "$server" 2>/dev/null || { cat log >&2 && exit 1; }
    sleep 0.02
done
INTACT_SERVER=http://127.0.0.1:$(awk '{print $4}' ready)
export INTACT_SERVER
commands=0

# Usage: check_last, with what is expected in $expected and what came in $work/out
check_last() {
    local pattern
    pattern=$(printf '%s' "$expected" | tr -s ' ' | sed -e 's/[][\.*^$]/\\&/g' -e 's/\\\.\\\.\\\./.*/g')
    # line by line: each expected line has to match the one that came
    if ! diff <(printf '%s\n' "$pattern" | grep -c .) <(grep -c . "$work/out") >/dev/null; then
        echo "access_doc: $command: expected" "$expected" "got" "$(cat "$work/out")" >&2
        exit 1
    fi
    local i=0 line want
    while IFS= read -r want; do
        i=$((i + 1))
        line=$(grep . "$work/out" | sed -n "${i}p" | tr -s ' ')
        [ -z "$want" ] || printf '%s\n' "$line" | grep -qx -- "$want" || {
            echo "access_doc: $command: expected \"$want\", got \"$line\"" >&2
            exit 1
        }
    done <<<"$pattern"
}

command='' expected=''
run_last() {
    [ -n "$command" ] || return 0
    eval "$command" >"$work/out"
    commands=$((commands + 1))
    check_last
}
while IFS= read -r line; do
    case $line in
    '$ '*)
        run_last
        command=${line#'$ '} expected=''
        ;;
    *) expected=$expected${expected:+$'\n'}$line ;;
    esac
done < <(awk '/^```console$/ { inside = 1; next } /^```/ { inside = 0; next } inside' "$root/docs/access.md")
run_last
[ "$commands" -gt 8 ] || { echo "access_doc: only $commands commands" >&2 && exit 1; }
