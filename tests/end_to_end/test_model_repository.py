"""Models from --model_repository: exact metadata, inference, errors in a configuration, reload."""

import os
import pathlib
import re
import shutil
import signal
import tempfile
import unittest

import grpc
import numpy as np
import tritonclient.grpc as triton

from server_process import ROOT, ServerProcess

CONFIG = """
input {{ name: "x" data_type: TYPE_INT32 dims: [ 2, 3 ] }}
parameters {{ key: "operator" value {{ string_value: "{operator}" }} }}
parameters {{ key: "axes" value {{ string_value: "1" }} }}
"""
K = 'parameters { key: "k" value { string_value: "2" } }'
IDENTITY = """
parameters { key: "operator" value { string_value: "reduce_sum" } }
parameters { key: "axes" value { string_value: "0" } }
input { name: "INPUT0" data_type: TYPE_INT32 dims: [ 1, 16 ] }
output { name: "OUTPUT0" }
"""
CLASSIFIER = """
parameters { key: "operator" value { string_value: "reduce_average" } }
parameters { key: "axes" value { string_value: "1,2,3" } }
input { name: "input" data_type: TYPE_FP32 dims: [ -1, 299, 299, 3 ] }
output { name: "InceptionV3/Predictions/Softmax" }
"""
SECONDS = 60


def infer(client, model, name, array, datatype):
    tensor = triton.InferInput(name, array.shape, datatype)
    tensor.set_data_from_numpy(array)
    return client.infer(model, [tensor], client_timeout=SECONDS)


