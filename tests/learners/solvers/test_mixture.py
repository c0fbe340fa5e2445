"""EM: M steps by hand and by a numerical optimum, and information by the full Hessian."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, log_expit, logit

from openloop.kernels.mixture_em import ExpectedCounts, RatedCells, components, expected
from openloop.learners.solvers.mixture import (
    ClimbPlan,
    Parameters,
    Priors,
    ascend,
    information,
    log_prior,
    score,
    start,
    step,
)
from tests.kernels.test_mixture_em import rated

RIGHT = ClimbPlan(iterations=20_000, tol=1e-14)


def priors(levels: int = 3, offset_sd: float | None = None) -> Priors:
    return Priors(users=1.0, ratings=np.linspace(0.5, 1, levels), cells=1.5, offset_sd=offset_sd)


def F(cells: RatedCells, given: Priors, at: Parameters) -> float:
    return float(components(cells, at.mixture)[1].sum()) + log_prior(at, given)


def counted(cells: RatedCells, at: Parameters) -> ExpectedCounts:
    return expected(cells, at.mixture, components(cells, at.mixture)[0])


# --- the M step


def test_the_step_by_hand():
    # one item, two levels, two components: 3 and 1 users; 1 and 1 of their ratings observed, all at level 1
    counts = ExpectedCounts(np.array([3.0, 1.0]), np.array([[[0, 0], [1.0, 1]]]), np.array([[[1.0, 0], [2, 1]]]))
    at = Parameters(theta=np.ones(2) / 2, beta=np.full((1, 2, 2), 0.5), s=np.zeros(2), omega=np.zeros(1))
    new = step(counts, Priors(users=1, ratings=np.array([1.0, 2]), cells=0.5, offset_sd=None), at)
    np.testing.assert_allclose(new.theta, [4 / 6, 2 / 6])
    np.testing.assert_allclose(new.beta, [[[2 / 6, 1 / 4], [4 / 6, 3 / 4]]])
    # (0 + .5)/(1 + 1) and (2 + .5)/(3 + 1)
    np.testing.assert_allclose(expit(new.s), [0.25, 0.625])


@pytest.mark.parametrize("offset_sd", [None, 0.7])
def test_repeated_steps_reach_the_optimum_of_what_is_observed(offset_sd):
    given, cells = priors(offset_sd=offset_sd), rated(2)
    at = start(cells, 2, np.random.default_rng(0))
    counts = counted(cells, at)
    seen, total = counts.observed.sum(axis=2), counts.all.sum(axis=2)  # (I, L)

    def loss(x):
        s, omega = x[:3], x[3:] * (offset_sd is not None)
        eta, prior = s + omega[:, None], given.cells * (log_expit(s) + log_expit(-s)).sum()
        fit = np.sum(seen * log_expit(eta) + (total - seen) * log_expit(-eta))
        return -(fit + prior - (np.sum(omega**2) / (2 * offset_sd**2) if offset_sd else 0))

    best = minimize(loss, np.zeros(7), tol=1e-12, method="BFGS", options={"gtol": 1e-8})
    for _ in range(1 if offset_sd is None else 10):
        at = step(counts, given, at)
    # Not the points: SciPy stops where differences of the loss are rounding. A convex loss is least at one point alone.
    assert loss(np.concatenate([at.s, at.omega])) <= best.fun + 10 * np.finfo(float).eps * abs(best.fun)
    assert np.any(at.omega) == (offset_sd is not None)


@pytest.mark.parametrize("offset_sd", [None, 0.7])
def test_the_score_is_the_slope_of_the_penalised_likelihood(offset_sd):
    given, cells = priors(offset_sd=offset_sd), rated(4)
    at = replace(start(cells, 2, np.random.default_rng(1)), s=np.array([-1.0, 0.2, 0.5]))
    counts = counted(cells, at)
    slope = score(counts.observed.sum(axis=2), counts.all.sum(axis=2), given, at)
    h = 1e-5
    moved = [
        (F(cells, given, replace(at, s=at.s + h * e)) - F(cells, given, replace(at, s=at.s - h * e))) / (2 * h)
        for e in np.eye(3)
    ]
    np.testing.assert_allclose(slope, moved, rtol=1e-6)


# --- how well s is known


def test_information_is_the_full_hessian_without_what_else_is_fitted():
    # two levels and one component: β is a logit per item, so the Hessian of all parameters is small
    cells = rated(3, (40, 3, 2), 0.5)
    given = Priors(users=1.0, ratings=np.array([8.0, 6.0]), cells=1.5, offset_sd=0.5)
    at = ascend(cells, given, start(cells, 1, np.random.default_rng(0)), RIGHT).at

    def value(x):
        b = expit(x[2:5])
        beta = np.stack([b, 1 - b], axis=1)[:, :, None]
        return F(cells, given, Parameters(theta=np.ones(1), beta=beta, s=x[:2], omega=x[5:]))

    x, h = np.concatenate([at.s, logit(at.beta[:, 0, 0]), at.omega]), 1e-3
    E = h * np.eye(len(x))
    full = [[value(x + a + b) - value(x + a - b) - value(x - a + b) + value(x - a - b) for a in E] for b in E]
    J = -np.array(full) / (4 * h**2)
    schur = J[:2, :2] - J[:2, 2:] @ np.linalg.solve(J[2:, 2:], J[2:, :2])
    np.testing.assert_allclose(information(cells, given, at, RIGHT), schur, rtol=0.02)
