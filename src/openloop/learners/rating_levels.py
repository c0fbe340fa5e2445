"""`RatingDistribution`: learners of the chance of each rating level, and the levels of a log.

Such a learner maximises or samples a likelihood of the rows. It is not a sum of losses, so it takes no weights.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from openloop.core.feedback import Array, Feedback, Floats, check_feedback, distinct, frozen
from openloop.errors import InputError, RatingError, UndefinedError, listing
from openloop.learners.base import Learner, Weights

SAME = 1e-4  # of the range: levels that are closer are one, written with rounding errors
BLOCK = 200_000  # cells that are predicted at once
MOST = 20  # levels: with more, each has too few rows to have a chance of its own

Levels = npt.NDArray[np.float32]
Codes = npt.NDArray[np.int16]


class RatingDistribution(Learner):
    """A learner of P(rating = level) for every cell; its prediction is the mean of that distribution."""

    takes_weights = False

    levels_: Levels  # (L,) rising

    def predict_proba(self, user: npt.ArrayLike, item: npt.ArrayLike) -> Floats:
        """The chance of each rating level.

        Args:
            user: User codes (n,).
            item: Item codes (n,), one per user code.

        Returns:
            P(rating = level) of each pair (n, L), with the columns of `levels_`.
        """
        return self._proba(*self._pairs(user, item))

    def predict(self, user: npt.ArrayLike, item: npt.ArrayLike) -> Array:
        """The mean rating Σ_l level_l P(rating = level_l).

        Args:
            user: User codes (n,).
            item: Item codes (n,), one per user code.

        Returns:
            One rating per pair (n,).
        """
        return self.predict_proba(user, item) @ self.levels_.astype(np.float64)

    def scores(self, users: npt.ArrayLike) -> Array:
        """The mean ratings of all items.

        Args:
            users: User codes (B,).

        Returns:
            The mean ratings of all items for each user (B, I).
        """
        return self._means(self._users(users))

    def _proba(self, user: Array, item: Array) -> Floats:
        """P(rating = level) of pairs of codes that were checked, (n, L)."""
        raise NotImplementedError

    def _means(self, users: Array) -> Floats:
        """The mean ratings of all items for users whose codes were checked, (B, I)."""
        I, levels = len(self.items_), self.levels_.astype(np.float64)
        parts = [
            self._proba(np.repeat(some, I), np.tile(np.arange(I), len(some))) @ levels
            for some in np.array_split(users, max(1, len(users) * I // BLOCK))
        ]
        return np.concatenate(parts).reshape(len(users), I)


# -- the door ------------------------------------------------------------------------------------------------


def check_unweighted(model: Any, feedback: Any, sample_weight: Weights, propensities: Any) -> Feedback:
    """The feedback; weights and propensities are refused, and so are a log's own and a log of positives."""
    who = type(model).__name__
    check_feedback(who, feedback)
    given = {"sample_weight": sample_weight, "propensities=": propensities, "a log with weight": feedback.weight}
    for name, value in given.items():
        if value is not None:
            raise InputError(
                f"{who}: takes neither sample_weight nor propensities= nor a log with weights (or counted repeats), "
                f"and {name} was given: it models the likelihood of single ratings; leave it out, or use MF."
            )
    if feedback.positives:
        raise UndefinedError(
            f"{who}: this log has positives only, so there are no ratings to learn from; use WMF, or read the log "
            "with rating=."
        )
    return feedback


def levels_of_log(who: str, feedback: Feedback) -> Levels:
    """The distinct ratings of a log, rising (L,): 2 to 20 of them, which differ by more than rounding."""
    levels = distinct(feedback.rating)
    if not 2 <= len(levels) <= MOST:
        remedy = "pass ratings that differ" if len(levels) < 2 else "round the ratings to fewer levels, or use MF"
        raise RatingError(
            f"{who}: needs 2 to {MOST} rating levels, got {len(levels):,} ({listing(plain(levels))}); {remedy}."
        )
    gaps = np.diff(levels.astype(np.float64))
    if gaps.min() < SAME * gaps.sum():
        at = int(gaps.argmin())
        raise RatingError(
            f"{who}: rating levels must be at least {SAME:g} of their range apart, got {levels[at]:.9g} and "
            f"{levels[at + 1]:.9g}, of {levels[0]:g} to {levels[-1]:g}; round the ratings, or use MF."
        )
    return frozen(levels)


def level_codes(feedback: Feedback, levels: Levels) -> Codes:
    """The position of each row's rating among the levels (n,), all of which are known."""
    return np.searchsorted(levels, feedback.rating).astype(np.int16)


def plain(levels: Levels) -> list[float]:
    """Ratings as people write them: 0.1 where its float32 is a little more."""
    return [float(str(level)) for level in levels]
