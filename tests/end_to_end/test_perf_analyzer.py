"""perf_analyzer, a program of tritonclient's wheel for x86-64, as its users run it."""

import os
import pathlib
import subprocess
import sys
import sysconfig
import unittest

from server_process import ServerProcess

PROGRAM = pathlib.Path(sys.executable).parent / "perf_analyzer"
CUDA = pathlib.Path(sysconfig.get_path("platlib")) / "nvidia" / "cuda_runtime" / "lib"


@unittest.skipUnless(PROGRAM.exists(), "tritonclient has no perf_analyzer for this processor")
class PerfAnalyzer(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = cls.enterClassContext(ServerProcess(device="reference"))

    def measure(self, *flags):
        done = subprocess.run(
            [PROGRAM, "-i", "grpc", "-u", self.server.address, "--concurrency-range=2",
             "--measurement-mode=count_windows", "--measurement-request-count=20",
             "--stability-percentage=999", *flags],
            env=os.environ | {"LD_LIBRARY_PATH": str(CUDA)}, capture_output=True, text=True,
            timeout=300, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("infer/sec", done.stdout)
        # What it computes from ModelStatistics.
        self.assertRegex(done.stdout, "Inference count: [1-9]")
        self.assertIn("compute infer", done.stdout)

    def test_unary_with_a_request_parameter(self):
        self.measure("-m", "argmax", "--shape=input:8,32", "--request-parameter=axes:1:string")

    def test_streaming(self):
        self.measure("-m", "top_k", "--shape=input:8,32", "--request-parameter=axis:1:int",
                     "--request-parameter=k:2:int", "--streaming")

    def test_two_inputs(self):
        self.measure("-m", "element_wise_add", "--shape=a:4,4", "--shape=b:4,4")

    def test_system_shared_memory(self):
        self.measure("-m", "argmax", "--shape=input:8,32", "--request-parameter=axes:1:string",
                     "--shared-memory=system", "--output-shared-memory-size=4096")
        calls = {line["rpc"] for line in self.server.lines("answer")}
        self.assertLessEqual({"SystemSharedMemoryRegister", "SystemSharedMemoryUnregister"}, calls)
