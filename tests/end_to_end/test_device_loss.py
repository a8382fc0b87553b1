"""The driver loses the device under load: calls in flight fail with UNAVAILABLE, the server is not
ready until it has a new device, and then returns right results."""

import tempfile
import unittest
import urllib.error
import urllib.request

import grpc
import numpy as np
from grpc_health.v1 import health_pb2, health_pb2_grpc

import api
import arrays
from api import Refusal
from load import Load
from server_process import SANITIZED, DriverFaults, ServerProcess

ARRAY = arrays.awkward("float32", (64, 512), seed=3)
DATA = arrays.data_of(ARRAY)
OPERATOR = arrays.hardmax(ARRAY, [1])
EXPECTED = arrays.expect_hardmax(ARRAY, [1])
RESETS = 20
SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


class DeviceLoss(unittest.TestCase):
    def setUp(self):
        self.faults = DriverFaults(self.enterContext(tempfile.TemporaryDirectory()))
        cache = self.enterContext(tempfile.TemporaryDirectory())
        self.server = self.enterContext(ServerProcess(
            "--metrics_address=127.0.0.1:0", f"--shader_cache={cache}",
            environment=self.faults.environment))
        self.metrics = self.server.lines("serving")[0]["metrics_address"]
        channel = self.enterContext(api.connect(self.server.address))
        self.stub = api.stub_of(channel)
        self.health = health_pb2_grpc.HealthStub(channel)

    def readyz(self):
        try:
            with urllib.request.urlopen(f"http://{self.metrics}/readyz", timeout=10) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def serving(self):
        return self.health.Check(health_pb2.HealthCheckRequest(service=api.SERVICE),
                                 timeout=10).status

    def resets(self):
        return self.stub.GetStatistics(api.sv.GetStatisticsRequest(), timeout=10).device.resets

    def test_is_reported_and_recovered_from(self):
        load = Load(self.server.address, ARRAY, callers=3, streams=3)
        self.addCleanup(load.stop)
        load.wait_for_good(50)
        self.assertEqual((self.readyz(), self.serving()), ((200, "ready\n"), SERVING))
        self.assertEqual(load.refused, {"call": 0, "stream": 0})

        # The device does not come back at once.
        self.faults.begin("no_device")
        self.faults.begin("lose_device")
        self.server.wait_for(lambda line: line.get("event") == "device_lost")
        self.server.wait_until(lambda: self.readyz() == (503, "device lost\n"))
        self.server.wait_until(lambda: self.serving() == NOT_SERVING)
        self.server.wait_until(lambda: min(load.refused.values()) > 5)
        self.assertEqual((self.readyz()[0], self.serving(), self.resets()), (503, NOT_SERVING, 0))

        self.faults.end("no_device")
        back = self.server.wait_for(lambda line: line.get("event") == "device_back")
        self.assertEqual(back["resets"], 1)
        self.server.wait_until(lambda: self.readyz() == (200, "ready\n"))
        self.server.wait_until(lambda: self.serving() == SERVING)
        load.wait_for_good(50)
        load.stop()
        self.assertEqual(load.wrong, [])
        print(f"{load.good} good; told to come again: {load.refused}")

    def test_leaves_nothing_behind(self):
        load = Load(self.server.address, ARRAY, callers=3, streams=3)
        self.addCleanup(load.stop)
        load.wait_for_good(20)
        resident, descriptors, threads = [], [], []
        for reset in range(1, RESETS + 1):
            self.faults.begin("lose_device")
            self.server.wait_until(lambda want=reset: self.resets() == want)
            load.wait_for_good(20)
            resident.append(self.server.status_bytes("VmRSS"))
            descriptors.append(self.server.open_descriptors())
            threads.append(self.server.threads())
        load.stop()
        self.assertEqual(load.wrong, [])
        slope = (resident[-1] - resident[4]) / (RESETS - 5)
        print(f"{load.good} good, {load.refused} told to come again in {RESETS} resets; "
              f"resident MiB {[each >> 20 for each in resident]}, descriptors {descriptors}, "
              f"threads {threads}")
        self.assertLessEqual(descriptors[-1], max(descriptors[:5]) + 3)
        # A device has a dozen of them.
        self.assertLessEqual(threads[-1], max(threads[:5]) + 6)
        api.wait_until_idle(self.stub)
        # lavapipe keeps what it compiles, about a megabyte each time (tests/support/lsan.supp).
        if not SANITIZED:
            self.assertLess(slope, 4 << 20)
        lines = [line["event"] for line in self.server.lines()
                 if line.get("event", "").startswith("device_")]
        self.assertEqual(lines, ["device_lost", "device_back"] * RESETS)

    def test_a_kernel_that_the_driver_refuses_fails_its_request_alone(self):
        load = Load(self.server.address, ARRAY, callers=1, streams=1)
        self.addCleanup(load.stop)
        load.wait_for_good(20)
        self.faults.begin("no_pipeline")
        with self.assertRaises(grpc.RpcError) as raised:
            api.execute(self.stub, arrays.argmin(ARRAY, [1]), DATA)
        refusal = Refusal.of_error(raised.exception)
        print(refusal.sentence)
        self.assertEqual(refusal.code, grpc.StatusCode.INTERNAL)
        self.assertRegex(refusal.sentence, r"CreateComputePipelineState\(arg_reduce, \w+\) fails")
        load.wait_for_good(20)
        self.faults.end("no_pipeline")
        good = api.execute(self.stub, arrays.argmin(ARRAY, [1]), DATA)
        self.assertIsNotNone(good.statistics)
        load.stop()
        self.assertEqual((load.wrong, load.refused), ([], {"call": 0, "stream": 0}))
        self.assertEqual((self.readyz()[0], self.resets()), (200, 0))

    def test_is_noticed_without_load(self):
        good = api.execute(self.stub, OPERATOR, DATA)
        np.testing.assert_array_equal(arrays.array_of(good), EXPECTED)
        self.faults.begin("lose_device")
        with self.assertRaises(grpc.RpcError) as raised:
            api.execute(self.stub, OPERATOR, DATA)
        refusal = Refusal.of_error(raised.exception)
        print(refusal.sentence)
        self.assertEqual(refusal.code, grpc.StatusCode.UNAVAILABLE)
        self.assertGreater(refusal.retry_seconds, 0)
        self.server.wait_until(lambda: self.resets() == 1)
        good = api.execute(self.stub, OPERATOR, DATA)
        np.testing.assert_array_equal(arrays.array_of(good), EXPECTED)
