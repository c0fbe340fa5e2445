"""What doubly robust forms impute: q̂ of each item, fitted without the users it serves, summed over lists."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from openloop.core.feedback import Array, Floats
from openloop.errors import InputError
from openloop.impressions.logs import ShownBlock
from openloop.impressions.rankers import Ranking
from openloop.kernels.shown_lists import totals

FOLDS = 2
SHRINKAGE = 20.0  # an item with so much Σθ is as near to the mean as to its own rate


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FoldRows:
    """Rows of a block by bucket: the place of their fold and item, their rewards, and θ where they were shown."""

    place: Array
    reward: Floats
    theta: Floats


def fold_rows(block: ShownBlock, theta: Floats) -> FoldRows:
    """The rows of a block as q̂ needs them: those of one fold serve the other."""
    log = block.log
    order = np.argsort(block.of_requests[log.request], kind="stable")
    place = (1 - _fold(block)[log.request]) * log.n_items + log.item
    return FoldRows(place=place[order], reward=log.reward[order], theta=theta[log.position - 1][order])


def _fold(block: ShownBlock) -> Array:
    """The fold of each request, (N,)."""
    return (block.clusters.astype(np.int64) % FOLDS)[block.log.cluster]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ImputedRewards:
    """q̂ of each fold's users and each item, (2, I + 1): the last column is for items that the log never showed."""

    q: Floats

    @classmethod
    def fitted(cls, parts: Iterable[FoldRows], n_items: int) -> ImputedRewards:
        """q̂_i = (Σc + s·c̄)/(Σθ + s) over the other fold's rows, s the shrinkage and c̄ = Σc/Σθ of all items."""
        rewards, seen = np.zeros(FOLDS * n_items), np.zeros(FOLDS * n_items)
        for part in parts:  # row after row, so that sums do not depend on how buckets make blocks
            np.add.at(rewards, part.place, part.reward)
            np.add.at(seen, part.place, part.theta)
        top, low = rewards.reshape(FOLDS, -1), seen.reshape(FOLDS, -1)  # (2, I)
        mean = top.sum(axis=1, keepdims=True) / np.maximum(low.sum(axis=1, keepdims=True), 1e-300)
        return cls(q=np.hstack([(top + SHRINKAGE * mean) / (low + SHRINKAGE), mean]))

    @classmethod
    def given(cls, values: Any, n_items: int) -> ImputedRewards:
        """q̂ that was fitted elsewhere, one for each item of the vocabulary."""
        q = np.asarray(values, np.float64)
        if q.shape != (n_items,) or not bool(np.isfinite(q).all()):
            raise InputError(
                f"imputation: give a finite reward at position 1 for each of the {n_items:,} items by id, "
                f"got shape {q.shape}."
            )
        both = np.append(q, q.mean())
        return cls(q=np.stack([both, both]))

    def of_rows(self, block: ShownBlock) -> Floats:
        """q̂ of each shown row, (n,)."""
        return self.q[_fold(block)[block.log.request], block.log.item]

    def of_lists(
        self, block: ShownBlock, ranking: Ranking, theta: Floats, above: Floats | None = None
    ) -> tuple[Floats, Floats]:
        """Σ_k θ_k·q̂ of the model's list for each request (N,), and over the requests of each bucket by position (b, K).

        `above` (n,) are the weights of the list down to each row: the term at k is weighted by that of k − 1.
        """
        log, bucket, size = block.log, block.of_requests, block.n_buckets * block.log.depth
        if ranking.lists is None:  # the model reorders what was shown
            term, place = theta[ranking.rank - 1] * self.of_rows(block), ranking.rank - 1
            slopes = totals(bucket[log.request] * log.depth + place, term, size)
            return totals(log.request, term, log.n_requests), slopes.reshape(-1, log.depth)
        direct, slopes = np.zeros(log.n_requests), np.zeros((block.n_buckets, log.depth))
        first, fold, lengths = log.request_ptr[:-1], _fold(block), log.lengths
        for k in range(min(log.depth, ranking.lists.lists.shape[1])):
            item = ranking.lists.lists[ranking.lists.key, k]  # (N,)
            term = np.where((item >= 0) & (k < lengths), theta[k] * self.q[fold, item], 0.0)
            if above is not None and k:
                term = term * np.where(k < lengths, above[np.minimum(first + k - 1, len(above) - 1)], 0.0)
            direct += term
            slopes[:, k] = totals(bucket, term, block.n_buckets)
        return direct, slopes
