"""Every element-wise operator through the package, against NumPy: exactly, or in float64 within the
bound of docs/operators.md."""

import json
import math
import pathlib
import unittest

import numpy as np
import oracle
from server_process import ServerProcess

import opmill
from opmill import _operators, aio

TABLE = json.loads((pathlib.Path(opmill.__file__).parents[2] / "named_operators.json").read_text())
ROWS = {row["name"]: row for row in TABLE if row["result"] != "moved"}
SHAPE = (4, 6, 5)
_erf = np.vectorize(math.erf, [np.float64])


def _sigmoid(x):
    return 1 / (1 + np.exp(-x))


def _selu(x, alpha, gamma):
    return np.where(x > 0, gamma * x, gamma * alpha * np.expm1(np.minimum(x, 0)))


def _bits(function):
    """Of the bits of elements, whatever their type."""
    def of(*arrays):
        words = [a.view(f"u{a.itemsize}") for a in arrays]
        return function(*words).view(arrays[0].dtype)
    return of


# By the method's name. Floats are given as float64; None: NumPy has the function of that name.
EXPECTED = {
    "add": None, "identity": lambda x: x, "abs": None, "arccos": None, "arcsin": None,
    "arctan": None, "ceil": None, "cos": None, "exp": None, "floor": None, "log": None,
    "reciprocal": lambda x: 1 / x, "sin": None, "sqrt": None, "tan": None, "erf": _erf,
    "sinh": None, "cosh": None, "tanh": None, "arcsinh": None, "arccosh": None, "arctanh": None,
    "constant_pow": lambda x: np.power(x, 1.5), "threshold": lambda x: np.maximum(x, 1.5),
    "clip": lambda x: np.clip(x, 1, 2), "sign": None, "negative": None,
    "round": np.rint, "isnan": None, "isinf": None, "logical_not": None,
    "bitwise_not": _bits(np.invert),
    "bitwise_count": lambda x: np.vectorize(int.bit_count, [np.uint8])(
        x.view(f"u{x.itemsize}").astype(object)),
    "cast": None, "subtract": None, "multiply": None,
    "divide": lambda a, b: a / b if a.dtype.kind == "f" else _quotient(a, b),
    "maximum": None, "minimum": None,
    "element_wise_mean": lambda a, b: (a + b) / 2 if a.dtype.kind == "f" else _mean(a, b),
    "power": None, "arctan2": None, "difference_square": lambda a, b: (a - b) * (a - b),
    "fmod": lambda a, b: np.fmod(a, b), "mod": lambda a, b: np.mod(a, b),
    "logical_and": None, "logical_or": None, "logical_xor": None, "equal": None, "greater": None,
    "less": None, "greater_equal": None, "less_equal": None, "bitwise_and": _bits(np.bitwise_and),
    "bitwise_or": _bits(np.bitwise_or), "bitwise_xor": _bits(np.bitwise_xor),
    "left_shift": lambda a, b: _shift(a, b, np.left_shift),
    "right_shift": lambda a, b: _shift(a, b, np.right_shift), "where": None,
    "celu": lambda x: np.maximum(x, 0) + np.minimum(0, np.expm1(x)),
    "elu": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
    "hard_sigmoid": lambda x: np.clip(np.float32(0.2) * x + 0.5, 0, 1),
    "hardswish": lambda x: x * np.clip(np.float32(0.16666667) * x + 0.5, 0, 1),
    "gelu": lambda x: 0.5 * x * (1 + _erf(x / math.sqrt(2))),
    "leaky_relu": lambda x: np.where(x > 0, x, np.float32(0.01) * x), "linear": lambda x: x,
    "prelu": lambda a, b: np.where(a > 0, a, a * b),
    "parametric_softplus": lambda x: np.log1p(np.exp(x)), "relu": lambda x: np.maximum(x, 0),
    "selu": lambda x: _selu(x, np.float32(1.6732632), np.float32(1.050701)),
    "scaled_tanh": lambda x: np.tanh(0.5 * x),
    "shrink": lambda x: np.where(np.abs(x) > 0.5, x, 0), "sigmoid": _sigmoid,
    "softplus": lambda x: np.log1p(np.exp(x)), "softsign": lambda x: x / (1 + np.abs(x)),
    "silu": lambda x: x * _sigmoid(x), "thresholded_relu": lambda x: np.where(x > 1, x, 0),
    "relu_grad": lambda a, b: np.where(a > 0, b, 0),
}
ARGUMENTS = {"constant_pow": (1.5,), "threshold": (1.5,), "clip": (1, 2), "cast": ("int32",)}


def _quotient(a, b):
    divisor = np.where(b == 0, 1, b)
    floor, rest = a // divisor, a % divisor
    toward_zero = floor + ((rest != 0) & ((a < 0) != (b < 0)))
    return np.where(b == 0, 0, toward_zero).astype(a.dtype)


