#!/usr/bin/env python3
"""Runs what docs/postgresql.md and docs/nodes.md show, on a database of its own: SQL, settings, commands; the rights of each role
are tried.

Usage: doc_test.py ROOT INTACT
"""

import glob
import os
import re
import subprocess
import sys

from place import BIN, INTACT, PLACE, ROOT, RUNNING, USER, Node, begin, end_of, free_port, psql, start_database, wait_until


def blocks():
    """(mark, text) of each block that has one; what is in the last table."""
    with open(f"{ROOT}/docs/postgresql.md", encoding="utf-8") as f:
        text = f.read()
    found = re.findall(r"<!-- ([^>]+) -->\n```\w+\n(.*?)\n```\n", text, re.DOTALL)
    if len(found) != len(re.findall("(?m)^```", text)) / 2:
        sys.exit("docs/postgresql.md has a block without a mark")
    says = re.findall(r"(?m)^\| `([^`]+)` \|", text.split("## When something is wrong")[1])
    return found, says


os.environ["XDG_STATE_HOME"] = "/dev/null"  # nothing is remembered of servers


def try_nodes():
    """The nodes of docs/nodes.md: all are seen, and one that is killed is seen as gone, by the next one that is asked."""
    with open(f"{ROOT}/docs/nodes.md", encoding="utf-8") as f:
        begun, service = re.findall(r"<!-- not run[^>]+ -->\n *```sh\n(.*?)\n *```\n", f.read(), re.DOTALL)
    for port in re.findall(r"--listen 127.0.0.1:(\d+)", begun):
        begun = begun.replace(port, str(free_port()))
    begun = begun.replace("host=db1", f"host={PLACE}").replace("intact node", f"{INTACT} node")
    begun = re.sub(r"(?m)^intact serve", f"{INTACT} serve", begun)
    count = f"test $({INTACT} node list --json | jq '[.nodes[] | select(.alive)] | length') ="
    text = f"""trap 'kill -9 $(jobs -p) 2>/dev/null || true' EXIT
        {begun}
        set -- $(jobs -p)
        until {count} 3; do sleep 0.1; done
        kill -9 $1
        until {count} 2 && {INTACT} node list | grep -q '^n1 *gone' && {INTACT} node list | grep -q leads; do sleep 0.1; done
        kill $2 $3
        wait $2
        wait $3"""
    subprocess.run(["bash", "-ec", text], check=True, cwd=PLACE, stdout=subprocess.DEVNULL, timeout=600)
    options = re.search(r'INTACT_OPTIONS="(.*)"', service).group(1)
    done = subprocess.run([INTACT, "serve", "--data", f"{PLACE}/never", *options.split()], check=False, capture_output=True, text=True, cwd=PLACE,
                          env=dict(os.environ, INTACT_STORE=f"host={PLACE}/nowhere"))
    assert done.returncode == 1 and "cannot connect" in done.stderr, done.stderr  # all of it was understood


def check_settings(settings):
    """Does the server understand them?"""
    path = f"{PLACE}/data/more.conf"
    with open(path, "w", encoding="utf-8") as f:
        f.write(settings)
    os.chmod(path, 0o644)
    names = re.findall(r"(?m)^(\w+) =", settings)
    for name in names:
        subprocess.run([f"{BIN}/postgres", "-D", f"{PLACE}/data", "-c", f"config_file={path}", "-C", name], check=True, user=USER,
                       stdout=subprocess.DEVNULL, cwd=PLACE)


def shell(text):
    text = text.replace("host=db1", f"host={PLACE}").replace("intact serve", f"{INTACT} serve")
    subprocess.run(["bash", "-ec", text], check=True, cwd=PLACE, env=dict(os.environ, PGHOST=PLACE, PGUSER="intact_owner"))


def try_rights():
    psql("intact_node", "DELETE FROM intact.audit", fails="permission denied")
    psql("intact_node", "DROP TABLE intact.task", fails="must be owner")
    psql("intact_node", "CREATE TABLE intact.mine (a int)", fails="permission denied")
    for view in ("task_view", "task_step", "task_attempt", "task_item", "audit_view"):
        psql("intact_report", f"SELECT * FROM intact.{view}")
    assert psql("intact_report", "SELECT state FROM intact.task_view WHERE id = 'first'") == "processed"
    for table in ("meta", "token", "task"):
        psql("intact_report", f"SELECT * FROM intact.{table}", fails="permission denied")
    psql("intact_report", "DELETE FROM intact.task_view", fails="cannot delete")