class ModelRepository(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory())) / "models"
        shutil.copytree(ROOT / "deploy" / "models", self.folder)

    def write(self, model, text):
        (self.folder / model).mkdir(exist_ok=True)
        (self.folder / model / "config.pbtxt").write_text(text, encoding="utf-8")

    def start(self):
        server = self.enterContext(ServerProcess(f"--model_repository={self.folder}",
                                                 device="reference"))
        return server, self.enterContext(triton.InferenceServerClient(server.address))

    def index(self, client):
        return {model.name: (model.state, model.reason)
                for model in client.get_model_repository_index().models}

    def test_the_examples(self):
        _, client = self.start()
        metadata = client.get_model_metadata("row_argmax")
        self.assertEqual([(t.name, t.datatype, list(t.shape)) for t in
                          (*metadata.inputs, *metadata.outputs)],
                         [("rows", "FP32", [-1, 1000]), ("best", "INT64", [-1, 1])])
        metadata = client.get_model_metadata("top_5")
        self.assertEqual([(t.name, t.datatype, list(t.shape)) for t in
                          (*metadata.inputs, *metadata.outputs)],
                         [("input", "FP16", [-1, -1]), ("output_values", "FP16", [-1, 5]),
                          ("output_indices", "UINT32", [-1, 5])])
        array = np.random.default_rng(1).random((7, 1000)).astype("float32")
        result = infer(client, "row_argmax", "rows", array, "FP32").as_numpy("best")
        self.assertEqual(result.dtype, np.int64)
        np.testing.assert_array_equal(result.ravel(), array.argmax(1))
        with self.assertRaises(triton.InferenceServerException) as raised:
            infer(client, "row_argmax", "rows", array[:, :9], "FP32")
        self.assertEqual(raised.exception.message(), "The input rows of row_argmax has the shape "
                         "[-1,1000], not [7,9].")

    def test_models_that_examples_of_triton_name(self):
        """The calls of those that need nothing but one operator: memory_growth_test.py, which has a
        client for each request, and grpc_client.py, which has only the stub."""
        self.write("custom_identity_int32", IDENTITY)
        self.write("densenet_onnx", CLASSIFIER)
        server, _ = self.start()
        array = np.arange(16, dtype="int32").reshape(1, 16)
        options = {"channel_args": [("grpc.max_receive_message_length", 1 << 20),
                                    ("grpc.dns_enable_srv_queries", 1)]}
        for fields in ({}, options, {"keepalive_options": triton.KeepAliveOptions()}) * 10:
            with triton.InferenceServerClient(server.address, **fields) as client:
                result = infer(client, "custom_identity_int32", "INPUT0", array, "INT32")
                np.testing.assert_array_equal(result.as_numpy("OUTPUT0"), array)

        pb = triton.service_pb2
        with grpc.insecure_channel(server.address) as channel:
            stub = triton.service_pb2_grpc.GRPCInferenceServiceStub(channel)
            self.assertTrue(stub.ServerLive(pb.ServerLiveRequest()).live)
            self.assertTrue(stub.ServerReady(pb.ServerReadyRequest()).ready)
            self.assertTrue(stub.ModelReady(pb.ModelReadyRequest(name="densenet_onnx")).ready)
            stub.ServerMetadata(pb.ServerMetadataRequest())
            config = stub.ModelConfig(pb.ModelConfigRequest(name="densenet_onnx")).config
            self.assertEqual(list(config.input[0].dims), [-1, 299, 299, 3])
            request = pb.ModelInferRequest(model_name="densenet_onnx", id="an id")
            request.inputs.add(name="input", datatype="FP32", shape=[1, 299, 299, 3])
            request.outputs.add(name="InceptionV3/Predictions/Softmax")
            request.raw_input_contents.append(np.full(299 * 299 * 3, 7, "float32").tobytes())
            response = stub.ModelInfer(request, timeout=SECONDS)
        self.assertEqual((response.id, response.outputs[0].name),
                         ("an id", "InceptionV3/Predictions/Softmax"))
        self.assertEqual(np.frombuffer(response.raw_output_contents[0], "float32"), [7])

    def test_errors_name_file_and_field_and_leave_the_others(self):
        cases = {
            "unknown_operator": (CONFIG.format(operator="argh"), "parameters.operator",
                                 'parameters.operator ("argh") is none of the built-in models of '
                                 "this server."),
            "no_input": ('parameters { key: "operator" value { string_value: "argmax" } }',
                         "input", "input has 0 tensors; argmax takes 1."),
            "bad_axis": (CONFIG.format(operator="argmax").replace('"1"', '"2"'), "parameters.axes",
                         'parameters.axes ("2") has axis 2, but the first input has 2 dimensions: '
                         "axes are -2 to 1."),
            "bad_size": (CONFIG.format(operator="argmax").replace("3 ]", "0 ]"), "input[0].dims[1]",
                         "input[0].dims[1] (0) is neither -1, for any size, nor at least 1 and at "
                         "most 4294967295."),
            "bad_output": (CONFIG.format(operator="reduce_sum") +
                           "output { data_type: TYPE_INT64 }", "output[0].data_type",
                           "output[0].data_type is TYPE_INT64; the operator gives INT32."),
            "two_names": (CONFIG.format(operator="top_k") + K +
                          'output { name: "y" } output { name: "y" }', "output[1].name",
                          'output[1].name ("y") is that of output[0] too.'),
            "no_text": ("input [", "", None),
            "field_of_triton": (CONFIG.format(operator="argmax") + "sequence_batching { }", "",
                                "Line 5, column 19: sequence_batching is not supported by OpMill; "
                                "remove it."),
            "batches": (CONFIG.format(operator="argmax") + "dynamic_batching { }", "dynamic_batching",
                        "dynamic_batching is given; only ONNX models have batches."),
            "no_field": (CONFIG.format(operator="argmax") + "outptu { }", "",
                         'Line 5, column 8: There is no field "outptu". Did you mean output?'),
            "reduce_sum": (CONFIG.format(operator="reduce_sum"), "",
                           "reduce_sum is the name of a built-in model."),
        }
        for model, (text, _, _) in cases.items():
            self.write(model, text)
        server, client = self.start()
        index = self.index(client)
        for model, (_, field, sentence) in cases.items():
            with self.subTest(model):
                line = next(line for line in server.lines("model") if line["model"] == model)
                self.assertTrue(line["file"].endswith(f"{model}/config.pbtxt"), line)
                self.assertEqual(line.get("field", ""), field)
                if sentence is not None:
                    self.assertEqual(line["error"], sentence)
                if model != "reduce_sum":
                    self.assertEqual(index[model], ("UNAVAILABLE", line["error"]))
                    self.assertFalse(client.is_model_ready(model))
                    self.assert_not_served(client, model, line["error"])
        self.assertTrue(client.is_model_ready("row_argmax"))

    def assert_not_served(self, client, model, reason):
        for call in (lambda: infer(client, model, "x", np.zeros((2, 3), "int32"), "INT32"),
                     lambda: client.get_model_metadata(model)):
            with self.assertRaises(triton.InferenceServerException) as raised:
                call()
            self.assertEqual(raised.exception.message(),
                             f"The model {model} is not served: {reason}")

    def test_folders_without_a_configuration_are_reported(self):
        (self.folder / "no_config").mkdir()
        (self.folder / ".hidden").mkdir()
        (self.folder / "lost+found").mkdir()
        (self.folder / "pipe").mkdir()
        os.mkfifo(self.folder / "pipe" / "config.pbtxt")
        server, client = self.start()
        reasons = {"no_config": "The folder has neither config.pbtxt nor a folder of a version "
                                 "with model.onnx.",
                   "pipe": "config.pbtxt is not a regular file."}
        lines = {line["model"]: line["error"] for line in server.lines("model")}
        self.assertEqual(lines, reasons)
        index = self.index(client)
        self.assertNotIn(".hidden", index)
        self.assertNotIn("lost+found", index)
        for model, reason in reasons.items():
            self.assertEqual(index[model], ("UNAVAILABLE", reason))
            self.assert_not_served(client, model, reason)
        self.write("no_config", CONFIG.format(operator="argmax"))
        server.wait_until(lambda: client.is_model_ready("no_config"), SECONDS)
        self.assertEqual(self.index(client)["no_config"], ("READY", ""))

    def test_a_name_that_is_not_utf8_hides_no_other(self):
        name = os.fsencode(self.folder) + b"/\xff\x1b[2J"
        os.mkdir(name)
        with open(name + b"/config.pbtxt", "w", encoding="utf-8") as file:
            file.write(CONFIG.format(operator="argmax"))
        server, client = self.start()
        sentence = "The name of the folder is not UTF-8."
        line = server.lines("model")[0]
        self.assertEqual((line["model"], line["error"]), (r"\377\033[2J", sentence))
        index = self.index(client)
        self.assertEqual(index[r"\377\033[2J"], ("UNAVAILABLE", sentence))
        self.assertEqual(index["top_5"], ("READY", ""))

    def test_the_models_that_are_served_stay_when_there_are_too_many(self):
        for i in range(1022):  # and two examples
            self.write(f"m{i:04}", CONFIG.format(operator="argmax"))
        server, client = self.start()
        self.assertEqual(server.lines("models")[0]["models"], 1024)
        self.write("a", CONFIG.format(operator="argmax"))  # first by its name
        reason = "The repository has more than 1024 models."
        server.wait_until(lambda: self.index(client).get("a") == ("UNAVAILABLE", reason), SECONDS)
        self.assert_not_served(client, "a", reason)
        others = [state for name, state in self.index(client).items() if name != "a"]
        self.assertEqual(set(others), {("READY", "")})
        shutil.rmtree(self.folder / "m1000")
        server.wait_until(lambda: client.is_model_ready("a"), SECONDS)

    def test_a_repository_with_too_many_entries_is_not_read(self):
        sentence = (f'--model_repository is "{self.folder}", which has more than 4096 entries; it '
                    "must be a folder with one folder for each model.")
        server, client = self.start()
        models = self.index(client)
        for i in range(4096):
            (self.folder / f"file{i}").touch()
        line = server.wait_for(lambda line: line.get("event") == "models" and "error" in line)
        self.assertEqual((line["level"], line["error"]), ("warning", sentence))
        self.write("model", CONFIG.format(operator="argmax"))
        self.assertEqual(self.index(client), models)
        with self.assertRaisesRegex(AssertionError, re.escape(sentence)):
            self.start()
        for i in range(4096):
            (self.folder / f"file{i}").unlink()
        server.wait_until(lambda: client.is_model_ready("model"), SECONDS)

    def test_no_link_stops_the_server(self):
        (self.folder / "kernel").mkdir()
        (self.folder / "kernel" / "config.pbtxt").symlink_to("/proc/kmsg")
        server, client = self.start()
        self.assertEqual(self.index(client)["kernel"][0], "UNAVAILABLE")
        self.write("model", CONFIG.format(operator="argmax"))
        server.wait_until(lambda: client.is_model_ready("model"), SECONDS)
        server.signal(signal.SIGTERM)
        self.assertEqual(server.wait(), 0)

    def test_reads_it_again(self):
        server, client = self.start()
        array = np.array([[3, 1, 2], [5, 5, 4]], "int32")
        self.write("model", CONFIG.format(operator="argmax"))
        server.wait_until(lambda: client.is_model_ready("model"), SECONDS)
        result = infer(client, "model", "x", array, "INT32").as_numpy("output")
        np.testing.assert_array_equal(result, [[0], [0]])
        # An invalid configuration leaves the model as it was.
        self.write("model", CONFIG.format(operator="argmoss"))
        server.wait_for(lambda line: line.get("event") == "model" and "argmoss" in line["error"])
        server.wait_until(lambda: self.index(client)["model"][1] != "", SECONDS)
        infer(client, "model", "x", array, "INT32")
        self.write("model", CONFIG.format(operator="argmin"))
        server.wait_until(lambda: self.index(client)["model"] == ("READY", ""), SECONDS)
        result = infer(client, "model", "x", array, "INT32").as_numpy("output")
        np.testing.assert_array_equal(result, [[1], [2]])
        shutil.rmtree(self.folder / "model")
        server.wait_until(lambda: not client.is_model_ready("model"), SECONDS)
        self.assertTrue(client.is_model_ready("top_5"))
