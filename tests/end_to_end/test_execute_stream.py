"""ExecuteStream from grpcio: chunks, many executions at a time, and every way to misuse them."""

import random
import unittest

import grpc
import numpy as np
from google.protobuf import duration_pb2

import api
import arrays
from api import Refusal, Stream, sv
from server_process import ServerProcess

MAX_EXECUTIONS_PER_STREAM = 64


class StreamCase(unittest.TestCase):
    device = "reference"

    @classmethod
    def setUpClass(cls):
        cls.server = cls.enterClassContext(ServerProcess(
            f"--max_executions_per_stream={MAX_EXECUTIONS_PER_STREAM}", device=cls.device))
        cls.channel = cls.enterClassContext(api.connect(cls.server.address))
        cls.stub = api.stub_of(cls.channel)

    def tearDown(self):
        api.wait_until_idle(self.stub, 0 if self.device == "reference" else None)


class ChunksOnSoftware(StreamCase):
    device = "software"

    def test_many_executions_with_interleaved_chunks(self):
        cases = {}
        for index in range(150):
            dtype = arrays.ALL_TYPES[index % len(arrays.ALL_TYPES)]
            cases[1000 + index] = arrays.awkward(dtype, (3 + index % 7, 50 + index), seed=index)
        stream = Stream(self.stub)
        for first in range(1000, 1150, 50):
            group = {key: array for key, array in cases.items() if first <= key < first + 50}
            pieces = []
            for key, array in group.items():
                stream.begin(key, arrays.top_k(array, 1, 10, "decreasing"))
                data = arrays.data_of(array)
                size = random.Random(key).randrange(1, len(data) + 1)
                pieces.append([(key, (0, start, data[start:start + size]))
                               for start in range(0, len(data), size)])
            while pieces := [piece for piece in pieces if piece]:
                for piece in pieces:
                    key, chunk = piece.pop(0)
                    stream.send(key, [chunk])
        ends = stream.rest()
        self.assertEqual(set(ends), set(cases))
        for key, outcome in ends.items():
            values, indices = arrays.expect_top_k(cases[key], 1, 10, "decreasing")
            np.testing.assert_array_equal(arrays.array_of(outcome, 0), values)
            np.testing.assert_array_equal(arrays.array_of(outcome, 1), indices)

    def test_a_large_tensor_in_small_chunks_and_out_in_chunks(self):
        array = arrays.awkward("float32", (2048, 2048), seed=7)
        data = arrays.data_of(array)
        size = (64 << 10) - 1
        stream = Stream(self.stub)
        stream.begin(0, arrays.hardmax(array, [1]))
        for start in range(0, len(data), size):
            stream.send(0, [(0, start, data[start:start + size])])
        outcome = stream.rest()[0]
        np.testing.assert_array_equal(arrays.array_of(outcome), arrays.expect_hardmax(array, [1]))
        self.assertGreaterEqual(outcome.messages, array.nbytes >> 20)

    def test_a_small_execution_overtakes_a_large_one(self):
        large = np.zeros((4096, 1024), np.float32)
        small = np.array([3, 1, 2], np.float32)
        stream = Stream(self.stub)
        stream.begin(1, arrays.hardmax(large, [1]), [(0, 0, arrays.data_of(large)[:1000])])
        stream.begin(2, arrays.argmax(small, [0]), [(0, 0, arrays.data_of(small))])
        key, outcome = stream.next_end()
        self.assertEqual((key, arrays.array_of(outcome).tolist()), (2, [0]))
        stream.send(1, [(0, 1000, arrays.data_of(large)[1000:])])
        self.assertIsNotNone(stream.rest()[1].statistics)

    def test_an_id_serves_again_once_its_execution_has_ended(self):
        array = np.array([3, 1, 2], np.float32)
        stream = Stream(self.stub)
        for _ in range(20):
            stream.begin(5, arrays.argmin(array, [0]), [(0, 0, arrays.data_of(array))])
            key, outcome = stream.next_end()
            self.assertEqual((key, arrays.array_of(outcome).tolist()), (5, [1]))
        self.assertEqual(stream.rest(), {})


