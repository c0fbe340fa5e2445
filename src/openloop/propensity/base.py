"""What propensity models share: the fit's bookkeeping, p of any cell, the grid and its margins.

A model of cells gives `_at(user, item)`, the p of any cells; `predict`, `matrix` and `margins` follow from it.
Where p depends on more than the cell (a rating, a column of the log) a model says its own `predict`.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone

from openloop.core.feedback import Array, Feedback, Floats, Vocabulary, check_feedback, check_fitted, frozen
from openloop.core.propensities import Propensities
from openloop.errors import AlignmentError, UndefinedError

MAX_GRID = 2**28  # cells of a matrix() held in memory: 2 GiB
BLOCK = 2**21  # cells at a time where the grid is walked through


class PropensityEstimator(BaseEstimator):
    """Learned by every fit: the grid as `users_` and `items_`, what it had to say as `notes_`.

    `assumes` says what the model takes for granted; empty where p was given to it. `sees_rating`: p may depend on the
    rating; else it is blind to it. `fits_items`: each item's p is fitted to the log, `fits_cells`: that of single
    cells, beyond what their user and item have in common with others.
    """

    assumes: str = ""
    sees_rating: bool = False
    fits_items: bool = False
    fits_cells: bool = False
    users_: Vocabulary
    items_: Vocabulary
    notes_: tuple[str, ...]
    side_: dict[str, Any]

    def _remember(self, feedback: Feedback, *notes: str, **side: Any) -> Self:
        """The end of a fit; `side` is what was given to it beside the feedback."""
        self.users_, self.items_ = feedback.users, feedback.items
        self.notes_, self.side_ = notes, side
        return self

    def _found(self, feedback: Feedback, values: Floats, **more: Any) -> Propensities:
        """The p of the rows of `feedback`, with its fingerprint and what this model is."""
        return Propensities(
            values=values,
            fingerprint=feedback.fingerprint,
            blind=not self.sees_rating,
            by_items=self.fits_items,
            by_cells=self.fits_cells,
            **more,
        )

    def refit(self, feedback: Feedback) -> Self:
        """A fresh copy, fitted on another part of the log with the same side information."""
        check_fitted(self)
        fresh: Any = clone(self)
        return fresh.fit(feedback, **self.side_)


class CellModel(PropensityEstimator):
    """A model whose p depends on the cell alone."""

    def _at(self, user: Array, item: Array) -> Floats:
        """The p of each (user, item) pair of codes; the two broadcast."""
        raise NotImplementedError

    def predict(self, feedback: Feedback) -> Propensities:
        """The p of each row, carrying the fingerprint of `feedback`."""
        check_grid(self, feedback)
        return self._found(feedback, self._at(feedback.user, feedback.item))

    def matrix(self) -> Floats:
        """The p of every cell (U, I), read-only; refused where it would not fit into memory."""
        check_fitted(self)
        U, I = len(self.users_), len(self.items_)
        if U * I > MAX_GRID:
            raise UndefinedError(
                f"{type(self).__name__}: a matrix of {U:,} × {I:,} cells would take {U * I * 8 / 2**30:,.0f} GiB; "
                "predict(feedback) gives the p of any cells, margins() the sums."
            )
        grid = np.empty((U, I))
        for users in self._blocks():
            grid[users] = self._at(users[:, None], np.arange(I))  # (B, I)
        return frozen(grid)

    def margins(self) -> tuple[Floats, Floats]:
        """Σ_i p of each user (U,) and Σ_u p of each item (I,)."""
        check_fitted(self)
        U, I = len(self.users_), len(self.items_)
        by_user, by_item = np.empty(U), np.zeros(I)
        for users in self._blocks():
            p = self._at(users[:, None], np.arange(I))  # (B, I)
            by_user[users] = p.sum(axis=1)
            by_item += p.sum(axis=0)
        return by_user, by_item

    def _blocks(self) -> list[Array]:
        size = max(1, BLOCK // len(self.items_))
        return [np.arange(start, min(start + size, len(self.users_))) for start in range(0, len(self.users_), size)]


def share_of_log(rows: Floats) -> float:
    """The share of the log that these rows are, each standing for 1/s of it."""
    return len(rows) / float(rows.sum())


def check_grid(model: Any, feedback: Feedback) -> None:
    """Refuse a model that is not fitted, and a feedback on other users or items than it was fitted on."""
    check_fitted(model)
    check_feedback(type(model).__name__, feedback)
    if model.users_ != feedback.users or model.items_ != feedback.items:
        raise AlignmentError(
            f"{type(model).__name__}: fitted on {len(model.users_):,} users × {len(model.items_):,} items, "
            f"asked about other ids, {feedback.n_users:,} × {feedback.n_items:,}; read that log with like=."
        )


def row_counts(model: Any, feedback: Feedback) -> Floats:
    """How many rows of the whole log each row stands for: 1/s. A part without shares does not tell."""
    check_feedback(type(model).__name__, feedback)
    if feedback.share is None:
        raise UndefinedError(
            f"{type(model).__name__}: this part of a log has no share (as after a split by time), so it does not "
            "tell how much of the log it is; fit on the whole log."
        )
    return 1.0 / feedback.share


def counts(model: Any, feedback: Feedback) -> tuple[Floats, Floats]:
    """n_u of each user (U,) and n_i of each item (I,), of the log that `feedback` is or was split from."""
    rows = row_counts(model, feedback)
    return tally(feedback.user, rows, feedback.n_users), tally(feedback.item, rows, feedback.n_items)


def tally(code: Array, weight: Floats, size: int) -> Floats:
    """The sum of weights of each code, (size,)."""
    sums: Any = np.bincount(code, weight, minlength=size)
    return sums
