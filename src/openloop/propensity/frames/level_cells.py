"""`LevelCells`: the rows of a log frame by item and level of rating, with the weights of each cell summed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np

from openloop.core.feedback import Array, Floats, Vocabulary
from openloop.propensity.frames.log_frame import LogFrame
from openloop.propensity.frames.lookups import Lookup
from openloop.propensity.frames.opening import ITEM, RATING
from openloop.support.frames import collected, plain_ids

P, LEVEL = "openloop_p", "openloop_level"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LevelCells:
    """Rows of one item and level as one row of weight Σ1/p: raking moves them together.

    Codes are of `items`, those with a row; the code after the last is for all others.
    """

    item: Array  # (C,)
    rating: Floats  # (C,) where the level begins
    w: Floats  # (C,) Σ1/p
    items: Vocabulary
    ends: tuple[float, float]  # of p

    @classmethod
    def of(cls, log: LogFrame, parts: tuple[Sequence[Lookup], Any], levels: Floats) -> LevelCells:
        """One group-by in the engine: as many rows leave it as items have levels."""
        lookups, p = parts
        frame = log.keyed
        for lookup in lookups:
            frame = lookup.onto(frame)
        frame = frame.with_columns(p.alias(P), level_of(levels).alias(LEVEL))
        named = frame.select(ITEM, LEVEL, P, (1.0 / nw.col(P)).alias("w"))
        ends = nw.col(P).min().alias("low"), nw.col(P).max().alias("high")
        table = collected(named.group_by(ITEM, LEVEL).agg(nw.col("w").sum(), *ends)).sort(ITEM, LEVEL)
        ids = plain_ids(table[ITEM])
        items = Vocabulary.of(ids)
        level = table[LEVEL].to_numpy().astype(np.int64)
        return cls(
            item=items.codes(ids), rating=levels[level], w=table["w"].cast(nw.Float64()).to_numpy(), items=items,
            ends=(float(table["low"].min()), float(table["high"].max())),
        )  # fmt: skip

    def __len__(self) -> int:
        return len(self.item)

    @property
    def n_items(self) -> int:
        """The items with a row, and one for all others."""
        return len(self.items) + 1


def level_of(levels: Floats) -> Any:
    """The level of each row's rating: the last one that is not above it."""
    code = nw.lit(0.0)
    for level in levels[1:].tolist():
        code = code + nw.when(nw.col(RATING) >= level).then(1.0).otherwise(0.0)
    return code
