"""Y keeps the order of the completed matrix, worlds differ in P alone, and δ averages to the truth."""

from __future__ import annotations

import numpy as np
import pytest

import openloop as ol
from openloop.data.simulate import MARGINALS, low_rank
from openloop.studies.schnabel2016 import worlds

Y = low_rank(60, 80, 3, rng=0).astype(np.int8)
METRICS = ("mse", "mae", "accuracy", "dcg@5")


def ratings(rng, users=30, items=40, n=400):
    cells = rng.choice(users * items, n, replace=False)
    cells.sort()
    taste = rng.normal(size=users)[:, None] + rng.normal(size=items)
    stars = np.clip(np.rint(3 + taste), 1, 5).ravel()[cells].astype(np.float32)
    user, item = (codes.astype(np.int32) for codes in np.divmod(cells, items))
    return {"user": user, "item": item, "rating": stars, "shape": np.array([users, items])}, taste


def test_a_completed_world_has_the_marginals_and_follows_the_ratings():
    given, taste = ratings(np.random.default_rng(0))
    found = worlds.completed(given, factors=1, reg=5.0, seed=0)["Y"]
    assert found.dtype == np.int8
    assert np.bincount(found.ravel(), minlength=6)[1:] == pytest.approx(np.array(MARGINALS) * 1200, abs=1)
    assert np.corrcoef(found.ravel(), taste.ravel())[0, 1] > 0.7


def test_worlds_of_several_alphas_differ_in_propensities_alone():
    mild, severe = (worlds.semi_synthetic({"Y": Y}, alpha, seed=0) for alpha in (1.0, 0.25))
    assert tuple(mild.predictions) == worlds.MODELS
    for name in worlds.MODELS:
        assert np.array_equal(mild.predictions[name], severe.predictions[name])
    assert np.ptp(mild.propensities) == 0
    assert severe.propensities.mean() == pytest.approx(worlds.OBSERVED)
    assert severe.propensities[Y == 5].mean() == pytest.approx(64 * severe.propensities[Y == 1].mean())


def test_the_truth_is_the_average_of_delta():
    world = worlds.semi_synthetic({"Y": Y}, 0.25, seed=0)
    delta = worlds.losses(world, METRICS)
    assert delta.shape == (len(METRICS), len(worlds.MODELS), Y.size)
    truth = ol.evaluate(world.predictions, world.everything(), metrics=METRICS, estimators=["naive"])
    for m, metric in enumerate(METRICS):
        for j, model in enumerate(worlds.MODELS):
            assert delta[m, j].mean() == pytest.approx(truth[model, metric, "naive"].value, rel=1e-12)


def test_mae_of_the_five_models_follows_from_the_marginals():
    p = np.bincount(Y.ravel(), minlength=6)[1:] / Y.size
    delta = worlds.losses(worlds.semi_synthetic({"Y": Y}, 0.25, seed=0), ["mae"])
    expected = {"REC_ONES": 4 * p[4], "REC_FOURS": p[4], "ROTATE": 1 + 3 * p[0], "COARSENED": 2 * p[0] + p[1] + p[4]}
    for name, value in expected.items():
        assert delta[0, worlds.MODELS.index(name)].mean() == pytest.approx(value)
