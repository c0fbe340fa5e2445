"""Metrics on ranks: the cell metrics of Schnabel et al. 2016, and the user metrics of Lim and of the textbooks.

Rank is 1-based, the discount 1/log2(1 + rank); a tied block counts as its expectation over random order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from openloop.core.feedback import Floats
from openloop.core.metric import Column, Columns, Metric

PERSISTENCE = 0.8  # of rbp: p where none is named


def _cell(name: str, k: int | None, gain: Callable[[Columns], Column], **properties: Any) -> Metric:
    """The metric of a name, @k where it has one: an average over cells, if nothing else is said."""
    properties = {"name": name if k is None else f"{name}@{k}", "kind": "cell"} | properties
    return Metric(on="rank", gain=gain, better="higher", k=k, **properties)


def _user(name: str, k: int | None, gain: Callable[[Columns], Column], **properties: Any) -> Metric:
    """The same as an average over users, of the mean over S_u if nothing else is said."""
    return _cell(name, k, gain, **({"kind": "user", "per_user": mean_gain, "binary": True} | properties))


def discounted_gain(k: int | None = None) -> Metric:
    """dcg, dcg@k: the discounted rating of what is ranked high."""
    # Eq. 8: δ = I · Y / log2(1 + rank), the paper's 1/log(rank) being undefined at rank 1
    return _cell("dcg", k, lambda x: x.cells * x.rating * x.discount(k))


def mean_rating(k: int) -> Metric:
    """prec@k: the average rating of the top k (Eq. 9)."""
    # Eq. 9: δ = (I/k) · Y · 1{rank ≤ k}
    return _cell("prec", k, lambda x: x.cells / float(k) * x.rating * x.hits(k))


def precision(k: int) -> Metric:
    """precision@k: prec@k on binarised ratings; it divides by k, however few relevant items there are."""
    return _cell("precision", k, lambda x: x.cells / float(k) * x.relevant * x.hits(k), binary=True)


def rank_biased_precision(persistence: float = PERSISTENCE) -> Metric:
    """rbp, rbp:p: what a user meets who looks at the next item with probability p (Moffat & Zobel 2008).

    A sum over a user's relevant items that is divided by nothing, as dcg is: hence a cell metric.
    """
    p = persistence
    # δ = I · 1{Y ≥ threshold} · (1 − p) p^(rank − 1), whose mean over the ranks h+1 … h+e is p^h (1 − p^e)/e
    return _cell(
        "rbp" if p == PERSISTENCE else f"rbp:{p!r}", None,
        lambda x: x.cells * x.relevant * p**x.above * (1.0 - p**x.tied) / x.tied, binary=True,
    )  # fmt: skip


def mean_gain(n: Floats, gain: Floats, _cells: Floats) -> Floats:
    """(1/|S_u|) Σ_{S_u} c."""
    return gain / n


def _sum(_n: Floats, gain: Floats, _cells: Floats) -> Floats:
    return gain


def average_discounted_gain() -> Metric:
    """adg: the mean discount over S_u (Lim et al. 2015, Definition 1)."""
    return _user("adg", None, lambda x: x.discount(None), unbiased=True, pooled=True)


def _top(x: Columns) -> Column:
    # atop: 1 − (rank − 1)/(|C_u| − 1), a tied block at its mean rank; a single candidate is at the top
    return x.where(x.cells > 1, 1.0 - _candidates_above(x) / x.where(x.cells > 1, x.cells - 1.0, 1.0), 1.0)


def _candidates_above(x: Columns) -> Column:
    return x.above + (x.tied - 1) / 2.0


def area_under_top() -> Metric:
    """atop: the area under the top-N recall curve (Steck 2010)."""
    return _user("atop", None, _top, unbiased=True, pooled=True)


def recall(k: int) -> Metric:
    """recall@k: the share of S_u in the top k."""
    return _user("recall", k, lambda x: x.hits(k), unbiased=True, pooled=True)


def normalised_gain(k: int | None = None) -> Metric:
    """ndcg, ndcg@k: binary gain over the ideal of |S_u| items, cut at k."""
    return _user(
        "ndcg", k, lambda x: x.discount(k), ideal=True, per_user=lambda n, gain, _: gain / ideal_discount(n, k)
    )


def ideal_discount(n: Floats, k: int | None) -> Floats:
    """Σ_{j=1}^{min(n, k)} 1/log2(1 + j)."""
    length = np.asarray(n if k is None else np.minimum(n, k)).astype(np.int64)
    discounts = 1.0 / np.log2(np.arange(2, int(length.max(initial=0)) + 2))
    return np.concatenate([[0.0], np.cumsum(discounts)])[length]


def average_precision() -> Metric:
    """map: mean over S_u of the precision at each relevant item's rank."""
    return _user("map", None, lambda x: x.precision(), additive=False, groups=True)


def reciprocal_rank() -> Metric:
    """mrr: 1/rank of the first relevant item."""
    return _user("mrr", None, lambda x: x.first_reciprocal(), per_user=_sum, additive=False, groups=True)


def hit(k: int) -> Metric:
    """hit@k: whether any relevant item is in the top k."""
    return _user("hit", k, lambda x: x.first_hit(k), per_user=_sum, additive=False, groups=True)


def _auc(n: Floats, gain: Floats, cells: Floats) -> Floats:
    # Candidates above, summed over S_u, less the n(n−1)/2 that are relevant themselves; ties count ½.
    # A user without negatives has no auc: NaN, and is left out.
    negatives = np.where(cells > n, cells - n, np.nan)
    return 1.0 - (gain - n * (n - 1) / 2.0) / (n * negatives)


def area_under_curve() -> Metric:
    """auc: the probability that a relevant item ranks above a candidate outside S_u."""
    return _user("auc", None, _candidates_above, per_user=_auc, additive=False)
