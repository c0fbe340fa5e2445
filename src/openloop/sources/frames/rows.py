"""Rows that stay in their frame: the Columns of a model as expressions, reduced by one group-by on any engine.

The frame is joined: u, i, y (rating), p, weights and, for model m, s{m} (prediction) or h{m}, e{m} (candidates
above and tied). Named columns are made first, then plain sums: the order that every engine agrees on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np

from openloop.core.feedback import Array, Floats
from openloop.core.gains import PairLoss, RankGain, probe_pairs
from openloop.core.metric import Column, Metric, reaches
from openloop.kernels import ties
from openloop.sources.frames.collecting import FrameTally, together
from openloop.sources.frames.parting import WHOLE, Division
from openloop.sources.terms import Needed, shared_key, terms
from openloop.support.frames import MAX_COLUMNS, plain_ids

USER, STRATUM = "u", "stratum"
Key = tuple[Any, ...]
ROWS: Key = ("n",)  # the sum of ones
Finish = Callable[[Array, Array, Array], Floats]


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """The columns of the probability with which a row was observed, and of its inverse.

    `certain` is (1 − t)/s, the weight of a row with p = 1; None where p has no scale, and so no odds.
    """

    probability: str
    weight: str
    certain: float | None = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameSetting:
    """What the expressions of all models share."""

    weights: Mapping[str, Weights]  # for metrics on predictions and on ranks; empty without propensities
    threshold: float
    cells: Mapping[str, Any]  # |C_u| as an expression, for metrics on predictions and on ranks
    middles: tuple[float, ...] | None
    stratified: bool

    @property
    def group(self) -> tuple[str, ...]:
        """The columns that rows are grouped by."""
        return (USER, STRATUM) if self.stratified else (USER,)


class FrameColumns:
    """`WeightedColumns` as expressions."""

    def __init__(self, model: int, on: str, setting: FrameSetting, *, ranked: bool) -> None:
        self._setting = setting
        self._model = model
        self.finish: Finish | None = None
        self.rating = nw.col("y")
        self.relevant = self.where(reaches(nw.col("y"), setting.threshold), 1.0, 0.0)
        self.prediction = nw.col(f"s{model}")
        self.above = nw.col(f"h{model}")
        self.tied = nw.col(f"e{model}")
        self.cells = setting.cells[on]
        self.one: Any = nw.lit(1.0)
        by = setting.weights.get(on)
        self.weight: Any = None if by is None else nw.col(by.weight)
        self.doubt: Any = None if by is None else _doubt(by)
        self.fixed: Any = None if by is None or by.certain is None else nw.lit(by.certain)
        self.moving: Any = (
            self.weight if self.fixed is None else self.where(self.weight > self.fixed, self.weight - self.fixed, 0.0)
        )
        self._ranked = ranked

    def abs(self, x: Column) -> Column:
        return x.abs()

    def where(self, condition: Column, yes: Column, no: Column) -> Column:
        return nw.when(condition).then(_expression(yes)).otherwise(_expression(no))

    def level(self, x: Column) -> Column:
        total = nw.lit(0.0)
        for middle in self._setting.middles or ():
            total = total + self.where(x >= middle, 1.0, 0.0)
        return total

    def discount(self, k: int | None) -> Column:
        if not self._ranked:  # full scores: the mean over the tied block was taken beside them
            return nw.col(discount_name(self._model, k))
        discount = 1.0 / (self.above + 2.0).log(2)
        return discount if k is None else self.where(self.above < k, discount, 0.0)

    def hits(self, k: int) -> Column:
        # (min(h + e, k) − min(h, k)) / e
        upper, lower = self.above + self.tied, self.above
        return (self.where(upper < k, upper, float(k)) - self.where(lower < k, lower, float(k))) / self.tied

    def by_rank(self, gain: RankGain) -> Column:
        return nw.col(gain_name(self._model, gain))  # looked up beside the ranks

    def precision(self) -> Column:
        # r relevant rows in the tied block, c above it; the closed form of kernels.ties.average_precision
        group = self._setting.group
        h, e, harmonic = self.above, self.tied, nw.col(f"harmonic{self._model}")
        r = nw.len().over(*group, f"h{self._model}").cast(nw.Float64())
        c = h.rank("min").over(*group).cast(nw.Float64()) - 1.0
        spread = self.where(e > 1, (r - 1.0) / self.where(e > 1, e - 1.0, 1.0), 0.0)
        return ((c + 1.0) * harmonic + spread * (e - (h + 1.0) * harmonic)) / e

    def first_hit(self, k: int) -> Column:
        return self._first(lambda h, e, r: ties.expected_hit(h, e, r, k))

    def first_reciprocal(self) -> Column:
        return self._first(ties.expected_reciprocal_rank)

    def _first(self, finish: Finish) -> Column:
        """1 on the rows of the user's first tied block; the closed form follows once their sums are there."""
        self.finish = finish
        smallest = self.above.min().over(*self._setting.group)
        return self.where(self.above == smallest, 1.0, 0.0)

    def cut(self, cap: float) -> Column:
        return self.where(self.weight < cap, self.weight, cap)

    def ideal(self, k: int | None) -> Column:
        place = self.weight.rank("ordinal", descending=True).over(USER).cast(nw.Float64())
        discount = 1.0 / (place + 1.0).log(2)
        return discount if k is None else self.where(place <= k, discount, 0.0)


