"""The Open Inference Protocol with stubs from proto/: typed contents, as KServe's client sends them,
and requests that no client library would send."""

import unittest

import grpc
import numpy as np

import api
import arrays
from api import Refusal
from server_process import ServerProcess

api.generate_stubs("inference/*.proto")

# pylint: disable=wrong-import-position,import-error,wrong-import-order
from inference import grpc_service_pb2 as pb  # noqa: E402
from inference import grpc_service_pb2_grpc  # noqa: E402

MAX_MESSAGE_BYTES = 8 << 20
CONTENTS = {"FP32": "fp32_contents", "INT64": "int64_contents", "INT32": "int_contents",
            "INT16": "int_contents", "INT8": "int_contents", "UINT64": "uint64_contents",
            "UINT32": "uint_contents", "UINT16": "uint_contents", "UINT8": "uint_contents"}


def text(value):
    return pb.InferParameter(string_param=value)


def tensor(name, datatype, shape, **contents):
    return pb.ModelInferRequest.InferInputTensor(
        name=name, datatype=datatype, shape=shape,
        contents=pb.InferTensorContents(**contents) if contents else None)


def argmax(*inputs, raw=(), **fields):
    return pb.ModelInferRequest(model_name="argmax", parameters={"axes": text("1")}, inputs=inputs,
                                raw_input_contents=raw, **fields)


