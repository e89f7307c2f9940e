"""Agents: fetch requests, run a handler for each on a thread of its own, hand in the answers until they are settled."""

from __future__ import annotations

import collections
import heapq
import json
import logging
import os
import queue
import signal
import socket
import threading
from typing import Any, Callable, Deque, Dict, List, Mapping, NamedTuple, Optional, Tuple

from . import _clock, _http
from ._discovery import Discovery
from ._installation import Installation
from ._node import CallFailed, Node, read_object
from .errors import AnotherInstallation, StepError, TooLate, readable
from .request import Request, encode, read_all

__all__ = ["Agent", "Handler"]

Handler = Callable[[Request], Any]
"""Returns the output, any JSON; raises StepError to answer with an error."""

PLACES_MAX, INSTANCE_MAX = 1000, 150
HOLDING_MAX = 1000  # that the server reads
CO_COROUTINE = 0x80  # as of the module inspect, which takes its time to load
CALL_WITHIN_S = 20.0
HAND_IN_WITHIN_S = 2.0  # if there is another node
BODY_MAX = 3 * 1024 * 1024  # of results in one call
BEATS_MAX = 1024
IDLE_MS = 10  # a call that was silent for so long is that of an idle node
EXCESS_MS, HOME_MS = 20, 2000
POLL_MS = 1000  # without a free place: asks what is to be stopped
REFRESH_MS, LOST_MS = 8000, 500
ASK_WITHIN_S = 5.0
KEPT_MS = 2000  # what is over is still held for so long, or it would be sent again


class _Handling(NamedTuple):
    run: Handler
    auto_heartbeat: bool


class _Result:
    """An answer that is not settled."""

    def __init__(self, request: Request, text: str) -> None:
        self.request, self.text = request, text
        self.size = len(text.encode())
        self.is_in_flight = self.is_replaced = False


def _told(e: StepError) -> Dict[str, Any]:
    told: Dict[str, Any] = getattr(e, "told", None) or StepError(type(e).__name__, e, True).told
    return told


