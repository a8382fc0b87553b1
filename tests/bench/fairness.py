"""A caller with small calls beside a heavy one, with the server and with a control without logic."""

import json
import subprocess

from results import Part, Table, Target
from tools import BUILD, BenchError, environment, quantile, spread

KINDS = {"hardmax": "64 streams, hardmax of 64 MiB", "uploads": "1000 slow uploads",
         "cancels": "8 threads that begin and cancel", "broadcasts": "16 broadcasts of 2^31",
         "small": "64 streams of small calls"}


def middle(values):
    return quantile(values, 0.5)


def run(options):
    part = Part("fairness", data={"rows": []})
    table = Table("argmin of 4 KiB, one at a time: p99 in ms alone and beside a second caller",
                  ["second caller", "server", "alone", "beside", "of these in the server", "ratio",
                   "longest slice", "second's rate beside"])
    device = "cpu" if options.device == "auto" else options.device
    flags = [f"--server_flags=--device={device}"]
    if options.tiny:
        flags += ["--seconds=0.2", "--streams=8", "--connections=50", "--tensor_mib=4",
                  "--broadcast_log2=24"]
    for kind, name in KINDS.items():
        done = subprocess.run(
            [BUILD / "tests" / "bench" / "fairness", f"--kinds={kind}",
             f"--rounds={options.repetitions}", *flags],
            capture_output=True, text=True, env=environment(), check=False)
        if done.returncode != 0:
            raise BenchError(f"fairness, {kind}: {done.stderr}")
        rows = {row["server"]: row for row in map(json.loads, done.stdout.splitlines())}
        part.data["rows"] += rows.values()
        for server, row in rows.items():
            table.rows.append([name, server, *cells(row)])
        aim(part, name, rows["opmill"])
    options.show(part, table)
    return part


def ratio_of(row):
    return [beside / alone for beside, alone in zip(row["beside_p99_s"], row["alone_p99_s"])]


def cells(row):
    """Medians of the rounds."""
    has_server = row["server"] != "bare"
    kept = (sum(row["second_beside_per_s"]) / sum(row["second_alone_per_s"])
            if sum(row["second_alone_per_s"]) else None)
    return [f"{middle(row['alone_p99_s']) * 1e3:.2f}", f"{middle(row['beside_p99_s']) * 1e3:.2f}",
            f"{middle(row['beside_server_p99_s']) * 1e3:.3f}" if has_server else "",
            f"{middle(ratio_of(row)):.1f}",
            f"{row['longest_slice_s'] * 1e3:.1f}" if has_server else "",
            f"{kept:.0%}" if kept else ""]


def aim(part, name, row):
    value = [beside / (5 * alone + row["longest_slice_s"])
             for beside, alone in zip(row["beside_p99_s"], row["alone_p99_s"])]
    part.targets.append(Target(f"p99 beside {name} / (5 x p99 alone + the longest slice)", 1,
                               spread(value), at_most=True))
