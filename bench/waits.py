#!/usr/bin/env python3
"""What tasks cost that wait for a time, a signal or a lock: memory and processor time while they wait, how fast they go
on when what they wait for comes, and how long other tasks take to start meanwhile. Prints one line for each kind.
Usage: bench/waits.py SERVER_PROGRAM [--tasks N] [--idle SECONDS] [KIND...]; kinds: time, signal, lock"""

import argparse
import json
import multiprocessing
import selectors
import socket
import statistics
import sys
import threading
import time

from server import Server

LINES = 5000  # of a batch
SENDERS = 64  # of signals at once
PROCESSES = 2  # that send them
SIGNALS = 20_000  # so many of the tasks that wait for a signal get it
ALONE = 200  # signals at most that are sent one after the other
KEYS = 1000  # of locks at most, each with one task that holds it and at least nine that wait

OTHER = {"intact": 1, "workflow": "other", "steps": [{"name": "do", "agent": "one", "action": "do", "undo": "none"}]}
UNTIL = {"name": "wait", "wait": {"until": "${ .input.at }"}}
TIME = {"intact": 1, "workflow": "waits", "steps": [UNTIL]}
SIGNAL = {"intact": 1, "workflow": "waits", "steps": [{"name": "paid", "signal": {"name": "payment"}}]}
LOCK = {"intact": 1, "workflow": "waits", "lock": {"key": "${ .input.key }"}, "steps": [UNTIL]}


class Others:
    """Submits a task and fetches its request, again and again."""

    def __init__(self, server):
        self.server, self.took, self.stop = server, [], threading.Event()
        self.thread = threading.Thread(target=self.run)

    def run(self):
        n = 0
        while not self.stop.is_set():
            began = time.monotonic()
            self.server.call("POST", "/v1/tasks", json.dumps({"workflow": "other", "id": f"other-{n}"}))
            answer = json.loads(self.server.call("POST", "/v1/agents/one/work", '{"instance": "i", "max": 1, "wait": "30s"}'))
            self.took.append((time.monotonic() - began) * 1000)
            results = [{"token": r["token"], "output": 1} for r in answer.get("requests", [])]
            self.server.call("POST", "/v1/agents/one/work", json.dumps({"instance": "i", "max": 0, "results": results}))
            n += 1
            time.sleep(0.01)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        self.thread.join()

    def __str__(self):
        took = sorted(self.took)
        return f"other tasks start after {statistics.median(took):.1f} ms (99 %: {took[int(len(took) * 0.99)]:.1f})"


def at(moment):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(moment))


def waits(program, workflow, count, idle_s, input_of):
    """A server with so many tasks that wait, and what they cost while they do."""
    server = Server(program)
    for w in (workflow, OTHER):
        server.call("PUT", f"/v1/workflows/{w['workflow']}", json.dumps(w))
    used = server.cpu_s()
    time.sleep(idle_s)
    empty = (server.cpu_s() - used) / idle_s
    for first in range(0, count, LINES):
        server.submit(f'{{"workflow":"waits","id":"w-{n}","input":{input_of(n)}}}' for n in range(first, min(count, first + LINES)))
    time.sleep(2)
    used = server.cpu_s()
    time.sleep(idle_s)
    idle = (server.cpu_s() - used) / idle_s
    return server, (f"{count} tasks: {server.resident_mib():.0f} MiB resident, {idle * 100:.1f} % of a core while they wait "
                    f"({empty * 100:.1f} without them)")


def all_end(server, count, before=0):
    began = time.monotonic()
    while server.ended() - before < count:
        time.sleep(0.1)
    return time.monotonic() - began


def for_a_time(program, count, idle_s):
    lead_s = count // 10_000 + 2 * idle_s + 5
    while True:
        due = int(time.time()) + lead_s
        server, cost = waits(program, TIME, count, idle_s, lambda n: f'{{"at":"{at(due)}"}}')
        if time.time() < due:
            break
        server.end()  # the machine is too slow to submit all of them before
        lead_s *= 2
    try:
        time.sleep(max(0, due - time.time()))
        with Others(server) as others:
            seconds = all_end(server, count)
        print(f"waits for a time: {cost}; all due at once: {count / seconds:.0f} a second go on, {others}", flush=True)
    finally:
        server.end()


