"""Moves of the joint model as a whole: the slope of their log density."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm

from openloop.learners.solvers import joint_moves
from openloop.learners.solvers.joint_state import Sweeping
from tests.joint_cases import POOL, PRIOR, L, drawn, from_prior, key_of, rows_of


@pytest.fixture
def work():
    state = from_prior(np.random.default_rng(0))
    return Sweeping.of(rows_of(*drawn(state, np.random.default_rng(1))), state, key_of(0), POOL)


def density(work, x):
    """The log density of θ = (b_1, log spacings, m) given the rest."""
    at = work.at
    b, dm = joint_moves.thresholds(x[: L - 1]), x[L - 1 :] - at.level_mean
    moved = replace(at, b=b, by_user=at.by_user + dm, level_mean=x[L - 1 :])
    prior = norm.logpdf(b, np.arange(1, L) - L / 2).sum() + norm.logpdf(moved.level_mean, PRIOR, 2).sum()
    return work.missing(moved).sum() + work.observed(moved) + prior + np.sum(x[1 : L - 1])


def test_the_slope_is_that_of_the_log_density(work):
    found = joint_moves._slope(work, work.at, work.logs, work.gradient)
    x = np.append(joint_moves.coordinates(work.at.b), work.at.level_mean)
    steps = 1e-5 * np.eye(2 * L - 1)
    ways = [(density(work, x + h) - density(work, x - h)) / 2e-5 for h in steps]
    np.testing.assert_allclose(found.gradient, ways, rtol=1e-4, atol=1e-4)
    other = x + 0.1
    moved = replace(work.at, b=joint_moves.thresholds(other[: L - 1]), level_mean=other[L - 1 :])
    moved = replace(moved, by_user=work.at.by_user + 0.1)
    there = joint_moves._slope(work, moved, work.missing(moved), work.gradient)
    np.testing.assert_allclose(there.log - found.log, density(work, other) - density(work, x), rtol=1e-8)
