# The cases of partition.sh: what goes wrong in the network while orders come in, and what has to go on meanwhile.
# Each ends with what is to be mended; partition.sh looks at what must be true in the end.
# shellcheck shell=bash disable=SC2154,SC2034 # variables are shared with partition.sh

all_cases="leader node agents ways alone database slow flaps random"

other_leads() { # NAME: another one does
    local now
    now=$(leader)
    [ -n "$now" ] && [ "$now" != "$1" ]
}
some_leads() { [ -n "$(leader)" ]; }
lease_ran_out() { # NODE
    [ "$(sql "SELECT count(*) FROM lease WHERE name = 'node/$1'
        AND until > extract(epoch FROM clock_timestamp()) * 1000")" = 0 ]
}
waits_for_nobody() { [ "$(sql "SELECT count(*) FROM task WHERE locked_by LIKE '$1/%'")" = 0 ]; }
is_unready() { ! is_ready "$1"; }
ms() { date +%s%3N; }

# A node that cannot reach the database gives no work away: nothing that it decides can become durable. Usage: NODE
starts_nothing() {
    local i answer
    for i in 1 2; do
        answer=$( (at client curl -s -m 20 -H "Authorization: Bearer $INTACT_TOKEN" \
            -H 'Content-Type: application/json' -d '{"instance": "probe", "max": 8, "wait": "500ms"}' \
            "http://$(address_of "$1"):742${1#n}/v1/agents/stock/work") || true)
        case $answer in
        *'"token"'*) fail "$1 gave work away: $answer" ;;
        esac
    done
}

# Cuts NODE off from the database while orders come in. All of them end before it is mended, without a restart.
without_database() { # NODE
    local before from
    before=$(pid_of "$1")
    from=$(ms)
    load_begin
    nap
    part "$1" database
    wait_until "$1 says that it is not ready" is_unready "$1"
    wait_until "the lease of $1 ran out" lease_ran_out "$1"
    note="unready and without lease after $(($(ms) - from)) ms"
    starts_nothing "$1"
    wait_until "another than $1 leads" other_leads "$1"
    load_end
    wait_until "all tasks have ended without $1" all_ended
    join_again "$1" database
    wait_until "$1 is ready again" is_ready "$1"
    [ "$(pid_of "$1")" = "$before" ] || fail "$1 was restarted"
}

# The one that leads cannot reach the database, but its agents.
trouble_leader() {
    wait_until "somebody leads" some_leads
    without_database "$(leader)"
}

# One that does not lead.
trouble_node() {
    local n
    wait_until "somebody leads" some_leads
    n=$(leader)
    n=n$((${n#n} % 3 + 1))
    without_database "$n"
}

# A node reaches the database, but no agent. What comes in there is done all the same, by the others.
trouble_agents() {
    local name n=n$((1 + RANDOM % 3))
    load_begin "$n"
    nap
    for name in "${agents[@]}"; do part "$n" "$name"; done
    nap
    wait_until "orders are accepted at $n" has_accepted $(($(accepted) + 5))
    load_end
    wait_until "all tasks have ended without agents at $n" all_ended
    note="all came in at $n"
}

# Packets of one direction vanish: from and to the database, from and to the agents.
trouble_ways() {
    local name n before
    before=$(pids_of_nodes)
    n=n$((1 + RANDOM % 3))
    load_begin
    nap
    cut_off "$n" database
    long && wait_until "the lease of $n ran out" lease_ran_out "$n"
    sleep 1
    mend "$n" database
    nap
    cut_off database "$n"
    long && wait_until "the lease of $n ran out" lease_ran_out "$n"
    sleep 1
    mend database "$n"
    nap
    for name in "${agents[@]}"; do cut_off "$name" "$n"; done
    sleep "$(long && echo 8 || echo 2)"
    for name in "${agents[@]}"; do mend "$name" "$n"; done
    for name in "${agents[@]}"; do cut_off "$n" "$name"; done
    sleep "$(long && echo 8 || echo 2)"
    load_end
    wait_until "all tasks have ended with half a link between $n and the agents" all_ended
    for name in "${agents[@]}"; do mend "$n" "$name"; done
    wait_until "all nodes are ready again" all_ready
    [ "$(pids_of_nodes)" = "$before" ] || fail "a node was restarted"
}

# Agents are cut off from everybody. Orders are accepted, nothing is done, nothing is given up.
trouble_alone() {
    local name
    load_begin
    nap
    for name in "${agents[@]}"; do unplug "$name"; done
    sleep "$(long && echo 15 || echo 4)"
    wait_until "orders are accepted without agents" has_accepted $(($(accepted) + 5))
    for name in "${agents[@]}"; do plug "$name"; done
    load_end
}

# Nobody reaches the database, for longer than leases last. Nothing is accepted; then all goes on by itself.
trouble_database() {
    local before n from
    before=$(pids_of_nodes)
    load_begin
    nap
    unplug database
    for n in "${nodes[@]}"; do wait_until "$n says that it is not ready" is_unready "$n"; done
    for n in "${nodes[@]}"; do wait_until "the lease of $n ran out" lease_ran_out "$n"; done
    for n in "${nodes[@]}"; do starts_nothing "$n"; done
    sleep "$(long && echo 10 || echo 0)"
    from=$(ms)
    plug database
    wait_until "all nodes are ready again" all_ready
    note="all ready $(($(ms) - from)) ms after it was back"
    load_end
    [ "$(pids_of_nodes)" = "$before" ] || fail "a node was restarted"
}

# All ways lead through links that delay by 50 to 300 ms and, now and then, break in the middle of what they carry.
trouble_slow() {
    local name
    plan "delay 50 300" "cut $(long && echo 50 || echo 20)"
    use wan
    load_begin
    sleep "$(long && echo 20 || echo 3)"
    plan "delay 50 300" "rate 20000"
    sleep "$(long && echo 10 || echo 2)"
    load_end
    wait_until "all tasks have ended over slow links" all_ended
    plan
    use straight
}

# All start again, by that way. Usage: use straight|wan
use() {
    local name
    route "$1"
    for name in "${nodes[@]}" "${agents[@]}"; do strike "$name"; done
    wait_until "all nodes are ready" all_ready
}

# Cables that come loose for a moment, again and again.
trouble_flaps() {
    local i host hosts=(database "${nodes[@]}" "${agents[@]}")
    load_begin
    for i in $(seq "$(long && echo 60 || echo 15)"); do
        host=${hosts[RANDOM % ${#hosts[@]}]}
        unplug "$host"
        sleep "0.$(printf %03d $((RANDOM % 400)))"
        plug "$host"
        sleep "0.$(printf %03d $((RANDOM % 150)))"
    done
    load_end
}

# Anything of all that, several at once, for any time.
trouble_random() {
    local end=$((SECONDS + $(long && echo 60 || echo 6))) hosts=(database "${nodes[@]}" "${agents[@]}") a b
    load_begin
    while [ "$SECONDS" -lt "$end" ]; do
        a=${hosts[RANDOM % ${#hosts[@]}]}
        b=${hosts[RANDOM % ${#hosts[@]}]}
        case $((RANDOM % 6)) in
        0) unplug "$a" ;;
        1 | 2) [ "$a" = "$b" ] || part "$a" "$b" ;;
        3) [ "$a" = "$b" ] || cut_off "$a" "$b" ;;
        4) for a in "${hosts[@]}"; do plug "$a"; done ;;
        5) net_mend ;;
        esac
        nap
    done
    net_mend
    load_end
}
