"""Exact search in vectors that stay on a server. What both clients share are generators, which yield
the calls of a client and get their results."""

from __future__ import annotations

import os
import threading
import typing
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar, Union

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from ._arguments import checked
from ._element_types import convert, may_cast, type_name
from ._named_operators import METRIC_ALIASES, Metric, named_call
from ._resident import ResidentTensor, Write
from ._servers import Steps, run
from ._tensors import array_of
from .errors import FailedPrecondition, InvalidArgument, NotFound, OpMillError, Unavailable

T = TypeVar("T")
Array = NDArray[Any]
Path = Union[str, "os.PathLike[str]"]

_TYPES = ("float32", "float16", "int8")
_NO_VECTOR = (1 << 32) - 1  # the index of an empty place
# Reasons of errors if a tensor is not there; the last one also if another program has written to it.
_GONE = ("UNKNOWN_TENSOR", "TENSOR_LOST", "OTHER_GENERATION")
RECOVERIES = 3  # of a call: others may compact, or the server be lost, meanwhile


class Found(typing.NamedTuple):
    scores: Array
    ids: Array


@dataclass(frozen=True)
class _State:
    """What a search reads: replaced as a whole, so that searches beside `add` and `remove` see one
    state. `alive` has an element for each row of the capacity, and so has `mask`."""

    rows: int = 0
    vectors: ResidentTensor | None = None
    alive: Array | None = None  # None: all
    mask: ResidentTensor | None = None
    # The ids of the first rows, ascending; the id of a later row is its row plus `gone`.
    kept: Array = field(default_factory=lambda: np.empty(0, np.int64))
    gone: int = 0  # rows that `compact` has dropped
    copy: Array | None = None  # the client's own, of at least `rows` rows

    @property
    def next_id(self) -> int:
        return self.rows + self.gone

    def ids_of(self, rows: Array) -> Array:
        rows = rows.astype(np.int64)
        ids: Array = rows + self.gone
        known = rows < len(self.kept)
        ids[known] = self.kept[rows[known]]
        return ids

    def rows_of(self, ids: Array) -> Array:
        """In their order, without those that have no row any more."""
        last = len(self.kept) + self.gone
        rows = np.searchsorted(self.kept, ids)
        known = np.isin(ids, self.kept)
        return np.where(known, rows, ids - self.gone)[known | (ids >= last)]


