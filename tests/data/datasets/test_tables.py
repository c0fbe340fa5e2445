"""Typed columns of comma-separated files."""

from __future__ import annotations

import polars as pl
import pytest

from openloop.data.datasets import tables
from openloop.errors import ColumnError, FormatError


def test_columns_have_the_asked_types(tmp_path):
    (tmp_path / "a.csv").write_text("x,y,z\n1,2,a\n3,4.5,b\n")
    rows = tables.columns(tmp_path / "a.csv", {"y": pl.Float64, "x": pl.Int64})
    assert rows.rows() == [(2.0, 1), (4.5, 3)]


def test_scanning_keeps_the_other_columns(tmp_path):
    (tmp_path / "a[1].csv").write_text("x,z\n1,a\n")
    assert tables.scan(tmp_path / "a[1].csv", {"x": pl.Float64}).collect().rows() == [(1.0, "a")]


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("x,z\n1,2\n", ColumnError, r"must have a column 'y', has 'x', 'z'"),
        ("y\nsix\n", FormatError, r"line 2 must have a number as y, and has 'six'; fetch"),
        ("x,y\n1,2\n1,\n", FormatError, r"line 3 must have a number as y, and has ''"),
        ("x,y\n1,2\n1\n", FormatError, r"line 3 has 1 field, the first has 2 .*: '1'; fetch"),
        ("y,x,z\n1,2,3\n1,3\n", FormatError, r"line 3 has 2 fields, the first has 3"),
        ("y,x\n1,2\n\n1,2,3\n", FormatError, r"line 4 has 3 fields, the first has 2"),
        ("y\n", FormatError, r"must hold rows below its header, and has none"),
        ("", FormatError, r"must hold numbers"),
    ],
)
def test_what_is_missing_or_no_number_is_refused(tmp_path, text, error, message):
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(error, match=message):
        tables.columns(tmp_path / "a.csv", {"y": pl.Float64})


def test_lines_are_counted_before_a_file_is_scanned(tmp_path):
    (tmp_path / "a.csv").write_text("x,y,z\n1,2,3\n1,2\n")
    with pytest.raises(FormatError, match=r"a.csv: line 3 has 2 fields, the first has 3"):
        tables.scan(tmp_path / "a.csv", {"x": pl.Int64})


def test_empty_fields_are_for_the_columns_that_may_have_them(tmp_path):
    (tmp_path / "a.csv").write_text("x,y\n1,\n")
    types = {"x": pl.Int64, "y": pl.Float64}
    assert tables.columns(tmp_path / "a.csv", types, gaps=("y",)).rows() == [(1, None)]
