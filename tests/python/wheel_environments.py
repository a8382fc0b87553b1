"""Builds the wheel, installs it in clean virtual environments, and runs its tests in each: one with
the oldest versions that python/pyproject.toml claims and the oldest Python, one with the newest.

    ./dev python [oldest] [newest]
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import tomllib

ROOT = pathlib.Path(__file__).resolve().parents[2]
PYTHON = ROOT / "python"
TESTS = ROOT / "tests" / "python"
# Tests that need only the package, not the repository's tools.
SUITES = ("access", "aio", "arguments", "dask", "docs", "exit", "models", "operators", "retry",
          "streams", "tensors")
# Packages that the tests need.
TOOLS = ("cryptography", "pandas")


def oldest_versions():
    project = tomllib.loads((PYTHON / "pyproject.toml").read_text())["project"]
    claims = [*project["dependencies"], *sum(project["optional-dependencies"].values(), [])]
    return [claim.replace(">=", "==") for claim in claims]


def pythons():
    """The Python interpreters of this machine, from 3.11 on, oldest first."""
    found = [shutil.which(f"python3.{minor}") for minor in range(11, 20)]
    works = [python for python in found if python and subprocess.run(
        [python, "-c", "import ensurepip, venv"], capture_output=True, check=False).returncode == 0]
    return works or [sys.executable]


def run(*command, **options):
    subprocess.run([str(part) for part in command], check=True, **options)


def check(name, python, packages, folder):
    print(f"== {name}: {python}", flush=True)
    environment = folder / name
    run(python, "-m", "venv", environment)
    python = environment / "bin" / "python"
    pip = (python, "-m", "pip", "--quiet", "--disable-pip-version-check")
    run(*pip, "install", *packages, *TOOLS)
    run(python, "-c", "import sys, dask, grpc, numpy, google.protobuf as protobuf\n"
        "for m in (grpc, numpy, protobuf, dask): print(m.__name__, m.__version__)\n"
        "print('Python', sys.version)")
    suite = ROOT / "tests" / "end_to_end" / "suite.py"
    variables = {**os.environ, "PYTHONPATH": f"{TESTS}:{suite.parent}", "GRPC_VERBOSITY": "ERROR"}
    failed = []
    for test in SUITES:
        print(f"-- {name}: {test}", flush=True)
        command = [str(python), str(suite), f"test_python_{test}"]
        ended = subprocess.run(command, env=variables, check=False, capture_output=True, text=True)
        print("\n".join(line for line in ended.stdout.splitlines() if line.startswith("[  FAILED"))
              + ended.stdout.splitlines()[-1])
        if ended.returncode != 0:
            print(ended.stdout, ended.stderr)
            failed.append(f"{name} {test}")
    return failed


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="oldest|newest")
    names = parser.parse_args().names or ["oldest", "newest"]
    with tempfile.TemporaryDirectory(prefix="opmill-wheel-") as text:
        folder = pathlib.Path(text)
        run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps",
            "--disable-pip-version-check", f"--wheel-dir={folder}", PYTHON)
        wheel = next(folder.glob("opmill-*.whl"))
        print(f"{wheel.name}: {wheel.stat().st_size} bytes", flush=True)
        failed = []
        for name in names:
            interpreter = pythons()[0 if name == "oldest" else -1]
            versions = oldest_versions() if name == "oldest" else []
            failed += check(name, interpreter, [*versions, f"{wheel}[dask,progress]"], folder)
        print(f"failed: {', '.join(failed)}" if failed else "all passed")
        return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