class StreamErrors(StreamCase):
    """Each case is one misuse between two executions, which must not be affected."""

    array = np.arange(24, dtype=np.float32).reshape(4, 6)  # 96 bytes
    data = arrays.data_of(array)
    operator = arrays.reduce(array, "sum", [0, 1])

    def setUp(self):
        self.stream = Stream(self.stub)
        self.stream.begin(1, self.operator, [(0, 0, self.data[:10])])

    def expect(self, key, code, fields, *words, ends=None):
        """Expects that `key` ends with this error, whose message contains `words`, and the others with OK."""
        if ends is None:
            self.stream.send(1, [(0, 10, self.data[10:])])
            self.stream.begin(2, self.operator, [(0, 0, self.data)])
            ends = self.stream.rest()
        for other in set(ends) - {key}:
            self.assertEqual(arrays.array_of(ends[other]).tolist(), [[276]])
        self.assertEqual(set(ends), {1, 2, key})
        refusal = Refusal.of(ends[key].status)
        print(refusal.sentence)
        self.assertEqual(refusal.code, code)
        self.assertEqual(refusal.fields, fields)
        for word in words:
            self.assertIn(word, refusal.sentence)
        return refusal

    def expect_misuse(self, fields, *words):
        refusal = self.expect(7, grpc.StatusCode.INVALID_ARGUMENT, fields, *words)
        self.assertEqual(refusal.reason, "INVALID_REQUEST")

    def test_a_chunk_that_leaves_bytes_out(self):
        self.stream.begin(7, self.operator, [(0, 0, self.data[:8]), (0, 16, self.data[16:])])
        self.expect_misuse(["chunks[1].offset"], "(16)", "8 to 15")

    def test_a_chunk_that_overlaps(self):
        self.stream.begin(7, self.operator, [(0, 0, self.data[:8])])
        self.stream.send(7, [(0, 4, self.data[4:])])
        self.expect_misuse(["chunks[0].offset"], "(4)", "byte 8")

    def test_a_chunk_past_the_end(self):
        self.stream.begin(7, self.operator, [(0, 0, self.data[:90])])
        self.stream.send(7, [(0, 90, bytes(7))])
        self.expect_misuse(["chunks[0].data"], "byte 97", "96 bytes")

    def test_a_chunk_after_the_end_of_the_same_message(self):
        self.stream.begin(7, self.operator, [(0, 0, self.data), (0, 96, bytes(4))])
        stray = self.stream
        stray.send(1, [(0, 10, self.data[10:])])
        stray.begin(2, self.operator, [(0, 0, self.data)])
        ends = stray.rest()
        # The execution may have been computed before the server read the superfluous chunk.
        if ends[7].status is not None:
            self.expect(7, grpc.StatusCode.INVALID_ARGUMENT, ["chunks[1]"], "96 bytes", ends=ends)

    def test_a_chunk_of_another_tensor(self):
        self.stream.begin(7, self.operator, [(3, 0, self.data)])
        self.expect_misuse(["chunks[0].tensor_index"], "(3)", "(1)")

    def test_end_of_inputs_with_bytes_missing(self):
        self.stream.begin(7, self.operator, [(0, 0, self.data[:90])], end_of_inputs=True)
        self.expect_misuse(["chunks"], "90", "96", "6 are missing", "end_of_inputs")

    def test_half_close_with_bytes_missing(self):
        self.stream.begin(7, self.operator, [(0, 0, self.data[:50])])
        self.expect_misuse(["chunks"], "50", "96", "46 are missing", "half-closed")

    def test_a_chunk_for_an_id_without_a_begin(self):
        self.stream.send(7, [(0, 0, self.data)])
        self.expect_misuse(["execution_id"], "(7)")

    def test_a_begin_for_an_id_that_is_open(self):
        self.stream.begin(7, self.operator, [(0, 0, self.data[:50])])
        self.stream.begin(7, self.operator, [(0, 0, self.data)])
        self.expect_misuse(["execution_id"], "(7)")

    def test_a_message_after_the_execution_has_ended(self):
        self.stream.begin(7, self.operator, [(0, 0, self.data)])
        key, outcome = self.stream.next_end()
        self.assertEqual((key, arrays.array_of(outcome).tolist()), (7, [[276]]))
        self.stream.send(7, [(0, 96, bytes(4))])
        self.expect_misuse(["execution_id"], "(7)")

    def test_a_refused_descriptor_with_its_path(self):
        self.stream.begin(7, arrays.reduce(self.array, "sum", [0, 2]), [(0, 0, self.data)])
        self.expect_misuse(["begin.operator.reduce.axes[1]"], "(2)")

    def test_a_refused_execution_takes_its_late_chunks_with_it(self):
        self.stream.begin(7, arrays.reduce(self.array, "sum", [0, 2]))
        for start in range(0, 96, 8):
            self.stream.send(7, [(0, start, self.data[start:start + 8])])
        self.expect_misuse(["begin.operator.reduce.axes[1]"], "(2)")

    def test_a_timeout_that_passes_during_the_upload(self):
        self.stream.begin(7, self.operator, [(0, 0, self.data[:50])],
                          timeout=duration_pb2.Duration(nanos=50_000_000))
        key, outcome = self.stream.next_end()
        self.assertEqual(key, 7)
        self.stream.send(1, [(0, 10, self.data[10:])])
        self.stream.begin(2, self.operator, [(0, 0, self.data)])
        self.expect(7, grpc.StatusCode.DEADLINE_EXCEEDED, [],
                    ends={**self.stream.rest(), 7: outcome})

    def test_a_timeout_of_nothing(self):
        self.stream.begin(7, self.operator, timeout=duration_pb2.Duration(nanos=-1))
        self.expect_misuse(["begin.timeout"], "0")

    def test_a_cancelled_execution(self):
        self.stream.begin(7, self.operator, [(0, 0, self.data[:50])])
        self.stream.send(7, cancel=sv.CancelExecution())
        refusal = self.expect(7, grpc.StatusCode.CANCELLED, [])
        self.assertEqual(refusal.reason, "CANCELLED")

    def test_a_cancel_of_what_has_ended_does_nothing(self):
        self.stream.begin(7, self.operator, [(0, 0, self.data)])
        self.assertEqual(self.stream.next_end()[0], 7)
        self.stream.send(7, cancel=sv.CancelExecution())
        self.stream.send(1, [(0, 10, self.data[10:])])
        self.assertEqual(set(self.stream.rest()), {1})

    def test_a_cancelled_stream_leaves_nothing_behind(self):
        self.stream.begin(7, self.operator, [(0, 0, self.data)])
        self.assertEqual(self.stream.next_end()[0], 7)
        self.stream.call.cancel()

    def test_a_deadline_of_the_stream_ends_it(self):
        self.stream.call.cancel()
        stream = Stream(self.stub, timeout=0.2)
        stream.begin(7, self.operator, [(0, 0, self.data[:50])])
        with self.assertRaises(grpc.RpcError) as raised:
            while True:
                stream.next_end()
        self.assertEqual(raised.exception.code(), grpc.StatusCode.DEADLINE_EXCEEDED)

    def test_more_begins_than_the_limit_get_their_turn(self):
        for key in range(100, 100 + 3 * MAX_EXECUTIONS_PER_STREAM):
            self.stream.begin(key, self.operator, [(0, 0, self.data)])
        self.stream.send(1, [(0, 10, self.data[10:])])
        ends = self.stream.rest()
        self.assertEqual(len(ends), 1 + 3 * MAX_EXECUTIONS_PER_STREAM)
        for outcome in ends.values():
            self.assertEqual(arrays.array_of(outcome).tolist(), [[276]])
