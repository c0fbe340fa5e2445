"""Users are dealt to clusters alike on every engine, evenly whatever their ids, and without a window over all."""

from __future__ import annotations

import narwhals as nw
import numpy as np
import polars as pl
import pytest

import openloop as ol
from openloop.sources.frames.dealing import Deal, dealt, text_numbers
from tests.engines import EAGER, converter

IDS = {
    "integers": pl.Series("u", [0, 1, 7, 100, -1, -5, 2**31 - 1, 2**31, 2**40 + 3], pl.Int64),
    "small": pl.Series("u", [0, 1, 100, -128, 127], pl.Int8),
    "unsigned": pl.Series("u", [0, 1, 2**31, 2**63 - 1], pl.UInt64),
    "text": pl.Series("u", ["", "a", "user 7", "Zoë", "7"]),
}


def opened(series, engine, spark=None):
    native = converter(engine, spark)(series.to_frame())
    return nw.from_native(pl.DataFrame(native).lazy() if engine == "pyarrow" else native)


def clusters(frame, groups=1000):
    table = dealt(frame, groups)
    table = table.collect() if isinstance(table, nw.LazyFrame) else table
    return dict(zip(table["u"].to_list(), table["cluster"].to_list(), strict=True))


def by_hand(ids, groups=1000):
    numbers = [int(n) for n in (text_numbers(ids.to_numpy()) if ids.dtype == pl.String else ids)]
    return {i: pow(n * 1_103_515_245 + 12_345, 5, 2**31 - 1) % groups for i, n in zip(ids, numbers, strict=True)}


@pytest.mark.parametrize("kind", IDS)
@pytest.mark.parametrize("engine", EAGER)
def test_every_engine_deals_alike(engine, kind):
    assert clusters(opened(IDS[kind], engine)) == by_hand(IDS[kind])


def test_spark_deals_alike_where_users_lie(spark):
    for kind in ("integers", "text"):
        frame = opened(IDS[kind], "spark", spark)
        assert clusters(frame) == by_hand(IDS[kind])
        plan = dealt(frame, 10).to_native()._jdf.queryExecution().executedPlan().toString()
        assert "Window" not in plan
        assert "Exchange" not in plan


@pytest.mark.parametrize(
    "ids",
    [
        np.arange(100_000),
        np.arange(100_000) * 100,
        np.arange(100_000) * 2**22,
        np.concatenate([np.arange(50_000), 10**12 + np.arange(50_000)]),
        np.array([f"user-{n:07d}" for n in range(100_000)]),
    ],
    ids=["dense", "hundreds", "shifted", "two ranges", "text"],
)
def test_clusters_are_as_even_as_luck_makes_them(ids):
    groups = 1000
    sizes = np.bincount(list(clusters(opened(pl.Series("u", ids), "polars"), groups).values()), minlength=groups)
    chi2 = float(((sizes - 100.0) ** 2 / 100.0).sum())  # of 999 degrees of freedom: mean 999, standard deviation 45
    assert 999 - 5 * 45 < chi2 < 999 + 5 * 45


def test_users_without_a_row_are_dealt_too():
    frame = dealt(nw.from_native(pl.DataFrame({"u": [1, 1, 2, 3]})), 4)
    excluded = dealt(nw.from_native(pl.DataFrame({"u": [3, 7, 8], "excluded": [1.0, 2.0, 1.0]})), 4)
    deal = Deal.of(frame, excluded, 4, 4000)
    assert deal.scored.sum() == 3
    assert deal.known.sum() == 5
    assert Deal.of(frame, None, 4, 4000).known.sum() == 3
    assert deal.users.sum() == 4000
    assert deal.users.min() > 900


def test_errors_over_clusters_are_those_over_users_also_where_half_of_them_have_no_row():
    rng = np.random.default_rng(0)
    user = np.repeat(np.arange(0, 6000, 2), 4)
    frame = pl.DataFrame({"user": user, "item": np.tile(np.arange(4), 3000), "p": rng.uniform(0.2, 0.8, len(user))})
    frame = frame.with_columns(rating=pl.Series(rng.integers(1, 6, len(user))), a=pl.lit(3.0), b=pl.lit(2.0))
    asked = {"metrics": ["mae"], "estimators": ["naive", "ips", "snips"], "population": (6000, 4)}
    whole, dealt_out = (ol.evaluate({"a": "a"}, frame, "p", max_users=n, **asked) for n in (10_000, 1000))
    for key, e in whole.estimates.items():
        assert dealt_out[key].value == pytest.approx(e.value, rel=1e-12)
        assert dealt_out[key].stderr == pytest.approx(e.stderr, rel=0.1), key  # of 1000 clusters: known to 2.2 %
    audited = ol.audit({"a": "a", "b": "b"}, frame, "p", metrics=["mae"], population=(6000, 4), max_users=1000)
    assert audited.result["a", "mae", "snips"].n_users == 1000