def _mean(a, b):
    total = a.astype(object) + b.astype(object)
    return np.vectorize(lambda t: int(t / 2) if t >= 0 else -(-t // 2))(total).astype(a.dtype)


def _shift(a, b, function):
    width = 8 * a.itemsize
    return np.where(b < width, function(a, np.minimum(b, width - 1)), 0).astype(a.dtype)


class ElementWise(unittest.TestCase):
    device = "cpu"

    @classmethod
    def setUpClass(cls):
        cls.server = cls.enterClassContext(ServerProcess(device=cls.device))
        cls.c = cls.enterClassContext(opmill.connect(cls.server.address))
        cls.types = {}
        for row in cls.c.server_info().operators:
            cls.types.setdefault(row.operator, row.data_types)

    def inputs(self, name, dtype):
        row = ROWS[name]
        arrays = [oracle.awkward(dtype, SHAPE, seed) for seed in range(len(row["inputs"]))]
        if row["inputs"][0] == "condition":
            arrays[0] = oracle.awkward("int8", SHAPE) > 0
        return arrays

    def test_every_operator_in_every_type(self):
        for name, row in ROWS.items():
            method = _operators.METHODS[name]
            for dtype in self.types[name]:
                with self.subTest(method, dtype=dtype):
                    inputs = self.inputs(name, dtype)
                    actual = getattr(self.c, method)(*inputs, *ARGUMENTS.get(method, ()))
                    self.check(name, method, inputs, actual)

    def check(self, name, method, inputs, actual):
        function = EXPECTED[method] or getattr(np, method, None)
        dtype = inputs[-1].dtype
        bits = function is not None and method.startswith("bitwise")
        wide = [x.astype(np.float64) if x.dtype.kind == "f" and not bits else x for x in inputs]
        with np.errstate(all="ignore"):
            if method == "cast":
                expected = np.nan_to_num(inputs[0]).astype(np.int32)
            elif method in ("fmod", "mod") and dtype.kind != "f":
                divisor = np.where(inputs[1] == 0, 1, inputs[1])
                expected = np.where(inputs[1] == 0, 0, function(inputs[0], divisor))
            else:
                expected = function(*wide)
        if ROWS[name]["result"] == "truth":
            self.assertEqual(actual.dtype, np.bool_)
        elif method not in ("cast", "bitwise_count"):
            self.assertEqual(actual.dtype, dtype)
        if actual.dtype.kind != "f":
            np.testing.assert_array_equal(actual, expected.astype(actual.dtype))
            return
        if bits:
            np.testing.assert_array_equal(actual.view(f"u{dtype.itemsize}"),
                                          expected.view(f"u{dtype.itemsize}"))
            return
        # Rows without a bound round each of their operations; float16 is rounded once more.
        eps = 2.0**-23 if dtype == np.float32 else 2.0**-10
        ulps = (ROWS[name]["ulps"] or 2) + 0.5 if dtype == np.float32 else 1
        with np.errstate(all="ignore"):
            expected = expected.astype(np.float64)
            off = np.abs(actual.astype(np.float64) - expected)
            bound = ulps * eps * np.maximum(np.abs(expected), np.finfo(dtype).tiny)
        np.testing.assert_array_equal(np.isnan(actual), np.isnan(expected))
        finite = np.isfinite(expected)
        np.testing.assert_array_equal(actual[~finite], expected[~finite].astype(dtype))
        self.assertTrue(np.all(off[finite] <= bound[finite]), f"{actual} is not {expected}")

    def test_inputs_broadcast_as_in_numpy(self):
        x = oracle.awkward("float32", SHAPE)
        np.testing.assert_array_equal(self.c.multiply(x, x[0]), x * x[0])
        np.testing.assert_array_equal(self.c.subtract(1.5, x), np.float32(1.5) - x)
        np.testing.assert_array_equal(self.c.where(x > 0, x, 0), np.where(x > 0, x, 0))
        np.testing.assert_array_equal(self.c.logical_and(x > 0, x < 1), (x > 0) & (x < 1))

    def test_attributes_are_keywords(self):
        x = np.array([-1.5, -0.5, 0.5, 2.5, np.inf, -np.inf], np.float32)
        np.testing.assert_array_equal(self.c.round(x[:4], rounding_mode="toward_zero"), [-1, 0, 0, 2])
        np.testing.assert_array_equal(self.c.isinf(x, infinity_mode="negative"), x == -np.inf)
        np.testing.assert_array_equal(self.c.leaky_relu(x[:4], alpha=0.5), [-0.75, -0.25, 0.5, 2.5])
        np.testing.assert_array_equal(self.c.clip(np.arange(5, dtype=np.int64), 1, 2**62),
                                      [1, 1, 2, 3, 4])

    def test_mistakes(self):
        x = np.ones(3, np.float32)
        with self.assertRaisesRegex(TypeError, "alpha"):
            self.c.leaky_relu(x, alhpa=0.5)
        with self.assertRaisesRegex(opmill.InvalidArgument, "is none of halves_to_nearest_even"):
            self.c.round(x, rounding_mode="down")
        with self.assertRaises(opmill.InvalidArgument) as raised:
            self.c.clip(x.astype(np.int8), 0, 1000)
        self.assertEqual(raised.exception.field, "operator.named.attributes[max]")
        with self.assertRaises(opmill.InvalidArgument) as raised:
            self.c.multiply(x, x.astype(np.int32))
        self.assertEqual(raised.exception.field, "operator.named.inputs[1].data_type")
        with self.assertRaisesRegex(opmill.InvalidArgument, "did you mean 'multiply'"):
            self.c.execute("mulitply", [x, x])

    def test_by_name(self):
        x = np.array([1, 5], np.int16)
        execution = self.c.execute("clip", [x], {"min": 2, "max": 3})
        self.assertEqual(execution.outputs[0].tolist(), [2, 3])


class Async(unittest.IsolatedAsyncioTestCase):
    async def test_the_methods_can_be_awaited(self):
        with ServerProcess(device="reference") as server:
            async with await aio.connect(server.address) as c:
                x = np.array([-1, 2], np.float32)
                self.assertEqual((await c.relu(x)).tolist(), [0, 2])
                self.assertEqual((await c.greater(x, 0)).tolist(), [False, True])


if __name__ == "__main__":
    unittest.main()
