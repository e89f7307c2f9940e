# A PostgreSQL server of one's own, durable as installed: to be sourced. It lives in a folder and listens on a socket there
# alone, run by an unprivileged user as PostgreSQL demands; the machine's own servers are left alone.
# shellcheck shell=bash

database_programs=$(find /usr/lib/postgresql -path '*/bin/initdb' -printf '%h\n' 2>/dev/null | sort -V | tail -n 1)

as_database() {
    if [ "$(id -u)" = 0 ]; then
        (cd / && setpriv --reuid postgres --regid postgres --clear-groups "$@")
    else
        "$@"
    fi
}

# start_database FOLDER [NAME=VALUE...]: makes it if it is not there; then $database says how to reach it.
start_database() {
    local folder=$1 option options=()
    shift
    for option; do options+=(-c "$option"); done
    if [ ! -d "$folder" ]; then
        mkdir -p "$folder"
        [ "$(id -u)" != 0 ] || chown postgres "$folder"
        as_database "$database_programs/initdb" -D "$folder/data" -U intact -A trust -E UTF8 --locale=C \
            --no-instructions >"$folder.log" 2>&1 || { cat "$folder.log" >&2; return 1; }
    fi
    as_database "$database_programs/pg_ctl" -D "$folder/data" -l "$folder/log" -w -s \
        -o "-k $folder -c listen_addresses= ${options[*]}" start
    # shellcheck disable=SC2034 # for who sources this
    database="host=$folder user=intact dbname=postgres"
}

stop_database() { # FOLDER [fast|immediate]
    as_database "$database_programs/pg_ctl" -D "$1/data" -m "${2:-fast}" -w -s stop 2>/dev/null || true
}
