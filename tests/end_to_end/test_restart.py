"""A restarted server compiles nothing that it has compiled before."""

import tempfile
import time
import unittest

import numpy as np

import api
import arrays
from server_process import SANITIZED, ServerProcess

VALUES = np.arange(4096, dtype=np.float32).reshape(4, 1024)


class Restart(unittest.TestCase):
    def serve_once(self, directory):
        """Starts a server on the cache, has it compute; how it began, and what the calls took."""
        began = time.monotonic()
        with ServerProcess(f"--shader_cache={directory}") as server:
            seconds = time.monotonic() - began
            stub = api.stub_of(self.enterContext(api.connect(server.address)))
            before = stub.GetStatistics(api.sv.GetStatisticsRequest()).device
            for operator in (arrays.hardmax(VALUES, [1]), arrays.top_k(VALUES, 1, 5)):
                self.assertIsNotNone(
                    api.execute(stub, operator, arrays.data_of(VALUES)).statistics)
            after = stub.GetStatistics(api.sv.GetStatisticsRequest()).device
        return seconds, before, after

    def test_what_was_compiled_before_is_there_before_the_first_request(self):
        with tempfile.TemporaryDirectory() as directory:
            _, before, cold = self.serve_once(directory)
            self.assertEqual(before.pipelines_created, 0)
            self.assertGreater(cold.shaders_compiled, 0)
            self.assertEqual(cold.shaders_compiled, cold.pipelines_created)
            seconds, before, after = self.serve_once(directory)
            print(f"serving after {seconds:.2f} s, with {before.pipelines_created} kernels live")
            self.assertEqual(before.pipelines_created, cold.pipelines_created)
            self.assertEqual(after.pipelines_created, cold.pipelines_created)
            self.assertEqual(after.shaders_compiled, 0)
            if not SANITIZED:
                self.assertLess(seconds, 5)  # on any machine; docs/performance.md has the number
