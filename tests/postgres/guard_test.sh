#!/usr/bin/env bash
# A script that made two servers is killed: its guard ends them and removes their folder. Usage: guard_test.sh INTACT_PAIR
set -eu
pair=$1
work=$(mktemp -d /tmp/intact-guard.XXXXXX)
chmod 711 "$work"
trap '"$pair" "$work/db" end; rm -rf "$work"' EXIT

gone() { ! [ -e "$work/db" ] && ! kill -0 "$server" 2>/dev/null; }

sleep 1000 &
script=$!
"$pair" "$work/db" make
server=$(head -n 1 "$work/db/a/postmaster.pid")
"$pair" "$work/db" stop a
"$pair" "$work/db" guard "$script" &
kill -KILL "$script"
wait "$script" 2>/dev/null || true
end=$((SECONDS + 300)) # only what fails waits so long
until gone; do
    [ "$SECONDS" -lt "$end" ] || {
        echo "server $server is still there"
        exit 1
    }
    sleep 0.1
done
wait
trap - EXIT
rm -rf "$work"
echo "nothing stays"
