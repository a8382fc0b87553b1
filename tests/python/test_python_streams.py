"""Large inputs, which use ExecuteStream: values, progress, deadlines, and limits."""

import io
import contextlib
import threading
import unittest

import numpy as np
import oracle
from server_process import ServerProcess

import opmill

MIB = 1 << 20


class Streams(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = cls.enterClassContext(ServerProcess(device="cpu"))
        cls.c = cls.enterClassContext(opmill.connect(cls.server.address, shared_memory="off"))
        cls.x = np.random.default_rng(3).random((3000, 1000), np.float32)  # 12 MB

    def test_values(self):
        for x in (self.x, np.asfortranarray(self.x), self.x.T):
            np.testing.assert_array_equal(self.c.argmax(x, 1), x.argmax(1))
        np.testing.assert_array_equal(self.c.hardmax(self.x), oracle.hardmax(self.x))
        top = self.c.top_k(self.x, 700, 0)
        values, indices = oracle.top_k(self.x, 700, 0)
        np.testing.assert_array_equal(top.values, values)
        np.testing.assert_array_equal(top.indices, indices)

    def test_two_inputs(self):
        np.testing.assert_array_equal(self.c.add(self.x, self.x[:, :1]), self.x + self.x[:, :1])
        np.testing.assert_array_equal(self.c.add(self.x, self.x), self.x + self.x)

    def test_progress(self):
        seen = []
        self.c.sum(self.x, progress=lambda sent, total: seen.append((sent, total)))
        self.assertGreater(len(seen), 5)
        self.assertEqual(seen, sorted(seen))
        self.assertEqual(seen[-1], (self.x.nbytes, self.x.nbytes))
        seen.clear()
        self.c.sum(self.x[:2], progress=lambda sent, total: seen.append((sent, total)))
        self.assertEqual(seen, [(8000, 8000)])

    def test_a_bar(self):
        with contextlib.redirect_stderr(io.StringIO()) as text:
            self.c.sum(self.x, progress=True)
        self.assertIn("100%", text.getvalue())

    def test_what_progress_raises_ends_the_call(self):
        def fail(sent, total):
            if sent > 3 * MIB:
                raise ZeroDivisionError("enough")

        with self.assertRaisesRegex(ZeroDivisionError, "enough"):
            self.c.sum(self.x, progress=fail)
        oracle.assert_close(self.c.sum(self.x), self.x, "sum")

    def test_a_deadline(self):
        with self.assertRaises(TimeoutError) as raised:
            self.c.sum(self.x, timeout=0.001)
        self.assertIsInstance(raised.exception, opmill.DeadlineExceeded)

    def test_many_threads_share_a_client(self):
        wrong = []

        def work(row):
            if self.c.argmax(self.x[row:row + 400]) != self.x[row:row + 400].argmax():
                wrong.append(row)

        threads = [threading.Thread(target=work, args=(row,)) for row in range(0, 1600, 200)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_a_server_that_takes_small_messages(self):
        with ServerProcess("--max_message_bytes=64KiB", device="cpu") as server:
            with opmill.connect(server.address, shared_memory="off") as c:
                for rows in (3, 20, 700):
                    x = self.x[:rows]
                    np.testing.assert_array_equal(c.argmax(x, 0), x.argmax(0))
