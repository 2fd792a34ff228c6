#!/usr/bin/env python3
"""Verifies a sealed tape without Signalbox: `signalbox tape export last -o tape.jsonl`, then `tape.py tape.jsonl`. It also takes a
report, `tape export last -o report.html`, which holds the tape. Of a report it verifies that tape alone, not the page around it.

Written from docs/seal.md alone. Needs cbor2 and cryptography. Exits as `signalbox tape verify` does, but for trust: it prints the key
that signed, and the reader has to know it. 0 valid, 1 broken, 4 intact and never closed, 5 never sealed.
"""
import base64
import hashlib
import json
import re
import sys

import cbor2
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

POINTS = ["client to gateway", "gateway to backend", "backend to gateway", "gateway to client"]
MAX_LEAVES, MAX_DEPTH, REMOVED = 256, 128, b'"[redacted]"'
SPACE, BARE = re.compile(rb"[ \t\n\r]*"), re.compile(rb'[^ \t\n\r,:"{}\[\]]+')
STRING = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)


# The members that a reader of a tape is shown and that a hash covers, and those that only tell how the rest is written.
HEAD = "format version id kind target started ended program redaction sampling parent seal sessions"
SESSION = "external client client_version revision transport proof claims address"
ENTRY = "seq at session exchange principal seal"
KINDS = {
    "message": "point kind method subject backend error_code length text base64 number own again lost redacted event_id http",
    "decisions": "by rule phase verdict detail conditions inputs redacted",
    "finished": "method subject backend outcome took bytes_in bytes_out operation round client redacted",
    "session_began": SESSION,
    "session_ended": "",
    "client": "number " + SESSION,
    "backend": "backend view revision hash parts left redacted",
    "rules": "hash text redacted",
    "gap": "facts reason",
    "lost": "number point reason",
    "refused": "status reason detail client",
}


class Broken(Exception):
    pass


def strict(text):
    """A JSON value without doubled members, of which readers would see one or the other."""

    def members(pairs):
        found = {}
        for name, value in pairs:
            if name in found:
                raise Broken(f"not valid: the member {name!r} is there twice")
            found[name] = value
        return found

    return json.loads(text, object_pairs_hook=members)


def only(value, names, place):
    """Refuses members that no hash covers: a reader would take them for recorded."""
    if not isinstance(value, dict):
        raise Broken(f"not valid: {place} is no object")
    for name in value:
        if name not in names.split():
            raise Broken(f"not valid: nothing that was signed covers the member {name!r} of {place}")


def kind(line):
    """The kind of an entry, which must tell nothing else."""
    kinds = [name for name in line if name in KINDS]
    if len(kinds) != 1:
        raise Broken("not valid: an entry of " + " and ".join(map(repr, kinds)) if kinds else "an entry of an unknown kind")
    name, told = kinds[0], line[kinds[0]]
    only(line, f"{ENTRY} {name}", "the entry")
    if name == "session_ended":
        if told is not True:
            raise Broken("not valid: 'session_ended' is not true")
        return name
    for one in told if name == "decisions" else [told]:
        only(one, KINDS[name], repr(name))
    if name == "message" and told.get("http") is not None:
        only(told["http"], "method url status headers redacted", "'http'")
    bodies = told["parts"] if name == "backend" else [told] if name == "message" else []
    for part in bodies:
        if name == "backend":
            only(part, "name text base64", "'parts'")
        if part.get("text") is not None and part.get("base64") is not None:
            raise Broken("not valid: both 'text' and 'base64'")
    return name


def base64_bytes(text):
    return base64.b64decode(text, validate=True)


def sha256(*parts):
    return hashlib.sha256(b"".join(parts)).digest()


def protobuf(data):
    """Field number to the list of its values: integers, or bytes."""
    fields, at = {}, 0

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
        elif key & 7 == 2:
            length = varint()
            value, at = data[at : at + length], at + length
        else:
            raise Broken("a seal cannot be read")
        fields.setdefault(key >> 3, []).append(value)
    return fields


def one(fields, number, default=None):
    return fields.get(number, [default])[0]


def leaves(body, paths):
    """Where the leaves of a message are."""
    if not paths or b"\0" in body:
        return []
    found = []

    def space(at):
        return SPACE.match(body, at).end()

    def value(at, alive, names, inside, depth):
        byte = body[at : at + 1]
        if byte in (b"{", b"["):
            if depth == MAX_DEPTH:
                raise ValueError
            return container(at, alive, names, inside, depth)
        match = (STRING if byte == b'"' else BARE).match(body, at)
        if not match:
            raise ValueError
        if inside and len(found) < MAX_LEAVES:
            found.append((at, match.end()))
        return match.end()

    def container(at, alive, names, inside, depth):
        is_object = body[at] == ord("{")
        end = b"}" if is_object else b"]"
        at = space(at + 1)
        if body[at : at + 1] == end:
            return at + 1
        while True:
            inner, below = [], inside
            if is_object:
                name = STRING.match(body, at)
                if not name:
                    raise ValueError
                at = space(name.end())
                if body[at : at + 1] != b":":
                    raise ValueError
                at = space(at + 1)
                if not inside and alive:
                    try:
                        text = json.loads(name.group(), strict=False)
                    except ValueError:
                        text = None
                    inner = [path for path in alive if len(path) > names and path[names] == text]
                    below = any(len(path) == names + 1 for path in inner)
            at = space(value(at, inner, names + 1, below, depth + 1))
            if body[at : at + 1] == end:
                return at + 1
            if body[at : at + 1] != b",":
                raise ValueError
            at = space(at + 1)

    try:
        at = space(value(space(0), paths, 0, False, 0))
        return found if at == len(body) else []
    except ValueError:
        return []


