"""Cells of a population whose propensities depend on the item alone, and what rows of rare items weigh."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np

from openloop.core.feedback import Array, Floats
from openloop.core.propensities import part_probability
from openloop.estimators.bounds import inverse_squares
from openloop.sources.frames.collecting import FrameTally
from openloop.sources.frames.parting import WHOLE, Division
from openloop.sources.frames.rows import STRATUM, USER
from openloop.sources.observation import MAX_GRID
from openloop.sources.whole import WholeLog
from openloop.support.frames import plain_ids, table_beside

ITEM = "i"


def item_table(frame: Any, whole: WholeLog, **columns: Array) -> Any:
    """The items of the whole log beside a frame, with a column for each array."""
    table = table_beside(frame, {ITEM: whole.items, **columns})
    return table.with_columns(nw.col(ITEM).cast(frame.collect_schema()[ITEM]))


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemCells:
    """The cells that a metric is estimated over; `excluded` are pairs (u, i) that are none of them, None: all are."""

    frame: Any  # the scored rows
    whole: WholeLog
    users: Floats  # (units,) how many users each unit has: one, or those of a cluster
    excluded: Any | None

    @property
    def p(self) -> Floats:
        """The p of each item, (I,)."""
        return np.asarray(self.whole.p)

    def by_stratum(self, edges: tuple[float, ...], place: Callable[[Any], Array]) -> Floats:
        """How many cells each unit has in each stratum, (units, S); `place` finds the units of a column of ids."""
        stratum = np.searchsorted(np.array(edges), self.p)
        cells = self.users[:, None] * np.bincount(stratum, minlength=len(edges) + 1)
        if self.excluded is not None:
            table = item_table(self.frame, self.whole, **{STRATUM: stratum})
            gone = self.excluded.join(table, on=ITEM, how="inner").with_columns(nw.lit(1.0).alias("cells"))
            found = FrameTally.sums(gone, ["cells"], by=[USER, STRATUM]).result
            level = found[STRATUM].to_numpy().astype(np.int64)
            np.subtract.at(cells, (place(found[USER]), level), found["cells"].cast(nw.Float64()).to_numpy())
        return cells

    def inverse_squares(self, s: float, t: float) -> float | None:
        """Σ 1/π² over the cells that are not certain; None of more cells than are summed in memory."""
        users, pi = float(self.users.sum()), part_probability(self.p, s, t)
        if users * len(pi) > MAX_GRID:
            return None
        found = users * inverse_squares(pi)
        if self.excluded is None:
            return found
        squares = np.where(pi < 1, 1.0 / np.square(pi), 0.0)
        gone = self.excluded.join(item_table(self.frame, self.whole, squares=squares), on=ITEM, how="inner")
        return found - float(FrameTally.sums(gone, ["squares"]).result["squares"][0] or 0.0)


def weight_on_rare(frame: Any, weight: str, whole: WholeLog, fewest: int, parts: Division = WHOLE) -> tuple[float, int]:
    """The share of Σw on items with fewer rows in the whole log, and how many rows are on others."""
    found = FrameTally.divided(
        frame, parts, lambda rows: rows.select(ITEM, sum=nw.col(weight)), ["sum"], by=[ITEM], count="n"
    ).result
    of_item, n = (found[name].cast(nw.Float64()).to_numpy() for name in ("sum", "n"))
    rare = whole.rows[np.searchsorted(whole.items, plain_ids(found[ITEM]))] < fewest
    return float(of_item[rare].sum() / of_item.sum()), int(n[~rare].sum())
