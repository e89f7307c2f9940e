#!/usr/bin/python3
"""Queues of a real RabbitMQ: submissions, agents and their replies, while broker, bridge, server and network fail.

Usage: amqp_test.py INTACT [TEST...]
"""

import itertools
import json
import os
import signal
import subprocess
import sys
import threading
import time
import unittest
import uuid

import broker_kit as kit
from broker_kit import Agent, Client, body_of, eventually
from proton import Endpoint

INTACT = os.path.realpath(sys.argv.pop(1))
HERE = os.path.dirname(os.path.realpath(__file__))
ROUNDS = int(os.environ.get("INTACT_ROUNDS", "1"))  # how often something is killed: ./run chaos amqp
numbers = itertools.count(1)


def one_step(agent, complete_by="10m", **more):
    return {"intact": 1, "workflow": "order", "inputs": {"amount": {"type": "integer"}}, "steps": [
        {"name": "charge", "agent": agent, "action": "charge", "undo": "none", "complete_by": complete_by, "input": "${ .input }",
         "retry": {"attempts": 3, "wait": "10ms"}} | more]}


class Killed(unittest.TestCase):
    """A test that is killed leaves no broker behind."""

    def of(self, folder):
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/environ", "rb") as f:
                    found += [pid] if f"HOME={folder}".encode() in f.read().split(b"\0") else []
            except OSError:
                pass
        return found

    def test_nothing_is_left(self):
        script = "import broker_kit, time; b = broker_kit.Broker(); b.launch(); print(b.folder, flush=True); time.sleep(1000)"
        test = subprocess.Popen([sys.executable, "-c", script], cwd=HERE, stdout=subprocess.PIPE, text=True)
        folder = test.stdout.readline().strip()
        test.stdout.close()
        self.assertTrue(os.path.isdir(folder))
        eventually("its broker and epmd run", lambda: len(self.of(folder)) >= 2)
        test.kill()
        test.wait()
        eventually("they have gone", lambda: not os.path.exists(folder) and not self.of(folder))


