"""Requests beyond a limit are refused with the limit, and waiting requests wait for a bounded time."""

import contextlib
import itertools
import os
import resource
import socket
import tempfile
import threading
import time
import unittest

import grpc
import numpy as np

import api
import arrays
from api import Refusal
from server_process import SANITIZED, ServerProcess

MAX_BYTES_IN_FLIGHT = 32 << 20
MAX_TENSOR_BYTES = 24 << 20
MAX_STREAMS = 2


class Limits(unittest.TestCase):
    def setUp(self):
        self.server = self.enterContext(ServerProcess(
            f"--max_bytes_in_flight={MAX_BYTES_IN_FLIGHT}", f"--max_streams={MAX_STREAMS}",
            f"--max_tensor_bytes={MAX_TENSOR_BYTES}", device="reference"))
        self.stub = api.stub_of(self.enterContext(api.connect(self.server.address)))
        # A repeated row: hardmax turns its 16 KiB into 16 KiB for each repetition.
        self.row = np.zeros(4096, np.float32)
        self.data = arrays.data_of(self.row)

    def repeated(self, rows):
        return np.lib.stride_tricks.as_strided(self.row, (rows, len(self.row)), (0, 4))

    def operator(self, rows):
        return arrays.hardmax(self.repeated(rows), [1])

    def refused(self, operator):
        with self.assertRaises(grpc.RpcError) as raised:
            api.execute(self.stub, operator, self.data)
        refusal = Refusal.of_error(raised.exception)
        print(refusal.sentence)
        self.assertEqual((refusal.code, refusal.reason),
                         (grpc.StatusCode.RESOURCE_EXHAUSTED, "LIMIT_REACHED"))
        return refusal

    def test_what_never_fits_is_refused_permanently(self):
        refusal = self.refused(self.operator(rows=1700))
        self.assertIsNone(refusal.retry_seconds)
        self.assertIn(str(1700 << 14), refusal.sentence)
        self.assertIn(str(MAX_TENSOR_BYTES), refusal.sentence)
        # Values and indices, of 20 MiB each.
        refusal = self.refused(arrays.top_k(self.repeated(1280), 1, len(self.row)))
        self.assertIsNone(refusal.retry_seconds)
        self.assertIn(str((40 << 20) + (16 << 10)), refusal.sentence)
        self.assertIn(str(MAX_BYTES_IN_FLIGHT), refusal.sentence)

    def test_what_does_not_fit_now_may_be_retried(self):
        stream = api.Stream(self.stub)
        stream.begin(1, self.operator(rows=1280), [(0, 0, self.data[:8])])  # 20 MiB
        stream.begin(2, self.operator(rows=1), [(0, 0, self.data)])
        self.assertEqual(stream.next_end()[0], 2)  # so the first one has begun
        refusal = self.refused(self.operator(rows=1280))
        self.assertGreater(refusal.retry_seconds, 0)
        self.assertIn(str(MAX_BYTES_IN_FLIGHT), refusal.sentence)
        stream.send(1, [(0, 8, self.data[8:])])
        self.assertIsNotNone(stream.rest()[1].statistics)
        api.wait_until_idle(self.stub, 0)
        api.execute(self.stub, self.operator(rows=1280), self.data)

    def test_a_stream_beyond_the_limit_may_be_retried(self):
        streams = [api.Stream(self.stub) for _ in range(MAX_STREAMS)]
        for stream in streams:
            stream.begin(1, self.operator(rows=1), [(0, 0, self.data)])
            self.assertEqual(stream.next_end()[0], 1)
        third = api.Stream(self.stub)
        with self.assertRaises(grpc.RpcError) as raised:
            third.next_end()
        refusal = Refusal.of_error(raised.exception)
        print(refusal.sentence)
        self.assertEqual(refusal.code, grpc.StatusCode.RESOURCE_EXHAUSTED)
        self.assertGreater(refusal.retry_seconds, 0)
        self.assertIn(str(MAX_STREAMS), refusal.sentence)
        self.assertEqual(streams[0].rest(), {})
        streams[1].half_close()
        self.assertIsNone(streams[1].next_end())
        api.wait_until_idle(self.stub)
        fourth = api.Stream(self.stub)
        fourth.begin(1, self.operator(rows=1), [(0, 0, self.data)])
        self.assertIsNotNone(fourth.rest()[1].statistics)

    @unittest.skipIf("OPMILL_WINE" in os.environ, "Windows bounds no process's handles")
    def test_connections_beyond_the_file_limit_are_handled(self):
        api.execute(self.stub, self.operator(rows=1), self.data)
        host, port = self.server.address.rsplit(":", 1)
        before = len(os.listdir(f"/proc/{self.server.pid}/fd"))
        _, most = resource.prlimit(self.server.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(self.server.pid, resource.RLIMIT_NOFILE, (before + 20, most))
        with contextlib.ExitStack() as held:
            for _ in range(60):
                held.enter_context(socket.create_connection((host, int(port))))
            deadline = time.monotonic() + 30
            while len(os.listdir(f"/proc/{self.server.pid}/fd")) < before + 20:
                self.assertLess(time.monotonic(), deadline)
                time.sleep(0.01)
            api.execute(self.stub, self.operator(rows=1), self.data)  # on an open connection
        alone = [("grpc.use_local_subchannel_pool", 1)]  # not over the open connection
        with grpc.insecure_channel(self.server.address, options=alone) as channel:
            grpc.channel_ready_future(channel).result(timeout=30)
            api.execute(api.stub_of(channel), self.operator(rows=1), self.data)

    @unittest.skipIf("OPMILL_WINE" in os.environ, "Windows bounds no process's handles")
    def test_fewer_connections_by_default_where_few_files_may_be_open(self):
        def few_files():
            resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024))

        with ServerProcess(device="reference", preexec_fn=few_files) as server:
            line = server.lines("few_files")[0]
            self.assertEqual((line["open_files"], line["max_connections"]), (1024, 256))
            with api.connect(server.address) as channel:
                stub = api.stub_of(channel)
                limits = stub.GetServerInfo(api.sv.GetServerInfoRequest()).limits
                self.assertEqual(limits.max_connections, 256)
                api.execute(stub, self.operator(rows=1), self.data)
        with self.assertRaisesRegex(AssertionError, "--max_connections is 1024; the process may "
                                                    "open 1024 files"):
            ServerProcess("--max_connections=1024", device="reference", preexec_fn=few_files)

    def test_a_caller_that_does_not_read_holds_no_more_than_the_limit(self):
        count = 40  # 160 MiB of results
        before = self.server.status_bytes("VmHWM")
        stream = api.Stream(self.stub)
        for key in range(count):
            stream.begin(key, self.operator(rows=256), [(0, 0, self.data)])
        time.sleep(1)
        ends = stream.rest()
        self.assertEqual(len(ends), count)
        marked = np.zeros((256, 4096), np.float32)
        marked[:, 0] = 1
        for outcome in ends.values():
            self.assertEqual(outcome.output(0), marked.tobytes())
        peak = self.server.status_bytes("VmHWM") - before
        print(f"at most {peak >> 20} MiB, of {MAX_BYTES_IN_FLIGHT >> 20} MiB allowed in flight")
        if not SANITIZED:
            self.assertLess(peak, MAX_BYTES_IN_FLIGHT + (64 << 20))


