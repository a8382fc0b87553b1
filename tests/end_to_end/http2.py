"""HTTP/2 frames over a socket, in clear text or TLS, for callers that violate the protocol."""

import socket
import ssl
import struct

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = (
    0, 1, 2, 3, 4, 6, 7, 8, 9)
END_STREAM, ACK, END_HEADERS = 1, 1, 4


def frame(kind, flags=0, stream=0, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(
        ">I", stream) + payload


def literal(name, value):
    """A header field without indexing, with its name spelled out (RFC 7541, 6.2.2)."""
    return b"\0" + _string(name) + _string(value)


def _string(text):
    assert len(text) < 127
    return bytes([len(text)]) + text


def request_fields(path, authority="localhost", extra=()):
    """The header block of a gRPC call."""
    fields = [(b":method", b"POST"), (b":scheme", b"http"), (b":path", path.encode()),
              (b":authority", authority.encode()), (b"content-type", b"application/grpc"),
              (b"te", b"trailers"), *extra]
    return b"".join(literal(name, value) for name, value in fields)


class Connection:
    """A connection that has sent its preface and, with `greets`, its SETTINGS. With `ssl_context` it
    uses TLS. `source` is its local address."""

    def __init__(self, address, ssl_context=None, greets=True, source="127.0.0.1", timeout=10):
        host, port = address.rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)), timeout, (source, 0))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if ssl_context is not None:
            self.socket = ssl_context.wrap_socket(self.socket, server_hostname="localhost")
        if greets:
            self.send(PREFACE + frame(SETTINGS))

    def send(self, data):
        self.socket.sendall(data)

    def is_closed(self, seconds=0.0):
        """Whether the server closes the connection within this time. Ignores what the server sends."""
        self.socket.settimeout(max(seconds, 0.001))
        try:
            while self.socket.recv(1 << 16):
                pass
            return True
        except TimeoutError:
            return False
        except OSError:
            return True

    def read_frame(self):
        """Kind, flags, stream and payload; None once the server has closed the connection."""
        header = self._read(9)
        payload = header and self._read(int.from_bytes(header[:3], "big"))
        if payload is None:
            return None
        return header[3], header[4], int.from_bytes(header[5:], "big"), payload

    def _read(self, count):
        data = b""
        while len(data) < count:
            more = self.socket.recv(count - len(data))
            if not more:
                return None
            data += more
        return data

    def close(self):
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Upload:
    """A call that sends as much of its message as the server's windows allow."""

    _INITIAL_WINDOW = 4  # of SETTINGS

    def __init__(self, connection, path, message_bytes):
        self.connection = connection
        self.is_open = True
        self._initial = 65535
        self._windows = {0: self._initial, 1: self._initial}
        connection.send(frame(HEADERS, END_HEADERS, 1, request_fields(path)))
        self.send(b"\0" + struct.pack(">I", message_bytes))

    def send(self, data):
        """Returns once all is sent, or the call has ended."""
        while data and self.is_open:
            room = min(16384, *self._windows.values())
            if room <= 0:
                self._react(self.connection.read_frame())
                continue
            part, data = data[:room], data[room:]
            self.connection.send(frame(DATA, 0, 1, part))
            for stream in self._windows:
                self._windows[stream] -= len(part)

    def await_end(self):
        while self.is_open:
            self._react(self.connection.read_frame())

    def _react(self, received):
        if received is None:
            self.is_open = False
            return
        kind, flags, stream, payload = received
        if kind == WINDOW_UPDATE:
            self._windows[stream] += int.from_bytes(payload, "big")
        elif kind == SETTINGS and not flags & ACK:
            for name, value in struct.iter_unpack(">HI", payload):
                if name == self._INITIAL_WINDOW:
                    self._windows[1] += value - self._initial
                    self._initial = value
            self.connection.send(frame(SETTINGS, ACK))
        elif kind == PING and not flags & ACK:
            self.connection.send(frame(PING, ACK, 0, payload))
        elif kind in (RST_STREAM, GOAWAY) or kind == HEADERS and flags & END_STREAM:
            self.is_open = False


def tls_context(authority):
    """Trusts the authority's PEM text and speaks HTTP/2."""
    context = ssl.create_default_context(cadata=authority.decode())
    context.set_alpn_protocols(["h2"])
    return context
