"""--max_total_model_bytes: what all models take together, and what happens beyond it."""

import hashlib
import pathlib
import re
import shutil
import tempfile
import unittest
import urllib.request

import numpy as np
import onnx_model
import tritonclient.grpc as triton
from server_process import ServerProcess

import api
from api import sv

# pylint: disable=wrong-import-order,import-error
from opmill.v1 import model_pb2 as md

MEBIBYTE = 1 << 20
SECONDS = 60


class ModelMemory(unittest.TestCase):
    """A model of 4 MiB takes 8: the weights of its graph, and the constants of its programs."""

    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def write(self, name, mebibytes=4, scale=1.0):
        shutil.rmtree(self.folder / name, ignore_errors=True)
        onnx_model.write_model(self.folder, name, 1, onnx_model.weighted_model(mebibytes, scale))

    def start(self, *flags, mode="explicit"):
        self.server = self.enterContext(ServerProcess(
            f"--model_repository={self.folder}", f"--model_control_mode={mode}", "--metrics_address=127.0.0.1:0",
            "--max_total_model_bytes=20MiB", *flags, device="cpu"))
        self.client = self.enterContext(triton.InferenceServerClient(self.server.address))
        self.stub = api.stub_of(self.enterContext(api.connect(self.server.address)))

    def mebibytes(self):
        """That models take, without their few nodes."""
        statistics = self.stub.GetStatistics(sv.GetStatisticsRequest(), timeout=SECONDS)
        return statistics.model_bytes // MEBIBYTE

    def scale(self, model):
        tensor = triton.InferInput("x", (1, 1), "FP32")
        tensor.set_data_from_numpy(np.ones((1, 1), np.float32))
        y = self.client.infer(model, [tensor], client_timeout=SECONDS).as_numpy("y")
        self.assertEqual(y.min(), y.max())
        return y[0, 0]

    def refusal(self, name):
        with self.assertRaises(triton.InferenceServerException) as raised:
            self.client.load_model(name)
        self.assertEqual(raised.exception.status(), "StatusCode.RESOURCE_EXHAUSTED")
        return raised.exception.message()

    def send(self, file):
        model = md.ModelDesc(sha256=hashlib.sha256(file).hexdigest())
        return self.stub.DescribeModel(sv.DescribeModelRequest(model=model, model_file=file), timeout=SECONDS)

    def test_what_does_not_fit_is_refused_and_others_are_served(self):
        for name in "abc":
            self.write(name)
        self.start("--load_model=a,b")
        self.assertEqual(self.mebibytes(), 16)
        message = self.refusal("c")
        found = re.search(r"There is no room for (\d+) bytes of a model: (\d+) of 20971520 bytes "
                          r"\(max_total_model_bytes\) are in use", message)
        self.assertEqual([int(number) // MEBIBYTE for number in found.groups()], [4, 16], message)
        self.assertEqual(self.mebibytes(), 16)
        self.assertEqual((self.scale("a"), self.scale("b")), (1, 1))
        limits = self.stub.GetServerInfo(sv.GetServerInfoRequest(), timeout=SECONDS).limits
        self.assertEqual(limits.max_total_model_bytes, 20 * MEBIBYTE)
        address = self.server.lines("serving")[0]["metrics_address"]
        with urllib.request.urlopen(f"http://{address}/metrics", timeout=SECONDS) as page:
            values = dict(re.findall(r"^(opmill_model_\w*bytes) (\S+)$", page.read().decode(), re.MULTILINE))
        self.assertEqual(float(values["opmill_model_limit_bytes"]), 20 * MEBIBYTE)
        self.assertEqual(float(values["opmill_model_bytes"]) // MEBIBYTE, 16)

    def test_unloading_gives_the_bytes_back(self):
        for name in "abc":
            self.write(name)
        self.start("--load_model=a,b")
        self.assertEqual((self.scale("a"), self.scale("b")), (1, 1))
        self.client.unload_model("a")
        self.server.wait_until(lambda: self.mebibytes() == 8, SECONDS)
        self.client.load_model("c")
        self.assertEqual((self.mebibytes(), self.scale("c")), (16, 1))

    def test_a_model_that_changes_needs_room_beside_the_old_one(self):
        self.write("a")
        self.write("b")
        self.start("--load_model=a,b")
        self.write("b", scale=3.0)
        self.assertIn("(max_total_model_bytes)", self.refusal("b"))
        self.assertEqual((self.scale("b"), self.mebibytes()), (1, 16))
        self.client.unload_model("a")
        self.client.load_model("b")
        self.assertEqual(self.scale("b"), 3)
        self.server.wait_until(lambda: self.mebibytes() == 8, SECONDS)

    def test_models_of_requests_give_way(self):
        self.write("a")
        self.write("b")
        self.start("--load_model=a")
        self.send(onnx_model.weighted_model(3))
        self.assertEqual(self.mebibytes(), 14)
        self.client.load_model("b")
        statistics = self.stub.GetStatistics(sv.GetStatisticsRequest(), timeout=SECONDS)
        self.assertEqual((statistics.inline_models.models, statistics.inline_models.evictions), (0, 1))
        self.assertEqual(self.mebibytes(), 16)
        with self.assertRaises(api.grpc.RpcError) as raised:
            self.send(onnx_model.weighted_model(3, 2.0))
        self.assertIn("(max_total_model_bytes) are in use", raised.exception.details())
        self.assertIsNone(api.Refusal.of_error(raised.exception).retry_seconds)  # models of the repository stay

    def test_a_model_larger_than_the_limit_is_refused_before_it_is_read(self):
        self.write("a", mebibytes=24)
        self.start(mode="poll")
        reason = {model.name: model.reason for model in self.client.get_model_repository_index().models}["a"]
        self.assertRegex(reason, r"more than 20971520 bytes of memory\. Of all models, 0 of 20971520 bytes "
                         r"\(max_total_model_bytes\) are in use\.")


if __name__ == "__main__":
    unittest.main()
