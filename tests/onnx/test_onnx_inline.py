"""ONNX's own backend cases, each sent inline through the Python package to a running server.

With OPMILL_WRITE_ONNX_OPERATORS=1 it writes docs/onnx-operators.md. OPMILL_ONNX_SOFTWARE_EVERY=1 runs all
cases on the software device, too; by default every 25th one."""

import collections
import os
import pathlib
import re
import unittest
import warnings

import models
import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.test.case.node import collect_testcases
from server_process import ROOT, ServerProcess

import opmill

PAGE = ROOT / "docs" / "onnx-operators.md"
DATA = models.FOLDER / "onnx" / "onnx" / "backend" / "test" / "data"
SECONDS = 120
# Why a case has no result: what it is called on the page, and the sentence of the server or the package.
REASONS = {
    "types that the engine does not have": r"^The type of '.*', an input or output, is .*, which is not supported\.$",
    "types and numbers of dimensions that the file does not say":
        r"^The file does not say the type and the number of dimensions of '.*', an input or output\.$",
    "operators that are not supported": r": the operator is not supported\.",
    "opsets beyond the limits": r"opset",
    "operators for which devices have no kernel": r"Devices have no kernel for",
    "tensors without elements": r"has no elements|is not at least 1\.|\[(\d+,)*0(,\d+)*\], which devices",
    "types that devices do not have": r"which devices do not hold|devices do not compute with",
    "sizes, branches or attributes that depend on data": r"depends? on|is not (a )?constant|not known",
    "what an operator does not do": r"^(The model cannot be|Node|\d+ nodes)|is not supported|refused",
}


def reason_of(sentence):
    for reason, pattern in REASONS.items():
        if re.search(pattern, sentence, re.MULTILINE):
            return reason
    return None


class Case:
    def __init__(self, name, group, model, data_sets, rtol=1e-3, atol=1e-7):
        self.name, self.group, self.model, self.data_sets = name, group, model, data_sets
        self.rtol, self.atol = max(rtol, 1e-3), max(atol, 1e-5)
        self.operators = sorted({node.op_type for node in model.graph.node})

    def is_tensors(self):
        return all(isinstance(value, (np.ndarray, np.generic)) for values in self.data_sets[0] for value in values)

    def run(self, c):
        """None, or what is wrong."""
        inputs, outputs = (list(map(np.asarray, values)) for values in self.data_sets[0])
        try:
            model = opmill.Model(c, self.model.SerializeToString(), timeout=SECONDS)
            results = model(*inputs, timeout=SECONDS)
        except opmill.OpMillError as error:
            return "refused", error.sentence
        for name, wanted in zip((output.name for output in self.model.graph.output), outputs):
            try:
                got = results[name]
                assert (got.shape, got.dtype) == (wanted.shape, wanted.dtype), f"{got.dtype}{got.shape}"
                # Each operation rounds to float16, whose steps are up to 1e-3 of a value.
                rtol = max(self.rtol, 2e-3) if wanted.dtype == np.float16 else self.rtol
                np.testing.assert_allclose(got.astype(np.float64), wanted.astype(np.float64), rtol, self.atol)
            except AssertionError as wrong:
                return "wrong", f"{name}: {wrong}"
        return "passed", ""


def node_cases():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = [Case(case.name, "node", case.model, case.data_sets, case.rtol, case.atol)
                 for case in collect_testcases(None)]
    return sorted((case for case in cases if case.is_tensors()), key=lambda case: case.name)


def tensors_of(folder, kind, values):
    arrays = []
    for i, value in enumerate(values):
        tensor = onnx.TensorProto.FromString((folder / f"{kind}_{i}.pb").read_bytes())
        arrays.append(numpy_helper.to_array(tensor))
    return arrays


def file_cases(group):
    for folder in sorted((DATA / group).glob("test_*")):
        model = onnx.load(folder / "model.onnx")
        known = {tensor.name for tensor in model.graph.initializer}
        inputs = [value for value in model.graph.input if value.name not in known]
        data = folder / "test_data_set_0"
        sets = [(tensors_of(data, "input", inputs), tensors_of(data, "output", model.graph.output))]
        yield Case(folder.name, group, model, sets)


