"""Sums with the same bits in any order of rows, for Polars: of integers, which 128 bits hold exactly.

Polars adds floats in the order in which its threads finish, so two runs of one query differ in the last bits. Here
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
    frames: Sequence[pl.LazyFrame],
    totals: Mapping[str, tuple[str, str]],
    by: Sequence[str],
    count: str | None,
    *,
    apart: bool = False,
) -> pl.DataFrame:
    """Sums, least and largest values by group, ordered by group; the same bits for any order of the rows.

    The rows of several frames are taken one frame after the other, and as if they were of one. `apart`: each group has
    rows in one of them alone, and the groups of the first come first.
    """
    import polars as pl

    sets = [[frame] for frame in frames] if apart else [frames]
    summed = list(dict.fromkeys(column for column, how in totals.values() if how == "sum"))
    powers: dict[str, Powers] = dict.fromkeys(summed, (USUAL,))
    found = [_pass(own, totals, by, count, powers) for own in sets]
    largest = {name: max((sizes.get(name) or 0.0 for _, sizes in found), key=_size) for name in summed}
    odd = {name: _powers(size) for name, size in largest.items() if size and not SIZES[0] <= size <= SIZES[1]}
    if odd:
        found = [_pass(own, totals, by, count, powers | odd) for own in sets]
    return pl.concat([table for table, _ in found])


def _size(largest: float) -> float:
    """NaN, beside which no other size matters, as infinity."""
    return math.inf if math.isnan(largest) else largest


def _powers(largest: float) -> Powers:
    """Each k for a column whose largest value has this size. Several k keep the small values, too.

    Empty if it is not finite, because its sum is not finite either.
    """
    if not math.isfinite(largest):
        return ()
    first = min(BITS - math.frexp(largest)[1], WIDEST)
    return (first, *range(first + BITS, USUAL + BITS, BITS))


def _pass(
    frames: Sequence[pl.LazyFrame],
    totals: Mapping[str, tuple[str, str]],
    by: Sequence[str],
    count: str | None,
    powers: Mapping[str, Powers],
) -> tuple[pl.DataFrame, dict[str, float]]:
    """The table with these powers, and the size of the largest value of each column that is summed."""
    import polars as pl

    sizes = {name: f"size of {name}" for name in powers}
    asked = [pl.col(name).cast(pl.Float64).abs().max().alias(size) for name, size in sizes.items()]
    again = [pl.col(size).max() for size in sizes.values()]
    asked += [] if count is None else [pl.len().alias(count)]
    again += [] if count is None else [pl.col(count).sum()]
    back: list[pl.Expr] = []
    for name, (column, how) in totals.items():
        parts = _sums(column, powers[column]) if how == "sum" else [getattr(pl.col(column), how)()]
        asked += [part.alias(f"{name} {at}") for at, part in enumerate(parts)]
        again += [getattr(pl.col(f"{name} {at}"), how)() for at in range(len(parts))]
        back.append(_whole(name, powers[column] if how == "sum" else ()).alias(name))
    tables = [_grouped(_with_parts(frame, powers), by, asked).collect(engine="streaming") for frame in frames]
    table = tables[0] if len(tables) == 1 else _grouped(pl.concat(tables).lazy(), by, again).collect()
    table = table.sort(*by) if by else table
    largest: dict[str, Any] = table.select(pl.col(list(sizes.values())).max()).row(0, named=True) if sizes else {}
    counted = [] if count is None else [count]
    return table.select(*by, *back, *counted), {name: largest[size] for name, size in sizes.items()}


def _grouped(rows: pl.LazyFrame, by: Sequence[str], asked: Sequence[pl.Expr]) -> pl.LazyFrame:
    return rows.group_by(*by).agg(*asked) if by else rows.select(*asked)


def _with_parts(frame: pl.LazyFrame, powers: Mapping[str, Powers]) -> pl.LazyFrame:
    """The frame with each column as integer parts: each part rounds the remainder of the part before.

    Each remainder is a separate column: within one expression it would be repeated twice for each part.
    """
    import polars as pl

    frame = frame.with_columns(pl.col(name).cast(pl.Float64).alias(_part(name, "rest")) for name in powers)
    for at in range(max(map(len, powers.values()), default=0)):
        now = {name: own[at] for name, own in powers.items() if at < len(own)}
        rest = {name: pl.col(_part(name, "rest")) for name in now}
        frame = frame.with_columns((rest[name] * 2.0**k).round().alias(_part(name, at)) for name, k in now.items())
        left = (rest[name] - pl.col(_part(name, at)) * 2.0**-k for name, k in now.items())  # exact
        frame = frame.with_columns(x.alias(_part(name, "rest")) for name, x in zip(now, left, strict=True))
    return frame


def _part(name: str, at: int | str) -> str:
    return f"part {at} of {name}"


def _sums(name: str, powers: Powers) -> list[pl.Expr]:
    """The sum of each part of a column; of the floats where it has none."""
    import polars as pl

    parts = [pl.col(_part(name, at)).cast(pl.Int128, strict=False).sum() for at in range(len(powers))]
    return parts or [pl.col(_part(name, "rest")).sum()]


def _whole(name: str, powers: Powers) -> pl.Expr:
    """The sum of a sum's parts, the smallest first."""
    import polars as pl

    if not powers:
        return pl.col(f"{name} 0")
    parts = [pl.col(f"{name} {at}").cast(pl.Float64) * 2.0**-power for at, power in enumerate(powers)]
    return pl.sum_horizontal(*reversed(parts))
