"""`python -m bench.scaling [case ...]`: how time grows, and the figures of docs/performance.md.

What is measured is kept in bench/results/scaling, point by point, so a run that was stopped goes on where it was. With
some cases named, those are measured; the page is written once all are there.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from bench.scaling.cases import CASES
from bench.scaling.curves import RESULTS, complete, measured, read
from bench.scaling.page import PAGE, records, told, written


def main(arguments: Sequence[str] | None = None) -> None:
    asking = argparse.ArgumentParser(prog="bench.scaling", description=__doc__)
    asking.add_argument("case", nargs="*", help=f"of {', '.join(CASES)}; none means all")
    asking.add_argument("--again", action="store_true", help="measure anew what an earlier run measured")
    asked = asking.parse_args(arguments)
    for name in asked.case:
        if name not in CASES:
            asking.error(f"no case {name!r}; there are {', '.join(CASES)}")
    for name in asked.case or CASES:
        if asked.again:
            (RESULTS / f"{name}.json").unlink(missing_ok=True)
        show(name, RESULTS)
    found = {name: read(case) for name, case in CASES.items()}
    if absent := [name for name, case in CASES.items() if not complete(case, found[name])]:
        print(f"not measured yet: {', '.join(absent)}; the page is written once they are.")
        return
    written(list(CASES.values()), found)
    print(f"written to {PAGE}")


def show(name: str, folder: Path) -> None:
    """Measure a case, and print its curves: x, the side, its time, and the peak of its process."""
    case = CASES[name]
    for curve, rows in records(case, measured(case, folder)):
        print(f"{name}, {told(curve, rows)}")
        for row in rows:
            print(f"  {row['x']:>12,}  {row['side']:<14}{row['time']:>9.2f}{row['bytes'] / 2**20:>9.0f} MiB")


if __name__ == "__main__":
    main()