def start_pooler(ini):
    """As it stands there, but for where the database is and who may come."""
    changes = {"host=db1 port=5432": f"host={PLACE}", "listen_addr = 127.0.0.1": f"listen_addr =\nunix_socket_dir = {PLACE}",
               "auth_type = scram-sha-256": "auth_type = trust", "/etc/pgbouncer": PLACE}
    for old, new in changes.items():
        assert old in ini, old
        ini = ini.replace(old, new)
    for name, text in (("pgbouncer.ini", ini), ("userlist.txt", '"intact_node" ""\n')):
        with open(f"{PLACE}/{name}", "w", encoding="utf-8") as f:
            f.write(text)
    begin(["/usr/sbin/pgbouncer", f"{PLACE}/pgbouncer.ini"], "pgbouncer.log", user=USER)
    wait_until(lambda: subprocess.run(["pg_isready", "-q", "-h", PLACE, "-p", "6432"], check=False).returncode == 0, "the pooler")


def check_says(says):
    """Is every message that the table shows one that is written, or that a test has seen?"""
    source = "".join(open(p, encoding="utf-8").read() for p in glob.glob(f"{ROOT}/src/store/postgres/*.[ch]") + glob.glob(f"{ROOT}/tests/postgres/*.c"))
    source = re.sub(r'"\s*\n\s*"', "", source)
    for text in says:
        assert text in source, f"nobody says: {text}"
    assert len(says) > 10


def replicate(settings):
    """A standby db2 beside the database, which waits for it as the settings of the page say."""
    names = re.search(r"(?m)^synchronous_standby_names = (.*)$", settings).group(1)
    copy = ["pg_basebackup", "-h", PLACE, "-U", "admin", "-D", f"{PLACE}/db2", "-R", "-c", "fast"]
    psql("admin", f"ALTER SYSTEM SET synchronous_standby_names = {names}")
    psql("admin", "SELECT pg_reload_conf()")
    subprocess.run([f"{BIN}/{copy[0]}", *copy[1:]], check=True, user=USER, cwd=PLACE)
    begin([f"{BIN}/postgres", "-D", f"{PLACE}/db2", "-c", "port=5433", "-c", "cluster_name=db2"], "db2.log", user=USER)
    wait_until(lambda: psql("admin", "SELECT application_name FROM pg_stat_replication WHERE sync_state = 'sync'") == "db2", "the standby")


def try_promotion(settings, cure, serve):
    """The standby is promoted as it was copied: it waits for itself, and says so, until it is told not to."""
    replicate(settings)
    RUNNING[0].send_signal(end_of(RUNNING[0].args))
    RUNNING[0].wait(600)
    os.environ["PGPORT"] = "5433"
    psql("admin", "SELECT pg_promote()")
    names = psql("admin", "SHOW synchronous_standby_names")
    assert "db2" in names, names
    command = serve.replace("host=db1", f"host={PLACE}").replace("intact serve", f"{INTACT} serve --data {PLACE}/waits")
    waits = subprocess.run(["bash", "-c", command], check=False, capture_output=True, text=True, cwd=PLACE)
    assert waits.returncode == 1 and "if it waits for a synchronous standby" in waits.stderr, waits
    for statement in cure.split("\n"):
        psql("admin", statement)
    node = Node(serve, PLACE)
    node.has("first")
    node.run_task("third")
    node.end()


def main():
    shown, says = blocks()
    check_says(says)
    of = {}
    for mark, text in shown:
        of.setdefault(mark, []).append(text)
    migrate, serve, backup = [text for mark, text in shown if mark.startswith("not run: tests/postgres/doc_test.py")]

    start_database("\n".join(of["conf: any"]))
    for settings in of["conf: any"] + of["conf: primary"]:
        check_settings(settings)
    psql("admin", of["sql: admin"][0], "postgres")
    shell(migrate)
    for sql in of["sql: owner"]:
        psql("intact_owner", sql)
    shell(migrate)
    shell(migrate.replace("intact_owner", "intact_node"))  # there is nothing to do

    try_nodes()
    node = Node(serve, PLACE)
    node.run_task("first")
    try_rights()
    node.end()

    start_pooler(of["ini: pgbouncer"][0])
    pooled = Node(serve, f"{PLACE} port=6432")
    pooled.run_task("pooled")
    pooled.end()

    shell(backup.split("\n")[0])
    psql("intact_owner", "DELETE FROM intact.task")
    shell(backup.split("\n")[1])
    node = Node(serve, PLACE)
    node.has("first")
    node.run_task("second")
    try_rights()
    node.end()

    try_promotion(of["conf: primary"][0], of["sql: standby"][0], serve)
    print(f"{len(shown)} blocks of docs/postgresql.md, and those of docs/nodes.md, do what they show")


main()
