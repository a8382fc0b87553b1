"""Tensors that stay on the server, by messages of the contract: what requests may say, whose they are,
and what becomes of them when the device is lost."""

import concurrent.futures
import pathlib
import tempfile
import unittest

import grpc
import numpy as np
import tritonclient.grpc as triton

import api
import arrays
from api import Refusal, Stream, sv
from server_process import DriverFaults, ServerProcess
from test_metrics import Scrape

# pylint: disable=wrong-import-order,import-error
from opmill.v1 import resident_pb2 as rs

PUT, APPEND = rs.ResidentOutput.KIND_PUT, rs.ResidentOutput.KIND_APPEND
X = np.arange(24, dtype=np.float32).reshape(4, 6)
ALICE, BOB = "alice-token-0123456789", "bob-token-0123456789abcdef"


def identity(array):
    return api.op.OperatorDesc(named=api.op.NamedOperatorDesc(name="identity", inputs=[arrays.tensor(array)]))


def add(a, b):
    return api.op.OperatorDesc(element_wise_add=api.op.ElementWiseAddDesc(
        a=arrays.tensor(a), b=arrays.tensor(b)))


def output(name, kind=PUT, **fields):
    return rs.ResidentOutput(name=name, kind=kind, **fields)


def resident(name, index=0):
    return rs.ResidentInput(input=index, name=name)


class Calls(unittest.TestCase):
    def start(self, *flags, device="cpu", **process):
        self.server = self.enterContext(ServerProcess(*flags, device=device, **process))
        self.stub = api.stub_of(self.enterContext(api.connect(self.server.address)))
        self.addCleanup(api.wait_until_idle, self.stub)

    def execute(self, operator, *inputs, metadata=(), **fields):
        outcome = api.Outcome()
        request = sv.ExecuteRequest(operator=operator, inputs=[each.tobytes() for each in inputs], **fields)
        for message in self.stub.Execute(request, timeout=api.TIMEOUT_SECONDS, metadata=metadata):
            outcome.add(message)
        return outcome

    def put(self, name, array=X, **fields):
        outcome = self.execute(identity(array), array, resident_outputs=[output(name, **fields)])
        self.assertEqual((outcome.started.output_bytes, len(outcome.statistics.generations)), ([0], 1))
        return outcome.statistics.generations[0]

    def get(self, name, like=X, **fields):
        outcome = self.execute(identity(like), resident_inputs=[resident(name)], **fields)
        return np.frombuffer(outcome.outputs[0], like.dtype).reshape(like.shape)

    def refused(self, *arguments, **fields):
        with self.assertRaises(grpc.RpcError) as raised:
            self.execute(*arguments, **fields)
        return Refusal.of_error(raised.exception)

    def check_refusal(self, field, sentence, *arguments, code=grpc.StatusCode.INVALID_ARGUMENT, **fields):
        refusal = self.refused(*arguments, **fields)
        self.assertEqual((refusal.code, refusal.fields, refusal.sentence), (code, [field], sentence))

    def statistics(self, metadata=()):
        return self.stub.GetStatistics(sv.GetStatisticsRequest(), timeout=api.TIMEOUT_SECONDS, metadata=metadata)

    def totals(self):
        return self.statistics().resident


