"""Callers that attack the server before it knows of a call: endless header blocks, silent connections,
streams that begin executions and send no input. Other callers must not be affected."""

import concurrent.futures
import contextlib
import random
import socket
import struct
import time
import unittest

import numpy as np

import api
import arrays
import hostile
import http2
from attackers import INDEXED_FIELD
from hostile import EXECUTE, TOKEN, Neighbour
from server_process import SANITIZED

METHODS_WITH_FILES = [EXECUTE, f"/{api.SERVICE}/CompileOperator", f"/{api.SERVICE}/DescribeModel",
                      "/inference.GRPCInferenceService/ModelInfer",
                      "/inference.GRPCInferenceService/RepositoryModelLoad"]
MOST_SECONDS = 10 if SANITIZED else 3
TINY_FIELDS = http2.literal(b"a", b"b") * 1500  # below gRPC's limit of 8 KiB for one frame


class HostileConnections(hostile.Server, unittest.TestCase):
    """In clear text. The class Tls below repeats the cases over TLS."""

    def flood(self, server, source, begin, frames, megabytes=100):
        """Returns the bytes of `frames` that the server let through, and the seconds until it closed
        the connection."""
        begun = time.monotonic()
        sent = 0
        with self.connection(server, source=source) as attacker:
            try:
                attacker.send(begin)
                while sent < megabytes << 20:
                    attacker.send(frames)
                    sent += len(frames)
            except OSError:
                return sent, time.monotonic() - begun
        self.fail(f"the server took {sent} bytes")

    def test_a_header_block_without_an_end_is_cut_off(self):
        server = self.serve()
        before = server.status_bytes("VmRSS")
        begin = http2.frame(http2.HEADERS, 0, 1, http2.request_fields(EXECUTE) + INDEXED_FIELD)
        fields = {"literal": TINY_FIELDS, "indexed": b"\xbe" * 8000}
        with self.connection(server), Neighbour(self.channel(server)) as neighbour:
            for name, block in fields.items():
                with self.subTest(name):
                    frames = http2.frame(http2.CONTINUATION, 0, 1, block) * 16
                    sent, seconds = self.flood(server, "127.0.0.9", begin, frames)
                    print(f"{name}: {sent} bytes sent in {seconds:.2f} s")
                    self.assertLess(seconds, MOST_SECONDS)
        neighbour.check(self)
        self.assert_memory(server, before, most=before + (100 << 20))

    def test_many_header_blocks_at_once_are_cut_off(self):
        """Each below what one connection may send without an answer, some behind silent calls."""
        server = self.serve()
        before = server.status_bytes("VmRSS")
        silent = b"".join(http2.frame(http2.HEADERS, http2.END_HEADERS, 2 * i + 1,
                                      http2.request_fields(EXECUTE)) for i in range(20))
        begin = http2.frame(http2.HEADERS, 0, 41, http2.request_fields(EXECUTE) + INDEXED_FIELD)
        block = http2.frame(http2.CONTINUATION, 0, 41, b"\xbe" * 8000) * 200
        attackers = [self.enterContext(self.connection(server)) for _ in range(60)]
        with Neighbour(self.channel(server)) as neighbour:
            for i, attacker in enumerate(attackers):
                try:
                    attacker.send((silent if i % 2 else b"") + begin + block)
                except OSError:
                    pass  # closed already
            self.assertEqual([a.is_closed(10) for a in attackers], [True] * len(attackers))
        neighbour.check(self)
        self.assert_memory(server, before, most=before + (200 << 20))

    def test_a_flood_that_needs_no_answer_is_cut_off(self):
        server = self.serve()
        priorities = http2.frame(http2.PRIORITY, 0, 1, bytes(5)) * 4000
        with Neighbour(self.channel(server)) as neighbour:
            for i in range(5):
                sent, seconds = self.flood(server, f"127.0.0.{9 + i}", b"", priorities)
                print(f"{sent} bytes sent in {seconds:.2f} s")
        neighbour.check(self)
        for i in range(5):
            peer = f"ipv4:127.0.0.{9 + i}:"
            line = server.wait_for(lambda line, peer=peer:
                                   line.get("event") == "close_connection" and
                                   line["peer"].startswith(peer), 10)
            self.assertEqual(line["reason"], "flood")
        self.assertEqual(len(server.lines("close_connection")), 5)

    def test_long_metadata_is_refused(self):
        server = self.serve()
        for rpc in ("Execute", "ExecuteStream", "CompileOperator"):
            with self.subTest(rpc), self.connection(server) as caller:
                path = http2.request_fields(f"/opmill.v1.OperatorService/{rpc}")
                caller.send(http2.frame(http2.HEADERS, 0, 1, path) +
                            http2.frame(http2.CONTINUATION, http2.END_HEADERS, 1, TINY_FIELDS) +
                            http2.frame(http2.DATA, http2.END_STREAM, 1, bytes(5)))
                line = server.wait_for(
                    lambda line: line.get("event") == "refuse" and line["rpc"] == rpc, 10)
                self.assertEqual(line["code"], "RESOURCE_EXHAUSTED")
                self.assertRegex(line["error"], "metadata of the call has 51[0-9]{3} bytes, with 32 for each "
                                                "field; at most 16384 are taken")

    def test_slots_of_connections_that_say_nothing_go_to_those_that_call(self):
        server = self.serve(f"--token_file={self.files / 'tokens'}")
        silent = [self.enterContext(self.connection(server, greets=i % 2 == 0))
                  for i in range(1100)]
        begun = time.monotonic()
        neighbour = Neighbour(self.channel(server), [("authorization", f"Bearer {TOKEN}")])
        neighbour.call()
        seconds = time.monotonic() - begun
        print(f"connected and called within {seconds:.3f} s")
        self.assertLess(seconds, MOST_SECONDS)
        # No number of new connections takes the slot of one that has made a call.
        silent += [self.enterContext(self.connection(server)) for _ in range(300)]
        with neighbour:
            time.sleep(0.5)
        neighbour.check(self)
        self.wait_until_open(silent, 768)  # three quarters of 1024, for one address
        self.assertEqual(server.lines("refuse_connections"), [])
        self.assertIn("room", {line["reason"] for line in server.lines("close_connection")})

    def wait_until_open(self, connections, most):
        """Waits until at most so many are open, and returns how many are. A busy server may not have
        accepted all of them yet."""
        until = time.monotonic() + 30
        while (is_open := sum(not connection.is_closed() for connection in connections)) > most:
            self.assertLess(time.monotonic(), until, f"{is_open} connections are open.")
            time.sleep(0.1)
        return is_open

    def test_addresses_share_the_slots(self):
        server = self.serve("--max_connections=20", "--max_connections_per_address=15")
        crowd = [self.enterContext(self.connection(server, source="127.0.0.2"))
                 for _ in range(30)]
        others = [self.enterContext(self.connection(server, source="127.0.0.3"))
                  for _ in range(10)]
        self.assertEqual(self.wait_until_open(crowd, 10), 10)
        self.assertEqual(self.wait_until_open(others, 10), 10)

    def test_connections_in_use_are_not_closed_for_others(self):
        server = self.serve("--max_connections=3", "--max_connections_per_address=3")
        streams = []
        for _ in range(3):
            stream = api.Stream(api.stub_of(self.own_channel(server)))
            array = np.zeros((1, 4), np.float32)
            stream.begin(1, arrays.argmax(array, [1]), [(0, 0, array.tobytes())])
            self.assertEqual(stream.next_end()[0], 1)
            streams.append(stream)
        try:
            with self.connection(server) as fourth:
                self.assertTrue(fourth.is_closed(5))
        except OSError:  # during the TLS handshake
            pass
        server.wait_for(lambda line: line.get("event") == "refuse_connections", 5)
        for stream in streams:
            self.assertEqual(stream.rest(), {})

    def test_connections_that_are_reset_at_once_leave_no_slots_behind(self):
        """From one port again and again, some of them before the server has accepted them."""
        path = self.files / "socket"
        server = self.serve("--max_connections=8", "--max_connections_per_address=6",
                            f"--address=127.0.0.1:0,unix:{path}")
        host, port = server.address.split(",")[0].rsplit(":", 1)
        source = ("127.0.0.9", 0)
        for _ in range(300):
            with socket.socket() as attacker:
                attacker.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                attacker.bind(source)
                attacker.connect((host, int(port)))
                source = attacker.getsockname()
        time.sleep(0.3)
        for _ in range(6):
            caller = self.enterContext(socket.socket(socket.AF_UNIX))
            caller.connect(str(path))
        for _ in range(2):
            self.enterContext(socket.create_connection((host, int(port)), 5, ("127.0.0.9", 0)))
        time.sleep(0.3)
        self.assertEqual(server.lines("refuse_connections"), [])
        self.assertEqual(server.lines("close_connection"), [])

    def test_a_connection_that_does_not_speak_is_closed(self):
        server = self.serve()
        with self.connection(server, greets=False) as silent:
            self.assertTrue(silent.is_closed(12))

    def serve_models(self):
        return self.serve("--stall_timeout=1s", f"--model_repository={self.files}", "--model_control_mode=explicit")

    def test_calls_without_their_message_end(self):
        server = self.serve_models()
        for path in METHODS_WITH_FILES:
            with self.subTest(path), self.connection(server) as caller:
                caller.send(http2.frame(http2.HEADERS, http2.END_HEADERS, 1, http2.request_fields(path)))
                line = server.wait_for(lambda line, path=path: line.get("rpc") == path.split("/")[-1], 10)
                self.assertEqual((line["event"], line["code"]), ("refuse", "DEADLINE_EXCEEDED"))
                self.assertIn("sent no message for 1s", line["error"])

    def test_messages_that_stop_before_their_end(self):
        """Together they would take more than the server's memory."""
        server = self.serve_models()
        before = server.status_bytes("VmRSS")

        def send_most(path):
            with self.connection(server, timeout=60) as caller, contextlib.suppress(OSError):
                upload = http2.Upload(caller, path, 60 << 20)
                for _ in range(50):
                    upload.send(bytes(1 << 20))
                upload.await_end()

        channel = self.channel(server)
        with Neighbour(channel) as neighbour, concurrent.futures.ThreadPoolExecutor(20) as pool:
            for sent in [pool.submit(send_most, path) for path in METHODS_WITH_FILES * 4]:
                sent.result()
        # While messages take all of gRPC's quota, it closes idle connections; clients try again.
        print(f"the neighbour: {len(neighbour.seconds)} calls, {len(neighbour.failures)} failures")
        self.assertTrue(all("UNAVAILABLE" in failure for failure in neighbour.failures), neighbour.failures)
        self.assertGreater(len(neighbour.seconds), 5 * len(neighbour.failures))
        self.assert_memory(server, before)
        stalled = {line["rpc"] for line in server.lines("refuse") if "sent no message for 1s" in line["error"]}
        print(f"stalled: {sorted(stalled)}; {len(server.lines('close_connection'))} connections were closed")
        self.assertTrue(stalled)
        with Neighbour(channel) as neighbour:
            time.sleep(1)
        neighbour.check(self)

    def test_a_slow_message_takes_longer_than_the_stall_timeout(self):
        server = self.serve("--stall_timeout=1s")
        array = np.zeros((4, 4), np.float32)
        message = api.sv.ExecuteRequest(operator=arrays.argmax(array, [1]),
                                        inputs=[array.tobytes()]).SerializeToString()
        data = b"\0" + len(message).to_bytes(4, "big") + message
        with self.connection(server) as caller:
            caller.send(http2.frame(http2.HEADERS, http2.END_HEADERS, 1,
                                    http2.request_fields(EXECUTE)))
            for i in range(0, len(data), 16):
                caller.send(http2.frame(http2.DATA, 0, 1, data[i:i + 16]))
                time.sleep(0.3)
            caller.send(http2.frame(http2.DATA, http2.END_STREAM, 1))
            line = server.wait_for(lambda line: line.get("event") in ("execute", "refuse"), 10)
        self.assertEqual((line["event"], line["code"]), ("execute", "OK"))

    def begin_silently(self, server, streams, begins):
        """Streams whose executions lack their input; returns how many the server then holds."""
        operator = arrays.argmax(np.zeros((4, 4), np.float32), [1])
        for _ in range(streams):
            stream = api.Stream(api.stub_of(self.own_channel(server)))
            self.addCleanup(stream.call.cancel)
            for execution in range(begins):
                stream.begin(execution, operator)
        stub = api.stub_of(self.channel(server))
        seen = [-1, 0]
        while seen[-1] != seen[-2] or seen[-1] == 0:
            time.sleep(0.3)
            statistics = stub.GetStatistics(api.sv.GetStatisticsRequest())
            seen.append(statistics.in_flight.executions)
        return seen[-1], stub.GetServerInfo(api.sv.GetServerInfoRequest()).limits

    def check_neighbour_of_silence(self, server):
        with Neighbour(self.channel(server)) as neighbour:
            time.sleep(3)
        neighbour.check(self)
        if not SANITIZED:
            self.assertLess(neighbour.percentile(0.9), 0.1)

    def test_a_few_streams_hold_a_part_of_the_server(self):
        server = self.serve()
        held, limits = self.begin_silently(server, streams=5, begins=4090)
        self.assertEqual(held, 5 * limits.max_executions_per_stream)
        self.assertLess(held, limits.max_executions // 2)
        self.check_neighbour_of_silence(server)

    def test_executions_without_input_yield_when_they_fill_the_server(self):
        server = self.serve()
        held, limits = self.begin_silently(server, streams=16, begins=1024)
        self.assertEqual(held, limits.max_executions)
        self.check_neighbour_of_silence(server)

    def test_reserved_bytes_without_input_yield(self):
        """Two begins reserve all of the memory for tensors."""
        server = self.serve()
        stub = api.stub_of(self.channel(server))
        limits = stub.GetServerInfo(api.sv.GetServerInfoRequest()).limits
        array = np.zeros((limits.max_bytes_in_flight // 2 // 4096 - 64, 1024), np.float32)
        stream = api.Stream(stub)
        for execution in range(2):
            stream.begin(execution, arrays.argmax(array, [1]))
        time.sleep(0.3)
        large = np.tile(np.arange(1024, dtype=np.float32), (1024, 1))
        answer = api.execute(stub, arrays.argmax(large, [1]), large.tobytes())
        self.assertTrue((arrays.array_of(answer) == 1023).all())
        execution, outcome = stream.next_end()
        self.assertEqual(execution, 0)
        self.assertIn("no input came", outcome.status.message)
        stream.call.cancel()

    def test_random_frames_do_no_harm(self):
        server = self.serve()
        before = server.status_bytes("VmRSS")
        seed = random.randrange(1 << 32)
        print(f"seed {seed}")
        chance = random.Random(seed)
        neighbour = Neighbour(self.channel(server))
        for _ in range(200):
            with self.connection(server) as attacker:
                try:
                    for _ in range(chance.randrange(1, 12)):
                        attacker.send(random_frames(chance))
                except OSError:
                    pass  # closed because of what it sent
                if chance.random() < 0.5:
                    attacker.is_closed(0.01)
            neighbour.call()
        self.assert_memory(server, before)


def random_frames(chance):
    """Some frames of one kind, or a few of each: mostly well formed, often not allowed where they
    stand."""
    stream = chance.choice((0, 1, 1, 3, 5, 2, 0x7FFFFFFF))
    count = chance.choice((1, 2, 100, 2000))
    fields = http2.request_fields(chance.choice((EXECUTE, "/x", "/grpc.health.v1.Health/Watch")))
    headers = http2.frame(http2.HEADERS, chance.choice((0, 1, 4, 5)), stream, fields)
    kind = chance.randrange(12)
    if kind == 0:
        settings = b"".join(chance.randrange(8).to_bytes(2, "big") +
                            chance.randrange(1 << 32).to_bytes(4, "big") for _ in range(6))
        return http2.frame(http2.SETTINGS, 0, 0, settings) * count
    if kind == 1:
        return http2.frame(http2.SETTINGS) * count
    if kind == 2:
        return http2.frame(http2.PING, 0, 0, bytes(8)) * count
    if kind == 3:
        return http2.frame(http2.PRIORITY, 0, stream, bytes(5)) * count
    if kind == 4:
        return http2.frame(http2.WINDOW_UPDATE, 0, stream,
                           chance.choice((1, 0, 0x7FFFFFFF)).to_bytes(4, "big")) * count
    if kind == 5:
        return headers + http2.frame(http2.CONTINUATION, 0, stream, TINY_FIELDS) * min(count, 100)
    if kind == 6:  # calls that are reset immediately
        return b"".join(
            http2.frame(http2.HEADERS, http2.END_HEADERS, 2 * i + 1, fields) +
            http2.frame(http2.RST_STREAM, 0, 2 * i + 1, (8).to_bytes(4, "big"))
            for i in range(count))
    if kind == 7:
        return http2.frame(http2.DATA, chance.choice((0, 1)), stream,
                           chance.randbytes(chance.randrange(4096))) * min(count, 20)
    if kind == 8:
        return http2.frame(http2.GOAWAY, 0, 0, bytes(8)) * count
    if kind == 9:  # invalid indices and sizes in a header block
        return http2.frame(http2.HEADERS, http2.END_HEADERS, stream,
                           chance.randbytes(chance.randrange(200)))
    if kind == 10:
        return http2.frame(chance.randrange(256), chance.randrange(256), stream,
                           chance.randbytes(chance.randrange(300)))
    return chance.randbytes(chance.randrange(1000))


class Tls(hostile.OverTls, HostileConnections):
    pass
