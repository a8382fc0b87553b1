"""Programs end at once without closing their clients, whatever happened to their servers."""

import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from server_process import ServerProcess

# From the end of the program's own code to the end of the process. An idle machine takes 0.1 s.
MOST_SECONDS = 2
# What hangs never ends.
HANGS_AFTER_SECONDS = 60

PROLOGUE = """
import asyncio, os, sys, time
import numpy as np
import opmill

x = np.ones((3, 4), np.float32)
big = np.ones((3, 1 << 20), np.float32)

def step(word):
    print(word, flush=True)
    sys.stdin.readline()

def lost(call):
    try:
        call()
    except opmill.Unavailable:
        return
    raise SystemExit("the call succeeded")

try:
    exec(sys.argv[2])
finally:
    print("end", time.monotonic(), flush=True)
"""


class Program:
    """A Python program that runs `source`, which stops at each step() until `go`."""

    def __init__(self, source, address):
        self._process = subprocess.Popen(
            [sys.executable, "-c", PROLOGUE, address, source], text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            start_new_session=True)

    def reaches(self, word):
        line = self._process.stdout.readline().strip()
        if line != word:
            raise AssertionError(f'"{line}" is not "{word}": {self._process.communicate()[1]}')

    def go(self):
        self._process.stdin.write("\n")
        self._process.stdin.flush()

    def end(self):
        """Waits for the end of the process. Returns its exit status and what it wrote to stderr."""
        try:
            written, errors = self._process.communicate(timeout=HANGS_AFTER_SECONDS)
        except subprocess.TimeoutExpired:
            raise AssertionError("the process does not end") from None
        done = written.splitlines()[-1]  # after the lines of forked processes
        seconds = time.monotonic() - float(done.removeprefix("end "))
        if seconds > MOST_SECONDS:
            raise AssertionError(f"the process took {seconds:.1f} s to end")
        return self._process.returncode, errors

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)  # with the processes that it has forked
        self._process.communicate()


class Exit(unittest.TestCase):
    def check(self, source, status=0, servers=1, killed=None, restart=False, errors="^"):
        """Kills `killed` of the servers, or all, at the step "connected", and starts one again if
        `restart`. Expects that the program ends."""
        folder = self.enterContext(tempfile.TemporaryDirectory())
        flags = [[f"--address=unix:{pathlib.Path(folder) / str(i)}"] if restart else []
                 for i in range(servers)]
        running = [ServerProcess(*flags[i], device="reference") for i in range(servers)]
        try:
            address = ",".join(server.address for server in running)
            with Program(source, address) as program:
                program.reaches("connected")
                for server in running[:servers if killed is None else killed]:
                    server.kill()
                program.go()
                if restart:
                    time.sleep(0.4)
                    running.append(ServerProcess(*flags[0], device="reference"))
                actual, written = program.end()
                self.assertEqual(actual, status, written)
                self.assertRegex(written, errors)
        finally:
            for server in running:
                server.kill()

    def test_a_lost_server(self):
        self.check("""
c = opmill.connect(sys.argv[1], max_attempts=2)
step("connected")
lost(lambda: c.sum(x))
""")

    def test_a_lost_server_and_a_large_input(self):
        self.check("""
c = opmill.connect(sys.argv[1], max_attempts=2)
step("connected")
lost(lambda: c.sum(big))
""")

    def test_a_server_that_has_come_back(self):
        self.check("""
c = opmill.connect(sys.argv[1], max_attempts=60)
step("connected")
c.sum(x)
""", restart=True)

    def test_several_servers(self):
        for killed in (1, 2):
            with self.subTest(killed=killed):
                self.check("""
c = opmill.connect(sys.argv[1], max_attempts=3)
step("connected")
try:
    for _ in range(5): c.sum(x)
except opmill.Unavailable:
    pass
""", servers=2, killed=killed)

    def test_asyncio(self):
        for array in ("x", "big"):
            for left in ("c", "None"):
                with self.subTest(array=array, left=left):
                    self.check(f"""
async def main():
    c = await opmill.aio.connect(sys.argv[1], max_attempts=2)
    step("connected")
    try:
        await c.sum({array})
    except opmill.Unavailable:
        return {left}
left = asyncio.run(main())
""")

    def test_asyncio_with_a_server_that_has_come_back(self):
        self.check("""
async def main():
    c = await opmill.aio.connect(sys.argv[1], max_attempts=60)
    step("connected")
    await c.sum(x)
asyncio.run(main())
""", restart=True)

    def test_forked_processes(self):
        """The child and the parent end; the child with the exit of Python."""
        for last in ("", "sys.exit(0)", "raise KeyError('enough')"):
            with self.subTest(last=last):
                self.check(f"""
c = opmill.connect(sys.argv[1], max_attempts=2)
step("connected")
lost(lambda: c.sum(x))
child = os.fork()
if child == 0:
    {last or 'pass'}
else:
    os.waitpid(child, 0)
""")

    def test_a_forked_process_cannot_use_the_client_of_its_parent(self):
        self.check("""
c = opmill.connect(sys.argv[1])
step("connected")
child = os.fork()
if child == 0:
    try:
        c.sum(x)
    except opmill.FailedPrecondition:
        sys.exit(12)
status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
c.sum(x)
sys.exit(status)
""", killed=0, status=12)

    def test_an_exception_at_the_top_level(self):
        self.check("""
c = opmill.connect(sys.argv[1], max_attempts=2)
step("connected")
c.sum(x)
""", status=1, errors="Unavailable")

    def test_an_exception_during_an_upload(self):
        self.check("""
c = opmill.connect(sys.argv[1], shared_memory="off")
def fail(sent, total):
    raise KeyError("enough")
step("connected")
c.sum(big, progress=fail)
""", status=1, killed=0, errors="enough")

    def test_calls_of_threads_that_are_not_waited_for(self):
        self.check("""
import threading
c = opmill.connect(sys.argv[1], shared_memory="off")
def work():
    while True:
        c.hardmax(big)
for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
step("connected")
""", killed=0)
