"""SIGTERM: accepted work is finished, new work is refused, and the server exits in time."""

import collections
import signal
import time
import unittest

import grpc
import numpy as np

import api
import arrays
from api import Refusal, sv
from load import Load
from server_process import ServerProcess

ARRAY = arrays.awkward("float32", (64, 256), seed=1)
DATA = arrays.data_of(ARRAY)
EXPECTED = arrays.expect_hardmax(ARRAY, [1])
# A repeated row: 16 KiB of input, 20 MiB of output.
ROW = np.zeros(4096, np.float32)
ROW_DATA = arrays.data_of(ROW)
LARGE_RESULT = arrays.hardmax(np.lib.stride_tricks.as_strided(ROW, (1280, 4096), (0, 4)), [1])


class Drain(unittest.TestCase):
    def test_no_accepted_execution_is_lost_under_load(self):
        server = self.enterContext(ServerProcess("--drain_timeout=20s"))
        load = Load(server.address, ARRAY, callers=4, streams=4, until_refused=True)
        load.wait_for_good(200)
        started = time.monotonic()
        server.signal(signal.SIGTERM)
        self.assertEqual(server.wait(30), 0)
        seconds = time.monotonic() - started
        load.join()
        codes = [line["code"] for line in server.lines("execute")]
        print(f"drained in {seconds:.2f} s: {load.good} good, {load.refused} refused with a "
              f"status; logged: {collections.Counter(codes)}")
        self.assertEqual(load.wrong, [])
        self.assertEqual(set(codes) - {"OK", "UNAVAILABLE"}, set())
        self.assertEqual(codes.count("OK"), load.good)
        self.assertLess(seconds, 15)

    def hanging_upload(self, *flags):
        """A server with an execution whose input is never complete."""
        server = self.enterContext(ServerProcess(*flags, device="reference"))
        channel = self.enterContext(api.connect(server.address))
        stream = api.Stream(api.stub_of(channel))
        stream.begin(1, arrays.hardmax(ARRAY, [1]), [(0, 0, DATA[:100])])
        small = np.ones(3, np.float32)
        stream.begin(2, arrays.argmax(small, [0]), [(0, 0, arrays.data_of(small))])
        self.assertEqual(stream.next_end()[0], 2)  # so the first one has begun
        return server, channel, stream

    def test_new_work_is_refused_while_accepted_work_continues(self):
        server, channel, stream = self.hanging_upload()
        server.signal(signal.SIGTERM)
        server.wait_for(lambda line: line.get("event") == "draining")
        stream.begin(3, arrays.hardmax(ARRAY, [1]), [(0, 0, DATA)])
        key, outcome = stream.next_end()
        refusal = Refusal.of(outcome.status)
        print(refusal.sentence)
        self.assertEqual((key, refusal.code, refusal.reason),
                         (3, grpc.StatusCode.UNAVAILABLE, "NOT_AVAILABLE"))
        self.assertGreater(refusal.retry_seconds, 0)
        stub = api.stub_of(channel)
        with self.assertRaises(grpc.RpcError) as raised:
            api.execute(stub, arrays.hardmax(ARRAY, [1]), DATA)
        self.assertEqual(raised.exception.code(), grpc.StatusCode.UNAVAILABLE)
        stream.send(1, [(0, 100, DATA[100:])])
        key, outcome = stream.next_end()
        self.assertEqual(key, 1)
        np.testing.assert_array_equal(arrays.array_of(outcome), EXPECTED)
        self.assertEqual(server.wait(10), 0)

    def test_an_idle_stream_does_not_keep_the_server(self):
        server = self.enterContext(ServerProcess(device="reference"))
        channel = self.enterContext(api.connect(server.address))
        stream = api.Stream(api.stub_of(channel))
        small = np.ones(3, np.float32)
        stream.begin(1, arrays.argmax(small, [0]), [(0, 0, arrays.data_of(small))])
        self.assertEqual(stream.next_end()[0], 1)
        server.signal(signal.SIGTERM)
        with self.assertRaises(grpc.RpcError) as raised:
            stream.next_end()
        self.assertEqual(raised.exception.code(), grpc.StatusCode.UNAVAILABLE)
        self.assertEqual(server.wait(5), 0)

    def test_the_drain_timeout_ends_what_hangs(self):
        server, _, stream = self.hanging_upload("--drain_timeout=500ms")
        started = time.monotonic()
        server.signal(signal.SIGTERM)
        self.expect_unavailable(stream)
        status = server.wait(10)
        seconds = time.monotonic() - started
        self.assertEqual(status, 1)
        self.assertTrue(0.5 <= seconds < 20, seconds)

    def test_a_second_signal_aborts_it(self):
        server, _, stream = self.hanging_upload("--drain_timeout=60s")
        server.signal(signal.SIGTERM)
        server.wait_for(lambda line: line.get("event") == "draining")
        started = time.monotonic()
        server.signal(signal.SIGTERM)
        self.expect_unavailable(stream)
        self.assertEqual(server.wait(30), 1)
        self.assertLess(time.monotonic() - started, 20)
        self.assertRegex(server.lines("stopped")[0]["error"],
                         r"^A second signal ended \d+ executions that were under way\.$")

    def test_a_slow_reader_gets_its_result_to_the_last_byte(self):
        server = self.enterContext(ServerProcess(device="reference"))
        stub = api.stub_of(self.enterContext(api.connect(server.address)))
        outcome = api.Outcome()
        request = sv.ExecuteRequest(operator=LARGE_RESULT, inputs=[ROW_DATA])
        for message in stub.Execute(request, timeout=60):
            outcome.add(message)
            if outcome.messages == 2:
                server.signal(signal.SIGTERM)
            time.sleep(0.1)
        marked = np.zeros((1280, 4096), np.float32)
        marked[:, 0] = 1
        self.assertEqual(outcome.output(0), marked.tobytes())
        self.assertEqual(server.wait(), 0)

    def test_a_large_result_just_before_does_not_delay_the_end(self):
        # After writes that fill the socket, one of gRPC's pollers sleeps for up to 10 s.
        for _ in range(4):
            server = self.enterContext(ServerProcess(device="reference"))
            channel = self.enterContext(api.connect(server.address))
            stream = api.Stream(api.stub_of(channel))
            stream.begin(1, LARGE_RESULT, [(0, 0, ROW_DATA)])
            self.assertIsNotNone(stream.rest()[1].statistics)
            started = time.monotonic()
            server.signal(signal.SIGTERM)
            self.assertEqual(server.wait(30), 0)
            self.assertLess(time.monotonic() - started, 5)

    def test_interrupt_drains_too(self):
        server = self.enterContext(ServerProcess(device="reference"))
        server.signal(signal.SIGINT)
        self.assertEqual(server.wait(20), 0)

    def expect_unavailable(self, stream):
        """Expects that the execution, or the whole stream, ends with UNAVAILABLE."""
        try:
            _, outcome = stream.next_end()
            self.assertEqual(outcome.status.code, grpc.StatusCode.UNAVAILABLE.value[0])
        except grpc.RpcError as error:
            self.assertEqual(error.code(), grpc.StatusCode.UNAVAILABLE)
