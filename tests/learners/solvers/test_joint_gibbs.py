"""Sweeps of the joint model leave the joint distribution unchanged."""

from __future__ import annotations

import numpy as np

from openloop.learners.solvers.joint_gibbs import sweep
from tests.joint_cases import POOL, drawn, from_prior, key_of, rows_of


def functions(state) -> np.ndarray:
    """Of every part of the state, none of them of heavy tails."""
    mean, common = state.u @ state.v.T, state.e @ state.f.T
    return np.array([
        *state.b, *state.b**2, np.tanh(mean).mean(), np.tanh(mean[0] ** 2).mean(),
        np.tanh(state.user_mean[0] * state.item_mean[0]),
        *np.log([state.user_scale.mean(), state.item_scale.mean(), state.user_scale[0]]),
        *np.log(state.user_variance), *np.log(state.item_variance), np.tanh(common).mean(), np.tanh(common**2).mean(),
        *state.level_mean, *state.level_mean**2, state.level_mean[0] * state.level_mean[-1], *np.log(state.spread),
        state.by_user[0, 0], state.by_user[1, 2] ** 2, np.tanh(state.by_item[:, 1]).mean(),
        np.tanh(state.by_item[0] ** 2).mean(), state.b[0] * state.level_mean[0],
        np.tanh(mean.mean() * state.level_mean[2]),
    ])  # fmt: skip


def batch_error(draws, batches=25):
    size = len(draws) // batches
    return draws[: size * batches].reshape(batches, size, -1).mean(axis=1).std(axis=0, ddof=1) / np.sqrt(batches)


def agreement(state, level, seen) -> np.ndarray:
    """How data and state go together, which notices draws that do not look at all of their cells."""
    user, item = np.indices(seen.shape)
    x = state.e @ state.f.T + state.by_user[user, level] + state.by_item[item, level]
    sign = 2.0 * seen - 1
    return np.array([(np.tanh(x) * sign).mean(), (np.tanh(x) * sign)[0].mean(), (np.tanh(x) * sign)[:, 0].mean()])


def geweke(n, seed=1, share=1.0, first=from_prior) -> np.ndarray:
    """z scores of functions of state and data, of the prior against a chain that draws both given each other."""
    rng, prior = np.random.default_rng(seed), []
    for _ in range(n):
        state = first(rng)
        prior.append([*functions(state), *agreement(state, *drawn(state, rng))])
    chain = []
    for number in range(n):
        data = drawn(state, rng)
        state = sweep(rows_of(*data, share), state, key_of(number), POOL)
        chain.append([*functions(state), *agreement(state, *data)])
    error = np.hypot(np.std(prior, axis=0) / np.sqrt(n), batch_error(np.array(chain)))
    moving = error > 1e-12  # all but those of what is held
    return (np.mean(prior, axis=0) - np.mean(chain, axis=0))[moving] / error[moving]


def test_sweeps_leave_the_joint_distribution_as_it_is():
    z = geweke(700)  # Geweke 2004
    assert np.abs(z).max() < 3.8, z.round(1)
