#!/usr/bin/env bash
# The command line and its tokens: found by itself on the server's machine, from a file, from the environment,
# and never sent to somebody who only has the server's port. Usage: token_file.sh INTACT
set -eu
umask 022 # somebody else is to read what we write here
intact=$(realpath "$1")
work=$(mktemp -d "${TMPDIR:-/tmp}/intact-token.XXXXXX")
chmod 755 "$work"
unset INTACT_SERVER INTACT_TOKEN INTACT_CA NOTIFY_SOCKET WATCHDOG_USEC
export LC_ALL=C

fail() {
    echo "token_file: $*" >&2
    exit 1
}

stop() {
    local pid
    for pid in ${server:-} ${liar:-} ${watching:-}; do
        kill "$pid" 2>/dev/null || true
        wait "$pid" 2>/dev/null || true
    done
    server='' liar='' watching=''
}

finish() {
    local status=$?
    stop
    rm -rf "$work"
    exit "$status"
}
trap finish EXIT

listen_at=0 # the port; 0: any
# Usage: start [OPTIONS...]; sets $server and INTACT_SERVER
start() {
    : >"$work/ready"
    "$intact" serve --data "$work/data" --listen "127.0.0.1:$listen_at" "$@" >"$work/ready" 2>>"$work/log" &
    server=$!
    until grep -q listening "$work/ready"; do
        kill -0 "$server" 2>/dev/null || fail "no server: $(cat "$work/log")"
        sleep 0.02
    done
    port=$(awk '{print $4}' "$work/ready")
    export INTACT_SERVER=http://127.0.0.1:$port
}

# Runs the program; what it says goes to $work/out. Usage: expect STATUS TEXT ARGUMENTS...
expect() {
    local want=$1 text=$2 status=0
    shift 2
    "$intact" "$@" >"$work/out" 2>&1 || status=$?
    [ "$status" = "$want" ] || fail "intact $*: exit status $status, expected $want: $(cat "$work/out")"
    [ -z "$text" ] || grep -qF -- "$text" "$work/out" || fail "intact $*: not \"$text\": $(cat "$work/out")"
}

start
file=$work/data/admin-token
admin=$(cat "$file")

# What is no address of a server, and no option, is told in words of ours.
expect 2 "expected http://HOST:PORT" list --server "localhost:$port"
expect 2 "intact list: there is no flag --frob" list --frob

# By itself, by every name of this machine, whatever proxy the environment names.
expect 0 STATE list
http_proxy=http://127.0.0.1:1 ALL_PROXY=http://127.0.0.1:1 expect 0 STATE list
expect 0 STATE list --server "http://localhost:$port/"
INTACT_TOKEN='' expect 0 STATE list # empty is none
# A token that is given counts, even a wrong one.
INTACT_TOKEN=intact_wrong expect 1 "the server requires a token: the text that was sent is not a token" list
grep -qF -- "--token-file" "$work/out" || fail "no advice: $(cat "$work/out")"
INTACT_TOKEN=$admin expect 0 STATE list
expect 0 STATE list --token-file "$file"
expect 2 "No such file" list --token-file "$work/nowhere"
expect 2 "found nothing, expected a token" list --token-file /dev/null
INTACT_TOKEN=intact_wrong expect 0 STATE list --token-file "$file" # said is said

# Another good token that is written to the file counts at once.
INTACT_TOKEN=$admin expect 0 intact_ token create second --role admin
cp "$file" "$work/first"
cat "$work/out" >"$file"
expect 0 STATE list
cat "$work/first" >"$file"
expect 0 STATE list
INTACT_TOKEN=$admin expect 0 '' token delete second

