"""The values of a log's columns, checked row by row: ids, ratings, propensities, weights and times.

Rows in messages count from 1 and leave the header out.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from openloop.core.feedback import LEAST
from openloop.errors import InputError, PropensityError, RatingError, listing, quoted
from openloop.support.wording import counted, rows_at

# From here on, neighbouring whole numbers share one float: 2⁵³ is also what 2⁵³ + 1 becomes.
_EXACT = 2**53
_INTEGER = r"^(?:0|-?[1-9][0-9]*)$"

ISO = re.compile(r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}\S*)?\s*$")
EPOCH = 1e8  # seconds since 1970 are larger from 1973 on, and no rating is

_EXACT_32 = 2**24  # as _EXACT, of 32 bits
_SMALLEST = float(np.finfo(np.float32).smallest_normal)  # smaller numbers lose digits, and become 0
_MATERIAL = 1e-6  # of the span of ratings

_TOO_WIDE = "ids do not fit 64 signed bits"
_SHARED = "ids are floats from 2⁵³ on, which neighbouring integers share"
_REPAIR = "drop or repair those rows"
_PROBABILITIES = f"give probabilities, where these are weights 1/p or percentages, or {_REPAIR}"


def ids(column: pl.Series, what: str, *, text: bool = False, keep_text: bool = False) -> pl.Series:
    """The ids as Int64 or String, none missing.

    With `text` the fields carry no type: they are integers if each is written as Python would write that
    integer (or as 7.0, what a float column leaves behind), so "007" stays text; `keep_text` leaves them
    all as text.
    """
    column = _plain(column)
    _refuse(column.is_null(), column, what, "ids are missing", show=False)
    if text:
        return _from_text(column, what, keep_text=keep_text)
    return column if column.dtype == pl.String else _integers(column, what)


def _plain(column: pl.Series) -> pl.Series:
    """Text for categories and UUIDs, null for NaN."""
    if isinstance(column.dtype, pl.Categorical | pl.Enum):
        return column.cast(pl.String)
    if column.dtype == pl.Binary:
        return _uuid_text(column)
    return column.fill_nan(None) if column.dtype.is_float() else column


def _uuid_text(column: pl.Series) -> pl.Series:
    if not (column.bin.size() == 16).all():
        return column
    digits = column.bin.encode("hex")
    spans = ((0, 8), (8, 4), (12, 4), (16, 4), (20, 12))
    parts = pl.DataFrame([digits.str.slice(at, length).alias(str(at)) for at, length in spans])
    return parts.select(pl.concat_str(pl.all(), separator="-")).to_series()


def _from_text(column: pl.Series, what: str, *, keep_text: bool) -> pl.Series:
    if not keep_text and (whole := _whole(column, what)) is not None:
        return whole
    fields = column.str.strip_chars()
    _refuse(fields == "", column, what, "ids are missing", show=False)
    _refuse((fields == "nan") | (fields == "NaN"), column, what, "ids are missing, being NaN")
    if keep_text:
        return fields
    whole = _whole(fields, what)
    if whole is None:
        _refuse_too_wide(fields, what)
    return fields if whole is None else whole


def _whole(fields: pl.Series, what: str) -> pl.Series | None:
    """The integers that these fields write, or None if one of them has another form."""
    digits = _digits(fields)
    whole = digits.cast(pl.Int64, strict=False)
    if whole.null_count() or not (whole.cast(pl.String) == digits).all():
        return None
    if digits is not fields:
        _refuse(~whole.is_between(-_EXACT, _EXACT, closed="none"), fields, what, _SHARED, "write them as integers")
    return whole


def _digits(fields: pl.Series) -> pl.Series:
    """The fields without the .0 that a column of floats leaves behind."""
    floats = len(fields) > 0 and str(fields[0]).endswith(".0") and bool(fields.str.ends_with(".0").all())
    return fields.str.strip_suffix(".0") if floats else fields


def _refuse_too_wide(fields: pl.Series, what: str) -> None:
    """Fields that all write integers are not taken for text because 64 bits do not hold one of them."""
    digits = _digits(fields)
    if len(digits) and re.match(_INTEGER, str(digits[0])) and digits.str.contains(_INTEGER).all():
        broken = digits.cast(pl.Int64, strict=False).is_null()
        _refuse(broken, fields, what, _TOO_WIDE, "number them anew, or put a letter before each")


def _integers(column: pl.Series, what: str) -> pl.Series:
    if column.dtype.is_float():
        _refuse(column % 1 != 0, column, what, "ids are not whole numbers", "make them integers or text")
        _refuse(column.abs() >= _EXACT, column, what, _SHARED, "make them integers or text")
        return column.cast(pl.Int64)
    if not (column.dtype.is_integer() or (isinstance(column.dtype, pl.Decimal) and column.dtype.scale == 0)):
        raise InputError(f"{what}: ids must be integers, text or UUIDs, not {quoted(column.dtype)}; cast the column.")
    whole = column.cast(pl.Int64, strict=False)
    _refuse(whole.is_null(), column, what, _TOO_WIDE, "cast the column to text")
    return whole


def ratings(column: pl.Series, what: str) -> npt.NDArray[np.float32]:
    """Finite ratings; booleans count as 0 and 1."""
    values = _numbers(column, what, "ratings", RatingError)
    with np.errstate(over="ignore"):
        narrow = values.to_numpy().astype(np.float32)
    broken = pl.Series(~np.isfinite(narrow))
    _refuse(broken, values, what, "ratings are not finite in 32 bits", error=RatingError)
    if not len(column):
        return narrow
    given = column if column.dtype.is_integer() else values
    refuse_alike(given.alias("rating").to_frame().lazy(), what)
    return narrow


def refuse_alike(rows: pl.LazyFrame, what: str) -> None:
    """Refuse distinct values of the column "rating" that become equal in 32 bits.

    Every conversion rounds. Ratings of many digits may become equal without harm, because their difference is tiny
    compared with the others. A lost difference matters between integers, if it is more than a millionth of the range of
    ratings, and if small numbers become zero. None of this happens to ratings of usual size, so one check suffices.
    """
    rating = pl.col("rating")
    low, high, small = _facts(rows.select(
        low=rating.min(), high=rating.max(), small=((rating != 0) & (rating.abs() < _SMALLEST)).any()
    ))  # fmt: skip
    span, size = high - low, max(abs(low), abs(high))
    if not small and size <= _EXACT_32 and (span == 0 or size * 2.0**-23 <= _MATERIAL * span):
        return
    after = pl.col("after")
    meet = rating.cast(pl.Float32) == after.cast(pl.Float32)
    whole = (rating % 1 == 0) & (after % 1 == 0)
    counts = whole | (after - rating > _MATERIAL * span) | (rating.abs() < _SMALLEST)
    ordered = rows.select(rating).unique().sort("rating").with_columns(after=rating.shift(-1))
    found = ordered.filter(meet & counts).collect(engine="streaming")
    if found.height:
        one, other = found.row(0)
        raise RatingError(
            f"{what}: {counted(found.height, 'pair')} of distinct ratings, as {one!r} and {other!r}, would be equal in "
            "32 bits; subtract what all have in common, or rescale them, or round where they are meant to be equal."
        )


def _facts(row: pl.LazyFrame) -> tuple[Any, ...]:
    return row.collect(engine="streaming").row(0)


def propensities(column: pl.Series, what: str) -> npt.NDArray[np.float64]:
    """Numbers in (0, 1]."""
    values = _numbers(column, what, "propensities", PropensityError)
    outside = ~values.is_between(LEAST, 1) | values.is_nan()
    remedy = _PROBABILITIES if (values > 1).any() else _REPAIR
    _refuse(outside, values, what, "propensities are outside (0, 1]", remedy, error=PropensityError)
    return values.to_numpy()


def weights(column: pl.Series, what: str) -> npt.NDArray[np.float64]:
    """Finite, positive numbers."""
    values = _numbers(column, what, "weights", InputError)
    outside = ~(values.is_finite() & (values > 0))
    _refuse(outside, values, what, "weights are not finite and positive")
    return values.to_numpy()


def rewards(column: pl.Series, what: str) -> npt.NDArray[np.float64]:
    """Finite numbers that are not negative; booleans count as 0 and 1."""
    values = _numbers(column, what, "rewards", RatingError)
    _refuse(~(values.is_finite() & (values >= 0)), values, what, "rewards are not finite and ≥ 0", error=RatingError)
    return values.to_numpy()


def exposures(column: pl.Series, what: str) -> npt.NDArray[np.float64]:
    """Numbers in [0, 1]."""
    values = _numbers(column, what, "exposures", PropensityError)
    outside = ~values.is_between(0, 1) | values.is_nan()
    _refuse(outside, values, what, "exposures are outside [0, 1]", _PROBABILITIES, error=PropensityError)
    return values.to_numpy()


def flags(column: pl.Series, what: str) -> npt.NDArray[np.bool_]:
    """Booleans, also as 0 and 1."""
    values = _numbers(column, what, "flags", InputError)
    _refuse(~values.is_in([0.0, 1.0]), values, what, "flags are neither true nor false")
    return values.to_numpy() == 1


def whole(column: pl.Series, what: str, noun: str, least: int) -> npt.NDArray[np.int32]:
    """Whole numbers from `least` on, as 32-bit integers."""
    values = column if column.dtype.is_integer() else _numbers(column, what, noun, InputError)
    _refuse(values.is_null(), values, what, f"{noun} are missing", show=False)
    outside = ~values.is_between(least, 2**31 - 1)
    broken = outside if column.dtype.is_integer() else outside | values.is_nan() | (values % 1 != 0)
    remedy = f"count from {least}, or {_REPAIR}"
    _refuse(broken, values, what, f"{noun} are not whole numbers from {least} on", remedy)
    return values.cast(pl.Int32).to_numpy()


def times(column: pl.Series, what: str) -> npt.NDArray[Any]:
    """Integers and floats as they are; dates and datetimes as microseconds since 1970 in UTC."""
    column = _plain(column)
    if column.dtype == pl.String:
        column = _written_times(column, what)
    if column.dtype == pl.Date:
        column = column.cast(pl.Datetime("us"))
    if isinstance(column.dtype, pl.Datetime):
        column = column.dt.cast_time_unit("us").to_physical()
    if not column.dtype.is_integer():
        column = _numbers(column, what, "times", InputError)
        _refuse(~column.is_finite(), column, what, "times are not finite")
    _refuse(column.is_null(), column, what, "times are missing", show=False)
    return column.cast(pl.Int64 if column.dtype.is_integer() else pl.Float64).to_numpy()


def look_like_times(column: pl.Series) -> bool:
    """Whether all values are dates, or numbers as large as those that count the time since 1970."""
    column = column.drop_nulls()
    if len(column) == 0 or column.dtype.is_temporal():
        return len(column) > 0
    if column.dtype == pl.String:
        fields = column.str.strip_chars()
        column = fields.cast(pl.Float64, strict=False)
        if column.null_count():
            return all(ISO.match(field) for field in fields)
    return column.dtype.is_numeric() and bool((column >= EPOCH).all())


def _written_times(column: pl.Series, what: str) -> pl.Series:
    fields = column.str.strip_chars()
    for dtype in (pl.Int64, pl.Float64):
        if (values := fields.cast(dtype, strict=False)).null_count() == column.null_count():
            return values
    try:
        return fields.str.to_datetime(time_unit="us")
    except pl.exceptions.PolarsError as error:
        shown = listing(fields.unique(maintain_order=True).head(3).to_list())
        msg = f"{what}: times such as {shown} are not of one form; write numbers, or ISO dates and times."
        raise InputError(msg) from error


def _numbers(column: pl.Series, what: str, noun: str, error: type[InputError]) -> pl.Series:
    """Float64, none missing; text is parsed."""
    column = _plain(column)
    if column.dtype == pl.String:
        values = _parsed(column)
        broken = values.is_null() & column.is_not_null() & (column.str.strip_chars() != "")
        _refuse(broken, column, what, f"{noun} are not numbers", error=error)
    elif column.dtype.is_numeric() or isinstance(column.dtype, pl.Boolean | pl.Null):
        values = column.cast(pl.Float64)
    else:
        raise error(f"{what}: {noun} must be numbers, not {quoted(column.dtype)}; cast the column.")
    _refuse(values.is_null(), values, what, f"{noun} are missing", error=error, show=False)
    return values


def _parsed(column: pl.Series) -> pl.Series:
    values = column.cast(pl.Float64, strict=False)
    if values.null_count() == 0:
        return values
    fields = column.str.strip_chars().str.to_lowercase()
    words = fields.replace_strict({"true": 1.0, "false": 0.0}, default=None, return_dtype=pl.Float64)
    return fields.cast(pl.Float64, strict=False).fill_null(words)


def _refuse(
    broken: pl.Series,
    column: pl.Series,
    what: str,
    rule: str,
    remedy: str = _REPAIR,
    *,
    error: type[InputError] = InputError,
    show: bool = True,
) -> None:
    """Raise `error` if any row is broken, saying how many, which, and (with `show`) their values."""
    rows = broken.arg_true()
    if len(rows) == 0:
        return
    shown = f": {listing(column.gather(rows.head(3)).to_list())}" if show else ""
    raise error(f"{what}: {len(rows):,} of {len(column):,} {rule}{shown}, in {rows_at(rows.to_list())}; {remedy}.")
