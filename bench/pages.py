"""Pages of docs that a simulation writes: tables between marks, from `python -m bench.NAME`."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from openloop.studies.kit.running import cache_folder
from openloop.studies.kit.trials import Given, Outcome, Setting, Trial, Trials
from openloop.support.atomic import write_text


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedPage:
    """A page, the marks between which its tables are put, and what makes them: tables(logs, map)."""

    name: str  # of the module, as bench.positions
    about: str | None
    path: Path
    marks: tuple[str, str]
    tables: Callable[..., Iterable[str]]
    quick: int  # logs a line in a trial
    logs: int = 200  # logs a line, unless another number is asked for

    def main(self, arguments: Sequence[str] | None = None) -> None:
        """Measure, and write the page."""
        asking = argparse.ArgumentParser(prog=self.name, description=self.about)
        asking.add_argument("--logs", type=int, default=self.logs, help=f"logs a line; default {self.logs}")
        asking.add_argument("--quick", action="store_true", help=f"{self.quick} logs a line, printed and not written")
        given = asking.parse_args(arguments)
        if given.quick:
            print("\n\n".join(self.tables(self.quick)))
            return
        with ProcessPoolExecutor(2) as pool:
            text = "\n\n".join(self.tables(given.logs, partial(pool.map, chunksize=4)))
        write_text(self.path, self.placed(self.path.read_text(encoding="utf-8"), text))
        print(f"written to {self.path}")

    def placed(self, page: str, text: str) -> str:
        """The page with the text between its marks."""
        return placed(self.path, page, text, self.marks)


def placed(path: Path, page: str, text: str, marks: tuple[str, str]) -> str:
    """What is on the page at `path`, with the text between its marks."""
    before, _, rest = page.partition(marks[0])
    _, end, after = rest.partition(marks[1])
    if not end:
        raise SystemExit(f"{path}: the marks {marks[0]} and {marks[1]} are missing; put them back.")
    return f"{before}{marks[0]}\n\n{text}\n\n{marks[1]}{after}"


def kept(trial: Trial, settings: Sequence[Setting], what: str, given: Given | None = None) -> list[Outcome]:
    """The outcomes of a trial with each setting, in two processes; those of an earlier run are not computed again."""
    with Trials(cache_folder(), 2) as trials:
        return trials.map(trial, given or {}, settings, lambda done, of: print(f"{what}: {done} of {of}", flush=True))
