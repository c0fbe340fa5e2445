"""Ratings in a frame at the door: columns chosen, ids of one kind, values checked by one query in its engine."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np

from openloop.core.feedback import LEAST, Array
from openloop.errors import EmptyError, FormatError, InputError, PropensityError, RatingError
from openloop.support.columns import PAIR, REQUIRED, Column, choose, shared
from openloop.support.frames import absent, collected, flag, is_frame, on_spark, only_row, plain_ids, too_wide

WRONG: dict[str, tuple[type[InputError], str, str]] = {
    "u": (InputError, "user", "no user id"),
    "i": (InputError, "item", "no item id"),
    "y": (RatingError, "rating", "a missing or infinite rating"),
    "w": (InputError, "sample_weight", "a weight that is missing, infinite or not above 0"),
    "p": (PropensityError, "propensities", "a propensity outside (0, 1]"),
}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RatingsTable:
    """u, i and, of ratings, y and w of a frame on its engine; ids are 64-bit integers or text."""

    who: str
    frame: Any
    names: Mapping[str, str]  # the columns of user, item, rating, sample_weight or propensities
    rows: int
    heaviest: float = 1.0  # the largest weight

    @property
    def spark(self) -> bool:
        """Whether its engine is Spark."""
        return on_spark(self.frame)

    @property
    def kinds(self) -> dict[str, str]:
        """Whether users and items are integers or text."""
        schema = self.frame.collect_schema()
        return {side: "integers" if schema[side[0]].is_integer() else "text" for side in PAIR}

    def distinct(self, column: str) -> Array:
        """The distinct ids of a side, sorted."""
        return np.sort(plain_ids(collected(self.frame.select(column).unique())[column]))

    def items_after(self, known: Array) -> Array:
        """Known items, then those that only this table has."""
        return np.concatenate([known, np.setdiff1d(self.distinct("i"), known)])


@dataclass(frozen=True, slots=True)
class _Header:
    """What errors about columns tell."""

    name: str
    columns: Sequence[str]
    note: str = ""


def is_rows(given: Any) -> bool:
    """Whether it is rows that stay where they are: a frame of any engine, or a path to Parquet files."""
    if isinstance(given, str | os.PathLike):
        return True
    return is_frame(given)


def open_ratings(who: str, native: Any, asked: Mapping[str, Column]) -> RatingsTable:
    """A frame of ratings, its values checked; `asked` names columns, `sample_weight` or `propensities` among them."""
    frame, header = _opened(who, native)
    names = choose(header, asked, REQUIRED)
    weight, p = names.get("sample_weight"), names.get("propensities")
    if weight is not None and p is not None:
        raise InputError(f"{who}: sample_weight and propensities= were both given; leave one of them out.")
    numbers = {"y": _number(who, frame, names["rating"], RatingError)}
    if p is not None:
        numbers["p"] = _number(who, frame, p, PropensityError)
    elif weight is not None:
        numbers["w"] = _number(who, frame, weight, InputError)
    rows = frame.select(*_ids(who, frame, names), *(x.alias(key) for key, x in numbers.items()))
    wrong = {key: absent(nw.col(key)) for key in numbers}
    if "p" in wrong:
        wrong["p"] |= ~((nw.col("p") >= LEAST) & (nw.col("p") <= 1))
    if "w" in wrong:
        wrong["w"] |= ~(nw.col("w") > 0)
    w = 1.0 / nw.col("p") if "p" in numbers else nw.col("w") if "w" in numbers else nw.lit(1.0)
    count, heaviest = _facts(who, rows.with_columns(w.alias("w")), wrong, names)
    return RatingsTable(
        who=who, frame=rows.select("u", "i", "y", w.alias("w")), names=names, rows=count, heaviest=heaviest
    )


def open_pairs(who: str, native: Any, like: RatingsTable) -> RatingsTable:
    """A frame of pairs on the engine of the ratings, with ids of their kinds; columns may be called as theirs."""
    frame, header = _opened(who, native)
    names = choose(header, shared(header, {side: like.names[side] for side in PAIR}), PAIR)
    rows = frame.select(*_ids(who, frame, names))
    count, _ = _facts(who, rows.with_columns(nw.lit(1.0).alias("w")), {}, names)
    table = RatingsTable(who=who, frame=rows, names=names, rows=count)
    check_like(table, like)
    return table


def check_like(table: RatingsTable, like: RatingsTable) -> None:
    """Refuse rows elsewhere than those of the fit, and ids of another kind: engines match "1" with 1, or nothing."""
    if table.spark != like.spark:
        here, there = table.frame.implementation, like.frame.implementation
        raise InputError(f"{table.who}: its rows are in {here}, the model was fitted in {there}; bring them there.")
    if table.kinds != like.kinds:
        found, known = (" and ".join(t.kinds.values()) for t in (table, like))
        raise InputError(f"{table.who}: its user and item ids are {found}, those of the fit {known}; cast one side.")


def _opened(who: str, native: Any) -> tuple[Any, _Header]:
    """A lazy frame; rows of other engines than Spark become Polars'."""
    frame: Any = nw.from_native(_scanned(who, native) if isinstance(native, str | os.PathLike) else native)
    if not on_spark(frame):
        if not frame.implementation.is_polars():
            frame = _in_polars(who, frame)
        frame = frame.lazy()
    return frame, _Header(f"{who}: the frame", tuple(frame.collect_schema().names()))


