"""Work that takes the device seconds is split, so that other work runs in between; work that is too
large for its memory is refused without affecting others."""

import tempfile
import threading
import time
import unittest

import grpc
import numpy as np

import api
import arrays
from api import Refusal
from server_process import SANITIZED, DriverFaults, ServerProcess

SMALL = arrays.awkward("float32", (16, 64), seed=9)
# Equal rows: few bytes and much work.
ROW = arrays.awkward("float32", (1, 65536), seed=11)


def repeated(row, rows):
    return np.lib.stride_tricks.as_strided(row, (rows, row.shape[1]), (0, row.itemsize))


class Small:
    """A caller of small executions, which measures how long each takes."""

    def __init__(self, address):
        self.seconds = []
        self.wrong = []
        self._address = address
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join(60)

    def _run(self):
        expected = arrays.expect_hardmax(SMALL, [1])
        try:
            with api.connect(self._address) as channel:
                stub = api.stub_of(channel)
                while not self._stop.is_set():
                    begun = time.monotonic()
                    outcome = api.execute(stub, arrays.hardmax(SMALL, [1]), arrays.data_of(SMALL))
                    self.seconds.append(time.monotonic() - begun)
                    if not np.array_equal(arrays.array_of(outcome), expected):
                        self.wrong.append("a wrong result")
        except Exception as error:  # pylint: disable=broad-except
            self.wrong.append(repr(error))


class LongWork(unittest.TestCase):
    def serve(self, **popen):
        server = self.enterContext(ServerProcess(**popen))
        stub = api.stub_of(self.enterContext(api.connect(server.address)))
        # Compiles the kernels before anything is measured.
        api.execute(stub, arrays.hardmax(SMALL, [1]), arrays.data_of(SMALL))
        return server, stub

    def device(self, stub):
        return stub.GetStatistics(api.sv.GetStatisticsRequest(), timeout=60).device

    def run_beside_small_ones(self, operator, check):
        server, stub = self.serve()
        before = self.device(stub)
        with Small(server.address) as small:
            begun = time.monotonic()
            outcome = api.execute(stub, operator, arrays.data_of(ROW), timeout=500)
            seconds = time.monotonic() - begun
        check(outcome)
        self.assertEqual(small.wrong, [])
        device = self.device(stub)
        longest = device.longest_submission.ToNanoseconds() / 1e9
        submissions = device.submissions - before.submissions
        print(f"{seconds:.1f} s in {submissions} submissions, with {len(small.seconds)} small "
              f"executions; the longest submission took {longest:.3f} s, the longest of the small "
              f"{max(small.seconds):.3f} s")
        compute = outcome.statistics.compute.ToNanoseconds() / 1e9
        self.assertGreater(compute, 1)  # the work was long
        self.assertGreater(submissions - len(small.seconds), 5)
        self.assertGreater(len(small.seconds), 5)
        if not SANITIZED:
            self.assertLess(longest, max(1, compute / 4))  # other programs interrupt it
            self.assertLess(max(small.seconds), compute)

    def test_a_long_reduce_is_cut(self):
        rows = 61440  # 15 GiB of elements
        def check(outcome):
            expected = arrays.expect_reduce(ROW, "log_sum_exp", [1])
            actual = arrays.array_of(outcome)
            self.assertEqual(actual.shape, (rows, 1))
            arrays.check_close(actual[:1], expected, ROW, "log_sum_exp", [1])
            self.assertTrue(np.all(actual == actual[0]))
        self.run_beside_small_ones(arrays.reduce(repeated(ROW, rows), "log_sum_exp", [1]), check)

    def test_a_long_top_k_is_cut(self):
        rows, k = 64, 49152  # more than half of a row, so all of it is sorted
        def check(outcome):
            values, indices = arrays.expect_top_k(ROW, 1, k)
            np.testing.assert_array_equal(arrays.array_of(outcome), np.repeat(values, rows, 0))
            np.testing.assert_array_equal(arrays.array_of(outcome, 1), np.repeat(indices, rows, 0))
        self.run_beside_small_ones(arrays.top_k(repeated(ROW, rows), 1, k), check)

    def test_what_finds_no_memory_is_refused_alone(self):
        faults = DriverFaults(self.enterContext(tempfile.TemporaryDirectory()))
        server, stub = self.serve(environment=faults.environment)
        # An output of 128 MiB, and scratch of more than half as much.
        large = arrays.hardmax(repeated(ROW, 512), [1])
        scratch = arrays.top_k(repeated(ROW, 512), 1, 49152)
        self.assertGreater(stub.CompileOperator(
            api.sv.CompileOperatorRequest(operator=scratch)).scratch_bytes, 64 << 20)
        faults.begin("no_memory")
        with Small(server.address) as small:
            for operator in (large, scratch, large):
                done = len(small.seconds)
                with self.assertRaises(grpc.RpcError) as raised:
                    api.execute(stub, operator, arrays.data_of(ROW))
                refusal = Refusal.of_error(raised.exception)
                print(refusal.sentence)
                self.assertEqual(refusal.code, grpc.StatusCode.RESOURCE_EXHAUSTED, refusal)
                while len(small.seconds) < done + 20 and not small.wrong:
                    time.sleep(0.01)
        self.assertEqual(small.wrong, [])
        faults.end("no_memory")
        outcome = api.execute(stub, large, arrays.data_of(ROW))
        self.assertEqual(outcome.output(0),
                         512 * arrays.data_of(arrays.expect_hardmax(ROW, [1])))
        self.assertEqual(self.device(stub).resets, 0)
