"""Sweeps of the joint model: the joint distribution that they leave unchanged, and when proposals are always taken."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from openloop.learners.solvers.joint_gibbs import move_side, sweep
from openloop.learners.solvers.joint_moves import move_whole
from openloop.learners.solvers.joint_state import Sweeping
from tests.joint_cases import POOL, I, L, U, drawn, from_prior, key_of, rows_of


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


def with_levels_held(rng):
    """From the prior given thresholds, m, s² and t²."""
    state, m, spread = from_prior(rng), np.array([-1.0, -0.5, 0.3]), np.array([0.5, 0.3])
    longer = np.sqrt(spread / state.spread)
    effects = m + longer[0] * (state.by_user - state.level_mean), longer[1] * state.by_item
    b = np.array([-0.4, 0.6])
    return replace(state, b=b, level_mean=m, spread=spread, by_user=effects[0], by_item=effects[1])


def test_sweeps_of_a_share_of_users_and_items_leave_it_as_it_is_where_levels_are_held(monkeypatch):
    # Moves of the whole, of thresholds and m among others, look at a sample of the cells: they alone are approximate.
    monkeypatch.setattr("openloop.learners.solvers.joint_gibbs.move_whole", lambda _work: None)
    monkeypatch.setattr("openloop.learners.solvers.joint_gibbs.draw_spreads", lambda at, _prior, _key: at)
    z = geweke(700, seed=2, share=0.5, first=with_levels_held)
    assert np.abs(z).max() < 3.8, z.round(1)


def test_where_missing_says_nothing_every_proposal_is_taken():
    rng = np.random.default_rng(2)
    state = from_prior(rng)
    rows = rows_of(*drawn(state, rng))
    flat = replace(state, by_user=np.full((U, L), -1.0), by_item=np.full((I, L), 0.3))
    work = Sweeping.of(rows, flat, key_of(0), POOL)
    a = np.zeros(len(rows.ordinal.code))
    for name, scale in (("u", "user_scale"), ("v", "item_scale")):
        move_side(work, a, name, rows.parts(key_of(0), POOL)[name == "v"])
        assert np.all(getattr(work.at, name) != getattr(flat, name))
        assert np.all(getattr(work.at, scale) != getattr(flat, scale))


def test_logs_are_those_of_the_state():
    rng = np.random.default_rng(3)
    state = from_prior(rng)
    rows = rows_of(*drawn(state, rng))
    work = Sweeping.of(rows, state, key_of(0), POOL)
    a = np.zeros(len(rows.ordinal.code))
    move_whole(work)
    for _ in range(3):
        for name, part in zip("uv", rows.parts(key_of(0), POOL), strict=True):
            move_side(work, a, name, part)
    np.testing.assert_allclose(work.logs, work.missing(work.at), atol=1e-12)
    assert not np.array_equal(work.at.u, state.u)


def test_steps_adapt_in_burn_in_alone():
    state = from_prior(np.random.default_rng(4))
    rows = rows_of(*drawn(state, np.random.default_rng(5)))
    names = ("user_reach", "item_reach", "move_step", "level_covariance")
    kept, burnt = (sweep(rows, state, key_of(1, burning=burning), POOL) for burning in (False, True))
    assert all(np.array_equal(getattr(kept, name), getattr(state, name)) for name in names)
    assert not any(np.array_equal(getattr(burnt, name), getattr(state, name)) for name in names[2:])
    assert np.all(burnt.user_reach <= 1)


def test_of_a_share_of_users_and_items_only_those_are_drawn():
    state, rng = from_prior(np.random.default_rng(7)), np.random.default_rng(8)
    rows = rows_of(*drawn(state, rng), share=0.5)
    users, items = rows.parts(key_of(10), POOL)
    after = sweep(rows, state, key_of(10), POOL)
    assert 0 < users.chosen.sum() < U
    np.testing.assert_array_equal(np.any(after.e != state.e, axis=1), users.chosen)
    np.testing.assert_array_equal(np.any(after.f != state.f, axis=1), items.chosen)
    assert np.all(after.user_scale[~users.chosen] == state.user_scale[~users.chosen])
    assert np.diff(users.cells.ptr)[users.chosen].tolist() == [I] * users.chosen.sum()
