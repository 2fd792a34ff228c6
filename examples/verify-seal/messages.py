"""Reads messages of signalbox.v1 by the .proto itself, and makes the bytes of them that are signed. Written from docs/seal.md alone."""

import json
import re
import struct
from pathlib import Path

import cbor2

PROTO = Path(__file__).resolve().parents[2] / "crates/seal/proto/signalbox_v1.proto"
WELL_KNOWN = """
message google.protobuf.Timestamp { int64 seconds = 1; int32 nanos = 2; }
message google.protobuf.Struct { map<string, google.protobuf.Value> fields = 1; }
message google.protobuf.ListValue { repeated google.protobuf.Value values = 1; }
message google.protobuf.Value { int32 null_value = 1; double number_value = 2; string string_value = 3; bool bool_value = 4;
  google.protobuf.Struct struct_value = 5; google.protobuf.ListValue list_value = 6; }
"""
NOT_SIGNED = dict.fromkeys(["McpRequest", "McpResponse"], {"signature", "hops", "id_json"})
RENAMED = {"params_json": "params", "params_struct": "params", "result_json": "result", "result_struct": "result"}
RENAMED |= {"error_json": "error", "other_members_json": "other_members", "signed_name": "name"}
ALWAYS = {"McpRequest": {"permissions"}, "McpResponse": {"status"}, "PermissionStatus": {"granted"}}
SUBJECTS = {"tools/call": ["name"], "prompts/get": ["name"], "resources/read": ["uri"]}
SUBJECTS |= {"resources/subscribe": ["uri"], "resources/unsubscribe": ["uri"]}
OWN = "io.modelcontextprotocol/"
CHANGING = {"progressToken", "traceparent", "tracestate", "baggage", "io.signalbox/signature"}
CHANGING |= {OWN + name for name in ("protocolVersion", "clientInfo", "clientCapabilities", "logLevel", "serverInfo")}


def schema():
    """Message name to field number to (name, type, label), and the names of enums."""
    text = re.sub(r"//[^\n]*", "", WELL_KNOWN + PROTO.read_text())
    messages = {}
    for name, body in re.findall(r"\bmessage ([\w.]+) \{((?:[^{}]|\{[^{}]*\})*)\}", text):
        fields = re.findall(r"(?:(repeated|optional) )?(map<[\w. ,]+>|[\w.]+) (\w+) = (\d+);", body)
        messages[name] = {int(number): (field, kind, label) for label, kind, field, number in fields}
    return messages, set(re.findall(r"\benum (\w+) \{", text))


MESSAGES, ENUMS = schema()


