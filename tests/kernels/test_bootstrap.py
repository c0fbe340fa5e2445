"""The bootstrap kernel against its twin, and its weights against Poisson(1)."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from openloop.errors import InputError
from openloop.kernels.bootstrap import COUNTS, bootstrap_sums, bootstrap_sums_numpy, mix, poisson_weights
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


def test_no_table_is_nearer():
    # Falling factorials: Σ C(k, j) a_k = 256/j! for Poisson(1), which is 42.67 for j = 3: 43 is the nearest.
    poisson = 256 * np.exp(-1) / np.cumprod([1, 1, 2, 3, 4, 5, 6, 7])

    def chi2(a):
        return np.sum((np.pad(a, (0, 8 - len(a))) - poisson) ** 2 / poisson)

    for tail in product(range(12), range(5), range(3), range(2)):  # a_4 … a_7
        a3 = 43 - np.dot([4, 10, 20, 35], tail)
        a2 = 128 - 3 * a3 - np.dot([6, 10, 15, 21], tail)
        a1 = 256 - 2 * a2 - 3 * a3 - np.dot([4, 5, 6, 7], tail)
        a = np.array([256 - a1 - a2 - a3 - sum(tail), a1, a2, a3, *tail])
        assert (a < 0).any() or chi2(a) >= chi2(COUNTS)


# --- by law: kernel and twin


@pytest.mark.parametrize(("users", "m"), [(1, 1), (7, 1), (1024, 2), (1025, 3), (5000, 2), (3001, 5)])
def test_the_kernel_draws_the_weights_of_its_twin(users, m):
    X = np.random.default_rng(users).normal(1, 1, (users, m))
    np.testing.assert_allclose(bootstrap_sums(X, 9, 5), bootstrap_sums_numpy(X, 9, 5), rtol=1e-12, atol=1e-11)


def test_integer_sums_are_exact():
    X = np.arange(12_000.0).reshape(-1, 2)
    np.testing.assert_array_equal(bootstrap_sums(X, 6, 3), bootstrap_sums_numpy(X, 6, 3))


def test_same_seed_same_bits_whatever_the_thread_count():
    X = np.random.default_rng(0).normal(size=(4000, 2))
    one = bootstrap_sums(X, 11, 2**63 + 1, threads=1)
    for threads in (2, 3, 20):
        np.testing.assert_array_equal(bootstrap_sums(X, 11, 2**63 + 1, threads=threads), one)
    np.testing.assert_array_equal(bootstrap_sums(X, 5, 2**63 + 1), one[:5])
    assert not np.any(bootstrap_sums(X, 11, 2**63 + 2) == one)


def test_columns_are_only_read():
    X = np.random.default_rng(0).normal(size=(50, 2))
    wanted = bootstrap_sums(X, 3, 1)
    X.flags.writeable = False
    np.testing.assert_array_equal(bootstrap_sums(X, 3, 1), wanted)
    np.testing.assert_array_equal(bootstrap_sums(np.asfortranarray(X), 3, 1), wanted)


def test_a_sum_that_is_not_finite_stays_so():
    X = np.zeros((20, 2))
    X[:, 0] = np.nan
    totals = bootstrap_sums(X, 4, 0)
    assert np.isnan(totals[:, 0]).all()
    assert (totals[:, 1] == 0).all()


# --- by simulation


def test_bytes_and_weights_follow_the_table(weights):
    share = np.bincount(weights.astype(int).ravel(), minlength=len(COUNTS)) / weights.size
    np.testing.assert_allclose(share, COUNTS / 256, atol=5 * np.sqrt(0.25 / weights.size))


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


def test_no_users_sum_to_nothing():
    np.testing.assert_array_equal(bootstrap_sums(np.zeros((0, 2)), 3, 0), np.zeros((3, 2)))
