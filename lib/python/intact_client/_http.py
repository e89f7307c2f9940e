"""Calls to one server: a connection that is kept open, an answer whatever its status, a limit on it all."""

import http.client
import io
import json
import os
import socket
import ssl
import threading
import time
from email.message import Message
from typing import Any, List, Mapping, NamedTuple, Optional
from urllib.parse import urlsplit

from ._installation import HEADER, MEET_WITHIN_S, Installation

ANSWER_MAX = 256 * 1024 * 1024
CONNECT_WITHIN_S = 10.0
RETRY_AFTER_MAX_S = 60.0  # that we let a server put us off
DEFAULT_SERVER = "http://127.0.0.1:7420"

# Not reached, cut off, no HTTP. ssl.SSLError is an OSError.
FAILURES = (OSError, http.client.HTTPException)


class Answer(NamedTuple):
    """What a server said."""

    status: int
    headers: Message
    body: bytes

    def retry_after(self) -> float:
        """Seconds; 0 if it does not say."""
        text = self.headers.get("Retry-After") or ""
        return min(float(text), RETRY_AFTER_MAX_S) if text.isascii() and text.isdigit() else 0.0


def _whole(digits: str) -> Any:
    try:
        return int(digits)
    except ValueError:  # Python reads no more than some thousand digits: infinity, as of any number that is too large
        return float(digits)


def read_json(body: bytes) -> Any:
    """ValueError if it is none. A number that is too large for Python must not keep back all that comes with it."""
    try:
        return json.loads(body, parse_int=_whole)
    except RecursionError as e:
        raise ValueError("it is nested too deeply") from e


def is_server(url: str) -> bool:
    """Is it the address of a server: http or https, host, perhaps a port, and nothing else?"""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return False
    return (parts.scheme in ("http", "https") and bool(parts.hostname) and port != 0 and parts.path in ("", "/")
            and not (parts.query or parts.fragment or "@" in parts.netloc) and url.isprintable() and " " not in url)


def servers(given: Optional[str]) -> List[str]:
    """The addresses that were given, or those of the environment; ValueError if one is none."""
    text = given or os.environ.get("INTACT_SERVER") or DEFAULT_SERVER
    found: List[str] = []
    for part in text.split(","):
        url = part.strip().rstrip("/")
        if url and url not in found:
            if not is_server(url):
                raise ValueError(f"server is {part.strip()!r}, expected an address like {DEFAULT_SERVER}")
            found.append(url)
    if not found:
        raise ValueError(f"server is {text!r}, expected an address like {DEFAULT_SERVER}")
    return found


def trust(urls: List[str], ca: Optional[str]) -> Optional[ssl.SSLContext]:
    """Whose certificates are believed: those signed by `ca`, else by $INTACT_CA, else by the system's. Nodes
    found later may speak TLS, so there is a context also if no address given does."""
    path = ca or os.environ.get("INTACT_CA") or None
    try:
        return ssl.create_default_context(cafile=path)
    except OSError as e:
        raise ValueError(f"the certificates of {path!r} cannot be read: {e}") from e


def headers(token: Optional[str]) -> Mapping[str, str]:
    """What each call carries."""
    text = token if token is not None else os.environ.get("INTACT_TOKEN", "")
    text = text.strip()
    if not (text.isascii() and text.isprintable()):
        raise ValueError("the token has invalid characters")
    return {"Authorization": "Bearer " + text} if text else {}


class _Timed(io.RawIOBase):
    """Reads from a socket, and no longer than until a moment, however few bytes come at a time."""

    def __init__(self, sock: socket.socket, end: float) -> None:
        self._sock, self._end = sock, end
        self._raw = sock.makefile("rb", buffering=0)

    def readable(self) -> bool:
        return True

    def readinto(self, into: Any) -> Optional[int]:
        left = self._end - time.monotonic()
        if left <= 0:
            raise TimeoutError("timed out waiting for the answer")
        self._sock.settimeout(left)
        return self._raw.readinto(into)

    def close(self) -> None:
        self._raw.close()
        super().close()


class _Stream:
    """What http.client wants of a socket to read an answer."""

    def __init__(self, sock: socket.socket, end: float) -> None:
        self._sock, self._end = sock, end

    def makefile(self, _: str) -> io.BufferedReader:
        return io.BufferedReader(_Timed(self._sock, self._end))


