"""The Open Inference Protocol over HTTP: what curl and Python's own client get, byte by byte."""

import base64
import gzip
import json
import pathlib
import subprocess
import tempfile
import time
import unittest
import zlib

import numpy as np

import arrays
import certificates
import rest
from server_process import ServerProcess
from rest import ask, infer, tensor

TYPE_NAMES = {"float32": "FP32", "float16": "FP16"}
X = np.array([[1, 5, 2], [9, 3, 4]], np.float32)
TOKEN = "token-of-rest-0123456789"


def type_name(array):
    return TYPE_NAMES.get(array.dtype.name, array.dtype.name.upper())


def argmax(array=X, **parameters):
    return {"parameters": {"axes": "1", **parameters},
            "inputs": [tensor("input", type_name(array), list(array.shape), array.ravel().tolist())]}


def with_binary(request, *arrays_):
    """The body of a request with the binary extension, and its fields."""
    for each, array in zip(request["inputs"], arrays_):
        each.pop("data", None)
        each["parameters"] = {"binary_data_size": array.nbytes}
    header = json.dumps(request).encode()
    return (header + b"".join(array.tobytes() for array in arrays_),
            {"Inference-Header-Content-Length": str(len(header))})


class RestCase(unittest.TestCase):
    flags = ()

    @classmethod
    def setUpClass(cls):
        cls.server = cls.enterClassContext(rest.serve(*cls.flags))

    def ok(self, answer):
        self.assertEqual(answer.status, 200, answer.body)
        return answer

    def refused(self, answer, status, sentence, field=None):
        self.assertEqual(answer.status, status, answer.body)
        self.assertIn(sentence, answer.error)
        self.assertEqual(answer.json().get("field"), field)


class Information(RestCase):
    def test_health(self):
        for path in ("/v2/health/live", "/v2/health/ready", "/v2/models/argmax/ready",
                     "/v2/models/argmax/versions/1/ready"):
            self.assertEqual(list(self.ok(ask(self.server, "GET", path)).json().values()), [True])
            self.assertEqual(self.ok(ask(self.server, "HEAD", path)).body, b"")
        self.assertEqual(ask(self.server, "GET", "/v2/models/nothing/ready").status, 503)
        self.assertEqual(ask(self.server, "GET", "/v2/models/argmax/versions/2/ready").status, 503)

    def test_metadata_has_numbers_and_lists(self):
        server = self.ok(ask(self.server, "GET", "/v2")).json()
        self.assertEqual(server["name"], "opmill")
        self.assertIn("statistics", server["extensions"])
        model = self.ok(ask(self.server, "GET", "/v2/models/element%5Fwise_add")).json()
        self.assertEqual(model["inputs"][1], {"name": "b", "datatype": "FP32", "shape": [-1, -1]})
        self.assertEqual(self.ok(ask(self.server, "GET", "/v2/models/argmax/versions/1")).json()["versions"], ["1"])
        config = self.ok(ask(self.server, "GET", "/v2/models/argmax/config")).json()
        self.assertEqual((config["backend"], config["max_batch_size"]), ("opmill", 0))

    def test_repository_index(self):
        index = self.ok(ask(self.server, "POST", "/v2/repository/index")).json()
        self.assertIn({"name": "argmax", "version": "1", "state": "READY", "reason": ""}, index)
        self.assertEqual(self.ok(ask(self.server, "POST", "/v2/repository/index", '{"ready":true}')).json(), index)

    def test_statistics_count_inferences(self):
        def count():
            stats = ask(self.server, "GET", "/v2/models/hardmax/stats").json()["model_stats"]
            self.assertEqual(len(stats), 1)
            return stats[0]["inference_count"]

        before = count()
        self.ok(infer(self.server, "hardmax", argmax()))
        self.assertEqual(count(), before + 1)
        names = {each["name"] for each in ask(self.server, "GET", "/v2/models/stats").json()["model_stats"]}
        self.assertLessEqual({"argmax", "hardmax"}, names)

    def test_paths_and_methods(self):
        self.refused(ask(self.server, "GET", "/v3"), 404, 'There is no "/v3" here; the paths begin with /v2.')
        self.refused(ask(self.server, "GET", "/v2/%zz/models/argmax"), 400,
                     'The path "v2/%zz/models/argmax" has a % without two hexadecimal digits behind it.')
        self.assertEqual(ask(self.server, "GET", "/v2/models/arg%6dax").status, 200)
        self.refused(ask(self.server, "GET", "/v2/models/argmax/infer"), 405,
                     "The method of the request is GET; this path takes POST.")
        self.refused(ask(self.server, "GET", "/v2/models/nothing"), 404, 'There is no model "nothing"', "model_name")
        self.refused(ask(self.server, "GET", "/v2/logging"), 501, "The log is not set by a call")
        self.refused(ask(self.server, "POST", "/v2/repository/index", '{"redy":true}'), 400,
                     "redy is not a field of the request; those here are repository_name, ready.", "redy")

    def test_log_and_metrics(self):
        with rest.serve("--metrics_address=127.0.0.1:0") as server:
            trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
            answer = self.ok(infer(server, "argmax", argmax(), {"traceparent": trace}))
            self.assertEqual(answer.fields["traceparent"], trace)
            line = server.wait_for(lambda line: line.get("event") == "execute", 10)
            self.assertEqual((line["protocol"], line["traceparent"], line["rpc"]), ("http", trace, "ModelInfer"))
            self.assertTrue(line["peer"].startswith("ipv4:127.0.0.1:"))
            self.refused(infer(server, "argmax", "{"), 400, "The JSON of the request is malformed.")
            line = server.wait_for(lambda line: line.get("event") == "refuse", 10)
            self.assertEqual((line["protocol"], line["code"]), ("http", "INVALID_ARGUMENT"))
            metrics = server.lines("serving")[0]["metrics_address"]
            text = subprocess.run(["curl", "-s", f"http://{metrics}/metrics"], capture_output=True, text=True,
                                  check=True).stdout
            self.assertIn("opmill_http_requests_total 2\n", text)
            self.assertIn("opmill_http_failed_requests_total 1\n", text)
            self.assertIn("opmill_http_body_bytes 0\n", text)


