"""Models that callers send in their requests: the file, then its SHA-256."""

import concurrent.futures
import hashlib
import os
import unittest

import grpc
import numpy as np

import api
import attackers
import onnx_model
from api import Refusal, Stream, sv
from server_process import ServerProcess
from test_models import SECONDS, arrays_of, desc_of, feeds_for

# pylint: disable=wrong-import-order,import-error
from opmill.v1 import model_pb2 as md

FILE = onnx_model.made_model()


def digest(file):
    return hashlib.sha256(file).hexdigest()


def described(feeds, file=FILE, **fields):
    inputs = [md.ModelInput(name=key, tensor=desc_of(array),
                            value=array.tobytes() if key == "shape" else b"")
              for key, array in feeds.items()]
    return md.ModelDesc(sha256=digest(file), inputs=inputs, **fields)


def bytes_of(feeds):
    return [array.tobytes() for name, array in feeds.items() if name != "shape"]


def chunks_of(feeds):
    return [(index, 0, data) for index, data in enumerate(bytes_of(feeds))]


def external_model():
    """Of y = weights, which are in another file."""
    weights = onnx_model._message((1, 4), (2, 1), (8, "w"), (13, onnx_model._message((1, "location"), (2, "w.bin"))),
                                  (14, 1))
    node = onnx_model._node("Add", "x w", "y")
    graph = onnx_model._message((1, node), (2, "g"), (5, weights), (11, onnx_model._tensor("x", 1, 4)),
                                (12, onnx_model._tensor("y", 1, 4)))
    return onnx_model._message((1, 8), (7, graph), (8, onnx_model._message((2, 18))))


