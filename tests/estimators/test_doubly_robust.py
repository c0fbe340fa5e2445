"""The doubly robust estimate: exact where imputation is, unbiased where it is not."""

from __future__ import annotations

import numpy as np
import pytest

import openloop as ol
from openloop.core.feedback import Feedback
from openloop.data.simulate import World
from openloop.errors import InputError, PredictionError, UndefinedError
from openloop.estimators.doubly_robust import cross_fitted
from tests.examples import CELL, same, small_world
from tests.facts import facts

WORLD = small_world()
LOG = WORLD.observe(1)
MODELS = {"a": WORLD.predictions["a"], "b": WORLD.predictions["b"]}
GUESS = np.full(WORLD.ratings.shape, 3.0)


def dr(imputation, name="mae", log=LOG, models=MODELS, **options):
    return ol.evaluate(models, log, metrics=[name], estimators=[ol.dr(imputation)], **options)


class Means:
    """Item means of the ratings seen, shrunk to the mean of all; it counts its cells."""

    def fit(self, feedback, sample_weight=None):
        n = np.bincount(feedback.item, minlength=feedback.n_items)
        total = np.bincount(feedback.item, feedback.rating, minlength=feedback.n_items)
        self.item_ = (total + 2 * feedback.rating.mean()) / (n + 2)
        self.seen_ = set(feedback.cell.tolist())
        return self

    def scores(self, users):
        return np.tile(self.item_, (len(users), 1))


# -- laws ----------------------------------------------------------------------------------------------------


def test_zero_residuals_make_it_exact():
    truth = ol.evaluate(MODELS, WORLD.everything(), metrics=CELL, estimators=["naive"])
    for name in CELL:
        result = dr(WORLD.ratings.astype(float), name)
        for model in MODELS:
            found = result[model, name, "dr"]
            same(found.value, truth[model, name, "naive"].value, rtol=1e-9, err_msg=f"{name} of {model}")
            assert found.cell_variance == pytest.approx(0, abs=1e-20), f"{name} of {model}"


def test_no_imputed_loss_makes_it_ips():
    found = dr(MODELS["a"])["a", "mae", "dr"]  # imputed as the model itself predicts
    plain = ol.evaluate(MODELS, LOG, metrics=["mae"], estimators=["ips"])["a", "mae", "ips"]
    same(found.value, plain.value)
    same(found.influence, plain.influence)
    same(found.cell_variance, plain.cell_variance)


def test_by_hand_it_is_the_imputed_mean_and_the_ips_of_the_residual():
    delta, hat = np.abs(WORLD.ratings - MODELS["a"]), np.abs(GUESS - MODELS["a"])
    residual, p = (delta - hat)[LOG.user, LOG.item], LOG.propensity
    found = dr(GUESS)["a", "mae", "dr"]
    same(found.value, hat.mean() + (residual / p).sum() / 360)
    same(found.cell_variance, ((1 - p) / p**2 * residual**2).sum() / 360**2)
    per_user = hat.sum(axis=1) + np.bincount(LOG.user, residual / p, minlength=30)
    same(found.stderr, per_user.std(ddof=1) / np.sqrt(30) / 12)


def test_excluded_cells_are_imputed_neither():
    train, test = ol.split(LOG, test=0.5, rng=0)
    keep = np.ones(WORLD.ratings.shape, bool)
    keep[train.user, train.item] = False
    ranked = dr(GUESS, "dcg", test, {"a": MODELS["a"]}, exclude=train)["a", "dcg", "dr"]
    scores = np.where(keep, MODELS["a"], -np.inf)
    same(ranked.columns[:, 1], keep.sum(axis=1))
    rank = 1 + (scores[:, None, :] > scores[:, :, None]).sum(axis=2)
    same(ranked.columns[:, 2], (keep.sum(axis=1)[:, None] * GUESS / np.log2(1 + rank) * keep).sum(axis=1))


# -- cross-fitting -------------------------------------------------------------------------------------------


def test_no_cell_helps_to_impute_itself():
    fitted = []

    class Spy(Means):
        def fit(self, feedback, sample_weight=None):
            fitted.append(self)
            return super().fit(feedback)

        def scores(self, users):
            return np.full((len(users), 12), float(fitted.index(self)))

        def __deepcopy__(self, memo):
            return Spy()

    imputed = cross_fitted(Spy(), LOG, folds=4, rng=0)
    assert len(fitted) == 4
    for cell, model in zip(LOG.cell, imputed[LOG.user, LOG.item].astype(int), strict=True):
        assert cell not in fitted[model].seen_
    assert sum(len(f.seen_) for f in fitted) == 3 * len(LOG)  # each row helps all other folds


def test_a_huge_grid_is_refused():
    log = Feedback.from_arrays([0, 1], [0, 1], [1, 2], users=100_000, items=10_000)
    with pytest.raises(InputError, match=facts("cross_fitted", "100,000 × 10,000")):
        cross_fitted(Means(), log, folds=2, rng=0)


def test_cross_fitted_it_is_unbiased_over_draws_and_narrower_than_ips():
    rng = np.random.default_rng(0)
    Y = np.clip(np.rint(rng.normal(3, 0.6, (40, 1)) + rng.normal(0, 1.2, 20)), 1, 5).astype(np.float32)
    world = World(ratings=Y, propensities=0.1 + 0.1 * Y, predictions={"m": np.full(Y.shape, 2.4)})
    truth, found = np.square(Y - 2.4).mean(dtype=float), {"ips": [], "dr": []}
    for _ in range(400):
        log = world.observe(rng)
        result = ol.evaluate(
            dict(world.predictions), log, metrics=["mse"], pairs=(),
            estimators=["ips", ol.dr(cross_fitted(Means(), log, folds=4, rng=rng))],
        )  # fmt: skip
        for name, values in found.items():
            values.append(result["m", "mse", name].value)
    for name, values in found.items():
        assert abs(np.mean(values) - truth) < 3.5 * np.std(values) / 20, name
    assert np.std(found["dr"]) < 0.8 * np.std(found["ips"])


# -- what is refused -----------------------------------------------------------------------------------------


def test_without_imputation_it_is_left_out_with_the_reason():
    with pytest.raises(UndefinedError, match=facts("dr", "mae", "ol.dr(")):
        ol.evaluate(MODELS, LOG, metrics=["mae"], estimators=["dr"])


@pytest.mark.parametrize("bad", [np.full((30, 12), np.nan), np.zeros((12, 30)), np.zeros((29, 12))])
def test_imputation_is_a_finite_number_for_every_cell(bad):
    with pytest.raises(PredictionError, match="imputation"):
        dr(bad)


def test_a_negative_estimate_has_no_root():
    # Two cells seen of four, far better than imputed, and rare: the correction exceeds what was imputed.
    log = Feedback.from_arrays([0, 1], [0, 1], [3, 3], users=2, items=2, propensity=[0.1, 0.1])
    models = {"m": np.full((2, 2), 3.0)}
    options = {"estimators": [ol.dr(np.full((2, 2), 4.0))]}
    assert ol.evaluate(models, log, metrics=["mse"], **options)["m", "mse", "dr"].value == 1 - 20 / 4
    with pytest.raises(UndefinedError, match=facts("dr", "rmse", -4)):
        ol.evaluate(models, log, metrics=["rmse"], **options)


def test_it_is_for_cell_metrics():
    with pytest.raises(UndefinedError, match=facts("dr", "adg", "cell metrics")):
        dr(GUESS, "adg")
