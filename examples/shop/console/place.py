"""Where all of it lies: the work folder, ports, passwords and tokens. Nobody else may read any of these."""

import os
import random
import secrets
import socket


class Place:
    def __init__(self, work, build, sqlite, port, console_port):
        self.work, self.sqlite = work, sqlite
        self.intact, self.programs = f"{build}/src/cli/intact", f"{build}/examples/shop"
        self.node_names = ["n1"] if sqlite else ["n1", "n2"]
        self.ports = {"web": port, "console": console_port}
        for name in ("broker", "epmd", "erlang", "payment", *self.node_names):
            self.ports[name] = self.free_port()
        for folder in ("log", "secrets", "stock", "payment", "shipping"):
            os.makedirs(f"{work}/{folder}", mode=0o700, exist_ok=True)

    def free_port(self):
        """Below those that the kernel gives to outgoing connections: one of those could take the port of who is down for a moment."""
        with open("/proc/sys/net/ipv4/ip_local_port_range", encoding="ascii") as f:
            lowest = int(f.read().split()[0])
        for _ in range(1000):
            port = random.randrange(2048, lowest if lowest > 4096 else 32768)
            if port not in self.ports.values() and is_free(port):
                return port
        raise RuntimeError("there is no free port")

    def secret(self, name, make):
        """What is kept in a file of that name; made at the first time."""
        path = f"{self.work}/secrets/{name}"
        if not os.path.exists(path):
            with open(os.open(path + ".new", os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600), "w", encoding="ascii") as f:
                f.write(make())
            os.rename(path + ".new", path)
        with open(path, encoding="ascii") as f:
            return f.read().strip()

    def password(self, user):
        return self.secret(f"password-{user}", lambda: secrets.token_urlsafe(24))

    def token(self, name):
        with open(f"{self.work}/secrets/token-{name}", encoding="ascii") as f:
            return f.read().strip()

    def broker_url(self, user):
        return f"amqp://{user}:{self.password(user)}@127.0.0.1:{self.ports['broker']}"

    def database_url(self, role):
        """PostgreSQL listens on a socket in a folder that only its user can enter, and asks no more of who is there."""
        return f"postgresql://{role}@/shop?host={self.work}/db/socket"

    def shop_database(self):
        return f"{self.work}/node-n1/intact.db" if self.sqlite else self.database_url("shop")

    def service_database(self, name):
        return f"{self.work}/{name}/{name}.db"

    def staff_url(self, person):
        """The page on which a person decides. The key comes after a #: a browser keeps that to itself."""
        return f"http://127.0.0.1:{self.ports['web']}/staff.html#{person}:{self.token(person)}"

    def node_url(self, name):
        return f"http://127.0.0.1:{self.ports[name]}"

    def nodes_url(self):
        return ",".join(self.node_url(name) for name in self.node_names)


def is_free(port):
    try:
        with socket.create_server(("127.0.0.1", port)):
            return True
    except OSError:
        return False