def discount_name(model: int, k: int | None) -> str:
    """The column of a model's expected discount, cut at k."""
    return f"discount{model}" if k is None else f"discount{model}_{k}"


def gain_name(model: int, gain: RankGain) -> str:
    """The column of a model's expected gain by a function of the rank."""
    return f"gain{model}:{gain.name}"


def check_columns(loss: PairLoss) -> None:
    """Refuse a function of rating and prediction that says something else of columns than of arrays."""
    import polars as pl

    rating, prediction = probe_pairs()
    frame = nw.from_native(pl.DataFrame({"y": rating, "s": prediction}))
    found = frame.select(found=loss(nw.col("y"), nw.col("s")))["found"].to_numpy()
    if not np.allclose(found, loss(rating, prediction), rtol=1e-12, atol=1e-12):
        raise loss.needs_arrays("it gives other numbers there")


def with_scores(frame: Any, model: int) -> Any:
    """Scores of all candidates (u, i, s) with h and e; both are counts, so the order of rows changes no bit of them."""
    score = f"s{model}"
    return frame.with_columns(
        (nw.col(score).rank("min", descending=True).over(USER).cast(nw.Float64()) - 1.0).alias(f"h{model}"),
        nw.len().over(USER, score).cast(nw.Float64()).alias(f"e{model}"),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SumTask:
    """The sums of one metric over the gains of one model, or over the difference of two."""

    metric: Metric
    models: tuple[int, ...]
    wanted: Needed

    def columns(self, setting: FrameSetting, ranked: Mapping[int, bool]) -> tuple[dict[str, Column], Finish | None]:
        """Expressions by term, and how a closed form over first tied blocks is finished."""
        x, *rest = (FrameColumns(m, self.metric.on, setting, ranked=ranked[m]) for m in self.models)
        delta = self.metric.gain(x)
        for other in rest:
            delta = delta - self.metric.gain(other)
        if x.finish is not None:
            return {"n": x.one, "r": delta, "h": delta * x.above, "e": delta * x.tied}, x.finish
        return dict(terms(x, delta, self.metric, self.wanted)), None

    def key(self, term: str, setting: FrameSetting) -> Key:
        """What a sum is a sum of: terms that do not depend on the model are summed once for all of the same weights."""
        shared = shared_key(term, self.metric, self.wanted)
        if shared is None:
            return (term, self.models, self.metric.name, self.wanted.cap)
        by = setting.weights.get(self.metric.on)
        return shared if term == "n" or by is None else (*shared, by.weight)


def finished(sums: dict[str, Floats], finish: Finish | None) -> dict[str, Floats]:
    """The gain of each user from the sums over its first tied block, where the metric needs that."""
    if finish is None:
        return sums
    r = np.maximum(sums["r"], 1.0)  # h and e are equal on all rows of the block
    h, e = (np.rint(sums[name] / r).astype(np.int64).ravel() for name in ("h", "e"))
    gain = finish(h, e, sums["r"].astype(np.int64).ravel()).reshape(r.shape)
    return {"n": sums["n"], "gain": np.where(sums["n"] > 0, gain, 0.0)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reduced:
    """Sums by key as (users, strata) arrays, and the ids of the users."""

    ids: Array
    sums: dict[Key, Floats]

    def on(self, ids: Array, users: int) -> dict[Key, Floats]:
        """The sums of other ids, which hold these, and of users without a row up to `users`."""
        users = max(users, len(ids))
        if len(self.ids) == users:  # the same ids: none to look for
            return self.sums
        at = np.searchsorted(ids, self.ids)
        return {key: _spread(values, at, users) for key, values in self.sums.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """Expressions to sum over a frame, by user and stratum; or without users over all rows of each stratum."""

    frame: Any
    columns: Mapping[Key, Column]
    strata: int = 1
    by_user: bool = True
    parts: Division = WHOLE  # ranges of users, taken one after the other

    @property
    def batches(self) -> list[dict[Key, str]]:
        """The names of the sums, as many at a time as an engine likes."""
        keys = list(self.columns)
        return [
            {key: f"t{j}" for j, key in enumerate(keys[start : start + MAX_COLUMNS])}
            for start in range(0, len(keys), MAX_COLUMNS)
        ]

    def tally(self, batch: Mapping[Key, str]) -> FrameTally:
        """The sums of a batch."""
        group = [*([USER] if self.by_user else []), *([STRATUM] if self.strata > 1 else [])]
        summed = {name: _expression(self.columns[key]) for key, name in batch.items() if key != ROWS}
        return FrameTally.divided(
            self.frame, self.parts, lambda rows: rows.select(*group, **summed), list(summed),
            by=group, count=batch.get(ROWS), apart=self.by_user,
        )  # fmt: skip

    def reduced(self, tables: Sequence[Any]) -> Reduced:
        """The sums, from the table of each batch."""
        ids, sums = np.zeros(1, np.int64), dict[Key, Floats]()
        for batch, table in zip(self.batches, tables, strict=True):
            place = np.zeros(len(table), np.int64)
            if self.by_user:
                ids, place = np.unique(plain_ids(table[USER]), return_inverse=True)
            sums |= _placed(batch, table, place, (len(ids), self.strata))
        return Reduced(ids=ids, sums=sums)


def reduce_all(passes: Sequence[Pass]) -> list[Reduced]:
    """The sums of several passes; only these leave the engine."""
    batches = [own.batches for own in passes]
    tables = iter(together([p.tally(batch) for p, own in zip(passes, batches, strict=True) for batch in own]))
    return [p.reduced([next(tables) for _ in own]) for p, own in zip(passes, batches, strict=True)]


def reduce(frame: Any, columns: Mapping[Key, Column], strata: int) -> Reduced:
    """Sum expressions by user and stratum."""
    return reduce_all([Pass(frame=frame, columns=columns, strata=strata)])[0]


def _placed(batch: Mapping[Key, str], table: Any, place: Array, shape: tuple[int, int]) -> dict[Key, Floats]:
    """The sums of a batch as arrays, each row at its place and stratum."""
    level = table[STRATUM].to_numpy().astype(np.int64) if STRATUM in table.columns else np.zeros(len(place), np.int64)
    sums = {key: np.zeros(shape) for key in batch}
    for key, name in batch.items():
        sums[key][place, level] = table[name].cast(nw.Float64()).to_numpy()
    return sums


def _spread(values: Floats, at: Array, users: int) -> Floats:
    found = np.zeros((users, values.shape[1]))
    found[at] = values
    return found


def _doubt(by: Weights) -> Any:
    """1 − p, of which nothing is known where p has no scale: then 1, which is too much rather than too little."""
    return nw.lit(1.0) if by.certain is None else 1.0 - nw.col(by.probability)


def _expression(x: Any) -> Any:
    return x if isinstance(x, nw.Expr) else nw.lit(float(x))
