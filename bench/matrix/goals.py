#!/usr/bin/env python3
"""./run bench goals: what Intact must reach, each with its figure, its bound, and whether it is met. Rounds go by turns, and medians count.

Usage: goals.py BUILD [--dir DIR] [--out DIR] [--rounds N] [--kept N] [--no-peers] [--scale F]
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

import scenario
from rig import ROOT, Installation, Rig, Trouble, count_of, difference
from matrix import machine

PEERS = f"{ROOT}/bench/peers/run"
SATURATED = scenario.Scenario("steps3-1000", "steps3", 20000, in_flight=1000)
BACKLOG = scenario.Scenario("steps3-backlog", "steps3", 30000, in_flight=20000, lines=500)
ALONE = scenario.Scenario("steps3-1", "steps3", 500, in_flight=1)
LONGER = [(3, "steps3"), (10, "steps10"), (30, "steps30")]


class Goals:
    def __init__(self, out):
        self.out, self.missed = out, 0

    def tell(self, goal, figure, bound, met, note=""):
        """`met` None: it was not measured."""
        verdict = "not measured" if met is None else "met" if met else "NOT MET"
        self.missed += met is False
        self.out.write(json.dumps({"goal": goal, "figure": figure, "bound": bound, "met": met, "note": note}) + "\n")
        shown = "-" if figure is None else f"{figure:.3g}" if figure < 1000 else f"{figure:.0f}"
        print(f"{verdict:12}  {goal}: {shown} ({bound}){'; ' + note if note else ''}", flush=True)


def median(results, key):
    return statistics.median(key(r) for r in results)


def at_saturation(rig, goals, args):
    """Of two loads the one that gets more done: so many in flight, or all of it waiting in the store."""
    loads = [SATURATED.scaled(args.scale), BACKLOG.scaled(args.scale)]
    rounds = [[scenario.measure(rig, s, {}) for s in loads] for _ in range(args.rounds)]
    by_load = list(zip(*rounds))
    best = max(by_load, key=lambda results: median(results, lambda r: r["tasks_per_s"]))
    ratio = median(best, lambda r: r["ratios"]["changes_to_store"])
    peak = max(r["peak_mib"] for results in by_load for r in results)
    goals.tell("state changes a second at saturation, by those of the bare store", ratio, "at least 0.5", ratio >= 0.5,
               f"{median(best, lambda r: r['changes_per_s']):.0f} against "
               f"{median(best, lambda r: r['floors']['store']['changes_per_s']):.0f}, in batches of "
               f"{median(best, lambda r: r['changes_per_commit']):.0f}; "
               f"{median(best, lambda r: r['tasks_per_s']):.0f} tasks a second, {best[0]['scenario']}")
    goals.tell("resident memory of the server at saturation, MiB", peak, "below 100", peak < 100, "its peak, of both loads")


def alone(rig, goals, args):
    rounds = [scenario.measure(rig, ALONE.scaled(args.scale), {}) for _ in range(args.rounds)]
    p50 = median(rounds, lambda r: r["p50_ms"])
    disk = median(rounds, lambda r: r["floors"]["disk"]["fdatasync_p50_ms"])
    goals.tell("one task alone, submitted to processed, ms", p50, f"within 6 fdatasyncs and 1 ms: {6 * disk + 1:.2f}",
               p50 <= 6 * disk + 1, f"an fdatasync takes {disk:.3f} ms")


def steps_of(count, folder):
    """A definition of so many steps, one after the other."""
    steps = [{"name": f"step{i}", "agent": "abc"[i % 3], "action": "do", "undo": {"action": "undo"}} for i in range(count)]
    path = f"{folder}/steps{count}.json"
    with open(path, "w") as f:
        json.dump({"intact": 1, "workflow": f"steps{count}", "steps": steps, "output": f"${{ .steps.step{count - 1}.output }}"}, f)
    return path


def cpu_of_load(installation, workflow, tasks, prefix):
    """The server's CPU for a task, in ms."""
    before = installation.counts()
    installation.flow("--workflow", workflow, "--tasks", tasks, "--in-flight", min(200, tasks), "--prefix", prefix)
    return difference(before, installation.counts(), tasks)["server_cpu_s_per_1000"]


