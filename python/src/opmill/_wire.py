"""Encodes and splits messages without passing tensor bytes through protobuf. Tensor bytes are in
field 100, after all other fields. A request is the small fields and a view of the array, joined
once. A response is split into the small fields and views of the received tensor bytes.
proto/payload.h does the same in C++."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Union

from ._contract import TensorChunk
from .errors import Internal

Buffer = Union[bytes, memoryview]

_PAYLOAD_FIELD = 100
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


def _varint(number: int) -> bytes:
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


_TAG = _varint(_PAYLOAD_FIELD << 3 | _BYTES)


def field_head(size: int) -> bytes:
    """The tag and the length of field 100."""
    return _TAG + _varint(size)


def chunk_parts(tensor_index: int, offset: int, data: Buffer) -> tuple[bytes, Buffer]:
    """A TensorChunk in field 100: the bytes before its data, and the data."""
    fields: bytes = TensorChunk(tensor_index=tensor_index, offset=offset).SerializeToString()
    head = fields + field_head(len(data))
    return field_head(len(head) + len(data)) + head, data


def join(parts: Iterable[Buffer]) -> bytes:
    return b"".join(parts)


def _read_varint(data: memoryview, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, at
        shift += 7


def _fields(data: memoryview) -> Iterator[tuple[int, int, memoryview, int]]:
    """Yields for each field of a message: its number, the position where it begins, its bytes
    (empty for a varint), and the value of a varint."""
    at = 0
    while at < len(data):
        begin = at
        tag, at = _read_varint(data, at)
        number, kind = tag >> 3, tag & 7
        value = 0
        if kind == _VARINT:
            value, at = _read_varint(data, at)
            size = 0
        elif kind == _BYTES:
            size, at = _read_varint(data, at)
        elif kind in (_FIXED32, _FIXED64):
            size = 4 if kind == _FIXED32 else 8
        else:
            raise ValueError(f"wire type {kind}")
        if at + size > len(data):
            raise IndexError("a field past the end")
        yield number, begin, data[at:at + size], value
        at += size


Chunk = tuple[int, int, memoryview]  # tensor_index, offset, data


def split(message: bytes) -> tuple[bytes, list[Chunk]]:
    """Splits a message into the small fields and the chunks in field 100."""
    data = memoryview(message)
    header: list[memoryview] = []
    chunks: list[Chunk] = []
    try:
        fields = list(_fields(data))
        ends = [begin for _, begin, _, _ in fields[1:]] + [len(data)]
        for (number, begin, content, _), end in zip(fields, ends):
            if number == _PAYLOAD_FIELD:
                chunks.append(_chunk(content))
            else:
                header.append(data[begin:end])
    except (IndexError, ValueError) as error:
        raise Internal("The server sent what is no message of the contract.") from error
    return b"".join(header), chunks


def _chunk(content: memoryview) -> Chunk:
    tensor_index = offset = 0
    data = content[:0]
    for number, _, value, varint in _fields(content):
        if number == 1:
            tensor_index = varint
        elif number == 2:
            offset = varint
        elif number == _PAYLOAD_FIELD:
            data = value
    return tensor_index, offset, data
