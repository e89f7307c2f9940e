#!/usr/bin/python3
"""What the bridge to queues can do, with a RabbitMQ on the same machine: submissions a second that wait in a queue, steps a second whose agent
is behind one, status messages a second. And what processor time a thousand of each take of the server and of the bridge.

Usage: amqp.py INTACT [COUNT]
"""

import contextlib
import http.client
import json
import os
import subprocess
import sys
import time
from multiprocessing import Process

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "tests", "amqp"))

import broker_kit as kit  # noqa: E402
from proton import Message  # noqa: E402
from proton.handlers import MessagingHandler  # noqa: E402
from proton.reactor import Container  # noqa: E402

INTACT = os.path.realpath(sys.argv[1])
STALLS_S = 60  # nothing moves for so long: it never will
COUNT = int(sys.argv[2]) if len(sys.argv) > 2 else 10000


class Peer(MessagingHandler):
    def __init__(self, broker, queue):
        super().__init__(prefetch=0 if self.sends else 200)
        self.broker, self.queue = broker, queue

    def on_start(self, event):
        self.connection = event.container.connect(f"amqp://127.0.0.1:{self.broker.port}", user="intact", password=kit.PASSWORD,
                                                  allowed_mechs="PLAIN", heartbeat=0)
        options = kit.Durable(f"/queue/{self.queue}")
        make = event.container.create_sender if self.sends else event.container.create_receiver
        self.link = make(self.connection, None, name=f"bench-{self.queue}", options=options)


class Filler(Peer):
    """Puts submissions into a queue."""

    sends = True

    def __init__(self, broker, queue, messages):
        super().__init__(broker, queue)
        self.left, self.open = list(reversed(messages)), 0

    def on_sendable(self, event):
        while self.left and event.sender.credit:
            event.sender.send(Message(body=self.left.pop(), durable=True))
            self.open += 1

    def on_accepted(self, event):
        self.open -= 1
        if not self.left and self.open == 0:
            self.connection.close()


class Echo(Peer):
    """An agent that does nothing, quickly."""

    sends = False

    def __init__(self, broker, queue):
        super().__init__(broker, queue)
        self.reply = None

    def on_message(self, event):
        message = event.message
        if not self.reply:
            self.reply = event.container.create_sender(self.connection, None, name="bench-reply", options=kit.Durable(message.reply_to))
        self.reply.send(Message(body='{"output": 1}', durable=True, correlation_id=message.correlation_id))


def run(handler):
    Container(handler).run()


def ticks(pid):
    with open(f"/proc/{pid}/stat") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def last_words(server):
    return next((line.strip() for line in reversed(server.read_log().splitlines()) if line.strip()), "it said nothing")


@contextlib.contextmanager
def serving(server):
    """Gone afterwards. If it fails meanwhile, whether as it starts or later, that is the end, and is said."""
    try:
        server.start()
        yield
    except (AssertionError, OSError, http.client.HTTPException) as e:
        if server.process is None:
            sys.exit(f"amqp.py: the server cannot be started: {e}")
        with contextlib.suppress(subprocess.TimeoutExpired):
            server.process.wait(5)  # it may be about to end
        if server.process.poll() is None:
            sys.exit(f"amqp.py: the server does not answer: {e}")
        sys.exit(f"amqp.py: the server ended with {server.process.returncode}: {last_words(server)}")
    finally:
        server.kill()


@contextlib.contextmanager
def echoing(broker):
    echo = Process(target=run, args=(Echo(broker, "echo"),), daemon=True)
    echo.start()
    try:
        yield
    finally:
        echo.kill()
        echo.join()


def done_of(server, agent, reply):
    """How many there are so far of what ends last."""
    text = server.open("/metrics", None, "GET", server.token).read().decode()
    values = {line.split()[0]: float(line.split()[1]) for line in text.splitlines() if not line.startswith("#")}

    def total(name, label=""):
        return sum(v for k, v in values.items() if k.startswith(name) and label in k)

    if not agent:
        return total("intact_tasks_submitted_total")
    ended = total("intact_tasks_ended_total", "processed")
    return min(ended, total("intact_messages_delivered_total") / 3) if reply else ended


def wait_for_all(server, agent, reply):
    done, moved_at = 0, time.monotonic()
    while done < COUNT:
        time.sleep(0.1)
        now = done_of(server, agent, reply)
        if now > done:
            done, moved_at = now, time.monotonic()
        elif time.monotonic() > moved_at + STALLS_S:
            sys.exit(f"amqp.py: nothing moved for {STALLS_S} seconds, after {done:.0f} of {COUNT}: {last_words(server)}")


def configure(server, **section):
    with open(f"{server.folder}/intact.json", "w") as f:
        json.dump({"intact_server": 1, "amqp": section}, f)


def measure(broker, name, agent, reply):
    queue, n = f"orders-{name}", COUNT
    more = {"reply_to": f"amqp:reply.{name}"} if reply else {}
    run(Filler(broker, queue, [json.dumps({"id": f"{name}-{i}", "input": {}} | more) for i in range(n)]))
    server = kit.Server(INTACT, environment={"BROKER_PASSWORD": kit.PASSWORD})
    section = {"brokers": [{"name": "main", "url": f"amqp://127.0.0.1:{broker.port}", "user": "intact", "password": {"env": "BROKER_PASSWORD"},
                            "addresses": "/queue/{}"}],
               "agents": [{"agent": "echo", "queue": "echo", "places": 500}], "messages": {"allow": ["reply.*"]}}
    server.flags += ["--config", f"{server.folder}/intact.json"]
    configure(server, **section)
    with contextlib.closing(server):
        with serving(server):
            server.put({"intact": 1, "workflow": "order",
                        "steps": [{"name": "a", "agent": "echo" if agent else "nobody", "action": "b", "undo": "none"}]})
            server.stop()
        configure(server, **section, submissions=[{"queue": queue, "workflow": "order", "credit": 500}])
        with echoing(broker) if agent else contextlib.nullcontext():
            begin = time.monotonic()
            with serving(server):
                wait_for_all(server, agent, reply)
                took = time.monotonic() - begin
                print(f"{name}: {n / took:.0f}/s; processor time of 1000: server {ticks(server.process.pid) * 1000 / n:.2f} s, "
                      f"bridge {ticks(server.child()) * 1000 / n:.2f} s", flush=True)


def main():
    broker = kit.Broker().start()
    try:
        measure(broker, "submissions", False, False)
        measure(broker, "steps", True, False)
        measure(broker, "told", True, True)
    finally:
        broker.close()


if __name__ == "__main__":
    main()
