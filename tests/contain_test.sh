#!/usr/bin/env bash
# contain ends as its command does and prints its processor time. Nothing that it started outlives it.
# Usage: contain_test.sh CONTAIN
set -eu
contain=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() {
    echo "not so: $1" >&2
    exit 1
}

# Usage: ends STATUS COMMAND...; what it said is in $work/out. It is read to its end: until nobody can write to it.
ends() {
    local want=$1 status=0
    shift
    { "$contain" --grace 0 "$@" 2>&1 || echo "$?" >"$work/status"; } | cat >"$work/out"
    [ ! -e "$work/status" ] || { status=$(cat "$work/status") && rm "$work/status"; }
    [ "$status" = "$want" ] || fail "$* ends with $want, and not with $status: $(cat "$work/out")"
}
says() { grep -qx "$1" "$work/out" || fail "it says \"$1\", and not: $(cat "$work/out")"; }

ends 0 true
says 'processor time: [0-9.]* s'
[ "$(wc -l <"$work/out")" = 1 ] || fail "it says nothing else"
ends 3 sh -c 'exit 3'
ends 77 sh -c 'exit 77'
ends 134 sh -c 'kill -ABRT $$'
ends 127 "$work/nothing"
# Leaks are looked for by programs of the build, also if it is reached by another name, and not by scripts.
mkdir -p "$work/build/tests"
cp "$contain" "$work/build/tests/contain"
cp "$(command -v env)" "$work/build/program"
ln -s build "$work/other"
mine="$work/build/tests/contain"
for program in "$work/build/program" "$work/other/program"; do
    ! env -u LSAN_OPTIONS "$mine" "$program" 2>/dev/null | grep LSAN || fail "$program looks for leaks"
done
[ "$(env -u LSAN_OPTIONS "$mine" env 2>/dev/null | grep LSAN)" = LSAN_OPTIONS=detect_leaks=0 ] || fail "a script looks for none"
[ "$(LSAN_OPTIONS=x=1 "$mine" env 2>/dev/null | grep LSAN)" = LSAN_OPTIONS=x=1 ] || fail "it can be asked to"
# In the background, under its own name.
export runs='until grep -qx sleep /proc/$!/comm; do :; done'
ends 1 sh -c 'sleep 1001 & eval "$runs"; exit 0'
says 'left behind: sleep 1001'
ends 5 sh -c 'sleep 1002 & eval "$runs"; exit 5'
says 'left behind: sleep 1002'
ends 1 sh -c '(trap "" TERM HUP; setsid sleep 1003 & eval "$runs")'
says 'left behind: sleep 1003'

# What ends by itself in time was not left behind.
"$contain" --grace 1000 sh -c 'sleep 0.2 &' || fail "a grace"

# Told to end, it kills all.
"$contain" sh -c 'sleep 1004 & echo $! >"$0"; trap "" TERM; while :; do sleep 1005; done' "$work/pid" &
until [ -s "$work/pid" ]; do sleep 0.02; done
kill -TERM $!
status=0
wait $! || status=$?
[ "$status" = 143 ] || fail "it ends with $status"
! kill -0 "$(cat "$work/pid")" 2>/dev/null || fail "nothing is left"
echo "nothing is left"