class InlineModels(unittest.TestCase):
    def start(self, *flags, device="cpu"):
        self.server = self.enterContext(ServerProcess(*flags, device=device))
        self.stub = api.stub_of(self.enterContext(api.connect(self.server.address)))
        self.addCleanup(api.wait_until_idle, self.stub)

    def execute(self, feeds, **fields):
        outcome = api.Outcome()
        request = sv.ExecuteRequest(**({"model": described(feeds), "inputs": bytes_of(feeds)} | fields))
        for message in self.stub.Execute(request, timeout=SECONDS):
            outcome.add(message)
        return outcome

    def check(self, outcome, feeds, scale=2.0):
        arrays = arrays_of(outcome)
        for name, array in onnx_model.expected(**feeds, scale=scale).items():
            self.assertEqual((arrays[name].shape, arrays[name].dtype), (array.shape, array.dtype))
            np.testing.assert_allclose(arrays[name], array, rtol=1e-5)

    def refusal(self, call):
        with self.assertRaises(grpc.RpcError) as raised:
            call()
        return Refusal.of_error(raised.exception)

    def refused(self, feeds, **fields):
        return self.refusal(lambda: self.execute(feeds, **fields))

    def kept(self):
        return self.stub.GetStatistics(sv.GetStatisticsRequest(), timeout=SECONDS).inline_models

    def test_the_file_goes_once(self):
        for device in ("cpu", "reference"):
            self.start(device=device)
            feeds = feeds_for(3)
            refusal = self.refused(feeds)
            self.assertEqual((refusal.code, refusal.reason, refusal.fields),
                             (grpc.StatusCode.NOT_FOUND, "MODEL_FILE_NEEDED", ["model.sha256"]))
            self.assertEqual(refusal.sentence, f"The server has no model with the SHA-256 {digest(FILE)[:12]}...; "
                             "send the request again with its file in model_file.")
            self.check(self.execute(feeds, model_file=FILE), feeds)
            for count in (3, 5, 1000):
                feeds = feeds_for(count)
                self.check(self.execute(feeds), feeds)
            # A file that the server has may come again.
            self.check(self.execute(feeds, model_file=FILE), feeds)
            kept = self.kept()
            self.assertEqual((kept.models, kept.reads, kept.evictions), (1, 1, 0))
            self.assertGreater(kept.bytes, len(FILE))
            [counts] = self.stub.GetStatistics(sv.GetStatisticsRequest(), timeout=SECONDS).models
            self.assertEqual((counts.model, counts.succeeded), (f"sha256:{digest(FILE)[:12]}", 5))

    def test_streams(self):
        self.start()
        stream = Stream(self.stub)
        feeds = feeds_for(3)
        chunks = chunks_of(feeds)
        model = described(feeds)
        stream.send(1, chunks, begin=sv.BeginExecution(model=model))
        self.assertEqual(stream.next_end()[1].status.code, grpc.StatusCode.NOT_FOUND.value[0])
        # The chunks behind the begin wait with it, and so do other executions.
        stream.send(1, begin=sv.BeginExecution(model=model), model_file=FILE)
        for i in range(2, 40):
            stream.send(i, chunks_of(feeds_for(i)), begin=sv.BeginExecution(model=described(feeds_for(i))))
        stream.send(1, chunks)
        ends = stream.rest()
        self.check(ends[1], feeds)
        for i in range(2, 40):
            self.check(ends[i], feeds_for(i))
        self.assertEqual(self.kept().reads, 1)

    def test_a_stream_that_ends_while_a_file_is_read(self):
        self.start()
        large = onnx_model.made_model() + onnx_model._message((6, "x" * (8 << 20)))  # doc_string
        for _ in range(5):
            stream = Stream(self.stub)
            stream.send(1, begin=sv.BeginExecution(model=described(feeds_for(3), large)), model_file=large)
            stream.call.cancel()
        self.execute(feeds_for(3), model_file=FILE)

    def test_compile_and_describe(self):
        self.start()
        model = described(feeds_for(3))
        describe = sv.DescribeModelRequest(model=md.ModelDesc(sha256=digest(FILE)))
        for call in (lambda: self.stub.DescribeModel(describe, timeout=SECONDS),
                     lambda: self.stub.CompileOperator(sv.CompileOperatorRequest(model=model), timeout=SECONDS)):
            self.assertEqual(self.refusal(call).reason, "MODEL_FILE_NEEDED")
        describe.model_file = FILE
        info = self.stub.DescribeModel(describe, timeout=SECONDS).model
        self.assertEqual([(t.name, list(t.sizes), t.needs_value) for t in info.inputs],
                         [("x", [-1, 6], False), ("offset", [6], False), ("shape", [2], True)])
        compiled = self.stub.CompileOperator(sv.CompileOperatorRequest(model=model), timeout=SECONDS)
        self.assertEqual(list(compiled.output_bytes), [72, 18, 4])
        self.assertTrue(self.execute(feeds_for(3)).statistics.was_cached)
        other = onnx_model.made_model(3.0)
        self.stub.CompileOperator(sv.CompileOperatorRequest(model=described(feeds_for(3), other), model_file=other),
                                  timeout=SECONDS)
        self.check(self.execute(feeds_for(3), model=described(feeds_for(3), other)), feeds_for(3), scale=3.0)

    def test_the_least_recently_used_goes(self):
        self.start("--max_inline_models=2")
        files = [onnx_model.made_model(float(scale)) for scale in range(2, 5)]
        feeds = feeds_for(3)
        for file in files[:2]:
            self.execute(feeds, model=described(feeds, file), model_file=file)
        self.execute(feeds, model=described(feeds, files[0]))
        self.execute(feeds, model=described(feeds, files[2]), model_file=files[2])
        self.check(self.execute(feeds, model=described(feeds, files[0])), feeds)
        self.assertEqual(self.refused(feeds, model=described(feeds, files[1])).reason, "MODEL_FILE_NEEDED")
        self.assertEqual((self.kept().models, self.kept().evictions), (2, 1))

    def test_memory(self):
        self.start("--max_inline_model_bytes=1MiB")
        feeds = feeds_for(3)
        padded = FILE + onnx_model._message((6, "x" * 600_000))
        refusal = self.refused(feeds, model=described(feeds, padded), model_file=padded)
        self.assertEqual(refusal.code, grpc.StatusCode.RESOURCE_EXHAUSTED)
        self.assertEqual(refusal.sentence,
                         f"The model takes {3 * len(padded)} bytes of memory; the limit for models that callers send "
                         "is 1048576 (max_inline_model_bytes). Put it into the server's repository.")
        files = [onnx_model.made_model(float(i)) + onnx_model._message((6, "x" * 100_000)) for i in range(30)]
        for file in files:
            self.execute(feeds, model=described(feeds, file), model_file=file)
        kept = self.kept()
        self.assertLessEqual(kept.bytes, 1 << 20)
        self.assertEqual(kept.models + kept.evictions, 30)
        self.assertGreater(kept.models, 3)

    def test_few_read_and_the_others_wait(self):
        self.start()
        feeds = feeds_for(3)
        with concurrent.futures.ThreadPoolExecutor(32) as threads:
            outcomes = list(threads.map(lambda _: self.execute(feeds, model_file=FILE), range(64)))
        for outcome in outcomes:
            self.check(outcome, feeds)
        # Of the workers, of which there are at least four, two are left for other work.
        self.assertLessEqual(self.kept().reads, max(4, os.cpu_count()) - 2)

    def test_refusals(self):
        self.start()
        feeds = feeds_for(3)
        other = digest(b"other")
        for fields, field, sentence in (
                ({"model_file": b"no model"}, "model_file",
                 f"model_file has 8 bytes with the SHA-256 {digest(b'no model')}, not {digest(FILE)}, the "
                 "model.sha256."),
                ({"model": described(feeds, b"no model"), "model_file": b"no model"}, "model_file",
                 "The file is not an ONNX model: it is cut off or malformed at byte 1."),
                ({"model": described(feeds, external_model()), "model_file": external_model()}, "model_file",
                 "Initializer 'w' is in another file, but the model does not come from a file."),
                ({"model": md.ModelDesc(sha256="ABC")}, "model.sha256",
                 'model.sha256 ("ABC") is not 64 hexadecimal digits in lower case.'),
                ({"model": md.ModelDesc(sha256=other, name="made")}, "model.sha256",
                 "model.sha256 is given beside a name or version; a model has one of both."),
                ({"model": md.ModelDesc(name="made"), "model_file": FILE}, "model_file",
                 "model_file is given, but model.sha256 is not."),
                ({"model": None, "model_file": FILE}, "model_file",
                 "model_file is given, but the request has no model."),
                ({"model": described({"x": feeds["x"]}), "model_file": FILE}, "model.inputs",
                 f"inputs has 1 tensors; sha256:{digest(FILE)[:12]} takes 3: x, offset, shape.")):
            with self.subTest(sentence):
                refusal = self.refused(feeds, **fields)
                self.assertEqual((refusal.code, refusal.fields, refusal.sentence),
                                 (grpc.StatusCode.INVALID_ARGUMENT, [field], sentence))
        self.start("--max_inline_models=0")
        refusal = self.refused(feeds, model_file=FILE)
        self.assertEqual((refusal.code, refusal.sentence),
                         (grpc.StatusCode.UNIMPLEMENTED, "This server takes only models of its repository "
                          "(--max_inline_models is 0)."))

    def test_what_is_not_a_file_is_short(self):
        self.start()
        channel = self.enterContext(api.connect(self.server.address))
        for method in ("CompileOperator", "DescribeModel", "ExplainModel", "Execute"):
            call = channel.unary_unary(f"/{api.SERVICE}/{method}")
            refusal = self.refusal(lambda call=call: call(attackers.UNKNOWN_FIELDS, timeout=SECONDS))
            self.assertEqual((refusal.code, refusal.sentence),
                             (grpc.StatusCode.INVALID_ARGUMENT, "The fields of the message that are not tensor bytes "
                              "take more than 1048576 bytes."))

    def test_a_deadline_ends_the_wait(self):
        self.start("--max_inline_model_bytes=1GiB")
        large = FILE + onnx_model._message((6, "x" * (48 << 20)))
        request = sv.DescribeModelRequest(model=md.ModelDesc(sha256=digest(large)), model_file=large)
        with self.assertRaises(grpc.RpcError) as raised:
            self.stub.DescribeModel(request, timeout=0.05)
        self.assertEqual(raised.exception.code(), grpc.StatusCode.DEADLINE_EXCEEDED)
        self.execute(feeds_for(3), model_file=FILE)


if __name__ == "__main__":
    unittest.main()
