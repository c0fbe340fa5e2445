"""Chances of levels over draws: by hand, and their twin."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy.stats import norm

from openloop.kernels.ordinal_prediction import OrdinalDraws, level_chances, level_chances_numpy


def draws(S=7, U=5, I=4, d=2, L=3, seed=0):
    rng = np.random.default_rng(seed)
    return OrdinalDraws(
        u=rng.standard_normal((U, S, d)).astype(np.float32), v=rng.standard_normal((I, S, d)).astype(np.float32),
        user_scale=rng.uniform(0.5, 2, (U, S)).astype(np.float32),
        item_scale=rng.uniform(0.5, 2, (I, S)).astype(np.float32),
        b=np.sort(rng.standard_normal((S, L - 1)), axis=1).astype(np.float32),
    )  # fmt: skip


def test_one_draw_by_hand():
    one = [np.full(shape, x, np.float32) for shape, x in [((1, 1, 1), 2), ((1, 1, 1), 0.5), ((1, 1), 4), ((1, 1), 1)]]
    given = OrdinalDraws(u=one[0], v=one[1], user_scale=one[2], item_scale=one[3], b=np.array([[0, 3]], np.float32))
    with ThreadPoolExecutor(1) as pool:
        found = level_chances(given, np.array([0]), np.array([0]), pool)[0]
    assert found == pytest.approx([norm.cdf(-0.5), norm.cdf(1) - norm.cdf(-0.5), 1 - norm.cdf(1)])


@pytest.mark.parametrize("n", [0, 1, 700])
def test_the_loop_agrees_with_its_definition(n):
    rng = np.random.default_rng(1)
    user, item = rng.integers(5, size=n), rng.integers(4, size=n)
    with ThreadPoolExecutor(2) as pool:
        found = level_chances(draws(), user, item, pool)
    assert found.shape == (n, 3)
    np.testing.assert_allclose(found, level_chances_numpy(draws(), user, item), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(found.sum(axis=1), 1, rtol=1e-14)
