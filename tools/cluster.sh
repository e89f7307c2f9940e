# An installation of several nodes over PostgreSQL in $work: the database, nodes n1, n2, ..., and agents that know all of
# them. To be sourced behind installation.sh, parts of which it replaces.
# shellcheck shell=bash disable=SC2154 # $work, $build and $server_bin are installation.sh's

pg_socket=$work/pg
pg_ledgers=("$work/stock.db" "$work/payment.db" "$work/shipping.db")

# Debian has each version in a folder of its own; the newest one is taken.
pg_programs() { find /usr/lib/postgresql/*/bin -name initdb -printf '%h\n' 2>/dev/null | sort -V | tail -n 1; }

# PostgreSQL does not run as root: then it runs as the user that its package made.
pg_as=()
[ "$(id -u)" != 0 ] || pg_as=(setpriv --reuid=postgres --regid=postgres --clear-groups --)

# Becomes the command, on the machine of that name: here there is but one. Usage: at HOST COMMAND..., in a subshell
at() {
    shift
    exec "$@"
}

# A new, empty database. Who reaches it may use it. Usage: make_database [LINE OF pg_hba.conf]
make_database() {
    local bin
    bin=$(pg_programs)
    [ -n "$bin" ] || {
        echo "there is no PostgreSQL server; tools/setup test installs it" >&2
        return 1
    }
    chmod 711 "$work" # its user has to get through
    mkdir "$pg_socket"
    [ "$(id -u)" != 0 ] || chown postgres "$pg_socket"
    (cd "$pg_socket" && "${pg_as[@]}" "$bin/initdb" -D "$pg_socket/data" -U intact -A trust -E UTF8 \
        --locale=C --no-sync --no-instructions >"$work/initdb.log" 2>&1) || {
        cat "$work/initdb.log" >&2
        return 1
    }
    [ -z "${1:-}" ] || echo "$1" >>"$pg_socket/data/pg_hba.conf"
}

# Usage: start_database [OPTIONS of postgres]
start_database() {
    keep database at database "${pg_as[@]}" "$(pg_programs)/postgres" -D "$pg_socket/data" -k "$pg_socket" \
        -c listen_addresses= -c dynamic_shared_memory_type=mmap "$@"
    local end=$((SECONDS + 120))
    until sql 'SELECT 1' >/dev/null 2>&1; do
        [ "$SECONDS" -lt "$end" ] || {
            echo "the database does not start:" >&2
            tail -n 5 "$work/database.log" >&2
            return 1
        }
        sleep 0.05
    done
}

# Through the socket, which no trouble in a network cuts off. Tables are in Intact's own schema.
sql() {
    PGOPTIONS='-c search_path=intact' psql -h "$pg_socket" -U intact -d postgres -AtqX -v ON_ERROR_STOP=1 -c "$1"
}

# The name of the supervisor that leads, if any.
leader() {
    sql "SELECT split_part(holder, '/', 1) FROM lease
        WHERE name = 'supervisor' AND until > extract(epoch FROM clock_timestamp()) * 1000"
}

# Usage: stop_node NAME, start_node NAME HOST LISTEN [OPTIONS...]
start_node() {
    local name=$1 host=$2 listen=$3
    shift 3
    keep "$name" at "$host" "$server_bin" serve --data "$work/data-$name" --node "$name" --listen "$listen" "$@"
}

reconcile() {
    "$build/examples/order/intact-reconcile" "$@" "host=$pg_socket user=intact dbname=postgres" "${pg_ledgers[@]}"
}
