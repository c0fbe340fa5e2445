"""Priors of the ordinal model: thresholds by Metropolis steps, and the law of variances."""

from __future__ import annotations

from functools import partial

import numpy as np
from scipy.stats import invgamma, kstest

from openloop.kernels.ordinal import level_log_likelihoods_numpy
from openloop.kernels.streams import stream_word
from openloop.learners.solvers import thresholds
from tests.kernels.test_ordinal import L, World


def test_centres_are_symmetric_and_a_unit_apart():
    np.testing.assert_array_equal(thresholds.centres(4), [-1.5, -0.5, 0.5, 1.5])


def test_variances_have_their_conditional_law():
    vectors = np.random.default_rng(0).standard_normal((6, 1))
    drawn = [thresholds.draw_variance(vectors, np.array([0.2]), stream_word(s))[0] for s in range(2000)]
    rate = 2 + np.sum((vectors - 0.2) ** 2) / 2
    assert kstest(drawn, invgamma(3 + 3, scale=rate).cdf).pvalue > 1e-3


def test_thresholds_move_one_parity_at_a_time_and_stay_in_order():
    w = World()
    likelihoods = partial(level_log_likelihoods_numpy, w.code, moments=w.moments)
    at, moved = thresholds.Thresholds(b=w.b, logs=likelihoods(w.b)), np.zeros(L - 1)
    for k in range(200):
        found, taken = thresholds.move_thresholds(at, np.full(L - 1, 1.0), k % 2, likelihoods, stream_word(0, k))
        assert not taken[1 - k % 2 :: 2].any()
        np.testing.assert_array_equal(found.b != at.b, taken)
        assert np.all(np.diff(found.b) > 0)
        np.testing.assert_allclose(found.logs, likelihoods(found.b), rtol=1e-12)
        at, moved = found, moved + taken
    assert np.all((moved > 5) & (moved < 95))


def test_without_rows_thresholds_have_their_prior():
    def nothing(b):
        return np.zeros(len(b) + 1)

    at, first = thresholds.Thresholds(b=np.array([-0.5, 0.5]), logs=np.zeros(3)), []
    for k in range(6000):
        at, _ = thresholds.move_thresholds(at, np.full(2, 1.5), k % 2, nothing, stream_word(1, k))
        first.append(at.b)
    rng = np.random.default_rng(0)
    prior = rng.normal([-0.5, 0.5], size=(100_000, 2))
    prior = prior[prior[:, 0] < prior[:, 1]]
    assert kstest(np.array(first)[::20, 0], prior[:, 0]).pvalue > 1e-3
    assert kstest(np.array(first)[::20, 1], prior[:, 1]).pvalue > 1e-3
