"""`opmill run` on .npy files that NumPy wrote, against NumPy."""

import concurrent.futures
import functools
import io
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
        """Writes the array to a file in its memory order, and returns what `opmill run` prints."""
        path = self.path("input")
        np.save(path, array)
        done = self.opmill(*arguments, "--input", path, server=server)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def matrix(self, check, dtypes=arrays.ALL_TYPES, directions=(None,)):
        """check(run, array, axes as text, axes, direction) for the types in both orders, at a time
        as many as there is room for. `awkward` values, so that ties decide. All but every ninth go to
        the reference device: other tests compare the devices, and shaders take long to compile."""
        cases = []
        for index, (dtype, order, direction) in enumerate(
                itertools.product(dtypes, "CF", directions)):
            shape, text = SHAPES_AND_AXES[index % len(SHAPES_AND_AXES)]
            array = np.asarray(arrays.awkward(dtype, shape, seed=index), order=order)
            axes = [int(axis) for axis in text.split(",")]
            label = {"dtype": dtype, "order": order, "axes": text, "direction": direction}
            server = self.reference if index % 9 else self.software
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
                "--keepdims", "--output", output)
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
                run("reduce", "--function", function, "--axes", text, "--keepdims", "--output",
                    output)
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
                cases.append((command, dtype, path, self.pool.submit(
                    self.opmill, *command, "--axes", "1", "--input", path)))
        self.assertEqual(len(cases), 8 * 5 + 4 * 4)
        for command, dtype, path, case in cases:
            with self.subTest(command=command, dtype=dtype):
                done = case.result()
                self.assertEqual(done.returncode, REFUSED, done.stdout)
                self.assertEqual(done.stdout, "")
                self.assertIn(f"opmill: {path}: {command[0]}", done.stderr)
                self.assertIn("the input's type is", done.stderr)
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
                self.assertEqual(case.result(), f"{array}\n")

    def test_a_large_result_prints_as_a_summary(self):
        array = np.arange(1001, dtype=np.int32).reshape(1, 1001) - 500
        printed = self.run_file(array, "reduce", "--function", "max", "--axes", "0")
        self.assertEqual(printed, "(1001,) int32 min -500 max 500\n")

    def test_views_and_other_layouts_that_numpy_saves(self):
        base = np.arange(120, dtype=np.float32).reshape(4, 5, 6)
        for label, view in (("transposed", base.T), ("sliced", base[:, ::2]),
                            ("permuted", base.transpose(1, 0, 2)), ("broadcast",
                            np.broadcast_to(base[0], (3, 5, 6)))):
            with self.subTest(label):
                output = self.path("output")
                self.run_file(view, "reduce", "--function", "sum", "--axes", "1",
                              "--output", output)
                np.testing.assert_array_equal(np.load(output), view.sum(axis=1))

    def test_sums_of_two_files_broadcast_as_numpy_does(self):
        shapes = [((4, 6), (4, 6)), ((2, 3, 8), (8,)), ((1,), (3, 5)), ((4, 1), (1, 7)),
                  ((2, 1, 8), (3, 1)), ((5, 1, 2, 1), (3, 1, 9)), ((1, 1), (1,))]

        def check(dtype, index):
            server = self.software if index % 2 else self.reference
            a_shape, b_shape = shapes[index % len(shapes)]
            a = np.asarray(arrays.awkward(dtype, a_shape, seed=index), order="CF"[index % 2])
            b = np.asarray(arrays.awkward(dtype, b_shape, seed=index + 50),
                           order="CF"[index // 2 % 2])
            paths = self.path("a"), self.path("b"), self.path("sum")
            np.save(paths[0], a)
            np.save(paths[1], b)
            done = self.opmill("element_wise_add", "--input", paths[0], "--input", paths[1],
                               "--output", paths[2], server=server)
            self.assertEqual(done.returncode, 0, done.stderr)
            actual = np.load(paths[2])
            self.assertEqual(actual.dtype, a.dtype)
            np.testing.assert_array_equal(actual, a + b)

        cases = [(dtype, index) for index, dtype in enumerate(arrays.ALL_TYPES * 3)]
        for case, result in [(case, self.pool.submit(check, *case)) for case in cases]:
            with self.subTest(case):
                result.result()

    def test_archives_that_numpy_wrote_and_reads(self):
        generator = np.random.default_rng(3)
        x = {"w": generator.standard_normal((40, 50), np.float32), "ones": np.ones((2, 9), "i4"),
             "fortran": np.asfortranarray(generator.integers(0, 99, (3, 4, 5), dtype="u2")),
             "a/b \N{GREEK SMALL LETTER PI}": np.zeros((300, 200), "i8")}
        for save in (np.savez, np.savez_compressed):
            with self.subTest(save.__name__):
                path, output = (self.path(kind)[:-3] + "npz" for kind in ("input", "output"))
                save(path, **x)
                done = self.opmill("reduce", "--function", "max", path, "--axes", "1", "--output",
                                   output)
                self.assertEqual(done.returncode, 0, done.stderr)
                with np.load(output) as results:
                    self.assertEqual(list(results), list(x))
                    for name, array in x.items():
                        self.assertEqual(results[name].dtype, array.dtype)
                        np.testing.assert_array_equal(results[name], array.max(axis=1))
                done = self.opmill("argmax", path + ":w")
                self.assertEqual(done.stdout, f"{x['w'].argmax()}\n")

    def test_casts_agree_with_numpy(self):
        samples = [np.array([0.1, 1e-50, -3e38, np.inf, np.nan, 1 + 2.0**-24]),
                   np.array([65504, 2.0**-25, 1 + 2.0**-11, 1 + 3 * 2.0**-11], ">f8"),
                   np.arange(-6, 6, dtype=">i2"), np.array([True, False, True]),
                   np.array([2**53 + 1, -(2**62) - 1, 7])]
        cases = [(0, "float32"), (1, "float16"), (1, "float32"), (2, "int64"), (2, "float16"),
                 (3, "uint8"), (3, "float32"), (4, "float32"), (4, "int64")]
        for index, dtype in cases:
            with self.subTest(f"{samples[index].dtype} to {dtype}"):
                path, output = self.path("input"), self.path("output")
                np.save(path, samples[index][np.newaxis])
                done = self.opmill("reduce", "--function", "max", path, "--axis", "0", "--cast",
                                   dtype, "--output", output, server=self.reference)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(np.load(output).dtype, dtype)
                np.testing.assert_array_equal(np.load(output), samples[index].astype(dtype))

    def test_a_pipe_carries_what_a_file_holds(self):
        buffer = io.BytesIO()
        array = np.asfortranarray(arrays.awkward("float32", (5, 7, 3), seed=8))
        np.save(buffer, array)
        done = subprocess.run(
            [CLI, "run", "reduce", "--function", "max", "-", "--axes", "1", "--output", "-",
             "--server", self.reference.address],
            input=buffer.getvalue(), env=plain_environment(), capture_output=True, timeout=60,
            check=True)
        np.testing.assert_array_equal(np.load(io.BytesIO(done.stdout)), array.max(axis=1))
