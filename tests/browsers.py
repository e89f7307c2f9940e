"""Tests in a browser take turns. A browser keeps a processor busy as long as a page is open, since the page follows what happens:
several beside each other slow down one another and all other tests."""

import fcntl
import os

HELD = []


def wait_for_turn(root):
    """Until this process ends, it is one of as many tests in browsers as half of the machine's processors."""
    turn = os.getpid() % max(1, len(os.sched_getaffinity(0)) // 2)
    file = open(f"{root}/build/browsers.{turn}.lock", "w", encoding="ascii")
    fcntl.flock(file, fcntl.LOCK_EX)
    HELD.append(file)
