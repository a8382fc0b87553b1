"""2 GiB through the command line: the result is right, and the server uses no more memory than one
copy of input and output plus 256 MiB. The cpu device does not even keep the input."""

import pathlib
import subprocess
import tempfile
import unittest

import numpy as np

from server_process import CLI, ServerProcess, plain_environment

ROWS, COLUMNS, BLOCK = 32768, 16384, 1024
INPUT_BYTES = 4 * ROWS * COLUMNS
ALLOWANCE_BYTES = 256 << 20


def blocks():
    """Yields the input, some rows at a time: small integers, whose sums are exact in FLOAT32."""
    random = np.random.default_rng(7)
    block = random.integers(0, 100, (BLOCK, COLUMNS)).astype(np.float32)
    for start in range(0, ROWS, BLOCK):
        yield start, np.roll(block, start // BLOCK * 37, axis=1)


class LargeTensors(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.path = pathlib.Path(cls.folder.name)
        cls.input = cls.path / "x.npy"
        array = np.lib.format.open_memmap(cls.input, "w+", np.float32, (ROWS, COLUMNS))
        for start, block in blocks():
            array[start:start + BLOCK] = block
        array.flush()

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def run_cli(self, kept_bytes, *arguments, device="software"):
        """Returns the output array. Uses a new server, so that the peak is that of this execution."""
        output = self.path / "y.npy"
        with ServerProcess(device=device) as server:
            idle = server.status_bytes("VmHWM")
            subprocess.run([CLI, "run", *arguments, "--input", self.input, "--output", output,
                            "--server", server.address], check=True, env=plain_environment())
            peak = server.status_bytes("VmHWM")
            execute = server.wait_for(lambda line: line.get("event") == "execute")
        beyond = peak - kept_bytes
        print(f"{arguments[0]} on {device}: server's peak {peak >> 20} MiB, {beyond >> 20} MiB beyond "
              f"what it must keep (idle {idle >> 20} MiB); upload {execute['upload_us'] / 1e6:.2f} s, compute "
              f"{execute['compute_us'] / 1e6:.2f} s, download {execute['download_us'] / 1e6:.2f} s",
              flush=True)
        self.assertLessEqual(beyond, ALLOWANCE_BYTES)
        return np.load(output, mmap_mode="r")

    def check_sums(self, kept_bytes, device):
        sums = self.run_cli(kept_bytes, "sum", "--axis", "1", device=device)
        for start, block in blocks():
            np.testing.assert_array_equal(sums[start:start + BLOCK], block.sum(axis=1))

    def test_reduce(self):
        self.check_sums(INPUT_BYTES + 4 * ROWS, "software")

    def test_reduce_while_the_input_arrives(self):
        self.check_sums(4 * ROWS, "cpu")

    def test_hardmax(self):
        ones = self.run_cli(2 * INPUT_BYTES, "hardmax", "--axes", "1")
        self.assertEqual(ones.shape, (ROWS, COLUMNS))
        columns = np.arange(COLUMNS)
        for start, block in blocks():
            expected = columns == block.argmax(axis=1)[:, np.newaxis]
            self.assertTrue(np.array_equal(ones[start:start + BLOCK], expected), f"rows {start}...")


if __name__ == "__main__":
    unittest.main()
