"""Large tensors end to end, compared with the same bytes through gRPC without logic, and through a service
as a user would write it in an afternoon."""

import array
import contextlib

from results import Chart, Part, Table, Target, between, bytes_text, number
from tools import (OUTPUT, BenchError, Program, afternoon_server, bare_server, opmill_server, ratios,
                   rounds, spread)

COLUMNS = 8192
MIB = 1 << 20


def tensor(size):
    columns = min(COLUMNS, size // 4)
    return f"input{{data_type:DATA_TYPE_FLOAT32,sizes:[{size // 4 // columns},{columns}]}},axes:[1]"


def sum_of(size):
    return f"reduce{{function:REDUCE_FUNCTION_SUM,{tensor(size)}}}"


def hardmax_of(size):
    return f"hardmax{{{tensor(size)}}}"


# The client sends floats 512, ..., 1023, 0, ..., 511, repeated.
_PERIOD = 1024


def check_sums(size, path):
    columns = min(COLUMNS, size // 4)
    expected = array.array("f", [columns // _PERIOD * sum(range(_PERIOD))] * (size // 4 // columns))
    if path.read_bytes() != expected.tobytes():
        raise BenchError("The sums are wrong.")


def check_hardmax(size, path):
    columns = min(COLUMNS, size // 4)
    row = array.array("f", [0] * columns)
    row[_PERIOD // 2 - 1] = 1
    answer, row = path.read_bytes(), row.tobytes()
    if len(answer) != size or any(answer[i:i + len(row)] != row for i in range(0, size, len(row))):
        raise BenchError("The hardmax is wrong.")


class Transfers:
    """The clients and servers, connected."""

    def __init__(self, stack, options):
        self.tuned = stack.enter_context(Program("load_client", "--allocator=tuned"))
        self.default = stack.enter_context(Program("load_client", "--allocator=default"))
        opmill = stack.enter_context(opmill_server(options))
        bare = stack.enter_context(bare_server("tuned"))
        bare_default = stack.enter_context(bare_server("default"))
        self.tuned.ask("connect", server="opmill", target=opmill.address)
        self.tuned.ask("connect", server="bare", target=bare.address)
        self.default.ask("connect", server="bare", target=bare_default.address)
        self.has_afternoon = options.has_afternoon
        if self.has_afternoon:
            afternoon = stack.enter_context(afternoon_server())
            self.tuned.ask("connect", server="afternoon", target=afternoon.address)

    def seconds(self, client, server, kind, size, back=0, **words):
        """Returns a function that measures the seconds to send `size` bytes and receive `back` bytes."""
        def measurement():
            done = client.ask("transfer", server=server, kind=kind, bytes=size, **words)
            if done["received_bytes"] < back:
                raise BenchError(f"{server} {kind} answers {done['received_bytes']} bytes.")
            return done["seconds"]
        return measurement

    def reduce(self, size):
        return self.seconds(self.tuned, "opmill", "stream", size, desc=sum_of(size))

    def sink(self, size):
        return self.seconds(self.tuned, "bare", "Sink", size)

    def check(self, size):
        saved = OUTPUT / "answer.bin"
        for desc, check in ((sum_of(size), check_sums), (hardmax_of(size), check_hardmax)):
            self.tuned.ask("transfer", server="opmill", kind="stream", bytes=size, desc=desc,
                           save=saved)
            check(size, saved)
        saved.unlink()


def large(part, options, transfers):
    upload, both = (MIB, MIB // 2) if options.tiny else (256 * MIB, 128 * MIB)
    transfers.check(both)
    tuned = transfers.tuned
    measurements = {
        "opmill reduce": transfers.reduce(upload),
        "bare sink": transfers.sink(upload),
        "bare sink, defaults": transfers.seconds(transfers.default, "bare", "Sink", upload),
        "opmill hardmax": transfers.seconds(tuned, "opmill", "stream", both, both,
                                            desc=hardmax_of(both)),
        "bare in, then out": transfers.seconds(tuned, "bare", "InOut", both, both),
        "bare echo": transfers.seconds(tuned, "bare", "Echo", both, both),
        "bare source": transfers.seconds(tuned, "bare", "Source", upload, upload),
    }
    if transfers.has_afternoon:
        words = {"operation": "sum", "columns": COLUMNS if upload >= MIB else 1024}
        for kind, name in (("afternoon", "afternoon service, one message"),
                           ("afternoon_stream", "afternoon service, streamed")):
            measurements[name] = transfers.seconds(tuned, "afternoon", kind, upload, **words)
    for measurement in measurements.values():
        measurement()  # warms up
    seconds = rounds(options.repetitions, measurements)
    moved = {name: upload for name in seconds}
    moved |= {name: 2 * both for name in ("opmill hardmax", "bare in, then out", "bare echo")}
    table = Table(f"End to end: {bytes_text(upload)} in, or {bytes_text(both)} in and out",
                  ["", "ms", "10%..90%", "GB/s"])
    for name, values in seconds.items():
        value = spread(values)
        table.rows.append([name, number(value, 1e3, 1), between(value, 1e3, 1),
                           f"{moved[name] / value['median'] / 1e9:.2f}"])
        part.data["large"][name] = {"seconds": value, "bytes": moved[name]}
    options.show(part, table)

    def target(ours, other, bound):
        part.targets.append(Target(f"rate of {ours} / {other}", bound,
                                   ratios(seconds[other], seconds[ours])))
    target("opmill reduce", "bare sink", 0.9)
    target("opmill reduce", "bare sink, defaults", 1.3)
    target("opmill hardmax", "bare in, then out", 0.85)
    for name in seconds:
        if name.startswith("afternoon"):
            target("opmill reduce", name, 1.5)


def sizes(part, options, transfers):
    exponents = range(12, 21, 4) if options.tiny else range(12, 29 if options.quick else 31, 2)
    table = Table("Throughput against size, one execution at a time",
                  ["", "opmill reduce GB/s", "bare sink GB/s", "ratio", "10%..90%"])
    lines = {"opmill reduce": [], "bare sink": []}
    for size in (1 << exponent for exponent in exponents):
        measurements = {"opmill reduce": transfers.reduce(size), "bare sink": transfers.sink(size)}
        for measurement in measurements.values():
            measurement()
        # Short transfers get more rounds.
        count = options.repetitions * (1 if size > 16 * MIB or options.tiny else 10)
        seconds = rounds(count, measurements)
        rates = {name: size / spread(values)["median"] / 1e9 for name, values in seconds.items()}
        ratio = ratios(seconds["bare sink"], seconds["opmill reduce"])
        for name, rate in rates.items():
            lines[name].append((size, rate))
        table.rows.append([bytes_text(size), *(f"{rate:.3f}" for rate in rates.values()),
                           number(ratio), between(ratio)])
        part.data["sizes"].append({"bytes": size, "ratio": ratio, **{
            name: spread(values) for name, values in seconds.items()}})
    options.show(part, table)
    part.charts.append(Chart("End to end: throughput against size", "lines", "GB/s", lines,
                             "bytes"))


def run(options):
    part = Part("transport", data={"large": {}, "sizes": []})
    with contextlib.ExitStack() as stack:
        transfers = Transfers(stack, options)
        large(part, options, transfers)
        sizes(part, options, transfers)
    rates = [(name, entry["bytes"] / entry["seconds"]["median"] / 1e9)
             for name, entry in part.data["large"].items()]
    part.charts.insert(0, Chart("End to end: rate of large transfers, GB/s", "bars", "GB/s", {
        name: (rate, None) for name, rate in rates}))
    return part
