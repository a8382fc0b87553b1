"""TLS, certificates of callers, and tokens."""

import pathlib
import tempfile
import unittest

import numpy as np
from certificates import Authority, write
from server_process import ServerProcess

import opmill

HOSTS = ("localhost", "127.0.0.1")
TOKEN = "token-0123456789abcdef"
X = np.arange(6, dtype=np.float32).reshape(2, 3)


class Access(unittest.TestCase):
    def setUp(self):
        self.files = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.authority = Authority("OpMill's tests")
        self.authority.issue("server", HOSTS).write(self.files, "server")
        write(self.files / "ca.crt", self.authority.certificate)
        write(self.files / "tokens", f"alice {TOKEN}\n".encode())

    def serve(self, *flags):
        return self.enterContext(ServerProcess(*flags, device="reference")).address

    def serve_tls(self, *flags):
        return self.serve(f"--tls_cert={self.files / 'server.crt'}",
                          f"--tls_key={self.files / 'server.key'}", *flags)

    def test_tls(self):
        address = self.serve_tls()
        for ca in (self.files / "ca.crt", str(self.files / "ca.crt"), self.authority.certificate):
            with opmill.connect(address, tls=opmill.Tls(ca)) as c:
                self.assertEqual(c.sum(X), 15)
        named = opmill.Tls(self.authority.certificate, server_name="localhost")
        with opmill.connect(address, tls=named) as c:
            self.assertEqual(c.sum(X), 15)
        other = opmill.Tls(Authority("somebody else").certificate)
        for tls, words in ((None, "accepts only TLS"), (True, "certificate that was not accepted"),
                           (other, "certificate that was not accepted")):
            with self.assertRaisesRegex(opmill.Unavailable, f"The server at {address} .*{words}"):
                opmill.connect(address, tls=tls)
        with self.assertRaisesRegex(opmill.Unavailable, "uses clear text, not TLS"):
            opmill.connect(self.serve(), tls=other)

    def test_certificates_of_callers(self):
        address = self.serve_tls(f"--tls_client_ca={self.files / 'ca.crt'}")
        pair = self.authority.issue("alice")
        ca = self.authority.certificate
        with opmill.connect(address, tls=opmill.Tls(ca, pair.certificate, pair.key)) as c:
            self.assertEqual(c.sum(X), 15)
        with self.assertRaises(opmill.Unavailable):
            opmill.connect(address, tls=opmill.Tls(ca))

    def test_tokens(self):
        address = self.serve_tls(f"--token_file={self.files / 'tokens'}")
        tls = opmill.Tls(self.authority.certificate)
        tokens = ["wrong-0123456789abcdef", TOKEN]
        with opmill.connect(address, tls=tls, token=lambda: tokens[-1]) as c:
            self.assertEqual(c.sum(X), 15)
            tokens.pop()
            with self.assertRaises(PermissionError) as raised:
                c.sum(X)
            self.assertEqual(raised.exception.code, "UNAUTHENTICATED")
            with self.assertRaises(opmill.Unauthenticated):
                c.sum(np.zeros((2, 1 << 20), np.float32))
        with self.assertRaises(opmill.Unauthenticated):
            opmill.connect(address, tls=tls)

    def test_a_token_does_not_leave_in_clear_text(self):
        address = self.serve(f"--token_file={self.files / 'tokens'}")
        with opmill.connect(address, token=TOKEN) as c:
            self.assertEqual(c.sum(X), 15)
        for target in ("elsewhere:50051", "dns:///elsewhere:1", f"{address},192.0.2.1:1"):
            with self.assertRaisesRegex(ValueError, "clear text"):
                opmill.connect(target, token=TOKEN)
