"""Converts NumPy arrays to tensors of the contract, and back."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import ArrayLike, NDArray

from ._contract import DATA_TYPES, Message, TensorDesc
from .errors import InvalidArgument

Array = NDArray[Any]

# An array with gaps is sent unchanged if the gaps are at most this part of it, else packed.
_MAX_GAPS = 1 / 8

# A type of the contract, because DirectML has it, that no operator supports.
_TAKEN_BY_NONE = "float64"

_MAX_STRIDE = 2**32 - 1


@dataclass(frozen=True)
class Tensor:
    desc: Message
    data: memoryview  # a view of the array, if possible


def tensors_of(inputs: Sequence[ArrayLike], paths: Sequence[str]) -> list[Tensor]:
    """Several inputs are broadcast by NumPy's rules, with strides of 0. Python numbers take the
    type of the first array."""
    dtype = next((value.dtype for value in inputs if isinstance(value, np.ndarray)), None)
    arrays = [np.asarray(value, dtype if isinstance(value, (int, float)) else None)
              for value in inputs]
    if len(arrays) > 1:
        try:
            shape = np.broadcast_shapes(*(array.shape for array in arrays))
        except ValueError:
            shapes = " and ".join(str(array.shape) for array in arrays)
            raise InvalidArgument(f"Inputs of shapes {shapes} do not broadcast to one shape.",
                                  field=paths[-1]) from None
        arrays = [np.broadcast_to(array, shape) for array in arrays]
    return [tensor_of(array, path) for array, path in zip(arrays, paths)]


def tensor_of(array: Array, path: str) -> Tensor:
    number = data_type(array.dtype, path)
    array = array.astype(array.dtype.newbyteorder("<"), copy=False)
    strides = _strides_to_send(array)
    if strides is None:
        array = _packed(array)
        strides = () if array.flags.c_contiguous else _strides_to_send(array) or ()
    desc = TensorDesc(data_type=number, sizes=array.shape, strides=strides)
    return Tensor(desc, _bytes_of(array, strides))


def data_type(dtype: np.dtype[Any], path: str) -> int:
    if dtype.name not in DATA_TYPES.numbers or dtype.name == _TAKEN_BY_NONE:
        types = ", ".join(name for name in DATA_TYPES.numbers if name != _TAKEN_BY_NONE)
        raise InvalidArgument(f"Elements are {dtype.name}, which no operator takes; convert them "
                              f"with astype to one of {types}.", field=f"{path}.data_type")
    return DATA_TYPES.numbers[dtype.name]


def empty_output(desc: Message) -> Array:
    return np.empty(tuple(desc.sizes), np.dtype(DATA_TYPES.name(desc.data_type)).newbyteorder("<"))


def writable_bytes(array: Array) -> memoryview:
    """The memory of a packed array."""
    return array.reshape(-1).view(np.uint8).data


def _strides_to_send(array: Array) -> tuple[int, ...] | None:
    """Strides in elements; () if the array is packed in row-major order. None if the array must be
    copied: it cannot be described by strides, or its gaps are too large."""
    if array.flags.c_contiguous:
        return ()
    strides = []
    distinct = 1  # the number of elements, if they do not overlap
    for size, step in zip(array.shape, array.strides):
        stride, rest = divmod(step, array.itemsize) if size > 1 else (0, 0)
        if rest or not 0 <= stride <= _MAX_STRIDE:
            return None
        strides.append(stride)
        distinct *= size if stride else 1
    if _span(array.shape, strides) > distinct * (1 + _MAX_GAPS):
        return None
    return tuple(strides)


def _packed(array: Array) -> Array:
    """A copy without gaps. Dimensions of stride 0 keep it."""
    first = tuple(slice(0, 1) if step == 0 else slice(None) for step in array.strides)
    return np.broadcast_to(np.ascontiguousarray(array[first]), array.shape)


def _span(sizes: Sequence[int], strides: Sequence[int]) -> int:
    """The number of elements from the first to the last, with gaps."""
    return 1 + sum((size - 1) * stride for size, stride in zip(sizes, strides))


def _bytes_of(array: Array, strides: Sequence[int]) -> memoryview:
    if array.size == 0:
        return memoryview(b"")
    count = _span(array.shape, strides) if strides else math.prod(array.shape)
    flat = as_strided(array, (count,), (array.itemsize,), writeable=False)
    return flat.view(np.uint8).data
