"""Ratings of every cell, imputed from a log."""

from __future__ import annotations

import numpy as np

from openloop.audits.imputing import impute, on_scale, quantiles
from openloop.data.simulate import World, low_rank
from tests.examples import same

SHARES = (0.1, 0.2, 0.3, 0.25, 0.15)


def world(users=200, items=80):
    """Popular items are better liked, and seen ten times as often."""
    Y = low_rank(users, items, 3, SHARES, rng=0)
    return World(ratings=Y, propensities=np.broadcast_to(np.where(np.arange(items) < 16, 0.5, 0.05), Y.shape))


def completed(seed=0):
    truth = world()
    log = truth.observe(1)
    return truth, log, impute(log, 1 / log.propensity, seed).ratings(np.arange(200))


def test_quantiles_by_hand():
    same(quantiles(np.array([3.0, 1.0, 2.0]), np.array([1.0, 2.0, 1.0]), 4), [1, 1, 2, 3])


def test_values_become_the_nearest_level_or_stay_within_the_range():
    same(on_scale(np.array([-3.0, 1.4, 1.6, 9.0]), np.array([1, 2, 5], np.float32)), [1, 1, 2, 5])
    fine = np.linspace(0, 1, 200, dtype=np.float32)
    same(on_scale(np.array([-1.0, 0.123, 2.0]), fine), [0, 0.123, 1], rtol=1e-6)


def test_rows_of_the_log_keep_their_ratings_and_others_are_levels():
    truth, log, Y = completed()
    same(Y[log.user, log.item], log.rating)
    assert set(np.unique(Y)) <= set(np.unique(truth.ratings))


def test_blocks_of_users_are_rows_of_the_whole():
    _, log, Y = completed()
    some = impute(log, 1 / log.propensity, 0).ratings(np.arange(50, 90))
    np.testing.assert_array_equal(some, Y[50:90])


def test_the_population_keeps_its_shares_of_ratings_and_its_spread():
    truth, _, Y = completed()
    for level in range(1, 6):
        assert abs(np.mean(level == Y) - np.mean(truth.ratings == level)) < 0.06
    assert abs(Y.std() / truth.ratings.std() - 1) < 0.1


def test_the_same_seed_imputes_the_same_and_another_one_does_not():
    np.testing.assert_array_equal(completed()[2], completed()[2])
    assert np.any(completed()[2] != completed(seed=1)[2])
