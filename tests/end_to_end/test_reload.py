"""SIGHUP: certificates and tokens are read again at once, and the log continues in a new file."""

import json
import pathlib
import signal
import subprocess
import tempfile
import time
import unittest

import grpc
import numpy as np

import api
import arrays
from certificates import Authority
from server_process import SERVER, ServerProcess, plain_environment

HOSTS = ("localhost", "127.0.0.1")
ALICE = "alice-token-0123456789"
BOB = "bob-token-0123456789abcdef"


def ask(channel, token):
    api.stub_of(channel).GetServerInfo(api.sv.GetServerInfoRequest(), timeout=10,
                                       metadata=[("authorization", f"Bearer {token}")])


class Reload(unittest.TestCase):
    def setUp(self):
        self.files = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.tokens = self.files / "tokens"

    def serve_tokens(self, *flags):
        self.tokens.write_text(f"alice {ALICE}\n", encoding="utf-8")
        return self.enterContext(ServerProcess(f"--token_file={self.tokens}", *flags,
                                               device="reference"))

    def reload(self, server, event, count):
        """Returns the seconds until the log has `count` lines of the event."""
        began = time.monotonic()
        server.signal(signal.SIGHUP)
        while len(server.lines(event)) < count:
            self.assertLess(time.monotonic() - began, 10, server.lines()[-5:])
            time.sleep(0.01)
        return time.monotonic() - began

    def test_reads_tokens_at_once_and_once(self):
        server = self.serve_tokens()
        channel = self.enterContext(api.connect(server.address))
        ask(channel, ALICE)
        seconds = []
        for count, tokens in enumerate((f"bob {BOB}", f"alice {ALICE}", f"bob {BOB}"), 1):
            self.tokens.write_text(f"{tokens}\n", encoding="utf-8")
            seconds.append(self.reload(server, "reloaded", count))
        # Watching the file would take at least a second. The best counts: tests share their machine.
        self.assertLess(min(seconds), 0.7)
        ask(channel, BOB)
        with self.assertRaises(grpc.RpcError) as raised:
            ask(channel, ALICE)
        self.assertEqual(raised.exception.code(), grpc.StatusCode.UNAUTHENTICATED)
        time.sleep(3)  # the watcher does not read them again
        self.assertEqual([line["what"] for line in server.lines("reloaded")], ["tokens"] * 3)
        self.assertEqual([line["code"] for line in server.lines("reload")], ["OK"] * 3)

    def test_reports_unusable_files_and_keeps_the_old_ones(self):
        server = self.serve_tokens()
        channel = self.enterContext(api.connect(server.address))
        self.tokens.write_text("bob short\n", encoding="utf-8")
        self.reload(server, "not_reloaded", 1)
        self.assertIn("line 1 has a token of 5 characters",
                      server.lines("not_reloaded")[0]["error"])
        ask(channel, ALICE)
        self.tokens.write_text(f"bob {BOB}\n", encoding="utf-8")
        server.wait_for(lambda line: line.get("event") == "reloaded")  # without a signal
        ask(channel, BOB)

    def test_reads_certificates_even_where_nothing_changed(self):
        authority = Authority("OpMill's tests")
        authority.issue("server", HOSTS).write(self.files, "server")
        server = self.serve_tokens(f"--tls_cert={self.files / 'server.crt'}",
                                   f"--tls_key={self.files / 'server.key'}")
        self.reload(server, "reloaded", 2)
        self.assertEqual({line["what"] for line in server.lines("reloaded")},
                         {"certificates", "tokens"})
        renewed = Authority("the next one")
        renewed.issue("server", HOSTS).write(self.files, "server")
        self.assertLess(self.reload(server, "reloaded", 4), 0.7)
        credentials = grpc.ssl_channel_credentials(renewed.certificate)
        with grpc.secure_channel(server.address, credentials) as channel:
            ask(channel, ALICE)

    def test_comes_many_times_and_while_draining(self):
        server = self.enterContext(ServerProcess(device="reference"))
        for count in range(1, 21):
            self.reload(server, "reload", count)
        values = np.zeros((4, 4), np.float32)
        data = arrays.data_of(values)
        stream = api.Stream(api.stub_of(self.enterContext(api.connect(server.address))))
        stream.begin(1, arrays.hardmax(values, [1]), [(0, 0, data[:8])])
        stream.begin(2, arrays.hardmax(values, [1]), [(0, 0, data)])
        self.assertEqual(stream.next_end()[0], 2)
        server.signal(signal.SIGTERM)
        server.wait_for(lambda line: line.get("event") == "draining")
        self.reload(server, "reload", 21)
        stream.send(1, [(0, 8, data[8:])])
        self.assertEqual(stream.next_end()[0], 1)  # it did not end the execution
        self.assertEqual(server.wait(), 0)


class LogFile(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.log = self.folder / "opmill.log"
        self.server = subprocess.Popen(
            [SERVER, "--address=127.0.0.1:0", "--device=reference", "--log_format=json",
             f"--log_file={self.log}"], env=plain_environment(), stdin=subprocess.DEVNULL)
        self.addCleanup(self.server.wait)
        self.addCleanup(self.server.kill)
        self.address = self.wait_for(self.log, "serving")["address"]

    def lines(self, path):
        if not path.is_file():
            return []
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]

    def wait_for(self, path, event):
        until = time.monotonic() + 30
        while time.monotonic() < until:
            for line in self.lines(path):
                if line["event"] == event:
                    return line
            time.sleep(0.02)
        self.fail(f"{path} has no {event}, but {self.lines(path)}")

    def answer(self):
        with api.connect(self.address) as channel:
            api.stub_of(channel).GetServerInfo(api.sv.GetServerInfoRequest(), timeout=10)

    def test_goes_on_in_a_new_file(self):
        self.answer()
        self.wait_for(self.log, "answer")
        rotated = self.folder / "opmill.log.1"
        self.log.rename(rotated)
        self.answer()  # lines before the signal go to the old file
        self.server.send_signal(signal.SIGHUP)
        self.assertEqual(self.wait_for(self.log, "reload")["code"], "OK")
        self.answer()
        self.wait_for(self.log, "answer")
        self.server.terminate()
        self.assertEqual(self.server.wait(30), 0)
        self.assertEqual([line["event"] for line in self.lines(rotated)],
                         ["serving", "answer", "answer"])
        self.assertEqual([line["event"] for line in self.lines(self.log)],
                         ["reload", "answer", "draining", "stopped"])

    def test_stays_where_it_is_if_there_is_no_new_one(self):
        rotated = self.folder / "opmill.log.1"
        self.log.rename(rotated)
        self.log.mkdir()
        self.server.send_signal(signal.SIGHUP)
        line = self.wait_for(rotated, "reload")
        self.assertEqual(line["level"], "warning")
        self.assertIn(f"{self.log} cannot be opened for writing", line["error"])
        self.answer()
        self.wait_for(rotated, "answer")

    def test_loses_no_line_to_the_change(self):
        with api.connect(self.address) as channel:
            stub = api.stub_of(channel)
            for count in range(1, 11):
                calls = [stub.GetServerInfo.future(api.sv.GetServerInfoRequest(), timeout=10)
                         for _ in range(20)]
                self.log.rename(self.folder / f"opmill.log.{count}")
                self.server.send_signal(signal.SIGHUP)
                for call in calls:
                    call.result()
                self.wait_for(self.log, "reload")
        self.server.terminate()
        self.assertEqual(self.server.wait(30), 0)
        events = [line["event"] for path in self.folder.iterdir() for line in self.lines(path)]
        self.assertEqual((events.count("answer"), events.count("reload")), (200, 10))