class Requests(Calls):
    def setUp(self):
        self.start("--metrics_address=127.0.0.1:0")
        self.put("x")

    def test_other_sizes_and_fewer_rows(self):
        flat = X.reshape(24)
        np.testing.assert_array_equal(self.get("x", flat), flat)
        np.testing.assert_array_equal(self.get("x", X[:2]), X[:2])
        row = X[0]
        broadcast = np.broadcast_to(row, (5, 6))
        outcome = self.execute(add(np.zeros((5, 6), np.float32), broadcast), np.ones((5, 6), np.float32),
                               resident_inputs=[resident("x", 1)])
        np.testing.assert_array_equal(np.frombuffer(outcome.outputs[0], np.float32).reshape(5, 6),
                                      broadcast + 1)

    def test_streams(self):
        stream = Stream(self.stub)
        stream.begin(1, identity(X), [(0, 0, X.tobytes())], resident_outputs=[output("y", capacity_rows=9)])
        self.assertIsNone(stream.next_end()[1].status)
        stream.begin(2, identity(X), [(0, 0, X.tobytes())], resident_outputs=[output("y", APPEND)])
        self.assertIsNone(stream.next_end()[1].status)
        twice = np.concatenate([X, X])
        stream.begin(3, identity(twice), resident_inputs=[resident("y")])
        stream.begin(4, add(X, X), [(1, 0, X.tobytes())], resident_inputs=[resident("x")])
        stream.begin(5, identity(X), [(0, 0, X.tobytes())], resident_inputs=[resident("x")])
        stream.begin(6, identity(X), resident_inputs=[resident("z")])
        stream.begin(7, identity(X), [(0, 0, X.tobytes())], resident_outputs=[output("y", APPEND)])
        ends = stream.rest()
        self.assertEqual(ends[3].outputs[0], twice.tobytes())
        self.assertEqual(ends[4].outputs[0], (X + X).tobytes())
        self.assertIn("comes after the end of input 0", ends[5].status.message)
        self.assertEqual((Refusal.of(ends[6].status).fields, ends[6].status.message),
                         (["begin.resident_inputs[0].name"], 'There is no tensor "z" here.'))
        self.assertEqual(ends[7].status.message, 'The tensor "y" has 8 of 9 rows (capacity_rows); 4 more do '
                         "not fit.")

    def test_what_is_refused(self):
        self.check_refusal("resident_inputs[0].input", "resident_inputs[0].input (1) is not below the number "
                           "of inputs (1).", identity(X), resident_inputs=[resident("x", 1)])
        self.check_refusal("resident_inputs[1].input", "resident_inputs[1].input (0) is given twice.",
                           identity(X), resident_inputs=[resident("x"), resident("x")])
        self.check_refusal("inputs", "inputs has 1 tensors; identity takes 0.", identity(X), X,
                           resident_inputs=[resident("x")])
        self.check_refusal("resident_inputs[0].name", "The input is INT32[4,6], of 96 bytes; the tensor \"x\" "
                           "is FLOAT32[4,6], of 96.", identity(X.astype(np.int32)),
                           resident_inputs=[resident("x")])
        self.check_refusal("shared_inputs[0]", "shared_inputs[0] is given, but this tensor stays on the "
                           "server.", identity(X), resident_inputs=[resident("x")],
                           shared_inputs=[sv.SharedMemoryRange(key="k", byte_size=96)])
        self.check_refusal("shared_outputs[0]", "shared_outputs[0] is given, but this tensor stays on the "
                           "server.", identity(X), X, resident_outputs=[output("y")],
                           shared_outputs=[sv.SharedMemoryRange(key="k", byte_size=96)])
        self.check_refusal("resident_outputs[0].kind", "kind (0) is none of KIND_PUT (1), KIND_APPEND (2) and "
                           "KIND_WRITE (3).", identity(X), X, resident_outputs=[output("y", 0)])
        self.check_refusal("resident_outputs[0].output", "resident_outputs[0].output (1) is not below the "
                           "number of outputs (1).", identity(X), X,
                           resident_outputs=[output("y", output=1)])
        self.check_refusal("resident_outputs[1].output", "resident_outputs[1].output (0) is given twice.",
                           identity(X), X, resident_outputs=[output("y"), output("z")])
        self.assertEqual((self.totals().tensors, self.totals().bytes), (1, 96))

    def test_a_call_that_fails_leaves_nothing(self):
        """The memory of a tensor that is not put goes back, however the call ends."""
        stream = Stream(self.stub)
        for index in range(20):
            stream.begin(index, identity(X), [(0, 0, X.tobytes()[:50])], resident_outputs=[output("y")])
            if index % 2:
                stream.send(index, cancel=sv.CancelExecution())
        ends = stream.rest()
        self.assertTrue(all(end.status is not None for end in ends.values()), ends)
        self.server.wait_until(lambda: self.totals().bytes == 96)
        self.assertEqual(self.totals().tensors, 1)

    def test_deleting_what_is_read(self):
        big = np.random.default_rng(1).standard_normal((2000, 2000), np.float32)
        self.put("big", big)
        stream = Stream(self.stub)
        for index in range(8):
            stream.begin(index, arrays.hardmax(big, [1]), resident_inputs=[resident("big")])
        first = stream.next_end()
        self.stub.DeleteTensor(rs.DeleteTensorRequest(name="big"), timeout=api.TIMEOUT_SECONDS)
        ends = [first[1], *stream.rest().values()]
        self.assertEqual(len(ends), 8)
        expected = arrays.expect_hardmax(big, [1]).tobytes()
        self.assertTrue(all(end.outputs[0] == expected for end in ends))
        self.server.wait_until(lambda: self.totals().bytes == 96)

    def test_metrics(self):
        scrape = Scrape(self.server.lines("serving")[0]["metrics_address"])
        self.assertEqual(scrape.value("opmill_resident_tensors"), 1)
        self.assertEqual(scrape.value("opmill_resident_tensor_bytes"), 96)
        info = self.stub.GetServerInfo(sv.GetServerInfoRequest(), timeout=api.TIMEOUT_SECONDS)
        self.assertEqual(scrape.value("opmill_resident_tensor_limit_bytes"),
                         info.limits.max_resident_tensor_bytes)


