"""Who may call: TLS with real certificates, and bearer tokens, by grpcio and by our own client."""

import datetime
import pathlib
import subprocess
import tempfile
import time
import unittest

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

import api
from certificates import Authority, Pair, write
from server_process import CLI, SERVER, ServerProcess, plain_environment

HOSTS = ("localhost", "127.0.0.1")
SECOND = datetime.timedelta(seconds=1)
ALICE = "alice-token-0123456789"
BOB = "bob-token-0123456789abcdef"


def ask(channel, token=None):
    metadata = [("authorization", f"Bearer {token}")] if token else []
    return api.stub_of(channel).GetServerInfo(api.sv.GetServerInfoRequest(), timeout=10,
                                              metadata=metadata)


class AccessTest(unittest.TestCase):
    def setUp(self):
        self.files = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.authority = Authority("OpMill's tests")
        self.stranger = Authority("somebody else")

    def path(self, name):
        return str(self.files / name)

    def serve(self, *flags):
        return self.enterContext(ServerProcess(*flags, device="reference"))

    def serve_tls(self, *flags, pair=None):
        (pair or self.authority.issue("server", HOSTS)).write(self.files, "server")
        write(self.files / "ca.crt", self.authority.certificate)
        return self.serve(f"--tls_cert={self.path('server.crt')}",
                          f"--tls_key={self.path('server.key')}", *flags)

    def serve_mutual(self):
        write(self.files / "callers.crt", self.authority.certificate)
        return self.serve_tls(f"--tls_client_ca={self.path('callers.crt')}")

    def refuse_to_start(self, *flags):
        """Starts a server that must refuse its flags, and returns its error message."""
        ended = subprocess.run([SERVER, "--device=reference", "--address=127.0.0.1:0", *flags],
                               capture_output=True, text=True, timeout=60, check=False,
                               env=plain_environment())
        self.assertEqual(ended.returncode, 1, ended.stderr)
        return ended.stderr

    def channel(self, server, authority=None, pair=None, **options):
        pair = pair or Pair(None, None)
        credentials = grpc.ssl_channel_credentials((authority or self.authority).certificate,
                                                   pair.key, pair.certificate)
        return self.enterContext(grpc.secure_channel(server.address, credentials,
                                                     options=list(options.items())))

    def assert_unavailable(self, channel):
        with self.assertRaises(grpc.RpcError) as raised:
            ask(channel)
        self.assertEqual(raised.exception.code(), grpc.StatusCode.UNAVAILABLE)

    def assert_unauthenticated(self, channel, token, sentence):
        with self.assertRaises(grpc.RpcError) as raised:
            ask(channel, token)
        self.assertEqual(raised.exception.code(), grpc.StatusCode.UNAUTHENTICATED)
        self.assertIn(sentence, raised.exception.details())

    def opmill(self, server, *arguments, code=0, **environment):
        """Runs `opmill`, and returns what it prints."""
        ended = subprocess.run([CLI, *arguments, "--server", server.address], capture_output=True,
                               text=True, timeout=60, check=False,
                               env=plain_environment() | environment)
        self.assertEqual(ended.returncode, code, ended.stdout + ended.stderr)
        return ended.stdout + ended.stderr


