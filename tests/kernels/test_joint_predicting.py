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
    posterior_observed,
)

POOL = ThreadPoolExecutor(2)


def single(*arrays):
    return [np.asarray(array, np.float32) for array in arrays]


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
