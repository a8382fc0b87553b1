"""Problems with the shader cache cause one warning and some delay, but no failures."""

import ctypes
import os
import pathlib
import stat
import subprocess
import tempfile
import unittest

import numpy as np

import api
import arrays
from server_process import ServerProcess

VALUES = arrays.awkward("float32", (4, 1024), seed=5)
DATA = arrays.data_of(VALUES)
_PR_CAPBSET_DROP = 24
_CLONE_NEWNS, _CLONE_NEWUSER = 0x20000, 0x10000000
_MS_REC, _MS_PRIVATE = 0x4000, 0x40000
_PRIVILEGES_OVER_FILES = (0, 1, 2, 3)  # CAP_CHOWN, _DAC_OVERRIDE, _DAC_READ_SEARCH, _FOWNER


def give_up_privileges_over_files():
    """What root writes to regardless of permissions stays unwritable; nothing to do for others."""
    libc = ctypes.CDLL(None, use_errno=True)
    for capability in _PRIVILEGES_OVER_FILES:
        libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)


def mount_small_disk(folder):
    """A file system of 16 KiB there, for this process alone; root may, and where the system lets
    them, others in a namespace of their own."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_CLONE_NEWNS) != 0 and libc.unshare(_CLONE_NEWNS | _CLONE_NEWUSER) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    if (libc.mount(b"none", b"/", None, _MS_REC | _MS_PRIVATE, None) != 0 or
            libc.mount(b"tmpfs", os.fsencode(folder), b"tmpfs", 0, b"size=16k") != 0):
        raise OSError(ctypes.get_errno(), "mount")


class ShaderCache(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.cache = self.folder / "cache"

    def serve(self, cache=None, look=lambda server: None, **popen):
        """Serves every operator twice; the warnings about the cache, and the device's counters."""
        with ServerProcess(f"--shader_cache={cache or self.cache}", **popen) as server:
            stub = api.stub_of(self.enterContext(api.connect(server.address)))
            for _ in range(2):
                np.testing.assert_array_equal(
                    arrays.array_of(api.execute(stub, arrays.hardmax(VALUES, [1]), DATA)),
                    arrays.expect_hardmax(VALUES, [1]))
                values, indices = arrays.expect_top_k(VALUES, 1, 5)
                outcome = api.execute(stub, arrays.top_k(VALUES, 1, 5), DATA)
                np.testing.assert_array_equal(arrays.array_of(outcome), values)
                np.testing.assert_array_equal(arrays.array_of(outcome, 1), indices)
                np.testing.assert_array_equal(
                    arrays.array_of(api.execute(stub, arrays.argmax(VALUES, [0]), DATA)),
                    arrays.expect_arg(VALUES, [0], "max"))
                np.testing.assert_array_equal(
                    arrays.array_of(api.execute(stub, arrays.argmin(VALUES, [0]), DATA)),
                    arrays.expect_arg(VALUES, [0], "min"))
            device = stub.GetStatistics(api.sv.GetStatisticsRequest()).device
            look(server)
        warnings = [line["error"] for line in server.lines("shader_cache")]
        for warning in warnings:
            print(warning)
        return warnings, device

    def files(self):
        return sorted(path for path in self.cache.iterdir() if path.suffix == ".dxbc")

    def expect_one_warning(self, warnings, *parts):
        self.assertEqual(len(warnings), 1, warnings)
        for part in parts:
            self.assertIn(part, warnings[0])

    def test_is_silent_while_all_is_well(self):
        warnings, cold = self.serve()
        self.assertEqual(warnings, [])
        self.assertEqual(len(self.files()), cold.shaders_compiled)
        warnings, warm = self.serve()
        self.assertEqual((warnings, warm.shaders_compiled), ([], 0))

    def test_is_full(self):
        self.cache.mkdir()
        kept = []

        def look(server):
            kept.extend(pathlib.Path(f"/proc/{server.pid}/root{self.cache}").iterdir())

        try:
            warnings, device = self.serve(look=look,
                                          preexec_fn=lambda: mount_small_disk(self.cache))
        except subprocess.SubprocessError:
            self.skipTest("This system does not allow mounting a small file system.")
        self.expect_one_warning(warnings, str(self.cache), "cannot be written",
                                "No space left on device")
        self.assertGreater(device.shaders_compiled, 3)
        self.assertTrue(kept)
        self.assertEqual([path for path in kept if path.suffix == ".unfinished"], [])

    def test_is_read_only(self):
        _, cold = self.serve()
        kept = self.files()
        kept[0].unlink()
        self.cache.chmod(stat.S_IRUSR | stat.S_IXUSR)
        self.addCleanup(self.cache.chmod, stat.S_IRWXU)
        warnings, device = self.serve(preexec_fn=give_up_privileges_over_files)
        self.expect_one_warning(warnings, str(self.cache), "cannot be written",
                                "Permission denied")
        self.assertEqual(device.shaders_compiled, 1)  # existing entries are read
        self.assertEqual(device.pipelines_created, cold.pipelines_created)
        self.assertEqual(self.files(), kept[1:])

    def test_cannot_be_a_folder(self):
        self.cache.write_text("a file")
        for cache in (self.cache, self.cache / "below"):
            warnings, device = self.serve(cache)
            self.expect_one_warning(warnings, str(cache), "cannot be written")
            self.assertGreater(device.shaders_compiled, 3)
        self.assertEqual(self.cache.read_text(), "a file")

    def test_holds_damaged_files(self):
        _, cold = self.serve()
        files = self.files()
        whole = [path.read_bytes() for path in files]
        self.assertGreaterEqual(len(files), 5)
        damages = [lambda data: data[:len(data) // 2], lambda data: b"", lambda data: data[:10],
                   lambda data: data[:-1],
                   lambda data: data[:-5] + bytes([data[-5] ^ 1]) + data[-4:],
                   lambda data: data[:20] + bytes([data[20] ^ 0x80]) + data[21:],
                   lambda data: data + b"more", lambda data: os.urandom(len(data))]
        for index, path in enumerate(files):
            path.write_bytes(damages[index % len(damages)](whole[index]))
        warnings, device = self.serve()
        self.expect_one_warning(warnings, str(self.cache), "damaged")
        self.assertEqual(device.shaders_compiled, cold.shaders_compiled)
        warnings, device = self.serve()  # the entries were written again
        self.assertEqual((warnings, device.shaders_compiled), ([], 0))
