"""What doubly robust forms impute: q̂ of each item, fitted without the users it serves, summed over lists."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from openloop.core.feedback import Array, Floats
from openloop.core.impressions import Impressions
from openloop.errors import InputError
from openloop.kernels.shown_lists import totals
from openloop.impressions.rankers import Ranking

FOLDS = 2
SHRINKAGE = 20.0  # an item with so much Σθ is as near to the mean as to its own rate


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ImputedRewards:
    """q̂ of each fold's users and each item, (2, I + 1): the last column is for items that the log never showed."""

    q: Floats
    fold: npt.NDArray[np.int64]  # (N,) of each request

    @classmethod
    def fitted(cls, log: Impressions, theta: Floats) -> ImputedRewards:
        """q̂_i = (Σc + s·c̄)/(Σθ + s) over the other fold's rows, s the shrinkage and c̄ = Σc/Σθ of all items."""
        fold = log.cluster.astype(np.int64) % FOLDS
        place = (1 - fold[log.request]) * log.n_items + log.item
        both = (totals(place, x, FOLDS * log.n_items) for x in (log.reward, theta[log.position - 1]))
        top, low = (x.reshape(FOLDS, -1) for x in both)  # (2, I)
        mean = top.sum(axis=1, keepdims=True) / np.maximum(low.sum(axis=1, keepdims=True), 1e-300)
        return cls(q=np.hstack([(top + SHRINKAGE * mean) / (low + SHRINKAGE), mean]), fold=fold)

    @classmethod
    def given(cls, values: Any, log: Impressions) -> ImputedRewards:
        """q̂ that was fitted elsewhere, one for each item of the vocabulary."""
        q = np.asarray(values, np.float64)
        if q.shape != (log.n_items,) or not bool(np.isfinite(q).all()):
            raise InputError(
                f"imputation: give a finite reward at position 1 for each of the {log.n_items:,} items by id, "
                f"got shape {q.shape}."
            )
        both = np.append(q, q.mean())
        return cls(q=np.stack([both, both]), fold=np.zeros(log.n_requests, np.int64))

    def of_rows(self, log: Impressions) -> Floats:
        """q̂ of each shown row, (n,)."""
        return self.q[self.fold[log.request], log.item]

    def of_lists(
        self, log: Impressions, found: Ranking, theta: Floats, depth: Array, above: Floats | None = None
    ) -> tuple[Floats, Floats]:
        """Σ_k θ_k·q̂ of the model's list for each request (N,), and over all requests at each position (K,).

        `above` (n,) are the weights of the list down to each row: the term at k is weighted by that of k − 1.
        """
        direct, slopes = np.zeros(log.n_requests), np.zeros(log.depth)
        if found.lists is None:  # the model reorders what was shown
            term = theta[found.rank - 1] * self.of_rows(log)
            return totals(log.request, term, log.n_requests), totals(found.rank - 1, term, log.depth)
        first = log.request_ptr[:-1]
        for k in range(min(log.depth, found.lists.lists.shape[1])):
            item = found.lists.lists[found.lists.key, k]  # (N,)
            has = (item >= 0) & (k < depth)
            term = np.where(has, theta[k] * self.q[self.fold, item], 0.0)
            if above is not None and k:
                term = term * np.where(k < depth, above[np.minimum(first + k - 1, len(above) - 1)], 0.0)
            direct += term
            slopes[k] = term.sum()
        return direct, slopes
