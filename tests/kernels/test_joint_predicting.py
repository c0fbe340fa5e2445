"""Chances of levels, and of being observed, by draws of a joint model."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import expit

from openloop.kernels.joint_predicting import (
    ObservingDraws,
    Pairs,
    posterior_chances,
    posterior_chances_numpy,
    posterior_observed,
    posterior_observed_numpy,
)

POOL = ThreadPoolExecutor(2)


def single(*arrays):
    return [np.asarray(array, np.float32) for array in arrays]


def draws(U=6, I=5, L=4, S=3, seed=0):
    rng = np.random.default_rng(seed)
    u, v, e, f = single(*(rng.normal(size=(n, S, d)) for n, d in ((U, 3), (I, 3), (U, 2), (I, 2))))
    by_user, by_item, user_scale, item_scale = single(
        rng.normal(size=(U, S, L)), rng.normal(size=(I, S, L)), rng.gamma(5, 0.2, (U, S)), rng.gamma(5, 0.2, (I, S))
    )
    b = np.sort(rng.normal(size=(S, L - 1)), axis=1).astype(np.float32)
    ratings = SimpleNamespace(u=u, v=v, user_scale=user_scale, item_scale=item_scale, b=b)
    return ratings, ObservingDraws(e=e, f=f, by_user=by_user, by_item=by_item)


def pairs(U=6, I=5):
    user, item = np.divmod(np.arange(U * I), I)
    return Pairs(user=user, item=item, seen=np.arange(U * I) % 3 == 0)


def test_means_over_draws_are_the_plain_ones():
    ratings, observing = draws()
    ours = posterior_chances(ratings, observing, pairs(), POOL)
    np.testing.assert_allclose(ours, posterior_chances_numpy(ratings, observing, pairs()), atol=1e-6)
    np.testing.assert_allclose(ours.sum(axis=1), 1, atol=1e-12)
    observed = posterior_observed(observing, pairs(), POOL)
    np.testing.assert_allclose(observed, posterior_observed_numpy(observing, pairs()), atol=1e-6)


def test_an_unobserved_cell_is_less_likely_of_a_level_that_is_often_observed():
    # P = (½, ½) and p = (σ(-2), σ(2)): given unobserved, P = (σ(2), σ(-2)), which sum to 1.
    one, zero = np.ones((1, 1), np.float32), np.zeros((1, 1, 1), np.float32)
    ratings = SimpleNamespace(u=zero, v=zero, user_scale=one, item_scale=one, b=zero[0])
    by_user, by_item = single([[[-2.0, 2.0]]], [[[0.0, 0.0]]])
    observing = ObservingDraws(e=zero, f=zero, by_user=by_user, by_item=by_item)
    asked = Pairs(user=np.zeros(2, np.int64), item=np.zeros(2, np.int64), seen=np.array([False, True]))
    found = posterior_chances(ratings, observing, asked, POOL)
    assert found[0] == pytest.approx([expit(2), expit(-2)])
    assert found[1] == pytest.approx([0.5, 0.5])
    assert posterior_observed(observing, asked, POOL)[0] == pytest.approx([expit(-2), expit(2)])
