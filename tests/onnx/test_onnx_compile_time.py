"""The limit on the time that a model takes to compile, and compilations that no caller waits for any more."""

import concurrent.futures
import hashlib
import json
import os
import pathlib
import signal
import subprocess
import tempfile
import threading
import time
import unittest

import numpy as np
import onnx
import tritonclient.grpc as triton
from onnx import TensorProto, helper
from server_process import SERVER, ServerProcess, plain_environment
from test_onnx_serving import SECONDS, batch_model, infer, inputs_of
from tritonclient.utils import InferenceServerException

import opmill

SLOW = 1024  # rows with which the slow model takes about a minute to make; with few it takes none
SOON = 5     # seconds in which work ends that was stopped
TICKS = os.sysconf("SC_CLK_TCK")


def model_of(nodes, inputs, outputs, initializers):
    graph = helper.make_graph(nodes, "slow", inputs, outputs, initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def slow_model(rows="n", seed=1):
    """y = x + sum(c c), where c are the first rows and columns of a constant, as many as x has rows: the product is
    computed when the program is made."""
    weights = np.random.default_rng(seed).standard_normal((SLOW, SLOW), np.float32)
    nodes = [helper.make_node("Shape", ["x"], ["count"], start=0, end=1),
             helper.make_node("Concat", ["count", "count"], ["ends"], axis=0),
             helper.make_node("Slice", ["w", "zeros", "ends"], ["c"]),
             helper.make_node("MatMul", ["c", "c"], ["product"], name="product"),
             helper.make_node("ReduceSum", ["product"], ["sum"], keepdims=0),
             helper.make_node("Add", ["x", "sum"], ["y"])]
    tensors = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [rows, 2]) for name in "xy"]
    return model_of(nodes, tensors[:1], tensors[1:],
                    [onnx.numpy_helper.from_array(weights, "w"),
                     onnx.numpy_helper.from_array(np.zeros(2, np.int64), "zeros")])


def many_kernels_model(count=300):
    """Sums of rows with a different chain of operators before each of them: a Direct3D device compiles a kernel for
    each chain."""
    steps = ["Sin", "Cos", "Tanh", "Sigmoid", "Abs", "Neg", "Exp", "Atan"]
    nodes, last = [], "x"
    for i in range(count):
        for k, step in enumerate((i % 8, i // 8 % 8, i // 64 % 8, 0, 4)):
            nodes.append(helper.make_node(steps[step], [last], [f"v{i}_{k}"]))
            last = f"v{i}_{k}"
        nodes.append(helper.make_node("ReduceSum", [last, "one"], [f"s{i}"]))
        nodes.append(helper.make_node("Add", ["x", f"s{i}"], [f"a{i}" if i + 1 < count else "y"]))
        last = f"a{i}"
    tensors = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4, 64]) for name in "xy"]
    return model_of(nodes, tensors[:1], tensors[1:], [onnx.numpy_helper.from_array(np.array([1]), "one")])


def rows_of(count):
    return {"x": np.ones((count, 2), np.float32)}


