# The kinds of trouble, to be sourced by chaos.sh. Of each kind: prepare_KIND starts the server,
# trouble_KIND makes the trouble while orders are processed and ends it, after_KIND looks at what
# concerns this kind alone, when all has ended; it may set $note.
# shellcheck shell=bash disable=SC2154,SC2034 # variables are shared with chaos.sh

mischief=1 # agents fail, hang, answer late and kill themselves now and then
names=(server server stock-1 stock-2 payment-1 payment-2 shipping-1 shipping-2)

start_agents() {
    local n hang=() late=() common
    for n in 1 2; do
        common=(--delay 5)
        if [ -n "$mischief" ]; then
            common+=(--fail 40 --crash-before 4 --crash-after 4)
            hang=(--hang 5)
            late=(--late 5)
        fi
        start_agent stock $n "${common[@]}" "${hang[@]}" --seed $RANDOM
        start_agent payment $n "${common[@]}" "${late[@]}" --seed $RANDOM
        start_agent shipping $n "${common[@]}" "${hang[@]}" --seed $RANDOM
    done
}

start_plainly() { start_server --scan-every 200ms --grace 1s; }
some() { echo "${names[RANDOM % ${#names[@]}]}"; }
nap() { sleep "0.$(printf %03d $((RANDOM % 900)))"; }
long() { [ "$size" = long ]; }
pid_of() { cat "$work/$1.pid"; }

# ---- SIGKILL ----

# one of all, at random
prepare_any() { start_plainly; }
after_any() { :; }
trouble_any() {
    local i
    for i in $(seq 8); do
        nap
        strike "$(some)"
    done
}

# the server, five times a second
prepare_server() { start_plainly; }
after_server() { :; }
trouble_server() {
    local i
    for i in $(seq "$(long && echo 20 || echo 8)"); do
        sleep 0.2
        strike server
    done
}

# all agents at once
prepare_agents() { start_plainly; }
after_agents() { :; }
trouble_agents() {
    local i name
    for i in $(seq "$(long && echo 6 || echo 3)"); do
        nap
        for name in "${names[@]:2}"; do strike "$name"; done
    done
}

# the server, while orders come in by a few at a time
prepare_submission() {
    lines=5
    start_plainly
}
after_submission() { :; }
trouble_submission() {
    local i
    for i in $(seq 12); do
        sleep "0.$(printf %03d $((100 + RANDOM % 100)))"
        strike server
    done
}

# ---- SIGSTOP ----

# Nobody is killed; some stand still, for less and for more than a complete-by (2 s and 3 s) and, the
# server, than the grace time.
prepare_pause() {
    if long; then start_server --scan-every 200ms; else start_plainly; fi
}
after_pause() { :; }

stop_for() { # NAME SECONDS
    local pid
    pid=$(pid_of "$1")
    kill -STOP "$pid" 2>/dev/null || return 0
    sleep "$2"
    kill -CONT "$pid" 2>/dev/null || true
}

trouble_pause() {
    local i lengths=(0.3 1.5) stopped=()
    if long; then lengths=(0.3 1.5 2.5 4 11); fi
    for i in $(seq 3); do
        stop_for "$(some)" "${lengths[RANDOM % ${#lengths[@]}]}" &
        stopped+=($!)
        nap
    done
    if long; then
        stop_for server 11 &
        stopped+=($!)
    fi
    wait "${stopped[@]}"
}

# ---- a full disk ----

prepare_disk() {
    mkdir -m 700 "$work/data"
    mount -t tmpfs -o size=48m,mode=0700 tmpfs "$work/data" 2>/dev/null || {
        echo "disk: skipped, no mounts are allowed here"
        good=1
        exit 77
    }
    touch "$work/mounted"
    lines=10
    start_plainly
}
after_disk() { note="full $fulls times"; }

# Fills it but for some KiB. Usage: fill_disk KIB
fill_disk() {
    dd if=/dev/zero of="$work/data/filler" bs=4k 2>/dev/null || true
    [ "$1" = 0 ] || truncate -s "-${1}K" "$work/data/filler"
}

