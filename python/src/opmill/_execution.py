"""One execution, without a connection: encodes its requests, and assembles the result from the
responses."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from . import _messages
from ._call import Array, Prepared, truth
from ._contract import (DATA_TYPES, FEATURE_LEVELS, CompileOperatorRequest, ExecuteRequest, ExecuteResponse,
                        ExecuteStreamRequest, ExecuteStreamResponse, Message, SharedMemoryRange)
from ._convert import to_dataclass
from ._resident import ResidentTensor, Write
from ._shared_memory import Segment
from ._tensors import empty_output, writable_bytes
from ._wire import Buffer, chunk_parts, field_head, join, split
from .errors import Internal, InvalidArgument, OpMillError, from_status

# 256 KiB to 4 MiB are equally fast; a smaller input is sent in one message.
CHUNK_BYTES = 1 << 20
# The rest of a message besides tensor bytes; a descriptor takes some hundred bytes.
_MAX_HEADER_BYTES = 4096


@dataclass(frozen=True)
class Execution:
    """The result of an execution."""

    outputs: tuple[Array, ...]
    statistics: _messages.ExecutionStatistics
    names: tuple[str, ...] = ()  # of the outputs of a model


class Request:
    """The requests of an execution. Each attempt encodes them again."""

    def __init__(self, prepared: Prepared, feature_level: str | None, max_message_bytes: int,
                 priority: int = 0, writes: Mapping[int, Write] = MappingProxyType({})) -> None:
        self._prepared = prepared
        self._writes = writes
        resident = [{"input": i, "name": tensor.resident}
                    for i, tensor in enumerate(prepared.tensors) if tensor.resident]
        self._positions = [i for i, tensor in enumerate(prepared.tensors) if not tensor.resident]
        self.inputs = [prepared.tensors[i].data for i in self._positions]
        self.may_share_memory = not resident and not writes
        # Rows that an attempt has appended before its answer was lost would be appended again.
        appends = any(write.kind == "append" for write in writes.values())
        self.max_attempts = 1 if appends else None
        self._fields = {prepared.field: prepared.desc, **_level(feature_level)}
        self._others = {"resident_inputs": resident, **_priority(priority), "resident_outputs": [
            write.message(output) for output, write in sorted(writes.items())]}
        self._failure: BaseException | None = None
        self.total_bytes = sum(map(len, self.inputs))
        room = max(max_message_bytes - _MAX_HEADER_BYTES, 1024)
        self._max_message_bytes = max_message_bytes
        self._chunk_bytes = min(CHUNK_BYTES, room)
        self._sends_file = False
        file_bytes = prepared.file.size if prepared.file else 0
        self.is_small = (self.total_bytes <= self._chunk_bytes
                         and self.total_bytes + file_bytes <= room)

    def sends_file_after(self, error: OpMillError) -> bool:
        """Whether the next attempt sends the file of the model, because this one did not."""
        file = self._prepared.file
        if file is None or self._sends_file or not file.is_needed(error, self._max_message_bytes):
            return False
        self._sends_file = True
        return True

    def file_has_arrived(self) -> None:
        self._sends_file = False

    def _file(self) -> dict[str, bytes]:
        file = self._prepared.file
        return {"model_file": file.read()} if file and self._sends_file else {}

    def message(self) -> bytes:
        """The one request of Execute."""
        request = ExecuteRequest(**self._fields, **self._others, **self._file())
        parts: list[Buffer] = [request.SerializeToString()]
        for data in self.inputs:
            parts += [field_head(len(data)), data]
        return join(parts)

    def shared_message(self, sources: Sequence[Message | None], target: Segment | None) -> bytes:
        """For Execute, with the inputs in shared memory; the outputs too, if `target` is given."""
        outputs = target.ranges if target else ()
        values = [SharedMemoryRange()] * self._prepared.values
        request = ExecuteRequest(**self._fields, **self._others, **self._file(),
                                 shared_inputs=[*sources, *values], shared_outputs=outputs)
        message: bytes = request.SerializeToString()
        return message

    def messages(self, sent: Callable[[int], None]) -> Iterator[bytes]:
        """The requests of ExecuteStream. gRPC takes one after the other; `sent` is called with the
        number of bytes taken so far. `raise_failure` raises the exception of `sent`, which gRPC
        would drop."""
        begin = {**self._fields, **self._others}
        head = ExecuteStreamRequest(execution_id=1, begin=begin, **self._file()).SerializeToString()
        if self._sends_file:
            yield head
            head = ExecuteStreamRequest(execution_id=1).SerializeToString()
        taken = 0
        for index, data in zip(self._positions, self.inputs):
            for offset in range(0, len(data), self._chunk_bytes):
                chunk = data[offset:offset + self._chunk_bytes]
                yield join((head, *chunk_parts(index, offset, chunk)))
                head = ExecuteStreamRequest(execution_id=1).SerializeToString()
                taken += len(chunk)
                try:
                    sent(taken)
                except BaseException as failure:
                    self._failure = failure
                    return  # the server refuses an execution without all of its input

    def raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure

    def finish(self, receiver: Receiver) -> Execution:
        return receiver.finish(self._prepared, self._writes)

    def compile_message(self) -> Message:
        return CompileOperatorRequest(**self._fields, **self._file())

    def key(self) -> bytes:
        """Equal for requests whose outputs have the same sizes."""
        key: bytes = CompileOperatorRequest(**self._fields).SerializeToString(deterministic=True)
        return key


def _level(feature_level: str | None) -> dict[str, int]:
    if feature_level is None:
        return {}
    name = str(feature_level)  # 5.0 is written for "5.0"
    if name not in FEATURE_LEVELS.numbers:
        raise InvalidArgument(f'"{name}" is no feature level; they are '
                              f'{", ".join(FEATURE_LEVELS.numbers)}.', field="feature_level")
    return {"feature_level": FEATURE_LEVELS.numbers[name]}


def _priority(priority: int) -> dict[str, int]:
    if not -2**31 <= priority < 2**31:
        raise InvalidArgument(f"priority ({priority}) is not in the range of INT32.",
                              field="priority")
    return {"priority": priority} if priority else {}


def _kept(write: Write, desc: Message, generation: int, rows: int, capacity: int) -> ResidentTensor:
    """The whole tensor, of which the output may be some rows."""
    shape = tuple(desc.sizes)
    return ResidentTensor(write.name, np.dtype(DATA_TYPES.name(desc.data_type)),
                          (rows, *shape[1:]) if shape else shape, generation, capacity)


class Receiver:
    """Assembles the outputs in new arrays, or takes them from a segment. Raises the error that the
    server reports, or Internal if a response violates the contract."""

    def __init__(self, *, is_stream: bool, segment: Segment | None = None) -> None:
        self._segment = segment
        self._response: Any = ExecuteStreamResponse if is_stream else ExecuteResponse
        self._outputs: list[Array] | None = None
        self._started: Message | None = None
        self._targets: list[memoryview] = []
        self._received: list[int] = []
        self._statistics: Message | None = None

    def add(self, message: bytes) -> None:
        header, chunks = split(message)
        response = self._response.FromString(header)
        if response.HasField("started"):
            self._start(response.started)
        for index, offset, data in chunks:
            if index >= len(self._targets) or offset != self._received[index]:
                raise Internal("The server sent a chunk that is not the next of any output.")
            end = offset + len(data)
            if end > len(self._targets[index]):
                raise Internal("The server sent more bytes of an output than it announced.")
            self._targets[index][offset:end] = data
            self._received[index] = end
        if response.HasField("statistics"):
            self._statistics = response.statistics
        elif hasattr(response, "status") and response.HasField("status"):
            raise from_status(response.status)

    def _start(self, started: Message) -> None:
        self._started = started
        if self._segment:
            self._outputs = self._segment.arrays(started.outputs)
            return
        # Those that stay on the server have no bytes here.
        self._outputs = [empty_output(desc) if size else np.empty(0)
                         for desc, size in zip(started.outputs, started.output_bytes)]
        self._targets = [writable_bytes(output) for output in self._outputs]
        self._received = [0] * len(self._outputs)

    def finish(self, prepared: Prepared, writes: Mapping[int, Write]) -> Execution:
        complete = self._received == [len(target) for target in self._targets]
        if (self._statistics is None or self._started is None or self._outputs is None
                or not complete):
            raise Internal("The server ended an answer before its last byte.")
        written = self._statistics
        kept = dict(zip(sorted(writes),
                        zip(written.generations, written.rows, written.capacity_rows)))
        outputs: list[Array | ResidentTensor] = [
            _kept(writes[i], self._started.outputs[i], *kept[i]) if i in kept else array
            for i, array in enumerate(self._outputs)]
        named = self._started.model_outputs
        if named:
            outputs = [truth(each) if output.is_bool else each
                       for each, output in zip(outputs, named)]
        return Execution(prepared.finish(outputs),
                         to_dataclass(self._statistics, _messages.ExecutionStatistics),
                         tuple(output.name for output in named))
