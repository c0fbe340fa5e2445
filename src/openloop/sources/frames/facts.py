"""Facts about a frame, each by a small query in its engine: counts, duplicates, weights, edges of strata."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import narwhals as nw
import numpy as np

from openloop.core.feedback import Floats
from openloop.core.weights import BINS_PER_OCTAVE, N_BINS, WeightSummary
from openloop.estimators.edges import Bins, Ladder, by_mass, check_strata, snap
from openloop.sources.frames.opening import PAIR
from openloop.sources.frames.rows import STRATUM, collected
from openloop.sources.plan import Answers, StrataFacts, strata_names

PACKED = 2**31  # two smaller integers make one of 64 bits
STEPS_PER_OCTAVE = 1024  # of p: these ranges are few numbers, and each holds few of the values of p
ENDS = nw.col("p").min().alias("low"), nw.col("p").max().alias("high")


def only_row(frame: Any) -> dict[str, Any]:
    """The only row of a frame."""
    table = collected(frame)
    return {name: table[name].to_list()[0] for name in table.columns}


def absent(column: Any) -> Any:
    """Where a number is missing or not finite."""
    return column.is_null() | ~column.is_finite()


def flag(condition: Any) -> Any:
    """1.0 where a condition holds: engines do not agree on sums of booleans."""
    return nw.when(condition).then(1.0).otherwise(0.0)


def count(frame: Any, condition: Any) -> int:
    """How many rows meet a condition."""
    flagged = frame.select(flag(condition).alias("flag"))
    return int(only_row(flagged.select(nw.col("flag").sum()))["flag"] or 0)


def rows(frame: Any) -> int:
    """How many rows a frame has."""
    return int(only_row(frame.select(nw.len().alias("n")))["n"])


def ends(items: Any) -> tuple[int, int]:
    """The least and the largest of integer ids i; of no ids, 0."""
    found = only_row(items.select(nw.col("i").min().alias("low"), nw.col("i").max().alias("high")))
    return int(found["low"] or 0), int(found["high"] or 0)


def repeats(pairs: Any) -> int:
    """How many rows repeat a pair (u, i); 0 where none does."""
    if (width := _width(pairs)) is not None:
        # One integer per pair is counted faster than a group of two columns, and a hash likes them dense.
        packed = (nw.col("u").cast(nw.Int64()) * width + nw.col("i").cast(nw.Int64())).alias("pair")
        found = only_row(pairs.select(packed).select(nw.col("pair").n_unique().alias("distinct"), nw.len().alias("n")))
        return int(found["n"]) - int(found["distinct"])
    return count(times(pairs), nw.col("times") > 1)


def times(pairs: Any) -> Any:
    """How often each pair (u, i) is there."""
    return pairs.select(*PAIR, nw.lit(1.0).alias("times")).group_by(*PAIR).agg(nw.col("times").sum())


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


def weight_summary(frame: Any, column: str = "w") -> WeightSummary:
    """The summary of a column of weights, from one group-by on the bins of its histogram."""
    w = nw.col(column)
    octave = (w.log(2) * float(BINS_PER_OCTAVE)).floor().cast(nw.Int64())
    named = frame.select(w.alias("w"), (w * w).alias("w2"), octave.alias("bin"), nw.lit(1.0).alias("n"))
    aggregates = [nw.col("n").sum(), nw.col("w").sum(), nw.col("w2").sum(), nw.col("w").max().alias("largest")]
    table = collected(named.group_by("bin").agg(*aggregates))
    columns = {name: table[name].cast(nw.Float64()).to_numpy() for name in ("bin", "n", "w", "w2", "largest")}
    histogram = np.zeros(N_BINS, np.int64)
    np.add.at(histogram, np.clip(columns["bin"].astype(np.int64), 0, N_BINS - 1), columns["n"].astype(np.int64))
    largest = float(columns["largest"].max(initial=1.0))
    return WeightSummary(
        n=int(columns["n"].sum()), total=float(columns["w"].sum()), squares=float(columns["w2"].sum()),
        largest=largest, smallest_propensity=1.0 / largest, histogram=histogram,
    )  # fmt: skip


def edges(frame: Any, strata: int, bins: Bins) -> tuple[float, ...]:
    """As `estimators.edges`, of the column p."""
    check_strata(strata)
    p = frame.select("p")
    if bins == "mass":
        return by_mass(_ladder(p, strata), strata)
    few = np.sort(collected(p.unique().head(strata + 1))["p"].to_numpy())
    if len(few) <= strata:
        return tuple((few[1:] + few[:-1]) / 2)
    if bins == "count":
        asked = [nw.col("p").quantile(j / strata, "linear").alias(f"q{j}") for j in range(1, strata)]
        raw = [float(v) for v in only_row(p.select(*asked)).values()] if asked else []
    else:
        limits = only_row(p.select(*ENDS))
        raw = np.linspace(limits["low"], limits["high"], strata + 1)[1:-1].tolist()
    return snap(raw, *_neighbours(p, raw)) if raw else ()


def _ladder(p: Any, strata: int) -> Ladder:
    """The rows by narrow ranges of p, and by each value of p in the ranges where an edge lies.

    Engines have no weighted quantile, and p may have as many values as rows. Values are therefore counted only where
    an edge must be: two passes find the edges that all values would give.
    """
    step = (nw.col("p").log(2) * float(STEPS_PER_OCTAVE)).floor().cast(nw.Int64())
    named = p.select("p", (1.0 / nw.col("p")).alias("mass"), step.alias("step"), nw.lit(1.0).alias("rows"))
    table = collected(named.group_by("step").agg(nw.col("rows").sum(), nw.col("mass").sum(), *ENDS)).sort("low")
    ranges = Ladder(**{name: table[name].cast(nw.Float64()).to_numpy() for name in ("low", "high", "rows", "mass")})
    at = np.arange(len(table)) if len(table) <= strata else np.unique(ranges.places(strata))
    inside = named.filter(nw.col("step").is_in(table["step"].to_numpy()[at].tolist())).select("p", "rows")
    values = collected(inside.group_by("p").agg(nw.col("rows").sum())).sort("p")
    return ranges.refined(at, Ladder.of(values["p"].to_numpy(), values["rows"].to_numpy()))


def _neighbours(p: Any, raw: Sequence[float]) -> tuple[Callable[[float], float], Callable[[float], float]]:
    """The largest value at or below each raw edge, and the smallest above it."""
    value, named = nw.col("p"), dict[str, Any]()
    for j, q in enumerate(raw):
        named[f"below{j}"] = nw.when(value <= q).then(value).otherwise(nw.lit(0.0))
        named[f"above{j}"] = nw.when(value > q).then(value).otherwise(nw.lit(2.0))
    extremes = [nw.col(name).max() if name.startswith("below") else nw.col(name).min() for name in named]
    found = only_row(p.select(**named).select(*extremes))
    below = {q: found[f"below{j}"] or q for j, q in enumerate(raw)}
    above = {q: found[f"above{j}"] if found[f"above{j}"] <= 1 else below[q] for j, q in enumerate(raw)}
    return below.__getitem__, above.__getitem__


def strata_limits(frame: Any, strata: int) -> Floats:
    """The least and the largest p of each stratum, (S, 2)."""
    if strata == 1:
        return np.array([list(only_row(frame.select(*ENDS)).values())])
    # Every stratum has a row, as edges lie between values.
    table = collected(frame.select(STRATUM, "p").group_by(STRATUM).agg(*ENDS)).sort(STRATUM)
    return np.stack([table["low"].to_numpy(), table["high"].to_numpy()], axis=1)


def rating_counts(frame: Any, weight: str | None) -> tuple[tuple[tuple[float, int], ...], tuple[float, ...]]:
    """The rows of each rating, and their Σw where they have weights."""
    named = [nw.lit(1.0).alias("n"), *([] if weight is None else [nw.col(weight).alias("mass")])]
    totals = [nw.col("n").sum(), *([] if weight is None else [nw.col("mass").sum()])]
    table = collected(frame.select("y", *named).group_by("y").agg(*totals).sort("y"))
    columns = [table[name].cast(nw.Float64()).to_list() for name in ("y", "n")]
    counts = tuple((y, int(n)) for y, n in zip(*columns, strict=True))
    return counts, () if weight is None else tuple(table["mass"].cast(nw.Float64()).to_list())


def answers(frame: Any, column: str) -> Answers:
    """The range of a model's predictions, and the share that are the rating itself."""
    answer, y = nw.col(column), nw.col("y")
    near = flag((answer - y).abs() <= 1e-9 + 1e-6 * y.abs()).alias("copied")
    named = frame.select(answer.alias("answer"), near).select(
        nw.col("answer").min().alias("low"), nw.col("answer").max().alias("high"), nw.col("copied").mean()
    )
    return Answers(**{name: float(value) for name, value in only_row(named).items()})


def strata_facts(frame: Any, strata: int, *, weighted: bool) -> StrataFacts:
    """What the scored rows of each stratum are, from one group-by."""
    level = nw.col(STRATUM) if strata > 1 else nw.lit(0).cast(nw.Int64())
    p = [nw.col("p")] if weighted else []
    named = frame.select(level.alias("level"), "i", *p, nw.lit(1.0).alias("n"))
    limits = ENDS if weighted else ()
    table = collected(named.group_by("level").agg(nw.col("n").sum(), nw.col("i").n_unique(), *limits))
    found = {int(row["level"]): row for row in table.iter_rows(named=True)}
    return StrataFacts(
        names=strata_names(strata),
        rows=tuple(int(found[s]["n"]) if s in found else 0 for s in range(strata)),
        items=tuple(int(found[s]["i"]) if s in found else 0 for s in range(strata)),
        limits=tuple((found[s]["low"], found[s]["high"]) if weighted and s in found else None for s in range(strata)),
    )