trouble_disk() {
    local i before
    fulls=0
    for i in $(seq "$(long && echo 5 || echo 2)"); do
        nap
        fill_disk $((RANDOM % 4 * RANDOM % 200))
        fulls=$((fulls + 1))
        [ $((RANDOM % 2)) = 0 ] || strike server # it must start as soon as there is room
        nap
        rm -f "$work/data/filler"
    done
    # As long as it is full and somebody writes, the server says so, and goes on afterwards by itself.
    wait_until "the server is ready" is_ready
    before=$(pid_of server)
    fill_disk 0
    wait_until "the server says that the disk is full" submit_more_and_look
    [ "$(pid_of server)" = "$before" ] || fail "the server was restarted"
    rm -f "$work/data/filler"
    wait_until "the server goes on" is_ready
}

# Submits orders that may be refused, so that there is something to write: is there trouble?
submit_more_and_look() {
    more=$((${more:-0} + 1))
    orders "more$more" 40 >"$work/more"
    "$program" submit --retry-for 1s -f "$work/more" >/dev/null 2>&1 || true
    is_troubled
}

# ---- I/O errors ----

# The program is the ordinary one on a VFS that fails as $work/faults says.
prepare_io() {
    lines=10
    export INTACT_FAULTS=$work/faults
    server_bin=$build/tests/chaos/intact-faulty start_server --scan-every 500ms --grace 1s
}

faults() { # PERMILLE HOW CALLS, or nothing
    echo "$*" >"$work/faults.new"
    mv "$work/faults.new" "$work/faults"
}

