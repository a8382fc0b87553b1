"""Reports the progress of an upload."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from ._arguments import Progress


@contextlib.contextmanager
def reporting(progress: Progress | bool | None, total: int) -> Iterator[Callable[[int], None]]:
    """The function to call with the number of bytes sent so far."""
    if not progress:
        yield lambda sent: None
    elif callable(progress):
        callback = progress
        yield lambda sent: callback(sent, total)
    else:
        try:
            from tqdm.auto import tqdm
        except ImportError:
            yield lambda sent: None
            return
        with tqdm(total=total, unit="B", unit_scale=True, unit_divisor=1024) as bar:
            yield lambda sent: bar.update(sent - bar.n)
