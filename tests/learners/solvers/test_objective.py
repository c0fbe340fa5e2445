"""The objective of matrix factorisation: its terms by hand, its slope by differences, and when it has settled."""

from __future__ import annotations

import re

import numpy as np
import pytest

from openloop.core.feedback import Feedback
from openloop.errors import DivergenceError
from openloop.kernels.losses import Loss
from openloop.learners.solvers.objective import Objective, Solution, start
from tests.facts import facts


def log() -> Feedback:
    """User 2 and item 0 have no rating."""
    return Feedback.from_arrays([0, 0, 1, 3], [1, 2, 1, 3], [1, 2, 3, 4], users=4, items=5)


def solution() -> Solution:
    return Solution(np.zeros((1, 1)), np.zeros((1, 1)))


# --- its terms


def test_a_row_has_its_vector_then_its_offset():
    with_offsets = Objective(factors=2, reg=3.0, bias_reg=0.5)
    assert with_offsets.offsets
    assert with_offsets.penalty.tolist() == [3, 3, 0.5]
    without = Objective(factors=2, reg=3.0)
    assert not without.offsets
    assert without.penalty.tolist() == [3, 3]


def test_free_offsets_are_offsets():
    free = Objective(factors=1, reg=3.0, bias_reg=0.0)
    assert free.offsets
    assert free.penalty.tolist() == [3, 0]


def test_the_penalty_by_hand():
    P = np.array([[1, 2, 10], [3, 0, 20]], np.float32)
    assert Objective(factors=2, reg=3.0, bias_reg=0.5).penalty_of(P) == 3 * (1 + 4 + 9) + 0.5 * (100 + 400)


def test_the_penalty_of_many_is_summed_in_double_precision():
    P = np.full((2_000_000, 1), 0.1, np.float32)
    assert Objective(factors=1, reg=1.0).penalty_of(P) == pytest.approx(
        2_000_000 * float(np.float32(0.1)) ** 2, rel=1e-12
    )


def test_squared_errors_and_their_slope():
    loss, slope = Objective(factors=1, reg=1.0).losses(np.array([1.0, 3, 2]), np.array([3.0, 3, 1.5]))
    assert loss.tolist() == [4, 0, 0.25]
    assert slope.tolist() == [4, 0, -1]


def test_absolute_errors_are_round_within_the_smoothing():
    objective = Objective(factors=1, reg=1.0, loss=Loss.ABSOLUTE, smoothing=0.5)
    loss, slope = objective.losses(np.zeros(6), np.array([-2.0, -0.5, 0, 0.25, 0.5, 3]))
    np.testing.assert_allclose(loss, [2, 0.5, 0.25, 0.0625 + 0.25, 0.5, 3])
    np.testing.assert_allclose(slope, [-1, -1, 0, 0.5, 1, 1])


def test_logistic_losses_are_those_of_the_label():
    # p = 3/4 at z = log 3: -log p of a 1, -log(1 - p) of a 0; the slope is p - y
    z = np.array([np.log(3), np.log(3), 0, 800, -800])
    loss, slope = Objective(factors=1, reg=1.0, loss=Loss.LOGISTIC).losses(np.array([1.0, 0, 1, 1, 1]), z)
    np.testing.assert_allclose(loss, [np.log(4 / 3), np.log(4), np.log(2), 0, 800], rtol=1e-12)
    np.testing.assert_allclose(slope, [-0.25, 0.75, -0.5, 0, -1], atol=1e-12)


@pytest.mark.parametrize("loss", list(Loss), ids=["squared", "absolute", "logistic"])
def test_the_slope_is_the_derivative(loss):
    objective = Objective(factors=1, reg=1.0, loss=loss, smoothing=0.3)
    z, h = np.linspace(-1, 1, 41) + 1e-3, 1e-6
    for y in (np.zeros(41), np.ones(41)):
        difference = (objective.losses(y, z + h)[0] - objective.losses(y, z - h)[0]) / (2 * h)
        np.testing.assert_allclose(objective.losses(y, z)[1], difference, atol=1e-8)


def test_a_vanishing_smoothing_leaves_the_absolute_error():
    z = np.linspace(-2, 2, 41)
    objective = Objective(factors=1, reg=1.0, loss=Loss.ABSOLUTE, smoothing=1e-9)
    np.testing.assert_allclose(objective.losses(0 * z, z)[0], np.abs(z), atol=1e-9)


