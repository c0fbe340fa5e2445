"""Sums by user and over all rows: each computed once, and missing ones by one query."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from openloop.core.feedback import Array, Floats
from openloop.core.metric import Column
from openloop.errors import InputError
from openloop.sources.frames.holding import result_limit
from openloop.sources.frames.parting import WHOLE, Division
from openloop.sources.frames.rows import STRATUM, USER, Key, Pass, Reduced, reduce_all
from openloop.sources.plan import Strata
from openloop.support.frames import rows

BYTES = 8  # of a sum
Batch = tuple[str, Strata | None]  # the kind of metric, which says what rows count, and the strata


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Expressions to sum by user, and over all rows of each stratum."""

    by_user: Mapping[Key, Column] = field(default_factory=dict[Key, Any])
    in_total: Mapping[Key, Column] = field(default_factory=dict[Key, Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenSums:
    """The sums of a source's rows."""

    rows_for: Callable[[str, Strata | None], Any]
    n_strata: Callable[[Strata | None], int]
    base_columns: Mapping[Key, Column]  # n and Σw over all rows, the base of the strata's shares
    users: int  # of the population, or clusters of them
    rows: int
    order: Callable[[Array], Array]  # the ids of the users in their order, given those with scored rows
    parts: Division = WHOLE  # ranges of users
    found: dict[tuple[Batch, bool], Reduced] = field(default_factory=dict[tuple[Batch, bool], Reduced])

    def take(self, wanted: Mapping[Batch, Wanted]) -> None:
        """Sum what was not summed yet, with the base of all strata that are named."""
        asked = {(batch, True): dict(own.by_user) for batch, own in wanted.items()}
        asked |= {(batch, False): dict(own.in_total) for batch, own in wanted.items()}
        for _, strata in list(wanted):
            asked.setdefault((("cell", strata), True), {}).update(self.base_columns)
        lacking = {key: self._lacking(key, columns) for key, columns in asked.items()}
        passes = {key: self._pass(key, columns) for key, columns in lacking.items() if columns}
        for one in passes.values():
            self._refuse_large(one)
        for key, sums in zip(passes, reduce_all(list(passes.values())), strict=True):
            known = self.found.get(key)
            self.found[key] = sums if known is None else Reduced(ids=known.ids, sums=known.sums | sums.sums)

    def _refuse_large(self, asked: Pass) -> None:
        """Refuse sums that the engine would not give out, before they are taken."""
        limit, columns = result_limit(asked.frame), len(asked.columns) + len([USER, STRATUM])
        if limit is None or not asked.by_user or self._size(self.users, asked.strata, columns) <= limit:
            return
        users = min(self.users, rows(asked.frame.select(USER).unique()))  # many may have no row
        if (size := self._size(users, asked.strata, columns)) > limit:
            raise InputError(
                f"evaluate: the sums of {users:,} users in {asked.strata} strata, {columns} columns, are up to "
                f"{size / 2**30:,.2f} GiB, and spark.driver.maxResultSize is {limit / 2**30:,.2f} GiB; raise that, ask "
                "for fewer metrics or models at a time, or pass a max_users= below the users, to sum by cluster."
            )

    def _size(self, users: int, strata: int, columns: int) -> int:
        """How many bytes the sums have at most."""
        return min(users * strata, self.rows) * columns * BYTES

    def _lacking(self, key: tuple[Batch, bool], columns: Mapping[Key, Column]) -> dict[Key, Column]:
        known = self.found[key].sums if key in self.found else {}
        return {name: column for name, column in columns.items() if name not in known}

    def _pass(self, key: tuple[Batch, bool], columns: Mapping[Key, Column]) -> Pass:
        (kind, strata), by_user = key
        return Pass(
            frame=self.rows_for(kind, strata), columns=columns, strata=self.n_strata(strata), by_user=by_user,
            parts=self.parts,
        )  # fmt: skip

    def base(self, strata: Strata | None) -> Reduced:
        """n and Σw of every user, over all scored rows; without strata the sum of any strata's that are there."""
        parts = [own for ((kind, _), by_user), own in self.found.items() if kind == "cell" and by_user]
        if strata is None and parts:
            sums = {key: parts[0].sums[key].sum(axis=1, keepdims=True) for key in self.base_columns}
            return Reduced(ids=parts[0].ids, sums=sums)
        self.take({("cell", strata): Wanted()})
        found = self.found[("cell", strata), True]
        return Reduced(ids=found.ids, sums={key: found.sums[key] for key in self.base_columns})

    def of(self, batch: Batch, users: int) -> dict[Key, Floats]:
        """All sums of a batch, by user of the base and up to so many."""
        by_user, in_total = self.found.get((batch, True)), self.found.get((batch, False))
        sums = {} if by_user is None else by_user.on(self.order(self.found[("cell", batch[1]), True].ids), users)
        return sums | ({} if in_total is None else in_total.sums)
