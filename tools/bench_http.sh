# Benches of connections and HTTP. To be sourced by tools/bench, whose helpers they use.
# shellcheck shell=bash disable=SC2154 # $work, $build, $server_bin are those of tools/bench

# Agents that wait for work: plain calls, and agents of libintact (three descriptors and more for each).
bench_connections() {
    fresh
    ulimit -n "$(ulimit -Hn)"
    [ "$(ulimit -n)" -ge 10100 ] || echo "connections: only $(ulimit -n) descriptors; see ulimit -n" >&2
    waiting() { # KIND COUNT
        mkfifo "$work/stop"
        "$build/bench/bench-connections" "$1" "$2" 100 <"$work/stop" >"$work/parked" &
        local pid=$!
        exec 8>"$work/stop"
        until [ -s "$work/parked" ] || ! kill -0 $pid 2>/dev/null; do sleep 0.1; done
        sleep 2
        local ticks
        ticks=$(cpu_ticks "$(server_pid)")
        sleep 10
        echo "connections: $1: $(cat "$work/parked"); server resident $(rss_mib) MiB, CPU $((($(cpu_ticks "$(server_pid)") - ticks) * 10)) ms in 10 s"
        exec 8>&-
        wait $pid
        rm "$work/stop"
    }
    echo "connections: none: server resident $(rss_mib) MiB"
    waiting raw 10000
    waiting agents 1000
}

bench_http_agent() {
    for places in 100 1000; do
        "$build/bench/bench-http-agent" "$server_bin" "$places" 10 | sed 's/^/http-agent: /'
    done
}

# What the server's CPU takes for what a load gets done. Usage: rate_of CONNECTIONS MS PATH; sets answered,
# rate (a second), cpu_us (of the server, a request).
rate_of() {
    local ticks
    ticks=$(cpu_ticks "$(server_pid)")
    read -r answered rate < <("$build/bench/bench-http" "$port" rate "$1" "$2" "$3")
    cpu_us=$(awk "BEGIN {printf \"%.1f\", ($(cpu_ticks "$(server_pid)") - $ticks) * 10000 / $answered}")
}
# Connections that stay until standard input of their program ends. Usage: hold KIND COUNT; let_go ends it.
hold() {
    rm -f "$work/hold"
    mkfifo "$work/hold"
    "$build/bench/bench-http" "$port" "$1" "$2" <"$work/hold" >"$work/held" &
    holder=$!
    exec 9>"$work/hold"
    until [ -s "$work/held" ]; do sleep 0.05; done
    sleep 1
}
let_go() {
    exec 9>&-
    wait "$holder" || true
    : >"$work/held"
}

bench_http() {
    fresh
    port=${INTACT_SERVER##*:}
    : >"$work/held"
    rate_of 64 1000 /healthz # warm
    for load in "64 /healthz" "64 /v1/workflows/nobody" "1 /healthz"; do
        connections=${load% *}
        path=${load#* }
        rate_of "$connections" 4000 "$path"
        echo "http: GET $path on $connections connections: $rate a second, $cpu_us us of server CPU each: $(awk "BEGIN {printf \"%.0f\", 1000000 / $cpu_us}") a second of one core"
    done
    before=$(rss_mib)
    hold park 10000
    echo "http: 10 000 parked agents: $(rss_mib) MiB resident, $before MiB without"
    let_go
    sleep 1
    # In turns, as the machine has its moods: without, with, without, ...
    : >"$work/without"
    : >"$work/with"
    for i in 1 2 3 4 5; do
        rate_of 64 2000 /healthz
        echo "$rate $cpu_us" >>"$work/without"
        hold park 10000
        rate_of 64 2000 /healthz
        echo "$rate $cpu_us" >>"$work/with"
        let_go
        sleep 0.5
    done
    echo "http: $(paste "$work/without" "$work/with" | awk '{
        printf "%s%s a second at %s us, parked %s at %s us", (NR > 1 ? "; " : ""), $1, $2, $3, $4 }')"
    echo "http: with 10 000 parked: $(paste "$work/without" "$work/with" | awk '{ r += $1; R += $3; c += $2; C += $4 }
        END { printf "%.3f of the rate, %.3f of the CPU for each request", R / r, C / c }')"
    retire_all
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=bench \
        -keyout "$work/key.pem" -out "$work/cert.pem" 2>/dev/null
    "$server_bin" serve --data "$work/data" --listen "127.0.0.1:$port" --tls-cert "$work/cert.pem" \
        --tls-key "$work/key.pem" 2>"$work/tls.log" >"$work/ready" &
    tls_server=$!
    until [ -s "$work/ready" ]; do sleep 0.05; done
    resident() { awk '/VmRSS/ {print $2}' "/proc/$tls_server/status"; }
    begin=$(resident)
    ticks=$(cpu_ticks $tls_server)
    hold tls 2000
    echo "http: TLS: $((($(cpu_ticks $tls_server) - ticks) * 10000 / 2000)) us of server CPU a handshake with one request, $((($(resident) - begin) * 10 / 2000)) tenths of a KiB each while they are idle"
    let_go
    kill $tls_server && wait $tls_server 2>/dev/null || true
}
