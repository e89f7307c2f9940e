"""What the shop is made of: each process, how it is started, and what it is told by its environment.

On machines of your own these would be units of systemd, or containers. Each program knows the least that it can do with:
an agent has a token that lets it work for that agent, and nothing else; staff have tokens of their own, which the shop does not know.

  WORK/db                          PostgreSQL's data and its socket
  WORK/broker                      RabbitMQ's
  WORK/node-n1, node-n2            the admin's token, and intact.db if there is no PostgreSQL
  WORK/stock, payment, shipping    a service's database, and its MODE
  WORK/log                         what each process says
  WORK/secrets                     passwords and tokens
"""

import os
import sys
from dataclasses import dataclass, field

SHOP = os.path.normpath(os.path.join(os.path.dirname(os.path.realpath(__file__)), ".."))
ROOT = os.path.normpath(os.path.join(SHOP, "..", ".."))  # of the project: lib/python is here


STAFF = ("ann", "bob")  # who approve large orders


@dataclass
class Process:
    name: str
    kind: str  # database, broker, node, agent, service, submission, web
    about: str  # for people: what it does
    command: list
    environment: dict = field(default_factory=dict)
    user: str = ""  # the one it runs as; "": ours
    folder: str = "."


def node(place, name):
    """Over PostgreSQL one of several, which has a name among them; over SQLite the only one."""
    among = [] if place.sqlite else ["--node", name]
    store = {} if place.sqlite else {"INTACT_STORE": place.database_url("intact_node")}
    return Process(
        name, "node", "an Intact server: runs the workflow",
        [place.intact, "serve", *among, "--data", f"{place.work}/node-{name}",
         "--listen", f"127.0.0.1:{place.ports[name]}", "--config", f"{place.work}/intact.yaml",
         "--http", f"{place.work}/http-agent.yaml", "--scan-every", "500ms", "--grace", "2s"],
        {**store, "SHOP_BROKER_PASSWORD": place.password("intact"), "PAYMENT_KEY": place.password("payment"),
         "SHOP_KEY": place.password("reminders")})


def agent(place, name, about, command):
    return Process(name, "agent", about, [*command, place.service_database(name)],
                   {"INTACT_SERVER": place.nodes_url(), "INTACT_TOKEN": place.token(name), "PYTHONPATH": f"{ROOT}/lib/python"})


def nodes(place):
    return [node(place, name) for name in place.node_names]


def shop(place):
    """All that is started once Intact is there, in this order."""
    parts = {"SHOP_DB": place.shop_database(), "SHOP_AMQP": place.broker_url("shop")}
    return [
        agent(place, "stock", "the warehouse: an agent in C, with libintact", [f"{place.programs}/shop-stock"]),
        Process("payment", "service", "card payments: a plain HTTP service, called by Intact's HTTP agent",
                [f"{place.programs}/shop-payment", place.service_database("payment"), str(place.ports["payment"])],
                {"PAYMENT_KEY": place.password("payment")}),
        agent(place, "shipping", "parcels and mail: an agent in Python", [sys.executable, f"{SHOP}/services/shipping.py"]),
        Process("web", "web", "the shop's pages",
                [f"{place.programs}/shop-web", "--port", str(place.ports["web"]), "--pages", f"{SHOP}/web/static",
                 "--schema", f"{SHOP}/schema.sql"],
                parts | {"INTACT_SERVER": place.nodes_url(), "INTACT_TOKEN": place.token("shop"), "SHOP_KEY": place.password("reminders")}),
        Process("submission", "submission", "takes orders from the queue: writes each order and its task in one transaction",
                [f"{place.programs}/shop-submission"], parts),
    ]
