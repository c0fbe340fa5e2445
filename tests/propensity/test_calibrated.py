"""Calibrated: distorted p are repaired, and a floor is said aloud."""

from __future__ import annotations

import re

import numpy as np
import pytest
from scipy.special import expit, logit

from openloop.data.simulate import World, movie_lovers
from openloop.errors import InputError
from openloop.propensity.base import CellModel, counts
from openloop.propensity.calibrated import Calibrated, isotonic, platt
from openloop.propensity.checks.held_out import HeldOut, to_pi
from openloop.propensity.known import Known
from openloop.propensity.uniform import Uniform
from tests.contracts import PropensityModelContract
from tests.facts import facts

METHODS = ["isotonic", "platt"]


class ItemCounts(CellModel):
    """p_i = a·(n_i + ½)/(U + 1), where a = 1 is right; `extra` is side information, and does nothing."""

    def __init__(self, a=1.0):
        self.a = a

    def fit(self, feedback, extra=None):
        self.p_ = np.minimum(self.a * (counts(self, feedback)[1] + 0.5) / (feedback.n_users + 1), 1.0)
        return self._remember(feedback, f"extra is {extra}", extra=extra)

    def _at(self, user, item):
        return np.broadcast_to(self.p_[item], np.broadcast(user, item).shape)


class CalibratedContract(PropensityModelContract):
    def test_init_only_assigns(self):
        model = self.make()
        assert set(vars(model)) == set(model.get_params(deep=False))


class TestIsotonicAroundUniform(CalibratedContract):
    def make(self):
        return Calibrated(Uniform())


class TestPlattAroundItemCounts(CalibratedContract):
    def make(self):
        return Calibrated(ItemCounts(), method="platt", folds=3, quantile=0.1, rng=5)


def two_sided(users: int, items: int, rng: int = 0) -> World:
    """p = σ(γ_u + β_i), from a percent to a half."""
    draw = np.random.default_rng(rng)
    P = expit(draw.normal(0, 0.8, (users, 1)) + draw.normal(0, 0.8, items) - 2.5)
    return World(ratings=np.ones((users, items)), propensities=P)


WORLD = two_sided(200, 150)
LOG = WORLD.observe(1)


def off_by(P, Q) -> float:
    """The mean |log ratio|: 0.1 is 10 %."""
    return float(np.abs(np.log(P / Q)).mean())


# By law


@pytest.mark.parametrize("method", METHODS)
def test_the_map_is_monotone_and_stays_in_0_1(method):
    mapped = Calibrated(Known(WORLD.propensities), method=method).fit(LOG).map_
    p = mapped(np.geomspace(1e-90, 1, 1000))
    assert np.all(np.diff(p) >= -1e-15)
    assert 0 < p[0] <= p[-1] <= 1


def test_platt_of_shifted_and_stretched_logits_undoes_it():
    # Fitted on exact expectations: two cells for each p, observed and not, weighted by π and 1 − π.
    truth, s, t = np.linspace(0.01, 0.9, 50), 0.6, 0.2  # a part with share 0.8
    q = expit(0.7 + 1.8 * logit(0.8 * truth)) / 0.8  # what a distorted model says
    pi = to_pi(truth, s, t)
    found = HeldOut(
        p=np.tile(q, 2), pi=np.tile(to_pi(q, s, t), 2), observed=np.repeat([1.0, 0.0], 50), weight=np.r_[pi, 1 - pi],
        s=np.full(100, s), t=np.full(100, t),
    )  # fmt: skip
    line, _ = platt(found)
    assert line.b == pytest.approx(1 / 1.8, rel=1e-4)
    np.testing.assert_allclose(line(q), truth, rtol=1e-4)


def test_isotonic_by_hand():
    # s = 0.8, t = 0.2: π of 0, ½ and 1 are p of 0 (lifted), 0.5/0.6 and 1.
    p = np.array([0.1, 0.1, 0.2, 0.3, 0.4])
    observed = np.array([0.0, 0.0, 1.0, 0.0, 1.0])  # 0.2 and 0.3 stand the wrong way round
    shares = {"s": np.full(5, 0.8), "t": np.full(5, 0.2)}
    steps, notes = isotonic(HeldOut(p=p, pi=p, observed=observed, weight=np.ones(5), **shares))
    lifted = (0.5 / 3) / (0.2 + 0.8 * 0.5 / 3)
    np.testing.assert_allclose(steps(p), [lifted, lifted, 0.5 / 0.6, 0.5 / 0.6, 1.0], rtol=1e-12)
    np.testing.assert_allclose(steps(np.array([0.01, 0.9])), [lifted, 1.0], rtol=1e-12)
    np.testing.assert_allclose(steps(np.array([np.sqrt(0.02)])), [np.sqrt(lifted * 0.5 / 0.6)], rtol=1e-12)
    assert "3 levels" in notes[0]
    assert re.search(facts("observed", 2, "folds"), notes[1])


# By simulation


DISTORTED = {
    "twice": lambda P: np.minimum(2 * P, 1.0),
    "cube": lambda P: P**3,
    "root": np.sqrt,
    "odds": lambda P: expit(1 + 0.6 * logit(P)),
}


@pytest.mark.parametrize(
    ("method", "distortion"),
    # Doubled p are no line in logits: that is beyond Platt.
    [*(("isotonic", name) for name in DISTORTED), *(("platt", name) for name in ("cube", "root", "odds"))],
)
def test_distorted_propensities_are_repaired(method, distortion):
    world = two_sided(300, 250, rng=3)
    P, given = world.propensities, DISTORTED[distortion](world.propensities)
    after = off_by(Calibrated(Known(given), method=method).fit(world.observe(4)).matrix(), P)
    assert after < 0.12
    assert after < off_by(given, P) / 5


# Floors


def test_a_floor_raises_weights_and_says_how_many():
    log = movie_lovers(30, 20).observe(7)
    model = Calibrated(Known(), method=None, floor=0.3).fit(log)
    p = model.predict(log)
    np.testing.assert_array_equal(p.values, log.propensity)
    assert p.floor == 0.3
    assert p.used.min() == 0.3
    low = np.mean(log.propensity < 0.3)
    (note,) = model.notes_
    assert re.search(facts(0.3, f"{low:.1%}"), note)


# Around other models


@pytest.mark.parametrize(("option", "value"), [("floor", -0.1), ("quantile", 1.5), ("folds", 1)])
def test_choices_that_mean_nothing_are_refused(option, value):
    with pytest.raises(InputError, match=facts(option, repr(value))):
        Calibrated(Uniform(), **{option: value}).fit(LOG)
