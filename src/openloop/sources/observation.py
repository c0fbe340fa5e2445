"""How a log was observed: probabilities, shares, candidates and strata of its scored rows.

A part of a log with share s observes a cell with p·s; where the excluded part has share t, a candidate with
π = p·s / (1 − p·t).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from openloop.core.feedback import Feedback, Floats, distinct
from openloop.core.metric import reaches
from openloop.core.propensities import part_probability
from openloop.estimators.bounds import inverse_squares
from openloop.estimators.edges import edges
from openloop.estimators.stratified import catalogue_cells
from openloop.metrics.rating import midpoints
from openloop.sources.arrays.rows import Rows
from openloop.sources.outcomes import Exclusion, places
from openloop.sources.plan import Strata
from openloop.sources.remarks import BY_TIME

Group = tuple[tuple[str, ...], npt.NDArray[np.int64]]  # labels, and the code of each row

MAX_GRID = 2**28  # cells whose Σ1/π² is worth the wait; above it Hoeffding's interval is not offered


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Observation:
    """How the scored rows came to be seen: p of the log, its shares, and where known the whole grid of p."""

    values: Floats  # p of each scored row
    grid: Floats | None
    scored: Floats | None  # s of each row, None when unknown
    excluded: Floats  # t of each user: the share of the log that `exclude` is
    scaled: bool = True  # False: p has no absolute scale, for example if it was balanced

    def probability(self, user: npt.NDArray[np.int32]) -> Floats:
        """π = p·s / (1 − p·t): a candidate is observed in the scored part; p·s if nothing is excluded.

        If s is unknown, s = 1: the result is right up to a factor.
        """
        s = 1.0 if self.scored is None else self.scored
        return part_probability(self.values, s, self.excluded[user])

    def certain(self, user: npt.NDArray[np.int32]) -> Floats | None:
        """(1 − t)/s, the weight of rows with p = 1; None if p has no scale, and therefore no odds."""
        if self.scored is None or not self.scaled:
            return None
        if np.ptp(self.scored) or np.ptp(self.excluded):
            return (1.0 - self.excluded[user]) / self.scored
        return np.broadcast_to((1.0 - self.excluded[0]) / self.scored[0], len(user))

    def inverse_squares(self, excluded: npt.NDArray[np.int64]) -> float | None:
        """Σ 1/π² over the candidate cells, where one share holds for all of them."""
        if self.grid is None or self.scored is None or np.ptp(self.scored) or np.ptp(self.excluded):
            return None
        if self.grid.size > MAX_GRID:
            return None
        s, t = self.scored[0], self.excluded[0]
        out = np.split(excluded % self.grid.shape[1], np.searchsorted(excluded, self._row_starts()))
        return sum(inverse_squares(_chance(row, s, t, gone)) for row, gone in zip(self.grid, out, strict=True))

    def _row_starts(self) -> npt.NDArray[np.int64]:
        n_users, n_items = self.grid.shape if self.grid is not None else (0, 0)
        return np.arange(1, n_users) * n_items


def _chance(p: Floats, s: float, t: float, excluded: npt.NDArray[np.int64]) -> Floats:
    """π of one user's cells; certain cells do not count in Σ1/π², and excluded ones neither."""
    chance = part_probability(p, s, t)
    chance[excluded] = 1.0
    return chance


def _excluded_share(log: Feedback, exclude: Feedback | None, exclusion: Exclusion) -> Floats:
    """t of each user: the probability that the excluded part holds an observed row, 0 for a part of another log.

    Scored rows stay candidates: of an excluded part that holds some of them, only the rest leaves the ranking.
    """
    if exclude is None or exclude.share is None or not one_log(log, exclude):
        return np.zeros(log.n_users)
    held = np.bincount(exclude.user, minlength=log.n_users)
    left = np.diff(exclusion.ptr)
    if np.ptp(exclude.share) == 0 and (log.share is None or np.ptp(log.share) == 0):
        return np.full(log.n_users, exclude.share[0] * left.sum() / held.sum())
    share = np.zeros(log.n_users)
    share[exclude.user] = exclude.share  # one share for all rows of a user
    return share * left / np.maximum(held, 1)


