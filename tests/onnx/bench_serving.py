"""How fast models are through the service, by both protocols. The client is tests/bench/load_client; it checks that all
answers have the same bits. Prints tables for docs/models.md.

bench_serving.py latency [NAME...]   one request in flight, beside ONNX Runtime in this process on as many threads
bench_serving.py batches [NAME...]   requests of one row, 32 in flight, with batches off and on
bench_serving.py wide [NAME...]      the same, of models that read more weights than they compute with (wide_models.py)
bench_serving.py cold [NAME...]      new servers: until a model is ready, its first inferences, with and without caches

Models whose path or name has one of the names. Rounds are interleaved; numbers are medians of the rounds."""

import argparse
import contextlib
import os
import pathlib
import shutil
import statistics
import sys
import tempfile
import time

import models
import numpy as np
import wide_models
from bench_models import ROOT, session_for
from tritonclient.grpc import service_pb2
from tritonclient.utils import np_to_triton_dtype

import opmill
from opmill._models import ModelCall

sys.path.insert(0, str(ROOT / "tests" / "bench"))
import tools  # noqa: E402

KINDS = {"Execute": "execute", "ModelInfer": "infer"}
# The parts of the paths of models that have any number of rows, with the sizes of a row.
ROWS = {"magika": [2048], "embedding_model": [76, 32, 1], "minilm": [16], "cls_infer": [3, 48, 192],
        "rec_infer": [3, 48, 320]}
BATCHES = {"off": "max_batch_size: 32", "on": "max_batch_size: 32 dynamic_batching { }"}
STARTS = (("cpu", ""), ("software", "empty"), ("software", "full"))  # devices, and the disk cache of shaders


class Bench:
    def __init__(self, stack, repository, arguments):
        tools.OUTPUT.mkdir(parents=True, exist_ok=True)
        self.folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
        self.rounds, self.milliseconds = arguments.rounds, arguments.milliseconds
        server = stack.enter_context(tools.Server(
            tools.BUILD / "server" / "opmill-server", "--address=127.0.0.1:0", "--device=cpu", "--log_format=json",
            f"--model_repository={repository}"))
        self.client = stack.enter_context(opmill.connect(server.address))
        self.load_client = stack.enter_context(tools.Program("load_client"))
        self.load_client.ask("connect", server="opmill", target=server.address)

    def prepare(self, name, feeds):
        """By protocol, the words of calls, whose results are those of the first one, and the seconds of one call."""
        served = self.client.model(name)
        call = ModelCall(served._info, "", feeds)
        infer = service_pb2.ModelInferRequest(model_name=name, raw_input_contents=[
            np.ascontiguousarray(feed).tobytes() for feed in feeds.values()])
        for key, feed in feeds.items():
            infer.inputs.add(name=key, datatype=np_to_triton_dtype(feed.dtype), shape=feed.shape)
        requests = {"Execute": self.client._request(call, {}).message(), "ModelInfer": infer.SerializeToString()}
        words = {}
        for protocol, message in requests.items():
            path = self.folder / f"{name}.{protocol}"
            path.write_bytes(message)
            words[protocol] = {"server": "opmill", "kind": KINDS[protocol], "request": path}
            for _ in range(2):  # the first call compiles
                called = self.load_client.ask("transfer", **words[protocol], save=f"{path}.answer")
            words[protocol]["expect_file"] = f"{path}.answer"
        return words, called["seconds"]

    def load(self, words, concurrency, seconds):
        """At least a few times as long as all of the calls in flight take."""
        milliseconds = round(max(self.milliseconds, 4000 * concurrency * seconds))
        return self.load_client.ask("load", **words, concurrency=concurrency, milliseconds=milliseconds)


def write(repository, name, model, config=""):
    folder = pathlib.Path(repository) / name / "1"
    folder.mkdir(parents=True)
    (folder / "model.onnx").symlink_to(model.path)
    if config:
        (folder.parent / "config.pbtxt").write_text(config)


def timed(session, feeds, milliseconds):
    times = []
    until = time.perf_counter() + milliseconds / 1000
    while not times or time.perf_counter() < until:
        start = time.perf_counter()
        session.run(None, feeds)
        times.append(time.perf_counter() - start)
    time.sleep(0.02)  # until the threads of ONNX Runtime no longer spin
    return statistics.median(times)


def between(values, scale=1.0):
    return f"{statistics.median(values) * scale:.3g} ({min(values) * scale:.3g} to {max(values) * scale:.3g})"


def latency(chosen, arguments):
    with contextlib.ExitStack() as stack:
        repository = stack.enter_context(tempfile.TemporaryDirectory())
        for i, model in enumerate(chosen):
            write(repository, f"model_{i}", model)
        bench = Bench(stack, repository, arguments)
        print("Medians of the rounds' p50 in ms (least to most).\n")
        print("| model | ONNX Runtime | Execute | ModelInfer | Execute more |\n|---|---|---|---|---|")
        for i, model in enumerate(chosen):
            session = session_for(model, os.cpu_count())
            feeds = models.feeds_of(session, model)
            words, seconds = bench.prepare(f"model_{i}", feeds)
            times = {name: [] for name in ("ONNX Runtime", *words)}
            for _ in range(arguments.rounds):
                times["ONNX Runtime"].append(timed(session, feeds, arguments.milliseconds))
                for protocol, each in words.items():
                    times[protocol].append(bench.load(each, 1, seconds)["p50_s"])
            name = model.path.stem + "".join(f", {value}" for value in model.values.values())
            more = statistics.median(times["Execute"]) - statistics.median(times["ONNX Runtime"])
            print(f"| {name} | {' | '.join(between(each, 1000) for each in times.values())} | {more * 1000:+.3f} |",
                  flush=True)
            session = None