class OnnxCompileTime(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def write(self, name, model):
        folder = self.folder / name / "1"
        folder.mkdir(parents=True)
        (folder / "model.onnx").write_bytes(model.SerializeToString())

    def start(self, *flags, device="cpu"):
        self.server = self.enterContext(ServerProcess(f"--model_repository={self.folder}", *flags, device=device))
        return self.enterContext(triton.InferenceServerClient(self.server.address))

    def refusal(self, call, status="StatusCode.RESOURCE_EXHAUSTED"):
        with self.assertRaises(InferenceServerException) as raised:
            call()
        self.assertEqual(raised.exception.status(), status)
        return raised.exception.message()

    def sentence(self, name, seconds, version=" version 1"):
        return f"Compiling the model {name}{version} takes more than {seconds}s (max_model_compile_time)."

    def cpu_seconds(self, pid=None):
        fields = pathlib.Path(f"/proc/{pid or self.server.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def expect_rest(self):
        """The server computes nothing."""
        deadline = time.monotonic() + SECONDS
        while True:
            before = self.cpu_seconds()
            time.sleep(1)
            if self.cpu_seconds() - before < 0.3:
                return
            self.assertLess(time.monotonic(), deadline, "the server still computes")

    def stopped(self):
        return [(line["model"], line["reason"]) for line in self.server.lines("compile_stopped")]

    def test_a_request_ends_at_the_limit_and_others_are_served_meanwhile(self):
        self.write("slow", slow_model())
        self.write("other", batch_model())
        client = self.start("--max_model_compile_time=2s")
        bytes_before = self.statistics().model_bytes
        begun = time.monotonic()
        pool = self.enterContext(concurrent.futures.ThreadPoolExecutor(1))
        refused = pool.submit(lambda: self.refusal(lambda: infer(client, "slow", rows_of(SLOW))))
        others, longest = 0, 0
        x = np.ones((1, 6), np.float32)
        while not refused.done():
            call = time.monotonic()
            infer(client, "other", {"x": x})
            longest = max(longest, time.monotonic() - call)
            others += 1
        self.assertEqual(refused.result(), self.sentence("slow", 2))
        seconds = time.monotonic() - begun
        print(f"ended after {seconds:.2f} s; meanwhile {others} other requests, the longest {longest:.3f} s")
        self.assertGreater(seconds, 1.9)
        self.assertGreater(others, 20)
        self.assertLess(seconds, 2 + SOON)
        self.assertLess(longest, 1)
        self.server.wait_until(self.stopped, SECONDS)  # the log comes on its own way
        self.assertEqual(self.stopped(), [("slow version 1", "max_model_compile_time")])
        self.expect_rest()
        # It is as before, for sizes that it takes in time.
        self.assertEqual(self.statistics().model_bytes, bytes_before)
        self.assertEqual(infer(client, "slow", rows_of(2)).as_numpy("y").shape, (2, 2))
        index = {model.name: model.state for model in client.get_model_repository_index().models}
        self.assertEqual((index["slow"], index["other"]), ("READY", "READY"))

    def statistics(self):
        with opmill.connect(self.server.address) as c:
            return c.statistics()

    def test_a_model_of_the_repository_is_not_served(self):
        self.write("slow", slow_model(rows=SLOW))
        self.write("other", batch_model())
        client = self.start("--max_model_compile_time=1s")
        reason = self.sentence("slow", 1)
        index = {model.name: (model.state, model.reason) for model in client.get_model_repository_index().models}
        self.assertEqual(index["slow"], ("UNAVAILABLE", reason))
        self.assertEqual(index["other"], ("READY", ""))
        line = self.server.lines("model")[0]
        self.assertEqual((line["model"], line["error"]), ("slow", reason))
        self.assertTrue(line["file"].endswith("slow/1/model.onnx"), line)
        self.assertEqual(self.refusal(lambda: infer(client, "slow", rows_of(SLOW)), "StatusCode.NOT_FOUND"),
                         f"The model slow is not served: {reason}")
        infer(client, "other", {"x": np.ones((1, 6), np.float32)})
        self.expect_rest()

    def test_a_model_that_callers_load(self):
        self.write("slow", slow_model(rows=SLOW))
        client = self.start("--max_model_compile_time=1s", "--model_control_mode=explicit")
        self.assertEqual(self.refusal(lambda: client.load_model("slow")),
                         f"The model slow is not loaded: {self.sentence('slow', 1)}")

    def test_a_warm_up(self):
        self.write("slow", slow_model())
        (self.folder / "slow" / "config.pbtxt").write_text(
            f'model_warmup {{ name: "many" batch_size: 1 inputs {{ key: "x" value {{ data_type: TYPE_FP32 dims: [ {SLOW}, 2 ] '
            "zero_data: true } } }")
        client = self.start("--max_model_compile_time=1s")
        index = {model.name: (model.state, model.reason) for model in client.get_model_repository_index().models}
        self.assertEqual(index["slow"], ("UNAVAILABLE", f'model_warmup[0] ("many") fails: {self.sentence("slow", 1)}'))

    def test_a_file_of_a_caller(self):
        self.write("other", batch_model())
        self.start("--max_model_compile_time=1s")
        with opmill.connect(self.server.address, timeout=SECONDS) as c:
            data = slow_model(rows=SLOW).SerializeToString()
            with self.assertRaises(opmill.OpMillError) as raised:
                opmill.Model(c, data)
            name = f"sha256:{hashlib.sha256(data).hexdigest()[:12]}"
            self.assertEqual(raised.exception.sentence, self.sentence(name, 1, version=""))
            # One that is read in time, and then has sizes that take long.
            model = opmill.Model(c, slow_model().SerializeToString())
            for _ in range(2):
                with self.assertRaises(opmill.OpMillError) as raised:
                    model(**rows_of(SLOW))
                self.assertIn("takes more than 1s (max_model_compile_time)", raised.exception.sentence)
            self.assertEqual(model(**rows_of(2))["y"].shape, (2, 2))
        self.expect_rest()

    def test_the_kernels_of_a_program(self):
        for name in ("kernels", "twins"):  # the same program, compiled once if both come at the same time
            self.write(name, many_kernels_model())
        client = self.start("--max_model_compile_time=2s", device="software")
        index = {model.name: (model.state, model.reason) for model in client.get_model_repository_index().models}
        for name in ("kernels", "twins"):
            self.assertEqual(index[name], ("UNAVAILABLE", self.sentence(name, 2)))
        self.expect_rest()

    def expect_stopped(self, count=1):
        self.server.wait_until(lambda: len(self.stopped()) == count, SOON)
        self.assertEqual(self.stopped()[-1], ("slow version 1", "no caller waits for it"))
        self.expect_rest()

    def test_callers_that_leave(self):
        self.write("slow", slow_model())
        client = self.start("--max_model_compile_time=inf")
        with self.subTest("a deadline"):
            self.refusal(lambda: client.infer("slow", inputs_of(rows_of(SLOW)), client_timeout=1),
                         "StatusCode.DEADLINE_EXCEEDED")
            self.expect_stopped()
        with self.subTest("the timeout of a request"):
            self.refusal(lambda: client.infer("slow", inputs_of(rows_of(SLOW)), timeout=1_000_000),
                         "StatusCode.DEADLINE_EXCEEDED")
            self.expect_stopped(2)
        with self.subTest("of two callers, one stays"):
            left = threading.Event()
            before = self.cpu_seconds()
            calls = [client.async_infer("slow", inputs_of(rows_of(SLOW)), lambda result, error: left.set())
                     for _ in range(2)]
            self.server.wait_until(lambda: self.cpu_seconds() > before + 2, SECONDS)  # so both have come
            calls[0].cancel()
            self.assertTrue(left.wait(SECONDS))
            before = self.cpu_seconds()
            time.sleep(2)
            self.assertGreater(self.cpu_seconds() - before, 0.5)
            self.assertEqual(len(self.stopped()), 2)
            calls[1].cancel()
            self.expect_stopped(3)
        with self.subTest("one comes after the others have left"):
            call = client.async_infer("slow", inputs_of(rows_of(SLOW // 4)), lambda result, error: None)
            time.sleep(0.1)
            call.cancel()
            self.assertEqual(infer(client, "slow", rows_of(SLOW // 4)).as_numpy("y").shape, (SLOW // 4, 2))

    def end_while_it_computes(self):
        before = self.cpu_seconds()
        self.server.wait_until(lambda: self.cpu_seconds() > before + 1, SECONDS)
        self.server.signal(signal.SIGTERM)
        self.assertEqual(self.server.wait(SOON), 0)
        self.assertEqual([line["reason"] for line in self.server.lines("compile_stopped")], ["the server stops"])

    def test_a_shutdown_stops_loads(self):
        limit = "--max_model_compile_time=inf"
        pool = self.enterContext(concurrent.futures.ThreadPoolExecutor(1))
        with self.subTest("of a folder that has changed"):
            self.start(limit)
            self.write("slow", slow_model(rows=SLOW))
            self.end_while_it_computes()
        self.write("kernels", many_kernels_model())
        for name, device in (("slow", "cpu"), ("kernels", "software")):
            with self.subTest("that a caller waits for", model=name):
                client = self.start(limit, "--model_control_mode=explicit", device=device)
                refused = pool.submit(self.refusal, lambda: client.load_model(name), "StatusCode.UNAVAILABLE")
                self.end_while_it_computes()
                self.assertEqual(refused.result(SECONDS),
                                 f"The model {name} is not loaded: The server is shutting down.")
        with self.subTest("before the server serves"):
            process = subprocess.Popen([SERVER, "--address=127.0.0.1:0", "--device=cpu", "--log_format=json", limit,
                                        f"--model_repository={self.folder}"],
                                       stderr=subprocess.PIPE, env=plain_environment(), text=True)
            self.addCleanup(process.kill)
            deadline = time.monotonic() + SECONDS
            while self.cpu_seconds(process.pid) < 2:
                self.assertLess(time.monotonic(), deadline)
                time.sleep(0.05)
            process.send_signal(signal.SIGTERM)
            log = process.communicate(timeout=SOON)[1]
            self.assertEqual(process.returncode, 0, log)
            self.assertEqual(json.loads(log.splitlines()[-1])["event"], "stopped")

    def test_a_caller_leaves_while_kernels_are_compiled(self):
        self.start("--max_model_compile_time=inf", device="software")
        with opmill.connect(self.server.address, timeout=SECONDS) as c:
            model = opmill.Model(c, many_kernels_model().SerializeToString())
            for number, call in enumerate((lambda: model(timeout=1, x=np.ones((4, 64), np.float32)),
                                           lambda: model.explain(timeout=1, run=False)), 1):
                with self.assertRaises(opmill.OpMillError):
                    call()
                self.server.wait_until(lambda: len(self.stopped()) == number, SOON)
                self.assertEqual(self.stopped()[-1][1], "no caller waits for it")
        self.expect_rest()
        compiled = self.device_shaders()
        time.sleep(1)
        self.assertEqual(self.device_shaders(), compiled)

    def device_shaders(self):
        return self.statistics().device.shaders_compiled


if __name__ == "__main__":
    unittest.main()
