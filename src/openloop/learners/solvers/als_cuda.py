"""Alternating least squares on a GPU: rows and solution go there once, and the solution comes back settled."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from openloop.kernels.cuda import least_squares as kernel
from openloop.kernels.cuda.devices import exact_products
from openloop.kernels.least_squares import Rows
from openloop.learners.solvers.als import AlternationPlan, settle
from openloop.learners.solvers.objective import Objective, Solution


def alternate_on(rows: Rows, objective: Objective, found: Solution, plan: AlternationPlan) -> Solution:
    """Improve `found` on the plan's device; each sweep the host reads one number, the objective."""
    layout, shape = kernel.Layout(objective.factors, objective.offsets), (len(found.P), len(found.Q))
    with kernel.fitting(found.learner, len(rows.y), shape, layout, plan.device), exact_products():
        users = kernel.DeviceRows.of(rows, plan.device)
        items = users.turned(len(found.Q))
        penalty = layout.penalty(objective.penalty, users.ptr.device)

        def sweep(at: Any, _: Any) -> float:
            kernel.half_sweep(users, at.Q, at.c, at.P, objective.problem(at.Q), steps=plan.steps)
            value = kernel.half_sweep(items, at.P, at.c, at.Q, objective.problem(at.P), steps=plan.steps)
            return float(value + kernel.penalty_of(at.P, penalty)) + objective.constant

        there: Any = replace(found, P=layout.sent(found.P, plan.device), Q=layout.sent(found.Q, plan.device))
        settle(sweep, there, plan)
        return replace(there, P=layout.fetched(there.P), Q=layout.fetched(there.Q))
