"""Tensors in shared memory, for servers on this machine: the bytes are copied into a segment, and
the server is told its name. Each execution has segments of its own, which are removed when it has
ended. An output stays in its segment, whose memory then belongs to the result alone."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import functools
import mmap
import os
import pathlib
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ._contract import DATA_TYPES, Message, SharedMemoryRange
from ._wire import Buffer
from .errors import OpMillError

# From here on it is faster than a stream (docs/performance.md).
LEAST_BYTES = 4 << 20

_FOLDER = pathlib.Path("/dev/shm")  # of shm_open, on Linux
_PREFIX = "opmill-client-"
_ALIGNMENT = 64
_STEP_BYTES = 1 << 20
_ABANDONED_SECONDS = 60  # without a write; younger ones may not be locked yet


class Unusable(Exception):
    """Shared memory does not work here, or has no room; `for_good` if trying again is of no use."""

    def __init__(self, for_good: bool) -> None:
        super().__init__()
        self.for_good = for_good


def is_possible() -> bool:
    return _FOLDER.is_dir() and hasattr(os, "pwrite")


def unusable(error: OpMillError) -> Unusable | None:
    """What an error of an execution says about shared memory, if anything."""
    field = error.field or ""
    if not field.startswith(("shared_inputs", "shared_outputs")):
        return None
    return Unusable(for_good=" names no " in error.sentence or "--shared_memory" in error.sentence)


class Segment:
    """A segment for tensors of these sizes. The lock on it tells later processes that its owner
    lives. Raises Unusable."""

    def __init__(self, sizes: Sequence[int]) -> None:
        _remove_abandoned()
        self._offsets = []
        self._bytes = 0
        for size in sizes:
            self._offsets.append(self._bytes)
            self._bytes += -(-size // _ALIGNMENT) * _ALIGNMENT
        name = _PREFIX + os.urandom(16).hex()
        self._path = _FOLDER / name
        try:
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
            fcntl.flock(self._file, fcntl.LOCK_SH)
            os.truncate(self._file, self._bytes)
        except OSError as error:
            raise Unusable(for_good=error.errno != errno.ENOSPC) from error
        self.ranges = [SharedMemoryRange(key=name, offset=offset, byte_size=size)
                       for offset, size in zip(self._offsets, sizes)]

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
        memory = mmap.mmap(self._file, self._bytes, flags=mmap.MAP_PRIVATE,
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
