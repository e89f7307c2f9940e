"""RabbitMQ with its plugin for AMQP 1.0: a broker of our own, its queues, and who may do what with them."""

import base64
import hashlib
import json
import os
import secrets
import shutil
import socket

from processes import Process

SCRIPTS = "/usr/lib/rabbitmq/bin"


def hash_of(password):
    salt = secrets.token_bytes(4)
    return base64.b64encode(salt + hashlib.sha256(salt + password.encode()).digest()).decode()


def definitions(place):
    """An order that nobody can read goes to shop.orders.refused, and is kept there. Intact may only write the shop's replies."""
    def queue(name, **arguments):
        return {"name": name, "vhost": "/", "durable": True, "auto_delete": False, "arguments": arguments}

    def user(name):
        return {"name": name, "password_hash": hash_of(place.password(name)), "hashing_algorithm": "rabbit_password_hashing_sha256",
                "tags": ""}

    own = r"^shop\."
    return {
        "vhosts": [{"name": "/"}],
        "users": [user("shop"), user("intact")],
        "permissions": [
            {"user": "shop", "vhost": "/", "configure": own, "write": own + r"|^amq\.default$", "read": own},
            {"user": "intact", "vhost": "/", "configure": r"^shop\.replies$", "write": r"^shop\.replies$|^amq\.default$", "read": "^$"},
        ],
        "queues": [
            queue("shop.orders"),
            queue("shop.orders.refused"),
            queue("shop.replies"),
        ],
        # By a policy, so that whoever declares the queue need not know it.
        "policies": [{"name": "refused", "vhost": "/", "pattern": r"^shop\.orders$", "apply-to": "queues", "priority": 0,
                      "definition": {"dead-letter-exchange": "", "dead-letter-routing-key": "shop.orders.refused"}}],
    }


def process(place):
    folder = f"{place.work}/broker"
    os.makedirs(folder, mode=0o700, exist_ok=True)
    with open(os.open(f"{folder}/definitions.json", os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600), "w", encoding="ascii") as f:
        json.dump(definitions(place), f, indent=1)
    with open(f"{folder}/rabbitmq.conf", "w", encoding="utf-8") as f:
        f.write(f"""listeners.tcp.1 = 127.0.0.1:{place.ports["broker"]}
load_definitions = {folder}/definitions.json
vm_memory_high_watermark.absolute = 1GB
disk_free_limit.absolute = 1MB
""")
    with open(f"{folder}/plugins", "w", encoding="ascii") as f:
        f.write("[rabbitmq_amqp1_0].")
    rabbit = {"NODENAME": "shop@localhost", "MNESIA_BASE": f"{folder}/db", "LOG_BASE": f"{folder}/log",
              "CONFIG_FILE": f"{folder}/rabbitmq.conf", "ENABLED_PLUGINS_FILE": f"{folder}/plugins",
              "CONF_ENV_FILE": "/dev/null", "DIST_PORT": str(place.ports["erlang"]), "GENERATED_CONFIG_DIR": f"{folder}/generated",
              "FEATURE_FLAGS_FILE": f"{folder}/flags", "ADVANCED_CONFIG_FILE": f"{folder}/advanced",
              "SERVER_ADDITIONAL_ERL_ARGS": "+S 1:1 -kernel inet_dist_use_interface {127,0,0,1}"}
    return Process("broker", "broker", "RabbitMQ: the queues", [f"{SCRIPTS}/rabbitmq-server"],
                   environment(place) | {f"RABBITMQ_{name}": value for name, value in rabbit.items()})


def environment(place):
    return {"HOME": f"{place.work}/broker", "ERL_EPMD_PORT": str(place.ports["epmd"]), "ERL_EPMD_ADDRESS": "127.0.0.1"}


def names(place):
    """Erlang's own register of names, which it would leave running behind us if it started it by itself."""
    return Process("epmd", "broker", "the port mapper that RabbitMQ needs",
                   [shutil.which("epmd"), "-port", str(place.ports["epmd"]), "-address", "127.0.0.1"], environment(place))


def is_ready(place):
    """Its listeners open when all else of it is there; then it speaks AMQP 1.0."""
    try:
        with socket.create_connection(("127.0.0.1", place.ports["broker"]), timeout=2) as s:
            s.sendall(b"AMQP\x03\x01\x00\x00")  # AMQP 1.0 with SASL
            return s.recv(8) == b"AMQP\x03\x01\x00\x00"
    except OSError:
        return False