def commitment(body, places, salts, removed):
    hashes, frame, start = [], b"", 0
    removed = iter(removed)
    for (first, last), salt in zip(places, salts[1:]):
        if salt:
            hashes.append(sha256(b"\1", salt, body[first:last]))
        elif body[first:last] == REMOVED:
            hashes.append(next(removed))
        else:
            raise Broken("something stands in the place of a removed value")
        frame += body[start:first] + b"\0"
        start = last
    frame += body[start:]
    return sha256(b"\2", salts[0], frame, *hashes, len(frame).to_bytes(8, "big"), len(hashes).to_bytes(4, "big"))


def session(line):
    keys = ["external", "client", "client_version", "revision"]
    more = [line.get("proof"), line.get("claims", []), line.get("address")]
    return [line.get(key) for key in keys] + [line["transport"]] + more


def raw(line):
    if line.get("text") is not None:
        return line["text"].encode()
    return base64_bytes(line["base64"]) if line.get("base64") is not None else None


def form(line, body):
    """The canonical form of an entry."""
    items = [line["seq"], line["at"], line.get("session"), line.get("exchange"), line["principal"]]
    what = kind(line)
    if what == "message":
        told = line["message"]
        http = told.get("http")
        if http is not None:
            http = [http.get("method"), http.get("url"), http.get("status"), http["headers"], http.get("redacted", False)]
        items += ["message", POINTS.index(told["point"]) + 1, told["kind"], told.get("method"), told.get("subject"), told.get("backend")]
        items += [told.get("error_code"), told["length"], told.get("number", 0), told.get("own", False), 0 if told.get("again") is None else told["again"]]
        items += [told.get("lost"), told.get("redacted", False), told.get("event_id"), http, body]
    elif what == "decisions":
        keys = ["by", "rule", "phase", "verdict", "detail", "conditions", "inputs"]
        items += ["decisions", [[one.get(key) for key in keys] + [one.get("redacted", False)] for one in line["decisions"]]]
    elif what == "finished":
        told = line["finished"]
        items += ["finished", told["method"], told.get("subject"), told.get("backend"), told["outcome"], told["took"]]
        items += [told["bytes_in"], told["bytes_out"], told.get("operation"), told.get("round", 1), told.get("client"), told.get("redacted", False)]
    elif what == "session_began":
        items += ["session"] + session(line["session_began"])
    elif what == "session_ended":
        items += ["session_ended"]
    elif what == "client":
        items += ["client", line["client"]["number"]] + session(line["client"])
    elif what == "backend":
        told = line["backend"]
        items += ["backend", told["backend"], told.get("view", ""), told.get("revision"), told["hash"]]
        items += [[[part["name"], raw(part)] for part in told["parts"]], told.get("left", []), told.get("redacted", False)]
    elif what == "rules":
        items += ["rules", line["rules"]["hash"], line["rules"]["text"], line["rules"].get("redacted", False)]
    elif what == "gap":
        items += ["gap", line["gap"]["facts"], line["gap"]["reason"]]
    elif what == "lost":
        items += ["lost", line["lost"]["number"], POINTS.index(line["lost"]["point"]) + 1, line["lost"]["reason"]]
    elif what == "refused":
        told = line["refused"]
        items += ["refused", told.get("status"), told["reason"], told["detail"], told.get("client")]
    return cbor2.dumps(items)


def digest(line, details, paths, aes=None):
    """The hash of an entry by itself. Without the cipher of the tape's seed, the entry shows its salts."""
    body = raw(line["message"]) if "message" in line else None
    if body is not None:
        places, salts = leaves(body, paths), details.get(3)
        if salts is None and aes is None:
            raise Broken("the salts are missing")
        if salts is None:
            number = one(details, 2, 0) or line["seq"]
            blocks = b"".join(number.to_bytes(8, "big") + i.to_bytes(8, "big") for i in range(len(places) + 1))
            made = aes.encryptor().update(blocks)
            salts = [made[i : i + 16] for i in range(0, len(made), 16)]
        if len(salts) != len(places) + 1:
            raise Broken("the salts do not fit")
        body = commitment(body, places, salts, details.get(4, []))
    elif 5 in details:
        body = one(details, 5)
    return sha256(b"\3", form(line, body))