def wire(data):
    """Pairs of field number and value: an integer, or bytes."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        key = varint()
        if key & 7 == 0:
            value = varint()
        else:
            length = varint() if key & 7 == 2 else {1: 8, 5: 4}[key & 7]
            value, at = data[at : at + length], at + length
        yield key >> 3, value


def scalar(kind, value):
    if kind in MESSAGES:
        return decode(kind, value)
    if kind == "string":
        return value.decode()
    if kind == "double":
        return struct.unpack("<d", value)[0]
    if kind == "bool":
        return bool(value)
    if kind == "bytes":
        return value
    return value - 2**64 if value >= 2**63 else value


def decode(message, data):
    """Field name to value, of the fields that are there."""
    found = {}
    for number, value in wire(data):
        name, kind, label = MESSAGES[message][number]
        if kind.startswith("map<"):
            of = kind[4:-1].split(",")[1].strip()
            pair = dict(wire(value))
            empty = {} if of in MESSAGES else ""
            found.setdefault(name, {})[pair.get(1, b"").decode()] = scalar(of, pair[2]) if 2 in pair else empty
        elif label == "repeated":
            packed = kind in ENUMS and isinstance(value, bytes)
            items = varints(value) if packed else [scalar(kind, value)]
            found.setdefault(name, []).extend(items)
        else:
            found[name] = scalar(kind, value)
    return found


def varints(data):
    value = shift = 0
    for byte in data:
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            yield value
            value = shift = 0


class Canonical:
    """Makes canonical forms of one profile."""

    def __init__(self, profile, read):
        self.one, self.read = profile == "mcp-cbor/1", read

    def float(self, value):
        return f"{value:.8f}" if self.one else float(value)

    def bytes(self, value):
        return cbor2.CBORTag(24, value) if self.one else value

    def time(self, moment):
        nanos = moment.get("seconds", 0) * 1_000_000_000 + moment.get("nanos", 0)
        return cbor2.CBORTag(1, nanos) if self.one else nanos

    def json(self, value):
        """A value of JSON, or a structure as Python has it."""
        if isinstance(value, float):
            return self.float(value)
        if isinstance(value, list):
            return [self.json(item) for item in value]
        if isinstance(value, dict):
            return {key: self.json(item) for key, item in value.items()}
        return value

    def value(self, message, name, kind, value):
        if kind == "google.protobuf.Timestamp":
            return self.time(value)
        if kind == "google.protobuf.Struct":
            return self.json(structure(value))
        if kind in MESSAGES:
            return self.message(kind, value)
        if kind == "double":
            return self.float(value)
        if kind == "bytes":
            return self.json(self.read(value.decode())) if name.endswith("_json") else self.bytes(value)
        return value

    def message(self, message, fields):
        form = {}
        for name, kind, label in MESSAGES[message].values():
            always = name in ALWAYS.get(message, ())
            if name in NOT_SIGNED.get(message, ()) or name not in fields and not always:
                continue
            value = fields.get(name, [] if label == "repeated" else 0 if kind in ENUMS else False)
            # What is optional, a message, or always there counts even if it is empty.
            if not value and not always and label != "optional" and kind not in MESSAGES:
                continue
            if kind.startswith("map<"):
                made = value
            elif label == "repeated":
                made = [self.value(message, name, kind, item) for item in value]
            else:
                made = self.value(message, name, kind, value)
            form[RENAMED.get(name, name)] = made
        if message == "McpRequest" and isinstance(form.get("params"), dict):
            named = take(form["params"], SUBJECTS.get(fields.get("method", ""), []))
            if named is not None and "name" not in form:
                form["name"] = named
        for member in ("params", "result"):
            if isinstance(form.get(member), dict):
                form[member] = steady(form[member])
        return form

    def encode(self, value):
        return cbor2.dumps(ordered(value)) if self.one else cbor2.dumps(value, canonical=True)


def structure(fields):
    return {name: plain(value) for name, value in fields.get("fields", {}).items()}


def plain(value):
    """A google.protobuf.Value as Python has it: every number is a float."""
    [(kind, inner)] = value.items()
    if kind == "null_value":
        return None
    if kind == "struct_value":
        return structure(inner)
    if kind == "list_value":
        return [plain(item) for item in inner.get("values", [])]
    return inner


def take(params, path):
    """Takes the name of what the request is about out of the params."""
    return params.pop(path[0], None) if path else None


def steady(value):
    """Without what gateways change in `_meta`."""
    meta = value.get("_meta")
    if not isinstance(meta, dict):
        return value
    kept = {key: item for key, item in meta.items() if key not in CHANGING}
    rest = {key: item for key, item in value.items() if key != "_meta"}
    return rest | ({"_meta": kept} if kept else {})


def ordered(value):
    """Keys in the order of their text."""
    if isinstance(value, dict):
        return {key: ordered(value[key]) for key in sorted(value, key=lambda key: key.encode())}
    if isinstance(value, list):
        return [ordered(item) for item in value]
    return value


def prepared(kind, data, read):
    """The bytes of a message that are signed, and its signature."""
    message = "McpRequest" if kind == "request" else "McpResponse"
    fields = decode(message, data)
    profile = fields.get("profile") or "mcp-cbor/1"
    canonical = Canonical(profile, read)
    cbor = canonical.encode(canonical.message(message, fields))
    frame = b"" if canonical.one else f"signalbox-seal\0{profile}\0{kind}\0".encode()
    return frame + cbor, fields["signature"]["signature"]
