"""What becomes of a model: ExplainModel, and `opmill explain`."""

import json
import pathlib
import re
import subprocess
import tempfile
import unittest
import xml.etree.ElementTree as xml

import grpc
import numpy as np

import api
import onnx_model
from api import Refusal, sv, ts
from server_process import CLI, DriverFaults, ServerProcess, plain_environment
from test_inline_models import digest

# pylint: disable=wrong-import-order,import-error
from opmill.v1 import model_pb2 as md

SECONDS = 60
FLOAT, INT64 = ts.DATA_TYPE_FLOAT32, ts.DATA_TYPE_INT64
FILE = onnx_model.made_model()
SVG = "{http://www.w3.org/2000/svg}"


def inputs_for(count, **changes):
    shape = np.array((6, count), np.int64)
    inputs = {"x": {"tensor": ts.TensorDesc(data_type=FLOAT, sizes=(count, 6))},
              "offset": {"tensor": ts.TensorDesc(data_type=FLOAT, sizes=(6,))},
              "shape": {"tensor": ts.TensorDesc(data_type=INT64, sizes=(2,)), "value": shape.tobytes()}}
    return [md.ModelInput(name=name, **fields) for name, fields in (inputs | changes).items()]


def made(count=4, **fields):
    return md.ModelDesc(**({"name": "made", "inputs": inputs_for(count)} | fields))


def seconds_of(duration):
    return duration.ToNanoseconds() / 1e9


def explain_command(server, *arguments, folder=None):
    return subprocess.run([CLI, "explain", *arguments], capture_output=True, text=True, check=False,
                          cwd=folder, timeout=60,
                          env=plain_environment() | {"OPMILL_SERVER": server.address})


def fates_of(answer):
    fate = sv.ExplainedNode.Fate
    return [(node.operator, fate.Name(node.fate), list(node.steps)) for node in answer.nodes]


