"""The time of day is set while the server runs. Deadlines and timeouts follow a clock that does not jump."""

import os
import pathlib
import signal
import tempfile
import time
import unittest

import grpc
import numpy as np

import api
import arrays
from server_process import SERVER, ServerProcess

STEP_CLOCK = os.environ.get("OPMILL_STEP_CLOCK", str(
    pathlib.Path(SERVER).parents[1] / "tests" / "support" / "libopmill_step_clock.so"))
STEPS = (3600, -3600)
VALUES = np.arange(16, dtype=np.float32)
SECONDS = 2  # of each timeout below


class ClockSteps(unittest.TestCase):
    def setUp(self):
        self.files = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def serve(self, *flags):
        (self.files / "step").write_text("0")
        server = self.enterContext(ServerProcess(
            *flags, device="reference",
            environment={"LD_PRELOAD": STEP_CLOCK, "STEP_CLOCK": str(self.files / "step")}))
        return server, api.stub_of(self.enterContext(api.connect(server.address)))

    def set_clock(self, step):
        written = self.files / "next"
        written.write_text(str(step))
        written.rename(self.files / "step")

    def assert_follows_the_step(self, server, step):
        """Otherwise nothing of this file would be tested."""
        logged = server.lines()[-1]["time"]
        ahead = np.datetime64(logged.rstrip("Z")) - np.datetime64("now")
        self.assertLess(abs(ahead / np.timedelta64(1, "s") - step), 60)

    def test_calls_succeed_after_it(self):
        for step in STEPS:
            with self.subTest(step=step):
                server, stub = self.serve("--log_level=debug")
                api.execute(stub, arrays.hardmax(VALUES, [0]), arrays.data_of(VALUES))
                self.set_clock(step)
                until = time.monotonic() + 3
                while time.monotonic() < until:
                    api.execute(stub, arrays.hardmax(VALUES, [0]), arrays.data_of(VALUES), timeout=10)
                    stub.GetServerInfo(api.sv.GetServerInfoRequest(), timeout=10)
                uptime = stub.GetStatistics(api.sv.GetStatisticsRequest()).uptime.ToSeconds()
                self.assertLess(abs(uptime), 60)
                self.assert_follows_the_step(server, step)

    def incomplete(self, stub, **fields):
        """A stream with an execution that misses a part of its input."""
        stream = api.Stream(stub)
        stream.begin(1, arrays.hardmax(VALUES, [0]), [(0, 0, arrays.data_of(VALUES)[:8])], **fields)
        stream.begin(2, arrays.hardmax(VALUES, [0]), [(0, 0, arrays.data_of(VALUES))])
        self.assertEqual(stream.next_end()[0], 2)
        return stream

    def test_timeouts_under_way_end_when_they_should(self):
        for step in STEPS:
            with self.subTest(step=step):
                _, stub = self.serve()
                began = time.monotonic()
                stream = self.incomplete(stub, timeout={"seconds": SECONDS})
                self.set_clock(step)
                _, outcome = stream.next_end()
                self.assertEqual(outcome.status.code, grpc.StatusCode.DEADLINE_EXCEEDED.value[0])
                self.assert_took(SECONDS, began)

    def test_stalled_uploads_end_when_they_should(self):
        for step in STEPS:
            with self.subTest(step=step):
                _, stub = self.serve(f"--stall_timeout={SECONDS}s")
                began = time.monotonic()
                stream = self.incomplete(stub)
                self.set_clock(step)
                _, outcome = stream.next_end()
                self.assertIn("stall_timeout", outcome.status.message)
                self.assert_took(SECONDS, began)

    def test_draining_ends_when_it_should(self):
        for step in STEPS:
            with self.subTest(step=step):
                server, stub = self.serve(f"--drain_timeout={SECONDS}s")
                stream = self.incomplete(stub)
                began = time.monotonic()
                server.signal(signal.SIGTERM)
                server.wait_for(lambda line: line.get("event") == "draining")
                self.set_clock(step)
                self.assertEqual(server.wait(), 1)
                self.assert_took(SECONDS, began)
                with self.assertRaises(grpc.RpcError) as raised:
                    stream.next_end()
                self.assertEqual(raised.exception.code(), grpc.StatusCode.UNAVAILABLE)

    def test_files_are_still_watched(self):
        for step in STEPS:
            with self.subTest(step=step):
                tokens = self.files / "tokens"
                tokens.write_text("first " + "a" * 32 + "\n")
                server, _ = self.serve(f"--token_file={tokens}")
                self.set_clock(step)
                tokens.write_text("first " + "b" * 32 + "\n")
                server.wait_for(lambda line: line.get("event") == "reloaded", 10)

    def assert_took(self, seconds, began):
        took = time.monotonic() - began
        self.assertGreater(took, seconds * 0.9)
        self.assertLess(took, seconds + 5)
