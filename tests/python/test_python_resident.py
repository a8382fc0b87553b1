"""Tensors that stay on the server, through the package."""

import asyncio
import pathlib
import subprocess
import tempfile
import threading
import time
import unittest

import numpy as np
import onnx_model
from server_process import CLI, ServerProcess

import opmill

RANDOM = np.random.default_rng(7)


def numbers(*shape):
    return RANDOM.standard_normal(shape, np.float32)


class Resident(unittest.TestCase):
    DEVICE = "cpu"
    FLAGS = ()

    @classmethod
    def setUpClass(cls):
        cls.repository = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        onnx_model.write_model(cls.repository, version=3)
        cls.server = cls.enterClassContext(ServerProcess(
            f"--model_repository={cls.repository}", *cls.FLAGS, device=cls.DEVICE))
        cls.c = cls.enterClassContext(opmill.connect(cls.server.address))
        cls.tensors = cls.c.tensors

    def tearDown(self):
        for tensor in self.tensors.list():
            self.tensors.delete(tensor.name)
        # The transport may hold the last bytes of a result for a moment.
        self.server.wait_until(lambda: self.c.statistics().resident.bytes == 0)

    def refused(self, kind, sentence, function, *arguments, **named):
        with self.assertRaises(kind) as raised:
            function(*arguments, **named)
        self.assertEqual(raised.exception.sentence, sentence)
        return raised.exception

    def test_put_and_get(self):
        for array in (numbers(3, 4), numbers(500, 7, 300), np.arange(5, dtype=np.int64),
                      np.arange(6, dtype=np.uint8).reshape(2, 3), numbers(4, 6).T):
            with self.subTest(array.shape):
                put = self.tensors.put("x", array, capacity=600)
                self.assertEqual((put.name, put.dtype, put.shape, put.capacity),
                                 ("x", array.dtype, array.shape, 600))
                found = self.tensors.find("x")
                self.assertEqual((found.dtype, found.shape, found.generation),
                                 (array.dtype, array.shape, put.generation))
                np.testing.assert_array_equal(self.tensors.get("x"), array)
                np.testing.assert_array_equal(self.tensors.get(put), array)

    def test_in_place_of_an_array(self):
        x, y = numbers(64, 1000), numbers(1000)
        there, row = self.tensors.put("x", x), self.tensors.put("row", y)
        np.testing.assert_array_equal(self.c.add(there, y), x + y)
        np.testing.assert_array_equal(self.c.add(there, row), x + y)
        np.testing.assert_array_equal(self.c.multiply(x, row), x * y)
        np.testing.assert_array_equal(self.c.argmax(there, axis=1), x.argmax(1))
        values, indices = self.c.top_k(there, 3)
        np.testing.assert_array_equal(values, -np.sort(-x, axis=1)[:, :3])
        np.testing.assert_array_equal(self.c.add(there, 1), x + 1)

    def test_results_stay(self):
        x = numbers(300, 40)
        doubled = self.c.multiply(x, 2, keep="doubled")
        self.assertEqual((doubled.name, doubled.shape), ("doubled", x.shape))
        np.testing.assert_array_equal(self.c.add(doubled, 1), x * 2 + 1)
        values, indices = self.c.top_k(doubled, 2, keep=("values", None))
        self.assertIsInstance(values, opmill.ResidentTensor)
        np.testing.assert_array_equal(indices, np.argsort(-x, axis=1, kind="stable")[:, :2])
        np.testing.assert_array_equal(self.tensors.get(values), -np.sort(-x * 2, axis=1)[:, :2])
        self.assertEqual([each.name for each in self.tensors.list()], ["doubled", "values"])

    def test_a_model(self):
        made = self.c.model("made")
        feeds = {"x": numbers(7, 6), "offset": np.arange(6, dtype=np.float32),
                 "shape": np.array([6, 7], np.int64)}
        wanted = onnx_model.expected(**feeds)
        x, offset = self.tensors.put("x", feeds["x"]), self.tensors.put("offset", feeds["offset"])
        result = made(x, offset=offset, shape=feeds["shape"], keep={"y": "kept", "positive": "truth"})
        self.assertIsInstance(result["y"], opmill.ResidentTensor)
        np.testing.assert_allclose(self.tensors.get("kept"), wanted["y"], rtol=1e-4)
        np.testing.assert_array_equal(self.tensors.get("truth"), wanted["positive"])
        np.testing.assert_allclose(result["total"], wanted["total"], rtol=1e-4)
        shape = self.tensors.put("shape", feeds["shape"])
        self.refused(opmill.InvalidArgument, "The elements of the input shape decide what is "
                     "computed; it has to be an array.", made, x, offset, shape)
        self.refused(opmill.InvalidArgument, "keep names the output 'z'; the model has y, positive, "
                     "total.", made, x, offset, feeds["shape"], keep={"z": "kept"})

    def test_rows(self):
        x = numbers(10, 5)
        self.tensors.put("x", x[:4], capacity=10)
        seven = self.tensors.append("x", x[4:7])
        self.assertEqual((seven.shape, seven.capacity, seven.generation),
                         ((7, 5), 10, self.tensors.find("x").generation))
        self.tensors.append("x", x[7:])
        np.testing.assert_array_equal(self.tensors.get("x"), x)
        np.testing.assert_array_equal(self.tensors.get(seven), x[:7])
        written = self.tensors.write("x", 2, x[:3])
        self.assertEqual((written.shape, written.capacity), (x.shape, 10))
        x[2:5] = x[:3].copy()
        np.testing.assert_array_equal(self.tensors.get("x"), x)
        self.refused(opmill.ResourceExhausted, 'The tensor "x" has 10 of 10 rows (capacity_rows); 1 '
                     "more do not fit.", self.tensors.append, "x", x[:1])
        self.refused(opmill.InvalidArgument, 'first_row (9) and 2 rows end past the 10 rows of the '
                     'tensor "x".', self.tensors.write, "x", 9, x[:2])
        self.refused(opmill.InvalidArgument, 'The output is FLOAT32[1,4]; the tensor "x" is FLOAT32'
                     "[10,5], and takes rows of its own type and sizes.",
                     self.tensors.append, "x", x[:1, :4])
        self.refused(opmill.NotFound, 'There is no tensor "y" here.', self.tensors.append, "y", x)
        np.testing.assert_array_equal(self.tensors.get("x"), x)

    def test_generations(self):
        x = numbers(4)
        first = self.tensors.put("x", x, if_generation=0)
        self.refused(opmill.FailedPrecondition,
                     f'The tensor "x" has the generation {first.generation}, not 0 (if_generation).',
                     self.tensors.put, "x", x, if_generation=0)
        second = self.tensors.put("x", x + 1, if_generation=first.generation)
        self.assertNotEqual(first.generation, second.generation)
        self.refused(opmill.FailedPrecondition,
                     f'The tensor "x" has the generation {second.generation}, not '
                     f"{first.generation} (if_generation).",
                     self.tensors.delete, "x", if_generation=first.generation)
        self.tensors.delete("x", if_generation=second.generation)
        self.refused(opmill.NotFound, 'There is no tensor "x" here.', self.tensors.delete, "x")
        self.refused(opmill.NotFound, 'There is no tensor "x" here.', self.c.add, second, 1)
        self.refused(opmill.FailedPrecondition,
                     f'The tensor "x" does not exist, not {second.generation} (if_generation).',
                     self.tensors.put, "x", x, if_generation=second.generation)

    def test_refusals(self):
        x = numbers(4, 3)
        there = self.tensors.put("x", x)
        for name in ("", "a" * 129, "white space", "ä"):
            self.refused(opmill.InvalidArgument,
                         f'name ("{name if len(name) < 81 else name[:80] + "..."}") has to be 1 to 128 '
                         'letters, digits, or characters of "_-./:".', self.tensors.put, name, x)
        self.refused(opmill.InvalidArgument, "capacity_rows (2) is below the number of rows (4).",
                     self.tensors.put, "x", x, capacity=2)
        self.refused(opmill.InvalidArgument, "capacity_rows (1431655766) is above 1431655765, with "
                     "which the tensor has 2^32 - 1 elements.", self.tensors.put, "x", x,
                     capacity=1431655766)
        self.refused(opmill.InvalidArgument, "lease (-1s) is not longer than 0.", self.tensors.put, "x",
                     x, lease=-1)
        self.refused(opmill.InvalidArgument, "The tensor x is float32, and stays so on the server; "
                     "float16 is needed here.", self.c.add, there, np.ones((4, 3), np.float16),
                     cast="float16")
        longer = opmill.ResidentTensor("x", x.dtype, (5, 3), there.generation)
        self.refused(opmill.InvalidArgument, 'The input is FLOAT32[5,3], of 60 bytes; the tensor "x" '
                     "is FLOAT32[4,3], of 48.", self.c.add, longer, 1)
        np.testing.assert_array_equal(self.tensors.get("x"), x)

    def test_a_lease(self):
        self.tensors.put("short", numbers(5), lease=0.5)
        self.tensors.put("used", numbers(5), lease=2)
        self.tensors.put("long", numbers(5))
        expired = self.c.statistics().resident.expired
        until = time.monotonic() + 4
        while time.monotonic() < until:
            self.tensors.get("used")
            time.sleep(0.2)
        self.assertEqual([each.name for each in self.tensors.list()], ["long", "used"])
        self.assertEqual(self.c.statistics().resident.expired, expired + 1)

    def test_readers_see_one_state(self):
        rows = 2000
        self.tensors.put("x", np.zeros((rows, 64), np.float32), capacity=4 * rows)
        ends = threading.Event()
        seen = []

        def read():
            with opmill.connect(self.server.address) as c:
                while not ends.is_set():
                    found = c.tensors.find("x")
                    seen.append(np.unique(c.tensors.get(found)[:rows]))

        readers = [threading.Thread(target=read) for _ in range(3)]
        for reader in readers:
            reader.start()
        for value in range(1, 40):
            self.tensors.write("x", 0, np.full((rows, 64), value, np.float32))
            self.tensors.append("x", np.full((20, 64), value, np.float32))
        ends.set()
        for reader in readers:
            reader.join()
        self.assertGreater(len(seen), 10)
        self.assertTrue(all(len(values) == 1 for values in seen), seen)
        np.testing.assert_array_equal(self.tensors.get("x")[rows:, 0], np.repeat(np.arange(1, 40), 20))

    def test_asyncio(self):
        async def run():
            async with await opmill.aio.connect(self.server.address) as c:
                x = numbers(30, 4)
                there = await c.tensors.put("x", x)
                np.testing.assert_array_equal(await c.add(there, 1), x + 1)
                kept = await c.multiply(there, 3, keep="y")
                np.testing.assert_array_equal(await c.tensors.get(kept), x * 3)
                np.testing.assert_array_equal(await c.tensors.get("y"), x * 3)
                self.assertEqual([each.name for each in await c.tensors.list()], ["x", "y"])
                await c.tensors.delete("y")

        asyncio.run(run())


