"""What p is made of, as columns beside the rows of a frame: joined by user, by item or by rating."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import narwhals as nw
import numpy as np

from openloop.core.feedback import Array, Floats, Vocabulary
from openloop.errors import InputError, RatingError, UnknownIdError, listing
from openloop.propensity.frames.frame_ids import FrameIds
from openloop.propensity.frames.opening import ITEM, KEYS, RATING, USER
from openloop.support.frames import collected, looked_up, rows, table_beside
from openloop.support.wording import counted

NOUNS = {key: noun for noun, key in KEYS.items()}
FITTED = "the log that the model was fitted on"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Lookup:
    """Numbers by entry of `of`: ids in memory, ids in an engine, or levels of ratings.

    Keys that `of` does not have are an error, unless `others` are allowed, whose numbers are in `otherwise`.
    """

    key: str
    of: Vocabulary | FrameIds | Floats
    columns: Mapping[str, Floats] = field(default_factory=dict[str, Any])
    others: bool = False
    otherwise: Mapping[str, float] = field(default_factory=dict[str, Any])

    def onto(self, frame: Any) -> Any:
        """The frame with these columns."""
        if not self.columns:
            return frame
        table = self._table(frame).select(self.key, *self.columns)
        joined = looked_up(frame, table, self.key)
        filled = [nw.col(name).fill_null(value) for name, value in self._fills.items()]
        return joined.with_columns(*filled) if filled else joined

    @property
    def _fills(self) -> Mapping[str, float]:
        if isinstance(self.of, FrameIds) and self.of.unseen:
            return {name: float(values[0]) for name, values in self.columns.items()}
        return self.otherwise

    def _table(self, frame: Any) -> Any:
        """Keys and numbers as a frame of the engine."""
        if not isinstance(self.of, FrameIds):
            keys = self.of.ids if isinstance(self.of, Vocabulary) else self.of
            return table_beside(frame, {self.key: plain(keys), **self.columns})
        known = self._counts(self.of, frame)
        numbers = table_beside(frame, {"times": self.of.count.astype(np.int64), **self.columns})
        return known.join(numbers, on="times", how="inner")

    def _counts(self, ids: FrameIds, frame: Any) -> Any:
        """The counts of ids, where the frame's engine is theirs."""
        if ids.counts.implementation != frame.implementation:
            raise InputError(
                f"with_column: the frame is in {frame.implementation}, the model was fitted on a frame in "
                f"{ids.counts.implementation}, where the counts of its ids are; bring both into one."
            )
        return ids.counts

    def check(self, frame: Any, who: str = "with_column", source: str = FITTED) -> None:
        """Refuse keys of a frame that its `source` does not have; as many as have no row may be new."""
        if self.others:
            return
        known = self._counts(self.of, frame) if isinstance(self.of, FrameIds) else self._table(frame)
        free = self.of.unseen if isinstance(self.of, FrameIds) else 0
        self._check_kind(frame, known, who, source)
        new = frame.select(self.key).unique().join(known.select(self.key), on=self.key, how="anti")
        if (number := rows(new)) > free:
            some = collected(new.sort(self.key).head(3))[self.key].to_list()
            which = f"{who}: {counted(number, NOUNS[self.key])} of the frame not in {source}, such as {listing(some)}"
            raise (
                self._refusal(which, some, free)
                if source == FITTED
                else UnknownIdError(f"{which}; give {source} of all.")
            )

    def _check_kind(self, frame: Any, known: Any, who: str, source: str) -> None:
        kinds = ["text" if x.collect_schema()[self.key] == nw.String else "numbers" for x in (frame, known)]
        if kinds[0] != kinds[1]:
            raise InputError(
                f"{who}: the frame's {NOUNS[self.key]}s are {kinds[0]}, those of {source} {kinds[1]}; cast one side."
            )

    def _refusal(self, which: str, some: list[Any], free: int) -> InputError:
        if self.key == RATING:
            known = self.of.tolist() if isinstance(self.of, np.ndarray) else []
            return RatingError(
                f"with_column: no rating {listing(some)} in the log that the model was fitted on, so their p is not "
                f"known; it has {listing(known)}. Fit on a log with all levels."
            )
        more = f"its population has {free:,} without a row" if free else "its population has no others"
        return UnknownIdError(f"{which}, and {more}; fit on the whole log, or pass population=.")


def plain(keys: Array) -> Any:
    """Ids as integers or Python strings, as every engine takes them."""
    return keys if keys.dtype.kind in "if" else keys.tolist()


__all__ = ["ITEM", "RATING", "USER", "Lookup"]
