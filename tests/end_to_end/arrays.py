"""NumPy arrays as tensors of the service, and the expected results from NumPy."""

import numpy as np

from api import op, ts

DATA_TYPES = {
    "float32": ts.DATA_TYPE_FLOAT32, "float16": ts.DATA_TYPE_FLOAT16,
    "uint64": ts.DATA_TYPE_UINT64, "uint32": ts.DATA_TYPE_UINT32,
    "uint16": ts.DATA_TYPE_UINT16, "uint8": ts.DATA_TYPE_UINT8,
    "int64": ts.DATA_TYPE_INT64, "int32": ts.DATA_TYPE_INT32,
    "int16": ts.DATA_TYPE_INT16, "int8": ts.DATA_TYPE_INT8,
}
FLOATS = ("float32", "float16")
FLOATS_AND_WIDE_INTEGERS = (*FLOATS, "int64", "int32", "uint64", "uint32")
ALL_TYPES = tuple(DATA_TYPES)

# The types of each reduce function at the newest feature level.
FUNCTION_TYPES = {
    "argmax": ALL_TYPES, "argmin": ALL_TYPES, "max": ALL_TYPES, "min": ALL_TYPES,
    "average": FLOATS, "l2": FLOATS, "log_sum": FLOATS, "log_sum_exp": FLOATS,
    "l1": FLOATS_AND_WIDE_INTEGERS, "sum_square": FLOATS_AND_WIDE_INTEGERS,
    "multiply": FLOATS_AND_WIDE_INTEGERS, "sum": FLOATS_AND_WIDE_INTEGERS,
}
DIRECTIONS = {"increasing": op.AXIS_DIRECTION_INCREASING,
              "decreasing": op.AXIS_DIRECTION_DECREASING}


