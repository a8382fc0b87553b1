"""Estimates of the times of plans, fitted to measured rows.

A dispatch takes as long as its bytes and its instructions, of which the longer one hides most of
the other. Bytes take the memory's bandwidth, less if too few are in flight, or that of the last
cache if the pass before wrote them and they fit. Instructions take the GPU's rate."""

import collections
import dataclasses
import math
import pathlib

from gpus import TIME_MODEL, TIMED

# Lines "operator type sizes axes k milliseconds"; "-" if it was measured with other kernels.
ROWS = pathlib.Path(__file__).parent / "h100_rows.txt"
NEAR, SHARE = 0.25, 0.9  # so many of the rows must be so near
OVERLAP = 4  # 1: bytes and instructions take turns; infinite: the longer one hides the other
SHOWN = ("sum FLOAT32 8192,8192 1 0", "sum FLOAT32 8192,8192 0 0", "sum FLOAT32 8192,8192 0,1 0",
         "argmin FLOAT32 8192,8192 0,1 0", "argmin FLOAT16 8192,16384 1 0",
         "hardmax FLOAT16 8192,16384 1 0", "argmin INT8 16384,16384 1 0",
         "argmin FLOAT32 1048576,64 1 0", "log_sum_exp FLOAT32 1048576,64 1 0",
         "hardmax FLOAT32 1048576,64 1 0", "hardmax FLOAT32 8192,8192 0,1 0",
         *(f"top_k FLOAT32 8192,8192 {axis} {k}" for axis in (1, 0) for k in (10, 100, 1000)),
         "top_k FLOAT32 1048576,64 1 10", "top_k FLOAT32 65536,128 1 10")


def seconds_of_dispatch(gpu, model, step, kernel, just_written):
    hot, lanes = kernel.hot, step.groups * kernel.threads
    resident = min(lanes, gpu.resident_lanes(kernel.waves))
    read_rate, bandwidth, instructions = math.inf, model.memory * gpu.bandwidth, 0
    if hot:
        is_cached = step.read <= min(just_written, gpu.cache_bytes)
        flight = min(1, resident * hot.bytes_in_flight / gpu.bytes_needed)
        read_rate = flight * (gpu.cache_bandwidth if is_cached else bandwidth)
        of_lane = model.straight * hot.straight + sum(turns * getattr(hot, loop)
                                                      for loop, turns in step.turns.items())
        instructions = lanes * of_lane
        if hot.in_loop and not step.turns["scan"]:
            instructions += max(step.read / hot.load_bytes, lanes) * hot.instructions
    memory = step.read / read_rate + step.written / bandwidth
    compute = instructions / gpu.multiply_rate
    return (memory**OVERLAP + compute**OVERLAP) ** (1 / OVERLAP)


def seconds_of(gpu, model, plan, by_line):
    """None for a product, whose loops read the same elements many times."""
    if plan.multiplications:
        return None
    written = collections.Counter()  # by each pass
    seconds = model.run
    for step in plan.steps:
        if step.kernel:
            seconds += seconds_of_dispatch(gpu, model, step, by_line[step.kernel],
                                           written[step.number - 1])
            written[step.number] += step.written
    return seconds + model.step * (len(written) - 1)


def time_rows(gpu, plans, by_line, model=TIME_MODEL):
    """Returns for each plan its estimated milliseconds, and the share of them that a kernel takes
    that only reads the inputs, or also writes the outputs if they are as large."""
    rows = []
    for plan in plans:
        seconds = seconds_of(gpu, model, plan, by_line)
        if seconds:
            moved = plan.input_bytes
            if plan.output_bytes >= moved:
                moved += plan.output_bytes
            least = model.run + moved / (model.memory * gpu.bandwidth)
            rows.append({"plan": plan.title, "ms": round(seconds * 1e3, 4),
                         "share": round(least / seconds, 2)})
    return rows


