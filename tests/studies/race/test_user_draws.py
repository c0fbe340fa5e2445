"""Resampling users: intervals that cover, differences that are paired, p-values that Holm adjusts."""

from __future__ import annotations

import numpy as np
import pytest

from openloop.studies.race.measures import MeanForm
from openloop.studies.race.user_draws import Resampled, adjusted, resampled, user_draws


def of_users(values):
    return MeanForm(np.asarray(values, float), np.ones(len(values)))


def test_the_interval_is_that_of_the_mean():
    x = np.random.default_rng(1).normal(size=400)
    found = resampled([of_users(x)], user_draws(400, 4000, np.random.default_rng(2)))
    assert found.value == pytest.approx(x.mean())
    assert found.half == pytest.approx(1.96 * x.std() / 20, rel=0.05)
    low, high = found.interval
    assert low < found.value < high


def test_differences_are_paired():
    rng = np.random.default_rng(4)
    counts, x = user_draws(100, 500, rng), rng.normal(size=100)
    a, b = (resampled([of_users(x + by)], counts) for by in (0.01, 0.0))
    low, high = (a - b).interval
    assert (low, high) == pytest.approx((0.01, 0.01))
    assert (a - b).pvalue < 1e-6
    assert a.half > 0.1


def test_holm_multiplies_the_smallest_by_how_many_there_are():
    draws = np.random.default_rng(8).normal(size=1000)
    draws = (draws - draws.mean()) / draws.std(ddof=1)
    near, far = (Resampled(np.append(value, value + draws)) for value in (1.0, 2.5))
    alone = {1.0: 0.31731, 2.5: 0.012419}  # 2Φ(−z)
    assert adjusted({"a": near, "b": far, "c": far}) == pytest.approx(
        {"a": alone[1.0], "b": 3 * alone[2.5], "c": 3 * alone[2.5]}, rel=1e-3
    )
