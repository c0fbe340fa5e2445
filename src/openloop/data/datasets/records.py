"""The nouns of data sets: what is known of one beforehand, and what its loader returns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from openloop.core.covariates import Covariates
from openloop.core.feedback import Feedback, Floats, check_propensities, frozen
from openloop.errors import AlignmentError, InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A file or files that a loader reads: the first of `patterns`, globs below the folder, that finds any.

    `holds` says what is lost without an optional one.
    """

    role: str
    patterns: tuple[str, ...]
    optional: bool = False
    sha256: str | None = None
    holds: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """The ratings that a data set may hold: from `least` to `most`, None for no end, in steps, 0 for any number."""

    least: float
    most: float | None = None
    step: float = 0

    def outside(self, ratings: npt.NDArray[np.floating]) -> npt.NDArray[np.bool_]:
        """Which ratings are none of the scale."""
        found = (ratings < self.least) | (ratings > (np.inf if self.most is None else self.most))
        return found | (np.mod(ratings - self.least, self.step) != 0) if self.step else found

    def __str__(self) -> str:
        steps = "" if self.step in {0, 1} else f" in steps of {self.step:g}"
        kind = "whole numbers" if self.step == 1 else "numbers"
        if self.most is None:
            return f"{kind} from {self.least:g} on{steps}"
        return f"{kind} from {self.least:g} to {self.most:g}{steps}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Archive:
    """What `get` downloads: an archive or a single file, its bytes, and its digests where they are known."""

    url: str
    size: int | None = None
    sha256: str | None = None
    md5: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """The documented numbers of a version: users, items and rows of the log, and rows of the open-loop part."""

    users: int | None = None
    items: int | None = None
    rows: int | None = None
    open_loop: int | None = None
    version: str = ""

    @property
    def numbers(self) -> tuple[int | None, ...]:
        """Users, items, rows, and rows of the open-loop part."""
        return self.users, self.items, self.rows, self.open_loop

    def __str__(self) -> str:
        if self.users is None or self.items is None or self.rows is None:
            return self.version
        drawn = "" if self.open_loop is None else f" + {self.open_loop:,}"
        return f"{self.users:,} × {self.items:,}; {self.rows:,}{drawn}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """What is known of a data set beforehand: where it comes from, its terms, and what it should hold.

    Args:
        name: The name by which it is loaded.
        title: Its name in print.
        home: The address of its page.
        terms: Its terms of use.
        parts: The files that its loader reads.
        shapes: The documented numbers of its versions, the usual version first.
        archive: What is downloaded. None where its publisher asks for an agreement or an account first, or no longer
            offers it.
        apply: Where to ask, and what to do with the files, for a data set without an archive.
        folders: The names that its folder may have; a download makes the first.
        impressions: Whether its rows are impressions, without users and ratings.
        scale: The scale of its ratings.

    Examples:
        >>> movielens = ol.datasets.find("ml-100k")
        >>> movielens.gated, str(movielens.scale)
        (False, 'whole numbers from 1 to 5')
    """

    name: str
    title: str
    home: str
    terms: str
    parts: tuple[Part, ...]
    shapes: tuple[Shape, ...]
    archive: Archive | None = None
    apply: str = ""
    folders: tuple[str, ...] = ()
    impressions: bool = False
    scale: Scale | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "folders", self.folders or (self.name,))
        if (self.archive is None) != bool(self.apply):
            msg = f"Dataset {self.name!r}: needs an archive to download or words on how to apply; give one of the two."
            raise InputError(msg)

    @property
    def gated(self) -> bool:
        """Whether it cannot be downloaded: its publisher asks for an agreement first, or no longer offers it."""
        return self.archive is None

    @property
    def unstated(self) -> bool:
        """Whether its publisher states no terms of use."""
        return self.terms.startswith("None stated")

    def version(self, found: Shape) -> Shape | None:
        """The documented version with the numbers of the files that were `found`, None where there is none."""
        return next((shape for shape in self.shapes if shape.numbers == found.numbers), None)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Data:
    """A data set in memory: the log, and what came with it.

    Attributes:
        name: The name of the data set.
        log: The log.
        open_loop: Cells that were drawn at random, over the vocabularies of the log. It is not marked `uniform`, so
            models may be scored on it.
        propensities: The publisher's propensities, (U, I).
        user_covariates: What is known about each user.
        item_covariates: What is known about each item.
        notes: What a reader should know about it.

    Examples:
        >>> data = ol.datasets.Data(name="movie lovers", log=ol.simulate.movie_lovers().observe(0))
        >>> data
        Data('movie lovers', Feedback(2,186 of 100 users × 80 items, with propensity))
    """

    name: str
    log: Feedback
    open_loop: Feedback | None = None
    propensities: Floats | None = None
    user_covariates: Covariates | None = None
    item_covariates: Covariates | None = None
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        log, drawn = self.log, self.open_loop
        if drawn is not None and (drawn.users != log.users or drawn.items != log.items):
            msg = f"{self.name}: log and open_loop must share their vocabularies; read both with the same ids."
            raise AlignmentError(msg)
        Covariates.of(self.user_covariates, log.users, "user")
        Covariates.of(self.item_covariates, log.items, "item")
        if self.propensities is not None:
            self._check_propensities(self.propensities)
            object.__setattr__(self, "propensities", frozen(self.propensities))

    def _check_propensities(self, given: Floats) -> None:
        grid = (self.log.n_users, self.log.n_items)
        if given.shape != grid:
            raise AlignmentError(
                f"{self.name}: propensities must have the grid's shape {grid}, got {given.shape}; give every cell one."
            )
        check_propensities(f"{self.name}: propensities", given.ravel(), "fetch the file again.")

    @property
    def shape(self) -> Shape:
        """The size of the files' content, with rows that repeat a pair."""
        log, drawn = self.log, self.open_loop
        rows = None if drawn is None else drawn.input_rows
        return Shape(users=log.n_users, items=log.n_items, rows=log.input_rows, open_loop=rows)

    def __repr__(self) -> str:
        extra = [n for n in ("propensities", "user_covariates", "item_covariates") if getattr(self, n) is not None]
        beside = "" if self.open_loop is None else f", open_loop {len(self.open_loop):,} rows"
        tail = f", with {', '.join(extra)}" if extra else ""
        return f"Data({self.name!r}, {self.log!r}{beside}{tail})"
