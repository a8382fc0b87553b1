"""Operators on the device, compared with kernels that only read, or only copy, the same bytes."""

import dataclasses
import itertools
import math

from results import Chart, Part, Table, Target, between, bytes_text, number
from tools import Program, is_enough, spread

# Targets as shares of the speed of the read kernel (hardmax: of the copy), on the software adapter of a
# machine with 2 cores.
REDUCE, ARG_REDUCE, HARDMAX, LOG_SUM_EXP = 0.8, 0.65, 0.7, 0.35
NARROW = 0.5  # reduce and arg-reduce of FLOAT16 and INT8, in bytes

FUNCTIONS = {"sum": "SUM", "max": "MAX", "l2": "L2", "log_sum_exp": "LOG_SUM_EXP"}


@dataclasses.dataclass
class Row:
    operator: str  # sum, argmin, top_k, ...
    axes: tuple
    k: int = 0
    target: float = None

    @property
    def name(self):
        k = f" k={self.k}" if self.k else ""
        return f"{self.operator}{k} over {','.join(map(str, self.axes))}"

    def words(self):
        words = {"axes": ",".join(map(str, self.axes))}
        if self.operator in FUNCTIONS:
            return {"operator": "reduce", "function": FUNCTIONS[self.operator], **words}
        return {"operator": self.operator, **words, **({"k": self.k} if self.k else {})}


@dataclasses.dataclass
class Group:
    type: str
    sizes: tuple
    rows: list
    quick: bool = True  # measured by --quick too

    @property
    def name(self):
        return f"{self.type}[{','.join(map(str, self.sizes))}]"


def cross(operators, axes_of_rows, target=None):
    return [Row(operator, axes, target=target)
            for operator, axes in itertools.product(operators, axes_of_rows)]


def _float32(axes_of_rows):
    return (cross(["sum", "max", "l2"], axes_of_rows, REDUCE)
            + cross(["argmin"], axes_of_rows, ARG_REDUCE)
            + cross(["log_sum_exp"], axes_of_rows, LOG_SUM_EXP)
            + cross(["hardmax"], axes_of_rows, HARDMAX))


def _float16(axes_of_rows):
    return (cross(["sum", "max", "l2", "argmin"], axes_of_rows, NARROW)
            + cross(["log_sum_exp", "hardmax"], axes_of_rows))


def _int8(axes_of_rows):
    return cross(["max", "argmin"], axes_of_rows, NARROW)


FIRST, LAST, ALL = (0,), (1,), (0, 1)
MIDDLE = (1,)  # of three

