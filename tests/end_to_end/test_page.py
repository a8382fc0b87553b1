"""The page for people at --metrics_address, and its status.json, by plain HTTP. test_page_browser.py has the
rest, in a browser."""

import hashlib
import html.parser
import json
import pathlib
import re
import signal
import socket
import tempfile
import time
import unittest

import grpc
import numpy as np
import tritonclient.grpc as triton

import api
import arrays
import onnx_model
from server_process import ROOT, ServerProcess

# pylint: disable=wrong-import-order,import-error
from opmill.v1.model_pb2 import ModelDesc

VALUES = np.arange(12, dtype=np.float32).reshape(3, 4)
DATA = arrays.data_of(VALUES)
FILES = {"/": "text/html; charset=utf-8", "/page.css": "text/css; charset=utf-8",
         "/page.js": "text/javascript; charset=utf-8", "/numbers.js": "text/javascript; charset=utf-8",
         "/parts.js": "text/javascript; charset=utf-8", "/icon.svg": "image/svg+xml",
         "/status.json": "application/json"}
HOSTILE = '</script><img src=x onerror=alert(1)>"\\\' \x1b[31m\u2028\x85'
MOST_ERRORS = 20
MOST_MODELS = 50


def ask(address, page, method="GET"):
    """Returns the status, the header fields and the body."""
    host, port = address.rsplit(":", 1)
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        connection.sendall(f"{method} {page} HTTP/1.1\r\nHost: {address}\r\n\r\n".encode())
        received = b""
        while chunk := connection.recv(65536):
            received += chunk
    header, _, body = received.partition(b"\r\n\r\n")
    lines = header.decode().split("\r\n")
    pairs = [line.split(": ", 1) for line in lines[1:]]
    assert len({name.lower() for name, _ in pairs}) == len(pairs), "no field comes twice"
    return int(lines[0].split()[1]), {name.lower(): value for name, value in pairs}, body


class Tags(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))