class Agent:
    """An agent, as the server knows it by its name.

        agent = Agent("payment", instance="payment-1", places=8)

        @agent.action("charge")
        def charge(request):
            return {"receipt": 17}

        @agent.undo("refund")
        def refund(request):
            return None

        agent.run()

    name: of the agent. instance: unique among its processes, and the same after a restart, so that the server knows
        what was lost. Default: HOST-PID (not the same).
    places: requests running at a time, each on a thread of its own, 1 to 1000. Above 1 handlers must be thread-safe.
    server: the address of a node, or several with commas between. Default: $INTACT_SERVER.
    token: with the role agent:NAME. Default: $INTACT_TOKEN.
    ca: file of certificates (PEM) that an https:// server's must be signed by. Default: $INTACT_CA, then the system's.
    installation: the id of the one that is meant. Default: $INTACT_INSTALLATION, then the one that answers first. Servers of
        another one get neither calls for work nor results. If none is stated, and the addresses given belong to two when
        it starts, it ends: run() and join() raise AnotherInstallation.
    discovery: ask for the other nodes, and work for all of them. False: only for the addresses given.
    wait: seconds that a call for work may be parked. stop_wait: seconds that a stopping agent tries to deliver its
        last answers if no server takes them.
    logger: default: logging.getLogger("intact_client").

    ValueError if a setting makes no sense. While the token is refused, answers are kept and tried again, slowly.
    """

    def __init__(self, name: str, *, instance: Optional[str] = None, places: int = 1, server: Optional[str] = None,
                 token: Optional[str] = None, ca: Optional[str] = None, discovery: bool = True, wait: float = 30.0,
                 stop_wait: float = 10.0, logger: Optional[logging.Logger] = None,
                 installation: Optional[str] = None) -> None:
        if not name:
            raise ValueError("an agent needs a name")
        if not 1 <= places <= PLACES_MAX:
            raise ValueError(f"places is {places}, expected 1 to {PLACES_MAX}")
        if not 0 < wait <= 300:
            raise ValueError(f"wait is {wait} seconds, expected at most 300")
        self.name, self.places = name, places
        self.instance = instance or f"{socket.gethostname()[:100]}-{os.getpid()}"
        if len(self.instance.encode()) > INSTANCE_MAX:
            raise ValueError(f"instance is longer than {INSTANCE_MAX} bytes")
        self._wait, self._stop_wait = wait, stop_wait
        self._log = logger or logging.getLogger("intact_client")
        seeds = _http.servers(server)
        self._tls = _http.trust(seeds, ca)
        self._headers = _http.headers(token)
        self._discovery = Discovery(seeds) if discovery else None
        self._seeds = seeds
        self._installation = Installation(installation)
        self._failure: Optional[AnotherInstallation] = None  # it ended for that
        self._handlers: Dict[Tuple[str, str], _Handling] = {}
        self._changed = threading.Condition()  # guards all that follows
        self._queued = threading.Condition(self._changed._lock)  # type: ignore[attr-defined] # only workers wait for it
        self._held: Dict[str, Request] = {}  # in work, not settled, or over a moment ago
        self._results: Dict[str, _Result] = {}
        self._queue: Deque[Request] = collections.deque()
        self._working = 0  # requests that have a place, or wait for a thread
        self._workers = self._idle_workers = 0
        self._nodes: Dict[str, Node] = {}
        self._leaving: List[Node] = []
        self._is_started = self._is_stopping = self._is_ended = False
        self._refresh_at_ms = 0
        self._over: List[Tuple[int, str]] = []  # when to forget what was given up: a heap
        self._told_ms: Dict[str, int] = {}  # when to tell again of what ails an address
        self._progress_ms = 0  # the latest result was settled, or came to be
        self._manager: Optional[threading.Thread] = None

    # ---- setting up ----

    def action(self, name: str, *, auto_heartbeat: bool = False) -> Callable[[Handler], Handler]:
        """Decorator: the function takes effect when this action is asked for.

        auto_heartbeat: the agent beats for it while the function runs. That shows only that the process lives: a
        function that hangs is then not found before its deadline.
        """
        return self._on(name, "forward", auto_heartbeat)

    def undo(self, name: str, *, auto_heartbeat: bool = False) -> Callable[[Handler], Handler]:
        """Decorator: the function undoes effects. It has to succeed if there is nothing to undo."""
        return self._on(name, "undo", auto_heartbeat)

    def copy(self, server: str, *, token: Optional[str] = "", discovery: bool = False) -> Agent:
        """An agent with the same name, places and handlers, not started, at another server: for tests."""
        agent = Agent(self.name, places=self.places, server=server, token=token, discovery=discovery, wait=self._wait,
                      stop_wait=self._stop_wait, logger=self._log, installation="any")
        agent._handlers = dict(self._handlers)
        return agent

    def _on(self, name: str, direction: str, auto_heartbeat: bool) -> Callable[[Handler], Handler]:
        if (name, direction) in self._handlers:
            raise ValueError(f"a handler for {name!r} ({direction}) exists already")

        def decorate(handler: Handler) -> Handler:
            if getattr(getattr(handler, "__code__", None), "co_flags", 0) & CO_COROUTINE:
                raise TypeError(f"the handler for {name!r} is a coroutine function: handlers run on threads of their own")
            self._handlers[name, direction] = _Handling(handler, auto_heartbeat)
            return handler

        return decorate

    # ---- running ----

    def run(self) -> bool:
        """Runs until SIGTERM, SIGINT or stop(): then it fetches no more, waits for what is in work, hands in all
        answers and returns. True: everything was delivered. On the main thread, for its signals; a second signal ends
        the process as if there were no agent."""
        before: List[Tuple[int, Any]] = []

        def on_signal(number: int, _: Any) -> None:
            for n, handler in before:
                signal.signal(n, handler)
            signalled.put(None)

        # An event would not do: its lock may be held by what the signal came upon.
        signalled: queue.SimpleQueue[None] = queue.SimpleQueue()
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT):
                before.append((number, signal.signal(number, on_signal)))
        try:
            self.start()
            while not self._is_stopping:
                try:
                    signalled.get(timeout=0.2)
                    break
                except queue.Empty:
                    pass
            self.stop()
            return self.join()
        finally:
            for n, handler in before:
                signal.signal(n, handler)

    def start(self) -> None:
        """Starts it on threads of its own, and returns; once."""
        with self._changed:
            if self._is_started:
                raise RuntimeError("an agent can be started only once")
            if not self._handlers:
                raise ValueError("an agent needs a handler: @agent.action(...)")
            self._is_started = True
            self._progress_ms = _clock.now_ms()
            self._manager = self._thread(self._manage, "manage")

    def stop(self) -> None:
        """Asks it to end; any thread, at once, as often as you like."""
        with self._changed:
            if not self._is_stopping:
                self._log.info("%s: stopping, %d requests running", self.name, self._working)
                self._progress_ms = _clock.now_ms()
            self._is_stopping = True
            for node in self._nodes.values():
                node.retry_at_ms = min(node.retry_at_ms, _clock.now_ms() + 200)
            self._changed.notify_all()

    def join(self, timeout: Optional[float] = None) -> bool:
        """Waits until it has ended, or for `timeout` seconds. True: it has ended, and everything was delivered."""
        manager = self._manager
        if manager is None:
            return True
        end = None if timeout is None else _clock.now_ms() + round(timeout * 1000)
        while manager.is_alive():
            if end is not None and _clock.now_ms() >= end:
                return False
            manager.join(0.2)  # so that signals are heard
        if self._failure is not None:
            raise self._failure
        with self._changed:
            return not self._results and not self._working

    def __enter__(self) -> Agent:
        self.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self.stop()
        self.join()

    def _thread(self, run: Callable[..., None], what: str, *args: Any) -> threading.Thread:
        thread = threading.Thread(target=run, args=args, daemon=True, name=f"intact-{self.name}-{what}")
        thread.start()
        return thread

    # ---- nodes ----

    def _manage(self) -> None:
        """Keeps the nodes, forgets what is over, and ends it all."""
        self._meet()
        while True:
            with self._changed:
                self._forget_over()
                self._forget_left()
                self._hire()
                if self._is_stopping and self._may_end():
                    self._end()
                    return
                now = _clock.now_ms()
                ask = self._discovery is not None and now >= self._refresh_at_ms and not self._is_stopping
                if ask:
                    self._refresh_at_ms = now + REFRESH_MS
                else:
                    self._changed.wait(0.05 if self._is_stopping else max(0.01, min(0.5, (self._refresh_at_ms - now) / 1000)))
            if ask:
                self._refresh()

    def _meet(self) -> None:
        """No call for work before all servers have said where they belong."""
        try:
            self._installation.meet(self._seeds, lambda url: _http.Connection(url, self._tls, {}).whose())
        except AnotherInstallation as e:
            self._log.error("%s: %s", self.name, e)
            with self._changed:
                self._failure = e
                self._is_stopping = True
        with self._changed:
            if self._discovery is None and not self._is_stopping:
                self._use(self._seeds)

    def _may_end(self) -> bool:
        if self._working == 0 and not self._results:
            return all(n.parked_max == 0 or n.failures > 0 or self._home_is_late(n) for n in self._all_nodes())
        if self._working > 0 and any(not r.is_over for r in self._held.values() if r._is_working):
            return False
        return _clock.now_ms() - self._progress_ms > self._stop_wait * 1000

    @staticmethod
    def _home_is_late(node: Node) -> bool:
        return node.called_home_ms > 0 and _clock.now_ms() - node.called_home_ms > HOME_MS

    def _end(self) -> None:
        self._is_ended = True
        lost = len(self._results) + self._working
        if lost:
            self._log.error("%s: stopped, %d results could not be delivered", self.name, lost)
        else:
            self._log.info("%s: stopped, all results were delivered", self.name)
        for node in self._all_nodes():
            node.break_off()
        self._changed.notify_all()
        self._queued.notify_all()

    def _all_nodes(self) -> List[Node]:
        return list(self._nodes.values()) + self._leaving

    def _refresh(self) -> None:
        """Asks who is there. Only this thread uses the discovery."""
        assert self._discovery is not None
        asked: List[str] = []
        for _ in range(2):  # what the seeds tell of is asked for itself
            for url in self._discovery.to_ask():
                if url not in asked and not self._is_stopping:
                    asked.append(url)
                    self._ask(url)
        wanted = self._discovery.wanted()
        with self._changed:
            if wanted and not self._is_stopping:
                self._use(wanted)
            if not self._nodes:
                self._refresh_at_ms = min(self._refresh_at_ms, _clock.now_ms() + LOST_MS)

    def _ask(self, url: str) -> None:
        assert self._discovery is not None
        connection = _http.Connection(url, self._tls, self._headers, self._installation)
        try:
            answer = connection.call("GET", "/v1/nodes", within=ASK_WITHIN_S)
        except AnotherInstallation as e:
            self._tell_seldom(url, str(e), "installation")
            self._discovery.lose(url)
            return
        except _http.FAILURES as e:
            with self._changed:
                known = self._nodes.get(url)
            if known is None and url in self._seeds:
                self._tell_seldom(url, f"{type(e).__name__}: {e}")
            self._discovery.lose(url)
            return
        finally:
            connection.close()
        try:
            found: Optional[Dict[str, Any]] = read_object(answer)
        except CallFailed as e:
            found = None
            if e.is_about_token:
                self._tell_seldom(url, str(e))
        was_stranger = url in self._discovery.strangers
        self._discovery.hear(url, found)
        if url in self._discovery.strangers and not was_stranger:
            self._log.warning("%s: %s is ignored, because %r answers there", self.name, url,
                              self._discovery.strangers[url])

    def _tell_seldom(self, url: str, story: str, kind: str = "") -> None:
        """Each kind of story of an address once a minute."""
        now = _clock.now_ms()
        if now >= self._told_ms.get(url + kind, 0):
            self._told_ms[url + kind] = now + 60000
            self._log.error("%s: %s: %s", self.name, url, story)

    def _use(self, urls: List[str]) -> None:
        for url in urls:
            if url not in self._nodes:
                node = Node(url, self.name, self._tls, self._headers, self._installation)
                self._nodes[url] = node
                node.running = 3
                node.threads = [self._thread(self._fetch, "fetch", node), self._thread(self._deliver, "deliver", node),
                                self._thread(self._send_beats, "beat", node)]
                self._log.info("%s: connected to %s as %s", self.name, url, self.instance)
        for url in [u for u in self._nodes if u not in urls]:
            node = self._nodes.pop(url)
            node.is_used = False
            self._leaving.append(node)
            self._log.info("%s: leaves %s", self.name, url)
        self._changed.notify_all()

    def _forget_left(self) -> None:
        for node in [n for n in self._leaving if n.running == 0]:
            self._leaving.remove(node)
            node.break_off()

    def _others(self, node: Node) -> List[Node]:
        return [n for n in self._nodes.values() if n is not node and n.failures == 0]

    def _failed(self, node: Node, what: str, e: CallFailed) -> None:
        """Under the lock."""
        if self._is_ended:
            return
        if node.failed(e):
            log = self._log.error if 400 <= e.status < 500 else self._log.warning
            hint = " (set INTACT_TOKEN to a valid token)" if e.status == 401 else (
                f" (the token needs the role agent:{self.name})" if e.status == 403 else "")
            log("%s: %s: %s: %s%s", self.name, node.url, what, e, hint)
        if self._is_stopping:  # has little time, and tries often
            node.retry_at_ms = min(node.retry_at_ms, _clock.now_ms() + 200)
        if e.status == 0:
            self._refresh_at_ms = min(self._refresh_at_ms, _clock.now_ms() + LOST_MS)
        self._changed.notify_all()

    def _recovered(self, node: Node) -> None:
        if node.recovered():
            self._log.info("%s: %s answers again", self.name, node.url)
            self._changed.notify_all()

    def _thread_ends(self, node: Node) -> None:
        node.running -= 1
        self._changed.notify_all()

    # ---- fetching ----

    def _free(self) -> int:
        unsettled = self._working + len(self._results)
        return 0 if self._is_stopping else max(0, min(self.places - self._working, HOLDING_MAX - unsettled))

    def _holding(self) -> List[str]:
        """What the server is told of: if it is too much, rather what may still be answered."""
        if len(self._held) <= HOLDING_MAX:
            return list(self._held)
        return sorted(self._held, key=lambda t: t not in self._results and not self._held[t]._is_working)[:HOLDING_MAX]

    def _is_over_for(self, node: Node) -> bool:
        """Nothing more is to be fetched there."""
        return self._is_ended or not node.is_used or (self._is_stopping and self._working == 0)

    def _allot(self, node: Node) -> Optional[int]:
        """How much to ask for, when it is time to; None: nothing any more. Under the lock."""
        poll_at = _clock.now_ms() + POLL_MS
        node.is_waiting = True
        try:
            while not self._is_over_for(node):
                now = _clock.now_ms()
                wake = now + POLL_MS
                if now < node.retry_at_ms:
                    wake = node.retry_at_ms
                else:
                    busy = [n for n in self._nodes.values() if n.parked_max and now < n.parked_at_ms + IDLE_MS]
                    spare = self._free() - sum(n.parked_max for n in busy)
                    if spare > 0:
                        waiting = [n for n in self._nodes.values() if n.is_waiting and now >= n.retry_at_ms]
                        return -(-spare // max(1, len(waiting)))
                    if self._working > 0 and now >= poll_at:
                        return 0
                    wake = min([poll_at] + [n.parked_at_ms + IDLE_MS for n in busy])
                self._changed.wait(max(0.001, min(1000, wake - now) / 1000))
            return None
        finally:
            node.is_waiting = False

    def _fetch(self, node: Node) -> None:
        idle = 0
        while True:
            with self._changed:
                most = self._allot(node)
                if most is None:
                    self._thread_ends(node)
                    return
                body = encode({"instance": self.instance, "max": most, "holding": self._holding(),
                                **({"wait": _clock.duration(self._wait)} if most else {})}).encode()
                sent_ms = node.parked_at_ms = _clock.now_ms()
                node.parked_max, node.called_home_ms, node.excess_since_ms = most, 0, 0
            failure: Optional[CallFailed] = None
            requests: List[Request] = []
            try:
                answer = node.call(node.fetching, "work", body, (self._wait if most else 0) + CALL_WITHIN_S)
                requests = self._read(answer, sent_ms, node)
            except CallFailed as e:
                failure = e
            with self._changed:
                node.parked_max = 0
                if failure is not None:
                    self._failed(node, "work", failure)
                    continue
                self._recovered(node)
                self._heed_stops(answer)
                self._take(requests)
                idle = idle + 1 if (most and not requests and not node.called_home_ms and not answer.get("stop")
                                    and _clock.now_ms() - sent_ms < self._wait * 500) else 0
                if idle > 2:  # who answers at once with nothing is not called in a circle
                    node.retry_at_ms = _clock.now_ms() + min(1000, 10 * 2 ** min(idle, 10))
                self._changed.notify_all()

    def _read(self, answer: Dict[str, Any], sent_ms: int, node: Node) -> List[Request]:
        try:
            return read_all(answer, sent_ms, node)
        except (KeyError, TypeError, ValueError) as e:
            raise CallFailed(200, f"the answer has invalid requests: {e!r}") from e

    def _take(self, requests: List[Request]) -> None:
        for request in requests:
            if request.token in self._held:
                continue  # sent again: it is in work, or its answer on the way
            self._held[request.token] = request
            handling = self._handlers.get((request.action, request.direction))
            request._beats_by_itself = handling is not None and handling.auto_heartbeat
            request._wake_beats = self._wake
            self._working += 1
            self._queue.append(request)
        self._hire()
        self._queued.notify(len(requests))

    def _hire(self) -> None:
        """Threads for what is in the queue."""
        while self._idle_workers < len(self._queue) and self._workers < self.places:
            try:
                self._thread(self._work, "work")
            except RuntimeError as e:  # the system has no more; those that there are do it, one after the other
                self._tell_seldom("threads", f"{self._workers} at work: {e}")
                return
            self._workers += 1
            self._idle_workers += 1  # it will look into the queue first

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def _heed_stops(self, answer: Mapping[str, Any]) -> None:
        stops = answer.get("stop")
        for token in stops if isinstance(stops, list) else []:
            request = self._held.get(token) if isinstance(token, str) else None
            if request is not None:
                request._stop()

    # ---- work ----

    def _work(self) -> None:
        while True:
            with self._changed:
                while not self._queue:
                    if self._is_ended:
                        return
                    self._queued.wait()
                self._idle_workers -= 1
                request = self._queue.popleft()
            text = self._handle(request)
            with self._changed:
                with request._lock:
                    request._is_working = False
                self._working -= 1
                self._idle_workers += 1
                if text is not None:
                    self._results[request.token] = _Result(request, text)
                    self._progress_ms = _clock.now_ms()
                else:
                    heapq.heappush(self._over, (max(_clock.now_ms(), request._deadline_ms) + KEPT_MS, request.token))
                self._changed.notify_all()

    def _handle(self, request: Request) -> Optional[str]:
        """The result as it is handed in; None: nothing is to be said."""
        result: Dict[str, Any] = {"token": request.token}
        try:
            text = self._ask_handler(request, result)
        except TooLate:
            return None
        except StepError as e:
            result["error"] = _told(e)
            text = self._encode_error(request, result)
        except BaseException as e:  # pylint: disable=broad-except # a mistake in a handler: it may have taken effect
            self._tell_failure(request)
            text = self._encode_error(request, {**result, "error": {
                "code": "exception", "message": f"{type(e).__name__}: {readable(e, 1000)}"}})
        return None if request.is_over else text

    def _ask_handler(self, request: Request, result: Dict[str, Any]) -> str:
        if request.is_over:
            raise TooLate
        handling = self._handlers.get((request.action, request.direction))
        if handling is None:
            what = "undo by" if request.direction == "undo" else "action"
            raise StepError("no-such-action", f"this agent has no {what} {request.action}", False, "none")
        output = handling.run(request)
        if request._is_elsewhere:
            return encode({**result, "elsewhere": True, **self._tries(request)})
        try:
            return encode({**result, "output": output, **self._tries(request)})
        except (TypeError, ValueError, RecursionError) as e:
            raise StepError("bad_output", f"the handler's output is not JSON: {readable(e)}", False, "unknown") from e

    def _tell_failure(self, request: Request) -> None:
        try:
            self._log.exception("%s: the handler failed", request.idempotency_key)
        except Exception:  # pylint: disable=broad-except # exceptions may be such that they cannot be shown
            self._log.error("%s: the handler failed", request.idempotency_key)

    @staticmethod
    def _tries(request: Request) -> Dict[str, int]:
        return {"tries": min(request.tries, 1_000_000)} if request.tries > 0 else {}

    def _encode_error(self, request: Request, result: Dict[str, Any]) -> str:
        try:
            return encode({**result, **self._tries(request)})
        except (TypeError, ValueError, RecursionError) as e:
            return encode({"token": request.token, "error": {
                "code": "bad_error", "message": f"the handler's error is not JSON: {readable(e)}", "effect": "unknown",
                "retryable": False}})

    def _forget_over(self) -> None:
        now = _clock.now_ms()
        while self._over and self._over[0][0] <= now:
            self._held.pop(heapq.heappop(self._over)[1], None)

    # ---- results ----

    def _pick(self, node: Node) -> List[_Result]:
        """What to hand in there now."""
        if _clock.now_ms() < node.retry_at_ms:
            return []
        others = self._others(node)
        if node.failures > 0 and others:
            return []  # they do it
        batch: List[_Result] = []
        size = 0
        for result in self._results.values():
            home = result.request._node
            is_ours = home is node or home.failures > 0 or home.running == 0 or not home.is_used
            if result.is_in_flight or not is_ours:
                continue
            size += result.size
            if batch and (size > BODY_MAX or len(batch) >= node.result_max):
                break
            batch.append(result)
        return batch

    def _calls_home(self, node: Node) -> bool:
        """The parked call asks for more than twice the free places, or nothing is wanted any more."""
        if not node.parked_max or node.called_home_ms or node.failures > 0:
            return False
        now, free = _clock.now_ms(), self._free()
        if self._is_stopping or not node.is_used:
            return True
        if len(self._nodes) < 2 or (free > 0 and node.parked_max <= 2 * free):
            node.excess_since_ms = 0
            return False
        node.excess_since_ms = node.excess_since_ms or now
        return now - node.excess_since_ms >= EXCESS_MS

    def _deliver(self, node: Node) -> None:
        while True:
            with self._changed:
                while True:
                    if self._is_ended or (not node.is_used and node.running == 1):
                        self._thread_ends(node)
                        return
                    home = self._calls_home(node)
                    batch = self._pick(node)
                    if home or batch:
                        break
                    soon = 0.01 if node.excess_since_ms else 0.2
                    waits = node.retry_at_ms - _clock.now_ms()
                    if self._results and waits > 0:
                        soon = min(soon, max(0.001, waits / 1000))
                    self._changed.wait(soon if self._results or node.parked_max else 1.0)
                for result in batch:
                    result.is_in_flight = True
                if home:
                    node.called_home_ms = _clock.now_ms()
                within = HAND_IN_WITHIN_S if self._others(node) else CALL_WITHIN_S
            self._hand_in(node, batch, home, within)

    def _hand_in(self, node: Node, batch: List[_Result], home: bool, within: float) -> None:
        body = '{"instance":%s,"max":0%s,"results":[%s]}' % (
            json.dumps(self.instance), ',"instead":true' if home else "", ",".join(r.text for r in batch))
        failure: Optional[CallFailed] = None
        try:
            answer = node.call(node.delivering, "work", body.encode(), within)
        except CallFailed as e:
            failure, answer = e, {}
        with self._changed:
            for result in batch:
                result.is_in_flight = False
            if failure is None:
                self._recovered(node)
                self._settle(answer)
                self._heed_stops(answer)
                if any(r.request.token in self._results for r in batch):
                    failure = CallFailed(200, "the answer has no outcomes of results")
                elif batch:
                    node.result_max = min(1000, node.result_max * 2)
            elif failure.is_about_us and batch:
                # One that cannot be taken must not keep back the others.
                node.result_max = 1
                if len(batch) == 1:
                    self._replace(batch[0], str(failure))
                return
            if failure is not None:
                self._failed(node, "results", failure)
            self._changed.notify_all()

    def _settle(self, answer: Mapping[str, Any]) -> None:
        """Whatever became of a result (accepted, repeated, late, unknown): it is with the server."""
        outcomes = answer.get("outcomes")
        for outcome in outcomes if isinstance(outcomes, list) else []:
            token = outcome.get("token") if isinstance(outcome, dict) else None
            result = self._results.pop(token, None) if isinstance(token, str) else None
            if result is None:
                continue
            self._held.pop(result.request.token, None)
            self._progress_ms = _clock.now_ms()
            if outcome.get("status") in ("late", "unknown"):
                self._log.warning("%s: the result is %s%s", result.request.idempotency_key, outcome.get("status"),
                                  f": {outcome['problem']}" if outcome.get("problem") else "")

    def _replace(self, result: _Result, story: str) -> None:
        request = result.request
        if result.is_replaced:
            self._log.error("%s: the result is dropped: %s", request.idempotency_key, story)
            self._results.pop(request.token, None)
            self._held.pop(request.token, None)
            return
        self._log.error("%s: the server cannot accept the result: %s", request.idempotency_key, story)
        result.is_replaced = True
        result.text = encode({"token": request.token, "error": {
            "code": "unacceptable", "message": story[:500].encode("ascii", "replace").decode(), "retryable": False,
            "effect": "unknown"}})

    # ---- signs of life ----

    def _due_beats(self, node: Node, now: int) -> Tuple[List[Request], int]:
        """Requests whose beats are to go there now, and when to look again."""
        due: List[Request] = []
        wake = now + 1000
        for request in self._held.values():
            at = request._beat_is_due_ms()
            if at is None:
                continue
            if not request._beat_node.is_used or (request._beat_node.failures > 0 and self._others(request._beat_node)):
                others = self._others(request._beat_node)
                request._beat_node = others[0] if others else request._beat_node
            if request._beat_node is not node:
                continue
            if at <= now and len(due) < BEATS_MAX:
                due.append(request)
            else:
                wake = min(wake, at)
        return due, wake

    def _send_beats(self, node: Node) -> None:
        while True:
            with self._changed:
                while True:
                    if self._is_ended or not node.is_used:
                        self._thread_ends(node)
                        return
                    now = _clock.now_ms()
                    due, wake = self._due_beats(node, now)
                    if due:
                        break
                    self._changed.wait(max(0.001, (wake - now) / 1000))
                beats = {r.token: (r, r._take_beat(now)) for r in due}
                within = HAND_IN_WITHIN_S if self._others(node) else ASK_WITHIN_S
            self._beat(node, beats, within)

    def _beat(self, node: Node, beats: Dict[str, Tuple[Request, Dict[str, Any]]], within: float) -> None:
        body = encode({"instance": self.instance, "beats": [{"token": t, **b} for t, (_, b) in beats.items()]})
        sent_ms = _clock.now_ms()
        try:
            answer = node.call(node.beating, "heartbeats", body.encode(), within)
        except CallFailed as e:
            self._log.debug("%s: %s: heartbeats: %s", self.name, node.url, e)
            with self._changed:
                for request, beat in beats.values():
                    request._beat_was_lost(beat)
                    self._beat_elsewhere(request)
            return
        with self._changed:
            self._heed_stops(answer)
            outcomes = answer.get("outcomes")
            for outcome in outcomes if isinstance(outcomes, list) else []:
                sent = beats.get(str(outcome.get("token"))) if isinstance(outcome, dict) else None
                if sent is None:
                    continue
                request, beat = sent
                status = outcome.get("status")
                if status == "accepted":
                    request._beat_was_taken(sent_ms)
                elif status == "late":
                    request._stop()
                else:
                    if outcome.get("problem"):
                        self._log.warning("%s: heartbeat: %s", request.idempotency_key, outcome["problem"])
                    elif request.heartbeat_ms is not None:
                        request._beat_was_lost(beat)
                    self._beat_elsewhere(request)

    def _beat_elsewhere(self, request: Request) -> None:
        nodes = list(self._nodes.values())
        if request._beat_node in nodes and len(nodes) > 1:
            request._beat_node = nodes[(nodes.index(request._beat_node) + 1) % len(nodes)]
