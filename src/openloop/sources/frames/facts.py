"""Facts about a frame, each by a small query in its engine: counts, duplicates, weights, edges of strata."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import narwhals as nw
import numpy as np

from openloop.core.feedback import LEAST, Array, Floats
from openloop.core.weights import BINS_PER_OCTAVE, N_BINS, WeightSummary
from openloop.estimators.edges import Bins, Ladder, check_strata, cut_by, of_ladder
from openloop.sources.frames.collecting import Fact, FrameTally, Total
from openloop.sources.frames.opening import PAIR
from openloop.sources.frames.parting import WHOLE, Division
from openloop.sources.plan import Answers
from openloop.support.frames import absent, collected, flag, on_spark, only_row, times

PACKED = 2**31  # two smaller integers make one of 64 bits
STEPS_PER_OCTAVE = 1024  # of p: these ranges are few numbers, and each holds few of the values of p
RANGE: dict[str, Total] = {
    "rows": ("rows", "sum"), "mass": ("mass", "sum"), "low": ("p", "min"), "high": ("p", "max")
}  # fmt: skip


def count(frame: Any, condition: Any) -> int:
    """How many rows meet a condition."""
    flagged = frame.select(flag(condition).alias("flag"))
    return int(only_row(flagged.select(nw.col("flag").sum()))["flag"] or 0)


def item_ends(frame: Any) -> dict[str, Total]:
    """The least and the largest of integer ids i, for a tally; of text nothing."""
    return {"low_i": ("i", "min"), "high_i": ("i", "max")} if frame.collect_schema()["i"].is_integer() else {}


def repeats(pairs: Any, counted: Fact | None = None, parts: Division = WHOLE) -> int:
    """How many pairs (u, i) are there more than once; of packed integers, how many rows repeat another.

    `counted` is the fact of `pair_counts`, where it was asked for beforehand of pairs that are undivided.
    """
    pieces = parts.pieces(pairs)
    return sum(_repeats(own, counted if len(pieces) == 1 else None) for own in pieces)


def _repeats(pairs: Any, counted: Fact | None) -> int:
    in_memory = pairs.implementation.is_polars() or pairs.implementation.is_pandas_like()
    if in_memory and (width := _width(pairs)) is not None:
        # One integer per pair, sorted: equal ones lie side by side. That is four times as fast as a hash table.
        packed = (nw.col("u").cast(nw.Int64()) * width + nw.col("i").cast(nw.Int64())).alias("pair")
        ordered = np.sort(collected(pairs.select(packed))["pair"].drop_nulls().to_numpy())
        return int(np.count_nonzero(ordered[1:] == ordered[:-1]))
    return int((counted or Fact(lambda: pair_counts(pairs))).row["again"] or 0)


def pair_counts(pairs: Any) -> FrameTally:
    """How many rows there are, and how many pairs (u, i) are there more than once."""
    counted = times(pairs, PAIR).select(nw.col("times").alias("rows"), flag(nw.col("times") > 1).alias("again"))
    return FrameTally.sums(counted, ["rows", "again"])


def _width(pairs: Any) -> int | None:
    """By how much a user is multiplied to make one integer of a pair; None where the ids make none."""
    schema = pairs.collect_schema()
    if not all(schema[name].is_integer() for name in PAIR):
        return None
    low = {f"low_{name}": nw.col(name).min() for name in PAIR}
    high = {f"high_{name}": nw.col(name).max() for name in PAIR}
    found = only_row(pairs.select(**low, **high))
    if None in found.values():  # no rows
        return None
    small = min(found[name] for name in low) >= 0 and max(found[name] for name in high) < PACKED
    return int(found["high_i"]) + 1 if small else None


def _valid(frame: Any) -> Any:
    """The rows whose p can be counted. Spark is asked about them while others are refused, and then must not fail."""
    p = nw.col("p")
    return frame.filter((p >= LEAST) & (p <= 1)) if on_spark(frame) else frame


def weight_query(frame: Any, column: str) -> FrameTally:
    """The tally of `weight_summary`, by the bins of the histogram."""
    w = nw.col(column)
    octave = (w.log(2) * float(BINS_PER_OCTAVE)).floor().cast(nw.Int64())
    named = _valid(frame).select(w.alias("w"), (w * w).alias("w2"), octave.alias("bin"), nw.lit(1.0).alias("n"))
    sums: dict[str, Total] = {name: (name, "sum") for name in ("n", "w", "w2")}
    return FrameTally(frame=named, totals={**sums, "largest": ("w", "max")}, by=["bin"])


def weight_summary(found: Fact) -> WeightSummary:
    """The summary of a column of weights, from the fact of `weight_query`."""
    columns = {name: found.table[name].cast(nw.Float64()).to_numpy() for name in ("bin", "n", "w", "w2", "largest")}
    histogram = np.zeros(N_BINS, np.int64)
    np.add.at(histogram, np.clip(columns["bin"].astype(np.int64), 0, N_BINS - 1), columns["n"].astype(np.int64))
    largest = float(columns["largest"].max(initial=1.0))
    return WeightSummary(
        n=int(columns["n"].sum()), total=float(columns["w"].sum()), squares=float(columns["w2"].sum()),
        largest=largest, smallest_propensity=1.0 / largest, histogram=histogram,
    )  # fmt: skip


class FrameLadder:
    """The rows by narrow ranges of p, and by each value of p in the ranges where an edge lies.

    Engines have no weighted quantile, and p may have as many values as rows. Values are therefore counted only where
    an edge must be: two passes find the edges that all values would give. `foreseen` are the strata that will be
    asked for; the second pass serves all of them.
    """

    def __init__(self, frame: Any, foreseen: Sequence[tuple[int, Bins]] = ()) -> None:
        self._frame = frame
        self.ranges = Fact(lambda: FrameTally(frame=self._rows, totals=RANGE, by=["step"]))
        self._foreseen, self._values = list(foreseen), dict[int, Ladder]()

    @property
    def _rows(self) -> Any:
        step = (nw.col("p").log(2) * float(STEPS_PER_OCTAVE)).floor().cast(nw.Int64())
        mass = (1.0 / nw.col("p")).alias("mass")
        return _valid(self._frame).select("p", mass, step.alias("step"), nw.lit(1.0).alias("rows"))

    def edges(self, strata: int, bins: Bins) -> tuple[float, ...]:
        """As `estimators.edges`."""
        check_strata(strata)
        return of_ladder(self._refined(strata, bins), strata, bins)

    def strata(self, strata: int, bins: Bins) -> tuple[list[int], Floats]:
        """The rows of each stratum, and its least and largest p, (S, 2)."""
        ladder, edges = self._refined(strata, bins), self.edges(strata, bins)
        of = ladder.strata(edges)
        own = [of == s for s in range(len(edges) + 1)]
        limits = [(ladder.low[mine].min(), ladder.high[mine].max()) for mine in own]
        return [int(ladder.rows[mine].sum()) for mine in own], np.array(limits)

    def _refined(self, strata: int, bins: Bins) -> Ladder:
        table = self.ranges.table.sort("low")
        whole = Ladder(**{name: table[name].cast(nw.Float64()).to_numpy() for name in ("low", "high", "rows", "mass")})
        own = cut_by(whole, strata, bins)
        if not len(own):
            return whole
        if any(int(at) not in self._values for at in own):
            cuts = [own, *(cut_by(whole, *asked) for asked in self._foreseen)]
            self._look_up(np.unique(np.concatenate(cuts)), table["step"].to_numpy())
        values = [self._values[int(at)] for at in own]
        finer = Ladder(**{
            name: np.concatenate([getattr(v, name) for v in values]) for name in ("low", "high", "rows", "mass")
        })  # fmt: skip
        return whole.refined(own, finer)

    def _look_up(self, at: Array, steps: Array) -> None:
        """The values in some of the ranges, and the rows of each."""
        inside = self._rows.filter(nw.col("step").is_in(steps[at].tolist())).select("step", "p", "rows")
        table = collected(inside.group_by("step", "p").agg(nw.col("rows").sum())).sort("p")
        step, p, rows = (table[name].to_numpy() for name in ("step", "p", "rows"))
        self._values = {int(k): Ladder.of(p[step == steps[k]], rows[step == steps[k]]) for k in at}


def rating_query(frame: Any, weight: str | None, most: int) -> Any:
    """The rows of each rating, and their Σw where they have weights; of at most so many ratings."""
    named = [nw.lit(1.0).alias("n"), *([] if weight is None else [nw.col(weight).alias("mass")])]
    tally = FrameTally.sums(frame.select("y", *named), ["n", *([] if weight is None else ["mass"])], by=["y"])
    return tally if tally.polars else tally.query.head(most)


def rating_counts(found: Fact) -> tuple[tuple[tuple[float, int], ...], tuple[float, ...]]:
    """The rows of each rating, and Σw, from the fact of `rating_query`."""
    table = found.table.sort("y")
    columns = [table[name].cast(nw.Float64()).to_list() for name in ("y", "n")]
    counts = tuple((y, int(n)) for y, n in zip(*columns, strict=True))
    return counts, tuple(table["mass"].cast(nw.Float64()).to_list()) if "mass" in table.columns else ()


def answers(frame: Any, column: str, filled: float = 0.0) -> Answers | None:
    """The range of a model's predictions, and the share that are the rating itself; None of no predictions."""
    answer, y = nw.col(column), nw.col("y")
    near = flag((answer - y).abs() <= 1e-9 + 1e-6 * y.abs()).alias("copied")
    named = (
        frame.filter(~absent(answer))
        .select(answer.alias("answer"), near)
        .select(nw.col("answer").min().alias("low"), nw.col("answer").max().alias("high"), nw.col("copied").mean())
    )
    found = only_row(named)
    if found["low"] is None:
        return None
    return Answers(**{name: float(value) for name, value in found.items()}, filled=filled)


def items_within(frame: Any, levels: Sequence[tuple[Any, int]], parts: Division = WHOLE) -> list[list[int]]:
    """How many items each stratum has rows of, for several stratifications: an expression, and how many it has."""
    flags = {
        f"g{g}s{s}": flag(level == float(s)) for g, (level, strata) in enumerate(levels) for s in range(strata)
    }  # fmt: skip
    by_item = FrameTally.divided(frame, parts, lambda own: own.select("i", **flags), list(flags), "max", by=["i"]).small
    found = only_row(by_item.select(*(nw.col(name).sum() for name in flags)))
    return [[int(found[f"g{g}s{s}"] or 0) for s in range(strata)] for g, (_, strata) in enumerate(levels)]
