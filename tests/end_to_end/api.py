"""The service through grpcio, with stubs that are generated from proto/ when this module is imported."""

import atexit
import dataclasses
import pathlib
import queue
import shutil
import sys
import tempfile
import time

import grpc
import grpc_tools
from grpc_status import rpc_status
from grpc_tools import protoc

from server_process import ROOT


def generate_stubs(pattern):
    """Makes the stubs of the sources in proto/ that match the pattern importable."""
    directory = tempfile.mkdtemp(prefix="opmill-stubs-")
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    well_known = pathlib.Path(grpc_tools.__file__).parent / "_proto"
    # Of google.rpc the Python package of googleapis is used, not the copy in proto/.
    sources = [str(path) for path in sorted((ROOT / "proto").glob(pattern))]
    arguments = ["protoc", f"-I{ROOT / 'proto'}", f"-I{well_known}", f"--python_out={directory}",
                 f"--grpc_python_out={directory}", *sources]
    if protoc.main(arguments) != 0:
        raise RuntimeError("protoc could not generate the stubs")
    sys.path.insert(0, directory)


generate_stubs("opmill/v1/*.proto")

# pylint: disable=wrong-import-position,import-error
from google.rpc import error_details_pb2  # noqa: E402
from opmill.v1 import operator_pb2 as op  # noqa: E402,F401
from opmill.v1 import service_pb2 as sv  # noqa: E402
from opmill.v1 import service_pb2_grpc  # noqa: E402
from opmill.v1 import tensor_pb2 as ts  # noqa: E402

SERVICE = "opmill.v1.OperatorService"
TIMEOUT_SECONDS = 60


def connect(address):
    """A channel without own limits on messages, so that only those of the server apply."""
    return grpc.insecure_channel(address, options=[("grpc.max_send_message_length", -1),
                                                   ("grpc.max_receive_message_length", -1)])


def stub_of(channel):
    return service_pb2_grpc.OperatorServiceStub(channel)


@dataclasses.dataclass
class Outcome:
    """The result of one execution: its outputs as bytes, and its status."""

    started: object = None
    outputs: dict = dataclasses.field(default_factory=dict)
    statistics: object = None
    status: object = None
    messages: int = 0

    def add(self, message):
        self.messages += 1
        if message.HasField("started"):
            assert self.started is None, "started comes once"
            self.started = message.started
        for chunk in message.chunks:
            output = self.outputs.setdefault(chunk.tensor_index, bytearray())
            assert chunk.offset == len(output), "chunks of a tensor come in order, without gaps"
            output += chunk.data
        if message.HasField("statistics"):
            self.statistics = message.statistics

    def output(self, index):
        """The bytes of a complete output."""
        assert self.started is not None and self.statistics is not None, str(self.status)
        assert len(self.outputs[index]) == self.started.output_bytes[index]
        return bytes(self.outputs[index])


def execute(stub, operator, data, timeout=TIMEOUT_SECONDS, **fields):
    """Calls Execute with one message; raises grpc.RpcError."""
    outcome = Outcome()
    request = sv.ExecuteRequest(operator=operator, inputs=[data], **fields)
    for message in stub.Execute(request, timeout=timeout):
        outcome.add(message)
    return outcome


def wait_until_idle(stub, buffer_bytes_in_use=None, seconds=30):
    """The statistics once nothing is in flight and, where a number is given, as many bytes of the
    device are in use: a Direct3D device at rest holds its own and those of cached operators."""
    until = time.monotonic() + seconds
    while True:
        statistics = stub.GetStatistics(sv.GetStatisticsRequest(), timeout=10)
        in_use = statistics.device.buffer_bytes_in_use
        if (statistics.in_flight == sv.InFlight() and
                buffer_bytes_in_use in (None, in_use)):
            return statistics
        assert time.monotonic() < until, f"something is left behind: {statistics}"
        time.sleep(0.02)


class Stream:
    """An ExecuteStream call. Messages are sent at once; outcomes are read on request."""

    def __init__(self, stub, timeout=TIMEOUT_SECONDS):
        self._requests = queue.SimpleQueue()
        self._open = {}
        self.call = stub.ExecuteStream(iter(self._requests.get, None), timeout=timeout)

    def send(self, execution_id, chunks=(), **fields):
        self._requests.put(sv.ExecuteStreamRequest(
            execution_id=execution_id,
            chunks=[ts.TensorChunk(tensor_index=index, offset=offset, data=data)
                    for index, offset, data in chunks],
            **fields))

    def begin(self, execution_id, operator, chunks=(), **fields):
        end_of_inputs = fields.pop("end_of_inputs", False)
        self.send(execution_id, chunks, end_of_inputs=end_of_inputs,
                  begin=sv.BeginExecution(operator=operator, **fields))

    def half_close(self):
        self._requests.put(None)

    def next_end(self):
        """The id and the outcome of the next execution that ends; None if the stream ended with OK."""
        for message in self.call:
            outcome = self._open.setdefault(message.execution_id, Outcome())
            outcome.add(message)
            if message.WhichOneof("end") is None:
                continue
            if message.HasField("status"):
                outcome.status = message.status
            del self._open[message.execution_id]
            return message.execution_id, outcome
        assert not self._open, "every execution ends before its stream"
        return None

    def rest(self):
        """Half-closes the stream, and returns the outcomes of all further executions by id."""
        self.half_close()
        ends = {}
        while (end := self.next_end()) is not None:
            assert end[0] not in ends, "an execution ends once"
            ends[end[0]] = end[1]
        return ends


@dataclasses.dataclass
class Refusal:
    """The parts of a google.rpc.Status of a call or of an execution on a stream."""

    code: grpc.StatusCode
    sentence: str
    fields: list
    reason: str
    retry_seconds: float

    @classmethod
    def of(cls, status):
        fields, reason, retry = [], None, None
        for detail in status.details:
            if detail.Is(error_details_pb2.BadRequest.DESCRIPTOR):
                bad_request = error_details_pb2.BadRequest()
                detail.Unpack(bad_request)
                fields += [violation.field for violation in bad_request.field_violations]
            elif detail.Is(error_details_pb2.ErrorInfo.DESCRIPTOR):
                info = error_details_pb2.ErrorInfo()
                detail.Unpack(info)
                assert info.domain == "opmill", info
                reason = info.reason
            elif detail.Is(error_details_pb2.RetryInfo.DESCRIPTOR):
                info = error_details_pb2.RetryInfo()
                detail.Unpack(info)
                retry = info.retry_delay.ToNanoseconds() / 1e9
        code = next(code for code in grpc.StatusCode if code.value[0] == status.code)
        return cls(code, status.message, fields, reason, retry)

    @staticmethod
    def status_of(error):
        status = rpc_status.from_call(error)
        assert status is not None, f"an error without google.rpc details: {error}"
        return status

    @classmethod
    def of_error(cls, error):
        return cls.of(cls.status_of(error))
