"""`Metric`: a gain or loss per cell, written once for arrays and for dataframe expressions alike.

A metric sees `Columns` and nothing else; it knows nothing about propensities, estimators or where rows live.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np

from openloop.core.feedback import Floats
from openloop.core.gains import PairLoss, RankGain
from openloop.errors import InputError

Column = Any  # a NumPy array or a dataframe expression: both add, multiply and compare


class Columns(Protocol):
    """What a gain may use of a row; one implementation holds arrays, another expressions."""

    rating: Column  # Y
    prediction: Column  # Ŷ, for metrics on predictions
    relevant: Column  # 1{Y ≥ threshold}
    cells: Column  # |C_u|, the candidates of the row's user; I when nothing is excluded
    above: Column  # h, candidates strictly above the row's item
    tied: Column  # e, candidates tied with it, itself included

    def abs(self, x: Column) -> Column:
        """|x|."""
        ...

    def where(self, condition: Column, yes: Column, no: Column) -> Column:
        """`yes` where the condition holds, else `no`."""
        ...

    def level(self, x: Column) -> Column:
        """The index of the rating level nearest to x."""
        ...

    def discount(self, k: int | None) -> Column:
        """Expected 1/log2(1 + rank), 0 beyond rank k."""
        ...

    def hits(self, k: int) -> Column:
        """Expected 1{rank ≤ k}."""
        ...

    def by_rank(self, gain: RankGain) -> Column:
        """Expected f(rank) of a function of your own."""
        ...

    def precision(self) -> Column:
        """Expected precision at the row's rank among its user's relevant rows."""
        ...

    def first_hit(self, k: int) -> Column:
        """The user's expected 1{any relevant item in the top k}, on the first relevant row."""
        ...

    def first_reciprocal(self) -> Column:
        """The user's expected 1/rank of the first relevant item, on the first relevant row."""
        ...


PerUser = Callable[[Floats, Floats, Floats], Floats]  # (n, summed gain, candidates) → value


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A measure by name: the gain or loss δ of a cell, and how cells are averaged.

    `ol.metric` finds the library's metrics by name and makes metrics of your own functions. A `kind="cell"` metric is
    the average of δ over the population. A `kind="user"` metric is the average over users of `per_user(|S_u|, Σ_{S_u}
    c, |C_u|)`, where S_u are the user's observed relevant items and C_u the candidates.

    Args:
        name: The canonical name, which `ol.metric` parses back.
        on: What δ looks at, the prediction or the rank.
        kind: How cells are averaged, "cell" or "user".
        gain: δ as a function of `Columns`, which works on arrays and on dataframe expressions.
        better: Which values are better, "lower" or "higher".
        per_user: A user's value from its count, summed gain and number of candidates; for `kind="user"` only.
        k: The rank beyond which gains are 0.
        additive: Whether the gain is a sum over cells.
        unbiased: Whether it is unbiased under the missing-data model of Lim et al. (2015).
        pooled: Whether a user's value is the mean of its gains; weights then average relevant cells.
        groups: Whether a row's gain depends on the user's other relevant rows, so whole users are needed.
        ideal: Whether the value is divided by the gain of the ideal order, which is weighted, too.
        root: Whether the estimate is a square root, as in rmse.
        binary: Whether the metric needs a threshold of relevance.
        check: A function that refuses ratings that the metric is not defined on.
        by_rank: Your own function of the rank, if the gain is made of one.
        pair_loss: Your own function of rating and prediction, if the gain is made of one.
        about: The line that reports print about your own metric.

    Raises:
        InputError: The fields contradict each other.

    Examples:
        >>> ndcg = ol.metric("nDCG@10")
        >>> ndcg
        Metric('ndcg@10')
        >>> ndcg.on, ndcg.kind, ndcg.better
        ('rank', 'user', 'higher')
    """

    name: str
    on: Literal["prediction", "rank"]
    kind: Literal["cell", "user"]
    gain: Callable[[Columns], Column]
    better: Literal["lower", "higher"]
    per_user: PerUser | None = None
    k: int | None = None
    additive: bool = True
    unbiased: bool = False
    pooled: bool = False
    groups: bool = False
    ideal: bool = False
    root: bool = False
    binary: bool = False
    check: Callable[[Floats], None] | None = None
    by_rank: RankGain | None = None
    pair_loss: PairLoss | None = None
    about: str = ""

    def __post_init__(self) -> None:
        if (self.kind == "user") != (self.per_user is not None):
            msg = f"Metric {self.name!r}: per_user belongs to kind='user' and only there; kind is {self.kind!r}."
            raise InputError(msg)
        if self.k is not None and self.k < 1:
            raise InputError(f"Metric {self.name!r}: k must be at least 1, got {self.k}.")
        if self.pooled and not self._averages():
            raise InputError(
                f"Metric {self.name!r}: pooled=True says that a user's value is the mean of its gains, gain/n, and "
                "per_user gives another; leave pooled= out, which refuses weighted estimates, or write a sum over a "
                "user's items as kind='cell'."
            )

    def _averages(self) -> bool:
        """Whether `per_user` is gain/n."""
        n, gain, cells = np.array([1.0, 2.0, 5.0]), np.array([0.5, 3.0, 0.0]), np.array([7.0, 11.0, 13.0])
        return self.per_user is not None and np.allclose(self.per_user(n, gain, cells), gain / n)

    def __repr__(self) -> str:
        return f"Metric({self.name!r})" if not self.about else f"Metric({self.name!r}: {self.about})"


USUAL = 4.0  # of five stars


def default_threshold(levels: Floats) -> float:
    """The default rating from which an item is relevant: 4, or 1 where ratings are 0 and 1.

    Where all ratings are equal they are positives, and the threshold is at most that rating.
    """
    if all(level in (0.0, 1.0) for level in levels[:3]):
        return 1.0
    return min(USUAL, float(levels[0])) if len(levels) == 1 and levels[0] > 0 else USUAL


def reaches(rating: Column, threshold: float) -> Column:
    """Whether ratings are relevant, the one rule for arrays and expressions: float32(rating) ≥ float32(threshold).

    Feedback holds ratings in single precision, so 0.7 reaches 0.7 in a column of any precision.
    """
    return rating >= _least(threshold)


def _least(threshold: float) -> float:
    """The least 64-bit float that rounds to float32(threshold) or more: no engine then needs to cast a column."""
    with np.errstate(over="ignore"):
        single = np.float32(threshold)
        below = np.nextafter(single, np.float32(-np.inf))
        middle = (float(below) + float(single)) / 2
        return middle if np.float32(middle) >= single else float(np.nextafter(middle, np.inf))
