"""Dataframes of any engine as tables: columns are selected where they live, then become Polars."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import narwhals as nw
import polars as pl

from openloop.data.columns import InputTable
from openloop.errors import ColumnError, InputError, MissingPackageError, quoted
from openloop.support.forking import forks


def open_frame(source: object) -> InputTable:
    """The table in a Polars, pandas, PyArrow, DuckDB or PySpark frame, or any other that narwhals knows."""
    forks.refuse()
    frame = _known(source)
    names = [str(label) for label in frame.collect_schema().names()]  # pandas may name columns 0, 1, 2
    return InputTable("source", names, lambda columns: _fetch(frame, [names.index(c) for c in columns], columns))


def _known(source: Any) -> Any:
    try:
        return nw.from_native(source)
    except TypeError as error:
        raise InputError(
            f"source: {type(source).__name__} is neither a path nor a dataframe; pass a path, or a Polars, "
            "pandas, PyArrow, DuckDB or PySpark frame."
        ) from error
    except nw.exceptions.DuplicateError as error:
        twice = " ".join(str(error).split("\n")[1:])
        raise ColumnError(f"source: column names must be distinct, and these are not: {twice}; rename them.") from error


def _fetch(frame: Any, positions: Sequence[int], columns: Sequence[str]) -> pl.DataFrame:
    chosen = frame.select(*(nw.nth(p) for p in positions))
    try:
        eager = chosen.collect("polars") if isinstance(chosen, nw.LazyFrame) else chosen
    except ModuleNotFoundError as error:
        msg = f"source: collecting this frame needs {error.name}; pip install {error.name}."
        raise MissingPackageError(msg) from error
    return pl.DataFrame([_series(s).alias(c) for s, c in zip(eager.iter_columns(), columns, strict=True)])


def _series(column: nw.Series[Any]) -> pl.Series:
    if column.dtype == nw.Object:
        return _from_objects(column)
    try:
        return column.to_polars()
    except (ImportError, AttributeError):  # pandas text without PyArrow
        return _from_objects(column)


def _from_objects(column: nw.Series[Any]) -> pl.Series:
    return listed(None if gone else v for v, gone in zip(column.to_list(), column.is_null(), strict=True))


def listed(values: Any) -> pl.Series:
    """A Series of Python values of one kind; UUIDs become their text."""
    plain = [str(v) if isinstance(v, UUID) else v for v in values]
    kinds = sorted({type(v).__name__ for v in plain if v is not None})
    try:
        return pl.Series(plain, dtype=pl.Float64 if kinds == ["float", "int"] else None)
    except UnicodeEncodeError as error:
        msg = f"source: id {quoted(error.object)} holds half of a surrogate pair, which is not text; repair it."
        raise InputError(msg) from error
    except (TypeError, OverflowError, pl.exceptions.PolarsError) as error:
        msg = f"source: a column mixes {' and '.join(kinds)}; make its values all integers or all text."
        raise InputError(msg) from error
