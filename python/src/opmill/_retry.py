"""Retries of executions. They have no side effects, so any server may compute them again."""

from __future__ import annotations

import random
import time

from .errors import OpMillError, ResourceExhausted, Unavailable

_FIRST_DELAY = 0.25
_MAX_DELAY = 2.0


class Attempts:
    """Counts the attempts of one call, and decides how long to wait before the next one."""

    def __init__(self, max_attempts: int, timeout: float | None) -> None:
        self._left = max_attempts
        # A float32 would round the time of day, to which gRPC adds what remains, to minutes.
        self._deadline = None if timeout is None else time.monotonic() + float(timeout)
        self._delay = _FIRST_DELAY

    def remaining(self) -> float | None:
        """Seconds until the deadline; None if there is none."""
        return None if self._deadline is None else max(self._deadline - time.monotonic(), 0)

    def delay_after(self, error: OpMillError) -> float:
        """Seconds to wait; raises the error if there is no further attempt."""
        self._left -= 1
        worth_it = isinstance(error, Unavailable) or (
            isinstance(error, ResourceExhausted) and error.retry_after is not None)
        delay = self._delay if error.retry_after is None else error.retry_after
        delay *= random.uniform(0.8, 1.2)  # callers that failed together do not retry together
        self._delay = min(2 * self._delay, _MAX_DELAY)
        remaining = self.remaining()
        if not worth_it or self._left <= 0 or (remaining is not None and delay >= remaining):
            raise error
        return delay
