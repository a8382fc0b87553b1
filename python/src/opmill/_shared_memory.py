"""Tensors in shared memory, for servers on this machine: the bytes are copied into a segment, and
the server is told its name. An output stays in its segment, whose name is removed when the
execution has ended: its memory then belongs to the result alone. Segments of inputs are used again
by the same client, as long as they are small."""

from __future__ import annotations

import contextlib
import errno
import functools
import mmap
import os
import pathlib
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from ._arguments import checked
from ._contract import DATA_TYPES, Message, SharedMemoryRange
from ._wire import Buffer
from .errors import OpMillError

if sys.platform != "win32":
    import fcntl

# From here on it is faster than a stream (docs/performance.md).
LEAST_BYTES = 2 << 20

_FOLDER = pathlib.Path("/dev/shm")  # of shm_open, on Linux
_PREFIX = "opmill-client-"
_ALIGNMENT = 64
_STEP_BYTES = 1 << 20
_MOST_IDLE_BYTES = 256 << 20  # of a client
_ABANDONED_SECONDS = 60  # without a write; younger ones may not be locked yet


class Unusable(Exception):
    """Shared memory does not work here, or has no room; `for_good` if trying again is of no use."""

    def __init__(self, for_good: bool) -> None:
        super().__init__()
        self.for_good = for_good


def is_possible() -> bool:
    return sys.platform == "linux" and _FOLDER.is_dir()


def unusable(error: OpMillError) -> Unusable | None:
    """What an error of an execution says about shared memory, if anything."""
    field = error.field or ""
    if field == "inputs":  # of an older server, beside one that accepts shared memory
        return Unusable(for_good=True)
    if not field.startswith(("shared_inputs", "shared_outputs")):
        return None
    return Unusable(for_good=" names no " in error.sentence or "--shared_memory" in error.sentence)


class Segment:
    """A segment for tensors of these sizes. The lock on it tells later processes that its owner
    lives. Raises Unusable."""

    def __init__(self, sizes: Sequence[int]) -> None:
        _remove_abandoned()
        self.owner = os.getpid()
        self.bytes = sum(map(_aligned, sizes))
        self._path = _FOLDER / (_PREFIX + os.urandom(16).hex())
        try:
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        except OSError as error:
            raise Unusable(for_good=error.errno != errno.ENOSPC) from error
        try:
            fcntl.flock(self._file, fcntl.LOCK_SH)
            os.truncate(self._file, self.bytes)
        except OSError as error:
            self.close()
            raise Unusable(for_good=False) from error
        self.divide(sizes)

    def divide(self, sizes: Sequence[int]) -> None:
        """Among tensors of these sizes."""
        self._offsets = [sum(map(_aligned, sizes[:index])) for index in range(len(sizes))]
        self.ranges = [self.range(offset, size) for offset, size in zip(self._offsets, sizes)]

    def range(self, offset: int, size: int) -> Message:
        return SharedMemoryRange(key=self._path.name, offset=offset, byte_size=size)

    def map(self) -> mmap.mmap:
        """Shared with the server. Takes the memory now: to lack it at a write is fatal."""
        os.posix_fallocate(self._file, 0, self.bytes)
        return mmap.mmap(self._file, self.bytes)

    def write(self, tensors: Sequence[Buffer], sent: Callable[[int], None]) -> None:
        """Raises Unusable if the system has no room; a mapping would be a fatal signal then."""
        done = 0
        for offset, data in zip(self._offsets, tensors):
            view = memoryview(data)
            while view:
                try:
                    count = os.pwrite(self._file, view[:_STEP_BYTES], offset)
                except OSError as error:
                    raise Unusable(for_good=error.errno != errno.ENOSPC) from error
                view = view[count:]
                offset += count
                done += count
                sent(done)

    def arrays(self, descs: Sequence[Message]) -> list[np.ndarray[Any, Any]]:
        """The packed tensors in it, as arrays that keep its memory. Like other arrays, a process
        that is forked does not share them: what either writes is a copy of its own."""
        memory = mmap.mmap(self._file, self.bytes, flags=mmap.MAP_PRIVATE,
                           prot=mmap.PROT_READ | mmap.PROT_WRITE)
        arrays = []
        for desc, offset in zip(descs, self._offsets):
            dtype = np.dtype(DATA_TYPES.name(desc.data_type)).newbyteorder("<")
            sizes = tuple(desc.sizes)
            flat = np.frombuffer(memory, dtype, int(np.prod(sizes, dtype=np.int64)), offset)
            arrays.append(flat.reshape(sizes))
        return arrays

    def close(self) -> None:
        """Removes the name, and the memory unless there are `arrays`."""
        with contextlib.suppress(FileNotFoundError):
            self._path.unlink()
        os.close(self._file)

    def __enter__(self) -> Segment:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


