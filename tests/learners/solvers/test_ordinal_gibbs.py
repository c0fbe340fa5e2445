"""Sweeps of the ordinal model leave the joint distribution unchanged."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy.stats import norm

from openloop.kernels.ordinal import row_moments, two_sides
from openloop.learners.chains import SweepKey, effective_sample_size
from openloop.learners.solvers.ordinal_gibbs import (
    OrdinalRows,
    OrdinalState,
    sweep,
)
from openloop.learners.solvers.thresholds import SCALE, VARIANCE, centres

U, I, D, L = 4, 3, 2, 3
USER = np.repeat(np.arange(U), [3, 2, 3, 0])  # the last user has no row
ITEM = np.array([0, 1, 2, 0, 2, 0, 1, 2])


@pytest.fixture(scope="module")
def pool():
    with ThreadPoolExecutor(2) as found:
        yield found


def rows_of(code):
    users, items = two_sides(USER, ITEM, (U, I))
    return OrdinalRows(users=users, items=items, code=np.asarray(code, np.int16), levels=L)


def from_prior(rng) -> OrdinalState:
    b = centres(L - 1) + rng.standard_normal(L - 1)
    while not np.all(np.diff(b) > 0):
        b = centres(L - 1) + rng.standard_normal(L - 1)
    means = rng.standard_normal((2, D))
    variances = VARIANCE[1] / rng.gamma(VARIANCE[0], size=(2, D))
    return OrdinalState(
        u=means[0] + np.sqrt(variances[0]) * rng.standard_normal((U, D)),
        v=means[1] + np.sqrt(variances[1]) * rng.standard_normal((I, D)),
        user_scale=SCALE[1] / rng.gamma(SCALE[0], size=U), item_scale=SCALE[1] / rng.gamma(SCALE[0], size=I), b=b,
        user_mean=means[0], user_variance=variances[0], item_mean=means[1], item_variance=variances[1],
        step=np.full(L - 1, 0.8), stretch_step=np.full(1, 0.4),
    )  # fmt: skip


def drawn_codes(state, rng, pool):
    m, s = row_moments(rows_of(np.zeros(len(USER))).users, state.u, state.v, state.scales, pool)
    return np.searchsorted(state.b, m + s * rng.standard_normal(len(m)))


def functions(state) -> np.ndarray:
    """Of every part of the state, with squares and products, none of them of heavy tails."""
    m = state.u @ state.v.T
    return np.array([
        *state.b, *state.b**2, state.b[0] * state.b[1], np.tanh(m).mean(), np.tanh(m[3]).mean(), np.tanh(m**2).mean(),
        np.tanh(state.b[0] * m.mean()), np.tanh((state.b.mean() - m[:3]) ** 2 / 2).mean(),
        *np.log([state.user_scale.mean(), state.item_scale.mean()]),
        np.log(state.user_scale)[0] * np.log(state.item_scale)[0], *np.log(state.user_variance), state.user_mean[0],
        *np.log(state.item_variance), state.item_mean[1], (state.user_mean @ state.item_mean) / 2,
        np.tanh(state.u[0, 0]), np.tanh(state.v[0, 0] ** 2),
    ])  # fmt: skip


def residuals(state, code) -> np.ndarray:
    """Functions of levels and state together whose means are 0: r = 1[level ≤ l] - P(level ≤ l), (n, L - 1).

    They notice latent scores that are drawn before the thresholds move, which leaves each part nearly right.
    """
    m, s = (state.u @ state.v.T)[USER, ITEM], np.sqrt(np.outer(*state.scales))[USER, ITEM]
    x = (state.b - m[:, None]) / s[:, None]
    P = norm.cdf(x)
    r = (code[:, None] <= np.arange(L - 1)) - P
    squares = r.mean(axis=0) ** 2 - (P * (1 - P)).sum(axis=0) / len(m) ** 2
    return np.array([*(r * np.tanh(x)).mean(axis=0), *(r * np.tanh(m)[:, None]).mean(axis=0), *squares])


def test_sweeps_leave_the_joint_distribution_as_it_is(pool):
    # Geweke 2004: parameters of the prior, and those of a chain that draws levels and parameters given each other.
    n, rng = 1500, np.random.default_rng(1)
    prior = np.array([functions(from_prior(rng)) for _ in range(n)])
    state, chain, apart = from_prior(rng), [], []
    for number in range(n):
        code = drawn_codes(state, rng, pool)
        state = sweep(rows_of(code), state, SweepKey(seed=4, chain=0, sweep=number, burning=False), pool)
        chain.append(functions(state))
        apart.append(residuals(state, code))
    found, errors = zip(*(means(np.array(each)) for each in (chain, apart)), strict=True)
    z = (prior.mean(axis=0) - found[0]) / np.hypot(prior.std(axis=0) / np.sqrt(n), errors[0])
    assert np.abs(z).max() < 3.5, z.round(1)
    z = found[1] / errors[1]
    assert np.abs(z).max() < 3.5, z.round(1)


def means(draws) -> tuple[np.ndarray, np.ndarray]:
    """Of columns of draws, and their standard errors."""
    size = np.array([effective_sample_size(x[None]) for x in draws.T])
    assert size.min() > 35, size.round()
    return draws.mean(axis=0), draws.std(axis=0) / np.sqrt(size)
