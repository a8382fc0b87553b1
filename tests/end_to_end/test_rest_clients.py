"""The Open Inference Protocol over HTTP through tritonclient.http, KServe's SDK, aiohttp and perf_analyzer."""

import asyncio
import json
import os
import pathlib
import subprocess
import sys
import sysconfig
import unittest

import numpy as np
import tritonclient.http as triton
import tritonclient.utils.shared_memory as shm
from kserve import InferenceRESTClient, InferInput, InferRequest, RESTConfig

import arrays
import doc_page
import rest

PROGRAM = pathlib.Path(sys.executable).parent / "perf_analyzer"
CUDA = pathlib.Path(sysconfig.get_path("platlib")) / "nvidia" / "cuda_runtime" / "lib"
TYPE_NAMES = {"float32": "FP32", "float16": "FP16"}


def type_name(array):
    return TYPE_NAMES.get(array.dtype.name, array.dtype.name.upper())


def inputs_of(binary=True, **tensors):
    inputs = []
    for name, array in tensors.items():
        inputs.append(triton.InferInput(name, list(array.shape), type_name(array)))
        inputs[-1].set_data_from_numpy(array, binary_data=binary)
    return inputs


class Triton(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = cls.enterClassContext(rest.serve("--metrics_address=127.0.0.1:0"))
        cls.client = cls.enterClassContext(
            triton.InferenceServerClient(rest.address_of(cls.server), concurrency=4))

    def test_health_and_metadata(self):
        self.assertTrue(self.client.is_server_live())
        self.assertTrue(self.client.is_server_ready())
        self.assertTrue(self.client.is_model_ready("argmax"))
        self.assertFalse(self.client.is_model_ready("nothing"))
        self.assertEqual(self.client.get_server_metadata()["name"], "opmill")
        self.assertEqual(self.client.get_model_metadata("top_k")["outputs"][1]["name"], "output_indices")
        self.assertEqual(self.client.get_model_config("argmax")["backend"], "opmill")
        self.assertIn("argmax", [each["name"] for each in self.client.get_model_repository_index()])

    def test_every_type_in_both_forms(self):
        for dtype in arrays.ALL_TYPES:
            array = arrays.awkward(dtype, (4, 40), seed=1)
            finite = np.isfinite(array) if array.dtype.kind == "f" else True
            values, indices = arrays.expect_top_k(array, 1, 9, "decreasing")
            for binary in (True, False):
                if not binary and (dtype == "float16" or not np.all(finite)):
                    continue  # which tritonclient does not send as JSON
                outputs = [triton.InferRequestedOutput(name, binary_data=binary)
                           for name in ("output_values", "output_indices")]
                with self.subTest(dtype=dtype, binary=binary):
                    result = self.client.infer("top_k", inputs_of(binary, input=array), outputs=outputs,
                                               parameters={"axis": 1, "k": 9}, request_id="a")
                    self.assertEqual(result.get_response()["id"], "a")
                    np.testing.assert_array_equal(result.as_numpy("output_values"), values)
                    np.testing.assert_array_equal(result.as_numpy("output_indices"), indices)

    def test_compression(self):
        array = np.zeros((64, 1000), np.float32)
        for name in ("gzip", "deflate"):
            result = self.client.infer("hardmax", inputs_of(input=array), parameters={"axes": "1"},
                                       request_compression_algorithm=name,
                                       response_compression_algorithm=name)
            self.assertEqual(result.as_numpy("output").sum(), 64)

    def test_concurrent_requests(self):
        array = np.random.default_rng(1).random((8, 1000), np.float32)
        pending = [self.client.async_infer("argmax", inputs_of(input=array), parameters={"axes": "1"})
                   for _ in range(32)]
        for each in pending:
            np.testing.assert_array_equal(each.get_result().as_numpy("output")[:, 0], array.argmax(axis=1))

    def test_shared_memory(self):
        array = np.random.default_rng(1).random((8, 1000), np.float32)
        self.client.unregister_system_shared_memory()
        memory = shm.create_shared_memory_region("rest", f"/rest-{os.getpid()}", array.nbytes)
        self.addCleanup(shm.destroy_shared_memory_region, memory)
        shm.set_shared_memory_region(memory, [array])
        self.client.register_system_shared_memory("rest", f"/rest-{os.getpid()}", array.nbytes)
        status = self.client.get_system_shared_memory_status()
        self.assertEqual([(each["name"], each["byte_size"]) for each in status], [("rest", array.nbytes)])
        tensor = triton.InferInput("input", list(array.shape), "FP32")
        tensor.set_shared_memory("rest", array.nbytes)
        result = self.client.infer("argmax", [tensor], parameters={"axes": "1"})
        np.testing.assert_array_equal(result.as_numpy("output")[:, 0], array.argmax(axis=1))
        output = triton.InferRequestedOutput("output")
        output.set_shared_memory("rest", array.nbytes)
        self.client.infer("negate", [tensor], outputs=[output])
        np.testing.assert_array_equal(shm.get_contents_as_numpy(memory, np.float32, array.shape), -array)
        self.client.unregister_system_shared_memory("rest")
        self.assertEqual(self.client.get_system_shared_memory_status(), [])

    def test_refusals(self):
        with self.assertRaises(triton.InferenceServerException) as raised:
            self.client.infer("argmax", inputs_of(input=np.ones((2, 3), np.float32)))
        self.assertIn("parameters.axes is not given.", raised.exception.message())

    @unittest.skipUnless(PROGRAM.exists(), "tritonclient has no perf_analyzer for this processor")
    def test_perf_analyzer(self):
        # Its JSON has only a row of each input.
        for flags in ((), ("--shared-memory=system", "--output-shared-memory-size=4096")):
            with self.subTest(flags):
                done = subprocess.run(
                    [PROGRAM, "-i", "http", "-u", rest.address_of(self.server), "-m", "negate",
                     "--shape=input:8,32", "--concurrency-range=2",
                     "--measurement-mode=count_windows", "--measurement-request-count=20",
                     "--stability-percentage=999", *flags],
                    env=os.environ | {"LD_LIBRARY_PATH": str(CUDA)}, capture_output=True, text=True,
                    timeout=300, check=False)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                self.assertRegex(done.stdout, "Inference count: [1-9]")
                self.assertIn("compute infer", done.stdout)


class KServe(unittest.IsolatedAsyncioTestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = cls.enterClassContext(rest.serve())

    async def test_infers(self):
        client = InferenceRESTClient(RESTConfig(protocol="v2"))
        base = f"http://{rest.address_of(self.server)}"
        self.assertTrue(await client.is_server_ready(base))
        self.assertTrue(await client.is_server_live(base))
        self.assertTrue(await client.is_model_ready(base, "argmax"))
        array = np.random.default_rng(1).random((8, 50), np.float32)
        for binary in (True, False):
            tensor = InferInput("input", list(array.shape), "FP32")
            tensor.set_data_from_numpy(array, binary_data=binary)
            request = InferRequest("argmax", [tensor], parameters={"axes": "1"})
            with self.subTest(binary=binary):
                response = await client.infer(base, request, model_name="argmax")
                actual = response.get_output_by_name("output").as_numpy()
                np.testing.assert_array_equal(actual[:, 0], array.argmax(axis=1))


class Documentation(unittest.TestCase):
    def test_example_of_aiohttp(self):
        server = self.enterContext(rest.serve())
        doc_page.run(self, "docs/rest.md", {"127.0.0.1:8000": rest.address_of(server)})

    def test_example_of_curl(self):
        server = self.enterContext(rest.serve())
        text = (pathlib.Path(__file__).parents[2] / "docs" / "rest.md").read_text()
        command = text.split("    curl ", 1)[1].split("\n\n", 1)[0]
        expected = text.split("\n\n    {", 1)[1].split("\n\n", 1)[0]
        done = subprocess.run("curl -sS " + command.replace("127.0.0.1:8000", rest.address_of(server)), shell=True,
                              capture_output=True, text=True, check=True)
        self.assertEqual(json.loads(done.stdout), json.loads("{" + expected))


if __name__ == "__main__":
    unittest.main()
