from __future__ import annotations

import numpy as np
import pytest

from openloop.kernels.least_squares import Rows
from openloop.kernels.projected_gradient import add_gradient, add_gradient_numpy


def case(dtype, factors=5, users=7, items=6, seed=0):
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 5, users)  # some users have no row
    partner = np.concatenate([np.sort(rng.permutation(items)[:n]) for n in counts]).astype(np.int32)
    y, w = rng.normal(3, 1, len(partner)).astype(dtype), rng.uniform(0.1, 2, len(partner)).astype(dtype)
    rows = Rows(np.concatenate([[0], np.cumsum(counts)]).astype(np.int64), partner, y, w)
    Q, P = (rng.normal(0, 1, (n, factors + 1)).astype(dtype) for n in (items, users))
    return rows, Q, P


def test_by_hand():
    # One user with v = 2 and a = 1, one item with w = 3 and b = 0.5, c = 1: e = 10 - 1 - 1 - 0.5 - 6 = 1.5.
    rows = Rows(np.array([0, 1]), np.array([0], np.int32), np.array([10.0]), np.array([2.0]))
    sums = np.zeros((1, 2, 2))
    assert add_gradient(rows, np.array([[3.0, 0.5]]), np.array([[2.0, 1.0]]), 1.0, sums) == 2 * 1.5**2
    assert sums.tolist() == [[[2 * 1.5 * 2, 2 * 1.5], [2 * 4, 2]]]


def test_the_sums_are_the_derivatives_of_the_loss():
    rows, Q, P = case("float64")
    sums, step = np.zeros((len(Q), 2, Q.shape[1])), 1e-5

    def loss(Q):
        return add_gradient_numpy(rows, Q, P, 2.5, np.zeros_like(sums))

    add_gradient(rows, Q, P, 2.5, sums)
    for i, k in np.ndindex(Q.shape):
        up, down = Q.copy(), Q.copy()
        up[i, k], down[i, k] = Q[i, k] + step, Q[i, k] - step
        assert -2 * sums[i, 0, k] == pytest.approx((loss(up) - loss(down)) / (2 * step), abs=1e-6)
        assert 2 * sums[i, 1, k] == pytest.approx((loss(up) - 2 * loss(Q) + loss(down)) / step**2, abs=1e-3)
