"""Sums are taken once each, with the base of their strata, and not where they are too large for the engine."""

from __future__ import annotations

import narwhals as nw
import numpy as np
import polars as pl
import pytest

from openloop.errors import InputError
from openloop.sources.frames import summing
from openloop.sources.frames.summing import TakenSums, Wanted
from tests.facts import facts

ROWS = pl.DataFrame({"u": [1, 1, 2, 5], "x": [1.0, 2.0, 4.0, 8.0], "stratum": [0, 1, 1, 0]})
STRATA = (2, "mass")


def taken(**options):
    frame = nw.from_native(ROWS).lazy()
    return TakenSums(
        rows_for=lambda kind, _: frame if kind == "cell" else frame.filter(nw.col("u") < 5),
        n_strata=lambda strata: 1 if strata is None else 2, base_columns={("n",): nw.lit(1.0)}, order=lambda ids: ids,
        **({"users": 4, "rows": 4} | options),
    )  # fmt: skip


@pytest.fixture
def passes(monkeypatch):
    """How many columns each pass sums."""
    found, plain = [], summing.reduce_all
    monkeypatch.setattr(
        summing, "reduce_all", lambda asked: found.extend(len(p.columns) for p in asked) or plain(asked)
    )
    return found


def test_what_was_summed_is_not_summed_again(passes):
    sums = taken()
    for _ in range(2):
        sums.take({("user", STRATA): Wanted(by_user={("x",): nw.col("x")}, in_total={("y",): nw.col("x") * 2.0})})
    assert sorted(passes) == [1, 1, 1]  # by user, in total, and the base
    found = sums.of(("user", STRATA), 4)
    np.testing.assert_array_equal(found["x",], [[1, 2], [0, 4], [0, 0], [0, 0]])  # users 1, 2, 5 and one without a row
    np.testing.assert_array_equal(found["y",], [[2, 12]])


def test_the_base_without_strata_is_the_sum_of_any(passes):
    sums = taken()
    np.testing.assert_array_equal(sums.base(STRATA).sums["n",], [[1, 1], [0, 1], [1, 0]])
    np.testing.assert_array_equal(sums.base(None).sums["n",], [[2], [1], [1]])
    assert passes == [1]


def test_sums_that_an_engine_would_not_give_out_are_refused(monkeypatch):
    monkeypatch.setattr(summing, "result_limit", lambda _: 3 * 3 * 8)
    taken().base(None)  # three users with a row, three columns
    with pytest.raises(InputError, match=facts("3 users", "2 strata", "spark.driver.maxResultSize", "max_users=")):
        taken(rows=100).base(STRATA)
