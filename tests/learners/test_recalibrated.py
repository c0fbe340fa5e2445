"""Recalibrated: α and β by hand, a line or steps, and the level of MF-IPS on rows that it did not see."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.isotonic import IsotonicRegression

import openloop as ol
from openloop.errors import InputError
from openloop.learners import MF, Bias, Exposure, Recalibrated, Stack
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


def test_evaluate_asks_for_the_function_and_ranks_by_the_score():
    model = Recalibrated(MF(factors=2, reg=3.0), form="isotonic").fit(LOG, W)
    grid = model.predictions(np.arange(60)).astype(np.float64)
    given = {"metrics": ["mse"], "estimators": ["dr"], "imputation": WORLD.ratings.astype(float)}
    one = ol.evaluate({"m": model}, LOG, LOG.propensity, **given)["m", "mse", "dr"].value
    assert one == pytest.approx(ol.evaluate({"m": grid}, LOG, LOG.propensity, **given)["m", "mse", "dr"].value)
    ranked = ol.evaluate({"m": model, "s": model.scores(np.arange(60))}, LOG, metrics=["adg"], estimators=["naive"])
    assert ranked["m", "adg", "naive"].value == pytest.approx(ranked["s", "adg", "naive"].value)


@pytest.mark.parametrize("form", ["linear", "isotonic"])
def test_a_file_gives_the_same_bits(tmp_path, form):
    model = Recalibrated(MF(factors=2, reg=3.0), form=form).fit(LOG, W)
    model.save(tmp_path / "model.safetensors")
    again = ol.load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(again.predictions(np.arange(60)), model.predictions(np.arange(60)))
    assert (again.model.reg, again.form) == (3.0, form)


def test_held_out_level_is_that_of_the_ratings():
    """By weights, a fit is too extreme: off on average on rows it has not seen, and recalibrated it is not."""
    rng = np.random.default_rng(5)
    Y = 3 + rng.standard_normal((150, 3)) @ rng.standard_normal((3, 100)) / 2 + 0.5 * rng.standard_normal((150, 100))
    world = ol.simulate.World(ratings=Y, propensities=np.clip(0.1 * np.exp(Y - 3), 0.02, 0.9))
    log = world.observe(rng=5)
    unseen = np.ones(Y.shape, bool)
    unseen[log.user, log.item] = False

    def level(model):
        return abs(np.mean((model.scores(np.arange(150)) - Y)[unseen]))

    plain = MF(factors=3, reg=2.0).fit(log, 1 / log.propensity)
    assert level(Recalibrated(MF(factors=3, reg=2.0)).fit(log, 1 / log.propensity)) < 0.7 * level(plain)


def test_heavy_weights_do_not_turn_an_order_round():
    """The level of a model without a fold runs against the fold's ratings; the slope does not hear of it."""
    rng, slopes = np.random.default_rng(2), []
    for _ in range(6):
        a, b, e = rng.standard_normal((100, 1)), rng.standard_normal(80), rng.standard_normal((100, 80))
        Y = 3 + 0.5 * (a + b + e)
        cells = rng.choice(8000, 600, replace=False)
        log = ol.Feedback.from_arrays(cells // 80, cells % 80, Y.ravel()[cells], users=100, items=80)
        model = Recalibrated(MF(0, reg=20.0)).fit(log, np.exp(2.5 * rng.standard_normal(600)))
        slopes.append(model.slope_)
    assert min(slopes) >= 0
    assert np.mean(np.array(slopes) > 0) > 0.5


def test_a_model_that_runs_against_the_ratings_is_noted():
    """Ratings are noise, so held-out predictions have no slope worth a name."""
    rng = np.random.default_rng(1)
    keep = rng.random(LOG.n_users * LOG.n_items) < 0.3
    cells = np.flatnonzero(keep)
    noise = ol.Feedback.from_arrays(cells // 40, cells % 40, rng.standard_normal(len(cells)), users=60, items=40)
    found = [Recalibrated(Bias(reg=0.01), rng=seed).fit(noise) for seed in range(6)]
    assert all(abs(model.slope_) < 0.3 for model in found)
    for model in found:
        assert any("slope" in note for note in model.notes_) == (model.slope_ == 0)


def test_what_cannot_be_recalibrated_is_refused():
    with pytest.raises(InputError, match=facts("Recalibrated", "form", "'steps'")):
        Recalibrated(MF(), form="steps").fit(LOG)
    with pytest.raises(InputError, match=facts("Recalibrated", "Exposure")):
        Recalibrated(Exposure()).fit(LOG)
    with pytest.raises(InputError, match=facts("Recalibrated", "isotonic")):
        Recalibrated(Recalibrated(MF(), form="isotonic")).fit(LOG)


def test_it_nests():
    model = Stack([Recalibrated(MF(factors=2, reg=3.0)), Bias()]).fit(LOG, W)
    assert model.columns_ == ("Recalibrated", "Bias")
    assert np.isfinite(model.scores([0])).all()
