"""Rows of a block in any order to compressed rows by user, and facts about them."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from openloop.core.feedback import Array
from openloop.errors import DuplicateError, InputError, UnknownIdError
from openloop.kernels.least_squares import Rows


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockFacts:
    """Facts about the rows of a block; those of blocks are added in order, so c has the same bits."""

    rows: int
    users: int
    repeats: int  # rows that repeat a pair
    unknown: int  # rows whose item the model does not know
    lost: int  # weights that are 0 beside the largest
    weight: float  # Σw
    ratings: float  # Σwy
    squares: float  # Σw²
    content: int  # a checksum of who rated what, how and with which weight

    def __add__(self, other: BlockFacts) -> BlockFacts:
        names = [f.name for f in fields(self)]
        return BlockFacts(**{name: getattr(self, name) + getattr(other, name) for name in names})

    @property
    def scale(self) -> float:
        """What weights are multiplied by to have mean 1."""
        return self.rows / self.weight

    @property
    def mean(self) -> float:
        """c, the weighted mean rating."""
        return self.ratings / self.weight

    @property
    def effective(self) -> float:
        """How many rows the weights leave, (Σw)²/Σw²."""
        return self.weight**2 / self.squares

    def check(self, who: str) -> None:
        """Refuse rows that no model can be fitted to."""
        if self.unknown:
            raise UnknownIdError(
                f"{who}: {self.unknown:,} of {self.rows:,} rows have an item that the model was not fitted with; drop "
                "them."
            )
        if self.repeats:
            raise DuplicateError(
                f"{who}: {self.repeats:,} of {self.rows:,} rows repeat a (user, item) pair; keep one of each."
            )
        if self.lost:
            raise InputError(
                f"{who}: sample_weight spans more than float64 can hold, {self.lost:,} of {self.rows:,} are 0 "
                "beside the largest; cut the largest."
            )


def compressed(user: Array, users: int, item: Array, y: Array, w: Array) -> tuple[Rows, BlockFacts]:
    """The rows of users 0 … `users` - 1, sorted by user and item, and their facts; unknown items are below 0.

    The order in which rows arrive changes nothing: neither their order here nor a bit of their sums.
    """
    key = user.astype(np.int64) * (int(item.max(initial=0)) + 2) + item
    order = np.argsort(key)
    item, y, w, sorted_user = item[order].astype(np.int32), y[order], w[order], user[order]
    rows = Rows(np.searchsorted(sorted_user, np.arange(users + 1)).astype(np.int64), item, y, w)
    return rows, facts_of(rows, repeats=int(np.sum(np.diff(key[order]) == 0)))


def facts_of(rows: Rows, repeats: int = 0) -> BlockFacts:
    """The facts of a block's rows."""
    weight = rows.w.astype(np.float64)
    return BlockFacts(
        rows=len(weight), users=len(rows), repeats=repeats, unknown=int(np.sum(rows.partner < 0)),
        lost=int(np.sum(rows.w == 0)), weight=float(weight.sum()), ratings=float((weight * rows.y).sum()),
        squares=float((weight * weight).sum()), content=_checksum(rows),
    )  # fmt: skip


def _checksum(rows: Rows) -> int:
    found = 0
    for array in (rows.ptr, rows.partner, rows.y, rows.w):
        found = zlib.crc32(array.data, found)
    return found


def lists(user: Array, users: int, item: Array) -> tuple[Array, Array, int]:
    """Pointers and items of each user's list, ascending, and how many rows repeat a pair."""
    order = np.lexsort((item, user))
    user, item = user[order], item[order].astype(np.int32)
    repeats = int(np.sum((np.diff(user) == 0) & (np.diff(item) == 0)))
    return np.searchsorted(user, np.arange(users + 1)).astype(np.int64), item, repeats


def taken(rows: Rows, at: Array) -> Rows:
    """The rows of some users, by their positions; of position -1 none."""
    counts = np.where(at >= 0, rows.ptr[at + 1] - rows.ptr[at], 0)
    ptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    row = np.repeat(rows.ptr[at] - ptr[:-1], counts) + np.arange(ptr[-1])
    return Rows(ptr, *(column[row] for column in (rows.partner, rows.y, rows.w)))


def total_facts(parts: Any) -> BlockFacts:
    """The facts of all blocks, added in their order."""
    first, *others = parts
    for part in others:
        first = first + part
    return first
