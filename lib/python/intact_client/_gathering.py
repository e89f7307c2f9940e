"""Submissions that threads make while another one is under way go as the lines of one request."""

from __future__ import annotations

import random
import threading
import time
from typing import Any, Callable, Dict, List, NamedTuple, Optional, cast

from .errors import Busy, Problem, Unreachable
from .types import Submitted, SubmittedLine

LINES_MAX, LINES_SIZE_MAX = 1000, 2 * 1024 * 1024

GATHER_S = 0.001  # at most, while another request is under way
PAUSE_MAX_S = 5.0
SLACK_S = 1.0


class Sender(NamedTuple):
    """How submissions are sent: each fails as the client's calls do, and is tried again until `end` (monotonic)."""

    one: Callable[[bytes, float], Submitted]
    many: Callable[[List[bytes], float], List[SubmittedLine]]
    problem_of: Callable[[int, Any], Problem]


class _Waiting:
    """A submission without an answer: its thread sends it, or waits for the thread that does."""

    def __init__(self, line: bytes, end: float) -> None:
        self.line, self.end = line, end
        self.submitted: Optional[Submitted] = None
        self.answer: Optional[SubmittedLine] = None
        self.failure: Optional[Exception] = None  # none of these: its own thread sends it, apart from the others
        self._is_over = threading.Lock()
        self._is_over.acquire()  # pylint: disable=consider-using-with # a signal, cheaper than an Event

    def over(self) -> None:
        self._is_over.release()

    def wait(self) -> None:
        # Whoever sends it is told in time, too; unless that thread was interrupted before it could begin.
        left = max(0.0, self.end + SLACK_S - time.monotonic())
        if not self._is_over.acquire(timeout=left):  # pylint: disable=consider-using-with
            self.failure = Unreachable("no answer in time")


class _Batch:
    """The thread of the first one sends it."""

    def __init__(self, first: _Waiting) -> None:
        self.waiting = [first]
        self.goes = threading.Event()  # without waiting for more
        self._size = len(first.line)

    def takes(self, one: _Waiting) -> bool:
        return len(self.waiting) < LINES_MAX and self._size + len(one.line) <= LINES_SIZE_MAX

    def add(self, one: _Waiting) -> None:
        self.waiting.append(one)
        self._size += len(one.line)


class Gathering:
    """For any number of threads. One that submits while no request is under way sends at once, and alone. The others
    are gathered for a millisecond, or until nothing is under way; each has an answer or an error of its own."""

    def __init__(self, sender: Sender, timeout: float) -> None:
        self._sender, self._timeout = sender, timeout
        self._lock = threading.Lock()
        self._under_way = 0
        self._batch: Optional[_Batch] = None  # to which more may be added

    def submit(self, workflow: str, line: bytes) -> Submitted:
        """`line`: JSON with an id, so it may be sent again."""
        end = time.monotonic() + self._timeout
        failures = 0
        while True:
            try:
                return self._submit_once(workflow, _Waiting(line, end))
            except (Busy, Unreachable) as e:
                # Others have used up their time, or the server has none: this one may have some left.
                may = isinstance(e, Unreachable) or e.status in (429, 502, 503, 504)
                failures += 1
                pause = min(PAUSE_MAX_S, 0.1 * 2.0 ** min(failures, 10)) * random.uniform(0.5, 1)
                if not may or time.monotonic() + pause >= end:
                    raise
            time.sleep(pause)

    def _submit_once(self, workflow: str, one: _Waiting) -> Submitted:
        full: Optional[_Batch] = None
        mine: Optional[_Batch] = None
        with self._lock:
            is_alone = self._under_way == 0 and self._batch is None
            if is_alone:
                self._under_way += 1
            elif self._batch is not None and self._batch.takes(one):
                self._batch.add(one)
            else:
                full, self._batch = self._batch, _Batch(one)
                mine = self._batch
        if full is not None:
            full.goes.set()
        if is_alone:
            return self._send_alone(one)
        if mine is not None:
            self._lead(mine)
        else:
            one.wait()
        return self._answer_of(workflow, one)

    def _answer_of(self, workflow: str, one: _Waiting) -> Submitted:
        if one.failure is not None:
            raise one.failure
        if one.submitted is not None:
            return one.submitted
        if one.answer is None:
            return self._sender.one(one.line, one.end)
        answer = cast(Dict[str, Any], one.answer)
        if answer.get("problem"):
            raise self._sender.problem_of(int(answer["status"]), answer["problem"])
        if "version" not in answer:  # the node is older than this library: as a repetition
            return self._sender.one(one.line, one.end)
        found = {name: value for name, value in answer.items() if name not in ("status", "line")}
        return cast(Submitted, {**found, "workflow": workflow})

    # ---- requests ----

    def _send_alone(self, one: _Waiting) -> Submitted:
        try:
            return self._sender.one(one.line, one.end)
        finally:
            self._ended()

    def _lead(self, batch: _Batch) -> None:
        try:
            batch.goes.wait(GATHER_S)
            with self._lock:
                self._close(batch)
                self._under_way += 1
            try:
                self._send(batch.waiting)
            finally:
                self._ended()
        finally:
            with self._lock:
                self._close(batch)  # this thread was interrupted before: the others go on by themselves
            for one in batch.waiting:
                one.over()

    def _close(self, batch: _Batch) -> None:
        if self._batch is batch:
            self._batch = None

    def _ended(self) -> None:
        with self._lock:
            self._under_way -= 1
            batch = self._batch if self._under_way == 0 else None
        if batch is not None:
            batch.goes.set()

    def _send(self, waiting: List[_Waiting]) -> None:
        try:
            if len(waiting) == 1:
                waiting[0].submitted = self._sender.one(waiting[0].line, waiting[0].end)
                return
            answers = self._sender.many([one.line for one in waiting], min(one.end for one in waiting))
            if len(answers) != len(waiting):
                raise Unreachable(f"{len(answers)} lines answer {len(waiting)}")
        except Exception as e:  # pylint: disable=broad-except # each raises it in its own thread
            if len(waiting) == 1 or not (isinstance(e, Problem) and e.status == 413):  # together: one alone may fit
                for one in waiting:
                    one.failure = _copied(e)
            return
        for one, answer in zip(waiting, answers):
            one.answer = answer


def _copied(e: Exception) -> Exception:
    """An exception gets the traceback of each thread that raises it, so each has its own."""
    found = type(e).__new__(type(e))
    found.__dict__.update(e.__dict__)
    found.args = e.args
    found.__cause__ = e
    return found
