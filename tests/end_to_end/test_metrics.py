"""The metrics endpoint: its values are those of GetStatistics, and tools can parse the text."""

import json
import os
import re
import shutil
import signal
import subprocess
import time
import unittest
import urllib.error
import urllib.request

import grpc
import numpy as np

import api
import arrays
from server_process import ROOT, SERVER, ServerProcess, plain_environment

PROMTOOL = str(ROOT / "build" / "promtool" / "promtool")
DASHBOARD = ROOT / "deploy" / "grafana_dashboard.json"
VALUES = np.arange(4096, dtype=np.float32).reshape(4, 1024)
SAMPLE = re.compile(r"^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$")
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


def get(address, page, method="GET"):
    """Returns status, content type and text."""
    request = urllib.request.Request(f"http://{address}{page}", method=method)
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, answer.headers["Content-Type"], answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.headers["Content-Type"], error.read().decode()


class Scrape:
    def __init__(self, address):
        status, self.content_type, self.text = get(address, "/metrics")
        assert status == 200, status
        self.samples = {}
        for line in self.text.splitlines():
            if line.startswith("#"):
                continue
            name, labels, value = SAMPLE.match(line).groups()
            key = (name, frozenset(LABEL.findall(labels or "")))
            assert key not in self.samples, f"{key} stands there twice"
            self.samples[key] = float(value)

    def value(self, name, **labels):
        return self.samples[name, frozenset(labels.items())]

    def names(self):
        return {name for name, _ in self.samples}


