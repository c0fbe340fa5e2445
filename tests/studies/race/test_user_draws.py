"""Resampling users: intervals that cover, differences that are paired, p-values that Holm adjusts."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from openloop.errors import InputError
from openloop.studies.race.measures import MeanForm
from openloop.studies.race.user_draws import Resampled, adjusted, resampled, user_draws
from tests.facts import facts


def of_users(values):
    return MeanForm(np.asarray(values, float), np.ones(len(values)))


def test_the_first_count_is_the_users_as_they_are_and_every_draw_has_as_many():
    counts = user_draws(30, 50, np.random.default_rng(0))
    assert counts.shape == (51, 30)
    assert (counts[0] == 1).all()
    assert (counts.sum(axis=1) == 30).all()


def test_the_interval_is_that_of_the_mean():
    x = np.random.default_rng(1).normal(size=400)
    found = resampled([of_users(x)], user_draws(400, 4000, np.random.default_rng(2)))
    assert found.value == pytest.approx(x.mean())
    assert found.half == pytest.approx(1.96 * x.std() / 20, rel=0.05)
    low, high = found.interval
    assert low < found.value < high


def test_intervals_cover_as_often_as_they_say():
    rng, covered = np.random.default_rng(3), 0
    for _ in range(200):
        x = rng.exponential(size=150)
        low, high = resampled([of_users(x)], user_draws(150, 300, rng)).interval
        covered += low <= 1 <= high
    assert 176 <= covered <= 198  # binomial(200, .94): 188 ± 3.4 deviations


def test_differences_are_paired():
    rng = np.random.default_rng(4)
    counts, x = user_draws(100, 500, rng), rng.normal(size=100)
    a, b = (resampled([of_users(x + by)], counts) for by in (0.01, 0.0))
    low, high = (a - b).interval
    assert (low, high) == pytest.approx((0.01, 0.01))
    assert (a - b).pvalue < 1e-6
    assert a.half > 0.1


def test_fits_of_several_seeds_are_averaged_draw_by_draw():
    counts = user_draws(3, 20, np.random.default_rng(5))
    both = resampled([of_users([1, 2, 3]), of_users([3, 2, 1])], counts)
    assert both.values == pytest.approx(np.full(21, 2.0))


def test_a_pvalue_is_that_of_students_test_where_users_are_many():
    x = np.random.default_rng(6).normal(0.06, 1, size=1000)
    found = resampled([of_users(x)], user_draws(1000, 4000, np.random.default_rng(7)))
    assert found.pvalue == pytest.approx(stats.ttest_1samp(x, 0).pvalue, rel=0.15)


def test_what_does_not_vary_is_certain():
    assert Resampled(np.zeros(10)).pvalue == 1
    assert Resampled(np.ones(10)).pvalue == 0


def test_holm_multiplies_the_smallest_by_how_many_there_are():
    draws = np.random.default_rng(8).normal(size=1000)
    draws = (draws - draws.mean()) / draws.std(ddof=1)
    near, far = (Resampled(np.append(value, value + draws)) for value in (1.0, 2.5))
    alone = {1.0: 0.31731, 2.5: 0.012419}  # 2Φ(−z)
    assert adjusted({"a": near, "b": far, "c": far}) == pytest.approx(
        {"a": alone[1.0], "b": 3 * alone[2.5], "c": 3 * alone[2.5]}, rel=1e-3
    )


def test_nothing_to_average_is_refused():
    with pytest.raises(InputError, match=facts("resampled", "no")):
        resampled([], np.ones((1, 2)))
