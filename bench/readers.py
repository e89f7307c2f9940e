#!/usr/bin/env python3
"""What readers cost others: submissions one after the other, beside 0, 1, 8 and 64 readers that list without end, each
listing looking at all that is stored and finding nothing. Usage: bench/readers.py NAME URL [STORED [SECONDS]]"""

import http.client
import json
import multiprocessing
import os
import statistics
import sys
import time
import urllib.parse

name, url = sys.argv[1], urllib.parse.urlparse(sys.argv[2])
stored = int(sys.argv[3]) if len(sys.argv) > 3 else 22_800
seconds = float(sys.argv[4]) if len(sys.argv) > 4 else 10
FEWEST = 20  # submissions, however long they take
may = {"Authorization": f"Bearer {os.environ['INTACT_TOKEN']}"} if os.environ.get("INTACT_TOKEN") else {}


def connect():
    return http.client.HTTPConnection(url.hostname, url.port, timeout=300)


def call(c, method, path, body=None, kind="application/json"):
    c.request(method, path, body, {"Content-Type": kind, **may})
    answer = c.getresponse()
    return answer.status, answer.read()


def fill():
    c = connect()
    for first in range(0, stored, 5000):
        lines = "".join(f'{{"workflow":"nobody","id":"s-{n}"}}\n' for n in range(first, min(first + 5000, stored)))
        status, text = call(c, "POST", "/v1/tasks", lines.encode(), "application/x-ndjson")
        assert status == 200, text


def read_on(count, ready, stop, told):
    """So many readers in one process: each asks again as soon as it is answered."""
    import selectors

    look, answers = selectors.DefaultSelector(), 0
    connections = [connect() for _ in range(count)]
    for c in connections:
        c.request("GET", "/v1/tasks?error=nope", headers=may)
        look.register(c.sock, selectors.EVENT_READ, c)
    ready.set()
    while not stop.is_set():
        for key, _ in look.select(0.1):
            answer = key.data.getresponse()
            text = answer.read()
            assert answer.status == 200 and json.loads(text)["tasks"] == [], text
            answers += 1
            key.data.request("GET", "/v1/tasks?error=nope", headers=may)
    told.put(answers)


def submit_on(word):
    took, c, end = [], connect(), time.monotonic() + seconds
    while len(took) < FEWEST or time.monotonic() < end:
        body = json.dumps({"workflow": "nobody", "id": f"{word}-{len(took)}"}).encode()
        begun = time.monotonic()
        status, text = call(c, "POST", "/v1/tasks", body)
        took.append((time.monotonic() - begun) * 1000)
        assert status == 201, text
    return took


def beside(count, word):
    ready, stop, told = multiprocessing.Event(), multiprocessing.Event(), multiprocessing.Queue()
    readers = multiprocessing.Process(target=read_on, args=(count, ready, stop, told))
    answers = 0
    if count:
        readers.start()
        ready.wait()
        time.sleep(1)
    begun = time.monotonic()
    took = submit_on(word)
    spent = time.monotonic() - begun
    if count:
        stop.set()
        answers = told.get()
        readers.join()
    took.sort()
    return statistics.median(took), took[int(len(took) * 0.99)], len(took), answers / (spent + 1)


def main():
    fill()
    beside(0, "warm")
    first = None
    for count in (0, 1, 8, 64):
        median, p99, n, lists = beside(count, f"beside-{count}")
        first = first or median
        print(f"{name}: {count:2} readers, {lists:5.1f} lists a second: submissions median {median:.2f} ms "
              f"({median / first:.1f} times), p99 {p99:.2f} ms, of {n}", flush=True)


main()
