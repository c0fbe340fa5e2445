"""L-BFGS: its gradient by differences, its optimum by another way down, and what it says of its end."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import check_grad

from openloop.core.feedback import Feedback
from openloop.kernels.least_squares import Rows
from openloop.kernels.losses import Loss
from openloop.learners.solvers.als import AlternationPlan, alternate
from openloop.learners.solvers.lbfgs import descend, gradient
from openloop.learners.solvers.objective import Objective, start
from tests.facts import facts

# With so many factors that penalties leave some of them empty, no valley is but the lowest.
U, I, K = 25, 20, 6
SQUARED = Objective(factors=K, reg=4.0, bias_reg=1.0)
ABSOLUTE = Objective(factors=K, reg=3.0, bias_reg=0.5, loss=Loss.ABSOLUTE, smoothing=0.1)
LOGISTIC = Objective(factors=K, reg=0.7, bias_reg=0.5, loss=Loss.LOGISTIC)
FREE = Objective(factors=K, reg=4.0, bias_reg=0.0)
OFFSETS = Objective(factors=0, reg=2.0, bias_reg=1.0)
EVERY = pytest.mark.parametrize(
    "objective",
    [SQUARED, ABSOLUTE, LOGISTIC, FREE, OFFSETS],
    ids=["squared", "absolute", "logistic", "free", "offsets"],
)


@pytest.fixture(scope="module")
def ratings() -> Feedback:
    """User 4 and item 9 have no rating."""
    rng = np.random.default_rng(0)
    O = rng.random((U, I)) < 0.5
    O[4], O[:, 9] = False, False
    Y = 3 + rng.normal(size=(U, 2)) @ rng.normal(size=(2, I)) + rng.normal(0, 0.3, (U, I))
    user, item = np.nonzero(O)
    return Feedback.from_arrays(user, item, Y[O], users=U, items=I, weight=rng.gamma(2.0, size=len(user)))


@pytest.fixture
def log(ratings, request) -> Feedback:
    """The ratings, or labels of them where the objective of a test wants these."""
    objective = request.node.callspec.params.get("objective") if hasattr(request.node, "callspec") else None
    return replace(ratings, rating=(ratings.rating > 3) * np.float32(1)) if objective is LOGISTIC else ratings


def begin(log, objective, seed=0):
    at = start(log, objective, np.float64, np.random.default_rng(seed))
    at.c = 3.0
    return at


def down(log, objective, *, iterations=5000, tol=1e-13, at=None, advance=lambda *_: None):
    return descend(log, log.weight, objective, at or begin(log, objective), iterations, tol, advance)


# --- the gradient


@EVERY
def test_the_gradient_is_what_differences_say(log, objective):
    rng, at = np.random.default_rng(1), begin(log, objective)

    def parts(x):
        P, Q = np.split(x, [at.P.size])
        return gradient(log, log.weight, objective, P.reshape(at.P.shape), Q.reshape(at.Q.shape), 3.1)

    def slope(x):
        return np.concatenate([np.ravel(part) for part in parts(x)[1:3]])

    x = rng.normal(0, 0.5, at.P.size + at.Q.size)
    error = check_grad(lambda x: parts(x)[0], slope, x, epsilon=1e-6)
    assert error < 1e-5 * np.linalg.norm(slope(x))


def test_the_objective_by_hand():
    # e = 4 - (1·2 + 3 - 1 + 0.5) = -0.5 with weight 2; λ = 10: 1 + 4, λ_b = 0.1: 9 + 1
    log = Feedback.from_arrays([0], [0], [4])
    P, Q = np.array([[1.0, 3]]), np.array([[2.0, -1]])
    objective = Objective(factors=1, reg=10.0, bias_reg=0.1)
    value, dP, dQ, *_ = gradient(log, np.array([2.0]), objective, P, Q, 0.5)
    assert value == pytest.approx(2 * 0.25 + 10 * 5 + 0.1 * 10, rel=1e-12)
    # -2we = 2: times x and 1, and 2λ of each
    np.testing.assert_allclose(dP, [[2 * 2 + 20 * 1, 2 + 0.2 * 3]])
    np.testing.assert_allclose(dQ, [[2 * 1 + 20 * 2, 2 - 0.2 * 1]])


# --- the optimum


@EVERY
def test_it_ends_where_alternating_least_squares_ends(log, objective):
    found = down(log, objective)
    rows = Rows(log.user_ptr, log.item, log.rating.astype(np.float64), log.weight)
    schedule = AlternationPlan(iterations=5000, tol=1e-13, steps=0, threads=1, advance=lambda *_: None)
    other = alternate(rows, objective, begin(log, objective), schedule)
    assert found.history[-1] == pytest.approx(other.history[-1], rel=1e-6)


@EVERY
def test_where_it_ends_the_gradient_is_gone(log, objective):
    first, last = begin(log, objective), down(log, objective)
    value, *slopes = gradient(log, log.weight, objective, last.P, last.Q, last.c)
    at_first = gradient(log, log.weight, objective, first.P, first.Q, first.c)
    for slope, before in zip(slopes[:2], at_first[1:3], strict=True):
        assert np.abs(slope).max() < 1e-3 * np.abs(before).max()
    assert last.history[-1] == pytest.approx(value, rel=1e-12)


@EVERY
def test_the_objective_never_rises(log, objective):
    history = down(log, objective).history
    assert len(history) > 5
    assert np.max(np.diff(history)) <= 0


def test_who_has_no_rating_keeps_no_vector(log):
    found = down(log, SQUARED)
    assert not found.P[4].any()
    assert not found.Q[9].any()


def test_single_precision_becomes_double(log):
    at = start(log, SQUARED, np.float32, np.random.default_rng(0))
    at.c = 3.0
    found = down(log, SQUARED, at=at)
    assert found.P.dtype == found.Q.dtype == np.float64
    assert found.history[-1] == pytest.approx(down(log, SQUARED).history[-1], rel=1e-6)


# --- its end


def test_it_says_whether_it_settled(log):
    assert down(log, SQUARED).settled
    stopped = down(log, SQUARED, iterations=3)
    assert not stopped.settled
    assert len(stopped.history) == 3


def test_every_step_is_told(log):
    said = []
    found = down(log, SQUARED, iterations=4, advance=lambda done, text: said.append((done, text)))
    assert [done for done, _ in said] == [1, 2, 3, 4]
    assert re.search(facts("objective", f"{found.history[-1]:.6g}"), said[-1][1])


def test_a_start_that_cannot_be_improved_has_its_own_value():
    # All ratings are c, so that no offset is best.
    log = Feedback.from_arrays([0, 0, 1], [0, 1, 0], [3, 3, 3], weight=np.ones(3))
    found = down(log, OFFSETS, at=begin(log, OFFSETS))
    assert found.history == [0.0]
    assert found.settled
    assert not found.P.any()
