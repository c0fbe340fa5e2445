"""Draws of a normal vector have the inverse of its precision as covariance."""

from __future__ import annotations

import numpy as np
from numba import njit

from openloop.kernels.gaussian import draw_normal


@njit
def _drawn(A, g, z):
    draw_normal(A, g, z)
    return g


def some(d=4):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((9, d))
    return x.T @ x, rng.standard_normal(d), rng.standard_normal(d)


def test_draws_have_the_inverse_precision_as_covariance():
    A, g, _ = some()
    away = np.array([_drawn(A.copy(), g.copy(), z) - np.linalg.solve(A, g) for z in np.eye(4)])  # rows are L⁻ᵀe_k
    np.testing.assert_allclose(away.T @ away, np.linalg.inv(A), rtol=1e-10)
