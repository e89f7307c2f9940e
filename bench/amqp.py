#!/usr/bin/python3
"""What the bridge to queues can do, with a RabbitMQ on the same machine: submissions a second that wait in a queue, steps a second whose agent
is behind one, status messages a second. And what processor time a thousand of each take of the server and of the bridge.

Usage: amqp.py INTACT [COUNT]
"""

import json
import os
import sys
import time
from multiprocessing import Process

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "tests", "amqp"))

import broker_kit as kit  # noqa: E402
from proton import Message  # noqa: E402
from proton.handlers import MessagingHandler  # noqa: E402
from proton.reactor import Container  # noqa: E402

INTACT = os.path.realpath(sys.argv[1])
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



def measure(broker, name, agent, reply):
    queue, n = f"orders-{name}", COUNT
    more = {"reply_to": f"amqp:reply.{name}"} if reply else {}
    run(Filler(broker, queue, [json.dumps({"id": f"{name}-{i}", "input": {}} | more) for i in range(n)]))
    server = kit.Server(INTACT, environment={"BROKER_PASSWORD": kit.PASSWORD})
    section = {"brokers": [{"name": "main", "url": f"amqp://127.0.0.1:{broker.port}", "user": "intact", "password": {"env": "BROKER_PASSWORD"},
                            "addresses": "/queue/{}"}],
               "agents": [{"agent": "echo", "queue": "echo", "places": 500}], "messages": {"allow": ["reply.*"]}}
    config = f"{server.folder}/intact.json"
    server.flags += ["--config", config]
    with open(config, "w") as f:
        json.dump({"intact_server": 1, "amqp": section}, f)
    workflow = {"intact": 1, "workflow": "order", "steps": [{"name": "a", "agent": "echo" if agent else "nobody", "action": "b", "undo": "none"}]}
    server.start()
    server.put(workflow)
    server.stop()
    section["submissions"] = [{"queue": queue, "workflow": "order", "credit": 500}]
    with open(config, "w") as f:
        json.dump({"intact_server": 1, "amqp": section}, f)
    echo = Process(target=run, args=(Echo(broker, "echo"),)) if agent else None
    if echo:
        echo.start()
    begin = time.monotonic()
    server.start()

    def is_done():
        text = server.open("/metrics", None, "GET", server.token).read().decode()
        values = {line.split()[0]: float(line.split()[1]) for line in text.splitlines() if not line.startswith("#")}
        if agent:
            return sum(v for k, v in values.items() if k.startswith("intact_tasks_ended_total") and "processed" in k) >= n \
                and (not reply or sum(v for k, v in values.items() if k.startswith("intact_messages_delivered_total")) >= 3 * n)
        return sum(v for k, v in values.items() if k.startswith("intact_tasks_submitted_total")) >= n

    while not is_done():
        time.sleep(0.1)
    took = time.monotonic() - begin
    child = server.child()
    print(f"{name}: {n / took:.0f}/s; processor time of 1000: server {ticks(server.process.pid) * 1000 / n:.2f} s, "
          f"bridge {ticks(child) * 1000 / n:.2f} s", flush=True)
    if echo:
        echo.kill()
        echo.join()
    server.kill()
    server.close()


broker = kit.Broker().start()
try:
    measure(broker, "submissions", False, False)
    measure(broker, "steps", True, False)
    measure(broker, "told", True, True)
finally:
    broker.close()
