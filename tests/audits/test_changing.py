"""What changed between two audits is told as far as it is known, and no further."""

from __future__ import annotations

import math

import numpy as np
import pytest

import openloop as ol
from openloop.audits.changing import changes_between, welch
from tests.examples import small_world

WORLD = small_world(users=80)


def audited(rng, models=None, **options):
    return ol.audit(models or WORLD.predictions, WORLD.observe(rng), metrics=["mae", "mse"], **options)


@pytest.fixture(scope="module")
def old():
    return audited(1)


@pytest.fixture(scope="module")
def new():
    models = dict(WORLD.predictions)
    gone = list(models)[-1]
    del models[gone]
    models["fresh"] = WORLD.ratings + 0.01
    return audited(2, models, threshold=3, estimators=["snips", "naive"])


def test_nothing_changes_in_the_same_audit(old):
    found = changes_between(old, old)
    assert found.one_log
    assert found.verdicts.same
    assert (found.added, found.gone, found.settings) == ((), (), ())
    assert not any(order.changed for order in found.orders)
    assert all(v.difference == 0 and v.low is None and v.high is None for v in found.values)
    assert "no interval" in found.about_intervals


def test_estimates_of_two_logs_have_welchs_interval(old, new):
    from scipy.stats import ttest_ind_from_stats

    found = changes_between(old, new)
    assert not found.one_log
    assert {(v.metric, v.estimator) for v in found.values} == {
        (m, e) for m in ("mae", "mse") for e in ("snips", "naive")
    }
    v = found.values[0]
    a, b = (x.result[v.model, v.metric, v.estimator] for x in (old, new))
    assert (v.old, v.new, v.difference) == (a.value, b.value, b.value - a.value)
    # scipy.stats.ttest_ind_from_stats(...).confidence_interval(), of means with n = ν + 1 and s = se·√n
    sizes = [(e.value, e.stderr * math.sqrt(e.df + 1), e.df + 1) for e in (b, a)]
    told = ttest_ind_from_stats(*sizes[0], *sizes[1], equal_var=False)
    low, high = welch(a, b, 0.95)
    assert (v.low, v.high) == (low, high)
    from scipy.stats import t

    half = (high - low) / 2
    error = math.hypot(a.stderr, b.stderr)
    np.testing.assert_allclose(2 * t.sf(abs(v.difference) / error, _freedom(half / error)), told.pvalue, rtol=1e-6)


def test_relevant_items_by_another_threshold_get_no_interval():
    """Of another log; mae does not look at the threshold, and recall does."""
    first, other, third = (
        ol.audit(WORLD.predictions, WORLD.observe(rng), metrics=["mae", "recall@5"], threshold=x, check=False)
        for rng, x in ((1, 4), (2, 4), (2, 3))
    )
    told = {(v.metric, v.low is None) for v in changes_between(first, third).values}
    assert told == {("mae", False), ("recall@5", True)}
    assert {v.low is None for v in changes_between(first, other).values} == {False}


def _freedom(quantile):
    """The degrees of freedom at which t has this 97.5 % quantile."""
    from scipy.optimize import brentq
    from scipy.special import stdtrit

    return brentq(lambda nu: stdtrit(nu, 0.975) - quantile, 0.5, 1e6)
