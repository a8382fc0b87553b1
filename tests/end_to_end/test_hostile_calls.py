"""Callers whose calls cost the server much and them little: many header fields, calls that are reset at once,
long messages to methods that take none. The calls of another caller must succeed, each within a second."""

import concurrent.futures
import contextlib
import json
import subprocess
import sys
import time
import unittest

import grpc

import api
import attackers
import hostile
import http2
from certificates import write
from hostile import EXECUTE, MEMORY_LIMIT, TOKEN, Neighbour
from server_process import ROOT, SANITIZED

MOST_SECONDS = 3 if SANITIZED else 1
# Beside what the server had before. The address sanitizer keeps 256 MiB that were freed.
MOST_GROWTH = (512 if SANITIZED else 256) << 20
REFLECTION = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"
SMALL_METHODS = [f"/{api.SERVICE}/{name}" for name in
                 ("GetServerInfo", "GetStatistics", "ListModels")] + [
    "/inference.GRPCInferenceService/ServerLive", "/inference.GRPCInferenceService/ModelConfig",
    attackers.HEALTH, REFLECTION, "/no.such/Method"]
MOST_SMALL_BYTES = 64 << 10
METADATA = [("authorization", f"Bearer {TOKEN}")]


class HostileCalls(hostile.Server, unittest.TestCase):
    """In clear text. The class Tls below repeats the cases over TLS."""

    def serve(self, *flags, needs_token=True):
        tokens = [f"--token_file={self.files / 'tokens'}"] if needs_token else []
        return super().serve(*tokens, *flags)

    @contextlib.contextmanager
    def attack(self, server, name, *options):
        """While attackers.py runs, and for a second afterwards, a neighbour calls from another address."""
        write(self.files / "authority", self.authority.certificate)
        tls = ["--authority", str(self.files / "authority")] if self.tls_flags() else []
        neighbour = Neighbour(self.channel(server), METADATA)
        with neighbour:
            before = server.status_bytes("VmRSS")
            done = subprocess.run(
                [sys.executable, str(ROOT / "tests" / "end_to_end" / "attackers.py"), name,
                 server.address, *options, *tls], check=True, capture_output=True, timeout=120, text=True)
            time.sleep(1)
        print(done.stdout.strip())
        yield json.loads(done.stdout)
        print(f"closed: {[line['reason'] for line in server.lines('close_connection')][:10]}")
        neighbour.check(self)
        self.assertLess(max(neighbour.seconds), MOST_SECONDS)
        peak = server.status_bytes("VmHWM")
        print(f"resident: {before >> 20} MiB before, {peak >> 20} MiB at most; the slowest call took "
              f"{max(neighbour.seconds):.3f} s")
        self.assertLess(peak, MEMORY_LIMIT * 1.1)
        self.assertLess(peak - before, MOST_GROWTH)

    def closed_for(self, server):
        return {line["reason"] for line in server.lines("close_connection")}

    def test_header_fields_of_calls_without_a_message(self):
        server = self.serve()
        with self.attack(server, "header_fields", "--connections=120", "--seconds=6"):
            self.assertEqual(self.closed_for(server), {"metadata"})

    def test_many_calls_with_much_metadata(self):
        """Each of them below the limit on the metadata of a call."""
        server = self.serve()
        with self.attack(server, "header_fields", "--connections=120", "--seconds=6", "--fields=1800",
                         "--calls=200"):
            self.assertIn(self.closed_for(server), ({"abandoned"}, {"calls"}, {"abandoned", "calls"}))

    def test_calls_that_are_reset_at_once(self):
        for needs_token in (True, False):
            with self.subTest(needs_token=needs_token):
                server = self.serve(needs_token=needs_token)
                with self.attack(server, "rapid_reset", "--connections=32", "--seconds=4"):
                    self.assertIn("abandoned", self.closed_for(server))

    def test_a_few_connections_that_reset_calls(self):
        server = self.serve()
        with self.attack(server, "rapid_reset", "--connections=4", "--seconds=3"):
            self.assertIn("abandoned", self.closed_for(server))

    def test_connections_that_are_closed_with_open_calls(self):
        server = self.serve(needs_token=False)
        with self.attack(server, "abandon_connections", "--connections=32", "--seconds=3"):
            self.assertIn("abandoned", self.closed_for(server))

    def test_frames_that_must_be_answered(self):
        """The answers do not make up for the frames."""
        for kind in ("settings", "ping"):
            with self.subTest(kind):
                server = self.serve()
                with self.attack(server, "control_frames", "--connections=64", "--seconds=3",
                                 f"--method={kind}"):
                    self.assertEqual(self.closed_for(server), {"control"})

    def test_long_messages_without_a_token(self):
        server = self.serve()
        with self.attack(server, "long_messages", "--connections=4", "--seconds=4") as done:
            self.assertEqual(done["failed"], done["connections"])

    def test_methods_without_tensors_take_small_messages(self):
        server = self.serve()
        channel = self.channel(server)
        before = server.status_bytes("VmRSS")
        with Neighbour(self.channel(server), METADATA) as neighbour:
            for method in SMALL_METHODS:
                with self.subTest(method):
                    call = channel.unary_unary(method)
                    with self.assertRaises(grpc.RpcError) as raised:
                        call(attackers.UNKNOWN_FIELDS, timeout=30, metadata=METADATA)
                    self.assertEqual(raised.exception.code(), grpc.StatusCode.RESOURCE_EXHAUSTED)
                    self.assertEqual(raised.exception.details(),
                                     "Received message larger than max (60000000 vs. 65536)")
        neighbour.check(self)  # not its latency: it shares this process with the attacker
        peak = server.status_bytes("VmHWM")
        print(f"resident: {before >> 20} MiB before, {peak >> 20} MiB at most")
        self.assertLess(peak - before, MOST_GROWTH)

    def test_the_limit_on_small_messages_is_exact(self):
        server = self.serve()
        call = self.channel(server).unary_unary(f"/{api.SERVICE}/GetServerInfo")
        call(attackers.UNKNOWN_FIELDS[:MOST_SMALL_BYTES], timeout=30, metadata=METADATA)
        with self.assertRaises(grpc.RpcError) as raised:
            call(attackers.UNKNOWN_FIELDS[:MOST_SMALL_BYTES + 2], timeout=30, metadata=METADATA)
        self.assertEqual(raised.exception.code(), grpc.StatusCode.RESOURCE_EXHAUSTED)

    def test_compressed_messages_are_refused(self):
        """A megabyte of them may expand to a gigabyte."""
        server = self.serve(needs_token=False)
        call = self.channel(server).unary_unary(EXECUTE)
        with self.assertRaises(grpc.RpcError) as raised:
            call(bytes(60_000_000), timeout=30, compression=grpc.Compression.Gzip)
        self.assertEqual(raised.exception.code(), grpc.StatusCode.UNIMPLEMENTED)
        self.assertLess(server.status_bytes("VmHWM"), MEMORY_LIMIT // 4)

    def test_calls_beyond_the_limit_of_a_peer_that_ignores_it(self):
        """It never acknowledges the SETTINGS that contain the limit."""
        server = self.serve("--max_calls_per_connection=100")
        with self.connection(server) as caller:
            with contextlib.suppress(OSError):
                caller.send(attackers.reset_calls(10_000, resets=False, path=attackers.HEALTH))
            self.assertTrue(caller.is_closed(10))
        server.wait_for(lambda line: line.get("event") == "close_connection", 10)
        self.assertEqual(self.closed_for(server), {"calls"})

    def test_heavy_but_honest_use_is_not_refused(self):
        """Calls of 64 threads over 4 connections, of which every third is cancelled or misses its
        deadline, and 500 other connections from the same address."""
        server = self.serve(needs_token=False)
        idle = [self.enterContext(self.connection(server)) for _ in range(500)]
        neighbours = [Neighbour(self.own_channel(server)) for _ in range(4)]
        outcomes = {"completed": 0, "cancelled": 0, "failed": []}

        def work(index):
            neighbour = neighbours[index % 4]
            until = time.monotonic() + 5
            for i in range(100_000):
                if time.monotonic() > until:
                    return
                try:
                    if i % 3 == 0:
                        call = neighbour.stub.GetServerInfo.future(api.sv.GetServerInfoRequest(),
                                                                   timeout=0.0005 if i % 2 else 30)
                        call.cancel()
                        outcomes["cancelled"] += 1
                    else:
                        neighbour.stub.GetServerInfo(api.sv.GetServerInfoRequest(), timeout=30)
                        outcomes["completed"] += 1
                except grpc.RpcError as error:
                    if error.code() != grpc.StatusCode.DEADLINE_EXCEEDED:
                        outcomes["failed"].append(error.details())

        with concurrent.futures.ThreadPoolExecutor(64) as pool:
            list(pool.map(work, range(64)))
        print({name: value if name != "failed" else value[:3] for name, value in outcomes.items()})
        self.assertEqual(outcomes["failed"], [])
        self.assertEqual(server.lines("close_connection"), [])
        self.assertEqual(sum(connection.is_closed() for connection in idle), 0)


class Tls(hostile.OverTls, HostileCalls):
    pass
