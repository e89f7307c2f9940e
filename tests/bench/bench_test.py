#!/usr/bin/env python3
"""Do the benches of `./run bench` that others repeat run, and say what they should? With tiny numbers: no figure is looked at, but for
what has to be so on any machine.

Usage: bench_test.py ROOT BUILD"""

import contextlib
import glob
import json
import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import xml.etree.ElementTree

sys.dont_write_bytecode = True  # in the tree
ROOT, BUILD = (os.path.realpath(p) for p in sys.argv[1:3])
PATIENCE_S = 240  # only a failing test waits so long
FLOW = f"{BUILD}/bench/bench-flow"


def check(condition, *story):
    if not condition:
        sys.exit(" ".join(map(str, ("bench_test:", *story))))


def run_python(script, *args):
    done = subprocess.run([sys.executable, "-B", f"{ROOT}/bench/matrix/{script}", BUILD, *args], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=600)
    return done.returncode, done.stdout, done.stderr


def flow(*args, server="http://127.0.0.1:1"):
    return subprocess.run([FLOW, *map(str, args)], env={**os.environ, "INTACT_SERVER": server, "INTACT_TOKEN": ""},
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=PATIENCE_S)


def lines_of(path):
    with open(path) as f:
        return [json.loads(line) for line in f]


def every_kind_of_scenario_is_measured(folder):
    names = "steps3-1,steps3-1000,open-50,undo3-1,payload-64k,priorities-1000,sleeping-1,steps3-backlog,pg-2nodes-1000"
    status, out, err = run_python("matrix.py", "--dir", folder, "--out", f"{folder}/out", "--scale", "0.001", "--only", names)
    check(status == 0, "matrix:", err)
    found = {r["scenario"]: r for r in lines_of(f"{folder}/out/results.jsonl")}
    check(set(found) == set(names.split(",")), "scenarios:", sorted(found))
    for name, r in found.items():
        check(name in out, name, "is not in the table:", out)
        check(r["processed"] + r["compensated"] == r["tasks"] and r["gaps"] == 0, r)
        check(0 < r["p50_ms"] <= r["p99_ms"] <= r["p999_ms"] <= r["max_ms"], r)
        check(r["changes_per_task"] >= 2 and r["bytes_per_task"] > 0 and r["syncs_per_task"] > 0, r)
        check(r["peak_mib"] >= r["idle_mib"] > 0 and r["server_cpu_s_per_1000"] > 0, r)
        check(r["ratios"]["changes_to_store"] > 0 and r["ratios"]["cpu_to_http"] > 0, r)
        check(abs(r["floors"]["store"]["changes_per_task"] - r["changes_per_task"]) < 0.5, "not the same changes:", r)
    check(found["undo3-1"]["compensated"] == found["undo3-1"]["tasks"], found["undo3-1"])
    # n + 1 commits, each of which is on the disk before it is acted on.
    check(found["steps3-1"]["syncs_per_task"] >= 4, found["steps3-1"])
    check(found["pg-2nodes-1000"]["database_cpu_s_per_1000"] > 0, found["pg-2nodes-1000"])
    pictures = glob.glob(f"{folder}/out/*.svg")
    check(len(pictures) == 5, pictures)
    for picture in pictures:
        check(xml.etree.ElementTree.parse(picture).getroot().tag.endswith("svg"), picture)


def documents_of(path):
    with contextlib.closing(sqlite3.connect(path)) as db:
        # Which steps lie in groups depends on how many ended in one change: that is left out.
        return (db.execute("SELECT sum(length(value)) FROM step_document GROUP BY task ORDER BY 1").fetchall(),
                db.execute("SELECT length(input), length(output) FROM task_view ORDER BY 1").fetchall(),
                db.execute("SELECT count(*), sum(length(json)) FROM payload WHERE json NOT LIKE '{\"%\":{\"name\":%'").fetchone())


def the_floor_writes_what_the_server_writes(folder):
    """Documents and payloads of tasks that have ended are as long."""
    sys.path.insert(0, f"{ROOT}/bench/matrix")
    import rig
    with rig.Rig(BUILD, folder) as place:
        for workflow, payload in (("steps3", 300), ("steps10", 5000), ("wide10", 300), ("undo3", 5000)):
            definition = f"{ROOT}/bench/workflows/{workflow}.json"
            with rig.Installation(place, definition, answer=payload) as installation:
                installation.flow("--workflow", workflow, "--tasks", 3, "--in-flight", 1, "--payload", payload)
                rig.end(installation.servers[0])
                ours = documents_of(f"{installation.folder}/node1/intact.db")
            alone = place.folder("floor")
            place.run("floor", alone, definition, 3, payload, 4, 0, 1, 1)
            check(documents_of(f"{alone}/intact.db") == ours, workflow, payload, documents_of(f"{alone}/intact.db"), ours)