def _other_users(log: Feedback, exclude: Feedback) -> bool:
    """Whether two parts of one log share no user."""
    if not one_log(log, exclude):
        return False
    scored, held = (np.bincount(part.user, minlength=log.n_users) > 0 for part in (log, exclude))
    return not bool(np.any(scored & held))


def unscaled(log: Feedback) -> str:
    """Why p of a part without a share is known up to a factor only."""
    return "has lost its cold rows" if log.split[-1:] == ("cold",) else BY_TIME


def overlap(log: Feedback, exclude: Feedback | None) -> int:
    """How many scored rows are also in an excluded log that is not a part of theirs split off at random."""
    if exclude is None or (log.share is not None and one_log(log, exclude)):
        return 0
    return len(places(log, exclude))


def one_log(log: Feedback, exclude: Feedback) -> bool:
    """Whether both are parts of one log, or one is the whole of which the other is a part."""
    if log.origin is None and exclude.origin is None and len(log) != len(exclude):
        return False  # two whole logs; no need to fingerprint them
    return (log.origin or log.fingerprint) == (exclude.origin or exclude.fingerprint)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class View:
    """What one kind of metric is estimated over: all cells for predictions, the candidates for rankings."""

    rows: Rows
    exclusion: Exclusion
    observation: Observation | None
    groups: Mapping[str, Group] = field(default_factory=dict[str, Group])

    @classmethod
    def of(
        cls,
        log: Feedback,
        values: Floats | None,
        grid: Floats | None,
        exclude: Feedback | None,
        threshold: float,
        groups: Mapping[str, Group],
        *,
        scaled: bool = True,
    ) -> View:
        """The view of a log under an exclusion; `scaled`: p is a probability, and no weight that was balanced."""
        if exclude is not None and _other_users(log, exclude):
            exclude = None  # whole users were split: no scored user has an item to leave out
        exclusion = Exclusion.of(exclude, log)
        share = _excluded_share(log, exclude, exclusion)
        seen = (
            None
            if values is None
            else Observation(values=values, grid=grid, scored=log.share, excluded=share, scaled=scaled)
        )
        rating = log.rating.astype(np.float64)
        rows = Rows(
            user=log.user, rating=rating, relevant=reaches(rating, threshold).astype(np.float64),
            cells=exclusion.candidates, probability=None if seen is None else seen.probability(log.user),
            scaled=log.share is not None, certain=None if seen is None else seen.certain(log.user),
            middles=midpoints(distinct(rating)),
        )  # fmt: skip
        return cls(rows=rows, exclusion=exclusion, observation=seen, groups=groups)

    def stratified(self, strata: Strata | None) -> Rows:
        """The rows in strata of p, or in those of a grouping."""
        if isinstance(strata, str):
            labels, codes = self.groups[strata]
            return replace(self.rows, stratum=codes, edges=tuple(np.arange(len(labels) - 1) + 0.5))
        if strata is None or self.observation is None:
            return self.rows
        p = self.observation.values
        at = edges(p, *strata)
        stratum = np.searchsorted(at, p)
        return replace(self.rows, stratum=stratum, edges=at, limits=_limits(p, stratum, len(at) + 1))

    def catalogue(self, strata: Strata | None, at: tuple[float, ...]) -> Floats | None:
        """The cells of each user and stratum (U, S) with these edges, where the grid of p is known."""
        if strata is None or isinstance(strata, str) or self.observation is None or self.observation.grid is None:
            return None
        out = self.exclusion
        return catalogue_cells(self.observation.grid, at, (out.user, out.item))


def _limits(p: Floats, stratum: npt.NDArray[np.int64], strata: int) -> Floats:
    """The least and the largest p of each stratum, (S, 2)."""
    limits = np.tile([np.inf, -np.inf], (strata, 1))
    np.minimum.at(limits[:, 0], stratum, p)
    np.maximum.at(limits[:, 1], stratum, p)
    return limits