def send(server, numbers):
    """Signals, one after the other over one connection; how long each took until its task had ended."""
    c, took = server.connect(), []
    for n in numbers:
        began = time.monotonic()
        server.call("POST", f"/v1/tasks/w-{n}/signals/payment", '{"data": 1}', connection=c)
        took.append((time.monotonic() - began) * 1000)
    c.close()
    return took


def send_many(port, numbers):
    """Signals over SENDERS / PROCESSES connections, each of which always has one in flight."""
    look, left, numbers = selectors.DefaultSelector(), len(numbers), iter(numbers)

    def send_next(sock):
        n = next(numbers, None)
        if n is not None:
            sock.sendall(b"POST /v1/tasks/w-%d/signals/payment HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                         b'Content-Length: 11\r\n\r\n{"data": 1}' % n)

    for _ in range(SENDERS // PROCESSES):
        sock = socket.create_connection(("127.0.0.1", port))
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        look.register(sock, selectors.EVENT_READ)
        send_next(sock)
    while left > 0:
        for key, _ in look.select():
            answer = key.fileobj.recv(65536)  # answers are short: each comes as one segment
            assert answer.startswith(b"HTTP/1.1 20"), answer
            left -= 1
            send_next(key.fileobj)


def for_a_signal(program, count, idle_s):
    server, cost = waits(program, SIGNAL, count, idle_s, lambda n: "null")
    try:
        few = min(ALONE, count // 2)
        commits = server.commits()
        took = send(server, range(few))
        all_end(server, few)
        alone = (server.commits() - commits) / few
        commits, many, began = server.commits(), min(SIGNALS, count - few), time.monotonic()
        with Others(server) as others:
            processes = [multiprocessing.Process(target=send_many, args=(server.port, range(few + k, few + many, PROCESSES)))
                         for k in range(PROCESSES)]
            for p in processes:
                p.start()
            for p in processes:
                p.join()
            assert all(p.exitcode == 0 for p in processes), "a signal was refused"
            all_end(server, few + many)
            seconds = time.monotonic() - began
        together = (server.commits() - commits) / many
        print(f"waits for a signal: {cost}; a signal alone: {statistics.median(took):.1f} ms, {alone:.2f} commits; {SENDERS} at once: "
              f"{many / seconds:.0f} a second, {together:.2f} commits each, {others}", flush=True)
    finally:
        server.end()


def for_a_lock(program, count, idle_s):
    """The first task of each key holds it until a moment; all others of the key go through it one after the other."""
    keys = min(KEYS, count // 10)
    due = int(time.time()) + count // 2_000 + 2 * idle_s + 5
    server, cost = waits(program, LOCK, count, idle_s, lambda n: f'{{"key":"{n % keys}","at":"{at(due if n < keys else 0)}"}}')
    try:
        assert time.time() < due, "submitting took too long"
        time.sleep(max(0, due - time.time()))
        with Others(server) as others:
            seconds = all_end(server, count)
        print(f"waits for a lock: {cost}; {keys} locks: {count / seconds:.0f} tasks a second take one and end, {others}", flush=True)
    finally:
        server.end()


KINDS = {"time": for_a_time, "signal": for_a_signal, "lock": for_a_lock}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("--tasks", type=int, default=1_000_000)
    parser.add_argument("--idle", type=int, default=10, help="seconds for which the use of the processor is measured")
    parser.add_argument("kind", nargs="*")
    args = parser.parse_intermixed_args()
    kinds = args.kind or list(KINDS)
    if not set(kinds) <= set(KINDS):
        sys.exit(f"no such kind; there are: {', '.join(KINDS)}")
    for kind in kinds:
        KINDS[kind](args.program, args.tasks, args.idle)


if __name__ == "__main__":
    main()
