"""The bootstrap: published numbers, weights of Poisson(1), and the moments of its replicates."""

from __future__ import annotations

import numpy as np
import pytest

from openloop.errors import InputError
from openloop.kernels.bootstrap import COUNTS, bootstrap_sums, mix, poisson_weights
from tests.facts import facts

K = np.arange(len(COUNTS))


@pytest.fixture(scope="module")
def weights():
    """(replicates, users)"""
    return np.array([poisson_weights(7, b, 2003) for b in range(500)])


# --- by hand


def test_splitmix64_gives_the_published_numbers():
    # The reference C program of splitmix64, seed 1234567.
    state = np.uint64(1234567) + np.arange(1, 4, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    np.testing.assert_array_equal(
        mix(state), np.array([6457827717110365317, 3203168211198807973, 9817491932198370423], np.uint64)
    )


# --- by law: the table of weights


def test_the_table_has_mean_and_variance_of_poisson_and_nearly_its_skewness():
    assert COUNTS.sum() == 256
    assert (K * COUNTS).sum() == 256
    assert (K**2 * COUNTS).sum() == 512
    assert ((K - 1) ** 3 * COUNTS).sum() == 256 + 2


# --- by simulation


@pytest.mark.parametrize("axis", [0, 1])
def test_weights_are_independent_of_user_and_replicate(weights, axis):
    # Each correlation has standard deviation 1/√n; the largest of ten is below 4.5 of them.
    n = weights.size
    for lag in (1, 2, 3, 4, 7, 8, 9, 16, 64, 250):
        a, b = (np.roll(weights, s, axis) - 1 for s in (0, lag))
        assert abs(np.mean(a * b)) < 4.5 / np.sqrt(n)


def test_replicates_have_the_mean_and_covariance_of_the_bootstrap():
    # E[ΣWx] = Σx and Cov = Σ x xᵀ.
    rng = np.random.default_rng(1)
    X = rng.normal(1, [1, 3], (2000, 2))
    n = 20_000
    totals = bootstrap_sums(X, n, 11)
    sd = np.sqrt(np.sum(X**2, axis=0))
    scaled = (totals - X.sum(axis=0)) / sd
    np.testing.assert_array_less(abs(scaled.mean(axis=0)), 4 / np.sqrt(n))
    np.testing.assert_allclose(np.cov(scaled.T), (X / sd).T @ (X / sd), atol=5 / np.sqrt(n))


# --- at the door


def test_what_cannot_be_used_is_refused():
    with pytest.raises(InputError, match=facts("columns", (3,))):
        bootstrap_sums(np.zeros(3), 2, 0)
    with pytest.raises(InputError, match=facts("replicates", 0)):
        bootstrap_sums(np.zeros((3, 1)), 0, 0)
