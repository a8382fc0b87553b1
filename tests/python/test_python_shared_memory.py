"""Large arrays on this machine, through shared memory: values, what is left, and what happens where
it does not work."""

import asyncio
import os
import pathlib
import pickle
import subprocess
import sys
import tempfile
import time
import unittest
from unittest import mock

import numpy as np
import oracle
from server_process import ServerProcess

import opmill
import opmill.aio
from opmill import _shared_memory as shared

FOLDER = pathlib.Path("/dev/shm")
TYPES = ("float32", "float16", "uint64", "uint32", "uint16", "uint8", "int64", "int32", "int16",
         "int8")


class SharedMemoryCase(unittest.TestCase):
    flags = []

    @classmethod
    def setUpClass(cls):
        cls.server = cls.enterClassContext(ServerProcess(*cls.flags, device="cpu"))

    def setUp(self):
        self.c = self.enterContext(opmill.connect(self.server.address))
        self.plain = self.enterContext(opmill.connect(self.server.address, shared_memory="off"))
        # What else runs on this machine has segments of its own.
        self.created = []
        create = shared.Segment.__init__

        def record(segment, sizes):
            create(segment, sizes)
            self.created.append(segment._path)

        self.enterContext(mock.patch.object(shared.Segment, "__init__", record))

    def used(self):
        """How many segments have been made, all of which are gone."""
        count = len(self.created)
        self.assertFalse([path for path in self.created if path.exists()])
        self.created.clear()
        return count


