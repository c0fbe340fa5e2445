"""Rows held as arrays: the Columns of one model over a Feedback's scored rows, and their sums by user."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from openloop.core.feedback import Array, Floats
from openloop.core.gains import RankGain
from openloop.core.metric import Column, Metric
from openloop.core.moments import SUMS
from openloop.core.weights import WeightSummary
from openloop.kernels import ties
from openloop.kernels.powers import Weighted, power_sums
from openloop.sources.terms import Needed, shared_key, terms


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rows:
    """Scored rows: all of them, or the relevant ones; sorted by user."""

    user: npt.NDArray[np.int32]
    rating: Floats
    relevant: Floats  # 1{rating ≥ threshold}
    cells: Floats  # (U,) |C_u|
    probability: Floats | None = None  # p·s, or π under exclude
    scaled: bool = True  # False: the probability is right up to a factor
    unbalanced: float | None = None  # Σw/|C| before weights were balanced, which makes it 1; None: they were not
    certain: Floats | None = None  # (1 − t)/s, the weight of p = 1; None: p has no odds
    stratum: npt.NDArray[np.int64] | None = None
    edges: tuple[float, ...] = ()
    limits: Floats | None = None  # (S, 2) the least and the largest p of each stratum of propensity
    middles: Floats | None = None  # between rating levels
    # What does not depend on a model, found once; other rows, also those made of these, have their own.
    shared: dict[Any, Any] = field(init=False, repr=False, default_factory=dict[Any, Any])

    def __len__(self) -> int:
        return len(self.user)

    @property
    def n_strata(self) -> int:
        """The number of strata; 1 without them."""
        return len(self.edges) + 1

    @property
    def group(self) -> npt.NDArray[np.int64]:
        """user · n_strata + stratum of each row."""
        group = self.user.astype(np.int64) * self.n_strata
        return group if self.stratum is None else group + self.stratum

    def take(self, keep: Array) -> Rows:
        """The rows that the mask keeps, or those at some positions, which of several columns is faster."""
        fields = ("user", "rating", "relevant", "probability", "certain", "stratum")
        found = {name: getattr(self, name) for name in fields}
        return replace(self, **{name: None if v is None else v[keep] for name, v in found.items()})

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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Outcome:
    """One model's answer for each row: a prediction, or how many candidates rank above it and tie."""

    prediction: Floats | None = None
    above: npt.NDArray[np.int64] | None = None
    tied: npt.NDArray[np.int64] | None = None

    def take(self, keep: Array) -> Outcome:
        """The rows that the mask keeps."""
        return Outcome(
            prediction=None if self.prediction is None else self.prediction[keep],
            above=None if self.above is None else self.above[keep],
            tied=None if self.tied is None else self.tied[keep],
        )


class ArrayColumns:
    """`WeightedColumns` as arrays."""

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
    def _group(self) -> npt.NDArray[np.int64]:
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
    def _dense(self) -> tuple[npt.NDArray[np.int64], int]:
        """Groups numbered without gaps, and their number."""
        found, _, dense = self._grouped
        return dense, len(found)

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

    def _ideal_place(self) -> npt.NDArray[np.int64]:
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
    named: list[tuple[str, Column]] = [("rows", np.ones(len(rows)))]
    if rows.probability is not None:
        named.append(("mass", 1.0 / rows.probability))
    return {name: _by_user(column, rows) for name, column in named}


def weight_summary(rows: Rows) -> WeightSummary | None:
    """The summary of the rows' weights."""
    return None if rows.probability is None else WeightSummary.of(1.0 / rows.probability)


def sums(metric: Metric, rows: Rows, delta: Floats, wanted: Needed) -> dict[str, Floats]:
    """The sums of all terms of δ, of a model or of a pair's difference; those that have no δ are taken once."""
    found = _power_sums(rows, delta, wanted)
    for name, column in terms(ArrayColumns(rows, Outcome()), delta, metric, replace(wanted, powers=())):
        summed = partial(_by_user if name in SUMS else _by_stratum, column, rows)
        key = shared_key(name, metric, wanted)
        found[name] = summed() if key is None else rows.once(key, summed)
    return found


def _power_sums(rows: Rows, delta: Floats, wanted: Needed) -> dict[str, Floats]:
    """What `terms` has where powers are wanted, all in one pass."""
    w, doubt = rows.weight(), rows.doubt()
    if not wanted.powers or w is None or doubt is None:
        return {}
    stratum = rows.once("stratum", lambda: np.zeros(len(rows), np.int64)) if rows.stratum is None else rows.stratum
    cap = math.inf if wanted.cap is None else wanted.cap
    found = power_sums(Weighted(doubt, w, stratum), delta, cap, rows.n_strata)  # (S, 5, 3)
    named = {f"power{a}{b}": found[:, a, b] for a, b in wanted.powers}
    if wanted.cap is not None:
        named |= {f"cutpower2{b}": found[:, 3, b] for b in range(3)}
    if not wanted.pair:
        named["wsquare"] = found[:, 4, 2]
    return {name: values[None, :] for name, values in named.items()}  # (1, S) each


def _by_user(column: Floats, rows: Rows) -> Floats:
    n_users = len(rows.cells)
    place = rows.user if rows.stratum is None else rows.stratum * n_users + rows.user
    flat: Any = np.bincount(place, column, minlength=n_users * rows.n_strata)
    return flat.reshape(rows.n_strata, n_users).T  # (U, S), a stratum's column contiguous


def _by_stratum(column: Floats, rows: Rows) -> Floats:
    if rows.stratum is None:
        return np.array([[column.sum()]])
    flat: Any = np.bincount(rows.stratum, column, minlength=rows.n_strata)
    return flat[None, :]  # (1, S)
