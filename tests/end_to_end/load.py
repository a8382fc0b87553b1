"""Callers that make load, and check every result."""

import threading
import time

import grpc
import numpy as np
from grpc_status import rpc_status

import api
import arrays
from api import Refusal

_AT_ONCE = 8  # executions on a stream


class Load:
    """Callers of both RPCs. They run until `stop`, and retry calls that are refused with a retry
    delay; with `until_refused`, a refusal ends the caller. `wrong` has all other failures."""

    def __init__(self, address, array, callers, streams, until_refused=False):
        self.good = 0
        self.refused = {"call": 0, "stream": 0}  # UNAVAILABLE with a retry delay
        self.wrong = []
        self._address = address
        self._operator = arrays.hardmax(array, [1])
        self._data = arrays.data_of(array)
        self._expected = arrays.expect_hardmax(array, [1])
        self._until_refused = until_refused
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        bodies = [self._call] * callers + [self._stream] * streams
        self._threads = [threading.Thread(target=self._run, args=(body,)) for body in bodies]
        for thread in self._threads:
            thread.start()

    def stop(self):
        self._stopping.set()
        self.join()

    def join(self):
        for thread in self._threads:
            thread.join(60)
            if thread.is_alive():
                self.wrong.append("a caller hangs")

    def wait_for_good(self, more, seconds=60):
        wanted = self.good + more
        until = time.monotonic() + seconds
        while self.good < wanted and not self.wrong:
            assert time.monotonic() < until, f"only {self.good} executions are good"
            time.sleep(0.01)

    def _run(self, body):
        try:
            with api.connect(self._address) as channel:
                body(api.stub_of(channel))
        except Exception as error:  # pylint: disable=broad-except
            self.wrong.append(repr(error))

    def _note(self, kind, outcome, status):
        """True if the caller should continue."""
        with self._lock:
            if status is not None:
                refusal = Refusal.of(status)
                self.refused[kind] += 1
                if refusal.code != grpc.StatusCode.UNAVAILABLE or not refusal.retry_seconds:
                    self.wrong.append(refusal)
            elif np.array_equal(arrays.array_of(outcome), self._expected):
                self.good += 1
            else:
                self.wrong.append("a wrong result")
        if status is None:
            return not self._stopping.is_set()
        time.sleep(0.01)
        return not (self._until_refused or self._stopping.is_set())

    def _call(self, stub):
        goes_on = True
        while goes_on:
            try:
                goes_on = self._note("call", api.execute(stub, self._operator, self._data), None)
            except grpc.RpcError as error:
                status = rpc_status.from_call(error)
                # gRPC itself cancels calls that arrive while the server closes.
                if status is None and self._until_refused and error.code() in (
                        grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED):
                    return
                goes_on = self._note("call", None, Refusal.status_of(error))

    def _stream(self, stub):
        stream = api.Stream(stub, timeout=600)
        under_way, following, goes_on = 0, 0, True
        try:
            while goes_on or under_way:
                while goes_on and under_way < _AT_ONCE:
                    middle = len(self._data) // 3
                    stream.begin(following, self._operator, [(0, 0, self._data[:middle])])
                    stream.send(following, [(0, middle, self._data[middle:])])
                    following += 1
                    under_way += 1
                _, outcome = stream.next_end()
                under_way -= 1
                goes_on = self._note("stream", outcome, outcome.status) and goes_on
            if stream.rest():
                self.wrong.append("an execution ended twice")
        except grpc.RpcError as error:
            # The stream was idle when it closed; later messages were not accepted.
            if not self._until_refused or error.code() != grpc.StatusCode.UNAVAILABLE:
                raise
