#!/usr/bin/env bash
# A script that made two servers is killed: its guard ends them and removes their folder. Usage: guard_test.sh INTACT_PAIR
set -eu
pair=$1
work=$(mktemp -d /tmp/intact-guard.XXXXXX)
chmod 711 "$work"
# What is left in the background would keep our output open, for which meson waits.
finish() {
    kill -KILL "$script" 2>/dev/null || true
    [ ! -e "$work/db/ports" ] || "$pair" "$work/db" end || true
    wait
    rm -rf "$work"
}

gone() { ! [ -e "$work/db" ] && ! kill -0 "$server" 2>/dev/null; }

sleep 1000 &
script=$!
trap finish EXIT
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
echo "nothing stays"
