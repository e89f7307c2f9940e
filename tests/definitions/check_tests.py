#!/usr/bin/env python3
"""The schema of test files, held against the program. Usage: check_tests.py ROOT INTACT

* every test file of examples/ and of docs/testing.md is valid by the schema;
* what a schema can find wrong, it does, and so does the program;
* schema and program know the same keys."""

import copy
import json
import os
import re
import subprocess
import sys
import tempfile

import jsonschema
import yaml

root, intact = sys.argv[1], os.path.abspath(sys.argv[2])
bad = 0
GONE = object()
WORKFLOW = """intact: 1
workflow: w
steps:
  - {name: a, agent: x, action: y, undo: {action: z}}
  - {name: v, approve: {by: boss, question: Well?}}
  - {name: s, signal: {name: paid}}
"""
ANSWERS = [{"output": {"id": "${ .input }"}, "takes": "2s", "times": 2, "if": ".attempt == 1"},
           {"refuse": {"code": "no", "message": "No.", "effect": "unknown", "took_effect": True}},
           {"fail": {"code": "busy", "retry_after": "1m"}}, {"silent": "after effect"},
           {"effect": {"n": ".world.n + 1", "list": []}, "undone": {"list": [1]}, "idempotent": False, "barrier": True}]
FAULTS = [{"request": "a", "number": 2, "is": "late", "for": "5m", "always": True}, {"undo": "a", "is": "refused"}, {"commit": 3, "is": "killed after"},
          {"stop": 1, "is": "skip"}, {"signal": "paid", "is": "twice"}, {"vote": "v", "is": "against"}]
BASE = {"workflow": "w.yaml", "also": [], "world": {"n": 1, "list": [1]}, "agents": {"x.y": ANSWERS, "x.z": {}}, "always": ".world.n > 0", "at_end": ["true", ".task.state != 1"],
        "tests": [{"name": "t", "input": 5, "world": {"n": 2}, "at": "2027-01-31T10:00:00Z", "submitter": "ann", "agents": {"x.y": {"output": 1}},
                   "operator": [{"after": "1h", "pause": True}, {"after": "61m", "resume": "enough"}],
                   "signals": [{"after": "1h", "paid": {"n": 1}}],
                   "approvals": [{"after": "30m", "step": "v", "approve": "bob", "groups": ["boss"]}], "faults": FAULTS,
                   "expect": {"state": "processed", "error": None, "world": {"n": 3}, "order": ["a"], "within": "2h", "output": None,
                              "steps": {"a": "completed"}}}]}
T = "tests.0."
A = "agents.x\\.y."
WRONG = [
    ("workflow", GONE), ("workflow", 5), ("workflow", ""), ("also", "x"), ("also", [5]), ("world", []), ("agents", []), ("tests", GONE), ("tests", []),
    ("tests", {}), ("tests", [5]), ("zzz", 1), ("agents.x\\.y", []), ("agents.x\\.y", 5), ("agents.x\\.y", "ok"),
    (A + "0.otput", 1), (A + "0.takes", 5), (A + "0.takes", "soon"), (A + "0.times", 0), (A + "0.times", "2"), (A + "0.if", True),
    (A + "0.refuse", "x"), (A + "3.fail", "x"), (A + "3.output", 1), (A + "3.silent", True), (A + "3.silent", "never"),
    (A + "1.refuse", ""), (A + "1.refuse", 5), (A + "1.refuse.code", GONE), (A + "1.refuse.effect", "none"), (A + "1.refuse.effect", "maybe"),
    (A + "1.refuse.effect", GONE), (A + "1.refuse.took_effect", 1), (A + "1.refuse.message", 5), (A + "1.refuse.cod", "x"),
    (A + "2.fail.retry_after", 5), (A + "4.effect", {}), (A + "4.effect", ".world"), (A + "4.undone", []),
    (T + "name", GONE), (T + "name", ""), (T + "name", 5), (T + "expect", GONE), (T + "expect", {}), (T + "expect", "?"), (T + "world", 5),
    (T + "submitter", ""), (T + "at", 5), (T + "zzz", 1), (T + "operator", {}), (T + "operator", [5]), (T + "operator", [{"after": "1h"}]),
    (T + "operator", [{"pause": True}]), (T + "operator", [{"after": "1h", "pause": False}]), (T + "operator", [{"after": "1h", "skip": True}]),
    (T + "operator", [{"after": "1h", "supply": "a"}]), (T + "operator", [{"after": "1h", "correct": "a"}]),
    (T + "operator", [{"after": "1h", "pause": True, "skip": "a"}]), (T + "operator", [{"after": "1h", "stop": "a"}]),
    (T + "operator", [{"after": "later", "pause": True}]),
    (T + "signals", {}), (T + "signals", [{"after": "1h"}]), (T + "signals", [{"paid": 1}]), (T + "signals", [{"after": "1h", "paid": 1, "x": 1}]),
    (T + "approvals", [{"after": "1h", "step": "v"}]), (T + "approvals", [{"after": "1h", "approve": "bob"}]),
    (T + "approvals", [{"after": "1h", "step": "v", "approve": "bob", "reject": "ann", "comment": "x"}]),
    (T + "approvals", [{"after": "1h", "step": "v", "reject": "bob"}]), (T + "approvals.0.groups", "boss"), (T + "approvals.0.zzz", 1),
    (T + "expect.state", "done"), (T + "expect.state", 5), (T + "expect.error", 5), (T + "expect.world", "before"), (T + "expect.world", 5),
    (T + "expect.order", "a"), (T + "expect.order", [5]), (T + "expect.order", [[]]), (T + "expect.order", [[5]]), (T + "expect.within", "0s"),
    (T + "expect.within", 5), (T + "expect.steps", "a"), (T + "expect.steps", {"a": "done"}), (T + "expect.zzz", 1), ("", []), ("", 5),
]


