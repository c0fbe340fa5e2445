"""Dataframes of any engine as tables: columns are selected where they live, then become Polars."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from uuid import UUID

import narwhals as nw
import polars as pl

from openloop.data.columns import InputTable, in_one, stream
from openloop.errors import ColumnError, InputError, MissingPackageError, OpenloopError, listing, quoted
from openloop.support.forking import forks
from openloop.support.frames import on_spark
from openloop.support.system_errors import system_error

ROWS = 1_000_000  # of a batch, where all are wanted


def open_frame(source: Any) -> InputTable:
    """The table in a Polars, pandas, PyArrow, DuckDB or PySpark frame, or another that narwhals or Arrow knows."""
    forks.refuse()
    try:
        frame = nw.from_native(source)
    except TypeError:
        return _open_arrow(source)
    except nw.exceptions.DuplicateError as error:
        raise _repeated(" ".join(str(error).split("\n")[1:])) from error
    with _querying():
        names = [str(label) for label in frame.collect_schema().names()]  # pandas may name columns 0, 1, 2

    def batches(columns: Sequence[str], size: int | None) -> Iterator[pl.DataFrame]:
        return _named(_batches(frame, [names.index(c) for c in columns], size), columns)

    return InputTable("source", names, batches, frame=frame.to_native() if on_spark(frame) else None)


def _repeated(names: str) -> ColumnError:
    return ColumnError(f"source: column names must be distinct, and these are not: {names}; rename them.")


def _named(pieces: Iterator[pl.DataFrame], columns: Sequence[str]) -> Iterator[pl.DataFrame]:
    with _querying():
        for piece in pieces:
            yield piece.rename(dict(zip(piece.columns, columns, strict=True)))


@contextmanager
def _querying() -> Generator[None]:
    """What an engine says of a query that fails is an error of the source; a disk or memory that is full is not."""
    try:
        yield
    except (OpenloopError, MemoryError):
        raise
    except Exception as error:
        if system_error(error) is not None:
            raise
        reason = (str(error).strip() or "no reason").splitlines()[0]
        raise InputError(
            f"source: reading its rows raised {type(error).__name__}: {reason}; repair the frame's query."
        ) from error


def _batches(frame: Any, positions: Sequence[int], size: int | None) -> Iterator[pl.DataFrame]:
    chosen = frame.select(*(nw.nth(p) for p in positions))
    if size is not None and chosen.implementation.is_duckdb():
        yield from _from_arrow(chosen.to_native().to_arrow_reader(size))
    elif size is not None and isinstance(chosen.to_native(), pl.LazyFrame):
        yield from stream(chosen.to_native(), size)
    else:
        yield _collected(chosen)


def _collected(frame: Any) -> pl.DataFrame:
    try:
        eager = frame.collect("polars") if isinstance(frame, nw.LazyFrame) else frame
    except ModuleNotFoundError as error:
        msg = f"source: collecting this frame needs {error.name}; pip install {error.name}."
        raise MissingPackageError(msg) from error
    return pl.DataFrame([_series(column).alias(f"{k}") for k, column in enumerate(eager.iter_columns())])


def _series(column: nw.Series[Any]) -> pl.Series:
    if column.dtype == nw.Object:
        return _from_objects(column)
    try:
        return column.to_polars()
    except (ImportError, AttributeError):  # pandas text without PyArrow
        return _from_objects(column)


def _from_objects(column: nw.Series[Any]) -> pl.Series:
    values = (None if gone else v for v, gone in zip(column.to_list(), column.is_null(), strict=True))
    return listed(values, f"column {quoted(column.name)}")


def listed(values: Any, what: str = "a column") -> pl.Series:
    """A Series of Python values of one kind; UUIDs become their text."""
    plain = [str(v) if isinstance(v, UUID) else v for v in values]
    kinds = sorted({type(v).__name__ for v in plain if v is not None})
    try:
        return pl.Series(plain, dtype=pl.Float64 if kinds == ["float", "int"] else None)
    except UnicodeEncodeError as error:
        msg = f"source: id {quoted(error.object)} holds half of a surrogate pair, which is not text; repair it."
        raise InputError(msg) from error
    except (TypeError, OverflowError, pl.exceptions.PolarsError) as error:
        msg = f"source: {what} mixes {' and '.join(kinds)}; make its values all integers or all text."
        raise InputError(msg) from error


# -- streams of Arrow batches ------------------------------------------------------------------------------------


def _open_arrow(source: Any) -> InputTable:
    """The table in a dataset of pyarrow, or in a stream of Arrow batches, which can be read once."""
    is_dataset = hasattr(source, "scanner")
    streams = [] if is_dataset else [_stream(source)]
    names: list[str] = (source if is_dataset else streams[0]).schema.names
    if len(set(names)) < len(names):
        raise _repeated(listing(sorted({name for name in names if names.count(name) > 1})))

    def batches(columns: Sequence[str], size: int | None) -> Iterator[pl.DataFrame]:
        if is_dataset:
            reader = source.scanner(columns=list(columns), batch_size=size or ROWS).to_reader()
        elif streams:
            reader = streams.pop()
        else:
            raise InputError("source: a stream of Arrow batches can be read once, and this one was; pass a table.")
        return in_one(_named((piece.select(columns) for piece in _from_arrow(reader)), columns), size)

    return InputTable("source", names, batches)


def _stream(source: Any) -> Any:
    import pyarrow as pa

    try:
        return pa.RecordBatchReader.from_stream(source)
    except (TypeError, pa.ArrowInvalid) as error:  # ArrowInvalid: of an array, not of a table
        raise InputError(
            f"source: {type(source).__name__} is neither a path nor a dataframe; pass a path, or a Polars, "
            "pandas, PyArrow, DuckDB or PySpark frame."
        ) from error


def _from_arrow(reader: Any) -> Iterator[pl.DataFrame]:
    """The batches of a pyarrow reader, the first of which is empty."""
    yield pl.DataFrame(reader.schema.empty_table())
    for batch in reader:
        yield pl.DataFrame(batch)
