"""Moves of the joint model as a whole: coordinates, gradients, and what their priors and Jacobians are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import invgamma, norm

from openloop.learners.solvers import joint_moves
from openloop.learners.solvers.joint_state import SPREAD, Sweeping
from tests.joint_cases import POOL, PRIOR, L, drawn, from_prior, key_of, rows_of


@pytest.fixture
def work():
    state = from_prior(np.random.default_rng(0))
    return Sweeping.of(rows_of(*drawn(state, np.random.default_rng(1))), state, key_of(0), POOL)


def test_thresholds_have_coordinates_and_a_jacobian():
    b = np.array([-1.0, 0.5, 0.7, 2.0])
    x = joint_moves.coordinates(b)
    np.testing.assert_allclose(joint_moves.thresholds(x), b)
    steps = 1e-6 * np.eye(4)
    ways = [(joint_moves.thresholds(x + h) - joint_moves.thresholds(x - h)) / 2e-6 for h in steps]
    np.testing.assert_allclose(joint_moves.jacobian(b), np.array(ways).T, atol=1e-8)


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


def test_the_information_is_positive_definite(work):
    assert np.linalg.eigvalsh(joint_moves.information(work))[0] > 0


def test_a_shift_and_a_spread_change_priors_by_their_ratio(work):
    at, c, k = work.at, 0.3, 1.4
    moved, prior = joint_moves.shifted(at, c, "u")
    centre = np.arange(1, L) - L / 2
    truth = (norm.logpdf(moved.b, centre) - norm.logpdf(at.b, centre)).sum()
    truth += (norm.logpdf(moved.user_mean) - norm.logpdf(at.user_mean)).sum()
    assert prior == pytest.approx(truth)
    np.testing.assert_allclose(moved.u - moved.user_mean, at.u - at.user_mean)
    for name, mean, which in (("by_user", at.level_mean, 0), ("by_item", 0.0, 1)):
        moved, prior = joint_moves.spread_out(at, k, name)
        law = invgamma(SPREAD[0], scale=SPREAD[1])
        effects, after = getattr(at, name), getattr(moved, name)
        truth = law.logpdf(moved.spread[which]) - law.logpdf(at.spread[which]) + 2 * np.log(k)
        truth += norm.logpdf(after, mean, np.sqrt(moved.spread[which])).sum() + effects.size * np.log(k)
        truth -= norm.logpdf(effects, mean, np.sqrt(at.spread[which])).sum()
        assert prior == pytest.approx(truth)
