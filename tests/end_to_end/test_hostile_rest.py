"""Callers that attack the HTTP listener. Other callers, of both listeners, must not be affected."""

import concurrent.futures
import contextlib
import gzip
import json
import socket
import struct
import time
import unittest

import numpy as np

import api
import hostile
import rest
from hostile import Neighbour
from server_process import SANITIZED

MOST_SECONDS = 10 if SANITIZED else 3
INFER = b"POST /v2/models/argmax/infer HTTP/1.1\r\nHost: x\r\n"


class RestNeighbour(Neighbour):
    """A neighbour that calls over HTTP too."""

    def __init__(self, server, channel):
        super().__init__(channel)
        self._server = server
        self._body = json.dumps({"parameters": {"axes": "1"}, "inputs": [
            rest.tensor("input", "FP32", [32, 32], np.arange(1024).tolist())]})

    def call(self):
        begun = time.monotonic()
        answer = rest.ask(self._server, "POST", "/v2/models/argmax/infer", self._body)
        assert answer.status == 200, answer.body
        seconds = time.monotonic() - begun
        return max(seconds, super().call())

    def _run(self):
        while not self._stop.is_set():
            try:
                self.seconds.append(self.call())
            except Exception as error:  # pylint: disable=broad-exception-caught
                self.failures.append(repr(error))
            self._stop.wait(0.002)


