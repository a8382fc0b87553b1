"""`opmill run` on .npy files that NumPy wrote, against NumPy."""

import concurrent.futures
import functools
import itertools
import os
import pathlib
import subprocess
import tempfile
import unittest

import numpy as np

import arrays
from server_process import CLI, ServerProcess, plain_environment

# Of each operator, axes in turn; the shapes have as many dimensions.
SHAPES_AND_AXES = [((2, 3, 8), "-1"), ((4, 6), "0"), ((2, 3, 8), "0,2"), ((3, 2, 2, 5), "-4,1"),
                   ((37,), "0"), ((2, 3, 8), "-2,-3,-1"), ((1, 6, 1), "1")]
REFUSED = 1


class NumpyFiles(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        cls.software = cls.enterClassContext(ServerProcess())
        cls.reference = cls.enterClassContext(ServerProcess(device="reference"))
        cls.pool = cls.enterClassContext(
            concurrent.futures.ThreadPoolExecutor(max_workers=2 * os.cpu_count()))
        cls.numbers = itertools.count()

    def path(self, kind):
        return str(self.directory / f"{next(self.numbers)}-{kind}.npy")

    def opmill(self, *arguments, server=None):
        server = server or self.software
        return subprocess.run([CLI, "run", *arguments, "--server", server.address],
                              env=plain_environment(), capture_output=True, text=True, timeout=60,
                              check=False)

    def run_file(self, array, *arguments, server=None):
        """What it prints for the array, in a file of its order."""
        path = self.path("input")
        np.save(path, array)
        done = self.opmill(*arguments, "--input", path, server=server)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def matrix(self, check, dtypes=arrays.ALL_TYPES, directions=(None,)):
        """check(run, array, axes as text, axes, direction) for the types in both orders, at a time
        as many as there is room for. `awkward` values, so that ties decide. Most go to the
        reference device: other tests compare the devices, and shaders take long to compile."""
        cases = []
        for index, (dtype, order, direction) in enumerate(
                itertools.product(dtypes, "CF", directions)):
            shape, text = SHAPES_AND_AXES[index % len(SHAPES_AND_AXES)]
            array = np.asarray(arrays.awkward(dtype, shape, seed=index), order=order)
            axes = [int(axis) for axis in text.split(",")]
            label = {"dtype": dtype, "order": order, "axes": text, "direction": direction}
            server = self.software if index % 5 < 2 else self.reference
            run = functools.partial(self.run_file, array, server=server)
            cases.append((label, self.pool.submit(check, run, array, text, axes, direction)))
        for label, case in cases:
            with self.subTest(**label):
                case.result()

    def arg_operator(self, extreme):
        def check(run, array, text, axes, direction):
            dtype = ("uint32", "int32", "uint64", "int64")[array.ndim % 4]
            output = self.path("output")
            run("arg" + extreme, "--axes", text, "--direction", direction, "--index_type", dtype,
                "--output", output)
            actual = np.load(output)
            self.assertEqual(actual.dtype, dtype)
            np.testing.assert_array_equal(
                actual, arrays.expect_arg(array, axes, extreme, direction))

        self.matrix(check, directions=arrays.DIRECTIONS)

    def test_argmin(self):
        self.arg_operator("min")

    def test_argmax(self):
        self.arg_operator("max")

    def test_top_k(self):
        def check(run, array, text, axes, direction):
            axis = axes[0]
            k = max(1, array.shape[axis] - 1)
            values, indices = self.path("values"), self.path("indices")
            run("top_k", "--axis", text.split(",")[0], "--k", str(k), "--direction", direction,
                "--output", values, "--indices", indices)
            expected = arrays.expect_top_k(array, axis, k, direction)
            self.assertEqual(np.load(values).dtype, array.dtype)
            np.testing.assert_array_equal(np.load(values), expected[0])
            np.testing.assert_array_equal(np.load(indices), expected[1])

        self.matrix(check, directions=arrays.DIRECTIONS)

    def test_hardmax(self):
        def check(run, array, text, axes, _):
            output = self.path("output")
            run("hardmax", "--axes", text, "--output", output)
            actual = np.load(output)
            self.assertEqual(actual.dtype, array.dtype)
            np.testing.assert_array_equal(actual, arrays.expect_hardmax(array, axes))

        self.matrix(check, arrays.FLOATS)

    def test_reduce(self):
        for function, dtypes in arrays.FUNCTION_TYPES.items():
            def check(run, array, text, axes, _, function=function):
                output = self.path("output")
                run("reduce", "--function", function, "--axes", text, "--output", output)
                actual = np.load(output)
                expected = arrays.expect_reduce(array, function, axes)
                if expected.dtype == np.float64:
                    self.assertEqual(actual.dtype, array.dtype)
                    arrays.check_close(actual, expected, array, function, axes)
                else:
                    self.assertEqual(actual.dtype, expected.dtype)
                    np.testing.assert_array_equal(actual, expected)

            with self.subTest(function=function):
                self.matrix(check, dtypes)

    def test_types_that_an_operator_does_not_take_are_refused(self):
        commands = [(["hardmax"], arrays.FLOATS)]
        commands += [(["reduce", "--function", function], dtypes)
                     for function, dtypes in arrays.FUNCTION_TYPES.items()]
        cases = []
        for command, dtypes in commands:
            for dtype in set(arrays.ALL_TYPES) - set(dtypes):
                path = self.path("input")
                np.save(path, np.ones((2, 2), dtype))
                cases.append((command, dtype, self.pool.submit(
                    self.opmill, *command, "--axes", "1", "--input", path)))
        self.assertEqual(len(cases), 8 * 5 + 4 * 4)
        for command, dtype, case in cases:
            with self.subTest(command=command, dtype=dtype):
                done = case.result()
                self.assertEqual(done.returncode, REFUSED, done.stdout)
                self.assertEqual(done.stdout, "")
                self.assertIn(f"operator.{command[0]}.input.data_type", done.stderr)
                self.assertIn(dtype.upper(), done.stderr)

    def test_a_file_of_the_wrong_kind_is_refused_before_it_is_sent(self):
        for label, array, word in (("big-endian", np.ones(3, ">f4"), "endian"),
                                   ("complex", np.ones(3, np.complex64), "c8"),
                                   ("rank 9", np.ones((1,) * 9, np.float32), "8"),
                                   ("empty", np.ones((0, 3), np.float32), "0")):
            with self.subTest(label):
                path = self.path("input")
                np.save(path, array)
                done = self.opmill("argmax", "--axes", "0", "--input", path)
                print(done.stderr, end="")
                self.assertEqual((done.returncode, done.stdout), (REFUSED, ""))
                self.assertIn(word, done.stderr)

    def test_small_results_print_as_numpy_prints_them(self):
        special = np.array([[np.nan, np.inf, -np.inf, -0.0], [1.5, 1e4, 1e-7, 3]], np.float32)
        random = np.random.default_rng(11)
        samples = [special, special.astype(np.float16), special ** 2,
                   random.standard_normal((3, 4), np.float32),
                   random.standard_normal((2, 30), np.float32) * np.float32(1e6),
                   np.array([1e-5, 2, 30000], np.float16), np.array([0.1, 0.25, 100], np.float32),
                   np.array([[1, 2], [3, 1e9]], np.float32), np.float32([1e-45, 1.1754944e-38]),
                   random.standard_normal((2, 3, 4, 2), np.float32), np.zeros(1000, np.float32),
                   np.array([16777216, 16777217, 0.5], np.float32)]
        samples += [arrays.awkward(dtype, (3, 2, 12), seed=5) for dtype in arrays.ALL_TYPES]
        cases = [(array, self.pool.submit(self.run_file, array[np.newaxis], "reduce", "--function",
                                          "max", "--axes", "0")) for array in samples]
        for array, case in cases:
            with self.subTest(str(array.dtype) + str(array.shape)):
                self.assertEqual(case.result(), f"{array[np.newaxis]}\n")

    def test_a_large_result_prints_as_a_summary(self):
        array = np.arange(1001, dtype=np.int32).reshape(1, 1001) - 500
        printed = self.run_file(array, "reduce", "--function", "max", "--axes", "0")
        self.assertEqual(printed, "(1, 1001) int32 min -500 max 500\n")

    def test_views_and_other_layouts_that_numpy_saves(self):
        base = np.arange(120, dtype=np.float32).reshape(4, 5, 6)
        for label, view in (("transposed", base.T), ("sliced", base[:, ::2]),
                            ("permuted", base.transpose(1, 0, 2)), ("broadcast",
                            np.broadcast_to(base[0], (3, 5, 6)))):
            with self.subTest(label):
                output = self.path("output")
                self.run_file(view, "reduce", "--function", "sum", "--axes", "1",
                              "--output", output)
                np.testing.assert_array_equal(np.load(output), view.sum(axis=1, keepdims=True))
