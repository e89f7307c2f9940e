"""One scenario: a load on a fresh installation, what it cost, and its floors."""

import dataclasses
import json
import os
import time

import floors
from rig import ROOT, Installation, Trouble, difference

SETTLE_S = 3  # for a store that was filled to write its log back: those bytes are not the load's
SLEEPS_UNTIL = "2099-01-01T00:00:00.000Z"


@dataclasses.dataclass
class Scenario:
    name: str
    workflow: str
    tasks: int
    store: str = "sqlite"
    nodes: int = 1
    in_flight: int = 0  # closed loop
    rate: float = 0  # open loop: a part of what `rate_of` reached
    rate_of: str = ""
    lines: int = 1
    waits: bool = False  # each task by a request of its own, whose answer is its end (?wait=)
    payload: int = 300
    priorities: bool = False
    sleeping: int = 0
    ends: str = "processed"
    only_long: bool = False

    @property
    def definition(self):
        return f"{ROOT}/bench/workflows/{self.workflow}.json"

    def scaled(self, scale):
        at_least = min(self.tasks, max(10, min(self.in_flight, 60)))
        return dataclasses.replace(self, tasks=max(round(self.tasks * scale), at_least),
                                   sleeping=round(self.sleeping * scale),
                                   in_flight=self.in_flight if scale >= 0.1 else min(self.in_flight, 100))


def read(path=f"{os.path.dirname(os.path.abspath(__file__))}/scenarios.json"):
    with open(path) as f:
        known = json.load(f)
    return known["long"], [Scenario(**s) for s in known["scenarios"]]


def load_of(s, reached):
    """Options of the generator that say how much comes when."""
    args = ["--workflow", s.workflow, "--payload", s.payload, "--lines", s.lines]
    if s.priorities:
        args.append("--priorities")
    if s.waits:
        args += ["--ends", "wait"]
    if s.rate:
        if s.rate_of not in reached:
            raise Trouble(f"{s.name} goes by what {s.rate_of} reaches, which was not measured before it")
        return args + ["--rate", max(round(s.rate * reached[s.rate_of]), 1), "--poisson"]
    return args + ["--in-flight", s.in_flight]


def fall_asleep(installation, s):
    if s.sleeping:
        installation.flow("--workflow", s.workflow, "--tasks", s.sleeping, "--in-flight", s.sleeping, "--lines", 1000,
                          "--connections", 4, "--ends", "answer", "--not-before", SLEEPS_UNTIL, "--prefix", "asleep")
        time.sleep(SETTLE_S)


def measure(rig, s, reached, with_floors=True):
    """One line of the results. `reached`: tasks a second by scenario, which is added to."""
    load = load_of(s, reached)
    with Installation(rig, s.definition, s.store, s.nodes, answer=s.payload) as installation:
        fall_asleep(installation, s)
        # Warm, by the same load: caches, connections, the file's first growth.
        installation.flow(*load, "--tasks", max(s.tasks // 10, 10), "--prefix", "warm")
        before = installation.counts()
        flow = installation.flow(*load, "--tasks", s.tasks)
        cost = difference(before, installation.counts(), s.tasks)
        memory = installation.memory()
    if flow[s.ends] != s.tasks:
        raise Trouble(f"{s.name}: {flow[s.ends]} of {s.tasks} tasks are {s.ends}")
    reached[s.name] = flow["tasks_per_s"]
    result = {"scenario": s.name, **dataclasses.asdict(s), **flow, **cost, **memory}
    del result["name"], result["only_long"]
    result["changes_per_s"] = round((cost["changes_per_task"] + cost["claims_per_task"]) * flow["tasks_per_s"], 1)
    if with_floors:
        add_floors(rig, s, load, result)
    return result


def with_database(counted, key):
    return counted[key] + counted.get("database_cpu_s_per_1000", 0)


def add_floors(rig, s, load, result):
    tiny = s.tasks < 100  # of a test: nobody looks at the figures
    found = {"disk": floors.disk(rig, 30 if tiny else 300), "store": floors.store(rig, s, result, s.tasks)}
    closed = ["--workflow", s.workflow, "--payload", s.payload, "--lines", s.lines, "--in-flight", s.in_flight or 256]
    found["http"] = floors.http(rig, closed, result["answer_bytes"], s.tasks if tiny else max(s.tasks, 2000))
    http_us = result["requests_per_task"] * found["http"]["cpu_us_per_request"]
    result["floors"] = found
    result["ratios"] = {
        # Of what the floor does in a second: 1 would be as fast as it.
        "changes_to_store": result["changes_per_s"] / found["store"]["changes_per_s"],
        "tasks_to_http": result["tasks_per_s"] / found["http"]["requests_per_s"] / s.lines,
        "syncs_to_disk": result["syncs_per_task"] * result["tasks_per_s"] / found["disk"]["fdatasync_per_s"],
        # Times the floor: 1 would be as cheap as it.
        "cpu_to_store": with_database(result, "server_cpu_s_per_1000") / with_database(found["store"], "cpu_s_per_1000"),
        "cpu_to_http": result["server_cpu_s_per_1000"] * 1000 / http_us,
    }
    if s.in_flight == 1:
        syncs_ms = max(result["syncs_per_task"], 1) * found["disk"]["fdatasync_p50_ms"]
        result["ratios"]["p50_to_disk"] = result["p50_ms"] / syncs_ms
    result["ratios"] = {k: round(v, 4) for k, v in result["ratios"].items()}
