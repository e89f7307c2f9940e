"""Tests of workflows with your own agents, against a real server whose time is virtual: a workflow that takes a month ends
at once.

    def test_an_order_is_taken_back():
        with Server() as server:
            server.define("order.yaml")
            with server.agent(payment), server.agent("shipping", {"ship": StepError("no-address", "unknown street")}):
                task = server.submit("order", {"total": 20})
                server.advance("2d")
                task.expect("compensated", error="no-address", within="3d")

The server is the program `intact` (`intact serve --virtual-time`): it keeps nothing, and ends with the test, however that
ends. Its clock moves while somebody waits for the end of a task (`Task.ended`, `Task.expect`), and by `Server.advance`;
else it stands still. An agent at work holds it. Nothing here needs more than the standard library.
"""

from __future__ import annotations

import contextlib
import datetime
import importlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Union, cast
from urllib.parse import quote

from . import _http
from .agent import Agent, Handler
from .client import ENDED, Client
from .errors import Busy, Problem, StepError, Unreachable
from .request import Request

__all__ = ["Ended", "Server", "Task", "TestCase", "fixture"]

Moment = Union[str, datetime.timedelta, datetime.datetime]
"""How far, or until when: "2d", "90m", timedelta(days=2); a datetime with a time zone, or "2026-03-01T09:00:00Z"."""

START_WITHIN_S, END_WITHIN_S = 30.0, 10.0
EXIT_WITHIN_S = 1.0
"""How long a process whose connection broke may take to be seen to have ended."""
FIRST_WAIT_S, WAIT_S = 0.3, 2.0
UNITS_MS = {"d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1000, "ms": 1}
DURATION = re.compile(r"(\d+)(ms|d|h|m|s)")


def _duration_ms(text: Union[str, datetime.timedelta]) -> int:
    if isinstance(text, datetime.timedelta):
        return round(text.total_seconds() * 1000)
    found = DURATION.fullmatch(text)
    if not found:
        raise ValueError(f"{text!r} is no duration such as '2d', '90m' or '500ms'")
    return int(found[1]) * UNITS_MS[found[2]]


def _time(text: str) -> datetime.datetime:
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))


class Ended(Dict[str, Any]):
    """The record of a task that has ended; its members, and what tests ask for."""

    @property
    def state(self) -> str:
        """processed, compensated or error"""
        return cast(str, self["state"])

    @property
    def output(self) -> Any:
        """Of the task."""
        return self.get("output")

    @property
    def error(self) -> Optional[str]:
        """The code of the first failure; None: there was none."""
        cause = self.get("cause") or self.get("error")
        return None if cause is None else cast(str, cause["code"])

    @property
    def took(self) -> datetime.timedelta:
        """From its submission to its end, in virtual time."""
        return _time(self["ended_at"]) - _time(self["submitted_at"])

    @property
    def steps(self) -> Dict[str, Dict[str, Any]]:
        """Its steps by their names."""
        return {step["name"]: step for step in self["steps"]}


class _Watched(Client):
    """A client that does not wait for a server that has ended."""

    def __init__(self, server: Server, **options: Any) -> None:
        super().__init__(server.url, installation="any", **options)
        self._watched = server

    def _once(self, *call: Any) -> _http.Answer:
        self._watched.check_alive()
        return super()._once(*call)

    def _answer(self, *call: Any, **options: Any) -> _http.Answer:
        try:
            return super()._answer(*call, **options)
        except Unreachable:
            self._watched.check_alive(EXIT_WITHIN_S)
            raise


