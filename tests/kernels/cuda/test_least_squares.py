"""Half a sweep by Triton: the step of the CPU for every loss, and the exact minimum by enough of them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from openloop.kernels import least_squares as cpu
from openloop.kernels.least_squares import Problem, Rows
from openloop.kernels.losses import Loss, squares_numpy

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
