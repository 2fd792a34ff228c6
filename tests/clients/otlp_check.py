"""Parses an OTLP trace file, or a binary request to export metrics (FILE.metrics), with PyPI opentelemetry-proto, which refuses unknown
fields. Prints what it found."""

import json
import sys

from google.protobuf import json_format
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData


def traces(path):
    with open(path, encoding="utf-8") as file:
        found = json_format.Parse(file.read(), TracesData(), ignore_unknown_fields=False)
    spans = [span for resource in found.resource_spans for scope in resource.scope_spans for span in scope.spans]
    return {"spans": len(spans), "events": sum(len(span.events) for span in spans), "names": [span.name for span in spans]}


def metrics(path):
    request = ExportMetricsServiceRequest()
    with open(path, "rb") as file:
        given = file.read()
    request.ParseFromString(given)
    request.DiscardUnknownFields()
    assert len(request.SerializeToString()) == len(given), "there are unknown fields"
    return json_format.MessageToDict(request)


path = sys.argv[1]
print(json.dumps(metrics(path) if path.endswith(".metrics") else traces(path)))
