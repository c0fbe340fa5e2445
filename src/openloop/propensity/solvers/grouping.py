"""Rows of impressions in groups inside which the position is as good as random, counted by group and position."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from openloop.core.feedback import Array, Floats
from openloop.core.impressions import Impressions
from openloop.errors import ColumnError
from openloop.kernels.harvesting import Cells, sorted_order

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

LARGEST = 2**62  # of a key, below what 64 bits hold
SLOTS = 16  # of a table of hashed keys, for each key in it: 1 of 16 other keys passes it


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Grouped:
    """Cells of groups, and the rows in them, sorted by cell."""

    cells: Cells
    row: Ints  # (m,) of the log
    cell: Ints  # (m,) rising

    @property
    def groups(self) -> int:
        """G."""
        return len(self.cells.start) - 1


def by_user_item(log: Impressions) -> Ints:
    """A user and an item."""
    if log.user is None:
        raise ColumnError('Examination(by="user-item"): the log names no users; read it with user=.')
    return combined(log.user[log.request], log.item)


def by_item(log: Impressions) -> Ints:
    """An item, in lists of one length."""
    return combined(log.item, lengths(log)[log.request])


def by_assignment(log: Impressions) -> Ints:
    """The item's rank under every arm, in lists of one length.

    Below the end of a short list an item is seen under one arm only: lists of other lengths must not stand in for it.
    """
    if log.arms is None:
        raise ColumnError(
            'Examination(by="assignment"): the log has no ranks under the arms of the experiment; read it with arms=, '
            "a column for each arm."
        )
    return combined(*log.arms.T, lengths(log)[log.request])


KEYS: dict[str, Callable[[Impressions], Ints]] = {
    "assignment": by_assignment,
    "user-item": by_user_item,
    "item": by_item,
}


def lengths(log: Impressions) -> Array:
    """K_n, the last position of each request, (N,); K where the log names no requests."""
    if log.requests is None:
        return np.full(log.n_requests, log.depth, np.int32)
    return log.position[log.request_ptr[1:] - 1]


def combined(*columns: Array) -> Ints:
    """One key for each combination of values from 0."""
    key = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        size = int(column.max(initial=0)) + 1
        if (int(key.max(initial=0)) + 1) * size >= LARGEST:
            key = np.unique(key, return_inverse=True)[1]
        key *= size
        key += column
    return key


def group(log: Impressions, key: Ints, *, rows: Array | None = None, every: bool = False) -> Grouped:
    """The groups of equal keys among `rows`; without `every`, those with clicks at one of two or more positions."""
    if rows is None:
        rows = np.arange(len(log))
    if not every:
        rows = rows[_may_be_clicked(key[rows], log.reward[rows] > 0)]
    cell_key = combined(key[rows], log.position[rows] - 1)
    order = sorted_order(cell_key)
    row, cell_key = rows[order], cell_key[order]
    first = np.flatnonzero(np.diff(cell_key, prepend=-1))  # (cells,) the first row of each
    own = key[row[first]]
    start = np.append(np.flatnonzero(np.diff(own, prepend=-1)), len(first))  # (G + 1,)
    shown = np.diff(np.append(first, len(row))).astype(np.float64)
    clicks: Any = np.add.reduceat(log.reward[row], first) if len(first) else np.empty(0)
    cells = Cells(start, log.position[row[first]].astype(np.int64) - 1, shown, clicks)
    found = Grouped(cells=cells, row=row, cell=np.repeat(np.arange(len(first)), shown.astype(np.int64)))
    return found if every else _informative(found)


def _may_be_clicked(key: Ints, clicked: Bools) -> Bools:
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
    row_kept = kept[found.cell]
    start = np.append(0, np.cumsum(sizes[keep]))
    renamed = np.cumsum(kept) - 1
    return Grouped(
        cells=Cells(start, cells.position[kept], cells.shown[kept], cells.clicks[kept]),
        row=found.row[row_kept],
        cell=renamed[found.cell[row_kept]],
    )


def per_cluster(log: Impressions, rows: Array) -> Array:
    """The cluster of each of these rows."""
    return log.cluster[log.request[rows]]


def sums(cluster: Array, values: Floats, size: int) -> Floats:
    """Σ values of each cluster, (size,)."""
    found: Any = np.bincount(cluster, values, minlength=size)
    return found
