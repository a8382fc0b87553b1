"""The elements of the tensors: a short cycle with ties, extremes, negative numbers and -0."""

import itertools
import struct

from cases import TYPES

_FORMATS = {"f32": "f", "f16": "e", "u32": "I", "u16": "H", "u8": "B", "i32": "i", "i16": "h",
            "i8": "b", "u64": "Q", "i64": "q"}
_FLOATS = (1.5, -2.0, 0.25, 3.0, -0.0, 0.0, 3.0, -2.0, 10.0, -0.125, 7.0)
SPECIALS = (1.0, float("nan"), float("-inf"), 0.0, -0.0, float("inf"), 2.0 ** -24, -65504.0, 1.0,
            float("inf"), float("nan"))


def data(dtype, count, values=None):
    """`count` elements as bytes: `values`, repeated."""
    if values is None:
        values = _FLOATS if dtype[0] == "f" else _integers(dtype)
    elements = itertools.islice(itertools.cycle(values), count)
    return struct.pack(f"<{count}{_FORMATS[dtype]}", *elements)


def _integers(dtype):
    bits = 8 * TYPES[dtype]
    smallest = -(1 << (bits - 1)) if dtype[0] == "i" else 0
    largest = smallest + (1 << bits) - 1
    return (3, largest, 0, 5, smallest, 7, largest, 100, 2, smallest, 5)
