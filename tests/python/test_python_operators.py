"""Every operator of the server through the package, against NumPy."""

import inspect
import time
import unittest

import numpy as np
import oracle
from server_process import ServerProcess

import opmill
from opmill import _call, _contract, _operators

TYPES = ("float32", "float16", "int64", "int32", "int16", "int8", "uint64", "uint32", "uint16",
         "uint8")
FLOATS = ("float32", "float16")
WIDE = (*FLOATS, "int64", "int32", "uint64", "uint32")
FUNCTION_TYPES = {"max": TYPES, "min": TYPES, "average": FLOATS, "l2": FLOATS, "log_sum": FLOATS,
                  "log_sum_exp": FLOATS, "l1": WIDE, "sum_square": WIDE, "multiply": WIDE,
                  "sum": WIDE}
SHAPE = (4, 6, 5)
AXES = (0, -1, (0, 2), (2, 0), (), None)


class ServedCase(unittest.TestCase):
    device = "reference"

    @classmethod
    def setUpClass(cls):
        cls.server = cls.enterClassContext(ServerProcess(device=cls.device))
        cls.c = cls.enterClassContext(opmill.connect(cls.server.address))


class Values(ServedCase):
    device = "cpu"

    def test_argmin_and_argmax(self):
        for dtype in TYPES:
            x = oracle.awkward(dtype, SHAPE, nans=0.05)
            for axis in AXES:
                for last in (False, True):
                    direction = "decreasing" if last else "increasing"
                    for operator in ("argmin", "argmax"):
                        actual = getattr(self.c, operator)(x, axis, axis_direction=direction)
                        self.assertEqual(actual.dtype, np.uint32)
                        np.testing.assert_array_equal(
                            actual, oracle.arg_extreme(x, operator, axis, last),
                            err_msg=f"{operator} {dtype} {axis} {direction}")

    def test_reduce_and_its_short_forms(self):
        short = {"average": "mean", "multiply": "prod"}
        for function, types in FUNCTION_TYPES.items():
            for dtype in types:
                x = oracle.awkward(dtype, SHAPE)
                for axis in AXES:
                    what = f"{function} {dtype} {axis}"
                    oracle.assert_close(self.c.reduce(x, function, axis), x, function, axis,
                                        msg=what)
                method = getattr(self.c, short.get(function, function))
                oracle.assert_close(method(x, 1, keepdims=True), x, function, 1, True, what)

    def test_reduce_to_indices(self):
        x = oracle.awkward("int16", SHAPE)
        for function in ("argmin", "argmax"):
            np.testing.assert_array_equal(self.c.reduce(x, function, (0, 1)),
                                          oracle.arg_extreme(x, function, (0, 1)))

    def test_top_k(self):
        for dtype in TYPES:
            x = oracle.awkward(dtype, SHAPE, nans=0.1)
            for axis in (0, 1, -1):
                for largest in (True, False):
                    actual = self.c.top_k(x, 3, axis, largest=largest)
                    values, indices = oracle.top_k(x, 3, axis, largest)
                    np.testing.assert_array_equal(actual.values, values)
                    np.testing.assert_array_equal(actual.indices, indices)

    def test_hardmax(self):
        for dtype in FLOATS:
            x = oracle.awkward(dtype, SHAPE, nans=0.05)
            for axis in (*AXES, 1):
                np.testing.assert_array_equal(self.c.hardmax(x, axis), oracle.hardmax(x, axis))
            np.testing.assert_array_equal(self.c.hardmax(x), oracle.hardmax(x, -1))

    def test_add_broadcasts_as_numpy(self):
        for dtype in TYPES:
            a = oracle.awkward(dtype, SHAPE, seed=1)
            for shape in (SHAPE, (6, 5), (5,), (1, 6, 1), (4, 1, 5), (2, 1, 1, 1)):
                b = oracle.awkward(dtype, shape, seed=2)
                np.testing.assert_array_equal(self.c.add(a, b), a + b)
                np.testing.assert_array_equal(self.c.add(b, a), a + b)
            number = 1.5 if dtype in FLOATS else 3
            np.testing.assert_array_equal(self.c.add(a, number), a + a.dtype.type(number))

    def test_cumulative_sum(self):
        for dtype in WIDE:
            x = oracle.awkward(dtype, SHAPE)
            for axis in (0, 1, -1):
                for reverse in (False, True):
                    for exclusive in (False, True):
                        actual = self.c.cumulative_sum(
                            x, axis, axis_direction="decreasing" if reverse else "increasing",
                            has_exclusive_sum=exclusive)
                        # Multiples of 1/4 add up exactly.
                        np.testing.assert_array_equal(
                            actual, oracle.cumulative_sum(x, axis, reverse, exclusive))

    def test_results_can_be_written(self):
        y = self.c.hardmax(np.zeros((2, 3), np.float32))
        y += 1
        self.assertEqual(y.sum(), 8)

    def test_types_of_indices(self):
        x = oracle.awkward("float32", SHAPE)
        for dtype in ("int64", "int32", "uint64", "uint32"):
            index = self.c.argmax(x, (0, 2), index_dtype=dtype, keepdims=True)
            self.assertEqual((index.dtype, index.shape), (np.dtype(dtype), (1, 6, 1)))
        self.assertEqual(self.c.top_k(x, 2, 1, index_dtype=np.uint64).indices.dtype, np.uint64)

    def test_ranks(self):
        x = oracle.awkward("float32", (2, 1, 3, 1, 2, 2, 1, 2))
        oracle.assert_close(self.c.sum(x, (0, 4, 7)), x, "sum", (0, 4, 7))
        self.assertEqual(self.c.sum(x[0, 0, 0, 0, 0, 0, 0]).shape, ())