class IndexSteps:
    """What an index does, in the calls of a client."""

    def __init__(self, client: Any, vectors: ArrayLike | ResidentTensor, metric: Metric,
                 dtype: DTypeLike | None, name: str | None, capacity: int | None,
                 lease: float | None, keep_copy: bool) -> None:
        self._client = client if client._servers is None else client._servers.home(vectors)
        self.metric = metric_of(metric)
        self._state = _State()
        self._is_owned = not isinstance(vectors, ResidentTensor)
        if isinstance(vectors, ResidentTensor):
            if name not in (None, vectors.name):
                raise InvalidArgument(f'name ("{name}") is not that of the tensor '
                                      f'("{vectors.name}").', field="name")
            self._state = _State(rows=vectors.shape[0] if vectors.shape else 0, vectors=vectors)
        self._base_name = (vectors.name if isinstance(vectors, ResidentTensor)
                           else name or f"index/{uuid.uuid4().hex}")
        self._next_name = self._base_name  # of vectors that are to be put
        self._name_of_compacted = self._fresh_name()  # also if an attempt has failed: it may have put them
        self._mask_name = f"index.mask/{uuid.uuid4().hex}"
        self._has_own_name = self._is_owned and name is None
        self._lease = lease
        self._keeps_copy = keep_copy
        given = array_of(vectors, "vectors")
        if given.ndim != 2:
            raise InvalidArgument(f"vectors has the shape {given.shape}; it must have 2 dimensions.",
                                  field="vectors")
        self.dimensions = given.shape[1]
        self.dtype = element_type(given.dtype, dtype)
        self._capacity = capacity
        if isinstance(vectors, ResidentTensor):
            if vectors.dtype != self.dtype:
                raise InvalidArgument(f'The tensor "{vectors.name}" is {vectors.dtype}, and stays '
                                      f"so; dtype is {self.dtype}.", field="dtype")
            if keep_copy:
                raise InvalidArgument("keep_copy is for vectors that the index puts; these are the "
                                      f'tensor "{vectors.name}".', field="keep_copy")
            self._first = None
        else:
            self._first = convert(given, self.dtype, "vectors")

    def __len__(self) -> int:
        """The number of vectors that can be found."""
        state = self._state
        return state.rows if state.alive is None else int(state.alive[:state.rows].sum())

    def __repr__(self) -> str:
        return (f'<opmill.Index "{self.name}" of {len(self)} vectors of {self.dimensions} '
                f"{self.dtype}, {self.metric}>")

    @property
    def name(self) -> str:
        """That of the tensor. `compact` changes it."""
        vectors = self._state.vectors
        return self._next_name if vectors is None else vectors.name

    @property
    def rows(self) -> int:
        """The id of the next vector: removed ones keep theirs."""
        return self._state.next_id

    def _fresh_name(self) -> str:
        return f"{self._base_name}/{uuid.uuid4().hex[:8]}"

    def _open(self) -> Steps[None]:
        first, self._first = self._first, None
        if first is not None and len(first):
            yield from self._add(first)

    def _rows_of(self, rows: ArrayLike, what: str) -> Array:
        array = array_of(rows, what)
        array = array[np.newaxis] if array.ndim == 1 and array.size else array
        if array.ndim != 2 or array.shape[1] != self.dimensions:
            raise InvalidArgument(f"{what} has the shape {array.shape}; the index has vectors of "
                                  f"{self.dimensions} elements.", field=what)
        if not may_cast(array.dtype, self.dtype.name):
            raise InvalidArgument(f"{what} is {array.dtype}, and the index {self.dtype}; convert "
                                  "the array with astype.", field=what)
        return convert(array, self.dtype, what)

    def _put(self, name: str, array: Array, capacity: int | None = None) -> Any:
        return self._client.tensors.put(name, array, capacity=capacity, lease=self._lease)

    def _add(self, rows: ArrayLike) -> Steps[Array]:
        array = self._rows_of(rows, "rows")
        state = self._state
        ids = np.arange(state.next_id, state.next_id + len(array))
        if not len(array):
            return ids
        copy = self._copy_with(state, array)
        if state.vectors is None:
            capacity = len(array) if self._capacity is None else self._capacity
            vectors = yield self._put(self._next_name, array, max(capacity, len(array)))
            self._state = replace(state, rows=len(array), vectors=vectors, copy=copy)
            return ids
        if state.rows + len(array) > state.vectors.capacity:
            if self._has_own_name and 2 * len(self) <= state.rows:
                yield from self._compact(max(state.vectors.capacity, len(self) + len(array)))
            else:
                self._state = yield from self._grown(
                    state, max(state.rows + len(array), 2 * state.vectors.capacity))
            return (yield from self._add(array))
        vectors = yield self._client.tensors.append(self.name, array,
                                                    if_generation=state.vectors.generation)
        self._state = replace(state, rows=state.rows + len(array), vectors=vectors, copy=copy)
        return ids

    def _copy_with(self, state: _State, more: Array) -> Array | None:
        """Searches read only the rows before these."""
        if not self._keeps_copy:
            return None
        copy, wanted = state.copy, state.rows + len(more)
        if copy is None or len(copy) < wanted:
            larger = np.empty((max(wanted, 2 * state.rows), self.dimensions), self.dtype)
            if copy is not None:
                larger[:state.rows] = copy[:state.rows]
            copy = larger
        copy[state.rows:wanted] = more
        return copy

    def _grown(self, state: _State, capacity: int) -> Steps[_State]:
        """The server copies the vectors. The mask is first, so that it has a place for each row."""
        vectors = typing.cast(ResidentTensor, state.vectors)
        alive, mask = state.alive, state.mask
        if alive is not None:
            alive = np.concatenate([alive, np.ones(capacity - len(alive), np.bool_)])
            mask = yield self._put(self._mask_name, alive.view(np.uint8))
        vectors = yield self._client._run(named_call("identity", [vectors], {}), {
            "keep": Write(self.name, "put", 0, capacity, self._lease, vectors.generation)})
        return replace(state, vectors=vectors, alive=alive, mask=mask)

    def _compact(self, capacity: int | None) -> Steps[int]:
        """The server copies the vectors that can be found to a tensor of another name, because searches
        that have begun still name the old one. Those that have not reached the server are repeated."""
        state = self._state
        if not self._is_owned:
            raise FailedPrecondition(f'The tensor "{self.name}" is not of the index, and keeps its rows.')
        if state.vectors is None or state.alive is None or state.alive[:state.rows].all():
            return 0
        rows = np.flatnonzero(state.alive[:state.rows])
        name = self._name_of_compacted
        vectors = None
        if len(rows):
            source = replace(state.vectors, shape=(state.rows, self.dimensions))
            call = named_call("gather", [source, rows.astype(np.uint32)[np.newaxis]],
                              {"axis": 0, "index_dimensions": 1})
            vectors = yield self._client._run(call, {
                "keep": Write(name, "put", 0, max(capacity or 0, len(rows)), self._lease)})
        self._next_name, self._mask_name = name, f"index.mask/{uuid.uuid4().hex}"
        self._name_of_compacted = self._fresh_name()
        copy = None if state.copy is None else state.copy[rows]
        self._state = _State(len(rows), vectors, kept=state.ids_of(rows),
                             gone=state.next_id - len(rows), copy=copy)
        yield from self._drop(state)
        return state.rows - len(rows)

    def _drop(self, state: _State) -> Steps[None]:
        """Of an index that is deleted or compacted."""
        for tensor in (state.vectors if self._is_owned else None, state.mask):
            if tensor is not None:
                try:
                    yield self._client.tensors.delete(tensor.name)
                except NotFound:
                    pass

    def _remove(self, ids: ArrayLike) -> Steps[int]:
        state = self._state
        gone = np.unique(np.asarray(ids).reshape(-1))
        if gone.size and gone.dtype.kind not in "iu":
            raise InvalidArgument(f"ids is of {gone.dtype}; ids are integers.", field="ids")
        for each in gone[(gone < 0) | (gone >= state.next_id)][:1]:
            raise InvalidArgument(f"ids has {each}, but the ids are 0 to {state.next_id - 1}."
                                  if state.next_id else f"ids has {each}, but the index is empty.",
                                  field="ids")
        gone = state.rows_of(gone.astype(np.int64))
        if state.vectors is None or not gone.size:
            return 0
        alive = (np.ones(state.vectors.capacity, np.bool_) if state.alive is None
                 else state.alive.copy())
        count = int(alive[gone].sum())
        alive[gone] = False
        mask, first = state.mask, int(gone[0])
        if mask is None:
            mask = yield self._put(self._mask_name, alive.view(np.uint8))
        else:
            mask = yield self._client.tensors.write(
                self._mask_name, first, alive[first:gone[-1] + 1].view(np.uint8))
        self._state = replace(state, alive=alive, mask=mask)
        return count

    def _recover(self, state: _State, error: OpMillError) -> Steps[None]:
        """After an error of a call that used `state`: raises it, or a sentence, unless the call may
        succeed now."""
        if error.reason not in _GONE:
            raise error
        if self._state is not state:  # compacted, or put again, by another thread
            return
        vectors = typing.cast(ResidentTensor, state.vectors)
        try:
            found = yield self._client.tensors.find(vectors.name)
            is_there = not found.is_lost
        except NotFound:
            is_there = False
        if is_there and error.reason == "OTHER_GENERATION":
            raise error
        if not is_there:
            if state.copy is None:
                if not self._is_owned:
                    raise error
                kind, reason = ((Unavailable, error.reason) if isinstance(error, Unavailable)
                                else (NotFound, "UNKNOWN_TENSOR"))
                raise kind(
                    f'The vectors of the index, the tensor "{vectors.name}", are not on the server any '
                    "more: it has restarted or lost its device, their lease has ended, or they were "
                    "deleted. Make the index again; with keep_copy=True it puts them again by itself.",
                    reason=reason) from None
            vectors = yield self._put(vectors.name, state.copy[:state.rows], vectors.capacity)
        mask = state.mask
        if mask is not None:
            alive = typing.cast(Array, state.alive)
            mask = yield self._put(self._mask_name, alive.view(np.uint8))
        self._state = replace(state, vectors=vectors, mask=mask)

    def _search(self, state: _State, queries: ArrayLike, k: int, mask: ArrayLike | None,
                timeout: float | None) -> Steps[Found]:
        array = self._rows_of(queries, "queries")
        if not isinstance(k, (int, np.integer)) or isinstance(k, bool) or k < 1:
            raise InvalidArgument(f"k is {k!r}; it must be an integer of at least 1.", field="k")
        sent = _mask_to_send(state, mask, len(array))
        scores = np.full((len(array), k), self._empty_score(), score_type(self.dtype, self.metric))
        ids = np.full(scores.shape, -1, np.int64)
        nearest = min(k, state.rows)
        if state.vectors is not None and scores.size:
            vectors = replace(state.vectors, shape=(state.rows, self.dimensions))
            found = yield self._client.search(array, vectors, nearest, metric=self.metric,
                                              mask=sent, timeout=timeout)
            scores[:, :nearest] = found[0]
            is_there = found[1] != _NO_VECTOR
            ids[:, :nearest][is_there] = state.ids_of(found[1][is_there])
        return Found(scores[0], ids[0]) if np.ndim(queries) == 1 else Found(scores, ids)

    def _empty_score(self) -> float:
        kind = score_type(self.dtype, self.metric)
        if kind.kind == "f":
            return np.inf if self.metric == "l2" else -np.inf
        limits = np.iinfo(kind)
        return limits.max if self.metric == "l2" else limits.min

    def _vectors(self, state: _State) -> Steps[tuple[Array, Array]]:
        """Those that can be found, and their ids."""
        if state.vectors is None:
            return np.empty((0, self.dimensions), self.dtype), np.empty(0, np.int64)
        array = yield self._client.tensors.get(
            replace(state.vectors, shape=(state.rows, self.dimensions)))
        rows = np.arange(state.rows)
        if state.alive is not None:
            rows = rows[state.alive[:state.rows]]
        return array[rows] if len(rows) < len(array) else array, state.ids_of(rows)

    def _save(self, state: _State, path: Path) -> Steps[Array]:
        array, ids = yield from self._vectors(state)
        with open(path, "wb") as file:
            np.save(file, array, allow_pickle=False)
        return ids

    def _delete(self) -> Steps[None]:
        state, self._state = self._state, _State()
        yield from self._drop(state)


