"""Ports of 127.0.0.1 for the servers that tests start.

free_port() counts in a file that all tests of a user share: two tests that run at the same time never get the same port, also while
neither of them listens on it yet. The ports are below those that the kernel gives to outgoing connections, since one of those could
take the port of a server that is down for a moment.
"""

import fcntl
import os
import socket
import tempfile

LOWEST = 4096
TRIES = 1000


def port_range():
    """The ports to choose from: (lowest, end)."""
    with open("/proc/sys/net/ipv4/ip_local_port_range", encoding="ascii") as f:
        end = int(f.read().split()[0])
    return LOWEST, end if end > 2 * LOWEST else 32768


def is_free(port):
    try:
        with socket.create_server(("127.0.0.1", port)):
            return True
    except OSError:
        return False


def free_port():
    lowest, end = port_range()
    path = f"{tempfile.gettempdir()}/intact-test-ports-{os.getuid()}"
    with open(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600), "r+", encoding="ascii") as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        text = f.read()
        port = int(text) if text.isdigit() else lowest
        for _ in range(TRIES):
            port = port + 1 if lowest <= port < end - 1 else lowest
            if is_free(port):
                f.seek(0)
                f.truncate()
                f.write(str(port))
                return port
    raise RuntimeError("there is no free port")
