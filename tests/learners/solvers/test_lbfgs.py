"""L-BFGS: its gradient by differences, and its optimum by another way down."""

from __future__ import annotations

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


# --- the optimum


@EVERY
def test_it_ends_where_alternating_least_squares_ends(log, objective):
    found = down(log, objective)
    rows = Rows(log.user_ptr, log.item, log.rating.astype(np.float64), log.weight)
    schedule = AlternationPlan(iterations=5000, tol=1e-13, steps=0, threads=1, advance=lambda *_: None)
    other = alternate(rows, objective, begin(log, objective), schedule)
    assert found.history[-1] == pytest.approx(other.history[-1], rel=1e-6)