def metric_of(name: Metric) -> Metric:
    names = typing.get_args(Metric)
    if name not in names:
        raise InvalidArgument(f'metric ("{name}") is none of {", ".join(names)}.', field="metric")
    return METRIC_ALIASES.get(name, name)


def score_type(dtype: np.dtype[Any], metric: str) -> np.dtype[Any]:
    return np.dtype(np.int32 if dtype == np.int8 and metric != "cosine" else np.float32)


def element_type(given: np.dtype[Any], wanted: DTypeLike | None) -> np.dtype[Any]:
    if wanted is None and given.name in _TYPES:
        return given
    if wanted is None:
        way = ', or pass dtype="float32"' if may_cast(given, "float32") else ""
        raise InvalidArgument(f"Elements of vectors are {given.name}, and search takes "
                              f"{', '.join(_TYPES)}. Convert the array with astype{way}.",
                              field="vectors")
    name = type_name(wanted, "dtype")
    if name not in _TYPES:
        raise InvalidArgument(f"dtype is {name}, and search takes {', '.join(_TYPES)}.",
                              field="dtype")
    if not may_cast(given, name):
        raise InvalidArgument(f"A cast from {given.name} to {name} would change values; convert the "
                              "array with astype.", field="dtype")
    return np.dtype(name)


