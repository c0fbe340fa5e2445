"""Small states and logs of the joint model, for tests of its sweeps."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache

import numpy as np
from scipy.special import expit

from openloop.kernels.ordinal import two_sides
from openloop.learners.chains import SweepKey
from openloop.learners.solvers import ordinal_gibbs
from openloop.learners.solvers.joint_state import SPREAD, VAGUE, JointRows, JointState, begin
from openloop.learners.solvers.ordinal_gibbs import OrdinalRows
from openloop.learners.solvers.thresholds import SCALE, VARIANCE, centres

U, I, D, F, L = 4, 3, 1, 1, 3
POOL = ThreadPoolExecutor(2)
PRIOR = -0.5  # around which m is drawn


def rows_of(level, seen, share=1.0) -> JointRows:
    """Rows of the seen cells of a grid."""
    user, item = np.nonzero(seen)
    users, items = two_sides(user, item, seen.shape)
    code = level[seen]
    ordinal = OrdinalRows(users=users, items=items, code=code.astype(np.int16), levels=L)
    return JointRows.of(ordinal, share, PRIOR, POOL)


def key_of(number, *, burning=False):
    return SweepKey(seed=5, chain=0, sweep=number, burning=burning)


@cache
def some_state() -> JointState:
    rows = rows_of(np.arange(U * I).reshape(U, I) % L, np.eye(U, I, dtype=bool))
    return begin(ordinal_gibbs.begin(rows.ordinal, D, 0, 0), rows, F, key_of(0))


def from_prior(rng) -> JointState:
    b = centres(L - 1) + rng.standard_normal(L - 1)
    while not np.all(np.diff(b) > 0):
        b = centres(L - 1) + rng.standard_normal(L - 1)
    mean, variance = rng.standard_normal((2, D)), VARIANCE[1] / rng.gamma(VARIANCE[0], size=(2, D))
    spread, m = SPREAD[1] / rng.gamma(SPREAD[0], size=2), PRIOR + np.sqrt(VAGUE) * rng.standard_normal(L)
    return replace(
        some_state(),
        b=b, user_mean=mean[0], item_mean=mean[1], user_variance=variance[0], item_variance=variance[1],
        u=mean[0] + np.sqrt(variance[0]) * rng.standard_normal((U, D)),
        v=mean[1] + np.sqrt(variance[1]) * rng.standard_normal((I, D)),
        user_scale=SCALE[1] / rng.gamma(SCALE[0], size=U), item_scale=SCALE[1] / rng.gamma(SCALE[0], size=I),
        e=rng.standard_normal((U, F)), f=rng.standard_normal((I, F)), level_mean=m, spread=spread,
        by_user=m + np.sqrt(spread[0]) * rng.standard_normal((U, L)),
        by_item=np.sqrt(spread[1]) * rng.standard_normal((I, L)),
        level_covariance=0.5 * np.eye(2 * L - 1), move_step=np.array([1.0, 1.0, 0.5, 0.5]),
        user_reach=np.array([1.0, 0.7, 0.7, 1.0]),
    )  # fmt: skip


def drawn(state, rng):
    """Levels of all cells, and which are seen."""
    scale = np.sqrt(np.outer(state.user_scale, state.item_scale))
    level = np.searchsorted(state.b, state.u @ state.v.T + scale * rng.standard_normal((U, I)))
    x = state.e @ state.f.T + np.take_along_axis(state.by_user, level, 1) + state.by_item[np.arange(I), level]
    return level, rng.random((U, I)) < expit(x)
