# What befalls the installation, to be sourced by failover.sh. Each trouble_NAME makes its trouble, waits until it is over
# for those concerned, and tells the history (event) what it did.
# shellcheck shell=bash disable=SC2154,SC2034 # variables are shared with failover.sh

# By default: in the short form one of each that matters, in the long one all, and some at random.
default_troubles() {
    if [ "$size" = short ]; then
        echo clock primary leader_stopped node
    elif [ "$size" = timed ]; then
        timed_troubles
    else
        echo clock primary leader_stopped node leader restart standby alone late frozen agents both random random random
    fi
}

some_node() { echo "${nodes[RANDOM % ${#nodes[@]}]}"; }
some_agent() { echo "${agents[RANDOM % ${#agents[@]}]}"; }
nap() { sleep "0.$(printf %03d $((RANDOM % 900)))"; }
pid_of() { cat "$work/$1.pid"; }
database() { "$pair" "$work/db" "$@"; }

# Everybody is served again.
goes_on() { wait_until "orders are accepted again" more_accepted "$(($(accepted) + 3))"; }

# Kills the primary and promotes the standby; the old one comes back as the new one's standby.
trouble_primary() {
    event "primary $primary is killed"
    database kill "$primary"
    nap
    fail_over
}

fail_over() {
    local old=$primary
    database promote "$standby"
    primary=$standby
    standby=$old
    event "standby $primary is promoted"
    goes_on
    database rejoin "$standby"
    event "$standby is its synchronous standby"
}

# Both change places as an operator plans it.
trouble_switch() {
    event "primary $primary is ended"
    database end "$primary"
    fail_over
}

# The database is restarted as an operator does, or dies and comes back as what it was.
trouble_restart() {
    local how
    how=$(shuf -n 1 -e fast immediate kill --random-source=<(yes "$RANDOM"))
    event "primary $primary is restarted ($how)"
    if [ "$how" = kill ]; then
        database kill "$primary"
        nap
        database start "$primary"
    else
        database "$how" "$primary"
    fi
    event "primary $primary answers"
    goes_on
}

# Without its standby the primary acknowledges nothing; then it is back.
trouble_standby() {
    if [ $((RANDOM % 2)) = 0 ]; then
        event "standby $standby is killed"
        database kill "$standby"
        sleep $((1 + RANDOM % 4))
        database start "$standby"
    else
        event "standby $standby stands still"
        database stop "$standby"
        sleep $((1 + RANDOM % 4))
        database cont "$standby"
    fi
    event "standby $standby is back"
    goes_on
}

# As long as the standby is away, nodes are not ready, and say where to look.
trouble_alone() {
    local n
    event "standby $standby is killed, for longer"
    database kill "$standby"
    for n in "${nodes[@]}"; do
        wait_until "node $n says that it is not ready" is_troubled "$n"
        wait_until "node $n says where to look" grep -q "if it waits for a synchronous standby" "$work/$n.log"
    done
    event "all nodes say that they wait for a standby"
    database start "$standby"
    event "standby $standby is back"
    goes_on
}

# The primary stands still, its standby is promoted, and the old one wakes up before anybody has fenced it: for a while
# two take connections and writes. Only one of them can have a commit acknowledged.
trouble_late() {
    local old=$primary
    event "primary $primary stands still"
    database stop "$primary"
    nap
    database promote "$standby"
    primary=$standby
    standby=$old
    event "standby $primary is promoted"
    goes_on
    database cont "$old"
    event "$old wakes up, and takes itself for the primary"
    strike "$(some_node)"
    sleep 3
    wait_until "all nodes are ready" all_are_ready
    goes_on
    event "$old is fenced"
    database rejoin "$old"
    event "$old is the synchronous standby"
    goes_on
}

