"""Clients: submit tasks, ask how they do, operate."""

from __future__ import annotations

import json
import random
import threading
import time
import uuid
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Tuple, Union, cast
from urllib.parse import quote, urlencode

from . import _clock, _http
from ._gathering import LINES_MAX, LINES_SIZE_MAX, Gathering, Sender
from ._installation import Installation
from .errors import AnotherInstallation, Busy, Problem, Unreachable, WaitTimeout
from .types import (ApprovalPage, Decided, ItemPage, ReplyTo, SentSignal, SignalToSend, Step, Submission, Submitted, SubmittedLine,
                    Task, TaskPage, TaskSummary, Why, Workflow, WorkflowStored)

__all__ = ["Client", "ENDED"]

ENDED = ("processed", "compensated", "error")
"""States in which a task does not go on by itself."""

WAIT_MAX_S = 30.0  # that one call is parked for; longer waits are several calls
ITEMS_MAX = 500  # that a page has
_NOT_GIVEN: Any = object()


def _encode(value: Any) -> bytes:
    return json.dumps(value, allow_nan=False, separators=(",", ":")).encode()


def _task(task_id: str, verb: str = "") -> str:
    return f"/v1/tasks/{quote(task_id, safe='')}" + (f"/{verb}" if verb else "")


class Client:
    """A client of an installation. Any number of threads may use it.

    server: an address, or those of several nodes with commas between: a call goes to the one that answered last, and on
        to the next. Default: $INTACT_SERVER. token: default: $INTACT_TOKEN. ca: as of Agent.
    installation: the id of the one that is meant. Default: $INTACT_INSTALLATION, then the one that answers first. A
        server of another one does nothing, and no other call is made to it.
    timeout: seconds for each call, repetitions among them. A call that may be repeated (reading, and what has a name or an
        id) is, while no server answers or they answer 503; any other only if it has certainly not begun.
    gather: calls of `submit` that threads make while another one is under way go as one request: those of a
        millisecond, or fewer if nothing is under way any more. Each has its own answer or exception. False: each is a
        request.

    Raises Problem if the server says no, Busy if it might say yes later, Unreachable if there is no answer,
    AnotherInstallation if the servers that can be reached belong to another installation, or to two.
    """

    def __init__(self, server: Optional[str] = None, *, token: Optional[str] = None, ca: Optional[str] = None,
                 timeout: float = 30.0, installation: Optional[str] = None, gather: bool = True) -> None:
        self._installation = Installation(installation)
        self._servers = _http.servers(server)
        self._tls = _http.trust(self._servers, ca)
        self._headers = _http.headers(token)
        self._timeout = timeout
        self._lock = threading.Lock()
        self._idle: List[Tuple[str, _http.Connection]] = []
        self._current = 0
        sender = Sender(self._submit_one, self._submit_lines, self._problem_of)
        self._gathering = Gathering(sender, timeout) if gather else None

    @property
    def installation(self) -> str:
        """The id of the one that it works with; "" if that is not known yet."""
        return self._installation.id

    def close(self) -> None:
        """Closes the connections that are kept open. The client may be used again."""
        with self._lock:
            idle, self._idle = self._idle, []
        for _, connection in idle:
            connection.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    # ---- tasks ----

    def submit(self, workflow: str, input: Any = _NOT_GIVEN, *,  # pylint: disable=redefined-builtin
               id: Optional[str] = None, version: Optional[int] = None,  # pylint: disable=redefined-builtin
               priority: Optional[int] = None, not_before: Optional[str] = None,
               reply_to: Union[None, str, ReplyTo] = None, tags: Optional[Mapping[str, str]] = None,
               paused: Optional[bool] = None, traceparent: Optional[str] = None,
               signals: Optional[List[SignalToSend]] = None) -> Submitted:
        """Submits a task; when this returns it is durable. Without `id` it is given one, so that nothing is submitted
        twice by repetition. The same content again under the same id gives the task that exists. `paused`: it waits until
        somebody resumes it. `traceparent` is the W3C trace context that it belongs to. `signals` are sent to it with it, or
        to the task that exists; the answer says what became of each."""
        told = {"workflow": workflow, "id": id or str(uuid.uuid4()), "version": version, "priority": priority,
                "not_before": not_before, "reply_to": reply_to, "tags": tags, "paused": paused,
                "traceparent": traceparent, "signals": signals}
        body = {name: value for name, value in told.items() if value is not None}
        if input is not _NOT_GIVEN:
            body["input"] = input
        line = _encode(body)
        return self._gathering.submit(workflow, line) if self._gathering else self._submit_one(line)

    def _submit_one(self, line: bytes, end: Optional[float] = None) -> Submitted:
        return cast(Submitted, self._json(self._answer("POST", "/v1/tasks", line, "application/json", 0.0, True, end=end)))

    def submit_many(self, submissions: Iterable[Submission]) -> List[SubmittedLine]:
        """Submits many, in calls of up to a thousand; what became of each, in their order. One that is refused has a
        `problem`, and is of no harm to the others. If this raises, submit the same again: so give them ids."""
        found: List[SubmittedLine] = []
        batch: List[bytes] = []
        for submission in submissions:
            line = _encode({**submission, "id": submission.get("id") or str(uuid.uuid4())})
            if batch and (len(batch) >= LINES_MAX or sum(map(len, batch)) + len(line) > LINES_SIZE_MAX):
                found += self._submit_after(batch, len(found))
                batch = []
            batch.append(line)
        return found + (self._submit_after(batch, len(found)) if batch else [])

    def _submit_after(self, lines: List[bytes], before: int) -> List[SubmittedLine]:
        found = self._submit_lines(lines)
        for line in found:
            line["line"] += before
        return found

    def _submit_lines(self, lines: List[bytes], end: Optional[float] = None) -> List[SubmittedLine]:
        answer = self._answer("POST", "/v1/tasks", b"\n".join(lines), "application/x-ndjson", 0.0, True, end=end)
        try:
            return [_http.read_json(line) for line in answer.body.splitlines() if line]
        except ValueError as e:
            raise Unreachable(f"the answer is not JSON: {e}") from e

    def get(self, task_id: str) -> Task:
        """The whole record of a task."""
        return cast(Task, self.call("GET", _task(task_id)))

    def wait(self, task_id: str, timeout: Optional[float] = None) -> Task:
        """The record once the task has ended (processed, compensated or error: look at `state`), through restarts of
        servers. WaitTimeout after `timeout` seconds, Unreachable if then nobody answers."""
        end = None if timeout is None else _clock.now_ms() + round(timeout * 1000)
        while True:
            left = WAIT_MAX_S if end is None else max(0.0, min(WAIT_MAX_S, (end - _clock.now_ms()) / 1000))
            path = f"{_task(task_id)}?wait={_clock.duration(left)}" if left > 0 else _task(task_id)
            try:
                task = cast(Task, self._json(self._answer("GET", path, None, "", left)))
            except (Busy, Unreachable):
                if end is not None and _clock.now_ms() >= end:
                    raise
                time.sleep(0.1)
                continue
            if task["state"] in ENDED:
                return task
            if end is not None and _clock.now_ms() >= end:
                raise WaitTimeout(task)

    def list(self, *, state: Union[None, str, Iterable[str]] = None, workflow: Optional[str] = None,
             tags: Optional[Mapping[str, str]] = None, submitted_after: Optional[str] = None,
             submitted_before: Optional[str] = None, children: Optional[bool] = None, parent: Optional[str] = None,
             root: Optional[str] = None, limit: Optional[int] = None, cursor: Optional[str] = None) -> TaskPage:
        """A page of tasks, newest first. `parent`, `root`: of these alone the children, or all descendants. `children`: whether
        tasks are listed that other tasks started; if it is not given, that depends on the other filters."""
        told = {"state": state if state is None or isinstance(state, str) else ",".join(state), "workflow": workflow,
                "submitted_after": submitted_after, "submitted_before": submitted_before,
                "children": None if children is None else str(children).lower(), "parent": parent, "root": root, "limit": limit,
                "cursor": cursor, **{f"tag.{name}": value for name, value in (tags or {}).items()}}
        query = urlencode({name: value for name, value in told.items() if value is not None})
        return cast(TaskPage, self.call("GET", "/v1/tasks" + (f"?{query}" if query else "")))

    def list_all(self, **filters: Any) -> Iterator[TaskSummary]:
        """All tasks that list(**filters) finds, page by page as they are taken."""
        while True:
            page = self.list(**filters)
            yield from page["tasks"]
            if not page["next"]:
                return
            filters["cursor"] = page["next"]

    def items(self, task_id: str, step: str, state: Optional[str] = None) -> Iterator[Step]:
        """The items of a step with `for_each`, by their numbers, page by page as they are taken; with `state` only
        those in it. Each is as it was when its page was read."""
        query = {"step": step, **({"state": state} if state else {}), "limit": str(ITEMS_MAX)}
        while True:
            page = cast(ItemPage, self.call("GET", _task(task_id, "items?") + urlencode(query)))
            yield from page["items"]
            if not page["next"]:
                return
            query["cursor"] = page["next"]

    def why(self, task_id: str) -> Why:
        """What the task waits for, and what would move it."""
        return cast(Why, self.call("GET", _task(task_id, "why")))

    def signal(self, task_id: str, name: str, data: Any = None, key: Optional[str] = None) -> SentSignal:
        """Sends a signal: the first step that waits for that name takes it, or it is kept. With the same `key` it is
        the same signal, so it may be sent again. ValueError if the key is empty."""
        if key is not None and not key:
            raise ValueError("the key is empty")
        path = _task(task_id, f"signals/{quote(name, safe='')}")
        more = {"Idempotency-Key": key or str(uuid.uuid4())}
        return cast(SentSignal, self._json(self._answer("POST", path, _encode(data), "application/json", 0.0, True, more)))

    # ---- deciding ----

    def approvals(self, task_id: Optional[str] = None, cursor: Optional[str] = None) -> ApprovalPage:
        """What waits for the decision of this token's person."""
        query = urlencode({k: v for k, v in (("task", task_id), ("cursor", cursor)) if v is not None})
        return cast(ApprovalPage, self.call("GET", "/v1/approvals" + (query and "?" + query)))

    def approve(self, task_id: str, step: str, comment: Optional[str] = None, asking: Optional[int] = None) -> Decided:
        """Agrees to what the step asks. `asking`: the number of the question that was read; if it was asked anew meanwhile,
        the decision is refused. Without it, it is whichever question is asked now, and the call is not repeated."""
        return self._decide(task_id, step, "approve", comment, asking)

    def reject(self, task_id: str, step: str, comment: str, asking: Optional[int] = None) -> Decided:
        """Rejects what the step asks, as `approve` agrees."""
        return self._decide(task_id, step, "reject", comment, asking)

    def _decide(self, task_id: str, step: str, what: str, comment: Optional[str], asking: Optional[int]) -> Decided:
        body = _encode({k: v for k, v in (("comment", comment), ("asking", asking)) if v is not None})
        path = f"/v1/approvals/{quote(task_id, safe='')}/{quote(step, safe='')}/{what}"
        return cast(Decided, self._json(self._answer("POST", path, body, "application/json", 0.0, asking is not None)))

    # ---- operating ----

    def cancel(self, task_id: str, reason: Optional[str] = None) -> Task:
        """Takes the task back, as who submitted it."""
        return cast(Task, self.call("POST", _task(task_id, "cancel"), {} if reason is None else {"reason": reason}))

    def retry(self, task_id: str, reason: str, step: Optional[str] = None) -> Task:
        """Goes on where the task stopped."""
        body = {"reason": reason} if step is None else {"reason": reason, "step": step}
        return cast(Task, self.call("POST", _task(task_id, "retry"), body))

    def skip(self, task_id: str, step: str, reason: str, output: Any = _NOT_GIVEN) -> Task:
        """Leaves a step out, with an output for those after it."""
        body = {"step": step, "reason": reason, **({} if output is _NOT_GIVEN else {"output": output})}
        return cast(Task, self.call("POST", _task(task_id, "skip"), body))

    def undo(self, task_id: str, reason: str) -> Task:
        """Takes the whole task back, as an operator."""
        return cast(Task, self.call("POST", _task(task_id, "undo"), {"reason": reason}))

    # ---- workflows ----

    def put_workflow(self, definition: Union[str, Mapping[str, Any]], name: Optional[str] = None) -> WorkflowStored:
        """Stores a definition, an object or its text in JSON or YAML, under the name that it says itself. `name`: refuse it
        if it is of another workflow."""
        if isinstance(definition, str):
            body = definition.encode()
            kind = "application/json" if definition.lstrip().startswith("{") else "application/yaml"
        else:
            body, kind = _encode(definition), "application/json"
        method, path = "POST", "/v1/workflows"
        if name is not None:
            method, path = "PUT", f"{path}/{quote(name, safe='')}"
        # It may be repeated: the same content is the same version.
        return cast(WorkflowStored, self._json(self._answer(method, path, body, kind, 0.0, True)))

    def get_workflow(self, name: str, version: Optional[int] = None) -> Workflow:
        """The newest version, or that one."""
        path = f"/v1/workflows/{quote(name, safe='')}" + ("" if version is None else f"/versions/{version}")
        return cast(Workflow, self.call("GET", path))

    # ---- attempts ----

    def complete(self, token: str, output: Any = None) -> str:
        """Answers an attempt from elsewhere, by its token: "accepted", "repeated" (it was answered before) or "late".
        Problem of the kind "unknown-attempt": there is none of this token. Takes no access token."""
        return self._end_attempt(token, {"output": output})

    def fail(self, token: str, code: str, message: str = "", retryable: bool = False,
             effect: Optional[str] = None) -> str:
        """The same with an error, as of StepError."""
        error = {"code": code, "message": message, "retryable": retryable}
        return self._end_attempt(token, {"error": {**error, **({"effect": effect} if effect else {})}})

    def _end_attempt(self, token: str, body: Mapping[str, Any]) -> str:
        return str(self.call("POST", f"/v1/attempts/{quote(token, safe='')}", body, is_repeatable=True)["status"])

    # ---- calls ----

    def call(self, method: str, path: str, body: Any = _NOT_GIVEN, *,
             is_repeatable: Optional[bool] = None) -> Dict[str, Any]:
        """Any other call: the JSON that it is answered with. `path` with its query, escaped."""
        text = None if body is _NOT_GIVEN else _encode(body)
        return self._json(self._answer(method, path, text, "application/json", 0.0, is_repeatable))

    @staticmethod
    def _json(answer: _http.Answer) -> Dict[str, Any]:
        try:
            return cast(Dict[str, Any], _http.read_json(answer.body)) if answer.body else {}
        except ValueError as e:
            raise Unreachable(f"the answer is not JSON: {e}") from e

    def _answer(self, method: str, path: str, body: Optional[bytes], kind: str, wait: float,
                is_repeatable: Optional[bool] = None, more: Optional[Dict[str, str]] = None,
                end: Optional[float] = None) -> _http.Answer:
        """2xx; anything else is raised. `end`: if it is not `timeout` seconds from now."""
        if is_repeatable is None:
            is_repeatable = method in ("GET", "PUT", "DELETE") or path == "/v1/validate"
        self._installation.meet(self._servers, lambda server: _http.Connection(server, self._tls, {}).whose())
        if end is None:
            end = time.monotonic() + self._timeout + wait
        failures = 0
        foreign: Optional[AnotherInstallation] = None
        while True:
            at = self._current % len(self._servers)
            failure: Union[Problem, Unreachable, AnotherInstallation]
            try:
                return self._once(self._servers[at], method, path, body, kind, end, wait, is_repeatable, more)
            except Busy as e:
                # 503 is said before anything is begun, but for "io".
                failure = e
                may = e.status in (429, 503) and e.kind != "io" or is_repeatable and e.status in (502, 503, 504)
            except Problem:
                raise
            except AnotherInstallation as e:
                failure = foreign = e
                may = True  # nothing was done there
            except _http.FAILURES as e:
                failure = Unreachable(f"{self._servers[at]}: {type(e).__name__}: {e}")
                may = is_repeatable or isinstance(e, ConnectionRefusedError)
                failure.__cause__ = e
            failures += 1
            self._current = at + 1
            if foreign is not None and (failures >= len(self._servers) or not may):
                raise foreign
            pause = 0.0 if failures < len(self._servers) else max(
                getattr(failure, "retry_after", 0.0), min(5.0, 0.1 * 2.0 ** min(failures, 10)) * random.uniform(0.5, 1))
            if not may or time.monotonic() + pause >= end:
                raise failure
            time.sleep(pause)

    def _once(self, server: str, method: str, path: str, body: Optional[bytes], kind: str, end: float,
              wait: float, is_repeatable: bool, more: Optional[Dict[str, str]]) -> _http.Answer:
        connection = self._take(server)
        # One that hangs must not take all the time, if there are others and it may be asked twice.
        left = end - time.monotonic()
        within = min(left, max(left / 2, wait + self._timeout / 2)) if is_repeatable and len(self._servers) > 1 else left
        answer = connection.call(method, path, body, within=max(0.001, within), content_type=kind,
                                 is_repeatable=is_repeatable, more=more)
        with self._lock:
            if len(self._idle) < 16:
                self._idle.append((server, connection))
                connection = None  # type: ignore[assignment]
        if connection is not None:
            connection.close()
        if 200 <= answer.status < 300:
            return answer
        raise self._problem(answer)

    def _take(self, server: str) -> _http.Connection:
        with self._lock:
            for i, (url, connection) in enumerate(self._idle):
                if url == server:
                    del self._idle[i]
                    return connection
        return _http.Connection(server, self._tls, self._headers, self._installation)

    def _problem(self, answer: _http.Answer) -> Problem:
        try:
            body = _http.read_json(answer.body)
        except ValueError:
            body = None
        if not isinstance(body, dict):
            body = {"title": answer.body[:300].decode("utf-8", "replace") or "no problem document"}
        return self._problem_of(answer.status, body, answer.retry_after())

    @staticmethod
    def _problem_of(status: int, body: Dict[str, Any], retry_after: float = 0.0) -> Problem:
        # A task that keeps too many signals does so until it goes on, or an operator drops some: nothing to wait for.
        is_busy = status >= 500 or (status == 429 and not str(body.get("type")).endswith(":too-many-signals"))
        kind = Busy if is_busy else Problem
        return kind(status, body, retry_after)
