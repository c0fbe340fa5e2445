"""Sweeps of the ordinal factor model: a state, where it begins, and the order in which its parts are drawn.

The order matters. Thresholds move with the latent scores a summed out, and a is drawn right after: together this is
one draw of (b, a) given the rest. Everything else is drawn given a. Between sweeps a is not needed.
"""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np
from scipy.special import ndtri

from openloop.core.feedback import Array, Feedback, Floats
from openloop.kernels.ordinal import (
    Belief,
    Codes,
    SideRows,
    draw_latent,
    draw_scales,
    draw_side,
    level_log_likelihoods,
    row_moments,
    two_sides,
)
from openloop.kernels.ordinal_shift import draw_shift
from openloop.kernels.streams import normals, row_words, stream_word, uniforms
from openloop.learners.chains import SweepKey
from openloop.learners.solvers.roles import Role
from openloop.learners.solvers.thresholds import (
    SCALE,
    VARIANCE,
    Thresholds,
    centres,
    draw_variance,
    move_thresholds,
)

START = 0.3  # standard deviation of the first vectors: chains begin apart
STEP = 0.1  # the first standard deviation of a threshold's proposals
WANTED = 0.44  # of the proposals of a single number should be accepted (Gelman, Roberts & Gilks 1996)

STRETCHES = 2  # in a sweep


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OrdinalRows:
    """The rows of a log by user and by item, and their levels, in the log's order."""

    users: SideRows
    items: SideRows
    code: Codes  # (n,)
    levels: int

    @classmethod
    def of(cls, feedback: Feedback, code: Array, levels: int) -> Self:
        """The rows of a log whose ratings are these of `levels` levels."""
        users, items = two_sides(feedback.user, feedback.item, (feedback.n_users, feedback.n_items))
        return cls(users=users, items=items, code=np.ascontiguousarray(code, np.int16), levels=levels)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OrdinalState:
    """Everything that a sweep draws, and the width of the thresholds' proposals."""

    u: Floats  # (U, d)
    v: Floats  # (I, d)
    user_scale: Floats  # γ_i, (U,)
    item_scale: Floats  # γ_j, (I,)
    b: Floats  # (L - 1,)
    user_mean: Floats  # μ_U, (d,), and so on
    user_variance: Floats
    item_mean: Floats
    item_variance: Floats
    step: Floats  # (L - 1,)
    stretch_step: Floats  # (1,)

    @property
    def scales(self) -> tuple[Floats, Floats]:
        """γ of users and of items."""
        return self.user_scale, self.item_scale

    @property
    def off(self) -> Floats:
        """The thresholds less their prior means."""
        return self.b - centres(len(self.b))

    @property
    def user_belief(self) -> Belief:
        """The prior of users' vectors."""
        return Belief(mean=self.user_mean, variance=self.user_variance)

    @property
    def item_belief(self) -> Belief:
        """The prior of items' vectors."""
        return Belief(mean=self.item_mean, variance=self.item_variance)


def begin(rows: OrdinalRows, factors: int, seed: int, chain: int) -> OrdinalState:
    """Small random vectors, unit scales, and thresholds by the shares of levels."""
    U, I = len(rows.users), len(rows.items)
    words = row_words(stream_word(seed, chain, 0, Role.BEGIN), np.arange((U + I) * factors))
    first = START * normals(words).reshape(U + I, factors)
    share = np.cumsum(np.bincount(rows.code, minlength=rows.levels)) / len(rows.code)
    none, one = np.zeros(factors), np.ones(factors)
    return OrdinalState(
        u=first[:U], v=first[U:], user_scale=np.ones(U), item_scale=np.ones(I), b=ndtri(share[:-1]),
        user_mean=none, user_variance=one, item_mean=none, item_variance=one, step=np.full(rows.levels - 1, STEP),
        stretch_step=np.full(1, STEP),
    )  # fmt: skip


def sweep(rows: OrdinalRows, at: OrdinalState, key: SweepKey, pool: Executor) -> OrdinalState:
    """Thresholds and latent scores; users' vectors and their mean, items', each with a shift; scales; variances."""
    at, a = thresholds_and_latent(rows, at, key, pool)
    at, a = users_shifted(rows, at, a, key, pool)
    at, a = items_shifted(rows, at, a, key, pool)
    user_scale = draw_scales(rows.users, a, (at.u, at.v), at.item_scale, SCALE, key.word(Role.USER_SCALES), pool)
    item_scale = draw_scales(rows.items, a, (at.v, at.u), user_scale, SCALE, key.word(Role.ITEM_SCALES), pool)
    user_variance = draw_variance(at.u, at.user_mean, key.word(Role.USER_VARIANCE))
    item_variance = draw_variance(at.v, at.item_mean, key.word(Role.ITEM_VARIANCE))
    return replace(
        at, user_scale=user_scale, item_scale=item_scale, user_variance=user_variance, item_variance=item_variance
    )


def users_shifted(
    rows: OrdinalRows, at: OrdinalState, a: Floats, key: SweepKey, pool: Executor
) -> tuple[OrdinalState, Floats]:
    """μ_U and a shift of a and b with u summed out, then u."""
    mean, c = draw_shift(rows.users, a, at.v, at.scales, at.user_variance, at.off, key.word(Role.USER_SHIFT), pool)
    u = draw_side(
        rows.users, a + c, at.v, at.scales, Belief(mean=mean, variance=at.user_variance), key.word(Role.USERS), pool
    )
    return replace(at, u=u, user_mean=mean, b=at.b + c), a + c


