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
from ._resident import ResidentTensor
from .errors import InvalidArgument

Array = NDArray[Any]

# An array with gaps is sent unchanged if the gaps are at most this part of it, else packed.
_MAX_GAPS = 1 / 8

_MAX_STRIDE = 2**32 - 1


@dataclass(frozen=True)
class Tensor:
    desc: Message
    data: memoryview  # a view of the array, if possible
    resident: str | None = None  # the name of the tensor that the server has


def resident_tensor_of(tensor: ResidentTensor, shape: tuple[int, ...], path: str,
                       dtype: np.dtype[Any] | None = None) -> Tensor:
    """Broadcast to `shape`. Its elements stay as they are, so it must have the type `dtype`."""
    if dtype is not None and dtype != tensor.dtype:
        raise InvalidArgument(f"The tensor {tensor.name} is {tensor.dtype}, and stays so on the "
                              f"server; {dtype} is needed here.", field=f"{path}.data_type")
    steps = np.cumprod([1, *tensor.shape[:0:-1]])[::-1]  # of the packed tensor
    strides = [0] * (len(shape) - len(tensor.shape)) + [
        int(step) if size > 1 else 0 for size, step in zip(tensor.shape, steps)]
    desc = TensorDesc(data_type=DATA_TYPES.numbers[tensor.dtype.name], sizes=shape,
                      strides=() if shape == tensor.shape else strides)
    return Tensor(desc, memoryview(b""), tensor.name)


def arrays_of(inputs: Sequence[ArrayLike], paths: Sequence[str],
              broadcasts: bool = True) -> list[Array]:
    """Several inputs are broadcast by NumPy's rules, with strides of 0. Python numbers take the
    type of the last array, which is not the condition of `where`."""
    given = [value if isinstance(value, (int, float)) else array_of(value, path)
             for value, path in zip(inputs, paths)]
    dtype = next((value.dtype for value in reversed(given) if isinstance(value, np.ndarray)), None)
    arrays = [value if isinstance(value, np.ndarray) else _of_number(value, dtype, path)
              for value, path in zip(given, paths)]
    if len(arrays) > 1 and broadcasts:
        try:
            shape = np.broadcast_shapes(*(array.shape for array in arrays))
        except ValueError:
            shapes = " and ".join(str(array.shape) for array in arrays)
            raise InvalidArgument(f"Inputs of shapes {shapes} do not broadcast to one shape.",
                                  field=paths[-1]) from None
        arrays = [np.broadcast_to(array, shape) for array in arrays]
    for array, path in zip(arrays, paths):
        _check_shape(array.shape, path)
    return arrays


def _check_shape(shape: tuple[int, ...], path: str) -> None:
    if not shape:
        raise InvalidArgument("The input is a single value, without dimensions. Operators take "
                              "arrays of 1 to 8 dimensions; reshape(1) makes it one.",
                              field=f"{path}.sizes")
    if 0 in shape:
        raise InvalidArgument(f"The array has no elements: its shape is {shape}. Operators take "
                              "arrays of at least one element.",
                              field=f"{path}.sizes[{shape.index(0)}]")


def refuse_masked(value: Any, path: str) -> None:
    if isinstance(value, np.ma.MaskedArray):
        raise InvalidArgument("The array is masked, and operators know no masks. Pass "
                              "x.compressed(), or x.filled(value) with a value that leaves the "
                              "result as it is.", field=path)


def array_of(value: ArrayLike | ResidentTensor, path: str) -> Array:
    if isinstance(value, ResidentTensor):
        return value.stand_in()
    for each in (value, *value) if isinstance(value, (list, tuple)) else (value,):
        refuse_masked(each, path)
    if value is None:
        raise InvalidArgument("The input is None; it must be an array.", field=path)
    return np.asarray(value)


def _of_number(value: float, dtype: np.dtype[Any] | None, path: str) -> Array:
    if dtype is not None and dtype.kind in "biu":
        limits = (0, 1) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
        if value != value // 1 or not limits[0] <= value <= limits[1]:
            raise InvalidArgument(f"{value} is not a value of {dtype}, the type of the other "
                                  "input.", field=path)
    return np.asarray(value, dtype)


def tensor_of(array: Array) -> Tensor:
    """Of a type of the contract."""
    number = DATA_TYPES.numbers[array.dtype.name]
    array = array.astype(array.dtype.newbyteorder("<"), copy=False)
    strides = _strides_to_send(array)
    if strides is None:
        array = _packed(array)
        strides = () if array.flags.c_contiguous else _strides_to_send(array) or ()
    desc = TensorDesc(data_type=number, sizes=array.shape, strides=strides)
    return Tensor(desc, _bytes_of(array, strides))


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
