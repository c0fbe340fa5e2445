"""Small questions to frames of every engine, and small tables beside them."""

from __future__ import annotations

import narwhals as nw
import numpy as np
import polars as pl
import pytest

from openloop.support.frames import (
    absent,
    collected,
    flag,
    is_frame,
    lazy,
    looked_up,
    only_row,
    rows,
    table_beside,
    times,
)
from tests.engines import EAGER, converter

ROWS = pl.DataFrame({"k": ["a", "b", "a", "c"], "x": [1.0, None, float("inf"), 4.0]})


def test_frames_are_known_from_all_else():
    assert all(is_frame(converter(engine)(ROWS)) for engine in EAGER)
    assert not any(map(is_frame, ([1, 2], np.eye(2), "log.csv", None, {"k": [1]})))


@pytest.mark.parametrize("engine", EAGER)
def test_small_questions(engine):
    frame = lazy(converter(engine)(ROWS))
    assert rows(frame) == 4
    gaps = frame.select(flag(absent(nw.col("x"))).alias("gaps"))
    assert only_row(gaps.select(nw.col("gaps").sum())) == {"gaps": 2}
    table = collected(times(frame, ("k",)))
    assert dict(zip(table["k"].to_list(), table["times"].to_list(), strict=True)) == {"a": 2, "b": 1, "c": 1}


@pytest.mark.parametrize("engine", EAGER)
def test_a_small_table_is_joined_where_the_rows_are(engine):
    frame = lazy(converter(engine)(ROWS))
    small = table_beside(frame, {"k": ["a", "b"], "z": np.array([0.5, 0.25])})
    found = collected(looked_up(frame, small, "k"))
    z = found["z"].cast(nw.Float64()).fill_null(-1.0).to_list()
    assert sorted(zip(found["k"].to_list(), z, strict=True)) == [("a", 0.5), ("a", 0.5), ("b", 0.25), ("c", -1.0)]
