"""Tensors of --tensors: there from the start, read by every caller and changed by none, and put back when
the device is lost; and the copies of --tensor_copies, by which those of callers are."""

import os
import pathlib
import subprocess
import tempfile
import unittest

import grpc
import numpy as np

import api
from server_process import SERVER, DriverFaults, ServerProcess, plain_environment
from test_resident_tensors import (ALICE, BOB, Calls, X, arrays, identity, output, resident, rs,
                                   sv)

FAILED_PRECONDITION = grpc.StatusCode.FAILED_PRECONDITION


class Files(Calls):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def save(self, **arrays_by_name):
        for name, array in arrays_by_name.items():
            np.save(self.folder / f"{name}.npy", array)

    def listed(self, **call):
        return {each.name: each for each in self.stub.ListTensors(rs.ListTensorsRequest(), **call).tensors}


class FromTheStart(Files):
    def start_error(self, *flags):
        ended = subprocess.run([SERVER, "--address=127.0.0.1:0", "--device=cpu", "--log_format=json",
                                "--shader_cache=", f"--tensors={self.folder}", *flags],
                               env=plain_environment(), capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(ended.returncode, 1, ended.stderr)
        return ended.stderr

    def test_every_type_and_shape(self):
        random = np.random.default_rng(3)
        saved = {name: random.integers(0, 100, (5, 3)).astype(name) for name in
                 ("float32", "float16", "int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8")}
        saved |= {"row": X[0], "cube": random.random((3, 4, 5), np.float32), "odd-name:1.x": X,
                  "scalar": np.array(7, np.float32)}
        self.save(**saved)
        (self.folder / "notes.txt").write_text("no tensor")
        (self.folder / ".hidden.npy").write_text("no tensor")
        for device in ("cpu", "reference", "software"):
            with self.subTest(device):
                self.start(f"--tensors={self.folder}", device=device)
                self.assertEqual(set(self.listed()), set(saved))
                for name, array in saved.items():
                    tensor = self.listed()[name]
                    self.assertEqual((list(tensor.tensor.sizes), tensor.is_read_only),
                                     (list(array.shape), True))
                    like = array if array.shape else array[None]
                    np.testing.assert_array_equal(self.get(name, like), like)

    def test_every_server_has_them(self):
        big = np.random.default_rng(4).standard_normal((3000, 500), np.float32)
        self.save(big=big)
        for _ in range(2):
            self.start(f"--tensors={self.folder}")
            outcome = self.execute(arrays.hardmax(big, [1]), resident_inputs=[resident("big")])
            self.assertEqual(outcome.outputs[0], arrays.expect_hardmax(big, [1]).tobytes())

    def test_no_caller_changes_it(self):
        self.save(w=X)
        tokens = self.folder / "tokens"
        tokens.write_text(f"alice {ALICE}\nbob {BOB}\n")
        tokens.chmod(0o600)
        self.server = self.enterContext(ServerProcess(
            f"--tensors={self.folder}", f"--token_file={tokens}", "--max_resident_tensor_bytes_per_owner=96",
            device="cpu"))
        self.stub = api.stub_of(self.enterContext(api.connect(self.server.address)))
        sentence = 'The tensor "w" is a file of the server (--tensors), and can only be read.'
        for token in (ALICE, BOB):
            caller = [("authorization", f"Bearer {token}")]
            np.testing.assert_array_equal(self.get("w", metadata=caller), X)
            for kind, fields in ((1, {}), (2, {}), (3, {"first_row": 1})):
                self.check_refusal("resident_outputs[0].name", sentence, identity(X), X, metadata=caller,
                                   code=FAILED_PRECONDITION, resident_outputs=[output("w", kind, **fields)])
            with self.assertRaises(grpc.RpcError) as raised:
                self.stub.DeleteTensor(rs.DeleteTensorRequest(name="w"), metadata=caller)
            self.assertEqual((raised.exception.code(), raised.exception.details()), (FAILED_PRECONDITION, sentence))
            # It does not count as the caller's, whose own are beside it.
            self.execute(identity(X), X + 1, metadata=caller, resident_outputs=[output("v")])
            self.assertEqual({name: each.is_read_only for name, each in self.listed(metadata=caller).items()},
                             {"v": False, "w": True})
            found = self.stub.ListTensors(rs.ListTensorsRequest(name="w"), metadata=caller).tensors
            self.assertEqual([each.name for each in found], ["w"])

    def test_what_cannot_be_served_stops_the_start(self):
        for name, array, why in (
                ("fortran", np.asfortranarray(X), "The array is in Fortran order; save it with "
                                                  "numpy.ascontiguousarray(x)."),
                ("double", X.astype(np.float64), "The array's dtype '<f8' is not one of the types"),
                ("truth", X > 0, "The array's dtype '|b1' is not one of the types"),
                ("empty", X[:0], "The array has no elements."),
                ("white space", X, 'name ("white space") has to be 1 to 128 letters'),
                ("large", np.zeros((1 << 20) + 1, np.uint8),
                 'There is no room for the tensor "large", which takes 1048580 bytes: 96 of 1048576 bytes '
                 "(max_resident_tensor_bytes) are in use.")):
            with self.subTest(name):
                self.save(**{"a": X, name: array})
                path = self.folder / f"{name}.npy"
                self.assertIn(f"--tensors: {path} cannot be served. {why}".replace('"', '\\"'),
                              self.start_error("--max_resident_tensor_bytes=1MiB"))
                path.unlink()
        cut = self.folder / "cut.npy"
        np.save(cut, X)
        os.truncate(cut, 200)
        self.assertIn("The .npy file is truncated: it needs 224 bytes and has 200.", self.start_error())
        cut.unlink()
        os.mkfifo(cut)
        self.assertIn("It is not a regular file.", self.start_error())
        self.folder /= "nowhere"
        self.assertIn(f"--tensors ({self.folder}) cannot be read: No such file or directory.",
                      self.start_error())


class DeviceLoss(Files):
    def start_faulty(self, *flags):
        self.faults = DriverFaults(self.enterContext(tempfile.TemporaryDirectory()))
        self.start(f"--tensors={self.folder}", *flags, device="software", environment=self.faults.environment)

    def lose_device(self):
        before = len(self.server.lines("device_back"))
        self.faults.begin("lose_device")
        with self.assertRaises(grpc.RpcError):
            for _ in range(10_000):
                self.execute(arrays.hardmax(X, [1]), X)
        self.server.wait_until(lambda: len(self.server.lines("device_back")) > before)

    def wait_until_put_back(self, count):
        self.server.wait_until(lambda: len(self.server.lines("tensors_put_back")) >= count)

    def test_files_are_put_back(self):
        big = np.random.default_rng(4).standard_normal((1000, 1000), np.float32)
        self.save(w=X, big=big)
        self.start_faulty()
        generation = self.listed()["w"].generation
        self.put("mine")
        for count in (1, 2):
            self.lose_device()
            self.wait_until_put_back(count)
            np.testing.assert_array_equal(self.get("w"), X)
            np.testing.assert_array_equal(self.get("big", big), big)
            self.assertEqual(self.listed()["w"].generation, generation)
        line = self.server.lines("tensors_put_back")[-1]
        self.assertEqual((line["tensors"], line["bytes"]), (2, X.nbytes + big.nbytes))
        refusal = self.refused(identity(X), resident_inputs=[resident("mine")])
        self.assertEqual((refusal.code, refusal.reason, refusal.sentence), (
            grpc.StatusCode.UNAVAILABLE, "TENSOR_LOST",
            'The tensor "mine" was lost with the device; put it again.'))
        self.assertEqual((self.totals().lost, self.totals().bytes), (1, X.nbytes + big.nbytes))

    def test_a_file_that_has_changed_is_lost(self):
        self.save(w=X, v=X)
        self.start_faulty()
        self.save(w=X + 1)
        self.lose_device()
        self.wait_until_put_back(1)
        np.testing.assert_array_equal(self.get("v"), X)
        refusal = self.refused(identity(X), resident_inputs=[resident("w")])
        self.assertEqual((refusal.code, refusal.reason, refusal.sentence), (
            grpc.StatusCode.UNAVAILABLE, "TENSOR_LOST",
            'The tensor "w" was lost with the device, and could not be put back from its file.'))
        [line] = self.server.lines("tensor_lost")
        self.assertEqual(line["error"], f'The tensor "w" is not put back: {self.folder / "w.npy"} has changed '
                         "since the server has started.")
        self.assertEqual((self.totals().lost, self.listed()["w"].is_lost), (1, True))

    def test_copies_of_callers_tensors_are_put_back(self):
        random = np.random.default_rng(5)
        big = random.standard_normal((1000, 1000), np.float32)
        self.start_faulty("--tensor_copies", "--max_resident_tensor_bytes=20MB")
        self.put("x", X[:2], capacity_rows=9)
        self.put("big", big)
        self.assertEqual(self.totals().bytes, 2 * (big.nbytes + 9 * 24))
        rows = X[:2]
        for count in (1, 2):
            self.execute(identity(X[:1]), X[:1] + count, resident_outputs=[output("x", 2)])
            self.execute(identity(X[:1]), X[:1] - count, resident_outputs=[output("x", 3, first_row=1)])
            rows = np.concatenate([rows, X[:1] + count])
            rows[1] = X[0] - count
            self.lose_device()
            self.wait_until_put_back(count)
            np.testing.assert_array_equal(self.get("x", rows), rows)
            np.testing.assert_array_equal(self.get("big", big), big)
        self.assertEqual((self.totals().lost, self.totals().bytes), (0, 2 * (big.nbytes + 9 * 24)))
        refusal = self.refused(identity(big), big, resident_outputs=[output("more", capacity_rows=2500)])
        self.assertEqual(refusal.sentence, 'There is no room for the copy of the tensor "more", which takes '
                         "10000000 bytes: 18000432 of 20000000 bytes (max_resident_tensor_bytes) are in use.")
        self.stub.DeleteTensor(rs.DeleteTensorRequest(name="big"))
        self.server.wait_until(lambda: self.totals().bytes == 2 * 9 * 24)

    def test_with_a_standby(self):
        """It computes from the tensors while the device is lost, and the device when it is back."""
        big = np.random.default_rng(4).standard_normal((1000, 1000), np.float32)
        self.save(big=big)
        self.start_faulty("--standby=on")
        self.faults.begin("no_device")
        self.faults.begin("lose_device")
        wanted = arrays.expect_hardmax(big, [1]).tobytes()

        def is_computed():
            try:
                outcome = self.execute(arrays.hardmax(big, [1]), resident_inputs=[resident("big")])
            except grpc.RpcError as error:
                self.assertEqual(error.code(), grpc.StatusCode.UNAVAILABLE)
                return False
            self.assertEqual(outcome.outputs[0], wanted)
            return True

        self.server.wait_until(lambda: is_computed() and self.server.lines("device_lost"))
        self.wait_until_put_back(1)
        runs = self.stub.GetStatistics(sv.GetStatisticsRequest()).device.standby_runs
        self.assertTrue(is_computed())
        self.assertGreater(self.stub.GetStatistics(sv.GetStatisticsRequest()).device.standby_runs, runs)
        self.faults.end("no_device")
        self.server.wait_until(lambda: self.server.lines("device_back"))
        self.wait_until_put_back(2)
        runs = self.stub.GetStatistics(sv.GetStatisticsRequest()).device.standby_runs
        self.assertTrue(is_computed())
        self.assertEqual(self.stub.GetStatistics(sv.GetStatisticsRequest()).device.standby_runs, runs)


if __name__ == "__main__":
    unittest.main()
