"""Calibrated: distorted p are repaired, right ones are left alone, and a floor is said aloud."""

from __future__ import annotations

import re

import numpy as np
import pytest
from scipy.special import expit, logit

import openloop as ol
from openloop.core.feedback import Feedback
from openloop.data.simulate import World, movie_lovers
from openloop.data.splitting import split
from openloop.errors import InputError, UndefinedError
from openloop.propensity.base import CellModel, counts
from openloop.propensity.calibrated import Calibrated, isotonic, platt
from openloop.propensity.checks.held_out import HeldOut, held_out, to_pi
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


class TestFloorAroundAColumn(CalibratedContract):
    has_matrix = sums_to_log = False
    needs_share = False

    def make(self):
        return Calibrated(Known(), method=None, floor=0.1)


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
@pytest.mark.parametrize("share", [1.0, 0.5])
def test_after_the_map_held_out_cells_add_up_to_the_rows(method, share):
    part = LOG if share == 1 else split(LOG, test=share, rng=0)[1]
    part = part.take(np.arange(len(part) // 5 * 5))  # five folds of one size
    found = held_out(Known(WORLD.propensities**2).fit(part), part)
    mapped, _ = {"isotonic": isotonic, "platt": platt}[method](found)
    below = mapped(found.p) < 1  # a part may see more than p = 1 allows
    assert below.mean() > 0.99
    before, after = found.pi[below].sum(), to_pi(mapped(found.p), found.s, found.t)[below].sum()
    rows = found.observed[below].sum()
    assert abs(before - rows) > 100
    lifted = 0.5 + below.sum() * np.finfo(float).eps * after  # half a cell, up to the rounding of a sum
    assert after == pytest.approx(rows, abs={"isotonic": lifted, "platt": 1e-5}[method])


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


def test_a_lifted_level_is_never_above_the_next():
    p, observed = np.array([0.1, 0.2, 0.2, 0.2, 0.2]), np.array([0.0, 1.0, 0.0, 0.0, 0.0])
    shares = {"s": np.full(5, 0.8), "t": np.full(5, 0.2)}
    steps, _ = isotonic(HeldOut(p=p, pi=p, observed=observed, weight=np.ones(5), **shares))
    assert steps(p)[0] == pytest.approx(steps(p)[1])


def test_one_p_for_all_cells_keeps_its_level():
    for method in METHODS:
        model = Calibrated(Uniform(), method=method).fit(LOG)
        assert model.predict(LOG).values[0] == pytest.approx(Uniform().fit(LOG).p_, rel=1e-3)


def test_a_level_that_is_off_is_corrected_for_one_p_too():
    p = Calibrated(Known(np.full((200, 150), 0.7)), method="platt").fit(LOG).predict(LOG).values
    assert p[0] == pytest.approx(Uniform().fit(LOG).p_, rel=1e-6)
    np.testing.assert_allclose(p, p[0])


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


@pytest.mark.parametrize("method", METHODS)
def test_right_propensities_are_left_nearly_alone(method):
    world = two_sided(300, 250, rng=3)
    model = Calibrated(Known(world.propensities), method=method).fit(world.observe(4))
    assert off_by(model.matrix(), world.propensities) < {"isotonic": 0.1, "platt": 0.03}[method]


def test_platt_of_the_truth_has_slope_one():
    slopes = []
    for seed in range(5):
        log = WORLD.observe(seed)
        line = Calibrated(Known(WORLD.propensities), method="platt").fit(log).map_
        slopes.append(line.b)
        assert abs(line.a) < 0.35
    assert np.mean(slopes) == pytest.approx(1.0, abs=0.05)


@pytest.mark.parametrize("method", METHODS)
def test_a_part_of_a_log_calibrates_to_the_whole(method):
    world = two_sided(300, 250, rng=3)
    _, part = split(world.observe(4), test=0.4, rng=1)
    model = Calibrated(Known(world.propensities**2), method=method).fit(part)
    assert off_by(model.matrix(), world.propensities) < 0.15


def test_a_fitted_model_is_refitted_inside():
    # Three times too large in every fold: the counts of each train part are corrected, not those of the log.
    P = Calibrated(ItemCounts(a=3.0), method="platt").fit(LOG).matrix()
    assert P.sum() == pytest.approx(len(LOG), rel=0.02)


def test_a_model_in_the_wrong_order_becomes_constant():
    for method in METHODS:
        model = Calibrated(Known(0.3 - WORLD.propensities / 4), method=method).fit(LOG)
        p = model.predict(LOG).values
        assert np.ptp(p) < 0.02
        assert p.mean() == pytest.approx(len(LOG) / 30_000, rel=0.05)
    assert re.search(facts("platt", "wrong direction"), model.notes_[0])


def test_p_that_separate_observed_cells_from_others_stay_finite():
    log = Feedback.from_arrays(np.arange(20), np.zeros(20, int), np.ones(20), users=20, items=5)
    P = np.tile([0.9, 0.1, 0.1, 0.1, 0.1], (20, 1))
    for method in METHODS:
        fitted = Calibrated(Known(P), method=method).fit(log).matrix()
        assert np.all((fitted > 0) & (fitted <= 1))
        assert fitted[0, 0] > 0.95
        assert fitted[0, 1] < 0.05


def test_a_complete_log_is_all_ones_or_refused():
    log = movie_lovers(10, 8).everything()
    assert set(Calibrated(Known(np.full((10, 8), 0.5))).fit(log).predict(log).values) == {1.0}
    with pytest.raises(UndefinedError, match=facts("Calibrated", "every cell", "method=None")):
        Calibrated(Known(np.full((10, 8), 0.5)), method="platt").fit(log)


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


def test_a_quantile_is_one_of_the_log_fitted_on_whatever_is_predicted():
    model = Calibrated(Known(WORLD.propensities), method=None, quantile=0.2).fit(LOG)
    cut = np.quantile(LOG.propensity, 0.2)
    assert model.predict(LOG).floor == cut
    assert model.predict(LOG.take(LOG.propensity > 0.2)).floor == cut
    assert "20.0%" in model.notes_[0]


def test_the_greater_of_floor_and_quantile_counts():
    def floor(**choice):
        return Calibrated(Known(WORLD.propensities), method=None, **choice).fit(LOG).floor_

    assert floor(floor=0.5, quantile=0.01) == 0.5
    assert floor(floor=1e-9, quantile=0.5) == np.median(LOG.propensity)
    assert floor() == 0.0


def test_evaluate_applies_the_floor_and_reports_it():
    world = movie_lovers(40, 30)
    log = world.observe(0)
    inner = Known(world.propensities)
    models = {"Y1": world.predictions["Y1"]}
    mine = ol.evaluate(models, log, Calibrated(inner, method=None, floor=0.2).fit(log))
    by_hand = ol.evaluate(models, log, np.maximum(world.propensities, 0.2))
    for estimator in ("ips", "snips", "stratified"):
        assert mine["Y1", "mae", estimator].value == pytest.approx(by_hand["Y1", "mae", estimator].value)
    share = np.mean(log.propensity < 0.2)
    assert mine["Y1", "mae", "ips"].diagnostics.clipped_share == pytest.approx(share)


# Around other models


def test_side_information_reaches_the_model_and_its_refits():
    model = Calibrated(ItemCounts()).fit(LOG, extra="beside")
    assert model.notes_[0] == "extra is beside"
    assert model.refit(LOG).notes_[0] == "extra is beside"


def test_a_fitted_model_lends_its_side_information():
    assert Calibrated(ItemCounts().fit(LOG, extra="beside")).fit(LOG).notes_[0] == "extra is beside"


def test_the_given_model_is_left_alone():
    inner = ItemCounts()
    Calibrated(inner).fit(LOG)
    assert not hasattr(inner, "p_")


def test_p_that_depends_on_the_rating_cannot_be_mapped():
    with pytest.raises(UndefinedError, match=facts("Calibrated", "Known", "method=None")):
        Calibrated(Known()).fit(LOG)


@pytest.mark.parametrize(("option", "value"), [("floor", -0.1), ("quantile", 1.5), ("folds", 1)])
def test_choices_that_mean_nothing_are_refused(option, value):
    with pytest.raises(InputError, match=facts(option, repr(value))):
        Calibrated(Uniform(), **{option: value}).fit(LOG)


def test_an_unknown_method_gets_its_neighbour():
    with pytest.raises(InputError, match=facts("Calibrated", "method", "'isotone'", "'isotonic'")):
        Calibrated(Uniform(), method="isotone").fit(LOG)
