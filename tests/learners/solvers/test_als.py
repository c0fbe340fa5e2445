"""Alternating least squares: it never rises, it says what it reached, and momentum only gets it there sooner."""

from __future__ import annotations

from copy import deepcopy

import numpy as np
import pytest
from scipy.special import expit

from openloop.core.feedback import Feedback
from openloop.errors import DivergenceError
from openloop.kernels import least_squares
from openloop.kernels.least_squares import Rows
from openloop.kernels.losses import Loss
from openloop.learners.solvers import als
from openloop.learners.solvers.als import CG_STEPS, AlternationPlan, alternate
from openloop.learners.solvers.objective import Objective, Solution, start
from tests.facts import facts

# With so many factors that penalties leave some of them empty, no valley is but the lowest.
U, I, K = 50, 40, 12
SQUARED = Objective(factors=K, reg=5.0, bias_reg=1.0)
ABSOLUTE = Objective(factors=K, reg=3.0, bias_reg=0.5, loss=Loss.ABSOLUTE, smoothing=0.05)
LOGISTIC = Objective(factors=K, reg=0.7, bias_reg=0.5, loss=Loss.LOGISTIC)
POSITIVES = Objective(factors=K, reg=3.0, rest=0.05)
EVERY = pytest.mark.parametrize(
    "objective", [SQUARED, ABSOLUTE, LOGISTIC, POSITIVES], ids=["squared", "absolute", "logistic", "positives"]
)
EITHER = pytest.mark.parametrize("steps", [0, CG_STEPS], ids=["cholesky", "cg"])


@pytest.fixture(scope="module")
def log() -> Feedback:
    """Three factors and noise; user 4 and item 9 have no rating."""
    rng = np.random.default_rng(0)
    O = rng.random((U, I)) < 0.4
    O[4], O[:, 9] = False, False
    Y = 3 + rng.normal(size=(U, 3)) @ rng.normal(size=(3, I)) + rng.normal(0, 0.3, (U, I))
    user, item = np.nonzero(O)
    return Feedback.from_arrays(user, item, Y[O], users=U, items=I, weight=rng.gamma(2.0, size=len(user)))


def run(
    log, objective, *, steps=CG_STEPS, iterations=2000, tol=1e-10, threads=2, dtype=np.float64, seed=0, at=None
) -> Solution:
    said = []
    if at is None:
        at = start(log, objective, dtype, np.random.default_rng(seed))
        at.c = 3.0 if objective in (SQUARED, ABSOLUTE) else 0.0
    rows = Rows(log.user_ptr, log.item, targets(log, objective).astype(dtype), log.weight.astype(dtype))
    schedule = AlternationPlan(
        iterations=iterations, tol=tol, steps=steps, threads=threads, advance=lambda *words: said.append(words)
    )
    found = alternate(rows, objective, at, schedule)
    assert [words[0] for words in said] == sorted({words[0] for words in said})
    return found


def targets(log, objective: Objective) -> np.ndarray:
    """The ratings, or labels of them."""
    return (log.rating > 3) * 1.0 if objective.loss is Loss.LOGISTIC else log.rating


def value_of(log, objective: Objective, at: Solution) -> float:
    """Eq. 14, or Hu et al.'s sum over all cells, from P, Q and c."""
    P, Q = at.P.astype(np.float64), at.Q.astype(np.float64)
    S = P[:, :-1] @ Q[:, :-1].T + P[:, -1:] + Q[:, -1] + at.c if objective.offsets else P @ Q.T  # (U, I)
    y, z = targets(log, objective), S[log.user, log.item]
    e, eps = np.abs(y - z), objective.smoothing
    loss = e**2
    if objective.loss is Loss.ABSOLUTE:
        loss = np.where(e > eps, e, e**2 / (2 * eps) + eps / 2)
    elif objective.loss is Loss.LOGISTIC:
        loss = -np.log(expit(np.where(y == 1, z, -z)))
    penalty = np.sum((P**2).sum(axis=0) * objective.penalty + (Q**2).sum(axis=0) * objective.penalty)
    return float(np.sum(log.weight * loss) + penalty + objective.rest * np.sum(S**2))


# --- by law


@EITHER
@EVERY
def test_the_objective_never_rises(log, objective, steps):
    history = run(log, objective, steps=steps).history
    assert len(history) > 10
    assert np.max(np.diff(history)) <= 0


@EITHER
@pytest.mark.parametrize("objective", [SQUARED, POSITIVES], ids=["squared", "positives"])
@pytest.mark.parametrize("iterations", [1, 2, 7, 2000])
def test_the_last_value_is_the_objective_of_what_was_learned(log, objective, steps, iterations):
    found = run(log, objective, steps=steps, iterations=iterations)
    assert found.history[-1] == pytest.approx(value_of(log, objective, found), rel=1e-11)


