"""Estimates: errors, intervals and differences are arithmetic on the influence."""

from __future__ import annotations

import math
import re
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

import openloop as ol
from openloop.core.estimate import Estimate, Interval, complex_step, smooth
from openloop.errors import AlignmentError, InputError, UndefinedError
from tests.examples import same, small_world
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
    found, t = mean_of(X) - mean_of(Z), stats.ttest_rel(X, Z)
    assert found.pvalue == pytest.approx(t.pvalue)
    same(found.interval(), t.confidence_interval())


def test_a_ratio_has_the_delta_methods_error():
    rng = np.random.default_rng(2)
    a, b = rng.uniform(1, 2, 80), rng.uniform(1, 3, 80)
    theta = a.sum() / b.sum()
    expected = np.std(a - theta * b, ddof=1) / math.sqrt(80) / b.mean()
    assert of_function(lambda t: t[..., 0] / t[..., 1], np.column_stack([a, b])).stderr == pytest.approx(expected)


# -- laws ----------------------------------------------------------------------------------------------------


FUNCTIONS = {
    "a ratio": lambda t: t[..., 0] / t[..., 1],
    "a total": lambda t: t[..., 0] / 7,
    "a product": lambda t: t[..., 0] * t[..., 1],
}


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
@given(columns=tables)
def test_influence_has_mean_zero(function, columns):
    found = of_function(function, columns)
    assert abs(found.influence.mean()) < 1e-9 * max(1, np.abs(found.influence).max())


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


def test_a_variance_over_cells_scales_and_is_dropped_by_a_difference():
    a = mean_of(X, cell_variance=0.04)
    assert (3 * a).cell_stderr == pytest.approx(0.6)
    with pytest.raises(UndefinedError, match=r"result\.difference"):
        _ = (a - a).cell_stderr


def test_levels_nest_and_the_question_decides_the_quantile():
    found = mean_of(X, cell_variance=0.25)
    intervals = [found.interval(level) for level in (0.5, 0.8, 0.95, 0.99)]
    assert all(b.low < a.low < a.high < b.high for a, b in pairwise(intervals))
    same(found.interval(0.95, over="cells"), (X.mean() - 1.959963985 * 0.5, X.mean() + 1.959963985 * 0.5), rtol=1e-9)


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


# -- gradients -----------------------------------------------------------------------------------------------


@given(arrays(float, 3, elements=st.floats(0.5, 100)))
def test_gradients_are_exact(at):
    x, y, z = at
    found = complex_step(lambda t: t[..., 0] * t[..., 1] / t[..., 2], at)
    same(found, [y / z, x / z, -x * y / z**2], rtol=1e-12)


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


def test_estimates_of_different_users_are_not_paired():
    with pytest.raises(AlignmentError, match=facts("users", 50, 49)):
        mean_of(X) - mean_of(X[1:])


def test_no_spread_means_certainty():
    assert mean_of(np.zeros(5)).pvalue == 1
    assert mean_of(np.ones(5)).pvalue == 0


@pytest.mark.parametrize(("value", "inside"), [(1, True), (1.5, True), (np.float32(2), True), (np.int64(3), False),
                                               (np.int64(2), True), (0.9, False), ("1", False)])  # fmt: skip
def test_an_interval_contains_what_lies_between_its_limits(value, inside):
    assert (value in Interval(1, 2)) is inside


def test_html_escapes_names():
    shown = mean_of(X, metric="<script>", method="<b>")._repr_html_()
    assert "<script>" not in shown
    assert "&lt;script&gt;" in shown
    assert "&lt;b&gt;" in shown


def test_the_text_of_an_estimate_has_its_error_and_interval():
    world = small_world()
    result = ol.evaluate({"a": world.predictions["a"]}, world.observe(0), metrics=["mae"], estimators=["snips"])
    found = result["a", "mae", "snips"]
    low, high = found.interval()
    numbers = (f"{number:.4g}" for number in (found.value, low, high))
    assert re.search(facts("snips", "mae", f"{found.stderr:.2g}", *numbers), str(found))


def test_a_linear_estimate_keeps_value_and_influence_and_bootstraps_its_influence():
    e = mean_of(np.arange(50.0))
    linear = e.linear()
    assert (linear.value, linear.stderr) == (e.value, e.stderr)
    assert float(linear.function(linear.columns.sum(axis=0))) == pytest.approx(e.value, abs=1e-12)
    boot, whole = (ol.bootstrap(x, replicates=500, rng=0) for x in (linear, e))
    assert boot.stderr == pytest.approx(whole.stderr, rel=0.05)


def test_linear_estimates_combine_to_linear_ones():
    a, b = mean_of(np.arange(5.0)), mean_of(np.ones(5))
    found, wanted = a.linear() - b.linear(), a - b
    assert (found.value, found.stderr) == (wanted.value, wanted.stderr)
    assert found.columns.shape == (5, 1)
    mixed = a.linear() - b
    assert mixed.value == wanted.value
