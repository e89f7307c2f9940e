#!/usr/bin/env python3
"""The manual and the schema of definitions, held against the program. Usage: check.py ROOT INTACT

* every whole definition in docs/, README.md, examples/ and bench/ is right; where docs/definitions.md shows
  a session of `intact validate`, that is what the program says;
* every definition that the program takes, those of the fuzzers' corpora included, is valid by the schema;
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


def complain(text):
    global bad
    bad += 1
    print(text)


class Core(yaml.SafeLoader):
    """YAML with the core schema of 1.2, by another reader than the program's."""


Core.yaml_implicit_resolvers = {}
for tag, pattern, first in (
    ("null", r"^(?:~|null|Null|NULL|)$", ["~", "n", "N", ""]),
    ("bool", r"^(?:true|True|TRUE|false|False|FALSE)$", list("tTfF")),
    ("int", r"^[-+]?[0-9]+$", list("-+0123456789")),
    ("float", r"^[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$", list("-+.0123456789")),
):
    Core.add_implicit_resolver("tag:yaml.org,2002:" + tag, re.compile(pattern), first)
Core.add_constructor("tag:yaml.org,2002:int", lambda loader, node: int(node.value))
Core.add_constructor("tag:yaml.org,2002:float", lambda loader, node: float(node.value))


def read(text):
    return json.loads(text) if text.lstrip(" \t\r\n").startswith("{") else yaml.load(text, Core)


def validate(files, cwd=None):
    run = subprocess.run([intact, "validate", "--json", *files], cwd=cwd, capture_output=True)
    return json.loads(run.stdout)["files"]


def blocks(path):
    """Fenced blocks, and the indented here-documents of README.md: (language, text)."""
    with open(path, encoding="utf-8") as f:
        text = f.read()
    for m in re.finditer(r"^```(\w*)\n(.*?)^```$", text, re.S | re.M):
        yield m.group(1), m.group(2)
    for m in re.finditer(r"^    cat > \S+ <<'(JSON|YAML)'\n(.*?)^    \1$", text, re.S | re.M):
        yield m.group(1).lower(), re.sub(r"^    ", "", m.group(2), flags=re.M)


def is_whole(language, text):
    marks = {"yaml": r"^intact: ", "json": r'^\s*\{\s*"intact"'}
    return language in marks and re.search(marks[language], text, re.M)


with open(root + "/docs/workflow.schema.json", encoding="utf-8") as f:
    schema = json.load(f)
jsonschema.Draft202012Validator.check_schema(schema)
validator = jsonschema.Draft202012Validator(schema)
work = tempfile.TemporaryDirectory()


def check_manuals():
    """Whole definitions that have no session shown must be right; the sessions must be true."""
    pages = ["README.md"] + ["docs/" + name for name in sorted(os.listdir(root + "/docs")) if name.endswith(".md")]
    named, right, sessions = {}, [], 0
    for page in pages:
        for language, text in blocks(f"{root}/{page}"):
            name = re.match(r"# (\S+\.ya?ml)\n", text)
            session = re.match(r"\$ intact validate (\S+)\n(.*)", text, re.S)
            if language == "text" and session:
                file = session.group(1)
                if file not in named:
                    complain(f"{page} validates {file}, which it does not show")
                    continue
                run = subprocess.run([intact, "validate", file], cwd=work.name, capture_output=True, text=True)
                if run.stderr + run.stdout != session.group(2):
                    complain(f"{page}: intact validate {file} says\n{run.stderr}{run.stdout}")
                named[file] = True
                sessions += 1
            elif is_whole(language, text):
                file = name.group(1) if name else f"block-{len(right)}.{language}"
                with open(os.path.join(work.name, file), "w", encoding="utf-8") as f:
                    f.write(text)
                if name:
                    named[file] = False
                else:
                    right.append((page, file, text))
    for file, was_shown in named.items():
        if not was_shown:
            complain(f"{file} has a name and no session")
    for (page, file, text), told in zip(right, validate([r[1] for r in right], work.name)):
        if told["errors"] or told["warnings"]:
            complain(f"{page}: a definition has mistakes: {told}\n{text}")
        check_valid(f"{page} {file}", read(text))
    orders = [read(text) for page, _, text in right if page == "docs/definitions.md" and read(text)["workflow"] == "order"]
    with open(f"{root}/src/definition/definition_example.md", encoding="utf-8") as f:
        orders += [json.loads(text) for text in re.findall(r"(?ms)^```json\n(.*?)^```", f.read())]
    if len(orders) != 2 or orders[0] != orders[1]:
        complain("docs/definitions.md: the example in YAML is not the one in JSON of src/definition")
    if sessions < 3 or len(right) < 3:
        complain(f"only {sessions} sessions and {len(right)} whole definitions in the manual")


