"""Half a sweep of least squares: by hand, against its twin and the objective itself, and for any number of threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.special import expit

from openloop.kernels import least_squares
from openloop.kernels.least_squares import PARTS, Problem, Rows, by_partner, half_sweep, half_sweep_numpy
from openloop.kernels.losses import Loss

U, I, K = 40, 30, 6
PENALTY = np.linspace(0.3, 2, K)

EVERY_PROBLEM = pytest.mark.parametrize("offsets", [False, True], ids=["plain", "offsets"])
EVERY_PRIOR = pytest.mark.parametrize("prior", [False, True], ids=["alone", "prior"])
EVERY_LOSS = pytest.mark.parametrize("loss", list(Loss), ids=["squared", "absolute", "logistic"])
BOUNDED = pytest.mark.parametrize("loss", [Loss.ABSOLUTE, Loss.LOGISTIC], ids=["absolute", "logistic"])


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


# --- the rows


def test_turned_rows_are_the_transpose():
    rows, _, _ = world()
    turned = rows.turned(I)
    for values in ("y", "w"):
        by_user, by_item = (
            csr_array((getattr(r, values), r.partner, r.ptr), shape) for r, shape in ((rows, (U, I)), (turned, (I, U)))
        )
        np.testing.assert_array_equal(by_item.toarray(), by_user.toarray().T)
    assert len(turned) == I


def test_rows_turned_twice_are_themselves():
    rows, _, _ = world()
    twice = rows.turned(I).turned(U)
    for name in ("ptr", "partner", "y", "w"):
        np.testing.assert_array_equal(getattr(twice, name), getattr(rows, name))


def test_by_partner_brings_every_row_to_its_partner():
    y, w = np.array([1.0, 2, 3, 4]), np.array([5.0, 6, 7, 8])
    ptr, own, targets, weights = by_partner(np.array([0, 2, 2, 4]), np.array([3, 0, 1, 0], np.int32), y, w, 5)
    assert ptr.tolist() == [0, 2, 3, 3, 4, 4]
    assert own.tolist() == [0, 2, 2, 0]
    assert targets.tolist() == [2, 4, 3, 1]
    assert weights.tolist() == [6, 8, 7, 5]


def test_who_has_a_row_is_filled():
    rows, _, _ = world()
    assert np.flatnonzero(~rows.filled).tolist() == [3]
    assert np.flatnonzero(~rows.turned(I).filled).tolist() == [5]


@pytest.mark.parametrize("part_rows", [1, 10, 100, 10**6])
def test_parts_are_all_users_once(monkeypatch, part_rows):
    monkeypatch.setattr(least_squares, "PART_ROWS", part_rows)
    rows, _, _ = world()
    parts = rows.parts
    assert [u for first, last in parts for u in range(first, last)] == list(range(U))
    assert len(parts) <= PARTS
    assert (len(parts) == 1) == (part_rows == 10**6)


def test_parts_have_about_equally_many_rows(monkeypatch):
    monkeypatch.setattr(least_squares, "PART_ROWS", 100)
    rows, _, _ = world()
    counts = [rows.ptr[last] - rows.ptr[first] for first, last in rows.parts]
    assert len(counts) > 3
    assert max(counts) - min(counts) <= 2 * np.diff(rows.ptr).max()


# --- by law


@EVERY_LOSS
@EVERY_PRIOR
@EVERY_PROBLEM
@pytest.mark.parametrize("steps", [0, K + 5])
def test_it_is_its_twin(pool, steps, offsets, prior, loss):
    rows, X, P = world(loss=loss)
    p, expected = problem(offsets, prior, loss, X), P.copy()
    expected_value = half_sweep_numpy(rows, X, 2.5, expected, p)
    value = half_sweep(rows, X, 2.5, P, p, pool, steps=steps)
    np.testing.assert_allclose(P, expected, rtol=1e-8, atol=1e-9)
    assert value == pytest.approx(expected_value, rel=1e-11)


@EVERY_PRIOR
@EVERY_PROBLEM
@pytest.mark.parametrize("steps", [0, 1, 3])
def test_the_value_is_the_objective(pool, steps, offsets, prior):
    rows, X, P = world()
    p = problem(offsets, prior, X=X)
    value = half_sweep(rows, X, 2.5, P, p, pool, steps=steps)
    assert value == pytest.approx(objective(rows, X, 2.5, P, p), rel=1e-11)


@BOUNDED
@EVERY_PROBLEM
@pytest.mark.parametrize("steps", [0, 1, 3])
def test_the_value_of_other_losses_lies_between_the_objective_before_and_after(pool, steps, offsets, loss):
    rows, X, P = world(loss=loss)
    p = problem(offsets, loss=loss)
    before = objective(rows, X, 2.5, P, p)
    value = half_sweep(rows, X, 2.5, P, p, pool, steps=steps)
    assert objective(rows, X, 2.5, P, p) < value < before


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


@EVERY_PROBLEM
def test_more_steps_lower_the_objective_more(pool, offsets):
    rows, X, P = world()
    values = [half_sweep(rows, X, 2.5, P.copy(), problem(offsets), pool, steps=s) for s in (1, 2, 3, K + 5)]
    assert np.all(np.diff(values) < 0)
    assert values[-1] == pytest.approx(half_sweep(rows, X, 2.5, P, problem(offsets), pool, steps=0), rel=1e-11)


@pytest.mark.parametrize("steps", [0, 3])
def test_who_has_no_row_is_left_alone(pool, steps):
    rows, X, P = world()
    before = P.copy()
    half_sweep(rows, X, 2.5, P, problem(prior=True, X=X), pool, steps=steps)
    assert np.flatnonzero((before == P).all(axis=1)).tolist() == [3]


@EVERY_LOSS
@EVERY_PRIOR
@pytest.mark.parametrize("steps", [0, 3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_number_of_threads_changes_no_bit(monkeypatch, dtype, steps, prior, loss):
    rows, X, P = world(dtype, loss=loss)
    assert len(rows.parts) == 1
    p, found, value = problem(prior=prior, loss=loss, X=X), P.copy(), []
    with ThreadPoolExecutor(1) as pool:
        value.append(half_sweep(rows, X, 2.5, found, p, pool, steps=steps))
    monkeypatch.setattr(least_squares, "PART_ROWS", 20)
    rows = replace(rows)  # which is cut anew
    assert len(rows.parts) > 10
    for threads in (1, 2, 5):
        again = P.copy()
        with ThreadPoolExecutor(threads) as pool:
            value.append(half_sweep(rows, X, 2.5, again, p, pool, steps=steps))
        np.testing.assert_array_equal(again, found)
    assert len(set(value)) == 1


@EVERY_LOSS
@EVERY_PRIOR
@EVERY_PROBLEM
@pytest.mark.parametrize("steps", [0, K + 5])
def test_single_precision_is_near(pool, steps, offsets, prior, loss):
    rows, X, P = world(np.float32, loss=loss)
    p, expected = problem(offsets, prior, loss, X), P.astype(np.float64)
    expected_value = half_sweep_numpy(rows, X.astype(np.float64), 2.5, expected, p)
    value = half_sweep(rows, X, 2.5, P, p, pool, steps=steps)
    assert P.dtype == np.float32
    np.testing.assert_allclose(P, expected, rtol=1e-3, atol=1e-4)
    assert value == pytest.approx(expected_value, rel=1e-5)


# --- where there is no single solution, and where numbers end


def test_cholesky_says_nan_where_the_rows_do_not_fix_a_vector(pool):
    rows, X, P = world()
    free = Problem(np.zeros(K))
    assert np.isnan(half_sweep(rows, X, 2.5, P.copy(), free, pool, steps=0))  # user 7 has one row for six entries
    assert np.isfinite(half_sweep(rows, X, 2.5, P, free, pool, steps=3))


def test_cholesky_sees_through_rounding(pool):
    # Two to five rows for six entries: what elimination leaves is rounding, and above 0 for one user in seven.
    rng = np.random.default_rng(0)
    lists = [rng.choice(I, 2 + u % 4, replace=False) for u in range(400)]
    rows, X, P = rows_of(lists, rng.normal(size=sum(map(len, lists)))), rng.normal(size=(I, K)), np.zeros((400, K))
    half_sweep(rows, X, 0.0, P, Problem(np.zeros(K)), pool, steps=0)
    assert np.isnan(P).any(axis=1).mean() > 0.97


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_conjugate_gradients_stay_where_the_rows_are_fitted(pool, dtype):
    # Without a penalty many vectors fit one row; it must not wander among them by rounding.
    rng, n = np.random.default_rng(0), 3000
    rows = rows_of([[u] for u in range(n)], rng.normal(size=n), dtype=dtype)
    X, P = rng.normal(size=(n, K)).astype(dtype), np.zeros((n, K), dtype)
    half_sweep(rows, X, 0.0, P, Problem(np.zeros(K)), pool, steps=3)
    fitted = P.copy()
    for _ in range(30):
        half_sweep(rows, X, 0.0, P, Problem(np.zeros(K)), pool, steps=3)
    np.testing.assert_allclose(P, fitted, rtol=1e4 * np.finfo(dtype).eps, atol=100 * np.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_conjugate_gradients_end_where_only_rounding_is_left(pool, dtype):
    # One row each and no penalty: the first step fits it, and what follows would divide rounding by rounding.
    rng, n = np.random.default_rng(0), 3000
    rows = rows_of([[u] for u in range(n)], rng.normal(size=n), 10 ** rng.normal(0, 6, n), dtype)
    X, P = rng.normal(size=(n, K)).astype(dtype), np.zeros((n, K), dtype)
    before = half_sweep(rows, X, 0.0, P.copy(), Problem(np.zeros(K)), pool, steps=1)
    value = half_sweep(rows, X, 0.0, P, Problem(np.zeros(K)), pool, steps=30)
    total = float(np.sum(rows.w * rows.y**2))
    assert abs(before) < 1e-5 * total
    assert abs(value) < 1e-5 * total
    np.testing.assert_allclose(np.einsum("uk,uk->u", X, P), rows.y, rtol=1e-4)


def test_conjugate_gradients_stay_where_the_objective_is_flat(pool):
    # x² is nothing in single precision, so no step is too long: there is a gradient, and no curvature to divide by.
    rows, X, P = (
        rows_of([[0]], [1e5], dtype=np.float32),
        np.full((1, 1), 1e-23, np.float32),
        np.zeros((1, 1), np.float32),
    )
    assert half_sweep(rows, X, 0.0, P, Problem(np.zeros(1)), pool, steps=3) == 1e10
    assert P[0, 0] == 0


@pytest.mark.parametrize("steps", [0, 3])
@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e30])
def test_what_is_not_finite_shows_in_the_value(pool, steps, bad):
    rows, X, P = world(np.float32)
    y = rows.y.copy()
    y[17] = bad
    rows = replace(rows, y=y)
    assert not np.isfinite(half_sweep(rows, X, 2.5, P, problem(), pool, steps=steps))
