"""`reproduce`: the items of a paper, run by name on the data that are present.

A study is a module of `openloop.studies` with PAPER and ITEMS, whose functions take a `Run` and return a frozen
`Result`; PUBLISHED has the numbers that the paper prints.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from openloop.data import datasets
from openloop.errors import InputError, MissingPackageError, did_you_mean
from openloop.studies.kit.fingerprint import versions
from openloop.studies.kit.results import Result, Table, unjudged
from openloop.studies.kit.trials import Given, Outcome, Setting, Spent, Trial, Trials
from openloop.support.arguments import is_whole
from openloop.support.atomic import FilePath, Recorded
from openloop.support.clock import seconds_since, start
from openloop.support.progress import Step, silent
from openloop.support.wording import joined

T = TypeVar("T")

STUDIES = ("schnabel2016", "lim2015", "jadidinejad2021", "race")
EXTRAS = {"cornac": "cornac", "torch": "torch"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Paper:
    """The paper that a study reproduces.

    Attributes:
        title: The title.
        authors: The authors, as on the title page.
        year: The year of publication.
        venue: The conference or journal.
        link: Where to read it.
    """

    title: str
    authors: str
    year: int
    venue: str
    link: str = ""

    def __str__(self) -> str:
        return f"{self.authors} ({self.year}). {self.title}. {self.venue}. {self.link}".strip()


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A table or figure of a paper, and what it takes to compute it.

    Attributes:
        name: The name by which it is asked for, such as "table1".
        title: What it shows.
        function: The function of a `Run` that computes it.
        data: The data sets of which it needs one; empty where it needs none.
        minutes: About how long a full run takes on two cores.
        packages: Optional packages without which it cannot run.
        published: A function that gives the paper's own tables, which are shown where the item cannot run.
        of_paper: The data sets that the paper has there; None means those of `data`.
    """

    name: str
    title: str
    function: Callable[[Run], Result]
    data: tuple[str, ...] = ()
    minutes: float
    packages: tuple[str, ...] = ()
    published: Callable[[], tuple[Table, ...]] | None = None
    of_paper: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What an item is run with: where the data are, how thoroughly, and how trials are computed."""

    folder: Path
    quick: bool
    seed: int
    trials: Trials
    step: Step = silent
    loaded: dict[str, str] = field(default_factory=dict[str, str])  # what is known of the data that were used
    editions: dict[str, str] = field(default_factory=dict[str, str])  # those of which another version was used

    def either(self, full: T, quick: T) -> T:
        """The first in a full run, the second in a quick one."""
        return quick if self.quick else full

    def present(self, *names: str) -> tuple[str, ...]:
        """Those of the data sets that are in the folder."""
        return tuple(name for name in names if datasets.present(name, self.folder))

    def load(self, name: str) -> datasets.Data:
        """A data set from its original files."""
        self.step(f"reading {name}", 0.0)
        found = datasets.load(name, self.folder)
        self.loaded[name] = _described(found, datasets.fingerprint(name, self.folder))
        version = datasets.find(name).version(found.shape)
        if version is not None and version.version:
            self.editions[name] = version.version
        return found

    def map(self, trial: Trial, given: Given, settings: Sequence[Setting], what: str) -> list[Outcome]:
        """The outcomes of a trial with each setting, in their order; those that are kept are not computed again."""

        def advance(done: int, total: int) -> None:
            self.step(f"{what}: {done:,} of {total:,}", done / total)

        return self.trials.map(trial, given, settings, advance) if settings else []

    def one(self, trial: Trial, given: Given, **setting: Any) -> Outcome:
        """The outcome of a single trial."""
        return self.map(trial, given, [setting], trial.__qualname__.replace("_", " "))[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Took:
    """What an item took: its trials, which it may share with other items, and the seconds of this run on the clock."""

    spent: Spent
    clock: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Reproduction(Recorded):
    """The results of a paper's items, and why others were left out.

    What changes from run to run (`took` and `notes`) is not in the records.

    Attributes:
        study: The name of the study.
        paper: The `Paper`.
        asked: The items that were asked for by name; empty for all.
        quick: Whether the run was a quick one.
        seed: The seed of all trials.
        results: The results of the items.
        left_out: Why items were left out, by name.
        data: What was loaded, by data set: its shape, the digest of its files, and what a reader should know.
        quoted: Items that cannot run, with the numbers that the paper prints.
        editions: The version of a data set, if it is not the usual one.
        of_paper: The paper's data sets, each with the items that the paper has of it, among those asked for.
        took: What each item took.
        workers: The number of processes.
        notes: What a reader should know about the run.
    """

    study: str
    paper: Paper
    asked: tuple[str, ...]  # the items that were asked for by name; none: all
    quick: bool
    seed: int
    results: tuple[Result, ...]
    left_out: Mapping[str, str]
    data: Mapping[str, str]  # what was loaded: its shape, the digest of its files, what a reader should know
    quoted: tuple[Result, ...] = ()
    editions: Mapping[str, str] = field(default_factory=dict[str, str])  # the version of a data set, if not the usual
    of_paper: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    took: Mapping[str, Took] = field(default_factory=dict[str, Took])  # by item
    workers: int = 0
    notes: tuple[str, ...] = ()  # on the run

    def __getitem__(self, item: str) -> Result:
        for result in self.results:
            if result.item == item:
                return result
        raise KeyError(f"no result {item!r}; there are {', '.join(result.item for result in self.results)}")

    def __repr__(self) -> str:
        return f"Reproduction({self.study}: {', '.join(result.item for result in self.results)})"

    def not_run(self) -> dict[str, tuple[str, ...]]:
        """The paper's data sets that were not used, each with the items that lack it."""
        used = {result.item: result.data for result in self.results}
        lacking = {
            name: tuple(i for i in items if name not in used.get(i, ())) for name, items in self.of_paper.items()
        }
        return {name: items for name, items in lacking.items() if items}

    def records(self) -> dict[str, Any]:
        """Everything but the charts as plain values."""
        return {
            "study": self.study, "paper": str(self.paper), "quick": self.quick, "seed": self.seed,
            "data": dict(self.data), "left_out": dict(self.left_out), "versions": list(versions()),
            "not_run": {name: list(items) for name, items in self.not_run().items()},
            "results": [result.plain() for result in self.results],
            "quoted": [result.plain() for result in self.quoted],
        }  # fmt: skip