class Tls(AccessTest):
    def test_serves_those_who_trust_its_authority(self):
        server = self.serve_tls()
        self.assertEqual(server.lines("serving")[0]["callers_need"], "tls")
        self.assertTrue(ask(self.channel(server)).version)
        self.opmill(server, "demo", "--tls_ca", self.path("ca.crt"))
        self.assertIn("SERVING", self.opmill(server, "health", "--tls_ca", self.path("ca.crt")))

    def test_is_rejected_by_those_who_do_not(self):
        server = self.serve_tls()
        self.assert_unavailable(self.channel(server, self.stranger))
        write(self.files / "stranger.crt", self.stranger.certificate)
        said = self.opmill(server, "info", "--tls_ca", self.path("stranger.crt"), code=3)
        self.assertIn("a certificate that was not accepted", said)
        self.assertTrue(ask(self.channel(server)).version)

    def test_is_known_by_the_name_in_its_certificate(self):
        server = self.serve_tls(pair=self.authority.issue("server", ["opmill.example"]))
        self.assert_unavailable(self.channel(server))
        said = self.opmill(server, "info", "--tls_ca", self.path("ca.crt"), code=3)
        self.assertIn("a certificate for another name", said)
        name = "opmill.example"
        ask(self.channel(server, **{"grpc.ssl_target_name_override": name}))
        self.opmill(server, "info", "--tls_ca", self.path("ca.crt"), "--tls_server_name", name)

    def test_is_refused_once_its_certificate_has_expired(self):
        pair = self.authority.issue("server", HOSTS, ends=6 * SECOND)
        until = time.monotonic() + 7
        server = self.serve_tls(pair=pair)
        ask(self.channel(server))
        time.sleep(max(0, until - time.monotonic()))
        self.assert_unavailable(self.channel(server, **{"grpc.use_local_subchannel_pool": 1}))
        said = self.opmill(server, "info", "--tls_ca", self.path("ca.crt"), code=3)
        self.assertIn("a certificate that was not accepted", said)

    def test_does_not_start_with_unusable_files(self):
        pair = self.authority.issue("server", HOSTS)
        other = self.authority.issue("server", HOSTS)
        expired = self.authority.issue("server", HOSTS, ends=-SECOND)
        early = self.authority.issue("server", HOSTS, begins=60 * SECOND)
        for name, good in (("server", pair), ("other", other), ("expired", expired),
                           ("early", early)):
            good.write(self.files, name)
        write(self.files / "no.crt", b"no PEM")
        write(self.files / "torn.crt", pair.certificate + other.certificate[:200])

        def said(certificate, key, *flags):
            return self.refuse_to_start(f"--tls_cert={self.path(certificate)}",
                                        f"--tls_key={self.path(key)}", *flags)

        self.assertIn("is not the key of the certificate in", said("server.crt", "other.key"))
        self.assertIn("and not now.", said("expired.crt", "expired.key"))
        self.assertIn("and not now.", said("early.crt", "early.key"))
        self.assertIn("holds no certificate in PEM.", said("no.crt", "server.key"))
        self.assertIn("cannot be read, after one that can be.", said("torn.crt", "server.key"))
        self.assertIn("holds no key in PEM", said("server.crt", "server.crt"))
        self.assertRegex(said("server.crt", "absent.key"),  # in the system's words
                         r"absent\.key cannot be read: (No such file or directory|File not found)\.")
        self.assertIn("--tls_client_ca", said("server.crt", "server.key",
                                              f"--tls_client_ca={self.path('no.crt')}"))

    def test_refuses_clear_text_with_a_reason(self):
        server = self.serve_tls()
        self.assert_unavailable(self.enterContext(api.connect(server.address)))
        said = self.opmill(server, "info", code=3)
        self.assertIn("it probably accepts only TLS", said)

    def test_takes_a_new_certificate_without_a_restart(self):
        server = self.serve_tls()
        before = self.channel(server)
        ask(before)
        renewed = Authority("the next one")
        renewed.issue("server", HOSTS).write(self.files, "server")
        server.wait_for(lambda line: line.get("event") == "reloaded")
        fresh = {"grpc.use_local_subchannel_pool": 1}
        self.assertTrue(ask(self.channel(server, renewed, **fresh)).version)
        self.assert_unavailable(self.channel(server, self.authority, **fresh))
        self.assertTrue(ask(before).version)  # its connection stays open

        # Unusable files change nothing.
        write(self.files / "server.key", self.authority.issue("server", HOSTS).key)
        line = server.wait_for(lambda line: line.get("event") == "not_reloaded")
        self.assertEqual(line["level"], "warning")
        self.assertIn("is not the key of the certificate", line["error"])
        self.assertTrue(ask(self.channel(server, renewed, **fresh)).version)
        # Usable files take effect again.
        self.authority.issue("server", HOSTS).write(self.files, "server")
        until = time.monotonic() + 30
        while len(server.lines("reloaded")) < 2 and time.monotonic() < until:
            time.sleep(0.1)
        self.assertTrue(ask(self.channel(server, **fresh)).version)


