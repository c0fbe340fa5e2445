"""The projected descent: f and its gradient by their definition, and where it ends."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from openloop.errors import DivergenceError
from openloop.kernels.least_squares import Problem, Rows, half_sweep_numpy
from openloop.learners.blocks.memory import blocks_of_rows
from openloop.learners.solvers.projected import (
    Ask,
    Descent,
    DescentPlan,
    descend,
    evaluate_at,
    start_items,
)
from tests.facts import facts
from tests.learners.projected_logs import small_log


def rows_of(log, w, dtype="float64"):
    return Rows(log.user_ptr, log.item, log.rating.astype(dtype), (w / w.mean()).astype(dtype))


def asked(log, w, factors=3, reg=2.0, dtype="float64", bias_reg=None):
    Q = start_items(np.ones(log.n_items, bool), factors, dtype, np.random.default_rng(0))
    penalty = np.append(np.full(factors, reg), reg if bias_reg is None else bias_reg)
    return Ask(Q=Q, c=float(np.average(log.rating, weights=w)), penalty=penalty)


def plan(iterations=500, tol=1e-9, keep=lambda _: None):
    return DescentPlan(iterations=iterations, tol=tol, advance=lambda _done, _text: None, keep=keep)


def lowest_over_users(rows, ask, Q):
    """f(Q) = min_P F(P, Q), by the normal equations."""
    P = np.zeros((len(rows), Q.shape[1]))
    value = half_sweep_numpy(rows, Q, ask.c, P, Problem(ask.penalty, offsets=True))
    return value + float(np.sum(ask.penalty * Q**2))


def test_f_is_the_minimum_over_users_and_its_gradient_the_derivative():
    log, w = small_log(users=12, items=6)
    rows, ask = rows_of(log, w), asked(log, w)
    at, step = evaluate_at(blocks_of_rows(rows, log.n_items, 1), replace(ask, until=0.0), ask.Q), 1e-5
    assert at.f == pytest.approx(lowest_over_users(rows, ask, ask.Q), rel=1e-10)
    for i, k in np.ndindex(ask.Q.shape):
        up, down = ask.Q.copy(), ask.Q.copy()
        up[i, k], down[i, k] = up[i, k] + step, down[i, k] - step
        slope = (lowest_over_users(rows, ask, up) - lowest_over_users(rows, ask, down)) / (2 * step)
        assert at.gradient[i, k] == pytest.approx(slope, abs=1e-5)


def test_it_ends_where_the_gradient_vanishes_and_never_rises():
    log, w = small_log()
    blocks, ask = blocks_of_rows(rows_of(log, w), log.n_items, 1), replace(asked(log, w), until=0.0)
    found = Descent(Q=ask.Q)
    _, settled = descend(blocks, ask, found, plan(tol=1e-13))
    start, end = (evaluate_at(blocks, ask, Q) for Q in (ask.Q, found.Q))
    assert settled
    assert np.all(np.diff(found.values) <= 0)
    assert np.abs(end.gradient).max() < 1e-4 * np.abs(start.gradient).max()


def test_numbers_that_overflow_are_an_error():
    log, w = small_log()
    ask = replace(asked(log, w, dtype="float32"), c=1e30)
    blocks = blocks_of_rows(rows_of(log, w, "float32"), log.n_items, 1)
    with pytest.raises(DivergenceError, match=facts("objective", "start")):
        descend(blocks, ask, Descent(Q=ask.Q), plan())
