"""Adds the cases that recorded.jsonl lacks, with the answers of the server of build/release.

    ./dev exec build/venv/bin/python tests/contract/record.py [--replace NAME...]

Existing entries do not change. If a request or an answer differs from its entry, the script prints the
name, and the exit status is 1. --replace records the named entries again. --replace schema stores the
current proto/ as the contract that decodes the answers, so that fields that were added since are
recorded."""

import argparse
import sys

import recording
from recording import Player, Recordings

# pylint: disable=wrong-import-order
import api
import computed
import encoded
import refused
import streamed
from server_process import ServerProcess


def cases_by_name():
    by_name = {}
    for module in (computed, refused, streamed, encoded):
        for case in module.cases():
            assert case.name not in by_name, f"{case.name} is given twice"
            by_name[case.name] = case
    return by_name


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replace", nargs="+", default=[], metavar="NAME",
                        help="entries to record again, or schema")
    replace = set(parser.parse_args().replace)
    cases = cases_by_name()
    if unknown := replace - set(cases) - {"schema"}:
        parser.error(f"--replace names no case: {', '.join(sorted(unknown))}")

    recordings = (Recordings.load() if recording.FILE.exists()
                  else Recordings(recording.schema_of_today(), {}))
    if "schema" in replace:
        recordings.schema = recording.schema_of_today()
    added, replaced, differ = [], [], []
    with ServerProcess(*recording.SERVER_FLAGS, device="reference") as server:
        with api.connect(server.address) as channel:
            player = Player(channel, recordings.schema)
            for name, case in cases.items():
                case.answer = player.answer(case)
                known = recordings.cases.get(name)
                if known == case:
                    continue
                if known is not None and name not in replace:
                    differ.append(name)
                    continue
                (added if known is None else replaced).append(name)
                recordings.cases[name] = case
    if added or replaced or "schema" in replace:
        recordings.save()
    print(f"{len(recordings.cases)} recordings: {len(added)} added, {len(replaced)} replaced")
    for name in differ:
        print(f"{name} differs from its entry, which is kept; --replace {name} replaces it")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
