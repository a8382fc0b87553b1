"""Operators on the GPU, compared with its read kernel or copy, and with PyTorch on the same GPU. All
times are the GPU's own, between two timestamps, less the time between two timestamps with nothing between
them."""

import importlib.util
import statistics

from kernels import ALL, FIRST, LAST, MIDDLE, Group, Row, cross, random_array, selected
from results import Chart, Part, Table, number
from tools import OUTPUT, BenchError, Program, ratios, spread

OPERATORS = ["sum", "max", "l2", "argmin", "log_sum_exp", "hardmax"]
NARROW = ["max", "argmin"]
RANKS = (1, 10, 100, 1000)
GROUPS = [
    Group("FLOAT32", (8192, 8192), cross(OPERATORS, [LAST, FIRST, ALL])
          + [Row("top_k", axes, k) for axes in (FIRST, LAST) for k in RANKS]),
    Group("FLOAT32", (64, 1024, 1024), cross(OPERATORS, [MIDDLE])
          + [Row("top_k", axes, 10) for axes in (MIDDLE, (2,))]),
    Group("FLOAT32", (1024, 50257), [Row("top_k", LAST, k) for k in RANKS]),
    Group("FLOAT32", (64, 1048576), [Row("top_k", LAST, k) for k in RANKS]),
    Group("FLOAT32", (1, 67108864), [Row("top_k", LAST, k) for k in RANKS]),
    Group("FLOAT32", (65536, 128), [Row("top_k", LAST, 10), Row("top_k", LAST, 128)]),
    Group("FLOAT32", (64, 64), cross(["sum"], [LAST])),  # what a run takes at least
    Group("FLOAT32", (1048576, 64), cross(OPERATORS, [LAST])),
    Group("FLOAT32", (65536, 1024), cross(OPERATORS, [LAST])),
    Group("FLOAT16", (8192, 16384), cross(["sum", "log_sum_exp", "hardmax"] + NARROW, [LAST, FIRST, ALL])
          + [Row("top_k", LAST, 10)]),
    Group("INT8", (16384, 16384), cross(NARROW, [LAST, FIRST, ALL]) + [Row("top_k", LAST, 10)]),
]
EMPTY_RUNS = 15
SPIN_CYCLES = 1_000_000  # of the GPU, while the host submits what is measured


def torch_call(row, data):
    """Returns a function without arguments that computes the row with PyTorch."""
    import torch  # pylint: disable=import-outside-toplevel
    axes = row.axes
    flat = len(axes) == data.dim()  # some take one axis or all

    def argmin():
        return data.argmin() if flat else data.argmin(axes[0])

    def hardmax():
        view, axis = (data.reshape(-1), 0) if flat else (data, axes[0])
        return torch.zeros_like(view).scatter_(axis, view.argmax(axis, keepdim=True), 1)

    return {
        "sum": lambda: data.sum(axes),
        "max": lambda: data.amax(axes),
        "l2": lambda: torch.linalg.vector_norm(data, 2, axes),
        "log_sum_exp": lambda: torch.logsumexp(data, axes),
        "argmin": argmin,
        "hardmax": hardmax,
        "top_k": lambda: torch.topk(data, row.k, axes[0]),
    }[row.operator]


def has_torch():
    if importlib.util.find_spec("torch") is None:
        return False
    import torch  # pylint: disable=import-outside-toplevel
    return torch.cuda.is_available()


class Torch:
    """PyTorch on one tensor. As before a run of OpMill, the input has just been copied to the GPU,
    whose cache has its end."""

    def __init__(self, array):
        import torch  # pylint: disable=import-outside-toplevel
        self._torch = torch
        self._host = torch.from_numpy(array).pin_memory()
        self.data = self._host.cuda()
        self.empty = statistics.median(self._between(lambda: None) for _ in range(EMPTY_RUNS))

    def prepare(self, row):
        """Returns a function that computes the row and returns its seconds. It has run once."""
        call = torch_call(row, self.data)
        self._seconds(call)
        return lambda: self._seconds(call)

    def _seconds(self, call):
        return self._between(call) - self.empty

    def _between(self, call):
        cuda = self._torch.cuda
        self.data.copy_(self._host, non_blocking=True)
        begun, ended = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
        cuda._sleep(SPIN_CYCLES)  # pylint: disable=protected-access
        begun.record()
        call()
        ended.record()
        cuda.synchronize()
        return begun.elapsed_time(ended) / 1e3


