"""Reductions, argmin, argmax and top_k of Dask arrays, models of them, and search in them:

    import opmill.dask as od
    c = opmill.connect("10.0.0.1:50051,10.0.0.2:50051")
    od.argmax(c, x, axis=1).compute()
    od.map_blocks(c.model("made"), x)["y"].compute()

The servers compute the chunks, and Dask combines the results. Selections are exact: ties, NaN and
indices are those of the whole array. Float sums of chunks are added in float64, so that they stay
within the bound of the operator. Clients and models are pickled if Dask's workers are other
processes."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import dask.array as da
import numpy as np
from numpy.typing import DTypeLike

from ._arguments import Options, checked
from ._call import Array, Axes
from ._contract import REDUCE_FUNCTIONS
from ._dask_index import Index as Index
from ._element_types import convert
from ._models import ModelTensor, ServedModel, check_input
from ._names import FUNCTION_ALIASES
from ._operators import ReduceFunction
from ._tensors import refuse_masked
from .client import Client
from .errors import InvalidArgument


class TopK(NamedTuple):
    values: da.Array
    indices: da.Array


class _Rule(NamedTuple):
    """How the results of chunks are combined. `merge` is a ufunc; None: the function itself.
    `kind` is the type of the results of chunks of floats."""

    chunk: ReduceFunction
    merge: Any
    finish: Callable[[Array], Array] = lambda total: total
    kind: Any = np.float64


_RULES: dict[str, _Rule] = {
    # Complex numbers: the sum, and the number of elements.
    "average": _Rule("average", np.add, lambda total: total.real / total.imag, np.complex128),
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


@checked
def reduce(client: Client, x: da.Array, function: ReduceFunction, axis: Axes = None, *,
           keepdims: bool = False, split_every: int | None = None,
           cast: DTypeLike | None = None) -> da.Array:
    """Like Client.reduce. `split_every` is that of dask.array.reduction."""
    name = FUNCTION_ALIASES.get(function, function)
    if name in ("argmax", "argmin"):
        return _arg_reduce(client, x, name.replace("arg", "arg_"), axis, "increasing", keepdims,
                           split_every, cast)
    if name not in _RULES:
        raise InvalidArgument(f'function ("{function}") is none of {", ".join(_RULES)}.',
                              field="operator.reduce.function")
    x = _input(client, x, "reduce", name, cast)
    axes = _axes(x, axis)
    rest: dict[str, Any] = {"client": client, "name": name}
    return da.reduction(
        x, functools.partial(_reduce_chunk, **rest),
        functools.partial(_reduce_aggregate, element=x.dtype, **rest),
        combine=functools.partial(_reduce_combine, **rest), axis=axes, keepdims=keepdims,
        dtype=x.dtype, split_every=split_every, meta=_meta(x, axes, keepdims, x.dtype))


def _named(name: ReduceFunction) -> Callable[..., da.Array]:
    def function(client: Client, x: da.Array, axis: Axes = None, *, keepdims: bool = False,
                 split_every: int | None = None, cast: DTypeLike | None = None) -> da.Array:
        return reduce(client, x, name, axis, keepdims=keepdims, split_every=split_every, cast=cast)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"`reduce` with {name}."
    return checked(function)


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


@checked
def argmax(client: Client, x: da.Array, axis: Axes = None, *, axis_direction: str = "increasing",
           keepdims: bool = False, split_every: int | None = None,
           cast: DTypeLike | None = None) -> da.Array:
    """Like Client.argmax, with int64 indices."""
    return _arg_reduce(client, x, "arg_max", axis, axis_direction, keepdims, split_every, cast)


@checked
def argmin(client: Client, x: da.Array, axis: Axes = None, *, axis_direction: str = "increasing",
           keepdims: bool = False, split_every: int | None = None,
           cast: DTypeLike | None = None) -> da.Array:
    """Like Client.argmin, with int64 indices."""
    return _arg_reduce(client, x, "arg_min", axis, axis_direction, keepdims, split_every, cast)


@checked
def top_k(client: Client, x: da.Array, k: int, axis: int = -1, *, largest: bool = True,
          split_every: int | None = None, cast: DTypeLike | None = None) -> TopK:
    """Like Client.top_k, with int64 indices."""
    x = _input(client, x, "top_k", "", cast)
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


def map_blocks(model: ServedModel[dict[str, Array]], /, *inputs: Any,
               **named: Any) -> dict[str, da.Array]:
    """Calls the model with each block of the rows of Dask arrays, and returns its outputs by name:

        od.map_blocks(c.model("made"), x, offset=o)["y"]

    Rows are elements of the first axis, of inputs and outputs. Inputs that are no arrays of Dask
    are the same in all calls, which also take `timeout` and `priority`. Outputs without dimensions
    are left out."""
    bound, options = model._bind(inputs, named)
    lazy = {name: value for name, value in bound.items() if isinstance(value, da.Array)}
    if not lazy:
        raise TypeError(f"{model.name} got no array of Dask; da.asarray(x) makes one.")
    for tensor in model.inputs:
        if tensor.name in lazy:
            _check_lazy(model, tensor, lazy[tensor.name])
    numbers = itertools.count(1)  # of axes; that of the rows is 0
    arguments = [part for x in lazy.values()
                 for part in (x, (0, *itertools.islice(numbers, x.ndim - 1)))]
    chunks, _ = da.core.unify_chunks(*arguments)
    # Each block of this array has one element: the results of a call.
    results = da.blockwise(
        functools.partial(_call_model, model=model, names=tuple(lazy), options=options,
                          others={name: bound[name] for name in bound.keys() - lazy.keys()}),
        (0,), *arguments, adjust_chunks={0: lambda rows: 1}, concatenate=True, dtype=object,
        meta=np.empty(0, object))
    return {tensor.name: da.blockwise(
                functools.partial(_output, name=tensor.name), range(len(tensor.shape)), results, (0,),
                adjust_chunks={0: chunks[0]},
                new_axes={axis: math.nan if size < 0 else size
                          for axis, size in enumerate(tensor.shape) if axis > 0},
                dtype=tensor.dtype, meta=np.empty((0,) * len(tensor.shape), tensor.dtype))
            for tensor in model.outputs if tensor.shape}


def _call_model(*blocks: Array, model: ServedModel[dict[str, Array]], names: tuple[str, ...],
                others: Mapping[str, Any], options: Options) -> Array:
    rows = len(blocks[0])
    if rows > 0:
        outputs = model(**dict(zip(names, blocks)), **others, **options)
    else:
        outputs = {tensor.name: np.empty([0 if size < 0 else size for size in tensor.shape], tensor.dtype)
                   for tensor in model.outputs}
    for name, array in outputs.items():
        if array.ndim > 0 and len(array) != rows:
            raise ValueError(f"The output {name} of {model.name} has {len(array)} rows for a block "
                             f"of {rows}, and blocks are joined along the rows.")
    results = np.empty(1, object)
    results[0] = outputs
    return results


def _output(results: Array, *, name: str) -> Array:
    output: Array = results[0][name]
    return output


def _check_lazy(model: ServedModel[dict[str, Array]], expected: ModelTensor, x: da.Array) -> None:
    path = f"model.inputs[{model.inputs.index(expected)}].tensor"
    if x.ndim == 0:
        raise InvalidArgument(f"The input {expected.name} of {model.name} is an array of Dask "
                              "without dimensions, which has no rows; compute() it first.",
                              field=f"{path}.sizes")
    refuse_masked(x._meta, path)
    # The rows of blocks are checked when these are computed.
    known = tuple(x.shape) if x.ndim != len(expected.shape) else tuple(
        takes if axis == 0 or math.isnan(size) else size
        for axis, (takes, size) in enumerate(zip(expected.shape, x.shape)))
    check_input(model._info, expected, x.dtype, known, path)


# Sums. The results of chunks are float64, or integers, which wrap like those of the operator. Those
# of chunks without elements are without elements, too, so that they contribute nothing.


def _reduce_chunk(block: Array, axis: tuple[int, ...], keepdims: bool, *, client: Client,
                  name: str) -> Array:
    rule = _RULES[name]
    kind = block.dtype if block.dtype.kind in "iu" or rule.merge is None else rule.kind
    if block.size == 0:  # or Dask that determines the type of the result
        return np.empty(_reduced(block.shape, axis), kind)
    if rule.merge is not None and block.dtype == np.float16:
        block = block.astype(np.float32)  # rounded to float16 once, at the end
    part = client.reduce(block, rule.chunk, axis, keepdims=True).astype(kind)
    if name == "average":
        count = math.prod(block.shape[i] for i in axis)
        part.real *= count
        part.imag = count
    return part


def _reduce_combine(parts: Array, axis: tuple[int, ...], keepdims: bool, *, client: Client,
                    name: str) -> Array:
    if parts.size == 0:
        return np.empty(_reduced(parts.shape, axis), parts.dtype)
    return _merge(parts, axis, keepdims, client, name)


def _reduce_aggregate(parts: Array, axis: tuple[int, ...], keepdims: bool, *, client: Client,
                      name: str, element: np.dtype[Any]) -> Array:
    total = _merge(parts, axis, keepdims, client, name)
    with np.errstate(all="ignore"):
        return _RULES[name].finish(total).astype(element)


def _merge(parts: Array, axis: tuple[int, ...], keepdims: bool, client: Client,
           name: str) -> Array:
    """Of no parts, the identity of the function, or NumPy's ValueError if there is none."""
    merge = _RULES[name].merge
    if merge is None and parts.size:
        return client.reduce(parts, _RULES[name].chunk, axis, keepdims=keepdims)
    if merge is None:
        merge = np.maximum if name == "max" else np.minimum
    with np.errstate(all="ignore"):
        return np.asarray(merge.reduce(parts, axis=axis, keepdims=keepdims, dtype=parts.dtype))


