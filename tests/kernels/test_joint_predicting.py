"""Chances of levels, and of being observed, by draws of a joint model."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

from openloop.kernels.joint_cells import Observing, Ratings
from openloop.kernels.joint_predicting import (
    Pairs,
    add_chances,
    add_chances_numpy,
    add_observed,
    add_observed_numpy,
)


def draw(seed=0, U=6, I=5, L=4):
    rng = np.random.default_rng(seed)
    ratings = Ratings(rng.normal(size=(U, 3)), rng.normal(size=(I, 3)), np.ones(U), np.full(I, 2.0), np.arange(1, L) - 2.0)
    effects = rng.normal(0, 1, (U, L)), rng.normal(0, 1, (I, L))
    return ratings, Observing(rng.normal(size=(U, 2)), rng.normal(size=(I, 2)), *effects)


def pairs(U=6, I=5):
    user, item = np.divmod(np.arange(U * I), I)
    return Pairs(user=user, item=item, seen=np.arange(U * I) % 3 == 0)


def test_sums_over_draws_are_the_plain_ones():
    ours, plain = np.zeros((2, 30, 4)), np.zeros((2, 30, 4))
    for seed in range(3):
        ratings, observing = draw(seed)
        add_chances(ratings, observing, pairs(), ours[0])
        add_observed(observing, pairs(), ours[1])
        add_chances_numpy(ratings, observing, pairs(), plain[0])
        add_observed_numpy(observing, pairs(), plain[1])
    np.testing.assert_allclose(ours, plain, atol=1e-12)
    np.testing.assert_allclose(ours[0].sum(axis=1), 3, atol=1e-12)


def test_an_unobserved_cell_is_less_likely_of_a_level_that_is_often_observed():
    # P = (½, ½) and p = (σ(-2), σ(2)): given unobserved, P = (σ(2), σ(-2))/(σ(2) + σ(-2)), and these sum to 1.
    ratings = Ratings(np.zeros((1, 1)), np.zeros((1, 1)), np.ones(1), np.ones(1), np.zeros(1))
    observing = Observing(np.zeros((1, 1)), np.zeros((1, 1)), np.array([[-2.0, 2.0]]), np.zeros((1, 2)))
    zero = np.zeros(2, np.int64)
    out = np.zeros((2, 2))
    add_chances(ratings, observing, Pairs(user=zero, item=zero, seen=np.array([False, True])), out)
    assert out[0] == pytest.approx([expit(2), expit(-2)])
    assert out[1] == pytest.approx([0.5, 0.5])
