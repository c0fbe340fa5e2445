"""`FrameIds`: users, or items, that stay in their engine, distinguished by how many rows they have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np

from openloop.core.feedback import Array, Floats
from openloop.support.frames import collected, looked_up, table_beside, times


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FrameIds:
    """Entry e are the `size[e]` ids that have `count[e]` rows each; entry 0 those without a row, if there are any.

    `counts` is a frame with the key and `times`, the rows of each id that has some; nothing of it leaves the engine
    but how often each count occurs.
    """

    key: str
    counts: Any
    count: Floats  # (E,) rising
    size: Floats  # (E,)

    @classmethod
    def of(cls, keyed: Any, key: str) -> FrameIds:
        """The ids of the rows of a frame."""
        counts = times(keyed, (key,)).with_columns(nw.col("times").cast(nw.Int64()))
        by_count = counts.select(nw.col("times").alias("count"), nw.lit(1.0).alias("size")).group_by("count")
        table = collected(by_count.agg(nw.col("size").sum())).sort("count")
        count, size = (table[name].cast(nw.Float64()).to_numpy() for name in ("count", "size"))
        return cls(key=key, counts=counts, count=count, size=size)

    def __len__(self) -> int:
        return int(self.size.sum())

    def among(self, population: int) -> FrameIds:
        """The same with those of the population that have no row."""
        missing = population - len(self)
        if not missing:
            return self
        count, size = np.append(0.0, self.count), np.append(float(missing), self.size)
        return FrameIds(key=self.key, counts=self.counts, count=count, size=size)

    @property
    def unseen(self) -> int:
        """How many of the population have no row."""
        return int(self.size[0]) if self.count[0] == 0 else 0

    @property
    def typical(self) -> float:
        """How many rows the id of the median row has."""
        ends, middle = np.cumsum(self.count * self.size), (float(self.count @ self.size) - 1) / 2
        low, high = (self.count[np.searchsorted(ends, at, side="right")] for at in (np.floor(middle), np.ceil(middle)))
        return float((low + high) / 2)

    def find(self, ids: Array) -> Array:
        """The entry of each id (distinct ones, in the order of a Vocabulary); -1 where it has no row."""
        text = not np.issubdtype(ids.dtype, np.integer)
        if text != (self.counts.collect_schema()[self.key] == nw.String):
            return np.full(len(ids), -1)
        asked = table_beside(self.counts, {self.key: ids.tolist() if text else ids, "place": np.arange(len(ids))})
        found = collected(looked_up(asked, self.counts, self.key)).sort("place")
        times_of = found["times"].cast(nw.Float64()).fill_null(0.0).to_numpy()  # (ids,)
        return np.where(times_of > 0, np.searchsorted(self.count, times_of), -1)
