"""Checks the arrows between rooms: a room may include itself and the rooms before it."""

import re
import subprocess
import sys

# A room is a folder; "." is what lies beside the rooms. A room within another one has its own place.
ROOMS = {
    "kernels": ("base", "descriptor", "dims", "program", "engine", "plan", "reference", "cpu", "operators", "onnx",
                "reference/device", "cpu/device", "d3d12"),
    "server": ("config", "status", "observe", "traces", "host", "network", "access", "models", "tensors", "execution", "shared_memory", "api",
               "oip", "http", "metrics", "flags", "."),
}
# What a part of the tree may include, apart from itself.
PARTS = {"kernels": (), "client": ("kernels",), "server": ("kernels",)}


def room_of(path):
    """The innermost of the rooms that contain the file."""
    part, *folders = path.split("/")[:-1]
    inside = ["/".join(folders[:depth]) for depth in range(len(folders), 0, -1)]
    return next((room for room in inside if room in ROOMS.get(part, ())), folders[0] if folders else ".")


def findings_of(path, included):
    part, target = path.split("/")[0], included.split("/")[0]
    if target in ("kernels", "client", "server", "tests") and target not in (part, *PARTS[part]):
        yield f"{part}/ must not include {target}/"
    if part != target or part not in ROOMS:
        return
    order, here, there = ROOMS[part], room_of(path), room_of(included)
    unknown = [room for room in (here, there) if room not in order]
    if unknown:
        yield f"cmake/check_includes.py does not know the room {part}/{unknown[0]}"
    elif order.index(there) > order.index(here):
        yield f"{part}/{here} must not include {part}/{there}"


def main():
    count = 0
    sources = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", "--",
                              *(f"{part}/*.{end}" for part in PARTS for end in ("cc", "h", "inc"))],
                             check=True, capture_output=True, text=True).stdout.split()
    for path in sources:
        with open(path, encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                match = re.match(r'#include "([^"]+)"', line)
                for finding in findings_of(path, match.group(1)) if match else ():
                    print(f"{path}:{number}: {finding}: {match.group(1)}", file=sys.stderr)
                    count += 1
    return 1 if count else 0


sys.exit(main())
