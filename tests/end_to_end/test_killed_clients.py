"""Clients that are killed leave nothing behind on the server."""

import json
import pathlib
import subprocess
import sys
import unittest

import numpy as np

import api
import arrays
from server_process import SANITIZED, ServerProcess, plain_environment

AT_A_TIME = 6
# So many show growth, which a sanitizer hides.
WARM_UP, REST = (12, 48) if SANITIZED else (60, 140)
MAX_GROWTH_BYTES = 64 << 20


class KilledClients(unittest.TestCase):
    def setUp(self):
        self.server = self.enterContext(ServerProcess())
        self.stub = api.stub_of(self.enterContext(api.connect(self.server.address)))

    def kill_clients(self, count):
        program = pathlib.Path(__file__).parent / "dying_clients.py"
        done = subprocess.run([sys.executable, program, self.server.address, str(count),
                               str(AT_A_TIME)], env=plain_environment(), capture_output=True,
                              text=True, timeout=300, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        died = json.loads(done.stdout)
        self.assertEqual(sum(died.values()), count)
        return died

    def test_many_killed_in_a_row_leave_the_server_as_it_was(self):
        self.kill_clients(WARM_UP)
        resting = api.wait_until_idle(self.stub).device.buffer_bytes_in_use
        before = self.server.status_bytes("VmRSS")
        died = self.kill_clients(REST)
        statistics = api.wait_until_idle(self.stub, resting)
        after = self.server.status_bytes("VmRSS")
        print(f"killed {died}; resident {before >> 20} MiB before, {after >> 20} MiB after")
        hardmax = next(each for each in statistics.operators if each.operator == "hardmax")
        # Killing a client cancels its execution: certainly during the upload. Of the others many, because
        # what gRPC has taken counts as sent.
        self.assertGreaterEqual(hardmax.cancelled, (WARM_UP + REST) // 2)
        self.assertEqual(hardmax.failed, 0)
        if not SANITIZED:  # whose allocators keep freed memory
            self.assertLess(after - before, MAX_GROWTH_BYTES)

        array = arrays.awkward("float32", (64, 64), seed=3)
        outcome = api.execute(self.stub, arrays.hardmax(array, [1]), arrays.data_of(array))
        np.testing.assert_array_equal(arrays.array_of(outcome), arrays.expect_hardmax(array, [1]))
