"""Draws of the ordinal model have their conditional laws."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy.stats import invgamma, kstest, norm

from openloop.kernels import ordinal as kernel
from openloop.kernels.streams import stream_word

U, I, D, L = 12, 9, 3, 5
WORD = stream_word(4, 2)


@pytest.fixture(scope="module")
def pool():
    with ThreadPoolExecutor(2) as found:
        yield found


class World:
    """A small log with a user and an item without rows, and parameters for it."""

    def __init__(self, seed=0):
        rng = np.random.default_rng(seed)
        user, item = np.nonzero(rng.random((U, I)) < 0.5)
        keep = (user != 3) & (item != 2)
        self.user, self.item = user[keep], item[keep]
        self.sides = kernel.two_sides(self.user, self.item, (U, I))
        n = len(self.user)
        self.code = rng.integers(L, size=n).astype(np.int16)
        self.u, self.v = rng.standard_normal((U, D)), rng.standard_normal((I, D))
        self.scales = rng.uniform(0.5, 2, U), rng.uniform(0.5, 2, I)
        self.b, self.a = np.array([-1.5, -0.2, 0.4, 1.9]), rng.standard_normal(n)
        self.belief = kernel.Belief(mean=rng.standard_normal(D), variance=rng.uniform(0.3, 2, D))

    @property
    def moments(self):
        return kernel.row_moments_numpy(self.sides[0], self.u, self.v, self.scales)


def test_latent_scores_lie_between_their_thresholds(pool):
    w, many = World(), 300
    code, moments = np.tile(w.code, many), np.tile(w.moments, many)
    a = kernel.draw_latent(code, w.b, moments, WORD, pool)
    edges = kernel.bounds(w.b)
    assert np.all((edges[code] <= a) & (a <= edges[code + 1]))


def test_vectors_and_scales_have_their_conditional_laws(pool):
    # One user with two rows and one factor, drawn many times: moments by hand.
    n, m = 4000, 2
    users, _ = kernel.two_sides(np.repeat(np.arange(n), m), np.tile([0, 1], n), (n, m))
    v, a, other = np.array([[2.0], [1.0]]), np.tile([1.0, -0.5], n), np.array([0.5, 2.0])
    belief = kernel.Belief(mean=np.array([0.3]), variance=np.array([2.0]))
    u = kernel.draw_side(users, a, v, (np.full(n, 1.5), other), belief, WORD, pool)[:, 0]
    precision = 1 / 2 + 4 / (1.5 * 0.5) + 1 / (1.5 * 2)
    mean = (0.3 / 2 + 2 / (1.5 * 0.5) - 0.5 / (1.5 * 2)) / precision
    assert kstest(u, norm(mean, precision**-0.5).cdf).pvalue > 1e-3
    near = kernel.Near(at=u[:, None], reach=np.full(n, 0.6))  # leaves the law as it is, and stays near
    w = kernel.draw_side(users, a, v, (np.full(n, 1.5), other), belief, stream_word(2), pool, near)[:, 0]
    assert kstest(w, norm(mean, precision**-0.5).cdf).pvalue > 1e-3
    assert abs(np.corrcoef(u, w)[0, 1] - 0.8) < 4 * 0.36 / np.sqrt(n)
    gamma = kernel.draw_scales(users, a, (np.full((n, 1), 0.4), v), other, (5.0, 4.0), stream_word(1), pool)
    rate = 4 + ((1 - 0.8) ** 2 / 0.5 + (-0.5 - 0.4) ** 2 / 2) / 2
    assert kstest(gamma, invgamma(5 + 1, scale=rate).cdf).pvalue > 1e-3