class SharedMemory(SharedMemoryCase):
    def test_every_type(self):
        random = np.random.default_rng(1)
        for dtype in TYPES:
            x = random.integers(0, 100, (3, 1 << 20)).astype(dtype)
            x = np.concatenate([x] * (1 + (shared.LEAST_BYTES - 1) // x.nbytes))
            with self.subTest(dtype=dtype):
                np.testing.assert_array_equal(self.c.argmax(x, 1), x.argmax(1))
                self.assertEqual(self.used(), 1)  # the result is small
                np.testing.assert_array_equal(self.c.max(x, 1), x.max(1))
                self.assertEqual(self.used(), 1)
        for dtype in ("float32", "float16"):
            x = random.integers(0, 100, (3, 1 << 21)).astype(dtype)
            np.testing.assert_array_equal(self.c.hardmax(x), oracle.hardmax(x))
            self.assertEqual(self.used(), 2)

    def test_layouts(self):
        x = np.random.default_rng(2).random((3000, 1001), np.float32)
        for view in (np.asfortranarray(x), x.T, x[:, 1:], x[::-1], x[:, ::3],
                     np.broadcast_to(x, (3, *x.shape))):
            np.testing.assert_array_equal(self.c.argmax(view, -1), view.argmax(-1))
            np.testing.assert_array_equal(self.c.hardmax(view), self.plain.hardmax(view))
        self.assertGreater(self.used(), 6)

    def test_several_inputs_and_outputs(self):
        x = np.random.default_rng(3).random((1500, 1000), np.float32)
        np.testing.assert_array_equal(self.c.add(x, x[:1]), x + x[:1])
        np.testing.assert_array_equal(self.c.add(x, x), x + x)
        self.assertEqual(self.used(), 4)
        top = self.c.top_k(x, 900, 0)
        values, indices = oracle.top_k(x, 900, 0)
        np.testing.assert_array_equal(top.values, values)
        np.testing.assert_array_equal(top.indices, indices)
        self.assertEqual(self.used(), 2)

    def test_results_are_arrays_of_their_own(self):
        x = np.random.default_rng(4).random((2000, 1000), np.float32)
        first = self.c.hardmax(x)
        expected = oracle.hardmax(x)
        second = self.c.hardmax(x + 1)
        second[:] = 7
        self.assertTrue(first.flags.writeable)
        np.testing.assert_array_equal(first, expected)
        # What a forked process writes is its own.
        if os.fork() == 0:
            first[:] = 9
            os._exit(0)
        os.wait()
        np.testing.assert_array_equal(first, expected)
        self.c.close()
        np.testing.assert_array_equal(first, expected)
        self.assertEqual(self.used(), 4)

    def test_small_arrays_go_in_the_message(self):
        self.c.sum(np.ones(1000, np.float32))
        self.assertEqual(self.used(), 0)

    def test_off(self):
        self.plain.sum(np.ones(shared.LEAST_BYTES, np.float32))
        self.assertEqual(self.used(), 0)
        with self.assertRaisesRegex(ValueError, "shared_memory"):
            opmill.connect(self.server.address, shared_memory="on")

    def test_errors_are_those_of_a_stream(self):
        x = np.ones((2, shared.LEAST_BYTES), np.float32)
        for client in (self.c, self.plain):
            with self.assertRaises(opmill.InvalidArgument) as raised:
                client.sum(x, axis=3)
            self.assertEqual(raised.exception.field, "operator.reduce.axes[0]")
        with self.assertRaises(opmill.FailedPrecondition):
            self.c.sum(x.astype(np.int64), feature_level="1.0")
        with self.assertRaises(TimeoutError):
            self.c.sum(x, timeout=0.0001)
        self.used()
        np.testing.assert_array_equal(self.c.sum(x, 1), x.sum(1))
        self.assertEqual(self.used(), 1)

    def test_progress(self):
        x = np.ones((3, shared.LEAST_BYTES), np.float32)
        seen = []
        self.c.sum(x, progress=lambda sent, total: seen.append((sent, total)))
        self.assertGreater(len(seen), 5)
        self.assertEqual(seen, sorted(seen))
        self.assertEqual(seen[-1], (x.nbytes, x.nbytes))

        def fail(sent, total):
            raise ZeroDivisionError("enough")

        with self.assertRaisesRegex(ZeroDivisionError, "enough"):
            self.c.sum(x, progress=fail)
        self.assertEqual(self.used(), 2)

    def test_asyncio(self):
        x = np.random.default_rng(5).random((2000, 1000), np.float32)

        async def main():
            async with await opmill.aio.connect(self.server.address) as c:
                return await asyncio.gather(*(c.hardmax(x + i) for i in range(3)))

        for result in asyncio.run(main()):
            np.testing.assert_array_equal(result, oracle.hardmax(x))
        self.assertEqual(self.used(), 6)

    def test_a_pickled_client(self):
        x = np.ones(shared.LEAST_BYTES, np.float32)
        c = pickle.loads(pickle.dumps(self.c))
        self.assertEqual(c.max(x), 1)
        self.assertEqual(self.used(), 1)
        c = pickle.loads(pickle.dumps(self.plain))
        self.assertEqual(c.max(x), 1)
        self.assertEqual(self.used(), 0)

    def test_a_server_that_does_not_see_the_segments(self):
        """As in another container."""
        x = np.random.default_rng(6).random((2000, 1000), np.float32)
        with tempfile.TemporaryDirectory() as folder, \
                mock.patch.object(shared, "_FOLDER", pathlib.Path(folder)):
            np.testing.assert_array_equal(self.c.hardmax(x), oracle.hardmax(x))
            self.assertEqual(self.used(), 2)
            np.testing.assert_array_equal(self.c.hardmax(x), oracle.hardmax(x))
            self.assertEqual(self.used(), 0)  # not tried again
            self.assertEqual(os.listdir(folder), [])

    def test_no_room(self):
        x = np.random.default_rng(7).random((2000, 1000), np.float32)
        full = mock.Mock(side_effect=OSError(28, "No space left on device"))
        with mock.patch("os.pwrite", full):
            np.testing.assert_array_equal(self.c.hardmax(x), oracle.hardmax(x))
        self.assertEqual(self.used(), 2)
        np.testing.assert_array_equal(self.c.hardmax(x), oracle.hardmax(x))
        self.assertEqual(self.used(), 2)  # tried again

    def test_segments_of_killed_processes_are_removed(self):
        program = """
import os, sys
from opmill import _shared_memory as shared
segment = shared.Segment([100])
print(segment._path, flush=True)
sys.stdin.read()
"""
        with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True) as living:
            path = pathlib.Path(living.stdout.readline().strip())
            old = time.time() - 2 * shared._ABANDONED_SECONDS
            os.utime(path, (old, old))
            shared._remove_abandoned.cache_clear()
            shared._remove_abandoned()
            self.assertTrue(path.exists())
            living.kill()
        young = FOLDER / f"opmill-client-{os.urandom(16).hex()}"
        young.touch()
        shared._remove_abandoned.cache_clear()
        shared._remove_abandoned()
        self.assertFalse(path.exists())
        self.assertTrue(young.exists())
        young.unlink()


class SharedMemoryRefused(SharedMemoryCase):
    flags = ["--shared_memory=off"]

    def test_arrays_are_streamed(self):
        x = np.random.default_rng(8).random((2000, 1000), np.float32)
        np.testing.assert_array_equal(self.c.hardmax(x), oracle.hardmax(x))
        self.assertEqual(self.used(), 0)

    def test_a_server_that_accepts_it_no_longer(self):
        """As after a restart with another flag."""
        self.c._shares_memory = True
        x = np.random.default_rng(9).random((2000, 1000), np.float32)
        np.testing.assert_array_equal(self.c.hardmax(x), oracle.hardmax(x))
        self.assertEqual(self.used(), 2)
        self.assertFalse(self.c._shares_memory)


if __name__ == "__main__":
    unittest.main()
