"""EM: M steps by hand and by a numerical optimum, F that rises, and information by the full Hessian."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, log_expit, logit

from openloop.errors import DivergenceError
from openloop.kernels.mixture_em import ExpectedCounts, RatedCells, components, expected
from openloop.learners.solvers import mixture
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
from tests.facts import facts
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


def test_a_newton_step_that_overshoots_is_halved():
    # s so far out that the curvature is almost 0 there: a full step would land at about +4,000
    counts = ExpectedCounts(np.array([50.0]), np.full((2, 2, 1), 5.0), np.full((2, 2, 1), 25.0))
    given = Priors(users=1, ratings=np.ones(2), cells=1e-9, offset_sd=1.0)
    far = Parameters(theta=np.ones(1), beta=np.full((2, 2, 1), 0.5), s=np.full(2, -8.0), omega=np.zeros(2))
    new = step(counts, given, far)
    assert np.all(np.abs(new.s) < 8)
    for _ in range(30):
        new = step(counts, given, new)
    np.testing.assert_allclose(expit(new.s + new.omega[:, None]), 0.2, atol=1e-6)


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


# --- the climb


@pytest.mark.parametrize("offset_sd", [None, 0.7])
@pytest.mark.parametrize("seed", range(3))
def test_the_penalised_likelihood_rises_and_ends_where_it_is_flat(offset_sd, seed):
    given, cells = priors(offset_sd=offset_sd), rated(seed, (30, 6, 3))
    found = ascend(cells, given, start(cells, 2, np.random.default_rng(seed)), RIGHT)
    assert found.settled
    assert np.all(np.diff(found.history) >= -1e-10 * np.abs(found.history[:-1]))
    assert found.history[-1] == pytest.approx(F(cells, given, found.at))
    near = np.random.default_rng(9)
    for _ in range(20):
        beta = found.at.beta * np.exp(0.01 * near.standard_normal(found.at.beta.shape))
        other = replace(
            found.at, beta=beta / beta.sum(axis=1, keepdims=True), s=found.at.s + 0.01 * near.standard_normal(3),
            omega=found.at.omega + 0.01 * near.standard_normal(6) * (offset_sd is not None),
        )  # fmt: skip
        assert F(cells, given, other) < found.history[-1]


def test_steps_are_counted_and_told():
    cells, told = rated(0), []
    plan = ClimbPlan(iterations=5, tol=0.0, report=lambda n, value: told.append((n, value)))
    found = ascend(cells, priors(), start(cells, 2, np.random.default_rng(0)), plan)
    assert not found.settled
    # the start, and three times two steps, the second with a jump after it
    assert [n for n, _ in told] == [2, 4, 6]
    assert [value for _, value in told] == found.history[2::2]
    assert len(found.history) == 7


def test_jumps_save_steps_and_end_at_the_same_optimum(monkeypatch):
    cells, given, at = rated(0, (30, 6, 3)), priors(), start(rated(0, (30, 6, 3)), 2, np.random.default_rng(0))
    quick = ascend(cells, given, at, RIGHT)
    monkeypatch.setattr(mixture, "_beyond", lambda _first, _second, third: third)
    slow = ascend(cells, given, at, RIGHT)
    assert 3 * len(quick.history) < len(slow.history)
    assert quick.history[-1] == pytest.approx(slow.history[-1], abs=1e-6)
    np.testing.assert_allclose(quick.at.s, slow.at.s, atol=1e-4)


def test_a_jump_too_far_is_not_taken(monkeypatch):
    far = lambda _first, _second, third: replace(third, s=third.s - 2000)  # noqa: E731
    monkeypatch.setattr(mixture, "_beyond", far)
    cells = rated(0)
    found = ascend(cells, priors(), start(cells, 2, np.random.default_rng(0)), RIGHT)
    assert found.settled
    assert np.all(np.abs(found.at.s) < 10)


def test_a_fall_is_an_error_that_names_it(monkeypatch):
    worse = lambda counts, given, at, *, free: replace(at, s=at.s - 1.0)  # noqa: E731, ARG005, a step that lowers F
    monkeypatch.setattr(mixture, "step", worse)
    cells = rated(0)
    with pytest.raises(DivergenceError, match=facts("MixtureMNAR", "step 1", "fell")):
        ascend(cells, priors(), start(cells, 2, np.random.default_rng(0)), RIGHT)


def test_fixed_s_stays_where_it_is():
    cells = rated(1)
    at = start(cells, 2, np.random.default_rng(0))
    for sd in (None, 1.0):
        found = ascend(cells, priors(offset_sd=sd), at, ClimbPlan(iterations=50, tol=0.0), free=False)
        np.testing.assert_array_equal(found.at.s, at.s)
        assert found.history[-1] > found.history[0]


def test_a_start_is_missing_at_random_and_differs_by_seed():
    cells = rated(1)
    one, two = (start(cells, 3, np.random.default_rng(seed)) for seed in (0, 1))
    np.testing.assert_allclose(expit(one.s), cells.rows / 28)
    np.testing.assert_allclose(one.beta.sum(axis=1), 1)
    assert np.abs(one.beta - two.beta).max() > 0.1
    assert one.beta.shape == (4, 3, 3)


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
