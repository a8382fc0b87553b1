#!/usr/bin/env python3
"""What differs from the commit that this branch was made from: the newest one that it shares with origin/main. On
main itself, that is the newest commit that is 4 hours older than the last one.

changed.py EXPRESSION: prints the files that differ and whose path has a match of the regular expression, or why any
may differ. It exits with 1 if there is none.
"""

import re
import subprocess
import sys

HOURS_OF_A_PUSH = 4  # what is pushed to main together is at most this old; each night checks everything


def git(*arguments):
    result = subprocess.run(["git", *arguments], capture_output=True, text=True, check=False)
    return result.stdout.splitlines() if result.returncode == 0 else None


def changes():
    """What differs from the base, and the base's name; None if everything may."""
    head, = git("rev-parse", "HEAD")
    base = git("merge-base", "HEAD", "origin/main")
    if not base or base == [head]:
        made = int(git("show", "--no-patch", "--format=%ct", "HEAD")[0])
        base = git("rev-list", "-1", f"--before={made - HOURS_OF_A_PUSH * 3600}", "HEAD")
    if not base:
        return None, f"no commit is {HOURS_OF_A_PUSH} hours older than the last one"
    changed = set(git("diff", "--name-only", base[0])) | set(
        git("ls-files", "--others", "--exclude-standard"))
    return changed, f"since {base[0][:12]}"


def main():
    changed, why = changes()
    if changed is None:
        print(why)
        return 0
    found = sorted(path for path in changed if re.search(sys.argv[1], path))
    print("\n".join(found), end="\n" if found else "")
    return not found


if __name__ == "__main__":
    sys.exit(main())