class OpenInference(Calls):
    """By the parameter `tensor` of an input, as a client of Triton sets it."""

    def infer(self, name, array=X, **parameters):
        inputs = [triton.InferInput(each, array.shape, "FP32") for each in ("a", "b")]
        inputs[0].set_data_from_numpy(array)
        for key, value in {"tensor": name, **parameters}.items():
            inputs[1]._get_tensor().parameters[key].string_param = value
        return self.client.infer("element_wise_add", inputs, client_timeout=api.TIMEOUT_SECONDS)

    def check_refusal(self, sentence, name, **parameters):
        with self.assertRaises(triton.InferenceServerException) as raised:
            self.infer(name, **parameters)
        self.assertEqual(raised.exception.message(), sentence)

    def test_an_input(self):
        self.start()
        self.client = self.enterContext(triton.InferenceServerClient(self.server.address))
        self.put("x", X + 1)
        np.testing.assert_array_equal(self.infer("x").as_numpy("output"), X + X + 1)
        np.testing.assert_array_equal(self.infer("x", X[:2]).as_numpy("output"), X[:2] + X[:2] + 1)
        self.check_refusal('There is no tensor "y" here.', "y")
        self.check_refusal("inputs[1].parameters.tensor is given beside other parameters; an input has one "
                           "source.", "x", other="1")
        self.put("x", X[:1])
        self.check_refusal('The input is FLOAT32[4,6], of 96 bytes; the tensor "x" is FLOAT32[1,6], of 24.', "x")