def study(name: str | ModuleType) -> Any:
    """The module of a paper: PAPER and ITEMS."""
    if isinstance(name, ModuleType):
        lacking = [part for part in ("PAPER", "ITEMS") if not hasattr(name, part)]
        if lacking:
            raise InputError(
                f"reproduce: module {name.__name__!r} is not a study: it has no {joined(lacking)}; add them."
            )
        return name
    if name not in STUDIES:
        raise InputError(f"reproduce: no study {name!r}.{did_you_mean(str(name), STUDIES)}")
    return import_module(f"openloop.studies.{name}")


def reproduce(
    paper: str | ModuleType,
    items: Sequence[str] = (),
    *,
    data: FilePath | None = None,
    quick: bool = False,
    seed: int = 0,
    workers: int | None = None,
    cache: FilePath | None = None,
    step: Step = silent,
) -> Reproduction:
    """Recompute items of a paper, beside the published numbers.

    Args:
        paper: The name of a study, such as "schnabel2016", or a module of your own with PAPER and ITEMS.
        items: The items, such as ["table1"]; empty for all whose data are present.
        data: The folder of the data sets; by default $OPENLOOP_DATA, or data/ in the working directory.
        quick: Run fewer trials and models, which takes seconds. Quick numbers are a preview, and are not compared with
            the published ones.
        seed: The seed of all trials.
        workers: The number of processes; None takes one per core, 0 runs in this process.
        cache: The folder where trials are kept, so an interrupted run continues where it was; by default
            $XDG_CACHE_HOME/openloop.
        step: A function of (what, share done) that is told of the progress.

    Returns:
        The results of the items, and why others were left out.

    Examples:
        >>> import tempfile
        >>> import openloop as ol
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     found = ol.reproduce("jadidinejad2021", ["table1"], quick=True, workers=0, cache=folder)
        >>> found.paper.year, len(found.results)
        (2021, 1)
    """
    found, folder = study(paper), _existing(data)
    name = paper if isinstance(paper, str) else paper.__name__
    asked = _asked(name, found.ITEMS, items)
    _check(seed, workers)
    wanted, left_out = _divided(asked, folder, named=bool(items))
    at_once = (os.cpu_count() or 1) if workers is None else workers
    loaded: dict[str, str] = {}
    editions: dict[str, str] = {}
    took: dict[str, Took] = {}
    with Trials(cache_folder(cache), at_once) as trials:
        results: list[Result] = []
        for number, item in enumerate(wanted):
            share = _part(step, item.name, number, len(wanted))
            run = Run(
                folder=folder, quick=quick, seed=seed, trials=trials, step=share, loaded=loaded, editions=editions
            )
            began = start()
            result = replace(item.function(run), title=item.title)  # as the list has it
            took[item.name] = Took(spent=trials.spent(), clock=seconds_since(began))
            results.append(unjudged(result) if quick else result)
    return Reproduction(
        study=name,
        paper=found.PAPER,
        asked=tuple(items),
        quick=quick,
        seed=seed,
        results=tuple(results),
        left_out=left_out,
        data=loaded,
        editions=editions,
        of_paper=_of_paper(asked),
        quoted=tuple(_quoted(item, left_out[item.name]) for item in asked if item.name in left_out and item.published),
        took=took,
        workers=at_once,
        notes=tuple(trials.notes),
    )


