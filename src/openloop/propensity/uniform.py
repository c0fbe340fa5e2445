"""`Uniform`: every cell has the same propensity, the share of the grid that was observed."""

from __future__ import annotations

import numpy as np

from openloop.core.feedback import Array, Feedback, Floats, check_fitted, frozen
from openloop.propensity.base import CellModel, counts


class Uniform(CellModel):
    """Missing completely at random: p = |O|/(U·I) for every cell. Under it IPS and SNIPS are naive.

    A part that kept each row with share s gives p = |O|/(U·I·s), capped at 1; where shares differ by row,
    each row counts as 1/s rows of the log. Learned: `p_`, and `item_propensities_` (I,), the same for each item.
    """

    assumes = "nobody chose what was observed"

    def __init__(self) -> None:
        pass

    def fit(self, feedback: Feedback) -> Uniform:
        """Count."""
        return self._remember(feedback, *self.fit_counts(counts(self, feedback)[1], feedback.n_users))

    def fit_counts(self, n: Floats, n_users: int) -> tuple[str, ...]:
        """p from the items' counts (I,) alone; there is nothing to note about it."""
        # p = Σ_O (1/s) / (U·I)
        self.p_ = min(float(n.sum()) / (n_users * len(n)), 1.0)
        self.item_propensities_ = frozen(np.full(len(n), self.p_))
        return ()

    def _at(self, user: Array, item: Array) -> Floats:
        return np.full(np.broadcast(user, item).shape, self.p_)

    def matrix(self) -> Floats:
        """The same p for each cell, (U, I), read-only; takes the memory of one number."""
        check_fitted(self)
        return np.broadcast_to(np.float64(self.p_), (len(self.users_), len(self.items_)))

    def margins(self) -> tuple[Floats, Floats]:
        """p·I for each user, p·U for each item."""
        check_fitted(self)
        U, I = len(self.users_), len(self.items_)
        return np.full(U, self.p_ * I), np.full(I, self.p_ * U)
