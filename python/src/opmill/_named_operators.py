"""A method for each operator that has no message of its own. Written by generate.py from named_operators.json."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Generic, Literal, TypeVar, Unpack

from numpy.typing import ArrayLike, DTypeLike

from ._arguments import Options, checked
from ._call import Axes, Call, pair, truth

RoundingMode = Literal[
    "halves_to_nearest_even", "toward_zero", "toward_infinity",
]

InfinityMode = Literal[
    "either", "positive", "negative",
]

TransA = Literal[
    "none", "transpose",
]

TransB = Literal[
    "none", "transpose",
]

Mode = Literal[
    "convolution", "cross_correlation",
]

Direction = Literal[
    "forward", "backward",
]

PaddingMode = Literal[
    "constant", "edge", "reflection", "symmetric", "wrap",
]

Order = Literal[
    "depth_column_row", "column_row_depth",
]

InterpolationMode = Literal[
    "nearest_neighbor",
]

RoundingDirection = Literal[
    "increasing", "decreasing",
]

Metric = Literal[
    "inner_product", "l2", "cosine", "ip",
]
METRIC_ALIASES: Mapping[str, Metric] = {"ip": "inner_product"}

# The method of each operator.
NAMED_METHODS: Mapping[str, str] = {
    "identity": "identity", "abs": "abs", "acos": "arccos", "asin": "arcsin", "atan": "arctan",
    "ceil": "ceil", "cos": "cos", "exp": "exp", "floor": "floor", "log": "log",
    "recip": "reciprocal", "sin": "sin", "sqrt": "sqrt", "tan": "tan", "erf": "erf", "sinh": "sinh",
    "cosh": "cosh", "tanh": "tanh", "asinh": "arcsinh", "acosh": "arccosh", "atanh": "arctanh",
    "constant_pow": "constant_pow", "threshold": "threshold", "clip": "clip", "sign": "sign",
    "negate": "negative", "round": "round", "is_nan": "isnan", "is_infinity": "isinf",
    "logical_not": "logical_not", "bit_not": "bitwise_not", "bit_count": "bitwise_count",
    "cast": "cast", "subtract": "subtract", "multiply": "multiply", "divide": "divide",
    "element_wise_max": "maximum", "element_wise_min": "minimum",
    "element_wise_mean": "element_wise_mean", "pow": "power", "atan_yx": "arctan2",
    "difference_square": "difference_square", "modulus_truncate": "fmod", "modulus_floor": "mod",
    "logical_and": "logical_and", "logical_or": "logical_or", "logical_xor": "logical_xor",
    "logical_equals": "equal", "logical_greater_than": "greater", "logical_less_than": "less",
    "logical_greater_than_or_equal": "greater_equal", "logical_less_than_or_equal": "less_equal",
    "bit_and": "bitwise_and", "bit_or": "bitwise_or", "bit_xor": "bitwise_xor",
    "bit_shift_left": "left_shift", "bit_shift_right": "right_shift", "if": "where", "celu": "celu",
    "elu": "elu", "hard_sigmoid": "hard_sigmoid", "hard_swish": "hardswish", "gelu": "gelu",
    "leaky_relu": "leaky_relu", "linear": "linear", "parameterized_relu": "prelu",
    "parametric_softplus": "parametric_softplus", "relu": "relu", "scaled_elu": "selu",
    "scaled_tanh": "scaled_tanh", "shrink": "shrink", "sigmoid": "sigmoid", "softplus": "softplus",
    "softsign": "softsign", "swish": "silu", "thresholded_relu": "thresholded_relu",
    "relu_grad": "relu_grad", "gemm": "matmul", "convolution": "conv",
    "diagonal_matrix1": "diagonal_matrix1", "join": "join", "slice1": "slice1",
    "padding1": "padding1", "tile": "tile", "gather": "gather",
    "gather_elements": "take_along_axis", "gather_nd1": "gather_nd1", "scatter": "scatter",
    "reverse_subsequences": "reverse_subsequences", "space_to_depth1": "space_to_depth1",
    "depth_to_space1": "depth_to_space1", "resample2": "resample2", "max_pooling": "max_pooling",
    "max_pooling_with_indices": "max_pooling_with_indices", "average_pooling": "average_pooling",
    "lp_pooling": "lp_pooling", "softmax": "softmax", "log_softmax": "log_softmax",
    "mean_variance_normalization": "mean_variance_normalization",
    "batch_normalization": "batch_normalization",
    "local_response_normalization": "local_response_normalization", "search": "search",
}

# The input that has truth values, whatever the types of the others.
MASKS: Mapping[str, int] = {
    "search": 2,
}

# Of these, inputs keep their shapes.
KEEP_SHAPES = frozenset((
    "gemm", "convolution", "diagonal_matrix1", "join", "slice1", "padding1", "tile", "gather",
    "gather_elements", "gather_nd1", "scatter", "reverse_subsequences", "space_to_depth1",
    "depth_to_space1", "resample2", "max_pooling", "max_pooling_with_indices", "average_pooling",
    "lp_pooling", "softmax", "log_softmax", "mean_variance_normalization", "batch_normalization",
    "local_response_normalization", "search",
))

ArrayT = TypeVar("ArrayT")


def named_call(operator: str, inputs: Sequence[ArrayLike],
               attributes: Mapping[str, Any] | None) -> Call:
    return Call(operator, inputs, attributes or {}, broadcasts=operator not in KEEP_SHAPES,
                mask=MASKS.get(operator))


class NamedOperators(Generic[ArrayT]):
    """Inputs of element-wise operators are broadcast by NumPy's rules. Comparisons and other
    questions return bool."""

    def _run(self, call: Call, options: Options) -> Any:
        raise NotImplementedError

    @checked
    def identity(self, x: ArrayLike, **options: Unpack[Options]) -> ArrayT:
        """x"""
        return self._run(Call("identity", (x,), {}), options)

    @checked
    def abs(self, x: ArrayLike, **options: Unpack[Options]) -> ArrayT:
        """the magnitude of x"""
        return self._run(Call("abs", (x,), {}), options)

    @checked
    def arccos(self, x: ArrayLike, **options: Unpack[Options]) -> ArrayT:
        """the arc cosine of x"""
        return self._run(Call("acos", (x,), {}), options)

    @checked
    def arcsin(self, x: ArrayLike, **options: Unpack[Options]) -> ArrayT:
        """the arc sine of x"""
        return self._run(Call("asin", (x,), {}), options)

    @checked
    def arctan(self, x: ArrayLike, **options: Unpack[Options]) -> ArrayT:
        """the arc tangent of x"""
        return self._run(Call("atan", (x,), {}), options)

    @checked
    def ceil(self, x: ArrayLike, **options: Unpack[Options]) -> ArrayT:
        """x rounded up to an integer"""
        return self._run(Call("ceil", (x,), {}), options)

    @checked
    def cos(self, x: ArrayLike, **options: Unpack[Options]) -> ArrayT:
        """the cosine of x"""
        return self._run(Call("cos", (x,), {}), options)

    @checked
    def exp(self, x: ArrayLike, **options: Unpack[Options]) -> ArrayT:
        """e to the power of x"""
        return self._run(Call("exp", (x,), {}), options)

    @checked
    def floor(self, x: ArrayLike, **options: Unpack[Options]) -> ArrayT:
        """x rounded down to an integer"""
        return self._run(Call("floor", (x,), {}), options)

    @checked
    def log(self, x: ArrayLike, **options: Unpack[Options]) -> ArrayT:
        """the natural logarithm of x"""
        return self._run(Call("log", (x,), {}), options)

    @checked
    def reciprocal(self, x: ArrayLike, **options: Unpack[Options]) -> ArrayT:
        """1 / x"""
        return self._run(Call("recip", (x,), {}), options)

    @checked
    def sin(self, x: ArrayLike, **options: Unpack[Options]) -> ArrayT:
        """the sine of x"""
        return self._run(Call("sin", (x,), {}), options)

    @checked
    def sqrt(self, x: ArrayLike, **options: Unpack[Options]) -> ArrayT:
        """the square root of x"""
        return self._run(Call("sqrt", (x,), {}), options)

    @checked
    def tan(self, x: ArrayLike, **options: Unpack[Options]) -> ArrayT:
        """the tangent of x"""
        return self._run(Call("tan", (x,), {}), options)

    @checked
    def erf(self, x: ArrayLike, **options: Unpack[Options]) -> ArrayT:
        """the error function of x"""
        return self._run(Call("erf", (x,), {}), options)

    @checked
    def sinh(self, x: ArrayLike, **options: Unpack[Options]) -> ArrayT:
        """the hyperbolic sine of x"""
        return self._run(Call("sinh", (x,), {}), options)

    @checked
    def cosh(self, x: ArrayLike, **options: Unpack[Options]) -> ArrayT:
        """the hyperbolic cosine of x"""
        return self._run(Call("cosh", (x,), {}), options)

    @checked
    def tanh(self, x: ArrayLike, **options: Unpack[Options]) -> ArrayT:
        """the hyperbolic tangent of x"""
        return self._run(Call("tanh", (x,), {}), options)

    @checked
    def arcsinh(self, x: ArrayLike, **options: Unpack[Options]) -> ArrayT:
        """the inverse hyperbolic sine of x"""
        return self._run(Call("asinh", (x,), {}), options)

    @checked
    def arccosh(self, x: ArrayLike, **options: Unpack[Options]) -> ArrayT:
        """the inverse hyperbolic cosine of x"""
        return self._run(Call("acosh", (x,), {}), options)

    @checked
    def arctanh(self, x: ArrayLike, **options: Unpack[Options]) -> ArrayT:
        """the inverse hyperbolic tangent of x"""
        return self._run(Call("atanh", (x,), {}), options)

    @checked
    def constant_pow(self, x: ArrayLike, exponent: float, **options: Unpack[Options]) -> ArrayT:
        """x to the power of the exponent"""
        return self._run(Call("constant_pow", (x,), {"exponent": exponent}), options)

    @checked
    def threshold(self, x: ArrayLike, min: float, **options: Unpack[Options]) -> ArrayT:
        """x, or the minimum if x is below it"""
        return self._run(Call("threshold", (x,), {"min": min}), options)

    @checked
    def clip(self, x: ArrayLike, min: float, max: float, **options: Unpack[Options]) -> ArrayT:
        """x within [min, max]"""
        return self._run(Call("clip", (x,), {"min": min, "max": max}), options)

    @checked
    def sign(self, x: ArrayLike, **options: Unpack[Options]) -> ArrayT:
        """-1, 0 or 1"""
        return self._run(Call("sign", (x,), {}), options)

    @checked
    def negative(self, x: ArrayLike, **options: Unpack[Options]) -> ArrayT:
        """-x"""
        return self._run(Call("negate", (x,), {}), options)

    @checked
    def round(
        self, x: ArrayLike, *, rounding_mode: RoundingMode = "halves_to_nearest_even",
        **options: Unpack[Options],
    ) -> ArrayT:
        """x rounded to an integer"""
        return self._run(Call("round", (x,), {"rounding_mode": rounding_mode}), options)

    @checked
    def isnan(self, x: ArrayLike, **options: Unpack[Options]) -> ArrayT:
        """whether x is NaN"""
        return self._run(Call("is_nan", (x,), {}, result=truth), options)

    @checked
    def isinf(
        self, x: ArrayLike, *, infinity_mode: InfinityMode = "either", **options: Unpack[Options],
    ) -> ArrayT:
        """whether x is infinite"""
        call = Call("is_infinity", (x,), {"infinity_mode": infinity_mode}, result=truth)
        return self._run(call, options)

    @checked
    def logical_not(self, x: ArrayLike, **options: Unpack[Options]) -> ArrayT:
        """whether x is 0"""
        return self._run(Call("logical_not", (x,), {}, result=truth), options)

    @checked
    def bitwise_not(self, x: ArrayLike, **options: Unpack[Options]) -> ArrayT:
        """the inverted bits of x"""
        return self._run(Call("bit_not", (x,), {}), options)

    @checked
    def bitwise_count(self, x: ArrayLike, **options: Unpack[Options]) -> ArrayT:
        """the number of bits of x that are 1"""
        return self._run(Call("bit_count", (x,), {}), options)

    @checked
    def cast(self, x: ArrayLike, dtype: DTypeLike, **options: Unpack[Options]) -> ArrayT:
        """x in another type"""
        return self._run(Call("cast", (x,), {}, output_dtype=dtype), options)

    @checked
    def subtract(self, a: ArrayLike, b: ArrayLike, **options: Unpack[Options]) -> ArrayT:
        """a - b"""
        return self._run(Call("subtract", (a, b), {}), options)

    @checked
    def multiply(self, a: ArrayLike, b: ArrayLike, **options: Unpack[Options]) -> ArrayT:
        """a * b"""
        return self._run(Call("multiply", (a, b), {}), options)

    @checked
    def divide(self, a: ArrayLike, b: ArrayLike, **options: Unpack[Options]) -> ArrayT:
        """a / b; integers toward zero, and 0 if b is 0"""
        return self._run(Call("divide", (a, b), {}), options)

    @checked
    def maximum(self, a: ArrayLike, b: ArrayLike, **options: Unpack[Options]) -> ArrayT:
        """the larger of a and b"""
        return self._run(Call("element_wise_max", (a, b), {}), options)

    @checked
    def minimum(self, a: ArrayLike, b: ArrayLike, **options: Unpack[Options]) -> ArrayT:
        """the smaller of a and b"""
        return self._run(Call("element_wise_min", (a, b), {}), options)

    @checked
    def element_wise_mean(self, a: ArrayLike, b: ArrayLike, **options: Unpack[Options]) -> ArrayT:
        """(a + b) / 2; integers toward zero"""
        return self._run(Call("element_wise_mean", (a, b), {}), options)

    @checked
    def power(self, a: ArrayLike, b: ArrayLike, **options: Unpack[Options]) -> ArrayT:
        """a to the power of b"""
        return self._run(Call("pow", (a, b), {}), options)

    @checked
    def arctan2(self, a: ArrayLike, b: ArrayLike, **options: Unpack[Options]) -> ArrayT:
        """the angle of the point (b, a)"""
        return self._run(Call("atan_yx", (a, b), {}), options)

    @checked
    def difference_square(self, a: ArrayLike, b: ArrayLike, **options: Unpack[Options]) -> ArrayT:
        """(a - b)^2"""
        return self._run(Call("difference_square", (a, b), {}), options)

    @checked
    def fmod(self, a: ArrayLike, b: ArrayLike, **options: Unpack[Options]) -> ArrayT:
        """the remainder of a / b, with the sign of a"""
        return self._run(Call("modulus_truncate", (a, b), {}), options)

    @checked
    def mod(self, a: ArrayLike, b: ArrayLike, **options: Unpack[Options]) -> ArrayT:
        """the remainder of a / b, with the sign of b"""
        return self._run(Call("modulus_floor", (a, b), {}), options)

    @checked
    def logical_and(self, a: ArrayLike, b: ArrayLike, **options: Unpack[Options]) -> ArrayT:
        """whether both are not 0"""
        return self._run(Call("logical_and", (a, b), {}, result=truth), options)

    @checked
    def logical_or(self, a: ArrayLike, b: ArrayLike, **options: Unpack[Options]) -> ArrayT:
        """whether one is not 0"""
        return self._run(Call("logical_or", (a, b), {}, result=truth), options)

    @checked
    def logical_xor(self, a: ArrayLike, b: ArrayLike, **options: Unpack[Options]) -> ArrayT:
        """whether exactly one is not 0"""
        return self._run(Call("logical_xor", (a, b), {}, result=truth), options)

    @checked
    def equal(self, a: ArrayLike, b: ArrayLike, **options: Unpack[Options]) -> ArrayT:
        """whether a = b"""
        return self._run(Call("logical_equals", (a, b), {}, result=truth), options)

    @checked
    def greater(self, a: ArrayLike, b: ArrayLike, **options: Unpack[Options]) -> ArrayT:
        """whether a > b"""
        return self._run(Call("logical_greater_than", (a, b), {}, result=truth), options)

    @checked
    def less(self, a: ArrayLike, b: ArrayLike, **options: Unpack[Options]) -> ArrayT:
        """whether a < b"""
        return self._run(Call("logical_less_than", (a, b), {}, result=truth), options)

    @checked
    def greater_equal(self, a: ArrayLike, b: ArrayLike, **options: Unpack[Options]) -> ArrayT:
        """whether a >= b"""
        return self._run(Call("logical_greater_than_or_equal", (a, b), {}, result=truth), options)

    @checked
    def less_equal(self, a: ArrayLike, b: ArrayLike, **options: Unpack[Options]) -> ArrayT:
        """whether a <= b"""
        return self._run(Call("logical_less_than_or_equal", (a, b), {}, result=truth), options)

    @checked
    def bitwise_and(self, a: ArrayLike, b: ArrayLike, **options: Unpack[Options]) -> ArrayT:
        """the bits that are 1 in both"""
        return self._run(Call("bit_and", (a, b), {}), options)

    @checked
    def bitwise_or(self, a: ArrayLike, b: ArrayLike, **options: Unpack[Options]) -> ArrayT:
        """the bits that are 1 in one"""
        return self._run(Call("bit_or", (a, b), {}), options)

    @checked
    def bitwise_xor(self, a: ArrayLike, b: ArrayLike, **options: Unpack[Options]) -> ArrayT:
        """the bits that differ"""
        return self._run(Call("bit_xor", (a, b), {}), options)

    @checked
    def left_shift(self, a: ArrayLike, b: ArrayLike, **options: Unpack[Options]) -> ArrayT:
        """a shifted left by b bits"""
        return self._run(Call("bit_shift_left", (a, b), {}), options)

    @checked
    def right_shift(self, a: ArrayLike, b: ArrayLike, **options: Unpack[Options]) -> ArrayT:
        """a shifted right by b bits"""
        return self._run(Call("bit_shift_right", (a, b), {}), options)

    @checked
    def where(
        self, condition: ArrayLike, a: ArrayLike, b: ArrayLike, **options: Unpack[Options],
    ) -> ArrayT:
        """a where the condition is not 0, otherwise b"""
        return self._run(Call("if", (condition, a, b), {}), options)

    @checked
    def celu(self, x: ArrayLike, *, alpha: float = 1.0, **options: Unpack[Options]) -> ArrayT:
        """max(0, x) + min(0, alpha * (e^(x / alpha) - 1))"""
        return self._run(Call("celu", (x,), {"alpha": alpha}), options)

    @checked
    def elu(self, x: ArrayLike, *, alpha: float = 1.0, **options: Unpack[Options]) -> ArrayT:
        """x, or alpha * (e^x - 1) if x is negative"""
        return self._run(Call("elu", (x,), {"alpha": alpha}), options)

    @checked
    def hard_sigmoid(
        self, x: ArrayLike, *, alpha: float = 0.2, beta: float = 0.5, **options: Unpack[Options],
    ) -> ArrayT:
        """alpha * x + beta within [0, 1]"""
        return self._run(Call("hard_sigmoid", (x,), {"alpha": alpha, "beta": beta}), options)

    @checked
    def hardswish(
        self, x: ArrayLike, *, alpha: float = 0.16666667, beta: float = 0.5,
        **options: Unpack[Options],
    ) -> ArrayT:
        """x * hard_sigmoid(x)"""
        return self._run(Call("hard_swish", (x,), {"alpha": alpha, "beta": beta}), options)

    @checked
    def gelu(self, x: ArrayLike, **options: Unpack[Options]) -> ArrayT:
        """x times the normal distribution's probability below x"""
        return self._run(Call("gelu", (x,), {}), options)

    @checked
    def leaky_relu(
        self, x: ArrayLike, *, alpha: float = 0.01, **options: Unpack[Options],
    ) -> ArrayT:
        """x, or alpha * x if x is negative"""
        return self._run(Call("leaky_relu", (x,), {"alpha": alpha}), options)

    @checked
    def linear(
        self, x: ArrayLike, *, alpha: float = 1.0, beta: float = 0.0, **options: Unpack[Options],
    ) -> ArrayT:
        """alpha * x + beta"""
        return self._run(Call("linear", (x,), {"alpha": alpha, "beta": beta}), options)

    @checked
    def prelu(self, a: ArrayLike, b: ArrayLike, **options: Unpack[Options]) -> ArrayT:
        """a, or a * b if a is negative"""
        return self._run(Call("parameterized_relu", (a, b), {}), options)

    @checked
    def parametric_softplus(
        self, x: ArrayLike, *, alpha: float = 1.0, beta: float = 1.0, **options: Unpack[Options],
    ) -> ArrayT:
        """alpha * log(1 + e^(beta * x))"""
        return self._run(Call("parametric_softplus", (x,), {"alpha": alpha, "beta": beta}), options)

    @checked
    def relu(self, x: ArrayLike, **options: Unpack[Options]) -> ArrayT:
        """the larger of x and 0"""
        return self._run(Call("relu", (x,), {}), options)

    @checked
    def selu(
        self, x: ArrayLike, *, alpha: float = 1.6732632, gamma: float = 1.050701,
        **options: Unpack[Options],
    ) -> ArrayT:
        """gamma * x, or gamma * alpha * (e^x - 1) if x is negative"""
        return self._run(Call("scaled_elu", (x,), {"alpha": alpha, "gamma": gamma}), options)

    @checked
    def scaled_tanh(
        self, x: ArrayLike, *, alpha: float = 1.0, beta: float = 0.5, **options: Unpack[Options],
    ) -> ArrayT:
        """alpha * tanh(beta * x)"""
        return self._run(Call("scaled_tanh", (x,), {"alpha": alpha, "beta": beta}), options)

    @checked
    def shrink(
        self, x: ArrayLike, *, bias: float = 0.0, threshold: float = 0.5,
        **options: Unpack[Options],
    ) -> ArrayT:
        """x nearer to 0 by the bias beyond the threshold, 0 within it"""
        return self._run(Call("shrink", (x,), {"bias": bias, "threshold": threshold}), options)

    @checked
    def sigmoid(self, x: ArrayLike, **options: Unpack[Options]) -> ArrayT:
        """1 / (1 + e^-x)"""
        return self._run(Call("sigmoid", (x,), {}), options)

    @checked
    def softplus(
        self, x: ArrayLike, *, steepness: float = 1.0, **options: Unpack[Options],
    ) -> ArrayT:
        """log(1 + e^(steepness * x)) / steepness"""
        return self._run(Call("softplus", (x,), {"steepness": steepness}), options)

    @checked
    def softsign(self, x: ArrayLike, **options: Unpack[Options]) -> ArrayT:
        """x / (1 + |x|)"""
        return self._run(Call("softsign", (x,), {}), options)

    @checked
    def silu(
        self, x: ArrayLike, *, sigmoid_input_scale: float = 1.0, **options: Unpack[Options],
    ) -> ArrayT:
        """x / (1 + e^-(sigmoid_input_scale * x))"""
        return self._run(Call("swish", (x,), {"sigmoid_input_scale": sigmoid_input_scale}), options)

    @checked
    def thresholded_relu(
        self, x: ArrayLike, *, alpha: float = 1.0, **options: Unpack[Options],
    ) -> ArrayT:
        """x where it is above alpha, otherwise 0"""
        return self._run(Call("thresholded_relu", (x,), {"alpha": alpha}), options)

    @checked
    def relu_grad(self, a: ArrayLike, b: ArrayLike, **options: Unpack[Options]) -> ArrayT:
        """b where a is above 0, otherwise 0"""
        return self._run(Call("relu_grad", (a, b), {}), options)

    @checked
    def matmul(
        self, a: ArrayLike, b: ArrayLike, c: ArrayLike | None = None, *, trans_a: TransA = "none",
        trans_b: TransB = "none", alpha: float = 1.0, beta: float = 1.0, **options: Unpack[Options],
    ) -> ArrayT:
        """alpha * A * B + beta * C, of matrices"""
        call = Call("gemm", (a, b) if c is None else (a, b, c),
            {"trans_a": trans_a, "trans_b": trans_b, "alpha": alpha, "beta": beta}, broadcasts=False)
        return self._run(call, options)

    @checked
    def conv(
        self, input: ArrayLike, filter: ArrayLike, bias: ArrayLike | None = None, *,
        mode: Mode = "cross_correlation", direction: Direction = "forward",
        strides: Sequence[int] = (), dilations: Sequence[int] = (),
        start_padding: Sequence[int] = (), end_padding: Sequence[int] = (),
        output_padding: Sequence[int] = (), group_count: int = 1, **options: Unpack[Options],
    ) -> ArrayT:
        """the sums of an image's patches, each weighted by the filter"""
        call = Call("convolution", (input, filter) if bias is None else (input, filter, bias),
            {"mode": mode, "direction": direction, "strides": strides, "dilations": dilations, "start_padding": start_padding, "end_padding": end_padding, "output_padding": output_padding, "group_count": group_count}, broadcasts=False)
        return self._run(call, options)

    @checked
    def diagonal_matrix1(
        self, x: ArrayLike, *, value: float = 1.0, diagonal_fill_begin: int = 0,
        diagonal_fill_end: int = 1, **options: Unpack[Options],
    ) -> ArrayT:
        """the input, with a value on the diagonals from diagonal_fill_begin on, up to before diagonal_fill_end"""
        call = Call("diagonal_matrix1", (x,),
            {"value": value, "diagonal_fill_begin": diagonal_fill_begin, "diagonal_fill_end": diagonal_fill_end}, broadcasts=False)
        return self._run(call, options)

    @checked
    def join(
        self, inputs: Sequence[ArrayLike], axis: int = -1, **options: Unpack[Options],
    ) -> ArrayT:
        """up to 8 inputs, one after the other along the axis"""
        return self._run(Call("join", tuple(inputs), {"axis": axis}, broadcasts=False), options)

    @checked
    def slice1(
        self, x: ArrayLike, input_window_offsets: Sequence[int], input_window_sizes: Sequence[int],
        input_window_strides: Sequence[int], **options: Unpack[Options],
    ) -> ArrayT:
        """the elements of a window, with steps that may be negative"""
        call = Call("slice1", (x,),
            {"input_window_offsets": input_window_offsets, "input_window_sizes": input_window_sizes, "input_window_strides": input_window_strides}, broadcasts=False)
        return self._run(call, options)

    @checked
    def padding1(
        self, x: ArrayLike, start_padding: Sequence[int], end_padding: Sequence[int], *,
        padding_mode: PaddingMode = "constant", padding_value: float = 0.0,
        **options: Unpack[Options],
    ) -> ArrayT:
        """the input with padding around it"""
        call = Call("padding1", (x,),
            {"padding_mode": padding_mode, "padding_value": padding_value, "start_padding": start_padding, "end_padding": end_padding}, broadcasts=False)
        return self._run(call, options)

    @checked
    def tile(self, x: ArrayLike, repeats: Sequence[int], **options: Unpack[Options]) -> ArrayT:
        """copies of the input, side by side"""
        return self._run(Call("tile", (x,), {"repeats": repeats}, broadcasts=False), options)

    @checked
    def gather(
        self, input: ArrayLike, indices: ArrayLike, index_dimensions: int, axis: int = -1,
        **options: Unpack[Options],
    ) -> ArrayT:
        """the input at the indices along the axis"""
        call = Call("gather", (input, indices),
            {"axis": axis, "index_dimensions": index_dimensions}, broadcasts=False)
        return self._run(call, options)

    @checked
    def take_along_axis(
        self, input: ArrayLike, indices: ArrayLike, axis: int = -1, **options: Unpack[Options],
    ) -> ArrayT:
        """for each index, the input's element there along the axis"""
        call = Call("gather_elements", (input, indices), {"axis": axis}, broadcasts=False)
        return self._run(call, options)

    @checked
    def gather_nd1(
        self, input: ArrayLike, indices: ArrayLike, input_dimension_count: int,
        indices_dimension_count: int, *, batch_dimension_count: int = 0, **options: Unpack[Options],
    ) -> ArrayT:
        """the parts of the input that the indices, each of several coordinates, name"""
        call = Call("gather_nd1", (input, indices),
            {"input_dimension_count": input_dimension_count, "indices_dimension_count": indices_dimension_count, "batch_dimension_count": batch_dimension_count}, broadcasts=False)
        return self._run(call, options)

    @checked
    def scatter(
        self, input: ArrayLike, indices: ArrayLike, updates: ArrayLike, axis: int = -1,
        **options: Unpack[Options],
    ) -> ArrayT:
        """the input, with updates at the indices along the axis"""
        call = Call("scatter", (input, indices, updates), {"axis": axis}, broadcasts=False)
        return self._run(call, options)

    @checked
    def reverse_subsequences(
        self, input: ArrayLike, sequence_lengths: ArrayLike, axis: int = -1,
        **options: Unpack[Options],
    ) -> ArrayT:
        """the input, with the first elements of each sequence along the axis reversed"""
        call = Call("reverse_subsequences", (input, sequence_lengths),
            {"axis": axis}, broadcasts=False)
        return self._run(call, options)

    @checked
    def space_to_depth1(
        self, x: ArrayLike, block_size: int, *, order: Order = "depth_column_row",
        **options: Unpack[Options],
    ) -> ArrayT:
        """blocks of the last two dimensions as channels"""
        call = Call("space_to_depth1", (x,),
            {"block_size": block_size, "order": order}, broadcasts=False)
        return self._run(call, options)

    @checked
    def depth_to_space1(
        self, x: ArrayLike, block_size: int, *, order: Order = "depth_column_row",
        **options: Unpack[Options],
    ) -> ArrayT:
        """channels as blocks of the last two dimensions"""
        call = Call("depth_to_space1", (x,),
            {"block_size": block_size, "order": order}, broadcasts=False)
        return self._run(call, options)

    @checked
    def resample2(
        self, x: ArrayLike, scales: Sequence[float], input_pixel_offsets: Sequence[float],
        output_pixel_offsets: Sequence[float], *,
        interpolation_mode: InterpolationMode = "nearest_neighbor",
        rounding_direction: RoundingDirection = "decreasing", **options: Unpack[Options],
    ) -> ArrayT:
        """the input, scaled: the nearest elements"""
        call = Call("resample2", (x,),
            {"interpolation_mode": interpolation_mode, "rounding_direction": rounding_direction, "scales": scales, "input_pixel_offsets": input_pixel_offsets, "output_pixel_offsets": output_pixel_offsets}, broadcasts=False)
        return self._run(call, options)

    @checked
    def max_pooling(
        self, x: ArrayLike, window_size: Sequence[int], *, strides: Sequence[int] = (1,),
        start_padding: Sequence[int] = (0,), end_padding: Sequence[int] = (0,),
        dilations: Sequence[int] = (1,), **options: Unpack[Options],
    ) -> ArrayT:
        """the largest element of each window"""
        call = Call("max_pooling", (x,),
            {"strides": strides, "window_size": window_size, "start_padding": start_padding, "end_padding": end_padding, "dilations": dilations}, broadcasts=False)
        return self._run(call, options)

    @checked
    def max_pooling_with_indices(
        self, x: ArrayLike, window_size: Sequence[int], *, strides: Sequence[int] = (1,),
        start_padding: Sequence[int] = (0,), end_padding: Sequence[int] = (0,),
        dilations: Sequence[int] = (1,), **options: Unpack[Options],
    ) -> ArrayT:
        """the largest element of each window, and its position in the input"""
        call = Call("max_pooling_with_indices", (x,),
            {"strides": strides, "window_size": window_size, "start_padding": start_padding, "end_padding": end_padding, "dilations": dilations}, broadcasts=False, result=pair)
        return self._run(call, options)

    @checked
    def average_pooling(
        self, x: ArrayLike, window_size: Sequence[int], *, strides: Sequence[int] = (1,),
        start_padding: Sequence[int] = (0,), end_padding: Sequence[int] = (0,),
        dilations: Sequence[int] = (1,), include_padding: bool = False, **options: Unpack[Options],
    ) -> ArrayT:
        """the mean of the elements of each window"""
        call = Call("average_pooling", (x,),
            {"strides": strides, "window_size": window_size, "start_padding": start_padding, "end_padding": end_padding, "dilations": dilations, "include_padding": include_padding}, broadcasts=False)
        return self._run(call, options)

    @checked
    def lp_pooling(
        self, x: ArrayLike, window_size: Sequence[int], *, strides: Sequence[int] = (1,),
        start_padding: Sequence[int] = (0,), end_padding: Sequence[int] = (0,),
        dilations: Sequence[int] = (1,), p: int = 2, **options: Unpack[Options],
    ) -> ArrayT:
        """the p-th root of the sum of |x|^p over each window"""
        call = Call("lp_pooling", (x,),
            {"strides": strides, "window_size": window_size, "start_padding": start_padding, "end_padding": end_padding, "dilations": dilations, "p": p}, broadcasts=False)
        return self._run(call, options)

    @checked
    def softmax(self, x: ArrayLike, axes: Axes, **options: Unpack[Options]) -> ArrayT:
        """e^x divided by its sum over the axes"""
        return self._run(Call("softmax", (x,), {"axes": axes}, broadcasts=False), options)

    @checked
    def log_softmax(self, x: ArrayLike, axes: Axes, **options: Unpack[Options]) -> ArrayT:
        """the logarithm of softmax"""
        return self._run(Call("log_softmax", (x,), {"axes": axes}, broadcasts=False), options)

    @checked
    def mean_variance_normalization(
        self, inputs: Sequence[ArrayLike], axes: Axes, *, use_mean: bool = True,
        use_variance: bool = True, epsilon: float = 1e-05, **options: Unpack[Options],
    ) -> ArrayT:
        """scale * (x - mean) / sqrt(variance + epsilon) + bias over the axes"""
        call = Call("mean_variance_normalization", tuple(inputs),
            {"axes": axes, "use_mean": use_mean, "use_variance": use_variance, "epsilon": epsilon}, broadcasts=False)
        return self._run(call, options)

    @checked
    def batch_normalization(
        self, input: ArrayLike, mean: ArrayLike, variance: ArrayLike, scale: ArrayLike,
        bias: ArrayLike, *, epsilon: float = 1e-05, **options: Unpack[Options],
    ) -> ArrayT:
        """scale * (x - mean) / sqrt(variance + epsilon) + bias"""
        call = Call("batch_normalization", (input, mean, variance, scale, bias),
            {"epsilon": epsilon}, broadcasts=False)
        return self._run(call, options)

    @checked
    def local_response_normalization(
        self, x: ArrayLike, local_size: int, *, cross_channel: bool = True, alpha: float = 0.0001,
        beta: float = 0.75, bias: float = 1.0, **options: Unpack[Options],
    ) -> ArrayT:
        """x / (bias + alpha / local_size * the sum of squares around x)^beta"""
        call = Call("local_response_normalization", (x,),
            {"cross_channel": cross_channel, "local_size": local_size, "alpha": alpha, "beta": beta, "bias": bias}, broadcasts=False)
        return self._run(call, options)

    @checked
    def search(
        self, queries: ArrayLike, vectors: ArrayLike, k: int, *, metric: Metric = "inner_product",
        mask: ArrayLike | None = None, **options: Unpack[Options],
    ) -> ArrayT:
        """the k nearest of the vectors for each query, with their indices"""
        call = Call("search", (queries, vectors) if mask is None else (queries, vectors, mask),
            {"k": k, "metric": METRIC_ALIASES.get(metric, metric)}, broadcasts=False, result=pair, mask=2)
        return self._run(call, options)
