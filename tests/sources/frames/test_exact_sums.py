from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from openloop.sources.frames.exact_sums import exact_tally

SUM = {"x": ("x", "sum")}


def _rows(n, scale=1.0):
    rng = np.random.default_rng(1)
    return pl.DataFrame({"u": rng.integers(0, 20, n), "x": scale * rng.normal(size=n)})


@pytest.mark.parametrize("scale", [1.0, 1e-9, 1e-200, 1e12, 1e200])
def test_any_order_of_rows_gives_the_same_bits(scale):
    rows = _rows(5_000, scale)
    found = [exact_tally([rows.sample(fraction=1, shuffle=True, seed=s).lazy()], SUM, ["u"], "n") for s in range(4)]
    assert all(table.equals(found[0]) for table in found)
    sums = {u: math.fsum(own["x"]) for (u,), own in rows.group_by("u")}
    assert found[0]["u"].to_list() == sorted(sums)
    assert found[0]["x"].to_list() == pytest.approx([sums[u] for u in sorted(sums)], rel=1e-14)
    assert found[0]["n"].sum() == len(rows)


def test_floats_of_many_threads_differ_in_the_last_bits():
    """What this is for: without it, 200,000 rows in another order have another sum."""
    rows = _rows(200_000)
    found = {rows.sample(fraction=1, shuffle=True, seed=s)["x"].sum() for s in range(5)}
    assert len(found) > 1
    assert len({exact_tally([rows.sample(fraction=1, shuffle=True, seed=s).lazy()], SUM, [], None)["x"][0]
                for s in range(5)}) == 1  # fmt: skip


@given(st.lists(st.floats(-1e300, 1e300), max_size=30))
def test_sums_are_those_of_exact_arithmetic(values):
    found = exact_tally([pl.LazyFrame({"x": pl.Series(values, dtype=pl.Float64)})], SUM, [], "n").row(0)
    largest = max(map(abs, values), default=0.0)
    assert found[0] == pytest.approx(math.fsum(values), rel=1e-15, abs=30 * max(largest, 2.0**-20) * 2.0**-60)
    assert found[1] == len(values)


def test_what_is_not_finite_stays_so_and_missing_values_count_for_nothing():
    rows = pl.LazyFrame(
        {"x": [1.0, math.inf, None], "y": [1.0, None, 2.0], "z": pl.Series([None] * 3, dtype=pl.Float64)}
    )
    totals = {name: (name, "sum") for name in "xyz"} | {"low": ("y", "min"), "high": ("y", "max")}
    assert exact_tally([rows], totals, [], None).row(0) == (math.inf, 3.0, 0.0, 1.0, 2.0)


def test_no_rows():
    rows = pl.LazyFrame(schema={"u": pl.Int64, "x": pl.Float64})
    assert exact_tally([rows], SUM, [], "n").rows() == [(0.0, 0)]
    assert exact_tally([rows], SUM, ["u"], "n").height == 0


@pytest.mark.parametrize("huge", [1e12, 1e30, 1e77, 1e200])
def test_small_values_are_not_lost_beside_a_huge_one(huge):
    rows = pl.DataFrame({"u": [0, 1, 1, 2], "x": [huge, 0.1, 0.2, -1e-3]})
    found = exact_tally([rows.lazy()], SUM, ["u"], None)["x"].to_list()
    assert found == pytest.approx([huge, 0.1 + 0.2, -1e-3], rel=1e-15)


@pytest.mark.parametrize("scale", [1.0, 1e-9, 1e12])
@pytest.mark.parametrize("by", [["u"], []])
def test_rows_in_several_frames_have_the_bits_of_one(scale, by):
    rows = _rows(2_000, scale).with_columns(x=pl.col("x") * pl.when(pl.col("u") > 12).then(1e6).otherwise(1.0))
    totals = {**SUM, "low": ("x", "min"), "high": ("x", "max")}
    whole = exact_tally([rows.lazy()], totals, by, "n")
    ranges = [rows.filter(pl.col("u").is_between(low, low + 4)).lazy() for low in range(0, 20, 5)]
    assert exact_tally(ranges, totals, by, "n").equals(whole)
    if by:
        assert exact_tally(ranges, totals, by, "n", apart=True).equals(whole)
    anyhow = [rows[at::3].lazy() for at in range(3)]
    assert exact_tally(anyhow, totals, by, "n").equals(whole)