class Measured:
    """The measured rows beside their plans."""

    def __init__(self, plans, by_line):
        rows = [line.rsplit(" ", 1) for line in ROWS.read_text().splitlines()]
        assert [title for title, _ in rows] == [plan.title for plan in plans]
        self.rows = [(plan, float(ms) / 1e3) for plan, (_, ms) in zip(plans, rows) if ms != "-"]
        self.by_line = by_line

    def errors(self, model, rows):
        return [seconds_of(TIMED["h100"], model, plan, self.by_line) / measured - 1
                for plan, measured in rows]

    def fit(self, rows, model=TIME_MODEL):
        """Changes one constant at a time, by less and less: the least sum of squared logarithms."""
        def cost(candidate):
            return sum(math.log1p(error) ** 2 for error in self.errors(candidate, rows))
        least, factor = cost(model), 1.3
        while factor > 1.002:
            start = least
            for name, by in ((field.name, by) for field in dataclasses.fields(model)
                             for by in (factor, 1 / factor)):
                candidate = dataclasses.replace(model, **{name: getattr(model, name) * by})
                if (new := cost(candidate)) < least:
                    model, least = candidate, new
            if least == start:
                factor **= 0.6
        return model

    def judge(self, model=TIME_MODEL):
        """Prints the errors of the fitted rows and of the others; True if both are small."""
        is_good = True
        for what, half in (("fitted", self.rows[::2]), ("other", self.rows[1::2])):
            for kind in ("", "top_k "):
                rows = [row for row in half if row[0].title.startswith(kind)]
                errors = [abs(error) for error in self.errors(model, rows)]
                near = sum(error <= NEAR for error in errors)
                is_near = near >= SHARE * len(errors)
                is_good &= is_near
                print(f"Time model, {what} {kind}rows: {near} of {len(errors)} within {NEAR:.0%}, "
                      f"{sum(error <= 0.1 for error in errors)} within 10%, "
                      f"mean {sum(errors) / len(errors):.1%}, worst {max(errors):.0%}"
                      f"{'' if is_near else ': fails'}")
        if not is_good:
            print(f"{ROWS.name} may have rows of kernels that have changed, which get '-'.")
        return is_good

    def print_fit(self):
        model = self.fit(self.rows[::2])
        constants = dataclasses.asdict(model).items()
        print("TimeModel(" + ", ".join(f"{name}={value:.3g}" for name, value in constants) + ")")
        self.judge(model)
        for (plan, measured), error in zip(self.rows, self.errors(model, self.rows)):
            print(f"{measured * 1e3:7.3f} ms {error:+5.0%}  {plan.title}")
        left_out = collections.defaultdict(list)  # by operator kind, type, sizes and axes
        for row in self.rows:
            words = row[0].title.split()
            left_out[words[0] == "top_k", *words[1:4]].append(row)
        errors = [error for group in left_out.values()
                  for error in self.errors(self.fit([row for row in self.rows if row not in group]),
                                           group)]
        near = sum(abs(error) <= NEAR for error in errors)
        print(f"Each shape, fitted to the others: {near} of {len(errors)} within {NEAR:.0%}, "
              f"worst {max(errors, key=abs):+.0%}")


def print_shown(times):
    """`times` has the rows of each timed GPU."""
    measured = dict(line.rsplit(" ", 1) for line in ROWS.read_text().splitlines())
    print("Share of the read speed, estimated (h100: also milliseconds, and those measured)")
    by_title = {name: {row["plan"]: row for row in rows} for name, rows in times.items()}
    print(f"{'':36}" + " ".join(f"{name:>{24 if name == 'h100' else 8}}" for name in times))
    for title in SHOWN:
        cells = []
        for name, rows in by_title.items():
            row = rows[title]
            beside = f" {row['ms']:.3f} ({measured[title]})" if name == "h100" else ""
            cells.append(f"{row['share']:.2f}{beside}".rjust(24 if name == "h100" else 8))
        print(f"{title:36}" + " ".join(cells))
