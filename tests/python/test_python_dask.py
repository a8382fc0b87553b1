"""opmill.dask on uneven chunks with ties, NaN and -0, against NumPy; models of blocks; and a server that dies."""

import itertools
import pathlib
import pickle
import re
import tempfile
import threading
import unittest
import warnings

import dask
import dask.array as da
import numpy as np
import onnx_model
import oracle
from server_process import ServerProcess

import opmill
import opmill.dask as od

SHAPE = (23, 17, 5)
CHUNKS = ((7, 1, 0, 15), (10, 7), (5,))
AXES = (0, 1, -1, (0, 1), (2, 0), (), None)


class Values(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        servers = [cls.enterClassContext(ServerProcess(device="cpu")) for _ in range(2)]
        cls.c = cls.enterClassContext(opmill.connect([server.address for server in servers]))

    def test_reductions(self):
        names = {"average": "mean", "multiply": "prod"}
        for dtype, nans, axes in (("float32", 0.01, AXES), ("float32", 0, (0, (0, 1), None)),
                                  ("float16", 0, (0, None)), ("int32", 0, (0, (2, 0)))):
            x = oracle.awkward(dtype, SHAPE, nans=nans)
            d = da.from_array(x, chunks=CHUNKS)
            lazy = {}
            for function in oracle.FUNCTIONS:
                if dtype == "int32" and function in ("average", "l2", "log_sum", "log_sum_exp"):
                    continue
                method = getattr(od, names.get(function, function))
                for axis in axes:
                    lazy[function, axis] = method(self.c, d, axis)
                lazy[function, 1, True] = od.reduce(self.c, d, function, 1, keepdims=True,
                                                    split_every=2)
            for key, actual in dask.compute(lazy)[0].items():
                self.assertEqual((lazy[key].dtype, lazy[key].shape), (x.dtype, actual.shape))
                oracle.assert_close(actual, x, key[0], key[1], len(key) > 2,
                                    f"{key} {dtype} {nans}")

    def test_extremes_of_zeros(self):
        x = np.array([0.0, -0.0, -0.0, 0.0], np.float32)
        d = da.from_array(x, chunks=1)
        self.assertFalse(np.signbit(od.max(self.c, d).compute()))
        self.assertTrue(np.signbit(od.min(self.c, d).compute()))

    def test_range(self):
        """Partial results have at least the range of the server's."""
        half = da.from_array(np.array([60000, 60000, -60000, 32], np.float16), chunks=2)
        self.assertEqual(od.sum(self.c, half).compute(), 60032)
        large = da.from_array(np.full(64, 3e38, np.float32), chunks=9)
        np.testing.assert_allclose(od.mean(self.c, large).compute(), 3e38, rtol=1e-6)
        for values in ([100.0], [-100.0, -100.0], [-np.inf] * 3, [np.inf, 0], [-np.inf, 2]):
            x = np.array(values, np.float32)
            np.testing.assert_allclose(
                od.log_sum_exp(self.c, da.from_array(x, chunks=1)).compute(),
                self.c.log_sum_exp(x), rtol=1e-6)

    def test_argmin_and_argmax(self):
        for dtype in ("float32", "int8", "uint64"):
            x = oracle.awkward(dtype, SHAPE, seed=5, nans=0.01)
            d = da.from_array(x, chunks=CHUNKS)
            lazy = {}
            for operator in ("argmin", "argmax"):
                for axis in AXES:
                    for direction in ("increasing", "decreasing"):
                        last = direction == "decreasing"
                        keepdims = last == (operator == "argmin")  # both with both
                        lazy[operator, axis, last, keepdims] = getattr(od, operator)(
                            self.c, d, axis, axis_direction=direction, keepdims=keepdims)
            for key, actual in dask.compute(lazy)[0].items():
                self.assertEqual((lazy[key].dtype, lazy[key].shape), (np.int64, actual.shape))
                np.testing.assert_array_equal(actual, oracle.arg_extreme(x, *key), err_msg=str(key))

    def test_top_k(self):
        for dtype in ("float32", "float16", "int16"):
            x = oracle.awkward(dtype, SHAPE, seed=6, nans=0.05)
            d = da.from_array(x, chunks=CHUNKS)
            for axis, k in ((0, 4), (0, 23), (1, 9), (-1, 3)):
                for largest in (True, False):
                    actual = od.top_k(self.c, d, k, axis, largest=largest)
                    values, indices = oracle.top_k(x, k, axis, largest)
                    self.assertEqual(actual.values.shape, values.shape)
                    computed = dask.compute(actual.values, actual.indices)
                    np.testing.assert_array_equal(computed[0], values)
                    np.testing.assert_array_equal(computed[1], indices)

    def test_refusals(self):
        d = da.ones((4, 6), chunks=(2, 3), dtype=np.float32)
        with self.assertRaisesRegex(opmill.InvalidArgument, "k \\(7\\)"):
            od.top_k(self.c, d, 7)
        with self.assertRaisesRegex(opmill.InvalidArgument, "axis \\(2\\)"):
            od.sum(self.c, d, 2)
        with self.assertRaisesRegex(ValueError, "compute_chunk_sizes"):
            od.argmax(self.c, d[d > 0])
        with self.assertRaisesRegex(opmill.InvalidArgument, 'float64.* cast="float32"'):
            od.sum(self.c, d.astype(np.float64))
        with self.assertRaisesRegex(TypeError, "ndarray"):
            od.sum(self.c, np.ones(3, np.float32))
        with self.assertRaisesRegex(opmill.InvalidArgument, "without dimensions"):
            od.sum(self.c, d[0, 0])

    def test_masked_arrays_are_refused(self):
        x = np.ma.masked_greater(np.arange(12, dtype=np.float32).reshape(3, 4), 5)
        d = da.from_array(x, chunks=2)
        hidden = d.map_blocks(lambda block: block, meta=np.empty((0, 0), np.float32))
        for name in ("sum", "max", "argmax"):
            for array in (d, hidden):
                with self.assertRaisesRegex(opmill.InvalidArgument, "masked"):
                    getattr(od, name)(self.c, array).compute()
        with self.assertRaisesRegex(opmill.InvalidArgument, "masked"):
            od.top_k(self.c, hidden, 1).values.compute()

    def test_casts(self):
        x = oracle.awkward("int32", SHAPE, seed=7).astype(np.int16)
        d = da.from_array(x, chunks=CHUNKS)
        wide = d.astype(np.float64)
        expected = x.astype(np.float32)
        for name in ("mean", "sum", "max"):
            actual = getattr(od, name)(self.c, wide, axis=0, cast="float32")
            self.assertEqual(actual.dtype, np.float32)
            np.testing.assert_allclose(actual.compute(), getattr(np, name)(expected, axis=0), 1e-5,
                                       1e-3)
        self.assertEqual(od.max(self.c, d, cast="float32").dtype, np.float32)
        with self.assertRaisesRegex(opmill.InvalidArgument, "does not fit in float32"):
            od.sum(self.c, wide * 1e300, cast="float32").compute()
        self.assertEqual(od.argmax(self.c, wide, cast="float32").compute(), expected.argmax())
        with opmill.connect(self.c._options.target, cast="float32") as c:
            np.testing.assert_allclose(od.mean(c, d).compute(), expected.mean(), 1e-5)
            self.assertEqual(od.max(c, d).dtype, np.int16)  # it takes int16
            self.assertEqual(od.top_k(c, wide, 2, 0).values.compute().dtype, np.float32)


class Empty(unittest.TestCase):
    """Arrays and chunks without elements: NumPy's results, and NumPy's errors."""

    # Chunks of each dimension.
    CHUNKS = (((0,),), ((0, 0),), ((0, 2, 0, 3, 0),), ((0, 0), (3,)), ((2, 1), (0,)),
              ((0,), (0, 0)), ((0, 2, 0), (0, 1, 2)), ((2,), (0, 0), (1, 2)),
              ((0, 2), (3,), (0, 1)))

    @classmethod
    def setUpClass(cls):
        server = cls.enterClassContext(ServerProcess(device="cpu"))
        cls.c = cls.enterClassContext(opmill.connect(server.address))
        cls.enterClassContext(dask.config.set(scheduler="synchronous"))

    def check(self, lazy, expected, what):
        """`lazy` and `expected` are functions; what the one raises, the other one does."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # the mean of nothing
            try:
                wanted = expected()
            except ValueError as error:
                with self.assertRaisesRegex(ValueError, re.escape(str(error)[:30]), msg=what):
                    lazy().compute()
                return
            actual = lazy().compute()
        self.assertEqual(np.shape(actual), np.shape(wanted), what)
        np.testing.assert_allclose(actual, wanted, rtol=1e-6, err_msg=what)

    def check_all(self, d, x, axes, split_every=None):
        names = {"average": "mean", "multiply": "prod"}
        for function, reference in oracle.FUNCTIONS.items():
            for axis in axes:
                for keepdims in (False, True):
                    kept = {"axis": axis, "keepdims": keepdims}
                    self.check(
                        lambda: getattr(od, names.get(function, function))(
                            self.c, d, split_every=split_every, **kept),
                        lambda: reference(x, **({"axis": tuple(range(x.ndim)), **kept}
                                                if axis is None else kept)),
                        f"{function} {d.chunks} {kept}")

    def test_reductions(self):
        for chunks in self.CHUNKS:
            shape = tuple(map(sum, chunks))
            x = np.arange(1, 1 + np.prod(shape), dtype=np.float32).reshape(shape)
            axes = [None, *itertools.chain.from_iterable(
                itertools.combinations(range(x.ndim), count) for count in range(1, x.ndim + 1))]
            self.check_all(da.from_array(x, chunks=chunks), x, axes, split_every=2)

    def test_argmin_and_argmax(self):
        for chunks in self.CHUNKS:
            x = np.zeros(tuple(map(sum, chunks)), np.int32)
            d = da.from_array(x, chunks=chunks)
            for name in ("argmin", "argmax"):
                for axis in (None, *range(x.ndim)):
                    for keepdims in (False, True):
                        kept = {"axis": axis, "keepdims": keepdims}
                        self.check(lambda: getattr(od, name)(self.c, d, **kept),
                                   lambda: getattr(np, name)(x, **kept),
                                   f"{name} {chunks} {kept}")

    def test_what_a_filter_leaves(self):
        """Their sizes are unknown to Dask."""
        x = np.arange(1, 41, dtype=np.float32)
        rows = x.reshape(10, 4)
        d, e = da.from_array(x, chunks=7), da.from_array(rows, chunks=(3, 2))
        for least in (15, 100):
            self.check_all(d[d > least], x[x > least], (None,))
            self.check_all(e[e[:, 0] > least], rows[rows[:, 0] > least], (0, 1))

    def test_integers(self):
        d = da.zeros((0, 3), dtype=np.int32, chunks=((0, 0), 2))
        for name, value in (("sum", 0), ("prod", 1), ("l1", 0), ("sum_square", 0)):
            actual = getattr(od, name)(self.c, d, axis=0).compute()
            self.assertEqual((actual.tolist(), actual.dtype), ([value] * 3, np.int32))

    def test_top_k(self):
        d = da.from_array(np.array([3, 1, 2], np.float32), chunks=((0, 2, 0, 1, 0),))
        values, indices = dask.compute(*od.top_k(self.c, d, 2))
        self.assertEqual((values.tolist(), indices.tolist()), ([3, 2], [0, 2]))
        none = da.zeros((0, 3), dtype=np.float32, chunks=((0, 0), 2))
        self.assertEqual(od.top_k(self.c, none, 2).values.compute().shape, (0, 2))
        with self.assertRaisesRegex(ValueError, "size \\(0\\)"):
            od.top_k(self.c, none, 1, axis=0)


class Models(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        onnx_model.write_model(cls.folder)
        onnx_model.write_model(cls.folder, "sum", model=onnx_model.sum_model())
        server = cls.enterClassContext(
            ServerProcess(f"--model_repository={cls.folder}", "--max_inline_models=1", device="cpu"))
        cls.c = cls.enterClassContext(opmill.connect(server.address))
        cls.made = cls.c.model("made")
        cls.x = np.random.default_rng(3).standard_normal((23, 6), np.float32)
        cls.offset = np.arange(6, dtype=np.float32)

    def outputs(self, d, model=None):
        return od.map_blocks(model or self.made, d, self.offset, shape=[-1, 6], timeout=60)

    def check(self, lazy, x):
        wanted = onnx_model.expected(x, self.offset, (-1, 6))
        del wanted["total"]  # it has no rows
        got = dict(zip(lazy, dask.compute(*lazy.values())))
        self.assertEqual(list(got), list(wanted))
        for name, array in wanted.items():
            self.assertEqual((got[name].shape, got[name].dtype), (array.shape, array.dtype))
            self.assertEqual(lazy[name].dtype, array.dtype)
            np.testing.assert_allclose(got[name], array, rtol=1e-5)

    def test_blocks(self):
        for chunks in ((7, 6), (1, 6), (23, 2), ((7, 1, 15), (4, 2))):
            d = da.from_array(self.x, chunks=chunks)
            lazy = self.outputs(d)
            self.check(lazy, self.x)
            self.assertEqual(lazy["positive"].chunks, (d.chunks[0], (6,)))
        before = self.c.statistics().models[0].succeeded
        self.check(self.outputs(da.from_array(self.x, chunks=(5, 3))), self.x)  # one call for each block
        self.assertEqual(self.c.statistics().models[0].succeeded - before, 5)

    def test_several_arrays(self):
        a, b = self.x[:, :3], self.x[:, 3:]
        y = od.map_blocks(self.c.model("sum"), b=da.from_array(b, chunks=(4, 1)), a=da.from_array(a, chunks=7))["y"]
        self.assertEqual(y.shape, (23, 3))
        np.testing.assert_array_equal(y.compute(), a + b)

    def test_rows_that_a_filter_leaves(self):
        d = da.from_array(self.x, chunks=(3, 6))
        for least in (0, 1.5):
            positive = self.outputs(d[d[:, 0] > least])["positive"]
            np.testing.assert_array_equal(positive.compute(), self.x[self.x[:, 0] > least] > 0)

    def test_other_processes(self):
        path = self.folder / "file.onnx"
        path.write_bytes(onnx_model.made_model())
        d = da.from_array(self.x, chunks=(12, 6))
        models = (self.made, opmill.Model(self.c, path), opmill.Model(self.c, path.read_bytes()))
        computed = dask.compute(*(self.outputs(d, model)["y"] for model in models), scheduler="processes",
                                num_workers=2)
        for y in computed:
            np.testing.assert_array_equal(y, self.made(self.x, self.offset, [-1, 6])["y"])

    def test_copies_of_models(self):
        path = self.folder / "copied.onnx"
        path.write_bytes(onnx_model.made_model())
        copy = pickle.loads(pickle.dumps(opmill.Model(self.c, path)))
        opmill.Model(self.c, onnx_model.made_model(3.0))  # the server keeps one model: this one
        d = da.from_array(self.x, chunks=(12, 6))
        self.check(self.outputs(d, copy), self.x)
        copy = pickle.loads(pickle.dumps(copy))
        opmill.Model(self.c, onnx_model.made_model(3.0))
        path.write_bytes(onnx_model.made_model(4.0))
        with self.assertRaisesRegex(opmill.FailedPrecondition, "copied.onnx has changed since the model was made"):
            self.outputs(d, copy)["y"].compute()

    def test_refusals(self):
        d = da.from_array(self.x, chunks=7)
        for array, kind, sentence in (
                (self.x, TypeError, "made got no array of Dask; da.asarray"),
                (d.astype(np.float64), opmill.InvalidArgument, "The input x of made is float32, not float64."),
                (d[:, :5], opmill.InvalidArgument, r"has the shape \(-1, 6\), not \(-1, 5\)"),
                (d[0], opmill.InvalidArgument, r"has the shape \(-1, 6\), not \(6,\)"),
                (d[0, 0], opmill.InvalidArgument, "which has no rows"),
                (da.ma.masked_greater(d, 5), opmill.InvalidArgument, "masked")):
            with self.subTest(sentence), self.assertRaisesRegex(kind, sentence):
                self.outputs(array)
        with self.assertRaisesRegex(TypeError, "made got no input 'shape'"):
            od.map_blocks(self.made, d, self.offset)
        with self.assertRaisesRegex(ValueError, "The output y of made has 1 rows for a block of"):
            od.map_blocks(self.made, d, self.offset, shape=[1, -1])["y"].compute()


class Failures(unittest.TestCase):
    def test_one_of_two_servers_dies_midway(self):
        random = np.random.default_rng(8)
        parts = random.integers(0, 1000, (40, 100, 64)).astype(np.float32)
        with (ServerProcess(device="cpu") as first, ServerProcess(device="cpu") as second,
              opmill.connect([first.address, second.address], max_attempts=60) as c):
            killed = threading.Event()

            def load(number):
                if number[0] == 20:
                    first.kill()
                    killed.set()
                return parts[number[0]]

            def blocks():
                return da.map_blocks(lambda block_id=None: load(block_id), chunks=(
                    (100,) * 40, (64,)), dtype=np.float32, meta=np.empty((0, 0), np.float32))

            x = parts.reshape(-1, 64)
            top = od.top_k(c, blocks(), 5, 0)
            best = od.argmax(c, blocks(), 0, axis_direction="decreasing")
            total = od.log_sum_exp(c, blocks(), 0)
            values, indices, best, total = dask.compute(top.values, top.indices, best, total)
            self.assertTrue(killed.is_set())
            expected = oracle.top_k(x, 5, 0)
            np.testing.assert_array_equal(values, expected[0])
            np.testing.assert_array_equal(indices, expected[1])
            np.testing.assert_array_equal(best, oracle.arg_extreme(x, "argmax", 0, last=True))
            oracle.assert_close(total, x, "log_sum_exp", 0)
