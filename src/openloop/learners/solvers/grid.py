"""The objective of doubly robust learners, over all cells D of a grid, and sweeps that lower it.

    ρ[Σ_D (f − r̃)² + Σ_rows (v f² − 2 s f) + constant] + λ(‖V‖² + ‖W‖²) + λ_b(‖a‖² + ‖b‖²),    ρ = |O|/|D|,

f = v_uᵀw_i + a_u + b_i + c. Which s and v the rows have is the learner's matter; with v = 0 and s = m − r̃ this is least
squares on m. c is the constant f of least loss, (Σ_D r̃ + Σ s)/(|D| + Σ v): with v = 0 the mean of m.
"""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import dataclass

import numpy as np
from threadpoolctl import threadpool_limits

from openloop.core.feedback import Feedback, Floats
from openloop.kernels.grid_least_squares import GridSide, Patchwork, grid_half_sweep
from openloop.kernels.least_squares import Rows
from openloop.learners.solvers.als import AlternationPlan, settle
from openloop.learners.solvers.objective import Objective, Solution


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RowTerms:
    """What the rows add to Σ_D (f − r̃)²: v f² − 2 s f each, and a constant in all."""

    s: Floats
    v: Floats
    constant: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GridObjective:
    """The two sides of the grid, and the loss of f = z_u, a number a user: Σ_u n_u z² − 2 t_u z, plus `constant`."""

    users: GridSide
    items: GridSide
    penalties: Objective
    rho: float
    counts: Floats  # n_u = I + Σ v, (U,)
    totals: Floats  # t_u = Σ_i r̃ + Σ s, (U,)
    constant: float

    @property
    def c(self) -> float:
        """The constant f of least loss."""
        return float(self.totals.sum() / self.counts.sum())

    def sweep(self, at: Solution, pool: Executor) -> float:
        """Users, then items, each given the other exactly; returns the objective."""
        penalty = self.penalties.penalty
        grid_half_sweep(self.users, at.Q, at.c, at.P, self.rho, penalty, pool)
        gain = grid_half_sweep(self.items, at.P, at.c, at.Q, self.rho, penalty, pool)
        z = at.P[:, -1] + at.c  # before the items' half sweep gains anything, f is this
        loss = self.constant + float(np.sum((self.counts * z - 2 * self.totals) * z))
        return self.rho * loss - gain + self.penalties.penalty_of(at.P)


def grid_objective(feedback: Feedback, imputed: Patchwork, terms: RowTerms, penalties: Objective) -> GridObjective:
    """The objective of these r̃ and rows; ρ = |O|/|D|."""
    users = GridSide(imputed, Rows(feedback.user_ptr, feedback.item, terms.s, terms.v))
    U, I = imputed.shape
    v, s = (np.bincount(feedback.user, column, U).astype(np.float64) for column in (terms.v, terms.s))  # (U,) each
    return GridObjective(
        users=users, items=users.turned, penalties=penalties, rho=len(feedback) / (U * I),
        counts=I + v, totals=imputed.row_sums + s, constant=terms.constant + imputed.squares,
    )  # fmt: skip


def solve_grid(objective: GridObjective, at: Solution, plan: AlternationPlan) -> Solution:
    """Improve `at` until the objective settles."""
    with threadpool_limits(1, "blas"):  # with more threads its sums would round by their number
        return settle(objective.sweep, at, plan)
