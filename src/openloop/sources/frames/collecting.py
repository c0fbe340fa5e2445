"""Small results brought out of an engine: of one query, or of several at once where each query costs much."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import narwhals as nw

from openloop.sources.frames.exact_sums import exact_tally
from openloop.sources.frames.parting import Division
from openloop.support.frames import collected, on_spark

BANKS: Mapping[str, Any] = {"text": nw.String(), "whole": nw.Int64(), "number": nw.Float64()}
ROWS = "rows"  # the number of a group's rows, where several tallies are one
How = Literal["sum", "min", "max"]
Total = tuple[str, How]  # a column, and how its values become one


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameTally:
    """Sums, least and largest values of a frame's columns, by groups of its rows or over all of them."""

    frame: Any
    totals: Mapping[str, Total]  # by the name of the result
    by: Sequence[str] = ()
    count: str | None = None  # what the number of rows is called, where it is asked: a sum of ones takes longer
    pieces: Sequence[Any] = ()  # the same rows, of Polars, in parts that are taken one after the other
    apart: bool = False  # whether each group has rows in one of them alone

    @classmethod
    def divided(
        cls,
        frame: Any,
        parts: Division,
        make: Callable[[Any], Any],
        names: Sequence[str],
        how: How = "sum",
        **more: Any,
    ) -> FrameTally:
        """A tally of what is made of a frame, one range of users at a time: all groups at once would hold rows."""
        rows, *pieces = map(make, (frame, *parts.pieces(frame)))
        return cls(frame=rows, totals={name: (name, how) for name in names}, pieces=pieces, **more)

    @classmethod
    def sums(cls, frame: Any, columns: Sequence[str], by: Sequence[str] = (), **more: Any) -> FrameTally:
        """Sums under the names of their columns."""
        return cls(frame=frame, totals={name: (name, "sum") for name in columns}, by=by, **more)

    @property
    def query(self) -> Any:
        """The frame of results."""
        found = [getattr(nw.col(column), how)().alias(name) for name, (column, how) in self.totals.items()]
        found += [] if self.count is None else [nw.len().alias(self.count)]
        return self.frame.group_by(*self.by).agg(*found) if self.by else self.frame.select(*found)

    @property
    def polars(self) -> bool:
        """Whether the rows are a lazy frame of Polars, whose threads add in no order."""
        return isinstance(self.frame, nw.LazyFrame) and self.frame.implementation.is_polars()

    @property
    def result(self) -> Any:
        """The eager results."""
        if not self.polars:
            return collected(self.query)
        frames = [frame.to_native() for frame in self.pieces or [self.frame]]
        return nw.from_native(exact_tally(frames, self.totals, self.by, self.count, apart=self.apart))

    @property
    def small(self) -> Any:
        """The results as a frame to join with, which on Polars is found now."""
        return self.result.lazy() if self.polars else self.query


def together(asked: Sequence[Any]) -> list[Any]:
    """The eager results of small frames and tallies of one engine.

    Spark starts jobs for each query, and for each group-by in it: there all is one query, and all tallies are one
    group-by. A tally over no rows then has no result.
    """
    if len(asked) < 2 or not on_spark(_frame(asked[0])):
        return [x.result if isinstance(x, FrameTally) else collected(x) for x in asked]
    tallies = [x for x in asked if isinstance(x, FrameTally)]
    frames = [x for x in asked if not isinstance(x, FrameTally)]
    if not tallies:
        return _united(frames)
    joint, names = _joint(tallies)
    *tables, tallied = _united([*frames, joint.query])
    results = iter(tables), (_own(tallied, at, own) for at, own in enumerate(names))
    return [next(results[isinstance(x, FrameTally)]) for x in asked]


def _frame(asked: Any) -> Any:
    return asked.frame if isinstance(asked, FrameTally) else asked