# intact token
expect 0 intact_ token create ci --role submit --role agent:payment --expires-in 12h
ci=$(cat "$work/out")
expect 1 'there is a token "ci"' token create ci --role read
expect 0 '"roles":["read"]' token create viewer --role read --json
expect 0 "submit agent:payment" token list
expect 0 '"name":"viewer"' token list --json
grep -q "$ci" "$work/out" && fail "a token is shown again"
INTACT_TOKEN=$ci expect 1 "intact list: the token \"ci\" may not do this: it requires the role read, repair, operate or admin" list
INTACT_TOKEN=$ci expect 1 "requires the role admin" token list
expect 0 "" token delete viewer
expect 1 'there is no token "viewer"' token delete viewer
expect 1 "the last token with the role admin" token delete admin
expect 2 "say what the token may do" token create x
expect 2 "12 parsecs" token create x --role read --expires-in "12 parsecs"
expect 1 "roles has \"write\"" token create x --role write
expect 2 "usage: intact token" token
expect 2 "NAME is missing; see intact token create --help" token create
expect 2 "no name of a token" token delete "../tasks"

# The file is used only as it was made. Usage: not_used WHY
not_used() {
    expect 1 "$file is not used: $1" list
    grep -q "the server requires a token" "$work/out" || fail "and not who asks: $(cat "$work/out")"
}
chmod 640 "$file" && not_used "others than its owner have rights on it"
chmod 604 "$file" && not_used "others than its owner have rights on it"
chmod 600 "$file"
mv "$file" "$file.kept"
ln -s "$file.kept" "$file" && not_used "Too many levels of symbolic links"
rm "$file" && mkdir -m 700 "$file" && not_used "it is no plain file"
rmdir "$file" && mkfifo -m 600 "$file" && not_used "it is no plain file"
rm "$file" && (umask 077 && echo "secret=of something else" >"$file") && not_used "it does not hold a token"
(umask 077 && printf '%sx\n' "$admin" >"$file") && not_used "it does not hold a token"
rm "$file" && not_used "No such file or directory"
mv "$file.kept" "$file"
expect 0 STATE list