class OnTheSoftwareAdapter(Resident):
    DEVICE = "software"


class Files(unittest.TestCase):
    def test_a_file_of_the_server(self):
        weights = numbers(5, 3)
        with tempfile.TemporaryDirectory() as folder:
            np.save(f"{folder}/weights.npy", weights)
            with ServerProcess(f"--tensors={folder}", device="cpu") as server, \
                    opmill.connect(server.address) as c:
                there = c.tensors.find("weights")
                self.assertEqual((there.shape, there.read_only), (weights.shape, True))
                np.testing.assert_array_equal(c.multiply(there, 2), weights * 2)
                self.assertFalse(c.tensors.put("mine", weights).read_only)
                with self.assertRaises(opmill.FailedPrecondition) as raised:
                    c.tensors.put("weights", weights)
                self.assertEqual(raised.exception.reason, "READ_ONLY_TENSOR")
                listed = subprocess.run([CLI, "--server", server.address, "tensors", "list"], check=True,
                                        capture_output=True, text=True, timeout=60).stdout
                self.assertRegex(listed, r"(?m)^weights +float32\[5,3\] +5 +60 B +1 +a file of the server$")


class Limits(unittest.TestCase):
    def test_memory(self):
        with ServerProcess("--max_resident_tensor_bytes=1MiB", device="cpu") as server, \
                opmill.connect(server.address) as c:
            c.tensors.put("x", np.zeros(200 << 10, np.uint8))
            with self.assertRaises(opmill.ResourceExhausted) as raised:
                c.tensors.put("y", np.zeros(900 << 10, np.uint8))
            self.assertEqual(raised.exception.sentence,
                             'There is no room for the tensor "y", which takes 921600 bytes: 204800 of '
                             "1048576 bytes (max_resident_tensor_bytes) are in use.")
            c.tensors.delete("x")
            server.wait_until(lambda: c.statistics().resident.bytes == 0)
            c.tensors.put("y", np.zeros(900 << 10, np.uint8))
            # The old tensor stays until the new one is there.
            with self.assertRaises(opmill.ResourceExhausted):
                c.tensors.put("y", np.ones(900 << 10, np.uint8))
            self.assertEqual(c.tensors.get("y").max(), 0)
            c.tensors.delete("y")
            server.wait_until(lambda: c.statistics().resident.bytes == 0)


if __name__ == "__main__":
    unittest.main()
