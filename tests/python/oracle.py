"""Expected results, computed with NumPy: selections exactly, sums in float64."""

import numpy as np

FUNCTIONS = {
    "average": lambda x, **kept: np.mean(x, **kept),
    "l1": lambda x, **kept: np.sum(np.abs(x), dtype=x.dtype, **kept),
    "l2": lambda x, **kept: np.sqrt(np.sum(x * x, **kept)),
    "log_sum": lambda x, **kept: np.log(np.sum(x, **kept)),
    "log_sum_exp": lambda x, **kept: np.logaddexp.reduce(x, **kept),
    "max": lambda x, **kept: np.max(x, **kept),
    "min": lambda x, **kept: np.min(x, **kept),
    "multiply": lambda x, **kept: np.prod(x, dtype=x.dtype, **kept),
    "sum": lambda x, **kept: np.sum(x, dtype=x.dtype, **kept),
    "sum_square": lambda x, **kept: np.sum(x * x, dtype=x.dtype, **kept),
}


def awkward(dtype, shape, seed=0, nans=0.0):
    """An array of few distinct values, so that there are ties, with -0 and NaN, or extremes."""
    random = np.random.default_rng(seed)
    dtype = np.dtype(dtype)
    if dtype.kind == "f":
        x = (random.integers(-8, 9, shape) / 4).astype(dtype)
        x[random.random(shape) < 0.05] = -0.0
        x[random.random(shape) < nans] = np.nan
        return x
    limits = np.iinfo(dtype)
    return random.choice(np.array([limits.min, limits.max, 0, 1, 2, 3, 5, 7], dtype), shape)


def all_axes(x, axis):
    axes = range(x.ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    return tuple(sorted(a % x.ndim for a in axes))


def reduce(x, function, axis=None, keepdims=False):
    kept = {"axis": all_axes(x, axis), "keepdims": keepdims}
    wide = x.astype(np.float64) if x.dtype.kind == "f" else x
    with np.errstate(all="ignore"):
        return np.asarray(FUNCTIONS[function](wide, **kept))


def assert_close(actual, x, function, axis=None, keepdims=False, msg=""):
    """Expects values within the bound of docs/operators.md, plus one step of float16."""
    expected = reduce(x, function, axis, keepdims)
    assert actual.shape == expected.shape and actual.dtype == x.dtype, msg
    if x.dtype.kind != "f" or function in ("max", "min"):
        np.testing.assert_array_equal(actual, expected.astype(x.dtype), err_msg=msg)
        return
    count = x.size // max(expected.size, 1)
    eps = 2.0**-23 if x.dtype == np.float32 else 2.0**-11
    scale = reduce(np.abs(x), "sum_square" if function in ("l2", "sum_square") else "l1", axis,
                   keepdims)
    if function == "average":
        scale = scale / count
    elif function in ("log_sum", "log_sum_exp", "multiply", "l2"):
        scale = np.abs(expected) + 1
    if function == "log_sum":  # the error of the sum, relative to it
        with np.errstate(all="ignore"):
            scale = scale + reduce(np.abs(x), "l1", axis, keepdims) / np.exp(expected)
    bound = 4 * eps * (np.log2(count) + 4) * np.nan_to_num(scale)
    np.testing.assert_array_equal(np.isnan(actual), np.isnan(expected), err_msg=msg)
    finite = np.isfinite(expected)
    np.testing.assert_array_equal(actual[~finite], expected[~finite].astype(x.dtype), err_msg=msg)
    off = np.abs(actual[finite].astype(np.float64) - expected[finite])
    assert np.all(off <= bound[finite]), f"{msg}: {actual} is not {expected} within {bound}"


def _rows(x, axes):
    """Moves the reduced axes to the end and merges them."""
    kept = [axis for axis in range(x.ndim) if axis not in axes]
    shape = [x.shape[axis] for axis in kept]
    return x.transpose(*kept, *axes).reshape(*shape, -1)


def arg_extreme(x, operator, axis=None, last=False, keepdims=False):
    """The first or last of equal extremes; NaN before any number, as in NumPy."""
    axes = all_axes(x, axis)
    rows = _rows(x, axes)
    extreme = np.argmax if operator == "argmax" else np.argmin
    if last:
        index = rows.shape[-1] - 1 - extreme(rows[..., ::-1], axis=-1)
    else:
        index = extreme(rows, axis=-1)
    index = np.asarray(index)
    return np.expand_dims(index, axes) if keepdims else index


def top_k(x, k, axis=-1, largest=True):
    """NaN is the largest; equal values are in ascending order of index."""
    if largest:
        n = x.shape[axis]
        order = n - 1 - np.flip(np.argsort(np.flip(x, axis), axis=axis, kind="stable"), axis)
    else:
        order = np.argsort(x, axis=axis, kind="stable")
    indices = np.take(order, range(k), axis=axis)
    return np.take_along_axis(x, indices, axis), indices


def hardmax(x, axis=-1):
    axes = all_axes(x, axis)
    index = arg_extreme(x, "argmax", axes, keepdims=True)
    position = np.arange(np.prod([x.shape[a] for a in axes]))
    shape = [x.shape[a] if a in axes else 1 for a in range(x.ndim)]
    return (position.reshape(shape) == index).astype(x.dtype)


def cumulative_sum(x, axis=-1, reverse=False, exclusive=False):
    wide = x.astype(np.float64) if x.dtype.kind == "f" else x
    wide = np.flip(wide, axis) if reverse else wide
    total = np.cumsum(wide, axis=axis, dtype=wide.dtype)
    if exclusive:
        total = total - wide
    return np.flip(total, axis) if reverse else total
