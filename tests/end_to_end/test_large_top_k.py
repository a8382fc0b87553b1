"""top_k of 2^27 elements with k = n, a complete sort through the command line: the result is NumPy's,
and the server stays within its memory limit. OPMILL_LARGE_TOP_K_DEVICES=cpu,software also runs it on
the software adapter, which takes many minutes."""

import os
import pathlib
import subprocess
import tempfile
import unittest

import numpy as np

from server_process import CLI, ServerProcess, plain_environment

COUNT = 1 << 27
LIMIT_BYTES = 14 << 30  # of which the operator may take 2 GiB of scratch
PEAK_BYTES = 6 << 30
FREE_BYTES = 12 << 30  # what server, client, files and NumPy need


def free_bytes():
    for line in pathlib.Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) << 10
    return 0


class LargeTopK(unittest.TestCase):
    def test_sorts_all_elements(self):
        if free_bytes() < FREE_BYTES:
            self.skipTest(f"needs {FREE_BYTES >> 30} GiB of free memory")
        # Every value occurs about eight times, so that ties matter.
        array = np.random.default_rng(5).integers(-(1 << 23), 1 << 23, COUNT).astype(np.float32)
        for device in os.environ.get("OPMILL_LARGE_TOP_K_DEVICES", "cpu").split(","):
            with self.subTest(device=device), tempfile.TemporaryDirectory() as folder:
                self.check(array, device, pathlib.Path(folder))

    def check(self, array, device, folder):
        np.save(folder / "x.npy", array)
        with ServerProcess(f"--memory_limit={LIMIT_BYTES}", "--stall_timeout=3h",
                           device=device) as server:
            subprocess.run([CLI, "run", "top_k", "--axis", "0", "--k", str(COUNT), "--input",
                            folder / "x.npy", "--output", folder / "values.npy", "--indices",
                            folder / "indices.npy", "--server", server.address],
                           check=True, env=plain_environment())
            peak = server.status_bytes("VmHWM")
            execute = server.wait_for(lambda line: line.get("event") == "execute")
        print(f"{device}: server's peak {peak >> 20} MiB; upload {execute['upload_us'] / 1e6:.1f} s, "
              f"compute {execute['compute_us'] / 1e6:.1f} s, download "
              f"{execute['download_us'] / 1e6:.1f} s", flush=True)
        self.assertLessEqual(peak, PEAK_BYTES)
        values = np.load(folder / "values.npy", mmap_mode="r")
        indices = np.load(folder / "indices.npy", mmap_mode="r")
        self.assertTrue(np.array_equal(values, np.sort(array)[::-1]))
        self.assertTrue(np.array_equal(array[indices], values))
        # Equal values are in the order of their indices, which are therefore all different.
        ordered = (values[1:] < values[:-1]) | (indices[1:] > indices[:-1])
        self.assertTrue(ordered.all())


if __name__ == "__main__":
    unittest.main()
