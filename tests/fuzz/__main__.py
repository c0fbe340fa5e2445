"""`python -m tests.fuzz --minutes N --seed S`: tries changed files until the time is up, and prints the counts."""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from pathlib import Path

from tests.fuzz.cases import CASES, Counts, tried


def main() -> int:
    """0 where nothing failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--case", choices=list(CASES), help="try this case with this seed, once")
    parser.add_argument("--keep", type=Path, default=Path("fuzz-failures"), help="where the files of failures go")
    asked = parser.parse_args()
    counts = Counts()
    if asked.case:
        tried(asked.case, asked.seed, counts, asked.keep)
    else:
        _until(time.monotonic() + 60 * asked.minutes, asked.seed, counts, asked.keep)
    for failure in counts.failures:
        _tell(failure)
    _tell(counts)
    return 1 if counts.failures else 0


def _tell(what: object) -> None:
    sys.stdout.write(f"{what}\n")
    sys.stdout.flush()


def _until(end: float, seed: int, counts: Counts, keep: Path) -> None:
    told = time.monotonic()
    for number in itertools.count(seed):
        for kind, times in (
            ("read", 10),
            ("model", 2),
            ("archive", 2),
            ("cache", 1),
            ("command", 2),
            ("modes", 1),
            ("report", 1),
        ):
            for part in range(times):
                tried(kind, 100 * number + part, counts, keep)
        if time.monotonic() > told + 30:
            told = time.monotonic()
            _tell(counts)
        if time.monotonic() > end:
            return


if __name__ == "__main__":
    sys.exit(main())
