"""Cholesky factors inside kernels: NumPy's, and NaN where there are none."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit

from openloop.kernels.cholesky import factor, substitute


@njit
def solved(A, g):
    L = factor(A.copy())
    x = g.copy()
    gain = substitute(L, x)
    return L, x, gain


@pytest.fixture
def A() -> np.ndarray:
    x = np.random.default_rng(0).normal(size=(12, 7))
    return x.T @ x


def test_it_is_that_of_numpy(A):
    g = np.arange(7.0)
    L, x, gain = solved(A, g)
    np.testing.assert_allclose(np.tril(L), np.linalg.cholesky(A), rtol=1e-10)
    np.testing.assert_allclose(x, np.linalg.solve(A, g), rtol=1e-9)
    assert gain == pytest.approx(g @ np.linalg.solve(A, g), rel=1e-9)


@pytest.mark.parametrize("A", [np.ones((2, 2)), -np.eye(2)], ids=["singular", "negative"])
def test_without_a_factor_it_is_nan(A):
    _, x, gain = solved(A, np.ones(2))
    assert np.isnan(x).all()
    assert np.isnan(gain)
