"""The users and items of an evaluation: their codes, the order of users by bucket, and ids found in either."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from openloop.blocks.store import BUCKETS, bucket_of
from openloop.core.vocabulary import Array, Int64s, Ints, Vocabulary

DENSE = 4  # a table over the whole range of ids has at most so many places for each id,
ROOM = 1_000_000  # and so many more
PENDING = 4_000_000  # ids that wait before they are compared with those that are known


class IdSet:
    """The distinct ids of a column that comes in batches."""

    def __init__(self) -> None:
        self._pending: list[pl.Series] = []
        self._rows = 0

    def add(self, ids: pl.Series) -> None:
        """Note the ids of a batch."""
        own = ids.unique()
        self._pending.append(own)
        self._rows += len(own)
        if self._rows > PENDING and len(self._pending) > 1:
            self._pending = [self.ids]
            self._rows = len(self._pending[0]) // 2

    @property
    def ids(self) -> pl.Series:
        """All ids so far, each once; text if some are."""
        if not self._pending:
            return pl.Series([], dtype=pl.Int64)
        is_text = any(own.dtype == pl.String for own in self._pending)
        return pl.concat([own.cast(pl.String) if is_text else own for own in self._pending]).unique()


def vocabulary_of(ids: pl.Series) -> Vocabulary:
    """The vocabulary of distinct ids."""
    ordered = ids.sort()
    return Vocabulary(ordered.to_numpy() if ordered.dtype != pl.String else np.array(ordered.to_list()))


class IdIndex:
    """Where ids stand in some known ones, which are distinct; prepared once, for columns of many blocks."""

    def __init__(self, ids: Array) -> None:
        self._ids = ids
        if ids.dtype.kind != "i":
            self._known = pl.Enum(pl.Series(ids.tolist(), dtype=pl.String))
            return
        self._order = None if bool(np.all(ids[1:] > ids[:-1])) else np.argsort(ids)
        ordered = ids if self._order is None else ids[self._order]
        low, high = (0, -1) if not len(ids) else (int(ordered[0]), int(ordered[-1]))
        self._ordered, self._low = ordered, low
        self._table: Ints | None = None
        if high - low < DENSE * len(ids) + ROOM:
            self._table = np.full(high - low + 2, -1, np.int32)  # the last place is for what lies outside
            self._table[ids - low] = np.arange(len(ids))

    def find(self, column: pl.Series) -> Ints:
        """The place of each id, -1 where it is not known; text that writes an integer is that integer."""
        if self._ids.dtype.kind != "i":
            return (
                column.cast(pl.String)
                .cast(self._known, strict=False)
                .to_physical()
                .cast(pl.Int32)
                .fill_null(-1)
                .to_numpy()
            )
        if column.dtype == pl.String:
            written = column.cast(pl.Int64, strict=False)
            column = pl.select(pl.when(written.cast(pl.String) == column).then(written)).to_series()
        values = column.fill_null(np.iinfo(np.int64).min).to_numpy()
        if self._table is not None:
            inside = (values >= self._low) & (values - self._low < len(self._table) - 1)
            return self._table[np.where(inside, values - self._low, len(self._table) - 1)]
        place = np.minimum(np.searchsorted(self._ordered, values), len(self._ordered) - 1)
        known = self._ordered[place] == values
        return np.where(known, place if self._order is None else self._order[place], -1).astype(np.int32)


@dataclass(frozen=True, kw_only=True, eq=False)
class Population:
    """All users and items with their ids; `n_users` and `n_items` count also those whose ids are not known."""

    users: Vocabulary
    items: Vocabulary
    n_users: int
    n_items: int

    @classmethod
    def of(cls, users: Vocabulary, items: Vocabulary) -> Population:
        """The population of known ids."""
        return cls(users=users, items=items, n_users=len(users), n_items=len(items))

    @cached_property
    def by_bucket(self) -> tuple[Ints, Int64s]:
        """The codes of users by bucket, rising in each; and where each bucket begins, (257,)."""
        ids: Any = self.users.ids
        buckets = bucket_of(pl.Series(ids) if ids.dtype.kind == "i" else pl.Series(ids.tolist(), dtype=pl.String))
        start = np.concatenate([[0], np.cumsum(np.bincount(buckets, minlength=BUCKETS))]).astype(np.int64)
        return np.argsort(buckets, kind="stable").astype(np.int32), start

    @cached_property
    def bucket_of_code(self) -> Array:
        """The bucket of each user, (U,)."""
        order, start = self.by_bucket
        buckets = np.empty(len(order), np.uint8)
        buckets[order] = np.repeat(np.arange(BUCKETS), np.diff(start))
        return buckets

    @cached_property
    def item_index(self) -> IdIndex:
        """Items by id."""
        return IdIndex(self.items.ids)

    def block_users(self, first: int, last: int) -> tuple[Ints, Int64s]:
        """The users of some buckets, and where each of these begins among them."""
        order, start = self.by_bucket
        return order[start[first] : start[last]], start[first : last + 1] - start[first]
