"""`make faults`: every command is killed, terminated and aimed at many times, and run again after each; counts."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.faults.attempts import attack
from tests.faults.harness import CASES, benches


def main() -> int:
    parser = argparse.ArgumentParser(prog="make faults")
    parser.add_argument("--each", type=int, default=50, help="how often each command is hit, in each way")
    parser.add_argument("--seed", type=int, default=0, help="of the moments")
    parser.add_argument("commands", nargs="*", default=list(CASES), metavar="COMMAND", help=", ".join(CASES))
    asked = parser.parse_args()
    good = True
    with tempfile.TemporaryDirectory() as place, benches(Path(place), asked.commands) as all_of_them:
        for bench in all_of_them:
            for way, count in attack(bench, asked.each, asked.seed, again=True):
                sys.stdout.write(f"{bench.name}, {way}: {count}\n")
                sys.stdout.flush()
                good = good and count.good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
