"""The cpu device as the standby of an adapter: no call fails while the driver loses the device again
and again, and small executions go to the standby if the flags say so."""

import json
import subprocess
import tempfile
import time
import unittest
import urllib.request

import numpy as np
from grpc_health.v1 import health_pb2, health_pb2_grpc

import api
import arrays
from load import Load
from server_process import CLI, DriverFaults, ServerProcess, plain_environment
from test_metrics import Scrape

LOSSES = 8
SECONDS_BETWEEN_LOSSES = 1
SERVING = health_pb2.HealthCheckResponse.SERVING
KIND = api.sv.DeviceInfo.Kind
SMALL = np.arange(1024, dtype=np.float32)
MEDIUM = np.arange(1 << 19, dtype=np.float32)
LARGE = np.arange(1 << 21, dtype=np.float32)


class Standby(unittest.TestCase):
    def serve(self, *flags, **process):
        self.server = self.enterContext(ServerProcess(
            "--standby=on", "--metrics_address=127.0.0.1:0", *flags, **process))
        self.metrics = self.server.lines("serving")[0]["metrics_address"]
        channel = self.enterContext(api.connect(self.server.address))
        self.stub = api.stub_of(channel)
        self.health = health_pb2_grpc.HealthStub(channel)

    def device(self):
        return self.stub.GetStatistics(api.sv.GetStatisticsRequest(), timeout=60).device

    def info(self):
        return self.stub.GetServerInfo(api.sv.GetServerInfoRequest(), timeout=60)

    def opmill(self, verb):
        return subprocess.run([CLI, verb, "--server", self.server.address], check=True, text=True,
                              stdout=subprocess.PIPE, timeout=60, env=plain_environment()).stdout

    def readyz(self):
        with urllib.request.urlopen(f"http://{self.metrics}/readyz", timeout=60) as answer:
            return answer.status, answer.read().decode()

    def status(self):
        with urllib.request.urlopen(f"http://{self.metrics}/status.json", timeout=60) as answer:
            return json.load(answer)

    def serving(self):
        return self.health.Check(health_pb2.HealthCheckRequest(service=api.SERVICE),
                                 timeout=60).status

    def lose_devices_under(self, *loads):
        for load in loads:
            self.addCleanup(load.stop)
        for load in loads:
            load.wait_for_good(10)

        # The device does not come back at once.
        self.faults.begin("no_device")
        self.faults.begin("lose_device")
        lost = self.server.wait_for(lambda line: line.get("event") == "device_lost")
        self.assertEqual(lost["standby"], self.info().standby.adapter)
        for load in loads:
            load.wait_for_good(20)
        self.assertEqual((self.readyz(), self.serving()),
                         ((200, "ready, on standby: device lost\n"), SERVING))
        self.assertTrue(self.info().on_standby)
        status = self.status()
        self.assertEqual((status["state"], status["ready"], status["standby"]["name"]),
                         ("ready, on standby: device lost", True, self.info().standby.adapter))
        self.assertRegex(self.opmill("info"), r"(?m)^standby +.+ \(cpu\), in use: ")
        scrape = Scrape(self.metrics)
        self.assertEqual(scrape.value("opmill_device_on_standby"), 1)
        self.assertEqual(scrape.value("opmill_ready"), 1)
        self.faults.end("no_device")
        self.server.wait_until(lambda: self.device().resets == 1)

        for loss in range(2, LOSSES + 1):
            time.sleep(SECONDS_BETWEEN_LOSSES)
            self.faults.begin("lose_device")
            self.server.wait_until(lambda want=loss: self.device().resets == want)
        self.server.wait_until(lambda: not self.info().on_standby)
        for load in loads:
            load.wait_for_good(10)
            load.stop()

        self.server.wait_until(lambda: self.readyz() == (200, "ready\n"))
        self.assertEqual(self.serving(), SERVING)
        device = self.device()
        print(f"{LOSSES} losses: {[load.good for load in loads]} good, of them "
              f"{device.standby_runs} on the standby for a loss, {device.small_runs} small")
        self.assertGreater(device.standby_runs, 0)
        for load in loads:
            self.assertEqual((load.wrong, load.refused), ([], {"call": 0, "stream": 0}))

    def test_no_call_fails_when_the_device_is_lost(self):
        self.faults = DriverFaults(self.enterContext(tempfile.TemporaryDirectory()))
        cache = self.enterContext(tempfile.TemporaryDirectory())
        self.serve("--small_work=gpu", f"--shader_cache={cache}",
                   environment=self.faults.environment)
        self.lose_devices_under(
            Load(self.server.address, arrays.awkward("float32", (64, 512), seed=3), callers=3,
                 streams=3),
            Load(self.server.address, arrays.awkward("float32", (512, 4096), seed=4), callers=1,
                 streams=0))
        self.assertEqual(self.device().small_runs, 0)

    def run_on(self, array):
        outcome = api.execute(self.stub, arrays.argmax(array, [0]), arrays.data_of(array))
        self.assertEqual(int(arrays.array_of(outcome)[0]), array.size - 1)

    def runs(self):
        """The number of all runs, and of those that the standby computed because they are small."""
        device = self.device()
        self.assertEqual(device.standby_runs, 0)
        scrape = Scrape(self.metrics)
        self.assertEqual(scrape.value("opmill_device_standby_runs_total", reason="small"),
                         device.small_runs)
        for reason in ("device_lost", "no_memory"):
            self.assertEqual(scrape.value("opmill_device_standby_runs_total", reason=reason), 0)
        return device.runs, device.small_runs

    def test_takes_small_work_only(self):
        self.serve()
        info = self.info()
        self.assertEqual((info.device.kind, info.standby.kind, info.on_standby),
                         (KIND.KIND_SOFTWARE, KIND.KIND_CPU, False))
        self.run_on(SMALL)
        self.assertEqual(self.runs(), (1, 1))
        self.run_on(MEDIUM)
        self.run_on(LARGE)
        self.assertEqual(self.runs(), (3, 1))
        self.assertRegex(self.opmill("info"), r"(?m)^standby +.+ \(cpu\)$")
        self.assertRegex(self.opmill("stats"), r"(?m)^on the standby +1 small runs, 0 ")

    def test_takes_what_is_not_large_where_told_so(self):
        self.serve("--small_work=cpu")
        self.run_on(SMALL)
        self.run_on(MEDIUM)
        self.run_on(LARGE)
        self.assertEqual(self.runs(), (3, 2))

    def test_takes_nothing_where_told_so(self):
        self.serve("--small_work=gpu")
        self.run_on(SMALL)
        self.assertEqual(self.runs(), (1, 0))

    def test_is_there_only_where_asked_for_with_a_software_adapter(self):
        self.server = self.enterContext(ServerProcess())
        with api.connect(self.server.address) as channel:
            self.stub = api.stub_of(channel)
            self.assertFalse(self.info().HasField("standby"))
        self.assertRegex(self.opmill("info"), r"(?m)^standby +none$")


if __name__ == "__main__":
    unittest.main()
