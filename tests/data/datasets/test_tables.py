"""Typed columns of comma-separated files."""

from __future__ import annotations

import polars as pl
import pytest

from openloop.data.datasets import tables
from openloop.errors import ColumnError, FormatError
from tests.facts import facts


def test_columns_have_the_asked_types(tmp_path):
    (tmp_path / "a.csv").write_text("x,y,z\n1,2,a\n3,4.5,b\n")
    rows = tables.columns(tmp_path / "a.csv", {"y": pl.Float64, "x": pl.Int64})
    assert rows.rows() == [(2.0, 1), (4.5, 3)]


@pytest.mark.parametrize(
    ("text", "error", "told"),
    [
        ("x,z\n1,2\n", ColumnError, ("column 'y'", "'x', 'z'")),
        ("y\nsix\n", FormatError, ("line 2", "number", "y", "'six'")),
        ("x,y\n1,2\n1,\n", FormatError, ("line 3", "number", "y", "''")),
        ("x,y\n1,2\n1\n", FormatError, ("line 3", "1 field", 2, "'1'")),
        ("y,x,z\n1,2,3\n1,3\n", FormatError, ("line 3", "2 fields", "'1,3'")),
        ("y,x\n1,2\n\n1,2,3\n", FormatError, ("line 4", "3 fields", 2, "'1,2,3'")),
        ("y\n", FormatError, ("rows", "header")),
        ("", FormatError, ("empty",)),
    ],
)
def test_what_is_missing_or_no_number_is_refused(tmp_path, text, error, told):
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(error, match=facts("a.csv", *told, "fetch")):
        tables.columns(tmp_path / "a.csv", {"y": pl.Float64})