class HostileRest(hostile.Server, unittest.TestCase):
    def serve(self, *flags):
        return super().serve("--http_address=127.0.0.1:0", *flags)

    def neighbour(self, server):
        return RestNeighbour(server, self.channel(server))

    def refused(self, server, data, status, sentence=None):
        """Sends the bytes, and expects this answer and the end of the connection."""
        with rest.Raw(server) as attacker:
            with contextlib.suppress(OSError):
                attacker.send(data)
            answer = attacker.answer()
            self.assertIsNotNone(answer, data[:80])
            self.assertEqual(answer.status, status, answer.body)
            if sentence is not None:
                self.assertIn(sentence, answer.error)
            self.assertTrue(attacker.is_closed())

    def test_malformed_and_ambiguous_requests(self):
        """No proxy in front of the server sees another request than the server does."""
        server = self.serve()
        smuggled = b"\r\n\r\nGET /v2 HTTP/1.1\r\n\r\n"
        cases = {
            "two lengths": INFER + b"Content-Length: 5\r\nContent-Length: 6" + smuggled,
            "two equal lengths": INFER + b"Content-Length: 5\r\nContent-Length: 5" + smuggled,
            "length and chunked": INFER + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0" + smuggled,
            "chunked and length": INFER + b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0" + smuggled,
            "chunked twice": INFER + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0" + smuggled,
            "list of lengths": INFER + b"Content-Length: 5, 5" + smuggled,
            "signed length": INFER + b"Content-Length: +5" + smuggled,
            "negative length": INFER + b"Content-Length: -1" + smuggled,
            "hexadecimal length": INFER + b"Content-Length: 0x5" + smuggled,
            "huge length": INFER + b"Content-Length: 99999999999999999999999" + smuggled,
            "no length": INFER + b"Content-Length:" + smuggled,
            "space before the colon": INFER + b"Content-Length : 5" + smuggled,
            "NUL in a value": INFER + b"X: a\0b" + smuggled,
            "NUL in a name": INFER + b"X\0: a" + smuggled,
            "no name": INFER + b": a" + smuggled,
            "no colon": INFER + b"abc" + smuggled,
            "a carriage return alone": INFER + b"X: a\rb" + smuggled,
            "NUL in the path": b"GET /v2\0 HTTP/1.1" + smuggled,
            "no path": b"GET  HTTP/1.1" + smuggled,
            "HTTP/9": b"GET /v2 HTTP/9.9" + smuggled,
            "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
            "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(64) + b"\r\n\r\n",
            "bytes": bytes(range(256)) * 4 + b"\r\n\r\n",
            "a bad chunk": INFER + b"Transfer-Encoding: chunked\r\n\r\nxyz\r\n" + smuggled,
            "a negative chunk": INFER + b"Transfer-Encoding: chunked\r\n\r\n-5\r\n" + smuggled,
            "a huge chunk": INFER + b"Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n" + smuggled,
            "a chunk without an end": INFER + b"Transfer-Encoding: chunked\r\n\r\n1\r\nab\r\n0" + smuggled,
            "two tokens": INFER + b"Authorization: Bearer a\r\nAuthorization: Bearer b" + smuggled,
            "two header lengths": INFER + b"Inference-Header-Content-Length: 1\r\n" * 2 + b"Content-Length: 0"
                                  + smuggled,
        }
        for name, data in cases.items():
            with self.subTest(name):
                self.refused(server, data, 400)
        self.refused(server, INFER + b"Transfer-Encoding: gzip, chunked" + smuggled, 501)
        self.assertEqual([line for line in server.lines("answer") if line["rpc"] == "ServerMetadata"], [])

    def test_long_headers(self):
        server = self.serve()
        before = server.status_bytes("VmRSS")
        sentence = "The header of the request is longer than 16384 bytes."
        with self.neighbour(server) as neighbour:
            self.refused(server, INFER + b"X: " + b"a" * 20_000 + b"\r\n\r\n", 431, sentence)
            self.refused(server, INFER + b"a:b\r\n" * 20_000 + b"\r\n", 431, sentence)
            self.refused(server, b"GET /" + b"a" * 20_000 + b" HTTP/1.1\r\n\r\n", 431, sentence)
            with rest.Raw(server) as attacker:  # without an end
                begun = time.monotonic()
                with contextlib.suppress(OSError):
                    while time.monotonic() < begun + 30:
                        attacker.send(b"a: b\r\n" * 1000)
                self.assertLess(time.monotonic() - begun, MOST_SECONDS)
        neighbour.check(self)
        self.assert_memory(server, before, most=before + (100 << 20))

    def test_bodies_that_are_too_long(self):
        server = self.serve("--max_message_bytes=1MiB")
        self.refused(server, INFER + b"Content-Length: 1048577\r\n\r\n", 413, "has more than 1048576 bytes")
        self.refused(server, b"POST /v2/repository/index HTTP/1.1\r\nContent-Length: 70000\r\n\r\n", 413,
                     "has more than 65536 bytes")
        with rest.Raw(server) as attacker:  # without an end
            attacker.send(INFER + b"Transfer-Encoding: chunked\r\n\r\n")
            with contextlib.suppress(OSError):
                for _ in range(1000):
                    attacker.send(b"10000\r\n" + bytes(65536) + b"\r\n")
            self.assertEqual(attacker.answer().status, 413)

    def test_compression_bombs(self):
        server = self.serve()
        before = server.status_bytes("VmRSS")
        bomb = gzip.compress(bytes(1 << 30), 9)
        with self.neighbour(server) as neighbour, concurrent.futures.ThreadPoolExecutor(16) as pool:
            answers = [pool.submit(rest.ask, server, "POST", "/v2/models/argmax/infer", bomb,
                                   {"Content-Encoding": "gzip"}) for _ in range(32)]
            statuses = {each.result().status for each in answers}
        print(f"answers: {statuses}")
        self.assertLessEqual(statuses, {413, 429})
        self.assertIn(413, statuses)
        neighbour.check(self)
        self.assert_memory(server, before)
        for body in (bomb[:1000], b"not gzip", gzip.compress(b"{}") + b"more"):
            answer = rest.ask(server, "POST", "/v2/models/argmax/infer", body, {"Content-Encoding": "gzip"})
            self.assertEqual(answer.status, 400)
            self.assertIn("is not complete data of its Content-Encoding", answer.error)

    def test_json_that_takes_much_memory(self):
        server = self.serve()
        before = server.status_bytes("VmRSS")
        texts = [b'{"inputs":[' + b"[]," * 200_000 + b"[]]}", b'{"id":' + b"[" * 600_000,
                 b'{"inputs":[{"name":"input","datatype":"UINT8","shape":[300000],"data":['
                 + b"1," * 299_999 + b"1]}]}", b'{"parameters":{' + b",".join(b'"%d":1' % i for i in range(50_000)) + b"}}",
                 b"{" + b'"a":{' * 100_000]
        with self.neighbour(server) as neighbour, concurrent.futures.ThreadPoolExecutor(16) as pool:
            answers = [pool.submit(rest.infer, server, "argmax", text) for text in texts * 20]
            statuses = {each.result().status for each in answers}
        self.assertLessEqual(statuses, {400, 429})
        neighbour.check(self)
        self.assert_memory(server, before)
        self.assertEqual(rest.infer(server, "argmax", b" " * (16 << 20)).status, 413)

    def test_answers_that_take_much_memory(self):
        """As JSON they are several times as long as their tensors."""
        server = self.serve()
        before = server.status_bytes("VmRSS")
        array = np.full((1 << 18,), np.float32(-1.17549435e-38))
        header = json.dumps({"inputs": [{"name": "input", "datatype": "FP32", "shape": list(array.shape),
                                         "parameters": {"binary_data_size": array.nbytes}}]}).encode()

        def send(_):
            answer = rest.infer(server, "identity", header + array.tobytes(),
                                {"Inference-Header-Content-Length": str(len(header)), "Accept-Encoding": "gzip"})
            return answer.status

        with self.neighbour(server) as neighbour, concurrent.futures.ThreadPoolExecutor(32) as pool:
            statuses = list(pool.map(send, range(64)))
        print(f"answers: { {status: statuses.count(status) for status in statuses} }")
        self.assertLessEqual(set(statuses), {200, 429})
        self.assertIn(200, statuses)
        neighbour.check(self)
        self.assert_memory(server, before)

    def test_slow_headers_and_bodies_end(self):
        server = self.serve("--stall_timeout=1s")
        with rest.Raw(server) as slow, rest.Raw(server) as silent:
            slow.send(b"GET /v2 HTTP/1.1\r\nX: ")
            silent.send(INFER + b"Content-Length: 1000\r\n\r\nabc")
            self.assertEqual(silent.answer().status, 408)
            begun = time.monotonic()
            with contextlib.suppress(OSError):
                while time.monotonic() < begun + 12:
                    slow.send(b"a")
                    time.sleep(0.3)
            self.assertEqual(slow.answer().status, 408)

    def test_a_slow_body_takes_longer_than_the_stall_timeout(self):
        server = self.serve("--stall_timeout=1s")
        body = b'{"parameters":{"axes":"0"},"inputs":[{"name":"input","datatype":"FP32","shape":[2],"data":[1,2]}]}'
        with rest.Raw(server) as caller:
            caller.send(INFER + b"Content-Length: %d\r\n\r\n" % len(body))
            for i in range(0, len(body), 16):
                caller.send(body[i:i + 16])
                time.sleep(0.3)
            self.assertEqual(caller.answer().status, 200)

    def test_half_sent_bodies_yield(self):
        """Together they would take more than the server's memory."""
        server = self.serve()
        before = server.status_bytes("VmRSS")
        with self.neighbour(server) as neighbour, contextlib.ExitStack() as stack:
            attackers = [stack.enter_context(rest.Raw(server, f"127.0.0.{9 + i % 4}")) for i in range(40)]
            for attacker in attackers:
                attacker.socket.settimeout(0.5)
                with contextlib.suppress(OSError):
                    attacker.send(INFER + b"Content-Length: 60000000\r\n\r\n")
                    for _ in range(50):
                        attacker.send(bytes(1 << 20))
            time.sleep(1)
            # A large request of another caller gets through, after the slow ones are given up.
            array = np.zeros((16, 1 << 18), np.float32)
            header = json.dumps({"parameters": {"axes": "1"}, "inputs": [
                {"name": "input", "datatype": "FP32", "shape": [16, 1 << 18],
                 "parameters": {"binary_data_size": array.nbytes}}]}).encode()
            for _ in range(10):
                answer = rest.infer(server, "argmax", header + array.tobytes(),
                                    {"Inference-Header-Content-Length": str(len(header))})
                if answer.status == 200:
                    break
                self.assertEqual(answer.status, 429, answer.body)
                time.sleep(1)
            self.assertEqual(answer.status, 200)
        neighbour.check(self)
        self.assert_memory(server, before)

    def test_answers_that_are_not_read(self):
        server = self.serve("--stall_timeout=2s")
        before = server.status_bytes("VmRSS")
        array = np.zeros((1 << 22,), np.float32)
        header = json.dumps({"parameters": {"binary_data_output": True}, "inputs": [
            {"name": "input", "datatype": "FP32", "shape": list(array.shape),
             "parameters": {"binary_data_size": array.nbytes}}]}).encode()
        request = (b"POST /v2/models/negate/infer HTTP/1.1\r\nContent-Length: %d\r\n"
                   b"Inference-Header-Content-Length: %d\r\n\r\n" % (len(header) + array.nbytes, len(header))
                   + header + array.tobytes())
        with self.neighbour(server) as neighbour, contextlib.ExitStack() as stack:
            for i in range(20):
                attacker = stack.enter_context(rest.Raw(server, f"127.0.0.{9 + i % 4}", timeout=2))
                with contextlib.suppress(OSError):
                    attacker.send(request)
            time.sleep(4)
        neighbour.check(self)
        self.assert_memory(server, before)
        statistics = api.stub_of(self.channel(server)).GetStatistics(api.sv.GetStatisticsRequest())
        self.assertEqual(statistics.in_flight.executions, 0)

    def test_pipelined_floods(self):
        server = self.serve()
        before = server.status_bytes("VmRSS")
        flood = b"GET /v2/health/live HTTP/1.1\r\n\r\n" * 2000

        def send(i):
            with rest.Raw(server, f"127.0.0.{9 + i}", timeout=1) as attacker, contextlib.suppress(OSError):
                begun = time.monotonic()
                while time.monotonic() < begun + 3:
                    attacker.send(flood)  # and reads nothing

        with self.neighbour(server) as neighbour, concurrent.futures.ThreadPoolExecutor(8) as pool:
            list(pool.map(send, range(8)))
        neighbour.check(self)
        self.assert_memory(server, before, most=before + (100 << 20))

    def test_silent_connections_give_way(self):
        server = self.serve("--max_connections=40", "--max_connections_per_address=30")
        silent = [self.enterContext(rest.Raw(server, "127.0.0.9")) for _ in range(100)]
        begun = time.monotonic()
        with self.neighbour(server) as neighbour:
            silent += [self.enterContext(rest.Raw(server, f"127.0.0.{10 + i % 5}")) for i in range(200)]
            time.sleep(0.5)
        self.assertLess(time.monotonic() - begun, MOST_SECONDS + 1)
        neighbour.check(self)
        self.assertLess(sum(not each.is_closed(0.01) for each in silent), 41)

    def test_disconnects_cancel_what_runs(self):
        array = np.zeros((1 << 23,), np.float32)
        header = json.dumps({"parameters": {"axis": 0, "k": 1 << 20}, "inputs": [
            {"name": "input", "datatype": "FP32", "shape": [1 << 23],
             "parameters": {"binary_data_size": array.nbytes}}]}).encode()
        request = (b"POST /v2/models/top_k/infer HTTP/1.1\r\nContent-Length: %d\r\n"
                   b"Inference-Header-Content-Length: %d\r\n\r\n" % (len(header) + array.nbytes, len(header))
                   + header + array.tobytes())
        ways = {"reset": struct.pack("ii", 1, 0), "close": struct.pack("ii", 0, 0)}
        for way, linger in ways.items():
            with self.subTest(way):
                server = self.serve()  # a run of the reference device keeps its memory to its end
                caller = rest.Raw(server)
                caller.send(request)
                time.sleep(0.2)  # until it runs
                caller.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                caller.socket.close()
                line = server.wait_for(lambda line: line.get("event") == "execute", 60)
                self.assertEqual(line["code"], "CANCELLED")

    def test_many_connections_that_come_and_go(self):
        server = self.serve()
        with self.neighbour(server) as neighbour:
            for i in range(1500):
                with contextlib.suppress(OSError), socket.create_connection(rest.split(server), 5) as attacker:
                    attacker.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    attacker.sendall((b"", b"GET /v2 HTTP", INFER + b"Content-Length: 9\r\n\r\n{")[i % 3])
        neighbour.check(self)
        server.wait_until(lambda: server.open_descriptors() < 200, 20)


class OverTls(hostile.OverTls, hostile.Server, unittest.TestCase):
    def test_clear_text_and_half_handshakes(self):
        server = self.serve("--http_address=127.0.0.1:0")
        with Neighbour(self.channel(server)) as neighbour:
            with rest.Raw(server) as clear, rest.Raw(server) as half:
                clear.send(b"GET /v2 HTTP/1.1\r\n\r\n")
                self.assertTrue(clear.is_closed())
                half.send(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc")
                self.assertTrue(half.is_closed(12))
        neighbour.check(self)


if __name__ == "__main__":
    unittest.main()