class Amqp(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.broker = kit.Broker().start()
        cls.addClassCleanup(cls.broker.close)

    def setUp(self):
        self.n = next(numbers)
        self.client = Client(self.broker)
        self.addCleanup(self.client.close)

    def section(self, url=None, **more):
        """Queues of this test alone."""
        broker = {"name": "main", "url": url or f"amqp://127.0.0.1:{self.broker.port}", "user": "intact",
                  "password": {"env": "BROKER_PASSWORD"}, "addresses": "/queue/{}"} | more.pop("broker", {})
        return {"brokers": [broker], "submissions": [{"queue": f"orders-{self.n}", "workflow": "order", "refused": "reject"}],
                "agents": [{"agent": "payment", "queue": f"payment-{self.n}", "places": 20}],
                "messages": {"allow": ["reply.*"]}, "replies": f"replies-{self.n}.{{node}}"} | more

    def server(self, section=None, workflow=None, flags=()):
        server = kit.Server(INTACT, environment={"BROKER_PASSWORD": kit.PASSWORD}, flags=flags)
        server.flags += ["--config", f"{server.folder}/intact.json"]
        with open(f"{server.folder}/intact.json", "w") as f:
            json.dump({"intact_server": 1, "amqp": section or self.section()}, f)
        self.addCleanup(server.close)
        server.start()
        server.put(workflow or one_step("payment"))
        return server

    def agent(self, work=lambda request: {"output": {"charged": request["input"]["amount"]}}):
        agent = Agent(self.broker, f"payment-{self.n}", work)
        self.addCleanup(agent.end)
        return agent

    def submit(self, body, **properties):
        self.client.send(f"orders-{self.n}", body if isinstance(body, (bytes, str)) else json.dumps(body), **properties)

    def distinct(self, queue, count, what):
        """What so many different messages of a queue are, each once: whoever sends again after a break may have sent before."""
        found = set()
        while len(found) < count:
            found.add(what(self.client.receive(queue)))
        return found

    def count(self, server):
        return len(server.call("GET", "/v1/tasks?limit=500")["tasks"])

    def test_the_bridge_is_confined(self):
        server = self.server()
        self.submit({"id": "o-1", "input": {"amount": 20}})
        self.agent()
        server.ended("o-1")
        with open(f"/proc/{server.child()}/status") as f:
            status = dict(line.split(":", 1) for line in f)
        self.assertEqual((status["NoNewPrivs"].strip(), status["Seccomp"].strip()), ("1", "2"))
        self.assertNotIn("event=not_confined what=calls", server.read_log())

    # ---- submissions ----

    def test_a_message_becomes_a_task_and_its_work_a_message(self):
        server, agent = self.server(), self.agent()
        self.submit({"id": "o-1", "input": {"amount": 20}})
        task = server.ended("o-1")
        self.assertEqual(task["state"], "processed")
        self.assertEqual(task["steps"][0]["output"], {"charged": 20})
        message = agent.messages[0]
        self.assertEqual(message.subject, "charge")
        self.assertEqual(message.group_id, "o-1")
        self.assertRegex(message.id, "^o-1/charge#1#[0-9a-f]{16}$")
        self.assertEqual(body_of(message)["token"], message.correlation_id)
        self.assertTrue(message.durable)
        self.assertGreater(message.ttl, 0)

    def test_forms_of_submissions(self):
        server = self.server()
        self.agent()
        self.submit({"input": {"amount": 1}}, id="m-1")
        self.submit({"input": {"amount": 2}}, properties={"id": "m-2", "workflow": "order"})
        self.submit({"workflow": "order", "id": "m-3", "input": {"amount": 3}}, id="other")
        self.submit({"specversion": "1.0", "id": "m-4", "source": "/shop", "type": "order.placed", "data": {"input": {"amount": 4}}},
                    content_type="application/cloudevents+json")
        self.submit({"input": {"amount": 5}}, properties={"cloudEvents:specversion": "1.0", "cloudEvents:id": "m-5"})
        number = uuid.uuid4()
        self.submit({"input": {"amount": 6}}, id=number)
        self.client.send(f"orders-{self.n}", {"id": "m-7", "input": {"amount": 7}})  # an AMQP map
        for id_, amount in (("m-1", 1), ("m-2", 2), ("m-3", 3), ("m-4", 4), ("m-5", 5), (str(number), 6), ("m-7", 7)):
            eventually(f"{id_} is there", lambda id_=id_: self.exists(server, id_))
            self.assertEqual(server.ended(id_)["steps"][0]["output"], {"charged": amount}, id_)

    def test_a_trace_goes_through_the_queues(self):
        server, agent = self.server(), self.agent()
        queue = f"reply.{self.n}"
        parents = {f"t-{n}": f"00-{str(n) * 32}-b7ad6b7169203331-01" for n in (1, 2, 3)}
        self.submit({"id": "t-1", "input": {"amount": 1}}, reply_to=queue, properties={"traceparent": parents["t-1"]})
        self.submit({"specversion": "1.0", "id": "t-2", "source": "/shop", "type": "order.placed", "traceparent": parents["t-2"],
                     "data": {"input": {"amount": 2}}}, reply_to=queue, content_type="application/cloudevents+json")
        self.submit({"input": {"amount": 3}}, reply_to=queue,
                    properties={"cloudEvents:id": "t-3", "cloudEvents:traceparent": parents["t-3"]})
        found = self.events(queue, "intact.task.processed", 3)
        self.assertEqual({e["subject"]: e["traceparent"] for _, e in found}, parents)
        for id_, parent in parents.items():
            self.assertEqual(server.ended(id_)["traceparent"], parent)
        asked = {body_of(m)["task"]: body_of(m)["traceparent"] for m in agent.messages}
        self.assertEqual({task: text[:36] for task, text in asked.items()}, {task: text[:36] for task, text in parents.items()})
        self.assertTrue(all(asked[task] != parents[task] for task in parents), asked)

    def exists(self, server, id_):
        try:
            return server.task(id_)
        except OSError:
            return None

    def test_however_often_it_comes_it_is_one_task(self):
        server = self.server()
        self.agent()
        for _ in range(50):
            self.submit({"id": "o-1", "input": {"amount": 1}})
        self.submit({"id": "o-2", "input": {"amount": 1}})
        eventually("the last is there", lambda: self.exists(server, "o-2"))
        server.ended("o-1")
        server.ended("o-2")
        self.assertEqual(self.count(server), 2)

    def test_poison_goes_to_the_dead_letters(self):
        dead = f"dead-{self.n}"
        self.broker.control("set_policy", f"dlx-{self.n}", f"^orders-{self.n}$",
                            json.dumps({"dead-letter-exchange": "", "dead-letter-routing-key": dead}))
        server = self.server()
        self.assertIsNone(self.client.again(lambda: self.client.receive_raw(dead, 0.1)))  # it is made by that
        self.submit({"id": "o-1", "input": {"amount": 1}})
        bad = ["not json", "[1]", '{"id": "o-1", "input": {"amount": 2}}', '{"input": {"amount": 2}}',
               '{"id": "o-2", "input": {"amount": "x"}}', '{"id": "o-3", "workflow": "none", "input": {}}',
               '{"id": "o-4", "input": {"amount": 1}, "reply_to": "amqp:secret"}', b"\xff\xfe",
               json.dumps({"id": "o-5", "input": {"amount": 1}, "pad": "x" * (5 << 20)})]
        for text in bad:
            self.submit(text)
        found = self.distinct(dead, len(bad), lambda message: self.text_of(message)[:60])
        self.assertEqual(found, {self.text(t)[:60] for t in bad})
        self.submit({"id": "o-9", "input": {"amount": 1}})  # and nothing stands behind them
        eventually("it goes on", lambda: self.exists(server, "o-9"))
        self.assertEqual(self.count(server), 2)

    def test_poison_is_recorded(self):
        section = self.section()
        del section["submissions"][0]["refused"]
        server = self.server(section)
        try:
            server.call("GET", "/v1/submissions")
        except OSError:
            self.skipTest("this server keeps no submissions")
        self.submit("not json")
        self.submit({"id": "o-1", "workflow": "later", "input": {"amount": 1}}, correlation_id="c-1", reply_to="reply.x")

        def refused():
            found = server.call("GET", "/v1/submissions?state=refused")["submissions"]
            return found if len({s["id"] for s in found}) == 2 else None  # without an id it may be there twice

        found = {s["id"]: s for s in eventually("both are there", refused)}
        self.assertEqual(found[None]["input"], "not json")
        self.assertIn("not JSON", found[None]["reason"])
        for s in found.values():
            self.assertEqual(s["source"], f"amqp:orders-{self.n}")
        self.assertIn("later", found["o-1"]["reason"])
        server.put(one_step("payment") | {"workflow": "later"})
        server.call("POST", "/v1/submissions/retry", {"seq": found["o-1"]["seq"], "reason": "now there is that workflow"})
        self.agent()
        eventually("it is there", lambda: self.exists(server, "o-1"))
        self.assertEqual(server.ended("o-1")["state"], "processed")

    # ---- signals ----

    def waiting(self, section=None):
        server = self.server(section)
        server.put({"intact": 1, "workflow": "waits", "steps": [
            {"name": f"s{i}", "signal": {"name": "go"}} for i in range(5)] + [{"name": "end", "signal": {"name": "end"}}]})
        return server

    def go(self, task, n):
        self.submit(json.dumps(n), id=f"k-{n}", properties={"signal": "go", "task": task})

    def test_messages_for_one_task_are_passed_on_in_their_order(self):
        server = self.waiting()
        for task in ("o-1", "o-2"):
            self.submit({"id": task, "workflow": "waits"})
        for n in range(5):
            for task in ("o-1", "o-2"):
                self.go(task, n)
                self.go(task, n)  # it may come twice
        for task in ("o-1", "o-2"):
            self.submit({"signal": "end", "task": task, "id": "e", "data": {"at": "last"}})
            found = server.ended(task)
            self.assertEqual(found["state"], "processed")
            self.assertEqual([s["output"]["data"] for s in found["steps"]], [0, 1, 2, 3, 4, {"at": "last"}])

    def test_a_signal_waits_for_its_task(self):
        server = self.waiting()
        for n in range(5):
            self.go("o-1", n)
        self.submit({"id": "o-2", "workflow": "waits"})  # it is delayed by nothing of that
        eventually("it is there", lambda: self.exists(server, "o-2"))
        self.assertFalse(self.exists(server, "o-1"))
        self.submit({"id": "o-1", "workflow": "waits"})
        self.submit({"signal": "end", "task": "o-1", "id": "e"})
        self.assertEqual(server.ended("o-1")["state"], "processed")

    def test_a_submission_passes_signals_that_wait_for_it(self):
        section = self.section()
        section["submissions"][0] |= {"refused": "record", "unknown_task": "4s"}  # they would be set aside before their task exists
        server = self.waiting(section)
        for n in range(5):
            self.go("o-1", n)
        self.submit({"id": "o-2", "workflow": "waits"})
        eventually("the signals were read", lambda: self.exists(server, "o-2"))
        self.submit({"id": "o-1", "workflow": "waits"})
        self.submit({"signal": "end", "task": "o-1", "id": "e"})
        task = server.ended("o-1")
        self.assertEqual([s["output"]["data"] for s in task["steps"][:5]], [0, 1, 2, 3, 4])
        self.assertEqual(server.call("GET", "/v1/submissions?state=refused")["submissions"], [])

    def test_signals_that_wait_do_not_hold_up_the_queue(self):
        section = self.section()
        section["submissions"][0] |= {"credit": 2}
        server = self.waiting(section)
        for n in range(6):
            self.go(f"o-{n}", n)
        self.submit({"id": "o-0", "workflow": "waits"})
        eventually("it is there", lambda: self.exists(server, "o-0"))
        eventually("it has its signal", lambda: server.call("GET", "/v1/tasks/o-0")["steps"][0]["state"] == "completed")

    def test_a_signal_without_a_task_is_set_aside(self):
        section = self.section()
        section["submissions"][0] |= {"refused": "record", "unknown_task": "1s"}
        server = self.waiting(section)
        self.go("nobody", 1)
        self.submit({"id": "o-1", "workflow": "waits"})
        self.submit("1", id="k", properties={"signal": "other", "task": "o-1"})
        self.submit("1", id="k-2", properties={"signal": "go"})
        self.submit("1", properties={"signal": "go", "task": "o-1"})

        def refused():
            found = server.call("GET", "/v1/submissions?state=refused")["submissions"]
            return sorted(s["reason"] for s in found) if len({s["reason"] for s in found}) == 4 else None

        reasons = eventually("they are there", refused)
        for part in ("nothing says which task", "nothing says an id", "no step of task o-1", "nobody"):
            self.assertTrue(any(part in reason for reason in reasons), (part, reasons))

    def text(self, body):
        return body.decode("latin-1") if isinstance(body, bytes) else body

    def text_of(self, message):
        return message.body if isinstance(message.body, str) else bytes(message.body).decode("latin-1")

    # ---- agents ----

    def test_an_agent_in_node(self):
        home = kit.install_rhea()
        server = self.server()
        agent = subprocess.Popen(["node", f"{HERE}/agent.mjs", str(self.broker.port), f"payment-{self.n}"],
                                 env=kit.ENVIRONMENT | {"BROKER_PASSWORD": kit.PASSWORD, "RHEA": home}, stdout=subprocess.PIPE)
        self.addCleanup(agent.wait)
        self.addCleanup(agent.kill)
        self.addCleanup(agent.stdout.close)
        for i in range(50):
            self.submit({"id": f"o-{i}", "input": {"amount": i}})
        for i in range(50):
            eventually("it is there", lambda i=i: self.exists(server, f"o-{i}"))
            self.assertEqual(server.ended(f"o-{i}")["steps"][0]["output"], {"charged": i})

    def test_what_agents_may_reply(self):
        results = {1: {"error": {"code": "declined", "message": "no", "retryable": False}}, 2: {"nothing": True},
                   3: {"output": 3, "tries": 2}}
        server = self.server()
        self.agent(lambda request: results[request["input"]["amount"]])
        for i in results:
            self.submit({"id": f"o-{i}", "input": {"amount": i}})
            eventually("it is there", lambda i=i: self.exists(server, f"o-{i}"))
        self.assertEqual(server.ended("o-1")["state"], "compensated")
        self.assertEqual(server.task("o-1")["steps"][0]["error"]["code"], "declined")
        self.assertIn("bad_reply", json.dumps(server.ended("o-2")))
        self.assertEqual(server.ended("o-3")["steps"][0]["output"], 3)

    def test_replies_by_the_id_of_the_message(self):
        server, agent = self.server(), self.agent(lambda request: None)
        server.submit("order", "o-1", {"amount": 1})
        message = eventually("the request comes", lambda: agent.messages and agent.messages[0])
        self.client.send(message.reply_to.removeprefix("/queue/"), '{"output": 1}', correlation_id=message.id)
        self.assertEqual(server.ended("o-1")["state"], "processed")

    def test_heartbeats(self):
        server = self.server(workflow=one_step("payment", heartbeat="5m"))
        agent = self.agent(lambda request: None)
        server.submit("order", "o-1", {"amount": 1})
        message = eventually("the request comes", lambda: agent.messages and agent.messages[0])
        self.assertEqual(body_of(message)["heartbeat_ms"], 300000)
        queue = message.reply_to.removeprefix("/queue/")
        self.client.send(queue, '{"progress": {"done": 7}, "message": "copying"}', correlation_id=message.correlation_id, subject="heartbeat")
        eventually("it shows", lambda: '"done":7' in json.dumps(server.task("o-1"), separators=(",", ":")))
        self.client.send(queue, '{"output": 1}', correlation_id=message.correlation_id)
        self.assertEqual(server.ended("o-1")["state"], "processed")

    def test_a_late_reply_is_kept_late(self):
        # A request may live no longer than its attempt: one that nobody took in time the broker drops, and the next one comes.
        server = self.server(workflow=one_step("payment", complete_by="1s", retry={"attempts": 20, "wait": "10ms"}))
        agent = self.agent(lambda request: None)
        server.submit("order", "o-1", {"amount": 1})
        message = eventually("a request comes", lambda: agent.messages and agent.messages[0])
        late = {"attempt": body_of(message)["attempt"], "outcome": "timed_out"}
        eventually("it is given up", lambda: any(late.items() <= a.items() for a in server.task("o-1")["steps"][0]["attempts"]))
        self.client.send(message.reply_to.removeprefix("/queue/"), '{"output": "too late"}', correlation_id=message.correlation_id)
        eventually("it is in the record", lambda: "too late" in json.dumps(server.task("o-1")))

    def test_a_result_from_elsewhere(self):
        server = self.server()
        agent = self.agent(lambda request: {"elsewhere": True})
        server.submit("order", "o-1", {"amount": 1})
        message = eventually("the request comes", lambda: agent.messages and agent.messages[0])
        eventually("it is elsewhere", lambda: "elsewhere" in json.dumps(server.task("o-1")))
        self.client.send(message.reply_to.removeprefix("/queue/"), '{"output": "signed"}', correlation_id=message.correlation_id)
        self.assertEqual(server.ended("o-1")["steps"][0]["output"], "signed")

    # ---- status messages ----

    def events(self, queue, last, count=1):
        """All of a queue until `count` tasks had their last event, in order."""
        found, ended = [], 0
        while ended < count:
            message = self.client.receive(queue)
            event = body_of(message)
            if (event["id"]) in (e["id"] for _, e in found):
                continue  # at least once
            found.append((message, event))
            ended += event["type"] == last
        return found

    def test_status_messages(self):
        server = self.server()
        self.agent()
        queue = f"reply.{self.n}"
        self.submit({"id": "o-1", "input": {"amount": 1}}, reply_to=f"/queue/{queue}", correlation_id="c-17")
        self.submit({"input": {"amount": 2}}, id="o-2", reply_to=queue)
        found = self.events(queue, "intact.task.processed", 2)
        for task, correlation in (("o-1", "c-17"), ("o-2", "o-2")):
            mine = [(m, e) for m, e in found if e["subject"] == task]
            self.assertEqual([e["type"] for _, e in mine], [f"intact.task.{w}" for w in ("received", "started", "processed")])
            for message, event in mine:
                self.assertEqual(message.id, event["id"])
                self.assertEqual(message.correlation_id, correlation)
                self.assertEqual(message.subject, event["type"])
                self.assertEqual(message.group_id, task)
                self.assertTrue(message.content_type.startswith("application/cloudevents+json"))
                self.assertTrue(message.durable)
                self.assertEqual(message.address, f"/queue/{queue}")
        server.ended("o-1")

    def attach(self, queue, durable):
        """What the broker says to a receiver of a connection of its own; "" if it has it."""
        client, address = Client(self.broker), f"/queue/{queue}"
        try:
            blocking = client.open()
            link = blocking.container.create_receiver(blocking.conn, address, options=kit.Durable(address) if durable else None)
            blocking.wait(lambda: link.source.address and link.remote_source.address or link.session.state & Endpoint.REMOTE_CLOSED,
                          timeout=kit.PATIENCE_S)
            condition = link.session.remote_condition
            blocking.timeout = 1  # the plugin may not say goodbye any more
            return condition.description if condition else ""
        finally:
            client.close()

    def test_a_receiver_says_that_its_queue_is_durable(self):
        """RabbitMQ 3 makes a queue as whoever comes first has it, and refuses those who have it otherwise: docs/amqp.md."""
        for first in (True, False):
            queue = f"durability.{self.n}.{first}"
            self.assertEqual(self.attach(queue, first), "")
            self.assertEqual(self.attach(queue, first), "", "the same again")
            self.assertRegex(self.attach(queue, not first), "PRECONDITION_FAILED.*durable")

    def test_what_is_too_large_for_the_broker(self):
        """It is dead at once, and says why, while the others get there. It is not lost: when the broker takes it, it can be sent."""
        server, queue, count = self.server(), f"reply.{self.n}", 30
        server.put({"intact": 1, "workflow": "order", "inputs": {"text": {"type": "string", "required": True}}, "output": {"text": "${ .input.text }"},
                    "steps": [{"name": "never", "if": "false", "agent": "payment", "action": "charge", "undo": "none", "complete_by": "1m"}]})
        large = {f"o-{i}" for i in (3, 4, 11)}
        self.broker.limit(3000)
        self.addCleanup(self.broker.limit, kit.LARGEST)
        for i in range(count):
            server.submit("order", f"o-{i}", {"text": "x" * (4000 if f"o-{i}" in large else 4)}, reply_to=f"amqp:{queue}")
        found = self.events(queue, "intact.task.processed", count - len(large))
        self.assertEqual({e["subject"] for _, e in found if e["type"] == "intact.task.processed"}, {f"o-{i}" for i in range(count)} - large)
        dead = eventually("they are dead", lambda: [
            m for m in [server.call("GET", "/v1/outbox?state=dead")["messages"]] if {one["task"] for one in m} == large])[0]
        for message in dead:
            self.assertIn("larger than configured max size 3000", message["error"])

        self.broker.limit(kit.LARGEST)
        os.kill(server.child(), signal.SIGKILL)  # sessions keep the limit that they began with
        server.call("POST", "/v1/outbox/retry", {"target": f"amqp:{queue}", "reason": "it takes them now"})
        found = []  # others may come a second time: their messages were on the way when the bridge was killed
        while not large <= {e["subject"] for _, e in found}:
            found += self.events(queue, "intact.task.processed")
        self.assertEqual({len(e["data"]["output"]["text"]) for _, e in found if e["subject"] in large and "output" in e["data"]}, {4000})

    # ---- what fails ----

    def flow(self, server, count, trouble, **more):
        """Orders come in while `trouble` goes on. Each becomes one task, and its work is done by one key."""
        agent = self.agent()
        sender = threading.Thread(target=lambda: [self.submit({"id": f"o-{i}", "input": {"amount": i}} | more) for i in range(count)])
        sender.start()
        trouble()
        sender.join()
        for i in range(count):
            eventually(f"o-{i} is there", lambda i=i: self.exists(server, f"o-{i}"))
            self.assertEqual(server.ended(f"o-{i}")["steps"][0]["output"], {"charged": i})
        self.assertEqual(self.count(server), count)
        self.assertEqual(len(agent.record), count)

    def after(self, server, count):
        """So many tasks have begun."""
        eventually(f"{count} are there", lambda: self.count(server) >= count)

    def test_the_broker_is_killed(self):
        """And the bridge, while messages are on their way to both."""
        server, queue = self.server(), f"reply.{self.n}"

        def trouble():
            for part in range(ROUNDS):
                self.after(server, 20 + 40 * part)
                self.broker.kill()
                self.broker.start()
                os.kill(server.child(), signal.SIGKILL)

        count = 20 + 40 * ROUNDS
        self.flow(server, count, trouble, reply_to=f"amqp:{queue}")
        found = self.events(queue, "intact.task.processed", count)
        for i in range(count):
            mine = [e["type"] for _, e in found if e["subject"] == f"o-{i}"]
            self.assertEqual(mine, [f"intact.task.{w}" for w in ("received", "started", "processed")], i)

    def test_the_bridge_is_killed(self):
        server = self.server()

        def trouble():
            for part in range(ROUNDS + 1):
                self.after(server, 20 + 30 * part)
                child = server.child()
                os.kill(child, signal.SIGKILL)
                eventually("another one", lambda child=child: server.child() not in (None, child))

        self.flow(server, 40 + 30 * ROUNDS, trouble)

    def test_the_server_is_killed(self):
        server = self.server()

        def trouble():
            for part in range(ROUNDS):
                self.after(server, 20 + 40 * part)
                server.kill()
                server.start()

        self.flow(server, 20 + 40 * ROUNDS, trouble)

    def test_the_network_is_cut(self):
        wire = kit.Wire(self.broker.port)
        self.addCleanup(wire.close)
        server = self.server(self.section(f"amqp://127.0.0.1:{wire.port}", broker={"idle_timeout": "1s"}))

        def trouble():
            self.after(server, 20)
            wire.cut()
            eventually("it is connected again", lambda: server.read_log().count("event=amqp_connected") >= 2)
            wire.is_held = True  # nothing comes, and nobody says that it ended
            eventually("silence is noticed", lambda: server.read_log().count("event=amqp_lost") >= 2)
            wire.cut()
            wire.is_held = False

        self.flow(server, 100, trouble)

    def test_a_broker_that_comes_and_goes_costs_no_tries(self):
        """What found no connection, however often, waits for the connection and for nothing else."""
        wire = kit.Wire(self.broker.port)
        self.addCleanup(wire.close)
        server = self.server(self.section(f"amqp://127.0.0.1:{wire.port}", submissions=[], agents=[]), one_step("nobody"))
        queue = f"reply.{self.n}"

        def submit(first, count):
            for i in range(first, first + count):
                server.call("POST", "/v1/tasks", {"workflow": "order", "id": f"o-{i}", "input": {"amount": i}, "reply_to": f"amqp:{queue}"})

        def waiting():
            return server.call("GET", "/v1/outbox?limit=500")["messages"]

        def failed():
            with server.open("/metrics", None, "GET", server.token) as reply:
                lines = reply.read().decode().splitlines()
            return int(next(x for x in lines if x.startswith("intact_messages_failed_total")).split()[1])

        def cut_away():
            wire.is_away = True
            wire.cut()

        submit(0, 1)
        self.assertEqual(body_of(self.client.receive(queue))["subject"], "o-0")
        cut_away()
        submit(1, 50)
        eventually("it was tried again and again", lambda: failed() >= 4)
        for _ in range(3):
            connected = server.read_log().count("event=amqp_connected")
            wire.is_away = False
            eventually("it is connected again", lambda c=connected: server.read_log().count("event=amqp_connected") > c)
            cut_away()
        submit(51, 10)
        for message in waiting():
            self.assertEqual((message["tries"], message.get("retry_at")), (0, None), message)
        wire.is_away = False
        seen = {}
        while len(seen) < 60:
            event = body_of(self.client.receive(queue))
            seen[event["subject"]] = event
        eventually("nothing waits", lambda: not waiting())

    def test_replies_wait_for_the_bridge(self):
        """The agent answers while nobody listens: the answer is in the queue, and counts when the bridge is back."""
        server = self.server()
        agent = self.agent(lambda request: None)
        server.submit("order", "o-1", {"amount": 1})
        message = eventually("the request comes", lambda: agent.messages and agent.messages[0])
        server.kill()
        self.client.send(message.reply_to.removeprefix("/queue/"), '{"output": "meanwhile"}', correlation_id=message.correlation_id)
        server.start()
        self.assertEqual(server.ended("o-1")["steps"][0]["output"], "meanwhile")

    def test_a_reply_is_let_go_when_the_server_has_it(self):
        """It came twice, since the connection broke while the server stood still; then the bridge is killed."""
        wire = kit.Wire(self.broker.port)
        self.addCleanup(wire.close)
        server = self.server(self.section(f"amqp://127.0.0.1:{wire.port}"))
        agent = self.agent(lambda request: {"elsewhere": True})  # who says it once
        server.submit("order", "o-1", {"amount": 1})
        message = eventually("the request comes", lambda: agent.messages and agent.messages[0])
        eventually("it is elsewhere", lambda: "elsewhere" in json.dumps(server.task("o-1")))
        child = server.child()
        server.process.send_signal(signal.SIGSTOP)
        try:
            self.client.send(message.reply_to.removeprefix("/queue/"), '{"output": "signed"}', correlation_id=message.correlation_id)
            time.sleep(0.5)  # it is with the bridge, perhaps
            wire.cut()
            eventually("it is connected again", lambda: server.read_log().count("event=amqp_connected") >= 2)
            time.sleep(0.5)  # and has it again, perhaps
            os.kill(child, signal.SIGKILL)
        finally:
            server.process.send_signal(signal.SIGCONT)
        self.assertEqual(server.ended("o-1")["steps"][0]["output"], "signed")

    def test_a_refused_message_that_comes_again_is_kept_once(self):
        section = self.section()
        del section["submissions"][0]["refused"]
        wire = kit.Wire(self.broker.port)
        self.addCleanup(wire.close)
        section["brokers"][0]["url"] = f"amqp://127.0.0.1:{wire.port}"
        server = self.server(section)
        eventually("it is connected", lambda: "event=amqp_connected" in server.read_log())
        server.process.send_signal(signal.SIGSTOP)
        try:
            for i in range(20):
                self.submit("not json", id=f"m-{i}")
            time.sleep(0.5)  # they are with the bridge, perhaps
            wire.cut()
            eventually("it is connected again", lambda: server.read_log().count("event=amqp_connected") >= 2)
        finally:
            server.process.send_signal(signal.SIGCONT)
        sends = self.client.sends
        self.submit("not json")  # of which nobody knows whether it is another one
        self.submit("not json")
        sends = self.client.sends - sends
        self.submit("nor this", id="m-1")
        named = sorted([f"m-{i}" for i in range(20)] + ["m-1"])

        def refused():
            found = server.call("GET", "/v1/submissions?state=refused&limit=100")["submissions"]
            ids = sorted(s["id"] for s in found if s["id"] is not None)
            return (ids, len(found) - len(ids)) if len(ids) >= len(named) and len(found) >= len(named) + 2 else None

        ids, nameless = eventually("all are there", refused)
        self.assertEqual(ids, named)
        self.assertIn(nameless, range(2, sends + 1), "once for each time that one was sent, or less")

    def test_what_cannot_be_kept_whole_is_rejected_too(self):
        section, dead = self.section(), f"dead-{self.n}"
        del section["submissions"][0]["refused"]
        self.broker.control("set_policy", f"dlx-{self.n}", f"^orders-{self.n}$",
                            json.dumps({"dead-letter-exchange": "", "dead-letter-routing-key": dead}))
        server = self.server(section)
        self.assertIsNone(self.client.again(lambda: self.client.receive_raw(dead, 0.1)))  # it is made by that
        self.submit(b"\xff\xfe", id="binary")
        self.submit("x" * (300 << 10), id="long")
        self.submit("y" * (5 << 20), id="huge")
        self.assertEqual(self.distinct(dead, 3, lambda message: message.id), {"binary", "long", "huge"})
        kept = server.call("GET", "/v1/submissions?state=refused")["submissions"]
        self.assertEqual([s["input"] for s in kept], [None] * 3)

    def test_large_messages_while_the_server_stands_still(self):
        """More than is held at a time. None of them is a submission."""
        server = self.server()
        server.process.send_signal(signal.SIGSTOP)
        try:
            for i in range(6):
                self.submit(json.dumps({"id": f"l-{i}", "pad": "x" * (3 << 20)}))
        finally:
            server.process.send_signal(signal.SIGCONT)
        self.submit({"id": "o-1", "input": {"amount": 1}})
        eventually("it is there", lambda: self.exists(server, "o-1"))
        eventually("all have been looked at", lambda: server.read_log().count("event=amqp_submission_refused") >= 6)

    def test_a_bridge_of_its_own_waits_for_the_server(self):
        server = kit.Server(INTACT)
        self.addCleanup(server.close)
        server.start()
        server.put(one_step("payment"))
        config = f"{server.folder}/intact.json"
        with open(config, "w") as f:
            json.dump({"intact_server": 1, "amqp": self.section()}, f)
        server.kill()
        with open(f"{server.folder}/bridge.log", "wb") as log:
            bridge = subprocess.Popen([INTACT, "agent", "amqp", "--config", config, "--server", f"http://127.0.0.1:{server.port}",
                                       "--token-file", f"{server.folder}/data/admin-token", "--node", "b1"], stderr=log,
                                      env=kit.ENVIRONMENT | {"BROKER_PASSWORD": kit.PASSWORD})
        self.addCleanup(bridge.wait)
        self.addCleanup(bridge.kill)
        self.agent()
        self.submit({"id": "o-1", "input": {"amount": 5}})
        time.sleep(1)
        server.start()
        eventually("it is there", lambda: self.exists(server, "o-1"))
        self.assertEqual(server.ended("o-1")["state"], "processed")
        bridge.send_signal(signal.SIGTERM)
        self.assertEqual(bridge.wait(kit.PATIENCE_S), 0)

    def test_a_bridge_with_a_wrong_token_says_so_and_loses_nothing(self):
        server = kit.Server(INTACT)
        self.addCleanup(server.close)
        server.start()
        server.put(one_step("payment"))
        config, token, log = (f"{server.folder}/{name}" for name in ("intact.json", "token", "bridge.log"))
        with open(config, "w") as f:
            json.dump({"intact_server": 1, "amqp": self.section()}, f)
        with open(token, "w") as f:
            f.write("it_0000000000000000000000000000000000000000000\n")
        os.chmod(token, 0o600)

        def bridge(token_file):
            with open(log, "ab") as out:
                process = subprocess.Popen([INTACT, "agent", "amqp", "--config", config, "--server", f"http://127.0.0.1:{server.port}",
                                            "--token-file", token_file, "--node", "b1"], stderr=out,
                                           env=kit.ENVIRONMENT | {"BROKER_PASSWORD": kit.PASSWORD})
            self.addCleanup(process.wait)
            self.addCleanup(process.kill)
            return process

        def read_log():
            with open(log) as f:
                return f.read()

        first = bridge(token)
        self.submit({"id": "o-1", "input": {"amount": 5}})
        eventually("it says so", lambda: "event=amqp_shut_out" in read_log())
        self.assertIn("give a valid one with INTACT_TOKEN", read_log())
        self.assertIn("held=1", read_log())
        self.assertFalse(self.exists(server, "o-1"))
        first.send_signal(signal.SIGTERM)
        self.assertEqual(first.wait(kit.PATIENCE_S), 0)
        self.assertEqual(read_log().count("event=amqp_shut_out"), 1, "not for each try")
        bridge(f"{server.folder}/data/admin-token")
        eventually("it is there", lambda: self.exists(server, "o-1"))

    # ---- TLS, and who gets in ----

    def tls(self, **more):
        return self.section(f"amqps://{more.pop('host', 'localhost')}:{self.broker.tls_port}",
                            broker={"ca": f"{self.broker.folder}/ca.pem"} | more)

    def test_tls(self):
        server = self.server(self.tls())
        self.agent()
        self.submit({"id": "o-1", "input": {"amount": 1}})
        eventually("it is there", lambda: self.exists(server, "o-1"))
        self.assertEqual(server.ended("o-1")["state"], "processed")

    def refused(self, section, text):
        server = self.server(section)
        eventually("it says so", lambda: "event=amqp_lost" in server.read_log())
        self.assertIn(text, server.read_log())
        self.assertNotIn("event=amqp_connected", server.read_log())

    def test_a_certificate_that_nobody_signed(self):
        self.refused(self.tls(ca=f"{self.broker.folder}/self.pem"), "certificate")

    def test_a_wrong_password(self):
        os.environ["WRONG_PASSWORD"] = "x"
        kit.ENVIRONMENT["WRONG_PASSWORD"] = "x"
        self.refused(self.section(broker={"password": {"env": "WRONG_PASSWORD"}}), "auth")


if __name__ == "__main__":
    unittest.main(verbosity=2)
