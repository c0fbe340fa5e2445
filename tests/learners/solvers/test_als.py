"""Alternating least squares never rises, and momentum only gets it there sooner."""

from __future__ import annotations

import numpy as np
import pytest

from openloop.core.feedback import Feedback
from openloop.kernels.least_squares import Rows
from openloop.kernels.losses import Loss
from openloop.learners.solvers import als
from openloop.learners.solvers.als import CG_STEPS, AlternationPlan, alternate
from openloop.learners.solvers.objective import Objective, Solution, start

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


# --- by law


@EITHER
@EVERY
def test_the_objective_never_rises(log, objective, steps):
    history = run(log, objective, steps=steps).history
    assert len(history) > 10
    assert np.max(np.diff(history)) <= 0


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
