"""Reductions, argmin, argmax and top_k of Dask arrays:

    import opmill.dask as od
    c = opmill.connect("10.0.0.1:50051,10.0.0.2:50051")
    od.argmax(c, x, axis=1).compute()

The servers compute the chunks, and Dask combines the results. Selections are exact: ties, NaN and
indices are those of the whole array. Float sums of chunks are added in float64, so that they stay
within the bound of the operator. The client is pickled if Dask's workers are other processes."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import dask.array as da
import numpy as np

from ._call import Array, Axes
from ._operators import ReduceFunction
from .client import Client
from .errors import InvalidArgument


class TopK(NamedTuple):
    values: da.Array
    indices: da.Array


class _Rule(NamedTuple):
    """How the results of chunks are combined. `merge` is a ufunc; None: the function itself."""

    chunk: ReduceFunction
    merge: Any
    finish: Callable[[Array], Array] = lambda total: total


_RULES: dict[str, _Rule] = {
    "average": _Rule("average", np.add),
    "l1": _Rule("l1", np.add),
    "l2": _Rule("sum_square", np.add, np.sqrt),
    "log_sum": _Rule("sum", np.add, np.log),
    "log_sum_exp": _Rule("log_sum_exp", np.logaddexp),
    "max": _Rule("max", None),
    "min": _Rule("min", None),
    "multiply": _Rule("multiply", np.multiply),
    "sum": _Rule("sum", np.add),
    "sum_square": _Rule("sum_square", np.add),
}
_ALIASES = {"mean": "average", "prod": "multiply", "logsumexp": "log_sum_exp"}


def reduce(client: Client, x: da.Array, function: ReduceFunction, axis: Axes = None, *,
           keepdims: bool = False, split_every: int | None = None) -> da.Array:
    """Like Client.reduce. `split_every` is that of dask.array.reduction."""
    name = _ALIASES.get(function, function)
    if name in ("argmax", "argmin"):
        return _arg_reduce(client, x, name, axis, "increasing", keepdims, split_every)
    if name not in _RULES:
        raise InvalidArgument(f'function ("{function}") is none of {", ".join(_RULES)}.',
                              field="operator.reduce.function")
    axes = _axes(x, axis)
    count = math.prod(x.shape[i] for i in axes) if name == "average" else 1
    _require_known(count)
    rest = {"client": client, "name": name, "element": x.dtype}
    return da.reduction(
        x, functools.partial(_reduce_chunk, **rest),
        functools.partial(_reduce_aggregate, count=count, **rest),
        combine=functools.partial(_reduce_combine, **rest), axis=axes, keepdims=keepdims,
        dtype=x.dtype, split_every=split_every, meta=_meta(x, axes, keepdims, x.dtype))


def _named(name: ReduceFunction) -> Callable[..., da.Array]:
    def function(client: Client, x: da.Array, axis: Axes = None, *, keepdims: bool = False,
                 split_every: int | None = None) -> da.Array:
        return reduce(client, x, name, axis, keepdims=keepdims, split_every=split_every)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"`reduce` with {name}."
    return function


l1 = _named("l1")
l2 = _named("l2")
log_sum = _named("log_sum")
log_sum_exp = _named("log_sum_exp")
max = _named("max")
mean = _named("mean")
min = _named("min")
prod = _named("prod")
sum = _named("sum")
sum_square = _named("sum_square")


def argmax(client: Client, x: da.Array, axis: Axes = None, *, axis_direction: str = "increasing",
           keepdims: bool = False, split_every: int | None = None) -> da.Array:
    """Like Client.argmax, with int64 indices."""
    return _arg_reduce(client, x, "argmax", axis, axis_direction, keepdims, split_every)


def argmin(client: Client, x: da.Array, axis: Axes = None, *, axis_direction: str = "increasing",
           keepdims: bool = False, split_every: int | None = None) -> da.Array:
    """Like Client.argmin, with int64 indices."""
    return _arg_reduce(client, x, "argmin", axis, axis_direction, keepdims, split_every)


def top_k(client: Client, x: da.Array, k: int, axis: int = -1, *, largest: bool = True,
          split_every: int | None = None) -> TopK:
    """Like Client.top_k, with int64 indices."""
    (axis,) = _axes(x, axis)
    _require_known(x.shape[axis])
    if not 1 <= k <= x.shape[axis]:
        raise InvalidArgument(f"k ({k}) is not between 1 and the size ({x.shape[axis]}) of axis "
                              f"({axis}).", field="operator.top_k.k")
    state = _state_of(x, _top_k_chunk, (axis,), client=client, k=k, largest=largest)
    merge = functools.partial(_top_k_merge, client=client, k=k, largest=largest)
    best = da.reduction(state, _same, merge, axis=axis, keepdims=True, dtype=state.dtype,
                        split_every=split_every, output_size=k,
                        meta=_meta(x, (), True, state.dtype))
    return TopK(best["value"], best["index"])


# Sums. The results of chunks are float64, or integers, which wrap like those of the operator.


def _reduce_chunk(block: Array, axis: tuple[int, ...], keepdims: bool, *, client: Client,
                  name: str, element: np.dtype[Any]) -> Array:
    rule = _RULES[name]
    kind = element if element.kind in "iu" or rule.merge is None else np.dtype(np.float64)
    if block.size == 0:  # an empty chunk, or Dask that determines the type of the result
        return np.empty(_reduced(block.shape, axis), kind)
    if rule.merge is not None and element == np.float16:
        block = block.astype(np.float32)  # rounded to float16 once, at the end
    part = client.reduce(block, rule.chunk, axis, keepdims=True).astype(kind)
    if name == "average":
        part *= math.prod(block.shape[i] for i in axis)
    return part


def _reduce_combine(parts: Array, axis: tuple[int, ...], keepdims: bool, *, client: Client,
                    name: str, element: np.dtype[Any]) -> Array:
    rule = _RULES[name]
    if parts.size == 0:
        return np.empty(_reduced(parts.shape, axis, keepdims), parts.dtype)
    if rule.merge is None:
        return client.reduce(parts, rule.chunk, axis, keepdims=keepdims)
    with np.errstate(all="ignore"):
        total = rule.merge.reduce(parts, axis=axis, keepdims=keepdims, dtype=parts.dtype)
    return np.asarray(total)


def _reduce_aggregate(parts: Array, axis: tuple[int, ...], keepdims: bool, *, count: int,
                      **rest: Any) -> Array:
    total = _reduce_combine(parts, axis, keepdims, **rest)
    with np.errstate(all="ignore"):
        if count != 1:
            total = total / count
        return _RULES[rest["name"]].finish(total).astype(rest["element"])


# Selections. The results of chunks are pairs of a value and its index in the whole array.


def _arg_reduce(client: Client, x: da.Array, operator: str, axis: Axes, axis_direction: str,
                keepdims: bool, split_every: int | None) -> da.Array:
    axes = _axes(x, axis)
    if not axes:  # each element alone
        return da.zeros(x.shape, dtype=np.int64, chunks=x.chunks)
    for i in axes:
        _require_known(x.shape[i])
    state = _state_of(x, _arg_chunk, axes, client=client, operator=operator,
                      axis_direction=axis_direction, shape=x.shape)
    merge = functools.partial(_arg_merge, operator=operator, last=axis_direction == "decreasing")
    best = da.reduction(state, _same, merge, axis=axes, keepdims=True, dtype=state.dtype,
                        split_every=split_every, meta=_meta(x, (), True, state.dtype))
    return best["index"] if keepdims else best["index"].squeeze(axes)


def _arg_chunk(block: Array, *, client: Client, operator: str, axes: tuple[int, ...],
               axis_direction: str, shape: tuple[int, ...], block_info: Any = None) -> Array:
    state = np.empty(_reduced(block.shape, axes), _state_type(block.dtype))
    if block.size == 0:
        return state
    index = client.execute(operator, [block],
                           {"axes": axes, "axis_direction": axis_direction}).outputs[0]
    starts = [begin for begin, _ in block_info[0]["array-location"]]
    within = np.unravel_index(index, [block.shape[i] for i in axes])
    place: list[Any] = list(np.ogrid[tuple(slice(size) for size in index.shape)])
    for i, coordinates in zip(axes, within):
        place[i] = coordinates
    state["value"] = block[tuple(place)]
    state["index"] = np.ravel_multi_index([place[i] + starts[i] for i in axes],
                                          [shape[i] for i in axes])
    return state


def _arg_merge(state: Array, axis: tuple[int, ...], keepdims: bool, *, operator: str,
               last: bool) -> Array:
    if state.size == 0:
        return np.empty(_reduced(state.shape, axis), state.dtype)
    value, index = state["value"], state["index"]
    best = (np.max if operator == "argmax" else np.min)(value, axis=axis, keepdims=True)
    is_best = value == best
    if value.dtype.kind == "f":  # a NaN is the extreme of both NumPy and the operator
        is_best |= np.isnan(value) & np.isnan(best)
    if last:
        index = np.where(is_best, index, -1).max(axis=axis, keepdims=True)
    else:
        index = np.where(is_best, index, np.iinfo(np.int64).max).min(axis=axis, keepdims=True)
    merged = np.empty(index.shape, state.dtype)
    merged["value"], merged["index"] = best, index
    return merged


def _top_k_chunk(block: Array, *, client: Client, k: int, largest: bool, axes: tuple[int, ...],
                 block_info: Any = None) -> Array:
    (axis,) = axes
    kept = k if k < block.shape[axis] else block.shape[axis]
    shape = (*block.shape[:axis], kept, *block.shape[axis + 1:])
    state = np.empty(shape, _state_type(block.dtype))
    if state.size:
        state["value"], state["index"] = client.top_k(block, kept, axis, largest=largest)
        state["index"] += block_info[0]["array-location"][axis][0]
    return state


def _top_k_merge(state: Array, axis: tuple[int, ...], keepdims: bool, *, client: Client, k: int,
                 largest: bool) -> Array:
    """Along the axis, equal values are in ascending order of their index: within a chunk because
    top_k returns them so, and across chunks because chunks are in order. Therefore comparing
    positions is comparing indices."""
    (along,) = axis
    kept = k if k < state.shape[along] else state.shape[along]
    if state.size == 0:
        return np.take(state, range(kept), along)
    places = client.top_k(state["value"], kept, along, largest=largest).indices
    return np.take_along_axis(state, places.astype(np.int64), along)


def _same(state: Array, axis: tuple[int, ...], keepdims: bool) -> Array:
    return state


def _state_type(element: np.dtype[Any]) -> np.dtype[Any]:
    return np.dtype([("value", element), ("index", np.int64)])


def _state_of(x: da.Array, chunk: Callable[..., Array], axes: tuple[int, ...],
              **rest: Any) -> da.Array:
    kind = _state_type(x.dtype)
    chunks = tuple((1,) * len(sizes) if i in axes else sizes for i, sizes in enumerate(x.chunks))
    return da.map_blocks(chunk, x, axes=axes, dtype=kind, chunks=chunks,
                         meta=_meta(x, (), True, kind), **rest)


def _axes(x: da.Array, axis: Axes) -> tuple[int, ...]:
    """The axes in ascending order."""
    given = range(x.ndim) if axis is None else axis if np.iterable(axis) else (axis,)
    for i in given:
        if not -x.ndim <= i < x.ndim:
            raise InvalidArgument(f"axis ({i}) is not below the number of dimensions ({x.ndim}).",
                                  field="axis")
    return tuple(sorted({i % x.ndim for i in given}))


def _require_known(size: float) -> None:
    if math.isnan(size):
        raise ValueError("The array has chunks of unknown size; x.compute_chunk_sizes() finds out.")


def _reduced(shape: tuple[int, ...], axes: tuple[int, ...], keepdims: bool = True) -> list[int]:
    """An empty dimension stays empty: a chunk without elements contributes nothing."""
    return [(1 if size and i in axes else size) for i, size in enumerate(shape)
            if keepdims or i not in axes]


def _meta(x: da.Array, axes: tuple[int, ...], keepdims: bool, kind: Any) -> Array:
    return np.empty((0,) * (x.ndim if keepdims else x.ndim - len(axes)), kind)