class Metrics(unittest.TestCase):
    def serve(self, *flags, device="software"):
        server = self.enterContext(ServerProcess("--metrics_address=127.0.0.1:0", *flags,
                                                 device=device))
        return server, server.lines("serving")[0]["metrics_address"]

    def work(self, server):
        """Runs executions of every operator, and some that fail."""
        stub = api.stub_of(self.enterContext(api.connect(server.address)))
        data = arrays.data_of(VALUES)
        for operator in (arrays.hardmax(VALUES, [1]), arrays.top_k(VALUES, 1, 5),
                         arrays.argmax(VALUES, [1]), arrays.argmax(VALUES, [1])):
            self.assertIsNotNone(api.execute(stub, operator, data).statistics)
        stream = api.Stream(stub)
        for key in range(10):
            stream.begin(key, arrays.hardmax(VALUES, [0]), [(0, 0, data)])
        self.assertEqual(len(stream.rest()), 10)
        for operator, bytes_sent in ((arrays.hardmax(VALUES, [7]), data),  # no such axis
                                     (arrays.hardmax(VALUES, [0]), data[:8])):
            with self.assertRaises(grpc.RpcError):
                api.execute(stub, operator, bytes_sent)
        return stub

    def test_are_what_get_statistics_says(self):
        server, address = self.serve()
        stub = self.work(server)
        said = api.wait_until_idle(stub)
        scrape = Scrape(address)
        of_calls = {each.operator: each for each in said.operators}
        self.assertEqual(set(of_calls), {"hardmax", "top_k", "argmax"})
        for name, each in of_calls.items():
            count = each.succeeded
            self.assertEqual(scrape.value("opmill_executions_total", operator=name, code="OK"),
                             count)
            self.assertEqual(scrape.value("opmill_input_bytes_total", operator=name),
                             each.input_bytes)
            self.assertEqual(scrape.value("opmill_output_bytes_total", operator=name),
                             each.output_bytes)
            self.assertEqual(
                scrape.value("opmill_execution_duration_seconds_count", operator=name), count)
            self.assertEqual(scrape.value("opmill_batch_size_count", operator=name), count)
            total = 0
            for stage in ("upload", "queue", "compute", "download"):
                seconds = scrape.value("opmill_stage_duration_seconds_sum", operator=name,
                                       stage=stage)
                self.assertAlmostEqual(seconds, getattr(each, stage).ToNanoseconds() / 1e9,
                                       delta=1e-4)  # rounded as in the text
                total += seconds
            self.assertGreaterEqual(
                scrape.value("opmill_execution_duration_seconds_sum", operator=name) + 1e-4,
                total)
        self.assertEqual(of_calls["hardmax"].failed, 1)
        self.assertEqual(scrape.value("opmill_executions_total", operator="hardmax",
                                      code="INVALID_ARGUMENT"), 1)
        self.assertEqual(scrape.value("opmill_refused_requests_total", code="INVALID_ARGUMENT"),
                         said.refused_requests)
        self.assertEqual(said.refused_requests, 1)
        for result, count in (("hit", said.cache.hits), ("miss", said.cache.misses),
                              ("wait", said.cache.waits)):
            self.assertEqual(
                scrape.value("opmill_operator_cache_lookups_total", result=result), count)
        device = said.device
        for name in ("runs", "submissions", "pipelines_created", "shaders_compiled", "resets"):
            self.assertEqual(scrape.value(f"opmill_device_{name}_total"), getattr(device, name))
        self.assertEqual(scrape.value("opmill_device_live_kernels"), device.live_kernels)
        self.assertGreater(device.live_kernels, 0)
        self.assertEqual(scrape.value("opmill_device_buffer_bytes", state="in_use"),
                         device.buffer_bytes_in_use)
        self.assertEqual(scrape.value("opmill_in_flight_bytes"), 0)
        self.assertEqual(scrape.value("opmill_ready"), 1)

        # The buckets of a histogram ascend, and the last one counts everything.
        ranges = sorted((float(dict(labels)["le"]), value)
                        for (name, labels), value in scrape.samples.items()
                        if name == "opmill_execution_duration_seconds_bucket"
                        and dict(labels)["operator"] == "hardmax")
        self.assertEqual([value for _, value in ranges], sorted(value for _, value in ranges))
        self.assertEqual(ranges[-1], (float("inf"), of_calls["hardmax"].succeeded))
        bounds = {dict(labels)["le"] for _, labels in scrape.samples if "le" in dict(labels)}
        for bound in bounds - {"+Inf"}:
            self.assertRegex(bound, r"^[0-9.]{1,7}$")

    def test_include_the_process(self):
        server, address = self.serve(device="reference")
        scrape = Scrape(address)
        resident = scrape.value("process_resident_memory_bytes")
        self.assertLess(abs(resident - server.status_bytes("VmRSS")), 16 << 20)
        self.assertLess(abs(scrape.value("process_start_time_seconds") - time.time()), 60)
        if "OPMILL_WINE" not in os.environ:  # Wine 8's GetProcessHandleCount says 0
            self.assertGreater(scrape.value("process_open_fds"), 3)
        self.assertGreater(scrape.value("process_cpu_seconds_total"), 0)

    def test_are_clean_to_promtool(self):
        self.assertTrue(shutil.which(PROMTOOL), "./dev test fetches promtool")
        server, address = self.serve()
        self.work(server)
        scrape = Scrape(address)
        self.assertEqual(scrape.content_type, "text/plain; version=0.0.4; charset=utf-8")
        checked = subprocess.run([PROMTOOL, "check", "metrics"], input=scrape.text, text=True,
                                 capture_output=True, timeout=60, check=False)
        self.assertEqual((checked.returncode, checked.stdout + checked.stderr), (0, ""))
        print(f"{len(scrape.samples)} samples of {len(scrape.names())} names, "
              f"{len(scrape.text)} bytes")
        # About 120 of each operator, and 200 of the server.
        self.assertLess(len(scrape.samples), 1200)

    def test_have_every_name_of_the_dashboard(self):
        server, address = self.serve(device="reference")
        self.work(server)
        # The metric that only servers with TLS have.
        names = Scrape(address).names() | {"opmill_certificate_expiry_timestamp_seconds"}
        dashboard = json.loads(DASHBOARD.read_text(encoding="utf-8"))
        asked = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
        asked += [variable["query"] for variable in dashboard["templating"]["list"]
                  if variable["type"] == "query"]
        self.assertGreater(len(asked), 20)
        for query in asked:
            found = set(re.findall(r"\b(?:opmill|process)_\w+", query))
            with self.subTest(query):
                self.assertTrue(found)
                self.assertEqual(found - names, set())
        for name in ("opmill_callers", "opmill_caller_executions_total", "opmill_connections_open",
                     "opmill_closed_connections_total", "opmill_device_on_standby"):
            self.assertTrue(any(name in query for query in asked), name)
        ids = [panel["id"] for panel in dashboard["panels"]]
        self.assertEqual(len(set(ids)), len(ids))

    def test_have_pages_beside_them(self):
        server, address = self.serve("--drain_timeout=20s", device="reference")
        self.assertEqual(get(address, "/healthz")[0::2], (200, "alive\n"))
        self.assertEqual(get(address, "/readyz")[0::2], (200, "ready\n"))
        self.assertEqual(get(address, "/readyz", method="HEAD")[0::2], (200, ""))
        for page in ("/metrics/more", "/readyzz", "/../etc/passwd"):
            self.assertEqual(get(address, page)[0], 404, page)
        for method in ("POST", "PUT", "DELETE"):
            self.assertEqual(get(address, "/metrics", method=method)[0], 405, method)

        # An incomplete upload keeps the server draining: alive, but not ready.
        stub = api.stub_of(self.enterContext(api.connect(server.address)))
        data = arrays.data_of(VALUES)
        stream = api.Stream(stub)
        stream.begin(1, arrays.hardmax(VALUES, [1]), [(0, 0, data[:100])])
        stream.begin(2, arrays.hardmax(VALUES, [1]), [(0, 0, data)])
        self.assertEqual(stream.next_end()[0], 2)
        self.assertEqual(Scrape(address).value("opmill_executions_in_flight",
                                               stage="uploading"), 1)
        server.signal(signal.SIGTERM)
        server.wait_for(lambda line: line.get("event") == "draining")
        self.assertEqual(get(address, "/readyz")[0::2], (503, "draining\n"))
        self.assertEqual(get(address, "/healthz")[0], 200)
        # The page may be the last one, which serves four times as long as it took.
        server.wait_until(lambda: Scrape(address).value("opmill_ready") == 0)
        stream.send(1, [(0, 100, data[100:])])
        self.assertEqual(stream.next_end()[0], 1)
        self.assertEqual(server.wait(), 0)

    def test_address_has_to_be_free_and_of_this_machine(self):
        server, address = self.serve(device="reference")
        for flag, code, sentence in (
                (f"--metrics_address={address}", 1, "cannot listen at"),
                ("--metrics_address=0.0.0.0:0", 2, "which other machines can reach"),
                ("--metrics_address=unix:/tmp/x", 2, "it must be host:port"),
                ("--metrics_address=127.0.0.1", 2, "it must be host:port")):
            ended = subprocess.run([SERVER, "--device=reference", "--address=127.0.0.1:0", flag],
                                   capture_output=True, text=True, timeout=60, check=False,
                                   env=plain_environment())
            self.assertEqual(ended.returncode, code, ended.stderr)
            self.assertIn(sentence, ended.stderr)


