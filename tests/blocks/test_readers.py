"""Readers: every source gives the same rows, in its order, once, in pieces of one size."""

from __future__ import annotations

import gzip
import shutil

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pytest
from polars.io.plugins import register_io_source

import openloop as ol
from openloop.blocks.readers import batches
from openloop.data.delimited import TextForm
from openloop.data.formats import open_source
from openloop.errors import ColumnError, EmptyError, FormatError, InputError
from tests.facts import facts

N = 250
LOG = pl.DataFrame({
    "item": [f"é{row % 11}" for row in range(N)], "user": [row * 7919 % 37 for row in range(N)],
    "rating": [0.5 * (row % 9) for row in range(N)], "other": range(N),
})  # fmt: skip
COLUMNS = ["user", "item", "rating"]
TYPES = LOG.select(COLUMNS).schema


class Stream:
    """A table that only Arrow's protocol knows; `reads` counts."""

    def __init__(self):
        self.reads = 0

    def __arrow_c_stream__(self, requested_schema=None):
        self.reads += 1
        return pa.RecordBatchReader.from_batches(arrow().schema, arrow().to_batches(7)).__arrow_c_stream__()


def arrow():
    return LOG.to_arrow(compat_level=pl.CompatLevel.oldest())


def text(path, separator=","):
    LOG.write_csv(path, separator=separator)
    return path


def zipped(path):
    with path.open("rb") as plain, gzip.open(f"{path}.gz", "wb") as packed:
        shutil.copyfileobj(plain, packed)
    return f"{path}.gz"


def parquet(path, rows=None):
    (LOG if rows is None else rows).write_parquet(path, row_group_size=40)
    return path


def lines(path):
    LOG.write_ndjson(path)
    return path


def folder(path):
    path = path.parent / "parts"
    path.mkdir()
    for part in range(4):
        parquet(path / f"part-{part}.parquet", LOG[part * 80 : part * 80 + 80])
    (path / "_SUCCESS").touch()
    (path / ".part-0.crc").touch()
    return path


SOURCES = {
    "eager": lambda _: LOG,
    "lazy": lambda _: LOG.lazy(),
    "pandas": lambda _: pd.DataFrame(LOG.to_dict(as_series=False)),
    "arrow": lambda _: arrow(),
    "batches": lambda _: pa.RecordBatchReader.from_batches(arrow().schema, arrow().to_batches(7)),
    "stream": lambda _: Stream(),
    "dataset": lambda path: pyarrow.dataset.dataset(parquet(path)),
    "duckdb": lambda _: duckdb.connect().from_arrow(arrow()),
    "parquet": parquet,
    "csv": lambda path: text(path.with_suffix(".csv")),
    "csv.gz": lambda path: zipped(text(path.with_suffix(".csv"))),
    "tsv": lambda path: str(text(path.with_suffix(".tsv"), "\t")),
    "json": lambda path: lines(path.with_suffix(".jsonl")),
    "json.gz": lambda path: zipped(lines(path.with_suffix(".jsonl"))),
    "folder": folder,
    "list": lambda path: [str(file) for file in sorted(folder(path).glob("*.parquet"))],
}


