"""What tests of the HTTP listener share: raw connections, and requests by http.client."""

import http.client
import json
import socket
import urllib.parse

from server_process import ServerProcess


def serve(*flags, device="reference", **options):
    """A server with an HTTP listener at a free port."""
    return ServerProcess("--http_address=127.0.0.1:0", *flags, device=device, **options)


def address_of(server):
    """host:port of its HTTP listener."""
    return server.wait_for(lambda line: line.get("event") == "serving")["http_address"]


def split(server):
    host, port = address_of(server).rsplit(":", 1)
    return host, int(port)


class Answer:
    def __init__(self, status, fields, body):
        self.status = status
        self.fields = {name.lower(): value for name, value in fields}
        self.body = body

    def json(self):
        return json.loads(self.body)

    @property
    def error(self):
        return self.json()["error"]


def ask(server, verb, path, body=None, fields=None, timeout=60):
    """One request on a connection of its own."""
    connection = http.client.HTTPConnection(*split(server), timeout=timeout)
    try:
        connection.request(verb, path, body, fields or {})
        response = connection.getresponse()
        return Answer(response.status, response.getheaders(), response.read())
    finally:
        connection.close()


def infer(server, model, request, fields=None, **options):
    text = request if isinstance(request, (bytes, str)) else json.dumps(request)
    return ask(server, "POST", f"/v2/models/{urllib.parse.quote(model)}/infer", text, fields, **options)


def tensor(name, datatype, shape, data):
    return {"name": name, "datatype": datatype, "shape": shape, "data": data}


class Raw:
    """A connection that sends any bytes, in `with`."""

    def __init__(self, server, source="127.0.0.1", timeout=30):
        self.socket = socket.create_connection(split(server), timeout, (source, 0))
        self.received = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)

    def answer(self):
        """The next answer; None if the connection ends before it."""
        while b"\r\n\r\n" not in self.received:
            if not self._receive():
                return None
        header, _, self.received = self.received.partition(b"\r\n\r\n")
        lines = header.decode().split("\r\n")
        fields = [tuple(part.strip() for part in line.split(":", 1)) for line in lines[1:]]
        status = int(lines[0].split()[1])
        size = int(dict((name.lower(), value) for name, value in fields).get("content-length", 0))
        while len(self.received) < size:
            if not self._receive():
                return None
        body, self.received = self.received[:size], self.received[size:]
        return Answer(status, fields, body)

    def is_closed(self, seconds=10):
        """Whether the server ends the connection within the time, possibly after more answers."""
        self.socket.settimeout(seconds)
        try:
            while self._receive():
                pass
        except TimeoutError:
            return False
        return True

    def _receive(self):
        try:
            data = self.socket.recv(65536)
        except ConnectionError:
            return False
        self.received += data
        return bool(data)
