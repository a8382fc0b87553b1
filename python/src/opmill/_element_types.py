"""The types of elements that operators take, and conversions to them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ._contract import DATA_TYPES, REDUCE_FUNCTIONS, Message
from ._names import SHORT_FORMS
from .errors import InvalidArgument

Array = NDArray[Any]

# float64 is a type of the contract, because DirectML has it, that no operator takes.
_TYPES = tuple(name for name in DATA_TYPES.numbers if name != "float64")


def _name_of(dtype: DTypeLike) -> str:
    try:
        return np.dtype(dtype).name
    except TypeError:
        return repr(dtype)  # not a type


def type_name(dtype: DTypeLike, argument: str) -> str:
    """The name in the contract of a type that an argument gives."""
    name = _name_of(dtype)
    if name not in _TYPES:
        raise InvalidArgument(f"{argument} is {name}; it must be one of {', '.join(_TYPES)}.")
    return name


def data_type(dtype: DTypeLike, path: str) -> int:
    """The number in the contract of the type of an output."""
    name = _name_of(dtype)
    if name not in _TYPES:
        raise InvalidArgument(f"Elements of {name} are the result of no operator; the types are "
                              f"{', '.join(_TYPES)}.", field=f"{path}.data_type")
    return DATA_TYPES.numbers[name]


class ElementTypes:
    """Of the operators of a server, from the rows of GetServerInfo, which are those of all feature
    levels. `cast` is that of connect: the type for inputs whose own an operator does not take."""

    def __init__(self, rows: Iterable[Message] = (), cast: str | None = None) -> None:
        self._cast = cast
        self._taken: dict[tuple[str, int], dict[str, None]] = {}
        self._operators: list[str] = []
        for row in rows:
            if row.operator not in self._operators[-1:]:
                self._operators.append(row.operator)
            names = dict.fromkeys(map(DATA_TYPES.name, row.data_types))
            for function in row.functions or (0,):
                key = row.operator.replace("_", ""), function
                self._taken.setdefault(key, {}).update(names)

    def operators(self) -> list[str]:
        """The names of all operators of the server."""
        return self._operators

    def takes(self, operator: str, name: str) -> bool:
        return name in self._taken.get((operator.replace("_", ""), 0), ())

    def target(self, dtype: np.dtype[Any], operator: str, function: int, cast: DTypeLike | None,
               path: str) -> np.dtype[Any]:
        """The type to which an input of this type is converted. `operator` is a field of
        OperatorDesc, `function` that of reduce or 0, and `cast` that of the call."""
        taken = tuple(self._taken.get((operator.replace("_", ""), function), ())) or _TYPES
        name = self._cast if cast is None else type_name(cast, "cast")
        if cast is None and dtype.name in taken:
            return dtype
        subject = REDUCE_FUNCTIONS.name(function) or operator
        subject = SHORT_FORMS.get(subject, subject)
        field = f"{path}.data_type"
        if name is None:
            offer = "int32" if dtype.kind in "biu" and "int32" in taken else "float32"
            way = f', or pass cast="{offer}" to the call or to connect'
            raise InvalidArgument(
                f"Elements are {dtype.name}, and {subject} takes {', '.join(taken)}. Convert the "
                f"array with astype{way if may_cast(dtype, offer) else ''}.", field=field)
        if name not in taken:
            raise InvalidArgument(f"Elements are {dtype.name}, to be cast to {name}, and {subject} "
                                  f"takes {', '.join(taken)}.", field=field)
        if not may_cast(dtype, name):
            raise InvalidArgument(f"A cast from {dtype.name} to {name} would change values; "
                                  "convert the array with astype.", field=field)
        return np.dtype(name)


def convert(array: Array, target: np.dtype[Any], path: str) -> Array:
    """Rounds to nearest, and refuses values that do not fit."""
    if array.dtype == target:
        return array
    if array.size == 0:  # for Dask, which determines the type of the result
        return array.astype(target)
    if array.dtype == object:
        try:
            array = array.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise InvalidArgument(f"Not all elements can be converted to {target}: {error}.",
                                  field=path) from None
    with np.errstate(over="ignore"):
        converted = array.astype(target)
    if target.kind == "f":
        outside = array[np.isinf(converted) & np.isfinite(array)]
    else:
        limits = np.iinfo(target)
        extremes = int(array.min()), int(array.max())
        outside = [value for value in extremes if not limits.min <= value <= limits.max]
    if len(outside):
        raise InvalidArgument(f"An element ({outside[0]}) does not fit in {target}.", field=path)
    return converted


def may_cast(dtype: np.dtype[Any], name: str) -> bool:
    """Floats are not cast to integers. Python objects may be any numbers."""
    if dtype == object:
        return np.dtype(name).kind == "f"
    return np.can_cast(dtype, name, "same_kind") or (dtype.kind in "iu" and
                                                     np.dtype(name).kind in "iu")