# Somebody else's server names a file of ours: it must not get what is in it.
stop
cat >"$work/liar.py" <<'PY'
import http.server, sys
class Liar(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        with open(sys.argv[2], "a") as seen:
            seen.write(str(self.headers))
        self.send_response(401)
        self.send_header("Intact-Token-File", sys.argv[3])
        self.send_header("Content-Length", "0")
        self.end_headers()
    def log_message(self, *args):
        pass
server = http.server.HTTPServer(("127.0.0.1", 0), Liar)
with open(sys.argv[1], "w") as f:
    f.write("port %d\n" % server.server_port)
server.serve_forever()
PY
# Usage: lie FILE [COMMAND...]; sets $liar and INTACT_SERVER
lie() {
    local named=$1
    shift
    rm -f "$work/told/port" "$work/told/seen"
    "$@" /usr/bin/python3 "$work/liar.py" "$work/told/port" "$work/told/seen" "$named" &
    liar=$!
    until [ -s "$work/told/port" ]; do
        kill -0 "$liar" 2>/dev/null || fail "no liar"
        sleep 0.02
    done
    INTACT_SERVER=http://127.0.0.1:$(awk '{print $2}' "$work/told/port")
}
mkdir "$work/told" && chmod 777 "$work/told"
kept_secret() {
    grep -q intact_ "$work/told/seen" && fail "it was told a token: $(cat "$work/told/seen")"
    return 0
}
(umask 077 && cp "$file" "$work/notes")
lie "$work/notes"
expect 1 "$work/notes is not used: it is no admin-token" list
kept_secret
stop
lie "data/admin-token"
expect 1 "is not used: it is no admin-token" list
kept_secret
stop
# One of another machine, behind a port that the user has forwarded, is listened to by that user.
lie "$file"
expect 1 "$file is not used: the server that answers does not show that it knows this token" list
kept_secret
stop
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
    nobody=(setpriv --reuid 65534 --regid 65534 --clear-groups)
    lie "$file" "${nobody[@]}"
    expect 1 "$file is not used: its owner is not the one who runs the server" list
    kept_secret
    stop
    # and the other way round: who may not read the file is told so
    start
    status=0
    cp "$intact" "$work/intact" && chmod 755 "$work/intact" "$work/data"
    "${nobody[@]}" "$work/intact" list >"$work/out" 2>&1 || status=$?
    [ "$status" = 1 ] || fail "nobody: exit status $status: $(cat "$work/out")"
    grep -q "admin-token is not used: Permission denied" "$work/out" || fail "nobody: $(cat "$work/out")"
    stop
fi

# Somebody takes our connection, leaves the port to the true server, and only then names its file.
cat >"$work/heir.py" <<'PY'
import socket, subprocess, sys
intact, data, seen = sys.argv[1:]
door = socket.create_server(("127.0.0.1", 0), backlog=8)
port = door.getsockname()[1]
url = "http://127.0.0.1:%d" % port
client = subprocess.Popen([intact, "list", "--server", url])
taken, _ = door.accept()
told = taken.recv(65536)
door.close()
server = subprocess.Popen([intact, "serve", "--data", data, "--listen", url[len("http://"):]], stdout=subprocess.PIPE)
server.stdout.readline()
taken.sendall(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\nIntact-Token-File: %s/admin-token\r\n\r\n" % data.encode())
more = taken.recv(65536)
with open(seen, "wb") as f:
    f.write(told + more)
if more:
    client.kill()
status = client.wait()
server.terminate()
server.wait()
sys.exit(status)
PY
status=0
/usr/bin/python3 "$work/heir.py" "$intact" "$work/data" "$work/told/seen" >"$work/out" 2>&1 || status=$?
kept_secret
[ "$status" = 1 ] && grep -q "does not show that it knows" "$work/out" || fail "the heir: $(cat "$work/out")"

# What follows changes has connections of its own. The token that was found is for the server where it was found: when that
# is gone, the next one of the list is not told it.
listens() {
    curl -s -H "Authorization: Bearer $admin" "$own/metrics" | grep -q 'listeners{of="all"} 1'
}
# Usage: until_it_listens; it may have ended
until_it_listens() {
    until listens; do
        kill -0 "$watching" 2>/dev/null || break
        sleep 0.05
    done
}
listen_at=$(cd "$(dirname "$0")/.." && /usr/bin/python3 -B -c 'from ports import free_port; print(free_port())')
start
own=$INTACT_SERVER
lie "$file"
touch "$work/told/seen"
INTACT_SERVER=$own,$INTACT_SERVER "$intact" watch >"$work/out" 2>&1 &
watching=$!
until_it_listens
kill -KILL "$server"
{ wait "$server"; } 2>/dev/null || true
start
until_it_listens
kept_secret
listens || fail "it does not follow its server any more: $(cat "$work/out")"
stop
listen_at=0

# Somebody passes on what the true server says, its proof among it; the port is not the server's.
cat >"$work/relay.py" <<'PY'
import socket, sys, threading
to, told, seen = int(sys.argv[1]), sys.argv[2], sys.argv[3]
door = socket.create_server(("127.0.0.1", 0), backlog=8)
with open(told, "w") as f:
    f.write("port %d\n" % door.getsockname()[1])
def pump(source, sink, name):
    while (data := source.recv(65536)):
        with open(seen, "ab") as f:
            f.write(name + data)
        sink.sendall(data)
    sink.shutdown(socket.SHUT_WR)
while True:
    client, _ = door.accept()
    server = socket.create_connection(("127.0.0.1", to))
    threading.Thread(target=pump, args=(client, server, b"< "), daemon=True).start()
    threading.Thread(target=pump, args=(server, client, b"> "), daemon=True).start()
PY
start
expect 0 STATE list # by its own port
rm -f "$work/told/port" "$work/told/seen"
/usr/bin/python3 "$work/relay.py" "$port" "$work/told/port" "$work/told/seen" &
liar=$!
until [ -s "$work/told/port" ]; do
    kill -0 "$liar" 2>/dev/null || fail "no relay"
    sleep 0.02
done
INTACT_SERVER=http://127.0.0.1:$(awk '{print $2}' "$work/told/port")
expect 1 "$file is not used: the server that answers does not show that it knows this token" list
grep -q '^Intact-Token-Proof: ' "$work/told/seen" || fail "no proof was passed on: $(cat "$work/told/seen")"
kept_secret
stop

# An open server asks for nothing, and has no file.
rm -rf "$work/data"
start --open
expect 0 STATE list
[ ! -e "$file" ] || fail "a file"
