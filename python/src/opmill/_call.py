"""Converts a call of an operator to a descriptor of the contract and the bytes of its inputs: to the
operator's own message if it has one, else to the named form."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Union

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from ._arguments import nearest
from ._contract import OPERATORS, Choices, Message, OperatorDesc
from ._element_types import ElementTypes, convert, data_type
from ._model_files import ModelFile
from ._names import FUNCTION_ALIASES
from ._resident import Keep, ResidentTensor, Write, writes_of
from ._tensors import Tensor, arrays_of, resident_tensor_of, tensor_of
from .errors import InvalidArgument

Array = NDArray[Any]
Axes = Union[int, Sequence[int], None]

# "argmax" for "arg_max", too.
_NAMES = {name.replace("_", ""): name for name in OPERATORS}


@dataclass(frozen=True)
class Call:
    operator: str  # the field of OperatorDesc, or its name of GetServerInfo
    inputs: Sequence[ArrayLike]
    attributes: Mapping[str, Any]
    keepdims: bool = True
    index_dtype: DTypeLike | None = None
    index_output: int = 0
    output_dtype: DTypeLike | None = None
    broadcasts: bool = True  # the inputs, by NumPy's rules
    mask: int | None = None  # the input that has truth values, whatever the types of the others
    result: Callable[..., Any] = lambda array: array  # of the outputs

    def prepare(self, types: ElementTypes, cast: DTypeLike | None) -> Prepared:
        return _prepare(self, types, cast)

    def writes(self, keep: Keep | Write | None) -> dict[int, Write]:
        return writes_of(keep, ())

    def result_of(self, execution: Any) -> Any:
        return self.result(*execution.outputs)


@dataclass(frozen=True)
class Prepared:
    desc: Message
    tensors: list[Tensor]
    dropped_axes: tuple[int, ...]  # of every output
    field: str = "operator"  # of requests: what `desc` is
    values: int = 0  # the number of inputs behind `tensors` that are part of `desc`
    file: ModelFile | None = None  # of a model that the server may not have

    def finish(self, outputs: list[Array | ResidentTensor]) -> tuple[Any, ...]:
        return tuple(output if isinstance(output, ResidentTensor)
                     else output.squeeze(self.dropped_axes) for output in outputs)


def truth(array: Any) -> Any:
    """Truth values of the contract, 0 and 1, as those of NumPy. They stay on the server as they are."""
    return array if isinstance(array, ResidentTensor) else array.astype(np.bool_)


def pair(first: Array, second: Array) -> tuple[Array, Array]:
    return first, second


def _prepare(call: Call, types: ElementTypes, cast: DTypeLike | None) -> Prepared:
    name = _NAMES.get(call.operator.replace("_", ""))
    if name is None:
        return _prepare_named(call, types, cast)
    descriptor = OPERATORS[name]
    names = [field.name for field in descriptor.fields if _is_tensor(field)]
    input_names = [name for name in names if not name.startswith("output")]
    output_names = [name for name in names if name.startswith("output")]
    attributes = [field for field in descriptor.fields if not _is_tensor(field)]
    path = f"operator.{name}"
    if len(call.inputs) != len(input_names):
        plural = "" if len(input_names) == 1 else "s"
        raise InvalidArgument(f"{name} takes {len(input_names)} input{plural}, and got "
                              f"{len(call.inputs)}.", field=path)
    known = [field.name for field in attributes]
    for attribute in call.attributes:
        if attribute not in known:
            raise InvalidArgument(f"{name} has no attribute '{attribute}'; "
                                  f"{nearest(attribute, known)}", field=path)

    paths = [f"{path}.{name}" for name in input_names]
    arrays = arrays_of(call.inputs, paths)
    desc = OperatorDesc()
    message = getattr(desc, name)
    message.SetInParent()
    shape = arrays[0].shape
    for field in attributes:
        if field.name in call.attributes:
            _set(message, field, call.attributes[field.name], len(shape), f"{path}.{field.name}")
    function = getattr(message, "function", 0)
    targets = [types.target(array.dtype, name, function, cast, path)
               for array, path in zip(arrays, paths)]
    tensors = _tensors_of(call.inputs, arrays, targets, paths)
    for input_name, tensor in zip(input_names, tensors):
        getattr(message, input_name).CopyFrom(tensor.desc)
    if call.index_dtype is not None:
        output_name = output_names[call.index_output]
        output = getattr(message, output_name)
        output.data_type = data_type(call.index_dtype, f"{path}.{output_name}")
        output.sizes.extend(_output_sizes(message, shape))
    dropped = () if _flag(call.keepdims, "keepdims") else tuple(set(message.axes))
    return Prepared(desc, tensors, dropped)


def _prepare_named(call: Call, types: ElementTypes, cast: DTypeLike | None) -> Prepared:
    names = types.operators()
    if call.operator not in names:
        raise InvalidArgument(f'There is no operator "{call.operator}"; '
                              f"{nearest(call.operator, names)}", field="operator")
    if not call.inputs:
        raise InvalidArgument(f"{call.operator} got no inputs.", field="operator.named.inputs")
    desc = OperatorDesc()
    message = desc.named
    message.name = call.operator
    path = "operator.named"
    paths = [f"{path}.inputs[{i}]" for i in range(len(call.inputs))]
    arrays = arrays_of(call.inputs, paths, call.broadcasts)
    takes_truths = types.takes(call.operator, "uint8")
    targets = [np.dtype(np.uint8)
               if i == call.mask or (array.dtype == np.bool_ and takes_truths)
               else types.target(array.dtype, call.operator, 0, cast, paths[i])
               for i, array in enumerate(arrays)]
    tensors = _tensors_of(call.inputs, arrays, targets, paths)
    message.inputs.extend(tensor.desc for tensor in tensors)
    for attribute, value in call.attributes.items():
        if attribute == "axis":
            value = _axis(value, arrays[0].ndim, f"{path}.attributes[axis]")
        elif attribute == "axes":
            value = _axes(value, arrays[0].ndim, f"{path}.attributes[axes]")
        _set_named(message.attributes[attribute], attribute, value)
    if call.output_dtype is not None:
        message.outputs.add(data_type=data_type(call.output_dtype, f"{path}.outputs[0]"),
                            sizes=arrays[0].shape)
    return Prepared(desc, tensors, ())


def _tensors_of(inputs: Sequence[ArrayLike], arrays: Sequence[Array],
                targets: Sequence[np.dtype[Any]], paths: Sequence[str]) -> list[Tensor]:
    return [resident_tensor_of(given, array.shape, path, target)
            if isinstance(given, ResidentTensor) else tensor_of(convert(array, target, path))
            for given, array, target, path in zip(inputs, arrays, targets, paths)]


def _set_named(message: Message, name: str, value: Any) -> None:
    """Sets the value of an attribute in the form that its type in Python has."""
    if isinstance(value, str):
        message.choice = value.upper()
    elif isinstance(value, (bool, np.bool_)):
        message.flag = bool(value)
    elif isinstance(value, (float, np.floating)):
        message.number = value
    elif np.iterable(value):
        _set_list(message, name, value)
    else:
        number = _integer(value, name)
        if number < 0:
            message.signed_number = number
        else:
            message.unsigned_number = number


def _set_list(message: Message, name: str, values: Iterable[Any]) -> None:
    values = list(values)
    if any(isinstance(value, (float, np.floating)) for value in values):
        message.numbers.values.extend(values)
        return
    numbers = [_integer(value, f"{name}[{i}]") for i, value in enumerate(values)]
    if any(number < 0 for number in numbers):
        message.signed_numbers.values.extend(numbers)
    else:
        message.unsigned_numbers.SetInParent()
        message.unsigned_numbers.values.extend(numbers)


def _is_tensor(field: Any) -> bool:
    return field.message_type is not None and field.message_type.name == "TensorDesc"


def _set(message: Message, field: Any, value: Any, rank: int, path: str) -> None:
    """Sets an attribute from its value in Python."""
    if field.name == "axes":
        message.axes.extend(_axes(value, rank, path))
    elif field.name == "axis":
        if value is None or np.iterable(value):
            raise InvalidArgument(f"axis ({value}) is not one axis, which this operator takes; "
                                  "-1 is the last.", field=path)
        message.axis = _axis(value, rank, path)
    elif field.enum_type is not None:
        setattr(message, field.name, _choice(Choices(field.enum_type), value, path))
    elif field.cpp_type == field.CPPTYPE_UINT32:
        setattr(message, field.name, _number(value, path))
    elif field.cpp_type == field.CPPTYPE_BOOL:
        setattr(message, field.name, _flag(value, field.name))
    else:
        setattr(message, field.name, value)


def _flag(value: Any, name: str) -> bool:
    if not isinstance(value, (bool, np.bool_, int)):
        raise TypeError(f"{name} is {value!r}; it must be True or False.")
    return bool(value)


def _integer(value: Any, name: str) -> int:
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{name} is {value!r}; it must be an integer.") from None


def _number(value: Any, path: str) -> int:
    name = path.rpartition(".")[2]
    number = _integer(value, name)
    if not 0 <= number < 1 << 32:
        raise InvalidArgument(f"{name} ({number}) is not between 0 and 2^32 - 1.", field=path)
    return number


def _axes(value: Any, rank: int, path: str) -> list[int]:
    """All of them for None."""
    is_list = np.iterable(value) and not isinstance(value, str)
    axes = range(rank) if value is None else value if is_list else (value,)
    return [_axis(axis, rank, f"{path}[{i}]") for i, axis in enumerate(axes)]


def _axis(value: Any, rank: int, path: str) -> int:
    """A negative axis counts from the end. The server refuses an axis that is too large."""
    axis = _integer(value, "axis")
    if axis < -rank:
        raise InvalidArgument(f"axis ({axis}) is below -{rank}: the array has {rank} dimensions.",
                              field=path)
    return axis + rank if axis < 0 else axis


def _choice(choices: Choices, value: Any, path: str) -> int:
    name = str(value).lower()
    name = name if name in choices.numbers else FUNCTION_ALIASES.get(name, name)
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
