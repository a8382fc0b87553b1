"""The real opmill-server as a child process."""

import json
import os
import pathlib
import signal
import subprocess
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
_RELEASE = ROOT / "build" / "release"
SERVER = os.environ.get("OPMILL_SERVER_BINARY", str(_RELEASE / "server" / "opmill-server"))
CLI = os.environ.get("OPMILL_CLI_BINARY", str(_RELEASE / "client" / "opmill"))
# Shared by all servers of a test run if compiling is slow; by default each server starts without one.
_SHADER_CACHE = os.environ.get("OPMILL_TEST_SHADER_CACHE", "")
_FAULT_LAYER = os.environ.get("OPMILL_FAULT_LAYER",
                              str(_RELEASE / "tests" / "support" / "fault_layer"))
SANITIZED = bool(os.environ.get("OPMILL_SANITIZER"))

_START_SECONDS = 60
_STOP_SECONDS = 60


def plain_environment():
    """The environment without OPMILL_*, where both programs read values of their flags."""
    return {name: value for name, value in os.environ.items() if not name.startswith("OPMILL_")}


class DriverFaults:
    """Switches of tests/support/fault_layer.cc, in a folder, for servers with its `environment`."""

    def __init__(self, folder):
        self._folder = pathlib.Path(folder)
        self.environment = {"VK_ADD_LAYER_PATH": _FAULT_LAYER,
                            "VK_INSTANCE_LAYERS": "VK_LAYER_OPMILL_faults",
                            "FAULT_LAYER_SWITCHES": str(folder)}

    def begin(self, fault):
        (self._folder / fault).touch()

    def end(self, fault):
        (self._folder / fault).unlink()


class ServerProcess:
    """A server on a free port, which serves once it is constructed. Use it in `with`: the end of the
    block sends SIGTERM and expects exit status 0, unless `wait` was called before."""

    def __init__(self, *flags, device="software", environment=None, **popen):
        self._changed = threading.Condition()
        self._lines = []
        self._ended = False
        self._waited_for = False
        self._process = subprocess.Popen(
            [SERVER, "--address=127.0.0.1:0", f"--device={device}", "--log_format=json",
             f"--shader_cache={_SHADER_CACHE}", *flags],
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            env=plain_environment() | (environment or {}),
            text=True,
            errors="replace",
            **popen,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        try:
            self.address = self.wait_for(lambda line: line.get("event") == "serving")["address"]
        except AssertionError:
            self.kill()
            raise

    @property
    def pid(self):
        return self._process.pid

    def lines(self, event=None):
        """The log so far, one dictionary per line. Lines that are not JSON are under "text"."""
        with self._changed:
            return [line for line in self._lines if event in (None, line.get("event"))]

    def wait_for(self, accepts, seconds=_START_SECONDS):
        """Waits for a line that `accepts` returns true for, and returns the first one."""
        seen = 0
        found = []

        def search():
            nonlocal seen
            found.extend(line for line in self._lines[seen:] if accepts(line))
            seen = len(self._lines)
            return found or self._ended

        with self._changed:
            self._changed.wait_for(search, seconds)
            if not found:
                raise AssertionError(f"the server logged no such line, but {self._lines[-20:]}")
            return found[0]

    def wait_until(self, condition, seconds=120):
        until = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < until, self.lines()[-5:]
            time.sleep(0.01)

    def signal(self, number):
        self._process.send_signal(number)

    def wait(self, seconds=_STOP_SECONDS):
        """Waits for the exit status; minus the number of the signal that ended the process."""
        status = self._process.wait(seconds)
        self._reader.join(seconds)
        self._waited_for = True
        return status

    def kill(self):
        self._process.kill()
        self.wait()

    def open_descriptors(self):
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def threads(self):
        return len(os.listdir(f"/proc/{self.pid}/task"))

    def status_bytes(self, field):
        """A field of /proc/PID/status, such as VmRSS or VmHWM, in bytes."""
        status = (self._process_folder() / "status").read_text()
        for line in status.splitlines():
            if line.startswith(field + ":"):
                return int(line.split()[1]) * 1024
        raise AssertionError(f"there is no {field} in {status}")

    def _process_folder(self):
        if "OPMILL_WINE" not in os.environ:
            return pathlib.Path(f"/proc/{self.pid}")
        # The child is in_console.sh, and the server a process that Wine has started.
        mark = f"IN_CONSOLE={self.pid}".encode()
        for folder in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if ((folder / "comm").read_text().startswith("opmill-server")
                        and mark in (folder / "environ").read_bytes().split(b"\0")):
                    return folder
            except OSError:  # it has ended
                pass
        raise AssertionError(f"no server runs with {mark.decode()}")

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if self._waited_for:
            return
        self.signal(signal.SIGTERM)
        try:
            status = self.wait()
        except subprocess.TimeoutExpired:
            self.kill()
            raise
        if status != 0 and kind is None:
            raise AssertionError(f"the server's exit status is {status}; its last lines: "
                                 f"{self.lines()[-20:]}")

    def _read(self):
        for text in self._process.stderr:
            try:
                line = json.loads(text)
            except ValueError:
                line = {"text": text.rstrip("\n")}
            with self._changed:
                self._lines.append(line)
                self._changed.notify_all()
        with self._changed:
            self._ended = True
            self._changed.notify_all()
