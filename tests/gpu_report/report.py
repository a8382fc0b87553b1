#!/usr/bin/env python3
"""./dev gpu-report: compiles the kernels with the drivers of real GPUs, without a GPU.

Compiles the hardware kernels of the hot plans (--all: of every plan) for each GPU. Fails if a kernel
spills, uses scratch memory, leaves more than half of the waves empty, has more than 16 KB of code,
divides in its hot loop, or multiplies a large FLOAT32 tile in a loop of less than 0.6 multiply-adds, or
if a plan keeps fewer bytes in flight than the memory needs, and exceptions.txt does not list it. A plan
that multiplies for longer than it reads needs a smaller part of the memory's bandwidth. Also fails if
exceptions.txt lists what passes, so that the list only shrinks, or if the times that it estimates are
far from those of h100_rows.txt. Writes report.json and report.html to OUT."""

import argparse
import collections
import dataclasses
import html
import json
import pathlib
import subprocess
import sys

import assembly
import times
from gpus import GPUS, TIMED, command_for

MAX_CODE_BYTES = 16384
MIN_MULTIPLY_ADDS = 0.6
FAILURES = ("spill", "scratch", "occupancy", "code", "division", "multiply", "flight")
TURNS = ("scan", "step", "result", "comparison", "leaders", "insertion")  # of the loops of HotCode
EXCEPTIONS = pathlib.Path(__file__).parent / "exceptions.txt"


@dataclasses.dataclass
class Kernel:
    line: str
    registers: int
    spilled: int
    scratch_bytes: int
    waves: int
    shared_bytes: int  # groupshared; 0 on NVK, which does not say
    code_bytes: int  # 0 on NVK, whose instructions have 16 bytes each
    hot: assembly.HotCode | None

    @property
    def threads(self):
        return int(self.line.split("THREADS=")[1].split(" ")[0])

    @property
    def is_large_tile(self):
        return self.line.startswith("matrix Multiply DATA_TYPE=1 ") and " HALVES=2 " in self.line

    def failures(self, gpu):
        checks = {"spill": self.spilled > 0, "scratch": self.scratch_bytes > 0,
                  "occupancy": 2 * self.waves < gpu.most_waves,
                  "code": self.code_bytes > MAX_CODE_BYTES,
                  "division": self.hot is not None and self.hot.divisions > 0,
                  "multiply": self.is_large_tile and self.hot.multiply_adds < MIN_MULTIPLY_ADDS}
        return [name for name, fails in checks.items() if fails]


def kernel_of(gpu, line, statistics, text):
    hot = assembly.hot_code(text)
    if gpu.driver == "NVK":  # its "Spills to reg" are uniform registers and predicates
        return Kernel(line, statistics["Number of GPRs"], statistics["Spills to memory"],
                      statistics["SLM size"], statistics["Max warps/SM"], 0, 0, hot)
    # RADV counts waves of 32 lanes on RDNA; the kernels run in waves of 64.
    waves = statistics["Subgroups per SIMD"] // (1 if gpu.chip == "vega20" else 2)
    return Kernel(line, statistics["VGPRs"],
                  statistics["Spilled VGPRs"] + statistics["Spilled SGPRs"],
                  statistics["Scratch size"], waves, statistics["LDS size"],
                  statistics["Code size"], hot)


def compile_for(gpu, options, lines):
    folder = options.out / gpu.name
    folder.mkdir(parents=True, exist_ok=True)
    prefix, environment = command_for(gpu, options.deps, options.nvk, options.out)
    command = [*prefix, options.program, "compile", str(folder), str(options.cache)]
    output = subprocess.run(command, env=environment, input="\n".join(lines), check=True,
                            capture_output=True, text=True).stdout.splitlines()
    kernels = []
    for number, row in enumerate(output[1:]):  # the first line names the GPU
        line, *fields = row.split("\t")
        statistics = {name: int(value) for name, value in (field.split("=") for field in fields)}
        kernels.append(kernel_of(gpu, line, statistics, (folder / f"{number}.s").read_text()))
    assert len(kernels) == len(lines), (gpu.name, len(kernels), len(lines))
    return kernels


def lines_of(program, *arguments):
    return subprocess.run([program, *map(str, arguments)], check=True, capture_output=True,
                          text=True).stdout.splitlines()