class Task:
    """A task of a server; `id` is its id."""

    def __init__(self, server: Server, task_id: str) -> None:
        self.id = task_id
        self._server = server

    def get(self) -> Dict[str, Any]:
        """Its record as it is now."""
        return cast(Dict[str, Any], self._server.client.get(self.id))

    @property
    def state(self) -> str:
        """As it is now."""
        return cast(str, self.get()["state"])

    def why(self) -> Dict[str, Any]:
        """What it waits for."""
        return cast(Dict[str, Any], self._server.client.why(self.id))

    def signal(self, name: str, data: Any = None, key: Optional[str] = None) -> None:
        """Sends it a signal."""
        self._server.client.signal(self.id, name, data, key)

    def ended(self, timeout: float = 60.0) -> Ended:
        """Waits for its end while time passes. AssertionError if it does not end by itself, because it waits for something
        that no time brings, or after `timeout` real seconds; it says what the task waits for."""
        end = time.monotonic() + timeout
        wait = FIRST_WAIT_S
        while True:
            path = f"/v1/tasks/{quote(self.id, safe='')}?wait={round(wait * 1000)}ms"
            record = self._server.client.call("GET", path)
            if record["state"] in ENDED:
                return Ended(record)
            clock = self._server.clock()
            if clock["next"] is None and not clock["held_by"]:
                record = self.get()
                if record["state"] in ENDED:
                    return Ended(record)
                raise AssertionError(f"task {self.id} does not end by itself: {self._story()}")
            if time.monotonic() >= end:
                raise AssertionError(f"task {self.id} has not ended after {timeout:g} s: {self._story()}; the clock is held "
                                     f"by {json.dumps(clock['held_by'])}")
            wait = WAIT_S

    def expect(self, state: str, *, error: Any = ..., output: Any = ...,
               within: Union[None, str, datetime.timedelta] = None, steps: Optional[Mapping[str, str]] = None,
               timeout: float = 60.0) -> Ended:
        """Waits for its end, which has to be this. `error`: the code of the first failure, None: there is none. `within`: the
        virtual time that it may take. `steps`: states of steps by their names. AssertionError says what is otherwise."""
        found = self.ended(timeout)
        told: List[str] = []

        def compare(what: str, wanted: Any, value: Any) -> None:
            if wanted is not ... and wanted != value:
                told.append(f"{what} is {value!r}, expected {wanted!r}")

        compare("state", state, found.state)
        compare("error", error, found.error)
        compare("output", output, found.output)
        for name, wanted in (steps or {}).items():
            compare(f"step {name}", wanted, found.steps.get(name, {}).get("state"))
        if within is not None and found.took > datetime.timedelta(milliseconds=_duration_ms(within)):
            told.append(f"it took {found.took}, expected at most {within}")
        if told:
            raise AssertionError(f"task {self.id}: " + "; ".join(told) + f"\n{self._steps(found)}")
        return found

    @staticmethod
    def _steps(record: Mapping[str, Any]) -> str:
        lines = []
        for step in record["steps"]:
            error = step.get("error")
            lines.append(f"  {step['name']}: {step['state']}" + (f" ({error['code']}: {error['message']})" if error else ""))
        return "\n".join(lines)

    def _story(self) -> str:
        try:
            return json.dumps(self.why())
        except Problem as e:
            return str(e)