def check_valid(what, tree):
    for error in validator.iter_errors(tree):
        complain(f"{what}: taken by the program, not by the schema: {error.json_path}: {error.message}")
        return


def check_files():
    files = []
    for folder in ("examples/order", "bench", "tests/corpus/yaml", "tests/corpus/definition", "tests/corpus/stored"):
        for name in sorted(os.listdir(f"{root}/{folder}")):
            path = f"{root}/{folder}/{name}"
            if os.path.isfile(path) and not name.endswith((".c", ".h", ".build", ".py", ".txt", ".mjs", ".test.yaml")):
                files.append(path)
    taken = 0
    for told in validate(files):
        if told["errors"] or not told["was_read"]:
            if "/corpus/" not in told["file"]:
                complain(f"{told['file']} has mistakes: {told['errors']}")
            continue
        with open(told["file"], "rb") as f:
            text = f.read().decode("utf-8-sig")
        try:
            tree = read(text)
        except yaml.YAMLError:
            continue  # the other reader knows less of YAML 1.2
        taken += 1
        check_valid(told["file"], tree)
    if taken < 20:
        complain(f"only {taken} definitions were taken")


STEP = {"name": "a", "agent": "x", "action": "y", "input": 1, "undo": {"action": "z", "http": {"path": "/"}, "retry": {"attempts": 2}},
        "retry": {"attempts": 3, "wait": "1s", "defer": "1m", "defers": 1}}
WAITS = [{"name": "l", "wait": "3d", "if": ".input", "after": [], "on_failure": "hold"},
         {"name": "m", "wait": {"until": "${ .input.at }", "plus": "-2h"}}]
REPEAT = {"until": ".output.ok", "every": "5s", "factor": 2, "max_every": "1m", "for": "2h"}
REPEATED = {"name": "n", "agent": "x", "action": "y", "undo": "none", "repeat": REPEAT}
SIGNALS = [{"name": "s", "signal": {"name": ["paid", "refused"], "match": ".data.ok"}, "complete_by": "2d", "default": {"name": "nobody"},
          "if": ".input", "after": [], "on_failure": "hold"},
         {"name": "p", "signal": {"name": "picked"}}]
APPROVAL = {"name": "v", "approve": {"by": ["finance", "Board"], "question": "Pay ${ .input.amount }?", "people": 2, "not": "submitter",
                                     "remind": "1d", "escalate": {"after": "2d", "to": "cfo"}},
            "complete_by": "3d", "default": {"approved": False}, "if": ".input", "after": [], "on_failure": "hold"}
CHILDREN = [{"name": "c", "task": {"workflow": "ship-one", "input": {"line": "${ .input.line }"}, "tags": {"kind": "parcel"}},
             "complete_by": "2d", "if": ".input", "after": [], "on_failure": "hold", "undo": {"agent": "x", "action": "y"}},
            {"name": "d", "task": {"workflow": "bill"}, "pivot": True}, {"name": "e", "task": {"workflow": "bill"}}]
EACH_CHILD = {"name": "h", "task": {"workflow": "bill", "input": "${ .item }"}, "for_each": "${ .input.lines }", "max_items": 9}
EACH = {"name": "f", "for_each": "${ .input.lines }", "max_items": 200, "concurrency": 5, "on_item_failure": {"tolerate": "5%"}, "agent": "x",
        "action": "y", "input": "${ .item.sku }", "undo": {"action": "z", "input": "${ .output.id // .index }"}}
BASE = {"intact": 1, "workflow": "w", "undo_until": "30d", "on_signal": {"cancelled": "undo"}, "inputs": {"i": {"type": "any"}},
        "steps": [STEP, *WAITS, REPEATED, *SIGNALS, APPROVAL, *CHILDREN, EACH, dict(EACH, name="g", for_each=[1, {"a": "${ .input.x }"}], on_item_failure="continue"),
                  EACH_CHILD],
        "on_undo": [{"name": "t", "agent": "x", "action": "y", "undo": "none", "on_failure": "continue"}]}
