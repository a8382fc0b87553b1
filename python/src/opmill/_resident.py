"""Tensors that stay on the server between calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Generic, TypeVar, Union

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._arguments import Options, checked
from ._contract import DATA_TYPES, KINDS_OF_WRITE, Message, message
from .errors import InvalidArgument

Array = NDArray[Any]
ResultT = TypeVar("ResultT")

# What becomes of outputs: one name, a name or None for each output, or names by those of a model's outputs.
Keep = Union[str, Sequence[Union[str, None]], Mapping[str, str]]


@dataclass(frozen=True)
class ResidentTensor:
    """A tensor that stays on the server. Calls take it in place of an array. `generation` is the one
    that it had when the server was asked; calls read the tensor as it is when they begin."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    generation: int
    capacity: int = 0  # rows that it may have
    bytes: int = 0  # with what its capacity takes
    lease: timedelta | None = None
    lease_left: timedelta | None = None
    is_lost: bool = False  # with the device: it can only be put again, or deleted
    read_only: bool = False  # a file of the server, which every caller reads

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """Makes it one of the types that NumPy calls array-like."""
        raise TypeError(f"The elements of the tensor {self.name} are on the server; tensors.get reads them.")

    def stand_in(self) -> Array:
        """An array of this type and shape, which takes no memory."""
        return np.broadcast_to(np.zeros((), self.dtype), self.shape)


@dataclass(frozen=True)
class Write:
    """What becomes of an output."""

    name: str
    kind: str = "put"
    first_row: int = 0
    capacity: int | None = None
    lease: float | None = None
    if_generation: int | None = None

    def message(self, output: int) -> dict[str, Any]:
        fields: dict[str, Any] = {"output": output, "name": self.name, "first_row": self.first_row,
                                  "kind": KINDS_OF_WRITE.numbers[self.kind],
                                  "capacity_rows": self.capacity or 0}
        if self.lease is not None:
            seconds, rest = divmod(float(self.lease), 1)
            fields["lease"] = {"seconds": int(seconds), "nanos": int(rest * 1e9)}
        if self.if_generation is not None:
            fields["if_generation"] = self.if_generation
        return fields


def writes_of(keep: Keep | Write | None, outputs: Sequence[str]) -> dict[int, Write]:
    """By the position of the output. `outputs` are the names of a model's; others have none."""
    if keep is None:
        return {}
    if isinstance(keep, Write):
        return {0: keep}
    if isinstance(keep, str):
        return {0: Write(keep)}
    if not isinstance(keep, Mapping):
        return {i: Write(name) for i, name in enumerate(keep) if name is not None}
    for name in keep:
        if name not in outputs:
            has = f"the model has {', '.join(outputs)}" if outputs else "those of operators have no names"
            raise InvalidArgument(f"keep names the output '{name}'; {has}.", field="keep")
    return {outputs.index(output): Write(name) for output, name in keep.items()}


def tensor_of_message(found: Message) -> ResidentTensor:
    def seconds(name: str) -> timedelta | None:
        value = getattr(found, name)
        if not found.HasField(name):
            return None
        return timedelta(seconds=value.seconds, microseconds=value.nanos / 1000)

    return ResidentTensor(found.name, np.dtype(DATA_TYPES.name(found.tensor.data_type)),
                          tuple(found.tensor.sizes), found.generation, found.capacity_rows,
                          found.bytes, seconds("lease"), seconds("lease_left"), found.is_lost,
                          found.is_read_only)


_ListTensorsRequest = message("opmill.v1.ListTensorsRequest")
_DeleteTensorRequest = message("opmill.v1.DeleteTensorRequest")


class Tensors(Generic[ResultT]):
    """The caller's tensors on the server: c.tensors.put("weights", w), then c.multiply(x, w) with what
    that returns."""

    def __init__(self, write: Callable[[ArrayLike, Write, Options], Any],
                 ask: Callable[[str, Message, float | None, Callable[[Message], Any]], Any],
                 read: Callable[[str | ResidentTensor, float | None], Any]) -> None:
        self._write = write
        self._ask = ask
        self._read = read

    @checked
    def put(self, name: str, array: ArrayLike, *, capacity: int | None = None,
            lease: float | None = None, if_generation: int | None = None,
            timeout: float | None = None) -> ResultT:
        """Puts a tensor, in place of one of this name. `capacity` is the number of rows to which
        `append` may extend it. After `lease` seconds without a call that names it, it is deleted;
        otherwise it stays. With `if_generation`, only if the tensor still has that generation; 0: only
        if there is none. Returns the ResidentTensor."""
        written: ResultT = self._write(
            array, Write(name, "put", 0, capacity, lease, if_generation), {"timeout": timeout})
        return written

    @checked
    def append(self, name: str, rows: ArrayLike, *, if_generation: int | None = None,
               timeout: float | None = None) -> ResultT:
        """Appends rows of the first dimension. Calls that have begun do not see them. Returns the
        ResidentTensor of what was appended; `find` returns all of it."""
        written: ResultT = self._write(
            rows, Write(name, "append", if_generation=if_generation), {"timeout": timeout})
        return written

    @checked
    def write(self, name: str, first_row: int, rows: ArrayLike, *,
              if_generation: int | None = None, timeout: float | None = None) -> ResultT:
        """Replaces rows of the first dimension."""
        written: ResultT = self._write(
            rows, Write(name, "write", first_row, if_generation=if_generation), {"timeout": timeout})
        return written

    @checked
    def get(self, tensor: str | ResidentTensor, *, timeout: float | None = None) -> Any:
        """Its elements, as an array."""
        return self._read(tensor, timeout)

    @checked
    def find(self, name: str, *, timeout: float | None = None) -> ResultT:
        """The tensor of this name, as it is now. Raises NotFound."""
        found: ResultT = self._ask("ListTensors", _ListTensorsRequest(name=name), timeout,
                                   lambda answer: tensor_of_message(answer.tensors[0]))
        return found

    @checked
    def list(self, *, timeout: float | None = None) -> Any:
        """A tuple of all, by name."""
        return self._ask("ListTensors", _ListTensorsRequest(), timeout,
                         lambda answer: tuple(map(tensor_of_message, answer.tensors)))

    @checked
    def delete(self, name: str, *, if_generation: int | None = None,
               timeout: float | None = None) -> Any:
        """Calls that read it go on. Raises NotFound."""
        given = {} if if_generation is None else {"if_generation": if_generation}
        return self._ask("DeleteTensor", _DeleteTensorRequest(name=name, **given), timeout,
                         lambda answer: None)