def _quoted(item: Item, why: str) -> Result:
    """The numbers that the paper prints of an item that cannot run."""
    tables = () if item.published is None else item.published()
    return Result(item=item.name, title=item.title, tables=tables, not_rerun=why)


def _of_paper(items: Sequence[Item]) -> dict[str, tuple[str, ...]]:
    """The data sets of the paper, and its items of each."""
    found: dict[str, tuple[str, ...]] = {}
    for item in items:
        for name in item.data if item.of_paper is None else item.of_paper:
            found[name] = (*found.get(name, ()), item.name)
    return found


def listed(
    data: FilePath | None = None, paper: str | None = None
) -> Iterator[tuple[str, Item, tuple[str, ...], str | None]]:
    """Every item of one study or all, those of its data sets that are present, and why it cannot run, if so."""
    folder = _existing(data)
    for name in STUDIES if paper is None else (paper,):
        for item in study(name).ITEMS:
            here = tuple(d for d in item.data if datasets.present(d, folder))
            yield name, item, here, _lacking(item, folder)


def _existing(data: FilePath | None) -> Path:
    """The folder of the data sets; one that was given must be there."""
    folder = datasets.data_folder(data)
    if data is not None and not folder.exists():
        raise InputError(f"reproduce: data folder {str(folder)!r} does not exist; give the folder of the data sets.")
    return folder


def cache_folder(given: FilePath | None = None) -> Path:
    """Where trials are kept."""
    if given is not None:
        return Path(given).expanduser()
    base = os.environ.get("XDG_CACHE_HOME") or Path("~/.cache")
    return Path(base).expanduser() / "openloop"


def _asked(paper: str, items: Sequence[Item], names: Sequence[str]) -> list[Item]:
    known = {item.name: item for item in items}
    for name in names:
        if name not in known:
            raise InputError(f"reproduce: {paper} has no item {name!r}; it has {', '.join(known)}.")
    return [item for item in items if not names or item.name in names]


def _divided(items: Sequence[Item], folder: Path, *, named: bool) -> tuple[list[Item], dict[str, str]]:
    """The items that can run, and why the others cannot; an item that was asked for by name must."""
    reasons = {item.name: _lacking(item, folder) for item in items}
    missing = {name: why for name, why in reasons.items() if why is not None}
    if missing and (named or len(missing) == len(items)):
        name, why = next(iter(missing.items()))
        if any(absent(item) for item in items if item.name == name):
            raise MissingPackageError(f"reproduce: {name} {why}.")
        raise InputError(f"reproduce: {name} {why}. {looked_in(folder)}")
    return [item for item in items if item.name not in missing], missing


def _lacking(item: Item, folder: Path) -> str | None:
    """Why an item cannot run."""
    if absent(item):
        extras = ",".join(EXTRAS[package] for package in absent(item))
        return f"needs {joined(absent(item))}; pip install 'openloop[{extras}]'"
    if not item.data or any(datasets.present(name, folder) for name in item.data):
        return None
    some = item.data[0] if len(item.data) == 1 else f"one of {', '.join(item.data)}"
    return f"needs {some} in the data folder; `openloop datasets get {item.data[0]}` brings or describes it"


def looked_in(folder: Path) -> str:
    """Where data sets are looked for, and how to name another place; no part of a result, which knows no folder."""
    here = "" if folder.is_dir() else ", which does not exist"
    return f"Data sets are looked for in {str(folder.absolute())!r}{here}; pass data= with the folder that has them."


def absent(item: Item) -> list[str]:
    """The packages that an item needs and that are not installed."""
    return [package for package in item.packages if find_spec(package) is None]


def _described(data: datasets.Data, fingerprint: str) -> str:
    rows = f"{data.log.n_users:,} users × {data.log.n_items:,} items, {len(data.log):,} rows"
    beside = "" if data.open_loop is None else f" and {len(data.open_loop):,} of an open loop"
    return "; ".join([f"{rows}{beside}", *data.notes, f"SHA-256 of names and files {fingerprint[:16]}…"])


def _part(step: Step, name: str, number: int, total: int) -> Step:
    return lambda what, done: step(f"{name}: {what}", (number + done) / total)


def _check(seed: int, workers: int | None) -> None:
    if not is_whole(seed) or seed < 0:
        raise InputError(f"reproduce: seed must be a whole number from 0, got {seed!r}.")
    if workers is not None and not (is_whole(workers) and workers >= 0):
        raise InputError(f"reproduce: workers must be a whole number from 0 (none: this process), got {workers!r}.")