def tensor(array):
    """The descriptor of an array; with strides if it is not packed in row-major order."""
    strides = []
    if not array.flags.c_contiguous:
        strides = [stride // array.itemsize for stride in array.strides]
    return ts.TensorDesc(data_type=DATA_TYPES[array.dtype.name], sizes=array.shape,
                         strides=strides)


def data_of(array):
    """The bytes that belong to the descriptor of `tensor`."""
    return array.tobytes(order="A")


def array_of(outcome, index=0):
    desc = outcome.started.outputs[index]
    name = next(name for name, value in DATA_TYPES.items() if value == desc.data_type)
    return np.frombuffer(outcome.output(index), name).reshape(desc.sizes)


def argmin(array, axes, direction="increasing"):
    return op.OperatorDesc(arg_min=op.ArgMinDesc(
        input=tensor(array), axes=axes, axis_direction=DIRECTIONS[direction]))


def argmax(array, axes, direction="increasing"):
    return op.OperatorDesc(arg_max=op.ArgMaxDesc(
        input=tensor(array), axes=axes, axis_direction=DIRECTIONS[direction]))


def reduce(array, function, axes):
    value = op.ReduceFunction.Value("REDUCE_FUNCTION_" + function.upper())
    return op.OperatorDesc(reduce=op.ReduceDesc(function=value, input=tensor(array), axes=axes))


def top_k(array, axis, k, direction="increasing"):
    return op.OperatorDesc(top_k=op.TopKDesc(
        input=tensor(array), axis=axis, k=k, axis_direction=DIRECTIONS[direction]))


def hardmax(array, axes):
    return op.OperatorDesc(hardmax=op.HardmaxDesc(input=tensor(array), axes=axes))


def awkward(dtype, shape, seed):
    """An array of few distinct values, so that there are ties, with the extremes of integers."""
    random = np.random.default_rng(seed)
    dtype = np.dtype(dtype)
    if dtype.kind == "f":
        array = random.integers(-8, 9, shape).astype(dtype) / dtype.type(4)
        array.flat[random.integers(array.size)] = -0.0
        return array
    limits = np.iinfo(dtype)
    choices = np.array([limits.min, limits.max, 0, 1, 2, 3, 5, 7, 100], dtype)
    return random.choice(choices, shape)


def _rows(array, axes):
    """Moves the reduced axes to the end and merges them; also returns the remaining shape."""
    axes = sorted(axis % array.ndim for axis in axes)
    kept = [axis for axis in range(array.ndim) if axis not in axes]
    shape = [1 if axis in axes else size for axis, size in enumerate(array.shape)]
    outer = int(np.prod([array.shape[axis] for axis in kept], dtype=np.int64))
    return array.transpose(kept + axes).reshape(outer, -1), shape


def expect_arg(array, axes, extreme, direction="increasing", dtype="uint32"):
    rows, shape = _rows(array, axes)
    find = np.argmax if extreme == "max" else np.argmin
    if direction == "increasing":
        places = find(rows, axis=1)
    else:
        places = rows.shape[1] - 1 - find(rows[:, ::-1], axis=1)
    return places.astype(dtype).reshape(shape)


def expect_reduce(array, function, axes):
    """Expected results: floats in float64; integers wrap."""
    if function in ("argmax", "argmin"):
        return expect_arg(array, axes, function[3:])
    axes = tuple(axes)
    if function in ("max", "min"):
        return getattr(np, function)(array, axis=axes, keepdims=True)
    wide = array.astype(np.float64) if array.dtype.kind == "f" else array
    kept = {"axis": axes, "keepdims": True}
    with np.errstate(all="ignore"):
        if function == "average":
            return np.mean(wide, **kept)
        if function == "l1":
            return np.sum(np.abs(wide), dtype=wide.dtype, **kept)
        if function == "l2":
            return np.sqrt(np.sum(wide * wide, **kept))
        if function == "log_sum":
            return np.log(np.sum(wide, **kept))
        if function == "log_sum_exp":
            return np.log(np.sum(np.exp(wide), **kept))
        if function == "multiply":
            return np.prod(wide, dtype=wide.dtype, **kept)
        if function == "sum":
            return np.sum(wide, dtype=wide.dtype, **kept)
        if function == "sum_square":
            return np.sum(wide * wide, dtype=wide.dtype, **kept)
    raise ValueError(function)


def expect_top_k(array, axis, k, direction="increasing"):
    """Expected values and indices. Of equal values the lower index is first, in both directions."""
    if direction == "increasing":
        order = np.argsort(array, axis=axis, kind="stable")
    else:
        backwards = np.argsort(np.flip(array, axis), axis=axis, kind="stable")
        order = array.shape[axis] - 1 - np.flip(backwards, axis)
    order = np.take(order, range(k), axis=axis)
    return np.take_along_axis(array, order, axis), order.astype("uint32")


def expect_hardmax(array, axes):
    rows, _ = _rows(array, axes)
    marks = np.zeros(rows.shape, array.dtype)
    marks[np.arange(len(rows)), np.argmax(rows, axis=1)] = 1
    axes = sorted(axis % array.ndim for axis in axes)
    order = [axis for axis in range(array.ndim) if axis not in axes] + axes
    return marks.reshape([array.shape[axis] for axis in order]).transpose(np.argsort(order))


def check_close(actual, expected, source, function, axes):
    """Compares with `expected` in float64: sums within the bound of docs/operators.md, products by
    relative error."""
    kept = {"axis": tuple(axes), "keepdims": True}
    wide = np.abs(source.astype(np.float64))
    count = source.size // expected.size
    magnitude = np.sum(wide * wide if function in ("sum_square", "l2") else wide, **kept)
    if function in ("sum", "l1", "sum_square"):
        scale = magnitude
    elif function == "average":
        scale = magnitude / count
    elif function == "log_sum":
        with np.errstate(divide="ignore", invalid="ignore"):
            scale = magnitude / np.exp(expected) + np.abs(expected)
    else:
        scale = np.maximum(np.abs(expected), 1)
    bound = 2 * np.finfo(np.float32).eps * (np.log2(count) + 4) * scale
    rounded = expected.astype(actual.dtype)
    if actual.dtype == np.float16:
        with np.errstate(invalid="ignore"):
            bound = bound + np.abs(np.spacing(rounded).astype(np.float64))
    np.testing.assert_array_equal(np.isnan(actual), np.isnan(rounded))
    finite = np.isfinite(rounded)
    np.testing.assert_array_equal(actual[~finite], rounded[~finite])
    off = np.abs(actual[finite].astype(np.float64) - expected[finite])
    assert np.all(off <= bound[finite]), f"{function}: {actual} is not {expected} within {bound}"
