"""Estimates: errors, intervals and differences are arithmetic on every user's part."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

import openloop as ol
from openloop.core.estimate import Estimate
from openloop.core.totals import smooth
from openloop.core.weights import Diagnostics
from openloop.errors import AlignmentError, InputError, UndefinedError
from tests.examples import same
from tests.facts import facts

tables = arrays(float, st.tuples(st.integers(2, 20), st.just(2)), elements=st.floats(0.5, 50))


def mean_of(values, **fields):
    """The mean of plain numbers as an Estimate."""
    columns = np.column_stack([values, np.ones(len(values))]).astype(float)
    return of_function(lambda t: t[..., 0] / t[..., 1], columns, **fields)


def of_function(function, columns, **fields):
    value, _, influence = smooth(function, columns)
    names = {"method": "ips", "metric": "mae"} | fields
    return Estimate(value=value, influence=influence, columns=columns, function=function, **names)


def ratio_of(a, b, **fields):
    return of_function(lambda t: t[..., 0] / t[..., 1], np.column_stack([a, b]), **fields)


X = np.random.default_rng(0).normal(3, 1, 50)
Z = np.random.default_rng(1).normal(2, 1, 50)


# -- known answers -------------------------------------------------------------------------------------------


def test_a_mean_has_the_textbooks_error_interval_and_p_value():
    found, t = mean_of(X), stats.ttest_1samp(X, 0)
    assert found.value == pytest.approx(X.mean())
    assert found.stderr == pytest.approx(X.std(ddof=1) / math.sqrt(50))
    same(found.interval(0.9), t.confidence_interval(0.9))
    assert mean_of(X - 2.9).pvalue == pytest.approx(stats.ttest_1samp(X - 2.9, 0).pvalue)


def test_a_difference_is_the_paired_t_test():
    x, z = np.random.default_rng(3).uniform(1, 2, (2, 50)) * [[1.0], [0.2]]  # tails no heavier than the normal's
    found, t = mean_of(x) - mean_of(z), stats.ttest_rel(x, z)
    assert found.pvalue == pytest.approx(t.pvalue)
    same(found.interval(), t.confidence_interval())


def test_a_ratio_has_the_jackknifes_error():
    rng = np.random.default_rng(2)
    a, b = rng.uniform(1, 2, 80), rng.uniform(1, 3, 80)
    left = (a.sum() - a) / (b.sum() - b)  # without each user
    expected = math.sqrt(79 / 80 * np.sum((left - a.sum() / b.sum()) ** 2))
    found = ratio_of(a, b)
    assert found.stderr == pytest.approx(expected)
    linear = np.std(a - found.value * b, ddof=1) / math.sqrt(80) / b.mean()
    assert found.stderr == pytest.approx(linear, rel=0.02)  # the delta method's, to first order


def test_degrees_of_freedom_by_hand():
    # ψ of 12 users is ±1 but for one of ±3: Σψ² = 20, Σψ⁴ = 92, hence 3·400/92 − 1.
    psi = np.array([1.0, -1] * 5 + [3.0, -1])
    psi -= psi.mean()
    found = mean_of(psi + 4, denominator_users=100)
    effective = np.sum(psi**2) ** 2 / np.sum(psi**4)
    assert found.effective_users == pytest.approx(effective)
    assert found.largest_user_share == pytest.approx(np.max(psi**2) / np.sum(psi**2))
    assert found.df == pytest.approx(min(11, 3 * effective - 1))
    assert mean_of(psi + 4, denominator_users=3.5).df == pytest.approx(2.5)
    assert mean_of(psi + 4, denominator_users=1.1).df == 1


def test_the_uniform_samples_part_is_added_with_satterthwaites_degrees_of_freedom():
    plain, found = mean_of(X), mean_of(X, sample_effects=np.array([0.06, -0.08]), sample_size=20)
    v, w = plain.stderr**2, 0.01
    assert found.stderr == pytest.approx(math.sqrt(v + w))
    assert found.df == pytest.approx((v + w) ** 2 / (v**2 / plain.df + w**2 / 19))


# -- laws ----------------------------------------------------------------------------------------------------


@given(tables)
def test_a_difference_is_the_estimate_of_the_difference(columns):
    a, b, d = (mean_of(v) for v in (columns[:, 0], columns[:, 1], columns[:, 0] - columns[:, 1]))
    same((a - b).value, d.value)
    same((a - b).influence, d.influence, atol=1e-9)
    same((a - b).function((a - b).columns.sum(axis=0)), d.value)


def test_arithmetic_follows_the_value():
    a, b = mean_of(X), mean_of(Z)
    for found, value in ((a + b, X.mean() + Z.mean()), (2 * a, 2 * X.mean()), (-a, -X.mean()), (a * 3, 3 * X.mean())):
        same(found.value, value)
        same(found.function(found.columns.sum(axis=0)), value)
    same((2 * a).stderr, 2 * a.stderr)
    same((-a).stderr, a.stderr)
    same((a - a).stderr, 0)


def test_a_lift_is_the_jackknife_of_the_quotient():
    a, b = mean_of(X), mean_of(Z)
    found = a.lift(b)
    same(found.value, X.mean() / Z.mean() - 1)
    same(found.deviations, [np.delete(X, u).mean() / np.delete(Z, u).mean() - X.mean() / Z.mean() for u in range(50)])
    same(found.influence, (a.influence - X.mean() / Z.mean() * b.influence) / Z.mean())
    same(a.linear().lift(b.linear()).stderr, found.stderr)
    same(a.lift(a).stderr, 0)
    with pytest.raises(UndefinedError, match=facts("lift", 0)):
        a.lift(b * 0.0)


def test_equal_estimates_differ_by_nothing_with_no_width():
    effects = np.array([0.1, 0.2])
    gap = mean_of(X, sample_effects=effects, sample_size=10) - mean_of(X, sample_effects=effects, sample_size=10)
    assert (gap.value, gap.stderr, gap.pvalue) == (0, 0, 1)
    assert gap.interval() == (0, 0)


def test_users_who_take_no_part_add_no_degree_of_freedom():
    padded = ratio_of(*(np.concatenate([v, np.zeros(50)]) for v in (X, np.ones(50))))
    assert (padded.units, padded.n_users) == (50, 100)
    same(padded.interval(), mean_of(X).interval())


def test_a_difference_has_its_own_concentration_and_flag():
    # A common part that one user dominates cancels; of the difference, another user holds nearly all.
    rng = np.random.default_rng(0)
    common, own = rng.normal(size=200), 1e-3 * rng.normal(size=200)
    common[0], own[1] = 500, 4
    seen = {"diagnostics": Diagnostics(n=200, users=200)}
    a, b = mean_of(common + own, **seen), mean_of(common, **seen)
    assert a.effective_users < 1.1
    assert len(a.diagnostics.flags) == 1
    gap = a - b
    assert gap.largest_user_share == pytest.approx(1, abs=0.01)
    assert len(gap.diagnostics.flags) == 1
    even = (a - b) - (mean_of(own, **seen) - mean_of(X[rng.integers(50, size=200)], **seen))
    assert even.diagnostics.flags == ()


def test_without_a_user_the_others_remain():
    rng = np.random.default_rng(2)
    a, b = rng.uniform(1, 2, 80), rng.uniform(1, 3, 80)
    a[7] = 30
    found, wanted = ratio_of(a, b).without(7), ratio_of(np.delete(a, 7), np.delete(b, 7))
    assert found.value == pytest.approx(wanted.value)
    assert found.stderr == pytest.approx(wanted.stderr)
    same(found.interval(), wanted.interval())
    whole = ratio_of(a, b)
    assert whole.linear().without(7).value == pytest.approx(whole.value + whole.deviations[7])


def test_how_p_is_taken_is_what_both_estimates_can_claim():
    taken = {name: mean_of(X, p_taken=name) for name in ("", "known", "corrected", "refitted")}
    assert (taken["corrected"] - taken["corrected"]).p_taken == "corrected"
    assert (taken["corrected"] - taken["known"]).p_taken == "known"
    assert (taken[""] - taken["known"]).p_taken == "known"
    assert (taken[""] - taken[""]).p_taken == ""


def test_a_variance_over_cells_scales_and_is_dropped_by_a_difference():
    a = mean_of(X, cell_variance=0.04)
    assert (3 * a).cell_stderr == pytest.approx(0.6)
    with pytest.raises(UndefinedError, match=r"result\.difference"):
        _ = (a - a).cell_stderr


def test_rmse_has_the_interval_of_mse_cut_at_zero():
    mse = mean_of(np.square(X[:5]))
    root = np.sqrt(mse.value)
    rmse = Estimate(
        value=root, influence=mse.influence / (2 * root), method="ips", metric="rmse", root=True,
        columns=mse.columns, function=lambda t: np.sqrt(mse.function(t)),
    )  # fmt: skip
    same(rmse.interval(), np.sqrt(mse.interval()))
    wide = 0.9999  # so wide that the lower limit of mse is below 0
    assert mse.interval(wide).low < 0
    same(rmse.interval(wide), (0, math.sqrt(mse.interval(wide).high)))


# -- what is refused -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", [0, 1, -0.5, 95, math.nan])
def test_a_level_lies_between_zero_and_one(level):
    with pytest.raises(InputError, match="level"):
        mean_of(X).interval(level)


def test_other_questions_are_refused():
    with pytest.raises(InputError, match=facts("over", "users", "cells", "items")):
        mean_of(X).interval(over="items")
    with pytest.raises(UndefinedError, match=facts("ips", "mae", "cells")):
        mean_of(X).interval(over="cells")


def test_one_user_has_a_value_but_no_interval():
    one = mean_of(X[:1])
    assert one.value == X[0]
    assert math.isnan(one.stderr)
    with pytest.raises(UndefinedError, match=facts("interval", "users", 1)):
        one.interval()


def test_an_estimate_that_is_nothing_without_one_user_has_no_interval():
    # The second total is all hers: without her it is 0/0.
    found = of_function(lambda t: t[..., 0] / t[..., 1], np.array([[1.0, 1.0], [2.0, 0.0], [3.0, 0.0]]))
    assert math.isnan(found.stderr)
    assert np.isnan(found.limits()).all()
    with pytest.raises(UndefinedError, match=facts("interval", "ips", "mae", 1, 3)):
        found.interval()
    assert "interval" not in str(found)


def test_after_a_split_by_user_there_is_no_interval_over_cells():
    with pytest.raises(UndefinedError, match=facts("ips", "mae", "cells", "split by user", 'over="users"')):
        mean_of(X, cell_variance=0.1, whole_users=True).interval(over="cells")


def test_samples_of_other_levels_are_not_paired():
    with pytest.raises(AlignmentError, match=facts("levels", 1, 2)):
        mean_of(X, sample_effects=np.ones(1)) - mean_of(X, sample_effects=np.ones(2))


def test_estimates_of_different_users_are_not_paired():
    with pytest.raises(AlignmentError, match=facts("users", 50, 49)):
        mean_of(X) - mean_of(X[1:])


def test_a_linear_estimate_keeps_value_and_influence_and_bootstraps_its_influence():
    e = mean_of(np.arange(50.0))
    linear = e.linear()
    assert (linear.value, linear.stderr) == (e.value, e.stderr)
    assert float(linear.function(linear.columns.sum(axis=0))) == pytest.approx(e.value, abs=1e-12)
    boot, whole = (ol.bootstrap(x, replicates=500, rng=0) for x in (linear, e))
    assert boot.stderr == pytest.approx(whole.stderr, rel=0.05)
