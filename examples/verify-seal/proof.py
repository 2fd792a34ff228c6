#!/usr/bin/env python3
"""Verifies the proof of one entry without Signalbox and without the tape.

    signalbox tape prove last --entry 17 -o proof.json
    python3 examples/verify-seal/proof.py proof.json

Written from docs/seal.md alone. Needs cbor2 and cryptography. Exits with 0 if the entry is one that was signed, and with 1 if not. It prints
the keys that signed, and the reader has to know them.
"""

import base64
import json
import sys

from tape import Broken, check, digest, protobuf, one, sha256, signed, start


def verify(proof):
    if proof["format"] != "signalbox-proof/1":
        raise Broken("it is of another format")
    tape, entry, head = proof["tape"], proof["entry"], proof["head"]
    seal = protobuf(base64.b64decode(tape["seal"]))
    begun, commit = start(tape, seal)
    seq, opening, _, opener = signed("opening", tape["id"], one(seal, 4, b""))
    if (seq, opening) != (0, begun):
        raise Broken("the head of the tape is not the one that was sealed")
    details = protobuf(base64.b64decode(entry["seal"])[32:])
    now = sha256(b"\4", bytes.fromhex(proof["before"]), digest(entry, details, [path.split(".") for path in commit]))
    digests = base64.b64decode(proof["digests"])
    if len(digests) % 32:
        raise Broken("the digests are cut off")
    for at in range(0, len(digests), 32):
        now = sha256(b"\4", now, digests[at : at + 32])
    if head["kind"] not in ("interim", "closing") or head["tape"] != tape["id"] or head["seq"] < entry["seq"]:
        raise Broken("the signature is of another place")
    if head["hash"] != now.hex():
        raise Broken("the hashes do not lead from the entry to the signed one")
    key, signature = bytes.fromhex(head["public_key"]), bytes.fromhex(head["signature"])
    times, missing = (head["at"], head.get("ended")), head.get("missing", 0)
    check(head["kind"], head["tape"], head["seq"], now, *times, head["key_id"], key, signature, missing)
    return f"entry {entry['seq']} is on the tape {tape['id']} as it was recorded", {opener, key.hex()}


if __name__ == "__main__":
    with open(sys.argv[1], "rb") as file:
        try:
            text, signers = verify(json.load(file))
        except (Broken, KeyError, ValueError, IndexError, TypeError, StopIteration) as why:
            print(f"BROKEN: {why!r}")
            sys.exit(1)
    print(text)
    for signer in sorted(signers):
        print(f"signed with the public key {signer}")
