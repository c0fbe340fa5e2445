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
    """Missing completely at random: p = |O|/(U·I) for every cell. IPS and SNIPS then equal the naive estimate.

    A part of a log whose rows were kept with share s gives p = |O|/(U·I·s), capped at 1. Where shares differ by row,
    each row counts as 1/s rows of the log.

    Attributes:
        p_: The p of every cell.
        item_propensities_: The same number for each item (I,).
        users_: The users of the log, a `Vocabulary`.
        items_: The items of the log, a `Vocabulary`.
        notes_: What the fit reports, a tuple of sentences.

    Examples:
        >>> import openloop as ol
        >>> log = ol.simulate.movie_lovers().observe(rng=0)
        >>> seen = ol.propensity.Uniform().fit(log)
        >>> round(seen.p_, 3)
        0.273
    """

    assumes = "every cell was observed with the same probability"

    def __init__(self) -> None:
        pass

    def fit(self, feedback: Feedback | Any, **columns: Any) -> Uniform:
        """Count the rows.

        Args:
            feedback: A log, or a frame, whose rows are counted in its engine.
            **columns: Only for a frame: `user`, `item` and `rating` name its columns, `population` is (users, items)
                where the log does not show everyone, `distinct=True` says that no pair is repeated.

        Returns:
            The fitted model itself.
        """
        log = self._opened(feedback, columns)
        n, size = item_counts(self, log)
        return self._remember(log, *self.fit_counts(n, log.n_users, size))

    def fit_counts(self, n: Floats, n_users: int, size: Floats | None = None) -> tuple[str, ...]:
        """Find p from the items' counts alone.

        Args:
            n: The count of each item (I,).
            n_users: The number of users.
            size: How many items have each count; None for one each.

        Returns:
            Notes about the fit: none.
        """
        rows, items = (n.sum(), len(n)) if size is None else (n @ size, size.sum())
        # p = Σ_O (1/s) / (U·I)
        self.p_ = min(float(rows) / (n_users * float(items)), 1.0)
        self.item_propensities_ = frozen(np.full(len(n), self.p_))
        return ()

    def _at(self, user: Array, item: Array) -> Floats:
        return np.full(np.broadcast(user, item).shape, self.p_)

    def frame_parts(self) -> tuple[Sequence[Lookup], Any]:
        """What is looked up for each row of a frame, and p as an expression of it.

        Returns:
            Lookups to join, and a narwhals expression of their columns.
        """
        return (), nw.lit(self.p_)

    def matrix(self) -> Floats:
        """The same p for each cell; takes the memory of one number.

        Returns:
            A read-only array (U, I).
        """
        check_codes(self)
        return np.broadcast_to(np.float64(self.p_), (len(self.users_), len(self.items_)))

    def margins(self) -> tuple[Floats, Floats]:
        """The sums of p by user and by item.

        Returns:
            p·I for each user (U,) and p·U for each item (I,).
        """
        check_codes(self)
        U, I = len(self.users_), len(self.items_)
        return np.full(U, self.p_ * I), np.full(I, self.p_ * U)