class Contract(ServedCase):
    """The package supports every operator of the contract completely."""

    def methods(self):
        """Of the operators that have a message of their own."""
        for field, descriptor in _contract.OPERATORS.items():
            yield field, descriptor, getattr(self.c, _operators.METHODS[field])

    def arguments(self, descriptor, method, dtype="float32", rank=2):
        """The arguments of the simplest call: those without a default."""
        arguments = {}
        for name, parameter in inspect.signature(method).parameters.items():
            if parameter.default is parameter.empty and parameter.kind != parameter.VAR_KEYWORD:
                arguments[name] = np.ones((2,) * rank, dtype)
                if name == "k":
                    arguments[name] = 2
                elif name == "function":
                    arguments[name] = "max"
        return arguments

    def test_every_operator_of_the_server_is_a_method(self):
        served = {support.operator for support in self.c.server_info().operators}
        self.assertEqual({name.replace("_", "") for name in served},
                         {name.replace("_", "") for name in _operators.METHODS})
        for name in served:
            x = np.ones((2, 2), np.float32)
            # `execute` knows the server's name: it refuses the missing arguments, not the name.
            with self.assertRaises(opmill.InvalidArgument) as raised:
                self.c.execute(name, [])
            self.assertIn("input", raised.exception.sentence)
            self.assertEqual(x.shape, (2, 2))

    def test_every_attribute_is_a_parameter(self):
        class Recorder(opmill._operators.Operators):
            def _run(self, call, options):
                self.call = call
                return tuple(np.zeros(1) for _ in range(2))

        for field, descriptor, method in self.methods():
            recorder = Recorder()
            getattr(recorder, _operators.METHODS[field])(**self.arguments(descriptor, method))
            attributes = {f.name for f in descriptor.fields if not _call._is_tensor(f)}
            self.assertEqual(set(recorder.call.attributes), attributes, field)
            self.assertEqual(recorder.call.operator, field)

    def test_every_row_of_the_server_can_be_called(self):
        """At the newest level: functions, types, smallest and largest rank, types of indices."""
        names = {field.replace("_", ""): field for field in _contract.OPERATORS}
        newest = {}
        for row in self.c.server_info().operators:
            if not row.condition and row.operator.replace("_", "") in names:
                newest.setdefault((row.operator, row.functions), row)
        self.assertGreaterEqual(len(newest), len(names))
        for row in newest.values():
            field = names[row.operator.replace("_", "")]
            method = getattr(self.c, _operators.METHODS[field])
            descriptor = _contract.OPERATORS[field]
            for function in row.functions or ("",):
                choice = {"function": function} if function else {}
                for dtype in row.data_types:
                    for rank in (row.min_rank, row.max_rank):
                        method(**self.arguments(descriptor, method, dtype, rank) | choice)
                for index_dtype in row.index_data_types:
                    result = method(**self.arguments(descriptor, method) | choice,
                                    index_dtype=index_dtype)
                    index = result.indices if isinstance(result, tuple) else result
                    self.assertEqual(index.dtype, index_dtype)

    def test_what_removes_an_axis_can_keep_it(self):
        """Operators whose output has size 1 along the axes have the parameter keepdims."""
        for field, descriptor, method in self.methods():
            if "axes" not in descriptor.fields_by_name:
                continue
            arguments = self.arguments(descriptor, method)
            inputs = [arguments.pop(n) for n in list(arguments)
                      if isinstance(arguments[n], np.ndarray)]
            output = self.c.execute(field, inputs, {"axes": [1], **arguments, **(
                {"axis_direction": "increasing"} if "axis_direction" in descriptor.fields_by_name
                else {})}).outputs[0]
            self.assertEqual(output.shape[1] == 1,
                             "keepdims" in inspect.signature(method).parameters, field)

    def test_answers_of_the_server(self):
        info = self.c.server_info()
        self.assertEqual(info.device.kind, "reference")
        self.assertEqual(info.limits.max_message_bytes, 64 << 20)
        self.assertEqual(info.limits.stall_timeout.total_seconds(), 120)
        self.assertEqual(info.limits.max_model_compile_time.total_seconds(), 300)
        self.assertIn("float16", info.operators[0].data_types)
        self.assertEqual(info.feature_level, "6.4")
        x = np.ones((3, 4), np.float32)
        compiled = self.c.compile("reduce", [x], {"function": "sum", "axes": 1})
        self.assertEqual((compiled.outputs[0].sizes, compiled.output_bytes), ((3, 1), (12,)))
        execution = self.c.execute("reduce", [x], {"function": "sum", "axes": 1})
        self.assertEqual(execution.outputs[0].tolist(), [[4], [4], [4]])
        self.assertGreaterEqual(execution.statistics.batch_size, 1)
        # The server counts an execution when the call has ended, which may be after the answer.
        until = time.monotonic() + 30
        counts = {}
        while counts.get("reduce", 0) < 1 and time.monotonic() < until:
            counts = {row.operator: row.succeeded for row in self.c.statistics().operators}
        self.assertGreaterEqual(counts.get("reduce", 0), 1)


