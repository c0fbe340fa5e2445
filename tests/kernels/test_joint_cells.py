"""Cells of a joint model: Φ by its table, and the chance to be unobserved."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numba import njit
from scipy.special import expit, ndtr

from openloop.kernels.joint_cells import (
    UNSEEN,
    GridCells,
    Observing,
    Ratings,
    fast_cdf,
    missing_logs,
)

POOL = ThreadPoolExecutor(2)


@njit
def _cdf(x):
    out = np.empty(x.size)
    for k in range(x.size):
        out[k] = fast_cdf(x[k])
    return out


def test_the_table_gives_the_normal_distribution():
    x = np.concatenate([np.linspace(-9, 9, 20_001), [-np.inf, np.inf, -40.0, 40.0, 0.0]])
    np.testing.assert_allclose(_cdf(x), ndtr(x), rtol=0, atol=1e-13)


def test_by_hand():
    # P = (Φ(0), 1 - Φ(0)) = (½, ½); p = (σ(-1), σ(2)): S = ½σ(1) + ½σ(-2).
    ratings = Ratings(np.array([[2.0]]), np.array([[0.5]]), np.ones(1), np.full(1, 4.0), np.array([1.0]))
    observing = Observing(np.array([[1.0]]), np.array([[0.5]]), np.array([[-1.0, 1.0]]), np.array([[-0.5, 0.5]]))
    cells = GridCells(np.array([0, 1]), np.zeros(1, np.int32), np.full(1, UNSEEN, np.int8), 1)
    truth = np.log(0.5 * expit(1.0) + 0.5 * expit(-2.0))
    assert missing_logs(cells, ratings, observing, POOL)[0] == pytest.approx(truth, abs=1e-13)
