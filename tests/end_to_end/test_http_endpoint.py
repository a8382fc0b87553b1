"""The HTTP endpoint with clients that send incomplete requests, do not read, or do not send HTTP."""

import contextlib
import select
import socket
import threading
import time
import unittest
import urllib.request

from server_process import ServerProcess

MOST_CONNECTIONS_OF_A_PEER = 64
MAX_HEADER_BYTES = 8192
REQUEST = b"GET %s HTTP/1.1\r\nHost: opmill\r\n\r\n"


class HttpEndpoint(unittest.TestCase):
    def setUp(self):
        self.server = self.enterContext(ServerProcess("--metrics_address=127.0.0.1:0",
                                                      device="reference"))
        host, port = self.server.lines("serving")[0]["metrics_address"].rsplit(":", 1)
        self.at = (host, int(port))

    def connect(self, **options):
        return self.enterContext(socket.create_connection(self.at, timeout=10, **options))

    def ask(self, request):
        """Returns the status line, the header fields and the body."""
        with socket.create_connection(self.at, timeout=10) as connection:
            connection.sendall(request)
            return answer_of(connection)

    def probe(self, page=b"/readyz"):
        """Seconds until the response arrived."""
        began = time.monotonic()
        status, _, body = self.ask(REQUEST % page)
        self.assertEqual((status, body), ("HTTP/1.1 200 OK", b"ready\n"))
        return time.monotonic() - began

    def probe_for(self, seconds):
        """The longest time of a probe."""
        until = time.monotonic() + seconds
        longest, count = 0, 0
        while time.monotonic() < until:
            longest = max(longest, self.probe())
            count += 1
            time.sleep(0.05)
        print(f"{count} probes, the longest {longest * 1000:.1f} ms")
        return longest

    def probe_beside(self, attack, stop):
        """While `attack` runs, until `stop` is set, each probe is answered within a second."""
        attacker = threading.Thread(target=attack)
        attacker.start()
        try:
            longest = self.probe_for(5)
        finally:
            stop.set()
            attacker.join()
        self.assertLess(longest, 1)

    def test_half_requests_delay_no_probe(self):
        stop = threading.Event()

        def attack():
            with contextlib.ExitStack() as held:
                while not stop.is_set():
                    connections = [held.enter_context(socket.create_connection(self.at))
                                   for _ in range(300)]
                    for each in connections:
                        with contextlib.suppress(OSError):  # closed to make room for another one
                            each.sendall(b"GET /readyz HTTP/1.1\r\nHost: ")
                    stop.wait(1)
                    held.close()

        self.probe_beside(attack, stop)

    def test_requests_that_are_not_read_delay_no_probe(self):
        """A thousand a second, from another address."""
        stop = threading.Event()

        def attack():
            with contextlib.ExitStack() as held:
                while not stop.wait(0.01):
                    for _ in range(10):
                        with contextlib.suppress(OSError):
                            connection = held.enter_context(socket.create_connection(
                                self.at, timeout=0.1, source_address=("127.0.0.9", 0)))
                            connection.sendall(REQUEST % b"/metrics")

        self.probe_beside(attack, stop)

    def test_a_peer_has_a_bound_and_the_oldest_half_request_goes_first(self):
        before = self.server.open_descriptors()
        held = [self.connect() for _ in range(MOST_CONNECTIONS_OF_A_PEER)]
        for each in held:
            each.sendall(b"GET /")
        self.probe()
        self.assertTrue(ended(held[0]))
        gone = select.select(held[1:], [], [], 0)[0]
        self.assertEqual(len(gone), 0)
        self.assertLessEqual(self.server.open_descriptors(), before + MOST_CONNECTIONS_OF_A_PEER)
        # The other connections time out, with a response that says so.
        status, _, _ = answer_of(held[-1])
        self.assertEqual(status, "HTTP/1.1 408 Request Timeout")

    def test_half_a_request_is_closed_after_two_seconds_however_it_trickles(self):
        connection = self.connect()
        began = time.monotonic()
        with contextlib.suppress(OSError):
            for byte in REQUEST % (b"/" + b"x" * 100):
                connection.sendall(bytes([byte]))
                if select.select([connection], [], [], 0.1)[0]:
                    break
        self.assertEqual(answer_of(connection)[0], "HTTP/1.1 408 Request Timeout")
        self.assertTrue(1.5 < time.monotonic() - began < 8, time.monotonic() - began)

    def test_a_client_that_does_not_read_is_closed_and_delays_no_probe(self):
        held = []
        for _ in range(2 * MOST_CONNECTIONS_OF_A_PEER):
            connection = self.enterContext(socket.socket())
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
            connection.settimeout(10)
            connection.connect(self.at)
            connection.sendall(REQUEST % b"/metrics")
            held.append(connection)
        self.assertLess(self.probe_for(2), 1)
        until = time.monotonic() + 15
        while self.server.open_descriptors() >= MOST_CONNECTIONS_OF_A_PEER:
            self.assertLess(time.monotonic(), until)
            time.sleep(0.05)

    def test_a_slow_reader_gets_all_of_it_in_time(self):
        connection = self.connect()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.sendall(REQUEST % b"/metrics")
        received = b""
        while chunk := connection.recv(4096):
            received += chunk
            time.sleep(0.01)
        header, _, body = received.partition(b"\r\n\r\n")
        self.assertEqual(len(body), int(fields_of(header)["content-length"]))
        self.assertTrue(body.endswith(b"\n"))

    def test_a_header_has_eight_kibibytes(self):
        fits = b"GET /readyz HTTP/1.1\r\nX: "
        fits += b"x" * (MAX_HEADER_BYTES - len(fits))
        self.assertEqual(self.ask(fits + b"\r\n\r\n")[0], "HTTP/1.1 200 OK")
        for header in (fits + b"x\r\n\r\n", fits + b"x" * 5000, fits + b"x" * (1 << 20)):
            status, _, body = self.ask(header)
            self.assertEqual(status, "HTTP/1.1 431 Request Header Fields Too Large")
            self.assertEqual(body, b"The header is longer than 8192 bytes.\n")

    def test_invalid_requests_get_an_error(self):
        for request in (b"", b"GET", b"GET /readyz", b"\x16\x03\x01", b"GET /readyz HTTP/2.0",
                        b"GET readyz HTTP/1.1", b" /readyz HTTP/1.1", b"GET  /readyz HTTP/1.1",
                        b"PRI * HTTP/2.0"):
            request += b"\r\n\r\n"
            self.assertEqual(self.ask(request)[0], "HTTP/1.1 400 Bad Request", request)
        self.assertEqual(self.ask(REQUEST % b"/no/such")[0], "HTTP/1.1 404 Not Found")
        status, fields, _ = self.ask(b"BREW /readyz HTTP/1.1\r\n\r\n")
        self.assertEqual((status, fields["allow"]),
                         ("HTTP/1.1 405 Method Not Allowed", "GET, HEAD"))

    def test_data_after_a_request_is_ignored(self):
        for rest in (REQUEST % b"/metrics", b"\0" * 100_000, b"x" * (1 << 20)):
            status, fields, body = self.ask(REQUEST % b"/readyz?verbose" + rest)
            self.assertEqual((status, body), ("HTTP/1.1 200 OK", b"ready\n"))
            self.assertEqual(fields["connection"], "close")
        # A request with an endless body is answered, and its connection is closed in time.
        connection = self.connect()
        connection.sendall(b"POST /readyz HTTP/1.1\r\nContent-Length: 1000000000\r\n\r\n")
        self.assertEqual(answer_of(connection)[0], "HTTP/1.1 405 Method Not Allowed")
        began = time.monotonic()
        with self.assertRaises(OSError):
            while time.monotonic() < began + 30:
                connection.sendall(b"x" * 1000)
                time.sleep(0.01)

    def test_head_has_the_header_alone(self):
        for page, end in ((b"/readyz", "200 OK"), (b"/metrics", "200 OK"),
                          (b"/x", "404 Not Found")):
            status, fields, body = self.ask(b"HEAD %s HTTP/1.0\r\n\r\n" % page)
            self.assertEqual((status, body), (f"HTTP/1.1 {end}", b""))
            self.assertGreater(int(fields["content-length"]), 0)

    def test_connections_that_say_nothing_leave_nothing(self):
        self.probe()
        before = self.server.open_descriptors()
        for _ in range(500):
            socket.create_connection(self.at, timeout=10).close()
        deadline = time.monotonic() + 5
        while self.server.open_descriptors() > before and time.monotonic() < deadline:
            time.sleep(0.05)
        self.assertLessEqual(self.server.open_descriptors(), before)

    def test_metrics_are_made_in_milliseconds(self):
        self.ask(REQUEST % b"/metrics")
        began = time.monotonic()
        for _ in range(100):
            self.ask(REQUEST % b"/metrics")
        each = (time.monotonic() - began) / 100
        print(f"{each * 1000:.2f} ms each")
        self.assertLess(each, 0.1)

    def test_serves_ipv6(self):
        if not has_ipv6():
            self.skipTest("This machine has no IPv6.")
        server = self.enterContext(ServerProcess("--metrics_address=[::1]:0", device="reference"))
        address = server.lines("serving")[0]["metrics_address"]
        self.assertRegex(address, r"^\[::1\]:[1-9][0-9]*$")
        with urllib.request.urlopen(f"http://{address}/readyz", timeout=10) as answer:
            self.assertEqual(answer.read(), b"ready\n")


def has_ipv6():
    try:
        with socket.socket(socket.AF_INET6) as one:
            one.bind(("::1", 0))
    except OSError:
        return False
    return True


def fields_of(header):
    lines = header.partition(b"\r\n\r\n")[0].decode().split("\r\n")[1:]
    pairs = (each.split(":", 1) for each in lines)
    return {name.lower(): value.strip() for name, value in pairs}


def ended(connection):
    """Whether the server has closed the connection. Unread bytes turn the close into a reset."""
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


def answer_of(connection):
    """Reads until the end; returns the status line, the header fields and the body."""
    received = b""
    while chunk := connection.recv(65536):
        received += chunk
    header, _, body = received.partition(b"\r\n\r\n")
    return header.split(b"\r\n")[0].decode(), fields_of(header), body
