"""`Events`: the rows of a log as its input has them, checked and coded; merged they are Feedback.

A pair may occur in any number of rows, so a split by time can be made of rows before repeats are merged.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from openloop.core.feedback import Array, Feedback, Ints, Vocabulary
from openloop.core.vocabulary import Int64s
from openloop.data.cells import Duplicates, mean_of_each, one_of_each, repeated, sort_cells, sum_of_each
from openloop.errors import DuplicateError, EmptyError, quoted
from openloop.support.wording import counted, rows_at

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Events:
    """Rows of a log; codes are -1 where the id is unknown.

    `known` are the rows whose ids are in the vocabularies, `kept` those that are not left out; None: all of them.
    """

    name: str
    user: Ints
    item: Ints
    users: Vocabulary
    items: Vocabulary
    columns: Mapping[str, Array]  # rating, and those of propensity, time and weight that were named
    known: Mask | None = None
    kept: Mask | None = None
    uniform: bool = False
    positives: bool = False
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.user)

    @property
    def counting(self) -> Mask:
        """The rows that count."""
        return np.logical_and.reduce([np.ones(len(self), bool), *self._masks])

    @property
    def _masks(self) -> list[Mask]:
        return [mask for mask in (self.known, self.kept) if mask is not None]

    def merged(self, duplicates: Duplicates, among: Mask | None = None) -> Feedback:
        """The rows, or those `among` them, as Feedback: each pair once, by the rule for duplicates.

        "first" and "last" are by time where the log has times, else by order. With "mean" and "count" the other columns
        are the last row's; "count" sums the weights of the rows, which are 1 where none are given.
        """
        cell, row = self._in_order(among)
        twice = repeated(cell)
        if len(twice) and duplicates == "error":
            raise self._repeats(cell, row, len(twice))
        kept: Any = slice(None)
        if len(twice):
            kept = one_of_each(cell, row, self.columns.get("time"), last=duplicates != "first")
        chosen, at = row[kept], cell[kept]
        columns: dict[str, Any] = {role: values[chosen] for role, values in self.columns.items()}
        if duplicates == "mean" and len(twice):
            columns["rating"] = mean_of_each(cell, self.columns["rating"][row])
        if duplicates == "count":
            weight = self.columns.get("weight")
            columns["weight"] = sum_of_each(cell, np.ones(len(cell)) if weight is None else weight[row])
        merged = len(row) - len(chosen)
        notes = [f"{counted(merged, 'row')} repeated a pair and were merged into it (duplicates={quoted(duplicates)})"]
        user = (at // len(self.items)).astype(np.int32)  # in order, where a look at the rows would jump
        item = (at % len(self.items)).astype(np.int32)
        dropped = 0 if self.known is None else int(np.sum(~self.known))
        return Feedback(
            user=user, item=item, users=self.users, items=self.items, row=chosen,
            input_rows=len(self), dropped=dropped, uniform=self.uniform, positives=self.positives,
            notes=(*self.notes, *(notes if merged else ())), **columns,
        )  # fmt: skip

    def _in_order(self, among: Mask | None) -> tuple[Int64s, Int64s]:
        """The cells of the rows that count, in order, and the row of each."""
        cell = self.user.astype(np.int64) * len(self.items) + self.item
        masks = [*self._masks, *([] if among is None else [among])]
        if not masks:
            return sort_cells(cell)
        rows = np.flatnonzero(np.logical_and.reduce(masks))
        if len(rows) == 0:
            unknown, below = (0 if mask is None else int(np.sum(~mask)) for mask in (self.known, self.kept))
            raise EmptyError(
                f"{self.name}: none of its {len(cell):,} rows is left: {unknown:,} have unknown ids and {below:,} are "
                "not positives; check the ids' type, or positive=."
            )
        cell, at = sort_cells(cell[rows])
        return cell, rows[at]

    def _repeats(self, cell: Int64s, row: Int64s, number: int) -> DuplicateError:
        here = row[cell == cell[repeated(cell)[0]]].tolist()
        codes = (self.users, self.user), (self.items, self.item)
        shown = tuple(known.ids[code[here[:1]]].tolist()[0] for known, code in codes)
        return pairs_repeat(self.name, number, shown, here)


def pairs_repeat(name: str, number: int, shown: tuple[Any, ...], rows: list[int]) -> DuplicateError:
    """The error of pairs that a log has more than once; `shown` is one of them, `rows` are its rows from 0."""
    where = f" in {rows_at(rows)}" if rows else ""
    return DuplicateError(
        f"{name}: {number:,} (user, item) pairs occur more than once, as {shown}{where}; pass "
        "duplicates='first', 'last', 'mean' or 'count', or drop all but one of each, or pass position= where rows are "
        "impressions."
    )
