"""Models as frames: tables of scores and ranks opened on the log's engine, each checked by one query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import narwhals as nw

from openloop.data.columns import Column, choose
from openloop.errors import DuplicateError, InputError, PredictionError
from openloop.sources import rules
from openloop.sources.frames.collecting import Fact, FrameTally, Total
from openloop.sources.frames.facts import pair_counts, repeats
from openloop.sources.frames.opening import PAIR, EngineTable
from openloop.sources.frames.parting import WHOLE, Division
from openloop.sources.rules import LARGEST
from openloop.support.frames import absent, collected, flag, only_row, rows, times

# How text writes a number, for engines that can only cast all of a column or nothing.
NUMBER = r"(?i)^[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|nan|inf|infinity)$"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ModelTable:
    """One table of a model: u, i and its numbers, text:… beside those that were text; or columns of the log."""

    model: str
    score: str | None = None
    rank: str | None = None
    above: str | None = None  # how many candidates are above the item
    tied: str | None = None  # and how many tie with it, itself included
    frame: Any = None  # None: the columns are the log's
    facts: dict[str, Fact] = field(init=False, repr=False, default_factory=dict[str, Fact])

    @property
    def what(self) -> str:
        """The name that errors give it."""
        return f"model {self.model!r}"

    @property
    def counts(self) -> list[str]:
        """The columns of candidates above and tied, where there are such."""
        return [column for column in (self.above, self.tied) if column is not None]

    @property
    def ranks(self) -> bool:
        """Whether it was made for rankings."""
        return self.rank is not None or bool(self.counts)

    @property
    def numbers(self) -> Fact:
        """What its numbers are, by one query."""
        if "numbers" not in self.facts:
            self.facts["numbers"] = Fact(lambda: number_query(self.frame, self._columns, self._texts, self.rank))
        return self.facts["numbers"]

    @property
    def ranked_twice(self) -> Fact:
        """How often each rank of a user is there, as `pair_counts` has it."""
        if "ranks" not in self.facts:
            self.facts["ranks"] = Fact(lambda: pair_counts(rank_pairs(self.frame, str(self.rank))))
        return self.facts["ranks"]

    @property
    def _columns(self) -> list[str]:
        return [column for column in (self.score, self.rank, *self.counts) if column is not None]

    @property
    def _texts(self) -> list[str]:
        known = self.frame.collect_schema().names()
        return [column for column in self._columns if f"text:{column}" in known]

    def check(self) -> int | None:
        """The deepest rank of a list, once the table is known to have rows, and numbers that are finite; asked once."""
        numbers, texts, found = self._columns, self._texts, _as_numbers(self.numbers.row)
        size = int(found["rows"])
        if not size:
            raise rules.no_rows(self.what)
        for column in texts:
            if number := int(found[f"words:{column}"]):
                raise rules.holds_text(self.what, column, self._words(column), number, size)
        for column in numbers:
            if number := int(found[f"gone:{column}"]):
                raise rules.not_finite(self.what, column, number, size, self._first_gap(column))
        if self.rank is None:
            return None
        if found["odd"]:
            raise rules.bad_ranks(self.what)
        return int(found["depth"])

    def _words(self, column: str) -> list[str]:
        text = f"text:{column}"
        return collected(self.frame.filter(_is_word(column)).select(text).unique().sort(text).head(3))[text].to_list()

    def _first_gap(self, column: str) -> list[Any]:
        first = only_row(self.frame.filter(absent(nw.col(column))).select(*PAIR).sort(*PAIR).head(1))
        return [first[key] for key in PAIR]

    def refuse_repeats(self, parts: Division = WHOLE) -> None:
        """Refuse pairs that are there more than once."""
        if self.frame is not None:
            refuse_repeats(self.what, self.frame, PredictionError, parts=parts)


def of_log(model: str, given: str | Mapping[str, str], log: EngineTable) -> ModelTable:
    """A model that is columns of the log."""
    columns = {"score": given} if isinstance(given, str) else given
    roles = ("score", "rank", *rules.COUNTS)
    found = choose(log, {role: columns.get(role) for role in roles}, required=())
    return ModelTable(model=model, **{role: found.get(role) for role in roles})


def of_frame(model: str, table: EngineTable, types: Sequence[Any], given: Mapping[str, Column]) -> ModelTable:
    """A model's frame, its ids as u and i, its numbers as 64-bit floats; `given` are the names of those."""
    counts = rules.count_columns(table, given)
    columns = counts | (rules.number_columns(table, given) if not counts or rules.has_numbers(table, given) else {})
    frame, schema, texts = table.frame, table.frame.collect_schema(), list[str]()
    for column in columns.values():
        kind = schema[column]
        if kind in (nw.String, nw.Categorical, nw.Enum):
            frame = _with_read(frame, column)
            texts.append(f"text:{column}")
        elif not (kind.is_numeric() or kind in (nw.Boolean, nw.Unknown)):  # a column of nulls alone is unknown
            raise rules.not_numbers(table.name, column)
    numbers = [nw.col(column).cast(nw.Float64()) for column in columns.values()]
    return ModelTable(model=model, frame=frame.select(*table.keys(types), *numbers, *texts), **columns)


