#!/bin/sh
# The HTTP agent before a service that keeps the record is right: what it does and undoes is there once, whatever is killed when.
# Usage: http_test.sh INTACT
intact=$1
folder=$(mktemp -d "${TMPDIR:-/tmp}/intact-http.XXXXXX")
trap 'rm -rf "$folder"' EXIT
# It is started with the agent, and killed with it. A booking that was deleted before it came is refused.
cat >"$folder/service.py" <<'END'
import http.server, json, sqlite3, sys

SCHEMA = "CREATE TABLE IF NOT EXISTS booking(task TEXT PRIMARY KEY, amount INTEGER NOT NULL, is_gone INTEGER NOT NULL)"


class Service(http.server.BaseHTTPRequestHandler):
    def change(self, task, sql):
        with sqlite3.connect(sys.argv[1], timeout=60) as db:  # one transaction
            db.execute(sql, (task,))
            return db.execute("SELECT rowid, is_gone FROM booking WHERE task = ?", (task,)).fetchone()

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        task = self.headers["Idempotency-Key"].split("/")[0]
        row, is_gone = self.change(task, "INSERT INTO booking VALUES (?, 7, 0) ON CONFLICT DO NOTHING")
        self.answer(409 if is_gone else 201, {"id": row})

    def do_DELETE(self):
        row, _ = self.change(self.path.split("/")[-1], "INSERT INTO booking VALUES (?, 0, 1) ON CONFLICT DO UPDATE SET amount = 0, is_gone = 1")
        self.answer(200, {"id": row})

    def answer(self, status, body):
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps(body).encode())

    def log_message(self, *words):
        pass


with sqlite3.connect(sys.argv[1], timeout=60) as schema:
    schema.execute(SCHEMA)
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Service)
print(server.server_address[1], flush=True)
server.serve_forever()
END
# The service takes a port that is free, and tells it to the agent by its configuration.
cat >"$folder/agent.sh" <<'END'
#!/bin/sh
rm -f "$FOLDER/port"
python3 "$FOLDER/service.py" "$FOLDER/booking.db" >"$FOLDER/port" &
while [ ! -s "$FOLDER/port" ]; do sleep 0.05; done
cat >"$FOLDER/services.yaml" <<YAML
intact_http: 1
private: [127.0.0.1]
services:
  bank:
    url: http://127.0.0.1:$(cat "$FOLDER/port")
    actions:
      book: {path: /bookings, body: {amount: 7}, output: .body.id}
      unbook: {method: DELETE, path: "/bookings/\${ .task.id }", output: .body.id}
YAML
exec "$1" agent http --config "$FOLDER/services.yaml" --instance bank-1
END
chmod +x "$folder/agent.sh"
# All scenarios but those of agents whose actions the checker knows, and three. Whether something was undone before is on record
# in the service, and so are its answers to that: "409", where another agent says "undone".
scenarios=$("$intact" agent check --list --json | jq -r '.scenarios[] | select(.level != "known") | .name' |
    grep -vxE 'undo-first|forward-after-undo|undo-killed')
only=
for name in $scenarios; do only="$only --only $name"; done
# shellcheck disable=SC2086 # a list of words
FOLDER=$folder "$intact" agent check --patience 4m --action book --undo unbook \
    --effects "sqlite3 -cmd '.timeout 30000' $folder/booking.db 'SELECT coalesce(sum(amount), 0) FROM booking'" \
    $only -- "$folder/agent.sh" "$intact" >"$folder/log" 2>&1
status=$?
cat "$folder/log"
if grep '^skipped' "$folder/log" >&2; then # optional for agents of others, and not for ours
    status=1
fi
exit $status
