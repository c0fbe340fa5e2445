"""`Setting`: what all blocks of a log share, and the rows that a block then gives: weights, candidates and strata.

A part of a log with share s observes a cell with p·s; where the excluded part has share t, a candidate with
π = p·s / (1 − p·t).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from openloop.blocks.block import Block
from openloop.core.feedback import Floats
from openloop.core.levels import LevelSample
from openloop.core.metric import reaches
from openloop.core.propensities import part_probability
from openloop.core.vocabulary import Int64s
from openloop.estimators.edges import Bins
from openloop.moments.rows import Rows

# Columns of a block beside its ratings.
P, BASE, SHARE = "p", "base", "share"
BALANCED = {"prediction": "balanced prediction", "rank": "balanced rank"}  # π of weights that were balanced once more
LEVELS = "levels of the uniform sample"  # the grouping by rating, where propensities were fitted with one
Strata = tuple[int, Bins] | str  # of propensity; or the name of a grouping of the log


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Setting:
    """What is the same for all blocks of a log.

    `share` is s, None where it is unknown or differs by row; then the blocks have it as a column, if it is known.
    `excluded_share` is t of all users, or of each (U,). `groups` are the labels of groupings, `edges` those of strata
    of propensity, as far as they were found.
    """

    n_users: int
    n_items: int
    threshold: float
    middles: Floats | None = None  # between rating levels, None where there are too many
    weighted: bool = True
    scaled: bool = True  # the share of a split is known
    share: float | None = 1.0
    excluded_share: float | Floats = 0.0
    excludes: bool = False  # whether something leaves the rankings
    unbalanced: Mapping[str, float] = field(default_factory=dict[str, float])  # Σw/|C| before balancing, by kind
    sample: LevelSample | None = None
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    edges: Mapping[tuple[int, Bins], tuple[float, ...]] = field(
        default_factory=dict[tuple[int, Bins], tuple[float, ...]]
    )

    @property
    def balanced(self) -> bool:
        """Whether weights were balanced, and are no probabilities any more."""
        return bool(self.unbalanced)

    @property
    def form(self) -> str:
        """What wrong propensities change: their odds, or where these have no scale the weight."""
        return "odds" if self.scaled and not self.balanced else "ratio"

    def shares(self, block: Block, on: str) -> tuple[float | Floats, float | Floats]:
        """s and t of each row, as numbers where they are the same for all; an unknown s is 1, right up to a factor."""
        s = block.columns.get(SHARE, 1.0 if self.share is None else self.share)
        if on == "prediction":
            return s, 0.0
        t = self.excluded_share
        return s, t[block.users][block.user] if isinstance(t, np.ndarray) else t

    def seen_on(self, on: str) -> str:
        """Rankings see the rows as predictions do, unless something is excluded or weights were balanced for them."""
        return on if self.excludes or self.balanced else "prediction"

    def n_strata(self, strata: Strata | None) -> int:
        """How many strata there are."""
        if strata is None or (isinstance(strata, tuple) and not self.weighted):
            return 1
        return len(self.groups[strata]) if isinstance(strata, str) else len(self.edges[strata]) + 1

    # -- of a block ------------------------------------------------------------------------------------------

    def rows(self, block: Block, on: str, strata: Strata | None = None) -> Rows:
        """The rows as metrics on predictions or on ranks see them, in strata."""
        rating = block.rating.astype(np.float64)
        rows = Rows(
            user=block.user, user_start=block.user_start, rating=rating,
            relevant=reaches(rating, self.threshold).astype(np.float64),
            cells=block.candidates(self.n_items, excluding=self.excludes and on == "rank"),
            probability=self.probability(block, on), certain=self._certain(block, on), scaled=self.scaled,
            middles=self.middles,
        )  # fmt: skip
        return self.stratified(rows, block, strata)

    def stratified(self, rows: Rows, block: Block, strata: Strata | None) -> Rows:
        """All rows of a block in strata."""
        n_strata = self.n_strata(strata)
        if strata is None or (isinstance(strata, tuple) and not self.weighted):
            return rows
        return replace(rows, stratum=self.strata_of(block, strata), n_strata=n_strata)

    def strata_of(self, block: Block, strata: Strata) -> Int64s:
        """The stratum of each row."""
        if strata == LEVELS and self.sample is not None:
            return self.sample.codes(block.rating)
        if isinstance(strata, str):
            return block.columns[f"group {strata}"]
        return np.searchsorted(np.array(self.edges[strata]), block.columns[P])

    def probability(self, block: Block, on: str) -> Floats | None:
        """π = p·s / (1 − p·t): a candidate is observed in the scored part; p·s if nothing is excluded."""
        if not self.weighted:
            return None
        if self.balanced:
            return block.columns[BALANCED[on]]
        return part_probability(block.columns[P], *self.shares(block, on))

    def _certain(self, block: Block, on: str) -> Floats | None:
        """(1 − t)/s, the weight of rows with p = 1; None if p has no scale, and therefore no odds."""
        if not self.weighted or self.form != "odds":
            return None
        s, t = self.shares(block, on)
        return np.broadcast_to((1.0 - t) / s, len(block))


def relevant_places(block: Block, threshold: float) -> Int64s:
    """The places of the rows that metrics of users count."""
    return np.flatnonzero(reaches(block.rating.astype(np.float64), threshold))
