"""Converts a call of an operator to a descriptor of the contract and the bytes of its inputs."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict, Union

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from ._contract import OPERATORS, Choices, Message, OperatorDesc
from ._tensors import Tensor, data_type, tensors_of
from .errors import InvalidArgument

Array = NDArray[Any]
Axes = Union[int, Sequence[int], None]
Progress = Callable[[int, int], None]

# NumPy's names, and those of the command line, for the functions of reduce.
_ALIASES = {"mean": "average", "prod": "multiply", "logsumexp": "log_sum_exp", "lse": "log_sum_exp"}

# "argmax" for "arg_max", too.
_NAMES = {name.replace("_", ""): name for name in OPERATORS}


class Options(TypedDict, total=False):
    """Options of one call. `timeout` is in seconds and covers all attempts. `feature_level` is
    DirectML's, such as "5.0". `progress` is called with the number of input bytes that were sent,
    and with their total; a thread of gRPC may call it. True shows a progress bar, if tqdm is
    installed."""

    timeout: float | None
    feature_level: str | None
    progress: Progress | bool | None


@dataclass(frozen=True)
class Call:
    operator: str  # the field of OperatorDesc, or its name of GetServerInfo
    inputs: Sequence[ArrayLike]
    attributes: Mapping[str, Any]
    keepdims: bool = True
    index_dtype: DTypeLike | None = None
    index_output: int = 0

    def prepare(self) -> Prepared:
        return _prepare(self)


@dataclass(frozen=True)
class Prepared:
    desc: Message
    tensors: list[Tensor]
    dropped_axes: tuple[int, ...]  # of every output

    def finish(self, outputs: list[Array]) -> tuple[Array, ...]:
        return tuple(output.squeeze(self.dropped_axes) for output in outputs)


def _prepare(call: Call) -> Prepared:
    name = _NAMES.get(call.operator.replace("_", ""))
    if name is None:
        raise InvalidArgument(f'There is no operator "{call.operator}"; they are '
                              f'{", ".join(OPERATORS)}.', field="operator")
    descriptor = OPERATORS[name]
    names = [field.name for field in descriptor.fields if _is_tensor(field)]
    input_names = [name for name in names if not name.startswith("output")]
    output_names = [name for name in names if name.startswith("output")]
    attributes = [field for field in descriptor.fields if not _is_tensor(field)]
    path = f"operator.{name}"
    if len(call.inputs) != len(input_names):
        raise InvalidArgument(f"{name} takes {len(input_names)} inputs, and got "
                              f"{len(call.inputs)}.", field=path)
    unknown = set(call.attributes) - {field.name for field in attributes}
    if unknown:
        raise InvalidArgument(f"{name} has no attribute {', '.join(sorted(unknown))}.",
                              field=path)

    tensors = tensors_of(call.inputs, [f"{path}.{name}" for name in input_names])
    desc = OperatorDesc()
    message = getattr(desc, name)
    message.SetInParent()
    for input_name, tensor in zip(input_names, tensors):
        getattr(message, input_name).CopyFrom(tensor.desc)
    shape = tuple(tensors[0].desc.sizes)
    for field in attributes:
        if field.name in call.attributes:
            _set(message, field, call.attributes[field.name], len(shape), f"{path}.{field.name}")
    if call.index_dtype is not None:
        output_name = output_names[call.index_output]
        output = getattr(message, output_name)
        output.data_type = data_type(np.dtype(call.index_dtype), f"{path}.{output_name}")
        output.sizes.extend(_output_sizes(message, shape))
    dropped = () if call.keepdims else tuple(message.axes)
    return Prepared(desc, tensors, dropped)


def _is_tensor(field: Any) -> bool:
    return field.message_type is not None and field.message_type.name == "TensorDesc"


def _set(message: Message, field: Any, value: Any, rank: int, path: str) -> None:
    """Sets an attribute from its value in Python."""
    if field.name == "axes":
        axes = range(rank) if value is None else (value if np.iterable(value) else (value,))
        message.axes.extend(_axis(axis, rank, f"{path}[{i}]") for i, axis in enumerate(axes))
    elif field.name == "axis":
        message.axis = _axis(value, rank, path)
    elif field.enum_type is not None:
        setattr(message, field.name, _choice(Choices(field.enum_type), value, path))
    elif field.cpp_type == field.CPPTYPE_UINT32:
        setattr(message, field.name, _number(value, path))
    elif field.cpp_type == field.CPPTYPE_BOOL:
        setattr(message, field.name, bool(value))
    else:
        setattr(message, field.name, value)


def _number(value: Any, path: str) -> int:
    number = operator.index(value)
    if not 0 <= number < 1 << 32:
        name = path.rpartition(".")[2]
        raise InvalidArgument(f"{name} ({number}) is not between 0 and 2^32 - 1.", field=path)
    return number


def _axis(value: Any, rank: int, path: str) -> int:
    """A negative axis counts from the end. The server refuses an axis that is too large."""
    axis = operator.index(value)
    if axis < -rank:
        raise InvalidArgument(f"axis ({axis}) is below -{rank}: the array has {rank} dimensions.",
                              field=path)
    return axis + rank if axis < 0 else axis


def _choice(choices: Choices, value: Any, path: str) -> int:
    name = str(value).lower()
    name = name if name in choices.numbers else _ALIASES.get(name, name)
    if name not in choices.numbers:
        raise InvalidArgument(f'{path.rpartition(".")[2]} ("{value}") is none of '
                              f'{", ".join(choices.numbers)}.', field=path)
    return choices.numbers[name]


def _output_sizes(message: Message, shape: tuple[int, ...]) -> list[int]:
    """The sizes of an output of indices: 1 along `axes`, or k along `axis`."""
    sizes = list(shape)
    if hasattr(message, "axes"):
        for axis in message.axes:
            if axis < len(sizes):
                sizes[axis] = 1
    elif message.axis < len(sizes):
        sizes[message.axis] = message.k
    return sizes
