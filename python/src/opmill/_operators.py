"""A method for each operator. Written by generate.py from the contract."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Generic, Literal, NamedTuple, TypeVar, Unpack

from numpy.typing import ArrayLike, DTypeLike

from ._arguments import Options, checked
from ._call import Array, Axes, Call
from ._named_operators import NAMED_METHODS, ArrayT, NamedOperators

AxisDirection = Literal[
    "increasing",
    "decreasing",
]

ReduceFunction = Literal[
    "argmax",
    "argmin",
    "average",
    "l1",
    "l2",
    "log_sum",
    "log_sum_exp",
    "max",
    "min",
    "multiply",
    "sum",
    "sum_square",
    "mean",
    "prod",
    "logsumexp",
    "lse",
]


class TopK(NamedTuple):
    values: Array
    indices: Array


TopKT = TypeVar("TopKT")

# The method of each operator, by the field of OperatorDesc or the name.
METHODS: Mapping[str, str] = {
    "arg_min": "argmin",
    "arg_max": "argmax",
    "reduce": "reduce",
    "top_k": "top_k",
    "hardmax": "hardmax",
    "element_wise_add": "add",
    "cumulative_summation": "cumulative_sum",
    **NAMED_METHODS,
}


class Operators(NamedOperators[ArrayT], Generic[ArrayT, TopKT]):
    """What a method returns is a parameter: an array, or what can be awaited for one."""

    @checked
    def argmin(
        self,
        x: ArrayLike,
        axis: Axes = None,
        *,
        axis_direction: AxisDirection = "increasing",
        keepdims: bool = False,
        index_dtype: DTypeLike | None = None,
        **options: Unpack[Options],
    ) -> ArrayT:
        """DML_OPERATOR_ARGMIN: the index of the smallest element over `axes`."""
        call = Call(
            "arg_min",
            (x,),
            {
                "axes": axis,
                "axis_direction": axis_direction,
            },
            keepdims=keepdims,
            index_dtype=index_dtype,
            index_output=0,
        )
        return self._run(call, options)

    @checked
    def argmax(
        self,
        x: ArrayLike,
        axis: Axes = None,
        *,
        axis_direction: AxisDirection = "increasing",
        keepdims: bool = False,
        index_dtype: DTypeLike | None = None,
        **options: Unpack[Options],
    ) -> ArrayT:
        """DML_OPERATOR_ARGMAX: the index of the largest element over `axes`."""
        call = Call(
            "arg_max",
            (x,),
            {
                "axes": axis,
                "axis_direction": axis_direction,
            },
            keepdims=keepdims,
            index_dtype=index_dtype,
            index_output=0,
        )
        return self._run(call, options)

    @checked
    def reduce(
        self,
        x: ArrayLike,
        function: ReduceFunction,
        axis: Axes = None,
        *,
        keepdims: bool = False,
        index_dtype: DTypeLike | None = None,
        **options: Unpack[Options],
    ) -> ArrayT:
        """DML_OPERATOR_REDUCE."""
        call = Call(
            "reduce",
            (x,),
            {
                "function": function,
                "axes": axis,
            },
            keepdims=keepdims,
            index_dtype=index_dtype,
            index_output=0,
        )
        return self._run(call, options)

    @checked
    def top_k(
        self,
        x: ArrayLike,
        k: int,
        axis: int = -1,
        *,
        largest: bool = True,
        index_dtype: DTypeLike | None = None,
        **options: Unpack[Options],
    ) -> TopKT:
        """DML_OPERATOR_TOP_K1, and DML_OPERATOR_TOP_K with AXIS_DIRECTION_DECREASING.
        Output 0 holds the values, output 1 their indices along the axis."""
        call = Call(
            "top_k",
            (x,),
            {
                "axis": axis,
                "k": k,
                "axis_direction": "decreasing" if largest else "increasing",
            },
            index_dtype=index_dtype,
            index_output=1,
            result=TopK,
        )
        return self._run(call, options)

    @checked
    def hardmax(
        self,
        x: ArrayLike,
        axis: Axes = -1,
        **options: Unpack[Options],
    ) -> ArrayT:
        """DML_OPERATOR_ACTIVATION_HARDMAX1: 1 at the first largest element over `axes`, 0
        elsewhere."""
        call = Call(
            "hardmax",
            (x,),
            {
                "axes": axis,
            },
        )
        return self._run(call, options)

    @checked
    def add(
        self,
        a: ArrayLike,
        b: ArrayLike,
        **options: Unpack[Options],
    ) -> ArrayT:
        """DML_OPERATOR_ELEMENT_WISE_ADD: a + b. The tensors have the same sizes; a stride
        of 0 broadcasts an input along a dimension."""
        call = Call(
            "element_wise_add",
            (a, b),
            {},
        )
        return self._run(call, options)

    @checked
    def cumulative_sum(
        self,
        x: ArrayLike,
        axis: int = -1,
        *,
        axis_direction: AxisDirection = "increasing",
        has_exclusive_sum: bool = False,
        **options: Unpack[Options],
    ) -> ArrayT:
        """DML_OPERATOR_CUMULATIVE_SUMMATION: the sums of all elements up to each one along
        `axis`, from the first one on (INCREASING) or from the last one (DECREASING). Unlike
        NumPy's cumsum, it takes the last axis by default."""
        call = Call(
            "cumulative_summation",
            (x,),
            {
                "axis": axis,
                "axis_direction": axis_direction,
                "has_exclusive_sum": has_exclusive_sum,
            },
        )
        return self._run(call, options)

    @checked
    def mean(
        self,
        x: ArrayLike,
        axis: Axes = None,
        *,
        keepdims: bool = False,
        **options: Unpack[Options],
    ) -> ArrayT:
        """`reduce` with AVERAGE."""
        return self.reduce(x, "average", axis, keepdims=keepdims, **options)

    @checked
    def l1(
        self,
        x: ArrayLike,
        axis: Axes = None,
        *,
        keepdims: bool = False,
        **options: Unpack[Options],
    ) -> ArrayT:
        """`reduce` with L1."""
        return self.reduce(x, "l1", axis, keepdims=keepdims, **options)

    @checked
    def l2(
        self,
        x: ArrayLike,
        axis: Axes = None,
        *,
        keepdims: bool = False,
        **options: Unpack[Options],
    ) -> ArrayT:
        """`reduce` with L2."""
        return self.reduce(x, "l2", axis, keepdims=keepdims, **options)

    @checked
    def log_sum(
        self,
        x: ArrayLike,
        axis: Axes = None,
        *,
        keepdims: bool = False,
        **options: Unpack[Options],
    ) -> ArrayT:
        """`reduce` with LOG_SUM."""
        return self.reduce(x, "log_sum", axis, keepdims=keepdims, **options)

    @checked
    def log_sum_exp(
        self,
        x: ArrayLike,
        axis: Axes = None,
        *,
        keepdims: bool = False,
        **options: Unpack[Options],
    ) -> ArrayT:
        """`reduce` with LOG_SUM_EXP."""
        return self.reduce(x, "log_sum_exp", axis, keepdims=keepdims, **options)

    @checked
    def max(
        self,
        x: ArrayLike,
        axis: Axes = None,
        *,
        keepdims: bool = False,
        **options: Unpack[Options],
    ) -> ArrayT:
        """`reduce` with MAX."""
        return self.reduce(x, "max", axis, keepdims=keepdims, **options)

    @checked
    def min(
        self,
        x: ArrayLike,
        axis: Axes = None,
        *,
        keepdims: bool = False,
        **options: Unpack[Options],
    ) -> ArrayT:
        """`reduce` with MIN."""
        return self.reduce(x, "min", axis, keepdims=keepdims, **options)

    @checked
    def prod(
        self,
        x: ArrayLike,
        axis: Axes = None,
        *,
        keepdims: bool = False,
        **options: Unpack[Options],
    ) -> ArrayT:
        """`reduce` with MULTIPLY."""
        return self.reduce(x, "multiply", axis, keepdims=keepdims, **options)

    @checked
    def sum(
        self,
        x: ArrayLike,
        axis: Axes = None,
        *,
        keepdims: bool = False,
        **options: Unpack[Options],
    ) -> ArrayT:
        """`reduce` with SUM."""
        return self.reduce(x, "sum", axis, keepdims=keepdims, **options)

    @checked
    def sum_square(
        self,
        x: ArrayLike,
        axis: Axes = None,
        *,
        keepdims: bool = False,
        **options: Unpack[Options],
    ) -> ArrayT:
        """`reduce` with SUM_SQUARE."""
        return self.reduce(x, "sum_square", axis, keepdims=keepdims, **options)
