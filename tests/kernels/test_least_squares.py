"""Half a sweep of least squares: by hand, and beside the objective itself."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit

from openloop.kernels.least_squares import Problem, Rows, half_sweep
from openloop.kernels.losses import Loss

U, I, K = 40, 30, 6
PENALTY = np.linspace(0.3, 2, K)

EVERY_PROBLEM = pytest.mark.parametrize("offsets", [False, True], ids=["plain", "offsets"])
EVERY_PRIOR = pytest.mark.parametrize("prior", [False, True], ids=["alone", "prior"])
EVERY_LOSS = pytest.mark.parametrize("loss", list(Loss), ids=["squared", "absolute", "logistic"])


@pytest.fixture
def pool():
    with ThreadPoolExecutor(2) as threads:
        yield threads


def rows_of(lists, y, w=None, dtype=np.float64) -> Rows:
    ptr = np.cumsum([0, *map(len, lists)]).astype(np.int64)
    partner = np.array([i for items in lists for i in items], np.int32)
    return Rows(ptr, partner, np.asarray(y, dtype), np.ones(len(partner), dtype) if w is None else w.astype(dtype))


def world(dtype=np.float64, seed=0, loss=Loss.SQUARED) -> tuple[Rows, np.ndarray, np.ndarray]:
    """Rows, X and P; user 3 and item 5 have no row, user 7 has one. Ratings are labels where the loss wants these."""
    rng = np.random.default_rng(seed)
    O = rng.random((U, I)) < 0.4
    O[3], O[:, 5], O[7] = False, False, np.arange(I) == 2
    n = int(O.sum())
    rows = rows_of([np.flatnonzero(row) for row in O], rng.normal(3, 1, n), rng.gamma(1.0, size=n), dtype)
    if loss is Loss.LOGISTIC:
        rows = replace(rows, y=(rows.y > 3).astype(dtype))
    return rows, rng.normal(size=(I, K)).astype(dtype), rng.normal(size=(U, K)).astype(dtype)


def problem(offsets=False, prior=False, loss=Loss.SQUARED, X=None) -> Problem:
    return Problem(PENALTY, offsets=offsets, prior=0.1 * (X.T @ X) if prior else None, loss=loss, smoothing=0.2)


def objective(rows: Rows, X, c, P, p: Problem) -> float:
    """Σ w δ(y - ŷ) + Σ_u pᵀ(G + diag λ)p over users with a row, cell by cell."""
    u, i = np.repeat(np.arange(len(rows)), np.diff(rows.ptr)), rows.partner
    width = K - 1 if p.offsets else K
    predicted = np.sum(X[i, :width] * P[u, :width], axis=1) + c
    if p.offsets:
        predicted += X[i, -1] + P[u, -1]
    e = np.abs(rows.y - predicted)
    loss = {
        Loss.SQUARED: e**2,
        Loss.ABSOLUTE: np.where(e > 0.2, e, e**2 / 0.4 + 0.1),
        Loss.LOGISTIC: -np.log(expit(np.where(rows.y == 1, predicted, -predicted))),
    }[p.loss]
    G = np.diag(p.penalty) + (0 if p.prior is None else p.prior)
    seen = P[np.diff(rows.ptr) > 0]
    return float(np.sum(rows.w * loss) + np.sum((seen @ G) * seen))


# --- by hand


@pytest.mark.parametrize("steps", [0, 1])
def test_one_row_and_one_factor(pool, steps):
    # p = xy/(x² + λ) = 6/5, and (3 - 2.4)² + 1.2² = 1.8, wherever it began.
    P = np.array([[7.0]])
    value = half_sweep(rows_of([[0]], [3]), np.array([[2.0]]), 0.0, P, Problem(np.ones(1)), pool, steps=steps)
    assert P[0, 0] == pytest.approx(1.2, rel=1e-12)
    assert value == pytest.approx(1.8, rel=1e-12)


@pytest.mark.parametrize("steps", [0, 1])
def test_an_offset_alone_is_a_shrunken_mean(pool, steps):
    # What is left of y = (2, 3, 8) without c = 1 and b = (0, 0, 1) is (1, 2, 6): a = 9/(3 + λ), λ = 3.
    P, X = np.zeros((1, 1)), np.array([[0.0], [0.0], [1.0]])
    p = Problem(np.full(1, 3.0), offsets=True)
    value = half_sweep(rows_of([[0, 1, 2]], [2, 3, 8]), X, 1.0, P, p, pool, steps=steps)
    assert P[0, 0] == pytest.approx(1.5, rel=1e-12)
    assert value == pytest.approx(0.25 + 0.25 + 20.25 + 3 * 2.25, rel=1e-12)


@pytest.mark.parametrize("steps", [0, 1])
def test_an_absolute_loss_is_lowered_through_the_quadratic_above_it(pool, steps):
    # At p = 0 the residual is 3: |e| ≤ e²/6 + 3/2. Its minimum with λ = 1/2 is p = 3/4; there it is 2.625.
    P = np.zeros((1, 1))
    p = Problem(np.full(1, 0.5), loss=Loss.ABSOLUTE, smoothing=0.1)
    value = half_sweep(rows_of([[0]], [3]), np.ones((1, 1)), 0.0, P, p, pool, steps=steps)
    assert P[0, 0] == pytest.approx(0.75, rel=1e-12)
    assert value == pytest.approx(2.625, rel=1e-12)


@pytest.mark.parametrize("steps", [0, 1])
def test_a_logistic_loss_is_lowered_through_the_quadratic_above_it(pool, steps):
    # At z = 0 log(1 + eᶻ) - z is log 2, its slope -1/2 and λ = 1/8: log 2 - p/2 + p²/8, with λ = 3/8 at its least for
    # p = 1/2, where it has fallen by 1/8.
    P = np.zeros((1, 1))
    p = Problem(np.full(1, 0.375), loss=Loss.LOGISTIC)
    value = half_sweep(rows_of([[0]], [1]), np.ones((1, 1)), 0.0, P, p, pool, steps=steps)
    assert P[0, 0] == pytest.approx(0.5, rel=1e-12)
    assert value == pytest.approx(np.log(2) - 0.125, rel=1e-12)


@pytest.mark.parametrize("steps", [0, 3])
def test_with_a_prior_a_vector_is_what_is_best_over_all_cells(pool, steps):
    # Cells with target 0 and weight 0.1 for every item, 1.1 and 1 at item 0, as the kernel sees it: v = 1, y = 1.1.
    X = np.array([[1.0, 0.5], [0.2, 1.0], [0.3, 0.3]])
    P = np.zeros((1, 2))
    p = Problem(np.full(2, 0.7), prior=0.1 * X.T @ X)
    half_sweep(rows_of([[0]], [1.1]), X, 0.0, P, p, pool, steps=steps)
    C, R = np.diag([1.1, 0.1, 0.1]), np.array([1.0, 0, 0])
    np.testing.assert_allclose(P[0], np.linalg.solve(X.T @ C @ X + 0.7 * np.eye(2), X.T @ C @ R), rtol=1e-12)


# --- by law


@EVERY_PRIOR
@EVERY_PROBLEM
@pytest.mark.parametrize("steps", [0, 1, 3])
def test_the_value_is_the_objective(pool, steps, offsets, prior):
    rows, X, P = world()
    p = problem(offsets, prior, X=X)
    value = half_sweep(rows, X, 2.5, P, p, pool, steps=steps)
    assert value == pytest.approx(objective(rows, X, 2.5, P, p), rel=1e-11)


@EVERY_LOSS
@EVERY_PRIOR
@EVERY_PROBLEM
@pytest.mark.parametrize("steps", [0, 1, 3])
def test_the_objective_never_rises(pool, steps, offsets, prior, loss):
    rows, X, P = world(loss=loss)
    p = problem(offsets, prior, loss, X)
    values = [objective(rows, X, 2.5, P, p)]
    for _ in range(12):
        half_sweep(rows, X, 2.5, P, p, pool, steps=steps)
        values.append(objective(rows, X, 2.5, P, p))
    assert values[1] < values[0]
    assert np.max(np.diff(values) / values[0]) < 1e-14


@EVERY_PROBLEM
def test_cholesky_leaves_no_gradient(pool, offsets):
    rows, X, P = world()
    p = problem(offsets)
    half_sweep(rows, X, 2.5, P, p, pool, steps=0)
    here, direction = objective(rows, X, 2.5, P, p), np.random.default_rng(1).normal(size=P.shape)
    up, down = (objective(rows, X, 2.5, P + h * direction, p) for h in (1e-4, -1e-4))
    assert min(up, down) > here
    assert up - down == pytest.approx(0, abs=1e-9 * here)


@pytest.mark.parametrize("steps", [0, 3])
def test_who_has_no_row_is_left_alone(pool, steps):
    rows, X, P = world()
    before = P.copy()
    half_sweep(rows, X, 2.5, P, problem(prior=True, X=X), pool, steps=steps)
    assert np.flatnonzero((before == P).all(axis=1)).tolist() == [3]


# --- where there is no single solution, and where numbers end


def test_cholesky_says_nan_where_the_rows_do_not_fix_a_vector(pool):
    rows, X, P = world()
    free = Problem(np.zeros(K))
    assert np.isnan(half_sweep(rows, X, 2.5, P.copy(), free, pool, steps=0))  # user 7 has one row for six entries
    assert np.isfinite(half_sweep(rows, X, 2.5, P, free, pool, steps=3))
