"""Metrics on ranks: the cell metrics of Schnabel et al. 2016, and the user metrics of Lim and of the textbooks.

Rank is 1-based, the discount 1/log2(1 + rank); a tied block counts as its expectation over random order.
"""

from __future__ import annotations

import numpy as np

from openloop.core.feedback import Floats
from openloop.core.metric import Column, Columns, Metric, PerUser

PERSISTENCE = 0.8  # of rbp: p where none is named


def discounted_gain(k: int | None = None) -> Metric:
    """dcg, dcg@k: the discounted rating of what is ranked high."""

    def gain(x: Columns) -> Column:
        # Eq. 8: δ = I · Y / log2(1 + rank), the paper's 1/log(rank) being undefined at rank 1
        return x.cells * x.rating * x.discount(k)

    return Metric(name=_named("dcg", k), on="rank", kind="cell", gain=gain, better="higher", k=k)


def mean_rating(k: int) -> Metric:
    """prec@k: the average rating of the top k (Eq. 9)."""

    def gain(x: Columns) -> Column:
        # Eq. 9: δ = (I/k) · Y · 1{rank ≤ k}
        return x.cells / float(k) * x.rating * x.hits(k)

    return Metric(name=f"prec@{k}", on="rank", kind="cell", gain=gain, better="higher", k=k)


def precision(k: int) -> Metric:
    """precision@k: prec@k on binarised ratings; it divides by k, however few relevant items there are."""

    def gain(x: Columns) -> Column:
        return x.cells / float(k) * x.relevant * x.hits(k)

    return Metric(name=f"precision@{k}", on="rank", kind="cell", gain=gain, better="higher", k=k, binary=True)


def rank_biased_precision(persistence: float = PERSISTENCE) -> Metric:
    """rbp, rbp:p: what a user meets who looks at the next item with probability p (Moffat & Zobel 2008).

    A sum over a user's relevant items that is divided by nothing, as dcg is: hence a cell metric.
    """
    p = persistence

    def gain(x: Columns) -> Column:
        # δ = I · 1{Y ≥ threshold} · (1 − p) p^(rank − 1), whose mean over the ranks h+1 … h+e is p^h (1 − p^e)/e
        return x.cells * x.relevant * p**x.above * (1.0 - p**x.tied) / x.tied

    name = "rbp" if p == PERSISTENCE else f"rbp:{p!r}"
    return Metric(name=name, on="rank", kind="cell", gain=gain, better="higher", binary=True)


def _user(name: str, gain_of: PerUser, gain: object, **properties: object) -> Metric:
    fields = {"on": "rank", "kind": "user", "better": "higher", "binary": True} | properties
    return Metric(name=name, per_user=gain_of, gain=gain, **fields)  # type: ignore[arg-type]


def mean_gain(n: Floats, gain: Floats, _cells: Floats) -> Floats:
    """(1/|S_u|) Σ_{S_u} c."""
    return gain / n


def _first(_n: Floats, gain: Floats, _cells: Floats) -> Floats:
    return gain


def average_discounted_gain() -> Metric:
    """adg: the mean discount over S_u (Lim et al. 2015, Definition 1)."""
    return _user("adg", mean_gain, lambda x: x.discount(None), unbiased=True, pooled=True)


def _top(x: Columns) -> Column:
    # atop: 1 − (rank − 1)/(|C_u| − 1), a tied block at its mean rank; a single candidate is at the top
    position = x.above + (x.tied - 1) / 2.0
    return x.where(x.cells > 1, 1.0 - position / x.where(x.cells > 1, x.cells - 1.0, 1.0), 1.0)


def area_under_top() -> Metric:
    """atop: the area under the top-N recall curve (Steck 2010)."""
    return _user("atop", mean_gain, _top, unbiased=True, pooled=True)


def recall(k: int) -> Metric:
    """recall@k: the share of S_u in the top k."""
    return _user(f"recall@{k}", mean_gain, lambda x: x.hits(k), k=k, unbiased=True, pooled=True)


def normalised_gain(k: int | None = None) -> Metric:
    """ndcg, ndcg@k: binary gain over the ideal of |S_u| items, cut at k."""

    def per_user(n: Floats, gain: Floats, _cells: Floats) -> Floats:
        return gain / ideal_discount(n, k)

    return _user(_named("ndcg", k), per_user, lambda x: x.discount(k), k=k, ideal=True)


def ideal_discount(n: Floats, k: int | None) -> Floats:
    """Σ_{j=1}^{min(n, k)} 1/log2(1 + j)."""
    length = np.asarray(n if k is None else np.minimum(n, k)).astype(np.int64)
    discounts = 1.0 / np.log2(np.arange(2, int(length.max(initial=0)) + 2))
    return np.concatenate([[0.0], np.cumsum(discounts)])[length]


def average_precision() -> Metric:
    """map: mean over S_u of the precision at each relevant item's rank."""
    return _user("map", mean_gain, lambda x: x.precision(), additive=False, groups=True)


def reciprocal_rank() -> Metric:
    """mrr: 1/rank of the first relevant item."""
    return _user("mrr", _first, lambda x: x.first_reciprocal(), additive=False, groups=True)


def hit(k: int) -> Metric:
    """hit@k: whether any relevant item is in the top k."""
    return _user(f"hit@{k}", _first, lambda x: x.first_hit(k), k=k, additive=False, groups=True)


def _auc(n: Floats, gain: Floats, cells: Floats) -> Floats:
    # Candidates above, summed over S_u, less the n(n−1)/2 that are relevant themselves; ties count ½.
    # A user without negatives has no auc: NaN, and is left out.
    negatives = np.where(cells > n, cells - n, np.nan)
    return 1.0 - (gain - n * (n - 1) / 2.0) / (n * negatives)


def area_under_curve() -> Metric:
    """auc: the probability that a relevant item ranks above a candidate outside S_u."""
    return _user("auc", _auc, lambda x: x.above + (x.tied - 1) / 2.0, additive=False)


def _named(name: str, k: int | None) -> str:
    return name if k is None else f"{name}@{k}"
