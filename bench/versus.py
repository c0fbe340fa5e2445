"""`python -m bench.versus CHECKOUT [case ...] [--size SIZE]`: this tree against another checkout of openloop, in turns.

Both sides run the cases of this tree; only the `src` that they import differs. The ratio is of the medians of seconds
of processor, which what else the machine does disturbs least; memory is what the calls themselves took at their peak.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from bench import auditing
from bench.harness import ROOT, Side, make_input, race

ROUNDS = {"full": 5, "million": 2, "quick": 1}
LIMIT = 1.10  # slower than that is told


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A function of a bench module and its arguments; `{size}` stands for "full" or "quick".

    `sizes` are what the case has for a size, where that is another; `rounds` are fewer of what takes long.
    """

    call: str
    made: str = "{size}"
    rest: tuple[str, ...] = ()
    sizes: Mapping[str, str] = field(default_factory=lambda: {"million": "quick"})
    rounds: int = 5


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
    "auditing": Case(call="bench.versus:audit", sizes={"full": "tenth", "million": "quick"}),
    "audit of 20 M rows": Case(call="bench.versus:audit", sizes={"million": "tenth"}, rounds=1),
    "import": Case(call="bench.versus:importing"),
} | {
    f"scanned, {name}": Case(call=f"bench.scanned:{name}", sizes={}, rounds=2)
    for name in ("polars", "duckdb", "parquet", "memory", "columns", "group_by")
}


def make(folder: Path, size: str) -> None:
    auditing.make(folder, size)


def audit(folder: Path) -> Callable[[], float]:
    """The whole command, with its report."""
    return lambda: auditing.audited(folder, report=True)[1]


def importing(_folder: Path) -> Callable[[], None]:
    """`import openloop` and the first look at a learner, in a process of its own."""
    command = [sys.executable, "-c", "import openloop; openloop.learners.MF"]
    return lambda: subprocess.run(command, check=True, env=dict(os.environ)) and None


def versus(name: str, other: Path, size: str) -> dict[str, tuple[float, int]]:
    """Median seconds of processor and bytes of memory of this tree, "here", and of the other, "there"."""
    case, rounds = CASES[name], min(ROUNDS[size], CASES[name].rounds)
    size = case.sizes.get(size, size)
    rest = tuple(text.format(size=size) for text in case.rest)
    with tempfile.TemporaryDirectory() as folder:
        if name != "import":
            make_input(case.call.partition(":")[0], Path(folder), case.made.format(size=size))
        sides = {tree: Side(call=case.call, rest=rest, source=root / "src") for tree, root in
                 (("here", ROOT), ("there", other))}  # fmt: skip
        found = race(sides, Path(folder), rounds)
    return {tree: (median(own.cpu[1:] or own.cpu), own.grown) for tree, own in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.versus", description=__doc__)
    parser.add_argument("checkout", type=Path, help="the other tree, which has a folder src")
    parser.add_argument("case", nargs="*", help=f"of {', '.join(CASES)}; none means all")
    parser.add_argument("--size", choices=list(ROUNDS), default="full", help="of the inputs; quick is for a trial")
    asked = parser.parse_args()
    if not (asked.checkout / "src" / "openloop").is_dir():
        parser.error(f"{asked.checkout} has no src/openloop; give the folder of a checkout")
    for name in asked.case or CASES:
        found = versus(name, asked.checkout.resolve(), asked.size)
        sides = "   ".join(f"{tree} {cpu:8.3g} s {grown >> 20:6,} MiB" for tree, (cpu, grown) in found.items())
        ratio = found["here"][0] / found["there"][0]
        told = f"  slower than {LIMIT}×" if ratio > LIMIT else ""
        print(f"{name:20} {sides}   here/there {ratio:.3f}{told}", flush=True)


if __name__ == "__main__":
    main()