def items_shifted(
    rows: OrdinalRows, at: OrdinalState, a: Floats, key: SweepKey, pool: Executor
) -> tuple[OrdinalState, Floats]:
    """The same of items."""
    scales = at.item_scale, at.user_scale
    mean, c = draw_shift(rows.items, a, at.u, scales, at.item_variance, at.off, key.word(Role.ITEM_SHIFT), pool)
    v = draw_side(
        rows.items, a + c, at.u, scales, Belief(mean=mean, variance=at.item_variance), key.word(Role.ITEMS), pool
    )
    return replace(at, v=v, item_mean=mean, b=at.b + c), a + c


def thresholds_and_latent(
    rows: OrdinalRows, at: OrdinalState, key: SweepKey, pool: Executor
) -> tuple[OrdinalState, Floats]:
    """b, and the size of b and m together, by Metropolis steps with a summed out; then a, (n,)."""
    moments = row_moments(rows.users, at.u, at.v, at.scales, pool)
    likelihoods: Any = partial(level_log_likelihoods, rows.code, moments=moments, pool=pool)
    found, step = Thresholds(b=at.b, logs=likelihoods(at.b)), at.step
    for parity in range(2):
        word = row_words(key.word(Role.THRESHOLDS), np.array([parity]))[0]
        found, taken = move_thresholds(found, step, parity, likelihoods, word)
        if key.burning:
            step = adapted(step, taken, slice(parity, None, 2), key.sweep)
    at = replace(at, b=found.b, step=step)
    at, k = stretch(rows, at, (moments, float(found.logs.sum())), key, pool)
    moments[0] *= k
    return at, draw_latent(rows.code, at.b, moments, key.word(Role.LATENT), pool)


def adapted(step: Floats, taken: Any, which: slice, sweep: int) -> Floats:
    """Wider where a proposal was accepted, narrower where not, of those numbers that were proposed."""
    surplus = np.zeros(len(step))
    surplus[which] = np.atleast_1d(taken)[which] - WANTED
    return step * growth(surplus, sweep)


def growth(surplus: Any, sweep: int) -> Any:
    """The factor of a step by how much more was accepted than wanted, less and less (Robbins & Monro 1951)."""
    return np.exp(surplus * (sweep + 1) ** -0.5)


# -- a stretch of everything ---------------------------------------------------------------------------------
# While γ is fixed, the size of b and m = uᵀv together moves most slowly. (b, u, v) → (kb, √k u, √k v), and with them
# (μ, σ²) → (√k μ, kσ²): the priors of u and v then change by their Jacobian alone. What remains is the likelihood of
# the levels, with a summed out, the priors of b, μ and σ², and the Jacobian of these, k^{(L - 1) + d + 2d}.


def stretch(
    rows: OrdinalRows, at: OrdinalState, given: tuple[Floats, float], key: SweepKey, pool: Executor
) -> tuple[OrdinalState, float]:
    """Metropolis steps of log k, and the product of those accepted; `given`: m and s of rows, and their likelihood."""
    (moments, log), k = given, 1.0
    words = row_words(key.word(Role.STRETCH), np.arange(2 * STRETCHES))
    steps, chances = normals(words[::2]), np.log(uniforms(words[1::2]))
    for z, chance in zip(steps, chances, strict=True):
        by = float(np.exp(at.stretch_step[0] * z))
        longer = np.stack([k * by * moments[0], moments[1]])
        proposed = float(level_log_likelihoods(rows.code, by * at.b, longer, pool).sum())
        taken = chance < proposed - log + stretch_prior(at, by)
        if taken:
            at, log, k = stretched(at, by), proposed, k * by
        if key.burning:
            at = replace(at, stretch_step=adapted(at.stretch_step, taken, slice(1), key.sweep))
    return at, k


def stretched(at: OrdinalState, k: float) -> OrdinalState:
    """b and m k times as large."""
    root = np.sqrt(k)
    return replace(
        at, b=k * at.b, u=root * at.u, v=root * at.v, user_mean=root * at.user_mean, item_mean=root * at.item_mean,
        user_variance=k * at.user_variance, item_variance=k * at.item_variance,
    )  # fmt: skip


def stretch_prior(at: OrdinalState, k: float) -> float:
    """log of the priors' ratio and of the Jacobian when `at` is stretched by k."""
    means, variances = np.append(at.user_mean, at.item_mean), np.append(at.user_variance, at.item_variance)  # (2d,)
    centre = centres(len(at.b))
    thresholds = np.sum((at.b - centre) ** 2 - (k * at.b - centre) ** 2) / 2
    of_variances = -(VARIANCE[0] + 1) * len(variances) * np.log(k) - VARIANCE[1] * np.sum(1 / variances) * (1 / k - 1)
    jacobian = (len(at.b) + 1.5 * len(means)) * np.log(k)
    return float(thresholds + np.sum(means**2) * (1 - k) / 2 + of_variances + jacobian)