class ClearText(AccessTest):
    def test_refuses_tls_with_a_reason(self):
        server = self.serve()
        write(self.files / "ca.crt", self.authority.certificate)
        self.assert_unavailable(self.channel(server))
        said = self.opmill(server, "info", "--tls_ca", self.path("ca.crt"), code=3)
        self.assertIn("uses clear text, not TLS", said)


class MutualTls(AccessTest):
    def flags(self, name):
        return ["--tls_ca", self.path("ca.crt"), "--tls_cert", self.path(f"{name}.crt"),
                "--tls_key", self.path(f"{name}.key")]

    def test_serves_those_whose_certificate_it_knows(self):
        server = self.serve_mutual()
        pair = self.authority.issue("carol")
        pair.write(self.files, "carol")
        self.assertTrue(ask(self.channel(server, pair=pair)).version)
        self.assertIn("SERVING", self.opmill(server, "health", *self.flags("carol")))
        server.wait_for(lambda line: line.get("caller") == "carol", seconds=10)

    def test_refuses_all_others(self):
        server = self.serve_mutual()
        self.assert_unavailable(self.channel(server))
        said = self.opmill(server, "info", "--tls_ca", self.path("ca.crt"), code=3)
        self.assertIn("it probably requires a client certificate", said)
        expired = self.authority.issue("late", ends=-SECOND)
        strange = self.stranger.issue("mallory")
        for name, pair in (("late", expired), ("mallory", strange)):
            with self.subTest(name):
                pair.write(self.files, name)
                self.assert_unavailable(self.channel(server, pair=pair))
                self.opmill(server, "info", *self.flags(name), code=3)

    def test_takes_new_authorities_without_a_restart(self):
        server = self.serve_mutual()
        pair = self.stranger.issue("mallory")
        fresh = {"grpc.use_local_subchannel_pool": 1}
        self.assert_unavailable(self.channel(server, pair=pair, **fresh))
        write(self.files / "callers.crt", self.stranger.certificate)
        server.wait_for(lambda line: line.get("event") == "reloaded")
        self.assertTrue(ask(self.channel(server, pair=pair, **fresh)).version)
        self.assert_unavailable(
            self.channel(server, pair=self.authority.issue("carol"), **fresh))


