"""What handlers raise, and what clients are told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Optional, Union

from ._clock import duration

if TYPE_CHECKING:
    from .types import Task

__all__ = ["AnotherInstallation", "Busy", "IntactError", "Problem", "StepError", "TooLate", "Unreachable", "WaitTimeout"]

_NONE = object()


def readable(what: Any, most: Optional[int] = None) -> str:
    """A text that can be sent, of anything: an exception, say, whose own text may fail."""
    try:
        text = str(what)
    except Exception:  # pylint: disable=broad-except # it is code of others
        text = f"<{type(what).__name__}>"
    return text[:most].replace("\0", "?").encode("utf-8", "replace").decode()


class IntactError(Exception):
    """All errors of this package."""


class StepError(IntactError):
    """Raised by a handler to answer with an error.

    code: a short word, for programs.
    message: for people; of anything else, say an exception, its text.
    retryable: may another try help? If not, the step has failed for good.
    effect: of this attempt alone: "none" if it certainly changed nothing, or "unknown". If not given: "unknown"
        if retryable, else "none".
    retry_after: no sooner than that: seconds, or a duration as text ("15m").
    resume: any JSON up to 2048 bytes, handed to the next attempt as `request.resume`.
    """

    def __init__(self, code: str, message: object = "", retryable: bool = False, effect: Optional[str] = None,
                 retry_after: Union[None, float, str] = None, resume: Any = _NONE) -> None:
        super().__init__(readable(message) or code)
        if effect not in (None, "none", "unknown"):
            raise ValueError(f'effect is {effect!r}, expected "none" or "unknown"')
        message = readable(message)
        self.code, self.message, self.retryable, self.effect = code, message, retryable, effect
        self.retry_after, self.resume = retry_after, None if resume is _NONE else resume
        told: Dict[str, Any] = {"code": code, "message": message, "retryable": retryable}
        if effect is not None:
            told["effect"] = effect
        if retry_after is not None:
            told["retry_after"] = retry_after if isinstance(retry_after, str) else duration(retry_after)
        if resume is not _NONE:
            told["resume"] = resume
        self.told = told
        """The error as it goes to the server."""


class TooLate(IntactError):
    """The request is not ours any more: its deadline has passed, or no heartbeat was acknowledged for too long. Raised
    by Request.check and Request.call; a handler that raises it, or lets it pass, answers nothing."""


class Unreachable(IntactError):
    """No server gave an answer. Whether the call took effect is not known."""


class AnotherInstallation(IntactError):
    """A server belongs to another installation than the one that is worked with. Nothing was done there. Trying again
    does not help: the addresses are wrong, or the server was replaced.

    server, found: where that was, and the installation there. expected: the other one; known_from: the server that had
    answered as it, "" if it was stated.
    """

    def __init__(self, server: str, found: str, known_from: str, expected: str) -> None:
        self.server, self.found, self.known_from, self.expected = server, found, known_from, expected
        if not known_from:
            rest = f", but {expected} was expected (installation, or INTACT_INSTALLATION)"
        elif known_from == server:
            rest = f" now, but belonged to {expected} before; if it was replaced intentionally, restart this program"
        else:
            rest = (f", but {known_from}, which answered before, belongs to {expected}; name servers of one installation "
                    "only, or select one (installation, or INTACT_INSTALLATION)")
        super().__init__(f"{server} belongs to the installation {found}{rest}")


class Problem(IntactError):
    """The server said no (RFC 9457).

    status: of HTTP. type: "urn:intact:problem:..."; `kind` is its last word, for programs. title and detail: for
    people. errors, warnings: of a definition with mistakes. body: the whole document.
    """

    def __init__(self, status: int, body: Mapping[str, Any], retry_after: float = 0.0) -> None:
        self.status, self.body, self.retry_after = status, dict(body), retry_after
        self.type = str(body.get("type", "about:blank"))
        self.kind = self.type.rsplit(":", 1)[-1]
        self.title = str(body.get("title", ""))
        self.detail = str(body.get("detail", ""))
        self.errors: List[Dict[str, Any]] = list(body.get("errors") or [])
        self.warnings: List[Dict[str, Any]] = list(body.get("warnings") or [])
        story = self.detail or "; ".join(
            f"line {e.get('line')}: {e.get('path')}: found {e.get('found')}, expected {e.get('expected')}"
            for e in self.errors) or self.title
        super().__init__(f"{status} {self.kind}: {story}")


class Busy(Problem):
    """429 or 5xx: the same call may succeed later."""


class WaitTimeout(IntactError):
    """The task has not ended in time; `task` is its record."""

    def __init__(self, task: Task) -> None:
        super().__init__(f"task {task['id']} is {task['state']}")
        self.task = task
