"""Recalibrated: α and β by hand, a line or steps."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.isotonic import IsotonicRegression

import openloop as ol
from openloop.errors import InputError
from openloop.learners import MF, Exposure, Recalibrated
from openloop.learners.crossing import latin_folds
from tests.contracts import PersonalRecommenderContract
from tests.facts import facts


class TestRecalibrated(PersonalRecommenderContract):
    def make(self):
        return Recalibrated(MF(factors=2, reg=0.1))


class TestRecalibratedBySteps(PersonalRecommenderContract):
    has_link = True

    def make(self):
        return Recalibrated(MF(factors=2, reg=0.1), form="isotonic")


WORLD = ol.simulate.movie_lovers(users=60, items=40)
LOG = WORLD.observe(rng=0)
W = 1 / LOG.propensity


def held_out(folds=4):
    fold, f = latin_folds("Recalibrated", LOG, folds, 0).of(LOG.user, LOG.item), np.empty(len(LOG))
    for k in range(folds):
        model = MF(factors=2, reg=3.0 * np.mean(fold != k)).fit(LOG.take(fold != k), W[fold != k])
        f[fold == k] = model.predict(LOG.user[fold == k], LOG.item[fold == k])
    return f


def test_alpha_and_beta_are_weighted_least_squares_on_held_out_rows():
    model = Recalibrated(MF(factors=2, reg=3.0)).fit(LOG, W)
    fold = latin_folds("Recalibrated", LOG, 4, 0).of(LOG.user, LOG.item)
    levels = (fold[:, None] == np.arange(4)).astype(float)  # a level for each fold
    A = np.column_stack([held_out(), levels]) * np.sqrt(W)[:, None]
    beta = np.linalg.lstsq(A, LOG.rating * np.sqrt(W))[0][0]
    alpha = np.average(LOG.rating - beta * held_out(), weights=W)
    assert (model.level_, model.slope_) == pytest.approx((alpha, beta), rel=1e-4)
    f = MF(factors=2, reg=3.0).fit(LOG, W).scores(np.arange(60))
    np.testing.assert_allclose(model.scores(np.arange(60)), alpha + beta * f, atol=1e-4)


def test_steps_are_the_isotonic_regression_of_held_out_rows():
    model = Recalibrated(MF(factors=2, reg=3.0), form="isotonic").fit(LOG, W)
    # IsotonicRegression(out_of_bounds="clip").fit(f, y, sample_weight=w).predict(f) of scikit-learn 1.x
    held, fold = held_out(), latin_folds("Recalibrated", LOG, 4, 0).of(LOG.user, LOG.item)
    mean = np.average(held, weights=W)
    for k in range(4):
        held[fold == k] += mean - np.average(held[fold == k], weights=W[fold == k])
    wanted = IsotonicRegression(out_of_bounds="clip").fit(held, LOG.rating, sample_weight=W)
    f = MF(factors=2, reg=3.0).fit(LOG, W).scores(np.arange(60))
    np.testing.assert_allclose(model.predictions(np.arange(60)), wanted.predict(f.ravel()).reshape(f.shape), atol=1e-3)
    np.testing.assert_allclose(model.scores(np.arange(60)), f, atol=1e-5)


def test_what_cannot_be_recalibrated_is_refused():
    with pytest.raises(InputError, match=facts("Recalibrated", "form", "'steps'")):
        Recalibrated(MF(), form="steps").fit(LOG)
    with pytest.raises(InputError, match=facts("Recalibrated", "Exposure")):
        Recalibrated(Exposure()).fit(LOG)
    with pytest.raises(InputError, match=facts("Recalibrated", "isotonic")):
        Recalibrated(Recalibrated(MF(), form="isotonic")).fit(LOG)
