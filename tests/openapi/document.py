"""docs/openapi.yaml, as the checks look at it."""

import re
import sys

import yaml
from jsonschema import Draft202012Validator

METHODS = ("get", "put", "post", "delete", "patch", "options", "head")
PREFIX = "urn:intact:problem:"


class Document:
    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            try:
                self.root = yaml.load(file, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
            except yaml.YAMLError as e:
                sys.exit(f"{path}: {e}")
        self.components = self.root["components"]
        self.validators = {}
        self.operations = [
            Operation(self, template, item, method)
            for template, item in self.root["paths"].items()
            for method in METHODS
            if method in item
        ]
        self.shared = self.root["x-intact-shared"]
        types = self.components["schemas"]["ProblemType"]
        self.problem_types = [urn[len(PREFIX) :] for urn in types["enum"]]

    def follow(self, node):
        """The node itself, or what its $ref names."""
        while "$ref" in node:
            found = self.root
            for part in node["$ref"].removeprefix("#/").split("/"):
                found = found[part.replace("~1", "/").replace("~0", "~")]
            node = found
        return node

    def faults(self, schema, value):
        """What is wrong with the value, in words."""
        key = id(schema)
        if key not in self.validators:
            whole = {**schema, "components": self.components}
            self.validators[key] = Draft202012Validator(whole)
        validator = self.validators[key]
        if validator.is_valid(value):
            return []
        return [told(e) for e in validator.iter_errors(value)]

    def types_of(self, schema):
        """The types of problems that a schema names one by one."""
        schema = self.follow(schema)
        named = schema.get("properties", {}).get("type", {})
        for urn in named.get("enum", [named["const"]] if "const" in named else []):
            yield urn[len(PREFIX) :]
        for part in schema.get("allOf", []) + schema.get("anyOf", []):
            yield from self.types_of(part)

    def matching(self, segments):
        return [op for op in self.operations if op.matches(segments)]


def told(error):
    """The innermost reasons of an error: those of anyOf lie deeper."""
    if error.context:
        return "; or ".join(dict.fromkeys(told(e) for e in error.context))
    place = ".".join(str(p) for p in error.absolute_path) or "it"
    return f"{place}: {error.message[:300]}"


class Operation:
    def __init__(self, document, template, item, method):
        self.document = document
        self.node = item[method]
        self.name = self.node["operationId"]
        self.method = method.upper()
        self.template = template.split("/")[1:]
        listed = item.get("parameters", []) + self.node.get("parameters", [])
        self.parameters = [document.follow(p) for p in listed]
        self.responses = {
            int(status): document.follow(r) for status, r in self.node["responses"].items()
        }
        self.request = document.follow(self.node.get("requestBody", {})).get("content", {})

    def matches(self, segments):
        return len(segments) == len(self.template) and all(
            have == want or (want.startswith("{") and have != "")
            for have, want in zip(segments, self.template)
        )

    def path_values(self, segments):
        """{name: value} of what stands in the path's braces."""
        return {
            want[1:-1]: have for have, want in zip(segments, self.template) if want.startswith("{")
        }

    def parameter(self, place, name):
        for p in self.parameters:
            if p["in"] == place and p["name"] == name:
                return p
        return None

    def free_parameter(self, name):
        """One whose members stand in the query by names of their own."""
        for p in self.parameters:
            patterns = p["schema"].get("patternProperties", {})
            if p["in"] == "query" and any(re.search(k, name) for k in patterns):
                return p
        return None
