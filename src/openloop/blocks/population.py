"""The users and items of an evaluation: their codes, the order of users by bucket, and ids found in either."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np
import polars as pl

from openloop.blocks.store import BUCKETS, bucket_of
from openloop.core.vocabulary import Array, Int64s, Ints, Vocabulary
from openloop.kernels.joining import find, slots_of

DENSE = 4  # a table over the whole range of ids has at most so many places for each id,
ROOM = 1_000_000  # and so many more
PENDING = 4_000_000  # ids that wait before they are compared with those that are known
TICKED = 2**26  # integers of a range of so many are ticked off in a table, which is quicker than hashing


class IdSet:
    """The distinct ids of a column that comes in batches."""

    def __init__(self) -> None:
        self._ticks, self._low, self._high = np.zeros(0, bool), 0, -1  # the place of low + j is j
        self._pending: list[pl.Series] = []
        self._rows = 0

    def add(self, ids: pl.Series) -> None:
        """Note the ids of a batch."""
        if ids.dtype != pl.String and self._make_room(ids):
            self._ticks[ids.to_numpy() - self._low] = True
            return
        own = ids.unique()
        self._pending.append(own)
        self._rows += len(own)
        if self._rows > PENDING and len(self._pending) > 1:
            self._pending = [self._untabled]
            self._rows = len(self._pending[0]) // 2

    def _make_room(self, ids: pl.Series) -> bool:
        """Whether the table has, or now gets, a place for each id."""
        if not len(ids):
            return True
        low, high = cast("int", ids.min()), cast("int", ids.max())
        if len(self._ticks):
            low, high = min(low, self._low), max(high, self._high)
        if high - low >= TICKED:
            return False
        if high - low >= len(self._ticks) or low < self._low:
            known = self._ticks[: self._high - self._low + 1]
            self._ticks = np.zeros(2 * (high - low + 1), bool)  # with room for the next batches, where ids rise
            self._ticks[self._low - low : self._low - low + len(known)] = known
        self._low, self._high = low, high
        return True

    @property
    def ids(self) -> pl.Series:
        """All ids so far, each once; text if some are."""
        ticked = pl.Series(np.flatnonzero(self._ticks) + self._low)
        if not self._pending:
            return ticked
        own = self._untabled
        return pl.concat([ticked.cast(own.dtype), own]).unique()

    @property
    def _untabled(self) -> pl.Series:
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
        low, high = (int(ids.min()), int(ids.max())) if len(ids) else (0, -1)
        self._low = low
        self._table: Ints | None = None
        if high - low < DENSE * len(ids) + ROOM:
            self._table = np.full(high - low + 2, -1, np.int32)  # the last place is for what lies outside
            self._table[ids - low] = np.arange(len(ids))
        else:
            self._slots = slots_of(ids)

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
        if self._table is None:
            return find(self._slots, self._ids, values)
        # What is below the lowest id wraps around, and is far above as a number without a sign.
        return self._table[np.minimum((values - self._low).view(np.uint64), np.uint64(len(self._table) - 1))]


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
    def place_of_code(self) -> Ints:
        """Where each user stands by bucket, (U,)."""
        order, _ = self.by_bucket
        place = np.empty(len(order), np.int32)
        place[order] = np.arange(len(order), dtype=np.int32)
        return place

    @cached_property
    def item_index(self) -> IdIndex:
        """Items by id."""
        return IdIndex(self.items.ids)

    def block_users(self, first: int, last: int) -> tuple[Ints, Int64s]:
        """The users of some buckets, and where each of these begins among them."""
        order, start = self.by_bucket
        return order[start[first] : start[last]], start[first : last + 1] - start[first]
