"""The message classes of the contract, created from its descriptors in a separate pool. So they do
not conflict with stubs that a program has generated from the same protos, or with google.rpc of
another package."""

from __future__ import annotations

import importlib.resources
import re
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

Message = Any  # created at import, so type checkers do not know their fields

_POOL = descriptor_pool.DescriptorPool()


def _load() -> None:
    data = importlib.resources.files(__package__).joinpath("contract.binpb").read_bytes()
    for file in descriptor_pb2.FileDescriptorSet.FromString(data).file:
        _POOL.AddSerializedFile(file.SerializeToString())


def _class_of(descriptor: Any) -> Any:
    if hasattr(message_factory, "GetMessageClass"):
        return message_factory.GetMessageClass(descriptor)
    return message_factory.MessageFactory(_POOL).GetPrototype(descriptor)  # before protobuf 4.22


def message(name: str) -> Any:
    """The class of the message of this name: message("opmill.v1.TensorDesc")."""
    return _class_of(_POOL.FindMessageTypeByName(name))


class Choices:
    """The values of an enumeration, as strings: "log_sum_exp" for REDUCE_FUNCTION_LOG_SUM_EXP,
    "5.0" for FEATURE_LEVEL_5_0."""

    def __init__(self, descriptor: Any) -> None:
        prefix = re.sub(r"(?<!^)(?=[A-Z])", "_", descriptor.name).upper() + "_"
        self.numbers: dict[str, int] = {
            _python_name(value.name[len(prefix):]): value.number
            for value in descriptor.values if value.number}
        self._names = {number: name for name, number in self.numbers.items()}

    def name(self, number: int) -> str:
        return self._names.get(number, "" if number == 0 else str(number))


def _python_name(name: str) -> str:
    return re.sub(r"(?<=\d)_(?=\d)", ".", name.lower())


def choices(name: str) -> Choices:
    return Choices(_POOL.FindEnumTypeByName(name))


_load()

SERVICE = "opmill.v1.OperatorService"
HEALTH_CHECK = "/grpc.health.v1.Health/Check"
OperatorDesc = message("opmill.v1.OperatorDesc")
TensorDesc = message("opmill.v1.TensorDesc")
ExecuteRequest = message("opmill.v1.ExecuteRequest")
ExecuteResponse = message("opmill.v1.ExecuteResponse")
ExecuteStreamRequest = message("opmill.v1.ExecuteStreamRequest")
ExecuteStreamResponse = message("opmill.v1.ExecuteStreamResponse")
CompileOperatorRequest = message("opmill.v1.CompileOperatorRequest")
ModelDesc = message("opmill.v1.ModelDesc")
DescribeModelRequest = message("opmill.v1.DescribeModelRequest")
ListModelsRequest = message("opmill.v1.ListModelsRequest")
SharedMemoryRange = message("opmill.v1.SharedMemoryRange")
TensorChunk = message("opmill.v1.TensorChunk")
Status = message("google.rpc.Status")
BadRequest = message("google.rpc.BadRequest")
ErrorInfo = message("google.rpc.ErrorInfo")
RetryInfo = message("google.rpc.RetryInfo")

DATA_TYPES = choices("opmill.v1.DataType")
REDUCE_FUNCTIONS = choices("opmill.v1.ReduceFunction")
KINDS_OF_WRITE = choices("opmill.v1.ResidentOutput.Kind")
FEATURE_LEVELS = choices("opmill.v1.FeatureLevel")

# The message of each operator that has one of its own, by the field of OperatorDesc.
OPERATORS = {field.name: field.message_type for field in OperatorDesc.DESCRIPTOR.fields
             if field.name != "named"}
