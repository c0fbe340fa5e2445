"""Ratings at the door: which columns, which ids, and what is refused, on Polars; Spark's are with its blocks."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import polars as pl
import pytest

import openloop as ol
from openloop.errors import FormatError, InputError, RatingError
from openloop.learners.blocks.ratings import open_ratings
from tests.engines import EAGER, converter
from tests.facts import facts

FRAME = pl.DataFrame({"user": [2, 1, 1], "item": ["b", "b", "a"], "rating": [3, 4, 5], "w": [1.0, 4.0, 2.0]})


@pytest.mark.parametrize("engine", EAGER)
def test_every_engine_gives_the_same_table(engine):
    table = open_ratings("MF", converter(engine)(FRAME), {"sample_weight": "w"})
    assert (table.rows, table.heaviest, table.spark) == (3, 4.0, False)
    assert table.kinds == {"user": "integers", "item": "text"}
    assert table.names == {"user": "user", "item": "item", "rating": "rating", "sample_weight": "w"}
    assert table.distinct("i").tolist() == ["a", "b"]
    found = table.frame.collect().to_polars().sort("u", "i")
    assert found.rows() == [(1, "a", 5.0, 2.0), (1, "b", 4.0, 4.0), (2, "b", 3.0, 1.0)]


def test_files_are_scanned(tmp_path):
    for k in range(2):
        FRAME.with_columns(pl.col("user") + k).write_parquet(tmp_path / f"{k}.parquet")
    assert open_ratings("MF", tmp_path / "0.parquet", {}).rows == 3
    assert open_ratings("MF", str(tmp_path), {}).rows == 6
    assert open_ratings("MF", f"{tmp_path}/*.parquet", {}).rows == 6
    with pytest.raises(InputError, match=facts("none.parquet")):
        open_ratings("MF", tmp_path / "none.parquet", {})
    FRAME.write_csv(tmp_path / "log.csv")
    (tmp_path / "empty").mkdir()
    for path in (tmp_path / "log.csv", tmp_path / "empty", f"{tmp_path}/*.none"):
        with pytest.raises(
            FormatError, match=facts("MF", path.name if isinstance(path, Path) else "*.none", "Parquet")
        ):
            open_ratings("MF", path, {})


def test_p_gives_weights():
    table = open_ratings("MF", FRAME.with_columns(p=1 / pl.col("w")), {"propensities": "p"})
    assert table.heaviest == 4.0


def test_ids_of_several_types_are_refused():
    mixed = FRAME.to_pandas().assign(user=pd.Series([1, "1", 2], dtype=object))
    with pytest.raises(InputError, match=facts("MF", "cast")):
        open_ratings("MF", mixed, {})
    with pytest.raises(InputError, match=facts("'user'", "mixes", "text")):
        ol.evaluate({"m": "w"}, mixed, metrics=["mae"], estimators=["naive"])


@pytest.mark.parametrize(
    ("column", "values", "error", "told"),
    [
        ("user", [1, None, 2], InputError, ("user", 1, 3)),
        ("rating", [1.0, float("nan"), 2.0], RatingError, ("rating", 1, 3)),
        ("w", [1.0, 0.0, -1.0], InputError, ("w", 2, 3)),
        ("w", [1.0, None, 1.0], InputError, ("w", 1, 3)),
        ("user", [1.5, 2.5, 3.5], InputError, ("user", "Float64")),
        ("rating", ["1", "2", "3"], RatingError, ("rating", "String")),
    ],
)
def test_values_that_are_refused(column, values, error, told):
    with pytest.raises(error, match=facts("MF", *told)):
        open_ratings("MF", FRAME.with_columns(pl.Series(column, values)), {"sample_weight": "w"})
