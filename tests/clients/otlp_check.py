"""Parses an OTLP trace file with PyPI opentelemetry-proto, which refuses unknown fields. Prints what it found."""

import json
import sys

from google.protobuf import json_format
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

with open(sys.argv[1], encoding="utf-8") as file:
    traces = json_format.Parse(file.read(), TracesData(), ignore_unknown_fields=False)
spans = [span for resource in traces.resource_spans for scope in resource.scope_spans for span in scope.spans]
print(json.dumps({"spans": len(spans), "events": sum(len(span.events) for span in spans), "names": [span.name for span in spans]}))