def complain(text):
    global bad
    bad += 1
    print(text)


def changed(path, value):
    if not path:
        return value
    tree = copy.deepcopy(BASE)
    at = tree
    keys = [k.replace("\0", ".") for k in path.replace("\\.", "\0").split(".")]
    keys = [int(k) if k.isdigit() else k for k in keys]
    for key in keys[:-1]:
        at = at[key]
    if value is GONE:
        del at[keys[-1]]
    else:
        at[keys[-1]] = value
    return tree


class NoDates(yaml.SafeLoader):
    """A date is a text, as the program reads it."""


NoDates.yaml_implicit_resolvers = {first: [r for r in found if not r[0].endswith(":timestamp")]
                                   for first, found in yaml.SafeLoader.yaml_implicit_resolvers.items()}

with open(root + "/docs/workflow-test.schema.json", encoding="utf-8") as f:
    schema = json.load(f)
jsonschema.Draft202012Validator.check_schema(schema)
validator = jsonschema.Draft202012Validator(schema)
work = tempfile.TemporaryDirectory()
with open(work.name + "/w.yaml", "w", encoding="utf-8") as f:
    f.write(WORKFLOW)


def run(trees):
    """What the program says of each, in one call: its mistakes, a line each."""
    names = [f"t{i}.test.json" for i in range(len(trees))]
    for name, tree in zip(names, trees):
        with open(f"{work.name}/{name}", "w", encoding="utf-8") as f:
            json.dump(tree, f)
    done = subprocess.run([intact, "test", *names], cwd=work.name, capture_output=True, text=True, check=False)
    return [[line for line in done.stderr.split("\n") if re.match(re.escape(name) + r":\d+:\d+: error: ", line)] for name in names]


def check_valid(what, tree):
    for error in validator.iter_errors(tree):
        complain(f"{what}: {error.json_path}: {error.message}")


def check_files():
    count = 0
    for folder, _, names in os.walk(root + "/examples"):
        for name in names:
            if name.endswith(".test.yaml"):
                count += 1
                with open(f"{folder}/{name}", encoding="utf-8") as f:
                    check_valid(name, yaml.load(f, NoDates))
    for document in ("docs/testing.md", "docs/simulating.md"):
        with open(f"{root}/{document}", encoding="utf-8") as f:
            for text in re.findall(r"\.test\.yaml <<'YAML'\n(.*?)^YAML$", f.read(), re.S | re.M):
                count += 1
                check_valid(document, yaml.load(text, NoDates))
    if count < 6:
        complain(f"only {count} test files")


def check_wrong():
    trees = [BASE] + [changed(path, value) for path, value in WRONG]
    answers = run(trees)
    check_valid("the base of the mistakes", BASE)
    if answers[0]:
        complain(f"the base of the mistakes: {answers[0]}")
    for (path, value), tree, told in zip(WRONG, trees[1:], answers[1:]):
        if not told:
            complain(f"the program takes {path}: {value}")
        if validator.is_valid(tree):
            complain(f"the schema takes {path}: {value}")


def check_keys():
    of = schema["$defs"]
    places = (("file", schema, "zzzzzzz"), ("test", of["test"], T + "zzzzzzz"), ("answer", of["answer"], A + "0.zzzzzzz"),
              ("error", of["fault"]["else"], A + "1.refuse.zzzzzzz"), ("vote", of["vote"], T + "approvals.0.zzzzzzz"),
              ("expect", of["expect"], T + "expect.zzzzzzz"))
    for (name, known, _), answer in zip(places, run([changed(path, 1) for _, _, path in places])):
        told = re.search(r"expected one of (.*)", "\n".join(answer))
        if not told or sorted(told[1].split(", ")) != sorted(known["properties"]):
            complain(f"keys of {name}: the program says {told and told[1]}, the schema {list(known['properties'])}")


check_files()
check_wrong()
check_keys()
sys.exit(1 if bad else 0)