def _united(frames: Sequence[Any]) -> list[Any]:
    """The results of frames by one query: a union, with the number of each frame."""
    if len(frames) == 1:
        return [collected(frames[0])]
    places = [_places(frame, frame.collect_schema().names()) for frame in frames]
    whole = collected(_stacked(frames, places))
    return [_own(whole, at, own) for at, own in enumerate(places)]


def _joint(tallies: Sequence[FrameTally]) -> tuple[FrameTally, list[dict[str, str]]]:
    """One tally of all rows, by the number of the tally and its groups; and where the results of each are."""
    keys = [_places(t.frame, t.by, "by_") for t in tallies]
    values = [_places(t.frame, list(dict.fromkeys(column for column, _ in t.totals.values()))) for t in tallies]
    stacked = _stacked([t.frame for t in tallies], keys, values)
    names = [
        {**by, **{name: f"{own[column]}_{how}" for name, (column, how) in t.totals.items()}}
        | ({} if t.count is None else {t.count: ROWS})
        for t, by, own in zip(tallies, keys, values, strict=True)
    ]
    totals: dict[str, Total] = {
        f"{own[column]}_{how}": (own[column], how)
        for t, own in zip(tallies, values, strict=True)
        for column, how in t.totals.values()
    }
    by = sorted({place for own in keys for place in own.values()})
    count = ROWS if any(t.count is not None for t in tallies) else None
    return FrameTally(frame=stacked, totals=totals, by=["which", *by], count=count), names


def _places(frame: Any, columns: Sequence[str], prefix: str = "") -> dict[str, str]:
    """A place for each column among those of its kind: a union has columns of one type each."""
    schema, places = frame.collect_schema(), dict[str, str]()
    for name in columns:
        kind = schema[name]
        bank = prefix + ("text" if kind == nw.String else "whole" if kind.is_integer() else "number")
        places[name] = f"{bank}{sum(place.startswith(bank) for place in places.values())}"
    return places


def _stacked(frames: Sequence[Any], *places: Sequence[Mapping[str, str]]) -> Any:
    """All rows under common columns, empty where a frame has none, with the number of the frame as `which`."""
    columns = sorted({place for part in places for own in part for place in own.values()})
    return nw.concat([
        frame.select(nw.lit(at).cast(nw.Int64()).alias("which"), *_filled(columns, [part[at] for part in places]))
        for at, frame in enumerate(frames)
    ])  # fmt: skip


def _filled(columns: Sequence[str], own: Sequence[Mapping[str, str]]) -> list[Any]:
    names = {place: name for part in own for name, place in part.items()}
    return [
        (nw.col(names[place]) if place in names else nw.lit(None)).cast(_kind(place)).alias(place) for place in columns
    ]  # fmt: skip


def _kind(place: str) -> Any:
    return BANKS[place.removeprefix("by_").rstrip("0123456789")]


def _own(whole: Any, at: int, names: Mapping[str, str]) -> Any:
    """The rows of one frame under its own names."""
    return whole.filter(nw.col("which") == at).select(**{name: nw.col(place) for name, place in names.items()})


@dataclass(slots=True)
class Fact:
    """The result of a small query, asked for once: alone when it is needed, or before, together with others.

    `query` makes a frame or a tally when it is asked: eager engines answer at once.
    """

    query: Callable[[], Any]
    known: Any = None

    @property
    def table(self) -> Any:
        """The result."""
        if self.known is None:
            (self.known,) = together([self.query()])
        return self.known

    @property
    def row(self) -> dict[str, Any]:
        """Its only row, by column; of a tally over no rows nothing is known."""
        columns = {name: self.table[name].to_list() for name in self.table.columns}
        return {name: values[0] if values else None for name, values in columns.items()}


def foresee(facts: Sequence[Fact], frame: Any) -> None:
    """Ask Spark, where the frame is, for facts that will be needed, together; other engines are asked when they are."""
    unknown = [fact for fact in facts if fact.known is None]
    if unknown and on_spark(frame):
        for fact, table in zip(unknown, together([fact.query() for fact in unknown]), strict=True):
            fact.known = table