class Page(unittest.TestCase):
    def serve(self, *flags, device="reference"):
        self.server = self.enterContext(ServerProcess("--metrics_address=127.0.0.1:0", *flags, device=device))
        self.address = self.server.lines("serving")[0]["metrics_address"]
        self.stub = api.stub_of(self.enterContext(api.connect(self.server.address)))

    def status(self):
        code, _, body = ask(self.address, "/status.json")
        self.assertEqual(code, 200)
        return json.loads(body)

    def status_when(self, condition):
        """A status may be some milliseconds old, and calls are counted after their last byte."""
        until = time.monotonic() + 30
        while not condition(status := self.status()):
            self.assertLess(time.monotonic(), until, status)
            time.sleep(0.02)
        return status

    def refuse(self, name):
        """Asks for a model that does not exist."""
        with self.assertRaises(grpc.RpcError) as raised:
            self.stub.DescribeModel(api.sv.DescribeModelRequest(model=ModelDesc(name=name)), timeout=30)
        return raised.exception.details()

    def test_files_come_with_strict_fields(self):
        self.serve()
        for page, content_type in FILES.items():
            with self.subTest(page):
                code, fields, body = ask(self.address, page)
                self.assertEqual(code, 200)
                self.assertEqual(fields["content-type"], content_type)
                self.assertEqual(int(fields["content-length"]), len(body))
                self.assert_is_strict(fields)
                if page != "/status.json":
                    name = "index.html" if page == "/" else page[1:]
                    self.assertEqual(body, (ROOT / "server" / "metrics" / "page" / name).read_bytes())
                head_code, head_fields, nothing = ask(self.address, page, "HEAD")
                self.assertEqual((head_code, nothing), (200, b""))
                if page != "/status.json":  # its length differs with the time
                    self.assertEqual(head_fields, fields)
                code, fields, _ = ask(self.address, page, "POST")
                self.assertEqual((code, fields["allow"]), (405, "GET, HEAD"))
                self.assert_is_strict(fields)
        for page in ("/index.html", "/page.jsx", "/page", "//", "/../page.js", "/%2e", "/status.json/"):
            code, fields, body = ask(self.address, page)
            self.assertEqual((code, body), (404, b"There is no such page.\n"), page)
            self.assert_is_strict(fields)
        self.assertEqual(ask(self.address, "/?later=1")[0], 200)

    def assert_is_strict(self, fields):
        policy = dict(each.strip().split(" ", 1) for each in fields["content-security-policy"].split(";"))
        self.assertEqual(policy.pop("default-src"), "'none'")
        for name in ("script-src", "style-src", "img-src", "connect-src"):
            self.assertEqual(policy.pop(name), "'self'")
        for name in ("base-uri", "form-action", "frame-ancestors"):
            self.assertEqual(policy.pop(name), "'none'")
        self.assertEqual(policy, {})
        self.assertEqual(fields["x-content-type-options"], "nosniff")
        self.assertEqual(fields["cache-control"], "no-store")
        self.assertEqual(fields["cross-origin-resource-policy"], "same-origin")
        self.assertEqual(fields["referrer-policy"], "no-referrer")
        self.assertNotIn("access-control-allow-origin", fields)

    def test_files_need_no_others(self):
        """Everything that a file names is one of them; nothing is inline, and nothing is parsed as HTML."""
        self.serve()
        pages = {"", "metrics", "readyz", "status.json", *(page[1:] for page in FILES)}
        tags = Tags(ask(self.address, "/")[2].decode()).tags
        self.assertIn("main", dict(tags))
        for tag, attributes in tags:
            for name in ("src", "href"):
                target = attributes.get(name, "")
                if not target.startswith("#"):
                    self.assertIn(target, pages, tag)
            self.assertFalse([name for name in attributes if name.startswith("on") or name == "style"], tag)
            self.assertNotEqual(tag, "style")
            if tag == "script":
                self.assertIn("src", attributes)
        for page in ("/page.js", "/parts.js", "/numbers.js"):
            script = ask(self.address, page)[2].decode()
            self.assertNotRegex(script, r"innerHTML|outerHTML|insertAdjacent|document\.write|\beval\b|Function\(")
            for target in re.findall(r'(?:from\s+|read\()"(?:\./)?([^"]+)"', script):
                self.assertIn(target, pages)
        style = ask(self.address, "/page.css")[2].decode()
        self.assertNotRegex(style, r"url\(|@import")

    def test_hostile_sentences_are_only_text(self):
        self.serve()
        said = self.refuse(HOSTILE)
        status = self.status_when(lambda now: now["errors"])
        self.assertEqual(status["errors"][0]["sentence"], said)
        self.assertEqual(status["errors"][0]["rpc"], "DescribeModel")
        self.assertEqual(status["errors"][0]["code"], "NOT_FOUND")
        self.assertIn("onerror=alert(1)", said)
        body = ask(self.address, "/status.json")[2]
        self.assertEqual(body[-1:], b"\n")
        self.assertIsNone(re.search(rb"[\x00-\x1f\x7f]", body[:-1]))

    def test_errors_are_bounded(self):
        self.serve()
        for i in range(3):
            self.refuse("z" * 50_000 + str(i))
        for i in range(2 * MOST_ERRORS):
            self.refuse(f"{i}{HOSTILE}" + "\x01" * 1000)
        first = f'"{2 * MOST_ERRORS - 1}<'
        status = self.status_when(lambda now: first in now["errors"][0]["sentence"])
        self.assertEqual(len(status["errors"]), MOST_ERRORS)
        for i, error in enumerate(status["errors"]):
            self.assertIn(f'"{2 * MOST_ERRORS - 1 - i}<', error["sentence"])
            self.assertLessEqual(len(error["sentence"].encode()), 403)
        times = [error["time_ms"] for error in status["errors"]]
        self.assertEqual(times, sorted(times, reverse=True))
        self.assertLess(abs(status["time_ms"] - time.time() * 1000), 60_000)
        self.assertLess(len(ask(self.address, "/status.json")[2]), 100_000)

    def test_equal_errors_are_counted_once(self):
        self.serve()
        self.refuse("rare")
        for _ in range(2 * MOST_ERRORS):
            self.refuse("often")
        status = self.status_when(lambda now: now["errors"] and now["errors"][0]["count"] == 2 * MOST_ERRORS)
        self.assertEqual([error["count"] for error in status["errors"]], [2 * MOST_ERRORS, 1])

    def test_failed_executions_are_errors_and_cancelled_ones_are_not(self):
        self.serve()
        with self.assertRaises(grpc.RpcError) as raised:
            api.execute(self.stub, arrays.hardmax(VALUES, [1]), DATA[:8])
        stream = api.Stream(self.stub)
        stream.begin(1, arrays.hardmax(VALUES, [1]), [(0, 0, DATA[:8])])
        self.status_when(lambda now: self.stub.GetStatistics(
            api.sv.GetStatisticsRequest()).in_flight.uploading == 1)
        stream.call.cancel()
        said = api.wait_until_idle(self.stub)
        self.assertEqual([(each.failed, each.cancelled) for each in said.operators], [(1, 1)])
        [error] = self.status_when(lambda now: now["errors"])["errors"]
        self.assertEqual((error["rpc"], error["code"], error["sentence"]),
                         ("Execute", "INVALID_ARGUMENT", raised.exception.details()))

    def test_secrets_and_callers_are_left_out(self):
        token = hashlib.sha256(b"alice").hexdigest()
        tokens = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory())) / "tokens"
        tokens.write_text(f"alice {token}\n", encoding="utf-8")
        self.serve(f"--token_file={tokens}")
        metadata = [("authorization", f"Bearer {token}")]
        file = onnx_model.made_model()
        wrong, right = "a" * 64, hashlib.sha256(file).hexdigest()
        requests = [api.sv.DescribeModelRequest(model=ModelDesc(sha256=wrong), model_file=file),
                    api.sv.DescribeModelRequest(model=ModelDesc(name=token))]
        said = ""
        for request in requests:
            with self.assertRaises(grpc.RpcError) as raised:
                self.stub.DescribeModel(request, metadata=metadata, timeout=30)
            said += raised.exception.details()
        for unknown in ([], [("authorization", f"Bearer x{token}")]):
            with self.assertRaises(grpc.RpcError):
                self.stub.GetServerInfo(api.sv.GetServerInfoRequest(), metadata=unknown, timeout=30)
        for secret in (wrong, right, token):
            self.assertIn(secret, said)  # the caller gets it back
        self.status_when(lambda now: len(now["errors"]) >= 2)
        body = ask(self.address, "/status.json")[2].decode()
        self.assertIn(f"{right[:12]}..., not {wrong[:12]}...", body)
        self.assertIn(f'no model \\"{token[:12]}...\\"', body)
        for secret in (wrong, right, token, "alice", "127.0.0.1", str(tokens)):
            self.assertNotIn(secret, body)

    def test_models_are_those_of_the_index(self):
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        onnx_model.write_model(folder)
        for name, text in (("broken", "no configuration"), (HOSTILE.replace("/", "|"), "{")):
            (folder / name).mkdir()
            (folder / name / "config.pbtxt").write_text(text, encoding="utf-8")
        self.serve(f"--model_repository={folder}")
        client = self.enterContext(triton.InferenceServerClient(self.server.address))
        index = {each.name: each for each in client.get_model_repository_index().models}
        status = self.status()
        self.assertEqual({each["name"] for each in status["models"]},
                         {"made", "broken", HOSTILE.replace("/", "|")})
        self.assertEqual((status["repository_models"], status["models_left_out"]), (3, 0))
        for model in status["models"]:
            self.assertEqual(model["state"].upper(), index[model["name"]].state)
            self.assertEqual(model["reason"], index[model["name"]].reason)
        self.assertEqual(status["models"][-1]["name"], "made")  # those with problems come first
        self.assertFalse(status["models"][-1]["built_in"])

        # A built-in model is listed once it has been used. Requests are those of ModelStatistics.
        name = client.get_model_metadata("argmax").inputs[0].name
        tensor = triton.InferInput(name, VALUES.shape, "FP32")
        tensor.set_data_from_numpy(VALUES)
        for _ in range(5):
            client.infer("argmax", [tensor], parameters={"axes": "1"}, client_timeout=30)
        with self.assertRaises(triton.InferenceServerException):
            client.infer("argmax", [tensor], parameters={"axes": "7"}, client_timeout=30)
        status = self.status_when(lambda now: [each for each in now["models"] if each["succeeded"] == 5])
        listed = next(each for each in status["models"] if each["name"] == "argmax")
        [said] = client.get_inference_statistics("argmax").model_stats
        self.assertTrue(listed["built_in"])
        self.assertEqual(listed["failed"], said.inference_stats.fail.count)
        self.assertEqual(listed["succeeded_ns"], said.inference_stats.success.ns)
        self.assertEqual(status["repository_models"], 3)

    def test_models_are_bounded(self):
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        for i in range(MOST_MODELS + 7):
            (folder / f"{i:03}{'x' * 200}").mkdir()
            (folder / f"{i:03}{'x' * 200}" / "config.pbtxt").write_text("{" * 5000, encoding="utf-8")
        self.serve(f"--model_repository={folder}")
        status = self.status()
        self.assertEqual((len(status["models"]), status["models_left_out"]), (MOST_MODELS, 7))
        for model in status["models"]:
            self.assertLessEqual(len(model["name"]), 103)
            self.assertLessEqual(len(model["reason"]), 403)
        self.assertLess(len(ask(self.address, "/status.json")[2]), 100_000)

    def test_state_is_that_of_readyz(self):
        self.serve("--drain_timeout=20s")
        status = self.status()
        self.assertEqual((status["state"], status["ready"]), ("ready", True))
        self.assertNotIn("standby", status)
        self.assertLess(status["uptime_ms"], 60_000)
        stream = api.Stream(self.stub)
        stream.begin(1, arrays.hardmax(VALUES, [1]), [(0, 0, DATA[:8])])
        stream.begin(2, arrays.hardmax(VALUES, [1]), [(0, 0, DATA)])
        self.assertEqual(stream.next_end()[0], 2)
        self.server.signal(signal.SIGTERM)
        status = self.status_when(lambda now: now["state"] != "ready")
        self.assertEqual((status["state"], status["ready"]), ("draining", False))
        stream.send(1, [(0, 8, DATA[8:])])
        self.assertEqual(stream.next_end()[0], 1)
        self.assertEqual(self.server.wait(), 0)


if __name__ == "__main__":
    unittest.main()
