"""What only the programs for Windows do. Their own client is OPMILL_WINDOWS_CLI, this system's is CLI;
both speak to the server for Windows, which server_process starts."""

import concurrent.futures
import itertools
import os
import pathlib
import re
import socket
import subprocess
import tempfile
import time
import unittest

import grpc
import numpy as np

import api
import arrays
from server_process import CLI, ServerProcess, plain_environment

WINDOWS_CLI = os.environ["OPMILL_WINDOWS_CLI"]
WINDOWS_SERVER = os.environ["OPMILL_WINDOWS_SERVER"]
WINE = os.environ["OPMILL_WINE"]
LOCAL_APP_DATA = "drive_c/users/*/AppData/Local"


def run(*command, code=0, seconds=120):
    """What it wrote to stdout; fails where its exit code is another."""
    done = subprocess.run([str(word) for word in command], capture_output=True, timeout=seconds,
                          env=plain_environment(), check=False)
    text = done.stdout.decode(), done.stderr.decode()
    assert done.returncode == code, f"{command} ends with {done.returncode}: {text}"
    return text[0] if code == 0 else text[1]


def both_clients():
    return [("for this system", CLI), ("for Windows", WINDOWS_CLI)]


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Programs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = ServerProcess()
        cls.addClassCleanup(cls.server.__exit__, None, None, None)
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))

    def test_each_adapter_and_why_it_was_taken_are_told(self):
        tried = self.server.lines("adapter")
        print(*tried, sep="\n")
        self.assertEqual([line["code"] for line in tried], ["OK"])
        self.assertEqual(tried[0]["kind"], "software")
        listed = run(WINDOWS_SERVER, "--list_adapters").splitlines()
        print(*listed, sep="\n")
        self.assertRegex(listed[0], r"^0  llvmpipe .*\(software, d3d12\.dll")
        self.assertRegex(listed[1], r"^1  Default adapter .*EnumWarpAdapter fails with 0x80004001")

    def test_the_default_adapter_opens_too(self):
        with ServerProcess("--adapter=Default adapter", device="auto") as server:
            self.assertEqual(server.lines("adapter")[0]["name"], "Default adapter")
            run(CLI, "demo", "--server", server.address)

    def test_without_a_gpu_the_processor_serves(self):
        with ServerProcess(device="auto") as server:
            run(CLI, "demo", "--server", server.address)
            with api.connect(server.address) as channel:
                info = api.stub_of(channel).GetServerInfo(api.sv.GetServerInfoRequest(), timeout=10)
        print(info.device.adapter, info.device.driver)
        self.assertEqual(info.device.kind, api.sv.DeviceInfo.KIND_CPU)
        self.assertRegex(info.device.driver, r"^(SSE4|AVX\d), \d+ threads?$")

    def test_an_adapter_that_is_not_there_is_an_error(self):
        said = run(WINDOWS_SERVER, "--adapter=Radeon", "--address=127.0.0.1:0", code=1)
        self.assertRegex(said, r"not_started .*This machine has no adapter called 'Radeon'")

    def test_demo(self):
        for name, client in both_clients():
            with self.subTest(name):
                last = run(client, "demo", "--server", self.server.address).splitlines()[-1]
                print(name, last)
                right, count = re.match(r"(\d+) of (\d+) examples", last).groups()
                self.assertEqual(right, count)

    def test_256_mebibytes_each_way(self):
        source, result = self.folder / "x.npy", self.folder / "y.npy"
        numbers = np.random.default_rng(3).integers(-2**31, 2**31, (1, 2**26), np.int32)
        np.save(source, numbers)
        for name, client in both_clients():
            with self.subTest(name):
                started = time.monotonic()
                # Over an axis of one, the sum is the number itself.
                run(client, "run", "sum", "--axis", "0", "--keepdims", "--input", source,
                    "--output", result, "--server", self.server.address, seconds=300)
                print(f"{name}: {time.monotonic() - started:.1f} s")
                self.assertTrue(np.array_equal(np.load(result, mmap_mode="r"), numbers))
                result.unlink()

    def test_a_hundred_cancels_leave_nothing_behind(self):
        array = np.arange(1 << 20, dtype=np.float32).reshape(1024, 1024)
        data = arrays.data_of(array)
        small = np.ones(3, np.float32)
        with api.connect(self.server.address) as channel:
            stub = api.stub_of(channel)
            api.execute(stub, arrays.hardmax(array, [1]), data)
            api.execute(stub, arrays.argmax(small, [0]), arrays.data_of(small))
            in_use = api.wait_until_idle(stub).device.buffer_bytes_in_use
            for i in range(100):
                stream = api.Stream(stub)
                # Every other one has its whole input, and is cancelled at whatever it has come to.
                stream.begin(1, arrays.hardmax(array, [1]),
                             [(0, 0, data if i % 2 else data[:1 << 20])])
                if i % 2:
                    time.sleep(0.01 * (i % 7))
                else:
                    stream.begin(2, arrays.argmax(small, [0]), [(0, 0, arrays.data_of(small))])
                    self.assertEqual(stream.next_end()[0], 2)  # so the first has begun
                stream.call.cancel()
            api.wait_until_idle(stub, in_use)
            outcome = api.execute(stub, arrays.hardmax(array, [1]), data)
            np.testing.assert_array_equal(arrays.array_of(outcome),
                                          arrays.expect_hardmax(array, [1]))
        ended = [line for line in self.server.lines("execute") if line["code"] == "CANCELLED"]
        print(f"{len(ended)} executions were cancelled under way")
        self.assertGreaterEqual(len(ended), 50)

    def test_eight_threads_on_one_channel(self):
        """Wine's sockets lose a connection now and then; its calls are made again, and counted."""
        arrays_of_call = [arrays.awkward("float32", (16, 64), seed=seed) for seed in range(8)]
        calls = 800
        retried = itertools.count()
        with api.connect(self.server.address) as channel:
            stub = api.stub_of(channel)

            def call(number):
                array = arrays_of_call[number % 8]
                for attempt in range(4):
                    try:
                        outcome = api.execute(stub, arrays.hardmax(array, [1]),
                                              arrays.data_of(array))
                    except grpc.RpcError as error:
                        if attempt == 3 or error.code() != grpc.StatusCode.UNAVAILABLE:
                            raise
                        next(retried)
                    else:
                        return np.array_equal(arrays.array_of(outcome),
                                              arrays.expect_hardmax(array, [1]))

            with concurrent.futures.ThreadPoolExecutor(8) as pool:
                right = list(pool.map(call, range(calls)))
        retries = next(retried)
        print(f"{calls} calls, {retries} retried after UNAVAILABLE")
        self.assertEqual(right, [True] * calls)
        self.assertLess(retries, calls // 20)

    def test_paths_are_unicode(self):
        source, log = self.folder / "größe 数.npy", self.folder / "журнал.log"
        np.save(source, np.float32([1, 3, 2]))
        said = run(WINDOWS_CLI, "run", "argmax", "--keepdims", "--input", source,
                   "--server", self.server.address)
        self.assertIn("[1]", said)
        absent = self.folder / "größer.npy"
        self.assertIn("größer.npy", run(WINDOWS_CLI, "run", "argmax", "--axes", "0", "--input",
                                        absent, "--server", self.server.address, code=1))
        run(WINDOWS_SERVER, "--insecure", "--address=256.0.0.1:1", "--device=reference", f"--log_file={log}",
            code=1)
        self.assertIn("not_started", log.read_text())
        flags = self.folder / "флаги.txt"
        flags.write_text(f"--log_file={self.folder / '記録.log'}\r\n--address=256.0.0.1:1\r\n"
                         "--insecure\r\n")
        run(WINDOWS_SERVER, "--device=reference", f"--flagfile={flags}", code=1)
        self.assertIn("256.0.0.1:1", (self.folder / "記録.log").read_text())

    def test_shaders_are_kept_in_local_app_data(self):
        prefix = pathlib.Path(os.environ["WINEPREFIX"])
        for folder in prefix.glob(f"{LOCAL_APP_DATA}/opmill"):
            subprocess.run(["rm", "-r", folder], check=True)
        for compiles in (True, False):
            with ServerProcess("--shader_cache=default") as server:
                run(CLI, "demo", "--server", server.address)
                with api.connect(server.address) as channel:
                    device = api.wait_until_idle(api.stub_of(channel)).device
            self.assertGreater(device.pipelines_created, 0)
            self.assertEqual(device.shaders_compiled > 0, compiles)
        self.assertTrue(list(prefix.glob(f"{LOCAL_APP_DATA}/opmill/*.dxbc")))


class Service(unittest.TestCase):
    def test_it_is_installed_started_stopped_and_uninstalled(self):
        address = f"127.0.0.1:{free_port()}"
        with tempfile.TemporaryDirectory() as folder:
            log = pathlib.Path(folder) / "a service's.log"
            run(WINDOWS_SERVER, "--service=install", f"--address={address}", "--device=reference",
                "--shader_cache=", f"--log_file=Z:{log}")  # it starts in C:\windows
            try:
                self.assertIn("cannot be installed", run(WINDOWS_SERVER, "--service=install", code=1))
                # Wine starts with its first program, and such services with it; so this one may run.
                subprocess.run([WINE, "net", "start", "OpMill"], check=False, timeout=60)
                self.wait_for(log, " serving ")
                run(CLI, "demo", "--server", address)
                run(WINE, "net", "stop", "OpMill")
                self.wait_for(log, " stopped code=OK")
            finally:
                run(WINDOWS_SERVER, "--service=uninstall")
            self.assertIn("cannot be uninstalled",
                          run(WINDOWS_SERVER, "--service=uninstall", code=1))

    def test_run_is_for_the_service_manager(self):
        said = run(WINDOWS_SERVER, "--service=run", "--device=reference", code=1)
        self.assertIn("--service=run is for the service manager alone", said)

    def wait_for(self, log, text, seconds=30):
        until = time.monotonic() + seconds
        while not log.exists() or text not in log.read_text():
            self.assertLess(time.monotonic(), until, log.exists() and log.read_text())
            time.sleep(0.1)