def linear_in_steps(rig, goals, args):
    tasks = max(round(6000 * args.scale), 10)
    found = {count: [] for count, _ in LONGER}
    with tempfile.TemporaryDirectory(dir=rig.work) as folder:
        for _ in range(args.rounds):
            for count, workflow in LONGER:
                with Installation(rig, steps_of(count, folder)) as installation:
                    cpu_of_load(installation, workflow, tasks // 10 + 5, "warm")
                    found[count].append(cpu_of_load(installation, workflow, tasks * 3 // count + 5, "t") / count)
    each = {count: statistics.median(v) * 1000 for count, v in found.items()}
    growth = each[30] / each[3]
    goals.tell("the server's CPU for a step of 30, by that for a step of 3", growth, "at most 1.1: linear in steps", growth <= 1.1,
               ", ".join(f"{us:.0f} us of {count}" for count, us in each.items()))


def flat_in_kept(rig, goals, args):
    tasks = max(round(5000 * args.scale), 10)
    kept = max(round(args.kept * min(args.scale, 1)), 10)
    few, many = [], []
    # Both at the same time: who has nothing to do costs nothing, and so they can take turns.
    with Installation(rig, SATURATED.definition) as young, Installation(rig, SATURATED.definition) as old:
        old.flow("--workflow", "steps3", "--tasks", kept, "--in-flight", 20000, "--lines", 500, "--prefix", "kept",
                 "--connections", 8)
        for installation in (young, old):
            cpu_of_load(installation, "steps3", tasks // 5 + 5, "warm")
        for i in range(args.rounds):
            few.append(cpu_of_load(young, "steps3", tasks, f"t{i}"))
            many.append(cpu_of_load(old, "steps3", tasks, f"t{i}"))
    growth = statistics.median(many) / statistics.median(few)
    goals.tell(f"the server's CPU for a task with {kept} others kept, by that without", growth, "at most 1.1: flat in kept tasks",
               growth <= 1.1, f"{statistics.median(few) * 1000:.0f} us without, {statistics.median(many) * 1000:.0f} us with; --kept 10000000 for all")


def measure_peer(name):
    done = subprocess.run([PEERS, name, "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode != 0 or not lines:
        raise Trouble(f"{name}: {done.stderr.strip()[-300:]}")
    return json.loads(lines[-1])


def against(goals, args, ours, theirs):
    """Medians of both, by turns."""
    turns = [(measure_peer(ours), measure_peer(theirs)) for _ in range(args.rounds)]

    def middle(key):
        return [statistics.median(turn[i][key] for turn in turns) for i in (0, 1)]

    a, b = middle("tasks_per_s")
    goals.tell(f"tasks a second, by those of {theirs}", a / b, "at least 10", a >= 10 * b, f"{a:.0f} against {b:.0f}")
    if not theirs.startswith("restate"):
        return
    a, b = middle("server_cpu_s_per_1000")
    goals.tell(f"times less server CPU than {theirs}", b / a, "at least 20", b >= 20 * a, f"{a:.3f} s against {b:.3f} s for 1000 tasks")
    a, b = middle("p50_ms")
    goals.tell(f"one in flight, median, by that of {theirs}", a / b, "below 0.2", a < b / 5, f"{a:.2f} ms against {b:.2f} ms")


def peers(goals, args):
    pairs = [("intact-sqlite/calls", "restate/calls"), ("intact-sqlite/calls", "restate/inside"),
             ("intact-postgres/calls", "dbos/inside")]
    installed = os.path.exists(PEERS) and os.path.exists(f"{ROOT}/build/peers/installed")
    for ours, theirs in pairs:
        if args.no_peers or not installed:
            goals.tell(f"against {theirs}", None, "see ./run peers", None, "left out" if args.no_peers else "./run peers installs it")
            continue
        try:
            against(goals, args, ours, theirs)
        except (Trouble, KeyError, TypeError, ZeroDivisionError) as trouble:
            goals.tell(f"against {theirs}", None, "see ./run peers", None, str(trouble))


def arguments():
    p = argparse.ArgumentParser(prog="./run bench goals", description="Measures what Intact must reach, and says of each goal whether it is met.")
    p.add_argument("build", help=argparse.SUPPRESS)
    p.add_argument("--dir", default=os.environ.get("TMPDIR", "/tmp"), help="where servers keep their data: the disk that is measured")
    p.add_argument("--out", default=f"{ROOT}/build/bench", help="where goals.jsonl goes")
    p.add_argument("--rounds", type=count_of, default=3, help="of each measurement, whose median counts; 3")
    p.add_argument("--kept", type=count_of, default=200000, help="finished tasks to be kept; 200000. 10000000 need 45 GB and half an hour")
    p.add_argument("--no-peers", action="store_true", help="without Restate and DBOS")
    p.add_argument("--scale", type=float, default=1, help=argparse.SUPPRESS)
    return p.parse_args()


def main():
    args = arguments()
    os.makedirs(args.out, exist_ok=True)
    with Rig(args.build, args.dir) as rig, open(f"{args.out}/goals.jsonl", "w") as out:
        goals = Goals(out)
        about = machine()
        out.write(json.dumps({"machine": about}) + "\n")
        print(f"{about['processors']} x {about['processor']}, load {about['load_before']:.1f} before; medians of {args.rounds}")
        at_saturation(rig, goals, args)
        alone(rig, goals, args)
        linear_in_steps(rig, goals, args)
        flat_in_kept(rig, goals, args)
        peers(goals, args)
    return 1 if goals.missed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (Trouble, OSError) as trouble:
        sys.exit(f"bench: {trouble}")
