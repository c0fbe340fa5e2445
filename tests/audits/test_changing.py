"""What changed between two audits is told as far as it is known, and no further."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import openloop as ol
from openloop.audits.changing import changes_between, welch
from openloop.core.estimate import Interval
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


def test_models_settings_and_support_that_differ_are_named(old, new):
    found = changes_between(old, new)
    (gone,) = set(old.models) - set(new.models)
    assert (found.added, found.gone) == (("fresh",), (gone,))
    assert set(found.shared) == set(old.models) & set(new.models)
    settings = {d.name: (d.old, d.new) for d in found.settings}
    assert settings["threshold"] == (old.setting.threshold, 3.0)
    assert settings["rows"] == (old.setting.rows, new.setting.rows)
    assert settings["estimators"] == (", ".join(old.result.estimators), "snips, naive")
    assert "metrics" not in settings
    assert "level" not in settings
    support = {d.name: (d.old, d.new) for d in found.support}
    assert support["effective rows"] == (old.weights.effective_size, new.weights.effective_size)
    assert "reach, at least" not in support  # of impressions


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


def test_the_same_log_with_fewer_items_is_not_called_another_log():
    log = WORLD.observe(1)
    counts = np.bincount(log.item, minlength=log.n_items)
    options = {"metrics": ["mae"], "check": False}
    all_items = ol.audit(WORLD.predictions, log, **options)
    fewer = ol.audit(WORLD.predictions, log, min_item_rows=int(np.median(counts)), **options)
    text = " ".join(changes_between(all_items, fewer).sentences)
    assert "logs differ." not in text
    assert "scored rows differ" in text
    assert "same population" in text
    assert "same population" not in " ".join(changes_between(all_items, audited(2)).sentences)


def test_one_log_in_a_larger_population_is_still_the_same_log():
    """Its estimates are not independent, and one user more among the users changes no scored row."""
    log = WORLD.observe(1)
    more = ol.Feedback.from_arrays(
        log.user, log.item, log.rating, users=log.n_users + 1, items=log.n_items, propensity=log.propensity
    )
    mae = {"metrics": ["mae"], "estimators": ["snips", "ips"], "check": False}
    grids = {name: np.vstack([grid, grid[:1]]) for name, grid in WORLD.predictions.items()}
    found = changes_between(ol.audit(WORLD.predictions, log, **mae), ol.audit(grids, more, **mae))
    assert found.one_log
    assert all(v.low is None for v in found.values)
    text = " ".join(found.sentences)
    assert "users differ, so the audits are not about the same population" in text
    assert "scored rows differ" not in text


def _freedom(quantile):
    """The degrees of freedom at which t has this 97.5 % quantile."""
    from scipy.optimize import brentq
    from scipy.special import stdtrit

    return brentq(lambda nu: stdtrit(nu, 0.975) - quantile, 0.5, 1e6)


def test_estimates_without_spread_differ_by_a_point(old):
    e = old.result[old.models[0], "mae", "snips"]
    sure = replace(e, deviations=np.zeros(e.n_users), influence=np.zeros(e.n_users), squared_deviations=math.nan)
    assert sure.stderr == 0
    assert welch(sure, sure, 0.95) == Interval(0.0, 0.0)


def test_a_pair_that_is_told_apart_otherwise_is_named(old):
    family = ("mae", "snips")
    c = next(c for c in old.contrasts[family] if c.better is not None)
    loser = next(iter(c.models - {c.better}))
    for better in (None, loser):
        turned = tuple(replace(x, better=better) if x is c else x for x in old.contrasts[family])
        newer = replace(old, contrasts=old.contrasts | {family: turned})
        (order,) = [o for o in changes_between(old, newer).orders if o.changed]
        (pair,) = order.pairs
        assert (order.metric, order.estimator) == family
        assert (pair.old_better, pair.new_better) == (c.better, better)
        assert (pair.old, pair.new) == (c.value, c.value)


def test_audits_without_a_model_in_common_compare_settings_only(old):
    other = audited(2, {f"{name}'": p for name, p in WORLD.predictions.items()})
    found = changes_between(old, other)
    assert (found.shared, found.orders, found.values) == ((), (), ())
    assert "No model" in found.about_intervals
