#!/usr/bin/env python3
"""What the worst that many clients do costs everybody else: for each role, and for strangers, 64 clients that do one thing
without end, beside one client that submits, an agent that hands in results, and tasks that become overdue. Everything is
measured with and without the crowd by turns, in one run; "idle" clients ask the cheapest question there is.
The store is a file in the folder for temporary files; or, with --store, PostgreSQL: a connection string without a database, of
which each server gets a new one.
Usage: bench/crowds.py SERVER_PROGRAM [--store CONNECTION] [--seconds S] [--clients N] [--json FILE] [CROWD...]"""

import argparse
import http.client
import json
import multiprocessing
import os
import selectors
import shutil
import socket
import ssl
import statistics
import subprocess
import sys
import tempfile
import threading
import time

STORED = 20_000
LIST = "GET", "/v1/tasks?error=nope", b""
ONE = {"intact": 1, "workflow": "victim", "steps": [{"name": "do", "agent": "victim", "action": "do", "undo": "none"}]}
LATE = {"intact": 1, "workflow": "late", "steps": [
    {"name": "do", "agent": "absent-minded", "action": "do", "undo": "none", "complete_by": "1s", "retry": {"attempts": 1}}]}
NOBODY = {"intact": 1, "workflow": "nobody", "steps": [{"name": "do", "agent": "nobody", "action": "do", "undo": "none"}]}


def large_definition(size):
    steps = [{"name": f"step-{n}", "agent": "a", "action": "do", "undo": "none", "input": {"a": "${ .input.a + 1 }"}} for n in range(size)]
    return json.dumps({"intact": 1, "workflow": "large", "steps": steps}).encode()


def lines(word, count):
    return "".join(f'{{"workflow":"nobody","id":"{word}-{n}"}}\n' for n in range(count)).encode()


class Crowd:
    """One kind of client. `request(n)` is its n-th request: method, path, body and, if it needs it, a content type.
    `takes`: so many bytes of an answer without an end are read, then it comes again. `stalls`: the body is never sent whole.
    `tls`: the server speaks TLS, and is sent nothing but the first message of a handshake, again and again."""

    def __init__(self, name, role, request, takes=None, stalls=False, tls=False):
        self.name, self.role, self.request, self.takes, self.stalls, self.tls = name, role, request, takes, stalls, tls


def client_hello():
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    try:
        insecure().wrap_bio(incoming, outgoing).do_handshake()
    except ssl.SSLWantReadError:
        pass
    return outgoing.read()


def insecure():
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def fresh(n, word):
    return f"{word}-{os.getpid()}-{time.monotonic_ns()}-{n}"


HELLO = client_hello()  # once: making one takes the crowd longer than answering it takes the server
ARRAY = b"[" + b"0," * 2_000_000 + b"0]"
ATTEMPT = "A" * 60
BIG = 3_900_000  # bytes of the input of a large task
PIECE = 1 << 16  # bytes that one system call of the crowd moves: see crowd_goes_on, as for the next two
AWAKE_S, NAP_S = 0.0005, 0.00002

