#!/usr/bin/env python3
"""Submits orders to several nodes while these, or their database, die, and watches who is ready.

usage: load.py WORK PREFIX RATE NODE=URL...    ($INTACT_TOKEN is sent)

Until the file WORK/PREFIX.stop appears, RATE orders a second; each is sent to one node after the other until one
answers 2xx. What was answered so is written to WORK/PREFIX.accepted, one line each: TIME ID NODE TRIES. Accepted tasks
are read again, from any node: 404 goes to WORK/PREFIX.missing. What the nodes say of themselves (ready, not ready with
the reason, unreachable) is written to WORK/events as it changes, beside what the script that started us did.
"""
import json
import os
import random
import sys
import threading
import time
import urllib.error
import urllib.request

work, prefix, rate = sys.argv[1], sys.argv[2], float(sys.argv[3])
nodes = [text.split("=", 1) for text in sys.argv[4:]]
token = os.environ.get("INTACT_TOKEN", "")
chance = random.Random(prefix + os.environ.get("SEED", ""))
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
lock = threading.Lock()
accepted = []
events = open(f"{work}/events", "a", buffering=1)
notes = open(f"{work}/{prefix}.accepted", "a", buffering=1)
WORKERS = 32
PATIENCE = 3  # for one answer: then the next node is asked


def stopped():
    return os.path.exists(f"{work}/{prefix}.stop")


def call(url, path, body=None, patience=PATIENCE):
    """Status and text; status 0: no answer."""
    data = json.dumps(body).encode() if body is not None else None
    request = urllib.request.Request(url + path, data, {"Authorization": f"Bearer {token}",
                                                        "Content-Type": "application/json"})
    try:
        with opener.open(request, timeout=patience) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as e:
        return e.code, e.read().decode()
    except OSError:
        return 0, ""
    except Exception as e:  # an answer cut off in the middle
        return 0, str(e)


def order(i):
    card = "declined" if i % 9 == 0 else f"visa-{i}"
    sku = "rarity" if i % 11 == 0 else "widget" if i % 2 else "gadget"
    return {"workflow": "order", "id": f"{prefix}-{i}", "priority": i % 10,
            "input": {"sku": sku, "quantity": 1 + i % 3, "amount": 10 * i if i % 13 else 0, "card": card}}


def submit(i):
    """Until it was answered 2xx: what is sent twice is one task."""
    tries = 0
    while True:
        name, url = nodes[(i + tries) % len(nodes)]
        status, text = call(url, "/v1/tasks", order(i))
        tries += 1
        if 200 <= status < 300:
            with lock:
                accepted.append(f"{prefix}-{i}")
                notes.write(f"{time.time():.3f} {prefix}-{i} {name} {tries}\n")
            return
        if status and status not in (429, 503, 502, 504, 500):
            with open(f"{work}/{prefix}.refused", "a") as f:
                f.write(f"{prefix}-{i} {name} {status} {text}\n")
            return
        time.sleep(0.05)


class Source:
    """The numbers of orders, as many a second as they should be."""

    def __init__(self):
        self.next, self.began = 1, time.monotonic()

    def take(self):
        with lock:
            i = self.next
            self.next += 1
        time.sleep(max(0, self.began + i / rate - time.monotonic()))
        return i


def submitter(source):
    while not stopped():
        submit(source.take())


def reader():
    """What was accepted must be known to every node that answers."""
    while not stopped():
        time.sleep(0.05)
        with lock:
            task = chance.choice(accepted[-200:]) if accepted else None
            name, url = chance.choice(nodes)
        if not task:
            continue
        status, text = call(url, f"/v1/tasks/{task}")
        if status == 404:
            with open(f"{work}/{prefix}.missing", "a") as f:
                f.write(f"{time.time():.3f} {task} {name} {text}\n")


def watcher(name, url):
    said = None
    while not stopped():
        status, text = call(url, "/readyz")
        now = "is ready" if status == 200 else "is not ready" if status else "does not answer"
        if now != said:
            events.write(f"{time.time():.3f} node {name} {now}\n")
            said = now
        time.sleep(0.1)


source = Source()
threads = [threading.Thread(target=submitter, args=(source,)) for _ in range(WORKERS)]
threads += [threading.Thread(target=reader)]
threads += [threading.Thread(target=watcher, args=(name, url), daemon=True) for name, url in nodes]
for t in threads:
    t.start()
for t in threads[:WORKERS + 1]:
    t.join()
