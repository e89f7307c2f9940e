#!/usr/bin/python3
"""Writers of queues, and brokers, that mean no good: replies of others, messages that are large or lead elsewhere, brokers that
hang up or never end. A real RabbitMQ, and peers of our own.

Usage: attacks_test.py INTACT [TEST...]
"""

import itertools
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import unittest
import urllib.error

import broker_kit as kit
from broker_kit import Client, body_of, eventually

INTACT = os.path.realpath(sys.argv.pop(1))
numbers = itertools.count(1)
ENVIRONMENT = {"BROKER_PASSWORD": kit.PASSWORD, "ASAN_OPTIONS": "quarantine_size_mb=1"}  # freed memory is not counted
MEMORY_MIB = 64  # what docs/hostile.md says of the process
SANITIZER_MIB = 100


def order(agent="payment"):
    return {"intact": 1, "workflow": "order", "steps": [
        {"name": "charge", "agent": agent, "action": "charge", "undo": "none", "complete_by": "10m", "retry": {"attempts": 1}}]}


WAITS = {"intact": 1, "workflow": "waits", "steps": [{"name": "s", "signal": {"name": "go"}}]}


def has_sanitizer():
    with open(INTACT, "rb") as f:
        return b"__asan_init" in f.read()


def largest_mib(pid):
    with open(f"/proc/{pid}/status") as f:
        return int(next(line for line in f if line.startswith("VmHWM")).split()[1]) >> 10


