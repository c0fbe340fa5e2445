"""Sums of runs and of products: by hand, against their definition, and many of them without loss."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from openloop.kernels.powers import Weighted, power_sums, run_sums


def defined(rows, delta, cap, strata, start):
    """The definition, one part and stratum after the other."""
    sums = np.zeros((len(start) - 1, strata, 6, 3))
    for part, first in enumerate(start[:-1]):
        for stratum in range(strata):
            mine = np.arange(first, start[part + 1])
            mine = mine[rows.stratum[mine] == stratum]
            c, w, a, d = rows.factor[mine], rows.weight[mine], rows.certain[mine], delta[mine]
            b = np.maximum(w - a, 0)
            powers = [
                [np.sum(v * d**k) for k in range(3)] for v in (c, c * w, c * w**2, c * np.minimum(w, cap) ** 2, w)
            ]
            sums[part, stratum] = [*powers, [np.sum(a * d), np.sum(b * d * (d > 0)), np.sum(-b * d * (d < 0))]]
    return sums


def test_two_rows_by_hand():
    rows = Weighted(np.array([0.5, 0.75]), np.array([2.0, 4.0]), np.array([1.0, 1.0]), np.array([0, 1]))
    found = power_sums(rows, np.array([3.0, -1.0]), 3.0, 2, np.array([0, 2]))[0]
    np.testing.assert_allclose(found[0], [[0.5, 1.5, 4.5], [1, 3, 9], [2, 6, 18], [2, 6, 18], [2, 6, 18], [3, 3, 0]])
    np.testing.assert_allclose(found[1, :, 1], [-0.75, -3, -12, -0.75 * 9, -4, 0])  # its weight is cut at 3
    assert found[1, 5, 2] == 3


def test_no_rows_and_strata_without_any():
    none = np.empty(0)
    rows = Weighted(none, none, none, none.astype(np.int64))
    assert not power_sums(rows, none, np.inf, 3, np.array([0, 0, 0])).any()


@pytest.mark.parametrize("strata", [1, 10])
def test_the_kernel_is_its_definition(strata):
    rng = np.random.default_rng(0)
    p, start = rng.uniform(0.01, 1, 5000), np.array([0, 0, 3100, 3101, 5000])
    rows = Weighted(1 - p, 1 / p, rng.uniform(0, 2, 5000), rng.integers(0, strata, 5000))
    delta = rng.normal(size=5000)
    found = power_sums(rows, delta, 20.0, strata, start)
    np.testing.assert_allclose(found, defined(rows, delta, 20.0, strata, start), rtol=1e-10, atol=1e-8)
    runs = [delta[first:last].sum() for first, last in pairwise(start)]
    np.testing.assert_allclose(run_sums(delta, start), runs)


def test_sums_of_many_rows_lose_nothing():
    n = 1_000_000
    rows = Weighted(np.full(n, 0.1), np.ones(n), np.zeros(n), np.zeros(n, np.int64))
    found = power_sums(rows, np.full(n, 0.3), np.inf, 1, np.array([0, n]))
    np.testing.assert_allclose(found[0, 0, 0], [n * 0.1, n * 0.03, n * 0.009], 1e-13)
