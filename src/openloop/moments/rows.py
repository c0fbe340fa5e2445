"""Rows of a block as the columns that a metric sees, and their sums: by user, and in total by bucket."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from openloop.blocks.block import Outcome
from openloop.core.feedback import Array, Floats
from openloop.core.gains import RankGain
from openloop.core.metric import Column, Metric
from openloop.core.moments import SUMS
from openloop.core.vocabulary import Int64s, Ints
from openloop.kernels import ties
from openloop.kernels.powers import Weighted, power_sums, run_sums
from openloop.moments.terms import Needed, shared_key, terms


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rows:
    """Scored rows of a block: all of them, or the relevant ones; by bucket and user."""

    user: Ints  # (n,)
    user_start: Int64s  # (b + 1,) users of a bucket are user_start[b] : user_start[b + 1]
    rating: Floats
    relevant: Floats  # 1{rating ≥ threshold}
    cells: Floats  # (u,) |C_u|
    probability: Floats | None = None  # p·s, or π under exclude
    scaled: bool = True  # False: the probability is right up to a factor
    certain: Floats | None = None  # (1 − t)/s, the weight of p = 1; None: p has no odds
    stratum: npt.NDArray[np.int64] | None = None
    n_strata: int = 1
    middles: Floats | None = None  # between rating levels
    # What does not depend on a model, found once; other rows, also those made of these, have their own.
    shared: dict[Any, Any] = field(init=False, repr=False, default_factory=dict[Any, Any])

    def __len__(self) -> int:
        return len(self.user)

    @property
    def n_buckets(self) -> int:
        """The number of buckets."""
        return len(self.user_start) - 1

    @property
    def row_start(self) -> Int64s:
        """Rows of bucket b are row_start[b] : row_start[b + 1]."""
        return self.once("row start", lambda: np.searchsorted(self.user, self.user_start).astype(np.int64))

    @property
    def place(self) -> Int64s:
        """bucket · n_strata + stratum of each row."""
        return self.once("place", self._place)

    def _place(self) -> Int64s:
        place = np.repeat(np.arange(self.n_buckets), np.diff(self.row_start)) * self.n_strata
        return place if self.stratum is None else place + self.stratum

    @property
    def group(self) -> Int64s:
        """user · n_strata + stratum of each row."""
        group = self.user.astype(np.int64) * self.n_strata
        return group if self.stratum is None else group + self.stratum

    def take(self, keep: Array) -> Rows:
        """The rows that the mask keeps, or those at some positions, which of several columns is faster."""
        names = ("user", "rating", "relevant", "probability", "certain", "stratum")
        columns = {name: getattr(self, name) for name in names}
        return replace(self, **{name: None if v is None else v[keep] for name, v in columns.items()})

    @classmethod
    def joined(cls, parts: Sequence[Rows]) -> Rows:
        """The rows of several blocks."""
        first = np.cumsum([0, *(len(part.cells) for part in parts)])
        columns: dict[str, Any] = {
            name: None if getattr(parts[0], name) is None else np.concatenate([getattr(p, name) for p in parts])
            for name in ("rating", "relevant", "probability", "certain", "cells")
        }
        user = np.concatenate([part.user + start for part, start in zip(parts, first[:-1], strict=True)])
        starts = [part.user_start[:-1] + start for part, start in zip(parts, first[:-1], strict=True)]
        return replace(parts[0], user=user, user_start=np.concatenate([*starts, first[-1:]]), **columns)

    def once(self, key: Any, compute: Callable[[], Any]) -> Any:
        """What `compute` gives, computed for these rows the first time only."""
        if key not in self.shared:
            self.shared[key] = compute()
        return self.shared[key]

    def weight(self) -> Floats | None:
        """w = 1/p."""
        p = self.probability
        return None if p is None else self.once("w", lambda: 1.0 / p)

    def doubt(self) -> Floats | None:
        """1 − p, 0 where a balanced p exceeds 1; where the scale of p is not known, 1, which it cannot exceed."""
        p = self.probability
        if p is None:
            return None
        return self.once("1 - p", lambda: np.maximum(1.0 - p, 0.0) if self.scaled else np.ones(len(self)))

    def moving(self) -> Floats | None:
        """b = w − a, the part of the weight that wrong propensities change."""
        w, a = self.weight(), self.certain
        return w if w is None or a is None else self.once("b", lambda: np.maximum(w - a, 0.0))

    def by_user(self, column: Floats) -> Floats:
        """Σ of a column for each user and stratum, (u, S)."""
        n_users, stratum = len(self.cells), self.stratum
        if stratum is None:
            starts = self.once("users", lambda: np.searchsorted(self.user, np.arange(n_users + 1)).astype(np.int64))
            return run_sums(column, starts)[:, None]
        place = self.once("stratum and user", lambda: stratum * n_users + self.user)
        flat: Any = np.bincount(place, column, minlength=n_users * self.n_strata)
        return flat.reshape(self.n_strata, n_users).T  # a stratum's column contiguous

    def by_bucket(self, column: Floats) -> Floats:
        """Σ of a column for each bucket and stratum, (b, S)."""
        if self.stratum is None:
            return run_sums(column, self.row_start)[:, None]
        flat: Any = np.bincount(self.place, column, minlength=self.n_buckets * self.n_strata)
        return flat.reshape(self.n_buckets, self.n_strata)


class ArrayColumns:
    """`WeightedColumns` of one model's rows."""

    def __init__(self, rows: Rows, outcome: Outcome) -> None:
        self._rows = rows
        self.rating = rows.rating
        self.relevant = rows.relevant
        self.prediction: Any = outcome.prediction
        self.above: Any = outcome.above
        self.tied: Any = outcome.tied
        self.one = rows.once("1", lambda: np.ones(len(rows)))
        self.weight = rows.weight()
        self.doubt = rows.doubt()
        self.fixed = rows.certain

    @property
    def moving(self) -> Column:
        return self._rows.moving()

    @property
    def cells(self) -> Column:
        return self._rows.once("cells", lambda: self._rows.cells[self._rows.user])

    @cached_property
    def _group(self) -> Int64s:
        return self._rows.group

    def abs(self, x: Column) -> Column:
        return np.abs(x)

    def where(self, condition: Column, yes: Column, no: Column) -> Column:
        return np.where(condition, yes, no)

    def level(self, x: Column) -> Column:
        middles = self._rows.middles
        return np.searchsorted(np.empty(0) if middles is None else middles, x, side="right")

    def discount(self, k: int | None) -> Column:
        return ties.expected_discount(self.above, self.tied, k)

    def hits(self, k: int) -> Column:
        return ties.expected_hits(self.above, self.tied, k)

    def by_rank(self, gain: RankGain) -> Column:
        last = int((self.above + self.tied).max(initial=1))
        return ties.expected_gain(gain.table(last), self.above, self.tied)

    def precision(self) -> Column:
        return self._on_first(ties.average_precision(self.above, self.tied, *self._dense))

    def first_hit(self, k: int) -> Column:
        return self._on_first(ties.expected_hit(*ties.first_block(self.above, self.tied, *self._dense), k))

    def first_reciprocal(self) -> Column:
        first = ties.first_block(self.above, self.tied, *self._dense)
        return self._on_first(ties.expected_reciprocal_rank(*first))

    @property
    def _grouped(self) -> tuple[Array, Array, Array]:
        """The groups, the first row of each, and the number of each row's group, counted without gaps."""
        return self._rows.once("grouped", lambda: np.unique(self._group, return_index=True, return_inverse=True))

    @property
    def _dense(self) -> tuple[Int64s, int]:
        """Groups numbered without gaps, and their number."""
        groups, _, dense = self._grouped
        return dense, len(groups)

    def _on_first(self, values: Floats) -> Column:
        """A group's value on its first row, and 0 on the others: the sum over rows is the value."""
        column = np.zeros(len(self._rows))
        column[self._grouped[1]] = values
        return column

    def cut(self, cap: float) -> Column:
        return np.minimum(self.weight, cap)  # type: ignore[arg-type]

    def ideal(self, k: int | None) -> Column:
        place = self._rows.once("ideal place", self._ideal_place)
        return ties.expected_discount(place, np.ones_like(place), k)

    def _ideal_place(self) -> Int64s:
        """The place of each row in its group's order by weight, from 0."""
        order = np.lexsort((-self.weight, self._group))  # type: ignore[operator]
        group = self._group[order]
        start = np.flatnonzero(np.concatenate([[True], group[1:] != group[:-1]]))
        size = np.diff(np.concatenate([start, [len(group)]]))
        place = np.empty(len(group), np.int64)  # 0-based, in the ideal order
        place[order] = np.arange(len(group)) - np.repeat(start, size)
        return place


