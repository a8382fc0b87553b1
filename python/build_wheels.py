#!/usr/bin/env python3
"""Builds the wheels into build/wheels: opmill, the client, and opmill-server, the programs.

    ./dev wheel             opmill, and opmill-server for Linux with the programs of ./dev build
    ./dev wheel windows     opmill-server for Windows, with the programs of ./dev windows build
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
WHEELS = ROOT / "build" / "wheels"
WINDOWS = ROOT / "build" / "windows"
# Every Linux with the glibc of the wheel's tag has these.
EVERYWHERE = {"libc6", "libgcc-s1", "libstdc++6", "zlib1g"}
# Linked statically, so that ldd does not show them.
STATIC = {"directx-headers-dev", "libvkd3d-dev"}
# Those of the programs for Windows, in the packages that have the same sources (cmake/windows/deps.sh).
OF_WINDOWS = {"directx-headers-dev", "g++-mingw-w64-x86-64-posix", "libabsl-dev", "libfmt-dev",
              "libgrpc-dev", "libhwy-dev", "libprotobuf-dev", "libre2-dev", "libspdlog-dev",
              "libssl-dev", "libz-mingw-w64-dev", "mingw-w64-x86-64-dev", "prometheus-cpp-dev"}
# auditwheel takes this library for one that every Linux has; not even Debian's minimal system has it.
ALSO_NEEDED = "libatomic.so.1"


def run(*command, **options):
    return subprocess.run([str(part) for part in command], check=True, text=True, **options)


def hatchling(folder, wheels):
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", wheels, cwd=folder,
        stdout=subprocess.DEVNULL)


def libraries(program):
    """The shared libraries of a program, by name."""
    listed = run("ldd", program, stdout=subprocess.PIPE).stdout
    return dict(re.findall(r"^\t(\S+) => (\S+) ", listed, re.MULTILINE))


def packages(paths):
    """Debian's packages of these files."""
    found = set()
    for path in paths:
        # A file of /usr/lib may be known as one of /lib, to which it was moved.
        for name in (path, "/usr" + path, path.removeprefix("/usr")):
            owner = subprocess.run(["dpkg", "-S", name], capture_output=True, text=True, check=False)
            if owner.returncode == 0:
                found.add(owner.stdout.split(":")[0])
                break
        else:
            raise SystemExit(f"no package has {path}; its licence is unknown")
    return found


def copy_licenses(names, folder):
    """Copies what the packages say of their licences, and the texts that this refers to."""
    common = set()
    for name in names:
        for root in ("/", ROOT / "build" / "deps" / "root"):
            source = pathlib.Path(root) / "usr" / "share" / "doc" / name / "copyright"
            if source.exists():
                break
        else:
            raise SystemExit(f"the package {name} has no copyright file")
        shutil.copy(source, folder / f"{name}.txt")
        common |= set(re.findall(r"/usr/share/common-licenses/([\w.-]*\w)", source.read_text()))
    for name in common:
        shutil.copy(f"/usr/share/common-licenses/{name}", folder / f"common-{name}.txt")


def stage(folder):
    """Copies python/server to the folder, for the programs and their licences."""
    staged = folder / "server"
    shutil.copytree(ROOT / "python" / "server", staged)
    for name in ("CMakeLists.txt", "LICENSE"):
        shutil.copy(ROOT / name, staged)
    for name in ("programs", "licenses"):
        (staged / name).mkdir()
    return staged


def build_linux(folder):
    staged = stage(folder)
    needed = {}
    for program in ("server/opmill-server", "client/opmill"):
        built = ROOT / "build" / "release" / program
        run("strip", "-o", staged / "programs" / built.name, built)
        needed |= libraries(built)
    shutil.copy(needed[ALSO_NEEDED], staged / "programs" / ALSO_NEEDED)
    copy_licenses(packages(needed.values()) - EVERYWHERE | STATIC, staged / "licenses")
    hatchling(staged, folder)
    (wheel,) = folder.glob("opmill_server-*.whl")
    run(sys.executable, "-m", "auditwheel", "repair", "--only-plat", "-w", WHEELS, wheel,
        stderr=subprocess.DEVNULL)


def build_windows(folder):
    staged = stage(folder)
    for name in ("server/opmill-server.exe", "client/opmill.exe", "redist/d3dcompiler_47.dll"):
        if not (WINDOWS / name).exists():
            raise SystemExit(f"build/windows/{name} does not exist; ./dev windows build makes it")
        shutil.copy(WINDOWS / name, staged / "programs")
    copy_licenses(OF_WINDOWS, staged / "licenses")
    hatchling(staged, WHEELS)


def main():
    windows = sys.argv[1:] == ["windows"]
    for pattern in ("*-win_amd64.whl",) if windows else ("opmill-*.whl", "*-manylinux*.whl"):
        for wheel in WHEELS.glob(pattern):
            wheel.unlink()
    with tempfile.TemporaryDirectory(prefix="opmill-wheel-") as text:
        if windows:
            build_windows(pathlib.Path(text))
        else:
            hatchling(ROOT / "python", WHEELS)
            build_linux(pathlib.Path(text))
    for wheel in sorted(WHEELS.iterdir()):
        print(f"{wheel.relative_to(ROOT)}: {wheel.stat().st_size} bytes")


if __name__ == "__main__":
    main()
