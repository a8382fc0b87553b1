"""--model_control_mode: models that callers load and unload, as clients of Triton do it."""

import concurrent.futures
import json
import pathlib
import shutil
import tempfile
import threading
import unittest

import numpy as np
import onnx_model
import tritonclient.grpc as triton
from server_process import ServerProcess

SECONDS = 60


class ModelControl(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def write(self, name, model, config=None, version=1):
        shutil.rmtree(self.folder / name / str(version), ignore_errors=True)
        onnx_model.write_model(self.folder, name, version, model)
        if config is not None:
            onnx_model.write_config(self.folder, name, config)

    def start(self, *flags, mode="explicit", device="cpu"):
        server = self.enterContext(ServerProcess(f"--model_repository={self.folder}",
                                                 f"--model_control_mode={mode}", *flags, device=device))
        return server, self.enterContext(triton.InferenceServerClient(server.address))

    def scale(self, client, model, rows=2):
        """By which the model multiplies."""
        x = np.ones((rows, 6), np.float32)
        tensor = triton.InferInput("x", x.shape, "FP32")
        tensor.set_data_from_numpy(x)
        y = client.infer(model, [tensor], client_timeout=SECONDS).as_numpy("y")
        self.assertEqual(y.shape, x.shape)
        self.assertEqual(y.min(), y.max())
        return y[0, 0]

    def refusal(self, call, *arguments, **options):
        with self.assertRaises(triton.InferenceServerException) as raised:
            call(*arguments, **options)
        return raised.exception.status(), raised.exception.message()

    def entries(self, client):
        """Of the index, without the built-in models."""
        names = {path.name for path in self.folder.iterdir()} | {"given"}
        return {model.name: (model.version, model.state, model.reason)
                for model in client.get_model_repository_index().models if model.name in names}

    def test_loads_and_unloads(self):
        self.write("a", onnx_model.scaled_model(2))
        self.write("b", onnx_model.scaled_model(3))
        server, client = self.start("--load_model=a")
        self.assertEqual(self.entries(client), {"a": ("1", "READY", ""), "b": ("", "UNAVAILABLE", "not loaded")})
        self.assertEqual(self.refusal(self.scale, client, "b"),
                         ("StatusCode.NOT_FOUND", "The model b is not loaded; RepositoryModelLoad loads it."))
        client.load_model("b")
        self.assertEqual((self.scale(client, "a"), self.scale(client, "b")), (2, 3))
        client.unload_model("a")
        self.assertEqual(self.entries(client), {"a": ("", "UNAVAILABLE", "unloaded"), "b": ("1", "READY", "")})
        self.assertEqual(self.refusal(self.scale, client, "a"),
                         ("StatusCode.NOT_FOUND", "The model a is unloaded; RepositoryModelLoad loads it."))
        self.assertFalse(client.is_model_ready("a"))
        client.unload_model("a", unload_dependents=True)  # again
        # Changes take effect when the model is loaded, not before.
        self.write("a", onnx_model.scaled_model(5), version=2)
        client.load_model("a")
        self.assertEqual(self.scale(client, "a"), 5)
        self.write("b", onnx_model.scaled_model(7))
        self.assertEqual(self.scale(client, "b"), 3)
        client.load_model("b")
        self.assertEqual(self.scale(client, "b"), 7)
        # Folders that come and go are listed.
        self.write("c", onnx_model.scaled_model(1))
        server.wait_until(lambda: self.entries(client).get("c") == ("", "UNAVAILABLE", "not loaded"), SECONDS)
        self.assertEqual([line["model"] for line in server.lines("model_load")], ["a", "b", "a", "b"])

    def test_overrides(self):
        self.write("a", onnx_model.scaled_model(2), "max_batch_size: 2")
        _, client = self.start("--load_model=*")
        self.assertEqual(client.get_model_config("a").config.max_batch_size, 2)
        config = client.get_model_config("a", as_json=True)["config"]
        config |= {"max_batch_size": 4, "optimization": {"priority": "PRIORITY_DEFAULT"}, "sequence_batching": None,
                   "batch_input": [], "response_cache": {"enable": False}}
        client.load_model("a", config=json.dumps(config))
        self.assertEqual(client.get_model_config("a").config.max_batch_size, 4)
        self.assertEqual(self.scale(client, "a", rows=4), 2)
        # Files of the request take the place of the folder's, also for a model without a folder.
        files = {"file:1/model.onnx": onnx_model.scaled_model(5), "file:7/model.onnx": onnx_model.scaled_model(7)}
        for name in ("a", "given"):
            client.load_model(name, config=json.dumps({"version_policy": {"all": {}}}), files=files)
            self.assertEqual(self.scale(client, name, rows=9), 7)
        client.unload_model("given")
        self.assertEqual(self.entries(client).get("given"), None)
        # Without an override, the folder counts again.
        client.load_model("a")
        self.assertEqual(client.get_model_config("a").config.max_batch_size, 2)
        self.assertEqual(self.scale(client, "a"), 2)
        operator = {"backend": "opmill", "parameters": {"operator": {"string_value": "argmax"}, "axes": {"string_value": "1"}},
                    "input": [{"name": "x", "data_type": "TYPE_FP32", "dims": ["-1", "6"]}]}
        (self.folder / "operator").mkdir()
        client.load_model("operator", config=json.dumps(operator))
        self.assertEqual(list(client.get_model_metadata("operator").inputs[0].shape), [-1, 6])

    def test_a_load_that_fails_changes_nothing(self):
        self.write("a", onnx_model.scaled_model(2))
        self.write("broken", b"no model")
        server, client = self.start("--load_model=a,broken,nothing")
        self.assertIn("The file is not an ONNX model", self.entries(client)["broken"][2])
        self.assertIn("The model broken is not loaded: The file is not an ONNX model: it is cut off or malformed",
                      self.refusal(client.load_model, "broken")[1])
        huge = json.dumps({"parameters": {"p": {"string_value": "x" * 100_000}}})
        model = onnx_model.scaled_model(9)
        cases = [
            ("../a", {}, 'model_name ("../a") cannot be the name of a folder in the model repository.'),
            ("..", {}, 'model_name ("..") cannot be the name of a folder in the model repository.'),
            ("", {}, 'model_name ("") cannot be the name of a folder in the model repository.'),
            ("/etc", {}, 'model_name ("/etc") cannot be the name of a folder in the model repository.'),
            ("n" * 256, {}, "cannot be the name of a folder"),
            ("argmax", {}, 'model_name ("argmax") is a built-in model, which is neither loaded nor unloaded.'),
            ("nothing", {}, 'There is no folder "nothing" in the model repository.'),
            ("a", {"config": "{"}, "is not a ModelConfig in JSON: "),
            ("a", {"config": '{"max_batch_sizes": 1}'}, "max_batch_sizes"),
            ("a", {"config": '{"sequence_batching": {"direct": {}}, "x": 1}'},
             "sequence_batching is not supported by OpMill; remove it."),
            ("a", {"config": "[" * 60_000}, "is not a ModelConfig in JSON: "),
            ("a", {"config": '{"name": "b"}'}, 'name ("b") is not "a".'),
            ("a", {"config": '{"max_batch_size": -1}'}, "max_batch_size (-1) is not at least 0 and at most 4096."),
            ("a", {"config": huge}, "bytes, more than 65536."),
            ("a", {"files": {"file:1/model.onnx": model}}, "parameters.config is not given, which files of a request need."),
            ("a", {"config": "{}", "files": {"file:1/model.onnx": b"broken"}}, "it is cut off or malformed"),
            ("a", {"config": "{}", "files": {"file:1/other.onnx": model}}, "None of the files of the request is VERSION/model.onnx."),
            *[("a", {"config": "{}", "files": {path: model}}, f"parameters.{path} is not file:VERSION/NAME")
              for path in ("file:../model.onnx", "file:1/../../x", "file:/etc/passwd", "file:0/model.onnx", "file:01/model.onnx",
                           "file:model.onnx", "file:1/", "file:1/a/b", "file:-1/model.onnx")],
            ("a", {"config": "{}", "files": {"model.onnx": model}}, "is not a parameter of RepositoryModelLoad"),
        ]
        for name, options, sentence in cases:
            with self.subTest(name, **options):
                self.assertIn(sentence, self.refusal(client.load_model, name, **options)[1])
                self.assertEqual(self.scale(client, "a"), 2)
        names = {model.name for model in client.get_model_repository_index().models}
        self.assertFalse(names & {"nothing", "..", "../a", "n" * 256, ""})
        self.assertIn("There is no model", self.refusal(client.unload_model, "nothing")[1])
        self.assertIn("built-in", self.refusal(client.unload_model, "argmax")[1])
        server.wait_for(lambda line: line.get("event") == "model_load" and "broken" in line["model"])

    def test_only_explicit_takes_calls(self):
        self.write("a", onnx_model.scaled_model(2))
        for mode, sentence in (("poll", "again when it changes (poll)."), ("none", "once (none).")):
            server, client = self.start(mode=mode)
            for call in (client.load_model, client.unload_model):
                status, message = self.refusal(call, "a")
                self.assertEqual(status, "StatusCode.FAILED_PRECONDITION")
                self.assertIn(sentence, message)
            # Long messages are refused before they are received.
            self.assertIn("65536", self.refusal(client.load_model, "a", config="x" * 100_000)[1])
            self.assertEqual(self.scale(client, "a"), 2)
        self.write("b", onnx_model.scaled_model(2))
        with self.subTest("poll sees a change that none does not"):
            _, polling = self.start(mode="poll")
            shutil.rmtree(self.folder / "b")
            server.wait_until(lambda: not polling.is_model_ready("b"), SECONDS)
            self.assertFalse(client.is_model_ready("b"))
            self.assertTrue(client.is_model_ready("a"))

    def test_a_model_of_one_size_is_compiled_before_it_is_served(self):
        self.write("a", onnx_model.scaled_model(7, rows=2))
        self.write("b", onnx_model.scaled_model(5, rows=2))
        server, client = self.start("--load_model=a", device="software")
        client.load_model("b")
        self.assertEqual((self.scale(client, "a"), self.scale(client, "b")), (7, 5))
        server.wait_until(lambda: len(server.lines("execute")) == 2, SECONDS)
        self.assertEqual([line["compile_us"] for line in server.lines("execute")], [0, 0])

    def test_callers_infer_while_others_load_and_unload(self):
        scales = [2, 3, 5]
        self.write("a", onnx_model.scaled_model(scales[0]))
        server, client = self.start("--load_model=a")
        ends = threading.Event()

        def infer(rows):
            seen = set()
            with triton.InferenceServerClient(server.address) as own:
                while not ends.is_set():
                    try:
                        seen.add(float(self.scale(own, "a", rows)))
                    except triton.InferenceServerException as error:
                        if error.status() not in ("StatusCode.NOT_FOUND", "StatusCode.UNAVAILABLE"):
                            raise
            return seen

        def load(scale):
            with triton.InferenceServerClient(server.address) as own:
                for _ in range(12):
                    own.load_model("a", config="{}", files={"file:1/model.onnx": onnx_model.scaled_model(scale)})

        def unload():
            with triton.InferenceServerClient(server.address) as own:
                for _ in range(12):
                    try:
                        own.unload_model("a")
                    except triton.InferenceServerException as error:  # it is not loaded, and has no folder
                        self.assertEqual(error.status(), "StatusCode.NOT_FOUND")

        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            callers = [pool.submit(infer, rows) for rows in range(1, 9)]
            changes = [pool.submit(load, scale) for scale in scales] + [pool.submit(unload)]
            for change in changes:
                change.result()
            client.load_model("a")
            self.assertEqual(self.scale(client, "a"), scales[0])
            ends.set()
            for caller in callers:
                self.assertLessEqual(caller.result(), set(scales))


if __name__ == "__main__":
    unittest.main()
