#!/usr/bin/env python3
"""Lists the tools behind a gateway and calls one, as protobuf and signed, with code generated from our .proto.

    py_protobuf.py URL SEED_FILE KEY_ID TOOL ARGUMENTS

Written from docs/seal.md alone: PyPI grpcio-tools, cbor2 and cryptography, and nothing of Signalbox but the .proto.
Prints {"tools": [...], "result": {...}, "signed": [...], "replayed": reason}.
"""

import hashlib
import json
import os
import sys
import tempfile
import time
import urllib.error
import urllib.request

sys.dont_write_bytecode = True

try:
    import cbor2
    import grpc_tools
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from google.protobuf.internal.decoder import _DecodeVarint32
    from grpc_tools import protoc
except ImportError as error:
    print(f"not installed: run script/install-test-deps first ({error})", file=sys.stderr)
    sys.exit(77)

CONTENT_TYPE = "application/vnd.signalbox.mcp+protobuf"
PROTO = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../crates/seal/proto")
FRAME = b"signalbox-seal\0mcp-cbor/2\0request\0"


def generated():
    """The module that protoc makes of the .proto."""
    folder = tempfile.mkdtemp()
    known = os.path.join(os.path.dirname(grpc_tools.__file__), "_proto")
    code = protoc.main(["protoc", f"-I{PROTO}", f"-I{known}", f"--python_out={folder}", "signalbox_v1.proto"])
    assert code == 0, "protoc failed"
    sys.path.insert(0, folder)
    import signalbox_v1_pb2

    return signalbox_v1_pb2


def canonical(request):
    """The fields of a request that this client uses, in the canonical form mcp-cbor/2."""
    params = json.loads(request.params_json) if request.params_json else None
    nanos = lambda moment: moment.seconds * 1_000_000_000 + moment.nanos
    form = {
        "request_id": request.request_id,
        "timestamp": nanos(request.timestamp),
        "request_expiry": nanos(request.request_expiry),
        "permissions": [],
        "profile": request.profile,
        "domain": request.domain,
        "nonce": request.nonce,
        "method": request.method,
    }
    if params is not None:
        if request.method == "tools/call":
            form["name"] = params.pop("name")
        form["params"] = params
    return cbor2.dumps(form, canonical=True)


class Client:
    def __init__(self, url, key, key_id, pb):
        self.url, self.key, self.key_id, self.pb = url, key, key_id, pb
        self.next_id, self.session = 0, None

    def message(self, method, params, sign=True, notification=False):
        message = self.pb.McpMessage()
        request = message.request
        request.method = method
        if not notification:
            self.next_id += 1
            request.id_json = str(self.next_id).encode()
        if params is not None:
            request.params_json = json.dumps(params).encode()
        if sign:
            self.sign(request)
        return message

    def sign(self, request):
        request.request_id = os.urandom(8).hex()
        request.nonce = os.urandom(16)
        request.timestamp.seconds = int(time.time())
        request.request_expiry.seconds = request.timestamp.seconds + 60
        request.profile, request.domain = "mcp-cbor/2", "request"
        signature = self.key.sign(FRAME + canonical(request))
        request.signature.key_id, request.signature.algorithm = self.key_id, "ED25519"
        request.signature.signature = signature

    def send(self, message):
        headers = {"Content-Type": CONTENT_TYPE, "Accept": CONTENT_TYPE}
        if self.session:
            headers |= {"Mcp-Session-Id": self.session, "MCP-Protocol-Version": "2025-06-18"}
        request = urllib.request.Request(self.url, message.SerializeToString(), headers)
        with urllib.request.urlopen(request, timeout=60) as response:
            self.session = response.headers.get("Mcp-Session-Id") or self.session
            body = response.read()
        answers, at = [], 0
        while at < len(body):
            length, at = _DecodeVarint32(body, at)
            answers.append(self.pb.McpMessage.FromString(body[at : at + length]))
            at += length
        return answers[-1].response if answers else None

    def result(self, message):
        response = self.send(message)
        assert response.result_json, response
        return json.loads(response.result_json)


def main():
    url, seed, key_id, tool, arguments = sys.argv[1:]
    with open(seed, "rb") as file:
        key = Ed25519PrivateKey.from_private_bytes(file.read())
    client = Client(url, key, key_id, generated())
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "py-protobuf", "version": "1"}}
    client.result(client.message("initialize", hello))
    client.send(client.message("notifications/initialized", None, sign=False, notification=True))
    tools = client.result(client.message("tools/list", None))["tools"]
    call = client.message("tools/call", {"name": tool, "arguments": json.loads(arguments)})
    result = client.result(call)
    again = json.loads(client.send(call).error_json)
    unsigned = client.message("tools/call", {"name": tool, "arguments": json.loads(arguments)}, sign=False)
    refused = json.loads(client.send(unsigned).error_json)
    signature = result.get("_meta", {}).get("io.signalbox/signature", {})
    # What the gateway received, as the JSON that it makes of protobuf.
    request = call.request
    received = b'{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":%s}' % (request.id_json, request.params_json)
    print(
        json.dumps(
            {
                "tools": [entry["name"] for entry in tools],
                "result": result,
                "replayed": again["data"]["reason"],
                "unsigned": refused["data"]["reason"],
                "answers_request": signature.get("requestHash") == hashlib.sha256(received).hexdigest(),
            }
        )
    )


main()
