#!/usr/bin/python3
"""What RabbitMQ does seldom: a peer of our own that ends sessions with conditions that it is told.

Usage: peer_test.py INTACT [TEST...]
"""

import json
import os
import sys
import threading
import unittest

import broker_kit as kit
from broker_kit import body_of, eventually, free_port

from proton import Condition
from proton.handlers import MessagingHandler
from proton.reactor import Container

INTACT = os.path.realpath(sys.argv.pop(1))
WORKFLOW = {"intact": 1, "workflow": "order", "steps": [
    {"name": "waits", "agent": "nobody", "action": "x", "undo": "none", "complete_by": "1m"}]}


class Peer(MessagingHandler):
    """Takes messages for any queue. The first ones that come cost their sessions, each with that description."""

    def __init__(self, descriptions, channel_max=None):
        super().__init__(auto_accept=False)
        self.channel_max = channel_max
        self.port, self.descriptions, self.ended, self.events = free_port(), descriptions, 0, []
        self.container = Container(self)
        threading.Thread(target=self.container.run, daemon=True).start()

    def on_connection_bound(self, event):
        if self.channel_max is not None:
            event.transport.channel_max = self.channel_max

    def on_start(self, event):
        self.acceptor = event.container.listen(f"127.0.0.1:{self.port}")

    def on_link_opening(self, event):
        event.link.target.address = event.link.remote_target.address
        event.link.source.address = event.link.remote_source.address

    def on_message(self, event):
        session = event.link.session
        if not session.state & session.LOCAL_ACTIVE:
            return  # it has ended: what was on its way is not looked at
        if self.ended < len(self.descriptions):
            session.condition = Condition("amqp:precondition-failed", self.descriptions[self.ended])
            session.close()
            self.ended += 1
            return
        self.events.append(body_of(event.message))
        self.accept(event.delivery)

    def close(self):
        self.container.stop()


class Conditions(unittest.TestCase):
    def server(self, peer):
        server = kit.Server(INTACT)
        server.flags += ["--config", f"{server.folder}/intact.json"]
        with open(f"{server.folder}/intact.json", "w") as f:
            json.dump({"intact_server": 1, "amqp": {"brokers": [{"name": "main", "url": f"amqp://127.0.0.1:{peer.port}"}],
                                                    "messages": {"allow": ["reply", "reply.*"]}}}, f)
        self.addCleanup(server.close)
        server.start()
        server.put(WORKFLOW)
        server.submit("order", "o-1", {}, reply_to="amqp:reply")
        return server

    def peer(self, descriptions, channel_max=None):
        peer = Peer(descriptions, channel_max)
        self.addCleanup(peer.close)
        return peer

    def dead(self, server):
        return server.call("GET", "/v1/outbox?state=dead")["messages"]

    def test_what_failed_for_another_cause_comes_again(self):
        """By the same name, but its message is as good as any."""
        peer = self.peer(["PRECONDITION_FAILED - inequivalent arg 'durable' for queue 'reply'", "PRECONDITION_FAILED", None])
        server = self.server(peer)

        def is_told():
            self.assertEqual(self.dead(server), [])
            return [e["type"] for e in peer.events] == ["intact.task.received"]

        eventually("it is told", is_told)
        self.assertEqual(peer.ended, 3)

    def test_what_is_too_large_does_not(self):
        """The same peer, so that it is the description which makes the difference."""
        peer = self.peer(["PRECONDITION_FAILED - message size 4000 is larger than configured max size 3000"] * 2)
        server = self.server(peer)
        dead = eventually("it is dead", lambda: self.dead(server))
        self.assertIn("message size 4000", dead[0]["error"])

    def test_words_that_are_cut_are_text(self):
        """The cut is within a character, and the list of messages has to be UTF-8."""
        peer = self.peer(["message size " + "\u20ac" * 100] * 2)
        server = self.server(peer)
        dead = eventually("it is dead", lambda: self.dead(server))
        self.assertIn("message size \u20ac", dead[0]["error"])

    def test_more_queues_than_the_broker_has_channels(self):
        """One session too many, and Proton would say nothing more at all, to any queue."""
        peer = self.peer([], channel_max=3)
        server = self.server(peer)
        for i in range(12):
            server.submit("order", f"r-{i}", {}, reply_to=f"amqp:reply.{i}")
        eventually("all are told", lambda: len({e["subject"] for e in list(peer.events)}) == 13)
        self.assertEqual(server.read_log().count("event=amqp_lost"), 0)
        self.assertIn("event=amqp_crowded broker=main channels=4", server.read_log())


if __name__ == "__main__":
    unittest.main()