# A node dies and stays away until the others have all that it owned.
trouble_node() {
    local name
    name=$(sql "SELECT split_part(locked_by, '/', 1) FROM intact.task WHERE locked_by IS NOT NULL
        GROUP BY locked_by ORDER BY count(*) DESC LIMIT 1")
    kill_node "${name:-$(some_node)}"
}

owns_nothing() { [ "$(sql "SELECT count(*) FROM intact.task WHERE locked_by LIKE '$1/%'" 2>/dev/null)" = 0 ]; }

kill_node() {
    event "node $1 is killed, owner of $(sql "SELECT count(*) FROM intact.task WHERE locked_by LIKE '$1/%'") tasks"
    retire "$1" KILL
    wait_until "the others have the tasks of $1" owns_nothing "$1"
    event "the others have the tasks of $1"
    nap
    start_node "$1"
    wait_until "node $1 is back" is_ready "$1"
}

trouble_leader() {
    local before name
    before=$(epoch)
    name=$(leader)
    event "the leader, $name, is killed"
    retire "$name" KILL
    wait_until "another one leads" has_led_since "$before"
    start_node "$name"
    wait_until "node $name is back" is_ready "$name"
}

# It stands still until another one leads, and a little longer; then it goes on where it was.
trouble_leader_stopped() {
    local before name
    before=$(epoch)
    name=$(leader)
    event "the leader, $name, stands still"
    kill -STOP "$(pid_of "$name")"
    wait_until "another one leads" has_led_since "$before"
    nap
    kill -CONT "$(pid_of "$name")"
    event "node $name goes on"
    wait_until "node $name is ready" is_ready "$name"
}

# All nodes stand still for several leases; so nobody does what is due meanwhile.
trouble_frozen() {
    local n
    event "all nodes stand still"
    for n in "${nodes[@]}"; do kill -STOP "$(pid_of "$n")" 2>/dev/null || true; done
    sleep $((4 + RANDOM % 12))
    for n in "${nodes[@]}"; do kill -CONT "$(pid_of "$n")" 2>/dev/null || true; done
    event "all nodes go on"
    goes_on
    wait_until "all nodes are ready" all_are_ready
}

# The clock of a node's machine is wrong by minutes from now on. Nodes go by the database's.
trouble_clock() {
    local name lib off from
    lib=$(find /usr/lib -name libfaketimeMT.so.1 2>/dev/null | head -n 1)
    if [ -z "$lib" ]; then
        event "no clock is wrong: libfaketime is missing"
        return
    fi
    name=$(some_node)
    off=$([ $((RANDOM % 2)) = 0 ] && echo + || echo -)$((3 + RANDOM % 10))m
    echo "LD_PRELOAD=$lib FAKETIME=$off DONT_FAKE_MONOTONIC=1" \
        "ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0" >"$work/$name.clock"
    event "node $name is killed, and its clock is wrong by $off"
    retire "$name" KILL
    from=$(date +%s%3N)
    start_node "$name"
    wait_until "node $name says that its clock is wrong" grep -q event=clock_differs "$work/$name.log"
    wait_until "node $name is back" is_ready "$name"
    wait_until "node $name says by the others' clock when it started" started_since "$name" "$from"
    goes_on
}
started_since() { [ "$(sql "SELECT started_at BETWEEN $2 AND $(date +%s%3N) FROM intact.node WHERE name = '$1'" 2>/dev/null)" = t ]; }

# Agents die and stand still, for less and for more than a complete-by.
trouble_agents() {
    local i name
    for i in 1 2 3; do
        strike "$(some_agent)"
        nap
        name=$(some_agent)
        kill -STOP "$(pid_of "$name")" 2>/dev/null || true
        sleep $((RANDOM % 4))
        kill -CONT "$(pid_of "$name")" 2>/dev/null || true
    done
    event "agents were killed and stopped"
}

# The primary and the leader, at once.
trouble_both() {
    local name
    name=$(leader)
    event "primary $primary and the leader, $name, are killed"
    database kill "$primary" &
    strike "$name"
    wait $!
    fail_over
}

# Nodes and agents die and stand still at random while the database fails over.
trouble_random() {
    local stopped=() name i
    for i in 1 2 3 4; do
        name=$([ $((RANDOM % 2)) = 0 ] && some_node || some_agent)
        if [ $((RANDOM % 2)) = 0 ]; then
            event "$name is killed"
            strike "$name"
        else
            event "$name stands still"
            stop_for "$name" $((RANDOM % 15)) &
            stopped+=($!)
        fi
        nap
    done
    case $((RANDOM % 3)) in
    0) trouble_primary ;;
    1) trouble_restart ;;
    2) trouble_standby ;;
    esac
    [ ${#stopped[@]} = 0 ] || wait "${stopped[@]}"
    wait_until "all nodes are ready" all_are_ready
}

stop_for() { # NAME SECONDS
    local pid
    pid=$(pid_of "$1")
    kill -STOP "$pid" 2>/dev/null || return 0
    sleep "$2"
    kill -CONT "$pid" 2>/dev/null || true
    event "$1 goes on"
}
