"""A collector of traces: OTLP over gRPC, with the messages of the package opentelemetry-proto."""

import dataclasses
import threading
import time
from concurrent import futures

import grpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as service
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2_grpc

INTERNAL, SERVER = 1, 2  # Span.SpanKind


@dataclasses.dataclass
class Span:
    """With the spans that name it as their parent, in the order of their begins."""

    trace: str
    id: str
    parent: str
    name: str
    kind: int
    begin: int  # nanoseconds
    end: int
    attributes: dict
    error: str
    flags: int
    resource: dict
    children: list

    @property
    def duration(self):
        return self.end - self.begin

    def child(self, name):
        found = [child for child in self.children if child.name == name]
        assert len(found) == 1, (name, [child.name for child in self.children])
        return found[0]

    def covered(self):
        """The nanoseconds that belong to at least one child."""
        covered, until = 0, self.begin
        for child in self.children:
            covered += max(0, min(child.end, self.end) - max(child.begin, until))
            until = max(until, child.end)
        return covered


def _values(attributes):
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in attributes}


class Collector(trace_service_pb2_grpc.TraceServiceServicer):
    """Use it in `with`. `take` is called with each request before it is answered, and may wait."""

    def __init__(self, address="127.0.0.1:0", credentials=None, take=lambda request: None):
        self._take = take
        self._changed = threading.Condition()
        self.requests = []
        self._server = grpc.server(futures.ThreadPoolExecutor(4),
                                   options=[("grpc.so_reuseport", 0)])
        trace_service_pb2_grpc.add_TraceServiceServicer_to_server(self, self._server)
        port = (self._server.add_secure_port(address, credentials) if credentials
                else self._server.add_insecure_port(address))
        self.endpoint = f"{address.rpartition(':')[0]}:{port}"
        self._server.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._server.stop(0).wait()

    def Export(self, request, context):  # pylint: disable=invalid-name,unused-argument
        self._take(request)
        with self._changed:
            self.requests.append(request)
            self._changed.notify_all()
        return service.ExportTraceServiceResponse()

    def spans(self):
        """All of them, in the order in which they came."""
        with self._changed:
            requests = list(self.requests)
        spans = []
        for request in requests:
            for of_resource in request.resource_spans:
                resource = _values(of_resource.resource.attributes)
                for scope in of_resource.scope_spans:
                    spans += [Span(each.trace_id.hex(), each.span_id.hex(),
                                   each.parent_span_id.hex(), each.name, each.kind,
                                   each.start_time_unix_nano, each.end_time_unix_nano,
                                   _values(each.attributes),
                                   each.status.message if each.status.code == 2 else None,
                                   each.flags, resource, []) for each in scope.spans]
        by_id = {span.id: span for span in spans}
        assert len(by_id) == len(spans), "an id comes twice"
        for span in sorted(spans, key=lambda span: (span.begin, span.end)):
            if span.parent in by_id:
                by_id[span.parent].children.append(span)
        return spans

    def roots(self, count, seconds=10, inner=0):
        """Those without a parent here, once there are so many, and as many of the gRPC calls of HTTP
        requests."""
        until = time.monotonic() + seconds
        while True:
            spans = self.spans()
            ids = {span.id for span in spans}
            roots = [span for span in spans if span.kind == SERVER and span.parent not in ids]
            calls = [span for span in spans if span.kind != SERVER and "rpc.method" in span.attributes]
            if len(roots) >= count and len(calls) >= inner:
                assert len(roots) == count, [root.name for root in roots]
                return roots
            assert time.monotonic() < until, f"{len(roots)} of {count} calls have come"
            time.sleep(0.02)
