"""model_warmup of a configuration: what is computed before a model is served, as users of Triton write it."""

import concurrent.futures
import json
import os
import pathlib
import shutil
import signal
import tempfile
import unittest

import numpy as np
import onnx_model
import tritonclient.grpc as triton
from server_process import ServerProcess

SECONDS = 60


def warm_up(inputs, name="first", batch_size=1, **fields):
    entries = "".join(f'inputs {{ key: "{key}" value {{ {value} }} }} ' for key, value in inputs.items())
    others = "".join(f"{field}: {value} " for field, value in fields.items())
    return f'model_warmup {{ name: "{name}" batch_size: {batch_size} {entries}{others}}}\n'


ROWS = "data_type: TYPE_FP32 dims: [ 3, 6 ] zero_data: true"


class ModelWarmup(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def write(self, name, model, config=None):
        shutil.rmtree(self.folder / name, ignore_errors=True)
        onnx_model.write_model(self.folder, name, 1, model)
        if config is not None:
            onnx_model.write_config(self.folder, name, config)

    def start(self, mode, *flags, device="cpu"):
        server = self.enterContext(ServerProcess(f"--model_repository={self.folder}",
                                                 f"--model_control_mode={mode}", *flags, device=device))
        return server, self.enterContext(triton.InferenceServerClient(server.address))

    def warmed(self, server, count):
        """The log lines of as many runs of warm-ups."""
        def lines():
            return [line for line in server.lines("execute") if line["rpc"] == "model_warmup"]

        server.wait_until(lambda: len(lines()) >= count, SECONDS)
        return lines()

    def infer(self, client, model, **arrays):
        tensors = []
        for name, array in arrays.items():
            tensors.append(triton.InferInput(name, array.shape, {"float32": "FP32", "int64": "INT64"}[str(array.dtype)]))
            tensors[-1].set_data_from_numpy(array)
        return client.infer(model, tensors, client_timeout=SECONDS).as_numpy("y")

    def reason(self, client, name):
        return next(model.reason for model in client.get_model_repository_index().models if model.name == name)

    def test_is_computed_before_the_model_is_served(self):
        self.write("a", onnx_model.scaled_model(2),
                   warm_up({"x": ROWS}, count=3) + warm_up({"x": ROWS.replace("[ 3", "[ 5").replace("zero", "random")}, "second"))
        server, client = self.start("poll", device="software")
        self.assertTrue(client.is_model_ready("a"))
        self.assertEqual([line["operator"] for line in self.warmed(server, 4)], ["model a version 1"] * 4)
        for rows in (3, 5):
            x = np.ones((rows, 6), np.float32)
            np.testing.assert_array_equal(self.infer(client, "a", x=x), 2 * x)
        server.wait_until(lambda: len(server.lines("execute")) == 6, SECONDS)
        self.assertEqual([line["compile_us"] for line in server.lines("execute")[4:]], [0, 0])
        statistics = client.get_inference_statistics("a").model_stats[0]
        self.assertEqual((statistics.inference_count, statistics.execution_count), (2, 2))
        self.assertEqual([each.name for each in client.get_model_config("a").config.model_warmup], ["first", "second"])

    def test_rows_of_a_batch(self):
        self.write("a", onnx_model.scaled_model(2), "max_batch_size: 8\ndynamic_batching {}\n" + warm_up(
            {"x": 'data_type: TYPE_FP32 dims: [ 6 ] input_data_file: "row"'}, batch_size=4))
        (self.folder / "a" / "warmup").mkdir()
        (self.folder / "a" / "warmup" / "row").write_bytes(np.arange(6, dtype=np.float32).tobytes())
        server, client = self.start("poll")
        self.assertTrue(client.is_model_ready("a"))
        self.assertEqual([line["input_bytes"] for line in self.warmed(server, 1)], [4 * 6 * 4])

    def test_values_that_decide_the_form_come_from_a_file(self):
        shape = np.array([6, 3], np.int64)
        config = warm_up({"x": ROWS, "offset": "data_type: TYPE_FP32 dims: 6 random_data: true",
                          "shape": 'data_type: TYPE_INT64 dims: 2 input_data_file: "shape"'})
        self.write("made", onnx_model.made_model(), config)
        (self.folder / "made" / "warmup").mkdir()
        (self.folder / "made" / "warmup" / "shape").write_bytes(shape.tobytes())
        server, client = self.start("explicit", "--load_model=*")
        self.assertEqual(len(self.warmed(server, 1)), 1)
        arrays = {"x": np.ones((3, 6), np.float32), "offset": np.ones(6, np.float32)}
        self.assertEqual(self.infer(client, "made", shape=shape, **arrays).shape, (6, 3))

    def test_a_model_with_fixed_attributes(self):
        onnx_model.write_config(self.folder, text=onnx_model.BEST + warm_up({"scores": ROWS}))
        server, client = self.start("poll", device="reference")
        self.assertTrue(client.is_model_ready("best"))
        self.assertEqual(len(self.warmed(server, 1)), 1)
        self.assertEqual(client.get_model_config("best").config.model_warmup[0].name, "first")

    def test_loads_with_a_configuration_and_files(self):
        server, client = self.start("explicit")
        entry = {"name": "json", "batch_size": 1, "inputs": {"x": {"data_type": "TYPE_FP32", "dims": ["2", "6"], "zero_data": True}}}
        files = {"file:1/model.onnx": onnx_model.scaled_model(2)}
        client.load_model("given", config=json.dumps({"model_warmup": [entry]}), files=files)
        self.assertEqual(len(self.warmed(server, 1)), 1)
        entry["inputs"]["x"] = {"data_type": "TYPE_FP32", "dims": ["2", "6"], "input_data_file": "rows"}
        with self.assertRaises(triton.InferenceServerException) as raised:
            client.load_model("given", config=json.dumps({"model_warmup": [entry]}), files=files)
        self.assertEqual(raised.exception.message(),
                         'The model given is not loaded: model_warmup[0].inputs.x.input_data_file ("rows") is given, '
                         "but the files of the model come from a request.")
        self.assertTrue(client.is_model_ready("given"))  # as it was

    def test_a_wrong_one_is_refused_with_its_model(self):
        self.write("good", onnx_model.scaled_model(2))
        self.write("a", onnx_model.scaled_model(2))
        warmups = self.folder / "a" / "warmup"
        warmups.mkdir()
        (warmups / "short").write_bytes(b"1234")
        (self.folder / "outside").write_bytes(bytes(72))
        os.symlink("../../outside", warmups / "link")
        os.mkfifo(warmups / "pipe")
        file = 'data_type: TYPE_FP32 dims: [ 3, 6 ] input_data_file: "{}"'.format
        field = "model_warmup[0].inputs.x.input_data_file"
        cases = [
            (warm_up({"x": ROWS}, batch_size=0), "model_warmup[0].batch_size (0) is not at least 1 and at most 1: "
             "the model has no max_batch_size."),
            ("max_batch_size: 4\n" + warm_up({"x": ROWS.replace("3, ", "")}, batch_size=5),
             "model_warmup[0].batch_size (5) is not at least 1 and at most 4, the max_batch_size."),
            (warm_up({"x": ROWS}, count=1001), "model_warmup[0].count (1001) is more than 1000."),
            (warm_up({"x": ROWS}) * 65, "model_warmup has 65 entries, more than 64."),
            (warm_up({"x": ROWS}) + warm_up({}), "model_warmup[1].inputs has no x; the model takes x."),
            (warm_up({"x": ROWS, "y": ROWS}), 'model_warmup[0].inputs has the key "y", which is not an input of the '
             "model; it takes x."),
            (warm_up({"x": ROWS.replace("FP32", "INT8")}), "model_warmup[0].inputs.x.data_type is TYPE_INT8; the input "
             "is TYPE_FP32."),
            (warm_up({"x": ROWS.replace("[ 3", "[ 0")}), "model_warmup[0].inputs.x.dims[0] (0) is not at least 1 and at most "
             "4294967295."),
            (warm_up({"x": ROWS.replace("6", "7")}), "model_warmup[0].inputs.x.dims is [3,7]; the model takes the shape "
             "[-1,6]."),
            (warm_up({"x": "data_type: TYPE_FP32 dims: [ 3, 6 ]"}), "model_warmup[0].inputs.x has none of zero_data, "
             "random_data and input_data_file."),
            (warm_up({"x": file("short")}), f'{field} ("short") has 4 bytes; dims take 72.'),
            (warm_up({"x": file("none")}), f'{field} ("none") is not the name of a regular file in the folder warmup of the '
             "model."),
            (warm_up({"x": file("pipe")}), f'{field} ("pipe") is not the name of a regular file in the folder warmup of the '
             "model."),
            (warm_up({"x": file("../1/model.onnx")}), f'{field} ("../1/model.onnx") is not a relative path within the '
             "folder warmup of the model."),
            (warm_up({"x": file("link")}), f'{field} ("link") is a link out of the folder warmup of the model.'),
            (warm_up({"x": ROWS.replace("[ 3", "[ 1000000000")}), "elements."),
            (warm_up({"x": ROWS.replace("[ 3", "[ 100000000")}), 'model_warmup[0] ("first") fails: '),
        ]
        server, client = self.start("explicit", "--load_model=good", "--memory_limit=1GiB")
        for config, sentence in cases:
            with self.subTest(sentence):
                onnx_model.write_config(self.folder, "a", config)
                with self.assertRaises(triton.InferenceServerException) as raised:
                    client.load_model("a")
                self.assertIn(sentence, raised.exception.message())
                self.assertIn(sentence, self.reason(client, "a"))
                line = server.wait_for(lambda line, sentence=sentence: line.get("event") == "model" and
                                       sentence in line["error"])
                self.assertEqual(line["file"], str(self.folder / "a" / "config.pbtxt"))
                self.assertIn("model_warmup", line["field"])
                self.assertFalse(client.is_model_ready("a"))
                self.assertTrue(client.is_model_ready("good"))

    def test_a_load_that_waits_ends_with_its_caller(self):
        """And a load in progress ends when the server drains."""
        self.write("slow", onnx_model.weighted_model(4),
                   warm_up({"x": "data_type: TYPE_FP32 dims: [ 16, 1 ] zero_data: true"}, count=1000))
        self.write("other", onnx_model.scaled_model(2))
        server, client = self.start("explicit")
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            slow = pool.submit(client.load_model, "slow")
            self.warmed(server, 1)
            with self.assertRaises(triton.InferenceServerException):
                client.load_model("other", client_timeout=0.5)
            line = server.wait_for(lambda line: line.get("event") == "refuse", SECONDS)
            self.assertEqual(line["rpc"], "RepositoryModelLoad")
            # The client cancels the call at its deadline, which may come first.
            self.assertIn(line["code"], ("DEADLINE_EXCEEDED", "CANCELLED"))
            self.assertFalse(slow.done())
            server.signal(signal.SIGTERM)
            with self.assertRaises(triton.InferenceServerException) as raised:
                slow.result()
            self.assertRegex(raised.exception.message(),
                             r'model_warmup\[0\] \("first"\) fails: The server is (draining|shutting down)')
        self.assertEqual(server.wait(), 0)

    def test_poll_sees_a_file_that_changes(self):
        self.write("a", onnx_model.scaled_model(2), warm_up({"x": 'data_type: TYPE_FP32 dims: [ 3, 6 ] input_data_file: "x"'}))
        server, client = self.start("poll")
        self.assertFalse(client.is_model_ready("a"))
        (self.folder / "a" / "warmup").mkdir()
        (self.folder / "a" / "warmup" / "x").write_bytes(bytes(72))
        server.wait_until(lambda: client.is_model_ready("a"), SECONDS)
        self.assertEqual(len(self.warmed(server, 1)), 1)


if __name__ == "__main__":
    unittest.main()
