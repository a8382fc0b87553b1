"""ONNX files in a model repository, served by the Open Inference Protocol and by OpMill's own service:
results are those of ONNX's reference evaluator and of ONNX Runtime."""

import concurrent.futures
import pathlib
import re
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
from tritonclient.utils import np_to_triton_dtype

import opmill

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


def batch_model(scale=1.0):
    """y = softmax(x w), with a first dimension of any size."""
    weights = np.random.default_rng(5).standard_normal((6, 4), np.float32) * np.float32(scale)
    nodes = [helper.make_node("MatMul", ["x", "w"], ["p"]), helper.make_node("Softmax", ["p"], ["y"], axis=1)]
    tensors = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", size]) for name, size in (("x", 6), ("y", 4))]
    graph = helper.make_graph(nodes, "batch", tensors[:1], tensors[1:], [onnx.numpy_helper.from_array(weights, "w")])
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


def resident_bytes(server):
    status = pathlib.Path(f"/proc/{server.pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+) kB", status)[1]) << 10


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
        server, client = self.start()
        own_client = self.enterContext(opmill.connect(server.address))
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        for name, model in served.items():
            session = onnxruntime.InferenceSession(str(model.path), options)
            for each in model.of_sizes():
                with self.subTest(model.file, values=model.values, sizes=each.sizes):
                    feeds = models.feeds_of(session, each)
                    result = infer(client, name, feeds)
                    own = own_client.model(name)(**feeds)
                    for output, wanted in zip(session.get_outputs(), session.run(None, feeds), strict=True):
                        got = result.as_numpy(output.name)
                        self.assertEqual((got.shape, got.dtype), (wanted.shape, wanted.dtype))
                        np.testing.assert_allclose(got, wanted, rtol=1e-3,
                                                   atol=1e-5 * max(1, np.abs(wanted).max()))
                        np.testing.assert_array_equal(own[output.name], got)

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

    def test_weights_are_packed_once_for_all_batches(self):
        """Those of the file, and those that are scaled when the program is compiled."""
        size = 2048
        rng = np.random.default_rng(3)
        nodes = [helper.make_node("MatMul", ["x", "w"], ["p"]),
                 helper.make_node("Cast", ["small"], ["numbers"], to=TensorProto.FLOAT),
                 helper.make_node("Mul", ["numbers", "scale"], ["scaled"]),
                 helper.make_node("MatMul", ["p", "scaled"], ["y"])]
        tensors = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", size]) for name in "xy"]
        graph = helper.make_graph(
            nodes, "packed", tensors[:1], tensors[1:],
            [onnx.numpy_helper.from_array(rng.standard_normal((size, size), np.float32), "w"),
             onnx.numpy_helper.from_array(rng.integers(-9, 9, (size, size), np.int8), "small"),
             onnx.numpy_helper.from_array(rng.standard_normal((1, size), np.float32), "scale")])
        file = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
        feeds = {count: rng.standard_normal((count, size), np.float32) for count in (2, 3, 8, 64)}

        def run(counts):
            server = self.enterContext(ServerProcess(device="cpu"))
            with opmill.connect(server.address, timeout=SECONDS) as c:
                model = opmill.Model(c, file.SerializeToString())
                for count in counts:
                    yield model(x=feeds[count])["y"], resident_bytes(server)

        together = list(run(feeds))
        packed = 2 * 4 * size * size
        more = [memory - together[0][1] for _, memory in together[1:]]
        print(f"packed weights take {packed >> 20} MiB; further sizes take", [f"{m / 2**20:.1f}" for m in more], "MiB")
        self.assertLess(more[-1], packed / 2)
        for count, (y, _) in zip(feeds, together, strict=True):
            ((alone, _),) = run([count])
            np.testing.assert_array_equal(y, alone)

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
        (self.folder / "made" / "config.pbtxt").write_text("input { name: 'z' }")
        reason = 'input[0].name ("z") is not an input of the file, which has x.'
        server.wait_until(lambda: any(line["error"] == reason for line in server.lines("model")), SECONDS)
        self.assertTrue(client.is_model_ready("made", "1"))

    def configure(self, name, text):
        (self.folder / name).mkdir(exist_ok=True)
        (self.folder / name / "config.pbtxt").write_text(text)

    def test_a_configuration_of_triton(self):
        for version in (2, 7, 10):
            self.write("made", batch_model(scale=version), version)
        self.write("bare", batch_model())
        self.configure("made", """
            name: "made" platform: "onnxruntime_onnx" backend: "onnxruntime" max_batch_size: 16
            default_model_filename: "model.onnx"
            input [ { name: "x" data_type: TYPE_FP32 format: FORMAT_NONE dims: [ 6 ] } ]
            output [ { name: "y" data_type: TYPE_FP32 dims: [ 4 ] label_filename: "labels.txt" } ]
            version_policy: { latest { num_versions: 2 } }
            instance_group [ { count: 2 kind: KIND_GPU gpus: [ 0 ] host_policy: "one" } ]
            optimization { graph { level: 1 } execution_accelerators { cpu_execution_accelerator { name: "a" } } }
            model_transaction_policy { decoupled: false }
            parameters { key: "intra_op_thread_count" value: { string_value: "4" } }""")
        server, client = self.start()
        lines = [(line["version"], line["without_effect"]) for line in server.lines("model_config")]
        self.assertEqual(lines, [(v, "format,host_policy,label_filename,optimization,instance_group,parameters")
                                 for v in ("7", "10")])
        metadata = client.get_model_metadata("made")
        self.assertEqual((metadata.platform, list(metadata.versions)), ("onnxruntime_onnx", ["7", "10"]))
        self.assertEqual([(t.name, t.datatype, list(t.shape)) for t in (*metadata.inputs, *metadata.outputs)],
                         [("x", "FP32", [-1, 6]), ("y", "FP32", [-1, 4])])
        config = client.get_model_config("made").config
        self.assertEqual((config.backend, config.max_batch_size, list(config.input[0].dims),
                          list(config.output[0].dims)), ("onnxruntime", 16, [6], [4]))
        completed = client.get_model_config("bare").config
        self.assertEqual((completed.platform, completed.backend, completed.max_batch_size,
                          completed.default_model_filename, completed.version_policy.latest.num_versions,
                          list(completed.input[0].dims)),
                         ("onnxruntime_onnx", "onnxruntime", 0, "model.onnx", 1, [-1, 6]))
        # Several versions are served at once; the newest is the default.
        x = np.random.default_rng(3).standard_normal((2, 6), np.float32)
        for version, scale in (("7", 7), ("10", 10), ("", 10)):
            wanted, = ReferenceEvaluator(batch_model(scale=scale)).run(None, {"x": x})
            result = infer(client, "made", {"x": x}, model_version=version)
            self.assertEqual(result.get_response().model_version, version or "10")
            np.testing.assert_allclose(result.as_numpy("y"), wanted, rtol=1e-5)
        self.assertEqual(self.refusal(lambda: infer(client, "made", {"x": x}, model_version="2")),
                         'The model made has the versions 7, 10, not "2".')
        self.assertEqual(self.refusal(lambda: infer(client, "made", {"x": np.ones((17, 6), np.float32)})),
                         "inputs[0].shape[0] (17) is more than 16, the max_batch_size of made.")
        with opmill.connect(server.address) as own_client, self.assertRaisesRegex(
                opmill.OpMillError, r"\(17\) is more than 16, the max_batch_size of made\."):
            own_client.model("made")(x=np.ones((17, 6), np.float32))
        statistics = client.get_inference_statistics("made").model_stats
        self.assertEqual([(s.version, s.inference_count) for s in statistics], [("7", 2), ("10", 4)])
        index = [(m.name, m.version) for m in client.get_model_repository_index().models if m.name == "made"]
        self.assertEqual(index, [("made", "7"), ("made", "10")])
        self.configure("made", "version_policy { all { } }")
        server.wait_until(lambda: client.is_model_ready("made", "2"), SECONDS)
        self.assertEqual(list(client.get_model_metadata("made").versions), ["2", "7", "10"])

    def test_a_configuration_that_does_not_fit(self):
        cases = {
            "backend: 'tensorrt'": 'backend ("tensorrt") is not "onnxruntime" or "opmill".',
            "max_batch_size: -1": "max_batch_size (-1) is not at least 0 and at most 4096.",
            "input { name: 'x' data_type: TYPE_INT64 dims: [ -1, 6 ] }":
                "input[0].data_type is TYPE_INT64; in the file x is TYPE_FP32.",
            "input { name: 'x' data_type: TYPE_FP32 dims: [ -1, 5 ] }":
                "input[0].dims[1] is 5; in the file x has the shape [-1,6].",
            "max_batch_size: 4 input { name: 'x' data_type: TYPE_FP32 dims: [ -1, 6 ] }":
                "input[0].dims is [-1,6]; in the file x has the shape [-1,6], of which max_batch_size takes the "
                "first.",
            "output { name: 'y' dims: [ -1, 0 ] }":
                "output[0].dims[1] (0) is neither -1, for any size, nor at least 1 and at most 4294967295.",
            "default_model_filename: '../model.onnx'":
                'default_model_filename ("../model.onnx") is not the name of a file in the folder of the version.',
            "version_policy { specific { versions: 5 } }": "There is no 5/model.onnx.",
            "dynamic_batching { }": "dynamic_batching is given, but max_batch_size is 0: no requests are joined.",
            "max_batch_size: 4 dynamic_batching { preferred_batch_size: [ 2, 8 ] }":
                "dynamic_batching.preferred_batch_size[1] (8) is not at least 1 and at most 4, the max_batch_size.",
            "max_batch_size: 4 dynamic_batching { max_queue_delay_microseconds: 20000000 }":
                "dynamic_batching.max_queue_delay_microseconds (20000000) is more than 10000000.",
            "model_transaction_policy { decoupled: true }":
                "model_transaction_policy.decoupled is true; each request has one answer.",
            "ensemble_scheduling { step { model_name: 'a' } }":
                "Line 1, column 21: ensemble_scheduling is not supported by OpMill; remove it.",
            "optimisation { }": 'Line 1, column 14: There is no field "optimisation".',
        }
        for i, text in enumerate(cases):
            self.write(f"m{i:02}", batch_model())
            self.configure(f"m{i:02}", text)
        self.write("scalar", made_model())
        self.configure("scalar", "max_batch_size: 2")
        server, client = self.start()
        lines = {line["model"]: line for line in server.lines("model")}
        for i, reason in enumerate(cases.values()):
            with self.subTest(reason):
                self.assertEqual(lines[f"m{i:02}"]["error"], reason)
                self.assertTrue(lines[f"m{i:02}"]["file"].endswith(f"m{i:02}/config.pbtxt"))
        self.assertEqual(lines["scalar"]["error"],
                         "max_batch_size is 2, but sum, which has the shape [] in the file, does not have any size "
                         "(-1) as its first dimension.")

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
