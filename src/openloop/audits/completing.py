"""Every cell of the population as a row that could be scored: rating, probability, and models' gains.

A log shows a few cells. With a rating for each of the others, any log that might have been drawn instead of it is a
selection of these rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from openloop.blocks.block import Block, Outcome
from openloop.core.feedback import Array, Feedback, Floats, distinct
from openloop.core.metric import Metric, reaches
from openloop.core.propensities import Propensities, part_probability, predicted_by
from openloop.moments.models import dense_outcome
from openloop.moments.rows import ArrayColumns, Rows
from openloop.moments.setting import SHARE, Setting
from openloop.moments.source import BlockSource
from openloop.moments.whole import whole_block

CELLS = 2**21  # at a time

Grid = npt.NDArray[np.float32]
Ratings = Callable[[Array], Grid]  # consecutive users (B,) → ratings of all items (B, I)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Completed:
    """Grids (U, I) over all cells; `probability` is 0 where a cell is not a candidate.

    A cell is drawn with factor_u · probability_ui, its weight is 1/probability_ui: the factor is that of users who are
    in a part of the log, or not, and of a probability that is known up to a factor only.
    """

    rating: Grid
    probability: Grid
    gains: Mapping[str, Grid]  # by model
    factor: Floats  # (U,)
    like: Rows  # the scored rows, whose other fields drawn rows share
    threshold: float

    @property
    def expected(self) -> float:
        """How many rows a drawn log has on average."""
        return float(self.factor @ self.probability.sum(axis=1, dtype=np.float64))

    def rows(self, cells: npt.NDArray[np.int64]) -> Rows:
        """The rows of a log that observed these cells, which rise."""
        rating = self.rating.ravel()[cells].astype(np.float64)
        return replace(
            self.like,
            user=(cells // self.rating.shape[1]).astype(np.int32),
            rating=rating,
            relevant=reaches(rating, self.threshold).astype(np.float64),
            probability=self.probability.ravel()[cells].astype(np.float64),
            certain=None,
        )


def completed(
    source: BlockSource, metric: Metric, models: Sequence[str], ratings: Ratings, propensities: Any
) -> Completed:
    """All cells under a metric, with these ratings; `propensities` are what the source was given."""
    setting, block, log = source.setting, whole_block(source.subject), source.scored_log()
    shape = log.n_users, log.n_items
    like = setting.rows(block, metric.on)
    rating, probability = np.empty(shape, np.float32), np.empty(shape, np.float32)
    gains = {name: np.zeros(shape, np.float32) for name in models}
    s, t = _shares(setting, block, log), _excluded(setting, metric.on)
    for users in _slices(shape):
        rating[users] = ratings(users)
        p = _chances(source, log, users, rating[users], propensities, s[users, None])
        probability[users] = p(t if isinstance(t, float) else t[users, None])
        for name, grid in gains.items():
            outcome, place = dense_outcome(source.subject.asked, name, block, log.n_items, users, metric.on)
            grid[users] = _gains(metric, like, setting, users, rating[users], outcome, place)
    if setting.excludes and metric.on == "rank":
        probability[block.excluded.user, block.excluded.item] = 0.0
    factor = _factor(log, probability)
    return Completed(
        rating=rating, probability=probability, gains=gains, factor=factor, like=like, threshold=setting.threshold
    )


def _slices(shape: tuple[int, int]) -> list[Array]:
    size = max(1, CELLS // shape[1])
    return [np.arange(start, min(start + size, shape[0])) for start in range(0, shape[0], size)]


def _gains(
    metric: Metric, like: Rows, setting: Setting, users: Array, rating: Grid, outcome: Outcome, place: Array
) -> Grid:
    """δ of every candidate of consecutive users, 0 elsewhere, (B, I)."""
    rated = rating.ravel()[place].astype(np.float64)
    rows = replace(
        like, user=(users[0] + place // rating.shape[1]).astype(np.int32), rating=rated, probability=None,
        relevant=reaches(rated, setting.threshold).astype(np.float64), certain=None,
    )  # fmt: skip
    gains = np.zeros(rating.size, np.float32)
    gains[place] = metric.gain(ArrayColumns(rows, outcome))
    return gains.reshape(rating.shape)


# -- chances -------------------------------------------------------------------------------------------------


def _chances(
    source: BlockSource, log: Feedback, users: Array, rating: Grid, propensities: Any, s: Floats
) -> Callable[[Any], Floats]:
    """π = p·s/(1 − p·t) of every cell of consecutive users, (B, I), given t.

    Of balanced weights, times what balancing did.
    """
    if source.subject.grid is not None:
        grid = source.subject.grid(users)
        return lambda t: part_probability(grid, s, t)
    found = _of_cells(log, users, rating, propensities)
    p = found.used if found.base is None else found.base  # a balanced p may exceed 1
    return lambda t: part_probability(p.reshape(rating.shape), s, t) * (found.used / p).reshape(rating.shape)


def _of_cells(log: Feedback, users: Array, rating: Grid, model: Any) -> Propensities:
    """The p of every cell by a model that looks at its rating."""
    user, item = np.repeat(users, log.n_items), np.tile(np.arange(log.n_items, dtype=np.int32), len(users))
    cells = Feedback(user=user, item=item, rating=rating.ravel(), users=log.users, items=log.items)
    return predicted_by("rehearse", model, cells)


def _shares(setting: Setting, block: Block, log: Feedback) -> Floats:
    """s of each user (U,); 0 for those whose rows could not be scored, 1 where it is not known."""
    if SHARE not in block.columns:
        return np.full(log.n_users, 1.0 if setting.share is None else setting.share)
    share = np.zeros(log.n_users)
    share[block.user] = block.columns[SHARE]  # one share for all rows of a user
    return share


def _excluded(setting: Setting, on: str) -> Any:
    """t of all users, or of each."""
    return setting.excluded_share if on == "rank" else 0.0


def _factor(log: Feedback, probability: Grid) -> Floats:
    """What the chance to be drawn is of π: users stay in the part of the log where they are, or outside."""
    if log.share is None:  # known up to a factor: as many rows as there are
        return np.full(log.n_users, len(log) / probability.sum(dtype=np.float64))
    if "user" not in log.split:
        return np.ones(log.n_users)
    inside = np.isin(np.arange(log.n_users), distinct(log.user))
    return inside * (log.n_users / inside.sum())