def _in_polars(who: str, frame: Any) -> Any:
    try:
        return frame.collect("polars") if isinstance(frame, nw.LazyFrame) else nw.from_native(frame.to_polars())
    except (TypeError, ValueError) as error:  # as Arrow's are
        raise InputError(
            f"{who}: the frame cannot be read column by column ({error}); cast columns of several types to one."
        ) from error


def _scanned(who: str, path: Any) -> Any:
    """A lazy scan of Parquet files: one, a folder of them, or a pattern."""
    import polars as pl

    where = Path(path).expanduser()
    if not where.exists() and not any(sign in str(path) for sign in "*?[:"):
        raise InputError(f"{who}: no file {str(path)!r}; give a Parquet file, a folder or a pattern of them.")
    scan = pl.scan_parquet(where if where.exists() else path)
    try:
        scan.collect_schema()
    except (OSError, pl.exceptions.PolarsError) as error:
        raise FormatError(
            f"{who}: {str(path)!r} cannot be read as Parquet ({error}); write the log as Parquet, or read it with "
            "ol.read."
        ) from error
    return scan


def _ids(who: str, frame: Any, names: Mapping[str, str]) -> list[Any]:
    schema, found = frame.collect_schema(), list[Any]()
    for side in PAIR:
        kind = schema[names[side]]
        if kind.is_integer():
            target: Any = nw.Int64()
        elif kind in (nw.String, nw.Categorical, nw.Enum):
            target = nw.String()
        else:
            raise InputError(
                f"{who}: {side} ids in column {names[side]!r} must be integers or text, got {kind}; cast them."
            )
        _refuse_wide(who, frame, names[side])
        found.append(nw.col(names[side]).cast(target).alias(side[0]))
    return found


def _refuse_wide(who: str, frame: Any, column: str) -> None:
    """Refuse ids that no cast to 64 signed bits keeps, by a query where the column's type may hold some."""
    if (wide := too_wide(frame, column)) is None:
        return
    number = only_row(frame.select(flag(wide).alias("wide")).select(nw.col("wide").sum()))["wide"]
    if number:
        raise InputError(
            f"{who}: {number:,.0f} ids in column {column!r} do not fit 64 signed bits; cast the column to text."
        )


def _number(who: str, frame: Any, column: str, error: type[InputError]) -> Any:
    kind = frame.collect_schema()[column]
    if not (kind.is_numeric() or kind == nw.Boolean):
        raise error(f"{who}: column {column!r} must hold numbers, got {kind}; cast it.")
    return nw.col(column).cast(nw.Float64())


def _facts(who: str, rows: Any, wrong: Mapping[str, Any], names: Mapping[str, str]) -> tuple[int, float]:
    """How many rows there are and the largest weight, by one query that also counts what is refused."""
    bad = {"u": nw.col("u").is_null(), "i": nw.col("i").is_null(), **wrong}
    flags = {f"bad_{key}": flag(x) for key, x in bad.items()}
    sums = [nw.col(name).sum() for name in (*flags, "n")]
    found = only_row(rows.select("w", n=nw.lit(1.0), **flags).select(*sums, nw.col("w").max()))
    n = int(found["n"] or 0)
    if not n:
        raise EmptyError(f"{who}: the frame has no rows.")
    for key in bad:
        if number := found[f"bad_{key}"]:
            error, role, what = WRONG[key]
            raise error(
                f"{who}: {number:,.0f} of {n:,} rows have {what} in column {names[role]!r}; drop or repair them."
            )
    return n, float(found["w"])
