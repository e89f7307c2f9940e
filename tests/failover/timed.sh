# How long nobody does what a node or the database did: to be sourced by failover.sh. Nodes run with default settings here.
# The database itself writes down who changes which task, so the figures are its own.
# shellcheck shell=bash disable=SC2154 # variables are shared with failover.sh

timed_troubles() {
    yes timed_node timed_lease timed_leader timed_leader_stopped timed_primary | head -n 10
}

# Every change of a task's owner or of its steps.
keep_history_of_tasks() {
    sql "CREATE TABLE public.moved (at timestamptz DEFAULT clock_timestamp(), seq bigint, old text, new text, goes_on boolean);
        CREATE FUNCTION public.move() RETURNS trigger LANGUAGE plpgsql AS \$\$ BEGIN
            INSERT INTO public.moved (seq, old, new, goes_on)
            VALUES (NEW.seq, OLD.locked_by, NEW.locked_by, OLD.doc IS DISTINCT FROM NEW.doc); RETURN NULL;
        END \$\$;
        CREATE TRIGGER move AFTER UPDATE ON intact.task FOR EACH ROW
            WHEN (OLD.doc IS DISTINCT FROM NEW.doc OR OLD.locked_by IS DISTINCT FROM NEW.locked_by)
            EXECUTE FUNCTION public.move()"
}

owns_some() { [ "$(sql "SELECT count(*) FROM intact.task WHERE locked_by LIKE '$1/%'" 2>/dev/null || echo 0)" -ge 3 ]; }
owner_of_now() { sql "SELECT '$1/' || boot FROM intact.node WHERE name = '$1'"; }

# How many tasks the owner had, and after how many seconds the first one of them went on elsewhere, the last one had another
# owner, and the last one that had not ended went on. Usage: OWNER SINCE
times_of() {
    sql "WITH taken AS (SELECT seq, min(at) AS at FROM public.moved WHERE at >= to_timestamp($2) AND old LIKE '$1%'
            AND new IS DISTINCT FROM old GROUP BY seq),
        on_again AS (SELECT m.seq, min(m.at) AS at FROM public.moved AS m JOIN taken AS t ON t.seq = m.seq
            WHERE m.at >= t.at AND m.goes_on GROUP BY m.seq)
        SELECT format('of %s tasks the first went on after %s s, the last one was taken after %s s',
            (SELECT count(*) FROM taken),
            (SELECT round((extract(epoch FROM min(at)) - $2)::numeric, 2) FROM on_again),
            (SELECT round((extract(epoch FROM max(at)) - $2)::numeric, 2) FROM taken))"
}

time_since() { awk -v from="$1" -v to="$(date +%s.%3N)" 'BEGIN { printf "%.2f", to - from }'; }
first_step_since() { sql "SELECT round((extract(epoch FROM min(at)) - $1)::numeric, 2) FROM public.moved WHERE at > to_timestamp($1)"; }
took_place() { [ -n "$(first_step_since "$1" 2>/dev/null)" ]; }
led_after() { sql "SELECT round((extract(epoch FROM min(at)) - $1)::numeric, 2) FROM public.held
    WHERE name = 'supervisor' AND at > to_timestamp($1) AND epoch > $2"; }

signal_agents() {
    local n
    for n in "${agents[@]}"; do kill "-$1" "$(pid_of "$n")" 2>/dev/null || true; done
}

# SIGNAL NAME: it is gone until the others have all that it had.
without_node() {
    local owner from before leads=
    wait_until "node $2 has tasks" owns_some "$2"
    owner=$(owner_of_now "$2")
    before=$(epoch)
    [ "$(leader)" != "$2" ] || leads=1
    [ -z "${alone:-}" ] || signal_agents STOP
    from=$(date +%s.%3N)
    if [ "$1" = KILL ]; then retire "$2" KILL; else kill "-$1" "$(pid_of "$2")"; fi
    wait_until "the others have the tasks of $2" owns_nothing "$2"
    [ -z "${alone:-}" ] || signal_agents CONT
    [ -z "$leads" ] || wait_until "another one leads" has_led_since "$before"
    sleep 2
    event "TIMES ${leads:+leader }$2${alone:+ and its agents} $1: $(times_of "$owner" "$from")${leads:+, another one led after $(led_after "$from" "$before") s}"
    if [ "$1" = KILL ]; then start_node "$2"; else kill -CONT "$(pid_of "$2")"; fi
    wait_until "node $2 is back" is_ready "$2"
    sleep 1
}

trouble_timed_node() {
    local name
    wait_until "somebody leads" has_led_since 0
    name=$(leader)
    without_node KILL "n$((${name#n} % 3 + 1))"
}

# Its agents, who would hand in their results elsewhere at once, stand still: so all that it had is taken over because its
# lease has run out.
trouble_timed_lease() {
    local a
    wait_until "somebody leads" has_led_since 0
    a=$(leader)
    a=n$((${a#n} % 3 + 1))
    wait_until "node $a has tasks" owns_some "$a"
    alone=1 without_node KILL "$a"
}
trouble_timed_leader() { without_node KILL "$(leader)"; }
trouble_timed_leader_stopped() { without_node STOP "$(leader)"; }

# Usage: promised SECONDS. MOST_S is set by ./run chaos pooled alone: a test asserts no times.
promised() {
    timed="${timed:-} $1"
    [ -z "${MOST_S:-}" ] || awk -v took="$1" -v most="$MOST_S" 'BEGIN { exit took > most }' ||
        fail "after a promotion nothing went on for $1 s, and it may be $MOST_S s"
}

tell_promised() {
    [ -z "${MOST_S:-}" ] || tr ' ' '\n' <<<"$timed" | grep . | sort -g | tail -n 1 |
        sed "s/.*/after $(wc -w <<<"$timed") promotions behind poolers (by the $POOLING) tasks went on within & s; $MOST_S s are promised/"
}

trouble_timed_primary() {
    local old=$primary from promoted took
    from=$(date +%s.%3N)
    database kill "$primary"
    nap
    promoted=$(date +%s.%3N)
    database promote "$standby"
    primary=$standby
    standby=$old
    old=$(time_since "$promoted")
    wait_until "tasks go on" took_place "$promoted"
    took=$(first_step_since "$promoted")
    event "TIMES primary KILL: promoted after $(awk "BEGIN { printf \"%.2f\", $promoted - $from }") s within $old s, first step after $took s of that"
    promised "$took"
    goes_on
    database rejoin "$standby"
    sleep 1
}
