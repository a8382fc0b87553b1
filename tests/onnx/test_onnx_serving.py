"""ONNX files in a model repository, served by the Open Inference Protocol: results are those of ONNX's
reference evaluator and of ONNX Runtime."""

import concurrent.futures
import pathlib
import tempfile
import time
import unittest

import models
import numpy as np
import onnx
import onnxruntime
import tritonclient.grpc as triton
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator
from server_process import ServerProcess
from test_onnx_models import feeds_of
from tritonclient.utils import np_to_triton_dtype

SECONDS = 60


def made_model(scale=1.0):
    """y = softmax(relu(x w)), whether it is above 0.1, and the sum of all of it, which is a scalar."""
    weights = np.random.default_rng(5).standard_normal((6, 4), np.float32) * np.float32(scale)
    nodes = [helper.make_node("MatMul", ["x", "w"], ["p"], name="product"),
             helper.make_node("Relu", ["p"], ["r"]),
             helper.make_node("Softmax", ["r"], ["y"], axis=1),
             helper.make_node("Greater", ["y", "tenth"], ["above"]),
             helper.make_node("ReduceSum", ["y"], ["sum"], keepdims=0)]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 4]),
               helper.make_tensor_value_info("above", TensorProto.BOOL, ["n", 4]),
               helper.make_tensor_value_info("sum", TensorProto.FLOAT, [])]
    graph = helper.make_graph(
        nodes, "made", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 6])], outputs,
        [onnx.numpy_helper.from_array(weights, "w"),
         onnx.numpy_helper.from_array(np.float32(0.1), "tenth")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def refused_model():
    nodes = [helper.make_node("Relu", ["x"], ["a"]),
             helper.make_node("Einsum", ["a"], ["b"], name="first", equation="i->i"),
             helper.make_node("Det", ["a"], ["c"], name="second"),
             helper.make_node("Add", ["b", "c"], ["y"])]
    tensors = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4]) for name in "xy"]
    return helper.make_model(helper.make_graph(nodes, "refused", tensors[:1], tensors[1:]),
                             opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def unrolled_model():
    """LSTMs, of which each step becomes operators: a program for many steps takes long to make."""
    layers, hidden = 3, 4
    weights = np.random.default_rng(7).standard_normal((1, 4 * hidden, hidden), np.float32)
    nodes = [node for i in range(layers) for node in (
        helper.make_node("LSTM", [f"x{i}", "w", "w"], [f"all{i}", f"last{i}"], hidden_size=hidden),
        helper.make_node("Squeeze", [f"all{i}", "one"], [f"x{i + 1}"]))]
    graph = helper.make_graph(
        nodes, "unrolled", [helper.make_tensor_value_info("x0", TensorProto.FLOAT, ["steps", 1, hidden])],
        [helper.make_tensor_value_info(f"last{layers - 1}", TensorProto.FLOAT, [1, 1, hidden])],
        [onnx.numpy_helper.from_array(weights, "w"), onnx.numpy_helper.from_array(np.array([1]), "one")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def inputs_of(feeds):
    inputs = []
    for name, array in feeds.items():
        inputs.append(triton.InferInput(name, array.shape, np_to_triton_dtype(array.dtype)))
        inputs[-1].set_data_from_numpy(array)
    return inputs


def infer(client, model, feeds, **options):
    return client.infer(model, inputs_of(feeds), client_timeout=SECONDS, **options)


class OnnxServing(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def write(self, name, model, version=1):
        folder = self.folder / name / str(version)
        folder.mkdir(parents=True)
        (folder / "model.onnx").write_bytes(model.SerializeToString())

    def start(self, *flags, device="cpu"):
        server = self.enterContext(
            ServerProcess(f"--model_repository={self.folder}", *flags, device=device))
        return server, self.enterContext(triton.InferenceServerClient(server.address))

    def refusal(self, call):
        with self.assertRaises(triton.InferenceServerException) as raised:
            call()
        return raised.exception.message()

    def test_a_made_model(self):
        model = made_model()
        self.write("made", model, 3)
        for device in ("cpu", "reference", "software"):
            _, client = self.start(device=device)
            self.assertTrue(client.is_model_ready("made", "3"))
            self.assertFalse(client.is_model_ready("made", "1"))
            metadata = client.get_model_metadata("made")
            self.assertEqual([(t.name, t.datatype, list(t.shape)) for t in
                              (*metadata.inputs, *metadata.outputs)],
                             [("x", "FP32", [-1, 6]), ("y", "FP32", [-1, 4]),
                              ("above", "BOOL", [-1, 4]), ("sum", "FP32", [])])
            config = client.get_model_config("made").config
            self.assertEqual((config.name, config.output[1].data_type), ("made", 1))
            for count in (1, 7, 1, 1000):
                x = np.random.default_rng(count).standard_normal((count, 6), np.float32)
                result = infer(client, "made", {"x": x})
                for name, wanted in zip(("y", "above", "sum"), ReferenceEvaluator(model).run(None, {"x": x}),
                                        strict=True):
                    got = result.as_numpy(name)
                    self.assertEqual((got.shape, got.dtype), (wanted.shape, wanted.dtype))
                    np.testing.assert_allclose(got, wanted, rtol=1e-5)
            statistics = client.get_inference_statistics("made").model_stats[0]
            self.assertEqual((statistics.version, statistics.inference_count), ("3", 4))

    def test_requests_that_do_not_fit(self):
        self.write("made", made_model())
        _, client = self.start()
        x = np.zeros((2, 6), np.float32)
        self.assertEqual(self.refusal(lambda: infer(client, "made", {"x": x[:, :5]})),
                         "The input x of made has the shape [-1,6], not [2,5].")
        self.assertEqual(self.refusal(lambda: infer(client, "made", {"x": x.astype(np.int32)})),
                         "The input x of made is FP32, not INT32.")
        self.assertEqual(self.refusal(lambda: infer(client, "made", {"x": x}, parameters={"axes": "1"})),
                         "parameters.axes is not a parameter of made, which has none.")
        self.assertEqual(self.refusal(lambda: infer(client, "made", {})),
                         "inputs has 0 tensors; made takes 1: x.")

    def test_real_models(self):
        models.fetch()
        served = {f"model_{i}": model for i, model in enumerate(models.MODELS)
                  if not model.path.name.startswith("light_")}
        for name, model in served.items():
            folder = self.folder / name / "1"
            folder.mkdir(parents=True)
            (folder / "model.onnx").symlink_to(model.path)
        _, client = self.start()
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        for name, model in served.items():
            with self.subTest(model.file, values=model.values):
                session = onnxruntime.InferenceSession(str(model.path), options)
                feeds = feeds_of(session, model)
                result = infer(client, name, feeds)
                for output, wanted in zip(session.get_outputs(), session.run(None, feeds), strict=True):
                    got = result.as_numpy(output.name)
                    self.assertEqual((got.shape, got.dtype), (wanted.shape, wanted.dtype))
                    np.testing.assert_allclose(got, wanted, rtol=1e-3,
                                               atol=1e-5 * max(1, np.abs(wanted).max()))

    def test_what_cannot_be_compiled_is_refused_when_it_is_read(self):
        self.write("refused", refused_model())
        self.write("made", made_model())
        server, client = self.start()
        reason = ("Node 'first' (Einsum): the operator is not supported. "
                  "Node 'second' (Det): the operator is not supported.")
        index = {model.name: (model.state, model.reason)
                 for model in client.get_model_repository_index().models}
        self.assertEqual(index["refused"], ("UNAVAILABLE", reason))
        self.assertEqual(index["made"], ("READY", ""))
        line = server.lines("model")[0]
        self.assertEqual((line["model"], line["error"]), ("refused", reason))
        self.assertTrue(line["file"].endswith("refused/1/model.onnx"), line)
        self.assertEqual(self.refusal(lambda: infer(client, "refused", {"x": np.zeros(4, np.float32)})),
                         f"The model refused is not served: {reason}")

    def test_limits(self):
        self.write("made", made_model())
        _, client = self.start("--max_model_constant_bytes=64")
        self.assertEqual(self.refusal(lambda: client.get_model_metadata("made")),
                         "The model made is not served: The constants of the model have 100 bytes, more "
                         "than 64 (max_model_constant_bytes).")
        _, client = self.start("--max_model_bytes=100")
        self.assertIn("100 bytes", self.refusal(lambda: client.get_model_metadata("made")))

    def test_versions(self):
        self.write("made", made_model())
        server, client = self.start()
        self.assertEqual(client.get_model_metadata("made").versions, ["1"])
        self.write("made", made_model(scale=3), 10)
        server.wait_until(lambda: client.is_model_ready("made", "10"), SECONDS)
        x = np.ones((1, 6), np.float32)
        wanted, _, _ = ReferenceEvaluator(made_model(scale=3)).run(None, {"x": x})
        np.testing.assert_allclose(infer(client, "made", {"x": x}).as_numpy("y"), wanted, rtol=1e-5)
        (self.folder / "made" / "config.pbtxt").write_text("version_policy { specific { versions: 1 } }")
        server.wait_until(lambda: client.is_model_ready("made", "1"), SECONDS)
        (self.folder / "made" / "config.pbtxt").write_text("input { name: 'x' }")
        reason = ("input is given, but what an ONNX model takes and gives is what its file says.")
        server.wait_until(lambda: any(line["error"] == reason for line in server.lines("model")), SECONDS)
        self.assertTrue(client.is_model_ready("made", "1"))

    def test_programs_are_made_beside_other_calls(self):
        self.write("unrolled", unrolled_model())
        self.write("made", made_model())
        server, client = self.start()

        def steps(count):
            return {"x0": np.ones((count, 1, 4), np.float32)}

        infer(client, "unrolled", steps(900))
        # A deadline ends the wait.
        self.refusal(lambda: infer(client, "unrolled", steps(901), parameters={"timeout": 10_000}))
        self.assertEqual(server.wait_for(lambda line: line.get("code") == "DEADLINE_EXCEEDED")["error"],
                         "The execution's time is over: its program is being made.")

        # So does the end of a call, and of a stream.
        def cancelled():
            return sum(line.get("code") == "CANCELLED" and line["event"] == "refuse" for line in server.lines())

        call = client.async_infer("unrolled", inputs_of(steps(902)), lambda result, error: None)
        time.sleep(0.02)
        call.cancel()
        server.wait_until(lambda: cancelled() == 1, SECONDS)
        with triton.InferenceServerClient(server.address) as streaming:
            streaming.start_stream(lambda result, error: None)
            streaming.async_stream_infer("unrolled", inputs_of(steps(903)))
            time.sleep(0.02)
            streaming.stop_stream(cancel_requests=True)
        server.wait_until(lambda: cancelled() == 2, SECONDS)
        # All callers of the same sizes wait for one program. Others do not wait.
        pool = self.enterContext(concurrent.futures.ThreadPoolExecutor(8))
        calls = [pool.submit(infer, client, "unrolled", steps(904)) for _ in range(8)]
        infer(client, "made", {"x": np.ones((1, 6), np.float32)})
        results = [call.result().as_numpy("last2").tobytes() for call in calls]
        self.assertEqual(len(set(results)), 1)


if __name__ == "__main__":
    unittest.main()
