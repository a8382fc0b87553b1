"""`opmill models`, and `opmill run` of models."""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest

import numpy as np

import onnx_model
from server_process import CLI, ServerProcess, plain_environment


class ModelCommands(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        repository = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        onnx_model.write_model(repository)
        onnx_model.write_config(repository)
        onnx_model.write_config(repository, "broken", 'backend: "other"')
        cls.server = cls.enterClassContext(
            ServerProcess(f"--model_repository={repository}", device="cpu"))

    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.feeds = {"x": np.random.default_rng(1).standard_normal((4, 6), np.float32),
                      "offset": np.arange(6, dtype=np.float32), "shape": np.array([3, 8])}
        for name, array in self.feeds.items():
            np.save(self.folder / f"{name}.npy", array)
        self.wanted = onnx_model.expected(**self.feeds)

    def opmill(self, *arguments, code=0):
        ended = subprocess.run([CLI, *arguments], capture_output=True, text=True, check=False,
                               cwd=self.folder, timeout=60,
                               env=plain_environment() | {"OPMILL_SERVER": self.server.address})
        self.assertEqual(ended.returncode, code, ended.stdout + ended.stderr)
        return ended.stdout if code == 0 else ended.stderr

    def run_made(self, *arguments, code=0, **files):
        files = {name: f"{name}.npy" for name in self.feeds} | files
        inputs = [f"--input={name}={file}" for name, file in files.items() if file]
        return self.opmill("run", "made", *inputs, *arguments, code=code)

    def check(self, name, file):
        array = np.load(self.folder / file)
        wanted = self.wanted[name]
        self.assertEqual((array.shape, array.dtype), (wanted.shape, wanted.dtype))
        np.testing.assert_allclose(array, wanted, rtol=1e-5)

    def test_models(self):
        lines = self.opmill("models").splitlines()
        self.assertEqual([line.split("  ")[0] for line in lines if line],
                         ["model", "best", "broken", "made", 'broken: backend ("other") is not "opmill".'])
        self.assertIn("x float32[-1,6], offset float32[6], shape int64[2]", lines[3])
        self.assertIn("positive bool[-1,6]", lines[3])
        listed = json.loads(self.opmill("models", "--json"))["models"]
        self.assertEqual([model["name"] for model in listed], ["best", "broken", "made"])
        self.assertTrue(listed[2]["inputs"][2]["needs_value"])

    def test_versions_and_inputs_that_have_a_value(self):
        with tempfile.TemporaryDirectory() as folder:
            repository = pathlib.Path(folder)
            onnx_model.write_config(repository, "several", "version_policy { all { } }")
            for version in (1, 3):
                onnx_model.write_model(repository, "several", version, onnx_model.filled_model())
            onnx_model.write_model(repository, "several", 4, b"no model")
            with ServerProcess(f"--model_repository={repository}", device="cpu") as server:
                run = ("run", "several", "--input=shape=shape.npy", "--server", server.address)
                for version in ((), ("--model_version=1",), ("--model_version=3",)):
                    self.opmill(*run, *version, "--output=y.npy")
                    self.assertEqual(np.load(self.folder / "y.npy").shape, (3, 8))
                self.assertIn('The model several has the versions 1, 3, not "4".',
                              self.opmill(*run, "--model_version=4", code=1))

    def test_inputs_without_dimensions_truth_values_and_no_inputs(self):
        arrays = {"flag": np.array([True, False]), "x": np.float32(2.5), "byte": np.array([0, 1], np.uint8),
                  "long": np.array([0, 2]), "one": np.ones(1, np.float32)}
        for name, array in arrays.items():
            np.save(self.folder / f"{name}.npy", array)
        with tempfile.TemporaryDirectory() as folder:
            for name in ("mask", "constant"):
                onnx_model.write_model(pathlib.Path(folder), name, model=getattr(onnx_model, f"{name}_model")())
            with ServerProcess(f"--model_repository={folder}", device="cpu") as server:
                def run(*arguments, code=0):
                    return self.opmill("run", *arguments, "--server", server.address, code=code)

                self.assertEqual(run("constant"), "y:\n3.0\n")
                self.assertEqual(run("mask", "--input=flag=flag.npy", "--input=x=x.npy"), "y:\n[2.5 0. ]\n")
                self.assertEqual(run("mask", "--input=flag=byte.npy", "--input=x=one.npy"), "y:\n[0. 1.]\n")
                for flag, x, sentence in (
                        ("long", "x", "The input flag of mask is bool, not int64."),
                        ("flag", "flag", "The input x of mask is float32, not bool; convert it with --cast float32."),
                        ("flag", "byte", "The input x of mask is float32, not uint8; convert it with --cast float32.")):
                    self.assertIn(sentence, run("mask", f"--input=flag={flag}.npy", f"--input=x={x}.npy", code=1))
                self.assertIn("The array has no dimensions, but operators require 1 to 8; save it with x.reshape(1).",
                              run("sum", "x.npy", code=1))
                self.assertIn('There is no operator or model "constan";', run("constan", code=1))

    def test_a_server_without_models(self):
        with ServerProcess(device="reference") as server:
            self.assertEqual(self.opmill("models", "--server", server.address),
                             "The server has no models.\n")

    def test_run(self):
        text = self.run_made()
        self.assertTrue(text.startswith("y:\n[["), text)
        self.assertIn("positive:\n", text)
        self.assertIn("total:\n", text)
        self.run_made("--output", "out/")
        for name in self.wanted:
            self.check(name, f"out/{name}.npy")
        self.run_made("--output", "to-{}.npy", "--model_version=1")
        self.check("y", "to-y.npy")
        self.run_made("--output", "all.npz")
        with np.load(self.folder / "all.npz") as archive:
            self.assertEqual(set(archive), set(self.wanted))
            np.testing.assert_array_equal(archive["positive"], self.wanted["positive"])
        text = self.run_made("--output", "y=a.npy", "--output=total=b.npy")
        self.check("y", "a.npy")
        self.check("total", "b.npy")
        self.assertIn("y (3, 8) float32 -> a.npy\n", text)
        printed = json.loads(self.run_made("--json"))
        self.assertEqual([(output["name"], output["data_type"], output["sizes"])
                          for output in printed["outputs"]],
                         [("y", "float32", [3, 8]), ("positive", "bool", [4, 6]), ("total", "float32", [])])

    def test_a_file(self):
        (self.folder / "made.onnx").write_bytes(onnx_model.made_model())
        inputs = [f"--input={name}={name}.npy" for name in self.feeds]
        for _ in range(2):  # the second time the server has the file
            self.opmill("run", "made.onnx", *inputs, "--output=out/")
            for name in self.wanted:
                self.check(name, f"out/{name}.npy")
        statistics = json.loads(self.opmill("stats", "--json"))
        self.assertEqual(statistics["inline_models"]["reads"], "1")
        self.assertIn("It is of models of the server; files have no versions.",
                      self.opmill("run", "made.onnx", *inputs, "--model_version=1", code=2))
        self.assertIn("none.onnx", self.opmill("run", "none.onnx", *inputs, code=1))
        (self.folder / "bad.onnx").write_bytes(b"no model")
        self.assertIn("is not an ONNX model", self.opmill("run", "bad.onnx", *inputs, code=1))

    def test_orders_and_types_of_files(self):
        np.save(self.folder / "fortran.npy", np.asfortranarray(self.feeds["x"]))
        np.save(self.folder / "wide.npy", self.feeds["x"].astype(np.float64))
        self.run_made("--output=y=y.npy", x="fortran.npy")
        self.check("y", "y.npy")
        self.run_made("--output=y=wide_y.npy", "--cast=float32", x="wide.npy")
        self.check("y", "wide_y.npy")
        self.assertIn("convert it with --cast float32", self.run_made(x="wide.npy", code=1))

    def test_large_inputs(self):
        self.feeds |= {"x": np.ones((100_000, 6), np.float32), "shape": np.array([6, 100_000])}
        for name in ("x", "shape"):
            np.save(self.folder / f"{name}.npy", self.feeds[name])
        self.wanted = onnx_model.expected(**self.feeds)
        text = self.run_made("--output=y=y.npy")
        self.check("y", "y.npy")
        self.assertIn("positive (100000, 6) bool min 1 max 1\n", text)

    def test_a_model_with_fixed_attributes(self):
        np.save(self.folder / "s.npy", np.array([[1, 5, 3]], np.float32))
        self.assertEqual(self.opmill("run", "best", "--input", "scores=s.npy"),
                         "values:\n[[5. 3.]]\nplaces:\n[[1 2]]\n")

    def test_refusals(self):
        np.save(self.folder / "narrow.npy", self.feeds["x"][:, :5])
        np.save(self.folder / "five.npy", np.array([5, 5]))
        np.savez(self.folder / "two.npz", a=np.array([5, 5]), b=np.array([5, 5]))
        made = ("run", "made")
        for code, sentence, arguments in (
                (2, "The input shape is missing: made takes x, offset, shape.", {"shape": ""}),
                (2, '"ofset" is no input: made takes x, offset, shape. Did you mean offset?',
                 {"ofset": "offset.npy"}),
                (1, "The input x of made has the shape [-1,6], not [4,5].", {"x": "narrow.npy"}),
                (1, "The input shape of made is int64, not float32.", {"shape": "offset.npy"}),
                (1, "Reshape", {"shape": "five.npy"}),
                (1, "--input: two.npz holds 2 arrays; select one of them, for example two.npz:a.",
                 {"x": "two.npz"}),
                (1, "none.npy", {"x": "none.npy"})):
            with self.subTest(sentence):
                self.assertIn(sentence, self.run_made(code=code, **arguments))
        for code, sentence, arguments in (
                (1, 'There is no operator or model "maed"; `opmill models` lists the models. Did you mean '
                 "made?", ("run", "maed", "--input", "x=x.npy")),
                (1, 'The model broken is not served: backend ("other") is not "opmill".',
                 ("run", "broken", "--input", "x=x.npy")),
                (2, "--output: \"z\" is no output: made gives y, positive, total.",
                 (*made, "--output=z=z.npy")),
                (2, "--output: total=a.npy: the output or the file is given twice.",
                 (*made, "--output=y=a.npy", "--output=total=a.npy")),
                (2, "--output: Standard output can hold one result, but there are 3;",
                 (*made, "--output=-")),
                (2, "The inputs of a model are --input NAME=FILE.", ("run", "made", "x.npy")),
                (2, "--axes: It is of operators only.", (*made, "--axes=1")),
                (1, 'The model made has the version 1, not "7".', (*made, "--model_version=7")),
                (2, "--model_version: It is of models only.",
                 ("run", "argmax", "x.npy", "--axes=1", "--model_version=1")),
                (2, "--output: It is given twice.",
                 ("run", "argmax", "x.npy", "--axes=1", "--output=a.npy", "--output=b.npy"))):
            with self.subTest(sentence):
                if arguments[:2] == made and "x.npy" not in arguments:
                    self.assertIn(sentence, self.run_made(*arguments[2:], code=code))
                else:
                    self.assertIn(sentence, self.opmill(*arguments, code=code))

    def test_statistics(self):
        self.run_made()
        lines = self.opmill("stats").partition("Models:\n")[2].splitlines()
        self.assertTrue(any(line.split()[:2] == ["made", "1"] for line in lines), lines)


if __name__ == "__main__":
    unittest.main()
