"""The command line has the names of the package's methods, and the same defaults."""

import inspect
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

import numpy as np
from server_process import CLI, ServerProcess

import opmill
from opmill._names import FUNCTION_ALIASES
from opmill._operators import Operators

# Values of required parameters; the others have their defaults.
REQUIRED = {"k": 2, "function": "l1", "exponent": 1.5, "min": 0.25, "max": 0.75, "dtype": "int32",
            "input_window_offsets": [0, 1, 2], "input_window_sizes": [3, 3, 3],
            "input_window_strides": [1, 2, -1], "start_padding": [0, 1, 2],
            "end_padding": [2, 1, 0], "repeats": [1, 2, 3], "index_dimensions": 1,
            "input_dimension_count": 3, "indices_dimension_count": 2, "block_size": 1,
            "scales": [1.0, 2.0, 0.5], "input_pixel_offsets": [0.5, 0.5, 0.5],
            "output_pixel_offsets": [-0.5, -0.5, -0.5], "window_size": [2, 3], "axes": [1],
            "local_size": 2}
# Shapes of indices.
INDICES = {"gather": (1, 1, 4), "take_along_axis": (3, 4, 2), "gather_nd1": (1, 3, 2),
           "scatter": (3, 4, 5), "reverse_subsequences": (3, 4, 1)}
# Shapes of what is not like x.
PRODUCTS = {("matmul", "b"): (3, 5, 2), ("conv", "input"): (1, 3, 6, 7), ("conv", "filter"): (2, 3, 2, 2)}
IMAGES = ("space_to_depth1", "depth_to_space1", "max_pooling", "max_pooling_with_indices",
          "average_pooling", "lp_pooling", "local_response_normalization")
FLAGS = {"dtype": "output_type"}  # of parameters that have another name
METHODS = {name: getattr(Operators, name) for name in dir(Operators) if name[0] != "_"}
# Operators that do not take FLOAT32.
WORDS = ("logical_and", "logical_not", "logical_or", "logical_xor", "left_shift", "right_shift")


def text_of(value):
    return ",".join(map(str, value)) if isinstance(value, list) else value


class CommandLine(unittest.TestCase):
    def setUp(self):
        self.server = self.enterContext(ServerProcess(device="reference"))
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.x = np.random.default_rng(1).random((3, 4, 5), np.float32)
        np.save(self.folder / "x.npy", self.x)
        self.words = np.random.default_rng(1).integers(0, 3, (3, 4, 5), np.uint8)
        np.save(self.folder / "words.npy", self.words)

    def array(self, method, parameter):
        """The value of a parameter, and its files."""
        if (method, parameter) in PRODUCTS:
            array = np.random.default_rng(2).random(PRODUCTS[method, parameter], np.float32)
            np.save(self.folder / f"{method}_{parameter}.npy", array)
            return [f"{method}_{parameter}.npy"], array
        if parameter in ("indices", "sequence_lengths"):
            index = np.random.default_rng(1).integers(0, 3, INDICES[method], np.uint32)
            np.save(self.folder / f"{method}.npy", index)
            return [f"{method}.npy"], index
        if parameter == "inputs":
            return ["x.npy", "x.npy"], [self.x, self.x]
        if parameter in ("queries", "vectors"):
            np.save(self.folder / f"{parameter}.npy", self.x[len(parameter) % 2])
            return [f"{parameter}.npy"], self.x[len(parameter) % 2]
        if method in IMAGES:
            np.save(self.folder / "image.npy", self.x[None])
            return ["image.npy"], self.x[None]
        if method in WORDS or parameter == "condition":
            return ["words.npy"], self.words
        return ["x.npy"], self.x

    def run_operator(self, *words):
        done = subprocess.run(
            [CLI, "run", *words], cwd=self.folder, capture_output=True, text=True, check=False,
            env=os.environ | {"OPMILL_SERVER": self.server.address})
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_agrees_with_each_method(self):
        with opmill.connect(self.server.address) as client:
            for name, method in METHODS.items():
                parameters = [parameter for parameter in inspect.signature(method).parameters.values()
                              if parameter.default is parameter.empty
                              and parameter.kind is parameter.POSITIONAL_OR_KEYWORD][1:]
                inputs = [p.name for p in parameters if p.name not in REQUIRED]
                required = {p.name: REQUIRED[p.name] for p in parameters if p.name in REQUIRED}
                keeps = "keepdims" in inspect.signature(method).parameters
                arrays = {each: self.array(name, each) for each in inputs}
                for extra in ({}, {"keepdims": True}) if keeps else ({},):
                    with self.subTest(name, **extra):
                        result = getattr(client, name)(*[array for _, array in arrays.values()],
                                                       **required, **extra)
                        words = [f"--{FLAGS.get(flag, flag)}={text_of(value)}"
                                 for flag, value in required.items()]
                        words += ["--keepdims"] if extra else []
                        for files, _ in arrays.values():
                            for file in files:
                                words += ["--input", file]
                        self.run_operator(name, *words, "--output", "y.npy")
                        expected = result[0] if isinstance(result, tuple) else result
                        if expected.dtype == np.bool_:  # which the contract's words are not
                            expected = expected.astype(np.uint8)
                        actual = np.load(self.folder / "y.npy")
                        self.assertEqual(actual.dtype, expected.dtype)
                        np.testing.assert_array_equal(actual, expected)

    def test_takes_the_aliases_of_functions(self):
        with opmill.connect(self.server.address) as client:
            for function in opmill._operators.ReduceFunction.__args__:
                # `multiply` alone is the element-wise operator.
                words = ["reduce", "--function"] if function == "multiply" else []
                with self.subTest(function):
                    self.run_operator(*words, function, "x.npy", "--output", "y.npy")
                    np.testing.assert_array_equal(np.load(self.folder / "y.npy"),
                                                  client.reduce(self.x, function))

    def test_has_the_same_aliases_of_functions(self):
        page = subprocess.run([CLI, "help", "run"], capture_output=True, text=True, check=True)
        functions = re.search(r"--function NAME\s+reduce: (.*?)\n\s+--", page.stdout, re.DOTALL)[1]
        aliases = {alias: function
                   for function, names in re.findall(r"(\w+)\s\(or\s+([^)]*)\)", functions)
                   for alias in re.split(r",\s+", names)}
        self.assertEqual(aliases, FUNCTION_ALIASES)


if __name__ == "__main__":
    unittest.main()
