"""JointMNAR: contracts, recovery of what data were drawn from, and refusals."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import openloop as ol
from bench.joint_models import errors, held_by, joint_world
from openloop.core.feedback import Feedback
from openloop.data.simulate import movie_lovers
from openloop.errors import InputError, RatingError, UndefinedError
from openloop.learners import JointMNAR, OrdinalMF, RatingPropensities
from tests.contracts import PersonalRecommenderContract, PropensityModelContract
from tests.facts import facts

QUICK = {"sweeps": 24, "burn": 12, "thin": 4, "chains": 1}
CHAIN = {"factors": 2, "sweeps": 300, "burn": 120, "thin": 3, "chains": 1}
# Another processor rounds otherwise, and after some sweeps its chain is another. Four together differ half as much.
CHAINS = {**CHAIN, "chains": 4}


@pytest.fixture(autouse=True)
def few_warm_sweeps(monkeypatch):
    monkeypatch.setattr("openloop.learners.joint_mnar.WARM", 10)


class TestJointMNAR(PersonalRecommenderContract):
    size, weighted = 14, False

    def make(self):
        return JointMNAR(factors=2, missing_factors=1, **QUICK)


class TestPropensitiesOfJointMNAR(PropensityModelContract):
    has_matrix = has_margins = sums_to_log = False

    def log(self):
        return movie_lovers(users=15, items=12).observe(7)

    def make(self):
        return RatingPropensities(JointMNAR(factors=1, missing_factors=1, **QUICK))


@pytest.fixture(scope="module")
def world():
    return joint_world(3)


@pytest.fixture(scope="module")
def fitted(world):
    return JointMNAR(missing_factors=1, **CHAINS).fit(world.log)


def test_effects_and_means_lie_in_their_intervals_as_often_as_they_should(world, fitted):
    # 300 λ and 250 ψ, centred. All ψ of a world share one t², so those of one world alone are held too often or too
    # rarely together: over 20 worlds (bench.joint_recovery) 91 % of λ, 92 % of ψ and 84 % of m were held.
    held = held_by(world, fitted)
    assert 0.8 <= (300 * held["λ"] + 250 * held["ψ"]) / 550 <= 0.97
    assert held["m"] >= 0.6  # of five


def test_it_predicts_better_than_a_model_of_ratings_alone(world, fitted):
    alone = OrdinalMF(**CHAINS).fit(world.log)
    assert errors(world, fitted) < 0.8 * errors(world, alone)  # a margin of 20 %; about 40 % are usual


def test_chances_to_be_observed_rise_with_the_rating(world, fitted):
    p = fitted.propensities_.by_level(world.log.user, world.log.item)  # (n, L)
    truth = world.observed[world.log.user, world.log.item]
    assert np.all(np.diff(p.mean(axis=0)[[0, 2, 4]]) > 0)
    # Of five stars p is too small, by 0.12 in five seeds, with a deviation of 0.014: five of these.
    assert abs(p.mean(axis=0)[4] - truth.mean(axis=0)[4]) < 0.19
    assert fitted.propensities_.predict(world.log).by_cells


def test_weights_of_its_propensities_serve_an_evaluation(world, fitted):
    constant = np.full(world.rating.shape, 3.0)
    found = ol.evaluate(
        {"three": constant}, world.log, fitted.propensities_, metrics=["mse"], estimators=["naive", "snips"]
    )
    truth = float(np.mean((world.rating - 3.0) ** 2))
    naive, weighted = (found["three", "mse", name].value for name in ("naive", "snips"))
    assert abs(weighted - truth) < abs(naive - truth)


def test_what_cannot_be_fitted_is_refused(world):
    log = joint_world(6, (15, 12)).log
    model = JointMNAR(factors=1, missing_factors=1, **QUICK)
    user, item = (codes.ravel() for codes in np.indices((4, 3)))
    with pytest.raises(UndefinedError, match=facts("JointMNAR", 12, "OrdinalMF")):
        model.fit(Feedback.from_arrays(user, item, 1 + user % 3))
    with pytest.raises(InputError, match=facts("JointMNAR", "sample_weight", "MF")):
        model.fit(log, sample_weight=np.ones(len(log)))
    with pytest.raises(InputError, match=facts("JointMNAR", "propensities=")):
        model.fit(log, propensities=np.full(len(log), 0.5))
    with pytest.raises(UndefinedError, match=facts("JointMNAR", "positives")):
        model.fit(replace(log, positives=True))
    with pytest.raises(RatingError, match=facts("JointMNAR", 2, 20, 1)):
        model.fit(replace(log, rating=np.ones(len(log), np.float32)))
    for name in ("factors", "missing_factors"):
        with pytest.raises(InputError, match=facts("JointMNAR", name, 12, 13)):
            JointMNAR(**{"factors": 1, "missing_factors": 1, name: 13}).fit(log)