class Messages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.broker = kit.Broker().start()
        cls.addClassCleanup(cls.broker.close)

    def setUp(self):
        self.n = next(numbers)
        self.client = Client(self.broker)
        self.addCleanup(self.client.close)

    def section(self, **more):
        broker = {"name": "main", "url": f"amqp://127.0.0.1:{self.broker.port}", "user": "intact",
                  "password": {"env": "BROKER_PASSWORD"}, "addresses": "/queue/{}"}
        return {"brokers": [broker], "submissions": [{"queue": f"orders-{self.n}", "workflow": "order", "refused": "record"}],
                "agents": [{"agent": "payment", "queue": f"payment-{self.n}"}],
                "messages": {"allow": ["reply.*"]}, "replies": f"replies-{self.n}"} | more

    def server(self):
        server = kit.Server(INTACT, environment=ENVIRONMENT)
        server.flags += ["--config", f"{server.folder}/intact.json"]
        with open(f"{server.folder}/intact.json", "w") as f:
            json.dump({"intact_server": 1, "amqp": self.section()}, f)
        self.addCleanup(server.close)
        server.start()
        for workflow in (order(), WAITS):
            server.put(workflow)
        return server

    def submit(self, body, **properties):
        self.client.send(f"orders-{self.n}", body if isinstance(body, str) else json.dumps(body), **properties)

    def exists(self, server, id_):
        try:
            return server.task(id_)
        except OSError:
            return None

    def refused(self, server):
        return {s["id"]: s["reason"] for s in server.call("GET", "/v1/submissions?state=refused&limit=100")["submissions"]}

    def request(self):
        message = eventually("the request comes", lambda: self.client.again(lambda: self.client.receive_raw(f"payment-{self.n}", 1)))
        self.client.accept(f"payment-{self.n}")
        return message

    # ---- replies

    def test_a_reply_needs_what_follows_from_the_token(self):
        """Whoever may write to the queue of replies, and knows the task: the agent of another queue."""
        server = self.server()
        server.submit("order", "o-1", {})
        message = self.request()
        replies = message.reply_to.removeprefix("/queue/")
        for name in ("o-1/charge#1", "o-1/charge#1#", "o-1/charge#1#" + 16 * "0", "o-1/charge", message.id[:-1], message.id + "0"):
            self.client.send(replies, '{"output": "forged"}', correlation_id=name)
        eventually("all are rejected", lambda: server.read_log().count("event=amqp_reply_rejected") >= 6)
        self.assertEqual(server.task("o-1")["state"], "processing")
        self.client.send(replies, '{"output": "real"}', correlation_id=message.id)
        self.assertEqual(server.ended("o-1")["steps"][0]["output"], "real")

    def test_replies_to_nothing_hold_up_no_others(self):
        server = self.server()
        server.submit("order", "o-1", {})
        message = self.request()
        replies = message.reply_to.removeprefix("/queue/")
        for i in range(1000):  # as many as are taken at a time
            self.client.send(replies, '{"elsewhere": true}', correlation_id=f"nobody-{i}")
        self.client.send(replies, '{"output": 1}', correlation_id=message.correlation_id)
        self.assertEqual(server.ended("o-1")["steps"][0]["output"], 1)

        def held():
            lines = subprocess.run([f"{kit.RABBIT}/rabbitmqctl", "-q", "list_queues", "name", "messages_unacknowledged"],
                                   env=self.broker.environment, check=True, capture_output=True, text=True).stdout.splitlines()
            return int(next(line.split()[1] for line in lines if line.startswith(f"replies-{self.n}\t")))

        eventually("few of them are kept", lambda: held() <= 200)
        self.assertGreaterEqual(server.read_log().count("event=amqp_reply_rejected"), 700)

    def test_a_reply_that_grows_as_json_costs_no_other_result(self):
        """Short enough as AMQP, but each of its characters takes six bytes of JSON."""
        server = self.server()
        server.submit("order", "o-1", {})
        message = self.request()
        self.client.send(message.reply_to.removeprefix("/queue/"), {"output": "\x01" * 180000}, correlation_id=message.correlation_id)
        eventually("it has an end", lambda: "output_too_long" in json.dumps(server.task("o-1")))

    # ---- submissions and signals

    def test_a_signal_for_a_long_name_holds_up_no_others(self):
        """No call can be made of it, and two of them would be more than is held at a time."""
        server = self.server()
        for i in range(3):
            self.submit({"signal": "x", "id": f"k-{i}", "task": "a" * (9 << 18)}, id=f"k-{i}")
        self.submit({"signal": "x" * 1025, "id": "k-3", "task": "t"}, id="k-3")
        self.submit({"id": "o-1"})
        eventually("it is there", lambda: self.exists(server, "o-1"))
        eventually("they are set aside", lambda: set(self.refused(server)) == {f"k-{i}" for i in range(4)})

    def test_tags_that_are_none_are_refused(self):
        """With a correlation id, too, which would be one of them."""
        server = self.server()
        bad = {"t-0": 5, "t-1": "x", "t-2": [1], "t-3": {"a": 1}}
        for id_, tags in bad.items():
            self.submit({"id": id_, "tags": tags}, correlation_id="c", reply_to="reply.x")
        self.submit({"id": "t-4", "tags": {"a": "b"}}, correlation_id="c", reply_to="reply.x")
        self.submit({"specversion": "1.0", "id": "e", "source": "/s", "type": "t", "data": {"id": "t-5", "tags": None}},
                    correlation_id="c", reply_to="reply.x")
        eventually("all have been read", lambda: self.exists(server, "t-5") and len(self.refused(server)) == len(bad))
        self.assertEqual(set(self.refused(server)), set(bad))
        self.assertEqual(server.task("t-4")["tags"], {"a": "b", "correlation_id": "c"})
        self.assertEqual(server.task("t-5")["tags"], {"correlation_id": "c"})

    def test_a_signal_is_no_other_call(self):
        server = self.server()
        self.submit({"id": "signals", "workflow": "waits"})
        eventually("it is there", lambda: self.exists(server, "signals"))
        for task, name in ((".", "cancel"), ("..", "x"), ("signals", ".."), ("signals", "go/../../cancel"), ("../tasks/signals", "go")):
            self.submit('{"reason": "by a queue"}', id=f"k-{next(numbers)}", properties={"signal": name, "task": task})
        self.submit({"id": "o-1"})
        eventually("it goes on", lambda: self.exists(server, "o-1"))
        self.submit('"yes"', id="k-0", properties={"signal": "go", "task": "signals"})
        task = server.ended("signals")
        self.assertEqual((task["state"], task["steps"][0]["output"]["data"]), ("processed", "yes"))

    def test_large_messages_take_little_memory(self):
        """While they wait for a server that stands still."""
        server = self.server()
        child = server.child()
        eventually("it is connected", lambda: "event=amqp_connected" in server.read_log())
        server.process.send_signal(signal.SIGSTOP)
        try:
            for i in range(30):
                self.submit({"id": f"l-{i}", "input": "x" * (3 << 20)})
            largest = largest_mib(child)
        finally:
            server.process.send_signal(signal.SIGCONT)
        self.submit({"id": "o-1"})
        for id_ in ("l-29", "o-1"):
            eventually(f"{id_} is there", lambda id_=id_: self.exists(server, id_))
        self.assertEqual(server.child(), child)
        self.assertLess(largest, MEMORY_MIB + (SANITIZER_MIB if has_sanitizer() else 0))

    def test_the_name_of_a_queue_forges_no_field(self):
        server = self.server()
        queue = 'reply.a/"level=error"reason="forged'
        server.call("POST", "/v1/tasks", {"workflow": "waits", "id": "w", "reply_to": f"amqp:{queue}"})
        line = eventually("it is logged", lambda: next((x for x in server.read_log().splitlines() if "amqp_queue_lost" in x), None))
        self.assertIn('queue="reply.a/\\"level=error\\"reason=\\"forged" reason=', line)

    def test_a_name_that_breaks_the_connection_is_refused(self):
        """RabbitMQ fails to say what is wrong with it, and ends the connection, again and again."""
        server = self.server()
        queue = "reply.a/\u2003"
        with self.assertRaises(urllib.error.HTTPError) as refused:
            server.call("POST", "/v1/tasks", {"workflow": "waits", "id": "w", "reply_to": f"amqp:{queue}"})
        self.assertEqual(refused.exception.code, 422)
        self.submit({"id": "w", "workflow": "waits"}, reply_to=f"/queue/{queue}")
        self.assertIn("w", eventually("it is set aside", lambda: self.refused(server)))
        self.assertNotIn("event=amqp_lost", server.read_log())