@dataclasses.dataclass
class Step:
    """A dispatch, or a fill, which has no kernel."""
    number: int  # of its pass
    groups: int = 0
    read: int = 0  # bytes
    written: int = 0
    turns: dict = dataclasses.field(default_factory=dict)  # LaneWork in gpu_report.cc
    kernel: str = ""


@dataclasses.dataclass
class Plan:
    title: str
    multiplications: int
    input_bytes: int
    output_bytes: int
    steps: list = dataclasses.field(default_factory=list)


def read_plans(program, gpu, *rows):
    plans = []
    for row in lines_of(program, "plans", gpu.compute_units, *rows):
        word, rest = row.split(" ", 1)
        if word == "plan":
            *numbers, title = rest.split(" ", 3)
            plans.append(Plan(title, *map(int, numbers)))
        elif rest.startswith("fill "):
            plans[-1].steps.append(Step(int(word)))
        else:
            *numbers, line = rest.split(" ", 3 + len(TURNS))
            numbers = [*map(int, numbers)]
            plans[-1].steps.append(
                Step(int(word), *numbers[:3], dict(zip(TURNS, numbers[3:])), line))
    return plans


def plan_rows(gpu, plans, kernels):
    """Returns for each plan its passes, the groups of the dispatch whose hot code loads most, and the bytes that
    this dispatch keeps in flight, relative to those that the plan needs."""
    by_line = {kernel.line: kernel for kernel in kernels}
    rows = []
    for plan in plans:
        loading = [(step.groups, by_line[step.kernel]) for step in plan.steps
                   if step.kernel in by_line and by_line[step.kernel].hot]
        row = {"plan": plan.title, "passes": max(step.number for step in plan.steps),
               "dispatches": len(plan.steps)}
        if loading:
            groups, kernel = max(loading, key=lambda each: each[0] * each[1].hot.load_bytes)
            lanes = min(groups * kernel.threads, gpu.resident_lanes(kernel.waves))
            flight = lanes * kernel.hot.bytes_in_flight
            memory_share = gpu.memory_share(plan.input_bytes, plan.multiplications)
            row |= {"groups": groups, "bytes_in_flight": flight,
                    "memory_share": round(memory_share, 2),
                    "share_needed": round(flight / (gpu.bytes_needed * memory_share), 2)}
        rows.append(row)
    return rows


def read_exceptions():
    """Returns the set of (gpu, failure, subject) from lines "SUBJECT: GPU FAILURE..., GPU FAILURE...". A subject
    is a kernel or "plan TITLE". A line "reason: ..." applies to the lines that follow it."""
    exceptions, has_reason = set(), False
    for line in EXCEPTIONS.read_text().splitlines():
        if line.startswith("reason: "):
            has_reason = True
        elif line:
            subject, failures = line.split(": ")
            if not has_reason:
                raise ValueError(f"{EXCEPTIONS.name}: no reason stands above: {line}")
            for gpu, *names in map(str.split, failures.split(",")):
                exceptions |= {(gpu, name, subject) for name in names}
    return exceptions


def judge(reports, plans, is_all):
    """Returns all failures, those that are not expected, and the exceptions that are no longer needed."""
    listed = read_exceptions()
    found, judged = set(), set()
    for gpu, kernels in reports.items():
        judged |= {(gpu, kernel.line) for kernel in kernels}
        judged |= {(gpu, "plan " + row["plan"]) for row in plans[gpu]}
        found |= {(gpu, failure, kernel.line) for kernel in kernels
                  for failure in kernel.failures(GPUS[gpu])}
        found |= {(gpu, "flight", "plan " + row["plan"]) for row in plans[gpu]
                  if row.get("share_needed", 1) < 1}
    fresh = sorted(found - listed)
    stale = sorted(each for each in listed - found
                   if (each[0], each[2]) in judged or (is_all and each[0] in reports))
    return found, fresh, stale


def print_summary(reports, found):
    print(f"{'GPU':8} {'kernels':>7} {'failing':>7} " + " ".join(f"{name:>9}" for name in FAILURES))
    for name, kernels in reports.items():
        counts = collections.Counter(failure for gpu, failure, _ in found if gpu == name)
        failing = len({subject for gpu, _, subject in found if gpu == name})
        print(f"{name:8} {len(kernels):7} {failing:7} " +
              " ".join(f"{counts[each]:9}" for each in FAILURES))


