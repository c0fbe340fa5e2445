"""Γ*₉₅, ρ* and κ* of contrasts: against estimates with the weights really tilted, and where the order really turns."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

import openloop as ol
from openloop.audits.contrasts import contrasts
from openloop.audits.sensitivity import tilted_curve, tilted_curves, with_limits
from openloop.evaluation import prepared
from openloop.metrics.naming import metric
from openloop.moments.question import Question
from openloop.moments.rows import gains
from openloop.moments.tilt_plan import KAPPAS, RHOS
from openloop.moments.whole import whole_block
from tests.examples import same

USERS, ITEMS = 200, 60


def world():
    """Model a errs less on high ratings, ranks better, and on clicks puts popular items first."""
    rng = np.random.default_rng(0)
    popular = np.linspace(0, 1, ITEMS)
    Y = rng.integers(1, 6, (USERS, ITEMS)).astype(float)
    noise = rng.normal(0, 1, (2, USERS, ITEMS))
    a = Y + noise[0] * np.where(Y >= 4, 0.3, 1.3) + 0.3 * popular
    ranked = {"a": Y + 0.5 * noise[0], "b": Y + 2 * noise[1]}
    clicked = {"a": 0.55 * Y + noise[0] + 1.5 * popular, "b": Y + noise[1]}
    return Y, {"mae": {"a": a, "b": Y + 1.1 * noise[1]}, "ranks": ranked, "clicks": clicked}, 0.1 + 0.7 * popular**2


Y, MODELS, EXPOSED = world()
P = np.random.default_rng(1).uniform(0.5, 1.0, Y.shape) * EXPOSED
SEEN = np.random.default_rng(2).random(Y.shape) < P
LOG = ol.Feedback.from_arrays(*np.nonzero(SEEN), Y[SEEN], users=USERS, items=ITEMS, propensity=P[SEEN])


def models(name, log):
    return MODELS["mae" if name == "mae" else "ranks" if log.propensity is not None else "clicks"]


def compared(log, name, p=None, exclude=None, estimator="snips"):
    asked = Question(metrics=[name], estimators=[estimator], exclude=exclude, threshold=4)
    ready = prepared(models(name, log), log, p, asked)
    result = ready.compare("all", tilt=True)
    (own,) = with_limits(result, contrasts(result, name, estimator))
    return ready.source, result, own


def value(log, name, p, exclude=None):
    found = ol.evaluate(models(name, log), log, p, metrics=[name], estimators=["snips"], exclude=exclude, threshold=4)
    return found["a", name, "snips"].value - found["b", name, "snips"].value


# -- Γ -------------------------------------------------------------------------------------------------------


def gain_difference(source, name):
    """δ_a − δ_b of each row that counts for a metric, in the order of the log."""
    x, block = metric(name), whole_block(source.subject)
    rows = source.setting.rows(block, x.on)
    counted = np.flatnonzero((rows.relevant > 0) | (x.kind == "cell"))
    a, b = (gains(x, rows.take(counted), block.outcomes[model].take(counted)) for model in "ab")
    return a - b


def ahead(source, name, log, sign):
    """Which scored rows are in favour of the model that is ahead; rows that do not count are in favour of none."""
    x, d = metric(name), gain_difference(source, name)
    found = np.zeros(len(log))
    found[slice(None) if x.kind == "cell" else log.rating >= 4] = d
    return found * sign > 0


@pytest.mark.parametrize("name", ["mae", "dcg@10", "recall@10"])
@pytest.mark.parametrize("split", ["whole", "exclude", "leave-k-out"])
def test_gamma_star_is_where_wrong_odds_of_p_flip_the_sign(name, split):
    train, test = (None, LOG) if split == "whole" else ol.split(LOG, test=0.5, rng=0)
    if split == "leave-k-out":
        train, test = ol.split(LOG, by="leave-k-out", k=7, rng=0)
    source, _, own = compared(test, name, exclude=train)
    assert own.gamma is not None
    assert own.gamma_form == "odds"
    favours = ahead(source, name, test, own.value)
    p = test.propensity
    for step, turned in ((0.999, False), (1.001, True)):
        odds = p / (1 - p) * np.where(favours, own.gamma * step, 1 / (own.gamma * step))
        # π is not tilted itself: it is made of the tilted p, with the shares of the split.
        assert (value(test, name, odds / (1 + odds), train) * own.value < 0) is turned


def test_weights_without_a_scale_are_off_by_a_factor():
    p = ol.Propensities(values=LOG.propensity, base=LOG.propensity)  # balanced
    source, _, own = compared(LOG, "mae", p)
    assert own.gamma_form == "ratio"
    d = gain_difference(source, "mae")
    up, down = (float(np.sum(np.maximum(sign * d, 0) / LOG.propensity)) for sign in (1, -1))
    same(own.gamma, math.sqrt(max(up, down) / min(up, down)))
    assert 1 <= own.gamma_low < own.gamma


# -- ρ -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["mae", "recall@10"])
def test_a_curve_against_rho_is_that_of_estimates_with_tilted_weights(name):
    _, result, own = compared(LOG, name)
    curve = tilted_curve(result, result.tilts[name], own, "rho")
    for rho, found in zip(RHOS, curve.value, strict=True):
        same(found, value(LOG, name, LOG.propensity * rho ** (LOG.rating.astype(float) - 5)))
    assert curve.low[0] < own.value < curve.high[0]


def test_the_order_turns_where_it_was_said_to():
    _, result, own = compared(LOG, "mae")
    (curve,) = tilted_curves(result, [own])
    assert (own.rho, own.rho_low) == (curve.turns, curve.turns_low)
    assert 1 < own.rho_low < own.rho < 3
    steps = LOG.rating.astype(float) - 5
    before, after = (value(LOG, "mae", LOG.propensity * (own.rho * step) ** steps) for step in (0.998, 1.002))
    assert before * own.value > 0 > after * own.value  # by a spline through the points of the grid
    p = LOG.propensity * own.rho_low**steps
    found = ol.evaluate(models("mae", LOG), LOG, p, metrics=["mae"], estimators=["snips"])
    high = found.difference("a", "b", metric="mae", estimator="snips").limits(0.95).high
    assert abs(high) < 0.01 * abs(own.value)


# -- κ -------------------------------------------------------------------------------------------------------

LIKED = LOG.take(LOG.rating >= 4, propensity=None)


def test_a_curve_against_kappa_is_the_pooled_estimate_with_weights_by_popularity():
    _, result, own = compared(LIKED, "recall@10", estimator="naive")
    (curve,) = tilted_curves(result, [own])
    n = LIKED.rows_of_items[LIKED.item].astype(float)
    for kappa, found in zip(KAPPAS, curve.value, strict=True):
        same(found, value(LIKED, "recall@10", (n / n.max()) ** kappa))
    assert own.value > 0
    assert 0 < own.kappa_low < own.kappa < 1
    assert own.gamma is None


# -- in an audit ---------------------------------------------------------------------------------------------


def test_an_audit_has_curves_and_limits_and_writes_infinity_as_a_word(tmp_path):
    good = MODELS["mae"]["a"]
    always = {"a": good, "worse": good + np.sign(good - Y)}  # on every row
    found = ol.audit(always, LOG, metrics=["mae"], strata=[])
    (own,) = found.contrasts["mae", "snips"]
    assert (own.gamma, own.rho, own.rho_low) == (math.inf, math.inf, math.inf)
    assert math.isfinite(own.gamma_low)
    assert {c.against for c in found.curves} == {"gamma", "rho"}
    found.to_json(tmp_path / "audit.json")
    written = json.loads((tmp_path / "audit.json").read_text())
    (record,) = (c for c in written["contrasts"] if c["estimator"] == "snips")
    assert (record["gamma"], record["rho"], record["gamma_form"]) == ("infinite", "infinite", "odds")
    (curve,) = (c for c in written["sensitivity"] if c["against"] == "rho")
    assert (curve["turns"], curve["turns_low"]) == ("infinite", "infinite")