class Inference(RestCase):
    def test_curl(self):
        done = subprocess.run(
            ["curl", "-sS", f"http://{rest.address_of(self.server)}/v2/models/argmax/infer", "-d",
             json.dumps(argmax() | {"id": "order 66"})], capture_output=True, check=True)
        self.assertEqual(json.loads(done.stdout), {
            "model_name": "argmax", "model_version": "1", "id": "order 66",
            "outputs": [{"name": "output", "datatype": "UINT32", "shape": [2, 1], "data": [1, 0]}]})

    def test_curl_waits_for_100_continue(self):
        """As curl does for bodies of a megabyte and more."""
        array = np.arange(400_000, dtype=np.float32).reshape(4, -1)
        with tempfile.NamedTemporaryFile() as file:
            file.write(json.dumps(argmax(array)).encode())
            file.flush()
            done = subprocess.run(
                ["curl", "-sS", "-v", "-H", "Expect: 100-continue", "--data-binary", f"@{file.name}",
                 f"http://{rest.address_of(self.server)}/v2/models/argmax/infer"], capture_output=True, check=True)
        self.assertIn(b"HTTP/1.1 100 Continue", done.stderr)
        self.assertEqual(json.loads(done.stdout)["outputs"][0]["data"], [99_999] * 4)

    def test_json_of_every_type(self):
        for dtype in arrays.ALL_TYPES:
            array = np.array([[0, 1, 100, 7], [3, 2, 1, 0]], dtype)
            for data in (array.ravel().tolist(), array.tolist()):
                request = {"parameters": {"axis": 1, "k": 2},
                           "inputs": [tensor("input", type_name(array), [2, 4], data)]}
                with self.subTest(dtype=dtype, data=data):
                    outputs = self.ok(infer(self.server, "top_k", request)).json()["outputs"]
                    self.assertEqual(outputs[0]["datatype"], type_name(array))
                    self.assertEqual(outputs[0]["data"], [100, 7, 3, 2])
                    self.assertEqual(outputs[1]["data"], [2, 3, 0, 1])

    def test_json_keeps_every_bit(self):
        """Of extreme integers, and of floats in their shortest form."""
        for dtype in ("int64", "uint64", "int8", "uint16"):
            info = np.iinfo(dtype)
            values = [info.min, info.max, 0, info.max - 1]
            request = {"inputs": [tensor("input", dtype.upper(), [4], values)]}
            self.assertEqual(infer(self.server, "identity", request).json()["outputs"][0]["data"], values)
        generator = np.random.default_rng(5)
        bits = generator.integers(0, 1 << 32, 20_000, dtype=np.uint32)
        floats = bits.view(np.float32)
        floats = np.append(floats[np.isfinite(floats)], [0.0, -0.0, 2.0**64, 1e20]).astype(np.float32)
        request = {"inputs": [tensor("input", "FP32", [len(floats)], [float(each) for each in floats])]}
        data = self.ok(infer(self.server, "identity", request)).json()["outputs"][0]["data"]
        np.testing.assert_array_equal(np.array(data, np.float32).view(np.uint32), floats.view(np.uint32))

    def test_binary_of_every_type(self):
        for dtype in arrays.ALL_TYPES:
            array = arrays.awkward(dtype, (4, 40), seed=1)
            request = {"parameters": {"axis": 1, "k": 9, "binary_data_output": True},
                       "inputs": [tensor("input", type_name(array), [4, 40], None)]}
            body, fields = with_binary(request, array)
            with self.subTest(dtype=dtype):
                answer = self.ok(infer(self.server, "top_k", body, fields))
                size = int(answer.fields["inference-header-content-length"])
                outputs = json.loads(answer.body[:size])["outputs"]
                values, indices = arrays.expect_top_k(array, 1, 9, "decreasing")
                self.assertEqual(outputs[0]["parameters"], {"binary_data_size": values.nbytes})
                self.assertEqual(answer.body[size:], values.tobytes() + indices.astype(np.uint32).tobytes())

    def test_binary_and_json_in_one_request(self):
        a, b = np.arange(6, dtype=np.int16), np.arange(6, dtype=np.int16) * 10
        request = {"inputs": [tensor("a", "INT16", [6], a.tolist()), tensor("b", "INT16", [6], None)],
                   "outputs": [{"name": "output", "parameters": {"binary_data": True}}]}
        request["inputs"][1] = {"name": "b", "datatype": "INT16", "shape": [6],
                                "parameters": {"binary_data_size": b.nbytes}}
        header = json.dumps(request).encode()
        answer = self.ok(infer(self.server, "element_wise_add", header + b.tobytes(),
                               {"Inference-Header-Content-Length": str(len(header))}))
        self.assertTrue(answer.body.endswith((a + b).tobytes()))

    def test_large_tensors(self):
        array = np.random.default_rng(3).random((16, 1 << 18), np.float32)
        request = {"parameters": {"binary_data_output": True}, "inputs": [tensor("input", "FP32", [16, 1 << 18], None)]}
        body, fields = with_binary(request, array)
        answer = self.ok(infer(self.server, "negate", body, fields))
        size = int(answer.fields["inference-header-content-length"])
        np.testing.assert_array_equal(np.frombuffer(answer.body[size:], np.float32).reshape(array.shape), -array)
        request["parameters"] = {}
        body, fields = with_binary(request, array)
        data = self.ok(infer(self.server, "negate", body, fields)).json()["outputs"][0]["data"]
        np.testing.assert_array_equal(np.array(data, np.float32), -array.ravel())

    def test_compression(self):
        array = np.zeros((64, 1024), np.float32)
        text = json.dumps(argmax(array)).encode()
        encodings = {"gzip": (gzip.compress, gzip.decompress), "deflate": (zlib.compress, zlib.decompress)}
        for name, (compress, decompress) in encodings.items():
            with self.subTest(name):
                answer = self.ok(infer(self.server, "hardmax", compress(text),
                                       {"Content-Encoding": name, "Accept-Encoding": f"br, {name};q=0.5"}))
                self.assertEqual(answer.fields["content-encoding"], name)
                self.assertLess(len(answer.body), 20_000)
                self.assertEqual(sum(json.loads(decompress(answer.body))["outputs"][0]["data"]), 64)
        for accepted in ("", "br", "gzip;q=0"):
            answer = self.ok(infer(self.server, "hardmax", text, {"Accept-Encoding": accepted}))
            self.assertNotIn("content-encoding", answer.fields)
        self.refused(infer(self.server, "hardmax", text, {"Content-Encoding": "br"}), 415,
                     "Content-Encoding (br) is none of gzip, deflate.", "Content-Encoding")

    def test_chunked_bodies(self):
        text = json.dumps(argmax(np.zeros((8, 10_000), np.float32))).encode()

        def pieces():
            for i in range(0, len(text), 7001):
                yield text[i:i + 7001]

        answer = self.ok(ask(self.server, "POST", "/v2/models/argmax/infer", pieces()))
        self.assertEqual(answer.json()["outputs"][0]["data"], [0] * 8)

    def test_pipelined_requests_are_answered_in_order(self):
        body = json.dumps(argmax()).encode()
        request = b"POST /v2/models/argmax/infer HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
        with rest.Raw(self.server) as connection:
            connection.send((request + b"GET /v2/health/live HTTP/1.1\r\nHost: x\r\n\r\n") * 20)
            for _ in range(20):
                self.assertEqual(connection.answer().json()["outputs"][0]["data"], [1, 0])
                self.assertEqual(connection.answer().json(), {"live": True})

    def test_a_timeout_is_a_deadline(self):
        array = np.ones((1000, 3000), np.float32)
        request = {"parameters": {"axes": "0", "timeout": 1}, "inputs": [tensor("input", "FP32", [1000, 3000], None)]}
        body, fields = with_binary(request, array)
        self.refused(infer(self.server, "reduce_sum", body, fields), 504, "time is over")

    def test_numbers_that_json_cannot_hold(self):
        array = np.array([1, np.nan, np.inf], np.float32)
        request = {"inputs": [tensor("input", "FP32", [3], None)]}
        body, fields = with_binary(request, array)
        self.refused(infer(self.server, "identity", body, fields), 400,
                     "Element 1 of the output output is NaN or infinite, which JSON cannot hold.")
        request["parameters"] = {"binary_data_output": True}
        body, fields = with_binary(request, array)
        self.assertTrue(self.ok(infer(self.server, "identity", body, fields)).body.endswith(array.tobytes()))

    def test_refuses_with_a_sentence(self):
        def one(**changes):
            return {"parameters": {"axes": "1"}, "inputs": [tensor("input", "FP32", [2, 2], [1, 2, 3, 4]) | changes]}

        cases = [
            ("{", "The JSON of the request is malformed.", None),
            ("", "The request has no JSON.", None),
            ("[]", "The JSON of the request is a list; it must be an object.", None),
            ('{"inputs":[]} x', "The JSON of the request is malformed.", None),
            (b'{"id":"\xff"}', "The JSON of the request is not UTF-8.", None),
            ('{"id":' + "[" * 5000 + "]" * 5000 + "}", "The JSON of the request has too many nested lists.", None),
            ('{"id":"a","id":"b"}', "id is given twice.", "id"),
            ({"inputs": 5}, "inputs is a number; it must be a list.", "inputs"),
            ({"inputs": [5]}, "inputs[0] is a number; it must be an object.", "inputs[0]"),
            ({"colour": 1}, "colour is not a field of the request; those here are id, parameters, inputs, outputs.",
             "colour"),
            (one() | {"model_name": "x"}, 'model_name ("x") is not that of the path, "argmax".', "model_name"),
            (one(shape=["2"]), "inputs[0].shape[0] is a string; it must be an integer.", "inputs[0].shape[0]"),
            (one(datatype="BYTES"), 'inputs[0].datatype ("BYTES") is none of FP32', "inputs[0].datatype"),
            (one(data=[1, 2, 3]), "inputs[0].data has 3 elements; the shape has 4.", "inputs[0].data"),
            (one(data=[1, 2, 3, 4, 5]), "inputs[0].data has more elements than the shape, which has 4.",
             "inputs[0].data"),
            (one(data=[[1, 2, 3], [4]]), "The nested lists of inputs[0].data do not have the shape [2,2].",
             "inputs[0].data"),
            (one(data=[[[1, 2], [3, 4]]]), "The nested lists of inputs[0].data do not have", "inputs[0].data"),
            (one(data=[1, 2, "3", 4]), 'Element 2 of inputs[0].data (\\"3\\") is not of FP32.', "inputs[0].data"),
            (one(data=[1, 2, 1e39, 4]), "Element 2 of inputs[0].data (1e+39) is not of FP32.", "inputs[0].data"),
            (one(data=[1, 2, 3, 256], datatype="UINT8"), "Element 3 of inputs[0].data (256) is not of UINT8.",
             "inputs[0].data"),
            (one(data=[1, 2, 3, 1.5], datatype="INT32"), "Element 3 of inputs[0].data (1.5) is not of INT32.",
             "inputs[0].data"),
            (one(shape=[1 << 40, 1 << 40]), "inputs[0].data has fewer elements than the shape", "inputs[0].data"),
            (one(shape=[-1, 4]), "inputs[0].data has fewer elements than the shape [-1,4].", "inputs[0].data"),
            (one(parameters={"binary_data_size": 4}), "inputs[0].data is given beside binary_data_size.",
             "inputs[0].data"),
            ({"inputs": [{"name": "input", "datatype": "FP32", "shape": [1]}]}, "inputs[0] has no elements",
             "inputs[0]"),
            (one() | {"parameters": {"axes": [1]}}, "parameters.axes is a list; it must be a string, a number",
             "parameters.axes"),
            (one() | {"parameters": {}}, "parameters.axes is not given.", None),
            (one() | {"outputs": [{"name": "x"}]}, 'outputs[0].name ("x") is not an output', "outputs[0].name"),
        ]
        for request, sentence, field in cases:
            with self.subTest(sentence):
                answer = infer(self.server, "argmax", request)
                self.assertEqual(answer.status, 400, answer.body)
                self.assertIn(sentence, answer.error)
                if field is not None:
                    self.assertEqual(answer.json()["field"], field)

    def test_refuses_wrong_binary_sizes(self):
        def send(size, given, header_size=None):
            request = {"parameters": {"axes": "1"},
                       "inputs": [{"name": "input", "datatype": "FP32", "shape": [2, 2],
                                   "parameters": {"binary_data_size": size}}]}
            header = json.dumps(request).encode()
            return infer(self.server, "argmax", header + bytes(given),
                         {"Inference-Header-Content-Length": str(header_size or len(header))})

        field = "inputs[0].parameters.binary_data_size"
        self.ok(send(16, 16))
        self.refused(send(17, 16), 400, f"{field} (17) is not at least 0 and at most 16", field)
        self.refused(send(-1, 16), 400, f"{field} (-1) is not at least 0", field)
        self.refused(send(12, 16), 400, f"{field} is 12; FP32[2,2] takes 16.", field)
        self.refused(send(16, 20), 400,
                     "The request has 20 bytes after its JSON; binary_data_size of the inputs is 16 in all.", "inputs")
        for size in ("0", "-5", "x", "99999", "1e2"):
            if size == "0":
                continue
            self.refused(send(16, 16, size), 400, f"Inference-Header-Content-Length ({size}) is not at least 1",
                         "Inference-Header-Content-Length")


