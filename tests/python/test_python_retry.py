"""Retries when servers stop, come back, or have no room; several servers."""

import pathlib
import pickle
import tempfile
import threading
import time
import unittest

import numpy as np
from server_process import ServerProcess

import opmill
from opmill._retry import Attempts

X = np.arange(3000, dtype=np.float32).reshape(30, 100)


class Rules(unittest.TestCase):
    def test_delays_double_and_end(self):
        attempts = Attempts(5, None)
        delays = [attempts.delay_after(opmill.Unavailable("gone")) for _ in range(4)]
        for delay, middle in zip(delays, (0.25, 0.5, 1, 2)):
            self.assertTrue(0.8 * middle <= delay <= 1.2 * middle, delays)
        with self.assertRaises(opmill.Unavailable):
            attempts.delay_after(opmill.Unavailable("gone"))

    def test_the_server_says_when(self):
        error = opmill.ResourceExhausted("full", retry_after=7)
        self.assertTrue(5.6 <= Attempts(5, None).delay_after(error) <= 8.4)
        with self.assertRaises(opmill.ResourceExhausted):
            Attempts(5, 5).delay_after(error)  # past the deadline
        with self.assertRaises(opmill.ResourceExhausted):
            Attempts(5, None).delay_after(opmill.ResourceExhausted("too large"))

    def test_other_errors_are_final(self):
        for error in (opmill.InvalidArgument("no"), opmill.Internal("bug", retry_after=1)):
            with self.assertRaises(type(error)):
                Attempts(5, None).delay_after(error)

    def test_timeouts_of_numpy_are_exact(self):
        for number in (np.float32(60), np.float16(60), np.int8(60)):
            remaining = Attempts(1, number).remaining()
            self.assertIs(type(remaining), float)
            self.assertTrue(59 < remaining <= 60, remaining)


