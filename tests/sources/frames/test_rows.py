"""Expressions on a joined frame: counts of scores above and tied, and sums in several passes."""

from __future__ import annotations

import narwhals as nw
import numpy as np
import polars as pl
import pytest

from openloop.sources.frames import rows as frame_rows
from openloop.sources.frames.rows import reduce, with_scores
from openloop.support.frames import collected
from tests.engines import EAGER, converter

ONE = pl.DataFrame({"u": [1] * 6, "i": range(6), "s0": [0.9, 0.5, 0.5, 0.5, 0.1, 0.1]})


def opened(frame, engine):
    native = converter(engine)(frame)
    return nw.from_native(pl.DataFrame(native).lazy() if engine == "pyarrow" else native)


@pytest.mark.parametrize("engine", EAGER)
def test_tied_scores_are_counted(engine):
    found = collected(with_scores(opened(ONE, engine), 0)).sort("i")
    np.testing.assert_array_equal(found["h0"].to_numpy(), [0, 1, 1, 1, 4, 4])
    np.testing.assert_array_equal(found["e0"].to_numpy(), [1, 3, 3, 3, 2, 2])


@pytest.mark.parametrize("engine", EAGER)
def test_wide_sums_are_taken_in_several_passes(engine, monkeypatch):
    monkeypatch.setattr(frame_rows, "MAX_COLUMNS", 3)
    frame = opened(pl.DataFrame({"u": [2, 1, 2], "stratum": [0, 1, 1], "x": [1.0, 2.0, 4.0]}), engine)
    columns = {("x", j): nw.col("x") * float(j) for j in range(7)}
    found = reduce(frame, columns, 2)
    np.testing.assert_array_equal(found.ids, [1, 2])
    for j in range(7):
        np.testing.assert_allclose(found.sums["x", j], np.array([[0, 2], [1, 4]]) * j)


def test_users_without_a_row_have_zero_sums():
    frame = opened(pl.DataFrame({"u": [5, 3], "x": [1.0, 2.0]}), "polars")
    found = reduce(frame, {("x",): nw.col("x")}, 1).on(np.array([3, 4, 5]), 4)
    np.testing.assert_array_equal(found["x",], [[2], [0], [1], [0]])
