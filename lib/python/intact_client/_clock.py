"""A clock that nobody sets, and that goes on while the machine sleeps."""

import time

_BOOTTIME = getattr(time, "CLOCK_BOOTTIME", None)


def now_ms() -> int:
    """Milliseconds since some moment. Where the system has no such clock: the monotonic one."""
    if _BOOTTIME is None:
        return time.monotonic_ns() // 1_000_000
    return time.clock_gettime_ns(_BOOTTIME) // 1_000_000


def duration(seconds: float) -> str:
    """As the server reads durations, in whole milliseconds."""
    return f"{max(0, round(seconds * 1000))}ms"


def rfc3339(seconds: float) -> str:
    """Seconds since 1970 as the server writes times."""
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{int(seconds * 1000) % 1000:03d}Z"
