"""Spans of calls, as a collector gets them."""

import json
import pathlib
import signal
import socket
import subprocess
import tempfile
import threading
import time
import unittest

import grpc
import numpy as np

import api
import arrays
import certificates
import onnx_model
import rest
from collector import INTERNAL, SERVER, Collector
from server_process import CLI, SANITIZED, SERVER as BINARY
from server_process import ServerProcess, plain_environment
from test_metrics import Scrape

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
CALLER = "00f067aa0ba902b7"
SAMPLED = f"00-{TRACE}-{CALLER}-01"
NOT_SAMPLED = f"00-{TRACE}-{CALLER}-00"
SMALL = np.arange(1024, dtype=np.float32).reshape(4, 256)
LARGE = np.random.default_rng(1).random((4096, 1024), np.float32)  # 16 MiB
EXECUTE = "opmill.v1.OperatorService/Execute"


class Traces(unittest.TestCase):
    def serve(self, *flags, device="reference", **options):
        collector = self.enterContext(Collector(**options))
        server = self.enterContext(ServerProcess(f"--trace_endpoint={collector.endpoint}", *flags,
                                                 device=device))
        return server, collector

    def stub(self, server):
        return api.stub_of(self.enterContext(api.connect(server.address)))

    def hardmax(self, stub, values=SMALL, metadata=(), axis=1):
        request = api.sv.ExecuteRequest(operator=arrays.hardmax(values, [axis]),
                                        inputs=[arrays.data_of(values)])
        return list(stub.Execute(request, timeout=60, metadata=metadata))

    def assert_covered(self, root):
        """The children are within the root, and with them nearly all of its time is accounted for."""
        for child in root.children:
            self.assertGreaterEqual(child.begin, root.begin)
            self.assertLessEqual(child.end, root.end)
            self.assertEqual((child.trace, child.kind), (root.trace, INTERNAL))
        self.assertGreaterEqual(root.covered(), 0.95 * root.duration,
                                [(child.name, child.duration) for child in root.children])

    def test_the_stages_of_a_call_add_up(self):
        server, collector = self.serve(device="software")
        stub = self.stub(server)
        begun = time.time_ns()
        for _ in range(2):
            self.hardmax(stub, LARGE)
        ended = time.time_ns()
        first, second = collector.roots(2)
        for root in (first, second):
            self.assertEqual((root.name, root.kind, root.parent), (EXECUTE, SERVER, ""))
            self.assertLess(begun, root.begin)
            self.assertLess(root.end, ended + 1e9)
            self.assert_covered(root)
        self.assertNotEqual(first.trace, second.trace)
        names = ["receive", "decode", "admit", "upload", "queue", "run", "download"]
        self.assertEqual([child.name for child in second.children], names)
        self.assertEqual({child.name for child in first.children}, {*names, "compile"})
        # Compilation overlaps the upload; without it the sum is that of the call.
        together = sum(child.duration for child in second.children)
        self.assertTrue(0.95 <= together / second.duration <= 1.0001, together / second.duration)
        for before, after in zip(second.children, second.children[1:]):
            self.assertEqual(before.end, after.begin)

        compiled = stub.CompileOperator(api.sv.CompileOperatorRequest(
            operator=arrays.hardmax(LARGE, [1])))
        said = second.attributes
        self.assertEqual(
            (said["rpc.system"], said["rpc.service"], said["rpc.method"], said["rpc.grpc.status_code"]),
            ("grpc", "opmill.v1.OperatorService", "Execute", 0))
        self.assertEqual(said["opmill.operator.key"], compiled.key)
        self.assertIn("hardmax", said["opmill.operator"])
        self.assertEqual(said["opmill.input_bytes"], LARGE.nbytes)
        self.assertEqual(said["opmill.output_bytes"], LARGE.nbytes)
        self.assertEqual((first.attributes["opmill.was_cached"], said["opmill.was_cached"]),
                         (False, True))
        self.assertEqual(said["client.address"], "127.0.0.1")
        self.assertIsNone(second.error)
        self.assertEqual(second.resource["service.name"], "opmill-server")
        self.assertEqual(second.resource["opmill.device"],
                         server.lines("serving")[0]["adapter"])

    def test_are_those_of_the_log(self):
        server, collector = self.serve()
        self.hardmax(self.stub(server))
        root, = collector.roots(1)
        line = server.wait_for(lambda line: line.get("event") == "execute")
        self.assertEqual(root.child("upload").duration // 1000, line["upload_us"])
        # What is logged of these leaves out the time until the server's own threads notice.
        for name, of_log in (("queue", "queue_us"), ("run", "compute_us"),
                             ("download", "download_us")):
            self.assertGreaterEqual(root.child(name).duration // 1000, line[of_log], name)

    def test_the_caller_decides(self):
        server, collector = self.serve("--trace_sample=0", "--metrics_address=127.0.0.1:0")
        stub = self.stub(server)
        self.hardmax(stub)
        self.hardmax(stub, metadata=[("traceparent", NOT_SAMPLED)])
        self.hardmax(stub, metadata=[("traceparent", SAMPLED)])
        root, = collector.roots(1)
        self.assertEqual((root.trace, root.parent), (TRACE, CALLER))
        self.assertEqual(root.flags, 0x301)
        self.assertEqual({child.flags for child in root.children}, {0x101})
        self.hardmax(stub, metadata=[("traceparent", "cc" + SAMPLED[2:] + "-later")])
        self.assertEqual({root.trace for root in collector.roots(2)}, {TRACE})
        address = server.lines("serving")[0]["metrics_address"]
        # The server counts a call when the collector has answered.
        server.wait_until(
            lambda: Scrape(address).value("opmill_traced_calls_exported_total") >= 2, seconds=10)
        scrape = Scrape(address)
        self.assertEqual(scrape.value("opmill_traced_calls_exported_total"), 2)
        self.assertEqual(scrape.value("opmill_traced_calls_dropped_total"), 0)

    def test_a_caller_that_does_not_want_it_is_not_traced(self):
        server, collector = self.serve("--trace_sample=1")
        stub = self.stub(server)
        self.hardmax(stub, metadata=[("traceparent", NOT_SAMPLED)])
        self.hardmax(stub, metadata=[("traceparent", SAMPLED.upper())])  # as if there were none
        root, = collector.roots(1)
        self.assertEqual(root.parent, "")
        self.assertNotEqual(root.trace, TRACE)

    def test_a_part_of_the_calls(self):
        server, collector = self.serve("--trace_sample=0.25")
        stub = self.stub(server)
        calls = [stub.GetServerInfo.future(api.sv.GetServerInfoRequest()) for _ in range(2000)]
        for call in calls:
            call.result()
        server.signal(signal.SIGTERM)  # sends what waits
        self.assertEqual(server.wait(), 0)
        count = len(collector.spans())
        self.assertTrue(400 < count < 600, count)  # five standard deviations

    def test_executions_of_a_stream(self):
        server, collector = self.serve("--trace_sample=0")
        requests = [api.sv.ExecuteStreamRequest(
            execution_id=number, begin=api.sv.BeginExecution(operator=arrays.hardmax(SMALL, [1])),
            chunks=[api.ts.TensorChunk(data=arrays.data_of(SMALL))]) for number in (5, 6, 7)]
        list(self.stub(server).ExecuteStream(iter(requests), timeout=30,
                                             metadata=[("traceparent", SAMPLED)]))
        roots = collector.roots(3)
        for root in roots:
            self.assertEqual((root.name, root.trace, root.parent),
                             (EXECUTE + "Stream", TRACE, CALLER))
            self.assertEqual([child.name for child in root.children if child.name != "compile"],
                             ["decode", "admit", "upload", "queue", "run", "download"])
        self.assertEqual({root.attributes["opmill.execution_id"] for root in roots}, {5, 6, 7})

    def test_an_http_request(self):
        server, collector = self.serve("--http_address=127.0.0.1:0", "--trace_sample=0")
        values = np.arange(200_000, dtype=np.float32).reshape(2, -1)
        request = {"inputs": [rest.tensor("input", "FP32", values.shape, values.ravel().tolist())],
                   "parameters": {"axes": "1"}}
        for fields, status in (({"traceparent": SAMPLED}, 200), ({}, 200),
                               ({"traceparent": NOT_SAMPLED}, 200)):
            answer = rest.infer(server, "argmax", request, fields)
            self.assertEqual(answer.status, status, answer.body)
            self.assertEqual(answer.fields.get("traceparent"), fields.get("traceparent"))
        root, = collector.roots(1, inner=1)
        self.assertEqual((root.name, root.kind), ("POST /v2/models/{model}/infer", SERVER))
        self.assertEqual((root.trace, root.parent), (TRACE, CALLER))
        self.assertEqual(root.attributes["http.request.method"], "POST")
        self.assertEqual(root.attributes["url.path"], "/v2/models/argmax/infer")
        self.assertEqual(root.attributes["http.response.status_code"], 200)
        self.assertEqual([child.name for child in root.children],
                         ["receive", "decode", "call", "encode", "send"])
        call = root.child("call").child("inference.GRPCInferenceService/ModelInfer")
        self.assert_covered(root)
        self.assert_covered(call)
        line = server.lines("execute")[0]
        self.assertEqual(line["traceparent"], f"00-{TRACE}-{call.parent}-01")

    def test_an_onnx_model(self):
        with tempfile.TemporaryDirectory() as folder:
            onnx_model.write_model(pathlib.Path(folder), "scale", 3, onnx_model.scaled_model(2.0))
            server, collector = self.serve("--http_address=127.0.0.1:0",
                                           f"--model_repository={folder}")
            request = {"inputs": [rest.tensor("x", "FP32", [1, 6], [1, 2, 3, 4, 5, 6])]}
            answer = rest.infer(server, "scale", request)
            self.assertEqual(answer.status, 200, answer.body)
            root, = collector.roots(1, inner=1)
        call = root.child("call").child("inference.GRPCInferenceService/ModelInfer")
        self.assertEqual((call.attributes["opmill.model"], call.attributes["opmill.model.version"]),
                         ("scale", "3"))
        self.assertNotIn("opmill.operator", call.attributes)
        self.assert_covered(call)

    def test_http_requests_begin_traces(self):
        server, collector = self.serve("--http_address=127.0.0.1:0")
        self.assertEqual(rest.ask(server, "GET", "/v2/health/ready").status, 200)
        self.assertEqual(rest.ask(server, "GET", "/v2/models/nothing").status, 404)
        self.assertEqual(rest.ask(server, "GET", "/v3").status, 404)
        self.assertEqual(rest.ask(server, "HEAD", "/v2/health/ready").status, 200)
        ready, missing, unknown, head = sorted(collector.roots(4, inner=3),
                                               key=lambda root: root.begin)
        self.assertEqual((ready.name, ready.parent), ("GET /v2/health/ready", ""))
        self.assertEqual((head.name, head.attributes["http.request.method"]),
                         ("HEAD /v2/health/ready", "HEAD"))
        self.assertEqual(missing.attributes["http.response.status_code"], 404)
        call = missing.child("call").child("inference.GRPCInferenceService/ModelMetadata")
        self.assertEqual(call.attributes["rpc.grpc.status_code"], grpc.StatusCode.NOT_FOUND.value[0])
        self.assertIn('"nothing"', missing.attributes["opmill.error"])
        self.assertIsNone(missing.error)  # of the caller, not of the server
        self.assertEqual((unknown.name, unknown.attributes["http.request.method"],
                          unknown.attributes["url.path"]), ("HTTP", "_OTHER", "/v3"))
        self.assertEqual({root.trace for root in (ready, missing, unknown, head)},
                         {span.trace for span in collector.spans()})

    def test_requests_that_fail(self):
        server, collector = self.serve()
        stub = self.stub(server)
        with self.assertRaises(grpc.RpcError):
            self.hardmax(stub, axis=7)
        refused, = collector.roots(1)
        self.assertEqual(refused.attributes["rpc.grpc.status_code"],
                         grpc.StatusCode.INVALID_ARGUMENT.value[0])
        self.assertIn("axes[0]", refused.attributes["opmill.error"])
        self.assertIsNone(refused.error)  # a mistake of the caller
        self.assertEqual([child.name for child in refused.children], ["receive", "decode"])
        # It is ended while its input is missing.
        stream = api.Stream(stub)
        stream.begin(1, arrays.hardmax(SMALL, [1]), timeout={"nanos": 200_000_000})
        self.assertEqual(stream.next_end()[1].status.code,
                         grpc.StatusCode.DEADLINE_EXCEEDED.value[0])
        stream.rest()
        late, = [root for root in collector.roots(2) if root.id != refused.id]
        self.assertEqual(late.error, late.attributes["opmill.error"])
        self.assertEqual(late.children[-1].name, "upload")
        self.assertGreater(late.child("upload").duration, 100e6)
        self.assert_covered(late)

    def test_the_command_line_hands_its_trace_on(self):
        server, collector = self.serve("--trace_sample=0")
        for values, rpc in ((SMALL, "Execute"), (LARGE, "ExecuteStream")):
            with tempfile.TemporaryDirectory() as folder:
                np.save(f"{folder}/x.npy", values)
                for trace in (SAMPLED, "not a trace", ""):
                    subprocess.run([CLI, "run", f"--server={server.address}", "max",
                                    f"{folder}/x.npy"], check=True, capture_output=True, timeout=60,
                                   env=plain_environment() | {"TRACEPARENT": trace})
            seconds = time.monotonic() + 10
            while time.monotonic() < seconds and not any(
                    span.attributes.get("rpc.method") == rpc for span in collector.spans()):
                time.sleep(0.05)
        calls = [span for span in collector.spans() if "rpc.method" in span.attributes]
        self.assertEqual([call.attributes["rpc.method"] for call in calls],
                         ["GetServerInfo", "Execute", "GetServerInfo", "ExecuteStream"])
        self.assertEqual({(call.trace, call.parent) for call in calls}, {(TRACE, CALLER)})

    def test_no_token_is_in_a_span(self):
        token = "b" * 40
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "tokens"
            path.write_text(f"alice {token}\n")
            server, collector = self.serve(f"--token_file={path}")
            stub = self.stub(server)
            self.hardmax(stub, metadata=[("authorization", f"Bearer {token}")])
            root, = collector.roots(1)
        self.assertEqual(root.attributes["opmill.caller"], "alice")
        for request in collector.requests:
            self.assertNotIn(token.encode(), request.SerializeToString())

    def test_spans_are_sent_before_the_server_ends(self):
        server, collector = self.serve()
        self.hardmax(self.stub(server))
        server.signal(signal.SIGTERM)
        self.assertEqual(server.wait(), 0)
        self.assertEqual(len(collector.roots(1, seconds=0)), 1)

    def test_a_collector_that_comes_later(self):
        with Collector() as first:
            endpoint = first.endpoint
        server = self.enterContext(ServerProcess(f"--trace_endpoint={endpoint}", device="reference"))
        self.hardmax(self.stub(server))
        time.sleep(1.5)  # the first attempt has failed
        with Collector(endpoint) as collector:
            collector.roots(1)
        self.assertEqual(server.lines("traces_dropped"), [])

    def test_the_log_says_why_there_is_no_collector(self):
        with Collector() as gone:
            endpoint = gone.endpoint
        server = self.enterContext(ServerProcess(f"--trace_endpoint=http://{endpoint}",
                                                 device="reference"))
        self.hardmax(self.stub(server))
        line = server.wait_for(lambda line: line.get("event") == "traces_dropped")
        self.assertEqual((line["calls"], line["code"]), (1, "UNAVAILABLE"))
        self.assertIn(endpoint, line["error"])
        self.assertIn("Connection refused", line["error"])

    def test_tls(self):
        authority = certificates.Authority("traces")
        issued = authority.issue("collector", ["127.0.0.1"])
        with tempfile.TemporaryDirectory() as folder:
            issued.write(folder, "collector")
            path = f"{folder}/ca.crt"
            with open(path, "wb") as file:
                file.write(authority.certificate)
            credentials = grpc.ssl_server_credentials([(issued.key, issued.certificate)])
            with Collector(credentials=credentials) as collector:
                endpoint = f"--trace_endpoint=https://{collector.endpoint}"
                with ServerProcess(endpoint, f"--trace_ca={path}", device="reference") as server:
                    self.hardmax(self.stub(server))
                    collector.roots(1)
                # The system does not know this authority.
                with ServerProcess(endpoint, device="reference") as server:
                    self.hardmax(self.stub(server))
                collector.roots(1)
                dropped = server.lines("traces_dropped")
                self.assertEqual([line["calls"] for line in dropped], [1], dropped)

    def test_flags(self):
        for flags, code, sentence in (
                (["--trace_endpoint=collector"], 2,
                 '--trace_endpoint is "collector"; it must be host:port or https://host:port, such as '
                 "127.0.0.1:4317."),
                (["--trace_endpoint=ftp://collector:4317"], 2, "--trace_endpoint is"),
                (["--trace_endpoint=collector:0"], 2, "--trace_endpoint is"),
                (["--trace_sample=1.5"], 2,
                 "--trace_sample is 1.5; it must be at least 0 and at most 1."),
                (["--trace_sample=nan"], 2, "--trace_sample is nan"),
                (["--trace_ca=x.pem", "--trace_endpoint=127.0.0.1:4317"], 2,
                 '--trace_ca is "x.pem", which needs a --trace_endpoint that starts with https://.'),
                (["--trace_ca=/nowhere.pem", "--trace_endpoint=https://127.0.0.1:4317"], 1,
                 "--trace_ca (/nowhere.pem)")):
            ended = subprocess.run([BINARY, "--address=127.0.0.1:0", "--device=reference", *flags],
                                   capture_output=True, text=True, timeout=60, check=False,
                                   env=plain_environment())
            self.assertEqual(ended.returncode, code, ended.stderr)
            self.assertIn(sentence, ended.stderr)


def calls_of(scrape):
    return scrape.value("opmill_executions_total", operator="argmin", code="OK")


class CollectorsThatAreNoHelp(unittest.TestCase):
    """Calls go on as without one; what is not taken is dropped, and counted."""

    MOST_CALLS = 8192  # that wait or are being sent
    MOST_BYTES = 64 << 20

    def flood(self, *flags):
        """Many calls; returns the server, its metrics, its growth in bytes, and what bench says."""
        with ServerProcess("--metrics_address=127.0.0.1:0", *flags, device="reference") as server:
            command = [CLI, "bench", "--json", f"--server={server.address}", "--operator=argmin",
                       "--shape=16", "--rpc=execute", "--concurrency=32"]

            def bench(seconds):
                return json.loads(subprocess.run(
                    [*command, f"--duration={seconds}s"], capture_output=True, text=True,
                    timeout=120, check=True, env=plain_environment()).stdout)

            def scraped():
                return Scrape(server.lines("serving")[0]["metrics_address"])

            bench(1)
            before = server.status_bytes("VmRSS")
            for _ in range(18):  # a busy machine needs longer
                said = bench(2)
                if calls_of(scraped()) > 2 * self.MOST_CALLS:
                    break
            growth = server.status_bytes("VmRSS") - before
            scrape = scraped()
            begun = time.monotonic()
            server.signal(signal.SIGTERM)
            self.assertEqual(server.wait(), 0)
            self.assertLess(time.monotonic() - begun, 4)
            return server, scrape, growth, said

    def check(self, endpoint, *reasons):
        server, scrape, growth, bench = self.flood(f"--trace_endpoint={endpoint}")
        calls = calls_of(scrape)
        dropped = scrape.value("opmill_traced_calls_dropped_total")
        self.assertEqual(scrape.value("opmill_traced_calls_exported_total"), 0)
        self.assertGreater(calls, 2 * self.MOST_CALLS)
        self.assertGreaterEqual(dropped, calls - self.MOST_CALLS)
        self.assertEqual(len(server.lines("execute")), calls)
        if not SANITIZED:
            self.assertLess(growth, self.MOST_BYTES)
        lines = server.lines("traces_dropped")
        self.assertEqual(len(lines), 1, lines)  # in a minute
        self.assertIn(lines[0]["code"], reasons)
        return bench

    def test_one_that_does_not_answer(self):
        forever = threading.Event()
        self.addCleanup(forever.set)
        with Collector(take=lambda request: forever.wait()) as collector:
            # When the server ends, or after the 10 s that it waits.
            bench = self.check(collector.endpoint, "CANCELLED", "DEADLINE_EXCEEDED")
            forever.set()
        if SANITIZED:
            return
        plain = self.flood()[-1]
        # It is much less; other programs may have had the processors meanwhile.
        self.assertGreater(bench["calls_per_s"], plain["calls_per_s"] / 2, (bench, plain))
        self.assertLess(bench["latency_s"]["max"], 1)

    def test_one_that_is_not_there(self):
        with socket.create_server(("127.0.0.1", 0)) as other:  # keeps the port, and speaks no HTTP/2
            self.check(f"127.0.0.1:{other.getsockname()[1]}", "CANCELLED", "UNAVAILABLE")

    def test_one_that_refuses(self):
        def refuse(request):
            raise ValueError
        with Collector(take=refuse) as collector:
            self.check(collector.endpoint, "UNKNOWN")
