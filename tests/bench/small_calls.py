"""Small calls: latency with one in flight, throughput with more, compared with gRPC without logic."""

import contextlib
import struct

from results import Chart, Part, Table, Target, between, number
from tools import (Program, afternoon_server, bare_server, opmill_server, quantile, ratios, spread)

BYTES = 4096
ARGMIN = ("arg_min{input{data_type:DATA_TYPE_FLOAT32,sizes:[1,1024]},axes:[1],"
          "axis_direction:AXIS_DIRECTION_INCREASING}")
EXPECTED = struct.pack("<I", 512).hex()  # where the client's pattern holds its 0
LOADS = (1, 8, 64, 512)


def kinds(options):
    found = {
        "bare unary": {"server": "bare", "kind": "Unary"},
        # Execute also answers with a stream.
        "bare, answer streamed": {"server": "bare", "kind": "StreamedAnswer"},
        "Execute": {"server": "opmill", "kind": "execute", "desc": ARGMIN, "expect": EXPECTED},
        "ModelInfer": {"server": "opmill", "kind": "infer", "model": "argmin",
                       "expect": EXPECTED},
        "ExecuteStream": {"server": "opmill", "kind": "stream", "desc": ARGMIN,
                          "expect": EXPECTED},
    }
    if options.has_afternoon:
        found["afternoon service"] = {"server": "afternoon", "kind": "afternoon",
                                      "operation": "argmin", "columns": 1024, "expect": EXPECTED}
    return found


def run(options):
    part = Part("small", data={"loads": []})
    milliseconds = 50 if options.tiny else 400 if options.quick else 800
    with contextlib.ExitStack() as stack:
        client = stack.enter_context(Program("load_client", "--allocator=tuned"))
        engine = stack.enter_context(Program("kernel_bench", "--commands", "--timestamps=false",
                                             f"--device={options.device}"))
        starts = {"opmill": lambda: opmill_server(options), "bare": lambda: bare_server("tuned")}
        if options.has_afternoon:
            starts["afternoon"] = afternoon_server
        for name, start in starts.items():
            client.ask("connect", server=name, target=stack.enter_context(start()).address)
        engine.ask("input", type="FLOAT32", sizes="1,1024")
        row = engine.ask("row", operator="argmin", axes="1")["row"]
        engine.ask("check", row=row)
        client.ask("transfer", server="opmill", kind="execute", bytes=BYTES, desc=ARGMIN)

        found = {}  # (kind, load): reports
        submit = []
        for i in range(options.repetitions):
            submit.append(engine.ask("submit", row=row, times=50 if options.tiny else 1000)["p50_s"])
            for load in LOADS[:2] if options.tiny else LOADS:
                order = list(kinds(options).items())
                for kind, words in order if i % 2 == 0 else reversed(order):
                    report = client.ask("load", concurrency=load, milliseconds=milliseconds,
                                        bytes=BYTES, **words)
                    found.setdefault((kind, load), []).append(report)
    tabulate(part, options, found, submit)
    aim(part, found, submit)
    draw(part, found)
    return part


def tabulate(part, options, found, submit):
    engine = spread(submit)
    table = Table("argmin of 4 KiB",
                  ["", "in flight", "calls/s", "10%..90%", "of bare", "p50 us", "p90 us", "p99 us",
                   "in a batch"])
    for (kind, load), reports in sorted(found.items(), key=lambda item: item[0][1]):
        rate = spread([report["calls_per_s"] for report in reports])
        of_bare = ratios([report["calls_per_s"] for report in reports],
                         [report["calls_per_s"] for report in found["bare unary", load]])
        latency = {name: quantile([report[name] for report in reports], 0.5)
                   for name in ("p50_s", "p90_s", "p99_s")}
        batch = quantile([report["mean_batch"] for report in reports], 0.5)
        table.rows.append([kind, str(load), number(rate, digits=0), between(rate, digits=0),
                           number(of_bare), *(f"{value * 1e6:.0f}" for value in latency.values()),
                           f"{batch:.1f}" if batch else ""])
        part.data["loads"].append({"kind": kind, "in_flight": load, "calls_per_s": rate,
                                   "of_bare": of_bare, "mean_batch": batch, **latency})
    part.data["submit_and_wait_s"] = engine
    table.notes.append(f"The engine's own submit-and-wait of the same: {number(engine, 1e6, 0)} us, "
                       f"{between(engine, 1e6, 0)}")
    options.show(part, table)


def aim(part, found, submit):
    def p50(kind):
        return [report["p50_s"] for report in found[kind, 1]]

    def rates(kind, load):
        return [report["calls_per_s"] for report in found[kind, load]]
    for kind in ("Execute", "ExecuteStream"):
        allowed = [bare + 2 * wait for bare, wait in zip(p50("bare unary"), submit)]
        part.targets.append(Target(f"p50 of {kind} at 1 / (bare unary + 2 x submit-and-wait)", 1,
                                   ratios(p50(kind), allowed), at_most=True))
        for load, bound, other in ((64, 0.5, "bare unary"), (64, 0.5, "bare, answer streamed"),
                                   (64, 3, "afternoon service")):
            if (other, load) in found:
                part.targets.append(Target(f"calls/s of {kind} at {load} / {other}", bound,
                                           ratios(rates(kind, load), rates(other, load))))
    if ("Execute", 64) in found:
        part.targets.append(Target("calls/s of ModelInfer at 64 / Execute", 0.9,
                                   ratios(rates("ModelInfer", 64), rates("Execute", 64))))


def draw(part, found):
    latency, throughput = {}, {}
    for (kind, load), reports in found.items():
        middle = quantile([report["p50_s"] for report in reports], 0.5)
        latency.setdefault(kind, []).append((load, middle * 1e6))
        rate = quantile([report["calls_per_s"] for report in reports], 0.5)
        throughput.setdefault(kind, []).append((load, rate))
    part.charts.append(Chart("argmin of 4 KiB: median latency against load", "lines", "us", latency,
                             "calls in flight"))
    part.charts.append(Chart("argmin of 4 KiB: calls a second against load", "lines", "calls/s",
                             throughput, "calls in flight"))
