"""Waits until whoever started it is gone, however that came, and ends all that was started with SHOP_WORK in its environment:
helpers of the broker have sessions of their own, and nobody asks a console that was killed to clear up.

Usage: guard.py WORK   with a pipe for standard input, which ends when the console does
"""

import os
import signal
import sys
import time


def ours(work):
    """Processes that have it in their environment. PostgreSQL's have overwritten theirs: they are found by their server's file."""
    mark = b"SHOP_WORK=" + os.fsencode(work)
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as f:
                if mark in f.read().split(b"\0") and int(pid) != os.getpid():
                    yield int(pid)
        except OSError:
            pass


def end_database(work):
    """By SIGQUIT: one that is killed leaves shared memory to the machine."""
    try:
        with open(f"{work}/db/data/postmaster.pid", encoding="ascii") as f:
            pid = int(f.readline())
        os.kill(pid, signal.SIGQUIT)
        for _ in range(200):
            os.kill(pid, 0)
            time.sleep(0.05)
    except (OSError, ValueError):
        pass


def end_all(work):
    end_database(work)
    clean = 0
    while clean < 3:  # one may have been about to start another
        found = list(ours(work))
        for pid in found:
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass
        clean = 0 if found else clean + 1
        time.sleep(0.05)


if __name__ == "__main__":
    sys.stdin.buffer.read()
    end_all(sys.argv[1])