def _mask_to_send(state: _State, mask: ArrayLike | None, queries: int) -> Any:
    """[1, rows] or [queries, rows]; None if all vectors can be found."""
    if mask is None:
        return None if state.mask is None else replace(state.mask, shape=(1, state.rows))
    array = np.asarray(mask)
    array = array[np.newaxis] if array.ndim == 1 else array
    ids = state.next_id
    if array.shape not in ((1, ids), (queries, ids)):
        raise InvalidArgument(f"mask has the shape {np.shape(mask)}; it must be that of the rows "
                              f"({ids},), or one for each query, ({queries}, {ids}).",
                              field="mask")
    if array.dtype != np.bool_:
        raise InvalidArgument(f"mask is of {array.dtype}; it must be of bool.", field="mask")
    if state.gone:
        array = array[:, state.ids_of(np.arange(state.rows))]
    return array if state.alive is None else array & state.alive[:state.rows]


class Index(IndexSteps):
    """Vectors on a server, and exact search in them:

        index = opmill.Index(c, vectors, metric="cosine")
        scores, ids = index.search(queries, 10)

    The id of a vector is its row, counted from the first one that was ever added. `vectors` is an
    array [N, D], which may have no rows, or a ResidentTensor that the server has. `dtype` is the type
    to which it and queries are converted. `capacity` is the number of rows for which there is room;
    beyond it, `add` has the server copy the vectors.

    Without `lease`, the vectors stay on the server until `delete`; otherwise they go when no search and no
    `add` has named them for so many seconds. With `keep_copy` the client keeps a copy, from which the
    index puts them again if the server has restarted or lost them.

    Searches may run beside `add`, `remove` and `compact`, in any thread. The vectors live on one
    server: that of the tensor, or the next one in turn if the client has several."""

    @checked
    def __init__(self, client: Any, vectors: ArrayLike | ResidentTensor, metric: Metric = "ip",
                 dtype: DTypeLike | None = None, name: str | None = None,
                 capacity: int | None = None, lease: float | None = None,
                 keep_copy: bool = False) -> None:
        super().__init__(client, vectors, metric, dtype, name, capacity, lease, keep_copy)
        self._writers = threading.Lock()
        run(self._open())

    def __getstate__(self) -> dict[str, Any]:
        """A copy in another process is of the same vectors, until one of both compacts them."""
        state = self._state
        copy = None if state.copy is None else state.copy[:state.rows]
        return {name: value for name, value in self.__dict__.items() if name != "_writers"} | {
            "_state": replace(state, copy=copy)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._writers = threading.Lock()

    def __enter__(self) -> Index:
        return self

    def __exit__(self, *exception: object) -> None:
        self.delete()

    def _write(self, steps: Callable[[], Steps[T]]) -> T:
        with self._writers:
            for _ in range(RECOVERIES):
                state = self._state
                try:
                    return run(steps())
                except OpMillError as error:
                    run(self._recover(state, error))
            return run(steps())

    def _read(self, steps: Callable[[_State], Steps[T]]) -> T:
        for _ in range(RECOVERIES):
            state = self._state
            try:
                return run(steps(state))
            except OpMillError as error:
                with self._writers:
                    run(self._recover(state, error))
        return run(steps(self._state))

    @checked
    def add(self, rows: ArrayLike) -> Array:
        """Adds vectors [n, D], or one [D], and returns their ids."""
        return self._write(lambda: self._add(rows))

    @checked
    def remove(self, ids: ArrayLike) -> int:
        """They are not found any more, but keep their memory until `compact`. Returns how many were
        found before."""
        return self._write(lambda: self._remove(ids))

    @checked
    def compact(self, *, capacity: int | None = None) -> int:
        """Gives back the memory of removed vectors; those that remain keep their ids. `capacity` is the
        number of rows for which there is room afterwards; by default there is none for more. Returns
        how many rows are gone. The vectors get a tensor of another name."""
        return self._write(lambda: self._compact(capacity))

    @checked
    def search(self, queries: ArrayLike, k: int, mask: ArrayLike | None = None, *,
               timeout: float | None = None) -> Found:
        """The k nearest of the vectors for each of the queries [Q, D], or for one [D]: their scores and
        ids, the best first, of equal ones the lowest id first. Places for which there is no vector
        have the id -1. `mask`, of bool [rows] or [Q, rows], says which vectors can be found."""
        return self._read(lambda state: self._search(state, queries, k, mask, timeout))

    @checked
    def save(self, path: Path) -> Array:
        """Writes the vectors that can be found to a .npy file, and returns their ids: in the file they
        have new ones, without gaps."""
        return self._read(lambda state: self._save(state, path))

    @classmethod
    def load(cls, client: Any, path: Path, metric: Metric = "ip", dtype: DTypeLike | None = None,
             name: str | None = None, capacity: int | None = None, lease: float | None = None,
             keep_copy: bool = False) -> Index:
        """The index of the vectors in a .npy file."""
        return cls(client, np.load(path, mmap_mode="r", allow_pickle=False), metric, dtype, name,
                   capacity, lease, keep_copy)

    def delete(self) -> None:
        """Deletes the vectors on the server, unless the index was made of a tensor there."""
        with self._writers:
            run(self._delete())
