#!/usr/bin/env python3
"""Many schedules that fire at the same moments: how late their tasks are submitted, and what that takes of a core.
Prints one line.
Usage: bench/schedules.py SERVER_PROGRAM [--schedules N] [--every SECONDS] [--times N]"""

import argparse
import datetime
import json
import threading
import time

from server import Server

PUTTERS = 16  # who store schedules at once
PAGE = 500
WORKFLOW = {"intact": 1, "workflow": "tick", "steps": [{"name": "do", "if": "false", "agent": "nobody", "action": "do", "undo": "none"}]}


def put(server, numbers, every):
    c = server.connect()
    for n in numbers:
        schedule = {"intact": 1, "schedule": f"s-{n}", "workflow": "tick", "every": f"{every}s"}
        server.call("PUT", f"/v1/schedules/s-{n}", json.dumps(schedule), connection=c)
    c.close()


def tasks(server):
    """All tasks: id and time of submission."""
    after, c = "", server.connect()
    while True:
        page = json.loads(server.call("GET", f"/v1/tasks?limit={PAGE}{after}", connection=c))
        yield from ((t["id"], t["submitted_at"]) for t in page["tasks"])
        if not page.get("next"):
            break
        after = f"&cursor={page['next']}"
    c.close()


def moment(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("--schedules", type=int, default=10_000)
    parser.add_argument("--every", type=int, default=60, help="seconds; they divide a day")
    parser.add_argument("--times", type=int, default=3)
    args = parser.parse_args()
    count, every = args.schedules, args.every
    server = Server(args.program)
    try:
        server.call("PUT", "/v1/workflows/tick", json.dumps(WORKFLOW))
        threads = [threading.Thread(target=put, args=(server, range(k, count, PUTTERS), every)) for k in range(PUTTERS)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        first = (time.time() // every + 2) * every  # the first moment for which all are there
        seconds = args.times * every
        time.sleep(first - every / 10 - time.time())
        used = server.cpu_s()
        time.sleep(seconds)
        core = (server.cpu_s() - used) / seconds
        late = []
        for id_, submitted in tasks(server):
            due = moment(id_.split("@")[1])
            if first <= due < first + seconds:
                late.append(moment(submitted) - due)
        late.sort()
        print(f"schedules: {count} that fire every {every} s, {args.times} times: {len(late)} tasks of {count * args.times}, submitted after "
              f"{late[len(late) // 2] * 1000:.0f} ms (99 %: {late[int(len(late) * 0.99)] * 1000:.0f}, the last: {late[-1] * 1000:.0f}); "
              f"{core * 100:.1f} % of a core, {server.resident_mib():.0f} MiB resident", flush=True)
    finally:
        server.end()


if __name__ == "__main__":
    main()
