# Benches of the server under load, and of what it keeps. To be sourced by tools/bench, whose helpers they use.
# shellcheck shell=bash disable=SC2154 # $work, $build, $server_bin are those of tools/bench

bench_start() {
    fresh
    retire server
    for i in 1 2 3 4 5; do
        begin=$(date +%s%N)
        "$server_bin" serve --data "$work/data" --listen 127.0.0.1:0 2>/dev/null >"$work/ready" &
        pid=$!
        until [ -s "$work/ready" ]; do :; done
        echo "start: ready after $((($(date +%s%N) - begin) / 1000)) us"
        kill $pid && wait $pid 2>/dev/null || true
        : >"$work/ready"
    done
}

bench_latency() {
    fresh
    with_agents 16
    "$build/bench/bench-load" one 100 >/dev/null
    floor=$("$build/bench/bench-fsync" "$work" 1000)
    one=$("$build/bench/bench-load" one 1000)
    without_agents
    echo "latency: $one, floor $floor"
    printf '%s %s\n' "$one" "$floor" | tr -d '{},":' | awk '{
        for (i = 1; i < NF; i++) { if ($i == "p50_ms") p = $(i + 1); if ($i == "fdatasync_p50_ms") f = $(i + 1) }
        printf "latency: p50 %.3f ms; 6 fdatasyncs + 1 ms is %.3f ms: ratio %.2f\n", p, 6 * f + 1, p / (6 * f + 1) }'
}

bench_throughput() {
    fresh
    with_agents 256
    bytes=$(written)
    ticks=$(cpu_ticks "$(server_pid)")
    agent_ticks=$(cpu_ticks $agents)
    echo "throughput: $("$build/bench/bench-load" many 100000)"
    echo "throughput: server CPU $((($(cpu_ticks "$(server_pid)") - ticks) * 10)) ms, agents' CPU $((($(cpu_ticks $agents) - agent_ticks) * 10)) ms per 100 000 tasks"
    echo "throughput: $((($(written) - bytes) / 100000)) bytes written per task, resident $(rss_mib) MiB"
    curl -s -H "Authorization: Bearer $INTACT_TOKEN" "$INTACT_SERVER/metrics" | grep -E '^intact_(batches|state_changes|claims|conflicts)_total' | sed 's/^/throughput: /'
    without_agents
}

# With and without status messages, by turns: what one turn of the machine is worth, the next one shows.
bench_messages() {
    fresh
    retire server
    mkfifo "$work/stop"
    "$build/bench/bench-receiver" <"$work/stop" >"$work/received" &
    receiver=$!
    exec 8>"$work/stop"
    until [ -s "$work/received" ]; do sleep 0.05; done
    to=http://127.0.0.1:$(head -1 "$work/received")/
    SECRET=whsec_$(openssl rand -base64 32)
    export SECRET
    printf 'intact_server: 1\nwebhooks:\n  - {url: "%s", secret: {env: SECRET}, private: [127.0.0.1], batch: 500}\n' "$to" >"$work/server.yaml"
    start_server --config "$work/server.yaml"
    wait_ready
    with_agents 256
    "$build/bench/bench-load" many 5000 500 warm "$to" >/dev/null
    for round in $(seq "${ROUNDS:-5}"); do
        kinds="without with"
        [ $((round % 2)) = 1 ] || kinds="with without" # who comes later has the larger store
        for kind in $kinds; do
            reply=
            [ "$kind" = without ] || reply=$to
            cpu=$(cpu_us "$(server_pid)")
            taken=$(cpu_us "$receiver")
            found=$("$build/bench/bench-load" many "${TASKS:-30000}" 500 "r$round$kind" "$reply")
            echo "messages: $kind: $found server_us $((($(cpu_us "$(server_pid)") - cpu) / ${TASKS:-30000})) receiver_us $((($(cpu_us "$receiver") - taken) / ${TASKS:-30000})) of CPU a task"
        done
    done | tee "$work/rounds"
    without_agents
    exec 8>&-
    retire server # whose keeper holds the other end, too
    wait "$receiver"
    echo "messages: received $(tail -1 "$work/received")"
    awk '{ for (i = 1; i < NF; i++) {
            if ($i == "\"tasks_per_s\":") rate[$2] = rate[$2] " " $(i + 1) + 0
            if ($i == "server_us") cpu[$2] = cpu[$2] " " $(i + 1) } }
        function median(list, n, a, i, j, t) { n = split(list, a, " ")
            for (i = 1; i <= n; i++) for (j = i + 1; j <= n; j++) if (a[j] < a[i]) { t = a[i]; a[i] = a[j]; a[j] = t }
            return (a[int((n + 1) / 2)] + a[int(n / 2) + 1]) / 2 }
        END { a = median(rate["without:"]); b = median(rate["with:"])
            printf "messages: medians %d tasks/s without, %d with: %.1f %% lost\n", a, b, 100 * (a - b) / a
            a = median(cpu["without:"]); b = median(cpu["with:"])
            printf "messages: medians of server CPU %d us a task without, %d with: %.1f %% more\n", a, b, 100 * (b - a) / a }' "$work/rounds"
}

