"""The built package: generated files are up to date, types are right, the wheel is complete."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import zipfile

from server_process import ROOT, ServerProcess

import opmill

PYTHON = ROOT / "python"
EXAMPLE = ROOT / "tests" / "python" / "example.py"


def run(*command, **options):
    """Runs the command, and returns what it prints."""
    ended = subprocess.run([sys.executable, *command], capture_output=True, text=True, check=False,
                           timeout=300, **options)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


class Package(unittest.TestCase):
    def test_generated_files_are_current(self):
        run(str(PYTHON / "generate.py"), "--check")

    def test_the_version_is_the_projects(self):
        (version,) = re.findall(r"^project\(opmill VERSION (\S+) ",
                                (ROOT / "CMakeLists.txt").read_text(), re.MULTILINE)
        self.assertEqual(opmill.__version__, version)

    def test_types_hold(self):
        with tempfile.TemporaryDirectory() as cache:
            run("-m", "mypy", "--strict", f"--cache-dir={cache}", "src/opmill", str(EXAMPLE),
                cwd=PYTHON, env={**os.environ, "MYPYPATH": str(PYTHON / "src")})

    def test_the_wheel(self):
        """Builds the wheel with pip, and uses it from a folder without other files of the project."""
        with tempfile.TemporaryDirectory() as folder:
            run("-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation",
                "--disable-pip-version-check", f"--wheel-dir={folder}", str(PYTHON))
            (wheel,) = pathlib.Path(folder).glob("opmill-*-py3-none-any.whl")
            with zipfile.ZipFile(wheel) as archive:
                names = set(archive.namelist())
                archive.extractall(f"{folder}/installed")
            for name in ("__init__.py", "py.typed", "contract.binpb", "dask.py"):
                self.assertIn(f"opmill/{name}", names)
            self.assertFalse([name for name in names if "generate" in name])
            with ServerProcess(device="reference") as server:
                printed = run(str(EXAMPLE), server.address, cwd=folder,
                              env={**os.environ, "PYTHONPATH": f"{folder}/installed"})
            self.assertIn("operator.top_k.k", printed)
            self.assertIn("[2 2]", printed)
