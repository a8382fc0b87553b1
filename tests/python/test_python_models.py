"""Models of the server's repository through the package."""

import asyncio
import pathlib
import shutil
import tempfile
import time
import unittest

import numpy as np
import onnx_model
from server_process import ServerProcess

import opmill


def feeds_for(count, shape=None):
    x = np.random.default_rng(count).standard_normal((count, 6), np.float32)
    return {"x": x, "offset": np.arange(6, dtype=np.float32),
            "shape": np.array(shape or (6, count), np.int64)}


class Models(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.repository = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        onnx_model.write_model(cls.repository, version=3)
        onnx_model.write_config(cls.repository)
        onnx_model.write_config(cls.repository, "broken", 'backend: "other"')
        cls.server = cls.enterClassContext(ServerProcess(
            f"--model_repository={cls.repository}", device="cpu"))
        cls.c = cls.enterClassContext(opmill.connect(cls.server.address))
        cls.made = cls.c.model("made")

    def check(self, result, feeds):
        wanted = onnx_model.expected(**feeds)
        self.assertEqual(list(result), list(wanted))
        for name, array in wanted.items():
            self.assertEqual((result[name].shape, result[name].dtype), (array.shape, array.dtype))
            np.testing.assert_allclose(result[name], array, rtol=1e-4)

    def refused(self, kind, sentence, *inputs, model=None, **named):
        with self.assertRaises(kind) as raised:
            (model or self.made)(*inputs, **named)
        self.assertEqual(getattr(raised.exception, "sentence", str(raised.exception)), sentence)
        return raised.exception

    def test_what_it_takes_and_gives(self):
        self.assertEqual((self.made.name, self.made.version), ("made", "3"))
        self.assertEqual([(each.name, each.dtype, each.shape) for each in self.made.inputs],
                         [("x", np.float32, (-1, 6)), ("offset", np.float32, (6,)),
                          ("shape", np.int64, (2,))])
        self.assertEqual([(each.name, each.dtype, each.shape) for each in self.made.outputs],
                         [("y", np.float32, (-1, -1)), ("positive", np.bool_, (-1, 6)),
                          ("total", np.float32, ())])
        self.assertEqual(
            repr(self.made),
            "<opmill.Model made version 3: x float32[-1,6], offset float32[6], shape int64[2] -> "
            "y float32[-1,-1], positive bool[-1,6], total float32[]>")

    def test_calls(self):
        feeds = feeds_for(7)
        self.check(self.made(*feeds.values()), feeds)
        self.check(self.made(**feeds), feeds)
        self.check(self.made(feeds["x"], shape=feeds["shape"], offset=feeds["offset"], timeout=30,
                             priority=2), feeds)
        self.check(self.made(feeds["x"], list(range(6)), [6, 7]), feeds)
        self.check(self.made(**(feeds | {"x": np.asfortranarray(feeds["x"])})), feeds)
        self.check(self.made(**(feeds | {"x": feeds["x"].astype(">f4")})), feeds)

    def test_large_arrays(self):
        seen = []
        for shared_memory in ("auto", "off"):
            with opmill.connect(self.server.address, shared_memory=shared_memory) as c:
                made = c.model("made", "3")
                for count in (50_000, 200_000):
                    feeds = feeds_for(count)
                    self.check(made(**feeds, progress=lambda sent, total: seen.append(sent == total)),
                               feeds)
                    self.assertTrue(seen[-1])
        feeds["x"] = opmill.shared_empty(feeds["x"].shape)
        feeds["x"][:] = 1
        self.check(self.made(**feeds), feeds)

    def test_a_model_with_fixed_attributes(self):
        best = self.c.model("best")
        result = best(np.array([[1, 5, 3]], np.float32))
        self.assertEqual((result["values"].tolist(), result["places"].tolist()), ([[5, 3]], [[1, 2]]))
        error = self.refused(opmill.InvalidArgument,
                             "k (2) is larger than the size (1) of axis (1).", [[1.0]], model=best)
        self.assertEqual(error.field, "model.inputs")

    def test_arguments(self):
        feeds = feeds_for(2)
        x, offset, shape = feeds.values()
        takes = "it takes x, offset, shape."
        self.refused(TypeError, f"made got no input 'offset'; {takes}", x)
        self.refused(TypeError, f"made got 4 inputs; {takes}", x, offset, shape, x)
        self.refused(TypeError, "made got the input 'x' twice.", x, offset, shape, x=x)
        self.refused(TypeError, "made has no input 'ofset'; did you mean 'offset'?", x, ofset=offset)
        self.refused(TypeError, "made has no input 'zz'; it takes x, offset, shape, timeout, priority, "
                                "progress, keep.", x, zz=1)
        self.refused(TypeError, "timeout is 'soon'; it must be a number of seconds.", **feeds,
                     timeout="soon")

    def test_types_and_shapes(self):
        feeds = feeds_for(2)
        x = feeds["x"]
        for value, sentence, field in (
                (x.astype(np.float64), "The input x of made is float32, not float64. Convert the array "
                 "with astype.", "data_type"),
                (x[:, :5], "The input x of made has the shape (-1, 6), not (2, 5).", "sizes"),
                (x[0], "The input x of made has the shape (-1, 6), not (6,).", "sizes"),
                (x[:0], "The input x of made has no elements: its shape is (0, 6).", "sizes[0]"),
                ("text", "The input x of made is float32, not str128. Convert the array with astype.",
                 "data_type")):
            error = self.refused(opmill.InvalidArgument, sentence, **(feeds | {"x": value}))
            self.assertEqual(error.field, f"model.inputs[0].tensor.{field}")
        self.refused(opmill.InvalidArgument, "The input is None; it must be an array.",
                     **(feeds | {"x": None}))
        error = self.refused(opmill.InvalidArgument,
                             "The input shape of made is int64, not float64. Convert the array with "
                             "astype.", **(feeds | {"shape": [6.0, 2.0]}))
        self.assertEqual(error.field, "model.inputs[2].tensor.data_type")

    def test_the_newest_version_that_is_served(self):
        self.addCleanup(shutil.rmtree, self.repository / "several")
        onnx_model.write_config(self.repository, "several", "version_policy { all { } }")
        for version in (1, 3):
            onnx_model.write_model(self.repository, "several", version)
        onnx_model.write_model(self.repository, "several", 4, b"no model")
        while not any(info.name == "several" and info.version == "4" for info in self.c.models()):
            time.sleep(0.1)
        for version, found in (("", "3"), ("1", "1"), ("3", "3")):
            self.assertEqual(self.c.model("several", version).version, found)
        with self.assertRaises(opmill.NotFound) as raised:
            self.c.model("several", "4")
        self.assertEqual(raised.exception.sentence,
                         'The model several has the versions 1, 3, not "4".')

    def test_names_and_versions(self):
        best, broken, made = self.c.models()
        self.assertEqual((best.name, best.ready), ("best", True))
        self.assertEqual((broken.ready, broken.reason), (False, 'backend ("other") is not "opmill".'))
        self.assertEqual((made.version, made.inputs), ("3", self.made.inputs))
        for name, version, sentence in (
                ("mode", "", "There is no model \"mode\"; did you mean 'made'?"),
                ("zzz", "", 'There is no model "zzz"; the server has best, broken, made.'),
                ("broken", "", 'The model broken is not served: backend ("other") is not "opmill".'),
                ("made", "4", 'The model made has the version 3, not "4".')):
            with self.assertRaises(opmill.NotFound) as raised:
                self.c.model(name, version)
            self.assertEqual(raised.exception.sentence, sentence)

    def test_asyncio(self):
        async def main():
            async with await opmill.aio.connect(self.server.address) as c:
                self.assertEqual([info.name for info in await c.models()], ["best", "broken", "made"])
                made = await c.model("made")
                every = [feeds_for(count) for count in (2, 3, 50_000)]
                return every, await asyncio.gather(*(made(**feeds) for feeds in every))

        for feeds, result in zip(*asyncio.run(main()), strict=True):
            self.check(result, feeds)

    def test_statistics(self):
        before = {each.model: each.succeeded for each in self.c.statistics().models}
        self.made(**feeds_for(2))
        (after,) = (each for each in self.c.statistics().models if each.model == "made")
        self.assertEqual((after.version, after.succeeded), ("3", before.get("made", 0) + 1))


if __name__ == "__main__":
    unittest.main()
