"""./dev bench: measures speed, compared with the limits of the machine and with what users would do instead.

  ./dev bench [--quick]             all parts but gpu; full takes about 20 minutes on 2 cores
  ./dev bench PART... [FLAG...]     kernels, transport, small, cold, fairness, peers, gpu
"""

import argparse
import datetime
import importlib.metadata
import importlib.util
import json
import os
import pathlib
import platform
import shlex
import subprocess
import sys
import time

import cold
import fairness
import gpu
import kernels
import markdown
import peers
import report
import small_calls
import transport
from results import target_table
from tools import OUTPUT, ROOT, BenchError, Program

PARTS = {"kernels": kernels.run, "transport": transport.run, "small": small_calls.run,
         "cold": cold.run, "fairness": fairness.run, "peers": peers.run, "gpu": gpu.run}
ON_REQUEST = ("gpu",)  # needs a GPU
AFTERNOON_PACKAGES = ("grpc", "grpc_tools", "numpy")
PEER_PACKAGES = ("numpy", "onnx", "onnxruntime")


def parse(arguments):
    parser = argparse.ArgumentParser(prog="./dev bench", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--quick", action="store_true",
                        help="fewer rows and rounds: some minutes, and rougher")
    parser.add_argument("--tiny", action="store_true",
                        help="as little as runs all of the code; the numbers mean nothing")
    parser.add_argument("--repetitions", type=int, help="rounds (7; quick 5)")
    parser.add_argument("--device", default="auto", choices=["auto", "hardware", "software", "cpu"])
    parser.add_argument("--no-check", dest="checks", action="store_false",
                        help="gpu: do not compare results with the reference, which takes seconds a row")
    parser.add_argument("--only", default="",
                        help="kernels, peers and gpu: rows whose name holds this, such as "
                        "'[8192,8192] argmin over 0'")
    parser.add_argument("--sizes", help="kernels: one tensor of these sizes, and all operators")
    parser.add_argument("--type", default="FLOAT32", help="kernels: its type")
    parser.add_argument("--k", default="10", help="kernels: values of k, by commas")
    options = parser.parse_args(arguments)
    unknown = [part for part in options.parts if part not in PARTS]
    if unknown:
        parser.error(f"there is no part {', '.join(unknown)}")
    if options.repetitions is None:
        options.repetitions = 1 if options.tiny else 5 if options.quick else 7
    options.has_afternoon = all(map(importlib.util.find_spec, AFTERNOON_PACKAGES))
    options.has_peers = all(map(importlib.util.find_spec, PEER_PACKAGES))
    return options


def versions():
    """The versions of what is measured and of what it is compared with."""
    found = {"python": platform.python_version()}
    for module in ("numpy", "onnxruntime", "torch", "grpc"):
        if importlib.util.find_spec(module):
            found[module] = importlib.metadata.version("grpcio" if module == "grpc" else module)
    return ", ".join(f"{name} {version}" for name, version in found.items())


def output_of(*command):
    try:
        done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    except OSError:
        return "unknown"
    return done.stdout.strip() if done.returncode == 0 else "unknown"


def machine(options, arguments):
    with Program("kernel_bench", "--commands", f"--device={options.device}") as bench:
        device = bench.ask("device")
    cpuinfo = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8")
    models = [line.split(":")[1].strip() for line in cpuinfo.splitlines()
              if line.startswith("model name")]
    changed = " and changes" if output_of("git", "status", "--porcelain") else ""
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "command": shlex.join(["./dev", "bench", *arguments]),
        "commit": output_of("git", "rev-parse", "--short", "HEAD") + changed,
        "device": device["name"],
        "driver": device["driver"],
        "processor": f"{models[0] if models else platform.machine()}, {os.cpu_count()} cores",
        "load": f"{os.getloadavg()[0]:.2f} in the minute before",
        "system": platform.platform(),
        "gRPC": output_of("pkg-config", "--modversion", "grpc++"),
        "peers": versions(),
    }


def main(arguments):
    options = parse(arguments)
    OUTPUT.mkdir(parents=True, exist_ok=True)
    state = machine(options, arguments)
    print("\n".join(f"{name:10} {value}" for name, value in state.items()))
    if not options.has_afternoon:
        print("The afternoon service is not measured: its packages could not be installed.")

    def show(part, table):
        part.tables.append(table)
        print(f"\n{table.text()}", flush=True)
    options.show = show

    parts, failures = [], []
    for name in options.parts or [part for part in PARTS
                                  if options.tiny or part not in ON_REQUEST]:
        begun = time.monotonic()
        try:
            parts.append(PARTS[name](options))
        except (BenchError, OSError, subprocess.SubprocessError) as error:
            failures.append(f"{name}: {error}")
            print(f"\n{failures[-1]}", file=sys.stderr)
        print(f"\n{name}: {time.monotonic() - begun:.0f} s", flush=True)
        write(state, parts, failures)
    if targets := [target for part in parts for target in part.targets]:
        print(f"\n{target_table(targets).text()}")
    print("", *(OUTPUT / name for name in ("results.json", "results.md", "report.html")), sep="\n")
    if failures:
        print("\nFailed:", *failures, sep="\n  ", file=sys.stderr)
    return 1 if failures else 0


def write(state, parts, failures):
    results = {"machine": state, "failures": failures,
               "parts": {part.name: part.as_data() for part in parts}}
    (OUTPUT / "results.json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    (OUTPUT / "results.md").write_text(markdown.page(state, parts), encoding="utf-8")
    (OUTPUT / "report.html").write_text(report.page(state, parts), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
