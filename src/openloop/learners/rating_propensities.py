"""`RatingPropensities`: what a joint model says of P(observed | rating, cell), as a propensity model.

A joint model learns the ratings and which of them are observed at once. Weights 1/p of these propensities serve every
estimator and learner that takes a propensity model.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, clone

from openloop.core.feedback import Array, Feedback, Floats, Vocabulary, check_feedback, check_fitted, distinct
from openloop.core.grids import check_ids
from openloop.core.propensities import Propensities
from openloop.errors import RatingError, UndefinedError, listing
from openloop.learners.rating_levels import RatingDistribution, level_codes, plain


class JointModel(RatingDistribution):
    """A learner of ratings and of what is observed: gives `_proba` and `_observed`, and ends its fit by `_remember`.

    `share_` is the share of the log that the fit saw, None where it is not known, as after a split by time.
    """

    share_: float | None

    @property
    def fits_items(self) -> bool:
        """Whether P(observed | rating) differs by item."""
        return False

    @property
    def fits_cells(self) -> bool:
        """Whether P(observed | rating) differs by cell, beyond its user and item."""
        return False

    @property
    def propensities_(self) -> RatingPropensities:
        """P(observed | rating, cell) as a fitted propensity model."""
        check_fitted(self)
        return RatingPropensities(self).of_fitted(self)

    def observed_by_level(self, user: npt.ArrayLike, item: npt.ArrayLike) -> Floats:
        """The chance that the fitted part observes a cell with each rating.

        For `JointMNAR` it is the harmonic mean over draws, which makes 1/p the mean weight.

        Args:
            user: User codes (n,).
            item: Item codes (n,), one per user code.

        Returns:
            P(observed | rating level) of each pair (n, L), with the columns of `levels_`.
        """
        return self._observed(*self._pairs(user, item))

    def _observed(self, user: Array, item: Array) -> Floats:
        """The same of pairs of codes that were checked."""
        raise NotImplementedError

    def _remember(self, feedback: Feedback, *notes: str) -> Self:
        self.share_ = None if feedback.share is None else len(feedback) / float(np.sum(1 / feedback.share))
        return super()._remember(feedback, *notes)


class RatingPropensities(BaseEstimator):
    """p of a row by its rating and cell, from a joint model such as `MixtureMNAR`.

    The attribute `propensities_` of a fitted joint model is one, fitted. `RatingPropensities(joint).fit(log)` fits an
    unfitted copy of the joint model, as a refit to a bootstrap draw does. p is that of the whole log: if the model was
    fitted on a share s of the log, p is the fitted chance divided by s, at most 1.

    Args:
        joint: `MixtureMNAR` or `JointMNAR`.

    Attributes:
        model_: The fitted joint model.
        users_: The users of the log, a `Vocabulary`.
        items_: The items of the log, a `Vocabulary`.
        notes_: What the fit reports, a tuple of sentences.

    Examples:
        >>> import openloop as ol
        >>> log = ol.simulate.movie_lovers().observe(rng=0)
        >>> joint = ol.learners.MixtureMNAR(components=2, restarts=1, iterations=50, rng=0)
        >>> seen = ol.learners.RatingPropensities(joint).fit(log)
        >>> seen.by_level([0], [0]).shape  # P(observed | rating) of one cell, for ratings 1, 3 and 5
        (1, 3)
    """

    assumes = "being observed depends on the rating as the joint model says"
    sees_rating = True
    modelled = True

    users_: Vocabulary
    items_: Vocabulary
    notes_: tuple[str, ...]
    side_: dict[str, Any]

    def __init__(self, joint: Any) -> None:
        self.joint: Any = joint

    def fit(self, feedback: Feedback) -> Self:
        """Fit a copy of the joint model.

        Args:
            feedback: A log.

        Returns:
            The fitted model itself.
        """
        check_feedback("RatingPropensities", feedback)
        _check_share(feedback.share)
        fresh: Any = clone(self.joint)
        return self.of_fitted(fresh.fit(feedback))

    def of_fitted(self, model: Any) -> Self:
        """Take what a fitted joint model has learned.

        Args:
            model: A fitted joint model.

        Returns:
            The fitted model itself.
        """
        _check_share(model.share_)
        self.model_: Any = model
        self.users_, self.items_, self.notes_, self.side_ = model.users_, model.items_, model.notes_, {}
        return self

    def refit(self, feedback: Feedback) -> Self:
        """A fresh copy, fitted on another part of the log.

        Args:
            feedback: Another part of the log.

        Returns:
            The new fitted model; this one is unchanged.
        """
        check_fitted(self)
        fresh: Any = clone(self)
        return fresh.fit(feedback)

    def by_level(self, user: npt.ArrayLike, item: npt.ArrayLike) -> Floats:
        """The p of a cell for each rating.

        For `JointMNAR` it is the harmonic mean over draws, which makes 1/p the mean weight.

        Args:
            user: User codes (n,).
            item: Item codes (n,), one per user code.

        Returns:
            P(observed | rating level) of each pair (n, L), with the columns of `levels_`.
        """
        check_fitted(self)
        return np.minimum(self.model_.observed_by_level(user, item) / self.model_.share_, 1.0)

    @property
    def levels_(self) -> Array:
        """The rating levels, rising (L,)."""
        check_fitted(self)
        return self.model_.levels_

    def predict(self, feedback: Feedback) -> Propensities:
        """The p of each row, by its cell and rating.

        Args:
            feedback: A log, or a part of one, on the users and items of the fit.

        Returns:
            `Propensities` in Feedback order, with the fingerprint of `feedback`.
        """
        self._check_grid(feedback)
        level = self._codes(feedback)
        values = self.by_level(feedback.user, feedback.item)[np.arange(len(level)), level]  # (n,)
        items, cells = bool(self.model_.fits_items), bool(self.model_.fits_cells)
        return Propensities(
            values=values, fingerprint=feedback.fingerprint, by_items=items, by_cells=cells,
            by_rating=not (items or cells), modelled=True,
        )  # fmt: skip

    def matrix(self) -> Floats:
        """Undefined: the p of a cell depends on its rating, which is known for observed cells only.

        Raises:
            UndefinedError: Always.
        """
        check_fitted(self)
        raise UndefinedError(
            "RatingPropensities: p depends on a cell's rating, which is known for observed cells only, so there is no "
            "matrix of all cells; predict(feedback) gives the p of rows, by_level(user, item) that of each rating."
        )

    def _check_grid(self, feedback: Feedback) -> None:
        check_fitted(self)
        check_feedback("RatingPropensities", feedback)
        check_ids(self, feedback)

    def _codes(self, feedback: Feedback) -> Array:
        levels = self.model_.levels_
        at = np.minimum(level_codes(feedback, levels), len(levels) - 1)
        unknown = distinct(feedback.rating[levels[at] != feedback.rating])
        if len(unknown):
            raise RatingError(
                f"RatingPropensities: no rating {listing(plain(unknown))} in the log it was fitted on, so their p is "
                f"not known; it has {listing(plain(levels))}. Fit on a log with all levels."
            )
        return at


def _check_share(share: Any) -> None:
    if share is None:
        raise UndefinedError(
            "RatingPropensities: this part of a log has no share (as after a split by time), so the size of the "
            "whole log is unknown; fit on the whole log."
        )
