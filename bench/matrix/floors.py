"""What the machine itself allows, measured in the same run and the same folder: an fdatasync, the store without a server
around it, HTTP without anything behind it."""

import shutil
import signal
import subprocess

from rig import Count, end


def disk(rig, count):
    return rig.run("fsync", rig.work, count)


def store(rig, scenario, found, tasks):
    """The same changes of rows in the same batches as the server made them (found: what was counted of it)."""
    in_flight = max(scenario.in_flight or 256, 1)
    args = [scenario.payload, found["changes_per_task"], found["claims_per_task"], max(round(found["changes_per_commit"]), 1), in_flight]
    warm = [scenario.definition, max(tasks // 10, 10), *args, 100000000]
    load = [scenario.definition, tasks, *args]
    if scenario.store == "sqlite":
        folder = rig.folder("floor")
        try:
            rig.run("floor", folder, *warm)
            return rig.run("floor", folder, *load)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    return of_database(rig.the_database(), lambda conninfo, args: rig.run("floor", conninfo, *args), warm, load, tasks)


def of_database(database, run, warm, load, tasks):
    """What its processes had is counted when the one of our connection has ended: syncs() gives it time for that."""
    run(database.conninfo, warm)
    syncs, before = database.syncs(), Count(database.pids())
    result = run(database.conninfo, load)
    result["syncs_per_task"] = round((database.syncs() - syncs) / tasks, 4)
    after = Count(database.pids())
    database.ask("DROP SCHEMA bench_floor CASCADE")
    result["database_cpu_s_per_1000"] = round((after.cpu - before.cpu) / tasks * 1000, 4)
    result["bytes_per_task"] = round((after.written - before.written) / tasks)
    return result


def http(rig, flow_args, answer_bytes, tasks):
    """The same submissions, answered with as many bytes by a server that does nothing else."""
    process = rig.start("echo", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        port = int(process.stdout.readline())
        before = Count([process.pid])
        result = rig.run("flow", *flow_args, "--ends", "answer", "--path", f"/?answer={round(answer_bytes)}", "--tasks", tasks,
                         env={"INTACT_SERVER": f"http://127.0.0.1:{port}", "INTACT_TOKEN": ""})
        after = Count([process.pid])
    finally:
        process.stdin.close()
        end(process, signal.SIGKILL)
        process.stdout.close()
    return {"requests_per_s": round(result["requests"] / result["seconds"], 1),
            "cpu_us_per_request": round((after.cpu - before.cpu) * 1e6 / result["requests"], 2),
            "p50_ms": result["p50_ms"]}
