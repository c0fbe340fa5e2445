"""`Uniform`: every cell has the same propensity, the share of the grid that was observed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import narwhals as nw
import numpy as np

from openloop.core.feedback import Array, Feedback, Floats, frozen
from openloop.propensity.base import CellModel, check_codes, item_counts
from openloop.propensity.frames.lookups import Lookup


class Uniform(CellModel):
    """Missing completely at random: p = |O|/(U·I) for every cell. Under it IPS and SNIPS are naive.

    A part that kept each row with share s gives p = |O|/(U·I·s), capped at 1; where shares differ by row,
    each row counts as 1/s rows of the log. Learned: `p_`, and `item_propensities_` (I,), the same for each item.

    fit(frame, user=, item=, population=) counts in the frame's engine; with_column(frame) appends p.
    """

    assumes = "nobody chose what was observed"

    def __init__(self) -> None:
        pass

    def fit(self, feedback: Feedback | Any, **columns: Any) -> Uniform:
        """Count; `columns` are of a frame: `user`, `item`, `population`, `distinct`."""
        log = self._opened(feedback, columns)
        n, size = item_counts(self, log)
        return self._remember(log, *self.fit_counts(n, log.n_users, size))

    def fit_counts(self, n: Floats, n_users: int, size: Floats | None = None) -> tuple[str, ...]:
        """p from the items' counts (I,) alone, each of `size` items; there is nothing to note about it."""
        rows, items = (n.sum(), len(n)) if size is None else (n @ size, size.sum())
        # p = Σ_O (1/s) / (U·I)
        self.p_ = min(float(rows) / (n_users * float(items)), 1.0)
        self.item_propensities_ = frozen(np.full(len(n), self.p_))
        return ()

    def _at(self, user: Array, item: Array) -> Floats:
        return np.full(np.broadcast(user, item).shape, self.p_)

    def frame_parts(self) -> tuple[Sequence[Lookup], Any]:
        """What is looked up for each row of a frame, and p as an expression of it."""
        return (), nw.lit(self.p_)

    def matrix(self) -> Floats:
        """The same p for each cell, (U, I), read-only; takes the memory of one number."""
        check_codes(self)
        return np.broadcast_to(np.float64(self.p_), (len(self.users_), len(self.items_)))

    def margins(self) -> tuple[Floats, Floats]:
        """p·I for each user, p·U for each item."""
        check_codes(self)
        U, I = len(self.users_), len(self.items_)
        return np.full(U, self.p_ * I), np.full(I, self.p_ * U)