def start(head, seal):
    """The hash before the first entry."""
    commit = [path.decode() for path in seal.get(3, [])]
    redaction = "\n".join("\n".join(head["redaction"]).splitlines())
    items = ["signalbox-tape/1", head["id"], head["kind"], head["target"], head["started"], head["program"], redaction]
    return sha256(b"\5", cbor2.dumps(items + [head["sampling"], head.get("parent"), commit])), commit


def check(kind, tape, seq, hashed, at, ended, key_id, key, signature, missing=0):
    """Checks the signature of a head. One that closes a tape with gaps also says how many facts are missing."""
    canonical = cbor2.dumps([kind, tape, seq, hashed, at, ended, key_id, key] + ([missing] if missing else []))
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, b"signalbox-seal\0mcp-cbor/2\0tape\0" + canonical)
    except (InvalidSignature, ValueError):
        raise Broken(f"the {kind} signature does not fit") from None


def signed(kind, tape, head):
    """The seq and hash that a head signs, after its signature was checked."""
    fields = protobuf(head)
    seq, hashed, key = one(fields, 1, 0), one(fields, 2, b""), one(fields, 6, b"")
    key_id = one(fields, 5, b"").decode()
    check(kind, tape, seq, hashed, one(fields, 3, 0), one(fields, 4), key_id, key, one(fields, 7, b""), one(fields, 8, 0))
    return seq, hashed, one(fields, 4), key.hex()


def verify(lines):
    head = strict(next(lines))
    only(head, HEAD, "the head of the tape")
    if head["format"] != "signalbox-tape-jsonl":
        raise Broken("it is of another format")
    if not head.get("seal"):
        return 5, "the tape was never sealed", set()
    tape, seal = head["id"], protobuf(base64_bytes(head["seal"]))
    now, commit = start(head, seal)
    _, opening, _, key = signed("opening", tape, one(seal, 4, b""))
    keys, last, pruned = {key}, 0, 0
    if opening != now:
        raise Broken("the head is not the one that was sealed")
    if 5 in seal:
        pruned, now, _, key = signed("checkpoint", tape, one(seal, 5))
        keys.add(key)
        last = pruned
    seed, paths = one(seal, 2), [path.split(".") for path in commit]
    aes = Cipher(algorithms.AES(seed), modes.ECB()) if seed else None
    for text in lines:
        try:
            line = strict(text)
            what = kind(line)
        except (Broken, KeyError, ValueError, TypeError, AttributeError) as why:
            raise Broken(f"the line after entry {last}: {why!r}") from None
        if what == "gap" and line["seq"] == pruned and line["gap"]["reason"] == "pruned" and "seal" not in line:
            continue
        try:
            stored = base64_bytes(line["seal"])
            details = protobuf(stored[32:])
            now = sha256(b"\4", now, digest(line, details, paths, aes))
            if now != stored[:32]:
                raise Broken("it is not as it was recorded")
            if 1 in details:
                seq, hashed, _, key = signed("interim", tape, one(details, 1))
                keys.add(key)
                if (seq, hashed) != (line["seq"], now):
                    raise Broken("the signature is of another place")
        except (Broken, KeyError, ValueError, IndexError, TypeError, AttributeError, StopIteration) as why:
            raise Broken(f"entry {line['seq']}, after entry {last}: {why!r}") from None
        last = line["seq"]
    if 6 not in seal:
        if head.get("ended") is not None:
            raise Broken("the tape ended, but the signature that closes it is missing")
        return 4, f"intact up to entry {last}, and never closed", keys
    seq, hashed, ended, key = signed("closing", tape, one(seal, 6))
    if (seq, hashed, ended) != (last, now, head.get("ended")):
        raise Broken(f"the tape was closed after entry {seq}, and this one ends after entry {last}")
    missing = one(protobuf(one(seal, 6)), 8, 0)
    if missing:
        return 6, f"intact and closed after entry {last}, but {missing} facts could not be recorded", keys | {key}
    return 0, f"valid: closed after entry {last}", keys | {key}


def is_report(first):
    return first.lower().startswith(b"<!doctype html")


def lines_of(file):
    """The lines of a tape in JSON lines, or in a report of `tape export -o report.html`."""
    first = file.readline()
    if not is_report(first):
        yield first
        yield from file
        return
    for line in file:
        if line.startswith(b'<script type="application/x-ndjson" id="tape">'):
            break
    else:
        raise Broken("the report does not hold its tape")
    for line in file:
        if line.startswith(b"</script>"):
            return
        yield line


if __name__ == "__main__":
    with open(sys.argv[1], "rb") as file:
        report = is_report(file.peek(32))
        try:
            code, text, signers = verify(lines_of(file))
        except Broken as why:
            code, text, signers = 1, f"BROKEN: {why}", set()
    print(text)
    if report:
        print("only the tape in the report was verified: the page around it is not covered, and may show something else")
    for signer in sorted(signers):
        print(f"signed with the public key {signer}")
    sys.exit(code)
