# A server of a test that is a shell script, to be sourced. Before it: $intact, $work (a folder), the array `pids` of what is
# killed at the end, and fail(). After it: INTACT_SERVER and INTACT_TOKEN are exported, $server is its process.

# Not one of the ports that the kernel gives to outgoing connections.
port=$((2048 + ($$ * 7) % 20000))
start_server() { # false: the port is taken
    "$intact" serve --data "$work/data" --listen "127.0.0.1:$port" --log warn >"$work/ready" 2>"$work/server.log" &
    server=$!
    until [ -s "$work/ready" ]; do
        kill -0 $server 2>/dev/null || return 1
        sleep 0.05
    done
}
until start_server; do
    grep -q 'in use' "$work/server.log" || fail "the server starts"
    port=$((port + 1))
done
pids+=("$server")
export INTACT_SERVER=http://127.0.0.1:$port
until INTACT_TOKEN=$(cat "$work/data/admin-token" 2>/dev/null) && [ -n "$INTACT_TOKEN" ]; do sleep 0.05; done
export INTACT_TOKEN
