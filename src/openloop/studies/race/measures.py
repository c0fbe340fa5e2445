"""The race's metrics on a test set, as forms in how often each user counts, so that users can be resampled.

A user's candidates are her test cells. Tied cells are not luck: a tied block counts as its average over random order.
Users without positives have no nDCG, recall or AUC of their own and are left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from openloop.core.feedback import Array, Floats

CUT = 5  # of nDCG and recall
AT_ONCE = 1 << 21  # numbers of a block of draws × rows

AUC, USER_AUC, NDCG, RECALL = "AUC", "AUC per user", "nDCG@5", "recall@5"
MSE, MAE = "MSE", "MAE"
RANKING, RATING = (AUC, USER_AUC, NDCG, RECALL), (MSE, MAE)


class Form(Protocol):
    """A metric of one model, as a function of how often each user counts."""

    def over(self, counts: Floats) -> Floats:
        """The metric for each of these counts of users: (B, U) to (B,)."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class MeanForm:
    """Σ_u c_u·top_u / Σ_u c_u·bottom_u: means over users, or over cells."""

    top: Floats  # (U,)
    bottom: Floats  # (U,)

    def over(self, counts: Floats) -> Floats:
        """The ratio for each of these counts of users, (B,)."""
        return (counts @ self.top) / (counts @ self.bottom)


@dataclass(frozen=True, slots=True, eq=False)
class PooledAuc:
    """The share of pairs (a positive, a negative) of all cells that the scores order rightly, ties ½.

    A pair of cells of users u and v counts c_u·c_v times.
    """

    user: Array  # (n,)
    score: Floats  # (n,)
    positive: npt.NDArray[np.bool_]  # (n,)

    def over(self, counts: Floats) -> Floats:
        """The share for each of these counts of users, (B,)."""
        step = max(1, AT_ONCE // len(self.user))
        return np.concatenate([self._block(counts[at : at + step]) for at in range(0, len(counts), step)])

    def _block(self, counts: Floats) -> Floats:
        order = np.argsort(self.score, kind="stable")
        score, positive = self.score[order], self.positive[order]
        first, last = np.searchsorted(score, score, "left"), np.searchsorted(score, score, "right")  # of ties
        weight = counts[:, self.user[order]]  # (B, n)
        negative = np.zeros((len(counts), len(order) + 1))
        np.cumsum(np.where(positive, 0.0, weight), axis=1, out=negative[:, 1:])
        below = (negative[:, first[positive]] + negative[:, last[positive]]) / 2  # (B, n₊): ties half
        pairs = weight[:, positive].sum(axis=1) * negative[:, -1]
        return np.einsum("bn,bn->b", weight[:, positive], below) / pairs


def ranking(user: Array, score: npt.ArrayLike, positive: npt.NDArray[np.bool_], users: int) -> dict[str, Form]:
    """The ranking metrics of scores for test cells; `positive` are the relevant ones."""
    scores = np.asarray(score, np.float64)
    relevant = np.bincount(user, positive, minlength=users)  # (U,) |S_u|
    h, e = places(user, scores)
    top = np.cumsum(np.append(0.0, _discounts(int(np.bincount(user).max()))))  # D[j]: gain of the first j places
    reached = np.minimum(np.arange(len(top)), CUT)  # how many of the first j places are in the top 5
    has = relevant > 0
    ideal = np.where(has, top[relevant.astype(np.int64)], 1.0)
    ndcg = _per_user(user, (top[h + e] - top[h]) / e * positive, users) / ideal
    hits = _per_user(user, (reached[h + e] - reached[h]) / e * positive, users)
    return {
        AUC: PooledAuc(np.asarray(user), scores, positive),
        USER_AUC: _user_auc(user, scores, positive, users),
        NDCG: MeanForm(np.where(has, ndcg, 0.0), has.astype(np.float64)),
        RECALL: MeanForm(np.where(has, hits / np.maximum(relevant, 1), 0.0), has.astype(np.float64)),
    }


def rating(user: Array, prediction: npt.ArrayLike, truth: npt.ArrayLike, users: int) -> dict[str, Form]:
    """MSE and MAE over test cells."""
    e, cells = np.asarray(prediction, np.float64) - np.asarray(truth), np.bincount(user, minlength=users)
    losses: Mapping[str, Floats] = {MSE: e**2, MAE: np.abs(e)}
    return {name: MeanForm(_per_user(user, loss, users), cells.astype(np.float64)) for name, loss in losses.items()}


def places(user: Array, score: Floats) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """h, how many of her cells are strictly above, and e, how many tie with it, itself included; of every cell."""
    order = np.lexsort((-score, user))
    u, s = user[order], score[order]
    begins = np.append(True, (u[1:] != u[:-1]) | (s[1:] != s[:-1]))
    block, first = np.cumsum(begins) - 1, np.flatnonzero(begins)
    h, e = np.empty(len(order), np.int64), np.empty(len(order), np.int64)
    h[order] = first[block] - np.searchsorted(u, u, "left")
    e[order] = np.diff(np.append(first, len(order)))[block]
    return h, e


def _user_auc(user: Array, score: Floats, positive: npt.NDArray[np.bool_], users: int) -> MeanForm:
    """Of users with positives and negatives: the share of her pairs that the scores order rightly, ties ½."""
    cells, relevant = np.bincount(user, minlength=users), np.bincount(user, positive, minlength=users)
    h, e = (place[positive] for place in places(user, score))
    h1, e1 = places(user[positive], score[positive])  # the same among positives
    u = user[positive]
    below = (cells - relevant)[u] - (h - h1) - (e - e1) / 2  # negatives below, ties half
    pairs = relevant * (cells - relevant)
    found = _per_user(u, below, users) / np.maximum(pairs, 1)
    return MeanForm(np.where(pairs > 0, found, 0.0), (pairs > 0).astype(np.float64))


def _discounts(places: int) -> Floats:
    """1/log2(1 + rank) of ranks 1 … 5, and 0 below."""
    rank = np.arange(1, places + 1)
    return np.where(rank <= CUT, 1 / np.log2(1 + rank), 0.0)


def _per_user(user: Array, values: Floats, users: int) -> Floats:
    return np.bincount(user, weights=values, minlength=users).astype(np.float64)
