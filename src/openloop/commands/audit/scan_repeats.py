"""Pairs that a streamed log has more than once: which rows these are, in the words of `read`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from openloop.commands.audit.scan_columns import collected
from openloop.data.events import pairs_repeat

PAIR = ["user", "item"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StreamedLogs:
    """The logs of an audit by their files, in the order in which they would be read, and how many rows are excluded."""

    frames: Mapping[str, pl.LazyFrame]
    excluded: int | None = None

    def refuse_repeats(self) -> None:
        """Refuse the first log that has a pair more than once."""
        for name, frame in self.frames.items():
            _refuse(name, frame.select(PAIR))

    def check_excluded(self, distinct: int | None) -> None:
        """Refuse excluded rows of which fewer are distinct pairs."""
        if self.excluded is not None and distinct is not None and distinct < self.excluded:
            self.refuse_repeats()


def _refuse(name: str, pairs: pl.LazyFrame) -> None:
    twice = pairs.group_by(PAIR).len().filter(pl.col("len") > 1)
    number = int(collected(twice.select(pl.len())).item())
    if number:
        first = collected(twice.select(PAIR).sort(PAIR).head(1)).row(0)
        own = pl.all_horizontal(pl.col(column) == value for column, value in zip(PAIR, first, strict=True))
        rows = collected(pairs.with_row_index("row").filter(own).select("row").sort("row").head(10))
        raise pairs_repeat(name, number, first, rows["row"].to_list())
