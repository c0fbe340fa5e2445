import numpy as np
import pytest
from numba import njit
from scipy import stats

from openloop.kernels.polya_gamma import polya_gamma, share_above
from openloop.kernels.streams import row_words, stream_word

N = 40_000
TILTS = [0.0, 0.3, 1.7, 3.2, -6.0, 25.0, 2000.0]  # both proposals, their border z = 1/T, and beyond what exp can hold


@njit
def _many(words, c):
    out = np.empty(words.size)
    for i in range(words.size):
        out[i] = polya_gamma(words[i], c)
    return out


def words(n, *key):
    return row_words(stream_word(0, *key), np.arange(n))


def mean_of(c):
    return 0.25 if c == 0 else np.tanh(c / 2) / (2 * c)


def variance_of(c):
    """(sinh c - c)/(4c³ cosh²(c/2)), without overflow; 1/24 at 0."""
    if c == 0:
        return 1 / 24
    c = abs(c)
    return ((1 - np.exp(-2 * c)) / 2 - c * np.exp(-c)) / (4 * c**3) * 4 / (1 + np.exp(-c)) ** 2


@pytest.mark.parametrize("c", TILTS)
def test_mean_and_variance_are_those_of_the_law(c):
    draws = _many(words(N, 1), c)
    assert abs(draws.mean() - mean_of(c)) < 4 * np.sqrt(variance_of(c) / N)
    kurtosis = stats.kurtosis(draws)
    assert abs(draws.var() / variance_of(c) - 1) < 4 * np.sqrt((kurtosis + 2) / N)


@pytest.mark.parametrize("c", [0.0, 1.0, 4.0])
@pytest.mark.parametrize("t", [0.5, 8.0])
def test_the_laplace_transform_is_a_ratio_of_hyperbolic_cosines(c, t):
    values = np.exp(-t * _many(words(N, 2), c))  # E exp(-tω) = cosh(c/2)/cosh(√(c²/4 + t/2))
    truth = np.cosh(c / 2) / np.cosh(np.sqrt(c**2 / 4 + t / 2))
    assert abs(values.mean() - truth) < 4 * values.std() / np.sqrt(N)


def test_the_share_above_is_a_probability_that_falls():
    shares = np.array([share_above(z) for z in np.linspace(0, 40, 81)])
    assert np.all((shares >= 0) & (shares < 1) & (np.diff(shares, append=0) <= 0))
    assert share_above(0.0) == pytest.approx(0.5776, abs=1e-4)  # Polson, Scott & Windle: p/(p + q) at z = 0
