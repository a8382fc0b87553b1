"""Large arrays on this machine, through shared memory: values, what is left, and what happens where
it does not work."""

import asyncio
import gc
import os
import pathlib
import pickle
import subprocess
import sys
import tempfile
import threading
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
        # What else runs on this machine has segments of its own.
        self.paths = set()
        self.uses = 0
        self.addCleanup(lambda: self.assertEqual(self.present(), []))  # once clients are closed
        divide = shared.Segment.divide

        def record(segment, sizes):
            divide(segment, sizes)
            self.paths.add(segment._path)
            self.uses += 1

        self.enterContext(mock.patch.object(shared.Segment, "divide", record))
        self.c = self.enterContext(opmill.connect(self.server.address))
        self.plain = self.enterContext(opmill.connect(self.server.address, shared_memory="off"))

    def present(self):
        return [path for path in self.paths if path.exists()]

    def used(self):
        """How many segments inputs and outputs have been in."""
        count, self.uses = self.uses, 0
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

    def test_segments_of_inputs_are_used_again(self):
        random = np.random.default_rng(10)
        sizes = [shared.LEAST_BYTES, 2 * shared.LEAST_BYTES, 3 * shared.LEAST_BYTES // 2]
        for size in sizes:
            x = random.random(size // 4, np.float32)
            for _ in range(3):
                self.assertEqual(self.c.argmax(x), x.argmax())
        self.assertEqual(len(self.paths), 2)
        with mock.patch.object(self.c._segments, "_most_idle_bytes", 2 * shared.LEAST_BYTES):
            self.c.argmax(x)
            self.assertEqual(len(self.present()), 1)
        # A forked process leaves them to its parent.
        if os.fork() == 0:
            with self.c._segments.borrow([100]) as segment:
                os._exit(0 if segment.owner == os.getpid() and segment.close() is None else 1)
        self.assertEqual(os.wait()[1], 0)
        wrong = []

        def work(seed):
            y = np.random.default_rng(seed).random(shared.LEAST_BYTES, np.float32)
            for _ in range(4):
                if self.c.argmax(y) != y.argmax():
                    wrong.append(seed)

        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_arrays_that_are_in_shared_memory(self):
        x = opmill.shared_empty((2000, 1000))
        x[:] = np.random.default_rng(11).random(x.shape, np.float32)
        self.used()
        views = [x, x[1:], x[:, 8:], x.T, x.reshape(-1, 10), x.view(np.int32),
                 np.broadcast_to(x[:1100], (2, 1100, 1000))]
        for view in views:
            np.testing.assert_array_equal(self.c.argmax(view, -1), view.argmax(-1))
        self.assertEqual(self.used(), 0)  # but the array's own
        np.testing.assert_array_equal(self.c.argmax(x[::-1], 1), x[::-1].argmax(1))
        np.testing.assert_array_equal(self.c.add(x, x.copy()), x + x)
        self.assertEqual(self.used(), 3)  # a copy; the second input, and the output
        np.testing.assert_array_equal(self.plain.argmax(x, 1), x.argmax(1))
        seen = []
        self.c.sum(x, progress=lambda sent, total: seen.append((sent, total)))
        self.assertEqual(seen, [(x.nbytes, x.nbytes)])
        row = x[0]
        del x, view, views
        gc.collect()
        self.assertEqual(len(self.present()), 1 + len(self.c._segments._idle))
        del row
        gc.collect()
        self.assertEqual(len(self.present()), len(self.c._segments._idle))
        self.assertEqual(opmill.shared_empty(0).shape, (0,))
        self.assertEqual(opmill.shared_empty(3, "int8").dtype, np.int8)
        with self.assertRaises(MemoryError):
            opmill.shared_empty(1 << 60, "int8")
        with self.assertRaises(ValueError):
            opmill.shared_empty(3, object)
        gc.collect()
        self.assertEqual(len(self.present()), len(self.c._segments._idle))

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
        c.close()
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
        self.assertEqual(self.used(), 1)
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


class LittleMemory(SharedMemoryCase):
    """Inputs that exceed what the server may hold are sent: it computes with them as they arrive."""

    flags = ["--memory_limit=1GiB", "--max_bytes_in_flight=8MiB"]

    def test_inputs_that_exceed_the_memory_for_tensors(self):
        for mebibytes, segments in ((7, 1), (9, 0), (100, 0)):
            with self.subTest(mebibytes):
                x = np.random.default_rng(1).random((mebibytes, 1 << 18), np.float32)
                np.testing.assert_array_equal(self.c.max(x, 1), x.max(1))
                self.assertEqual(self.used(), segments)


class OtherSystems(unittest.TestCase):
    def test_without_the_calls_of_linux(self):
        program = """
import sys, asyncio, grpc.aio, numpy
import google.protobuf.descriptor_pool, google.protobuf.message_factory
sys.modules["fcntl"] = None
sys.platform = "win32"
import opmill
x = opmill.shared_empty((2, 3))
print(opmill._shared_memory.is_possible(), x.shape)
"""
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                              check=False)
        self.assertEqual((done.stdout, done.stderr), ("False (2, 3)\n", ""))


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
