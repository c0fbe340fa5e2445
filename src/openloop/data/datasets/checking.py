"""`check`: are a data set's files there, do they parse, and do they hold what their publisher says?"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from openloop.data.datasets.finding import Folder, find, located, places, sha256
from openloop.data.datasets.loaders import load, rows
from openloop.data.datasets.records import Dataset, Shape
from openloop.errors import FormatError, OpenloopError


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that was checked, whether it is right (None: nothing is known), and what was found."""

    what: str
    good: bool | None
    found: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """All that was checked of a data set; `shape` is what the files hold, None where they do not parse."""

    name: str
    folder: Path
    findings: tuple[Finding, ...]
    shape: Shape | None = None
    notes: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Nothing is wrong."""
        return all(finding.good is not False for finding in self.findings)


def check(name: str, folder: Folder | None = None) -> Check:
    """Check the files of a data set; what is wrong is told, not raised."""
    dataset = find(name)
    try:
        found = located(name, folder)
    except OpenloopError as error:
        absent = Finding(what="files", good=False, found=str(error))
        return Check(name=name, folder=places(dataset, folder)[0], findings=(absent,))
    files = [path for paths in found.values() for path in paths]
    there = Finding(what="files", good=True, found=f"{len(files):,} in {str(_above(files))!r}")
    digests = tuple(_digest(part.sha256, found[part.role][0]) for part in dataset.parts if part.sha256)
    try:
        shape, notes = _held(dataset, folder)
    except (OpenloopError, OSError) as error:
        broken = Finding(what="contents", good=False, found=str(error))
        return Check(name=name, folder=_above(files), findings=(there, *digests, broken))
    findings = (there, *digests, *_compared(dataset, shape))
    return Check(name=name, folder=_above(files), findings=findings, shape=shape, notes=notes)


def _above(files: list[Path]) -> Path:
    """The folder that holds all files."""
    above = files[0].parent
    while not all(path.is_relative_to(above) for path in files):
        above = above.parent
    return above


def _digest(known: str, path: Path) -> Finding:
    got = sha256(path)
    told = got if got == known else f"{got}, should be {known}; fetch it again"
    return Finding(what=f"SHA-256 of {path.name}", good=got == known, found=told)


def _held(dataset: Dataset, folder: Folder | None) -> tuple[Shape, tuple[str, ...]]:
    """What the files hold, and what is to be known of it."""
    if not dataset.impressions:
        data = load(dataset.name, folder)
        return data.shape, data.notes
    import polars as pl

    try:
        table = rows(dataset.name, folder).select("item_id", "click", "propensity_score", "policy").collect()
    except pl.exceptions.PolarsError as error:
        msg = f"{dataset.name}: must hold numbers in the columns of its format ({error}); fetch it again."
        raise FormatError(msg) from error
    return Shape(version=f"{table.height:,} impressions of {table['policy'].n_unique()} policies"), ()


def _compared(dataset: Dataset, held: Shape) -> tuple[Finding, ...]:
    """What the files hold beside what is documented: of the version they are, or else of the usual one."""
    known = dataset.version(held) or dataset.shapes[0]
    if known.rows is None:
        return (Finding(what="contents", good=None, found=f"{held}; documented: {known}"),)
    pairs = zip(("users", "items", "rows", "open-loop rows"), held.numbers, known.numbers, strict=True)
    return tuple(_counted(what, got, said) for what, got, said in pairs if got is not None or said is not None)


def _counted(what: str, got: int | None, said: int | None) -> Finding:
    if said is None:
        return Finding(what=what, good=None, found=f"{got:,}; none documented")
    told = "none" if got is None else f"{got:,}"
    return Finding(what=what, good=got == said, found=told if got == said else f"{told}, documented: {said:,}")
