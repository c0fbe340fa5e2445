"""`Uniform`: every cell has the same propensity, the share of the grid that was observed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from sklearn.base import BaseEstimator

from openloop.core.propensities import Propensities
from openloop.errors import UndefinedError
from openloop.propensity import check_fitted, check_grid

if TYPE_CHECKING:
    from openloop.core.feedback import Feedback, Floats


def uniform_propensity(feedback: Feedback) -> float:
    """|O|/(U·I), of the log that `feedback` is or was split from.

    A part that kept each row with share s gives p = |O|/(U·I·s), capped at 1; where shares differ by row,
    each row stands for 1/s rows of the log. A part without shares (a split by time) does not tell p.
    """
    if feedback.share is None:
        msg = (
            "Uniform: this part of a log has no share (as after a split by time), so it does not tell how "
            "much of the log it is; fit on the whole log."
        )
        raise UndefinedError(msg)
    # p = Σ_O (1/s) / (U·I)
    observed = float(np.sum(1.0 / feedback.share))
    return min(observed / (feedback.n_users * feedback.n_items), 1.0)


class Uniform(BaseEstimator):
    """Missing completely at random: p = |O|/(U·I) for every cell. Under it IPS and SNIPS are naive.

    Learned: `p_`, and the grid as `users_` and `items_`.
    """

    def __init__(self) -> None:
        pass

    def fit(self, feedback: Feedback) -> Uniform:
        """Count; see `uniform_propensity` for a part of a log."""
        self.p_ = uniform_propensity(feedback)
        self.users_, self.items_ = feedback.users, feedback.items
        return self

    def predict(self, feedback: Feedback) -> Propensities:
        """The same p for each row, carrying the fingerprint of `feedback`."""
        check_grid(self, feedback)
        return Propensities(values=np.full(len(feedback), self.p_), fingerprint=feedback.fingerprint)

    def matrix(self) -> Floats:
        """The same p for each cell, (U, I), read-only; takes the memory of one number."""
        check_fitted(self)
        return np.broadcast_to(np.float64(self.p_), (len(self.users_), len(self.items_)))
