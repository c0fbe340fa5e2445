"""`python -m bench.versus CHECKOUT [case ...] [--quick]`: this tree against another checkout of openloop, in turns.

Both sides run the cases of this tree; only the `src` that they import differs. The ratio is of the medians.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from bench import auditing
from bench.harness import ROOT, Side, make_input, race

ROUNDS = {"full": 5, "quick": 1}
LIMIT = 1.10  # slower than that is told


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A function of a bench module and its arguments; `{size}` stands for "full" or "quick"."""

    call: str
    made: str = "{size}"
    rest: tuple[str, ...] = ()


CASES = {
    "ranks": Case(call="bench.ranks:ours"),
    "ndcg, pandas": Case(call="bench.ndcg_frame:ours_pandas"),
    "ndcg, Polars": Case(call="bench.ndcg_frame:ours_polars"),
    "ndcg, Feedback": Case(call="bench.ndcg_frame:ours_feedback"),
    "moments": Case(call="bench.moments:ours"),
    "moments, checked": Case(call="bench.moments:ours_checked"),
    "bootstrap": Case(call="bench.bootstrap:ours"),
    "logistic": Case(call="bench.logistic:ours"),
    "offsets": Case(call="bench.offsets:offsets", made="offsets {size}"),
    "covariates": Case(call="bench.offsets:covariates", made="covariates {size}"),
    "violators": Case(call="bench.violators:ours", rest=("2",)),
    "factorisation": Case(call="bench.factorisation:ours", rest=("3",)),
    "selecting": Case(call="bench.selecting:ours", rest=("{size}",)),
    "auditing": Case(call="bench.versus:audit", made="{size}"),
    "import": Case(call="bench.versus:importing"),
}
SHORTER = {"auditing": {"full": "tenth"}}  # the whole takes a minute per call


def make(folder: Path, size: str) -> None:
    auditing.make(folder, size)


def audit(folder: Path) -> Callable[[], float]:
    """The whole command, with its report."""
    return lambda: auditing.audited(folder, report=True)[1]


def importing(_folder: Path) -> Callable[[], None]:
    """`import openloop` and the first look at a learner, in a process of its own."""
    command = [sys.executable, "-c", "import openloop; openloop.learners.MF"]
    return lambda: subprocess.run(command, check=True, env=dict(os.environ)) and None


def versus(name: str, other: Path, size: str) -> tuple[float, float]:
    """Median seconds of this tree and of the other."""
    case, size = CASES[name], SHORTER.get(name, {}).get(size, size)
    rest = tuple(text.format(size=size) for text in case.rest)
    with tempfile.TemporaryDirectory() as folder:
        if name != "import":
            make_input(case.call.partition(":")[0], Path(folder), case.made.format(size=size))
        sides = {tree: Side(call=case.call, rest=rest, source=root / "src") for tree, root in
                 (("here", ROOT), ("there", other))}  # fmt: skip
        found = race(sides, Path(folder), ROUNDS["quick" if size == "quick" else "full"])
    here, there = (median(found[tree].seconds[1:] or found[tree].seconds) for tree in ("here", "there"))
    return here, there


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.versus", description=__doc__)
    parser.add_argument("checkout", type=Path, help="the other tree, which has a folder src")
    parser.add_argument("case", nargs="*", help=f"of {', '.join(CASES)}; none means all")
    parser.add_argument("--quick", action="store_true", help="small inputs, for a trial")
    asked = parser.parse_args()
    if not (asked.checkout / "src" / "openloop").is_dir():
        parser.error(f"{asked.checkout} has no src/openloop; give the folder of a checkout")
    for name in asked.case or CASES:
        here, there = versus(name, asked.checkout.resolve(), "quick" if asked.quick else "full")
        ratio = here / there
        told = f"  slower than {LIMIT}×" if ratio > LIMIT else ""
        print(f"{name:18} here {here:8.3g} s   there {there:8.3g} s   here/there {ratio:.3f}{told}", flush=True)


if __name__ == "__main__":
    main()
