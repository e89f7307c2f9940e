"""What an agent is asked to do."""

from __future__ import annotations

import json
import threading
import time
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Mapping, Optional, Tuple, Type, TypeVar, cast

from . import _clock
from .errors import StepError, TooLate
from .retry import Again, Retry

if TYPE_CHECKING:
    from ._node import Node
    from .types import Direction, Forward

__all__ = ["Request", "TestRequest"]

PROGRESS_MAX, MESSAGE_MAX = 2048, 256
BEAT_MS, AUTO_BEAT_MS = 250, 5000
T = TypeVar("T")


def encode(value: Any) -> str:
    """As it is sent: characters stand for themselves, since limits are of bytes. ValueError, TypeError or RecursionError if
    it is no JSON."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"), ensure_ascii=False)
    text.encode()  # half of a surrogate pair fails here, and not at the server
    return text


def _json_within(name: str, value: Any) -> Any:
    try:
        text = encode(value)
    except (TypeError, ValueError, RecursionError) as e:
        raise ValueError(f"{name} is not JSON: {e}") from e
    size = len(text.encode())
    if size > PROGRESS_MAX:
        raise ValueError(f"{name} has {size} bytes as JSON, at most {PROGRESS_MAX} are allowed")
    return json.loads(text)  # as it is now: the handler may go on changing its own


def _is_refusal(e: BaseException) -> bool:
    """An answer of 4xx, as urllib and requests raise it: they count it among OSErrors, but it would come again."""
    status = getattr(e, "code", None) or getattr(getattr(e, "response", None), "status_code", None)
    return isinstance(status, int) and 400 <= status < 500 and status not in (408, 425, 429)


class Request:
    """One attempt of a step, handed to a handler.

    token: names this attempt; who knows it may answer it from elsewhere (Client.complete). Keep it secret.
    task, step, attempt: what it is about, and which try. action, direction ("forward" or "undo"), input: what to do.
    idempotency_key: the same for all attempts of the step in this direction.
    forward: of an undo: {"idempotency_key", "input", "output", "attempts", "in_doubt"} of the step to be undone; else None.
    resume: what an earlier attempt left for the next one, or None.
    heartbeat_ms: beats have to be acknowledged at least so often; None: they need not.
    complete_by: the deadline as the server's clock has it. Go by time_left().
    traceparent: W3C trace context, to be passed on; None if there is none.
    fields: the whole request, as it came.
    tries: how many calls to the service this attempt has made; shown in the record. `call` counts by itself.

    All methods may be called by any thread. Agents make them; for tests of handlers there is `for_test`.
    """

    def __init__(self, fields: Mapping[str, Any], begin_ms: int, node: Node) -> None:
        self.fields: Dict[str, Any] = dict(fields)
        self.token, self.task, self.step = str(fields["token"]), str(fields["task"]), str(fields["step"])
        self.action, self.direction = str(fields["action"]), cast("Direction", str(fields["direction"]))
        self.attempt = int(fields["attempt"])
        self.idempotency_key = str(fields["idempotency_key"])
        self.input: Any = fields.get("input")
        self.forward: Optional[Forward] = fields.get("forward")
        self.resume: Any = fields.get("resume")
        beat_within = fields.get("heartbeat_ms")
        self.heartbeat_ms: Optional[int] = None if beat_within is None else int(beat_within)
        self.complete_by = str(fields.get("complete_by", ""))
        self.traceparent: Optional[str] = fields.get("traceparent")
        self.tries = 0
        self._lock = threading.Condition()
        self._deadline_ms = begin_ms + int(fields["time_left_ms"])
        self._acknowledged_ms = begin_ms  # when the latest beat that was taken had been sent
        self._is_over = self._is_stopped = self._is_elsewhere = False
        self._beat: Optional[Dict[str, Any]] = None  # to be sent
        self._beat_at_ms = begin_ms  # the latest was sent
        self._beats_by_itself = False
        self._node, self._beat_node = node, node
        self._is_working = True
        self._wake_beats: Callable[[], None] = lambda: None

    @staticmethod
    def for_test(input: Any = None, *,  # pylint: disable=redefined-builtin
                 forward: Optional[Mapping[str, Any]] = None, action: str = "test", task: str = "test",
                 step: str = "test", attempt: int = 1, idempotency_key: Optional[str] = None, resume: Any = None,
                 time_left: float = 60.0, heartbeat_ms: Optional[int] = None, traceparent: Optional[str] = None,
                 token: str = "test") -> TestRequest:
        """One that no server sent, to call a handler with in a unit test. With `forward`, of which any members may be left
        out, it asks to undo. Values become what an agent gets of them: JSON. ValueError if one is none.

            request = Request.for_test({"amount": 20})
            assert charge(request) == {"receipt": 17}
            refund(Request.for_test(forward={"input": {"amount": 20}, "output": {"receipt": 17}}))
        """
        key = f"{task}/{step}"
        fields: Dict[str, Any] = {
            "token": token, "task": task, "step": step, "action": action, "direction": "forward", "attempt": attempt,
            "idempotency_key": key, "input": input, "time_left_ms": round(time_left * 1000),
            "complete_by": _clock.rfc3339(time.time() + time_left)}
        if forward is not None:
            fields.update(direction="undo", idempotency_key=f"{key}/undo", forward={
                "idempotency_key": key, "input": None, "output": None, "attempts": 1, "in_doubt": False, **forward})
        given = {"idempotency_key": idempotency_key, "resume": resume, "heartbeat_ms": heartbeat_ms,
                 "traceparent": traceparent}
        fields.update((name, value) for name, value in given.items() if value is not None)
        try:
            return TestRequest(json.loads(encode(fields)))
        except (TypeError, ValueError, RecursionError) as e:
            raise ValueError(f"the request is not JSON: {e}") from e

    def __repr__(self) -> str:
        return f"<Request {self.idempotency_key} attempt {self.attempt}>"

    @property
    def forward_key(self) -> Optional[str]:
        """Of an undo: the idempotency key of the step that is to be undone."""
        return str(self.forward["idempotency_key"]) if self.forward else None

    # ---- time ----

    def _ends_at_ms(self) -> int:
        if self.heartbeat_ms is None:
            return self._deadline_ms
        return min(self._deadline_ms, self._acknowledged_ms + self.heartbeat_ms)

    def time_left(self) -> float:
        """Seconds until the deadline, 0 once it has passed: for the time limits of your own calls. Beats that are
        missing move it up."""
        with self._lock:
            return 0.0 if self._is_over else max(0, self._ends_at_ms() - _clock.now_ms()) / 1000

    @property
    def is_over(self) -> bool:
        """The deadline has passed, or no beat was acknowledged for heartbeat_ms: nothing may happen any more, and
        what is answered is not sent. Once true, always true."""
        with self._lock:
            self._is_over = self._is_over or _clock.now_ms() >= self._ends_at_ms()
            return self._is_over

    @property
    def is_stopped(self) -> bool:
        """The server asks to stop: the task is going to be undone."""
        return self._is_stopped

    @property
    def should_stop(self) -> bool:
        """One of the two. A long handler looks at it before each effect."""
        return self._is_stopped or self.is_over

    def check(self, effect: str = "none") -> None:
        """Call it before each effect, and now and then in between: TooLate if the request is over, StepError if the
        server asks to stop. `effect`: "unknown" if something may have happened already."""
        if self.is_over:
            raise TooLate(f"{self.idempotency_key}: the deadline has passed")
        if self._is_stopped:
            raise StepError("stopped", "the server asked to stop", True, effect)

    def pause(self, seconds: float) -> bool:
        """Sleeps, and wakes up if the handler should stop: then it is False."""
        end = _clock.now_ms() + round(seconds * 1000)
        while not self.should_stop:
            now = _clock.now_ms()
            if now >= end:
                return True
            with self._lock:
                # Not for long: the clock of waiting stands still while the machine sleeps, ours does not.
                if not self._is_stopped:
                    self._lock.wait(max(0.001, min(end, self._ends_at_ms(), now + 1000) - now) / 1000)
        return False

    # ---- calls to the service ----

    def call(self, function: Callable[[], T], retry: Optional[Retry] = None,
             on: Tuple[Type[BaseException], ...] = (OSError,)) -> T:
        """Calls a function until it succeeds, counting `tries`. It is called again if it raises one of `on` (by default not
        for urllib's or requests' 4xx but 408, 425, 429), Again, or a StepError that is retryable, for as long as `retry` and the deadline allow; then the last exception is raised,
        Again as a StepError. Nothing is called when the request is over or to be stopped. Use one idempotency key
        for all calls."""
        policy = retry or Retry()
        begin, calls = _clock.now_ms(), 0
        while True:
            self.check("unknown" if calls else "none")
            self.tries += 1
            calls += 1
            after = 0.0
            failure: BaseException
            try:
                return function()
            except Again as e:
                after = e.after
                failure = StepError("again", str(e), True, "unknown", e.after or None)
            except StepError as e:
                if not e.retryable:
                    raise
                after = e.retry_after if isinstance(e.retry_after, (int, float)) else 0.0
                failure = e
            except on as e:
                if on == (OSError,) and _is_refusal(e):
                    raise
                failure = e
            left = self.time_left()
            if policy.budget is not None:
                left = min(left, policy.budget - (_clock.now_ms() - begin) / 1000)
            pause = policy.wait(calls, left, after)
            if pause is None:
                raise failure
            self.pause(pause)

    # ---- signs of life ----

    def heartbeat(self, progress: Any = None, message: Optional[str] = None, resume: Any = None) -> None:
        """Tells the server that this is being worked on, and how far it is. Returns at once: the latest is sent, at
        most a few times a second; the answer to it may ask to stop. `progress` and `resume` are any JSON of at most
        2048 bytes, of `message` 256 bytes are sent. `resume` is handed to the next attempt if this one fails or times
        out. What is None stays as it was. ValueError: too long, or no JSON."""
        beat: Dict[str, Any] = {}
        if progress is not None:
            beat["progress"] = _json_within("progress", progress)
        if message is not None:
            beat["message"] = message.encode("utf-8", "replace")[:MESSAGE_MAX].decode("utf-8", "ignore")
        if resume is not None:
            beat["resume"] = _json_within("resume", resume)
        with self._lock:
            if not self._is_working:
                return
            self._beat = {**(self._beat or {}), **beat}
        self._wake_beats()

    def elsewhere(self) -> None:
        """This handler is done, and the result will come from elsewhere, by the token (Client.complete): a webhook, a
        person. What the handler returns is of no account then; what it raises is."""
        self._is_elsewhere = True

    # ---- the agent's side ----

    def _beat_every_ms(self) -> int:
        return BEAT_MS if self.heartbeat_ms is None else max(10, min(BEAT_MS, self.heartbeat_ms // 4))

    def _beat_is_due_ms(self) -> Optional[int]:
        """When the next beat is to go; None: there is none."""
        with self._lock:
            if not self._is_working or self._is_stopped and self.heartbeat_ms is None:
                return None
            if self._beat is not None:
                return self._beat_at_ms + self._beat_every_ms()
            if self._beats_by_itself:
                every = AUTO_BEAT_MS if self.heartbeat_ms is None else min(AUTO_BEAT_MS, self.heartbeat_ms // 3)
                return self._beat_at_ms + every
            return None

    def _take_beat(self, now: int) -> Dict[str, Any]:
        with self._lock:
            beat, self._beat = self._beat or {}, None
            self._beat_at_ms = now
            return beat

    def _beat_was_taken(self, sent_ms: int) -> None:
        with self._lock:
            self._acknowledged_ms = max(self._acknowledged_ms, sent_ms)

    def _beat_was_lost(self, beat: Dict[str, Any]) -> None:
        """It goes again, unless there is a newer one."""
        with self._lock:
            if self._is_working:
                self._beat = {**beat, **(self._beat or {})}

    def _stop(self) -> None:
        with self._lock:
            self._is_stopped = True
            self._lock.notify_all()


class TestRequest(Request):
    """A request that no server sent, as Request.for_test makes it, and what its handler told.

    beats: the heartbeats, as the server would get them. All are acknowledged.
    """

    __test__ = False  # pytest takes it for tests otherwise

    def __init__(self, fields: Mapping[str, Any]) -> None:
        super().__init__(fields, _clock.now_ms(), cast("Node", None))  # no agent has it
        self.beats: List[Dict[str, Any]] = []
        self._wake_beats = self._acknowledge

    def _acknowledge(self) -> None:
        now = _clock.now_ms()
        self.beats.append(self._take_beat(now))
        self._beat_was_taken(now)

    @property
    def is_elsewhere(self) -> bool:
        """The handler said that the result will come from elsewhere."""
        return self._is_elsewhere

    def stop(self) -> None:
        """As if the server asked to stop: the task is going to be undone."""
        self._stop()

    def expire(self) -> None:
        """As if the deadline had passed."""
        with self._lock:
            self._is_over = True
            self._lock.notify_all()


def read_all(answer: Mapping[str, Any], sent_ms: int, node: Node) -> List[Request]:
    """The requests of an answer. Their time counts from when we sent the call and not from when the answer came: too
    early rather than too late. KeyError, TypeError or ValueError if it is none."""
    waited = max(0, min(int(answer.get("waited_ms", 0)), _clock.now_ms() - sent_ms))
    return [Request(fields, sent_ms + waited, node) for fields in answer.get("requests", [])]
