"""Recorded exchanges, taken apart. A parser of its own: it shares nothing with the server's."""

import json
import re
import sys
from urllib.parse import parse_qsl, unquote

sys.set_int_max_str_digits(0)  # numbers keep all their digits
sys.setrecursionlimit(20000)

REQUEST_LINE = re.compile(r"([A-Z]+) (/[!-\"$-~]*) HTTP/(1\.[01])")
STATUS_LINE = re.compile(r"HTTP/1\.1 ([1-5]\d\d) [ -~]*")
FIELD = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\t -~\x80-\xff]*?)[ \t]*")
CHUNK = re.compile(rb"([0-9A-Fa-f]{1,16})(?:;[\t -~]*)?\r\n")


class Malformed(Exception):
    """These bytes are not HTTP as it should be."""


def strict_json(data):
    """Parses what is to be JSON: no member twice, no NaN, UTF-8."""

    def members(pairs):
        found = dict(pairs)
        if len(found) < len(pairs):
            raise ValueError("a member stands there twice")
        return found

    def constant(text):
        raise ValueError(f"{text} is not JSON")

    text = data.decode("utf-8") if isinstance(data, bytes) else data
    return json.loads(text, object_pairs_hook=members, parse_constant=constant)


class Message:
    """Head and body; `cut` if the body is not all there."""

    def __init__(self, start, fields):
        self.start = start
        self.fields = fields  # (name, value), names in lower case
        self.body = b""
        self.cut = False

    def all(self, name):
        return [value for key, value in self.fields if key == name]

    def get(self, name):
        return (self.all(name) or [None])[0]

    def content_type(self):
        """Without its parameters, in lower case."""
        return (self.get("content-type") or "").split(";")[0].strip().lower()


def read_head(data, start_pattern):
    """-> (match of the start line, Message, rest), or None if the head is not all there."""
    end = data.find(b"\r\n\r\n")
    if end < 0:
        return None
    lines = data[:end].decode("latin-1").split("\r\n")
    start = start_pattern.fullmatch(lines[0])
    if not start:
        raise Malformed(f"start line {lines[0]!r}")
    fields = []
    for line in lines[1:]:
        field = FIELD.fullmatch(line)
        if not field:
            raise Malformed(f"field {line!r}")
        fields.append((field[1].lower(), field[2]))
    return start, Message(lines[0], fields), data[end + 4 :]


def read_chunks(data):
    """-> (body, rest, whole)"""
    parts, at = [], 0
    while True:
        size = CHUNK.match(data, at)
        if not size:
            if b"\r\n" in data[at : at + 40]:
                raise Malformed(f"chunk {data[at : at + 40]!r}")
            return b"".join(parts), b"", False
        length, at = int(size[1], 16), size.end()
        if length == 0:  # an empty line ends it, with a trailer in front or without
            if data.startswith(b"\r\n", at):
                return b"".join(parts), data[at + 2 :], True
            _, end, rest = data[at:].partition(b"\r\n\r\n")
            return b"".join(parts), rest, bool(end)
        parts.append(data[at : at + length])
        if len(data) < at + length + 2:
            return b"".join(parts), b"", False
        if data[at + length : at + length + 2] != b"\r\n":
            raise Malformed("a chunk does not end where it should")
        at += length + 2


def read_body(message, data, until_close):
    """Fills in the body; -> rest"""
    lengths, codings = message.all("content-length"), message.all("transfer-encoding")
    if len(lengths) + len(codings) > 1:
        raise Malformed("more than one Content-Length or Transfer-Encoding")
    if codings:
        if codings[0].lower() != "chunked":
            raise Malformed(f"transfer coding {codings[0]!r}")
        message.body, rest, whole = read_chunks(data)
        message.cut = not whole
        return rest
    if lengths:
        if not re.fullmatch(r"[0-9]{1,18}", lengths[0]):
            raise Malformed(f"Content-Length {lengths[0]!r}")
        length = int(lengths[0])
        message.body, message.cut = data[:length], len(data) < length
        return data[length:]
    if until_close:
        message.body, message.cut = data, True  # who knows
        return b""
    return data


class Request(Message):
    def __init__(self, method, target, message):
        super().__init__(message.start, message.fields)
        path, _, query = target.partition("?")
        self.method = method
        self.target = target
        self.raw_path = path
        self.segments = [unquote(s, errors="replace") for s in path.split("/")[1:]]
        self.query = parse_qsl(query, keep_blank_values=True)
        self.raw_query = query


class Answer(Message):
    def __init__(self, status, message):
        super().__init__(message.start, message.fields)
        self.status = status

    def problem_type(self):
        """Behind the prefix; None if it is no problem document."""
        try:
            found = strict_json(self.body)
            prefix, _, name = found["type"].rpartition(":")
            return name if prefix == "urn:intact:problem" else None
        except (ValueError, KeyError, TypeError, AttributeError):
            return None


def read_request(data):
    """-> (Request, rest); None if there is not even a whole head; raises Malformed."""
    head = read_head(data, REQUEST_LINE)
    if not head:
        if data.strip(b"\r\n"):
            raise Malformed("the head does not end")
        return None
    start, message, rest = head
    request = Request(start[1], start[2], message)
    if len(request.all("host")) != 1 and start[3] == "1.1":
        raise Malformed("not one Host")
    if request.all("expect") not in ([], ["100-continue"]):
        raise Malformed("Expect")
    rest = read_body(request, rest, False)
    return request, rest


def read_answer(data, method):
    """-> (Answer, rest) or None"""
    while True:
        head = read_head(data, STATUS_LINE)
        if not head:
            return None
        start, message, rest = head
        if start[1] != "100":  # 100 Continue comes before the answer
            break
        data = rest
    answer = Answer(int(start[1]), message)
    if method == "HEAD" or answer.status in (204, 304):
        return answer, rest
    return answer, read_body(answer, rest, True)


class Exchange:
    """One request, one answer. `request` is None if it was (on purpose) no good HTTP."""

    def __init__(self, test, request, answer):
        self.test = test
        self.request = request
        self.answer = answer

    def __str__(self):
        said = self.request.start if self.request else "malformed request"
        return f"{self.test}: {said[:200]} -> {self.answer.status}"


def exchanges_of(line):
    """Those on one connection, in their order. What was not answered is none."""
    record = json.loads(line)
    sent, heard = record["sent"].encode("latin-1"), record["heard"].encode("latin-1")
    while heard:
        request = None
        try:
            found = read_request(sent)
            request, sent = found if found else (None, b"")
        except Malformed:
            sent = b""
        found = read_answer(heard, request.method if request else None)
        if not found:
            return
        answer, heard = found
        yield Exchange(record["test"], request, answer)
        if not request:
            return


def events_of(body):
    """Of a stream of server-sent events, as {event, id?, data}; what is not complete is left out."""
    blocks = body.decode("utf-8").split("\n\n")
    for block in blocks[:-1]:
        event = {}
        for line in block.split("\n"):
            name, _, value = line.partition(":")
            value = value[1:] if value.startswith(" ") else value
            if name in ("event", "id"):
                event[name] = value
            elif name == "data":
                event["data"] = event.get("data", "") + value
            elif name not in ("", "retry"):
                raise ValueError(f"there is no field {name!r} in an event")
        if "data" in event:  # others are comments, or tell an id alone
            event["data"] = strict_json(event["data"])
            yield event