def each_goal_is_told(folder):
    status, out, err = run_python("goals.py", "--dir", folder, "--out", f"{folder}/out", "--scale", "0.001", "--rounds", "1", "--no-peers")
    check(status in (0, 1) and "Traceback" not in err, "goals:", err)
    goals = [g for g in lines_of(f"{folder}/out/goals.jsonl") if "goal" in g]
    check(len(goals) == 8 and len(out.splitlines()) == 9, out, err)
    check(all(g["met"] in (True, False) and g["figure"] > 0 for g in goals[:5]), goals)
    check(all(g["met"] is None for g in goals[5:]), goals)
    check((status == 1) == any(g["met"] is False for g in goals), "its status does not say whether all are met")


def read_request(connection):
    asked = b""
    while b"\r\n\r\n" not in asked:
        asked += connection.recv(65536)
    head, _, body = asked.partition(b"\r\n\r\n")
    length = re.search(rb"Content-Length: (\d+)", head)
    while length and len(body) < int(length[1]):
        body += connection.recv(65536)
    return head.decode()


def what_waits_is_counted():
    """A server that stands still for a second at the first request: all that was due meanwhile had to wait for it."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve():
        connection, _ = listener.accept()
        for n in range(200):
            read_request(connection)
            if n == 0:
                time.sleep(1)
            connection.sendall(b"HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\n{}")

    threading.Thread(target=serve, daemon=True).start()
    done = flow("--tasks", 200, "--rate", 1000, "--connections", 1, "--ends", "answer", "--path", "/",
                server=f"http://127.0.0.1:{listener.getsockname()[1]}")
    check(done.returncode == 0, done.stderr)
    told = json.loads(done.stdout)
    # All were due within 0.2 s of the beginning, and none but the first was sent before a second of it was over.
    check(told["p50_ms"] >= 800 and told["max_ms"] >= 1000, "it hides what waited:", told)
    listener.close()


def a_gap_is_looked_into():
    """A stream of events that has a gap where two of three tasks ended."""
    listener = socket.create_server(("127.0.0.1", 0))
    submitted, asked_for = threading.Semaphore(0), []

    def stream(connection):
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\nretry: 1000\nid: 1-1\n\n")
        for _ in range(3):
            submitted.acquire()
        connection.sendall(b"event: gap\nid: 1-9\ndata: {\"reason\":\"events were missed\"}\n\n")
        while len(asked_for) < 3:
            time.sleep(0.01)
        connection.sendall(b'event: task\nid: 1-10\ndata: {"id":"t-1","workflow":"bench","state":"compensated"}\n\n')

    def serve(connection):
        while True:
            head = read_request(connection)
            if head.startswith("GET /v1/events?"):
                return stream(connection)
            task = re.match(r"GET /v1/tasks/(t-\d) ", head)
            if task:
                asked_for.append(task[1])
            state = "processing" if task and task[1] == "t-1" else "processed"
            answer = f'{{"id":"t","workflow":"bench","state":"{state}"}}'
            connection.sendall(f"HTTP/1.1 {200 if task else 201} OK\r\nContent-Length: {len(answer)}\r\n\r\n{answer}".encode())
            if not task:
                submitted.release()

    def accept():
        for _ in range(4):
            threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    done = flow("--tasks", 3, "--in-flight", 3, server=f"http://127.0.0.1:{listener.getsockname()[1]}")
    check(done.returncode == 0, done.stderr)
    told = json.loads(done.stdout)
    check(told["gaps"] == 1 and told["processed"] == 2 and told["compensated"] == 1, told)
    check(sorted(asked_for) == ["t-0", "t-1", "t-2"], asked_for)
    listener.close()


def mistakes_are_told(folder):
    for args, story in [((), "usage"), (("--tasks", 5), "usage"), (("--tasks", 5, "--in-flight", 1, "--rate", 5), "usage"),
                        (("--tasks", "x", "--in-flight", 1), "--tasks x"), (("--tasks", 5, "--in-flight", 1, "--ends", "x"), "--ends x"),
                        (("--tasks", 5, "--in-flight", 1), "does not take a connection")]:
        done = flow(*args)
        check(done.returncode in (1, 2) and story in done.stderr, args, done.stderr)
    check("http://ADDRESS:PORT" in flow("--tasks", 5, "--in-flight", 1, server="https://x").stderr, "of the address")
    status, _, err = run_python("matrix.py", "--only", "no-such")
    check(status == 1 and "steps3-1" in err and "Traceback" not in err, err)
    for script in ("matrix.py", "goals.py"):
        for args, wanted, story in [(("--rounds", "0"), 2, "a number from 1"), (("--rounds", "many"), 2, "a number from 1"),
                                    (("--dir", "/nowhere", "--out", folder), 1, "No such file or directory: '/nowhere")]:
            status, _, err = run_python(script, *args)
            check(status == wanted and story in err and "Traceback" not in err, script, args, err)


def of_this(folder):
    """Processes that have the folder in their command line, but for this one."""
    found = []
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            with open(path, "rb") as f:
                if folder.encode() in f.read():
                    found.append(path)
        except (FileNotFoundError, ProcessLookupError):
            pass
    return found


def a_server_that_fails_ends_the_bench_of_queues(folder):
    """At its fourth start: by then an agent is at work."""
    with open(f"{folder}/intact", "w") as f:
        f.write(f"#!/bin/sh\necho >>{folder}/starts\n[ $(wc -l <{folder}/starts) -lt 4 ] && exec {BUILD}/src/cli/intact \"$@\"\n"
                "echo 'no room on the disk' >&2\nexit 3\n")
    os.chmod(f"{folder}/intact", 0o755)
    done = subprocess.run(["/usr/bin/python3", "-B", f"{ROOT}/bench/amqp.py", f"{folder}/intact", "5"], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=PATIENCE_S)
    check(done.returncode == 1 and done.stdout.startswith("submissions: "), done.returncode, done.stdout)
    check(done.stderr == "amqp.py: the server ended with 3: no room on the disk\n", done.stderr)


def crowds_are_measured(folder):
    done = subprocess.run([sys.executable, "-B", f"{ROOT}/bench/crowds.py", f"{BUILD}/src/cli/intact", "idle", "batches", "--seconds", "0.2",
                           "--clients", "2", "--json", f"{folder}/crowds.json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=PATIENCE_S)
    check(done.returncode == 0, "crowds:", done.stderr)
    with open(f"{folder}/crowds.json", encoding="utf-8") as f:
        rows = json.load(f)
    check([r["crowd"] for r in rows] == ["idle clients", "submit: batches of 5000"], rows)
    for r in rows:
        check(0 < r["submit_median_ms"] <= r["submit_p99_ms"] and r["result_median_ms"] > 0 and r["overdue_median_ms"] >= 0, r)
        check(r["answers"].get("200", 0) > 0 and set(r["answers"]) <= {"200"}, r)


def one_line(words):
    done = subprocess.run([sys.executable, "-B", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=PATIENCE_S)
    check(done.returncode == 0 and done.stdout.count("\n") == 1, words, done.stdout, done.stderr)
    return done.stdout


def waits_are_measured():
    for kind in "time", "signal", "lock":
        line = one_line([f"{ROOT}/bench/waits.py", f"{BUILD}/src/cli/intact", kind, "--tasks", "200", "--idle", "1"])
        check(line.startswith(f"waits for a {kind}: 200 tasks: ") and "other tasks start after" in line, line)
    done = subprocess.run([sys.executable, "-B", f"{ROOT}/bench/waits.py", "intact", "rain"], stderr=subprocess.PIPE, text=True)
    check(done.returncode == 1 and "time, signal, lock" in done.stderr, done.returncode, done.stderr)


def schedules_are_measured():
    line = one_line([f"{ROOT}/bench/schedules.py", f"{BUILD}/src/cli/intact", "--schedules", "20", "--every", "2", "--times", "2"])
    check(line.startswith("schedules: 20 that fire every 2 s, 2 times: 40 tasks of 40, "), line)


def tests_are_measured():
    line = one_line([f"{ROOT}/bench/tests.py", f"{BUILD}/src/cli/intact", "--runs", "1", "--items", "20"])
    check(line.startswith("tests: 30 days of 10 steps in ") and "; 20 items in " in line, line)


def families_are_measured():
    done = subprocess.run([sys.executable, "-B", f"{ROOT}/bench/families.py", f"{BUILD}/src/cli/intact", "--tasks", "220"],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=PATIENCE_S)
    check(done.returncode == 0, "families:", done.stderr)
    names = [line.split(":")[0] for line in done.stdout.splitlines()]
    check(names == ["alone", "with one child", "with 10 children"] and "20 tasks, 220 with their children" in done.stdout, done.stdout)


def nothing_is_left_behind(folder, how, scenario):
    place = f"{folder}/{how.name}"
    os.mkdir(place)
    bench = subprocess.Popen([sys.executable, "-B", f"{ROOT}/bench/matrix/matrix.py", BUILD, "--dir", place, "--out", f"{folder}/out2",
                              "--only", scenario, "--scale", "100"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    until = time.monotonic() + PATIENCE_S
    while not glob.glob(f"{place}/*/installation-*/agents.log"):
        check(bench.poll() is None and time.monotonic() < until, "the bench does not begin:", bench.poll())
        time.sleep(0.05)
    bench.send_signal(how)
    bench.wait(PATIENCE_S)
    bench.stderr.close()
    while of_this(place):
        check(time.monotonic() < until, "left behind:", of_this(place))
        time.sleep(0.05)
    check(how == signal.SIGKILL or os.listdir(place) == [], os.listdir(place))


with tempfile.TemporaryDirectory(prefix="intact-bench-test.") as work:
    os.chmod(work, 0o711)  # the database is run by another user
    os.environ["no_proxy"] = "*"
    mistakes_are_told(work)
    what_waits_is_counted()
    a_gap_is_looked_into()
    a_server_that_fails_ends_the_bench_of_queues(work)
    every_kind_of_scenario_is_measured(work)
    the_floor_writes_what_the_server_writes(work)
    each_goal_is_told(work)
    crowds_are_measured(work)
    waits_are_measured()
    schedules_are_measured()
    tests_are_measured()
    families_are_measured()
    nothing_is_left_behind(work, signal.SIGTERM, "steps3-100")
    nothing_is_left_behind(work, signal.SIGKILL, "pg-steps3-100")