def gains(metric: Metric, rows: Rows, outcome: Outcome) -> Floats:
    """δ of each row."""
    return metric.gain(ArrayColumns(rows, outcome))


def base_sums(rows: Rows) -> dict[str, Floats]:
    """rows = |O| and mass = Σw of each user and stratum, over all scored rows."""
    weight = rows.weight()
    counted = {"rows": rows.once(("n",), lambda: rows.by_user(np.ones(len(rows))))}
    return counted if weight is None else counted | {"mass": rows.once(("weight",), lambda: rows.by_user(weight))}


def sums(metric: Metric, rows: Rows, delta: Floats, needed: Needed) -> dict[Any, Floats]:
    """The sums of all terms of δ, of a model or of a pair's difference; those that have no δ are taken once.

    What an estimator needs of each user is (u, S), what it needs in total (b, S), by bucket.
    """
    totals = _power_sums(rows, delta, needed)
    for name, column in terms(ArrayColumns(rows, Outcome()), delta, metric, replace(needed, powers=(), parts=False)):
        summed = partial(rows.by_user if name in SUMS else rows.by_bucket, column)
        key = shared_key(name, metric, needed)
        totals[name] = summed() if key is None else rows.once(key, summed)
    return totals


def _power_sums(rows: Rows, delta: Floats, needed: Needed) -> dict[str, Floats]:
    """What `terms` has where powers and parts are wanted, all in one pass."""
    w, doubt = rows.weight(), rows.doubt()
    if not (needed.powers or needed.parts) or w is None or doubt is None:
        return {}
    stratum = rows.once("stratum", lambda: np.zeros(len(rows), np.int64)) if rows.stratum is None else rows.stratum
    certain = rows.once("a", lambda: np.zeros(len(rows))) if rows.certain is None else rows.certain
    cap = math.inf if needed.cap is None else needed.cap
    totals = power_sums(Weighted(doubt, w, certain, stratum), delta, cap, rows.n_strata, rows.row_start)  # (b, S, 6, 3)
    named = {f"power{a}{b}": totals[:, :, a, b] for a, b in needed.powers}
    if needed.powers and needed.cap is not None:
        named |= {f"cutpower2{b}": totals[:, :, 3, b] for b in range(3)}
    if needed.powers and not needed.pair:
        named["wsquare"] = totals[:, :, 4, 2]
    if needed.parts:
        named |= {name: totals[:, :, 5, k] for k, name in enumerate(("fixed", "positive", "negative"))}
    return named  # (b, S) each