def empty_of(bench):
    """Seconds between two timestamps that follow each other."""
    row = bench.ask("row", operator="empty")["row"]
    return statistics.median(bench.ask("run", row=row)["device_s"] for _ in range(EMPTY_RUNS))


def measure(bench, row, theirs, limit, empty, options):
    number_of_row = bench.ask("row", **row.words())["row"]
    if options.checks:
        bench.ask("check", row=number_of_row)
    note, peer = None, None
    try:
        peer = theirs and theirs.prepare(row)
    except (RuntimeError, NotImplementedError) as error:
        note = f"{row.name}: PyTorch: {str(error).splitlines()[0]}"
    found = {"OpMill": [], "limit": [], "PyTorch": [], "executed": []}
    for _ in range(options.repetitions):
        found["limit"].append(bench.ask("run", row=limit)["device_s"] - empty)
        ours = bench.ask("run", row=number_of_row)
        found["OpMill"].append(ours["device_s"] - empty)
        found["executed"].append(ours["executed_s"])
        if peer:
            found["PyTorch"].append(peer())
    return found, note


def run(options):
    part = Part("gpu", data={"rows": []})
    file = OUTPUT / "input.bin"
    device = "hardware" if options.device == "auto" else options.device
    with Program("kernel_bench", "--commands", f"--device={device}") as bench:
        for group in selected(GROUPS, options):
            array = random_array(group)
            array.tofile(file)
            size = bench.ask("input", type=group.type, sizes=",".join(map(str, group.sizes)),
                             file=file)["bytes"]
            limits = {name: bench.ask("row", operator=name)["row"] for name in ("read", "copy")}
            if bench.ask("run", row=limits["read"])["device_s"] == 0:
                raise BenchError("the device has no timestamps.")
            empty = empty_of(bench)
            theirs = Torch(array) if has_torch() else None
            less = f"{empty * 1e3:.4f} ms" + (f", {theirs.empty * 1e3:.4f} of PyTorch's" if theirs else "")
            table = Table(f"{group.name}: kernels by the GPU's clock, less {less} between two timestamps alone; "
                          "`run`: with the copies to and from it",
                          ["", "OpMill ms", "GB/s", "limit ms", "share", "PyTorch ms", "PyTorch /", "run ms"])
            for row in group.rows:
                limit = "copy" if row.operator == "hardmax" else "read"
                found, note = measure(bench, row, theirs, limits[limit], empty, options)
                add(part, table, group, row, found, (limit, size))
                table.notes += [note] if note else []
            options.show(part, table)
    file.unlink(missing_ok=True)
    bars = {f"{row['group']} {row['name']}": (row["pytorch"]["median"], None)
            for row in part.data["rows"] if row["pytorch"]}
    if bars:
        part.charts.append(Chart("Times faster than PyTorch", "bars", "x", bars))
    return part


def add(part, table, group, row, found, limit):
    limit_name, size = limit
    share = ratios(found["limit"], found["OpMill"])
    pytorch = ratios(found["PyTorch"], found["OpMill"]) if found["PyTorch"] else None
    seconds = {name: spread(values) for name, values in found.items() if values}
    table.rows.append([
        row.name, number(seconds["OpMill"], 1e3, 3), f"{size / seconds['OpMill']['median'] / 1e9:.0f}",
        f"{limit_name} {seconds['limit']['median'] * 1e3:.3f}", number(share),
        number(seconds["PyTorch"], 1e3, 3) if pytorch else "none", number(pytorch) if pytorch else "none",
        number(seconds["executed"], 1e3, 1)])
    part.data["rows"].append({"group": group.name, "name": row.name, "bytes": size, "share": share,
                              "pytorch": pytorch, "seconds": seconds})
