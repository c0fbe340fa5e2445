"""What streamed tables must not hold: pairs twice, and scores that are no numbers; in the words of `read`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import polars as pl

from openloop.commands.audit.scan_columns import collected
from openloop.data.events import pairs_repeat
from openloop.sources.frames.model_tables import of_frame
from openloop.sources.frames.opening import EngineTable

PAIR = ["user", "item"]
NAMED = re.compile(r"^model '(.*)' \(.*\)$", re.DOTALL)


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


def check_numbers(what: str, rows: pl.LazyFrame) -> None:
    """Refuse what a table of predictions must not hold as scores or ranks."""
    frame: Any = nw.from_native(rows)
    table = EngineTable(name=what, frame=frame, columns=tuple(frame.collect_schema().names()), ids=tuple(PAIR))
    of_frame(NAMED.sub(r"\1", what), table, (None, None), {}).check()


def _refuse(name: str, pairs: pl.LazyFrame) -> None:
    twice = pairs.group_by(PAIR).len().filter(pl.col("len") > 1)
    number = int(collected(twice.select(pl.len())).item())
    if number:
        first = collected(twice.select(PAIR).sort(PAIR).head(1)).row(0)
        own = pl.all_horizontal(pl.col(column) == value for column, value in zip(PAIR, first, strict=True))
        rows = collected(pairs.with_row_index("row").filter(own).select("row").sort("row").head(10))
        raise pairs_repeat(name, number, first, rows["row"].to_list())
