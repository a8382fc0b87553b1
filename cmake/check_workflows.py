#!/usr/bin/env python3
"""Checks that the workflows run only verbs that ./dev and ./dev.ps1 have, and what prepares for them.

Every command is then one that can be tried without a workflow.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
# Installs git, marks the checkout as safe, makes a folder for a cache, publishes.
PREPARES = re.compile(r"apt-get |git config |New-Item |gh release create ")


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


def verbs_of_dev():
    body = read("dev").partition("case $verb in\n")[2]
    labels = re.findall(r"^  ([a-z][a-z -|]*)\)", body, re.MULTILINE)
    return {verb for label in labels for verb in label.split(" | ")}


def verbs_of_powershell():
    return set(re.findall(r"^  '([a-z]+)' \{", read("dev.ps1"), re.MULTILINE))


def commands(text):
    """The commands of a workflow, one for each value of a matrix."""
    values = [value.strip(' "') for listed in re.findall(r"^ +verb: \[(.*)\]$", text, re.MULTILINE)
              for value in listed.split(",")]
    for line in re.findall(r"^ +(?:- )?run: (.*)$", text, re.MULTILINE):
        if "${{ matrix.verb }}" in line:
            yield from (line.replace("${{ matrix.verb }}", value) for value in values)
        else:
            yield line


def main():
    verbs = {"./dev": verbs_of_dev(), "./dev.ps1": verbs_of_powershell()}
    failed = count = 0
    for path in sorted((ROOT / ".github" / "workflows").glob("*.yml")):
        for command in commands(path.read_text(encoding="utf-8")):
            count += 1
            script, *rest = command.split()
            if not (script in verbs and rest and rest[0] in verbs[script]
                    or PREPARES.match(command)):
                print(f"{path.relative_to(ROOT)}: '{command}' is no verb of ./dev or ./dev.ps1",
                      file=sys.stderr)
                failed = 1
    return failed or count == 0


if __name__ == "__main__":
    sys.exit(main())
