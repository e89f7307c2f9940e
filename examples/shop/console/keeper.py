"""Starts processes, knows how they are, kills them and starts them again. Nothing comes back by itself unless it is to."""

import os
import signal
import subprocess
import sys
import threading
import time

PATIENCE_S = int(os.environ.get("SHOP_PATIENCE_S", "120"))  # until something is ready; only what fails takes so long
STOP_S = 15  # from SIGTERM to SIGKILL


class Failed(Exception):
    """A sentence for people."""


class Kept:
    """A process, and what was asked of it last."""

    def __init__(self, process):
        self.process = process
        self.child = None
        self.state = "stopped"  # running; killed, stopped: as asked; died: by itself
        self.since = time.time()
        self.starts = 0
        self.status = None

    def move(self, state):
        self.state, self.since = state, time.time()


class Keeper:
    def __init__(self, work, tell, ends, respawn=False):
        self.work, self.tell, self.respawn = work, tell, respawn
        self.ends = ends  # an event: we are told to end
        self.lock = threading.RLock()
        self.kept = {}
        self.guard = subprocess.Popen([sys.executable, os.path.join(os.path.dirname(__file__), "guard.py"), work],
                                      stdin=subprocess.PIPE, start_new_session=True)

    def add(self, process):
        self.kept[process.name] = Kept(process)

    def find(self, name):
        if name not in self.kept:
            raise Failed(f"there is no process {name}")
        return self.kept[name]

    def is_running(self, name):
        with self.lock:
            if name in self.kept:
                self.look_at(self.kept[name])
            return name in self.kept and self.kept[name].state == "running"

    def start(self, name):
        with self.lock:
            kept, process = self.find(name), self.find(name).process
            self.look_at(kept)
            if self.ends.is_set():
                raise Failed("the shop is closing")
            if kept.state == "running":
                return
            environment = {k: v for k, v in os.environ.items() if not k.startswith(("INTACT_", "SHOP_", "RABBITMQ_", "PG"))}
            environment |= {"SHOP_WORK": self.work, "LC_ALL": "C.UTF-8"} | process.environment
            as_user = {"user": process.user, "group": process.user, "extra_groups": []} if process.user else {}
            with open(self.log(name), "ab") as log:
                kept.child = subprocess.Popen(process.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment,
                                              cwd=os.path.join(self.work, process.folder), start_new_session=True, **as_user)
            kept.starts += 1
            kept.move("running")

    def kill(self, name):
        """SIGKILL, which nobody can answer. Of its group: the broker has a script between itself and us. The database is ended by
        SIGQUIT, which is a crash for it, too, and leaves no shared memory behind."""
        with self.lock:
            kept = self.find(name)
            self.look_at(kept)
            if kept.state != "running":
                return False
            if kept.process.kind == "database":
                kept.child.send_signal(signal.SIGQUIT)
            elif kept.process.kind == "node":
                kept.child.kill()  # the agents that it has started see that by themselves
            else:
                os.killpg(kept.child.pid, signal.SIGKILL)
            kept.child.wait()
            kept.move("killed")
            return True

    def stop(self, name):
        """In order, as at the end of a day."""
        with self.lock:
            kept = self.find(name)
            self.look_at(kept)
            if kept.state != "running":
                return
            kept.child.send_signal(signal.SIGINT if kept.process.kind == "database" else signal.SIGTERM)
        try:
            kept.child.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self.kill(name)
        kept.move("stopped")

    def look_at(self, kept):
        if kept.state == "running" and kept.child.poll() is not None:
            kept.status = kept.child.returncode
            kept.move("died")
            self.tell("shop", f"{kept.process.name} ended by itself with status {kept.status}: {self.last_words(kept.process.name)}")

    def look(self):
        """Notices who has died. With `respawn`, what was not ended by us comes back."""
        with self.lock:
            for name, kept in self.kept.items():
                self.look_at(kept)
                if self.respawn and kept.state in ("died", "killed") and time.time() - kept.since > 1:
                    self.start(name)

    def log(self, name):
        return os.path.join(self.work, "log", f"{name}.log")

    def last_words(self, name):
        with open(self.log(name), "rb") as f:
            f.seek(max(0, os.path.getsize(self.log(name)) - 2000))
            lines = f.read().decode(errors="replace").strip().splitlines()
        return lines[-1][:300] if lines else "it wrote nothing"

    def wait_until(self, name, is_ready):
        """Until it is ready; a process that has ended will not be."""
        end = time.monotonic() + PATIENCE_S
        while not is_ready():
            if self.ends.is_set():
                raise Failed("the shop is closing")
            with self.lock:
                self.look_at(self.find(name))
                if self.find(name).state != "running":
                    raise Failed(f"{name} does not start: {self.last_words(name)}")
            if time.monotonic() > end:
                raise Failed(f"{name} does not become ready: {self.last_words(name)}")
            time.sleep(0.05)

    def stop_all(self):
        """Those that were started last first: nobody misses what he needs. The guard has the last word."""
        self.ends.set()
        for name in reversed(list(self.kept)):
            self.stop(name)
        self.guard.stdin.close()
        self.guard.wait()
