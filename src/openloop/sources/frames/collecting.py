"""Small results brought out of an engine: of one query, or of several at once where each query costs much."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw

from openloop.support.frames import collected, on_spark

BANKS: Mapping[str, Any] = {"text": nw.String(), "whole": nw.Int64(), "number": nw.Float64()}


def together(frames: Sequence[Any]) -> list[Any]:
    """The eager results of small frames of one engine. Spark plans and starts jobs for each query: there it is one."""
    if len(frames) < 2 or not on_spark(frames[0]):
        return [collected(frame) for frame in frames]
    named = [_banked(frame) for frame in frames]
    widest = {bank: max(sum(name.startswith(bank) for name in own.values()) for own in named) for bank in BANKS}
    columns = {f"{bank}{j}": kind for bank, kind in BANKS.items() for j in range(widest[bank])}
    parts = [_aligned(frame, at, own, columns) for at, (frame, own) in enumerate(zip(frames, named, strict=True))]
    whole = collected(nw.concat(parts))
    return [
        whole.filter(nw.col("which") == at).select(**{name: nw.col(place) for name, place in own.items()})
        for at, own in enumerate(named)
    ]


def _banked(frame: Any) -> dict[str, str]:
    """A place for each column among those of its kind: a union has columns of one type each."""
    places: dict[str, str] = {}
    for name, kind in frame.collect_schema().items():
        bank = "text" if kind == nw.String else "whole" if kind.is_integer() else "number"
        places[name] = f"{bank}{sum(place.startswith(bank) for place in places.values())}"
    return places


def _aligned(frame: Any, at: int, own: Mapping[str, str], columns: Mapping[str, Any]) -> Any:
    """The frame under the common columns, empty where it has none, and its number."""
    names = {place: name for name, place in own.items()}
    filled = [
        (nw.col(names[place]) if place in names else nw.lit(None)).cast(kind).alias(place)
        for place, kind in columns.items()
    ]
    return frame.select(nw.lit(at).cast(nw.Int64()).alias("which"), *filled)


@dataclass(slots=True)
class Fact:
    """The result of a small query, asked for once: alone when it is needed, or before, together with others.

    `query` makes it when it is asked: eager engines answer at once.
    """

    query: Callable[[], Any]
    known: Any = None

    @property
    def table(self) -> Any:
        """The result."""
        if self.known is None:
            self.known = collected(self.query())
        return self.known

    @property
    def row(self) -> dict[str, Any]:
        """Its only row, by column."""
        return {name: self.table[name].to_list()[0] for name in self.table.columns}


def foresee(facts: Sequence[Fact], frame: Any) -> None:
    """Ask Spark, where the frame is, for facts that will be needed, together; other engines are asked when they are."""
    unknown = [fact for fact in facts if fact.known is None]
    if unknown and on_spark(frame):
        for fact, table in zip(unknown, together([fact.query() for fact in unknown]), strict=True):
            fact.known = table
