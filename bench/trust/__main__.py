"""`python -m bench.trust [part ...]`: measure how far answers can be trusted, and write docs/trust.md.

What is measured is kept in the cache folder, trial by trial, so a run that was stopped goes on where it was. The page
is written when all parts are there: `python -m bench.trust decisions` measures one part and prints it.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, fields
from importlib import import_module
from pathlib import Path

from bench.harness import ROOT, data_folder
from bench.trust.page import page
from bench.trust.parts import Asked, Part, Sizes
from openloop.data.datasets import data_folder as named_folder
from openloop.studies.kit.running import Run, cache_folder
from openloop.studies.kit.trials import Trials
from openloop.support.atomic import write_text

PARTS = ("cases", "coverage", "decisions", "real_logs", "turning")
PAGE = ROOT / "docs" / "trust.md"
QUICK = Sizes(cases=4, coverage=10, decisions=1, turning=10, users=80, items=60)


def measured(names: Sequence[str], asked: Asked) -> list[Part]:
    """The parts of these names."""
    return [import_module(f"bench.trust.{name}").measure(asked) for name in names]


def told() -> Callable[[str, float], None]:
    """Say on stderr what is being done: all of it to a terminal, a line a minute to a file."""
    last = [0.0]

    def step(what: str, _: float) -> None:
        terminal = sys.stderr.isatty()
        if terminal or time.monotonic() - last[0] > 60:
            last[0] = time.monotonic()
            sys.stderr.write(f"\r\033[K{what}" if terminal else f"{what}\n")
            sys.stderr.flush()

    return step


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="bench.trust", description=__doc__)
    made.add_argument("part", nargs="*", help=f"of {', '.join(PARTS)}; none means all, and the page")
    for field in fields(Sizes):
        made.add_argument(f"--{field.name}", type=int, default=None, metavar="N", help=f"default {field.default}")
    made.add_argument("--quick", action="store_true", help="a trial in small; its page is printed, not written")
    made.add_argument("--data", type=Path, help="folder of the data sets ($OPENLOOP_DATA, or ../shared/data)")
    made.add_argument("--cache", type=Path, help="where trials are kept")
    made.add_argument("--workers", type=int, default=2, help="processes (0: this one); default 2")
    return made


def main(arguments: Sequence[str] | None = None) -> None:
    asking = parser()
    given = asking.parse_args(arguments)
    for name in given.part:
        if name not in PARTS:
            asking.error(f"no part {name!r}; there are {', '.join(PARTS)}")
    chosen = {f.name: getattr(given, f.name) for f in fields(Sizes) if getattr(given, f.name) is not None}
    sizes = Sizes(**(asdict(QUICK if given.quick else Sizes()) | chosen))
    beside = data_folder("ml-100k")
    folder = named_folder(given.data) if given.data or beside is None else beside.parent
    with Trials(cache_folder(given.cache) / "trust", given.workers) as trials:
        run = Run(folder=folder, quick=given.quick, seed=0, trials=trials, step=told())
        found = measured(given.part or PARTS, Asked(run=run, sizes=sizes))
    said = "".join(f" --{name} {value}" for name, value in chosen.items())
    text = page(found, sizes, f"python -m bench.trust{said}")
    if given.part or given.quick:
        print(text)
    else:
        write_text(PAGE, text)
        print(f"written to {PAGE}")


if __name__ == "__main__":
    main()
