"""Tensors that stay on the server between calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Union

import numpy as np
from numpy.typing import NDArray

from ._contract import DATA_TYPES, KINDS_OF_WRITE, Message
from .errors import InvalidArgument

Array = NDArray[Any]

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
    server: str = ""  # its address, if the client has several

    @classmethod
    def at(cls, name: str, server: str) -> ResidentTensor:
        """Of which only this is known."""
        return cls(name, np.dtype(np.uint8), (), 0, server=server)

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