trouble_io() {
    local i before plans=("30 io all" "300 io all" "500 io sync" "200 full write" "100 short read"
        "500 io shm_map,shm_lock,lock" "300 io read" "900 io truncate,delete,file_size,open")
    for i in $(seq "$(long && echo 6 || echo 2)"); do
        nap
        # shellcheck disable=SC2086 # three words
        faults ${plans[RANDOM % ${#plans[@]}]}
        nap
        faults
    done
    # A disk that is broken altogether: the server lives, says so, and goes on by itself.
    wait_until "the server is ready" is_ready
    before=$(pid_of server)
    faults 1000 io write,sync
    wait_until "the server says that it cannot write" submit_more_and_look
    faults
    wait_until "the server goes on" is_ready
    [ "$(pid_of server)" = "$before" ] || fail "the server was restarted"
    grep -q 'event=store_trouble' "$work/server.log" || fail "the log does not tell of the trouble"
    grep -q 'event=store_works_again' "$work/server.log" || fail "the log does not tell of its end"
    # Dead in the middle of a write, of the WAL or (in a checkpoint) of the database.
    for i in $(seq "$(long && echo 4 || echo 1)"); do
        faults 20 tear write
        submit_more_and_look || true
        nap
        ! long || sleep 2 # when nothing moves for a while, there is a checkpoint
        faults
    done
}
logged() { grep -c "event=$1" "$work/server.log"; }
after_io() { note="$(logged store_trouble) times in trouble, $(logged started) starts"; }

# ---- the names of files ----

# The files of the store are moved away and back, and the WAL is removed, while the server uses them.
prepare_names() {
    saved=0
    lines=10
    start_plainly
}
after_names() { note="$(logged store_trouble) times in trouble, $(logged started) starts"; }

# Usage: move_away [strike]: the server cannot start again either, and makes no new store
move_away() {
    wait_until "the server is ready" is_ready
    mv "$work/data/intact.db" "$work/data/away"
    wait_until "the server says that its file is gone" submit_more_and_look
    if [ -n "${1:-}" ]; then
        strike server
        wait_until "the server refuses to start" grep -q 'intact.db is missing' "$work/server.log"
    fi
    [ ! -e "$work/data/intact.db" ] || fail "the server made a new file"
    mv "$work/data/away" "$work/data/intact.db"
    wait_until "the server goes on" is_ready
}

wals_saved() {
    submit_more_and_look || true
    [ "$(grep -c 'saved in intact.db' "$work/server.log")" = "$saved" ]
}

trouble_names() {
    local i
    for i in $(seq "$(long && echo 4 || echo 1)"); do
        nap
        move_away
        nap
        rm "$work/data/intact.db-wal"
        saved=$((saved + 1))
        wait_until "the server says that its WAL is gone" wals_saved
        wait_until "the server goes on" is_ready
        [ $((RANDOM % 2)) = 0 ] || strike server
        nap
    done
    move_away strike
}

# ---- a restore ----

# A backup is taken while orders are processed, some time later the server dies and its folder is lost: it
# starts again on what was restored. The orders are sent once more, as their submitters would after any crash;
# agents have their own records, so that what was done after the backup is not done again.
prepare_restore() {
    lines=5
    submitters=4
    start_plainly
}
after_restore() { note="$lost tasks were gone, boot $(sql "SELECT boot FROM node")"; }

trouble_restore() {
    lost=0
    nap
    wait_until "the server is ready" is_ready
    wait_until "a backup is made" "$program" backup "$work/backup.db" --force
    nap
    nap
    wait $submitter
    retire server KILL
    lost=$(sql "SELECT count(*) FROM task")
    rm -rf "$work/data.lost"
    mv "$work/data" "$work/data.lost"
    cp "$work/data.lost/admin-token" "$work/token"
    "$program" restore "$work/backup.db" --data "$work/data" 2>/dev/null || fail "it cannot be restored"
    cp "$work/token" "$work/data/admin-token"
    lost=$((lost - $(sql "SELECT count(*) FROM task")))
    start_plainly
    wait_until "the restored server is ready" is_ready
    submit_orders "$work/orders" 50
}

# ---- the wall clock ----

# The server's wall clock is set while it runs and while it does not; its steady clock is not. Agents are well-behaved, and
# have minutes for what they do in milliseconds, so that an attempt that expires can only have expired by the clock.
prepare_clock() {
    local lib
    lib=$(find /usr/lib -name libfaketime.so.1 2>/dev/null | head -n 1)
    [ -n "$lib" ] || fail "libfaketime is missing: apt-get install faketime"
    mischief=
    echo "+0" >"$work/offset"
    cat >"$work/faked" <<TEXT
#!/bin/sh
export LD_PRELOAD=$lib FAKETIME_TIMESTAMP_FILE=$work/offset FAKETIME_NO_CACHE=1 DONT_FAKE_MONOTONIC=1
exec "$program" "\$@"
TEXT
    chmod +x "$work/faked"
    jumps=0
    behind=0
    lines=30
    began=$(date +%s)
    sed -E 's/complete_by: [23]s/complete_by: 3m/; s/complete_by: 10m/complete_by: 1d/' \
        "$root/examples/order/order.yaml" >"$work/patient.yaml"
    definition=$work/patient.yaml
    server_bin=$work/faked start_server --scan-every 200ms --grace 3m
}

jumps_told() { [ "$(grep -c 'event=clock_jump' "$work/server.log")" = "$jumps" ]; }

set_clock() { # OFFSET
    echo "$1" >"$work/offset.new"
    mv "$work/offset.new" "$work/offset"
}

# Started again with a clock that was set back, the server goes on from where its time stood.
restart_back() {
    behind=$((behind + 1))
    set_clock -1800
    strike server
    wait_until "the log tells that the clock is behind" behind_told
    wait_until "the server is ready again" is_ready
    nap
    set_clock +0
    jumps=$((jumps + 1))
    wait_until "the log tells of jump $jumps (to +0)" jumps_told
}
behind_told() { [ "$(logged "clock_behind.*going_by=store")" = "$behind" ]; }

trouble_clock() {
    local to
    for to in +3600 -3600 +86400 +86403 +0; do
        set_clock "$to"
        [ "$to" = +86403 ] || jumps=$((jumps + 1)) # 3 s are no jump
        nap
        sleep 0.5
        wait_until "the log tells of jump $jumps (to $to)" jumps_told
    done
    restart_back
}

after_clock() {
    local bad
    bad=$(sql "SELECT count(*) FROM task_attempt WHERE outcome = 'timed_out'")
    [ "$bad" = 0 ] || fail "$bad attempts expired by the clock"
    ! grep -q 'event=time_lost' "$work/server.log" || fail "time was lost by the clock"
    # Stored times went on from the start of the server: an hour off would show.
    bad=$(sql "SELECT count(*) FROM task, (SELECT $began - 60 AS a, $(date +%s) + 60 AS b)
        WHERE submitted_at / 1000 NOT BETWEEN a AND b OR ended_at / 1000 NOT BETWEEN a AND b")
    [ "$bad" = 0 ] || fail "$bad tasks with times of the wrong clock"
    note="$jumps jumps told, $behind times behind"
}

# The clock is set three days ahead, the server starts by that, the clock is set right, and it starts
# again: by the clock, since a past that lies so far ahead is not believed. What it wrote in between
# has times that have not come yet; nobody is given up for it, and all tasks end.
prepare_far() { prepare_clock; }

restarted() { [ "$(logged started)" = "$1" ]; }

restart_by_clock() { # OFFSET
    local starts
    starts=$(logged started)
    set_clock "$1"
    jumps=$((jumps + 1))
    wait_until "the log tells of jump $jumps (to $1)" jumps_told
    strike server
    wait_until "the server starts again" restarted $((starts + 1))
    wait_until "the server is ready again" is_ready
}

trouble_far() {
    nap
    restart_by_clock +259200
    submit_more_and_look || true # so that something is written at that time
    sleep 1.5
    restart_by_clock +0
    behind=$((behind + 1))
    [ "$(logged "clock_behind.*going_by=clock")" = "$behind" ] || fail "the log does not tell that the clock is behind"
}

after_far() {
    local bad
    bad=$(sql "SELECT count(*) FROM task_attempt WHERE outcome = 'timed_out'")
    [ "$bad" = 0 ] || fail "$bad attempts expired by the clock"
    note="$jumps jumps told, $behind times behind"
}

# ---- memory ----

# The server may have 200 MB of address space, and is sent more than that at once: it ends with a
# message, is started again, and has all that it accepted.
prepare_memory() {
    mischief=
    lines=10
    cat >"$work/confined" <<TEXT
#!/bin/sh
exec prlimit --as=200000000 "$program" "\$@"
TEXT
    chmod +x "$work/confined"
    floods=0
    : >"$work/accepted"
    server_bin=$work/confined start_plainly
}

post_large() { # ID
    local status
    {
        printf '{"workflow":"order","id":"%s","input":{"sku":"widget","amount":1,"card":"c","address":"' "$1"
        head -c 3500000 /dev/zero | tr '\0' x
        printf '"}}'
    } >"$work/large.$1"
    status=$(curl -s -m 60 -o /dev/null -w '%{http_code}' -H "Authorization: Bearer $INTACT_TOKEN" \
        -H 'Content-Type: application/json' --data-binary "@$work/large.$1" "$INTACT_SERVER/v1/tasks") || true
    [ "$status" != 201 ] || echo "$1" >>"$work/accepted"
    rm -f "$work/large.$1"
}

starved() { logged_text 'out of memory: '; }
logged_text() { grep -c "$1" "$work/server.log" || true; }

trouble_memory() {
    local i n sent before
    before=$(starved)
    for i in $(seq 6); do
        floods=$((floods + 1))
        sent=()
        for n in $(seq 40); do
            post_large "large-$floods-$n" &
            sent+=($!)
        done
        wait "${sent[@]}"
        wait_until "the server is ready" is_ready
        [ "$(starved)" = "$before" ] || return 0
    done
    fail "it never ran out of memory"
}

after_memory() {
    local id
    while read -r id; do
        [ "$(sql "SELECT count(*) FROM task WHERE id = '$id'")" = 1 ] || fail "$id was accepted, and is lost"
    done <"$work/accepted"
    note="out of memory $(starved) times, $(wc -l <"$work/accepted") large ones accepted"
}

# ---- restarts ----

# 25 restarts a round, SIGKILL some milliseconds after the server is ready or before. After each one it
# is ready again, has counted its start, and no task is lost. What runs must come to rest before it can
# be reconciled, so that is done once a round.
prepare_restarts() {
    lines=5
    start_plainly
}
after_restarts() { note="boot $(sql "SELECT boot FROM node")"; }

trouble_restarts() {
    local i tasks=0 boots=0 now
    for i in $(seq "$(long && echo 25 || echo 5)"); do
        strike server
        [ $((RANDOM % 3)) = 0 ] || wait_until "the server is ready again" is_ready
        now=$(sql "SELECT count(*) FROM task")
        [ "$now" -ge "$tasks" ] || fail "tasks were lost: $tasks, then $now"
        tasks=$now
        now=$(sql "SELECT boot FROM node")
        [ "$now" -ge "$boots" ] || fail "boots were lost: $boots, then $now"
        boots=$now
        sleep "0.$(printf %03d $((RANDOM % 150)))"
    done
}