@EITHER
@pytest.mark.parametrize("objective", [ABSOLUTE, LOGISTIC], ids=["absolute", "logistic"])
def test_the_last_value_of_other_losses_bounds_the_objective_and_settles_on_it(log, objective, steps):
    early, late = (run(log, objective, steps=steps, iterations=n) for n in (3, 2000))
    assert value_of(log, objective, early) < early.history[-1]
    assert late.history[-1] == pytest.approx(value_of(log, objective, late), rel=1e-7)


@EITHER
def test_in_single_precision_it_reaches_the_same(log, steps):
    single, double = (run(log, SQUARED, steps=steps, dtype=dtype, tol=1e-7) for dtype in (np.float32, np.float64))
    assert single.P.dtype == single.Q.dtype == np.float32
    assert single.history[-1] == pytest.approx(double.history[-1], rel=1e-4)
    assert single.history[-1] == pytest.approx(value_of(log, SQUARED, single), rel=1e-5)


@EVERY
def test_where_it_ends_no_direction_leads_down(log, objective):
    found = run(log, objective, tol=1e-13, iterations=5000)
    here, rng = value_of(log, objective, found), np.random.default_rng(1)
    for _ in range(5):
        step = [rng.normal(size=side.shape) * side.any(axis=1)[:, None] for side in (found.P, found.Q)]
        for h in (1e-4, -1e-4):
            moved = Solution(found.P + h * step[0], found.Q + h * step[1], found.c)
            assert value_of(log, objective, moved) > here


@EVERY
def test_cholesky_and_conjugate_gradients_end_alike(log, objective):
    ends = [run(log, objective, steps=steps, tol=1e-12, iterations=5000).history[-1] for steps in (0, CG_STEPS)]
    assert ends[0] == pytest.approx(ends[1], rel=1e-6)


@EVERY
def test_momentum_reaches_the_same_optimum_sooner(log, objective, monkeypatch):
    quick = run(log, objective, tol=1e-11, iterations=5000)
    plain_move = als._move
    monkeypatch.setattr(als, "_move", lambda found, ahead, _momentum: plain_move(found, ahead, 0.0))
    slow = run(log, objective, tol=1e-11, iterations=5000)
    assert quick.settled
    assert slow.settled
    assert quick.history[-1] == pytest.approx(slow.history[-1], rel=1e-6)
    assert len(quick.history) < len(slow.history)


@EVERY
def test_a_leap_too_far_is_taken_back(log, objective, monkeypatch):
    plain_move = als._move
    monkeypatch.setattr(als, "_move", lambda found, ahead, momentum: plain_move(found, ahead, 30 * momentum))
    leaping = run(log, objective, tol=1e-11, iterations=5000)
    assert np.max(np.diff(leaping.history)) <= 0
    monkeypatch.undo()
    assert leaping.history[-1] == pytest.approx(run(log, objective, tol=1e-11).history[-1], rel=1e-4)


@EVERY
def test_who_has_no_rating_keeps_no_vector(log, objective):
    found = run(log, objective, iterations=5)
    assert not found.P[4].any()
    assert not found.Q[9].any()
    assert np.count_nonzero(found.P.any(axis=1)) == U - 1


def test_c_is_left_alone(log):
    assert run(log, SQUARED, iterations=5).c == 3.0


@EITHER
@EVERY
def test_the_number_of_threads_changes_no_bit(log, objective, steps, monkeypatch):
    monkeypatch.setattr(least_squares, "PART_ROWS", 50)
    for dtype in (np.float32, np.float64):
        one, *others = (run(log, objective, steps=steps, threads=n, dtype=dtype, iterations=8) for n in (1, 2, 5))
        for other in others:
            np.testing.assert_array_equal(other.P, one.P)
            np.testing.assert_array_equal(other.Q, one.Q)
            assert other.history == one.history


def test_the_rows_are_not_written_to(log):
    before = deepcopy((log.rating, log.weight, log.item))
    run(log, SQUARED, iterations=3)
    for was, now in zip(before, (log.rating, log.weight, log.item), strict=True):
        np.testing.assert_array_equal(was, now)


# --- when it ends


def test_it_ends_where_a_sweep_from_there_gains_little(log):
    for tol in (1e-2, 1e-3, 1e-4):
        found = run(log, SQUARED, tol=tol)
        falls = -np.diff(found.history) / np.abs(found.history[1:])
        assert falls[-1] <= tol
        once_more = run(log, SQUARED, at=Solution(found.P.copy(), found.Q.copy(), found.c), iterations=1)
        assert found.history[-1] - once_more.history[-1] <= tol * found.history[-1]


def test_it_ends_after_its_iterations_and_has_not_settled(log):
    found = run(log, SQUARED, iterations=3)
    assert len(found.history) == 3
    assert not found.settled
    assert run(log, SQUARED).settled


def test_a_problem_without_a_single_solution_is_said(log):
    with pytest.raises(DivergenceError, match=facts("sweep 1", "larger reg")):
        run(log, Objective(factors=30, reg=0.0, bias_reg=0.0), steps=0)