def of_one_row(model, row):
    names = [tensor.name for tensor in session_for(model, 1).get_inputs()]
    return models.Model(model.package, model.file, model.nodes, {name: [1, *row] for name in names})


def batches(chosen, arguments):
    compare(arguments, [(part, of_one_row(model, row)) for part, row in ROWS.items() for model in chosen
                        if part in str(model.path)])


def wide(_, arguments):
    with tempfile.TemporaryDirectory() as folder:
        compare(arguments, [(name, model) for name, model in wide_models.write(folder).items()
                            if not arguments.names or any(part in name for part in arguments.names)])


def compare(arguments, rows):
    with contextlib.ExitStack() as stack:
        repository = stack.enter_context(tempfile.TemporaryDirectory())
        for part, model in rows:
            for state, config in BATCHES.items():
                write(repository, f"{part}_{state}", model, config)
        bench = Bench(stack, repository, arguments)
        print("Medians of the rounds in requests per second (least to most); how many requests shared a run.\n")
        print("| model | Execute off | on | ModelInfer off | on | in a run | on / off |\n|---|---|---|---|---|---|---|")
        for part, model in rows:
            feeds = models.feeds_of(session_for(model, 1), model)
            prepared = {state: bench.prepare(f"{part}_{state}", feeds) for state in BATCHES}
            rates = {(protocol, state): [] for protocol in KINDS for state in BATCHES}
            shared = []
            for number in range(-2, arguments.rounds):  # at first, programs of joined runs are made
                for protocol, state in rates:
                    words, seconds = prepared[state]
                    report = bench.load(words[protocol], 32, seconds)
                    if number < 0:
                        continue
                    rates[protocol, state].append(report["calls_per_s"])
                    if (protocol, state) == ("Execute", "on"):
                        shared.append(report["mean_batch"])
            gains = [statistics.median(rates[protocol, "on"]) / statistics.median(rates[protocol, "off"])
                     for protocol in KINDS]
            print(f"| {part} | {' | '.join(map(between, rates.values()))} | {statistics.median(shared):.1f} "
                  f"| {gains[0]:.2f}, {gains[1]:.2f} |", flush=True)


def start(folder, device, feeds):
    """Starts a server with the model of `folder`. Returns for each phase its seconds and how many processors it uses."""
    phases = []
    begun = time.perf_counter()
    with tools.Server(tools.BUILD / "server" / "opmill-server", "--address=127.0.0.1:0", f"--device={device}",
                      "--log_format=json", f"--shader_cache={folder / 'cache'}",
                      f"--model_repository={folder / 'repository'}",
                      MESA_SHADER_CACHE_DIR=str(folder / "cache" / "driver")) as server:
        used = 0

        def end(begun):
            nonlocal used
            seconds, before, used = time.perf_counter() - begun, used, server.processor_seconds()
            phases.append((seconds, (used - before) / seconds))

        end(begun)  # it serves when its models are ready
        with opmill.connect(server.address) as client:
            model = client.model("model")
            used = server.processor_seconds()
            for feed in [*feeds, *10 * feeds[:1]]:
                begun = time.perf_counter()
                model(**feed)
                end(begun)
        compiled = int(tools.server_statistics(server)["device"]["shaders_compiled"])
    return phases, compiled


def cold(chosen, arguments):
    tools.OUTPUT.mkdir(parents=True, exist_ok=True)
    print("Milliseconds: medians of the rounds (least to most); processors used meanwhile.\n")
    print("| model | device | cache | ready | first inference | other sizes | cached | kernels |\n" + 8 * "|---" + "|")
    for model in chosen:
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            write(folder / "repository", "model", model)
            session = session_for(model, 1)
            feeds = [models.feeds_of(session, each) for each in (model, *model.of_sizes()[1:][-1:])]
            session = None
            rounds = {each: [] for each in STARTS}
            for _ in range(arguments.rounds):
                shutil.rmtree(folder / "cache", ignore_errors=True)
                for each in STARTS:
                    rounds[each].append(start(folder, each[0], feeds))
        for (device, cache), found in rounds.items():
            first = [f"{between([phases[i][0] for phases, _ in found], 1000)}; "
                     f"{statistics.median(phases[i][1] for phases, _ in found):.2f}" for i in range(1 + len(feeds))]
            cached = [statistics.median(seconds for seconds, _ in phases[1 + len(feeds):]) for phases, _ in found]
            cells = [model.path.stem, device, cache, *first, *["" for _ in range(3 - len(first))],
                     between(cached, 1000), found[-1][1]]
            print(f"| {' | '.join(map(str, cells))} |", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=("latency", "batches", "wide", "cold"))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--milliseconds", type=int, default=500)
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_intermixed_args()
    models.fetch()
    chosen = [model for model in models.MODELS
              if not arguments.names or any(name in str(model.path) for name in arguments.names)]
    {"latency": latency, "batches": batches, "wide": wide, "cold": cold}[arguments.what](chosen, arguments)


if __name__ == "__main__":
    main()