class Server:
    """A server in memory whose time is virtual; a context manager. Each test can have its own: one starts in some
    milliseconds, on a port of its own.

    program: the program intact. Default: $INTACT_PROGRAM, then the one in $PATH.
    at: the time at which it begins, such as "2026-01-01T09:00:00Z". Default: now.
    clock: when its clock moves by itself: "waits" (while somebody waits for the end of a task), "auto" (whenever nothing is
    under way), "manual" (never).
    arguments: more flags of `intact serve`.
    """

    url: str

    def __init__(self, *, program: Optional[str] = None, at: Optional[str] = None, clock: str = "waits",
                 arguments: Sequence[str] = ()) -> None:
        found = program or os.environ.get("INTACT_PROGRAM") or shutil.which("intact")
        if not found:
            raise FileNotFoundError("the program intact is not in $PATH; $INTACT_PROGRAM may say where it is")
        self._command = [found, "serve", "--virtual-time", "--clock", clock, "--listen", "127.0.0.1:0", "--end-with-stdin",
                         "--no-console", "--log", "error", *(["--clock-at", at] if at else []), *arguments]
        self._process: Optional[subprocess.Popen[bytes]] = None
        self._opened = contextlib.ExitStack()
        self.url = ""

    # ---- life ----

    def start(self) -> Server:
        """Starts it; RuntimeError says why it did not."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("INTACT_")}
        log = self._log = self._opened.enter_context(tempfile.TemporaryFile())
        # Its standard input is a pipe of this process alone: when that ends, so does the server.
        process = subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, env=kept)
        self._process = process
        assert process.stdin is not None and process.stdout is not None
        # It ends the process, and with it the wait for its first line.
        late = threading.Timer(START_WITHIN_S, process.kill)
        late.start()
        try:
            line = process.stdout.readline().decode("utf-8", "replace")
            found = re.fullmatch(r"listening on port (\d+)\n", line)
            if not found:
                process.wait()
        finally:
            late.cancel()
        if not found:
            process.stdin.close()
            process.stdout.close()
            story = self._told()
            self._process = None
            self._opened.close()
            mute = f"it said nothing in {START_WITHIN_S:g} s"
            raise RuntimeError(f"the server did not start: {story or line or mute}")
        self.url = f"http://127.0.0.1:{found[1]}"
        self.client = self._opened.enter_context(_Watched(self, token=""))
        return self

    def close(self) -> None:
        """Ends it, and the agents that still run."""
        process, self._process = self._process, None
        if process is None:
            self._opened.close()
            return
        assert process.stdin is not None and process.stdout is not None
        if process.poll() is not None:
            print(f"the server ended with {process.returncode}: {self._told()}", file=sys.stderr)
        self._opened.close()
        self._opened = contextlib.ExitStack()
        process.stdin.close()
        try:
            process.wait(END_WITHIN_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()

    def check_alive(self, within: float = 0.0) -> None:
        """RuntimeError if its process has ended, or does so within that many seconds; it says how."""
        if self._process is None:
            raise RuntimeError("the server is not running")
        try:
            code = self._process.wait(within)
        except subprocess.TimeoutExpired:
            return
        raise RuntimeError(f"the server has ended with {code}: {self._told() or 'it said nothing'}")

    def _told(self) -> str:
        self._log.seek(0)
        return self._log.read().decode("utf-8", "replace").strip()

    def __enter__(self) -> Server:
        return self.start()

    def __exit__(self, *_: Any) -> None:
        self.close()

    # ---- what it has ----

    def define(self, *definitions: Union[str, "os.PathLike[str]", Mapping[str, Any]]) -> None:
        """Stores definitions: files, texts of more than a line, or objects."""
        for definition in definitions:
            if isinstance(definition, Mapping):
                self.client.put_workflow(definition)
            elif isinstance(definition, str) and "\n" in definition:
                self.client.put_workflow(definition)
            else:
                self.client.put_workflow(Path(definition).read_text(encoding="utf-8"))

    def agent(self, agent: Union[Agent, str], actions: Optional[Mapping[str, Any]] = None,
              undos: Optional[Mapping[str, Any]] = None, *, places: int = 8) -> contextlib.AbstractContextManager[Agent]:
        """Runs an agent for as long as the block lasts. An Agent of your own: its handlers, for this server. A name: an agent
        with these actions and undos; each is a function of the request, or the output, or a StepError. At the end of the
        block, handlers at work have ten real seconds; RuntimeError if one is still at work then."""
        if isinstance(agent, Agent):
            running = agent.copy(self.url)
        else:
            running = Agent(agent, places=places, server=self.url, token="", discovery=False,
                            installation="any")
            for name, what in (actions or {}).items():
                running.action(name)(_handler(what))
            for name, what in (undos or {}).items():
                running.undo(name)(_handler(what))
        return _run(running)

    @contextlib.contextmanager
    def program(self, command: Sequence[str], **options: Any) -> Iterator[subprocess.Popen[bytes]]:
        """Runs a program that is an agent, or has some, for as long as the block lasts: it finds the server by
        $INTACT_SERVER, and is ended by SIGTERM. `options` are those of subprocess.Popen."""
        env = {**os.environ, **(options.pop("env", None) or {}), "INTACT_SERVER": self.url, "INTACT_TOKEN": ""}
        with subprocess.Popen(command, env=env, **options) as process:
            try:
                yield process
            finally:
                process.terminate()
                try:
                    process.wait(END_WITHIN_S)
                except subprocess.TimeoutExpired:
                    process.kill()

    def person(self, name: str, *groups: str) -> Client:
        """A client that decides approvals as this person, who has these groups."""
        answer = self.client.call("POST", "/v1/tokens", {"name": name, "roles": ["approve", "submit"], "person": name,
                                                         "groups": list(groups)})
        return self._opened.enter_context(_Watched(self, token=cast(str, answer["token"])))

    def submit(self, workflow: str, input: Any = None, **more: Any) -> Task:  # pylint: disable=redefined-builtin
        """Submits a task. `more`: as for Client.submit."""
        return Task(self, self.client.submit(workflow, input, **more)["id"])

    def task(self, task_id: str) -> Task:
        """A task that exists, such as one of a schedule."""
        return Task(self, task_id)

    # ---- its time ----

    @property
    def now(self) -> datetime.datetime:
        """Its time."""
        return _time(self.clock()["now"])

    def clock(self) -> Dict[str, Any]:
        """Its time, the next moment at which something is due (None: nothing is), and what holds the clock."""
        return self.client.call("GET", "/v1/clock")

    def advance(self, moment: Moment, *, regardless: bool = False, patience: float = 10.0) -> Dict[str, Any]:
        """Lets time pass, for so long or until then, by all that is due on the way, and returns when what that began is
        done. Agents at work are waited for. If they take more than `patience` real seconds, or work waits for an agent that
        does not run, it raises a Problem of the kind "clock-held". `regardless`: what is at work now, or waits, does not
        matter: for agents that hang or are missing."""
        body: Dict[str, Any] = {"regardless": regardless, "patience": f"{round(patience * 1000)}ms"}
        if isinstance(moment, datetime.datetime):
            body["to"] = moment.isoformat()
        elif isinstance(moment, datetime.timedelta) or DURATION.fullmatch(moment):
            body["by"] = f"{_duration_ms(moment)}ms"
        else:
            body["to"] = moment
        path = "/v1/clock/advance"
        with _Watched(self, token="", timeout=3600.0) as client:
            return client.call("POST", path, body, is_repeatable=False)


def _handler(what: Any) -> Handler:
    if callable(what) and not isinstance(what, StepError):
        return cast(Callable[[Request], Any], what)

    def answer(_: Request) -> Any:
        if isinstance(what, StepError):
            raise what
        return what

    return answer


@contextlib.contextmanager
def _run(agent: Agent) -> Iterator[Agent]:
    agent.start()
    failed = True
    try:
        yield agent
        failed = False
    finally:
        agent.stop()
        if not agent.join(END_WITHIN_S):
            told = (f"agent {agent.name} has not ended after {END_WITHIN_S:g} s: "
                    "a handler hangs, or an answer was not delivered")
            if not failed:
                raise RuntimeError(told)
            print(told, file=sys.stderr)  # what failed in the block is what the test tells


class TestCase(unittest.TestCase):
    """For unittest: each test has a server of its own, `self.server`, with the `definitions` of its class. `options` are those
    of Server."""

    definitions: Sequence[Union[str, "os.PathLike[str]", Mapping[str, Any]]] = ()
    options: Mapping[str, Any] = {}
    server: Server

    def setUp(self) -> None:
        super().setUp()
        self.server = Server(**self.options).start()
        self.addCleanup(self.server.close)
        self.server.define(*self.definitions)


def fixture(*definitions: Union[str, "os.PathLike[str]", Mapping[str, Any]], **options: Any) -> Any:
    """For pytest, in conftest.py or a test file: `server = fixture("order.yaml")`. Each test that has a parameter of that name
    gets a server of its own with these definitions. `options` are those of Server."""
    pytest: Any = importlib.import_module("pytest")

    def server() -> Iterator[Server]:
        with Server(**options) as running:
            running.define(*definitions)
            yield running

    return pytest.fixture(server)
