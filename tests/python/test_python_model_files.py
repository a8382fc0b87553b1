"""ONNX files that the package sends to a server."""

import asyncio
import concurrent.futures
import pathlib
import tempfile
import unittest

import numpy as np
import onnx_model
from server_process import ServerProcess
from test_python_models import feeds_for

import opmill


class ModelFiles(unittest.TestCase):
    def setUp(self):
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.path = folder / "made.onnx"
        self.path.write_bytes(onnx_model.made_model())

    def start(self, *flags):
        self.server = self.enterContext(ServerProcess(*flags, device="cpu"))
        self.c = self.enterContext(opmill.connect(self.server.address))

    def check(self, result, feeds, scale=2.0):
        wanted = onnx_model.expected(**feeds, scale=scale)
        self.assertEqual(list(result), list(wanted))
        for name, array in wanted.items():
            self.assertEqual((result[name].shape, result[name].dtype), (array.shape, array.dtype))
            np.testing.assert_allclose(result[name], array, rtol=1e-4)

    def kept(self):
        return self.c.statistics().inline_models

    def test_paths_and_bytes(self):
        self.start()
        for file in (self.path, str(self.path), self.path.read_bytes()):
            made = opmill.Model(self.c, file)
            self.check(made(**feeds_for(7)), feeds_for(7))
            self.check(made(*feeds_for(3).values(), timeout=30, priority=1), feeds_for(3))
        self.assertEqual((self.kept().models, self.kept().reads), (1, 1))
        made = opmill.Model(self.c, self.path)
        self.assertEqual(repr(made), "<opmill.Model made: x float32[-1,6], offset float32[6], shape int64[2] -> "
                                     "y float32[-1,-1], positive bool[-1,6], total float32[]>")
        self.assertEqual([tensor.needs_value for tensor in made.inputs], [False, False, True])

    def test_the_file_goes_again_where_it_is_needed(self):
        """Of two models a server keeps one. All ways of sending inputs."""
        self.start("--max_inline_models=1")
        other = onnx_model.made_model(3.0)
        for shared_memory in ("auto", "off"):
            with opmill.connect(self.server.address, shared_memory=shared_memory) as c:
                first, second = opmill.Model(c, self.path), opmill.Model(c, other)
                for count in (2, 50_000, 200_000):
                    feeds = feeds_for(count)
                    self.check(first(**feeds), feeds)
                    self.check(second(**feeds), feeds, scale=3.0)
        self.assertGreaterEqual(self.kept().evictions, 12)

    def test_explain(self):
        self.start("--max_inline_models=1")
        made = opmill.Model(self.c, self.path)
        opmill.Model(self.c, onnx_model.made_model(3.0))  # takes its place
        self.assertEqual(len(made.explain({"x": (4, 6), "shape": [3, 8]}).nodes), 6)

    def test_many_threads(self):
        self.start("--max_inline_models=1")
        models = [opmill.Model(self.c, onnx_model.made_model(scale)) for scale in (2.0, 3.0)]
        with concurrent.futures.ThreadPoolExecutor(8) as threads:
            calls = [(threads.submit(models[i % 2], **feeds_for(2 + i % 5)), i) for i in range(100)]
            for call, i in calls:
                self.check(call.result(), feeds_for(2 + i % 5), scale=2.0 + i % 2)

    def test_asyncio(self):
        self.start("--max_inline_models=1")

        async def main():
            async with await opmill.aio.connect(self.server.address) as c:
                first = await opmill.aio.Model(c, self.path)
                second = await opmill.aio.Model(c, onnx_model.made_model(3.0))
                for count in (2, 50_000):
                    feeds = feeds_for(count)
                    self.check(await first(**feeds), feeds)
                    self.check(await second(**feeds), feeds, scale=3.0)

        asyncio.run(main())

    def test_refusals(self):
        self.start("--max_message_bytes=64KiB")
        for file, kind, sentence in (
                (b"no model", opmill.InvalidArgument, "The file is not an ONNX model: it is cut off or malformed at byte 1."),
                (bytes(70_000), opmill.ResourceExhausted,
                 "the model has 70000 bytes; messages to the server may have 65536 (max_message_bytes). Put it into "
                 "the server's model repository, or raise that limit.")):
            with self.assertRaises(kind) as raised:
                opmill.Model(self.c, file)
            self.assertEqual((raised.exception.sentence, raised.exception.field), (sentence, "model_file"))
        with self.assertRaisesRegex(TypeError, "file is 5; it must be a path, or the bytes of an ONNX file."):
            opmill.Model(self.c, 5)
        with self.assertRaises(FileNotFoundError):
            opmill.Model(self.c, "missing.onnx")
        # With a small limit on messages, the inputs follow the file.
        feeds = feeds_for(20_000)
        self.check(opmill.Model(self.c, self.path)(**feeds), feeds)


if __name__ == "__main__":
    unittest.main()
