"""A draw of a normal vector: its twin, its mean where z is 0, and its covariance."""

from __future__ import annotations

import numpy as np
from numba import njit

from openloop.kernels.gaussian import draw_normal, draw_normal_numpy


@njit
def _drawn(A, g, z):
    draw_normal(A, g, z)
    return g


def some(d=4):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((9, d))
    return x.T @ x, rng.standard_normal(d), rng.standard_normal(d)


def test_the_compiled_draw_is_its_twin():
    A, g, z = some()
    np.testing.assert_allclose(_drawn(A.copy(), g.copy(), z), draw_normal_numpy(A, g, z), rtol=1e-12)
    np.testing.assert_allclose(_drawn(A.copy(), g.copy(), np.zeros(4)), np.linalg.solve(A, g), rtol=1e-12)


def test_draws_have_the_inverse_precision_as_covariance():
    A, g, _ = some()
    away = np.array([_drawn(A.copy(), g.copy(), z) - np.linalg.solve(A, g) for z in np.eye(4)])  # rows are L⁻ᵀe_k
    np.testing.assert_allclose(away.T @ away, np.linalg.inv(A), rtol=1e-10)