# Selections. The results of chunks are pairs of a value and its index in the whole array.


def _arg_reduce(client: Client, x: da.Array, operator: str, axis: Axes, axis_direction: str,
                keepdims: bool, split_every: int | None, cast: DTypeLike | None) -> da.Array:
    x = _input(client, x, operator, "", cast)
    axes = _axes(x, axis)
    if not axes:  # each element alone
        return da.zeros(x.shape, dtype=np.int64, chunks=x.chunks)
    for i in axes:
        _require_known(x.shape[i])
        if x.shape[i] == 0:
            raise ValueError(f"attempt to get {operator.replace('_', '')} of an empty sequence")
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
    best = (np.max if operator == "arg_max" else np.min)(value, axis=axis, keepdims=True)
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


def _input(client: Client, x: da.Array, operator: str, function: str,
           cast: DTypeLike | None) -> da.Array:
    """The array, with elements of a type that the operator takes."""
    if not isinstance(x, da.Array):
        raise TypeError(f"x is a {type(x).__name__}, and opmill.dask takes arrays of Dask; "
                        "da.asarray(x) makes one.")
    path = f"operator.{operator}.input"
    if x.ndim == 0:
        raise InvalidArgument("The array is a single value, without dimensions. Operators take "
                              "arrays of 1 to 8 dimensions.", field=f"{path}.sizes")
    refuse_masked(x._meta, path)
    number = REDUCE_FUNCTIONS.numbers.get(function, 0)
    target = client._types.target(x.dtype, operator, number, cast, path)
    return x if x.dtype == target else da.map_blocks(convert, x, target, path, dtype=target)


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


def _reduced(shape: tuple[int, ...], axes: tuple[int, ...]) -> list[int]:
    """An empty dimension stays empty: a chunk without elements contributes nothing."""
    return [1 if size and i in axes else size for i, size in enumerate(shape)]


def _meta(x: da.Array, axes: tuple[int, ...], keepdims: bool, kind: Any) -> Array:
    return np.empty((0,) * (x.ndim if keepdims else x.ndim - len(axes)), kind)
