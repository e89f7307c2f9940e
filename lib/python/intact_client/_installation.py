"""To which installation servers belong: a client or an agent stays with the one that was stated, else with the first."""

from __future__ import annotations

import os
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import Callable, Dict, List, Optional, Tuple

from .errors import AnotherInstallation

HEADER = "Intact-Installation"
MEET_WITHIN_S = 1.0  # for a server to say where it belongs, before anything else is asked


def _read(text: Optional[str]) -> str:
    """In small letters; "" if it is none."""
    try:
        found = str(uuid.UUID(text or ""))
    except ValueError:
        return ""
    return found if found == (text or "").lower() else ""


class Installation:
    """Shared by all connections of a client or an agent."""

    def __init__(self, stated: Optional[str] = None) -> None:
        text = stated or os.environ.get("INTACT_INSTALLATION") or "any"
        self.id = "" if text == "any" else _read(text)
        if not self.id and text != "any":
            raise ValueError(f"installation is {text!r}, expected an installation id (a UUID) or 'any'")
        self._server = ""  # that answered first; "": the id was stated
        self._has_met = False
        self._lock = threading.Lock()

    def fields(self) -> Dict[str, str]:
        """Of each request: a server of another installation refuses it before it does anything."""
        return {HEADER: self.id} if self.id else {}

    def hear(self, server: str, told: Optional[str]) -> None:
        """An answer came. AnotherInstallation: from a server of another one. Older servers and proxies say nothing."""
        found = _read(told)
        with self._lock:
            if found and not self.id:
                self.id, self._server = found, server
            if found and found != self.id:
                raise AnotherInstallation(server, found, self._server, self.id)

    def meet(self, servers: List[str], ask: Callable[[str], Optional[str]]) -> None:
        """Compares what all servers say that can be reached, in their order. AnotherInstallation if they are of two."""
        if len(servers) < 2 or self.id or self._has_met:
            return
        with ThreadPoolExecutor(len(servers)) as pool:
            said: List[Tuple[str, Optional[str]]] = list(zip(servers, pool.map(ask, servers)))
        found = [(server, _read(told)) for server, told in said if _read(told)]
        for server, other in found:
            if other != found[0][1]:
                raise AnotherInstallation(server, other, *found[0])
        if found:
            self.hear(*found[0])  # only now: other threads go by it at once
        self._has_met = True