class WireCase(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = cls.enterClassContext(
            ServerProcess(f"--max_message_bytes={MAX_MESSAGE_BYTES}", device="reference"))
        cls.channel = cls.enterClassContext(api.connect(cls.server.address))
        cls.stub = grpc_service_pb2_grpc.GRPCInferenceServiceStub(cls.channel)

    def infer(self, request):
        return self.stub.ModelInfer(request, timeout=api.TIMEOUT_SECONDS)

    def refused(self, request, infer=None):
        with self.assertRaises(grpc.RpcError) as raised:
            (infer or self.infer)(request)
        return Refusal.of_error(raised.exception)


class TypedContents(WireCase):
    def test_every_type_that_has_them(self):
        for dtype in arrays.ALL_TYPES:
            name = {"float32": "FP32", "float16": "FP16"}.get(dtype, dtype.upper())
            array = arrays.awkward(dtype, (30, 50), seed=5)
            request = argmax(tensor("input", name, array.shape,
                                    **{CONTENTS.get(name, "fp32_contents"): array.ravel().tolist()}))
            with self.subTest(dtype=dtype):
                if name == "FP16":
                    self.assertEqual(
                        self.refused(request).sentence,
                        "inputs[0].contents cannot hold elements of FP16; raw_input_contents can.")
                    continue
                response = self.infer(request)
                self.assertEqual(len(response.outputs[0].contents.uint_contents), 0)
                np.testing.assert_array_equal(
                    np.frombuffer(response.raw_output_contents[0], "uint32"),
                    arrays.expect_arg(array, [1], "max").ravel())

    def test_elements_that_are_not_packed(self):
        # Field 5 of the input; field 6 of the contents, one tag for each element.
        contents = b"".join(b"\x35" + np.float32(x).tobytes() for x in (3, 9, 4))
        message = argmax(tensor("input", "FP32", (1, 3))).SerializeToString()
        inner = tensor("input", "FP32", (1, 3)).SerializeToString()
        grown = inner + b"\x2a" + bytes([len(contents)]) + contents
        message = message.replace(b"\x2a" + bytes([len(inner)]) + inner,
                                  b"\x2a" + bytes([len(grown)]) + grown)
        response = self.channel.unary_unary("/inference.GRPCInferenceService/ModelInfer")(
            message, timeout=api.TIMEOUT_SECONDS)
        response = pb.ModelInferResponse.FromString(response)
        self.assertEqual(response.raw_output_contents[0], b"\1\0\0\0")

    def test_refuses_other_fields_counts_and_values(self):
        cases = [
            (tensor("input", "FP32", (1, 3), int_contents=[1, 2, 3]),
             "inputs[0].contents has int_contents, but the elements of FP32 are in fp32_contents."),
            (tensor("input", "FP32", (1, 3), fp32_contents=[1, 2]),
             "inputs[0].contents has 2 elements; the shape has 3."),
            (tensor("input", "INT8", (1, 3), int_contents=[1, -129, 3]),
             "Element 1 of inputs[0].contents (-129) is out of the range of INT8."),
            (tensor("input", "UINT16", (1, 3), uint_contents=[1, 2, 65536]),
             "Element 2 of inputs[0].contents (65536) is out of the range of UINT16."),
            (tensor("input", "INT32", (1, 3), bytes_contents=[b"1", b"2", b"3"]),
             "inputs[0].contents has bytes_contents, but the elements of INT32 are in "
             "int_contents."),
        ]
        for given, sentence in cases:
            with self.subTest(sentence):
                refusal = self.refused(argmax(given))
                self.assertEqual((refusal.sentence, refusal.fields),
                                 (sentence, ["inputs[0].contents"]))


class Attacks(WireCase):
    def test_contents_that_do_not_fit(self):
        fp32 = tensor("input", "FP32", (2, 3))
        both = tensor("input", "FP32", (1, 3), fp32_contents=[1, 2, 3])
        cases = [
            (argmax(fp32, raw=[bytes(23)]), "raw_input_contents[0]",
             "raw_input_contents[0] has 23 bytes; FP32[2,3] takes 24."),
            (argmax(fp32, raw=[bytes(25)]), "raw_input_contents[0]",
             "raw_input_contents[0] has 25 bytes; FP32[2,3] takes 24."),
            (argmax(fp32, raw=[b""]), "raw_input_contents[0]",
             "raw_input_contents[0] has 0 bytes; FP32[2,3] takes 24."),
            (argmax(fp32), "inputs[0]",
             "inputs[0] has no elements: raw_input_contents has 0 tensors, and inputs[0].contents "
             "is empty."),
            (argmax(fp32, raw=[bytes(24)] * 2), "raw_input_contents",
             "raw_input_contents has 2 tensors, but inputs has 1."),
            (argmax(both, raw=[bytes(12)]), "inputs[0].contents",
             "inputs[0].contents is given beside raw_input_contents; a request has one or the "
             "other."),
            (argmax(fp32, fp32, raw=[bytes(24)] * 2), "inputs",
             "inputs has 2 tensors; argmax takes 1: input."),
            (argmax(), "inputs", "inputs has 0 tensors; argmax takes 1: input."),
        ]
        for request, field, sentence in cases:
            with self.subTest(sentence):
                refusal = self.refused(request)
                self.assertEqual((refusal.code, refusal.fields, refusal.sentence),
                                 (grpc.StatusCode.INVALID_ARGUMENT, [field], sentence))

    def test_shapes_that_lie(self):
        for shape in ((2, 0), (2, -3), (-1, -1), (1 << 40, 1), (1 << 31, 1 << 31),
                      (1 << 32, 1 << 32), (-(1 << 63), 1), ((1 << 63) - 1, (1 << 63) - 1),
                      (65536,) * 4, (1,) * 9, (2,) * 100_000, ()):
            with self.subTest(shape=shape[:4]):
                refusal = self.refused(argmax(tensor("input", "FP32", shape), raw=[bytes(24)]))
                self.assertEqual(refusal.code, grpc.StatusCode.INVALID_ARGUMENT)
                self.assertTrue(refusal.sentence.endswith("."), refusal.sentence)

    def test_names_the_field_in_the_words_of_the_protocol(self):
        refusal = self.refused(argmax(tensor("input", "FP32", (2, 0)), raw=[b""]))
        self.assertEqual(refusal.fields, ["inputs[0].shape[1]"])
        refusal = self.refused(argmax(tensor("input", "BYTES", (2, 1)), raw=[b""]))
        self.assertEqual(refusal.fields, ["inputs[0].datatype"])
        request = argmax(tensor("input", "INT8", (2, 1)), raw=[bytes(2)])
        request.model_name = "reduce_average"
        refusal = self.refused(request)
        self.assertEqual(refusal.fields, ["inputs[0].datatype"])

    def test_a_great_many_parameters_inputs_and_outputs(self):
        fp32 = tensor("input", "FP32", (1, 3))
        many = {f"parameter_{i}": text("x") for i in range(20_000)}
        requests = [
            pb.ModelInferRequest(model_name="argmax", parameters=many, inputs=[fp32],
                                 raw_input_contents=[bytes(12)]),
            argmax(*[fp32] * 4000, raw=[bytes(12)] * 4000),
            argmax(*[fp32] * 100_000),
            argmax(fp32, raw=[b""] * 100_000),
            argmax(fp32, raw=[bytes(12)],
                   outputs=[pb.ModelInferRequest.InferRequestedOutputTensor(name="output")] * 9000),
            argmax(fp32, raw=[bytes(12)], id="x" * (2 << 20)),
            argmax(tensor("x" * (2 << 20), "FP32", (1, 3)), raw=[bytes(12)]),
        ]
        for index, request in enumerate(requests):
            with self.subTest(index):
                self.assertEqual(self.refused(request).code, grpc.StatusCode.INVALID_ARGUMENT)

    def test_parameters_of_tensors(self):
        request = argmax(tensor("input", "FP32", (1, 3)), raw=[bytes(12)])
        request.inputs[0].parameters["colour"].string_param = "red"
        self.assertEqual(self.refused(request).sentence,
                         'inputs[0].parameters.colour ("red") is not a parameter that this server '
                         "knows.")

    def test_texts_that_no_sentence_can_hold(self):
        """Those in a refusal are shortened and escaped: it must fit into the headers of an answer."""
        long, evil = "ä" * 100_000, "\x1b[31m\r\n"
        fp32 = tensor("input", "FP32", (1, 3))
        for word in (long, evil):
            requests = [
                pb.ModelInferRequest(model_name=word), argmax(fp32, model_version=word),
                argmax(tensor(word, "FP32", (1, 3)), raw=[bytes(12)]),
                argmax(tensor("input", word, (1, 3)), raw=[bytes(12)]),
                argmax(fp32, raw=[bytes(12)],
                       outputs=[pb.ModelInferRequest.InferRequestedOutputTensor(name=word)])]
            for parameter in (word, "axes", "direction", "index_type", "feature_level", "priority",
                              "timeout"):
                requests.append(argmax(fp32, raw=[bytes(12)]))
                requests[-1].parameters[parameter].string_param = word
            for name in (word, "shared_memory_region", "shared_memory_offset"):
                requests.append(argmax(fp32, raw=[bytes(12)]))
                requests[-1].inputs[0].parameters["shared_memory_byte_size"].int64_param = 12
                requests[-1].inputs[0].parameters[name].string_param = word
            for index, request in enumerate(requests):
                with self.subTest(index=index, word=word[:3]):
                    refusal = self.refused(request)
                    self.assertIn(refusal.code, (grpc.StatusCode.INVALID_ARGUMENT,
                                                 grpc.StatusCode.NOT_FOUND))
                    self.assertLess(len(refusal.sentence), 1000)
                    self.assertTrue(refusal.sentence.isprintable(), refusal.sentence)
                    self.assertEqual(len(refusal.fields), 1)
                    self.assertLess(len(refusal.fields[0]), 200)

    def test_what_is_no_priority_and_no_timeout(self):
        for name, value, sentence in (
                ("priority", pb.InferParameter(int64_param=-1),
                 'parameters.priority ("-1") is not an integer of at least 0.'),
                ("priority", text("high"),
                 'parameters.priority ("high") is not an integer of at least 0.'),
                ("timeout", pb.InferParameter(uint64_param=(1 << 64) - 1),
                 'parameters.timeout ("18446744073709551615") is not a positive number of '
                 "microseconds.")):
            with self.subTest(sentence):
                request = argmax(tensor("input", "FP32", (1, 3)), raw=[bytes(12)])
                request.parameters[name].CopyFrom(value)
                refusal = self.refused(request)
                self.assertEqual((refusal.sentence, refusal.fields),
                                 (sentence, [f"parameters.{name}"]))
        request = argmax(tensor("input", "FP32", (1, 3)), raw=[bytes(12)])
        for value in (0, 1, 1 << 31, (1 << 64) - 1):
            request.parameters["priority"].uint64_param = value
            self.infer(request)

    def test_bytes_that_are_no_message(self):
        call = self.channel.unary_unary("/inference.GRPCInferenceService/ModelInfer")
        good = argmax(tensor("input", "FP32", (1, 3)), raw=[bytes(12)]).SerializeToString()
        for message in (b"\xff" * 40, good[:-1], b"\x2a\xff\xff\xff\xff\x0f", b"\x2a\x05\x2a\x7f",
                        b"\x3a\x7f"):
            with self.subTest(message=message[:8]):
                refusal = self.refused(message, lambda m: call(m, timeout=api.TIMEOUT_SECONDS))
                self.assertEqual(refusal.code, grpc.StatusCode.INVALID_ARGUMENT)

    def test_a_stream_ends_with_its_caller(self):
        requests = [argmax(tensor("input", "FP32", (1, 3)), raw=[bytes(12)])] * 5
        answers = list(self.stub.ModelStreamInfer(iter(requests), timeout=api.TIMEOUT_SECONDS))
        self.assertEqual([answer.error_message for answer in answers], [""] * 5)
        call = self.stub.ModelStreamInfer(iter(requests), timeout=api.TIMEOUT_SECONDS)
        next(call)
        call.cancel()
        api.wait_until_idle(api.stub_of(self.channel))