@unittest.skipIf("OPMILL_WINE" in os.environ, "both callers would have the same address")
class RoomThatACallerKeeps(unittest.TestCase):
    """One caller, alone at first, has taken all bytes in flight; another needs some."""

    def setUp(self):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        self.server = self.enterContext(ServerProcess(
            f"--address=127.0.0.1:0,unix:{folder}/socket", "--max_bytes_in_flight=64MiB",
            device="reference"))
        tcp, unix = (self.enterContext(api.connect(address))
                     for address in self.server.address.split(","))
        self.one, self.other = api.stub_of(unix), api.stub_of(tcp)
        self.array = np.zeros((1024, 1024), np.float32)
        self.operator = arrays.hardmax(self.array, [1])  # 4 MiB in, and as many out
        self.data = arrays.data_of(self.array)

    def wait_for_in_flight(self, is_reached):
        until = time.monotonic() + api.TIMEOUT_SECONDS
        while True:
            statistics = self.other.GetStatistics(api.sv.GetStatisticsRequest())
            if is_reached(statistics.in_flight):
                return statistics.in_flight
            self.assertLess(time.monotonic(), until, statistics.in_flight)
            time.sleep(0.01)

    def seconds_until_the_other_has_room(self):
        started = time.monotonic()
        refusals = 0
        while True:
            try:
                api.execute(self.other, self.operator, self.data)
                break
            except grpc.RpcError as error:
                refusal = Refusal.of_error(error)
                self.assertIn("max_bytes_in_flight", refusal.sentence)
                refusals += 1
            self.assertLess(time.monotonic(), started + 20)
            time.sleep(0.2)
        self.assertGreater(refusals, 0, "it was full")
        return time.monotonic() - started

    def test_by_sending_a_byte_now_and_then(self):
        stream = api.Stream(self.one)
        for key in range(8):
            stream.begin(key, self.operator, [(0, 0, self.data[:1])])
        done = threading.Event()

        def drip():
            for offset in itertools.count(1):
                if done.wait(1):
                    return
                for key in range(8):
                    stream.send(key, [(0, offset, self.data[:1])])

        dripping = threading.Thread(target=drip)
        dripping.start()
        try:
            self.wait_for_in_flight(lambda in_flight: in_flight.bytes == 64 << 20)
            seconds = self.seconds_until_the_other_has_room()
            _, outcome = stream.next_end()
        finally:
            done.set()
            dripping.join()
        print(f"room after {seconds:.1f} s; {outcome.status.message}")
        self.assertIn("less than 1 MiB per second", outcome.status.message)
        stream.call.cancel()

    def test_by_not_reading_results(self):
        row = np.zeros(4096, np.float32)
        operator = arrays.hardmax(np.lib.stride_tricks.as_strided(row, (2040, 4096), (0, 4)), [1])
        request = api.sv.ExecuteRequest(operator=operator, inputs=[arrays.data_of(row)])
        calls = [self.one.Execute(request) for _ in range(2)]  # 32 MiB each
        in_flight = self.wait_for_in_flight(lambda in_flight: in_flight.streaming == 2)
        seconds = self.seconds_until_the_other_has_room()
        print(f"room after {seconds:.1f} s; {in_flight.bytes >> 20} MiB were taken")
        ended = self.server.wait_for(lambda line: "were not read" in line.get("error", ""))
        self.assertEqual(ended["code"], "RESOURCE_EXHAUSTED")
        for call in calls:
            call.cancel()


