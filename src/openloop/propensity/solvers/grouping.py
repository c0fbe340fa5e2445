"""Rows of impressions in groups inside which the position is as good as random, counted by group and position."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from openloop.core.feedback import Array, Floats
from openloop.core.impressions import Impressions
from openloop.core.vocabulary import Bools, Int64s
from openloop.errors import ColumnError, UndefinedError, listing
from openloop.kernels.harvesting import Cells, coded

LARGEST = 2**62  # of a key, below what 64 bits hold
SLOTS = 16  # of a table of hashed keys, for each key in it: 1 of 16 other keys passes it


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Grouped:
    """Cells of groups, and the rows in them, in the order of the log."""

    cells: Cells
    row: Int64s  # (m,) of the log
    cell: Int64s  # (m,)

    @property
    def groups(self) -> int:
        """G."""
        return len(self.cells.start) - 1


def by_user_item(log: Impressions) -> Int64s:
    """A user and an item."""
    if log.user is None:
        raise ColumnError('Examination(by="user-item"): the log names no users; read it with user=.')
    return combined(log.user[log.request], log.item)


def by_item(log: Impressions) -> Int64s:
    """An item, in lists of one length."""
    return combined(log.item, log.lengths[log.request])


def by_assignment(log: Impressions) -> Int64s:
    """The item's rank under every arm, in lists of one length.

    Below the end of a short list an item is seen under one arm only: lists of other lengths must not replace it.
    """
    if log.arms is None:
        raise ColumnError(
            'Examination(by="assignment"): the log has no ranks under the arms of the experiment; read it with arms=, '
            "a column for each arm."
        )
    return combined(*log.arms.T, log.lengths[log.request])


KEYS: dict[str, Callable[[Impressions], Int64s]] = {
    "assignment": by_assignment,
    "user-item": by_user_item,
    "item": by_item,
}


def combined(*columns: Array, last: int = 0) -> Int64s:
    """One key for each combination of values from 0; `last` is how many values the last column may have, if given."""
    key = np.zeros(len(columns[0]), np.int64)
    for at, column in enumerate(columns):
        size = last if last and at == len(columns) - 1 else int(column.max(initial=0)) + 1
        if (int(key.max(initial=0)) + 1) * size >= LARGEST:
            key = coded(key)[1]
        key *= size
        key += column
    return key


def group(log: Impressions, key: Int64s, *, rows: Array | None = None, every: bool = False) -> Grouped:
    """The groups of equal keys among `rows`; without `every`, those with clicks at one of two or more positions."""
    if rows is None:
        rows = np.arange(len(log))
    else:
        key = key[rows]
    if not every:
        kept = _may_be_clicked(key, log.reward[rows] > 0)
        rows, key = rows[kept], key[kept]
    values, cell = coded(combined(key, log.position[rows] - 1, last=log.depth))
    start = np.append(np.flatnonzero(np.diff(values // log.depth, prepend=-1)), len(values))  # (G + 1,)
    shown, clicks = (sums(cell, weight, len(values)) for weight in (np.ones(len(cell)), log.reward[rows]))
    found = Grouped(cells=Cells(start, values % log.depth, shown, clicks), row=rows, cell=cell)
    return found if every else _informative(found)


def _may_be_clicked(key: Int64s, clicked: Bools) -> Bools:
    """Rows whose key has a click, and a few more: by a table of hashed keys, which costs less than sorting all rows."""
    bits = max(4, int(SLOTS * np.count_nonzero(clicked)).bit_length())
    slot = (key.view(np.uint64) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(64 - bits)
    table = np.zeros(1 << bits, np.bool_)
    table[slot[clicked]] = True
    return table[slot]


def _informative(found: Grouped) -> Grouped:
    """Groups that were clicked and shown at two positions: only those say anything about θ."""
    cells, sizes = found.cells, np.diff(found.cells.start)
    if found.groups == 0:
        return found
    keep = (np.add.reduceat(cells.clicks, cells.start[:-1]) > 0) & (sizes > 1)  # (G,)
    kept = np.repeat(keep, sizes)  # (cells,)
    if bool(kept.all()):
        return found
    row_kept = kept[found.cell]
    start = np.append(0, np.cumsum(sizes[keep]))
    renamed = np.cumsum(kept) - 1
    return Grouped(
        cells=Cells(start, cells.position[kept], cells.shown[kept], cells.clicks[kept]),
        row=found.row[row_kept],
        cell=renamed[found.cell[row_kept]],
    )


def refuse_silent(clicks: Floats, where: str) -> None:
    """Refuse rewards by position (K,) that are 0 somewhere: such a θ may be 0."""
    silent = np.flatnonzero(clicks == 0) + 1
    if len(silent):
        raise UndefinedError(
            f"Examination: no clicks at position {listing(silent.tolist(), limit=10)} of {len(clicks)} {where}, so its "
            "θ may be 0; leave the rows there out."
        )


def per_cluster(log: Impressions, rows: Array) -> Array:
    """The cluster of each of these rows."""
    return log.cluster[log.request[rows]]


def sums(cluster: Array, values: Floats, size: int) -> Floats:
    """Σ values of each cluster, (size,)."""
    found: Any = np.bincount(cluster, values, minlength=size)
    return found
