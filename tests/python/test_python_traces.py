"""Calls belong to the active span of OpenTelemetry."""

import asyncio
import subprocess
import sys
import unittest

import numpy as np
from collector import Collector
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from server_process import ServerProcess

import opmill

SMALL = np.arange(3000, dtype=np.float32).reshape(30, 100)
LARGE = np.ones((1024, 1024), np.float32)


class Traces(unittest.TestCase):
    def setUp(self):
        self.collector = self.enterContext(Collector())
        self.server = self.enterContext(ServerProcess(
            f"--trace_endpoint={self.collector.endpoint}", "--trace_sample=0", device="reference"))
        self.tracer = TracerProvider().get_tracer("test")

    def check(self, span, rpcs):
        """The server's spans, in any order, are those of these methods and belong to the span."""
        context = span.get_span_context()
        roots = self.collector.roots(len(rpcs))
        self.assertEqual(sorted(root.attributes["rpc.method"] for root in roots), sorted(rpcs))
        self.assertEqual({(root.trace, root.parent) for root in roots},
                         {(f"{context.trace_id:032x}", f"{context.span_id:016x}")})

    def test_calls_within_a_span(self):
        with opmill.connect(self.server.address, shared_memory="off") as c:
            c.sum(SMALL)
            with self.tracer.start_as_current_span("work") as span:
                c.sum(SMALL)
                c.sum(LARGE)
                c.server_info()
            c.sum(SMALL)
        self.check(span, ["Execute", "ExecuteStream", "GetServerInfo"])

    def test_calls_of_asyncio(self):
        async def work():
            async with await opmill.aio.connect(self.server.address, shared_memory="off") as c:
                await c.sum(SMALL)
                with self.tracer.start_as_current_span("work") as span:
                    await asyncio.gather(c.sum(SMALL), c.sum(LARGE), c.server_info())
                return span
        self.check(asyncio.run(work()), ["Execute", "ExecuteStream", "GetServerInfo"])

    def test_in_shared_memory(self):
        with opmill.connect(self.server.address) as c:
            with self.tracer.start_as_current_span("work") as span:
                c.hardmax(LARGE, axis=1)
        self.check(span, ["CompileOperator", "Execute"])  # the first says how long the output is

    def test_a_span_that_is_not_sampled(self):
        tracer = TracerProvider(ALWAYS_OFF).get_tracer("test")
        with opmill.connect(self.server.address) as c, tracer.start_as_current_span("work") as span:
            c.sum(SMALL)
        line = self.server.wait_for(lambda line: line.get("event") == "execute")
        self.assertEqual(line["traceparent"][3:35], f"{span.get_span_context().trace_id:032x}")
        self.assertEqual(int(line["traceparent"][-2:], 16) & 1, 0)
        self.assertEqual(self.collector.spans(), [])

    def test_nothing_is_imported(self):
        program = (f"import sys, numpy, opmill\n"
                   f"with opmill.connect({self.server.address!r}) as c:\n"
                   f"    c.sum(numpy.ones(4, numpy.float32))\n"
                   f"print([name for name in sys.modules if 'opentelemetry' in name])\n")
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True,
                              text=True, timeout=60)
        self.assertEqual(done.stdout, "[]\n")
