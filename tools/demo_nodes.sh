# ./run demo --nodes N: several nodes over one PostgreSQL database; the one that leads is killed, and then another one.
# To be sourced by demo.
# shellcheck shell=bash disable=SC2154 # variables are demo's

. tools/cluster.sh
names=()
for n in $(seq "$nodes"); do names+=("n$n"); done
dead=

url_of() { echo "http://127.0.0.1:$(cat "$work/$1.port")"; }
start() { start_node "$1" here "127.0.0.1:$(cat "$work/$1.port")" --scan-every 500ms --grace 2s; }
answers() { curl -fs -m 5 -o /dev/null "$(url_of "$1")/readyz"; }
ms() { date +%s%3N; }

# Only what fails waits so long. Usage: wait_for WHAT COMMAND...
wait_for() {
    local end=$((SECONDS + 120)) what=$1
    shift
    until "$@"; do
        [ "$SECONDS" -lt "$end" ] || {
            echo "waited in vain until $what; see $work/*.log" >&2
            keep_work=1
            exit 1
        }
        sleep 0.05
    done
}

# How many tasks each node owns, and which one leads: all of it stands in the database.
owners() {
    local n leads owned what
    leads=$(leader)
    owned=$(sql "SELECT split_part(locked_by, '/', 1), count(*) FROM task WHERE locked_by IS NOT NULL GROUP BY 1")
    for n in "${names[@]}"; do
        what=
        [ "$n" != "$leads" ] || what=LEADS
        [ "$n" != "$dead" ] || what=DEAD
        printf '  %s %-5s %3d' "$n" "$what" "$(grep "^$n|" <<<"$owned" | cut -d'|' -f2)"
    done
}

show() {
    printf '%s  |%s\n' "$(sql "SELECT format('      %s processed %s  undone %s  waiting %s',
        rpad(repeat('#', (20 * count(*) FILTER (WHERE state IN ('processed', 'compensated', 'error')) /
            greatest(1, count(*)))::int), 20),
        lpad((count(*) FILTER (WHERE state = 'processed'))::text, 4),
        lpad((count(*) FILTER (WHERE state = 'compensated'))::text, 3),
        lpad((count(*) FILTER (WHERE state = 'pending'))::text, 4)) FROM task")" "$(owners)"
}

is_led_by_another() { # NAME
    local now
    now=$(leader)
    [ -n "$now" ] && [ "$now" != "$1" ]
}
owns_nothing() { [ "$(sql "SELECT count(*) FROM task WHERE locked_by LIKE '$1/%'")" = 0 ]; }

has_no_lease() {
    [ "$(sql "SELECT count(*) FROM lease WHERE name = 'node/$1'
        AND until > extract(epoch FROM clock_timestamp()) * 1000")" = 0 ]
}

# Shows what goes on until both have happened: another one leads, and the dead one's tasks have new owners. Usage: NAME FROM [leads]
watch_take_over() {
    local from=$2 led= taken= shown=0
    [ -n "${3:-}" ] || led=1
    if owns_nothing "$1"; then
        tell "it owned no task at that moment"
        taken=1
    fi
    while [ -z "$led" ] || [ -z "$taken" ]; do
        if [ -z "$led" ] && is_led_by_another "$1"; then
            led=$(($(ms) - from))
            tell "$(leader) leads, $((led / 1000)).$(printf %03d $((led % 1000))) s after the kill"
        fi
        if [ -z "$taken" ] && owns_nothing "$1"; then
            taken=$(($(ms) - from))
            tell "$1's tasks belong to the others, $((taken / 1000)).$(printf %03d $((taken % 1000))) s after the kill"
        fi
        if [ $(($(ms) - shown)) -ge 500 ]; then
            show
            shown=$(ms)
        fi
        [ $(($(ms) - from)) -lt 120000 ] || wait_for "its tasks were taken over" false
    done
}

kill_node() { # NAME: for good, until it is started again
    dead=$1
    retire "$1" KILL
}

export INTACT_STORE="host=$pg_socket user=intact dbname=postgres"
tell "a database in $work/pg, and ${#names[@]} nodes on it: ${names[*]}"
make_database
start_database
for n in "${names[@]}"; do free_port >"$work/$n.port"; done
start n1
wait_for "n1 is ready" answers n1
INTACT_TOKEN=$(cat "$work/data-n1/admin-token")
for n in "${names[@]:1}"; do start "$n"; done
for n in "${names[@]}"; do wait_for "$n is ready" answers "$n"; done
export XDG_STATE_HOME=$work/state # where the command line remembers to which installation they belong
INTACT_SERVER=$(for n in "${names[@]}"; do url_of "$n"; done | paste -sd,)
"$server_bin" workflow put examples/order/order.yaml
tell "six agents, two of each: stock, payment, shipping. They find all nodes, and work for each of"
tell "them. They fail now and then, hang, answer too late, or kill themselves"
for n in 1 2; do
    start_agent stock $n --delay 60 --fail 30 --hang 3 --crash-before 2 --seed $n
    start_agent payment $n --delay 100 --fail 60 --late 6 --crash-after 3 --seed 1$n
    start_agent shipping $n --delay 80 --fail 30 --hang 3 --crash-after 2 --seed 2$n
done
wait_for "somebody leads" is_led_by_another ""
tell "$count orders. Each node owns some of the tasks (how many: behind its name); one node leads,"
tell "which means: it looks for what is overdue"
orders order "$count" | "$server_bin" submit -f - | tail -n 1
watch_for 3
victim=$(leader)
tell "SIGKILL: $victim, which leads. Nobody starts it again"
from=$(ms)
kill_node "$victim"
watch_take_over "$victim" "$from" leads
watch_for 1
tell "$victim is started again"
dead=
start "$victim"
wait_for "$victim is ready" answers "$victim"
watch_for 1
leads=$(leader)
other=$(printf '%s\n' "${names[@]}" | grep -v -e "^$leads$" -e "^$victim$" | head -n 1)
other=${other:-$victim}
tell "SIGKILL: $other, which does not lead, and agents stock-1 and payment-2, which come back"
from=$(ms)
kill_node "$other"
strike stock-1
strike payment-2
watch_take_over "$other" "$from"
watch_for 120
tell "all orders have ended; what became of them, by plain SQL:"
PGOPTIONS='-c search_path=intact' psql -h "$pg_socket" -U intact -d postgres -qX -P footer=off -P border=2 \
    -P linestyle=unicode -c "SELECT state, count(*) AS tasks, sum(failure_count) AS failures,
    round(avg(ended_at - submitted_at) / 1000.0, 2) AS mean_seconds FROM task GROUP BY state ORDER BY state"
wait_for "the lease of $other ran out" has_no_lease "$other"
tell "the nodes, as one of them tells: intact node list"
"$server_bin" node list --server "$(url_of "$(leader)")"
for n in "${names[@]}" {stock,payment,shipping}-{1,2}; do
    retire "$n"
done
tell "a program of its own compares the agents' ledgers with the tasks in the database:"
reconcile
