"""The projected descent: f and its gradient by their definition, where it ends, and going on with the same bits."""

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
    Totals,
    added,
    centred,
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


def test_it_stops_after_its_iterations():
    log, w = small_log()
    blocks, ask, found = blocks_of_rows(rows_of(log, w), log.n_items, 1), asked(log, w), Descent(Q=asked(log, w).Q)
    _, settled = descend(blocks, ask, found, plan(iterations=3, tol=0.0))
    assert (settled, len(found.values)) == (False, 4)


def test_one_small_step_is_no_end():
    assert not Descent(Q=np.zeros((1, 1)), values=[3.0, 2.0, 2.0, 2.0, 2.0]).settled(1e-5)
    assert not Descent(Q=np.zeros((1, 1)), values=[2.0, 2.0, 2.0, 2.0]).settled(1e-5)
    assert Descent(Q=np.zeros((1, 1)), values=[3.0, 2.0, 2.0, 2.0, 2.0, 2.0]).settled(1e-5)


def test_small_steps_that_add_up_are_no_end():
    values = [1 + 0.9e-5 * left for left in (4, 3, 2, 1, 0)]
    assert not Descent(Q=np.zeros((1, 1)), values=values).settled(1e-5)
    assert Descent(Q=np.zeros((1, 1)), values=values).settled(4e-5)


def test_going_on_from_any_iteration_gives_the_same_bits():
    log, w = small_log()
    blocks, ask, kept = blocks_of_rows(rows_of(log, w, "float32"), log.n_items, 1), asked(log, w, dtype="float32"), []

    def keep(at):
        kept.append(Descent(Q=at.Q.copy(), steps=list(at.steps), changes=list(at.changes), values=list(at.values)))

    whole = Descent(Q=ask.Q)
    descend(blocks, ask, whole, plan(iterations=12, tol=0.0, keep=keep))
    for at in (kept[0], kept[6], kept[11]):
        descend(blocks, ask, at, plan(iterations=12, tol=0.0))
        assert np.array_equal(at.Q, whole.Q)
        assert at.values == whole.values


def test_parts_are_added_in_double_precision_and_rounded_once():
    parts = [np.float32(1e8), np.float32(1), np.float32(1), np.float32(1), np.float32(1), np.float32(-1e8)]
    got = added(Totals(loss=1.0, sums=np.full((1, 2, 1), part), offsets=0.5, users=2) for part in parts)
    assert (got.loss, got.offsets, got.users) == (6.0, 3.0, 12)
    assert got.sums.dtype == np.float32
    assert got.sums.tolist() == [[[4.0], [4.0]]]


def test_free_offsets_are_centred_and_f_stays():
    log, w = small_log()
    ask = replace(asked(log, w, bias_reg=0.0), until=0.0)
    ask = replace(ask, Q=ask.Q + np.array([0.0, 0.0, 0.0, 1.5]))
    blocks = blocks_of_rows(rows_of(log, w), log.n_items, 1)
    before = blocks.total(ask)
    moved = centred(ask, before, np.ones(log.n_items, bool))
    after = blocks.total(moved)
    assert moved.Q[:, -1].mean() == pytest.approx(0, abs=1e-12)
    assert after.offsets / after.users == pytest.approx(0, abs=1e-6)
    assert after.loss == pytest.approx(before.loss, rel=1e-9)


def test_numbers_that_overflow_are_an_error():
    log, w = small_log()
    ask = replace(asked(log, w, dtype="float32"), c=1e30)
    blocks = blocks_of_rows(rows_of(log, w, "float32"), log.n_items, 1)
    with pytest.raises(DivergenceError, match=facts("objective", "start")):
        descend(blocks, ask, Descent(Q=ask.Q), plan())


def test_items_without_a_rating_start_without_a_vector():
    seen = np.array([True, False, True])
    Q = start_items(seen, 4, "float32", np.random.default_rng(0))
    assert (Q[1] == 0).all()
    assert (Q[:, -1] == 0).all()
    assert (Q[seen, :4] != 0).all()
