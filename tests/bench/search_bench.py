"""Exact nearest-neighbour search on the processor beside FAISS, both with two threads. Rounds are interleaved.

    build/venv/bin/python tests/bench/search_bench.py --tool build/release/tests/bench/search_bench

It needs NumPy and faiss-cpu. Prints a row for each shape: medians in milliseconds, and the median ratio of
a round. FAISS is measured with its own kernels and with BLAS, for batches from 2 on; in each round the
faster one counts."""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import faiss
import numpy as np

SHAPES = ((1_000_000, 128), (200_000, 768))
METRICS = {"ip": 0, "l2": 1}
THREADS = 2


class Tool:
    def __init__(self, command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __call__(self, *words):
        print(*words, file=self.process.stdin, flush=True)
        return json.loads(self.process.stdout.readline())


def milliseconds(function):
    begin = time.perf_counter()
    result = function()
    return (time.perf_counter() - begin) * 1e3, result


def search_by_faiss(index, queries, k):
    """Milliseconds of the faster way, and the indices."""
    ways = []
    for least_batch in (len(queries) + 1, 1)[:len(queries)]:
        faiss.cvar.distance_compute_blas_threshold = least_batch
        ways.append(milliseconds(lambda: index.search(queries, k)[1]))
    return min(ways, key=lambda way: way[0])


def measure(tool, index, folder, queries, k, metric, rounds):
    """Milliseconds of FLOAT32, INT8 and FAISS for each round."""
    queries.tofile(folder / "queries")
    small = np.clip(np.round(queries * 32), -127, 127).astype(np.int8)
    small.tofile(folder / "queries8")
    rows = []
    for _ in range(rounds):
        ours = tool["float32"]("run", len(queries), k, METRICS[metric], THREADS, folder / "queries")
        int8 = tool["int8"]("run", len(queries), k, METRICS[metric], THREADS, folder / "queries8")
        theirs, found = search_by_faiss(index, queries, k)
        rows.append((ours["microseconds"] / 1e3, int8["microseconds"] / 1e3, theirs))
    agree = np.mean(np.array(ours["indices"]).reshape(-1, k) == found)
    return rows, agree


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tool", required=True)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--metric", choices=METRICS, default="ip")
    parser.add_argument("--queries", type=int, nargs="*", default=(1, 16, 256))
    parser.add_argument("--k", type=int, nargs="*", default=(10, 100))
    parser.add_argument("--shapes", type=int, nargs="*", default=(0, 1))
    options = parser.parse_args()
    faiss.omp_set_num_threads(THREADS)
    generator = np.random.default_rng(1)
    print("vectors           Q    k   float32     int8     FAISS   FAISS/float32  float32/int8  agree")
    for count, dims in (SHAPES[i] for i in options.shapes):
        vectors = generator.standard_normal((count, dims), np.float32)
        index = (faiss.IndexFlatIP if options.metric == "ip" else faiss.IndexFlatL2)(dims)
        index.add(vectors)
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            vectors.tofile(folder / "float32")
            np.clip(np.round(vectors * 32), -127, 127).astype(np.int8).tofile(folder / "int8")
            del vectors
            tools = {kind: Tool([options.tool]) for kind in ("float32", "int8")}
            for kind, tool in tools.items():
                tool("data", kind, count, dims, folder / kind)
            for batch in options.queries:
                for k in options.k:
                    queries = generator.standard_normal((batch, dims), np.float32)
                    rows, agree = measure(tools, index, folder, queries, k, options.metric, options.rounds)
                    ours, int8, theirs = map(statistics.median, zip(*rows))
                    ratio = statistics.median(row[2] / row[0] for row in rows)
                    gain = statistics.median(row[0] / row[1] for row in rows)
                    print(f"{count:8} x {dims:4} {batch:4} {k:4} {ours:9.2f} {int8:8.2f} {theirs:9.2f}   "
                          f"{ratio:8.2f}     {gain:9.2f}     {agree:.4f}", flush=True)
            for tool in tools.values():
                tool.process.stdin.close()
                tool.process.wait()


if __name__ == "__main__":
    sys.exit(main())