class Connection:
    """For one thread at a time; break_off may be called by any."""

    def __init__(self, url: str, tls: Optional[ssl.SSLContext], fixed: Mapping[str, str],
                 installation: Optional[Installation] = None) -> None:
        parts = urlsplit(url)
        self._host, self._port = parts.hostname or "", parts.port
        self._tls = tls if parts.scheme == "https" else None
        self._is_tls = parts.scheme == "https"
        self._url, self._fixed, self._installation = url, dict(fixed), installation
        self._open: Optional[http.client.HTTPConnection] = None
        self._lock = threading.Lock()
        self._is_broken = False

    def call(self, method: str, path: str, body: Optional[bytes] = None, *, within: float,
             content_type: str = "application/json", is_repeatable: bool = True,
             more: Optional[Mapping[str, str]] = None) -> Answer:
        """One of FAILURES if there is no whole answer within so many seconds. A connection that the server had
        closed meanwhile does not count, if the call may be repeated. AnotherInstallation: the server belongs to it."""
        end = time.monotonic() + within
        kept = self._open is not None
        if kept and not is_repeatable:
            self.close()
            kept = False
        try:
            return self._exchange(method, path, body, content_type, end, more)
        except (ConnectionError, http.client.BadStatusLine):
            self.close()
            if not kept or self._is_broken:
                raise
        except BaseException:
            self.close()
            raise
        try:
            return self._exchange(method, path, body, content_type, end, more)
        except BaseException:
            self.close()
            raise

    def _exchange(self, method: str, path: str, body: Optional[bytes], content_type: str, end: float,
                  more: Optional[Mapping[str, str]]) -> Answer:
        c = self._open or self._connect(end)
        self._limit(c, end)
        fields = {**self._fixed, **(self._installation.fields() if self._installation else {}), **(more or {})}
        if body is not None:
            fields["Content-Type"] = content_type
        c.request(method, path, body, fields)
        c.response_class = lambda sock, *a, **b: http.client.HTTPResponse(  # type: ignore[assignment]
            _Stream(sock, end), *a, **b)  # type: ignore[arg-type]
        response = c.getresponse()
        parts, size = [], 0
        while True:
            part = response.read1(1 << 16)
            if not part:
                break
            parts.append(part)
            size += len(part)
            if size > ANSWER_MAX:
                raise http.client.HTTPException(f"the answer exceeds {ANSWER_MAX} bytes")
        if response.length:
            raise http.client.IncompleteRead(b"", response.length)
        response.close()  # read1 does not notice the end of a body whose length was told
        if response.will_close:
            self.close()
        if self._installation:
            self._installation.hear(self._url, response.headers.get(HEADER))
        return Answer(response.status, response.headers, b"".join(parts))

    def whose(self) -> Optional[str]:
        """The installation to which the server says that it belongs; for that alone, and closed behind it."""
        try:
            return self.call("GET", "/healthz", within=MEET_WITHIN_S).headers.get(HEADER)
        except FAILURES:
            return None
        finally:
            self.close()

    def _connect(self, end: float) -> http.client.HTTPConnection:
        within = max(0.001, min(CONNECT_WITHIN_S, end - time.monotonic()))
        if self._is_tls:
            c: http.client.HTTPConnection = http.client.HTTPSConnection(
                self._host, self._port, timeout=within, context=self._tls)
        else:
            c = http.client.HTTPConnection(self._host, self._port, timeout=within)
        c.connect()
        c.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with self._lock:
            self._open = c
            if self._is_broken:
                raise ConnectionAbortedError("cancelled")
        return c

    @staticmethod
    def _limit(c: http.client.HTTPConnection, end: float) -> None:
        left = end - time.monotonic()
        if left <= 0:
            raise TimeoutError("timed out waiting for the answer")
        if c.sock is not None:  # None: the response has it, and will close it
            c.sock.settimeout(left)

    def close(self) -> None:
        with self._lock:
            c, self._open = self._open, None
        if c is not None:
            c.close()

    def break_off(self) -> None:
        """Ends the call that is on, and all later ones, with ConnectionError or the like."""
        with self._lock:
            self._is_broken = True
            sock = self._open.sock if self._open is not None else None
            if sock is not None:
                try:
                    # Not SSLSocket's, which takes apart what another thread is using.
                    socket.socket.shutdown(sock, socket.SHUT_RDWR)
                except OSError:
                    pass
