"""Runs the measuring programs and the measured servers; medians and spreads."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("OPMILL_BENCH_BUILD", ROOT / "build" / "release"))
OUTPUT = pathlib.Path(os.environ.get("OPMILL_BENCH_OUTPUT", ROOT / "build" / "bench"))
STUBS = OUTPUT / "stubs"
_START_SECONDS = 60


class BenchError(Exception):
    """A part cannot run, or returns a wrong result."""


def environment(**more):
    """The environment without OPMILL_*, from which opmill-server would read flags."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith("OPMILL_")}
    return {**plain, "GRPC_VERBOSITY": "ERROR", **more}


class Program:
    """A program of this folder that takes commands (tool.h). A context manager."""

    def __init__(self, name, *flags):
        self._name = name
        self._process = subprocess.Popen(
            [BUILD / "tests" / "bench" / name, *flags], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, env=environment(), text=True)

    def ask(self, verb, **words):
        line = " ".join([verb, *(f"{name}={value}" for name, value in words.items())])
        try:
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # what it printed says why
        answer = self._process.stdout.readline()
        if not answer:
            raise BenchError(f"{self._name} ended at '{line}' with {self._process.wait()}.")
        answer = json.loads(answer)
        if "error" in answer:
            raise BenchError(f"{self._name}, at '{line}': {answer['error']}")
        return answer

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


class Server:
    """A server that has logged {"event": "serving", "address": ...}. Its log goes to a file, because a
    reader of a pipe would compete for the processor. A context manager."""

    def __init__(self, *command, **more_environment):
        # Opened twice, because reading moves the position at which a shared file is written.
        written = tempfile.NamedTemporaryFile("ab", dir=OUTPUT)
        self._log = open(written.name, encoding="utf-8", errors="replace")
        begun = time.monotonic()
        with written:
            self._process = subprocess.Popen([str(word) for word in command], stderr=written,
                                             stdin=subprocess.DEVNULL,
                                             env=environment(**more_environment))
        while (address := self._address()) is None:
            if self._process.poll() is not None or time.monotonic() - begun > _START_SECONDS:
                self._process.kill()
                self._process.wait()
                self._log.seek(0)
                raise BenchError(f"{command[0]} does not serve: {self._log.read()[-2000:]}")
            time.sleep(0.001)
        self.start_seconds = time.monotonic() - begun
        self.address = address

    def _address(self):
        self._log.seek(0)
        for line in self._log:
            if '"serving"' in line and line.endswith("\n"):
                return json.loads(line)["address"]
        return None

    def memory(self, field="VmRSS"):
        """A field of /proc/PID/status, in bytes."""
        for line in pathlib.Path(f"/proc/{self._process.pid}/status").read_text().splitlines():
            if line.startswith(field + ":"):
                return int(line.split()[1]) * 1024
        raise BenchError(f"There is no {field}.")

    def processor_seconds(self):
        """Of all of its threads since its start, in hundredths."""
        fields = pathlib.Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._log.close()


def opmill_server(options, cache=None, **more_environment):
    """An opmill-server with default flags, except that the bench owns its cache."""
    cache = cache or OUTPUT / "cache"
    return Server(BUILD / "server" / "opmill-server", "--address=127.0.0.1:0",
                  f"--device={options.device}", "--log_format=json", f"--shader_cache={cache}",
                  **more_environment)


def bare_server(allocator):
    return Server(BUILD / "tests" / "bench" / "bare_server", f"--allocator={allocator}")


def afternoon_server():
    STUBS.mkdir(parents=True, exist_ok=True)
    here = pathlib.Path(__file__).parent
    subprocess.run([sys.executable, "-m", "grpc_tools.protoc", f"-I{here}", f"--python_out={STUBS}",
                    f"--grpc_python_out={STUBS}", "afternoon.proto"], check=True, cwd=here)
    return Server(sys.executable, here / "afternoon_server.py", STUBS)


def server_statistics(server):
    done = subprocess.run([BUILD / "client" / "opmill", "stats", "--json", "--server",
                           server.address], check=True, capture_output=True, env=environment())
    return json.loads(done.stdout)


def quantile(values, q):
    ordered = sorted(values)
    return ordered[round(q * (len(ordered) - 1))]


def spread(values):
    """The median, and the 10th and 90th percentiles."""
    return {"median": quantile(values, 0.5), "low": quantile(values, 0.1),
            "high": quantile(values, 0.9), "count": len(values)}


def ratios(numerators, denominators):
    """The ratios of numbers from the same round."""
    return spread([a / b for a, b in zip(numerators, denominators)])


# Measurements that take longer than this in total are repeated less often, but at least three times.
SLOW_SECONDS = 10


def is_enough(seconds, repetitions):
    """Whether these runs suffice."""
    return len(seconds) >= repetitions or (len(seconds) >= 3 and sum(seconds) > SLOW_SECONDS)


def rounds(repetitions, measurements):
    """Calls each function of `{name: function}` once per round, in reverse order every other round.
    Returns {name: its numbers}."""
    found = {name: [] for name in measurements}
    for i in range(repetitions):
        order = list(measurements)
        for name in order if i % 2 == 0 else reversed(order):
            found[name].append(measurements[name]())
    return found