@pytest.mark.parametrize("size", [1, 100, 125, 10**6])
@pytest.mark.parametrize("kind", SOURCES)
def test_every_source_gives_its_rows_in_order(kind, size, tmp_path):
    table = open_source(SOURCES[kind](tmp_path / "log.parquet"), {})
    pieces = list(batches(table, COLUMNS, size))
    rows = pl.concat(pieces)
    assert [piece.height for piece in pieces] == [size] * (N // size) + [N % size] * (N % size > 0)
    assert rows.cast(dict(TYPES)).equals(LOG.select(COLUMNS))
    assert rows.schema == (dict.fromkeys(COLUMNS, pl.String) if table.text else TYPES)


@pytest.mark.parametrize("kind", SOURCES)
def test_all_rows_at_once_are_the_same(kind, tmp_path):
    rows = open_source(SOURCES[kind](tmp_path / "log.parquet"), {}).fetch(COLUMNS)
    assert rows.cast(dict(TYPES)).equals(LOG.select(COLUMNS))


@pytest.mark.parametrize("kind", ["eager", "lazy", "pandas", "arrow", "dataset", "duckdb", "parquet", "csv"])
def test_a_source_without_rows_has_one_piece(kind, tmp_path, monkeypatch):
    monkeypatch.setattr(f"{__name__}.LOG", LOG.clear())
    form = TextForm(header=True) if kind == "csv" else TextForm()
    pieces = list(batches(open_source(SOURCES[kind](tmp_path / "log.parquet"), {}, form), COLUMNS))
    assert [(piece.columns, piece.height) for piece in pieces] == [(COLUMNS, 0)]


# -- once --------------------------------------------------------------------------------------------------------


def test_a_query_runs_once():
    runs = []

    def rows(columns, predicate, n_rows, batch_size):
        runs.append(columns)
        return iter([LOG[:100].select(columns), LOG[100:].select(columns)])

    query = register_io_source(rows, schema=LOG.schema)
    assert sum(piece.height for piece in batches(open_source(query, {}), COLUMNS, 30)) == N
    assert [sorted(columns) for columns in runs] == [sorted(COLUMNS)]


def test_a_stream_is_read_once_and_not_again():
    source = Stream()
    table = open_source(source, {})
    assert sum(piece.height for piece in batches(table, COLUMNS)) == N
    assert source.reads == 1
    with pytest.raises(InputError, match=facts("once", "table")):
        next(batches(table, COLUMNS))


# -- refused -----------------------------------------------------------------------------------------------------


def test_columns_of_one_name_are_refused():
    doubled = pa.RecordBatchReader.from_batches(pa.schema([("u", pa.int64())] * 2), [])
    with pytest.raises(ColumnError, match=facts("distinct", "u")):
        open_source(doubled, {})


def test_a_column_of_pandas_has_one_kind_in_all_pieces():
    mixed = open_source(pd.DataFrame({"u": [1] * 5 + ["a"] * 5}, dtype=object), {})
    with pytest.raises(InputError, match=facts("mixes", "int", "str")):
        next(batches(mixed, ["u"], 5))


def test_a_line_with_too_few_fields_is_refused_in_any_piece(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("user,item,rating\n" + "1,2,3\n" * 500 + "1,2\n" + "1,2,3\n" * 500)
    with pytest.raises(FormatError, match=facts("line 502", "2 fields")):
        list(batches(open_source(path, {}), ["user"], 100))


def test_blank_lines_are_no_rows(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("user,item,rating\n" + "1,2,3\n\n" * 100)
    assert sum(piece.height for piece in batches(open_source(path, {}), ["user"], 30)) == 100


# -- several files -------------------------------------------------------------------------------------------------


def files(tmp_path, *frames):
    for number, frame in enumerate(frames):
        frame.write_parquet(tmp_path / f"{number}.parquet")
    return open_source(tmp_path, {})


def test_numbers_of_two_types_and_columns_in_another_order_are_joined(tmp_path):
    table = files(tmp_path, pl.DataFrame({"u": [1], "r": [2]}), pl.DataFrame({"r": [2.5], "u": [3]}))
    expected = pl.DataFrame({"u": [1, 3], "r": [2.0, 2.5]})
    assert pl.concat(batches(table, ["u", "r"])).equals(expected)
    assert table.fetch(["u", "r"]).equals(expected)


@pytest.mark.parametrize("other", [{"u": ["1"], "r": [2]}, {"u": [1], "rating": [2]}])
def test_files_that_differ_are_refused_by_name(tmp_path, other):
    table = files(tmp_path, pl.DataFrame({"u": [1], "r": [2]}), pl.DataFrame(other))
    with pytest.raises(InputError, match=facts(tmp_path / "0.parquet", tmp_path / "1.parquet", "same")):
        list(batches(table, ["u", "r"]))


def test_formats_are_not_mixed_and_a_folder_needs_files(tmp_path):
    with pytest.raises(InputError, match=facts(tmp_path, "without files")):
        open_source(tmp_path, {})
    table = open_source([parquet(tmp_path / "log.parquet"), text(tmp_path / "log.csv")], {})
    with pytest.raises(InputError, match=facts(tmp_path / "log.csv", "one format")):
        list(batches(table, COLUMNS))


# -- Spark -------------------------------------------------------------------------------------------------------


def test_spark_gives_all_rows(spark):
    pieces = list(batches(open_source(spark.createDataFrame(arrow()), {}), ["user", "other"], 100))
    assert [piece.height for piece in pieces] == [100, 100, 50]
    assert pl.concat(pieces).sort("other").equals(LOG.select("user", "other"))


# -- rows that cannot be had -------------------------------------------------------------------------------------


def broken_frames():
    """Queries of several engines that fail when they are looked at, or when they run."""
    rows = pl.DataFrame({"user": [1], "item": [2], "rating": [3.0]})
    yield "boom", duckdb.sql("select 1 as user, 2 as item, error('boom') as rating")
    yield "boom", rows.lazy().map_batches(fail)
    yield "stars", rows.lazy().with_columns(pl.col("stars"))
    schema = rows.to_arrow().schema
    yield "boom", pa.RecordBatchReader.from_batches(schema, (fail(batch) for batch in rows.to_arrow().to_batches()))


def fail(_rows):
    raise RuntimeError("boom")


def test_a_query_that_fails_is_an_error_of_its_source():
    for reason, frame in broken_frames():
        with pytest.raises(InputError, match=rf"source: reading its rows raised \w+: .*{reason}.*; repair the frame's"):
            list(batches(open_source(frame, {}, TextForm()), ["user", "item", "rating"]))


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_log_without_rows_is_refused_by_name(suffix, tmp_path):
    path, rows = tmp_path / f"empty.{suffix}", pl.DataFrame({"user": [1], "item": [2], "rating": [3.0]})
    getattr(rows.head(0), f"write_{suffix}")(path)
    scores = rows.select("user", "item", score="rating")
    with pytest.raises(EmptyError, match=rf"{path}: no rows; an estimate needs"):
        ol.evaluate({"m": scores}, ol.scan(path), metrics=["mae"], estimators=["naive"])
    with pytest.raises(EmptyError, match="the log: no rows with a rating of positive=9 or more"):
        ol.evaluate({"m": scores}, ol.scan(rows, positive=9), metrics=["mae"], estimators=["naive"])