GROUPS = [
    Group("FLOAT32", (8192, 8192), _float32([LAST, FIRST, ALL])
          + [Row("top_k", FIRST, 10, 0.25), Row("top_k", LAST, 10)]),
    Group("FLOAT32", (64, 1024, 1024), _float32([MIDDLE]) + [Row("top_k", MIDDLE, 10)]),
    Group("FLOAT32", (1024, 50257), [Row("top_k", LAST, 10, 0.4), Row("top_k", LAST, 1000, 0.25)]),
    Group("FLOAT32", (64, 1048576), [Row("top_k", LAST, 10, 0.4),
                                     Row("top_k", LAST, 1000, 0.25)]),
    Group("FLOAT32", (1, 67108864), [Row("top_k", LAST, 10, 0.4),
                                     Row("top_k", LAST, 1000, 0.25)]),
    Group("FLOAT16", (8192, 8192), _float16([LAST, FIRST, ALL]) + [Row("top_k", LAST, 10)]),
    Group("FLOAT16", (64, 1024, 1024), _float16([MIDDLE]), quick=False),
    Group("INT8", (8192, 16384), _int8([LAST, FIRST, ALL]) + [Row("top_k", LAST, 10)]),
    Group("INT8", (64, 2048, 1024), _int8([MIDDLE]), quick=False),
    *[Group(name, (4096, 16384 // element_bytes),
            (cross(["sum"], [LAST, FIRST, ALL]) if element_bytes >= 4 else [])
            + cross(["max", "argmin"], [LAST, FIRST, ALL]) + [Row("top_k", LAST, 10)], quick=False)
      for name, element_bytes in (("INT32", 4), ("UINT32", 4), ("INT64", 8), ("UINT64", 8),
                                  ("INT16", 2), ("UINT16", 2), ("UINT8", 1))],
]

# 4 KiB to 1 GiB of FLOAT32.
SIZES = [Group("FLOAT32", sizes, cross(["sum"], [LAST, FIRST]) + cross(["argmin", "hardmax"], [LAST])
               + [Row("top_k", LAST, 10)], quick=sizes != (65536, 4096))
         for sizes in ((1, 1024), (16, 1024), (256, 1024), (4096, 1024), (16384, 4096),
                       (65536, 4096))]

# top_k uses different methods for small and large k; none may be much slower than its neighbours.
FEW_RANKS = (1, 10, 17, 32, 50, 100)
MANY_RANKS = FEW_RANKS + (300, 1000)
RANKS = [
    Group("FLOAT32", sizes, [Row("top_k", axes, k) for k in ranks], quick=quick)
    for sizes, axes, ranks, quick in (((1024, 50257), LAST, MANY_RANKS, True),
                                      ((8192, 8192), LAST, MANY_RANKS, False),
                                      ((65536, 128), LAST, FEW_RANKS, False),
                                      ((16384, 512), LAST, MANY_RANKS[:-1], False),
                                      ((64, 1024, 1024), MIDDLE, FEW_RANKS, False))]

# For results of few elements, writing costs more than reading.
LENGTHS = [
    Group("FLOAT32", (2**24 // length, length),
          cross(["sum", "argmin", "log_sum_exp", "hardmax"], [LAST]) + [Row("top_k", LAST, 4)],
          quick=length in (4, 64))
    for length in (4, 16, 64, 256, 1024)] + [
    Group("FLOAT32", (length, 2**24 // length), cross(["sum", "argmin"], [FIRST]), quick=False)
    for length in (4, 16, 64, 256, 1024)]

TABLES = {"rows": GROUPS, "ranks": RANKS, "lengths": LENGTHS, "sizes": SIZES}


def measure(bench, group, repetitions, seconds=0.0):
    """Returns rows of results. Each run follows a run of its limit; a row takes at least `seconds`."""
    size = bench.ask("input", type=group.type, sizes=",".join(map(str, group.sizes)))["bytes"]
    limits = {"read": bench.ask("row", operator="read")["row"]}
    if any(row.operator == "hardmax" for row in group.rows):
        limits["copy"] = bench.ask("row", operator="copy")["row"]
    found = []
    for row in group.rows:
        limit_name = "copy" if row.operator == "hardmax" else "read"
        number_of_row = bench.ask("row", **row.words())["row"]
        bench.ask("check", row=number_of_row)
        runs, limits_of_runs = [], []
        while True:
            walls = [run["wall_s"] for run in runs]
            if is_enough(walls, repetitions) and sum(walls) >= seconds:
                break
            limits_of_runs.append(bench.ask("run", row=limits[limit_name]))
            runs.append(bench.ask("run", row=number_of_row))
        # Measured by the device's timestamps, if it has any.
        clock = "device_s" if all(run["device_s"] > 0 for run in runs) else "executed_s"
        found.append({
            "group": group.name, "name": row.name, "k": row.k, "limit": limit_name, "bytes": size,
            "length": math.prod(group.sizes[axis] for axis in row.axes),
            "clock": clock, "target": row.target,
            "executed_s": spread([run["executed_s"] for run in runs]),
            "device_s": spread([run["device_s"] for run in runs]),
            "limit_s": spread([run[clock] for run in limits_of_runs]),
            "share": spread([limit[clock] / run[clock]
                             for limit, run in zip(limits_of_runs, runs)])})
    return found


def table_of(group, found):
    size = found[0]["bytes"]
    table = Table(f"{group.name}, {bytes_text(size)}: read only "
                  f"{min(row['limit_s']['median'] for row in found) * 1e3:.3f} ms",
                  ["", "wall ms", "10%..90%", "device ms", "GB/s", "share", "10%..90%", "target",
                   ""])
    for row in found:
        target = None
        if row["target"]:
            target = Target("", row["target"], row["share"])
        seconds = row["executed_s"]
        table.rows.append([
            row["name"], number(seconds, 1e3, 3), between(seconds, 1e3, 3),
            number(row["device_s"], 1e3, 3), f"{size / seconds['median'] / 1e9:.2f}",
            number(row["share"]), between(row["share"]),
            target.sentence if target else "", target.verdict if target else ""])
    return table


def run(options):
    part = Part("kernels", data={data: [] for data in TABLES})
    with Program("kernel_bench", "--commands", f"--device={options.device}") as bench:
        part.data["device"] = bench.ask("device")
        for data, group in chosen(options):
            group = named(group, options.only)
            if not group.rows:
                continue
            # Small rows are run often enough.
            seconds = 0.1 if data == "sizes" and not options.tiny else 0
            found = measure(bench, group, options.repetitions, seconds)
            part.data[data] += found
            options.show(part, table_of(group, found))
            part.targets += [Target(f"{row['group']} {row['name']} / {row['limit']}",
                                    row["target"], row["share"]) for row in found if row["target"]]
    part.charts = charts(part.data)
    return part


def chosen(options):
    """The groups of rows to measure, each with the name of its table."""
    if options.sizes:
        return [("rows", custom(options))]
    groups = [(data, group) for data, table in TABLES.items() for group in table
              if group.quick or not (options.quick or options.tiny)]
    if options.tiny:
        groups = [(data, tiny(group)) for data, group in groups if data != "sizes"]
        groups += [("sizes", group) for group in SIZES[:2]]
    return groups


def named(group, only):
    """The group with the rows whose name holds this."""
    return dataclasses.replace(group, rows=[
        row for row in group.rows if only in f"{group.name} {row.name}"])


def selected(groups, options):
    """The groups with rows that --only names, and these rows; small ones with --tiny."""
    small = map(tiny, groups) if options.tiny else groups
    return [group for group in (named(group, options.only) for group in small) if group.rows]


def random_array(group):
    import numpy as np  # pylint: disable=import-outside-toplevel
    random = np.random.default_rng(1)
    if group.type == "INT8":
        return random.integers(-128, 128, group.sizes, np.int8)
    return (random.random(group.sizes, np.float32) * 20 - 10).astype(group.type.lower(), copy=False)


def tiny(group):
    """The smallest workload that runs the same code: a few rows with few elements."""
    return Group(group.type, tuple(min(size, 64) for size in group.sizes),
                 [dataclasses.replace(row, k=min(row.k, 16)) for row in group.rows[::6]])


def custom(options):
    """The group of --sizes, --type and --k."""
    sizes = tuple(map(int, options.sizes.split(",")))
    axes = [(axis,) for axis in range(len(sizes))]
    patterns = axes + ([tuple(range(len(sizes)))] if len(sizes) > 1 else [])
    operators = ["sum", "max", "l2", "log_sum_exp", "argmin", "hardmax"]
    if not options.type.startswith("FLOAT"):
        operators = ["max", "argmin"]
    rows = cross(operators, patterns)
    rows += [Row("top_k", axis, int(k)) for axis in axes for k in options.k.split(",")]
    return Group(options.type, sizes, rows)


def charts(data):
    drawn = []
    for group, rows in itertools.groupby(data["rows"], key=lambda row: row["group"]):
        drawn.append(Chart(f"{group}: share of the limit", "bars", "", {
            row["name"]: (row["share"]["median"], row["target"]) for row in rows}))
    for data_name, title, line, x, unit in (
            ("ranks", "top_k: throughput against ranks", "group", "k", "k"),
            ("lengths", "64 MiB: throughput against the elements of a result", "name", "length",
             "elements"),
            ("sizes", "Operators on the device: throughput against size", "name", "bytes", "bytes")):
        lines = {}
        for row in data[data_name]:
            rate = row["bytes"] / row["executed_s"]["median"] / 1e9
            lines.setdefault(row[line], []).append((row[x], rate))
        if lines:
            drawn.append(Chart(title, "lines", "GB/s", lines, unit))
    return drawn