class IncrementalRuns(unittest.TestCase):
    def test_count_what_they_hold(self):
        server = self.enterContext(ServerProcess("--max_bytes_in_flight=1MiB",
                                                 "--caller_limits=bytes=1MiB", device="cpu"))
        stub = api.stub_of(self.enterContext(api.connect(server.address)))
        array = np.ones((4096, 1024), np.float32)  # 16 MiB
        sums = arrays.reduce(array, "sum", [1])
        compiled = stub.CompileOperator(api.sv.CompileOperatorRequest(operator=sums))
        self.assertEqual(compiled.output_bytes, [4 * 4096])
        outcome = api.execute(stub, sums, arrays.data_of(array))
        np.testing.assert_array_equal(arrays.array_of(outcome), np.full((4096, 1), 1024))
        stream = api.Stream(stub)
        stream.begin(1, sums, [(0, 0, arrays.data_of(array))])
        self.assertIsNotNone(stream.rest()[1].statistics)
        with self.assertRaises(grpc.RpcError) as raised:
            api.execute(stub, arrays.hardmax(array, [1]), arrays.data_of(array))
        refusal = Refusal.of_error(raised.exception)
        print(refusal.sentence)
        self.assertIn("bytes for its outputs and for computing while its input arrives, more than "
                      "max_bytes_in_flight (1048576)", refusal.sentence)