GONE = object()
# Where, and what is put there: each is a mistake that a schema can express.
WRONG = [
    ("intact", 2), ("intact", "1"), ("intact", GONE), ("workflow", "W w"), ("workflow", GONE), ("workflow", 7),
    ("workflow", "a" * 65), ("complete_by", "5 s"), ("complete_by", "0s"), ("complete_by", 30), ("undo_complete_by", []),
    ("on_failure", "stop"), ("output_", 1), ("for_each", 1), ("schedule", "x"), ("inputs", []), ("inputs.i", 1),
    ("inputs.i", {}), ("inputs.i.type", "text"), ("inputs.i.required", 1), ("inputs.i", {"type": "string", "default": 1}),
    ("inputs.i", {"type": "integer", "default": 1.5}), ("inputs.i", {"type": "number", "default": "1"}),
    ("inputs.i", {"type": "boolean", "default": "no"}), ("inputs.i", {"type": "array", "default": {}}),
    ("inputs.i", {"type": "object", "default": []}), ("inputs.i", {"type": "any", "required": True, "default": 1}),
    ("inputs.i.defualt", 1), ("steps", GONE), ("steps", []), ("steps", {}), ("steps", [7]),
    ("steps", [dict(STEP, name=f"s{i}") for i in range(1001)]),
    ("steps.0.name", GONE), ("steps.0.name", "a b"), ("steps.0.name", ""), ("steps.0.name", 1), ("steps.0.agent", GONE),
    ("steps.0.agent", "X"), ("steps.0.action", GONE), ("steps.0.action", "y z"), ("steps.0.action", None), ("steps.0.needs", []),
    ("steps.0.wait", "1s"), ("steps.0.if", True), ("steps.0.after", "a"), ("steps.0.after", [1]), ("steps.0.after", ["b", "b"]),
    ("steps.0.complete_by", "1 hour"), ("steps.0.on_failure", True), ("steps.0.pivot", True), ("steps.0.pivot", "yes"),
    ("steps.0.undo", GONE), ("steps.0.undo", True), ("steps.0.undo", "nothing"), ("steps.0.undo", {}), ("steps.0.undo.agent", 7),
    ("steps.0.undo.on_failure", "hold"), ("steps.0.undo.complete_by", "0m"), ("steps.0.undo.retry.attempts", 0),
    ("steps.0.retry", 5), ("steps.0.retry.attempts", 0), ("steps.0.retry.attempts", 1.5), ("steps.0.retry.attempts", 1001),
    ("steps.0.retry.wait", "x"), ("steps.0.retry.factor", 0.5), ("steps.0.retry.factor", "2"), ("steps.0.retry.factor", 101),
    ("steps.0.retry.max_wait", 5), ("steps.0.retry.jitter", "on"), ("steps.0.retry.defer", "0s"), ("steps.0.retry.defers", -1),
    ("steps.0.retry.defer", GONE), ("steps.0.retry.defers", GONE), ("steps.0.retry.defers", 1001), ("steps.0.retry.atempts", 1),
    ("steps.0.http", {"path": "/"}), ("steps.0.undo.http", {}), ("steps.0.undo.http", "x"),
    ("steps.0.undo.http", {"path": "x"}), ("steps.0.undo.http", {"path": "/", "method": "get"}),
    ("steps.0.undo.http", {"path": "/", "query": 1}), ("steps.0.undo.http", {"path": "/", "headers": {"a b": "c"}}),
    ("steps.0.undo.http", {"path": "/", "headers": {"a": []}}), ("steps.0.undo.http", {"path": "/", "output": 1}),
    ("steps.0.undo.http", {"path": "/", "permanent": [99]}), ("steps.0.undo.http", {"path": "/", "completed": 404}),
    ("steps.0.undo.http", {"path": "/", "zzz": 404}),
    ("undo_until", "0s"), ("undo_until", 30), ("on_undo", {}), ("on_undo", []), ("on_undo", [7]), ("on_undo.0.undo", GONE),
    ("on_undo.0.undo", {"action": "z"}), ("on_undo.0.pivot", True), ("on_undo.0.pivot", False), ("on_undo.0.on_failure", "undo"),
    ("on_undo.0.on_undo", []), ("on_undo.0.retry", 5), ("steps.0.on_undo", []),
    ("steps.1.wait", "0s"), ("steps.1.wait", 3), ("steps.1.wait", None), ("steps.1.wait", []), ("steps.1.wait", "-1d"),
    ("steps.1.wait", "soon"), ("steps.1.agent", "x"), ("steps.1.undo", "none"), ("steps.1.complete_by", "1d"),
    ("steps.1.name", GONE), ("steps.1.if", 1), ("steps.1.on_failure", "stop"), ("steps.1.pivot", False), ("steps.1.input", 1),
    ("steps.2.wait", {}), ("steps.2.wait.until", 7), ("steps.2.wait.until", None), ("steps.2.wait.plus", 2),
    ("steps.2.wait.plus", "2"), ("steps.2.wait.till", "x"), ("on_undo.0.wait", "1s"),
    ("steps.3.repeat", 7), ("steps.3.repeat", None), ("steps.3.repeat", {}), ("steps.3.repeat.until", GONE), ("steps.3.repeat.until", True),
    ("steps.3.repeat.every", GONE), ("steps.3.repeat.every", "0s"), ("steps.3.repeat.every", 5), ("steps.3.repeat.for", GONE),
    ("steps.3.repeat.for", "0s"), ("steps.3.repeat.factor", 0.5), ("steps.3.repeat.factor", "2"), ("steps.3.repeat.max_every", "0s"),
    ("steps.3.repeat.times", 3), ("steps.3.undo", GONE), ("steps.3.undo", {"action": "z"}), ("steps.1.repeat", REPEAT),
    ("steps.0.repeat", REPEAT), ("steps.0.undo.repeat", REPEAT),
    ("steps.4.signal", "paid"), ("steps.4.signal", {}), ("steps.4.signal", None), ("steps.4.signal.name", []),
    ("steps.4.signal.name", ["a", "a"]), ("steps.4.signal.name", ["A"]), ("steps.4.signal.name", 7), ("steps.4.signal.match", 7),
    ("steps.4.signal.mach", "x"), ("steps.4.complete_by", "0s"), ("steps.4.complete_by", GONE), ("steps.4.agent", "x"),
    ("steps.4.undo", "none"), ("steps.4.wait", "1s"), ("steps.4.retry", {}), ("steps.4.pivot", False), ("steps.4.name", GONE),
    ("steps.4.repeat", REPEAT), ("steps.5.signal.name", "x y"), ("on_undo.0.signal", {"name": "a"}), ("on_signal", {}), ("on_signal", []),
    ("on_signal.cancelled", "pause"), ("on_signal.cancelled", None), ("on_signal", {"A": "undo"}),
    ("steps.6.approve", "finance"), ("steps.6.approve", {}), ("steps.6.approve.by", GONE), ("steps.6.approve.by", []),
    ("steps.6.approve.by", ["a", "a"]), ("steps.6.approve.by", "a b"), ("steps.6.approve.question", GONE),
    ("steps.6.approve.question", ""), ("steps.6.approve.question", 7), ("steps.6.approve.people", 0), ("steps.6.approve.people", 21),
    ("steps.6.approve.people", "2"), ("steps.6.approve.not", "owner"), ("steps.6.approve.remind", "0s"), ("steps.6.approve.remind", 7),
    ("steps.6.approve.remind", "59s"), ("steps.6.approve.remind", "59999ms"),
    ("steps.6.approve.escalate", "2d"), ("steps.6.approve.escalate.to", GONE), ("steps.6.approve.escalate.after", GONE),
    ("steps.6.approve.escalate.to", []), ("steps.6.approve.poeple", 2), ("steps.6.complete_by", "0s"), ("steps.6.complete_by", GONE),
    ("steps.6.agent", "x"), ("steps.6.undo", "none"), ("steps.6.wait", "1s"), ("steps.6.signal", {"name": "s"}), ("steps.6.retry", {}),
    ("steps.6.name", GONE), ("on_undo.0.approve", {"by": "a", "question": "b"}),
    ("steps.7.task", "ship-one"), ("steps.7.task", {}), ("steps.7.task", None), ("steps.7.task.workflow", GONE),
    ("steps.7.task.workflow", "Ship One"), ("steps.7.task.workflow", "${ .input.how }"), ("steps.7.task.workflow", 7),
    ("steps.7.task.version", 3), ("steps.7.task.tags", []), ("steps.7.task.tags", None), ("steps.7.task.tags.kind", 7),
    ("steps.7.task.tags.kind", "x" * 257), ("steps.7.task.tags", {"a b": "c"}), ("steps.7.task.tags", {f"t{i}": "" for i in range(33)}),
    ("steps.7.complete_by", "0s"), ("steps.7.agent", "x"), ("steps.7.action", "x"), ("steps.7.input", 1), ("steps.7.http", {"path": "/"}),
    ("steps.7.retry", {}), ("steps.7.repeat", REPEAT), ("steps.7.heartbeat", "1s"), ("steps.7.default", 1), ("steps.7.wait", "1s"),
    ("steps.7.signal", {"name": "s"}), ("steps.7.approve", {"by": "a", "question": "b"}), ("steps.7.for_each", []), ("steps.7.name", GONE),
    ("steps.7.undo.agent", GONE), ("steps.7.undo.action", GONE), ("steps.7.undo", True), ("steps.7.undo", {}), ("steps.7.pivot", True),
    ("steps.8.undo", "none"), ("steps.8.pivot", "yes"), ("steps.9.on_failure", "stop"), ("steps.9.after", "a"), ("steps.9.if", True),
    ("on_undo.0.task", {"workflow": "bill"}), ("task", {"workflow": "bill"}),
    ("steps.10.max_items", GONE), ("steps.10.for_each", GONE), ("steps.10.for_each", 7), ("steps.10.for_each", None),
    ("steps.10.for_each", ".input.lines"), ("steps.10.max_items", 0), ("steps.10.max_items", 10001), ("steps.10.max_items", "9"),
    ("steps.10.concurrency", 0), ("steps.10.concurrency", 101), ("steps.10.on_item_failure", "undo"), ("steps.10.on_item_failure", {}),
    ("steps.10.on_item_failure.tolerance", "5%"), *[("steps.10.on_item_failure.tolerate", x)
    for x in (5, "5", "0%", "0.00%", "0.001%", "100.01%", "101%", "5.%", ".5%", "1000%", "-1%")],
    ("steps.10.task", {"workflow": "bill"}), ("steps.0.max_items", 3), ("steps.0.concurrency", 3), ("steps.0.on_item_failure", "stop"),
    ("on_undo.0.for_each", []), ("on_undo.0.max_items", 3), ("steps.1.for_each", []), ("max_items", 3), ("concurrency", 3),
    ("", []), ("", None), ("", "x"),
]


