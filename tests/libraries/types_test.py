#!/usr/bin/env python3
"""The types of both libraries are those of docs/openapi.yaml: the same members, each of which is required or null where it is
there. Usage: types_test.py ROOT"""

import json
import os
import subprocess
import sys
import typing
import unittest

ROOT = os.path.realpath(sys.argv.pop())
sys.dont_write_bytecode = True
sys.path[:0] = [f"{ROOT}/lib/python", f"{ROOT}/tests/openapi"]
import document  # noqa: E402  # pylint: disable=wrong-import-position
import intact_client  # noqa: E402  # pylint: disable=wrong-import-position
from intact_client import types  # noqa: E402  # pylint: disable=wrong-import-position

API = document.Document(f"{ROOT}/docs/openapi.yaml")
SAME = ("Attempt", "AuditEntry", "CarriedSignal", "Cause", "Child", "Fault", "ItemPage", "Items", "Reason", "Step", "Submission", "Submitted", "SubmittedLine", "Task", "TaskPage",
        "TaskSummary", "Why", "Workflow", "WorkflowStored")
WORDS = "Direction", "StepState", "TaskState"


def schema_of(name):
    schemas = API.components["schemas"]
    return schemas["WorkRequest"]["properties"]["forward"] if name == "Forward" else schemas[name]


def may_be_null(schema):
    if schema.get("$ref", "").endswith("/Any"):
        return None  # any value
    schema = API.follow(schema)
    if not {"type", "anyOf", "enum", "const"} & set(schema):
        return None
    return "null" in schema.get("type", ()) or any(may_be_null(part) for part in schema.get("anyOf", ()))


def described(name):
    """{member: (required, may be null, or None for any value)}"""
    schema = schema_of(name)
    return {member: (member in schema.get("required", ()), may_be_null(value)) for member, value in schema["properties"].items()}


def in_python(name):
    kind = getattr(types, name)
    return {member: (member in kind.__required_keys__, None if hint is typing.Any else type(None) in typing.get_args(hint))
            for member, hint in typing.get_type_hints(kind).items()}


# Prints what the compiler knows of the types that it is asked for.
ASK = r"""
const ts = require("typescript");
const [file, ...names] = process.argv.slice(1);
const program = ts.createProgram([file], { strict: true, module: ts.ModuleKind.NodeNext, types: [] });
const checker = program.getTypeChecker();
const exported = checker.getExportsOfModule(checker.getSymbolAtLocation(program.getSourceFile(file)));
const found = {};
for (const name of names) {
  const type = checker.getDeclaredTypeOfSymbol(exported.find((e) => e.name === name));
  found[name] = type.isUnion() ? type.types.map((t) => t.value) : Object.fromEntries(type.getProperties().map((property) => {
    const of = checker.getTypeOfSymbol(property);
    const parts = of.isUnion() ? of.types : [of];
    const has = (flags) => parts.some((t) => (t.flags & flags) !== 0);
    const isAny = has(ts.TypeFlags.Unknown | ts.TypeFlags.TypeParameter);
    const isRequired = (property.flags & ts.SymbolFlags.Optional) === 0;
    return [property.name, [isRequired, isAny ? null : has(ts.TypeFlags.Null)]];
  }));
}
console.log(JSON.stringify(found));
"""


def in_typescript():
    home = subprocess.run([f"{ROOT}/lib/typescript/make"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    asked = []
    for file, names in (("types", (*SAME, *WORDS)), ("request", ("Forward",))):
        asked.append(subprocess.run(["node", "-e", ASK, f"{home}/dist/{file}.d.ts", *names], cwd=home, check=True,
                                    stdout=subprocess.PIPE, text=True).stdout)
    return {**json.loads(asked[0]), **json.loads(asked[1])}


class TypesTest(unittest.TestCase):
    maxDiff = None

    def compare(self, name, found):
        with self.subTest(name):
            said = described(name)
            self.assertEqual({member: (of[0], of[1] if said.get(member, (0, 0))[1] is not None else None)
                              for member, of in found.items()}, said)

    def test_python(self):
        for name in (*SAME, "Forward"):
            self.compare(name, in_python(name))
        for name in WORDS:
            self.assertEqual(sorted(typing.get_args(getattr(types, name))), sorted(schema_of(name)["enum"]), name)

    def test_typescript(self):
        found = in_typescript()
        for name in (*SAME, "Forward"):
            self.compare(name, found[name])
        for name in WORDS:
            self.assertEqual(sorted(found[name]), sorted(schema_of(name)["enum"]), name)

    def test_a_request_for_a_test_is_one_that_could_have_been_sent(self):
        request = intact_client.Request.for_test(forward={}, resume={"at": 1}, heartbeat_ms=5000, token="x",
                                                 traceparent="00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
        self.assertEqual(API.faults(schema_of("WorkRequest"), request.fields), [])
        self.assertEqual(sorted(request.fields), sorted(schema_of("WorkRequest")["properties"]))

    def test_the_arguments_of_submit_are_the_members_of_a_submission(self):
        arguments = set(intact_client.Client.submit.__annotations__) - {"return"}
        self.assertEqual(arguments, set(schema_of("Submission")["properties"]))


if __name__ == "__main__":
    unittest.main(verbosity=2)