def table(rows):
    """An HTML table whose columns are the keys of the first row."""
    def cells(tag, values):
        return "".join(f"<{tag}>{html.escape(str(value))}</{tag}>" for value in values)
    names = list(dict.fromkeys(name for row in rows for name in row))
    body = "".join(f"<tr>{cells('td', (row.get(name, '') for name in names))}</tr>\n" for row in rows)
    return f"<table><tr>{cells('th', names)}</tr>\n{body}</table>\n"


def write_reports(out, reports, plans, estimates):
    """`plans` and `estimates` have the rows of each GPU."""
    everything = {}
    page = ["<!doctype html><meta charset=utf-8><title>GPU report</title><style>body{font:14px sans-serif}"
            "table{border-collapse:collapse}td,th{padding:2px 8px;border-bottom:1px solid #ddd;"
            "text-align:left}</style>"]
    for name, kernels in reports.items():
        gpu = GPUS[name]
        rows = [{"registers": each.registers, "spilled": each.spilled, "scratch": each.scratch_bytes,
                 "waves": f"{each.waves}/{gpu.most_waves}", "shared": each.shared_bytes,
                 "code": each.code_bytes,
                 **(dataclasses.asdict(each.hot) if each.hot else {}),
                 "fails": " ".join(each.failures(gpu)), "kernel": each.line} for each in kernels]
        everything[name] = {"gpu": dataclasses.asdict(gpu), "kernels": rows, "plans": plans[name]}
        page += [f"<h1>{name}: {gpu.product}, {gpu.driver}</h1><h2>Kernels</h2>", table(rows),
                 f"<h2>Plans; {gpu.bytes_needed / 1e6:.1f} MB in flight keep the memory busy</h2>",
                 table(plans[name])]
    for name, rows in estimates.items():
        everything[f"times on {name}"] = rows
        page += [f"<h1>Estimated times: {TIMED[name].product}</h1>", table(rows)]
    (out / "report.json").write_text(json.dumps(everything, indent=1))
    (out / "report.html").write_text("\n".join(page))


def main():
    parser = argparse.ArgumentParser(prog="./dev gpu-report", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--all", action="store_true", help="every hardware kernel, about half an hour")
    parser.add_argument("--gpu", action="append", choices=GPUS, help="these alone; may be repeated")
    parser.add_argument("--fit", action="store_true",
                        help="only fits the model of times to h100_rows.txt, and prints its errors")
    parser.add_argument("--program", required=True, help=argparse.SUPPRESS)
    for name in ("deps", "nvk", "cache", "out"):
        parser.add_argument("--" + name, type=pathlib.Path, required=True, help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    options.cache.mkdir(parents=True, exist_ok=True)

    reports, plans, estimates, measured = {}, {}, {}, None
    for name in ["gh100"] if options.fit else options.gpu or GPUS:
        gpu = GPUS[name]
        if gpu.driver == "NVK":
            subprocess.run(["cmake/fetch_nvk.sh", options.nvk], check=True)
        which = "all" if options.all else gpu.compute_units
        lines = lines_of(options.program, "kernels", which)
        timed = {each: (read_plans(options.program, like, times.ROWS),
                        read_plans(options.program, like))
                 for each, like in TIMED.items() if like.name == name}
        others = {step.kernel for both in timed.values() for each in both for plan in each
                  for step in plan.steps if step.kernel}.difference(lines)
        kernels = compile_for(gpu, options, [*lines, *sorted(others)])
        by_line = {kernel.line: kernel for kernel in kernels}
        reports[name] = kernels[:len(lines)]
        plans[name] = plan_rows(gpu, read_plans(options.program, gpu), reports[name])
        for each, (of_rows, hot) in timed.items():
            estimates[each] = times.time_rows(TIMED[each], [*of_rows, *hot], by_line)
        if "h100" in timed:
            measured = times.Measured(timed["h100"][0], by_line)
    if options.fit:
        measured.print_fit()
        return 0
    write_reports(options.out, reports, plans, estimates)
    found, fresh, stale = judge(reports, plans, options.all)
    print_summary(reports, found)
    if estimates:
        times.print_shown(estimates)
    is_good = measured is None or measured.judge()
    for what, entries in (("Fails, and is no exception", fresh), ("Is an exception, and passes", stale)):
        for entry in entries:
            print(f"{what}: {' '.join(entry)}")
    print(f"{options.out / 'report.html'} and report.json have every kernel and plan.")
    return 1 if fresh or stale or not is_good else 0


if __name__ == "__main__":
    sys.exit(main())
