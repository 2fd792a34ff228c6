#!/usr/bin/env python3
"""Checks the golden vectors of the seal crate with a CBOR library and an Ed25519 library that are not ours.

    pip install cbor2 cryptography
    python3 examples/verify-seal/vectors.py [FOLDER]

Exits 0 if every vector holds. docs/seal.md describes both profiles.
"""

import json
import sys
from pathlib import Path

import cbor2
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from messages import prepared

FOLDER = Path(__file__).resolve().parents[2] / "crates/seal/tests/vectors"


class Refused(Exception):
    """The text has no canonical form."""


def integer(text):
    """A number without fraction and exponent."""
    if text == "-0":
        return -0.0
    value = int(text)
    if not -(2**63) <= value < 2**64:
        raise Refused(text)
    return value


def floating(text):
    """Any other number."""
    value = float(text)
    mantissa = text.lower().split("e")[0]
    if value in (float("inf"), float("-inf")) or (value == 0 and any(digit in "123456789" for digit in mantissa)):
        raise Refused(text)
    return value


def members(pairs):
    """An object without a key twice."""
    if len({key for key, _ in pairs}) != len(pairs):
        raise Refused("a key comes twice")
    return dict(pairs)


def constant(text):
    raise Refused(text)


def read(text):
    value = json.loads(
        text, parse_int=integer, parse_float=floating, parse_constant=constant, object_pairs_hook=members
    )
    json.dumps(value, ensure_ascii=False).encode()  # a lone surrogate has no UTF-8
    return value


def profile_1(value):
    """Floats become text, keys go in the order of their text, binary data and times have tags."""
    if isinstance(value, float):
        return f"{value:.8f}"
    if isinstance(value, list):
        return [profile_1(item) for item in value]
    if isinstance(value, dict):
        return {key: profile_1(value[key]) for key in sorted(value, key=lambda key: key.encode())}
    return value


def encode(profile, value):
    if profile == "mcp-cbor/1":
        return cbor2.dumps(profile_1(value))
    return cbor2.dumps(value, canonical=True)


def check_profile(path):
    vectors = json.loads(path.read_text())
    for case in vectors["cases"]:
        found = encode(vectors["profile"], read(case["json"])).hex()
        assert found == case["cbor"], f"{path.name}: {case['json']} is {found}, not {case['cbor']}"
    for text in vectors["refused"]:
        try:
            read(text)
        except (Refused, ValueError):
            continue
        raise AssertionError(f"{path.name}: {text} is not refused")
    return len(vectors["cases"]) + len(vectors["refused"])


def check_signatures(path):
    vectors = json.loads(path.read_text())
    private = Ed25519PrivateKey.from_private_bytes(bytes.fromhex(vectors["seed"]))
    public = Ed25519PublicKey.from_public_bytes(bytes.fromhex(vectors["public_key"]))
    for case in vectors["cases"]:
        frame = f"signalbox-seal\0{case['profile']}\0{case['domain']}\0".encode() + bytes.fromhex(case["cbor"])
        signature = bytes.fromhex(case["signature"])
        assert private.sign(frame) == signature, f"{path.name}: {case}"
        public.verify(signature, frame)
        try:
            public.verify(signature, frame[:-1] + bytes([frame[-1] ^ 1]))
        except InvalidSignature:
            continue
        raise AssertionError(f"{path.name}: a changed byte is not noticed")
    return len(vectors["cases"])


def check_messages(path):
    """Whole messages, from their protobuf to the signature."""
    vectors = json.loads(path.read_text())
    private = Ed25519PrivateKey.from_private_bytes(bytes.fromhex(vectors["seed"]))
    assert private.public_key().public_bytes_raw().hex() == vectors["public_key"]
    for case in vectors["cases"]:
        made, signature = prepared(case["kind"], bytes.fromhex(case["protobuf"]), read)
        assert made.hex() == case["prepared"], f"{path.name}: {case['name']} is {made.hex()}, not {case['prepared']}"
        assert private.sign(made) == signature == bytes.fromhex(case["signature"]), f"{path.name}: {case['name']}"
    return len(vectors["cases"])


def main():
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    checked = check_profile(folder / "mcp-cbor-1.json") + check_profile(folder / "mcp-cbor-2.json")
    checked += check_signatures(folder / "signatures.json")
    checked += check_messages(folder / "messages.json")
    print(f"{checked} vectors hold")


if __name__ == "__main__":
    main()