class OnnxInline(unittest.TestCase):
    maxDiff = None

    def run_cases(self, device, cases):
        server = self.enterContext(ServerProcess(device=device))
        with opmill.connect(server.address, timeout=SECONDS) as c:
            verdicts = [(case, *case.run(c)) for case in cases]
        counts = collections.Counter((case.group, verdict) for case, verdict, _ in verdicts)
        for group in sorted({case.group for case in cases}):
            total = sum(case.group == group for case in cases)
            print(f"{device}: {group}: {counts[group, 'passed']} of {total} passed, "
                  f"{counts[group, 'refused']} refused, {counts[group, 'wrong']} wrong")
        self.assertEqual([f"{case.name}: {text}" for case, verdict, text in verdicts if verdict == "wrong"], [])
        unknown = [f"{case.name}: {text}" for case, verdict, text in verdicts
                   if verdict == "refused" and reason_of(text) is None]
        self.assertEqual("\n".join(unknown), "", "refusals without a known reason")
        return verdicts, counts

    def test_cpu(self):
        cases = [*node_cases(), *file_cases("pytorch-converted"), *file_cases("pytorch-operator")]
        verdicts, counts = self.run_cases("cpu", cases)
        self.assertGreaterEqual(counts["node", "passed"], 700)
        self.assertEqual(counts["pytorch-converted", "passed"], 82)
        self.assertGreaterEqual(counts["pytorch-operator", "passed"], 30)
        page = page_of(verdicts, counts)
        if os.environ.get("OPMILL_WRITE_ONNX_OPERATORS"):
            PAGE.write_text(page)
        self.assertEqual(PAGE.read_text(), page, f"{PAGE} is outdated: OPMILL_WRITE_ONNX_OPERATORS=1")

    def test_light_models(self):
        """Whole models; their files are small, because their weights are computed."""
        server = self.enterContext(ServerProcess(device="cpu"))
        passed = 0
        with opmill.connect(server.address, timeout=SECONDS) as c:
            for path in sorted((DATA / "light").glob("light_*.onnx")):
                model = opmill.Model(c, path)
                [x] = model.inputs
                elements = np.prod(x.shape)
                wanted = numpy_helper.to_array(onnx.TensorProto.FromString(
                    path.with_name(path.stem + "_output_0.pb").read_bytes()))
                # As onnx.backend.test.runner makes it.
                [got] = model((np.arange(elements).reshape(x.shape) / elements).astype(np.float32)).values()
                self.assertEqual(got.shape, wanted.shape)
                np.testing.assert_allclose(got, wanted, rtol=1e-3, atol=1e-4)
                passed += 1
        print(f"cpu: real (light): {passed} of 9 passed")
        self.assertEqual(passed, 9)

    def test_software(self):
        every = int(os.environ.get("OPMILL_ONNX_SOFTWARE_EVERY", "25"))
        _, counts = self.run_cases("software", node_cases()[::every])
        self.assertGreater(counts["node", "passed"], 700 // every)


def page_of(verdicts, counts):
    rows = collections.defaultdict(collections.Counter)
    reasons = collections.defaultdict(list)
    for case, verdict, text in verdicts:
        for operator in case.operators:
            rows[operator][verdict] += 1
        if verdict == "refused":
            reasons[reason_of(text)].append(case.name)
    total = collections.Counter(case.group for case, _, _ in verdicts)
    groups = "".join(f"| {group} | {total[group]} | {counts[group, 'passed']} |\n" for group in sorted(total))
    table = "".join(f"| {operator} | {sum(count.values())} | {count['passed']} |\n"
                    for operator, count in sorted(rows.items()))
    excluded = "".join(f"\n## Refused: {reason}\n\n{', '.join(sorted(names))}\n"
                       for reason, names in sorted(reasons.items()))
    return f"""# ONNX's own cases

Written by `tests/onnx/test_onnx_inline.py`, which sends each case of the backend tests of the package onnx {onnx.__version__} to
a server with `--device=cpu`, as [a file](models.md#files-of-callers), and compares the results with ONNX's. Cases with
sequences, optional values and strings are not counted. No case gives a wrong result; those that the server refuses are
listed by reason.

| cases | run | passed |
|---|---|---|
{groups}
| operator | cases | passed |
|---|---|---|
{table}{excluded}"""


if __name__ == "__main__":
    unittest.main()