# What those who come one after another notice while all that stopped in error is retried: with the
# operation at work and stopped by turns, until it is done.
bench_bulk() {
    fresh
    "$server_bin" workflow put bench/stops.json >/dev/null
    with_agents 64 d
    "$build/bench/bench-load" one 100 >/dev/null
    echo "bulk: stopped in error: $("$build/bench/bench-load" stopping "${TASKS:-100000}")"
    kill -USR1 "$agents"
    operation=$("$server_bin" retry --all --state error --workflow stops --no-wait --reason bench | awk '/^operation/ {print $2}')
    for ((;;)); do
        with=$("$build/bench/bench-load" one 200)
        "$server_bin" operation stop "$operation" --reason bench >/dev/null 2>&1 || break # it is done
        sleep 0.2
        echo "bulk: with: $with"
        echo "bulk: without: $("$build/bench/bench-load" one 200)"
        "$server_bin" operation continue "$operation" --reason bench >/dev/null
    done | tee "$work/bulk"
    awk '{ for (i = 3; i < NF; i++) if ($i ~ /^"p(50|99)_ms":$/) { n[$2 $i]++; v[$2 $i, n[$2 $i]] = $(i + 1) + 0 } }
        function median(k, i, j, t) {
            for (i = 1; i <= n[k]; i++) for (j = i + 1; j <= n[k]; j++) if (v[k, j] < v[k, i]) { t = v[k, i]; v[k, i] = v[k, j]; v[k, j] = t }
            return v[k, int((n[k] + 1) / 2)] }
        END { printf "bulk: medians of %d turns: p50 %.1f ms without, %.1f with; p99 %.1f without, %.1f with\n", n["with:\"p50_ms\":"],
            median("without:\"p50_ms\":"), median("with:\"p50_ms\":"), median("without:\"p99_ms\":"), median("with:\"p99_ms\":") }' "$work/bulk"
    "$server_bin" operation get "$operation" --json | sed 's/^/bulk: /'
    curl -s -H "Authorization: Bearer $INTACT_TOKEN" "$INTACT_SERVER/metrics" | grep -E '^intact_(operation_tasks|conflicts)_total' | sed 's/^/bulk: /'
    without_agents
}

bench_idle() {
    fresh
    with_agents 16
    "$build/bench/bench-load" one 100 >/dev/null
    sleep 3
    bytes=$(written)
    ticks=$(cpu_ticks "$(server_pid)")
    sleep 20
    echo "idle: resident $(rss_mib) MiB, CPU $((($(cpu_ticks "$(server_pid)") - ticks) * 10)) ms and $(($(written) - bytes)) bytes written in 20 s"
    without_agents
}

bench_pending() {
    fresh
    with_agents 16
    "$build/bench/bench-load" one 200 >/dev/null
    before=$("$build/bench/bench-load" one 1000)
    begin=$SECONDS
    "$build/bench/bench-load" pending 1000000 1000
    echo "pending: 1 000 000 pending tasks submitted in $((SECONDS - begin)) s, resident $(rss_mib) MiB"
    "$build/bench/bench-load" one 200 >/dev/null
    echo "pending: one task before: $before"
    echo "pending: one task with 1 000 000 others pending: $("$build/bench/bench-load" one 1000)"
    echo "pending: resident $(rss_mib) MiB"
    strike server
    begin=$(date +%s%N)
    sleep 0.15
    wait_ready
    echo "pending: killed and ready again after $((($(date +%s%N) - begin) / 1000000)) ms"
    "$build/bench/bench-load" one 200 >/dev/null
    echo "pending: one task after the restart: $("$build/bench/bench-load" one 1000)"
    echo "pending: resident $(rss_mib) MiB"
    without_agents
}

# What a task leaves behind on the disk, and what a VACUUM finds to give back.
bench_sizes() {
    fresh
    size() { stat -c %s "$work/data/$1" 2>/dev/null || echo 0; }
    empty=$(size intact.db)
    with_agents 256
    "$build/bench/bench-load" many 100000 >/dev/null
    without_agents
    wal=$(size intact.db-wal)
    rss=$(rss_mib)
    retire server # writes the log back into the database
    ended=$(size intact.db)
    echo "sizes: $(((ended - empty) / 100000)) bytes kept for a task of 3 steps that has ended; log $((wal >> 20)) MiB at the end, resident $rss MiB"
    begin=$(date +%s%N)
    sqlite3 "$work/data/intact.db" VACUUM
    echo "sizes: VACUUM of $((ended >> 20)) MiB took $((($(date +%s%N) - begin) / 1000000)) ms and left $(($(size intact.db) >> 20)) MiB"
    fresh
    "$build/bench/bench-load" pending 100000 1000
    retire server
    echo "sizes: $((($(size intact.db) - empty) / 100000)) bytes for a pending task"
}