def changed(path, value):
    tree = copy.deepcopy(BASE)
    if not path:
        return value
    at = tree
    keys = [int(k) if k.isdigit() else k for k in path.split(".")]
    for key in keys[:-1]:
        at = at[key]
    if value is GONE:
        del at[keys[-1]]
    else:
        at[keys[-1]] = value
    return tree


def write(trees):
    for i, tree in enumerate(trees):
        with open(os.path.join(work.name, f"tree-{i}.json"), "w", encoding="utf-8") as f:
            json.dump(tree, f)
    return [f"tree-{i}.json" for i in range(len(trees))]


def check_wrong():
    trees = [BASE] + [changed(path, value) for path, value in WRONG]
    answers = validate(write(trees), work.name)
    check_valid("the base of the mistakes", BASE)
    if answers[0]["errors"]:
        complain(f"the base of the mistakes: {answers[0]}")
    for (path, value), tree, told in zip(WRONG, trees[1:], answers[1:]):
        if not told["errors"]:
            complain(f"the program takes {path}: {value}")
        if validator.is_valid(tree):
            complain(f"the schema takes {path}: {value}")


def check_keys():
    places = [("", schema, ""), ("step", schema["$defs"]["step"], "steps.0."), ("undo", schema["$defs"]["undo"], "steps.0.undo."),
              ("http", schema["$defs"]["http"], "steps.0.undo.http."), ("retry", schema["$defs"]["retry"], "steps.0.retry."), ("undo's retry", schema["$defs"]["retry"], "steps.0.undo.retry."),
              ("input", schema["$defs"]["input"], "inputs.i.")]
    answers = validate(write([changed(prefix + "zzzzzz", 1) for _, _, prefix in places]), work.name)
    for (name, of_schema, _), told in zip(places, answers):
        expected = told["errors"][0]["expected"]
        known = expected.removeprefix("one of ").split(", ")
        if len(told["errors"]) != 1 or sorted(known) != sorted(of_schema["properties"]):
            complain(f"keys of {name}: the program says {known}, the schema {list(of_schema['properties'])}")


check_manuals()
check_files()
check_wrong()
check_keys()
sys.exit(1 if bad else 0)
