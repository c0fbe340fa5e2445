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

from openloop.core.feedback import Array, Feedback, Floats, distinct
from openloop.core.metric import Metric, reaches
from openloop.core.propensities import Propensities, part_probability, predicted_by
from openloop.sources.arrays.rows import ArrayColumns, Rows
from openloop.sources.arrays.source import FeedbackSource, Scored
from openloop.sources.observation import Observation, View
from openloop.sources.outcomes import dense_outcome
from openloop.sources.predictions import Predictions

BLOCK = 2**21  # cells at a time

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
    source: FeedbackSource, metric: Metric, models: Sequence[str], ratings: Ratings, propensities: Any
) -> Completed:
    """All cells under a metric, with these ratings; `propensities` are what the source was given."""
    view, subject = source.view(metric.on), source.subject
    shape = subject.log.n_users, subject.log.n_items
    rating, probability = np.empty(shape, np.float32), np.empty(shape, np.float32)
    gains = {name: np.zeros(shape, np.float32) for name in models}
    asked = {name: _whole(name, subject.models[name], metric.on) for name in models}
    for users in _blocks(shape):
        rating[users] = ratings(users)
        probability[users] = _chances(view, subject, users, rating[users], propensities)
        for name, grid in gains.items():
            grid[users] = _gains(name, asked[name], metric, view, subject, users, rating[users])
    out = view.exclusion
    probability[out.user, out.item] = 0.0
    factor = _factor(subject.log, probability)
    return Completed(
        rating=rating, probability=probability, gains=gains, factor=factor, like=view.rows, threshold=subject.threshold
    )


def _blocks(shape: tuple[int, int]) -> list[Array]:
    size = max(1, BLOCK // shape[1])
    return [np.arange(start, min(start + size, shape[0])) for start in range(0, shape[0], size)]


def _whole(name: str, model: Any, on: str) -> Any:
    """A table of all scores as an array, made once."""
    listed = isinstance(model, Predictions) and on == "rank" and model.ranking.rank is not None
    return model.grid(name) if isinstance(model, Predictions) and not listed else model


def _gains(name: str, model: Any, metric: Metric, view: View, subject: Scored, users: Array, rating: Grid) -> Grid:
    """δ of every candidate of consecutive users, 0 elsewhere, (B, I)."""
    outcome, at = dense_outcome(name, model, subject.log, view.exclusion, users, metric.on)
    rated = rating.ravel()[at].astype(np.float64)
    rows = replace(
        view.rows, user=(users[0] + at // rating.shape[1]).astype(np.int32), rating=rated, probability=None,
        relevant=reaches(rated, subject.threshold).astype(np.float64), certain=None,
    )  # fmt: skip
    found = np.zeros(rating.size, np.float32)
    found[at] = metric.gain(ArrayColumns(rows, outcome))
    return found.reshape(rating.shape)


# -- chances -------------------------------------------------------------------------------------------------


def _chances(view: View, subject: Scored, users: Array, rating: Grid, propensities: Any) -> Floats:
    """π = p·s/(1 − p·t) of every cell of consecutive users, (B, I); of balanced weights, times what balancing did."""
    seen, shape = view.observation, rating.shape
    s, t = _shares(seen, subject.log)[users], np.zeros(len(users)) if seen is None else seen.excluded[users]
    if subject.grid is not None:
        return part_probability(subject.grid[users], s[:, None], t[:, None])
    found = _of_cells(subject.log, users, rating, propensities)
    p = found.used if found.base is None else found.base  # a balanced p may exceed 1
    return part_probability(p.reshape(shape), s[:, None], t[:, None]) * (found.used / p).reshape(shape)


def _of_cells(log: Feedback, users: Array, rating: Grid, model: Any) -> Propensities:
    """The p of every cell by a model that looks at its rating."""
    user, item = np.repeat(users, log.n_items), np.tile(np.arange(log.n_items, dtype=np.int32), len(users))
    cells = Feedback(user=user, item=item, rating=rating.ravel(), users=log.users, items=log.items)
    return predicted_by("rehearse", model, cells)


def _shares(seen: Observation | None, log: Feedback) -> Floats:
    """s of each user (U,); 0 for those whose rows could not be scored, 1 where it is not known."""
    if seen is None or seen.scored is None:
        return np.ones(log.n_users)
    if np.ptp(seen.scored) == 0:
        return np.full(log.n_users, seen.scored[0])
    share = np.zeros(log.n_users)
    share[log.user] = seen.scored  # one share for all rows of a user
    return share


def _factor(log: Feedback, probability: Grid) -> Floats:
    """What the chance to be drawn is of π: users stay in the part of the log where they are, or outside."""
    if log.share is None:  # known up to a factor: as many rows as there are
        return np.full(log.n_users, len(log) / probability.sum(dtype=np.float64))
    if "user" not in log.split:
        return np.ones(log.n_users)
    inside = np.isin(np.arange(log.n_users), distinct(log.user))
    return inside * (log.n_users / inside.sum())
