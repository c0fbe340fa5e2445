"""Sums of products: by hand, against their definition, and many of them without loss."""

from __future__ import annotations

import numpy as np
import pytest

from openloop.kernels import reweighting
from openloop.kernels.powers import Weighted, power_sums, power_sums_numpy

SUMS = pytest.mark.parametrize("sums", [power_sums, power_sums_numpy])


@SUMS
def test_two_rows_by_hand(sums):
    rows = Weighted(np.array([0.5, 0.75]), np.array([2.0, 4.0]), np.array([0, 1]))
    found = sums(rows, np.array([3.0, -1.0]), 3.0, 2)
    np.testing.assert_allclose(found[0], [[0.5, 1.5, 4.5], [1, 3, 9], [2, 6, 18], [2, 6, 18], [2, 6, 18]])
    np.testing.assert_allclose(found[1, :, 1], [-0.75, -3, -12, -0.75 * 9, -4])  # its weight is cut at 3


@SUMS
def test_no_rows_and_strata_without_any(sums):
    none = np.empty(0)
    assert not sums(Weighted(none, none, none.astype(np.int64)), none, np.inf, 3).any()


@pytest.mark.parametrize("strata", [1, 10])
def test_the_kernel_is_its_definition(strata, monkeypatch):
    monkeypatch.setattr(reweighting, "BLOCK", 64)
    rng = np.random.default_rng(0)
    p = rng.uniform(0.01, 1, 1000)
    rows, delta = Weighted(1 - p, 1 / p, rng.integers(0, strata, 1000)), rng.normal(size=1000)
    found, wanted = (sums(rows, delta, 20.0, strata) for sums in (power_sums, power_sums_numpy))
    np.testing.assert_allclose(found, wanted, rtol=1e-11, atol=1e-9)


def test_sums_of_many_rows_lose_nothing():
    n = 1_000_000
    rows = Weighted(np.full(n, 0.1), np.ones(n), np.zeros(n, np.int64))
    np.testing.assert_allclose(
        power_sums(rows, np.full(n, 0.3), np.inf, 1)[0, 0], [n * 0.1, n * 0.03, n * 0.009], 1e-13
    )