# Of the arrays of shared_empty that exist: by their memory, its address and segment.
_shared_arrays: weakref.WeakKeyDictionary[mmap.mmap, tuple[int, Segment]] = (
    weakref.WeakKeyDictionary())


def find_shared(data: memoryview) -> Message | None:
    """The range of a segment that a tensor's bytes are, if they are of a shared_empty."""
    owner: Any = data
    while owner is not None and not isinstance(owner, mmap.mmap):
        owner = owner.obj if isinstance(owner, memoryview) else getattr(owner, "base", None)
    address, segment = _shared_arrays.get(owner, (0, None)) if owner is not None else (0, None)
    if segment is None:
        return None
    return segment.range(np.frombuffer(data, np.uint8).ctypes.data - address, len(data))


def _remove(segment: Segment) -> None:
    if segment.owner == os.getpid():
        segment.close()


@checked
def shared_empty(shape: int | Sequence[int],
                 dtype: DTypeLike = np.float32) -> np.ndarray[Any, Any]:
    """As numpy.empty, in shared memory: a server on this machine reads the array, or a view of it,
    where it is, without a copy by the client. Of use for large arrays that are computed in place,
    or passed more than once: inputs of less than 2 MiB are sent like others. Elsewhere, or on
    systems without /dev/shm, it is an ordinary array."""
    count = int(np.prod(shape, dtype=np.int64))
    size = count * np.dtype(dtype).itemsize
    if size == 0 or not is_possible():
        return np.empty(shape, dtype)
    with contextlib.ExitStack() as failure:
        try:
            segment = failure.enter_context(Segment([size]))
            memory = segment.map()
        except (OSError, Unusable) as error:
            raise MemoryError(f"{_FOLDER} has no room for an array of {size} bytes.") from error
        array = np.frombuffer(memory, dtype, count).reshape(shape)
        failure.pop_all()
    _shared_arrays[memory] = array.ctypes.data, segment
    weakref.finalize(memory, _remove, segment)
    return array


class Segments:
    """Those of the inputs of one client. Any thread may call."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[Segment] = []
        self._most_idle_bytes = _MOST_IDLE_BYTES

    @contextlib.contextmanager
    def borrow(self, sizes: Sequence[int]) -> Iterator[Segment]:
        """A segment for tensors of these sizes."""
        least = sum(map(_aligned, sizes))
        with self._lock:
            # A forked process has no part in those of its parent.
            self._idle = [each for each in self._idle if each.owner == os.getpid()]
            fitting = [each for each in self._idle if each.bytes >= least]
            segment = min(fitting, key=lambda each: each.bytes, default=None)
            if segment:
                self._idle.remove(segment)
        if segment:
            segment.divide(sizes)
        else:
            segment = Segment(sizes)
        try:
            yield segment
        except BaseException:
            segment.close()  # the server may still read it
            raise
        with self._lock:
            self._idle.append(segment)
            surplus = []
            while sum(each.bytes for each in self._idle) > self._most_idle_bytes:
                surplus.append(self._idle.pop(0))
        for each in surplus:
            each.close()

    def close(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
            self._most_idle_bytes = 0
        for segment in idle:
            if segment.owner == os.getpid():
                segment.close()


def _aligned(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT


@functools.lru_cache(maxsize=1)  # once in a process
def _remove_abandoned() -> None:
    """Removes segments of processes that were killed. Those in use are locked."""
    for path in _old_segments():
        with contextlib.suppress(OSError):
            file = os.open(path, os.O_RDWR | os.O_NOFOLLOW)
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                path.unlink()
            finally:
                os.close(file)


def _old_segments() -> Iterator[pathlib.Path]:
    with contextlib.suppress(OSError):
        for path in _FOLDER.glob(_PREFIX + "*"):
            status = path.lstat()
            if (status.st_uid == os.getuid()
                    and time.time() - status.st_mtime > _ABANDONED_SECONDS):
                yield path