class Models(unittest.TestCase):
    def test_load_and_unload(self):
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        (folder / "rows").mkdir()
        (folder / "rows" / "config.pbtxt").write_text(
            'backend: "opmill" parameters { key: "operator" value { string_value: "argmax" } } '
            'parameters { key: "axes" value { string_value: "1" } } '
            'input { name: "rows" data_type: TYPE_FP32 dims: [ -1, 3 ] }')
        server = self.enterContext(rest.serve(f"--model_repository={folder}", "--model_control_mode=explicit"))
        request = {"inputs": [tensor("rows", "FP32", [2, 3], X.tolist())]}
        self.assertEqual(infer(server, "rows", request).status, 404)
        self.assertEqual(ask(server, "POST", "/v2/repository/models/rows/load").status, 200)
        self.assertEqual(infer(server, "rows", request).json()["outputs"][0]["data"], [1, 0])
        self.assertEqual(ask(server, "POST", "/v2/repository/models/rows/unload",
                             '{"parameters":{"unload_dependents":false}}').status, 200)
        self.assertEqual(infer(server, "rows", request).status, 404)
        answer = ask(server, "POST", "/v2/repository/models/rows/load", json.dumps(
            {"parameters": {"config": "{}", "file:1/model.onnx": base64.b64encode(b"x").decode()}}))
        self.assertEqual(answer.status, 400, answer.body)
        answer = ask(server, "POST", "/v2/repository/models/rows/load",
                     '{"parameters":{"config":"{}","file:1/model.onnx":"%"}}')
        self.assertEqual(answer.error, "parameters.file:1/model.onnx is not base64.")