class Traceparent(unittest.TestCase):
    GOOD = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

    def setUp(self):
        self.server = self.enterContext(ServerProcess(device="reference"))
        self.stub = api.stub_of(self.enterContext(api.connect(self.server.address)))

    def echo(self, call):
        return dict(call.initial_metadata()).get("traceparent")

    def test_comes_back_and_is_logged_with_every_answer(self):
        metadata = [("traceparent", self.GOOD)]
        data = arrays.data_of(VALUES)
        good = api.sv.ExecuteRequest(operator=arrays.hardmax(VALUES, [1]), inputs=[data])
        bad = api.sv.ExecuteRequest(operator=arrays.hardmax(VALUES, [7]), inputs=[data])

        call = self.stub.Execute(good, metadata=metadata, timeout=30)
        self.assertEqual(self.echo(call), self.GOOD)
        list(call)
        call = self.stub.Execute(bad, metadata=metadata, timeout=30)
        self.assertEqual(self.echo(call), self.GOOD)
        with self.assertRaises(grpc.RpcError):
            list(call)
        requests = [api.sv.ExecuteStreamRequest(
            execution_id=1, begin=api.sv.BeginExecution(operator=good.operator),
            chunks=[api.ts.TensorChunk(data=data)])]
        call = self.stub.ExecuteStream(iter(requests), metadata=metadata, timeout=30)
        self.assertEqual(self.echo(call), self.GOOD)
        list(call)
        for method, request in ((self.stub.GetServerInfo, api.sv.GetServerInfoRequest()),
                                (self.stub.GetStatistics, api.sv.GetStatisticsRequest()),
                                (self.stub.CompileOperator, api.sv.CompileOperatorRequest(
                                    operator=good.operator))):
            _, call = method.with_call(request, metadata=metadata, timeout=30)
            self.assertEqual(self.echo(call), self.GOOD)
        # A log line may follow the response; all lines exist once the server has stopped.
        self.server.signal(signal.SIGTERM)
        self.assertEqual(self.server.wait(), 0)
        for event, count in (("execute", 2), ("refuse", 1), ("stream", 1), ("answer", 2),
                             ("compile", 1)):
            self.assertEqual([line.get("traceparent") for line in self.server.lines(event)],
                             [self.GOOD] * count, event)

    def test_is_ignored_if_it_is_invalid(self):
        for value in ("", "00-x", self.GOOD.upper(), self.GOOD + "-more", None):
            metadata = [("traceparent", value)] if value is not None else []
            _, call = self.stub.GetServerInfo.with_call(api.sv.GetServerInfoRequest(),
                                                        metadata=metadata, timeout=30)
            self.assertIsNone(self.echo(call), value)
        self.assertEqual([line for line in self.server.lines() if "traceparent" in line], [])
