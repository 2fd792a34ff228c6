#!/usr/bin/env python3
"""Verifies the proof of one entry without Signalbox and without the tape.

    signalbox tape prove last --entry 17 -o proof.json
    python3 examples/verify-seal/proof.py proof.json

Written from docs/seal.md alone. Needs cbor2 and cryptography. Exits with 0 if the entry is one that was signed, and with 1 if not. It prints
the keys that signed, and the reader has to know them.
"""

import sys

from tape import HEAD, Broken, base64_bytes, check, digest, one, only, protobuf, sha256, signed, start, strict

SIGNED = "tape kind seq hash at ended missing key_id public_key signature"


def verify(proof):
    only(proof, "format tape entry before digests head", "the proof")
    only(proof["tape"], HEAD, "'tape'")
    only(proof["head"], SIGNED, "'head'")
    if proof["format"] != "signalbox-proof/1":
        raise Broken("it is of another format")
    tape, entry, head = proof["tape"], proof["entry"], proof["head"]
    # Only the beginning of the tape is proved: neither its sessions nor its end.
    if tape["format"] != "signalbox-tape-jsonl" or tape["sessions"] != [] or tape.get("ended") is not None:
        raise Broken("not valid: nothing that was signed covers 'sessions' or 'ended' of 'tape'")
    seal = protobuf(base64_bytes(tape["seal"]))
    if not set(seal) <= {1, 3, 4}:
        raise Broken("not valid: nothing that was signed covers all of 'seal' of 'tape'")
    begun, commit = start(tape, seal)
    seq, opening, _, opener = signed("opening", tape["id"], one(seal, 4, b""))
    if (seq, opening) != (0, begun):
        raise Broken("the head of the tape is not the one that was sealed")
    stored = base64_bytes(entry["seal"])
    details = protobuf(stored[32:])
    if not set(details) <= ({3, 4, 5} if "message" in entry else set()):
        raise Broken("not valid: nothing that was signed covers all of 'seal' of 'entry'")
    now = sha256(b"\4", bytes.fromhex(proof["before"]), digest(entry, details, [path.split(".") for path in commit]))
    if now != stored[:32]:
        raise Broken("the entry is not as it was recorded")
    digests = base64_bytes(proof["digests"])
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
    if type(missing) is not int:
        raise Broken("not valid: 'missing' of 'head' is no number")
    check(head["kind"], head["tape"], head["seq"], now, *times, head["key_id"], key, signature, missing)
    return f"entry {entry['seq']} is on the tape {tape['id']} as it was recorded", {opener, key.hex()}


if __name__ == "__main__":
    with open(sys.argv[1], "rb") as file:
        try:
            text, signers = verify(strict(file.read()))
        except (Broken, KeyError, ValueError, IndexError, TypeError, AttributeError, StopIteration) as why:
            print(f"BROKEN: {why!r}")
            sys.exit(1)
    print(text)
    for signer in sorted(signers):
        print(f"signed with the public key {signer}")
