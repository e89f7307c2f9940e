"""Opens the shop: everything in its order, each only when what it needs is ready."""

import base64
import os
import secrets

import broker
import postgres
import processes
from intact_api import Api, Refused
from keeper import Failed

# Breakers open soon, so that whoever plays sees it. Shipping has none: its orders show what comes of tries that are used up.
QUICK = {"calls": 3, "failures": 50, "window": "30s", "wait": "3s", "max_wait": "8s", "trials": 1}
BREAKERS = {"stock": QUICK, "payment": QUICK, "shipping": {"enabled": False}}


def open_shop(place, keeper, say):
    """The API with the operator's token, once all of it is ready."""
    start_database(place, keeper, say)
    start_broker(place, keeper, say)
    api = start_nodes(place, keeper, say)
    for process in processes.shop(place):
        say(f"{process.name}: {process.about}")
        if not os.path.exists(process.command[0]):
            raise Failed(f"{process.command[0]} is not there: is it built?")
        keeper.add(process)
        keeper.start(process.name)
        if process.name == "web":  # it makes the shop's tables
            address = f"http://127.0.0.1:{place.ports['web']}"
            keeper.wait_until("web", lambda: Api({"web": address}, "").answers("web", "/"))
    for agent, breaker in BREAKERS.items():
        api.ask(f"/v1/agents/{agent}", "PUT", {"breaker": breaker})
    return api


def start_database(place, keeper, say):
    if place.sqlite:
        return
    say("database: PostgreSQL, for the shop's tables and Intact's")
    keeper.add(postgres.process(place))
    keeper.start("database")
    keeper.wait_until("database", lambda: postgres.is_ready(place))
    postgres.set_up(place)


def start_broker(place, keeper, say):
    say("broker: RabbitMQ, for orders and the shop's replies")
    for process in (broker.names(place), broker.process(place)):
        keeper.add(process)
        keeper.start(process.name)
    keeper.wait_until("broker", lambda: broker.is_ready(place))


def start_nodes(place, keeper, say):
    place.secret("webhook", lambda: "whsec_" + base64.b64encode(secrets.token_bytes(32)).decode())
    for name in ("intact.yaml", "http-agent.yaml"):
        with_ports(place, name)
    api = Api({name: place.node_url(name) for name in place.node_names}, "")
    for process in processes.nodes(place):
        name = process.name
        say(f"{name}: an Intact server")
        keeper.add(process)
        keeper.start(name)
        keeper.wait_until(name, lambda node=name: api.answers(node, "/readyz"))
    # The first node has made the admin's token. It makes those of the others, and is not used again.
    with open(f"{place.work}/node-n1/admin-token", encoding="ascii") as f:
        admin = Api(api.urls, f.read().strip())
    for agent in ("stock", "shipping"):  # payment's is inside the servers, and needs none
        make_token(place, admin, agent, roles=[f"agent:{agent}"])
    # Orders are submitted in SQL, so they belong to no token: to send them signals takes the role repair.
    make_token(place, admin, "shop", roles=["repair"])
    for person in processes.STAFF:
        make_token(place, admin, person, roles=["approve"], groups=["sales"])
    api.token = make_token(place, admin, "operator", roles=["operate"])
    for path, name in (("workflows/shop_parcel", "parcel"), ("workflows/shop_order", "shop"), ("workflows/shop_reminder", "reminder"),
                       ("schedules/morning", "schedule")):
        with open(f"{processes.SHOP}/{name}.yaml", encoding="utf-8") as f:
            api.ask(f"/v1/{path}", "PUT", f.read(), content_type="application/yaml")
    return api


def with_ports(place, name):
    """A copy of the configuration in which the ports are the real ones."""
    with open(f"{processes.SHOP}/{name}", encoding="utf-8") as f:
        text = f.read()
    for written, port in (("5672", "broker"), ("8080", "web"), ("8081", "console"), ("8082", "payment")):
        text = text.replace(f"127.0.0.1:{written}", f"127.0.0.1:{place.ports[port]}")
    with open(f"{place.work}/{name}", "w", encoding="utf-8") as f:
        f.write(text)


def make_token(place, admin, name, **given):
    """A token is shown once: then it is kept here. One whose text was lost is made anew."""
    def make():
        try:
            admin.ask(f"/v1/tokens/{name}", "DELETE")
        except Refused:
            pass  # there is none yet
        return admin.ask("/v1/tokens", "POST", {"name": name, **given})["token"]

    return place.secret(f"token-{name}", make)
