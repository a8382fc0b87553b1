"""How many searches a second a server answers for many callers of one query each, on the cpu device:

- same k: those which wait share a run,
- mixed k: each asks for 1, 5, 10 or 100; they share runs, too,
- masks: the same, and every second has a mask of its own,
- faiss: the same from a server of grpcio that calls IndexFlat for each request, if faiss-cpu is installed.

Rounds are interleaved. Checks that answers are the same.

    PYTHONPATH=python/src build/venv/bin/python tests/bench/search_serving.py"""

import argparse
import concurrent.futures
import importlib.util
import statistics
import subprocess
import sys
import threading
import time

import grpc
import numpy as np
import tools

import opmill

METHOD = "/search.Search/Search"
LEAST_K = 10
KS = (1, 5, 10, 100)


def serve_faiss(vectors, threads, callers):
    """Prints its address, and serves until its input ends."""
    import faiss

    faiss.omp_set_num_threads(threads)
    vectors = np.load(vectors)
    index = faiss.IndexFlatIP(vectors.shape[1])
    index.add(vectors)

    def search(message, _):
        k, queries = int.from_bytes(message[:4], "little"), np.frombuffer(message[4:], np.float32)
        return index.search(queries.reshape(1, -1), k)[1].tobytes()

    server = grpc.server(concurrent.futures.ThreadPoolExecutor(callers))
    server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(
        "search.Search", {"Search": grpc.unary_unary_rpc_method_handler(search)})])
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    print(f"127.0.0.1:{port}", flush=True)
    sys.stdin.read()


def load(callers, seconds, search):
    """Searches, those of a second, and the 99th percentile of their milliseconds. `search` gets the number of the caller."""
    times, end = [[] for _ in range(callers)], time.monotonic() + seconds

    def call(caller):
        while time.monotonic() < end:
            begin = time.perf_counter()
            search(caller)
            times[caller].append(time.perf_counter() - begin)

    threads = [threading.Thread(target=call, args=(caller,)) for caller in range(callers)]
    begin = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took, every = time.monotonic() - begin, sorted(sum(times, []))
    return len(every), len(every) / took, every[int(len(every) * 0.99)] * 1e3


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vectors", type=int, default=200_000)
    parser.add_argument("--dimensions", type=int, default=768)
    parser.add_argument("--callers", type=int, default=64)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=6)
    parser.add_argument("--serve-faiss")
    arguments = parser.parse_args()
    if arguments.serve_faiss:
        serve_faiss(arguments.serve_faiss, arguments.threads, arguments.callers)
        return

    tools.OUTPUT.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(5)
    vectors = random.standard_normal((arguments.vectors, arguments.dimensions), np.float32)
    queries = random.standard_normal((arguments.callers, arguments.dimensions), np.float32)
    server = tools.Server(tools.BUILD / "server" / "opmill-server", "--address=127.0.0.1:0", "--device=cpu",
                          "--log_format=json")
    with server, opmill.connect(server.address) as client:
        there = client.tensors.put("vectors", vectors)
        masks = random.random((arguments.callers, 1, arguments.vectors)) < 0.99

        def search(caller, k, mask=None):
            return client.search(queries[caller:caller + 1], there, k, mask=mask)[1]

        def mixed(caller):
            return KS[caller % len(KS)]

        ways = {"same k": lambda caller: search(caller, LEAST_K),
                "mixed k": lambda caller: search(caller, mixed(caller)),
                "masks": lambda caller: search(caller, mixed(caller), masks[caller] if caller % 2 else None)}
        peer = None
        if importlib.util.find_spec("faiss"):
            path = tools.OUTPUT / "vectors.npy"
            np.save(path, vectors)
            peer = subprocess.Popen([sys.executable, __file__, f"--serve-faiss={path}", f"--threads={arguments.threads}",
                                     f"--callers={arguments.callers}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            call = grpc.insecure_channel(peer.stdout.readline().decode().strip()).unary_unary(METHOD)
            k = LEAST_K.to_bytes(4, "little")
            ways["faiss"] = lambda caller: np.frombuffer(call(k + queries[caller].tobytes()), np.int64)
        try:
            wanted = [ways["same k"](caller).ravel() for caller in range(arguments.callers)]
            for name, way in ways.items():
                for caller in range(arguments.callers):
                    k = LEAST_K if name in ("same k", "faiss") else min(mixed(caller), LEAST_K)
                    if name != "masks" or caller % 2 == 0:
                        assert set(way(caller).ravel()[:k]) == set(wanted[caller][:k]), f"{name} finds other vectors"
            results = {name: [] for name in ways}
            for _ in range(arguments.rounds):
                for name, way in ways.items():
                    runs = client.statistics().device.runs
                    count, rate, p99 = load(arguments.callers, arguments.seconds, way)
                    runs = client.statistics().device.runs - runs
                    results[name].append((rate, p99, count / max(runs, 1)))
        finally:
            if peer is not None:
                peer.communicate()
        print("| way | searches/s | of the rounds | p99, ms | searches a run |\n|---|---|---|---|---|")
        for name, rounds in results.items():
            rates, p99s, shared = zip(*rounds)
            a_run = "" if name == "faiss" else f"{statistics.median(shared):.1f}"
            print(f"| {name} | {statistics.median(rates):.0f} | {min(rates):.0f} to {max(rates):.0f} | "
                  f"{statistics.median(p99s):.0f} | {a_run} |")


if __name__ == "__main__":
    main()
