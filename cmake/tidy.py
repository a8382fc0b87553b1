#!/usr/bin/env python3
"""Runs clang-tidy on sources: tidy.py [--all] CLANG_TIDY BUILD.

By default on those that differ, or whose header does, from the commit that changed.py compares with, and on as few
others as include every other header that differs. In the rest, only how they use what differs could be wrong: --all,
which runs each night, reads every source. So does a run without such a commit, or if the checks themselves differ.

A source that has passed is not checked again before it, what it includes, or the checks change; build/lint
holds the hashes of those. Each is read alone, also if the build joins it with others: only then is a missing #include
seen.
"""

import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys

from changed import changes, git

CHECKS = {".clang-tidy", "cmake/lint_requirements.txt", "cmake/warnings.cmake"}
PASSED = pathlib.Path("build/lint")
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
GENERATED = re.compile(r"(\.grpc)?\.pb\.h$")
# Precompiled headers and these options are gcc's. The former would hide that a source does not include what it
# uses.
PRECOMPILED = re.compile(
    r" -Winvalid-pch| -include \S*/cmake_pch\.hxx| -Wno-(stringop|array|subobject)-\w+| --param=\S+")


def commands_of(build):
    """The command that compiles each source, alone also where the build joins several."""
    for command in json.loads((build / "compile_commands.json").read_text()):
        file = command["file"]
        for path in INCLUDE.findall(pathlib.Path(file).read_text()) if "/Unity/" in file else [file]:
            yield command | {"file": path, "command": PRECOMPILED.sub("", command["command"]).replace(file, path)}


class Sources:
    """The files of this repository that a file includes, itself among them."""

    def __init__(self):
        self.direct = {}

    def includes(self, path):
        if path not in self.direct:
            names = INCLUDE.findall(pathlib.Path(path).read_bytes().decode())
            names += ["proto/" + GENERATED.sub(".proto", name) for name in names]
            self.direct[path] = {name for name in names if os.path.isfile(name)}
        return self.direct[path]

    def closure(self, path):
        found, rest = {path}, [path]
        while rest:
            added = self.includes(rest.pop()) - found
            found |= added
            rest += added
        return found


def key(files, command):
    digest = hashlib.sha256(command.encode())
    for path in sorted(files | CHECKS):
        digest.update(path.encode() + b"\0" + hashlib.sha256(pathlib.Path(path).read_bytes()).digest())
    return PASSED / digest.hexdigest()[:32]


def cover(touched, changed):
    """Of sources, each with the changed files that it includes: those that changed or whose header did, and as few
    others as include the rest."""
    read = {path for path in touched if not changed.isdisjoint((path, path[:-2] + "h"))}
    rest = set().union(*touched.values()).difference(*(touched[path] for path in read))
    while rest:
        most = max(touched, key=lambda path: len(touched[path] & rest))
        read.add(most)
        rest -= touched[most]
    return read


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("clang_tidy")
    parser.add_argument("build", type=pathlib.Path)
    arguments = parser.parse_args()

    PASSED.mkdir(parents=True, exist_ok=True)
    commands = {os.path.relpath(command["file"]): command for command in commands_of(arguments.build)}
    (PASSED / "compile_commands.json").write_text(json.dumps(list(commands.values())))

    changed, why = (None, "--all") if arguments.all else changes()
    if changed is not None and changed & CHECKS:
        changed, why = None, "the checks differ"
    sources = Sources()
    tracked = set(git("ls-files", "--cached", "--others", "--exclude-standard", "*.cc"))
    closures = {path: sources.closure(path) for path in sorted(tracked & commands.keys())}
    touched = read = closures.keys()
    if changed is not None:
        touched = {path: files & changed for path, files in closures.items() if files & changed}
        read = cover(touched, changed)
    passed = {path: key(closures[path], commands[path]["command"]) for path in sorted(read)}
    waiting = [path for path in passed if not passed[path].exists()]
    print(f"clang-tidy: {len(read)} of {len(touched)} sources that the change touches ({why}), "
          f"{len(waiting)} not yet passed", flush=True)

    def tidy(path):
        result = subprocess.run([arguments.clang_tidy, "--quiet", "-p", PASSED, path],
                                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
        if result.returncode == 0:
            passed[path].touch()
        return result

    failed = False
    jobs = int(os.environ.get("OPMILL_JOBS") or os.cpu_count())
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for result in pool.map(tidy, waiting):
            print(result.stdout, end="", flush=True)
            failed |= result.returncode != 0
    return failed


if __name__ == "__main__":
    sys.exit(main())