CROWDS = [
    Crowd("strangers: no token", None, lambda n: ("GET", "/v1/tasks", b"")),
    Crowd("strangers: bodies that never come", None, lambda n: ("GET", "/healthz", b"x" * 4_000_000), stalls=True),
    Crowd("strangers: TLS handshakes", None, None, tls=True),
    Crowd("strangers: large results", None, lambda n: ("POST", f"/v1/attempts/{ATTEMPT}", ARRAY)),
    Crowd("submit: a task at a time", "submit", lambda n: ("POST", "/v1/tasks", json.dumps({"workflow": "nobody", "id": fresh(n, "c")}).encode())),
    Crowd("submit: batches of 5000", "submit", lambda n: ("POST", "/v1/tasks", lines(fresh(n, "b"), 5000), "application/x-ndjson")),
    Crowd("submit: 4 MiB of numbers", "submit", lambda n: ("POST", "/v1/tasks", b'{"workflow":"nobody","input":' + ARRAY[:-1] + b"]}")),
    Crowd("submit: what is refused", "submit", lambda n: ("POST", "/v1/tasks", b'{"workflow":"none"}')),
    Crowd("submit: 2 MB to validate", "submit", lambda n: ("POST", "/v1/validate", large_definition(16_000))),
    Crowd("submit: slow senders", "submit", lambda n: ("POST", "/v1/tasks", b"x" * 1_000_000), stalls=True),
    Crowd("submit: waiting for an end", "submit", lambda n: ("GET", "/v1/tasks/stored-0-1?wait=1s", b"")),
    Crowd("submit:W: a task at a time", "submit:nobody", lambda n: (
        "POST", "/v1/tasks", json.dumps({"workflow": "nobody", "id": fresh(n, "c")}).encode())),
    Crowd("read:W: lists", "read:nobody", lambda n: LIST),
    Crowd("read: large records", "read", lambda n: ("GET", "/v1/tasks/big", b"")),
    Crowd("read: streams of a large task", "read", lambda n: ("GET", "/v1/tasks/big/events", b""), takes=BIG),
    Crowd("read: streams of all tasks", "read", lambda n: ("GET", "/v1/events", b""), takes=1 << 20),
    Crowd("read: lists", "read", lambda n: LIST),
    Crowd("read: long lists", "read", lambda n: ("GET", "/v1/tasks?limit=500", b"")),
    Crowd("read: statistics", "read", lambda n: (("GET", "/v1/stats", b""), ("GET", "/metrics", b""), ("GET", "/v1/agents", b""))[n % 3]),
    Crowd("define: 2 MB a definition", "define", lambda n: ("PUT", "/v1/workflows/large", large_definition(16_000))),
    Crowd("operate: definitions and operations", "operate", lambda n: (
        ("PUT", "/v1/workflows/large", large_definition(400)), ("POST", "/v1/tasks/none/retry", b'{"reason":"x"}'))[n // 64 % 2]),
    Crowd("repair: operations that find nothing", "repair", lambda n: ("POST", "/v1/tasks/none/retry", b'{"reason":"x"}')),
    Crowd("agent: work", "agent:nosy", lambda n: ("POST", "/v1/agents/nosy/work", json.dumps({"instance": f"i-{n % 64}", "max": 1}).encode())),
    Crowd("agent: results of nothing", "agent:nosy", lambda n: (
        "POST", "/v1/agents/nosy/work", json.dumps({"instance": f"i-{n % 64}", "max": 0, "results": [{"token": ATTEMPT, "output": 1}] * 1000}).encode())),
    Crowd("agent: 4 MiB of numbers", "agent:nosy", lambda n: ("POST", "/v1/agents/nosy/work", ARRAY)),
    Crowd("admin: tokens", "admin", lambda n: ("GET", "/v1/tokens", b"")),
]


class Server:
    made = 0  # databases

    def __init__(self, program, store, tls=False):
        self.program, self.folder, self.tls = program, tempfile.mkdtemp(prefix="intact-crowds."), tls
        flags = self.make_certificate() if tls else []
        if store:
            flags += ["--node", "n1", "--store", self.make_database(store)]
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]
        self.log = open(f"{self.folder}/log", "w", encoding="utf-8")
        self.process = subprocess.Popen([program, "serve", "--data", f"{self.folder}/data", "--listen", f"127.0.0.1:{self.port}", *flags],
                                        stdout=self.log, stderr=self.log)
        end = time.monotonic() + 30
        while not os.path.exists(f"{self.folder}/data/admin-token") or not self.is_ready():
            assert self.process.poll() is None and time.monotonic() < end, open(f"{self.folder}/log", encoding="utf-8").read()
            time.sleep(0.05)
        with open(f"{self.folder}/data/admin-token", encoding="utf-8") as f:
            self.admin = f.read().strip()

    @staticmethod
    def make_database(store):
        Server.made += 1
        name = f"crowds_{Server.made}"
        subprocess.run(["psql", "-q", "-d", f"{store} dbname=postgres", "-c", f"CREATE DATABASE {name}"], check=True)
        return f"{store} dbname={name}"

    def make_certificate(self):
        cert, key = f"{self.folder}/cert.pem", f"{self.folder}/key.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "9", "-keyout", key, "-out", cert,
                        "-subj", "/CN=localhost"], check=True, capture_output=True)
        return ["--tls-cert", cert, "--tls-key", key]

    def is_ready(self):
        try:
            return Client(self).call("GET", "/readyz")[0] == 200
        except OSError:
            return False

    def token(self, name, *roles):
        status, text = Client(self, self.admin).call("POST", "/v1/tokens", json.dumps({"name": name, "roles": roles}).encode())
        assert status == 201, text
        return json.loads(text)["token"]

    def end(self):
        self.process.terminate()
        self.process.wait()
        shutil.rmtree(self.folder)