class ExplainModel(unittest.TestCase):
    def start(self, *flags, device="cpu", environment=None):
        repository = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        onnx_model.write_model(repository, version=3)
        onnx_model.write_model(repository, "filled", model=onnx_model.filled_model())
        onnx_model.write_config(repository)
        self.server = self.enterContext(
            ServerProcess(f"--model_repository={repository}", *flags, device=device, environment=environment))
        self.stub = api.stub_of(self.enterContext(api.connect(self.server.address)))
        self.addCleanup(api.wait_until_idle, self.stub)

    def explain(self, model, timeout=SECONDS, **fields):
        return self.stub.ExplainModel(sv.ExplainModelRequest(model=model, **fields), timeout=timeout)

    def refused(self, model, **fields):
        with self.assertRaises(grpc.RpcError) as raised:
            self.explain(model, **fields)
        return Refusal.of_error(raised.exception)

    def statistics(self):
        return self.stub.GetStatistics(sv.GetStatisticsRequest(), timeout=SECONDS)

    def test_nodes_and_steps_on_all_devices(self):
        for device in ("cpu", "reference", "software"):
            with self.subTest(device):
                self.start(device=device)
                answer = self.explain(made(), run=True)
                self.assertEqual(fates_of(answer),
                                 [("Mul", "FATE_STEP", [0]), ("Add", "FATE_FUSED", [0]), ("Relu", "FATE_FUSED", [0]),
                                  ("Reshape", "FATE_VIEW", []), ("Greater", "FATE_STEP", [1]),
                                  ("ReduceSum", "FATE_STEP", [2])])
                self.assertEqual([list(step.nodes) for step in answer.steps], [[0, 1, 2], [4], [5]])
                self.assertEqual([list(step.inputs) for step in answer.steps], [[], [], [0]])
                # x, offset and the scale, x and zero, the result; the result, truth values, the sum.
                self.assertEqual([(step.read_bytes, step.written_bytes) for step in answer.steps],
                                 [(96 + 24 + 4, 96), (96 + 4, 24), (96, 4)])
                self.assertEqual((answer.unfused_steps, answer.model_version), (5, "3"))
                self.assertEqual(answer.unfused_bytes, 100 + 96 + 120 + 96 + 96 + 96 + 100 + 24 + 96 + 4)
                self.assertGreaterEqual(answer.arena_bytes, answer.live_bytes)
                self.assertTrue(answer.HasField("statistics"))
                self.assertEqual([step.HasField("duration") for step in answer.steps], [True] * 3)
                self.assertEqual(answer.threads > 0, device != "software")
                # Every part has something to do.
                self.assertTrue(all(phase > 0 for step in answer.steps for phase in step.phases))

    def test_times_of_steps_by_the_clock_of_the_device(self):
        self.start(device="software")
        for _ in range(2):  # the first run is cut into short parts
            answer = self.explain(made(100_000), run=True)
            times = [seconds_of(step.duration) for step in answer.steps]
            self.assertTrue(all(time > 0 for time in times), times)
            self.assertLessEqual(sum(times), seconds_of(answer.statistics.compute))

    def test_the_command_on_a_device_with_a_clock(self):
        self.start(device="software")
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        arguments = ("made", "--input=x=400,6", "--input=shape:=6,400", f"--svg={folder / 'made.svg'}")
        text = explain_command(self.server, *arguments).stdout
        self.assertEqual(text.split("\n")[0].split(),
                         "step time share read written nodes first node computes".split())
        self.assertRegex(text, r"The run took \S+ \w+, all steps together \S+ \w+ by the device's clock\.\n$")
        picture = (folder / "made.svg").read_text()
        self.assertRegex(picture, r"step 0, \S+ \w+, \S+%")
        self.assertIn("The stronger the colour of a step, the more of the time it takes.", picture)
        answer = json.loads(explain_command(self.server, *arguments, "--json").stdout)
        self.assertTrue(all(float(step["duration"].rstrip("s")) > 0 for step in answer["steps"]))

    def test_a_device_without_a_clock(self):
        faults = DriverFaults(self.enterContext(tempfile.TemporaryDirectory()))
        faults.begin("no_clock")
        self.start(device="software", environment=faults.environment)
        answer = self.explain(made(), run=True)
        self.assertEqual([step.HasField("duration") for step in answer.steps], [False] * 3)
        self.assertEqual(answer.threads, 0)
        self.assertGreater(seconds_of(answer.statistics.compute), 0)
        text = explain_command(self.server, "made", "--input=x=4,6", "--input=shape:=3,8", "--runs=2").stdout
        self.assertRegex(text, r"The run took \S+ \w+, and the device does not measure single steps\.\n$")
        self.assertEqual(text.split("\n")[0].split(), "step share read written nodes first node computes".split())

    def test_the_loss_of_the_device(self):
        faults = DriverFaults(self.enterContext(tempfile.TemporaryDirectory()))
        self.start(device="software", environment=faults.environment)
        self.explain(made())
        faults.begin("lose_device")
        refusal = self.refused(made(), run=True)
        self.assertEqual(refusal.code, grpc.StatusCode.UNAVAILABLE, refusal)
        self.server.wait_for(lambda line: line["event"] == "device_back")
        self.assertTrue(self.explain(made(), run=True).steps[0].HasField("duration"))

    def test_without_a_run(self):
        self.start()
        answer = self.explain(made())
        self.assertFalse(answer.HasField("statistics"))
        self.assertFalse(answer.was_cached)
        self.assertEqual((len(answer.nodes), len(answer.steps), answer.threads), (6, 3, 0))
        self.assertTrue(self.explain(made(), run=True).was_cached)

    def test_it_is_an_execution_of_its_caller(self):
        self.start()
        for _ in range(3):
            self.explain(made(), run=True)
        self.explain(made())
        statistics = self.statistics()
        [counts] = statistics.models
        self.assertEqual((counts.model, counts.succeeded, counts.failed), ("made", 3, 0))
        [caller] = statistics.callers
        self.assertEqual((caller.caller, caller.succeeded), ("address", 3))
        self.server.wait_for(lambda line: (line["event"], line.get("rpc")) == ("execute", "ExplainModel"))
        self.start("--caller_limits=rate=1")
        self.explain(made(), run=True)
        refusals = []
        for _ in range(5):
            try:
                self.explain(made(), run=True)
            except grpc.RpcError as error:
                refusals.append(Refusal.of_error(error))
        self.assertTrue(refusals)
        self.assertEqual({refusal.code for refusal in refusals}, {grpc.StatusCode.RESOURCE_EXHAUSTED})

    def test_a_file(self):
        self.start()
        model = made(name="", sha256=digest(FILE))
        refusal = self.refused(model, run=True)
        self.assertEqual((refusal.code, refusal.reason), (grpc.StatusCode.NOT_FOUND, "MODEL_FILE_NEEDED"))
        answer = self.explain(model, run=True, model_file=FILE)
        self.assertEqual(len(answer.nodes), 6)
        self.assertEqual(fates_of(self.explain(model, run=True)), fates_of(answer))

    def test_models_without_nodes_or_inputs(self):
        self.start()
        sizes = ts.TensorDesc(data_type=FLOAT, sizes=(3, 9))
        answer = self.explain(md.ModelDesc(name="best", inputs=[md.ModelInput(tensor=sizes)]), run=True)
        self.assertEqual((len(answer.nodes), len(answer.steps)), (0, 1))
        shape = md.ModelInput(tensor=ts.TensorDesc(data_type=INT64, sizes=(2,)), value=np.array([2, 3]).tobytes())
        answer = self.explain(md.ModelDesc(name="filled", inputs=[shape]), run=True)
        self.assertEqual([node.operator for node in answer.nodes], ["ConstantOfShape"])
        self.assertTrue(answer.HasField("statistics"))

    def test_refusals(self):
        self.start()
        wide = {"tensor": ts.TensorDesc(data_type=FLOAT, sizes=(4, 7))}
        huge = {"tensor": ts.TensorDesc(data_type=FLOAT, sizes=(700_000_000, 6))}
        valued = {"tensor": ts.TensorDesc(data_type=FLOAT, sizes=(6,)), "value": b"1234"}
        five = {"tensor": ts.TensorDesc(data_type=INT64, sizes=(2,)), "value": np.array([5, 5]).tobytes()}
        code = grpc.StatusCode
        for model, status, field in (
                (md.ModelDesc(name="maed"), code.NOT_FOUND, "model.name"),
                (md.ModelDesc(), code.NOT_FOUND, "model.name"),
                (None, code.NOT_FOUND, "model.name"),
                (made(version="9"), code.NOT_FOUND, "model.version"),
                (made(sha256="ABC", name=""), code.INVALID_ARGUMENT, "model.sha256"),
                (made(inputs=[]), code.INVALID_ARGUMENT, "model.inputs"),
                (made(inputs=inputs_for(4, x=wide)), code.INVALID_ARGUMENT, "model.inputs[0].tensor.sizes"),
                (made(inputs=inputs_for(4, offset=valued)), code.INVALID_ARGUMENT, "model.inputs[1].value"),
                (made(inputs=inputs_for(4, shape=five)), code.INVALID_ARGUMENT, "model.inputs")):
            for runs in (True, False):
                with self.subTest((status, field, runs)):
                    refusal = self.refused(model, run=runs)
                    self.assertEqual((refusal.code, refusal.fields), (status, [field]), refusal.sentence)
        for runs in (True, False):
            refusal = self.refused(made(inputs=inputs_for(4, x=huge)), run=runs)
            self.assertIn(refusal.code, (code.INVALID_ARGUMENT, code.RESOURCE_EXHAUSTED), refusal.sentence)
        self.assertEqual(self.refused(made(), model_file=FILE).fields, ["model_file"])
        self.assertEqual(len(self.explain(made(), run=True).nodes), 6)

    def test_deadlines(self):
        self.start(device="reference")
        with self.assertRaises(grpc.RpcError) as raised:
            self.explain(made(2_000_000), timeout=0.02, run=True)
        self.assertEqual(raised.exception.code(), grpc.StatusCode.DEADLINE_EXCEEDED)
        self.explain(made(), run=True)