class Access(unittest.TestCase):
    def setUp(self):
        self.files = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.authority = certificates.Authority("authority")
        certificates.write(self.files / "ca.crt", self.authority.certificate)
        self.authority.issue("server", ["localhost", "127.0.0.1"]).write(self.files, "server")

    def curl(self, server, *arguments, path="/v2/models/argmax/infer"):
        return subprocess.run(
            ["curl", "-sS", "--cacert", str(self.files / "ca.crt"), "-w", "\n%{http_code}", *arguments,
             f"https://localhost:{rest.split(server)[1]}{path}"], capture_output=True, text=True, check=False)

    def test_tokens(self):
        certificates.write(self.files / "tokens", f"carol {TOKEN}\n".encode())
        (self.files / "tokens").chmod(0o600)
        server = self.enterContext(rest.serve(f"--token_file={self.files / 'tokens'}"))
        self.assertEqual(ask(server, "GET", "/v2/health/ready").status, 200)
        for fields in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": f"Basic {TOKEN}"}):
            answer = infer(server, "argmax", argmax(), fields)
            self.assertEqual((answer.status, answer.fields["www-authenticate"]), (401, "Bearer"))
        self.assertEqual(ask(server, "GET", "/v2").status, 401)
        self.assertEqual(infer(server, "argmax", argmax(), {"Authorization": f"bearer {TOKEN}"}).status, 200)
        line = server.wait_for(lambda line: line.get("event") == "execute", 10)
        self.assertEqual(line["caller"], "carol")

    def test_tls_and_certificates(self):
        server = self.enterContext(rest.serve(
            f"--tls_cert={self.files / 'server.crt'}", f"--tls_key={self.files / 'server.key'}",
            f"--tls_client_ca={self.files / 'ca.crt'}"))
        self.authority.issue("dave", ["dave.example"]).write(self.files, "dave")
        body = json.dumps(argmax())
        self.assertNotEqual(self.curl(server, "-d", body).returncode, 0)
        done = self.curl(server, "-d", body, "--cert", str(self.files / "dave.crt"), "--key",
                         str(self.files / "dave.key"))
        text, _, status = done.stdout.rpartition("\n")
        self.assertEqual(status, "200", done)
        self.assertEqual(json.loads(text)["outputs"][0]["data"], [1, 0])
        line = server.wait_for(lambda line: line.get("event") == "execute", 10)
        self.assertEqual(line["caller"], "dave.example")

    def test_large_bodies_over_tls(self):
        server = self.enterContext(rest.serve(
            f"--tls_cert={self.files / 'server.crt'}", f"--tls_key={self.files / 'server.key'}"))
        array = np.random.default_rng(3).random((16, 1 << 16), np.float32)
        request = {"parameters": {"axes": "1"}, "inputs": [tensor("input", "FP32", list(array.shape), None)]}
        body, fields = with_binary(request, array)
        (self.files / "body").write_bytes(body)
        done = self.curl(server, "--data-binary", f"@{self.files / 'body'}",
                         *[item for pair in fields.items() for item in ("-H", ": ".join(pair))])
        text, _, status = done.stdout.rpartition("\n")
        self.assertEqual(status, "200", done)
        self.assertEqual(json.loads(text)["outputs"][0]["data"], array.argmax(axis=1).tolist())

    def test_pages_of_other_sites_get_nothing(self):
        server = self.enterContext(rest.serve())
        for fields in ({"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
            answer = ask(server, "POST", "/v2/repository/models/x/unload", "{}", fields)
            self.assertEqual(answer.status, 403)
        self.assertEqual(ask(server, "GET", "/v2", fields={"Sec-Fetch-Site": "none"}).status, 200)

    def test_clear_text_needs_a_loopback_address(self):
        with self.assertRaises(AssertionError) as raised:
            ServerProcess("--http_address=0.0.0.0:0", device="reference")
        self.assertIn("--http_address is \\\"0.0.0.0:0\\\", which other machines can reach", str(raised.exception)
                      .replace('"', '\\"').replace('\\\\"', '\\"'))

    def test_a_caller_of_grpc_cannot_pose_as_another(self):
        """The metadata by which HTTP requests name their callers mean nothing from outside."""
        import grpc  # pylint: disable=import-outside-toplevel
        server = self.enterContext(rest.serve())
        with grpc.insecure_channel(server.address) as channel:
            call = channel.unary_unary("/inference.GRPCInferenceService/ServerLive")
            for forged in (b"", b"x", bytes(32) + b"ipv4:10.0.0.1:1\nroot"):
                call(b"", metadata=[("opmill-forwarded-bin", forged)], timeout=10)
        server.wait_until(lambda: len(server.lines("answer")) == 3, 10)
        for line in server.lines("answer"):
            self.assertTrue(line["peer"].startswith("ipv4:127.0.0.1:"), line)
            self.assertNotIn("caller", line)
            self.assertNotIn("protocol", line)


class Stopping(unittest.TestCase):
    def test_the_server_stops_with_idle_connections(self):
        begun = time.monotonic()
        with rest.serve() as server:
            idle = [self.enterContext(rest.Raw(server)) for _ in range(20)]
            idle[0].send(b"GET /v2 HT")
            begun = time.monotonic()
        self.assertLess(time.monotonic() - begun, 10)


if __name__ == "__main__":
    unittest.main()
