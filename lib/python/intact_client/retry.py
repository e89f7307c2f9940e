"""Retrying inside the agent: how long before the next call to the service, or give up."""

from __future__ import annotations

import random
from typing import Optional

__all__ = ["Again", "Retry"]


class Again(Exception):
    """Raised by a function that Request.call calls: not yet; once more, no sooner than in `after` seconds."""

    def __init__(self, message: str = "", after: float = 0.0) -> None:
        super().__init__(message)
        self.after = after


class Retry:
    """Exponential, with jitter, within a budget.

    first, most: seconds before the second call, and at most; they double in between. Half of each wait is chance.
    tries: calls at most; None: as many as there is time for.
    budget: seconds for all of it; None: until the deadline of the request.
    leave: seconds before the deadline that are kept free for the last call and its answer: no call begins later.
    """

    def __init__(self, first: float = 0.1, most: float = 10.0, tries: Optional[int] = None,
                 budget: Optional[float] = None, leave: float = 0.0) -> None:
        if first <= 0 or most < first:
            raise ValueError("expected 0 < first <= most")
        if tries is not None and tries < 1:
            raise ValueError("tries: expected at least 1")
        self.first, self.most, self.tries, self.budget, self.leave = first, most, tries, budget, leave

    def wait(self, calls: int, left: float, after: float = 0.0) -> Optional[float]:
        """How many seconds to wait after so many calls, with so many seconds left; None: give up. `after`: what the
        service asks for."""
        if self.tries is not None and calls >= self.tries:
            return None
        longest = min(self.most, self.first * 2.0 ** min(calls - 1, 60))
        pause = max(after, longest * random.uniform(0.5, 1.0))
        return pause if pause < left - self.leave else None
