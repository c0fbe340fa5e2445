"""Rows to cells: sorted by (user, item), and each pair once."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from openloop.core.vocabulary import Floats, Int64s

Duplicates = Literal["error", "first", "last", "mean", "count"]


def sort_cells(cell: Int64s) -> tuple[Int64s, Int64s]:
    """The cells in order, and the row of each; equal cells stay in the order of their rows."""
    rows = np.arange(len(cell))
    if bool(np.all(cell[:-1] <= cell[1:])):
        return cell, rows
    bits = len(cell).bit_length()
    if int(cell.max()).bit_length() + bits > 63:
        table = pl.DataFrame({"cell": cell, "row": rows}).sort("cell", "row")
        return table["cell"].to_numpy(), table["row"].to_numpy()
    # Cell and row in one integer: sorting values is three times as fast as sorting positions.
    key = pl.Series((cell << bits) | rows).sort().to_numpy()
    return key >> bits, key & ((1 << bits) - 1)


def repeated(cell: Int64s) -> Int64s:
    """Where, in sorted cells, a run of equal ones begins."""
    same = cell[1:] == cell[:-1]
    return np.flatnonzero(same & np.r_[True, ~same[:-1]])


def first_of_each(cell: Int64s) -> Int64s:
    """The positions, in sorted cells, of the first of each run of equal ones."""
    return np.flatnonzero(np.r_[True, cell[1:] != cell[:-1]])


def one_of_each(cell: Int64s, row: npt.NDArray[Any], time: npt.NDArray[Any] | None, *, last: bool) -> Int64s:
    """The positions, in sorted cells, of the earliest or latest of each run of equal ones; without time by their order.

    `row` is the row of each cell, whose time counts. Of rows with one time the first or the last is taken.
    """
    starts = first_of_each(cell)
    ends = np.append(starts[1:], len(cell))
    chosen = ends - 1 if last else starts.copy()
    several = ends - starts > 1
    if time is None or not several.any():
        return chosen
    inside = np.flatnonzero(np.repeat(several, ends - starts))
    chosen[several] = inside[_extreme_of_each(time[row[inside]], first_of_each(cell[inside]), last=last)]
    return chosen


def _extreme_of_each(values: npt.NDArray[Any], starts: Int64s, *, last: bool) -> Int64s:
    """The position of the first smallest, or the last largest, value of each run."""
    extreme, never = (np.maximum, -1) if last else (np.minimum, len(values))
    best = np.repeat(extreme.reduceat(values, starts), np.diff(starts, append=len(values)))
    return extreme.reduceat(np.where(values == best, np.arange(len(values)), never), starts)


def sum_of_each(cell: Int64s, values: npt.NDArray[Any]) -> Floats:
    """The sum of the values of each run of equal cells."""
    return np.add.reduceat(values.astype(np.float64), first_of_each(cell))


def mean_of_each(cell: Int64s, values: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """The mean value of each run of equal cells."""
    return (sum_of_each(cell, values) / sum_of_each(cell, np.ones(len(cell)))).astype(np.float32)