class Peer:
    """A broker that does what it is told with each connection."""

    HEAD, SASL = b"AMQP\x00\x01\x00\x00", b"AMQP\x03\x01\x00\x00"

    def __init__(self, play):
        self.play, self.connections = play, 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.thread = threading.Thread(target=self.accept, daemon=True)
        self.thread.start()

    def accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        try:
            self.play(self, connection)
        except OSError:
            pass
        finally:
            connection.close()

    @staticmethod
    def frame(code, fields, kind=0):
        items = b"".join(fields)
        body = b"\x00\x53" + bytes([code]) + b"\xd0" + struct.pack(">II", 4 + len(items), len(fields)) + items
        return struct.pack(">IBBH", 8 + len(body), 2, kind, 0) + body

    def read(self, connection, what):
        data = b""
        while what not in data:
            more = connection.recv(65536)
            if not more:
                raise OSError
            data += more

    def open(self, connection):
        """Lets it in without a password, and opens the connection."""
        self.read(connection, self.SASL)
        connection.sendall(self.SASL + self.frame(0x40, [b"\xa3\x09ANONYMOUS"], 1) + self.frame(0x44, [b"\x50\x00"], 1))
        self.read(connection, self.HEAD)
        connection.sendall(self.HEAD + self.frame(0x10, [b"\xa1\x01b"]))

    def close(self):
        kit.end_listener(self.listener, self.thread)


class Brokers(unittest.TestCase):
    def server(self, play):
        peer = Peer(play)
        self.addCleanup(peer.close)
        server = kit.Server(INTACT, environment=ENVIRONMENT)
        server.flags += ["--config", f"{server.folder}/intact.json"]
        with open(f"{server.folder}/intact.json", "w") as f:
            json.dump({"intact_server": 1, "amqp": {"brokers": [{"name": "main", "url": f"amqp://127.0.0.1:{peer.port}"}],
                                                    "submissions": [{"queue": "orders", "workflow": "order"}]}}, f)
        self.addCleanup(server.close)
        return server.start()

    def test_one_that_hangs_up_is_called_less_and_less(self):
        def play(peer, connection):
            peer.open(connection)
            peer.read(connection, b"orders")  # it is let in

        server = self.server(play)
        eventually("it failed again and again", lambda: "event=amqp_lost broker=main failures=4 " in server.read_log())

    def test_a_frame_without_end_is_not_kept(self):
        sent = []

        def play(peer, connection):
            peer.open(connection)
            peer.read(connection, b"orders")
            connection.sendall(struct.pack(">IBBH", 0xffffffff, 2, 0, 0))
            sent.append(0)
            number = len(sent) - 1
            while sent[number] < 200 << 20:
                connection.sendall(bytes(1 << 16))
                sent[number] += 1 << 16

        server = self.server(play)
        eventually("it was tried twice", lambda: len(sent) > 1)
        self.assertLess(sent[0], 32 << 20, "what the sockets hold, and no more")
        self.assertIn("event=amqp_lost", server.read_log())

    def test_words_of_a_broker_are_words(self):
        said = b"x\x1b[2J\nerror event=forged" + b"y" * 8000

        def play(peer, connection):
            peer.open(connection)
            peer.read(connection, b"orders")
            condition = b"\xa3\x06amqp:x" + b"\xb1" + struct.pack(">I", len(said)) + said
            error = b"\x00\x53\x1d\xd0" + struct.pack(">II", 4 + len(condition), 2) + condition
            connection.sendall(peer.frame(0x18, [error]))
            peer.read(connection, b"never")

        server = self.server(play)
        line = eventually("it is logged", lambda: next((x for x in server.read_log().splitlines() if "amqp_lost" in x), None))
        self.assertIn('reason="amqp:x: x [2J error event=forgedyyy', line)
        self.assertLess(len(line), 1600)


if __name__ == "__main__":
    unittest.main()