class ExplainCommand(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        repository = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        onnx_model.write_model(repository, version=3)
        onnx_model.write_config(repository)
        cls.server = cls.enterClassContext(ServerProcess(f"--model_repository={repository}", device="cpu"))

    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        (self.folder / "made.onnx").write_bytes(FILE)

    def opmill(self, *arguments, code=0):
        ended = explain_command(self.server, *arguments, folder=self.folder)
        self.assertEqual(ended.returncode, code, ended.stdout + ended.stderr)
        return ended.stdout if code == 0 else ended.stderr

    def test_a_table(self):
        for model in ("made", "made.onnx"):
            text = self.opmill(model, "--input=x=4,6", "--input=shape:=3,8", "--runs=2")
            text = re.sub(r"\d+(\.\d+)? (us|ms|s)\b", "TIME", text)
            table, summary = text.split("\n\n")
            self.assertEqual(table.split("\n")[0].split(),
                             "step time share read written nodes first node computes".split())
            rows = {line.split()[0]: line for line in table.split("\n")[1:]}
            self.assertEqual(sorted(rows), ["0", "1", "2"])
            self.assertIn("124 B  96 B     Mul+Add+Relu  scaled", rows["0"])
            self.assertRegex(summary, (
                r"^6 nodes: step 3, fused 2, view 1\.\n"
                r"3 steps move 444 B; with one for each operator, 5 would move 828 B\.\n"
                r"Intermediates take \S+ \w+, of which at most \S+ \w+ are needed at the same time\.\n"
                r"(Compiling took TIME|It was compiled already)\. "
                r"The run took TIME, all steps together TIME, on \d+ threads?\.\n$"))

    def test_json(self):
        answer = json.loads(self.opmill("made", "--input=x=4,6", "--input", "shape:=3,8", "--json", "--runs=0"))
        self.assertEqual([node["fate"] for node in answer["nodes"]],
                         ["FATE_STEP", "FATE_FUSED", "FATE_FUSED", "FATE_VIEW", "FATE_STEP", "FATE_STEP"])
        self.assertNotIn("statistics", answer)

    def test_a_picture(self):
        self.opmill("made.onnx", "--input=x=4,6", "--input=shape:=3,8", "--svg=made.svg")
        picture = xml.parse(self.folder / "made.svg").getroot()
        boxes = [[float(rect.get(name)) for name in ("x", "y", "width", "height")]
                 for rect in picture.iter(f"{SVG}rect") if rect.get("class") == "box"]
        self.assertEqual(len(boxes), 3)
        for i, (x, y, width, height) in enumerate(boxes):
            self.assertLessEqual(x + width, float(picture.get("width")))
            self.assertLessEqual(y + height, float(picture.get("height")))
            for other in boxes[:i]:
                self.assertTrue(x + width <= other[0] or other[0] + other[2] <= x or
                                y + height <= other[1] or other[1] + other[3] <= y, (boxes[i], other))
        texts = [text.text for text in picture.iter(f"{SVG}text")]
        for wanted in ("Mul scaled", "Add sum", "Relu result", "Greater positive"):
            self.assertIn(wanted, texts)
        self.assertEqual(sum(path.get("class") == "line" for path in picture.iter(f"{SVG}path")), 1)

    def test_refusals(self):
        open_inputs = "leaves this open, so give it: --input x=?,6 --input shape:=INTEGERS."
        for code, sentence, arguments in (
                (2, f"made {open_inputs}", ["made"]),
                (2, f"made.onnx {open_inputs}", ["made.onnx"]),
                (2, "made leaves this open, so give it: --input shape:=INTEGERS.", ["made", "--input=x=4,6"]),
                (2, '--input: "x" is not NAME=SIZES, such as x=1,3,320,320, or NAME:=INTEGERS, such as sr:=16000.',
                 ["made", "--input=x"]),
                (2, '--input: "z" is no input: made takes x, offset, shape.', ["made", "--input=z=4"]),
                (2, "--input: The input x is given twice.", ["made", "--input=x=4,6", "--input=x=5,6"]),
                (2, "--input: [4,7] are no sizes of x float32[-1,6].", ["made", "--input=x=4,7"]),
                (2, "--input: shape int64[2] does not have 3 elements.",
                 ["made", "--input=x=4,6", "--input=shape:=1,2,3"]),
                (2, "--input: shape takes elements, because sizes depend on them: --input shape:=INTEGERS.",
                 ["made", "--input=x=4,6", "--input=shape=2"]),
                (2, "--input: x takes sizes, because the server makes its elements up: --input x=?,6.",
                 ["made", "--input=x:=4,6"]),
                (2, "--runs: 1001 is above 1000.", ["made", "--runs=1001"]),
                (2, "--model_version: It is of models of the server; files have no versions.",
                 ["made.onnx", "--model_version=1"]),
                (2, "A model is required: its name on the server, or an ONNX file.", []),
                (1, "none.onnx", ["none.onnx"]),
                (1, 'There is no operator or model "maed"', ["maed"]),
                (1, "no/made.svg cannot be written: the folder does not exist.",
                 ["made", "--input=x=4,6", "--input=shape:=3,8", "--svg=no/made.svg"])):
            with self.subTest(sentence):
                self.assertIn(sentence, self.opmill(*arguments, code=code))


if __name__ == "__main__":
    unittest.main()