def test_the_kernel_is_told_the_same():
    X = np.array([[1.0, 2], [3, 4], [5, 6]])
    told = Objective(factors=1, reg=2.0, bias_reg=0.5, loss=Loss.ABSOLUTE, smoothing=0.1).problem(X)
    assert (told.offsets, told.loss, told.smoothing, told.prior) == (True, Loss.ABSOLUTE, 0.1, None)
    assert told.penalty.tolist() == [2, 0.5]


def test_what_was_not_observed_is_a_prior_of_all_users():
    # rest·Σ_i (pᵀx_i)² = pᵀGp for any p
    X, p = np.array([[1.0, 2], [3, 4], [5, 6]]), np.array([0.3, -1])
    G = Objective(factors=2, reg=2.0, rest=0.01).problem(X).prior
    assert p @ G @ p == pytest.approx(0.01 * np.sum((X @ p) ** 2), rel=1e-12)


# --- settling


def test_it_has_settled_when_it_falls_by_no_more_than_its_tolerance():
    at = solution()
    assert [at.record(value, 0.01) for value in (100.0, 90.0, 89.2)] == [False, False, True]
    assert at.settled
    assert at.history == [100, 90, 89.2]


def test_it_has_settled_when_it_cannot_fall():
    at = solution()
    assert [at.record(value, 0.0) for value in (0.0, 0.0)] == [False, True]


def test_a_large_step_after_a_small_one_is_not_settled():
    at = solution()
    for value in (100.0, 99.9, 50.0):
        at.record(value, 0.01)
    assert not at.settled


def test_only_what_was_cut_short_has_something_to_say():
    at = solution()
    at.record(3.0, 0.01)
    (note,) = at.notes(7, 0.01)
    assert re.search(facts("7 sweeps", "tol=0.01"), note)
    at.record(3.0, 0.01)
    assert at.notes(7, 0.01) == []


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_said_with_its_sweep_and_a_remedy(value):
    at = solution()
    at.record(3.0, 0.01)
    with pytest.raises(DivergenceError, match=facts(value, "sweep 2", "larger reg")):
        at.record(value, 0.01)
    assert at.history == [3]


# --- the start


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_it_starts_with_random_vectors_and_no_offsets(dtype):
    at = start(log(), Objective(factors=3, reg=1.0, bias_reg=1.0), dtype, np.random.default_rng(0))
    assert at.P.shape == (4, 4)
    assert at.Q.shape == (5, 4)
    for side in (at.P, at.Q):
        assert side.dtype == dtype
        assert not side[:, -1].any()
    assert at.c == 0
    assert at.history == []
    assert not at.settled


def test_who_has_no_rating_has_no_vector():
    at = start(log(), Objective(factors=3, reg=1.0), np.float64, np.random.default_rng(0))
    assert np.flatnonzero(~at.P.any(axis=1)).tolist() == [2]
    assert np.flatnonzero(~at.Q.any(axis=1)).tolist() == [0, 4]


def test_vectors_have_about_unit_length():
    everyone = Feedback.from_arrays(np.arange(400), np.arange(400), np.ones(400))
    at = start(everyone, Objective(factors=50, reg=1.0), np.float64, np.random.default_rng(0))
    for side in (at.P, at.Q):
        lengths = np.linalg.norm(side, axis=1)
        assert lengths.mean() == pytest.approx(1, abs=0.02)
        assert side.mean() == pytest.approx(0, abs=0.005)


def test_the_start_is_its_seed_whatever_the_precision():
    objective = Objective(factors=3, reg=1.0, bias_reg=1.0)
    first, second, double, other = (
        start(log(), objective, dtype, np.random.default_rng(seed))
        for dtype, seed in ((np.float32, 0), (np.float32, 0), (np.float64, 0), (np.float32, 1))
    )
    np.testing.assert_array_equal(first.P, second.P)
    np.testing.assert_array_equal(first.Q, second.Q)
    np.testing.assert_allclose(first.P, double.P, rtol=1e-6)
    assert not np.array_equal(first.P, other.P)


def test_without_factors_there_is_nothing_to_draw():
    at = start(log(), Objective(factors=0, reg=1.0, bias_reg=1.0), np.float32, np.random.default_rng(0))
    assert at.P.shape == (4, 1)
    assert not at.P.any()