class Tokens(AccessTest):
    def serve_tokens(self, *flags):
        write(self.files / "tokens", f"# who calls\nalice {ALICE}\n\nbob {BOB}\n".encode())
        return self.serve(f"--token_file={self.path('tokens')}", *flags)

    def test_are_required_by_every_method(self):
        server = self.serve_tokens()
        channel = self.enterContext(api.connect(server.address))
        service = api.sv.DESCRIPTOR.services_by_name["OperatorService"]
        self.assertGreater(len(service.methods), 4)
        for method in service.methods:
            with self.subTest(method.name), self.assertRaises(grpc.RpcError) as raised:
                call = channel.stream_stream(f"/{api.SERVICE}/{method.name}")
                for _ in call(iter([b""]), timeout=10):
                    pass
            self.assertEqual(raised.exception.code(), grpc.StatusCode.UNAUTHENTICATED)
            self.assertIn("authorization: Bearer", raised.exception.details())
        reflection = channel.stream_stream(
            "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo")
        with self.assertRaises(grpc.RpcError) as raised:
            list(reflection(iter([b""]), timeout=10))
        self.assertEqual(raised.exception.code(), grpc.StatusCode.UNAUTHENTICATED)
        # Health needs no token.
        health = health_pb2_grpc.HealthStub(channel)
        self.assertEqual(health.Check(health_pb2.HealthCheckRequest(), timeout=10).status,
                         health_pb2.HealthCheckResponse.SERVING)
        self.assertIn("SERVING", self.opmill(server, "health"))

    def test_let_in_those_who_show_one(self):
        server = self.serve_tokens()
        channel = self.enterContext(api.connect(server.address))
        for name, token in (("alice", ALICE), ("bob", BOB)):
            ask(channel, token)
            server.wait_for(lambda line, name=name: line.get("caller") == name, seconds=10)
        for token in (ALICE[:-1], ALICE + "x", ALICE.upper(), "x" * 2000):
            self.assert_unauthenticated(channel, token, "does not know the token")
        self.assert_unauthenticated(channel, None, "requires a token")
        self.assertNotIn(ALICE, str(server.lines()))

        self.opmill(server, "demo", OPMILL_TOKEN=BOB)
        write(self.files / "token", f"{ALICE}\n".encode())
        self.opmill(server, "stats", "--token_file", self.path("token"))
        self.assertIn("requires a token", self.opmill(server, "stats", code=1))
        self.assertIn("does not know the token", self.opmill(server, "stats", code=1, OPMILL_TOKEN="wrong"))
        write(self.files / "empty", b"\n")
        said = self.opmill(server, "stats", "--token_file", self.path("empty"), code=1)
        self.assertIn("must hold exactly one token", said)

    def test_change_without_a_restart(self):
        server = self.serve_tokens()
        channel = self.enterContext(api.connect(server.address))
        ask(channel, ALICE)
        write(self.files / "tokens", b"bob short\n")
        line = server.wait_for(lambda line: line.get("event") == "not_reloaded")
        self.assertIn("line 1 has a token of 5 characters; the least is 16.", line["error"])
        ask(channel, ALICE)
        carol = "carol-token-0123456789"
        write(self.files / "tokens", f"carol {carol}\n".encode())
        server.wait_for(lambda line: line.get("event") == "reloaded")
        ask(channel, carol)
        self.assert_unauthenticated(channel, ALICE, "does not know the token")

    def test_go_together_with_tls(self):
        write(self.files / "tokens", f"alice {ALICE}\n".encode())
        server = self.serve_tls(f"--token_file={self.path('tokens')}")
        self.assertEqual(server.lines("serving")[0]["callers_need"], "tls,token")
        credentials = grpc.composite_channel_credentials(
            grpc.ssl_channel_credentials(self.authority.certificate),
            grpc.access_token_call_credentials(ALICE))
        with grpc.secure_channel(server.address.replace("127.0.0.1", "localhost"),
                                 credentials) as channel:
            ask(channel)
        self.assert_unauthenticated(self.channel(server), None, "requires a token")
        self.opmill(server, "demo", "--tls_ca", self.path("ca.crt"), OPMILL_TOKEN=ALICE)

    def test_that_are_unusable_prevent_the_start(self):
        for text, sentence in ((b"", "it holds no token"), (b"\n# none\n", "it holds no token"),
                               (b"alice\n", "line 1 has 1 word;"),
                               (f"\na {ALICE}\nb {ALICE}\n".encode(),
                                "line 3 repeats the token of an earlier line.")):
            with self.subTest(text):
                write(self.files / "tokens", text)
                said = self.refuse_to_start(f"--token_file={self.path('tokens')}")
                self.assertIn(sentence, said)
                self.assertNotIn(ALICE, said)

    def test_do_not_leave_the_machine_in_clear_text(self):
        said = subprocess.run([CLI, "info", "--server", "192.0.2.1:50051"], capture_output=True,
                              text=True, timeout=60, check=False,
                              env=plain_environment() | {"OPMILL_TOKEN": ALICE})
        self.assertEqual(said.returncode, 1, said.stderr)
        self.assertIn("in clear text", said.stderr)
