"""Models through OpMill's own service: Execute, ExecuteStream, CompileOperator, ListModels."""

import pathlib
import tempfile
import unittest

import grpc
import numpy as np
import tritonclient.grpc as triton

import api
import onnx_model
from api import Refusal, Stream, sv, ts
from server_process import ServerProcess
from test_shared_memory import Segment

# pylint: disable=wrong-import-order,import-error
from opmill.v1 import model_pb2 as md

SECONDS = 60
TYPES = {"float32": ts.DATA_TYPE_FLOAT32, "int64": ts.DATA_TYPE_INT64, "bool": ts.DATA_TYPE_UINT8,
         "int32": ts.DATA_TYPE_INT32}
DTYPES = {ts.DATA_TYPE_FLOAT32: np.float32, ts.DATA_TYPE_UINT8: np.uint8,
          ts.DATA_TYPE_UINT32: np.uint32}


def desc_of(array, **fields):
    return ts.TensorDesc(data_type=TYPES[array.dtype.name], sizes=array.shape, **fields)


def described(name, feeds, values=(), version=""):
    """The model with these inputs; those named in `values` as values."""
    inputs = [md.ModelInput(name=key, tensor=desc_of(array),
                            value=array.tobytes() if key in values else b"")
              for key, array in feeds.items()]
    return md.ModelDesc(name=name, version=version, inputs=inputs)


def arrays_of(outcome):
    arrays = {}
    for i, output in enumerate(outcome.started.model_outputs):
        array = np.frombuffer(outcome.output(i), DTYPES[output.data_type]).reshape(output.sizes)
        arrays[output.name] = array.astype(bool) if output.is_bool else array
    return arrays


def feeds_for(count, shape=None):
    x = np.random.default_rng(count).standard_normal((count, 6), np.float32)
    shape = np.array(shape or (6, count), np.int64)
    return {"x": x, "offset": np.arange(6, dtype=np.float32), "shape": shape}


def infos_of(stub, **fields):
    return list(stub.ListModels(sv.ListModelsRequest(**fields), timeout=SECONDS).models)