def _with_read(frame: Any, column: str) -> Any:
    """A column of text as the numbers that it writes, null where it writes none, and the text beside it."""
    kept = f"text:{column}"
    if frame.implementation.is_polars():
        import polars as pl

        text = pl.col(column).cast(pl.String).str.strip_chars()
        number = text.cast(pl.Float64, strict=False)
        return nw.from_native(frame.to_native().with_columns(text.alias(kept), number.alias(column)))
    frame = frame.with_columns(nw.col(column).cast(nw.String()).str.strip_chars().alias(kept))
    number = nw.when(nw.col(kept).str.contains(NUMBER)).then(nw.col(kept))
    return frame.with_columns(number.cast(nw.Float64()).alias(column))


def _is_word(column: str) -> Any:
    text = nw.col(f"text:{column}")
    return nw.col(column).is_null() & ~text.is_null() & (text != "")


def number_facts(frame: Any, numbers: Sequence[str], texts: Sequence[str], rank: str | None) -> dict[str, float]:
    """Rows, gaps and words of some columns, and whether ranks are odd and how deep they go, by one query."""
    return _as_numbers(Fact(lambda: number_query(frame, numbers, texts, rank)).row)


def _as_numbers(row: Mapping[str, Any]) -> dict[str, float]:
    return {name: float(value or 0) for name, value in row.items()}


def rank_pairs(listed: Any, rank: str) -> Any:
    """Users and ranks of a list as pairs (u, i), of which none may be there twice."""
    return listed.filter(~nw.col(rank).is_null()).select("u", nw.col(rank).cast(nw.Int64()).alias("i"))


def number_query(frame: Any, numbers: Sequence[str], texts: Sequence[str], rank: str | None) -> FrameTally:
    """The tally of `number_facts`."""
    flags = {"rows": nw.lit(1.0)}
    flags |= {f"gone:{column}": flag(absent(nw.col(column))) for column in numbers}
    flags |= {f"words:{column}": flag(_is_word(column)) for column in texts}
    totals: dict[str, Total] = {name: (name, "sum") for name in flags}
    if rank is not None:
        r = nw.col(rank)
        flags |= {"odd": flag(~absent(r) & ((r < 1) | (r > LARGEST) | (r != r.floor()))), "depth": r}
        totals |= {"odd": ("odd", "sum"), "depth": ("depth", "max")}
    return FrameTally(frame=frame.select(**flags), totals=totals)


def refuse_repeats(
    what: str,
    frame: Any,
    error: type[InputError] = DuplicateError,
    counted: Fact | None = None,
    parts: Division = WHOLE,
) -> None:
    """Refuse pairs (u, i) that are in a frame more than once; `counted` as in `repeats`."""
    if not repeats(frame.select(*PAIR), counted, parts):
        return
    number, pairs = 0, list[Any]()
    for own in parts.pieces(frame.select(*PAIR)):
        again = times(own, PAIR).filter(nw.col("times") > 1).select(*PAIR)
        some = collected(again.sort(*PAIR).head(3))
        pairs += zip(*(some[key].to_list() for key in PAIR), strict=True)
        number += rows(again)
    raise error(rules.pairs_twice(what, number, pairs[:3]))
