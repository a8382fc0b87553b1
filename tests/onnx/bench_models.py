"""How fast models are on the cpu device, beside ONNX Runtime: both in their own process, on the same number of
threads, a run of each after the other. Checks that the results agree. Prints a table for docs/models.md.

bench_models.py [--rounds=N] [--threads=N] [--fastest] [--programs=FOLDER] [NAME...]: models whose path has one of the
names. Times are medians of the rounds, or with --fastest, for a machine that is not idle, the fastest rounds."""

import argparse
import math
import pathlib
import statistics
import subprocess
import tempfile
import time

import models
import numpy as np
import onnxruntime

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Ours:
    def __init__(self, programs, model, threads, feeds, folder):
        self.folder = folder
        for i, feed in enumerate(feed for name, feed in feeds.items() if name not in model.values):
            (folder / f"in{i}").write_bytes(np.ascontiguousarray(feed).tobytes().ljust(4, b"\0"))
        self.process = subprocess.Popen(
            [programs / "onnx_run", f"--threads={threads}", model.path, *models.arguments(model)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.compiled_ms = float(self.process.stdout.readline().split()[1]) / 1000

    def run(self, runs, folder=""):
        """Milliseconds of the fastest."""
        self.process.stdin.write(f"{runs} {folder}\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline()) / 1000

    def results(self, like):
        self.run(1, self.folder)
        return [np.frombuffer((self.folder / f"out{i}").read_bytes()[:array.nbytes], array.dtype).reshape(array.shape)
                for i, array in enumerate(like)]

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def session_for(model, threads):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(str(model.path), options, providers=["CPUExecutionProvider"])


def timed(session, feeds, runs):
    fastest = math.inf
    for _ in range(runs):
        start = time.perf_counter()
        session.run(None, feeds)
        fastest = min(fastest, time.perf_counter() - start)
    return fastest * 1000


def error_of(got, wanted):
    """The largest difference, relative to the largest number."""
    largest = max(float(np.abs(wanted).max()), 1e-30)
    return float(np.abs(got.astype(np.float64) - wanted).max()) / largest


def measure(programs, model, threads, rounds, average):
    session = session_for(model, threads)
    feeds = models.feeds_of(session, model)
    expected = session.run(None, feeds)
    with tempfile.TemporaryDirectory() as folder:
        ours = Ours(programs, model, threads, feeds, pathlib.Path(folder))
        error = max(map(error_of, ours.results(expected), expected))
        once = max(ours.run(2), timed(session, feeds, 2))
        runs = max(1, min(20, round(20 / once)))  # that take 20 ms
        times = ([], [])
        for _ in range(rounds):
            times[0].append(ours.run(runs))
            time.sleep(0.02)
            times[1].append(timed(session, feeds, runs))
            time.sleep(0.1)  # the threads of ONNX Runtime 1.27 spin for 43 ms, and would have a core beside ours
        ours.close()
    return average(times[0]), average(times[1]), error, ours.compiled_ms


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--fastest", action="store_const", const=min, default=statistics.median, dest="average")
    parser.add_argument("--programs", type=pathlib.Path, default=ROOT / "build/release/tests/onnx")
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    models.fetch()
    ratios = []
    print("| model | OpMill, ms | ONNX Runtime, ms | speed | largest error | compiled in, ms |\n|---|---|---|---|---|---|")
    for model in models.MODELS:
        name = model.path.stem + "".join(f", {value}" for value in model.values.values())
        if arguments.names and not any(part in str(model.path) for part in arguments.names):
            continue
        ours, theirs, error, compiled = measure(arguments.programs, model, arguments.threads, arguments.rounds,
                                                arguments.average)
        ratios.append(theirs / ours)
        print(f"| {name} | {ours:.3g} | {theirs:.3g} | {ratios[-1]:.2f} | {error:.0e} | {compiled:.0f} |", flush=True)
    mean = math.exp(statistics.fmean(map(math.log, ratios)))
    print(f"\nGeometric mean {mean:.2f}, least {min(ratios):.2f}")


if __name__ == "__main__":
    main()
