"""Metrics of lists: coverage, exposure, popularity, novelty, similarity, overlap with the running model.

L_u are the k items listed for user u, x_i the number of lists that hold item i, n_i the rows of item i that models
may have been trained on.
"""

from __future__ import annotations

import numpy as np

from openloop.core.feedback import Array, Floats
from openloop.core.lists import ListMetric
from openloop.errors import NameFormatError


def coverage(k: int) -> ListMetric:
    """coverage@k: the share of all items that are in some list, |∪_u L_u| / I."""
    return ListMetric(name=f"coverage@{k}", k=k, spread=lambda exposure: np.count_nonzero(exposure) / len(exposure))


def gini(k: int) -> ListMetric:
    """gini@k: how unevenly items are exposed; 0 where all are listed equally often, 1 − k/I where all lists are one."""
    return ListMetric(name=f"gini@{k}", k=k, spread=_unevenness)


def _unevenness(exposure: Floats) -> float:
    # Σ_i (2i − I − 1) x_(i) / (I Σx), x_(1) ≤ … ≤ x_(I)
    x, I = np.sort(exposure), len(exposure)
    return float((2 * np.arange(1, I + 1) - I - 1) @ x / (I * x.sum()))


def popularity(k: int) -> ListMetric:
    """popularity@k: the share of users who have a row of the listed item, n_i/U."""
    return ListMetric(name=f"popularity@{k}", k=k, gain=lambda x: x.rows / x.users)


def novelty(k: int) -> ListMetric:
    """novelty@k: −log2(n_i/U) of the listed item in bits; an item without rows counts as if it had one: log2 U."""
    return ListMetric(name=f"novelty@{k}", k=k, gain=lambda x: x.log2(x.users / x.where(x.rows > 1, x.rows, 1.0)))


def new(k: int) -> ListMetric:
    """new@k: the share of listed items without rows, n_i = 0."""
    return ListMetric(name=f"new@{k}", k=k, gain=lambda x: x.where(x.rows > 0, 0.0, 1.0))


def overlap(k: int, running: str | None = None) -> ListMetric:
    """overlap@k:m: the share of listed items that the model m, such as the running one, lists for that user, too."""
    name = f"overlap@{k}" if running is None else f"overlap@{k}:{running}"
    return ListMetric(name=name, k=k, gain=lambda x: x.shared, needs="running", running=running)


def similarity(k: int) -> ListMetric:
    """similarity@k: the mean cosine of the covariates of two items of one list (Ziegler et al. 2005)."""
    if k < 2:
        raise NameFormatError(f"metric 'similarity@{k}': compares two items of a list; k must be at least 2.")
    return ListMetric(name=f"similarity@{k}", k=k, needs="item_features")


def mean_cosines(lists: Array, covariates: Floats) -> Floats:
    """The mean cosine of all pairs in each row of items (U, k), -1 where there is none; NaN with fewer than two.

    An item whose covariates are all 0 has no direction: its cosine with any other is 0.
    """
    # Σ_{i≠j} v_i·v_j = |Σv|² − Σ|v|², over m(m − 1)
    norm = np.linalg.norm(covariates, axis=1, keepdims=True)
    unit = np.vstack([np.divide(covariates, norm, out=np.zeros_like(covariates), where=norm > 0), 0 * covariates[:1]])
    total, length = np.zeros((len(lists), unit.shape[1])), np.count_nonzero(lists >= 0, axis=1)
    with_itself = np.square(unit).sum(axis=1)[lists].sum(axis=1)  # -1 is the last row, of zeros
    for items in lists.T:
        total += unit[items]
    pairs = (length * (length - 1)).astype(np.float64)
    return np.divide(
        np.square(total).sum(axis=1) - with_itself, pairs, out=np.full(len(lists), np.nan), where=pairs > 0
    )
