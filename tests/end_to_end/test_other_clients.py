"""grpcurl through reflection, and the health client of the gRPC project."""

import base64
import json
import signal
import struct
import subprocess
import unittest

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

import api
import arrays
from server_process import ROOT, ServerProcess

GRPCURL = str(ROOT / "build" / "gotools" / "grpcurl")
NAMES = ["", api.SERVICE]


class Grpcurl(unittest.TestCase):
    """Knows only what reflection says about the service."""

    @classmethod
    def setUpClass(cls):
        cls.server = cls.enterClassContext(ServerProcess())

    def grpcurl(self, *arguments, flags=()):
        return subprocess.run([GRPCURL, "-plaintext", *flags, self.server.address, *arguments],
                              capture_output=True, text=True, timeout=60, check=False)

    def call(self, method, request):
        done = self.grpcurl(method, flags=["-d", json.dumps(request)])
        self.assertEqual(done.returncode, 0, done.stderr)
        decoder = json.JSONDecoder()
        messages, rest = [], done.stdout.lstrip()
        while rest:
            message, end = decoder.raw_decode(rest)
            messages.append(message)
            rest = rest[end:].lstrip()
        return messages

    def test_lists_the_services(self):
        done = self.grpcurl("list")
        self.assertEqual(sorted(done.stdout.split()),
                         ["grpc.health.v1.Health", "grpc.reflection.v1alpha.ServerReflection",
                          api.SERVICE], done.stderr)

    def test_describes_service_and_messages(self):
        done = self.grpcurl("describe", api.SERVICE)
        self.assertIn("rpc Execute ( .opmill.v1.ExecuteRequest ) returns "
                      "( stream .opmill.v1.ExecuteResponse );", done.stdout, done.stderr)
        done = self.grpcurl("describe", "opmill.v1.TopKDesc")
        self.assertIn("uint32 k = 5;", done.stdout, done.stderr)

    def test_executes_from_json(self):
        data = base64.b64encode(struct.pack("<6f", 3, 9, 4, 7, 7, 1)).decode()
        tensor = {"data_type": "DATA_TYPE_FLOAT32", "sizes": [2, 3]}
        messages = self.call(f"{api.SERVICE}/Execute", {
            "operator": {"top_k": {"input": tensor, "axis": 1, "k": 2,
                                   "axis_direction": "AXIS_DIRECTION_DECREASING"}},
            "inputs": [data]})
        outputs = {chunk.get("tensor_index", 0): base64.b64decode(chunk["data"])
                   for message in messages for chunk in message.get("chunks", [])}
        self.assertEqual(struct.unpack("<4f", outputs[0]), (9, 4, 7, 7))
        self.assertEqual(struct.unpack("<4I", outputs[1]), (1, 2, 0, 1))
        self.assertIn("statistics", messages[-1])

    def test_streams_from_json(self):
        begin = {"execution_id": "18446744073709551615", "begin": {"operator": {"arg_max": {
            "input": {"data_type": "DATA_TYPE_INT8", "sizes": [4]}, "axes": [0],
            "axis_direction": "AXIS_DIRECTION_DECREASING"}}}}
        chunk = {"execution_id": "18446744073709551615",
                 "chunks": [{"data": base64.b64encode(bytes([1, 5, 5, 2])).decode()}]}
        done = self.grpcurl(f"{api.SERVICE}/ExecuteStream",
                            flags=["-d", json.dumps(begin) + json.dumps(chunk)])
        self.assertEqual(done.returncode, 0, done.stderr)
        message = json.loads(done.stdout)
        self.assertEqual(message["execution_id"], "18446744073709551615")
        self.assertEqual(base64.b64decode(message["chunks"][0]["data"]), struct.pack("<I", 2))

    def test_shows_an_error_with_its_details(self):
        request = {"operator": {"reduce": {
            "function": "REDUCE_FUNCTION_SUM", "axes": [0, 4],
            "input": {"data_type": "DATA_TYPE_FLOAT32", "sizes": [2, 3]}}}, "inputs": [""]}
        done = self.grpcurl(f"{api.SERVICE}/Execute",
                            flags=["-format-error", "-d", json.dumps(request)])
        self.assertNotEqual(done.returncode, 0)
        error = json.loads(done.stderr)
        self.assertEqual(error["code"], 3)
        details = {detail["@type"].rpartition(".")[2]: detail for detail in error["details"]}
        violation = details["BadRequest"]["field_violations"][0]
        self.assertEqual(violation["field"], "operator.reduce.axes[1]")
        self.assertEqual(violation["description"], error["message"])
        self.assertEqual(details["ErrorInfo"]["domain"], "opmill")

    def test_asks_for_information(self):
        info, = self.call(f"{api.SERVICE}/GetServerInfo", {})
        self.assertEqual(info["device"]["kind"], "KIND_SOFTWARE")
        self.assertLessEqual({"argmin", "argmax", "reduce", "top_k", "hardmax"},
                             {row["operator"] for row in info["operators"]})


class Health(unittest.TestCase):
    def test_serves_until_it_drains(self):
        with (ServerProcess(device="reference") as server,
              api.connect(server.address) as channel):
            stub = health_pb2_grpc.HealthStub(channel)
            watches = {}
            for name in NAMES:
                request = health_pb2.HealthCheckRequest(service=name)
                self.assertEqual(stub.Check(request, timeout=10).status,
                                 health_pb2.HealthCheckResponse.SERVING)
                watches[name] = stub.Watch(request, timeout=60)
                self.assertEqual(next(watches[name]).status,
                                 health_pb2.HealthCheckResponse.SERVING)
            with self.assertRaises(grpc.RpcError) as raised:
                stub.Check(health_pb2.HealthCheckRequest(service="other"), timeout=10)
            self.assertEqual(raised.exception.code(), grpc.StatusCode.NOT_FOUND)
            # An incomplete upload keeps the server from ending.
            array = arrays.awkward("int32", (64,), seed=1)
            data = arrays.data_of(array)
            stream = api.Stream(api.stub_of(channel))
            stream.begin(1, arrays.argmax(array, [0]), [(0, 0, data[:100])])
            quick = arrays.awkward("int32", (1,), seed=1)
            stream.begin(2, arrays.argmax(quick, [0]), [(0, 0, arrays.data_of(quick))])
            self.assertEqual(stream.next_end()[0], 2)

            server.signal(signal.SIGTERM)
            for watch in watches.values():
                self.assertEqual(next(watch).status, health_pb2.HealthCheckResponse.NOT_SERVING)
            for name in NAMES:
                request = health_pb2.HealthCheckRequest(service=name)
                self.assertEqual(stub.Check(request, timeout=10).status,
                                 health_pb2.HealthCheckResponse.NOT_SERVING)
            stream.send(1, [(0, 100, data[100:])])
            key, outcome = stream.next_end()
            self.assertEqual((key, arrays.array_of(outcome).tolist()),
                             (1, arrays.expect_arg(array, [0], "max").tolist()))
            self.assertEqual(server.wait(), 0)
