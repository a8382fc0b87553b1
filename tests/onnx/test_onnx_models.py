"""Model files and ONNX's own cases, through the importer: sizes, types and values are those of ONNX
Runtime and of ONNX."""

import os
import pathlib
import re
import subprocess
import tempfile
import unittest
import warnings

import models
import numpy as np
import onnx
import onnxruntime
from onnx.backend.test.case.node import collect_testcases

PROGRAMS = pathlib.Path(os.environ["OPMILL_ONNX_PROGRAMS"])


def inspect(model, written):
    """The lines of onnx_inspect, by their first word."""
    arguments = [*models.arguments(model), f"--write={written}"]
    run = subprocess.run([PROGRAMS / "onnx_inspect", model.path, *arguments],
                         capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    lines = {}
    for line in run.stdout.splitlines():
        first, _, rest = line.partition(" ")
        lines.setdefault(first, []).append(rest)
    return lines


class OnnxModels(unittest.TestCase):
    def setUp(self):
        self.options = onnxruntime.SessionOptions()
        self.options.log_severity_level = 4

    def session(self, path):
        return onnxruntime.InferenceSession(str(path), self.options)

    def check_types(self, model, lines):
        """As ONNX infers them, where it can."""
        proto = onnx.load(model.path)
        for value in proto.graph.input:
            for dim, size in zip(value.type.tensor_type.shape.dim, model.sizes.get(value.name, [])):
                dim.dim_value = size
        inferred = onnx.shape_inference.infer_shapes(proto, data_prop=True).graph.output
        for output, line in zip(inferred, lines["output"], strict=True):
            tensor = output.type.tensor_type
            dims = [str(d.dim_value) if d.dim_value > 0 else r"\d+" for d in tensor.shape.dim]
            element = onnx.TensorProto.DataType.Name(tensor.elem_type)
            self.assertRegex(line, rf"^{re.escape(output.name)} {element}\[{','.join(dims)}\]$")

    def test_models(self):
        with tempfile.TemporaryDirectory() as folder:
            written = pathlib.Path(folder) / "specialized.onnx"
            for model in models.MODELS:
                with self.subTest(model.file, values=model.values):
                    lines = inspect(model, written)
                    counts = [int(lines[key][0].split(":")[0]) for key in ("read", "specialized")]
                    print(f"{model.path.name}: {counts[0]} -> {counts[1]} nodes")
                    self.assertEqual(counts[1], model.nodes)
                    self.assertLessEqual(set(lines.get("form", [])), set(model.values))
                    self.assertNotIn("refused", lines)
                    self.check_types(model, lines)
                    # The weights of those are all alike, and rounding errors decide their results.
                    if not model.path.name.startswith("light_"):
                        self.check_values(model, written)

    def check_values(self, model, written):
        session = self.session(model.path)
        feeds = models.feeds_of(session, model)
        expected = session.run(None, feeds)
        kept = {name: feed for name, feed in feeds.items() if name not in model.values}
        actual = self.session(written).run(None, kept)
        for got, wanted in zip(actual, expected, strict=True):
            self.assertEqual((got.shape, got.dtype), (wanted.shape, wanted.dtype))
            np.testing.assert_allclose(got, wanted, rtol=1e-3, atol=1e-5 * max(1, np.abs(wanted).max()))


class OnnxCases(unittest.TestCase):
    """Each case with the reference operators, on the cpu device, and with all inputs as constants."""

    def test_cases(self):
        with tempfile.TemporaryDirectory() as root:
            folders = []
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                cases = collect_testcases(None)
            for case in cases:
                inputs, outputs = case.data_sets[0]
                if all(isinstance(tensor, (np.ndarray, np.generic)) for tensor in [*inputs, *outputs]):
                    folders.append(self.write(pathlib.Path(root) / case.name, case.model, inputs, outputs))
            run = subprocess.run([PROGRAMS / "onnx_cases", *folders], capture_output=True, text=True)
        self.assertEqual(run.returncode, 0, run.stderr)
        verdicts = [line.split(" ", 2) for line in run.stdout.splitlines()]
        wrong = [v for v in verdicts if v[2] != "ok" and not v[2].startswith("refused ")]
        self.assertEqual(wrong, [])
        passed = {mode: sum(v[1:] == [mode, "ok"] for v in verdicts) for mode in ("reference", "cpu", "fold")}
        print(f"{passed} of {len(folders)} cases")
        self.assertGreaterEqual(passed["reference"], 980)
        self.assertGreaterEqual(passed["cpu"], 980)
        self.assertGreaterEqual(passed["fold"], 965)

    @staticmethod
    def write(folder, model, inputs, outputs):
        folder.mkdir()
        (folder / "model.onnx").write_bytes(model.SerializeToString())
        lines = []
        for kind, tensors in (("in", inputs), ("out", outputs)):
            for i, tensor in enumerate(map(np.asarray, tensors)):
                is_text = tensor.dtype.kind in "OUS"
                element = 8 if is_text else onnx.helper.np_dtype_to_tensor_dtype(tensor.dtype)
                lines.append(f"{kind} {element} {','.join(map(str, tensor.shape))} {kind}{i}\n")
                (folder / f"{kind}{i}").write_bytes(b"" if is_text else tensor.tobytes())
        (folder / "tensors.txt").write_text("".join(lines))
        return folder


if __name__ == "__main__":
    unittest.main()
