"""Half a sweep by Triton: the CPU's step for every loss, the exact minimum by enough of them, the same bits always."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from openloop.errors import InputError
from openloop.kernels import least_squares as cpu
from openloop.kernels.least_squares import Problem, Rows
from openloop.kernels.losses import Loss, squares_numpy
from tests.facts import facts

U, I, K = 6, 9, 5


@pytest.fixture
def kernel(triton):
    from openloop.kernels.cuda import least_squares

    return least_squares


def world(width, loss=Loss.SQUARED, seed=0):
    """Rows, X and P in float32; user 3 and item 5 have no row, user 1 has one."""
    rng = np.random.default_rng(seed)
    O = rng.random((U, I)) < 0.7
    O[3], O[:, 5], O[1] = False, False, np.arange(I) == 2
    user, item = np.nonzero(O)
    y = rng.normal(size=len(user))
    y = (y > 0) if loss is Loss.LOGISTIC else y
    ptr = np.concatenate([[0], np.cumsum(np.bincount(user, minlength=U))])
    rows = Rows(ptr, item.astype(np.int32), y.astype(np.float32), rng.gamma(1.0, size=len(user)).astype(np.float32))
    return rows, *(rng.normal(size=(n, width)).astype(np.float32) for n in (I, U))


def problem(width, **other):
    return Problem(np.linspace(0.3, 2, width), smoothing=0.2, **other)


def first_value(rows, X, P, p):
    """The losses and penalties before the sweep."""
    u, x, b = np.repeat(np.arange(U), np.diff(rows.ptr)), X[rows.partner], 0.0
    if p.offsets:
        b, x = x[:, -1], np.column_stack([x[:, :-1], np.ones(len(x))])
    loss, _, _ = squares_numpy(p.loss, p.smoothing, rows.y, np.sum(x * P[u], axis=1) + b + 0.4)
    G, seen = np.diag(p.penalty) + (0 if p.prior is None else p.prior), P[rows.filled]
    return np.sum(rows.w * loss) + np.sum((seen @ G) * seen)


def swept(kernel, rows, X, P, p, *, steps=3):
    """P and the value after a half sweep on the device; the prior is that of X."""
    layout = kernel.Layout(len(p.penalty) - p.offsets, p.offsets)
    given, found = layout.sent(X, "cuda"), layout.sent(P, "cuda")
    if p.prior is not None:
        p = replace(p, prior=0.1 * (given.T @ given))
    value = kernel.half_sweep(kernel.DeviceRows.of(rows, "cuda"), given, 0.4, found, p, steps=steps)
    return layout.fetched(found), float(value)


@pytest.mark.parametrize("loss", list(Loss), ids=[loss.name.lower() for loss in Loss])
@pytest.mark.parametrize("kind", ["plain", "offsets", "prior"])
def test_a_step_is_the_cpus(kernel, kind, loss):
    width = K + (kind == "offsets")
    rows, X, P = world(width, loss)
    p = problem(width, offsets=kind == "offsets", prior=0.1 * (X.T @ X) if kind == "prior" else None, loss=loss)
    expected = P.copy()
    with ThreadPoolExecutor(1) as pool:
        value = cpu.half_sweep(rows, X, 0.4, expected, p, pool, steps=3)
    found, reached = swept(kernel, rows, X, P, p)
    np.testing.assert_allclose(found, expected, atol=2e-5)
    # The value is the first one less what steps gained, both in float32: its error is a part of the first.
    assert reached == pytest.approx(value, abs=1e-6 * first_value(rows, X, P, p))
    np.testing.assert_array_equal(found[3], P[3])  # who has no row stays


def test_enough_steps_reach_the_minimum(kernel):
    rows, X, P = world(K + 1)
    p, exact = problem(K + 1, offsets=True), P.astype(np.float64)
    value = cpu.half_sweep_numpy(rows, X.astype(np.float64), 0.4, exact, p)
    found, reached = swept(kernel, rows, X, P, p, steps=12)
    np.testing.assert_allclose(found, exact, atol=2e-5)
    assert reached == pytest.approx(value, abs=1e-6 * first_value(rows, X, P, p))


def test_long_lists_are_solved_as_short_ones_and_bits_repeat(kernel, monkeypatch):
    rows, X, P = world(K + 1)
    p = problem(K + 1, offsets=True)
    short, value = swept(kernel, rows, X, P, p)
    again, _ = swept(kernel, rows, X, P, p)
    np.testing.assert_array_equal(again, short)
    monkeypatch.setattr(kernel, "LONG", 4)
    found, reached = swept(kernel, rows, X, P, p)
    assert kernel.DeviceRows.of(rows, "cuda").long == 4
    np.testing.assert_allclose(found, short, atol=1e-5)
    assert reached == pytest.approx(value, rel=1e-6)


def test_without_a_penalty_what_rows_do_not_tell_stays_put(kernel):
    # One row for two entries: only along x does p move, and onto the target.
    rows = Rows(np.array([0, 1]), np.array([0], np.int32), np.array([2], np.float32), np.ones(1, np.float32))
    found, value = swept(
        kernel, rows, np.array([[1, 1]], np.float32), np.zeros((1, 2), np.float32), Problem(np.zeros(2)), steps=9
    )
    np.testing.assert_allclose(found, [[0.8, 0.8]], atol=1e-6)  # 0.4 is the constant
    assert value == pytest.approx(0, abs=1e-12)


def test_rows_turned_are_the_cpus(kernel):
    rows, *_ = world(K)
    there, here = kernel.DeviceRows.of(rows, "cuda").turned(I), rows.turned(I)
    for name in ("ptr", "partner", "y", "w"):
        np.testing.assert_array_equal(getattr(there, name).numpy(), getattr(here, name))
    sizes = np.diff(here.ptr)
    assert sizes[there.order.numpy()].tolist() == sorted(sizes[sizes > 0], reverse=True)


@pytest.mark.parametrize(("factors", "width"), [(0, 16), (16, 16), (20, 32), (64, 64), (65, 128)])
def test_rows_of_factors_come_back_as_they_went(kernel, factors, width):
    for offsets in (False, True):
        layout = kernel.Layout(factors, offsets)
        assert layout.width == width + 4 * offsets
        P = np.random.default_rng(0).normal(size=(3, factors + offsets)).astype(np.float32)
        np.testing.assert_array_equal(layout.fetched(layout.sent(P, "cuda")), P)


def test_other_precisions_cholesky_and_a_prior_of_offsets_are_refused(kernel):
    rows, X, P = world(K)
    with pytest.raises(InputError, match=facts("float32", "float64")):
        kernel.Layout(K, False).sent(P.astype(np.float64), "cuda")
    with pytest.raises(InputError, match=facts("y", "float32", "float64")):
        kernel.DeviceRows.of(replace(rows, y=rows.y.astype(np.float64)), "cuda")
    with pytest.raises(InputError, match=facts("steps", 0)):
        swept(kernel, rows, X, P, problem(K), steps=0)
    with pytest.raises(InputError, match=facts("prior", "offsets")):
        swept(kernel, rows, X, P, problem(K, offsets=True, prior=X.T @ X))
