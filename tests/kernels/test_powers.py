"""Sums of products: by hand, and many of them without loss."""

from __future__ import annotations

import numpy as np
import pytest

from openloop.kernels.powers import Weighted, power_sums, power_sums_numpy

SUMS = pytest.mark.parametrize("sums", [power_sums, power_sums_numpy])


@SUMS
def test_two_rows_by_hand(sums):
    rows = Weighted(np.array([0.5, 0.75]), np.array([2.0, 4.0]), np.array([0, 1]))
    found = sums(rows, np.array([3.0, -1.0]), 3.0, 2)
    np.testing.assert_allclose(found[0], [[0.5, 1.5, 4.5], [1, 3, 9], [2, 6, 18], [2, 6, 18], [2, 6, 18]])
    np.testing.assert_allclose(found[1, :, 1], [-0.75, -3, -12, -0.75 * 9, -4])  # its weight is cut at 3


def test_sums_of_many_rows_lose_nothing():
    n = 1_000_000
    rows = Weighted(np.full(n, 0.1), np.ones(n), np.zeros(n, np.int64))
    np.testing.assert_allclose(
        power_sums(rows, np.full(n, 0.3), np.inf, 1)[0, 0], [n * 0.1, n * 0.03, n * 0.009], 1e-13
    )
