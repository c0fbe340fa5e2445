"""Parts of a rehearsal: a drawn log's rows and sums, one model's lead, and levels that are fitted again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from openloop.audits.completing import Completed
from openloop.core.feedback import Floats, distinct
from openloop.core.levels import LevelSample
from openloop.core.metric import Metric, reaches
from openloop.core.moments import Moments
from openloop.core.tilts import CLUSTERS, Tilts
from openloop.core.vocabulary import Ints
from openloop.moments import rows as rows_of
from openloop.moments.rows import Rows
from openloop.moments.source import BlockSource
from openloop.moments.terms import Common, Needed, assemble
from openloop.moments.tilting import Tilter

MANY_LEVELS = 20  # ratings with more values are not levels


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DrawnLog:
    """A drawn log: the rows that count, their cells and items."""

    rows: Rows
    cells: npt.NDArray[np.int64]
    item: Ints
    common: Common
    tilter: Tilter | None

    @property
    def mass(self) -> float:
        """Σw of all rows over the population."""
        return float(self.common.base["mass"].sum() / self.rows.cells.sum())

    def tilts(self, gains: Mapping[str, Floats], models: tuple[str, str]) -> Tilts:
        """The sums of both models under tilted weights."""
        assert self.tilter is not None  # noqa: S101, asked only where weights are tilted
        clusters = np.arange(len(self.rows.cells)) % CLUSTERS, min(CLUSTERS, len(self.rows.cells))
        return self.tilter.tilts(self.tilter.sums(self.rows, self.item, clusters, gains, (models,)), models, (models,))

    def moments(self, metric: Metric, gain: Floats, wanted: Needed) -> Moments:
        """The moments of a model with these gains."""
        return assemble(metric, rows_of.sums(metric, self.rows, gain, wanted), wanted, self.common)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Levels:
    """Rating levels of a uniform sample: propensities that were fitted with it are fitted to each drawn log, too.

    Σw of a level then is what it is in the population, as far as the scored rows are those that p was fitted on.
    """

    sample: LevelSample
    cells: Floats  # (L,) Σw that is expected of a drawn log
    share: float  # of the rows that p was fitted on, which are drawn

    @classmethod
    def of(cls, source: BlockSource, on: str, whole: Completed) -> Levels | None:
        """Those of what is scored; None without a sample. Balanced weights of a part are balanced once more."""
        sample = source.sample(on)
        if sample is None:
            return None
        drawn = np.where(whole.probability > 0, whole.factor[:, None], 0.0).ravel()
        cells = np.bincount(sample.codes(whole.rating.ravel()), drawn, minlength=len(sample)).astype(np.float64)
        share = 1.0 if source.setting.balanced else min(1.0, source.subject.n_rows / sample.rows)
        return cls(sample=sample, cells=cells, share=share)

    def refitted(self, rows: Rows) -> Rows:
        """The rows of a drawn log in strata by level, with each level's weights as fitted to them."""
        level, p = self.sample.codes(rows.rating), np.asarray(rows.probability)
        mass = np.bincount(level, 1.0 / p, minlength=len(self.sample))
        off = self.share * mass / np.maximum(self.cells, 1.0) + (1 - self.share)  # (L,)
        return replace(rows, probability=p * off[level], stratum=level, n_strata=len(self.sample))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LevelLead:
    """a − b on the completed ratings, by level of the rating, and its mean over what the estimator averages.

    Weights that are off by the rating move this part of the difference and no other: it is put back as it was.
    """

    edges: Floats  # between levels
    by_level: Floats  # (L,)
    mean: float

    @classmethod
    def of(cls, whole: Completed, metric: Metric, models: Sequence[str], *, per_user: bool) -> LevelLead:
        """That of two models; `per_user`: the estimator averages users' own means."""
        rating, counts = whole.rating, whole.probability > 0
        if metric.kind == "user":
            counts &= reaches(rating, whole.threshold)
        edges = _edges(rating[counts])
        level, n = np.searchsorted(edges, rating, side="right"), len(edges) + 1
        a, b = (whole.gains[m] for m in models)
        size = np.bincount(level[counts], minlength=n)
        by_level = np.bincount(level[counts], (a - b)[counts], minlength=n) / np.maximum(size, 1)  # (L,)
        lead = np.where(counts, by_level[level], 0.0).sum(axis=1)  # (U,)
        cells = counts.sum(axis=1)
        mean = np.mean(lead[cells > 0] / cells[cells > 0]) if per_user else lead.sum() / max(1, cells.sum())
        return cls(edges=edges, by_level=by_level, mean=float(mean))

    def levels(self, rating: Floats) -> npt.NDArray[np.int64]:
        """The level of each rating."""
        return np.searchsorted(self.edges, rating, side="right")


def _edges(rating: npt.NDArray[np.float32]) -> Floats:
    """What separates the levels of ratings; a few quantiles, where they are not levels."""
    values = distinct(rating).astype(np.float64)
    if len(values) > MANY_LEVELS:
        values = distinct(np.quantile(values, np.linspace(0, 1, MANY_LEVELS)))
    return (values[1:] + values[:-1]) / 2


def exchanged(a: Floats, b: Floats, who: npt.NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """Two columns that change places where `who` says so."""
    return np.where(who, b, a), np.where(who, a, b)
