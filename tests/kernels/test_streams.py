"""Draws by key: their laws, far tails included, compiled and of whole arrays."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit
from scipy.special import ndtri
from scipy.stats import gamma as gamma_law
from scipy.stats import kstest, truncnorm

from openloop.kernels import streams

N = 4000
ROWS = np.arange(N)


@njit
def drawn(kind, word, n, a, b):
    out = np.empty(n)
    for row in range(n):
        own = streams.row_word(word, row)
        if kind == 0:
            out[row] = streams.uniform(own, int(a))
        elif kind == 1:
            out[row] = streams.normal(own, int(a))
        elif kind == 2:
            out[row] = streams.gamma(own, a)
        else:
            out[row] = streams.truncated_normal(own, a, b)
    return out


def words(seed=0, role=0):
    return streams.row_words(streams.stream_word(seed, role), ROWS)


def test_words_by_hand():
    # splitmix64 in whole numbers of Python.
    def mixed(z: int) -> int:
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
        return z ^ (z >> 31)

    gamma, word = 0x9E3779B97F4A7C15, 42
    for part in (0, 7, 3):
        word = mixed((word + (part + 1) * gamma) % 2**64)
    assert int(streams.stream_word(42, 7, 3)) == word
    row = mixed((word + 6 * gamma) % 2**64)
    assert int(streams.row_word(streams.stream_word(42, 7, 3), 5)) == row
    number = (mixed((row + 3 * gamma) % 2**64) >> 12) / 2**52 + 2**-53
    assert streams.uniform(np.uint64(row), 2) == number
    assert streams.uniforms(np.array([row], np.uint64), 2) == number


@pytest.mark.parametrize("shape", [0.3, 1.0, 5.0, 150.5])
def test_gamma_has_its_law(shape):
    assert kstest(streams.gammas(words(3), shape), gamma_law(shape).cdf).pvalue > 1e-3


def test_uniform_and_normal_have_their_laws():
    assert kstest(streams.uniforms(words()), "uniform").pvalue > 1e-3
    assert kstest(streams.normals(words(), 1), "norm").pvalue > 1e-3


INTERVALS = [
    (-np.inf, np.inf), (-1.0, 0.5), (-np.inf, -2.0), (0.3, np.inf), (2.0, 2.1), (4.9, 5.2), (-5.5, -5.0), (5.9, 6.1),
    (6.0, 7.0), (7.0, np.inf), (-np.inf, -20.0), (-30.0, -25.0), (40.0, np.inf), (-300.0, -299.999),
]  # fmt: skip


@pytest.mark.parametrize(("low", "high"), INTERVALS)
def test_truncated_normals_have_their_law(low, high):
    x = streams.truncated_normals(words(5), np.full(N, low), np.full(N, high))
    assert np.all((x >= low) & (x <= high))
    assert len(np.unique(x)) > 0.99 * N
    # Far out the mirror image below 0 has a cdf that does not round to 1.
    mirrored, a, b = (-x, -high, -low) if low > 0 else (x, low, high)
    assert kstest(mirrored, truncnorm(a, b).cdf).pvalue > 1e-3


def test_far_out_a_truncated_normal_is_nearly_exponential():
    x = streams.truncated_normals(words(6), np.full(N, 1e6), np.full(N, np.inf))
    assert kstest((x - 1e6) * 1e6, "expon").pvalue > 1e-3


@pytest.mark.parametrize(
    ("kind", "a", "b"), [(0, 3, 0), (1, 2, 0), (2, 0.3, 0), (2, 7.5, 0)] + [(3, *i) for i in INTERVALS]
)
def test_compiled_draws_agree_with_their_twins(kind, a, b):
    word = streams.stream_word(9, 1)
    own = streams.row_words(word, ROWS)
    twin = {
        0: lambda: streams.uniforms(own, a),
        1: lambda: streams.normals(own, a),
        2: lambda: streams.gammas(own, a),
        3: lambda: streams.truncated_normals(own, np.full(N, a), np.full(N, b)),
    }[kind]()
    np.testing.assert_allclose(drawn(kind, word, N, float(a), float(b)), twin, rtol=1e-12, atol=1e-14)


def test_quantiles_are_scipys_to_the_last_digits():
    p = np.concatenate([np.logspace(-300, -1, 200), np.linspace(0.1, 0.9, 81), 1 - np.logspace(-15, -1, 50)])
    np.testing.assert_allclose([streams.normal_quantile(x) for x in p], ndtri(p), rtol=1e-13, atol=1e-15)
