"""An idle server returns all kinds of memory to the system within seconds."""

import concurrent.futures
import time
import unittest

import grpc
import numpy as np

import api
import arrays
from server_process import SANITIZED, ServerProcess

MEBIBYTE = 1 << 20
MESSAGE_BYTES = 60 * MEBIBYTE
CALLS = 40
CALLERS = 4
SECONDS = 10
MOST_KEPT = 64 * MEBIBYTE


@unittest.skipIf(SANITIZED, "a sanitizer keeps what has been freed")
class IdleMemory(unittest.TestCase):
    def setUp(self):
        self.server = self.enterContext(ServerProcess("--memory_limit=4GiB", device="reference"))
        self.at_start = self.resident()

    def resident(self):
        return self.server.status_bytes("VmRSS")

    def flood(self, code, request):
        """CALLERS callers send the request (bytes) CALLS times; all calls end with `code`."""
        def call(_):
            with api.connect(self.server.address) as channel:
                execute = channel.unary_stream(f"/{api.SERVICE}/Execute")
                try:
                    list(execute(request, timeout=60))
                except grpc.RpcError as error:
                    return error.code()
            return grpc.StatusCode.OK

        with concurrent.futures.ThreadPoolExecutor(CALLERS) as callers:
            codes = list(callers.map(call, range(CALLS)))
        self.assertEqual(codes, [code] * CALLS)

    def expect_memory_back(self):
        after = self.resident()
        until = time.monotonic() + SECONDS
        while (kept := self.resident() - self.at_start) > MOST_KEPT and time.monotonic() < until:
            time.sleep(0.1)
        most = self.server.status_bytes("VmHWM")
        waited = SECONDS - until + time.monotonic()
        print(f"MiB: {self.at_start >> 20} at the start, {most >> 20} at most, {after >> 20} after "
              f"the flood, {kept >> 20} above the start {waited:.1f} s later")
        self.assertLess(kept, MOST_KEPT)

    def test_of_refused_calls(self):
        operator = arrays.hardmax(np.zeros((4, 4), np.float32), [7])  # no such axis
        request = api.sv.ExecuteRequest(operator=operator, inputs=[bytes(MESSAGE_BYTES)])
        self.flood(grpc.StatusCode.INVALID_ARGUMENT, request.SerializeToString())
        self.expect_memory_back()

    def test_of_broken_messages(self):
        self.flood(grpc.StatusCode.INVALID_ARGUMENT, b"\xff" * MESSAGE_BYTES)
        self.expect_memory_back()
