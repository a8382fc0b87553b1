"""The Open Inference Protocol through the client of KServe's SDK, raw and typed contents.

A file of its own: its messages have the names of tritonclient's, so one process cannot import both."""

import json
import pathlib
import tempfile
import unittest

import grpc
import numpy as np
from google.protobuf import json_format
from kserve import InferenceGRPCClient, InferInput, InferRequest
from kserve.protocol.grpc import grpc_predict_v2_pb2, grpc_predict_v2_pb2_grpc
from kserve.protocol.infer_type import RequestedOutput

import api
import arrays
import certificates
from server_process import ServerProcess

TYPE_NAMES = {"float32": "FP32", "float16": "FP16"}
TOKEN = "token-of-kserve-0123456789"


def inputs_of(binary_data=True, **tensors):
    inputs = []
    for name, array in tensors.items():
        datatype = TYPE_NAMES.get(array.dtype.name, array.dtype.name.upper())
        inputs.append(InferInput(name, list(array.shape), datatype))
        inputs[-1].set_data_from_numpy(array, binary_data=binary_data)
    return inputs


def request_of(model, parameters=None, binary_data=True, outputs=None, **tensors):
    return InferRequest(model, inputs_of(binary_data, **tensors), request_id="order 66",
                        parameters=parameters, request_outputs=outputs)


def output_of(response, name="output"):
    return response.get_output_by_name(name).as_numpy()


class KServe(unittest.IsolatedAsyncioTestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = cls.enterClassContext(ServerProcess(device="reference"))

    async def asyncSetUp(self):
        self.client = await self.enterAsyncContext(
            InferenceGRPCClient(self.server.address, timeout=api.TIMEOUT_SECONDS))

    async def test_is_live_and_ready(self):
        self.assertTrue(await self.client.is_server_live())
        self.assertTrue(await self.client.is_server_ready())
        self.assertTrue(await self.client.is_model_ready("argmax"))
        self.assertFalse(await self.client.is_model_ready("nothing"))

    async def test_raw_contents_of_every_type(self):
        for dtype in arrays.ALL_TYPES:
            array = arrays.awkward(dtype, (4, 40), seed=1)
            values, indices = arrays.expect_top_k(array, 1, 9, "decreasing")
            with self.subTest(dtype=dtype):
                response = await self.client.infer(
                    request_of("top_k", {"axis": 1, "k": 9}, input=array))
                self.assertEqual((response.id, response.model_name), ("order 66", "top_k"))
                actual = output_of(response, "output_values")
                self.assertEqual(actual.dtype, array.dtype)
                np.testing.assert_array_equal(actual, values)
                np.testing.assert_array_equal(output_of(response, "output_indices"), indices)

    async def test_typed_contents_of_every_type_that_has_them(self):
        for dtype in arrays.ALL_TYPES:
            if dtype == "float16":
                continue
            array = arrays.awkward(dtype, (3, 5, 7), seed=2)
            with self.subTest(dtype=dtype):
                response = await self.client.infer(
                    request_of("argmax", {"axes": "0,2"}, binary_data=False, input=array))
                np.testing.assert_array_equal(output_of(response),
                                              arrays.expect_arg(array, [0, 2], "max"))

    async def test_what_it_says_of_binary_data(self):
        array = arrays.awkward("int32", (4, 9), seed=3)
        outputs = [RequestedOutput("output_indices", {"binary_data": False})]
        response = await self.client.infer(
            request_of("top_k", {"axis": 1, "k": 2, "binary_data_output": True}, outputs=outputs,
                       input=array))
        self.assertEqual([output.name for output in response.outputs], ["output_indices"])
        np.testing.assert_array_equal(output_of(response, "output_indices"),
                                      arrays.expect_top_k(array, 1, 2, "decreasing")[1])

    async def test_refusals(self):
        array = np.ones((2, 3), np.float32)
        cases = [
            (request_of("nothing", input=array), grpc.StatusCode.NOT_FOUND, '"nothing"'),
            (request_of("argmax", {"axes": "5"}, input=array), grpc.StatusCode.INVALID_ARGUMENT,
             "has axis 5"),
            (request_of("argmax", {"axes": 1}, outputs=[RequestedOutput("output",
                                                                        {"classification": 3})],
                        input=array),
             grpc.StatusCode.INVALID_ARGUMENT, "outputs[0].parameters.classification"),
        ]
        for request, code, words in cases:
            with self.subTest(words), self.assertLogs("kserve.trace", "ERROR"), \
                    self.assertRaises(grpc.RpcError) as raised:
                await self.client.infer(request)
            self.assertEqual(raised.exception.code(), code)
            self.assertIn(words, raised.exception.details())

    async def test_describes_server_and_models(self):
        """What its client has no method for, through the stub that the SDK also contains."""
        async with grpc.aio.insecure_channel(self.server.address) as channel:
            stub = grpc_predict_v2_pb2_grpc.GRPCInferenceServiceStub(channel)
            server = await stub.ServerMetadata(grpc_predict_v2_pb2.ServerMetadataRequest())
            self.assertEqual(server.name, "opmill")
            model = await stub.ModelMetadata(
                grpc_predict_v2_pb2.ModelMetadataRequest(name="element_wise_add"))
            self.assertEqual(json.loads(json_format.MessageToJson(model.inputs[1])),
                             {"name": "b", "datatype": "FP32", "shape": ["-1", "-1"]})


class KServeWithTlsAndToken(unittest.IsolatedAsyncioTestCase):
    async def test_infers(self):
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        authority = certificates.Authority("authority")
        certificates.write(folder / "ca.crt", authority.certificate)
        authority.issue("server", ["localhost"]).write(folder, "server")
        certificates.write(folder / "tokens", f"kserve {TOKEN}\n".encode())
        (folder / "tokens").chmod(0o600)
        server = self.enterContext(ServerProcess(
            f"--tls_cert={folder / 'server.crt'}", f"--tls_key={folder / 'server.key'}",
            f"--token_file={folder / 'tokens'}", device="reference"))
        port = server.address.rpartition(":")[2]
        array = np.arange(6, dtype=np.float32).reshape(2, 3)
        async with InferenceGRPCClient(f"localhost:{port}", use_ssl=True,
                                       root_certificates=str(folder / "ca.crt"),
                                       timeout=api.TIMEOUT_SECONDS) as client:
            request = request_of("argmax", {"axes": 1}, input=array)
            response = await client.infer(request, headers=(("authorization", f"Bearer {TOKEN}"),))
            np.testing.assert_array_equal(output_of(response), [[2], [2]])
            with self.assertLogs("kserve.trace", "ERROR"), \
                    self.assertRaises(grpc.RpcError) as raised:
                await client.infer(request)
            self.assertEqual(raised.exception.code(), grpc.StatusCode.UNAUTHENTICATED)


if __name__ == "__main__":
    unittest.main()
