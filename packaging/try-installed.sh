#!/bin/bash
# Run by `tools/package --test` inside a minimal system: installs the packages from /tmp as a user would, starts
# the service as its unit does, compiles an agent against the installed library, and removes it all.
set -eu
export DEBIAN_FRONTEND=noninteractive
passed=0
# Only these are ended, also if something fails: the processes of the whole machine are in sight.
server=
agent=
trap 'kill $server $agent 2>/dev/null || true' EXIT

ok() {
    passed=$((passed + 1))
    echo "ok $passed - $1"
}

fail() {
    echo "not ok - $1" >&2
    exit 1
}

apt-get update >/dev/null 2>&1
apt-get install -y --no-install-recommends /tmp/*.deb gcc libc6-dev libpq-dev make pkg-config curl \
    >/tmp/apt.log 2>&1 || { tail -n 20 /tmp/apt.log >&2; fail "install"; }
ok "the packages install"
getent passwd intact | grep -q /var/lib/intact || fail "no user intact"
ok "the service has a user of its own"
[ -f /usr/lib/systemd/system/intact.service ] || [ -f /lib/systemd/system/intact.service ] || fail "no unit"
intact --version | grep -q . || fail "intact --version"
ok "the program runs"
for file in bash-completion/completions/intact zsh/vendor-completions/_intact \
    fish/vendor_completions.d/intact.fish; do
    [ -s "/usr/share/$file" ] || fail "no /usr/share/$file"
done
ok "shells find the completions"
# A minimal system leaves manual pages out; the package has them.
for page in intact intact-serve intact-submit intact-workflow-put; do
    dpkg-deb -c /tmp/intact_*.deb | grep >/dev/null "usr/share/man/man1/$page.1.gz" || fail "no page $page"
done
ok "the package has manual pages"
dpkg-deb --fsys-tarfile /tmp/intact_*.deb | tar -xO ./usr/share/doc/intact/intact.cdx.json >/tmp/sbom || fail "no bill of materials"
grep -q '"bomFormat": "CycloneDX"' /tmp/sbom && grep -q '"name": "libcurl4"' /tmp/sbom || fail "the bill of materials: $(cat /tmp/sbom)"
ok "the package says what it is linked with"

install -d -o intact -g intact -m 0700 /var/lib/intact
# As the unit does it.
serve() {
    setpriv --reuid intact --regid intact --clear-groups --no-new-privs \
        intact serve --data /var/lib/intact >/tmp/ready 2>/tmp/server.log &
    server=$!
    for _ in $(seq 200); do
        curl -fs -o /dev/null http://127.0.0.1:7420/readyz && return 0
        sleep 0.05
    done
    cat /tmp/server.log >&2
    fail "the server does not become ready"
}
stop_server() {
    kill "$server"
    wait "$server" || fail "the server ends with $?"
    server=
}
serve
ok "the server runs as that user"
curl -fs -H 'Accept: text/html' http://127.0.0.1:7420/tasks | grep -qi '<!doctype html>' || fail "no console"
ok "it has the console"
if [ -e /var/lib/intact/admin-token ]; then
    INTACT_TOKEN=$(cat /var/lib/intact/admin-token)
    export INTACT_TOKEN
fi

cd /tmp/installed
make CFLAGS=-Werror >/tmp/make.log 2>&1 || { cat /tmp/make.log >&2; fail "the example does not compile"; }
ok "an agent compiles against the installed library"
./greeter &
agent=$!
intact workflow put greeting.json >/dev/null || fail "the workflow is not taken"
intact submit greeting --input '{"name": "you"}' --id g-1 --wait 30s >/dev/null || fail "the task does not end well"
intact get g-1 | grep -q '"hello"\|hello' || fail "no greeting"
ok "a task ends whole through it"
python3 -c 'import intact_client; print(intact_client.Client().get("g-1")["state"])' | grep -q processed || fail "python3-intact-client"
ok "the Python module finds the server"
for file in sqlite postgresql mariadb; do
    [ -s "/usr/share/intact/barrier/$file.sql" ] || fail "no /usr/share/intact/barrier/$file.sql"
done
# shellcheck disable=SC2046 # a list of words
gcc -Wall -Werror -o /tmp/bank /tmp/barrier/bank.c $(pkg-config --cflags --libs intact-pq libpq) \
    || fail "the barrier's example does not compile"
/tmp/bank "host=/nowhere" 2>&1 | grep -q "^bank: .*nowhere" || fail "the barrier's example does not run"
ok "an agent with the barrier compiles against libintact-pq, and says that there is no database"
kill "$agent"
wait "$agent" || fail "the agent ends with $?"
agent=
stop_server
ok "both end when told to"

apt-get install -y --reinstall /tmp/intact_*.deb >/tmp/apt.log 2>&1 || fail "reinstall"
serve
intact get g-1 >/dev/null || fail "the task is gone after an upgrade"
stop_server
ok "what was stored outlives an upgrade"
apt-get purge -y intact >/tmp/apt.log 2>&1 || { tail /tmp/apt.log >&2; fail "purge"; }
[ -e /var/lib/intact/intact.db ] || fail "purge removed the data"
[ ! -e /usr/bin/intact ] || fail "purge left the program"
ok "removal leaves the data alone"
echo "$passed passed, 0 failed"
