#!/usr/bin/env bash
# Three nodes on a primary and its synchronous standby, six agents, clients that submit all the time; meanwhile databases,
# nodes and agents are killed and stopped. Afterwards everything that was answered 2xx must be there and have
# ended, the agents' ledgers must agree with it, and nobody may have led under another one's epoch.
# Usage: failover.sh ROOT BUILD [ROUNDS] [SEED] [short] [TROUBLE...]
# The kinds of trouble are the functions trouble_NAME in troubles.sh. The history of each round is printed.
# With POOLING=transaction or POOLING=session a PgBouncer stands before each database, and nodes know these alone.
# With MOST_S a timed promotion fails if nothing goes on for longer than so many seconds.
set -eu
root=$1
build=$2
rounds=${3:-1}
seed=${4:-$((SECONDS + $$))}
size=${5:-long}
shift $(($# < 5 ? $# : 5))
troubles=("$@")
RANDOM=$seed
SEED=$seed
work=$(mktemp -d "${TMPDIR:-/tmp}/intact-failover.XXXXXX")
chmod 711 "$work" # the databases are somebody else's
. "$root/tools/installation.sh"
. "$root/tests/failover/troubles.sh"
. "$root/tests/failover/timed.sh"
pair=$build/tests/postgres/intact-pair
nodes=(n1 n2 n3)
agents=(stock-1 stock-2 payment-1 payment-2 shipping-1 shipping-2)
primary=a
standby=b
rate=$([ "$size" = short ] && echo 6 || echo 30)
settings="--scan-every 500ms --grace 1s"
[ "$size" != timed ] || settings=
good=

finish() {
    set +e
    touch "$work/r$round.stop"
    retire_all KILL
    "$pair" "$work/db" end 2>/dev/null || true
    wait
    if [ -n "$good" ]; then
        rm -rf "$work"
    else
        echo "failover: failed; again: ${POOLING:+POOLING=$POOLING }tests/failover/failover.sh . $build $rounds $seed $size ${troubles[*]}" >&2
        echo "failover: what is left of it: $work" >&2
    fi
}
round=0
trap finish EXIT
trap 'exit 130' INT TERM

fail() {
    echo "failover, round $round: $*" >&2
    tell_history >&2 || true
    exit 1
}

# What happened, for the history. Usage: event TEXT
event() { echo "$(date +%s.%3N) $*" >>"$work/events"; }

# Only what fails waits so long. Usage: wait_until WHAT COMMAND...
wait_until() {
    local end=$((SECONDS + 300)) what=$1
    shift
    until "$@"; do
        [ "$SECONDS" -lt "$end" ] || fail "waited for ever until $what"
        sleep 0.05
    done
}

sql() { PGCONNECT_TIMEOUT=10 psql -XAtqc "$1" "$conninfo"; }
url_of() { echo "http://127.0.0.1:$(cat "$work/$1.port")"; }
is_ready() { curl -fs -m 20 -o /dev/null "$(url_of "$1")/readyz"; }
is_troubled() { [ "$(curl -s -m 20 -o /dev/null -w '%{http_code}' "$(url_of "$1")/readyz")" = 503 ]; }
all_are_ready() { local n; for n in "${nodes[@]}"; do is_ready "$n" || return 1; done; }
leader() { sql "SELECT split_part(holder, '/', 1) FROM intact.lease WHERE name = 'supervisor'"; }
epoch() { sql "SELECT epoch FROM intact.lease WHERE name = 'supervisor'" 2>/dev/null; }
has_led_since() { [ "$(epoch || echo 0)" -gt "$1" ]; }
accepted() { cat "$work"/r*.accepted 2>/dev/null | wc -l; }
more_accepted() { [ "$(accepted)" -gt "$1" ]; }

# Some nodes' machines go by a clock of their own: see trouble_clock.
clock_of() { cat "$work/$1.clock" 2>/dev/null || true; }

start_node() {
    [ -e "$work/$1.port" ] || free_port >"$work/$1.port"
    # shellcheck disable=SC2046,SC2086 # lists of words
    keep "$1" env $(clock_of "$1") "$server_bin" serve --data "$work/$1.data" --node "$1" --store "$store" \
        --listen "127.0.0.1:$(cat "$work/$1.port")" $settings
}

# Who leads, and since when: every change of a lease's holder, written down by the database itself.
keep_history_of_leases() {
    sql "CREATE TABLE public.held (at timestamptz DEFAULT clock_timestamp(), name text, holder text, epoch bigint);
        CREATE FUNCTION public.hold() RETURNS trigger LANGUAGE plpgsql AS \$\$ BEGIN
            INSERT INTO public.held (name, holder, epoch) VALUES (NEW.name, NEW.holder, NEW.epoch); RETURN NULL;
        END \$\$;
        INSERT INTO public.held (name, holder, epoch) SELECT name, holder, epoch FROM intact.lease;
        CREATE TRIGGER hold_first AFTER INSERT ON intact.lease FOR EACH ROW EXECUTE FUNCTION public.hold();
        CREATE TRIGGER hold_next AFTER UPDATE ON intact.lease FOR EACH ROW
            WHEN (NEW.holder <> OLD.holder OR NEW.epoch <> OLD.epoch) EXECUTE FUNCTION public.hold()"
}

set_up() {
    local n i=0
    # Should we be killed, too, nothing may stay.
    (setsid "$pair" "$work/db" guard $$ </dev/null >/dev/null 2>&1 &)
    "$pair" "$work/db" make
    conninfo=$("$pair" "$work/db" conninfo)
    store=$conninfo
    [ -z "${POOLING:-}" ] || { "$pair" "$work/db" pool "$POOLING" && store=$("$pair" "$work/db" conninfo pool); }
    start_node n1
    wait_until "node n1 is ready" is_ready n1
    INTACT_TOKEN=$(cat "$work/n1.data/admin-token")
    export INTACT_SERVER SEED
    INTACT_SERVER=$(url_of n1)
    INTACT_TOKEN=$("$server_bin" token create everybody --role admin) # which every node knows
    "$server_bin" workflow put "$root/examples/order/order.yaml" >/dev/null
    keep_history_of_leases
    [ "$size" != timed ] || keep_history_of_tasks
    for n in n2 n3; do start_node "$n"; done
    wait_until "all nodes are ready" all_are_ready
    for n in "${agents[@]}"; do # half of them are told one node alone, another one each, and ask it for the others
        INTACT_SERVER=$(seeds_of "$i") start_agent "${n%-*}" "${n#*-}" --delay 100 --fail 20 --seed "$RANDOM"
        i=$((i + 1)) # not in there, which is a process of its own
    done
}

# What an agent is given to start with. Usage: seeds_of NUMBER
seeds_of() {
    local n urls=
    [ $(($1 % 2)) = 0 ] || { url_of "${nodes[$1 % 3]}"; return; }
    for n in "${nodes[@]}"; do urls+=${urls:+,}$(url_of "$n"); done
    echo "$urls"
}

begin_load() {
    local urls=() n
    for n in "${nodes[@]}"; do urls+=("$n=$(url_of "$n")"); done
    python3 "$root/tests/failover/load.py" "$work" "r$round" "$rate" "${urls[@]}" &
    load=$!
    wait_until "orders are accepted" more_accepted "$(accepted)"
}

end_load() {
    wait_until "all nodes are ready" all_are_ready
    touch "$work/r$round.stop"
    wait "$load" || fail "the load failed"
}

all_ended() {
    [ "$(sql "SELECT count(*) FROM intact.task WHERE state NOT IN ('processed', 'compensated', 'error')" 2>/dev/null)" = 0 ]
}

reconcile() {
    "$build/examples/order/intact-reconcile" "$conninfo" "$work/stock.db" "$work/payment.db" "$work/shipping.db"
}

# Everything accepted, as the submitters noted it, and not as the nodes say.
check_accepted() {
    local lost
    sql "SELECT id FROM intact.task" | sort >"$work/there"
    cut -d ' ' -f 2 "$work"/r*.accepted | sort -u >"$work/told"
    lost=$(comm -13 "$work/there" "$work/told" | head -n 5 | tr '\n' ' ')
    [ -z "$lost" ] || fail "answered 2xx and lost: $lost"
}

check_answers() {
    [ ! -e "$work/r$round.missing" ] || fail "a node did not know what was accepted: $(head -n 3 "$work/r$round.missing")"
    [ ! -e "$work/r$round.refused" ] || fail "an order was refused: $(head -n 3 "$work/r$round.refused")"
}

check_epochs() {
    local bad
    bad=$(sql "SELECT string_agg(name || ' ' || epoch, ', ') FROM (SELECT name, epoch FROM public.held
        GROUP BY name, epoch HAVING count(DISTINCT holder) > 1) AS twice")
    [ -z "$bad" ] || fail "two held one epoch: $bad"
}

# Nobody died but by our hand: a node starts as often as it was killed, and once.
check_logs() {
    ! grep -hE "assertion failed|AddressSanitizer|runtime error|ThreadSanitizer|LeakSanitizer" "$work"/*.log >&2 ||
        fail "see above"
}

check_round() {
    check_answers
    wait_until "all tasks have ended" all_ended
    check_accepted
    reconcile >"$work/reconcile.out" || fail "$(cat "$work/reconcile.out")"
    check_epochs
    check_logs
}

# Seconds since the round began. The longest time without an accepted order is how long the clients had to wait.
tell_history() {
    cp "$work/events" "$work/all"
    sql "SELECT extract(epoch FROM at)::numeric(20, 3) || ' ' || split_part(holder, '/', 1) || ' leads, epoch ' || epoch
        FROM public.held WHERE name = 'supervisor'" >>"$work/all" 2>/dev/null
    awk '{ if (NR > 1 && $1 - last > 0.8) printf "%.3f first order accepted after %.1f s\n", $1, $1 - last; last = $1 }' \
        <(sort -n "$work/r$round.accepted") >>"$work/all"
    sort -n "$work/all" | awk -v began="$began" '$1 >= began { at = $1; $1 = ""; printf "  %7.2f %s\n", at - began, $0 }'
}

tell_round() {
    local states
    states=$(sql "SELECT string_agg(state || ' ' || n, ', ') FROM (SELECT state, count(*) AS n FROM intact.task
        GROUP BY state ORDER BY state) AS s")
    echo "failover, round $round, seed $seed: $(accepted) accepted, none lost; $states; $(epoch) epochs"
    tell_history
}

set_up
for round in $(seq "$rounds"); do
    began=$(date +%s.%3N)
    begin_load
    for trouble in "${troubles[@]:-$(default_troubles)}"; do
        for one in $trouble; do "trouble_$one"; done
    done
    end_load
    check_round
    tell_round
done
tell_promised
good=1
