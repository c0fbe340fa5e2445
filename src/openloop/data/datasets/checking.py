"""`check`: whether the files of a data set are there, parse, and hold what their publisher documents."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from openloop.data.datasets import bandit
from openloop.data.datasets.finding import Files, Folder, find, located, places, sha256
from openloop.data.datasets.loaders import loaded
from openloop.data.datasets.records import Dataset, Shape
from openloop.errors import OpenloopError


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that was checked, whether it is right (None: nothing is known), and what was found."""

    what: str
    good: bool | None
    found: str

    @property
    def mark(self) -> str:
        """✓, ✗, or – where nothing is known."""
        return "–" if self.good is None else "✓" if self.good else "✗"


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """The result of checking a data set.

    Attributes:
        name: The name of the data set.
        folder: The folder that was looked at.
        findings: What was checked, whether it is right, and what was found.
        shape: What the files hold, None where they do not parse.
        notes: What the loader says about the data set.

    Examples:
        >>> found = ol.datasets.check("coat", "an empty folder")
        >>> [(finding.mark, finding.what) for finding in found.findings]
        [('✗', 'files')]
    """

    name: str
    folder: Path
    findings: tuple[Finding, ...]
    shape: Shape | None = None
    notes: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Nothing is wrong."""
        return all(finding.good is not False for finding in self.findings)

    @property
    def verdict(self) -> str:
        """Whether anything is wrong, in a sentence."""
        return "Nothing is wrong." if self.ok else "Something is wrong: see ✗ above."

    def __str__(self) -> str:
        width = max(len(finding.what) for finding in self.findings)
        lines = [f"{finding.mark} {finding.what:<{width}}  {finding.found}" for finding in self.findings]
        return "\n".join([self.name, *lines, *(f"note: {note}" for note in self.notes), self.verdict])


def check(name: str, folder: Folder | None = None) -> Check:
    """Check whether the files of a data set are there, parse, and hold what their publisher documents.

    Args:
        name: The name of the data set.
        folder: The data folder; by default $OPENLOOP_DATA, or `data` in the current folder.

    Returns:
        The findings. What is missing or wrong is a finding, not an error.

    Examples:
        >>> found = ol.datasets.check("coat", "an empty folder")
        >>> found.ok
        False
    """
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
        shape, notes = _held(dataset, found)
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
    found = got if got == known else f"{got}, should be {known}; fetch it again"
    return Finding(what=f"SHA-256 of {path.name}", good=got == known, found=found)


def _held(dataset: Dataset, found: Files) -> tuple[Shape, tuple[str, ...]]:
    """What the files hold, and what is to be known of it."""
    if dataset.impressions:
        return bandit.held(found), ()
    data = loaded(dataset, found)
    return data.shape, (*data.notes, *_without(dataset, found))


def _without(dataset: Dataset, found: Files) -> Iterator[str]:
    """What is lost with the optional files that are not there."""
    for part in dataset.parts:
        if part.role not in found:
            yield f"without {part.patterns[0]}: no {part.holds}"


def _compared(dataset: Dataset, held: Shape) -> tuple[Finding, ...]:
    """What the files hold beside what is documented: of the version they are, or else of the usual one."""
    known = dataset.version(held) or dataset.shapes[0]
    if known.rows is None:
        return (Finding(what="contents", good=None, found=f"{held}; documented: {known}"),)
    pairs = zip(("users", "items", "rows", "open-loop rows"), held.numbers, known.numbers, strict=True)
    return tuple(_counted(*pair) for pair in pairs if pair[1:] != (None, None))


def _counted(what: str, got: int | None, documented: int | None) -> Finding:
    if documented is None:
        return Finding(what=what, good=None, found=f"{got:,}; none documented")
    good, count = got == documented, "none" if got is None else f"{got:,}"
    return Finding(what=what, good=good, found=count if good else f"{count}, documented: {documented:,}")