class Models(unittest.TestCase):
    device = "cpu"

    @classmethod
    def setUpClass(cls):
        cls.repository = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        onnx_model.write_model(cls.repository, version=3)
        onnx_model.write_model(cls.repository, "filled", model=onnx_model.filled_model())
        onnx_model.write_config(cls.repository)
        onnx_model.write_config(cls.repository, "broken", 'backend: "other"')
        cls.server = cls.enterClassContext(ServerProcess(
            f"--model_repository={cls.repository}", "--shared_memory=on", device=cls.device))
        cls.stub = api.stub_of(cls.enterClassContext(api.connect(cls.server.address)))

    def tearDown(self):
        api.wait_until_idle(self.stub)

    def execute(self, model, inputs, **fields):
        outcome = api.Outcome()
        request = sv.ExecuteRequest(model=model, inputs=inputs, **fields)
        for message in self.stub.Execute(request, timeout=SECONDS):
            outcome.add(message)
        return outcome

    def made(self, feeds, **options):
        inputs = [array.tobytes() for name, array in feeds.items() if name != "shape"]
        return self.execute(described("made", feeds, ("shape",), **options), inputs)

    def check(self, arrays, feeds):
        wanted = onnx_model.expected(**feeds)
        self.assertEqual(list(arrays), list(wanted))
        for name, array in wanted.items():
            self.assertEqual((arrays[name].shape, arrays[name].dtype), (array.shape, array.dtype))
            np.testing.assert_allclose(arrays[name], array, rtol=1e-5)

    def refused(self, model, inputs=(), **fields):
        with self.assertRaises(grpc.RpcError) as raised:
            self.execute(model, inputs, **fields)
        return Refusal.of_error(raised.exception)

    def test_execute(self):
        for count in (1, 7, 1000):
            feeds = feeds_for(count)
            outcome = self.made(feeds)
            self.check(arrays_of(outcome), feeds)
            self.assertEqual(outcome.started.model_version, "3")
            self.assertEqual([list(output.sizes) for output in outcome.started.outputs],
                             [[6, count], [count, 6], []])
        feeds = feeds_for(4, (3, 8))
        self.check(arrays_of(self.made(feeds, version="3")), feeds)

    def test_inputs_by_name_in_any_order_or_in_that_of_the_model(self):
        feeds = feeds_for(5)
        swapped = {name: feeds[name] for name in ("offset", "shape", "x")}
        self.check(arrays_of(self.made(swapped)), feeds)
        model = described("made", feeds, ("shape",))
        for each in model.inputs:
            each.name = ""
        self.check(arrays_of(self.execute(model, [feeds["x"].tobytes(), feeds["offset"].tobytes()])),
                   feeds)

    def test_a_model_with_fixed_attributes(self):
        scores = np.random.default_rng(1).standard_normal((3, 9), np.float32)
        arrays = arrays_of(self.execute(described("best", {"scores": scores}), [scores.tobytes()]))
        np.testing.assert_array_equal(arrays["places"], np.argsort(-scores, 1)[:, :2])
        np.testing.assert_array_equal(arrays["values"], -np.sort(-scores, 1)[:, :2])
        self.assertEqual(arrays["places"].dtype, np.uint32)

    def test_shared_memory(self):
        feeds = feeds_for(300)
        with Segment(1 << 16) as segment:
            segment.write(feeds["x"].tobytes(), 64)
            outcome = self.execute(
                described("made", feeds, ("shape",)), [feeds["offset"].tobytes()],
                shared_inputs=[segment.range(feeds["x"].nbytes, 64), sv.SharedMemoryRange(),
                               sv.SharedMemoryRange()],
                shared_outputs=[segment.range(7200, 8192), segment.range(1800, 16384),
                                segment.range(4, 20480)])
            self.assertEqual(outcome.outputs, {})
            wanted = onnx_model.expected(**feeds)
            np.testing.assert_allclose(
                np.frombuffer(segment.read(7200, 8192), np.float32).reshape(6, 300), wanted["y"],
                rtol=1e-5)
            self.assertEqual(segment.read(1800, 16384), wanted["positive"].tobytes())
            refusal = self.refused(
                described("made", feeds, ("shape",)), [feeds["offset"].tobytes()],
                shared_inputs=[segment.range(feeds["x"].nbytes, 64), sv.SharedMemoryRange(),
                               segment.range(16)])
            self.assertEqual((refusal.fields, refusal.sentence), (
                ["shared_inputs[2]"], "shared_inputs[2] is given, but this input has a value."))

    def test_streams(self):
        stream = Stream(self.stub)
        cases = {i: feeds_for(10 * i) for i in range(1, 6)}
        for i, feeds in cases.items():
            order = {name: feeds[name] for name in ("shape", "offset", "x")}
            stream.send(i, begin=sv.BeginExecution(model=described("made", order, ("shape",))))
        for i, feeds in cases.items():
            data = feeds["x"].tobytes()
            stream.send(i, [(2, 0, data[:100]), (1, 0, feeds["offset"].tobytes()),
                            (2, 100, data[100:])])
        scores = np.ones((2, 4), np.float32)
        stream.send(9, [(0, 0, scores.tobytes())],
                    begin=sv.BeginExecution(model=described("best", {"scores": scores})))
        feeds = feeds_for(3)
        made = described("made", feeds, ("shape",))
        stream.send(20, [(2, 0, b"12345678")], begin=sv.BeginExecution(model=made))
        stream.send(21, [(3, 0, b"12345678")], begin=sv.BeginExecution(model=made))
        stream.send(22, begin=sv.BeginExecution(model=md.ModelDesc(name="made", version="8")))
        ends = stream.rest()
        for i, feeds in cases.items():
            self.check(arrays_of(ends[i]), feeds)
        self.assertEqual(arrays_of(ends[9])["places"].tolist(), [[0, 1], [0, 1]])
        for i, field, sentence in (
                (20, "chunks[0].tensor_index", "chunks[0].tensor_index (2) is an input that has a value."),
                (21, "chunks[0].tensor_index",
                 "chunks[0].tensor_index (3) is not below the number of inputs (3) of made."),
                (22, "begin.model.version", 'The model made has the version 3, not "8".')):
            refusal = Refusal.of(ends[i].status)
            self.assertEqual((refusal.fields, refusal.sentence), ([field], sentence))

    def test_a_program_without_inputs(self):
        shape = np.array([2, 3])
        model = described("filled", {"shape": shape}, ("shape",))
        self.assertEqual(arrays_of(self.execute(model, []))["y"].tolist(), [[0] * 3] * 2)
        stream = Stream(self.stub)
        for i in range(1, 20):
            stream.send(i, begin=sv.BeginExecution(model=model), end_of_inputs=i % 2 == 0)
        for outcome in stream.rest().values():
            self.assertEqual(arrays_of(outcome)["y"].tolist(), [[0] * 3] * 2)
        with triton.InferenceServerClient(self.server.address) as client:
            tensor = triton.InferInput("shape", [2], "INT64")
            tensor.set_data_from_numpy(shape)
            result = client.infer("filled", [tensor], client_timeout=SECONDS)
            self.assertEqual(result.as_numpy("y").tolist(), [[0] * 3] * 2)

    def test_compile(self):
        feeds = feeds_for(8)
        request = sv.CompileOperatorRequest(model=described("made", feeds, ("shape",)))
        answer = self.stub.CompileOperator(request, timeout=SECONDS)
        self.assertEqual((answer.key, answer.model_version, answer.input_bytes), ("", "3", 216))
        self.assertEqual(list(answer.each_input_bytes), [192, 24, 0])
        self.assertEqual(list(answer.output_bytes), [192, 48, 4])
        self.assertEqual([(each.name, list(each.sizes), each.is_bool) for each in answer.model_outputs],
                         [("y", [6, 8], False), ("positive", [8, 6], True), ("total", [], False)])
        self.assertTrue(self.stub.CompileOperator(request, timeout=SECONDS).was_cached)
        self.assertTrue(self.made(feeds).statistics.was_cached)

    def test_list(self):
        best, broken, filled, made = infos_of(self.stub)
        self.assertEqual([(info.name, info.version, info.ready)
                          for info in (best, broken, filled, made)],
                         [("best", "1", True), ("broken", "", False), ("filled", "1", True),
                          ("made", "3", True)])
        self.assertEqual(broken.reason, 'backend ("other") is not "opmill".')
        self.assertEqual(
            [(each.name, each.data_type, list(each.sizes), each.is_bool, each.needs_value)
             for each in (*made.inputs, *made.outputs)],
            [("x", ts.DATA_TYPE_FLOAT32, [-1, 6], False, False),
             ("offset", ts.DATA_TYPE_FLOAT32, [6], False, False),
             ("shape", ts.DATA_TYPE_INT64, [2], False, True),
             ("y", ts.DATA_TYPE_FLOAT32, [-1, -1], False, False),
             ("positive", ts.DATA_TYPE_UINT8, [-1, 6], True, False),
             ("total", ts.DATA_TYPE_FLOAT32, [], False, False)])
        self.assertEqual(infos_of(self.stub, name="made"), [made])
        self.assertEqual(infos_of(self.stub, name="broken"), [broken])
        for name in ("nothing", "argmax"):
            with self.assertRaises(grpc.RpcError) as raised:
                infos_of(self.stub, name=name)
            refusal = Refusal.of_error(raised.exception)
            self.assertEqual((refusal.code, refusal.fields), (grpc.StatusCode.NOT_FOUND, ["name"]))

    def test_statistics(self):
        def counts():
            statistics = self.stub.GetStatistics(sv.GetStatisticsRequest(), timeout=SECONDS)
            return {each.model: (each.succeeded, each.failed) for each in statistics.models}

        succeeded, failed = counts().get("made", (0, 0))
        self.made(feeds_for(2))
        self.assertEqual(counts()["made"], (succeeded + 1, failed))
        self.refused(described("made", {"x": feeds_for(2)["x"]}))
        self.assertEqual(counts()["made"], (succeeded + 1, failed + 1))
        stream = Stream(self.stub)
        feeds = feeds_for(2)
        stream.send(1, [(0, 0, feeds["x"].tobytes()), (1, 0, feeds["offset"].tobytes())],
                    begin=sv.BeginExecution(model=described("made", feeds, ("shape",))))
        stream.send(2, begin=sv.BeginExecution(model=described("made", feeds, ("shape",))))
        stream.send(3, begin=sv.BeginExecution(model=md.ModelDesc(name="made")))
        stream.rest()
        self.assertEqual(counts()["made"], (succeeded + 2, failed + 3))
        self.assertEqual(self.server.lines("execute")[-1]["operator"], "model made version 3")

    def test_refusals(self):
        feeds = feeds_for(2)
        x, offset, shape = feeds.values()
        good = described("made", feeds, ("shape",))
        inputs = [x.tobytes(), offset.tobytes()]

        def changed(change):
            model = md.ModelDesc()
            model.CopyFrom(good)
            change(model)
            return model

        def change(**fields):
            def apply(model):
                for path, value in fields.items():
                    if isinstance(value, np.ndarray):
                        model.inputs[0].tensor.CopyFrom(desc_of(value))
                    else:
                        setattr(model.inputs[0], path, value)
            return changed(apply)

        operator = {"operator": api.op.OperatorDesc(hardmax=api.op.HardmaxDesc())}
        for model, sent, fields, field, sentence in (
                (md.ModelDesc(name="nothing"), [], {}, "model.name",
                 'There is no model "nothing"; RepositoryIndex and ListModels list the models.'),
                (md.ModelDesc(name="argmax"), [], {}, "model.name",
                 "argmax is an operator of this server, not a model of its repository."),
                (md.ModelDesc(name="broken"), [], {}, "model.name",
                 'The model broken is not served: backend ("other") is not "opmill".'),
                (described("made", feeds, version="8"), [], {}, "model.version",
                 'The model made has the version 3, not "8".'),
                (good, inputs, operator, "model",
                 "model is given beside operator or feature_level; a model has neither."),
                (good, inputs, {"feature_level": 20480}, "model",
                 "model is given beside operator or feature_level; a model has neither."),
                (described("made", {"x": x}), inputs, {}, "model.inputs",
                 "inputs has 1 tensors; made takes 3: x, offset, shape."),
                (change(name="y"), inputs, {}, "model.inputs[0].name",
                 'inputs[0].name ("y") is not an input of made, which takes x, offset, shape.'),
                (changed(lambda m: setattr(m.inputs[1], "name", "x")), inputs, {},
                 "model.inputs[1].name", 'inputs[1].name ("x") is given twice.'),
                (change(name=""), inputs, {}, "model.inputs[1].name",
                 "inputs[1].name is given; either all inputs have a name, or none."),
                (change(tensor=x[:, :5]), inputs, {}, "model.inputs[0].tensor.sizes",
                 "The input x of made has the sizes [-1,6], not [2,5]."),
                (change(tensor=x[:0]), inputs, {}, "model.inputs[0].tensor.sizes[0]",
                 "inputs[0].tensor.sizes[0] (0) is not at least 1."),
                (change(tensor=x.astype(np.int32)), inputs, {}, "model.inputs[0].tensor.data_type",
                 "The input x of made is FLOAT32, not INT32."),
                (changed(lambda m: m.inputs[0].tensor.sizes.extend([1] * 2000)), inputs, {},
                 "model.inputs[0].tensor.sizes", "inputs[0].tensor.sizes has 2002 numbers; the limit is 8."),
                (changed(lambda m: m.inputs[0].tensor.strides.extend([1, 2])), inputs, {},
                 "model.inputs[0].tensor.strides",
                 "inputs[0].tensor.strides is [1,2]; models take packed tensors, which need none."),
                (changed(lambda m: m.inputs[0].ClearField("tensor")), inputs, {},
                 "model.inputs[0].tensor.data_type", "inputs[0].tensor.data_type is not given."),
                (change(value=b"1"), inputs, {}, "model.inputs[0].value",
                 "inputs[0].value is given, but no size of made depends on the elements of the input x."),
                (described("made", feeds), inputs, {}, "model.inputs[2].value",
                 "inputs[2].value has 0 bytes; INT64[2] takes 16. The model depends on the elements of "
                 "the input shape."),
                (described("made", feeds | {"shape": np.array([5, 5])}, ("shape",)), inputs, {},
                 "model.inputs", None),
                (good, inputs[:1], {}, "inputs", "inputs has 1 tensors; made takes 2."),
                (good, [inputs[0][1:], inputs[1]], {}, "inputs[0]",
                 "inputs[0] has 47 bytes; FLOAT32[2,6] takes 48."),
        ):
            with self.subTest(field=field, sentence=sentence):
                refusal = self.refused(model, sent, **fields)
                self.assertEqual(refusal.fields, [field])
                if sentence is not None:
                    self.assertEqual(refusal.sentence, sentence)
        many = np.zeros((2, 1), np.float32)
        refusal = self.refused(described("best", {"scores": many}), [many.tobytes()])
        self.assertEqual((refusal.fields, refusal.sentence), (
            ["model.inputs"], "k (2) is larger than the size (1) of axis (1)."))


class ModelsOnSoftware(Models):
    device = "software"


if __name__ == "__main__":
    unittest.main()