class Owners(Calls):
    def test_callers_see_their_own(self):
        with tempfile.TemporaryDirectory() as folder:
            tokens = pathlib.Path(folder) / "tokens"
            tokens.write_text(f"alice {ALICE}\nbob {BOB}\n")
            tokens.chmod(0o600)
            self.server = self.enterContext(ServerProcess(
                f"--token_file={tokens}", "--max_resident_tensor_bytes_per_owner=100", device="cpu"))
            self.stub = api.stub_of(self.enterContext(api.connect(self.server.address)))
            alice, bob = ([("authorization", f"Bearer {token}")] for token in (ALICE, BOB))
            self.execute(identity(X), X, metadata=alice, resident_outputs=[output("x")])
            self.execute(identity(X), X + 1, metadata=bob, resident_outputs=[output("x")])
            np.testing.assert_array_equal(self.get("x", metadata=alice), X)
            np.testing.assert_array_equal(self.get("x", metadata=bob), X + 1)
            refusal = self.refused(identity(X), X, metadata=alice, resident_outputs=[output("y")])
            self.assertEqual((refusal.code, refusal.sentence), (
                grpc.StatusCode.RESOURCE_EXHAUSTED, 'There is no room for the tensor "y", which takes 96 bytes: '
                "96 of the 100 bytes of each owner (max_resident_tensor_bytes_per_owner) are in use."))
            self.stub.DeleteTensor(rs.DeleteTensorRequest(name="x"), metadata=alice)
            listed = self.stub.ListTensors(rs.ListTensorsRequest(), metadata=alice).tensors
            self.assertEqual(len(listed), 0)
            np.testing.assert_array_equal(self.get("x", metadata=bob), X + 1)


    def test_a_hundred_callers_with_a_quota(self):
        """Each puts tensors until it is refused; that is no other's concern, and all memory comes back."""
        callers, room, each = 100, 4, np.zeros((64, 64), np.float32)
        tokens = [f"token-of-the-caller-{number:03}" for number in range(callers)]
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "tokens"
            path.write_text("".join(f"caller{number} {token}\n" for number, token in enumerate(tokens)))
            path.chmod(0o600)
            self.server = self.enterContext(ServerProcess(
                f"--token_file={path}", f"--max_resident_tensor_bytes_per_owner={room * each.nbytes + 1}",
                f"--max_resident_tensor_bytes={callers * room * each.nbytes}", device="cpu"))
            self.stub = api.stub_of(self.enterContext(api.connect(self.server.address)))
        metadata = [[("authorization", f"Bearer {token}")] for token in tokens]
        before = self.statistics(metadata[0]).device.buffer_bytes_in_use

        def call(number):
            own = metadata[number]
            for put in range(room):
                array = each + number * room + put
                self.execute(identity(array), array, metadata=own, resident_outputs=[output(f"t{put}")])
            refusal = self.refused(identity(each), each, metadata=own, resident_outputs=[output("more")])
            self.assertEqual((refusal.code, refusal.sentence), (
                grpc.StatusCode.RESOURCE_EXHAUSTED,
                'There is no room for the tensor "more", which takes 16384 bytes: 65536 of the 65537 bytes of '
                "each owner (max_resident_tensor_bytes_per_owner) are in use."))
            for put in range(room):
                np.testing.assert_array_equal(self.get(f"t{put}", metadata=own, like=each),
                                              each + number * room + put)

        with concurrent.futures.ThreadPoolExecutor(callers) as threads:
            for ended in [threads.submit(call, number) for number in range(callers)]:
                ended.result()
            self.assertEqual(self.statistics(metadata[0]).resident.bytes, callers * room * each.nbytes)
            # What one of them deletes is room for it again.
            for put in range(room):
                self.stub.DeleteTensor(rs.DeleteTensorRequest(name=f"t{put}"), metadata=metadata[7])
            call(7)

            def leave(number):
                for put in range(room):
                    self.stub.DeleteTensor(rs.DeleteTensorRequest(name=f"t{put}"), metadata=metadata[number])

            list(threads.map(leave, range(callers)))
        self.server.wait_until(lambda: self.statistics(metadata[0]).resident.bytes == 0)
        self.server.wait_until(lambda: self.statistics(metadata[0]).device.buffer_bytes_in_use <= before)


class DeviceLoss(Calls):
    def test_is_said_until_the_tensor_is_put_again(self):
        faults = DriverFaults(self.enterContext(tempfile.TemporaryDirectory()))
        self.start(device="software", environment=faults.environment)
        self.put("x")
        faults.begin("lose_device")
        with self.assertRaises(grpc.RpcError):
            for _ in range(10_000):
                self.execute(arrays.hardmax(X, [1]), X)
        self.server.wait_for(lambda line: line.get("event") == "device_back")
        refusal = self.refused(identity(X), resident_inputs=[resident("x")])
        self.assertEqual((refusal.code, refusal.reason, refusal.sentence),
                         (grpc.StatusCode.UNAVAILABLE, "TENSOR_LOST",
                          'The tensor "x" was lost with the device; put it again.'))
        [listed] = self.stub.ListTensors(rs.ListTensorsRequest()).tensors
        self.assertTrue(listed.is_lost)
        self.put("x", X + 1)
        np.testing.assert_array_equal(self.get("x"), X + 1)
        self.assertEqual(self.totals().lost, 1)


if __name__ == "__main__":
    unittest.main()