class Client:
    def __init__(self, server, token=None):
        self.http = (http.client.HTTPSConnection("127.0.0.1", server.port, timeout=300, context=insecure()) if server.tls
                     else http.client.HTTPConnection("127.0.0.1", server.port, timeout=300))
        self.head = {"Authorization": f"Bearer {token}"} if token else {}

    def call(self, method, path, body=None, kind="application/json"):
        self.http.request(method, path, body, {"Content-Type": kind, **self.head})
        answer = self.http.getresponse()
        return answer.status, answer.read()


# ---- the crowd ----

class Member:
    """A connection of the crowd; what it sends and gets goes as the server takes and gives it."""

    def __init__(self, port, token, crowd, look, n):
        self.port, self.token, self.crowd, self.look, self.n = port, token, crowd, look, n
        self.sock, self.answers, self.got, self.out, self.taken = None, {}, b"", b"", 0
        self.in_body, self.closes, self.length, self.body, self.tail = False, False, None, 0, b""
        self.connect()

    def connect(self):
        self.sock = socket.create_connection(("127.0.0.1", self.port))
        self.sock.setblocking(False)
        self.got, self.out, self.taken, self.in_body = b"", self.make(), 0, False
        self.look.register(self.sock, selectors.EVENT_WRITE, self)

    def make(self):
        if self.crowd.tls:
            return memoryview(HELLO)
        method, path, body, *kind = self.crowd.request(self.n)
        self.n += 64
        head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\nContent-Type: {kind[0] if kind else 'application/json'}\r\n"
        if self.token:
            head += f"Authorization: Bearer {self.token}\r\n"
        if self.crowd.stalls:
            body = body[:len(body) // 2]
        return memoryview(head.encode() + b"\r\n" + body)

    def again(self):
        self.look.unregister(self.sock)
        self.sock.close()
        self.connect()

    def turn(self, events):
        try:
            if events & selectors.EVENT_WRITE:
                self.out = self.out[self.sock.send(self.out[:PIECE]):]
                if not self.out:
                    self.look.modify(self.sock, selectors.EVENT_READ, self)
                elif self.peek():
                    self.again()
            else:
                self.receive()
        except (BrokenPipeError, ConnectionResetError):
            self.count(0)
            self.again()

    def peek(self):
        """An answer before all was sent: the rest is not wanted."""
        try:
            got = self.sock.recv(65536)
        except BlockingIOError:
            return False
        self.got += got
        self.count(int(self.got.split(b" ", 2)[1]) if self.got else 0)
        return True

    def count(self, status):
        self.answers[status] = self.answers.get(status, 0) + 1

    def take(self, got):
        """Of an answer without an end, or of a handshake."""
        if self.taken == 0:
            self.count(1 if self.crowd.tls else int(got.split(b" ", 2)[1]))
        self.taken += len(got)
        if self.crowd.tls or self.taken >= self.crowd.takes or b" 503 " in got[:20]:
            self.again()

    def receive(self):
        got = self.sock.recv(PIECE)
        if got and (self.crowd.takes or self.crowd.tls):
            self.take(got)
            return
        if not got:
            self.count(0)
            self.again()
            return
        if not self.in_body:
            self.got += got
            head, mark, got = self.got.partition(b"\r\n\r\n")
            if not mark:
                return
            self.begin_body(head)
        self.body += len(got)
        self.tail = (self.tail + got)[-5:]
        if self.body >= self.length if self.length is not None else self.tail == b"0\r\n\r\n":
            self.end_body()

    def begin_body(self, head):
        self.count(int(head.split(b" ", 2)[1]))
        self.length = next((int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")), None)
        self.in_body, self.closes, self.body, self.tail = True, b"connection: close" in head.lower(), 0, b""

    def end_body(self):
        self.got, self.in_body = b"", False
        if self.closes:
            self.again()
            return
        self.out = self.make()
        self.look.modify(self.sock, selectors.EVENT_WRITE, self)


def crowd_goes_on(port, token, crowd, count, ready, stop, told):
    # Real crowds are on other machines. So the crowd's own work gets the processor only when nothing else wants it, and is
    # done in short pieces, with a word to the scheduler after each: a kernel that preempts lazily lets others run only then,
    # or at its next tick, 4 ms later. It also sleeps often: while it and the server's loop wake each other, they take turns
    # on one processor, and a session of the database that was ready there waited for 20 ms.
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    look = selectors.DefaultSelector()
    members = [Member(port, token, crowd, look, n) for n in range(count)]
    ready.set()
    awake_since = time.monotonic()
    while not stop.is_set():
        for key, events in look.select(0.05):
            key.data.turn(events)
            os.sched_yield()
            if time.monotonic() - awake_since > AWAKE_S:
                time.sleep(NAP_S)
                awake_since = time.monotonic()
    total = {}
    for m in members:
        for status, n in m.answers.items():
            total[status] = total.get(status, 0) + n
    told.put(total)


# ---- everybody else ----

class Others:
    """A client that submits, an agent that hands in results, and tasks that become overdue."""

    def __init__(self, server):
        self.server, self.token, self.n = server, server.token("others", "submit", "read", "agent:*"), 0

    def client(self):
        return Client(self.server, self.token)

    def word(self, kind):
        self.n += 1
        return f"{kind}-{os.getpid()}-{self.n}-{time.monotonic_ns()}"

    def submit(self, took, end):
        c = self.client()
        while time.monotonic() < end or len(took) < 5:
            body = json.dumps({"workflow": "nobody", "id": self.word("s")}).encode()
            begun = time.monotonic()
            status, text = c.call("POST", "/v1/tasks", body)
            took.append(time.monotonic() - begun)
            assert status == 201, text

    def work(self, took, end):
        c = self.client()
        path = "/v1/agents/victim/work"
        while time.monotonic() < end or len(took) < 5:
            status, text = c.call("POST", "/v1/tasks", json.dumps({"workflow": "victim", "id": self.word("w")}).encode())
            assert status == 201, text
            requests = []
            while not requests:
                status, text = c.call("POST", path, b'{"instance":"v","max":1,"wait":"10s"}')
                assert status == 200, text
                requests = json.loads(text)["requests"]
            results = json.dumps({"instance": "v", "max": 0, "results": [{"token": r["token"], "output": 1} for r in requests]}).encode()
            begun = time.monotonic()
            status, text = c.call("POST", path, results)
            took.append(time.monotonic() - begun)
            assert status == 200 and b"accepted" in text, text

    def overdue(self, took, end):
        """How long after its time a step is given up."""
        c, agent = self.client(), self.client()
        while time.monotonic() < end or len(took) < 3:
            id_ = self.word("l")
            status, text = c.call("POST", "/v1/tasks", json.dumps({"workflow": "late", "id": id_}).encode())
            assert status == 201, text
            requests = []
            while not requests:
                _, text = agent.call("POST", "/v1/agents/absent-minded/work", b'{"instance":"v","max":1,"wait":"10s"}')
                requests = json.loads(text)["requests"]
            due = time.monotonic() + requests[-1]["time_left_ms"] / 1000
            state = "running"
            while state not in ("processed", "compensated", "error"):
                _, text = c.call("GET", f"/v1/tasks/{id_}?wait=30s")
                state = json.loads(text)["state"]
            took.append(max(0.0, time.monotonic() - due))

    def measure(self, seconds):
        took = {"submit": [], "result": [], "overdue": []}
        end = time.monotonic() + seconds

        def as_if_elsewhere(f, *args):
            # These clients, too, are on other machines: what they wait for a processor of this one is not the server's doing.
            os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
            f(*args)

        threads = [threading.Thread(target=as_if_elsewhere, args=(f, took[k], end)) for k, f in (("submit", self.submit), ("result", self.work), ("overdue", self.overdue))]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        return took


def figures(took):
    took = sorted(took)
    return statistics.median(took) * 1000, took[min(len(took) - 1, int(len(took) * 0.99))] * 1000


def beside(server, others, crowd, count, seconds):
    """What others take beside that crowd, and what the crowd was answered."""
    ready, stop, told = multiprocessing.Event(), multiprocessing.Event(), multiprocessing.Queue()
    token = server.tokens.get(crowd.role)
    member = multiprocessing.Process(target=crowd_goes_on, args=(server.port, token, crowd, count, ready, stop, told))
    member.start()
    ready.wait()
    time.sleep(0.5)
    took = others.measure(seconds)
    stop.set()
    answers = told.get()
    member.join()
    return took, answers


def measure(program, store, crowd, count, seconds):
    server = Server(program, store, crowd.tls)
    server.tokens = {crowd.role: server.admin if crowd.role == "admin" else server.token("crowd", crowd.role)} if crowd.role else {}
    admin = Client(server, server.admin)
    for w in (NOBODY, ONE, LATE):
        status, text = admin.call("PUT", f"/v1/workflows/{w['workflow']}", json.dumps(w).encode())
        assert status in (200, 201), text
    for first in range(0, STORED, 5000):
        admin.call("POST", "/v1/tasks", lines(f"stored-{first}", 5000), "application/x-ndjson")
    admin.call("POST", "/v1/tasks", json.dumps({"workflow": "nobody", "id": "big", "input": "x" * BIG}).encode())
    others = Others(server)
    others.measure(1)
    alone, with_crowd, answers = ({"submit": [], "result": [], "overdue": []} for _ in range(3))
    answers = {}
    for _ in range(2):
        for kind, took in others.measure(seconds).items():
            alone[kind] += took
        took_beside, told = beside(server, others, crowd, count, seconds)
        for kind, took in took_beside.items():
            with_crowd[kind] += took
        for status, n in told.items():
            answers[status] = answers.get(status, 0) + n
    server.end()
    row = {"crowd": crowd.name, "clients": count, "answers": answers}
    for kind in alone:
        for which, a, b in zip(("median", "p99"), figures(alone[kind]), figures(with_crowd[kind])):
            row[f"{kind}_{which}_ms"], row[f"{kind}_{which}_alone_ms"] = round(b, 2), round(a, 2)
    return row


def cell(row, kind, which):
    a, b = row[f"{kind}_{which}_alone_ms"], row[f"{kind}_{which}_ms"]
    return f"{a:.1f} -> {b:.1f} ({b / max(a, 0.01):.1f})"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("--store")
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--json")
    parser.add_argument("crowd", nargs="*")
    args = parser.parse_intermixed_args()
    idle = Crowd("idle clients", None, lambda n: ("GET", "/healthz", b""))
    chosen = [c for c in [idle, *CROWDS] if not args.crowd or any(w in c.name for w in args.crowd)]
    if not chosen:
        sys.exit(f"no crowd of that name; there are: {', '.join(c.name for c in CROWDS)}")
    rows = []
    print("| crowd | submission, median ms (times) | 99 % | result, median | 99 % | overdue found after, median | 99 % | answers a second |\n|---|---|---|---|---|---|---|---|")
    for crowd in chosen:
        row = measure(args.program, args.store, crowd, args.clients, args.seconds)
        rows.append(row)
        told = ", ".join(f"{s or 'cut'}: {n / args.seconds / 2:.0f}" for s, n in sorted(row["answers"].items()))
        print(f"| {crowd.name} | {cell(row, 'submit', 'median')} | {cell(row, 'submit', 'p99')} | {cell(row, 'result', 'median')} "
              f"| {cell(row, 'result', 'p99')} | {cell(row, 'overdue', 'median')} | {cell(row, 'overdue', 'p99')} | {told} |", flush=True)
    worst = max(((row[f"{k}_{w}_ms"] / max(row[f"{k}_{w}_alone_ms"], 0.01), row["crowd"], k, w)
                 for row in rows for k in ("submit", "result", "overdue") for w in ("median", "p99")))
    print(f"\nworst: {worst[0]:.1f} times, {worst[2]} {worst[3]} beside \"{worst[1]}\"; the goal is at most 3")
    if args.json:
        with open(args.json, "w", encoding="utf-8") as f:
            json.dump(rows, f, indent=1)


if __name__ == "__main__":
    main()
