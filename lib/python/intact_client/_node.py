"""One server that an agent works for: its connections, and how it does."""

from __future__ import annotations

import random
import ssl
import threading
from typing import Any, Dict, List, Mapping, Optional
from urllib.parse import quote

from . import _clock
from ._http import FAILURES, Answer, Connection, read_json
from ._installation import Installation
from .errors import AnotherInstallation

RETRY_MS, RETRY_MAX_MS = 100, 5000
REFUSED_MS, REFUSED_MAX_MS = 2000, 30000


class CallFailed(Exception):
    """The call did nothing that we know of. `status` is 0 if there was no answer."""

    def __init__(self, status: int, story: str, retry_after: float = 0.0) -> None:
        super().__init__(story)
        self.status, self.retry_after = status, retry_after

    @property
    def is_about_us(self) -> bool:
        """What is sent again as it is will not be taken."""
        return self.status in (400, 413, 422)

    @property
    def is_about_token(self) -> bool:
        return self.status in (401, 403)


def read_object(answer: Answer) -> Dict[str, Any]:
    """The JSON object that a call was answered with; CallFailed if it was not."""
    if answer.status != 200:
        story = answer.body[:500].decode("utf-8", "replace")
        raise CallFailed(answer.status, f"{answer.status} {story}", answer.retry_after())
    try:
        found = read_json(answer.body)
    except ValueError as e:
        raise CallFailed(200, f"the answer is not JSON: {e}") from e
    if not isinstance(found, dict):
        raise CallFailed(200, "the answer is not a JSON object")
    return found


class Node:
    """All but its connections is guarded by the agent's lock."""

    def __init__(self, url: str, agent: str, tls: Optional[ssl.SSLContext], headers: Mapping[str, str],
                 installation: Optional[Installation] = None) -> None:
        self.url = url
        self._paths = {what: f"/v1/agents/{quote(agent, safe='')}/{what}" for what in ("work", "heartbeats")}
        self.fetching, self.delivering, self.beating = (
            Connection(url, tls, headers, installation) for _ in range(3))
        self.is_used = True
        self.failures = 0
        self.retry_at_ms = 0
        self.parked_max = 0  # what the parked call asks for; 0: there is none
        self.parked_at_ms = 0
        self.excess_since_ms = 0  # it asks for too much since then
        self.called_home_ms = 0
        self.is_waiting = False  # for places to ask for
        self.result_max = 1000  # results a call
        self.threads: List[threading.Thread] = []
        self.running = 0  # of them

    def call(self, connection: Connection, what: str, body: bytes, within: float) -> Dict[str, Any]:
        """CallFailed, whatever the reason."""
        try:
            answer = connection.call("POST", self._paths[what], body, within=within)
        except FAILURES as e:
            raise CallFailed(0, f"{type(e).__name__}: {e}") from e
        except AnotherInstallation as e:
            raise CallFailed(421, str(e)) from e
        return read_object(answer)

    def failed(self, e: CallFailed) -> bool:
        """Puts its next calls off. True: it is worth telling."""
        self.failures += 1
        first, most = (REFUSED_MS, REFUSED_MAX_MS) if 400 <= e.status < 500 and e.status not in (408, 429) \
            else (RETRY_MS, RETRY_MAX_MS)
        pause = min(most, first * 2 ** min(self.failures - 1, 20)) * random.uniform(0.5, 1.0)
        self.retry_at_ms = _clock.now_ms() + max(round(pause), round(e.retry_after * 1000))
        return self.failures == 1 or self.failures % 64 == 0

    def recovered(self) -> bool:
        """It answered as it should. True: it did not before."""
        had_failed, self.failures = self.failures > 0, 0
        return had_failed

    def break_off(self) -> None:
        for c in (self.fetching, self.delivering, self.beating):
            c.break_off()
