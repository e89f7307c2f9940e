#!/usr/bin/env python3
"""./run bench matrix: every scenario of scenarios.json on a fresh installation, with its floors, as a table, JSON lines and pictures.

Usage: matrix.py BUILD [--dir DIR] [--out DIR] [--only PATTERN] [--long] [--rounds N] [--scale F] [--no-floors]
"""

import argparse
import fnmatch
import json
import os
import platform
import sys
import time

import plots
import scenario
import table
from rig import ROOT, Rig, Trouble, count_of


def machine():
    with open("/proc/cpuinfo") as f:
        model = next((line.split(":", 1)[1].strip() for line in f if line.startswith("model name")), "unknown")
    return {"processor": model, "processors": os.cpu_count(), "kernel": platform.release(), "load_before": os.getloadavg()[0],
            "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)}


def arguments():
    p = argparse.ArgumentParser(prog="./run bench matrix", description="Measures each scenario of bench/matrix/scenarios.json.")
    p.add_argument("build", help=argparse.SUPPRESS)
    p.add_argument("--dir", default=os.environ.get("TMPDIR", "/tmp"), help="where servers keep their data: the disk that is measured")
    p.add_argument("--out", default=f"{ROOT}/build/bench", help="where table, results.jsonl and pictures go")
    p.add_argument("--only", default="*", metavar="PATTERN", help="scenarios by name, such as 'pg-*'; with commas between")
    p.add_argument("--long", action="store_true", help="all scenarios, ten times as many tasks, 1 000 000 asleep")
    p.add_argument("--rounds", type=count_of, default=1, help="all of them so many times, by turns; the table shows medians")
    p.add_argument("--scale", type=float, default=1, help=argparse.SUPPRESS)
    p.add_argument("--no-floors", action="store_true", help="only the installations")
    return p.parse_args()


def chosen(args):
    times, known = scenario.read()
    patterns = args.only.split(",")
    named = [s for s in known if any(fnmatch.fnmatchcase(s.name, p) for p in patterns)]
    if not named:
        raise Trouble(f"no scenario is called {args.only}; there are: {' '.join(s.name for s in known)}")
    wanted = {s.rate_of for s in named} | {s.name for s in named if args.long or args.only != "*" or not s.only_long}
    scale = args.scale * (times if args.long else 1)
    return [s.scaled(scale) for s in known if s.name in wanted]


def say(result):
    sys.stderr.write(f"{result['scenario']}: {result['tasks_per_s']:.0f} tasks/s, p50 {result['p50_ms']:.2f} ms\n")


def main():
    args = arguments()
    os.makedirs(args.out, exist_ok=True)
    results, failed = [], []
    about = machine()
    with Rig(args.build, args.dir) as rig, open(f"{args.out}/results.jsonl", "w") as out:
        for number in range(args.rounds):
            reached = {}
            for s in chosen(args):
                try:
                    result = scenario.measure(rig, s, reached, not args.no_floors)
                except Trouble as trouble:
                    failed.append(s.name)
                    sys.stderr.write(f"{s.name}: {trouble}\n")
                    continue
                result.update(round=number + 1, at=round(time.time()), machine=about)
                out.write(json.dumps(result) + "\n")
                out.flush()
                results.append(result)
                say(result)
    if results:
        text = table.text_of(results)
        with open(f"{args.out}/table.txt", "w") as f:
            f.write(text + "\n")
        print(text)
        pictures = plots.draw(results, args.out)
        print(f"\n{args.out}: results.jsonl, table.txt, {', '.join(pictures)}")
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (Trouble, OSError) as trouble:
        sys.exit(f"bench: {trouble}")
