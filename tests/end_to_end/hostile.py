"""What tests of hostile callers share: a server with a memory limit, in clear text or over TLS, and another
caller, which must not be affected."""

import os
import pathlib
import tempfile
import threading
import time

import grpc
import numpy as np

import api
import arrays
import http2
from certificates import Authority, write
from server_process import ServerProcess

MEMORY_LIMIT = 800 << 20
# By default the address sanitizer keeps 256 MiB of freed memory, which count as used.
ENVIRONMENT = {"ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":quarantine_size_mb=8"}
TOKEN = "alice-token-0123456789"
EXECUTE = "/opmill.v1.OperatorService/Execute"


class Neighbour:
    """Another caller, which makes calls of 4 KiB one after the other, in `with`."""

    def __init__(self, channel, metadata=()):
        self.stub = api.stub_of(channel)
        self.metadata = metadata
        self.seconds = []
        self.failures = []
        self._array = np.arange(1024, dtype=np.float32).reshape(32, 32)
        self._operator = arrays.argmax(self._array, [1])
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def call(self):
        begun = time.monotonic()
        request = api.sv.ExecuteRequest(operator=self._operator, inputs=[self._array.tobytes()])
        outcome = api.Outcome()
        for message in self.stub.Execute(request, timeout=30, metadata=self.metadata):
            outcome.add(message)
        assert (arrays.array_of(outcome) == 31).all()
        return time.monotonic() - begun

    def _run(self):
        while not self._stop.is_set():
            try:
                self.seconds.append(self.call())
            except grpc.RpcError as error:
                self.failures.append(str(error))
            self._stop.wait(0.002)

    def __enter__(self):
        self.call()
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join()

    def percentile(self, share):
        return sorted(self.seconds)[int(share * (len(self.seconds) - 1))]

    def check(self, test):
        """Expects that each of its calls succeeded."""
        test.assertEqual(self.failures, [])
        test.assertGreater(len(self.seconds), 0)
        print(f"the neighbour: {len(self.seconds)} calls, p50 {self.percentile(0.5) * 1e3:.1f} ms, "
              f"p99 {self.percentile(0.99) * 1e3:.1f} ms")


class Server:
    """Part of a test case, in clear text."""

    def setUp(self):
        self.authority = Authority("tests")
        self.files = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        write(self.files / "tokens", f"alice {TOKEN}\n".encode())
        self.authority.issue("server", ["localhost", "127.0.0.1"]).write(self.files, "server")

    def serve(self, *flags):
        return self.enterContext(ServerProcess(f"--memory_limit={MEMORY_LIMIT}", *flags,
                                               *self.tls_flags(), device="reference",
                                               environment=ENVIRONMENT))

    def tls_flags(self):
        return ()

    def connection(self, server, **options):
        return http2.Connection(server.address, **options)

    def channel(self, server):
        return self.enterContext(api.connect(server.address))

    def assert_memory(self, server, before, most=MEMORY_LIMIT):
        seen = server.status_bytes("VmHWM")
        print(f"resident: {before >> 20} MiB before, {seen >> 20} MiB at most")
        self.assertLess(seen, most)

    def own_channel(self, server):
        """A channel with its own connection."""
        return self.enterContext(grpc.insecure_channel(
            server.address, [("grpc.use_local_subchannel_pool", 1)]))


class OverTls:
    """Before Server among the parts of a test case."""

    def tls_flags(self):
        return (f"--tls_cert={self.files / 'server.crt'}", f"--tls_key={self.files / 'server.key'}")

    def connection(self, server, greets=True, **options):
        # Its handshake is done; it may send nothing afterwards.
        return http2.Connection(server.address, http2.tls_context(self.authority.certificate),
                                greets=greets, **options)

    def credentials(self):
        return grpc.ssl_channel_credentials(self.authority.certificate)

    def channel(self, server):
        return self.enterContext(grpc.secure_channel(
            server.address, self.credentials(), [("grpc.max_send_message_length", -1)]))

    def own_channel(self, server):
        return self.enterContext(grpc.secure_channel(
            server.address, self.credentials(), [("grpc.use_local_subchannel_pool", 1)]))
