"""Columns of files whose rows stay on disk, checked by the rules of `read`, with its errors.

Ids are checked by their distinct values, numbers in one pass. Where something is wrong, rows are read again, a part at
a time, until the check of `read` finds it: so both say the same of the same row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import polars as pl

from openloop.core.feedback import LEAST
from openloop.data import values
from openloop.data.encoding import refuse_nul
from openloop.errors import EmptyError, InputError

PART = 10_000_000  # rows of a column that are looked at together, once one of them is known to be wrong

Check = Callable[[pl.Series, str], Any]


def collected(frame: pl.LazyFrame) -> pl.DataFrame:
    """A small result, found in bounded memory."""
    return frame.collect(engine="streaming")


# -- ids -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ScannedIds:
    """A column of ids: its name, its distinct fields, the id that each of them is, and whether they are untyped."""

    name: str
    fields: pl.Series
    ids: pl.Series
    written: bool

    @classmethod
    def of(cls, rows: pl.LazyFrame, what: str, *, text: bool, keep_text: bool) -> ScannedIds:
        """The ids of the only column of `rows`; see `values.ids` for `text` and `keep_text`."""

        def checked(column: pl.Series, told: str) -> pl.Series:
            found = values.ids(column, told, text=text, keep_text=keep_text)
            if found.dtype == pl.String:
                refuse_nul(found.unique().sort(), found, told)
            return found

        fields = collected(rows.unique()).to_series()
        ids = told_by_rows(rows, fields, checked, what)
        return cls(name=fields.name, fields=fields, ids=ids, written=text)

    @property
    def whole(self) -> bool:
        """Whether they are integers."""
        return self.ids.dtype == pl.Int64

    @property
    def column(self) -> pl.Expr:
        """The id of each row."""
        column = pl.col(self.name)
        if self.fields.dtype == self.ids.dtype and (self.fields == self.ids).all():
            return column
        plain = self.fields.cast(self.ids.dtype, strict=False)
        if self.fields.dtype != pl.Binary and plain.null_count() == 0 and (plain == self.ids).all():
            return column.cast(self.ids.dtype)
        return column.replace_strict(self.fields, self.ids, return_dtype=self.ids.dtype)

    def unknown(self, known: pl.Series) -> pl.DataFrame:
        """The fields, and their ids, that a population does not have; text may write its integers."""
        population = known.cast(pl.String) if self.written and not self.whole else known
        alike = population.dtype == self.ids.dtype
        strange = ~self.ids.is_in(population.implode()) if alike else self.ids.is_not_null()
        return pl.DataFrame({"field": self.fields, "id": self.ids}).filter(strange)


# -- numbers -------------------------------------------------------------------------------------------------


def number(column: str, dtype: pl.DataType) -> pl.Expr:
    """A column as `read` has it, in 64 bits; null where it refuses a field."""
    if not isinstance(dtype, pl.String | pl.Categorical | pl.Enum):
        return pl.col(column).cast(pl.Float64)
    fields = pl.col(column).cast(pl.String)
    words = fields.str.strip_chars().str.to_lowercase()
    truth = pl.when(words == "true").then(1.0).when(words == "false").then(0.0)
    return fields.cast(pl.Float64, strict=False).fill_null(words.cast(pl.Float64, strict=False)).fill_null(truth)


def rating(column: str, dtype: pl.DataType) -> pl.Expr:
    """Ratings as `Feedback` has them: rounded to 32 bits."""
    return number(column, dtype).cast(pl.Float32).cast(pl.Float64)


def check_ratings(rows: pl.LazyFrame, what: str) -> None:
    """Refuse what `read` would not take for ratings in the only column of `rows`."""
    column, dtype = _only(rows)
    if not _can_be_numbers(dtype) or not _all(rows, rating(column, dtype).is_finite()):
        told_by_rows(rows, None, values.ratings, what)
    wide = pl.col(column) if dtype.is_integer() else number(column, dtype)
    values.refuse_alike(rows.select(wide.alias("rating")), what)


def check_propensities(rows: pl.LazyFrame, what: str) -> None:
    """Refuse what `read` would not take for propensities in the only column of `rows`."""
    column, dtype = _only(rows)
    if not _can_be_numbers(dtype) or not _all(rows, number(column, dtype).is_between(LEAST, 1)):
        told_by_rows(rows, None, values.propensities, what)


def _only(rows: pl.LazyFrame) -> tuple[str, pl.DataType]:
    ((column, dtype),) = rows.collect_schema().items()
    return column, dtype


def _can_be_numbers(dtype: pl.DataType) -> bool:
    return dtype.is_numeric() or isinstance(dtype, pl.Boolean | pl.Null | pl.String | pl.Categorical | pl.Enum)


def _all(rows: pl.LazyFrame, condition: pl.Expr) -> bool:
    return bool(collected(rows.select(condition.fill_null(value=False).all())).item())


# -- errors --------------------------------------------------------------------------------------------------


def told_by_rows(rows: pl.LazyFrame, fields: pl.Series | None, check: Check, what: str) -> Any:
    """What `check` makes of the distinct fields; where it refuses them, or there are none, the error is of the rows."""
    try:
        return check(fields, what) if fields is not None else _wrong(what)
    except InputError:
        for offset, part in _parts(rows):
            check(part, what if offset == 0 else f"{what}, after {offset:,} rows")
        raise


def _wrong(what: str) -> None:
    raise InputError(f"{what}: some values are missing or are not numbers; drop or repair those rows.")


def _parts(rows: pl.LazyFrame) -> Iterator[tuple[int, pl.Series]]:
    offset = 0
    while len(part := collected(rows.slice(offset, PART)).to_series()):
        yield offset, part
        offset += PART


def refuse_empty(rows: pl.LazyFrame, what: str) -> None:
    """Refuse a log without a row."""
    if collected(rows.head(1)).height == 0:
        raise EmptyError(f"{what}: no rows; an estimate needs at least one observed cell.")
