"""A server with a store of its own in the folder for temporary files, or in a database, and what it uses; and an agent. For benches that need
no more."""

import http.client
import json
import os
import shutil
import subprocess
import tempfile


class Server:
    def __init__(self, program, store=None, before=()):
        """`before`: the words of a program that runs it, such as valgrind."""
        self.folder = tempfile.mkdtemp(prefix="intact-bench.")
        flags = ["--node", "n1", "--store", store] if store else []
        self.process = subprocess.Popen([*before, program, "serve", "--open", "--data", f"{self.folder}/data", "--listen", "127.0.0.1:0", *flags],
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.port = int(self.process.stdout.readline().split()[-1])

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)

    def call(self, method, path, body=None, kind="application/json", connection=None):
        """The text of the answer. With a connection, this one is used and stays open."""
        c = connection or self.connect()
        c.request(method, path, body, {"Content-Type": kind})
        answer = c.getresponse()
        text = answer.read()
        if not connection:
            c.close()
        assert answer.status < 300, text
        return text

    def submit(self, lines):
        self.call("POST", "/v1/tasks", "".join(line + "\n" for line in lines), "application/x-ndjson")

    def resident_mib(self):
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as f:
            return next(int(line.split()[1]) for line in f if line.startswith("VmRSS")) / 1024

    def cpu_s(self):
        with open(f"/proc/{self.process.pid}/stat", encoding="ascii") as f:
            fields = f.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def metric(self, name):
        """The value of a metric, whose labels are part of its name."""
        for line in self.call("GET", "/metrics").decode().splitlines():
            word, _, value = line.rpartition(" ")
            if word == name:
                return float(value)
        raise AssertionError(f"there is no metric {name}")

    def ended(self):
        return int(self.metric('intact_tasks_ended_total{state="processed"}'))

    def commits(self):
        return int(self.metric("intact_commit_duration_seconds_count"))

    def end(self):
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.folder)

class Agent:
    """Answers whatever is asked of the agent "a", at once and on one connection, `places` requests at a time."""

    def __init__(self, server, places=200):
        self.server = server
        self.places = places
        self.connection = server.connect()
        self.results = []

    def turn(self):
        """The number of requests that were answered."""
        body = {"instance": "i", "max": self.places, "wait": "200ms", "results": self.results}
        answer = json.loads(self.server.call("POST", "/v1/agents/a/work", json.dumps(body), connection=self.connection))
        count = len(self.results)
        self.results = [{"token": r["token"], "output": None} for r in answer["requests"]]
        return count

    def serve(self, count):
        done = 0
        while done < count:
            done += self.turn()
