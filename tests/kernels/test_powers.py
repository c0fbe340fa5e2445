"""Sums of products: by hand, and many of them without loss."""

from __future__ import annotations

import numpy as np

from openloop.kernels.powers import Weighted, power_sums


def test_two_rows_by_hand():
    rows = Weighted(np.array([0.5, 0.75]), np.array([2.0, 4.0]), np.array([0, 1]))
    (found,) = power_sums(rows, np.array([3.0, -1.0]), 3.0, 2, np.array([0, 2]))
    np.testing.assert_allclose(found[0], [[0.5, 1.5, 4.5], [1, 3, 9], [2, 6, 18], [2, 6, 18], [2, 6, 18]])
    np.testing.assert_allclose(found[1, :, 1], [-0.75, -3, -12, -0.75 * 9, -4])  # its weight is cut at 3


def test_sums_of_many_rows_lose_nothing():
    n = 1_000_000
    rows = Weighted(np.full(n, 0.1), np.ones(n), np.zeros(n, np.int64))
    found = power_sums(rows, np.full(n, 0.3), np.inf, 1, np.array([0, n]))
    np.testing.assert_allclose(found[0, 0, 0], [n * 0.1, n * 0.03, n * 0.009], 1e-13)


def test_parts_have_their_own_sums():
    rows = Weighted(np.array([0.5, 0.75]), np.array([2.0, 4.0]), np.array([0, 0]))
    delta = np.array([3.0, -1.0])
    parts = power_sums(rows, delta, 3.0, 1, np.array([0, 1, 1, 2]))
    np.testing.assert_array_equal(parts[1], 0)
    np.testing.assert_allclose(parts.sum(axis=0), power_sums(rows, delta, 3.0, 1, np.array([0, 2]))[0])
