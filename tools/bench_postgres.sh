# `./run bench postgres`: over PostgreSQL. To be sourced by tools/bench. The database lies in $work, durable as it comes.
# shellcheck shell=bash disable=SC2154 # $work, $build, $server_bin are those of tools/bench

. tools/database.sh

db() { psql -h "$work/database" -U intact -d postgres -qAt -c "$1"; }

# Nodes of a fresh schema. Usage: start_nodes COUNT
start_nodes() {
    local n
    schema=turn$((++turn))
    urls=
    for n in $(seq "$1"); do
        rm -f "$work/ready$n"
        "$server_bin" serve --open --store "$database" --schema $schema --node "n$n" --data "$work/node$n" \
            --listen 127.0.0.1:0 >"$work/ready$n" 2>"$work/node$n.log" &
        nodes+=($!)
        until [ -s "$work/ready$n" ]; do sleep 0.02; done
        urls=$urls${urls:+,}http://127.0.0.1:$(tr -dc 0-9 <"$work/ready$n")
        # Later nodes find it when they start.
        [ "$n" -gt 1 ] || INTACT_SERVER=$urls "$server_bin" workflow put bench/bench.json >/dev/null
    done
}

end_nodes() {
    kill "${nodes[@]}" && wait "${nodes[@]}" 2>/dev/null || true
    nodes=()
    db "DROP SCHEMA $schema CASCADE" 2>/dev/null
}

# Tasks of three steps, half of them submitted to each node. Sets rate (a second), changes and batches.
# Usage: load_nodes NODES TASKS
load_nodes() {
    local url n=0 loads=()
    INTACT_SERVER=$urls with_agents 256
    for url in ${urls//,/ }; do
        INTACT_SERVER=$url "$build/bench/bench-load" many $(($2 / $1)) 500 "n$((++n))" >"$work/load$n" &
        loads+=($!)
    done
    wait "${loads[@]}"
    rate=$(cat "$work"/load[1-"$1"] | tr -d '{},":' | awk -v total="$2" '{
        for (i = 1; i < NF; i++) if ($i == "seconds" && $(i + 1) > s) s = $(i + 1) } END { printf "%.0f", total / s }')
    without_agents
}

node_metric() { # NAME: the sum over all nodes
    local url
    for url in ${urls//,/ }; do curl -s "$url/metrics"; done | awk -v name="$1" '$1 == name { s += $2 } END { print s + 0 }'
}

measure_postgres() {
    local tasks=${1:-20000} wal bytes i
    nodes=()
    turn=0
    chmod 711 "$work" # the database is run by another user
    start_database "$work/database" max_wal_size=4GB
    "$build/bench/bench-postgres" "$database"
    start_nodes 1
    load_nodes 1 2000 # warm
    db CHECKPOINT
    wal=$(db "SELECT pg_current_wal_lsn() - '0/0'")
    load_nodes_again "$tasks"
    echo "postgres: $rate tasks of 3 steps a second; $(awk "BEGIN {printf \"%.1f changes a task, %.0f changes a batch\", $changes / $tasks, $changes / $batches}")"
    bytes=$(db "SELECT sum(pg_total_relation_size(c.oid)) FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
        WHERE n.nspname = '$schema' AND c.relkind = 'r'")
    wal=$(($(db "SELECT pg_current_wal_lsn() - '0/0'") - wal))
    echo "postgres: $((wal / tasks)) bytes of WAL a task, $((bytes / (tasks + 2000))) bytes kept; $(db "SELECT
        round(100.0 * n_tup_hot_upd / n_tup_upd) FROM pg_stat_user_tables WHERE schemaname = '$schema' AND relname = 'task'") % of its updates touch no index"
    end_nodes
    : >"$work/ratios"
    for i in 1 2 3 4 5; do
        start_nodes 1
        load_nodes 1 "$tasks"
        one=$rate
        end_nodes
        start_nodes 2
        load_nodes 2 "$tasks"
        end_nodes
        echo "postgres: one node $one tasks a second, two nodes $rate"
        awk "BEGIN {print $rate / $one}" >>"$work/ratios"
    done
    echo "postgres: two nodes do $(sort -n "$work/ratios" | sed -n 3p) of what one does (median of 5 pairs of turns)"
    stop_database "$work/database"
}

load_nodes_again() { # TASKS: on the nodes that are warm
    local before batches_before
    before=$(node_metric intact_state_changes_total)
    batches_before=$(node_metric intact_batches_total)
    INTACT_SERVER=$urls with_agents 256
    rate=$(INTACT_SERVER=$urls "$build/bench/bench-load" many "$1" 500 again | tr -d '{},":' | awk '{ print $NF }')
    without_agents
    changes=$(($(node_metric intact_state_changes_total) - before))
    batches=$(($(node_metric intact_batches_total) - batches_before))
}
