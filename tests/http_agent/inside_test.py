#!/usr/bin/python3
"""`intact serve --http`: the agent as a child of its server, with tokens and TLS, several nodes, secrets, long answers, HTTP/2.

Usage: inside_test.py INTACT [TEST...]
"""

import itertools
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import kit
from kit import answer, eventually

INTACT = os.path.realpath(sys.argv.pop(1))
GOOD = answer(200, b'{"receipt": 17}')


def good(connection, request, number):
    connection.sendall(GOOD)
    return True


def one_step(name, agent, complete_by="2m", **http):
    return {"intact": 1, "workflow": name, "steps": [
        {"name": "call", "agent": agent, "undo": "none", "complete_by": complete_by, "retry": {"attempts": 1, "wait": "10ms"},
         "http": {"path": "/${ .input.case }", "body": {"n": 1}, **http}}]}


def config_of(service, **more):
    return {"intact_http": 1, "private": ["127.0.0.1"],
            "services": {"payment": {"url": f"http://127.0.0.1:{service.port}", "retry": {"attempts": 1}} | more}}


class Inside(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="intact-http-inside.")
        self.addCleanup(subprocess.run, ["rm", "-rf", self.folder])

    def service(self, cases=None, **more):
        service = kit.Service({"good": good} | (cases or {}), **more)
        self.addCleanup(service.close)
        return service

    def server(self, config, *flags, **more):
        server = kit.Server(INTACT, config, flags, **more)
        self.addCleanup(server.close)
        return server

    def test_with_tokens_and_nobody_sets_them_up(self):
        service = self.service()
        server = self.server(config_of(service)).start()
        server.put(one_step("buy", "payment"))
        server.submit("buy", "o-1", {"case": "good"})
        self.assertEqual(server.ended("o-1")["steps"][0]["output"], {"receipt": 17})
        self.assertEqual([t["name"] for t in server.call("GET", "/v1/tokens")["tokens"]], ["admin"])
        server.stop()

    def test_by_itself_with_a_token_of_its_own(self):
        service = self.service()
        server = self.server(None).start()
        token = server.call("POST", "/v1/tokens", {"name": "shop", "roles": ["agent:payment"]})["token"]
        with open(f"{self.folder}/services.json", "w") as f:
            json.dump(config_of(service), f)
        environment = kit.ENVIRONMENT | {"INTACT_TOKEN": token, "INTACT_SERVER": f"http://127.0.0.1:{server.port}"}
        server.put(one_step("buy", "payment"))
        with open(f"{self.folder}/agent.log", "wb") as log:
            agent = subprocess.Popen([INTACT, "agent", "http", "--config", f"{self.folder}/services.json", "--instance", "shop-1"],
                                     env=environment, stderr=log)
        self.addCleanup(agent.wait)
        self.addCleanup(agent.kill)
        server.submit("buy", "o-1", {"case": "good"})
        self.assertEqual(server.ended("o-1")["steps"][0]["attempts"][0]["instance"], "shop-1")
        agent.send_signal(signal.SIGTERM)
        self.assertEqual(agent.wait(kit.PATIENCE_S), 0)
        server.stop()
        with open(f"{self.folder}/agent.log") as log:
            self.assertNotIn(token, log.read())

    def test_with_tls(self):
        kit.certificates(self.folder)
        service = self.service()
        server = self.server(config_of(service), "--tls-cert", f"{self.folder}/good.pem", "--tls-key", f"{self.folder}/good.key")
        server.context = ssl.create_default_context(cafile=f"{self.folder}/ca.pem")
        server.start()
        server.put(one_step("buy", "payment"))
        server.submit("buy", "o-1", {"case": "good"})
        self.assertEqual(server.ended("o-1")["state"], "processed")
        server.stop()

    def test_the_door_is_for_the_child_alone(self):
        service = self.service()
        server = self.server(config_of(service)).start()
        child = eventually("there is a child", server.child)
        def variables():
            with open(f"/proc/{child}/environ") as f:
                return [v for v in f.read().split("\0") if v.startswith("INTACT_HTTP_INSIDE=")]

        # Two descriptors of the child: nobody else can connect, since there is nothing to connect to.
        self.assertEqual(eventually("it has started", variables), ["INTACT_HTTP_INSIDE=3:4"])
        sockets = set()
        for fd in os.listdir(f"/proc/{server.process.pid}/fd"):
            target = os.readlink(f"/proc/{server.process.pid}/fd/{fd}")
            if target.startswith("socket:["):
                sockets.add(target[len("socket:["):-1])
        with open("/proc/net/unix") as f:
            rows = [line.split() for line in f][1:]
        own = [row for row in rows if row[6] in sockets]
        self.assertGreaterEqual(len(own), 2)
        self.assertEqual([row for row in own if int(row[3], 16) & 0x10000], [])  # which listen
        server.stop()

    def test_started_again_when_it_dies(self):
        service = self.service()
        server = self.server(config_of(service), "--open").start()
        server.put(one_step("buy", "payment"))
        for n in range(3):
            child = eventually("there is a child", server.child)
            os.kill(child, signal.SIGKILL)
            server.submit("buy", f"o-{n}", {"case": "good"})
            self.assertEqual(server.ended(f"o-{n}")["state"], "processed")
        server.stop()
        self.assertIn("event=helper_ended name=http status=0 signal=9", server.read_log())

    def test_ends_with_its_server_however_that_ends(self):
        service = self.service()
        server = self.server(config_of(service), "--open").start()
        child = eventually("there is a child", server.child)
        server.kill()
        eventually("it is gone, too", lambda: not os.path.exists(f"/proc/{child}"))
        server.start()
        child = eventually("there is a child", server.child)
        server.stop()
        eventually("it is gone, too", lambda: not os.path.exists(f"/proc/{child}"))

    def test_what_is_under_way_is_finished_when_the_server_drains(self):
        arrived, go = threading.Event(), threading.Event()

        def slow(connection, request, number):
            arrived.set()
            go.wait(kit.PATIENCE_S)
            connection.sendall(GOOD)
            return True

        service = self.service({"slow": slow})
        server = self.server(config_of(service), "--open", "--drain", "2m").start()
        server.put(one_step("buy", "payment"))
        server.submit("buy", "o-1", {"case": "slow"})
        self.assertTrue(arrived.wait(kit.PATIENCE_S))
        server.process.send_signal(signal.SIGTERM)
        eventually("it drains", lambda: "event=draining" in server.read_log())
        go.set()
        self.assertEqual(server.process.wait(kit.PATIENCE_S), 0)
        server.start()
        task = server.ended("o-1")
        self.assertEqual(task["steps"][0]["attempts"][0]["outcome"], "completed", task)
        self.assertEqual(len(service.of_key("o-1/call")), 1)
        server.stop()

    def test_secrets_are_read_again(self):
        service = self.service()
        path = f"{self.folder}/key"
        with open(path, "w") as f:
            f.write("first-key-0815")
        config = config_of(service, headers={"X-Key": "k=${ secret.key }"}) | {"secrets": {"key": {"file": path}}}
        server = self.server(config, "--open").start()
        server.put(one_step("buy", "payment"))
        server.submit("buy", "o-1", {"case": "good"})
        server.ended("o-1")
        self.assertEqual(service.of_key("o-1/call")[0]["headers"]["x-key"], "k=first-key-0815")
        with open(path, "w") as f:
            f.write("second-key-4711\n")
        server.process.send_signal(signal.SIGHUP)
        eventually("they are read", lambda: "event=secrets_loaded" in server.read_log())
        server.submit("buy", "o-2", {"case": "good"})
        server.ended("o-2")
        self.assertEqual(service.of_key("o-2/call")[0]["headers"]["x-key"], "k=second-key-4711")
        os.unlink(path)
        server.process.send_signal(signal.SIGHUP)
        eventually("it says what is wrong", lambda: "event=secret_refused" in server.read_log())
        server.submit("buy", "o-3", {"case": "good"})
        server.ended("o-3")
        self.assertEqual(service.of_key("o-3/call")[0]["headers"]["x-key"], "k=second-key-4711")
        child = server.child()
        for name in ("cmdline", "environ"):
            with open(f"/proc/{child}/{name}") as f:
                self.assertNotIn("-key-", f.read())
        server.stop()
        self.assertNotIn("-key-", server.read_log())

    def test_the_child_is_confined(self):
        service = self.service()
        os.mkdir(f"{self.folder}/keys")
        path, elsewhere = f"{self.folder}/keys/key", f"{self.folder}/elsewhere"
        for name, text in ((path, "first-key-0815"), (elsewhere, "other-key-4711")):
            with open(name, "w") as f:
                f.write(text)
        config = config_of(service, headers={"X-Key": "${ secret.key }"}) | {"secrets": {"key": {"file": path}}}
        config["services"]["payment"]["url"] = f"http://localhost:{service.port}"  # a name, to be looked up by a thread
        server = self.server(config, "--open").start()
        server.put(one_step("buy", "payment"))
        server.submit("buy", "o-1", {"case": "good"})
        server.ended("o-1")
        with open(f"/proc/{server.child()}/status") as f:
            status = dict(line.split(":", 1) for line in f)
        self.assertEqual((status["NoNewPrivs"].strip(), status["Seccomp"].strip()), ("1", "2"))
        # Its file is replaced by a new one, which it reads; by links to others, which it does not, whoever it is.
        with open(path + ".new", "w") as f:
            f.write("fresh-key-1234")
        os.rename(path + ".new", path)
        server.process.send_signal(signal.SIGHUP)
        eventually("it is read", lambda: server.read_log().count("event=secrets_loaded") == 1)
        if "event=not_confined what=files" in server.read_log():
            self.skipTest("this kernel has no Landlock")
        for n, target in enumerate(("/etc/shadow", elsewhere, f"{server.folder}/data/intact.db"), 1):
            os.symlink(target, path + ".new")
            os.rename(path + ".new", path)
            server.process.send_signal(signal.SIGHUP)
            eventually(f"{target} is refused", lambda n=n: server.read_log().count("event=secret_refused") == n)
        refused = [line for line in server.read_log().splitlines() if "event=secret_refused" in line]
        self.assertTrue(all("Permission denied" in line for line in refused), refused)
        server.submit("buy", "o-2", {"case": "good"})
        server.ended("o-2")
        self.assertEqual(service.of_key("o-2/call")[0]["headers"]["x-key"], "fresh-key-1234")
        server.stop()
        self.assertNotIn("not_confined", server.read_log())

    def test_nobody_looks_into_the_server_and_its_children(self):
        """The kernel gives the files of /proc of a process that is not dumpable to root, whoever its user is."""
        os.chmod(self.folder, 0o755)
        intact = f"{self.folder}/intact"  # the build may lie where others do not get to
        shutil.copy(INTACT, intact)
        amqp = f"{self.folder}/intact.json"
        with open(amqp, "w") as f:
            json.dump({"intact_server": 1, "amqp": {"brokers": [{"name": "main", "url": "amqp://127.0.0.1:1"}],
                                                    "agents": [{"agent": "other", "queue": "other"}]}}, f)
        server = kit.Server(intact, config_of(self.service()), ["--open", "--config", amqp])
        self.addCleanup(server.close)
        uid = os.geteuid() or 65534
        server.environment = {k: v for k, v in server.environment.items() if k != "INTACT_DUMPABLE"}
        if os.geteuid() == 0:
            for path in (self.folder, server.folder, server.config, amqp):
                os.chown(path, uid, uid)
            server.as_user = uid
        server.start()

        def are_hidden():
            pids = [server.process.pid, *server.children()]
            owners = {os.stat(f"/proc/{pid}/{name}").st_uid for pid in pids for name in ("mem", "environ", "fd")}
            return len(pids) == 3 and owners == {0}
        eventually("none of the three is dumpable", are_hidden)
        for pid in (server.process.pid, *server.children()):
            with open(f"/proc/{pid}/status") as f:
                self.assertIn(f"Uid:\t{uid}\t", f.read())
        server.stop()

    def test_the_child_has_the_variables_of_its_configuration_alone(self):
        service = self.service()
        config = config_of(service, headers={"X-Key": "${ secret.key }"}) | {"secrets": {"key": {"env": "KEY_OF_SERVICE"}}}
        environment = {"KEY_OF_SERVICE": "first-key-0815", "KEY_OF_OTHERS": "other-key-4711", "AWS_SECRET_ACCESS_KEY": "other-key-4711",
                       "PGPASSWORD": "other-key-4711", "HTTPS_PROXY": "http://u:other-key-4711@127.0.0.1:1"}
        server = self.server(config, "--open", environment=environment).start()
        server.put(one_step("buy", "payment"))
        server.submit("buy", "o-1", {"case": "good"})
        server.ended("o-1")
        with open(f"/proc/{server.child()}/environ") as f:
            text = f.read()
        self.assertIn("KEY_OF_SERVICE=first-key-0815", text)
        self.assertIn("PATH=", text)
        self.assertNotIn("other-key-4711", text)
        server.stop()

    def test_a_file_beside_others_is_read_again_by_a_new_child(self):
        service = self.service()
        path = f"{self.folder}/key"
        for name in (path, f"{self.folder}/key-of-the-server"):
            with open(name, "w") as f:
                f.write("first-key-0815")
        config = config_of(service, headers={"X-Key": "${ secret.key }"}) | {"secrets": {"key": {"file": path}}}
        server = self.server(config, "--open").start()
        server.put(one_step("buy", "payment"))
        server.submit("buy", "o-1", {"case": "good"})
        server.ended("o-1")
        child = server.child()
        if "event=not_confined what=files" in server.read_log():
            self.skipTest("this kernel has no Landlock")
        with open(path + ".new", "w") as f:
            f.write("second-key-4711")
        os.rename(path + ".new", path)
        server.process.send_signal(signal.SIGHUP)
        eventually("a new one takes its place", lambda: server.child() not in (None, child))
        server.submit("buy", "o-2", {"case": "good"})
        server.ended("o-2")
        self.assertEqual(service.of_key("o-2/call")[0]["headers"]["x-key"], "second-key-4711")
        self.assertNotIn("secret_refused", server.read_log())
        server.stop()

    def test_a_replaced_file_outside_of_its_folders_brings_a_new_child(self):
        service = self.service()
        key = os.path.basename(self.folder) + ".key"  # a relative path
        self.addCleanup(lambda: os.path.exists(key) and os.unlink(key))
        with open(key, "w") as f:
            f.write("first-key-0815")
        config = config_of(service, headers={"X-Key": "${ secret.key }"}) | {"secrets": {"key": {"file": key}}}
        server = self.server(config, "--open").start()
        server.put(one_step("buy", "payment"))
        server.submit("buy", "o-1", {"case": "good"})
        server.ended("o-1")
        child = server.child()
        with open(key + ".new", "w") as f:
            f.write("second-key-4711")
        os.rename(key + ".new", key)
        numbers = itertools.count()

        def is_another():
            server.submit("buy", f"n-{next(numbers)}", {"case": "good"})  # what wakes it up
            return server.child() not in (None, child)
        eventually("a new one takes its place", is_another)
        self.assertIn("event=confinement_outdated", server.read_log())
        server.submit("buy", "o-2", {"case": "good"})
        server.ended("o-2")
        self.assertEqual(service.of_key("o-2/call")[0]["headers"]["x-key"], "second-key-4711")
        server.stop()

    def test_mistakes_are_told_before_anything_starts(self):
        pipe = f"{self.folder}/pipe"
        os.mkfifo(pipe)
        for config, status, part in (
                ({"intact_http": 1, "services": {"payment": {"url": "ftp://x", "placess": 3}}}, 2, "services.payment.url"),
                ({"intact_http": 1, "services": {"p": {"url": "https://example.org"}}, "secrets": {"k": {"file": "/nonexistent/key"}}}, 2,
                 "/nonexistent/key: No such file"),
                ({"intact_http": 1, "services": {"p": {"url": "https://example.org"}}, "secrets": {"k": {"file": pipe}}}, 2,
                 f"{pipe}: it is not a regular file")):
            path = f"{self.folder}/bad.json"
            with open(path, "w") as f:
                json.dump(config, f)
            done = subprocess.run([INTACT, "serve", "--open", "--data", f"{self.folder}/data", "--listen", "127.0.0.1:0", "--http", path],
                                  capture_output=True, text=True, env=kit.ENVIRONMENT, timeout=kit.PATIENCE_S)
            self.assertEqual(done.returncode, status, done.stderr)
            self.assertIn(part, done.stderr)
            self.assertFalse(os.path.exists(f"{self.folder}/data"))

    def test_the_server_takes_a_far_retry_after(self):
        def busy(connection, request, number):
            connection.sendall(answer(429, b"", [("Retry-After", "3600")]))
            return True

        service = self.service({"busy": busy})
        server = self.server(config_of(service, retry={"attempts": 5, "wait": "1ms"}), "--open").start()
        workflow = one_step("buy", "payment")
        workflow["steps"][0]["retry"] = {"attempts": 3, "wait": "10ms"}
        server.put(workflow)
        server.submit("buy", "o-1", {"case": "busy"})
        step = eventually("it waits", lambda: [s for s in server.task("o-1")["steps"] if s["wait_until"] and s["attempts"]])[0]
        self.assertEqual(step["error"]["code"], "http_429")
        self.assertEqual(len(service.of_key("o-1/call")), 1)
        ended = step["attempts"][0]["ended_at"]
        self.assertGreater(step["wait_until"][:13], ended[:13])  # an hour later
        server.stop()

    def test_tries_are_told(self):
        count = []

        def third(connection, request, number):
            count.append(1)
            connection.sendall(GOOD if len(count) == 3 else answer(503, b""))
            return True

        service = self.service({"third": third})
        server = self.server(config_of(service, retry={"attempts": 5, "wait": "1ms"}), "--open").start()
        server.put(one_step("buy", "payment"))
        server.submit("buy", "o-1", {"case": "third"})
        task = server.ended("o-1")
        self.assertEqual(task["state"], "processed")
        self.assertEqual(task["steps"][0]["attempts"][0]["tries"], 3, task)
        self.assertEqual(len(task["steps"][0]["attempts"]), 1)
        server.stop()

    def test_a_result_from_elsewhere(self):
        service = self.service({"later": lambda c, r, n: c.sendall(answer(202, b"")) or True})
        server = self.server(config_of(service)).start()
        server.put(one_step("buy", "payment", elsewhere=[202]))
        server.submit("buy", "o-1", {"case": "later"})
        [request] = eventually("it has arrived", lambda: service.of_key("o-1/call"))
        token = request["headers"]["intact-token"]

        def complete():
            try:
                with server.open(f"/v1/attempts/{token}", {"output": {"by": "a person"}}, "POST", None) as reply:
                    return json.loads(reply.read())["status"]
            except OSError:
                return None

        self.assertIn(eventually("it is taken", complete), ("accepted", "repeated"))
        self.assertEqual(server.ended("o-1")["steps"][0]["output"], {"by": "a person"})
        self.assertNotIn(token, server.read_log())
        server.stop()

    def test_long_work_is_asked_for_and_beats(self):
        asked = []

        def job(connection, request, number):
            asked.append(request)
            if len(asked) < 6:
                connection.sendall(answer(202, b"", [("Location", f"job?part={len(asked)}"), ("Retry-After", "3")]))
            else:
                connection.sendall(answer(303, b"", [("Location", "/good")]))
            return True

        service = self.service({"job": job})
        server = self.server(config_of(service), "--open").start()
        workflow = one_step("buy", "payment")
        workflow["steps"][0]["heartbeat"] = "10s"  # less than all of it lasts
        server.put(workflow)
        server.submit("buy", "o-1", {"case": "job"})
        task = server.ended("o-1")
        self.assertEqual(task["state"], "processed", task)
        self.assertEqual(len(task["steps"][0]["attempts"]), 1, task)
        self.assertEqual([r["method"] for r in asked], ["POST"] + ["GET"] * 5)
        self.assertEqual(asked[2]["target"], "/job?part=2")
        for earlier, later in zip(asked, asked[1:]):
            self.assertGreater(later["at"] - earlier["at"], 2.9)  # as it was asked to
        server.stop()

    def test_stopped_when_its_task_is_undone(self):
        arrived, gone = threading.Event(), threading.Event()

        def slow(connection, request, number):
            arrived.set()
            try:
                if not connection.recv(1):
                    gone.set()
            except OSError:
                gone.set()
            return False

        service = self.service({"slow": slow})
        server = self.server(config_of(service), "--open").start()
        server.put(one_step("buy", "payment", complete_by="1h"))
        server.submit("buy", "o-1", {"case": "slow"})
        if not arrived.wait(kit.PATIENCE_S):
            self.fail(f"it is never called: {server.call('GET', '/v1/tasks/o-1/why')}, {server.call('GET', '/v1/agents')}, "
                      f"children {server.children()}, {server.read_log()}")
        server.call("POST", "/v1/tasks/o-1/undo", {"reason": "not wanted any more"})
        self.assertTrue(gone.wait(kit.PATIENCE_S), "it is still called")
        server.ended("o-1")
        server.stop()

    def test_two_nodes_have_an_agent_each(self):
        service = self.service()
        servers = []
        for _ in range(2):
            servers.append(self.server(config_of(service), "--open").start())
        children = [eventually("there is a child", s.child) for s in servers]
        self.assertEqual(len(set(children)), 2)
        for n, server in enumerate(servers):
            server.put(one_step("buy", "payment"))
            server.submit("buy", f"o-{n}", {"case": "good"})
            self.assertEqual(server.ended(f"o-{n}")["state"], "processed")
            [agent] = server.call("GET", "/v1/agents")["agents"]
            self.assertEqual(len(agent["instances"]), 1)
            server.stop()

    def test_actions_of_the_configuration(self):
        def show(connection, request, number):
            connection.sendall(answer(200, json.dumps({"method": request["method"], "target": request["target"],
                                                       "body": request["body"].decode()}).encode()))
            return True

        service = self.service({"lines": show, "form": show, "o-1": show})
        actions = {
            "charge": {"method": "PUT", "path": "/accounts/${ .input.account }/lines", "query": {"task": "${ .task.id }"},
                       "body": {"amount": "${ .input.amount }", "key": "${ .idempotency_key }"}, "output": ".body"},
            "form": {"path": "/form", "headers": {"Content-Type": "application/x-www-form-urlencoded"},
                     "body": {"amount": "${ .input.amount }", "a[b]": "c d&e"}},
            "refund": {"method": "DELETE", "path": "/charges/${ .forward.input.account }/lines"},
        }
        server = self.server(config_of(service, actions=actions), "--open").start()
        server.put({"intact": 1, "workflow": "buy", "steps": [
            {"name": "charge", "agent": "payment", "action": "charge", "input": {"account": "a/b", "amount": 20}, "undo": {"action": "refund"}},
            {"name": "form", "agent": "payment", "action": "form", "input": {"amount": 3}, "undo": "none"},
            {"name": "odd", "agent": "payment", "action": "unknown", "input": {"amount": 3}, "undo": "none", "retry": {"attempts": 1}}]})
        server.submit("buy", "o-1", {})
        task = server.ended("o-1")
        steps = task["steps"]
        self.assertEqual(steps[0]["output"]["target"], "/accounts/a%2Fb/lines?task=o-1")
        self.assertEqual(json.loads(steps[0]["output"]["body"]), {"amount": 20, "key": "o-1/charge"})
        self.assertEqual(steps[1]["output"]["body"], "amount=3&a%5Bb%5D=c%20d%26e")
        self.assertEqual(steps[2]["error"]["code"], "bad_request", steps[2])
        self.assertEqual(task["state"], "compensated")
        undo = [r for r in service.requests if r["method"] == "DELETE"]
        self.assertEqual([r["target"] for r in undo], ["/charges/a%2Fb/lines"])
        self.assertEqual(undo[0]["headers"]["intact-direction"], "undo")
        server.stop()

    def test_names_that_lead_into_closed_networks(self):
        service = self.service()
        config = {"intact_http": 1, "services": {
            "local": {"url": f"http://localhost.:{service.port}", "retry": {"attempts": 1}},
            "octal": {"url": f"http://0177.0.0.1:{service.port}", "retry": {"attempts": 1}},
            "number": {"url": f"http://2130706433:{service.port}", "retry": {"attempts": 1}},
            "own": {"url": f"http://{socket.gethostname()}:{service.port}", "retry": {"attempts": 1}}}}
        server = kit.Server(INTACT, config, ["--open"])
        self.addCleanup(server.close)
        done = subprocess.run([INTACT, "agent", "http", "--check", "--config", server.config], capture_output=True, text=True)
        names = [name for name in config["services"] if f"services.{name}.url" not in done.stderr]
        self.assertIn("own", names)
        server.configure(config | {"services": {name: config["services"][name] for name in names}})
        server.start()
        codes = []
        for name in names:
            server.put(one_step(name, name))
            server.submit(name, name, {"case": "good"})
            task = server.ended(name)
            codes.append(task["steps"][0]["error"]["code"])
            self.assertIn(task["steps"][0]["error"]["code"], ("forbidden_address", "unreachable"), task)
            self.assertEqual(task["steps"][0]["attempts"][0]["effect"], "none")
        self.assertEqual(service.connections, 0)
        self.assertIn("forbidden_address", codes)
        server.stop()

    def test_a_flood_of_http2_holds_up_nobody_else(self):
        """Frames that the library answers by itself, and never an answer: it would be at that for ever."""
        kit.certificates(self.folder)
        context = kit.tls_context(self.folder, "good")
        context.set_alpn_protocols(["h2"])
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)
        began = threading.Event()

        def flood():
            try:
                connection = context.wrap_socket(listener.accept()[0], server_side=True)
                connection.recv(65536)
                connection.sendall(b"\0\0\0\4\0\0\0\0\0")
                connection.recv(65536)
                threading.Thread(target=swallow, args=(connection,), daemon=True).start()
                began.set()
                while True:
                    connection.sendall((b"\0\0\x08\6\0\0\0\0\0" + b"x" * 8) * 500)
            except OSError:
                pass

        def swallow(connection):
            try:
                while connection.recv(65536):
                    pass
            except OSError:
                pass

        threading.Thread(target=flood, daemon=True).start()
        config = {"intact_http": 1, "private": ["127.0.0.1"], "services": {
            "flood": {"url": f"https://127.0.0.1:{listener.getsockname()[1]}", "tls": {"ca": f"{self.folder}/ca.pem"}, "retry": {"attempts": 1}},
            "calm": {"url": f"http://127.0.0.1:{self.service().port}"}}}
        server = self.server(config, "--open").start()
        for name in config["services"]:
            workflow = one_step(name, name)
            workflow["steps"][0]["complete_by"] = "10m"
            server.put(workflow)
        server.submit("flood", "flood", {"case": "good"})
        self.assertTrue(began.wait(kit.PATIENCE_S))
        for n in range(3):
            server.submit("calm", f"calm-{n}", {"case": "good"})
            self.assertEqual(server.ended(f"calm-{n}")["state"], "processed")
        error = server.ended("flood")["steps"][0]["attempts"][-1]["error"]
        self.assertIn(error["code"], ("bad_answer", "timeout"), error)
        server.stop()

    def test_http2(self):
        kit.certificates(self.folder)
        os.mkdir(f"{self.folder}/www")
        with open(f"{self.folder}/www/good.json", "w") as f:
            f.write('{"receipt": 17}')
        port = kit.free_port()
        log = open(f"{self.folder}/nghttpd.log", "wb")
        self.addCleanup(log.close)
        # Its folder is not in the PATH of users.
        nghttpd = subprocess.Popen(["/usr/sbin/nghttpd", "-v", "-d", f"{self.folder}/www", str(port),
                                    f"{self.folder}/good.key", f"{self.folder}/good.pem"], stdout=log, stderr=log)
        self.addCleanup(nghttpd.wait)
        self.addCleanup(nghttpd.kill)
        config = {"intact_http": 1, "private": ["127.0.0.1"],
                  "services": {"payment": {"url": f"https://127.0.0.1:{port}", "tls": {"ca": f"{self.folder}/ca.pem"}, "retry": {"attempts": 20}}}}
        server = self.server(config, "--open").start()
        server.put(one_step("buy", "payment"))
        for n in range(50):
            server.submit("buy", f"o-{n}", {"case": "good.json"})
        for n in range(50):
            self.assertEqual(server.ended(f"o-{n}")["steps"][0]["output"], {"receipt": 17})
        server.stop()
        with open(f"{self.folder}/nghttpd.log") as f:
            text = f.read()
        self.assertIn(":path: /good.json", text)


if __name__ == "__main__":
    unittest.main(verbosity=2)
