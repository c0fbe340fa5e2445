"""The bootstrap over users agrees with the influence, and repeats itself."""

from __future__ import annotations

import numpy as np
import pytest

import openloop as ol
from openloop.estimators.resampling import probability_of_being_best
from tests.examples import same, small_world
from tests.verdicts import mean

WORLD = small_world(users=400)
LOG = WORLD.observe(1)
MODELS = {"a": WORLD.predictions["a"], "b": WORLD.predictions["b"]}
ESTIMATORS = ["naive", "ips", "snips", "clipped@2", "stratified@3", ol.dr(np.full(WORLD.ratings.shape, 3.0))]


@pytest.fixture(scope="module")
def result():
    return ol.evaluate(MODELS, LOG, metrics=["mae", "rmse", "ndcg"], estimators=ESTIMATORS)


def test_it_agrees_with_the_influence(result):
    # 4,000 replicates know a standard error to 1/√8000 = 1.1 %.
    for key, estimate in result.estimates.items():
        boot = ol.bootstrap(estimate, replicates=4000, rng=0)
        assert boot.stderr == pytest.approx(estimate.stderr, rel=0.05), key
        same(boot.interval(0.9), estimate.interval(0.9), atol=0.3 * estimate.stderr, err_msg=f"{key}")
        assert abs(boot.replicates.mean() - estimate.value) < 0.2 * estimate.stderr, key


def test_the_seed_decides_and_the_threads_do_not(result):
    estimate = result["a", "mae", "snips"]
    one = ol.bootstrap(estimate, replicates=50, rng=7, threads=1).replicates
    np.testing.assert_array_equal(one, ol.bootstrap(estimate, replicates=50, rng=7, threads=3).replicates)
    np.testing.assert_array_equal(one, ol.bootstrap(estimate, replicates=50, rng=np.random.default_rng(7)).replicates)
    assert np.any(one != ol.bootstrap(estimate, replicates=50, rng=8).replicates)


def test_replicates_without_a_user_that_counts_do_not_count():
    log = LOG.take(LOG.user == 0)  # one user of 400 has rows: over a third of the replicates leave it out
    found = ol.evaluate(MODELS, log, metrics=["mae"], estimators=["snips"])["a", "mae", "snips"]
    boot = ol.bootstrap(found, replicates=200, rng=0)
    assert 0.2 < np.isnan(boot.replicates).mean() < 0.55
    assert np.isfinite([*boot.interval(), boot.stderr]).all()


# -- the probability of being best ---------------------------------------------------------------------------


def test_the_probability_is_that_of_a_normal_difference():
    # Φ(z) of the paired difference, here z = 1.
    noise = np.random.default_rng(0).normal(size=400)
    noise = (noise - noise.mean()) / noise.std() + 1 / np.sqrt(400)
    shares = probability_of_being_best({"a": mean(noise), "b": mean(0 * noise)}, "higher", replicates=20_000, rng=0)
    assert abs(shares["a"] - 0.8413) < 0.02
    lower = probability_of_being_best({"a": mean(noise), "b": mean(0 * noise)}, "lower", replicates=20_000, rng=0)
    assert abs(lower["a"] - 0.1587) < 0.02


def test_replicates_share_their_users():
    # What one user adds to both models cancels: the small advantage is certain.
    users = np.random.default_rng(0).normal(size=200)
    shares = probability_of_being_best({"a": mean(users + 1e-3), "b": mean(users)}, "higher", rng=0)
    assert shares["a"] == 1
