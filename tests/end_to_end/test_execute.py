"""Unary calls from grpcio: every operator, the errors' details, limits, deadlines, cancellation."""

import re
import unittest

import grpc
import numpy as np

import api
import arrays
from api import Refusal, op, sv, ts
from server_process import ServerProcess

MAX_MESSAGE_BYTES = 8 << 20
SOME_TYPES = ("float32", "float16", "int64", "uint8")  # test_numpy_files goes through all


class UnaryCase(unittest.TestCase):
    flags = [f"--max_message_bytes={MAX_MESSAGE_BYTES}"]
    device = "software"

    @classmethod
    def setUpClass(cls):
        cls.server = cls.enterClassContext(ServerProcess(*cls.flags, device=cls.device))
        cls.channel = cls.enterClassContext(api.connect(cls.server.address))
        cls.stub = api.stub_of(cls.channel)

    def refused(self, call, *arguments, **fields):
        with self.assertRaises(grpc.RpcError) as raised:
            call(*arguments, **fields)
        return Refusal.of_error(raised.exception)


class ExecuteOnSoftware(UnaryCase):
    def run_on(self, operator, array):
        return api.execute(self.stub, operator, arrays.data_of(array))

    def test_arg_operators_give_the_first_or_last_extreme(self):
        for dtype in SOME_TYPES:
            array = arrays.awkward(dtype, (3, 5, 7), seed=1)
            for direction in arrays.DIRECTIONS:
                for extreme, build in (("min", arrays.argmin), ("max", arrays.argmax)):
                    with self.subTest(dtype=dtype, direction=direction, extreme=extreme):
                        outcome = self.run_on(build(array, [0, 2], direction), array)
                        np.testing.assert_array_equal(
                            arrays.array_of(outcome),
                            arrays.expect_arg(array, [0, 2], extreme, direction))

    def test_reduce_computes_each_function(self):
        for index, (function, dtypes) in enumerate(arrays.FUNCTION_TYPES.items()):
            some = [dtype for dtype in SOME_TYPES if dtype in dtypes]
            dtype = some[index % len(some)]
            array = arrays.awkward(dtype, (4, 33, 3), seed=2)
            with self.subTest(function=function, dtype=dtype):
                outcome = self.run_on(arrays.reduce(array, function, [1]), array)
                actual = arrays.array_of(outcome)
                expected = arrays.expect_reduce(array, function, [1])
                if expected.dtype == np.float64:
                    arrays.check_close(actual, expected, array, function, [1])
                else:
                    np.testing.assert_array_equal(actual, expected)

    def test_top_k_gives_values_and_indices(self):
        for dtype in SOME_TYPES:
            array = arrays.awkward(dtype, (4, 40), seed=3)
            for direction in arrays.DIRECTIONS:
                with self.subTest(dtype=dtype, direction=direction):
                    outcome = self.run_on(arrays.top_k(array, 1, 9, direction), array)
                    values, indices = arrays.expect_top_k(array, 1, 9, direction)
                    np.testing.assert_array_equal(arrays.array_of(outcome, 0), values)
                    np.testing.assert_array_equal(arrays.array_of(outcome, 1), indices)

    def test_hardmax_marks_the_first_maximum(self):
        for dtype in arrays.FLOATS:
            array = arrays.awkward(dtype, (6, 5, 4), seed=4)
            with self.subTest(dtype=dtype):
                outcome = self.run_on(arrays.hardmax(array, [0, 2]), array)
                np.testing.assert_array_equal(arrays.array_of(outcome),
                                              arrays.expect_hardmax(array, [0, 2]))

    def test_strides_describe_an_array_in_fortran_order(self):
        array = np.asfortranarray(arrays.awkward("float32", (17, 9, 5), seed=5))
        outcome = self.run_on(arrays.argmax(array, [1]), array)
        np.testing.assert_array_equal(arrays.array_of(outcome),
                                      arrays.expect_arg(array, [1], "max"))

    def test_a_large_result_comes_in_chunks_of_the_limit(self):
        array = arrays.awkward("float32", (1024, 1024), seed=6)
        outcome = self.run_on(arrays.hardmax(array, [1]), array)
        np.testing.assert_array_equal(arrays.array_of(outcome),
                                      arrays.expect_hardmax(array, [1]))
        limit = self.stub.GetServerInfo(sv.GetServerInfoRequest()).limits.max_response_chunk_bytes
        self.assertGreaterEqual(outcome.messages, array.nbytes // limit)

    def test_info_names_a_software_adapter(self):
        info = self.stub.GetServerInfo(sv.GetServerInfoRequest(), timeout=10)
        self.assertEqual(info.device.kind, sv.DeviceInfo.KIND_SOFTWARE)
        self.assertNotEqual(info.device.adapter, "")
        self.assertEqual(info.device.shader_model, "5.1")
        self.assertEqual(info.limits.max_message_bytes, MAX_MESSAGE_BYTES)

    def test_compile_answers_the_outputs_and_caches(self):
        array = np.zeros((3, 1, 41), np.int16)
        request = sv.CompileOperatorRequest(operator=arrays.top_k(array, 2, 40))
        first = self.stub.CompileOperator(request, timeout=60)
        again = self.stub.CompileOperator(request, timeout=60)
        self.assertRegex(first.key, "^[0-9a-f]{64}$")
        self.assertEqual((first.was_cached, again.was_cached), (False, True))
        self.assertEqual(first.key, again.key)
        self.assertEqual([list(desc.sizes) for desc in first.outputs], [[3, 1, 40]] * 2)
        self.assertEqual(list(first.output_bytes), [240, 480])
        self.assertEqual(first.input_bytes, 246)
        executed = self.run_on(request.operator, array)
        self.assertTrue(executed.statistics.was_cached)

    def test_statistics_count_what_was_done(self):
        def counts():
            statistics = api.wait_until_idle(self.stub)
            return next((each for each in statistics.operators if each.operator == "hardmax"),
                        sv.OperatorStatistics())

        before = counts()
        array = np.ones((2, 8), np.float16)
        for _ in range(3):
            self.run_on(arrays.hardmax(array, [1]), array)
        after = counts()
        self.assertEqual(after.succeeded - before.succeeded, 3)
        self.assertEqual(after.input_bytes - before.input_bytes, 3 * 32)
        self.assertEqual(after.output_bytes - before.output_bytes, 3 * 32)


class ExecuteErrors(UnaryCase):
    device = "reference"
    array = np.zeros((2, 3), np.float32)

    def execute(self, operator, data=bytes(24), **fields):
        return api.execute(self.stub, operator, data, **fields)

    def test_each_refusal_names_its_field(self):
        array = self.array
        no_type = arrays.hardmax(array, [1])
        no_type.hardmax.input.data_type = ts.DATA_TYPE_UNSPECIFIED
        no_direction = arrays.argmax(array, [1])
        no_direction.arg_max.axis_direction = op.AXIS_DIRECTION_UNSPECIFIED
        no_function = arrays.reduce(array, "sum", [1])
        no_function.reduce.function = op.REDUCE_FUNCTION_UNSPECIFIED
        new_function = arrays.reduce(array, "sum", [1])
        new_function.reduce.function = 77
        zero_size = arrays.hardmax(array, [1])
        zero_size.hardmax.input.sizes[0] = 0
        wrong_output = arrays.reduce(array, "sum", [1])
        wrong_output.reduce.output.CopyFrom(arrays.tensor(array))
        cases = [
            (op.OperatorDesc(), "operator.desc", "none of the operators"),
            (op.OperatorDesc(hardmax=op.HardmaxDesc()), "operator.hardmax.input", "not given"),
            (no_type, "operator.hardmax.input.data_type", "not given"),
            (no_direction, "operator.arg_max.axis_direction", "not given"),
            (no_function, "operator.reduce.function", "not given"),
            (new_function, "operator.reduce.function", "(77)"),
            (zero_size, "operator.hardmax.input.sizes[0]", "0"),
            (arrays.reduce(array, "sum", [0, 2]), "operator.reduce.axes[1]", "(2)"),
            (arrays.top_k(array, 1, 4), "operator.top_k.k", "k (4) is larger than the size (3)"),
            (arrays.top_k(array, 2, 1), "operator.top_k.axis", "(2)"),
            (wrong_output, "operator.reduce.output.sizes[1]", "3"),
        ]
        for operator, field, words in cases:
            with self.subTest(field=field, words=words):
                refusal = self.refused(self.execute, operator)
                print(f"{field}: {refusal.sentence}")
                self.assertEqual(refusal.code, grpc.StatusCode.INVALID_ARGUMENT)
                self.assertEqual(refusal.fields, [field])
                self.assertEqual(refusal.reason, "INVALID_REQUEST")
                self.assertIsNone(refusal.retry_seconds)
                self.assertIn(words, refusal.sentence)

    def test_inputs_must_be_as_many_and_as_long_as_described(self):
        operator = arrays.hardmax(self.array, [1])
        for inputs, field, words in (([], "inputs", "0"), ([bytes(24)] * 2, "inputs", "2"),
                                     ([bytes(23)], "inputs[0]", "23"),
                                     ([bytes(28)], "inputs[0]", "28")):
            with self.subTest(inputs=[len(data) for data in inputs]):
                request = sv.ExecuteRequest(operator=operator, inputs=inputs)
                refusal = self.refused(lambda: list(self.stub.Execute(request, timeout=10)))
                self.assertEqual(refusal.code, grpc.StatusCode.INVALID_ARGUMENT)
                self.assertEqual(refusal.fields, [field])
                self.assertIn(words, refusal.sentence)

    def test_a_feature_level_holds_the_request_to_it(self):
        array = np.zeros((1, 1, 1, 4), np.int64)
        operator = arrays.reduce(array, "max", [3])
        refusal = self.refused(self.execute, operator, arrays.data_of(array),
                               feature_level=op.FEATURE_LEVEL_3_0)
        self.assertEqual(refusal.code, grpc.StatusCode.FAILED_PRECONDITION)
        self.assertEqual(refusal.reason, "UNSUPPORTED_AT_FEATURE_LEVEL")
        self.execute(operator, arrays.data_of(array), feature_level=op.FEATURE_LEVEL_5_0)
        refusal = self.refused(self.execute, operator, arrays.data_of(array), feature_level=4097)
        self.assertEqual(refusal.fields, ["feature_level"])
        self.assertIn("4097", refusal.sentence)

    def test_compile_refuses_with_the_same_field(self):
        request = sv.CompileOperatorRequest(operator=arrays.top_k(self.array, 1, 4))
        refusal = self.refused(self.stub.CompileOperator, request, timeout=10)
        self.assertEqual(refusal.fields, ["operator.top_k.k"])

    def test_an_oversized_message_is_refused_with_the_limit(self):
        array = np.zeros(MAX_MESSAGE_BYTES // 2, np.float32)
        with self.assertRaises(grpc.RpcError) as raised:
            self.execute(arrays.hardmax(array, [0]), arrays.data_of(array))
        sentence = raised.exception.details()
        print(sentence)
        self.assertEqual(raised.exception.code(), grpc.StatusCode.RESOURCE_EXHAUSTED)
        # gRPC's own message; its limit leaves room for the fields besides the tensor.
        limits = [int(number) for number in re.findall(r"\d+", sentence)]
        self.assertGreater(limits[0], array.nbytes)
        self.assertTrue(MAX_MESSAGE_BYTES <= limits[1] <= MAX_MESSAGE_BYTES + (1 << 20), limits)

    def test_a_passed_deadline_ends_a_call(self):
        # Half of the largest message; sorting it takes many times the deadline.
        array = np.random.default_rng(7).random(1 << 20, np.float32)
        with self.assertRaises(grpc.RpcError) as raised:
            self.execute(arrays.top_k(array, 0, 1 << 19), arrays.data_of(array), timeout=0.02)
        self.assertEqual(raised.exception.code(), grpc.StatusCode.DEADLINE_EXCEEDED)
        api.wait_until_idle(self.stub, 0)

    def test_a_cancelled_call_leaves_nothing_behind(self):
        array = np.zeros((1 << 20,), np.float32)
        request = sv.ExecuteRequest(operator=arrays.top_k(array, 0, 1 << 19),
                                    inputs=[arrays.data_of(array)])
        calls = [self.stub.Execute(request, timeout=30) for _ in range(4)]
        for call in calls:
            self.assertTrue(call.cancel())
        api.wait_until_idle(self.stub, 0)


class UnknownFields(UnaryCase):
    """The server ignores unknown fields of newer callers."""

    device = "reference"
    # Field 1000 as varint, fixed64, bytes, group around a fixed32, fixed32; and field 99 as bytes.
    unknown = (b"\xc0\x3e\x05" b"\xc1\x3e12345678" b"\xc2\x3e\x03abc"
               b"\xc3\x3e\x0d1234\xc4\x3e" b"\xc5\x3e1234" b"\x9a\x06\x02zz")
    array = np.array([[1, 3, 2]], np.int8)

    def expect_sum(self, raw_request):
        call = self.channel.unary_stream(f"/{api.SERVICE}/Execute",
                                         request_serializer=bytes,
                                         response_deserializer=sv.ExecuteResponse.FromString)
        outcome = api.Outcome()
        for message in call(raw_request, timeout=10):
            outcome.add(message)
        self.assertEqual(arrays.array_of(outcome).tolist(), [[1]])

    def test_around_and_inside_a_request(self):
        operator = arrays.argmax(self.array, [1]).SerializeToString() + self.unknown
        plain = sv.ExecuteRequest(inputs=[arrays.data_of(self.array)]).SerializeToString()
        wrapped = b"\x0a" + bytes([len(operator)]) + operator
        self.assertLess(len(operator), 128)
        self.expect_sum(self.unknown + wrapped + self.unknown + plain + self.unknown)

    def test_inside_a_chunk_of_a_stream(self):
        call = self.channel.stream_stream(
            f"/{api.SERVICE}/ExecuteStream", request_serializer=bytes,
            response_deserializer=sv.ExecuteStreamResponse.FromString)
        begin = sv.ExecuteStreamRequest(execution_id=9, begin=sv.BeginExecution(
            operator=arrays.argmax(self.array, [1]))).SerializeToString()
        data = arrays.data_of(self.array)
        chunk = self.unknown + ts.TensorChunk(data=data).SerializeToString() + self.unknown
        self.assertLess(len(chunk), 128)
        rest = (b"\x08\x09" + self.unknown + b"\xa2\x06" + bytes([len(chunk)]) + chunk)
        outcome = api.Outcome()
        for message in call(iter([begin + self.unknown, rest]), timeout=10):
            self.assertEqual(message.execution_id, 9)
            outcome.add(message)
        self.assertEqual(arrays.array_of(outcome).tolist(), [[1]])

    def test_bytes_that_are_no_message_are_refused(self):
        with self.assertRaises(grpc.RpcError) as raised:
            self.expect_sum(b"\xff\xff\xff")
        refusal = Refusal.of_error(raised.exception)
        self.assertEqual(refusal.code, grpc.StatusCode.INVALID_ARGUMENT)
        self.assertIn("protobuf", refusal.sentence)
