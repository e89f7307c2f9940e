"""Is an exchange as the document says? And has everything that it says occurred?"""

import re
from urllib.parse import parse_qsl

from exchange import events_of, strict_json

import yaml

USUAL_FIELDS = {"content-type", "content-length", "connection", "transfer-encoding"}
PROBLEM = "application/problem+json"


class Judge:
    def __init__(self, document):
        self.document = document
        always = document.root["x-intact-always"]
        self.always = {name.lower(): field["schema"] for name, field in always.items()}
        self.optional = {name.lower() for name, field in always.items() if field.get("x-intact-optional")}
        self.seen = set()  # what occurred, as coverage names it
        self.count = 0

    # ---- one exchange ----

    def faults(self, exchange):
        """What is wrong with it, in words; and takes note of what it shows."""
        self.count += 1
        request, answer = exchange.request, exchange.answer
        operations = self.document.matching(request.segments) if request else []
        wanted = "GET" if request and request.method == "HEAD" else request and request.method
        mine = [op for op in operations if op.method == wanted]
        self.note_types(answer)
        found = self.of_always(answer)
        if mine:
            return found + self.of_operation(mine[0], request, answer)
        return found + self.of_nowhere(request, answer, operations)

    def of_always(self, answer):
        found = []
        for name, schema in self.always.items():
            value = answer.get(name)
            if value is None and name in self.optional:
                continue
            found += [f"there is no {name}"] if value is None else self.of_text(schema, value, f"header field {name}")
        return found

    def note_types(self, answer):
        for name in re.findall(rb'"urn:intact:problem:([a-z0-9-]*)"', answer.body):
            self.seen.add(("type", name.decode()))

    def of_operation(self, op, request, answer):
        response = op.responses.get(answer.status)
        shared = self.shared_for(answer, is_known=True)
        narrow = response and self.of_response(op, request, answer, response)
        if shared and (not response or narrow):
            return self.of_shared(answer, shared)
        if not response:
            return [f"{op.name} does not document {answer.status}"]
        found = list(narrow)
        if answer.status < 300:
            found += self.of_request(op, request, answer)
        if not found and request.method != "HEAD":
            self.seen.add(("status", op.name, answer.status))
            if answer.body:
                self.seen.add(("answer", op.name, answer.status, answer.content_type()))
            if answer.content_type() == PROBLEM:
                self.seen.add(("problem", op.name, answer.status, answer.problem_type()))
        return found

    def of_nowhere(self, request, answer, operations):
        """A path or method that is none, or a request that is no good HTTP."""
        if request and self.is_of_console(request, answer):
            return []
        if request and request.method == "HEAD":
            return [] if answer.status in (401, 403, 404, 405) else ["HEAD of nothing"]
        shared = self.shared_for(answer, is_known=False)
        if not shared:
            what = "no route of the document" if request else "malformed"
            return [f"{what}, answered {answer.status} {answer.problem_type()}"]
        found = self.of_shared(answer, shared)
        if answer.status == 405:
            found += self.of_allow(answer, operations)
        elif operations and answer.status == 404:
            found.append("404, though the path is in the document")
        return found

    def is_of_console(self, request, answer):
        """Pages and their parts are not in the document; tests/e2e/console_test.c knows them."""
        is_asked = "text/html" in (request.get("accept") or "").lower() or request.segments[:1] == ["assets"]
        return is_asked and request.method in ("GET", "HEAD") and answer.status in (200, 304, 400, 404) and (
            answer.get("content-security-policy") is not None or answer.content_type() == "text/plain")

    def of_allow(self, answer, operations):
        allowed = {op.method for op in operations}
        if "GET" in allowed:
            allowed.add("HEAD")
        told = {m.strip() for m in (answer.get("allow") or "").split(",")}
        return [] if told == allowed else [f"Allow says {sorted(told)}, expected {sorted(allowed)}"]

    # ---- what may come to any request ----

    def shared_for(self, answer, is_known):
        for entry in self.document.shared:
            if entry.get("at") == "unknown paths" and is_known:
                continue
            if entry["status"] == answer.status and answer.problem_type() in entry["types"]:
                return entry
        return None

    def of_shared(self, answer, entry):
        schema = self.document.components["schemas"]["Problem"]
        found = self.of_problem(answer, schema)
        if "header" in entry and answer.get(entry["header"].lower()) is None:
            found.append(f"there is no {entry['header']}")
        if not found:
            self.seen.add(("shared", answer.status, answer.problem_type()))
        return found

    def of_problem(self, answer, schema):
        if answer.content_type() != PROBLEM:
            return [f"content type {answer.content_type()!r}, expected {PROBLEM}"]
        return self.of_json(schema, answer)

    def of_json(self, schema, message):
        if message.cut:
            return []
        try:
            value = strict_json(message.body)
        except ValueError as e:
            return [f"not JSON: {e}"]
        found = self.document.faults(schema, value)
        if not found and message.content_type() == PROBLEM and value["status"] != message.status:
            found.append(f"the body says status {value['status']}")
        return found

    # ---- answers ----

    def of_response(self, op, request, answer, response):
        found = self.of_fields(op, request, answer, response)
        if request.method == "HEAD":
            return found
        content = response.get("content", {})
        if not content:
            return found + (["there is a body"] if answer.body else [])
        media = content.get(answer.content_type())
        if not media:
            return found + [f"content type {answer.content_type()!r} is not documented"]
        try:
            return found + self.of_media(media["schema"], answer)
        except (ValueError, UnicodeDecodeError) as e:
            return found + [str(e)]

    def of_fields(self, op, request, answer, response):
        """Header fields: all are documented, and as documented. HEAD may leave some out."""
        documented = {k.lower(): self.document.follow(v) for k, v in response.get("headers", {}).items()}
        found = [
            f"the header field {name} is not documented at {op.name} {answer.status}"
            for name, _ in answer.fields
            if name not in USUAL_FIELDS and name not in self.always and name not in documented
        ]
        for name, node in documented.items():
            value = answer.get(name)
            if value is None:
                is_wanted = node.get("required") and request.method != "HEAD"
                found += [f"there is no {name}"] if is_wanted else []
                continue
            found += self.of_text(node["schema"], value, f"header field {name}")
            self.seen.add(("header", op.name, answer.status, name))
        return found

    def of_media(self, schema, message):
        kind = message.content_type()
        if kind == "application/x-ndjson":
            lines = message.body.decode("utf-8").split("\n")
            if lines[-1] and not message.cut:
                return ["the last line does not end"]
            return self.of_all(schema["contentSchema"], [strict_json(t) for t in lines[:-1]])
        if kind == "text/event-stream":
            return self.of_all(schema["contentSchema"], list(events_of(message.body)))
        if schema.get("format") == "binary":
            whole = message.cut or message.body.startswith(b"SQLite format 3\0")
            return [] if whole else ["no database"]
        if kind in ("text/plain", "text/html"):
            return self.document.faults(schema, message.body.decode("utf-8"))
        return self.of_json(schema, message)

    def of_all(self, schema, values):
        return [f"{n}: {f}" for n, v in enumerate(values, 1) for f in self.document.faults(schema, v)]

    # ---- requests that were taken ----

    def of_request(self, op, request, answer):
        found = self.of_path(op, request) + self.of_query(op, request)
        for p in op.parameters:
            if p["in"] == "header" and request.get(p["name"].lower()) is not None:
                self.seen.add(("parameter", op.name, p["name"]))
        if request.method in ("GET", "HEAD") or request.cut:
            return found
        if not op.request:
            return found + (["a body, where none is documented"] if request.body else [])
        if not request.body and not op.node["requestBody"].get("required"):
            return found
        media = op.request.get(request.content_type())
        if not media:
            return found + [f"a body of {request.content_type()!r} was taken"]
        self.seen.add(("request", op.name, request.content_type()))
        return found + self.of_body(media["schema"], request, answer)

    def of_body(self, schema, request, answer):
        kind = request.content_type()
        if kind == "application/x-ndjson":
            return self.of_lines(schema["contentSchema"], request, answer)
        if kind == "application/x-www-form-urlencoded":
            value = dict(parse_qsl(request.body.decode("ascii"), keep_blank_values=True))
            return self.document.faults(schema, value)
        if "yaml" in kind:
            value = yaml.safe_load(request.body)
            return self.document.faults(schema["contentSchema"], value)
        try:
            return [f"taken, though {f}" for f in self.document.faults(schema, strict_json(request.body))]
        except (ValueError, UnicodeDecodeError) as e:
            return [f"taken, though it is not JSON: {e}"]

    def of_lines(self, schema, request, answer):
        """Those lines that were taken."""
        lines, found = request.body.split(b"\n"), []
        if answer.cut:
            return []
        for outcome in answer.body.decode("utf-8").splitlines():
            outcome = strict_json(outcome)
            if outcome["status"] >= 300:
                continue
            value = strict_json(lines[outcome["line"] - 1])
            found += [f"line {outcome['line']} was taken, though {f}" for f in self.document.faults(schema, value)]
        return found

    def of_path(self, op, request):
        found = []
        for name, value in op.path_values(request.segments).items():
            found += self.of_text(op.parameter("path", name)["schema"], value, f"{name} in the path")
        return found

    def of_query(self, op, request):
        found, free = [], {}
        if op.node.get("x-intact-any-parameters"):
            return found
        for name, value in request.query:
            p = op.parameter("query", name)
            if p and not p["schema"].get("patternProperties"):
                found += self.of_text(p["schema"], value, f"parameter {name}")
            elif op.free_parameter(name):
                p = op.free_parameter(name)
                free.setdefault(p["name"], {})[name] = value
            else:
                found.append(f"parameter {name!r} was taken, and is not documented")
                continue
            self.seen.add(("parameter", op.name, p["name"]))
        for name, value in free.items():
            found += self.document.faults(op.parameter("query", name)["schema"], value)
        return found

    def of_text(self, schema, text, what):
        """A value that stands as text in a path, a query or a header field."""
        kind = self.document.follow(schema).get("type")
        value = text
        if kind == "integer":
            value = int(text) if re.fullmatch(r"-?[0-9]+", text) else text
        elif kind == "boolean":
            value = {"true": True, "false": False}.get(text, text)
        elif kind == "array":
            value = text.split(",")
        return [f"{what}: {f}" for f in self.document.faults(schema, value)]

    # ---- all of them ----

    def missing(self, without_types=()):
        """What the document says and no exchange has shown."""
        for op in self.document.operations:
            yield from self.missing_of(op)
        for entry in self.document.shared:
            for name in entry["types"]:
                if ("shared", entry["status"], name) not in self.seen:
                    yield f"no answer {entry['status']} {name}"
        for name in self.document.problem_types:
            if name not in without_types and ("type", name) not in self.seen:
                yield f"no problem {name}"

    def missing_of(self, op):
        for status, response in op.responses.items():
            if ("status", op.name, status) not in self.seen:
                yield f"{op.name}: no answer {status}"
                continue
            for kind in response.get("content", {}):
                if ("answer", op.name, status, kind) not in self.seen:
                    yield f"{op.name}: no answer {status} as {kind}"
            yield from self.missing_problems(op, status, response)
            for name, node in response.get("headers", {}).items():
                if ("header", op.name, status, name.lower()) not in self.seen and not self.is_elsewhere(name, node):
                    yield f"{op.name}: no answer {status} with {name}"
        for kind in op.request:
            if ("request", op.name, kind) not in self.seen:
                yield f"{op.name}: no body of {kind}"
        for p in op.parameters:
            if p["in"] != "path" and ("parameter", op.name, p["name"]) not in self.seen:
                yield f"{op.name}: parameter {p['name']} is never used"

    def is_elsewhere(self, name, node):
        """A field that need not be shown by each operation, and was by one."""
        anywhere = self.document.follow(node).get("x-intact-anywhere")
        return anywhere and any(s[0] == "header" and s[3] == name.lower() for s in self.seen)

    def missing_problems(self, op, status, response):
        if response.get("x-intact-any"):  # which of them it is depends on the machine
            return
        media = response.get("content", {}).get(PROBLEM)
        for name in self.document.types_of(media["schema"]) if media else []:
            if ("problem", op.name, status, name) not in self.seen:
                yield f"{op.name}: no answer {status} {name}"
