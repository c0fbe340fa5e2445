"""What streamed tables must not hold: pairs twice, and scores that are not numbers; in the words of `read`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import narwhals as nw
import polars as pl

from openloop.commands.audit.scan_columns import collected
from openloop.data.events import pairs_repeat
from openloop.sources.frames.model_tables import of_frame
from openloop.sources.frames.opening import EngineTable
from openloop.sources.frames.parting import Division
from openloop.sources.rules import SIDES


class ScannedLog(NamedTuple):
    """A log by its file: its rows in their order, and the same rows as they are divided by users."""

    name: str
    rows: pl.LazyFrame
    divided: pl.LazyFrame


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StreamedLogs:
    """The logs of an audit, in the order in which they would be read, and how many rows are excluded."""

    logs: Sequence[ScannedLog]
    parts: Division  # ranges of users: pairs are held for one at a time
    excluded: int | None = None

    def refuse_repeats(self) -> None:
        """Refuse the first log that has a pair more than once."""
        for log in self.logs:
            self._refuse(log)

    def check_excluded(self, distinct: int | None) -> None:
        """Refuse excluded rows of which fewer are distinct pairs."""
        if self.excluded is not None and distinct is not None and distinct < self.excluded:
            self.refuse_repeats()

    def _refuse(self, log: ScannedLog) -> None:
        pieces = self.parts.pieces(nw.from_native(log.divided.select(SIDES)), SIDES[0])
        twice = pl.concat([_twice(nw.to_native(own)) for own in pieces])
        if twice.height:
            first = twice.sort(SIDES).row(0)
            own = pl.all_horizontal(pl.col(column) == value for column, value in zip(SIDES, first, strict=True))
            rows = log.rows.select(SIDES).with_row_index("row").filter(own).select("row").sort("row").head(10)
            raise pairs_repeat(log.name, twice.height, first, collected(rows)["row"].to_list())


def _twice(pairs: pl.LazyFrame) -> pl.DataFrame:
    return collected(pairs.group_by(SIDES).len().filter(pl.col("len") > 1).select(SIDES))


def check_numbers(model: str, what: str, rows: pl.LazyFrame) -> None:
    """Refuse what a table of a model's predictions must not hold as scores or ranks."""
    frame: Any = nw.from_native(rows)
    table = EngineTable(name=what, frame=frame, columns=tuple(frame.collect_schema().names()), ids=SIDES)
    of_frame(model, table, (None, None), {}).check()
