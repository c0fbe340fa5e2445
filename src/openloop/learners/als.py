"""Weighted alternating least squares: users, then items, each given the other, until the objective settles.

Two things beyond the textbook. A sweep starts beyond where the last one ended, by Nesterov's momentum, and again
without it if the objective rose: so it never rises, and settles in fewer sweeps. And the objective costs no pass over
the rows of its own: each half sweep returns it.
"""

from __future__ import annotations

from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass

from openloop.kernels.least_squares import Rows, half_sweep
from openloop.learners.objective import Objective, Solution
from openloop.learners.progress import Advance

CG_STEPS = 3  # from where a vector stands; more lower the objective of a sweep by less than a part in a thousand


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """When to stop, and how the work is done."""

    iterations: int
    tol: float
    steps: int  # of conjugate gradients, 0 for Cholesky
    threads: int
    advance: Advance


def alternate(rows: Rows, objective: Objective, found: Solution, schedule: Schedule) -> Solution:
    """Improve `found` until the objective settles."""
    turned = rows.turned(len(found.Q))
    ahead = Solution(found.P.copy(), found.Q.copy(), found.c)
    momentum = 0
    with ThreadPoolExecutor(schedule.threads) as pool:
        for sweep in range(1, schedule.iterations + 1):
            value = _sweep(rows, turned, objective, ahead, schedule.steps, pool)
            if momentum and value > found.history[-1]:
                ahead.P[:], ahead.Q[:], momentum = found.P, found.Q, 0
                continue
            settled = found.record(value, schedule.tol)
            _move(found, ahead, momentum / (momentum + 3))
            if settled:
                break
            momentum += 1
            schedule.advance(sweep, f"objective {value:.6g}")
    return found


def _sweep(rows: Rows, turned: Rows, objective: Objective, at: Solution, steps: int, pool: Executor) -> float:
    """Users, then items; returns the objective."""
    half_sweep(rows, at.Q, at.c, at.P, objective.problem(at.Q), pool, steps=steps)
    value = half_sweep(turned, at.P, at.c, at.Q, objective.problem(at.P), pool, steps=steps)
    return value + objective.penalty_of(at.P)


def _move(found: Solution, ahead: Solution, momentum: float) -> None:
    """`found` goes where `ahead` is, and `ahead` on in the same direction."""
    for here, there in ((found.P, ahead.P), (found.Q, ahead.Q)):
        step = there - here
        here[:] = there
        there[:] += here.dtype.type(momentum) * step
