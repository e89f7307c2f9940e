"""What goes wrong while a thousand orders are placed: a plan that follows from the seed alone, and the hands that carry it out."""

import random
import time
from dataclasses import dataclass

SERVICES = ("stock", "payment", "shipping")
MODES = ("slow", "failing", "hanging", "down", "ok")
LEAST = 25  # acts, however few orders there are
PATIENCE_S = 3


@dataclass(frozen=True)
class Act:
    """Once so many orders were begun: this, and for so long nothing else. Then what is dead is started, or stays dead until a later act."""

    at: int
    kind: str  # mode, kill, leader
    name: str
    mode: str
    stays_s: float
    starts: bool

    def __str__(self):
        what = {"mode": f"{self.name} is {self.mode}", "kill": f"{self.name} is killed", "leader": "whoever leads is killed"}[self.kind]
        return f"order {self.at:5}: {what}, for {self.stays_s:.2f} s{', then all is started' if self.starts else ''}"


def draw(seed, orders, sqlite):
    """The plan. Nothing but these three is looked at."""
    processes = ["broker", "n1", "payment", "shipping", "stock", "submission", "web"] + ([] if sqlite else ["database", "n2"])
    chance, at = random.Random(f"{seed}/mischief"), 0
    plan = []
    while at < orders or len(plan) < LEAST:
        kind = chance.choices(["mode", "kill", "leader"], [4, 5, 1])[0]
        name = {"mode": chance.choice(SERVICES), "kill": chance.choice(processes), "leader": ""}[kind]
        plan.append(Act(min(at, orders), kind, name, chance.choice(MODES) if kind == "mode" else "", round(chance.uniform(0.1, 0.7), 2),
                        chance.random() < 0.7))
        at += chance.randint(0, 5)
    return plan


def carry_out(shop, plan, pressed):
    """One act after the other. One that comes late, because those before it lasted or orders were held up by what is dead, is not
    left out. `pressed` says how many orders were. Where none come any more, all is started after a while, as an operator would."""
    known = {process["name"] for process in shop.state()["processes"]}
    assert {act.name for act in plan if act.kind == "kill"} <= known, known
    for act in plan:
        patience = time.monotonic() + PATIENCE_S
        while pressed() < act.at:
            time.sleep(0.02)
            if time.monotonic() > patience:
                shop.start_all()
                patience = time.monotonic() + PATIENCE_S
        if act.kind == "mode":
            shop.mode(act.name, act.mode)
        elif act.kind == "kill":
            shop.console(f"/api/kill/{act.name}", {})
        else:
            shop.console("/api/kill-leader", {})
        time.sleep(act.stays_s)
        if act.starts:
            shop.start_all()


def end(shop):
    for service in SERVICES:
        shop.mode(service, "ok")
    shop.start_all()
