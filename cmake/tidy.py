#!/usr/bin/env python3
"""Runs clang-tidy on sources: tidy.py [--all] CLANG_TIDY BUILD.

By default on those that differ, or include what differs, from the commit that changed.py compares with; on all
sources if there is no such commit, or if the checks themselves differ.

A source that has passed is not checked again before it, what it includes, or the checks change; build/lint
holds the hashes of those.

Sources that the build joins are read together if only what they include has changed, which takes a quarter of
the time. Any that changed themselves are read alone, and so does --all: only then is a missing #include seen.
"""

import argparse
import collections
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
JOINED = re.compile(r"/Unity/unity_\d+_cxx\.cxx$")  # several sources as one
JOINED_FILTER = r"--header-filter=(kernels|shaders|tests|server|client)/.*\.(h|cc)$"


def commands_of(build):
    """The commands that compile each source alone, and those that compile several as one."""
    for command in json.loads((build / "compile_commands.json").read_text()):
        command["command"] = PRECOMPILED.sub("", command["command"])
        joined = command["file"]
        yield command
        if JOINED.search(joined):
            for path in INCLUDE.findall(pathlib.Path(joined).read_text()):
                yield command | {"file": path, "joined": joined,
                                 "command": command["command"].replace(joined, path)}


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


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("clang_tidy")
    parser.add_argument("build", type=pathlib.Path)
    arguments = parser.parse_args()

    PASSED.mkdir(parents=True, exist_ok=True)
    commands = list(commands_of(arguments.build))
    of_source = {os.path.relpath(command["file"]): command for command in commands}
    joined_into = {}
    for command in commands:
        if "joined" in command:  # which clang-tidy refuses
            joined_into[os.path.relpath(command["file"])] = command.pop("joined")
    (PASSED / "compile_commands.json").write_text(json.dumps(commands))

    changed, why = (None, "--all") if arguments.all else changes()
    if changed is not None and changed & CHECKS:
        changed, why = None, "the checks differ"
    sources, checked = Sources(), []
    tracked = set(git("ls-files", "--cached", "--others", "--exclude-standard", "*.cc"))
    for path in sorted(tracked & of_source.keys()):
        files = sources.closure(path)
        if changed is None or files & changed:
            checked.append((path, key(files, of_source[path]["command"])))
    waiting = {path: passed for path, passed in checked if not passed.exists()}
    units = collections.defaultdict(list)  # read together
    for path in waiting:
        is_alone = changed is None or path in changed
        units[path if is_alone else joined_into.get(path, path)].append(path)
    units = {unit if len(paths) > 1 else paths[0]: paths for unit, paths in units.items()}
    print(f"clang-tidy: {len(checked)} of {len(tracked)} sources ({why}), {len(waiting)} not yet passed",
          flush=True)

    def tidy(unit, paths):
        """Statuses and outputs."""
        result = subprocess.run([arguments.clang_tidy, "--quiet", "-p", PASSED,
                                 *([] if unit in paths else [JOINED_FILTER]), unit],
                                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
        if result.returncode == 0:
            for path in paths:
                waiting[path].touch()
        elif unit not in paths:  # the names of one source may trouble another one
            return [answer for path in paths for answer in tidy(path, [path])]
        return [(result.returncode, result.stdout)]

    failed = False
    jobs = int(os.environ.get("OPMILL_JOBS") or os.cpu_count())
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for answers in pool.map(tidy, units.keys(), units.values()):
            for status, output in answers:
                print(output, end="", flush=True)
                failed |= status != 0
    return failed


if __name__ == "__main__":
    sys.exit(main())
