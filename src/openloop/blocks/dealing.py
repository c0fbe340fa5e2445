"""Tables read once, checked batch by batch, and dealt to buckets of users."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import polars as pl

from openloop.blocks.joining import Dealt, Join
from openloop.blocks.local import Blocks, LocalBlocks
from openloop.blocks.population import IdSet, Population
from openloop.blocks.readers import batches
from openloop.blocks.store import Budget, Store
from openloop.core.feedback import Feedback
from openloop.core.vocabulary import Array
from openloop.data import values
from openloop.data.columns import InputTable
from openloop.errors import InputError, quoted

SIDES = ("user", "item")
IDS = (*SIDES, "request")

Check = Callable[[pl.Series, str], Any]  # a column's values, checked; text is what errors call it


@dataclass(slots=True, kw_only=True, eq=False)
class ReadIds:
    """The ids of a table that is being read: the kind of each side, and all ids, if they are wanted."""

    kinds: dict[str, str] = field(default_factory=dict[str, str])  # "integers" or "text" by side
    sets: dict[str, IdSet] = field(default_factory=dict[str, IdSet])
    floats: set[str] = field(default_factory=set[str])  # sides whose integers are written as 7.0 somewhere

    def add(self, side: str, column: pl.Series, what: str, *, text: bool) -> pl.Series:
        """The checked ids of a batch."""
        ids = values.ids(column, what, text=text)
        is_text = ids.dtype == pl.String
        if text and not is_text and len(column) and str(column[0]).strip().endswith(".0"):
            self.floats.add(side)
        if is_text or side not in self.kinds:
            self.kinds[side] = "text" if is_text else "integers"
        if self.kinds[side] == "text" and side in self.floats:
            raise InputError(f"{what}: some ids are written as 7.0 and others are text; write all ids alike.")
        if side in self.sets:
            self.sets[side].add(ids)
        return ids


class Dealer(Protocol):
    """What reads tables and joins them, here or on executors."""

    def deal(
        self,
        table: InputTable,
        columns: Mapping[str, str],
        checks: Mapping[str, Check],
        ids: ReadIds,
        *,
        is_log: bool = False,
        positive: float | None = None,
    ) -> Dealt:
        """As `deal_table`; what it notes and counts is complete after `finish`."""
        ...

    def finish(self) -> None:
        """Read what is not yet read."""
        ...

    def join(self, join: Join) -> Blocks:
        """The blocks of all that was dealt."""
        ...

    def close(self) -> None:
        """Give back what was read, and the blocks of it."""
        ...


class LocalDealer:
    """Reads tables on this machine, and keeps them in memory and on disk."""

    def __init__(self, budget: Budget | None = None) -> None:
        self.budget = Budget() if budget is None else budget

    def deal(
        self,
        table: InputTable,
        columns: Mapping[str, str],
        checks: Mapping[str, Check],
        ids: ReadIds,
        *,
        is_log: bool = False,
        positive: float | None = None,
    ) -> Dealt:
        """The rows of a table by bucket; see `deal_table`."""
        return deal_table(table, columns, checks, self.budget, ids, is_log=is_log, positive=positive)

    def finish(self) -> None:
        """Every table is read when it is dealt."""

    def join(self, join: Join) -> Blocks:
        """The blocks, in threads."""
        return LocalBlocks(join, self.budget)

    def close(self) -> None:
        """Give memory and disk back."""
        self.budget.close()


def deal_table(
    table: InputTable,
    columns: Mapping[str, str],
    checks: Mapping[str, Check],
    budget: Budget,
    ids: ReadIds,
    *,
    is_log: bool = False,
    positive: float | None = None,
    buckets_of: Callable[[pl.DataFrame], npt.NDArray[np.uint8]] | None = None,
) -> Dealt:
    """The rows of a table by bucket, with a column for each role.

    Rows of a log are numbered, and rated 1 where it has no ratings; those rated below `positive` are left out.
    The bucket is that of the user, or what `buckets_of` says of the rows of a batch.
    """
    store, offset = Store(budget), 0
    for batch in batches(table, list(dict.fromkeys(columns.values()))):
        name = table.name if offset == 0 else f"{table.name}, after {offset:,} rows"
        made: dict[str, Any] = {}
        for role, column in columns.items():
            what = f"{name}: {role} column {quoted(column)}"
            is_id = role in IDS
            made[role] = (
                ids.add(role, batch[column], what, text=table.text) if is_id else checks[role](batch[column], what)
            )
        if is_log:
            made["row"] = np.arange(offset, offset + batch.height)
        if is_log and "rating" not in made:
            made["rating"] = np.ones(batch.height, np.float32)
        rows = pl.DataFrame(made)
        if positive is not None:
            rows = rows.filter(pl.col("rating") >= positive).with_columns(rating=pl.lit(1.0, pl.Float32))
        store.add(rows, None if buckets_of is None else buckets_of(rows))
        offset += batch.height
    store.finish()
    return Dealt(store=store)


def deal_feedback(log: Feedback, columns: Mapping[str, Array], population: Population, budget: Budget) -> Dealt:
    """The rows of a Feedback by bucket, in its codes, beside columns in its order."""
    store = Store(budget)
    frame = pl.DataFrame({"user": log.user, "item": log.item, "rating": log.rating, **columns})
    store.add(frame, population.bucket_of_code[log.user])
    store.finish()
    return Dealt(store=store, coded=True)
