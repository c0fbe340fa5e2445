"""Weighted alternating least squares: users, then items, each given the other, until the objective settles.

Two things differ from the textbook. A sweep starts ahead of the last solution, by Nesterov's momentum. If the objective
rises, the sweep is repeated without momentum: the objective never rises, and converges in fewer sweeps. The objective
needs no separate pass over the rows: each half sweep returns it (for an absolute or logistic loss, an upper bound that
is tight at convergence).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import nullcontext
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from threadpoolctl import threadpool_limits

from openloop.errors import InputError
from openloop.kernels.least_squares import Rows, half_sweep
from openloop.learners.base import check_number, check_whole
from openloop.learners.solvers.objective import Objective, Solution
from openloop.support.progress import Advance

CG_STEPS = 3  # from the present vector; more steps lower the objective of a sweep by less than a thousandth


@dataclass(frozen=True, slots=True, kw_only=True)
class AlternationPlan:
    """When to stop, and how the work is done."""

    iterations: int
    tol: float
    steps: int  # of conjugate gradients, 0 for Cholesky
    threads: int
    advance: Advance
    device: Any = None  # "cuda": on a GPU


def schedule(model: Any, steps: int, advance: Advance) -> AlternationPlan:
    """The schedule that a learner's parameters ask for."""
    threads = (os.cpu_count() or 1) if model.threads is None else check_whole(model, "threads")
    iterations, tol = check_whole(model, "iterations"), check_number(model, "tol")
    device = getattr(model, "device", None)
    return AlternationPlan(iterations=iterations, tol=tol, steps=steps, threads=threads, advance=advance, device=device)


def check_device(model: Any, **only: str) -> None:
    """Refuse a device that is missing, and settings that it has no kernels for."""
    if model.device is None:
        return
    from openloop.kernels.cuda.devices import device_of

    device_of(type(model).__name__, model.device)
    for name, value in only.items():
        given = getattr(model, name)
        if given != value:
            raise InputError(
                f"{type(model).__name__}: device={model.device!r} takes {name}={value!r} only, got {given!r}; leave "
                "one of the two out."
            )


Sweep = Callable[[Solution, Executor], float]  # improves a solution, and returns the objective


def alternate(rows: Rows, objective: Objective, found: Solution, plan: AlternationPlan) -> Solution:
    """Improve `found` until the objective settles."""
    if plan.device is not None:
        from openloop.learners.solvers.als_cuda import alternate_on

        return alternate_on(rows, objective, found, plan)
    turned = rows.turned(len(found.Q))
    # The prior of positives alone is one product of BLAS, which with more threads would round by their number.
    with threadpool_limits(1, "blas") if objective.rest else nullcontext():
        return settle(lambda at, pool: _sweep(rows, turned, objective, at, plan.steps, pool), found, plan)


def settle(improve: Sweep, found: Solution, plan: AlternationPlan) -> Solution:
    """Sweep after sweep, each from beyond where the last one ended, until the objective settles.

    P and Q are arrays, or tensors on a GPU.
    """
    ahead = Solution(deepcopy(found.P), deepcopy(found.Q), found.c)
    run, momentum = 0, 0.0  # consecutive successful sweeps, and how far ahead of the last one this one starts
    with ThreadPoolExecutor(plan.threads) as pool:
        for sweep in range(1, plan.iterations + 1):
            value = improve(ahead, pool)
            if momentum and not value <= found.history[-1]:
                ahead.P[:], ahead.Q[:], run, momentum = found.P, found.Q, 0, 0.0
                continue
            # A sweep from beyond may gain little where one from here gains much: only the latter tells the end.
            settled = found.record(value, plan.tol)
            ended, run = settled and momentum == 0, 0 if settled else run + 1
            momentum = max(run - 1, 0) / (run + 2)
            _move(found, ahead, momentum)
            if ended:
                break
            plan.advance(sweep, f"objective {value:.6g}")
    return found


def _sweep(rows: Rows, turned: Rows, objective: Objective, at: Solution, steps: int, pool: Executor) -> float:
    """Users, then items; returns the objective."""
    half_sweep(rows, at.Q, at.c, at.P, objective.problem(at.Q), pool, steps=steps)
    value = half_sweep(turned, at.P, at.c, at.Q, objective.problem(at.P), pool, steps=steps)
    return value + objective.penalty_of(at.P) + objective.constant


def _move(found: Solution, ahead: Solution, momentum: float) -> None:
    """`found` goes where `ahead` is, and `ahead` on in the same direction."""
    for here, there in ((found.P, ahead.P), (found.Q, ahead.Q)):
        step = there - here
        here[:] = there
        there[:] += momentum * step  # a number of Python takes the arrays' precision
