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

Powers = tuple[
    int, ...
]  # k of each part of a sum: what the first rounds off is the next one's; none: floats are summed


def exact_tally(
    frame: pl.LazyFrame, totals: Mapping[str, tuple[str, str]], by: Sequence[str], count: str | None
) -> pl.DataFrame:
    """Sums, least and largest values by group, ordered by group; the same bits whatever the order of the rows."""
    summed = list(dict.fromkeys(column for column, how in totals.values() if how == "sum"))
    powers: dict[str, Powers] = dict.fromkeys(summed, (USUAL,))
    found, largest = _pass(frame, totals, by, count, powers)
    odd = {name: _powers(size) for name, size in largest.items() if size and not SIZES[0] <= size <= SIZES[1]}
    if odd:
        found, _ = _pass(frame, totals, by, count, powers | odd)
    return found


def _powers(largest: float) -> Powers:
    """Each k for a column whose largest value has this size, so that small values beside it are not lost.

    None where it is not finite, since its sum is not either.
    """
    if not math.isfinite(largest):
        return ()
    first = min(BITS - math.frexp(largest)[1], WIDEST)
    return (first, *range(first + BITS, USUAL + BITS, BITS))


def _pass(
    frame: pl.LazyFrame,
    totals: Mapping[str, tuple[str, str]],
    by: Sequence[str],
    count: str | None,
    powers: Mapping[str, Powers],
) -> tuple[pl.DataFrame, dict[str, float]]:
    """The table with these powers, and the size of the largest value of each column that is summed."""
    import polars as pl

    sizes = {name: f"size of {name}" for name in powers}
    asked = [pl.col(name).cast(pl.Float64).abs().max().alias(size) for name, size in sizes.items()]
    asked += [] if count is None else [pl.len().alias(count)]
    back: list[pl.Expr] = []
    for name, (column, how) in totals.items():
        parts = _parts(pl.col(column).cast(pl.Float64), powers[column]) if how == "sum" else [pl.col(column)]
        asked += [getattr(part, how)().alias(f"{name} {at}") for at, part in enumerate(parts)]
        back.append(_whole(name, powers[column] if how == "sum" else ()).alias(name))
    query = frame.group_by(*by).agg(*asked) if by else frame.select(*asked)
    table = query.collect(engine="streaming")
    table = table.sort(*by) if by else table
    largest: dict[str, Any] = table.select(pl.col(list(sizes.values())).max()).row(0, named=True) if sizes else {}
    counted = [] if count is None else [count]
    return table.select(*by, *back, *counted), {name: largest[size] for name, size in sizes.items()}


def _parts(x: pl.Expr, powers: Powers) -> list[pl.Expr]:
    """x as integers, each of what is left of the one before; a float is the sum of its parts."""
    import polars as pl

    found: list[pl.Expr] = []
    for power in powers:
        whole = (x * 2.0**power).round()
        found.append(whole.cast(pl.Int128, strict=False))
        x = x - whole * 2.0**-power  # exact
    return found or [x]


def _whole(name: str, powers: Powers) -> pl.Expr:
    """The sum of a sum's parts, the smallest first."""
    import polars as pl

    if not powers:
        return pl.col(f"{name} 0")
    parts = [pl.col(f"{name} {at}").cast(pl.Float64) * 2.0**-power for at, power in enumerate(powers)]
    return pl.sum_horizontal(*reversed(parts))