class Refusals(ServedCase):
    x = np.zeros((2, 3), np.float32)

    def expect(self, field, call, *words, kind=opmill.InvalidArgument):
        with self.assertRaises(kind) as raised:
            call()
        error = raised.exception
        print(error)
        self.assertEqual(error.field, field)
        for word in words:
            self.assertIn(word, error.sentence)
        return error

    def test_the_server_names_the_field(self):
        error = self.expect("operator.top_k.k", lambda: self.c.top_k(self.x, 9), "(9)", "(3)")
        self.assertIsInstance(error, ValueError)
        self.assertEqual((error.code, error.reason), ("INVALID_ARGUMENT", "INVALID_REQUEST"))
        self.expect("operator.reduce.axes[1]", lambda: self.c.sum(self.x, (0, 5)), "(5)")
        self.expect("operator.hardmax.input.sizes[0]", lambda: self.c.hardmax(self.x[:0]),
                    "(0, 3)")

    def test_a_large_input_is_refused_as_a_small_one(self):
        big = np.zeros((2, 1 << 20), np.float32)
        self.expect("operator.reduce.axes[0]", lambda: self.c.sum(big, 2), "(2)")

    def test_feature_levels(self):
        error = self.expect("operator.reduce.input.sizes",
                            lambda: self.c.sum(self.x, feature_level="1.0"), "3.0",
                            kind=opmill.FailedPrecondition)
        self.assertEqual(error.reason, "UNSUPPORTED_AT_FEATURE_LEVEL")
        self.expect("feature_level", lambda: self.c.sum(self.x, feature_level="9"), "6.4")

    def test_a_deadline(self):
        with self.assertRaises(TimeoutError) as raised:
            self.c.top_k(oracle.awkward("float32", 200000), 100000, timeout=0.001)
        self.assertEqual(raised.exception.code, "DEADLINE_EXCEEDED")

    def test_before_anything_is_sent(self):
        self.expect("operator.reduce.axes[0]", lambda: self.c.sum(self.x, -3), "(-3)")
        self.expect("operator.reduce.input.data_type", lambda: self.c.sum([1.0, 2.0]), "astype")
        self.expect("operator.arg_max.input.data_type",
                    lambda: self.c.argmax(self.x.astype(complex)), "complex")
        self.expect("operator.reduce.function", lambda: self.c.reduce(self.x, "median"), "l1")
        self.expect("operator.element_wise_add.b", lambda: self.c.add(self.x, self.x[:, :2]),
                    "(2, 2)")
        self.expect("operator.top_k", lambda: self.c.execute("top_k", [self.x], {"n": 1}), "n")
        self.expect("operator", lambda: self.c.execute("sort", [self.x]), "sort")
        self.expect("priority", lambda: self.c.sum(self.x, priority=2**31), "INT32")
        with self.assertRaises(TypeError):
            self.c.top_k(self.x, 1.5)
