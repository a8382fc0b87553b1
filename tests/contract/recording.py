"""Reads and writes the file of recordings, and plays recordings to a server."""

import base64
import dataclasses
import json
import pathlib
import queue
import sys

import grpc
from google.protobuf import (any_pb2, descriptor_pb2, descriptor_pool, json_format, message,
                             message_factory)

FOLDER = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER.parent / "end_to_end"))

# pylint: disable=wrong-import-position
import api  # noqa: E402

FILE = FOLDER / "recorded.jsonl"
AWAIT_AN_END = "await an end"  # between two messages of a stream

# Error messages contain these limits.
SERVER_FLAGS = ["--max_tensor_bytes=1MiB", "--max_bytes_in_flight=1536KiB",
                "--max_message_bytes=4MiB", "--max_executions_per_stream=2"]


@dataclasses.dataclass
class Recording:
    name: str
    rpc: str
    send: list  # the messages as bytes; on a stream also AWAIT_AN_END
    answer: dict = None

    @classmethod
    def parse(cls, line):
        fields = json.loads(line)
        fields["send"] = [step if step == AWAIT_AN_END else bytes.fromhex(step)
                          for step in fields["send"]]
        return cls(**fields)

    def line(self):
        fields = dataclasses.asdict(self)
        fields["send"] = [step.hex() if isinstance(step, bytes) else step for step in self.send]
        return json.dumps(fields, separators=(",", ":"))


@dataclasses.dataclass
class Recordings:
    """`schema` is a FileDescriptorSet: the contract that the recorded clients were generated from."""

    schema: bytes
    cases: dict  # by name

    @classmethod
    def load(cls):
        first, *lines = FILE.read_text().splitlines()
        cases = [Recording.parse(line) for line in lines]
        by_name = {case.name: case for case in cases}
        assert len(by_name) == len(cases), "a name is given twice"
        return cls(base64.b64decode(json.loads(first)["schema"]), by_name)

    def save(self):
        first = json.dumps({"schema": base64.b64encode(self.schema).decode()})
        FILE.write_text("\n".join([first, *(case.line() for case in self.cases.values())]) + "\n")


def schema_of_today():
    files = descriptor_pb2.FileDescriptorSet()

    def add(file):
        if all(added.name != file.name for added in files.file):
            for dependency in file.dependencies:
                add(dependency)
            file.CopyToProto(files.file.add())

    add(api.sv.DESCRIPTOR)
    return files.SerializeToString(deterministic=True)


class Player:
    """Plays recordings to a server, and decodes its answers as a client with `schema` would."""

    def __init__(self, channel, schema):
        self._channel = channel
        self._pool = descriptor_pool.DescriptorPool()
        for file in descriptor_pb2.FileDescriptorSet.FromString(schema).file:
            self._pool.Add(file)

    def answer(self, case):
        """The server's answer to `case.send`, without times and statistics."""
        return getattr(self, "_" + case.rpc)(case.send)

    def sent(self, case):
        """The messages of `case` that can be decoded."""
        for step in case.send:
            try:
                if step != AWAIT_AN_END:
                    yield self._type(case.rpc + "Request").FromString(step)
            except message.DecodeError:
                pass

    def _type(self, name):
        return message_factory.GetMessageClass(
            self._pool.FindMessageTypeByName("opmill.v1." + name))

    def _call(self, rpc, shape):
        return getattr(self._channel, shape)(
            f"/{api.SERVICE}/{rpc}", request_serializer=bytes,
            response_deserializer=self._type(rpc + "Response").FromString)

    def _GetServerInfo(self, send):
        call = self._call("GetServerInfo", "unary_unary")
        info = _as_json(call(*send, timeout=api.TIMEOUT_SECONDS))
        # Of the operators that have a message: others may be added.
        desc = self._pool.FindMessageTypeByName("opmill.v1.OperatorDesc")
        names = {field.name.replace("_", "") for field in desc.fields}
        return {"feature_level": info["feature_level"],
                "operators": [row for row in info["operators"]
                              if row["operator"].replace("_", "") in names]}

    def _CompileOperator(self, send):
        call = self._call("CompileOperator", "unary_unary")
        try:
            compiled = _as_json(call(*send, timeout=api.TIMEOUT_SECONDS))
        except grpc.RpcError as error:
            return _status_of_call(error)
        # They depend on the plan, and on earlier requests.
        for field in ("scratch_bytes", "was_cached", "compile_duration"):
            compiled.pop(field, None)
        return compiled

    def _Execute(self, send):
        outcome = api.Outcome()
        try:
            for response in self._call("Execute", "unary_stream")(
                    *send, timeout=api.TIMEOUT_SECONDS):
                outcome.add(response)
        except grpc.RpcError as error:
            return _outcome_as_json(outcome) | _status_of_call(error)
        assert outcome.statistics is not None, "the last message holds statistics"
        return _outcome_as_json(outcome)

    def _ExecuteStream(self, send):
        """Collects the results of each execution id in order, and the status of a call that failed."""
        requests = queue.SimpleQueue()
        responses = self._call("ExecuteStream", "stream_stream")(
            iter(requests.get, None), timeout=api.TIMEOUT_SECONDS)
        answer = {"executions": {}}
        outcomes = {}

        def await_end():
            for response in responses:
                outcome = outcomes.setdefault(response.execution_id, api.Outcome())
                outcome.add(response)
                if response.WhichOneof("end") is None:
                    continue
                if response.HasField("status"):
                    outcome.status = response.status
                ends = answer["executions"].setdefault(str(response.execution_id), [])
                ends.append(_outcome_as_json(outcomes.pop(response.execution_id)))
                return True
            return False

        try:
            for step in send:
                if step == AWAIT_AN_END:
                    assert await_end(), "the stream has ended before an execution"
                else:
                    requests.put(step)
            requests.put(None)
            while await_end():
                pass
            assert not outcomes, "every execution ends before its stream"
        except grpc.RpcError as error:
            answer["call"] = _status_of_call(error)
        finally:
            requests.put(None)
        answer["executions"] = dict(sorted(answer["executions"].items()))
        return answer


def _as_json(response):
    return json_format.MessageToDict(response, preserving_proto_field_name=True)


def _outcome_as_json(outcome):
    parts = {} if outcome.started is None else _as_json(outcome.started)
    if outcome.outputs:
        parts["data"] = [outcome.outputs[index].hex() for index in sorted(outcome.outputs)]
    if outcome.status is not None:
        parts |= _status_as_json(outcome.status)
    return parts


def _status_of_call(error):
    return _status_as_json(api.Refusal.status_of(error))


def _status_as_json(status):
    code = next(code for code in grpc.StatusCode if code.value[0] == status.code)
    return {"code": code.name, "message": status.message,
            "details": [_detail_as_text(detail, status.message) for detail in status.details]}


def _detail_as_text(detail, sentence):
    """Omits the descriptions of a BadRequest if they repeat the status's message."""
    fields = _as_json(any_pb2.Any.FromString(detail.SerializeToString()))
    kind = fields.pop("@type").rpartition(".")[2]
    if kind != "BadRequest":
        return " ".join([kind, *(f"{name}={value}" for name, value in sorted(fields.items()))])
    return "BadRequest " + ", ".join(
        violation["field"] + ("" if violation["description"] == sentence
                              else f" ({violation['description']})")
        for violation in fields["field_violations"])
