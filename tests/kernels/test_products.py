"""Products of user and item vectors."""

from __future__ import annotations

import numpy as np

from openloop.kernels import products
from openloop.kernels.products import factor_products

RNG = np.random.default_rng(0)
A, B = RNG.normal(size=(7, 3)), RNG.normal(size=(5, 3))


def test_cells_and_blocks_are_those_of_the_grid(monkeypatch):
    user, item = (codes.ravel() for codes in np.indices((7, 5)))
    np.testing.assert_allclose(factor_products(A, B, user, item), (A @ B.T).ravel(), rtol=1e-12)
    np.testing.assert_allclose(factor_products(A, B, np.array([[6], [0]]), np.arange(5)), (A @ B.T)[[6, 0]])
    whole = factor_products(A, B, user, item)
    monkeypatch.setattr(products, "BLOCK", 12)  # four cells at a time
    np.testing.assert_array_equal(factor_products(A, B, user, item), whole)
