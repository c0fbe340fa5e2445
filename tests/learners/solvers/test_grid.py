"""The objective over a grid: against the grid itself, cell by cell, and by hand."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from openloop.core.feedback import Feedback
from openloop.kernels.grid_least_squares import Block, Patchwork
from openloop.learners.solvers.als import AlternationPlan
from openloop.learners.solvers.grid import RowTerms, grid_objective, solve_grid
from openloop.learners.solvers.objective import Objective, Solution, start

U, I, K = 25, 20, 3


def plan(iterations=500, tol=1e-12, threads=1) -> AlternationPlan:
    return AlternationPlan(iterations=iterations, tol=tol, steps=0, threads=threads, advance=lambda *_: None)


def world(curved=False, reg=1.0, bias_reg=0.5):
    """A log of random cells, r̃ of rank 2 over the grid, random s and v, and their objective."""
    rng = np.random.default_rng(0)
    user, item = np.nonzero(rng.random((U, I)) < 0.3)
    log = Feedback.from_arrays(user, item, np.ones(len(user)), users=U, items=I)
    block = Block(np.arange(U), np.arange(I), 2 + rng.normal(size=(U, 2)), rng.normal(size=(I, 2)))
    v = rng.uniform(0, 5, len(log)) if curved else np.zeros(len(log))
    terms = RowTerms(s=rng.normal(1, 3, len(log)), v=v, constant=7.0)
    penalties = Objective(factors=K, reg=reg, bias_reg=bias_reg)
    return log, terms, grid_objective(log, Patchwork((U, I), (block,)), terms, penalties)


def value(log, terms, objective, at: Solution) -> float:
    f = at.P[:, :-1] @ at.Q[:, :-1].T + at.P[:, -1:] + at.Q[:, -1] + at.c
    own = f[log.user, log.item]
    loss = np.sum((f - objective.users.imputed.dense()) ** 2) + np.sum(terms.v * own**2 - 2 * terms.s * own)
    return float(
        objective.rho * (loss + 7.0) + objective.penalties.penalty_of(at.P) + objective.penalties.penalty_of(at.Q)
    )


CURVED = pytest.mark.parametrize("curved", [False, True], ids=["flat", "curved"])


@CURVED
def test_a_sweep_returns_the_objective_of_where_it_ends(curved):
    log, terms, objective = world(curved)
    at = start(log, objective.penalties, np.float64, np.random.default_rng(1))
    at.c = 0.3
    with ThreadPoolExecutor(1) as pool:
        for _ in range(3):
            assert objective.sweep(at, pool) == pytest.approx(value(log, terms, objective, at), rel=1e-10)


def test_c_is_the_mean_of_the_pseudo_outcomes_by_hand():
    # r̃ = 0, one row of four cells with s = 8: m = (8, 0, 0, 0), c = 2, and ρ = 1/4; with all else at 0, Σ(f − m)² = 48.
    log = Feedback.from_arrays([0], [1], [1], users=2, items=2)
    terms = RowTerms(s=np.array([8.0]), v=np.zeros(1), constant=64.0)
    objective = grid_objective(log, Patchwork((2, 2)), terms, Objective(factors=0, reg=1e12, bias_reg=1e12))
    assert objective.c == 2
    assert objective.rho == 0.25
    found = solve_grid(objective, Solution(np.zeros((2, 1)), np.zeros((2, 1)), objective.c), plan())
    assert found.history[-1] == pytest.approx(48 / 4)
