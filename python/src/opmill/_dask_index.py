"""Search in Dask arrays whose chunks stay on servers."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import dask.array as da
import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from ._arguments import checked
from ._index import Index as PartIndex
from ._index import element_type, metric_of, score_type
from ._named_operators import Metric
from ._tensors import refuse_masked
from .client import Client
from .errors import InvalidArgument

Array = NDArray[Any]

_NO_ID = np.iinfo(np.int64).max  # of an empty place, until the parts are merged


class Found(NamedTuple):
    scores: da.Array
    ids: da.Array


@dataclass(frozen=True)
class _Part:
    index: PartIndex
    first_id: int


class Index:
    """Exact search in the rows of a Dask array [N, D]:

        index = od.Index([opmill.connect(each) for each in servers], x, "cosine")
        scores, ids = index.search(queries, 10)
        scores.compute()

    Dask puts each chunk of the rows on a server, the first one on that of the first of `clients`, the
    next one on the next. A search asks all of them, and Dask merges what they have found: of equal
    scores the lowest id first, as if the array were on one server. The chunks stay on the servers
    until `delete` or the end of a `with` block."""

    @checked
    def __init__(self, clients: Client | Sequence[Client], x: da.Array, metric: Metric = "ip",
                 dtype: DTypeLike | None = None) -> None:
        if not isinstance(x, da.Array):
            raise TypeError(f"x is a {type(x).__name__}, and opmill.dask takes arrays of Dask; "
                            "da.asarray(x) makes one.")
        refuse_masked(x._meta, "x")
        if x.ndim != 2:
            raise InvalidArgument(f"x has {x.ndim} dimensions; it must have 2.", field="x")
        if np.isnan(x.shape).any():
            raise ValueError("The array has chunks of unknown size; x.compute_chunk_sizes() finds "
                             "out.")
        self.metric = metric_of(metric)
        self.dtype = element_type(x.dtype, dtype)
        self.rows, self.dimensions = x.shape
        x = x.rechunk({1: -1})
        placed = da.map_blocks(
            _place, x, clients=(clients,) if isinstance(clients, Client) else tuple(clients),
            metric=self.metric, element=self.dtype, drop_axis=1, chunks=((1,) * x.numblocks[0],),
            dtype=object, meta=np.empty(0, object))
        (self._parts,) = da.compute(placed)

    def __len__(self) -> int:
        return self.rows

    def __enter__(self) -> Index:
        return self

    def __exit__(self, *exception: object) -> None:
        self.delete()

    @checked
    def search(self, queries: ArrayLike | da.Array, k: int, mask: ArrayLike | None = None, *,
               split_every: int | None = None) -> Found:
        """Like opmill.Index.search, of queries [Q, D], which may be an array of Dask. `mask`, of bool
        [N], says which rows can be found. `split_every` is that of dask.array.reduction."""
        asked = queries if isinstance(queries, da.Array) else da.from_array(np.asarray(queries), -1)
        if asked.ndim != 2 or asked.shape[1] != self.dimensions:
            raise InvalidArgument(f"queries has the shape {asked.shape}; the index has vectors of "
                                  f"{self.dimensions} elements.", field="queries")
        if mask is not None and np.shape(mask) != (self.rows,):
            raise InvalidArgument(f"mask has the shape {np.shape(mask)}; it must be that of the "
                                  f"rows, ({self.rows},).", field="mask")
        kind = np.dtype([("score", score_type(self.dtype, self.metric)), ("id", np.int64)])
        parts = da.from_array(self._parts, 1)
        found = da.blockwise(
            functools.partial(_search, k=k, kind=kind, mask=None if mask is None else np.asarray(mask)),
            (0, 1, 2), parts, (0,), asked.rechunk({1: -1}), (1, 3), new_axes={2: k},
            concatenate=True, dtype=kind, meta=np.empty((0, 0, 0), kind))
        merge = functools.partial(_merge, k=k, sign=1 if self.metric == "l2" else -1)
        best = da.reduction(found, _same, functools.partial(_finish, merge=merge), combine=merge,
                            axis=0, dtype=kind, split_every=split_every,
                            meta=np.empty((0, 0), kind))
        return Found(best["score"], best["id"])

    def delete(self) -> None:
        """Deletes the chunks on the servers."""
        parts, self._parts = self._parts, self._parts[:0]
        self.rows = 0
        for part in parts:
            part.index.delete()


def _place(block: Array, *, clients: tuple[Client, ...], metric: Metric, element: np.dtype[Any],
           block_info: Any = None) -> Array:
    """One element, for Dask: the block on a server."""
    place = block_info[0]
    client = clients[place["chunk-location"][0] % len(clients)]
    parts = np.empty(1, object)
    parts[0] = _Part(PartIndex(client, block, metric, element), place["array-location"][0][0])
    return parts


def _search(parts: Array, queries: Array, *, k: int, kind: np.dtype[Any],
            mask: Array | None) -> Array:
    part: _Part = parts[0]
    if mask is not None:
        mask = mask[part.first_id:part.first_id + part.index.rows]
    scores, ids = part.index.search(queries, k, mask)
    found = np.empty((1, *ids.shape), kind)
    found["score"] = scores
    found["id"] = np.where(ids < 0, _NO_ID, ids + part.first_id)
    return found


def _same(found: Array, axis: tuple[int, ...], keepdims: bool) -> Array:
    return found


def _merge(found: Array, axis: tuple[int, ...], keepdims: bool, *, k: int, sign: int) -> Array:
    """Of [parts, Q, k]."""
    each = np.moveaxis(found, 0, 1).reshape(found.shape[1], -1)
    wide = np.float64 if each["score"].dtype.kind == "f" else np.int64
    order = np.lexsort((each["id"], sign * each["score"].astype(wide)))[:, :k]
    best = np.take_along_axis(each, order, 1)
    return best[np.newaxis] if keepdims else best


def _finish(found: Array, axis: tuple[int, ...], keepdims: bool, *, merge: Any) -> Array:
    best: Array = merge(found, axis, keepdims)
    best["id"][best["id"] == _NO_ID] = -1
    return best