class Servers(unittest.TestCase):
    def test_nobody_there(self):
        with tempfile.TemporaryDirectory() as folder:
            with self.assertRaises(ConnectionError) as raised:
                opmill.connect(f"unix:{folder}/nobody")
            self.assertIsInstance(raised.exception, opmill.Unavailable)

    def test_a_server_that_restarts(self):
        with tempfile.TemporaryDirectory() as folder:
            address = f"--address=unix:{pathlib.Path(folder) / 'socket'}"
            first = ServerProcess(address, device="reference")
            with opmill.connect(first.address, max_attempts=60) as c:
                self.assertEqual(c.sum(X), X.sum())
                first.kill()
                results = []
                caller = threading.Thread(target=lambda: results.append(c.sum(X)))
                caller.start()
                time.sleep(0.3)
                with ServerProcess(address, device="reference"):
                    caller.join()
                    self.assertEqual(results, [X.sum()])
                    big = np.ones((3, 1 << 20), np.float32)
                    self.assertEqual(c.sum(big), big.size)

    def test_another_client_has_seen_the_server_down(self):
        """gRPC would give both one connection, whose next attempt is up to 2 s away."""
        with tempfile.TemporaryDirectory() as folder:
            address = f"--address=unix:{pathlib.Path(folder) / 'socket'}"
            first = ServerProcess(address, device="reference")
            with opmill.connect(first.address, max_attempts=8) as old:
                first.kill()
                self.assertRaises(opmill.Unavailable, old.sum, X, timeout=4)  # gRPC has given up several times
                with (ServerProcess(address, device="reference") as second,
                      opmill.connect(second.address, max_attempts=1) as new):
                    self.assertEqual(new.sum(X), X.sum())

    def test_no_room(self):
        """The server allows one execution at a time; refused calls of eight callers are retried."""
        with ServerProcess("--max_executions=1", device="reference") as server:
            with opmill.connect(server.address, max_attempts=1000) as c:
                results = []
                callers = [threading.Thread(
                    target=lambda: results.extend(c.argmax(X) for _ in range(5)))
                    for _ in range(8)]
                for caller in callers:
                    caller.start()
                for caller in callers:
                    caller.join()
                self.assertEqual(results, [X.argmax()] * 40)

    def test_two_servers_share_the_work_and_one_dies(self):
        with (ServerProcess(device="reference") as first,
              ServerProcess(device="reference") as second,
              opmill.connect([first.address, second.address], max_attempts=60) as c):
            until = time.monotonic() + 60
            while min(self.done(first), self.done(second)) < 5:
                self.assertEqual(c.argmax(X), X.argmax())
                self.assertLess(time.monotonic(), until, "one server gets no calls")
            wrong = []
            killed = threading.Event()

            def work():
                after = 0
                while after < 20:
                    after += killed.is_set()
                    if c.argmax(X) != X.argmax():
                        wrong.append(after)

            callers = [threading.Thread(target=work) for _ in range(4)]
            for caller in callers:
                caller.start()
            first.kill()
            killed.set()
            for caller in callers:
                caller.join()
            self.assertEqual(wrong, [])

    def done(self, server):
        with opmill.connect(server.address) as c:
            return sum(row.succeeded for row in c.statistics().operators)

    def test_what_is_pickled_connects_anew_and_once(self):
        with ServerProcess(device="reference") as server:
            with opmill.connect(server.address, timeout=60) as c:
                pickled = pickle.dumps(c)
            one, other = (pickle.loads(pickled) for _ in range(2))
            self.assertIs(one, other)
            with one:
                self.assertEqual(one.sum(X), X.sum())
            with pickle.loads(pickled) as another:  # the first one is closed
                self.assertEqual(another.sum(X), X.sum())

    def test_a_closed_copy_leaves_those_of_other_clients(self):
        with ServerProcess(device="reference") as server:
            pickled = []
            for timeout in (50, 60):
                with opmill.connect(server.address, timeout=timeout) as c:
                    pickled.append(pickle.dumps(c))
            one, other = map(pickle.loads, pickled)
            one.close()
            with pickle.loads(pickled[0]) as again, other:
                self.assertIsNot(again, one)
                self.assertIs(pickle.loads(pickled[1]), other)

    def test_threads_that_unpickle_at_once_get_one_client(self):
        with ServerProcess(device="reference") as server:
            with opmill.connect(server.address, timeout=60) as c:
                pickled = pickle.dumps(c)
            copies = []
            threads = [threading.Thread(target=lambda: copies.append(pickle.loads(pickled)))
                       for _ in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            with copies[0]:
                self.assertEqual(set(map(id, copies)), {id(copies[0])})

    def test_calls_end_when_another_thread_closes_the_client(self):
        """In progress, between attempts, and later ones: each says so."""
        big = np.ones((20, 1 << 20), np.float32)
        with ServerProcess(device="cpu") as server:
            for array, lost in ((X, False), (big, False), (X, True)):
                with self.subTest(array.shape, lost=lost):
                    c = opmill.connect(server.address, shared_memory="off", max_attempts=60)
                    if lost:
                        server.kill()
                    errors = []

                    def work():
                        try:
                            while True:
                                c.sum(array)
                        except Exception as error:
                            errors.append(error)

                    threads = [threading.Thread(target=work) for _ in range(4)]
                    for thread in threads:
                        thread.start()
                    time.sleep(0.5)
                    c.close()
                    for thread in threads:
                        thread.join()
                    self.assertEqual([str(error) for error in errors],
                                     [f"The client of {server.address} is closed."] * 4)
                    self.assertEqual({type(error) for error in errors},
                                     {opmill.FailedPrecondition})

    def test_errors_are_pickled(self):
        error = pickle.loads(pickle.dumps(opmill.InvalidArgument("no", field="a.b", reason="R")))
        self.assertEqual((error.field, error.reason, str(error)), ("a.b", "R", "no [a.b]"))
        self.assertIsInstance(pickle.loads(pickle.dumps(opmill.Unavailable("x"))), OSError)

    def test_targets(self):
        with self.assertRaisesRegex(ValueError, "dns:///"):
            opmill.connect("one:1,two:2")
