"""Sums that Polars takes in any order with the same bits: of integers, which 128 bits hold without rounding.

Polars adds floats in the order in which its threads finish, so that two runs of one query differ in the last bits. Here
each float x becomes the integer round(x · 2ᵏ), and sums of integers are exact.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl

USUAL = 64  # k where columns are of usual size: errors below 2⁻⁶⁵
SIZES = 2.0**-16, 2.0**30  # those sizes: 2³³ rows of the largest stay below 2¹²⁷
BITS = 86  # of the largest value otherwise: 2⁴⁰ rows of it stay below 2¹²⁷
WIDEST = 1000  # 2ᵏ must be a float


def exact_tally(
    frame: pl.LazyFrame, totals: Mapping[str, tuple[str, str]], by: Sequence[str], count: str | None
) -> pl.DataFrame:
    """Sums, least and largest values by group, ordered by group; the same bits whatever the order of the rows."""
    summed = list(dict.fromkeys(column for column, how in totals.values() if how == "sum"))
    powers: dict[str, int | None] = dict.fromkeys(summed, USUAL)
    found, largest = _pass(frame, totals, by, count, powers)
    odd = {name: _power(size) for name, size in largest.items() if size and not SIZES[0] <= size <= SIZES[1]}
    if odd:
        found, _ = _pass(frame, totals, by, count, powers | odd)
    return found


def _power(largest: float) -> int | None:
    """k for a column whose largest value has this size; None where it is not finite, and its sum is not either."""
    return min(BITS - math.frexp(largest)[1], WIDEST) if math.isfinite(largest) else None


def _pass(
    frame: pl.LazyFrame,
    totals: Mapping[str, tuple[str, str]],
    by: Sequence[str],
    count: str | None,
    powers: Mapping[str, int | None],
) -> tuple[pl.DataFrame, dict[str, float]]:
    """The table with these powers, and the size of the largest value of each column that is summed."""
    import polars as pl

    sizes = {name: f"size of {name}" for name in powers}
    asked = [_total(pl.col(column), how, powers.get(column)).alias(name) for name, (column, how) in totals.items()]
    asked += [pl.col(name).cast(pl.Float64).abs().max().alias(size) for name, size in sizes.items()]
    asked += [] if count is None else [pl.len().alias(count)]
    query = frame.group_by(*by).agg(*asked) if by else frame.select(*asked)
    table = query.collect(engine="streaming")
    table = table.sort(*by) if by else table
    back = [
        _back(pl.col(name), powers[column]).alias(name)
        for name, (column, how) in totals.items() if how == "sum"
    ]  # fmt: skip
    largest: dict[str, Any] = table.select(pl.col(list(sizes.values())).max()).row(0, named=True) if sizes else {}
    return table.drop(*sizes.values()).with_columns(*back), {name: largest[size] for name, size in sizes.items()}


def _total(column: pl.Expr, how: str, power: int | None) -> pl.Expr:
    import polars as pl

    if how != "sum":
        return getattr(column, how)()
    if power is None:
        return column.cast(pl.Float64).sum()
    return (column.cast(pl.Float64) * 2.0**power).round().cast(pl.Int128, strict=False).sum()


def _back(column: pl.Expr, power: int | None) -> pl.Expr:
    import polars as pl

    return column if power is None else column.cast(pl.Float64) * 2.0**-power
