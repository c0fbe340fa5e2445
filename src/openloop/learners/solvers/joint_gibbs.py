"""Sweeps of the joint model of ratings and of what is observed: the ordinal model's draws, taken by the unobserved cells.

The ratings of unobserved cells are summed out wherever the rating part is drawn. What the observed rows propose for u, γ_u,
v and γ_v is reversible with respect to their own posterior, so it is accepted with the ratio of Π S over the cells concerned
(S of `kernels.joint_cells`). Levels of unobserved cells are drawn for the logistic part alone and forgotten after it.

    λ_{i,l} ~ N(m_l, s²), ψ_{j,l} ~ N(0, t²), m_l ~ N(logit density, 2²), s², t² ~ InvGamma(3, .5), e, f ~ N(0, 1)
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from openloop.core.feedback import Array, Floats
from openloop.kernels.joint_cells import Cells, Observing, Ratings, missing_logs, sampled_cells
from openloop.kernels.logistic_blocks import Prior, augment, draw_blocks
from openloop.kernels.ordinal import (
    Belief,
    Near,
    centres,
    draw_latent,
    draw_scales,
    draw_side,
    draw_variance,
    level_log_likelihoods,
    row_moments,
)
from openloop.kernels.streams import gammas, normals, row_words, uniforms
from openloop.learners.solvers.ordinal_gibbs import OTHERS, OrdinalRows, OrdinalState, SweepKey

SPREAD = (3.0, 0.5)  # shape and rate of the inverse gammas of s² and t²
VAGUE = 2.0**2  # the variance of m_l around the logit of the density
WANTED, WANTED_JOINT = 0.4, 0.25  # of proposals should be accepted: of one user's or item's vector, of b and m together
MOVES = 2  # of b and m in a sweep
FIRST_STEP = 0.05  # the first standard deviation of a proposal for b and m

(
    CELLS, JOINT, MEANS, LEVELS, OMEGA, USER_EFFECTS, ITEM_EFFECTS, M, SHIFT, SPREADS,
    USER_TAKEN, ITEM_TAKEN, USER_SCALE_TAKEN, ITEM_SCALE_TAKEN,
) = range(OTHERS, OTHERS + 14)  # fmt: skip
VECTORS = {"u": (2, USER_TAKEN), "v": (3, ITEM_TAKEN)}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class JointState(OrdinalState):
    """The ordinal model's state, the logistic part's, and how far proposals go."""

    e: Floats  # (U, d′)
    f: Floats  # (I, d′)
    by_user: Floats  # λ, (U, L)
    by_item: Floats  # ψ, (I, L)
    level_mean: Floats  # m, (L,)
    spread: Floats  # s², t²
    user_reach: Floats  # (U,), how far from where it is a vector is proposed: 1 for a draw that forgets it
    item_reach: Floats  # (I,)
    joint_step: Floats  # (1,), in units of the covariance of b and m
    joint_mean: Floats  # (2L - 1,), running, of (b, m)
    joint_covariance: Floats  # (2L - 1, 2L - 1)

    @property
    def ratings(self) -> Ratings:
        """The rating part, as kernels take it."""
        return Ratings(self.u, self.v, self.user_scale, self.item_scale, self.b)

    @property
    def observing(self) -> Observing:
        """The missing-data part, as kernels take it."""
        return Observing(self.e, self.f, self.by_user, self.by_item)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class JointRows:
    """The rows of a log and the list of its observed cells; `share` of the unobserved are looked at in a sweep."""

    ordinal: OrdinalRows
    cells: Cells  # observed ones; with a share of 1, all
    share: float
    prior: float  # logit of the density

    def sampled(self, key: SweepKey) -> Cells:
        """The cells of this sweep."""
        return self.cells if self.share == 1 else sampled_cells(self.cells, self.share, key.word(CELLS))


@dataclass(slots=True)
class Sweeping:
    """One sweep at work: the state so far, and log S of the cells with it."""

    rows: JointRows
    key: SweepKey
    pool: Executor
    cells: Cells
    at: JointState
    logs: Floats

    def evaluate(self, proposed: JointState) -> Floats:
        """log S of the cells with a proposed state."""
        return missing_logs(self.cells, proposed.ratings, proposed.observing)


def begin(ordinal: OrdinalState, rows: JointRows, factors: int, key: SweepKey) -> JointState:
    """Where the ordinal model ended, all effects at the logit of the density, and small vectors e and f."""
    U, I, L = len(ordinal.u), len(ordinal.v), rows.ordinal.levels
    words = row_words(key.word(OMEGA), np.arange((U + I) * factors))
    first = 0.1 * normals(words).reshape(U + I, factors)
    state = {name: getattr(ordinal, name) for name in OrdinalState.__dataclass_fields__}
    level_mean = np.full(L, rows.prior)
    return JointState(
        **state, e=first[:U], f=first[U:], by_user=np.full((U, L), rows.prior), by_item=np.zeros((I, L)),
        level_mean=level_mean, spread=np.full(2, SPREAD[1] / (SPREAD[0] - 1)), user_reach=np.ones(U),
        item_reach=np.ones(I), joint_step=np.ones(1), joint_mean=np.append(ordinal.b, level_mean),
        joint_covariance=np.eye(2 * L - 1) * FIRST_STEP**2,
    )  # fmt: skip


def sweep(rows: JointRows, at: JointState, key: SweepKey, pool: Executor) -> JointState:
    """b with m; latent scores of the rows; u, γ_u, v, γ_v; their priors; the logistic part and its priors."""
    cells = rows.sampled(key)
    work = Sweeping(rows, key, pool, cells, at, missing_logs(cells, at.ratings, at.observing))
    moments = row_moments(rows.ordinal.users, at.u, at.v, at.scales, pool)
    for move in range(MOVES):
        move_levels(work, moments, move)
    a = draw_latent(rows.ordinal.code, work.at.b, moments, key.word(1), pool)
    move_side(work, a, "u")
    move_side(work, a, "v")
    return draw_logistic(work, draw_beliefs(work.at, key))


# -- thresholds and level means ------------------------------------------------------------------------------
# (b, m) move together, with λ_{i,l} - m_l as they are: what unobserved cells say about both is hard to tell apart, and a
# and the levels are summed out. Proposals are normal with the covariance that b and m had in burn-in (Haario et al. 2001).


def move_levels(work: Sweeping, moments: Floats, move: int) -> None:
    """One Metropolis step of (b, m)."""
    at, key = work.at, work.key
    words = row_words(key.word(JOINT), np.arange(3 * MOVES * at.joint_mean.size).reshape(MOVES, -1)[move])
    step = at.joint_step * (np.linalg.cholesky(at.joint_covariance) @ normals(words[: at.joint_mean.size]))
    db, dm = step[: at.b.size], step[at.b.size :]
    proposed = replace(at, b=at.b + db, by_user=at.by_user + dm, level_mean=at.level_mean + dm)
    chance = 0.0
    if np.all(np.diff(proposed.b) > 0):
        logs = work.evaluate(proposed)
        gain = work.cells.weight * float(np.sum(logs - work.logs))
        gain += _observed_log(work, proposed, moments) - _observed_log(work, at, moments)
        chance = float(np.exp(min(gain, 0.0)))
        if uniforms(words[-1:])[0] < chance:
            work.at, work.logs = proposed, logs
    if key.burning:
        work.at = _learned(work.at, chance, key.sweep)


def _observed_log(work: Sweeping, at: JointState, moments: Floats) -> float:
    """log of the prior of (b, m), of the observed ratings, and of their being observed."""
    rows = work.rows.ordinal
    user, item, code = _places(rows)
    x = np.sum(at.e[user] * at.f[item], axis=1) + at.by_user[user, code] + at.by_item[item, code]
    prior = np.sum((at.b - centres(at.b.size)) ** 2) + np.sum((at.level_mean - work.rows.prior) ** 2) / VAGUE
    ratings = level_log_likelihoods(rows.code, at.b, moments, work.pool).sum()
    return float(ratings - np.logaddexp(0, -x).sum() - prior / 2)


def _places(rows: OrdinalRows) -> tuple[Array, Array, Array]:
    return np.repeat(np.arange(len(rows.users)), rows.users.counts), rows.users.partner, rows.code


def _learned(at: JointState, chance: float, sweep: int) -> JointState:
    """The running mean and covariance of (b, m), and a wider or narrower step."""
    rate = (sweep + 2) ** -0.6
    away = np.append(at.b, at.level_mean) - at.joint_mean
    covariance = at.joint_covariance + rate * (np.outer(away, away) - at.joint_covariance)
    return replace(
        at,
        joint_mean=at.joint_mean + rate * away,
        joint_covariance=covariance + 1e-9 * np.eye(away.size),
        joint_step=at.joint_step * np.exp(rate * (chance - WANTED_JOINT)),
    )


# -- vectors and scales --------------------------------------------------------------------------------------
# With N(c, Λ⁻¹) what the rows say about u_i, the proposal c + ρ(u_i - c) + √(1 - ρ²)Λ^{-1/2}z is reversible with respect
# to it for every ρ. A reach √(1 - ρ²) of 1 forgets u_i; where such draws are rarely accepted burn-in shortens it.


def move_side(work: Sweeping, a: Floats, name: str) -> None:
    """u then γ_u of all users, or v then γ_v of all items, each accepted or not by itself."""
    users = name == "u"
    at, rows, own = work.at, work.rows.ordinal, "user" if users else "item"
    side, other = (rows.users, "v") if users else (rows.items, "u")
    scales = at.scales if users else at.scales[::-1]
    role, taken_role = VECTORS[name]
    reach = getattr(at, f"{own}_reach")
    belief = at.user_belief if users else at.item_belief
    near = Near(at=getattr(at, name), reach=reach)
    drawn = draw_side(side, a, getattr(at, other), scales, belief, work.key.word(role), work.pool, near)
    taken = _accept(work, name, drawn, taken_role)
    if work.key.burning:
        longer = reach * np.exp((taken - WANTED) * (work.key.sweep + 1) ** -0.5)
        work.at = replace(work.at, **{f"{own}_reach": np.minimum(longer, 1.0)})
    vectors = (getattr(work.at, name), getattr(at, other))
    drawn = draw_scales(side, a, vectors, scales[1], work.key.word(role + 4), work.pool)
    _accept(work, f"{own}_scale", drawn, taken_role + 2)


def _accept(work: Sweeping, name: str, drawn: Floats, role: int) -> Array:
    """Take the drawn rows of a side by the ratio of Π S over their cells; which were taken."""
    cells, users = work.cells, name.startswith("u")
    logs = work.evaluate(replace(work.at, **{name: drawn}))
    gain: Floats = cells.weight * (cells.by_user if users else cells.by_item)(logs - work.logs)
    taken = np.log(uniforms(row_words(work.key.word(role), np.arange(len(drawn))))) < gain
    before = getattr(work.at, name)
    kept = np.where(taken[:, None] if drawn.ndim > 1 else taken, drawn, before)
    work.at = replace(work.at, **{name: kept})
    np.copyto(work.logs, logs, where=np.repeat(taken, np.diff(cells.ptr)) if users else taken[cells.item])
    return taken


def draw_beliefs(at: JointState, key: SweepKey) -> JointState:
    """σ² and then μ of both sides, given the vectors."""
    found: dict[str, Any] = {}
    for k, (side, vectors) in enumerate((("user", at.u), ("item", at.v))):
        variance = draw_variance(vectors, getattr(at, f"{side}_mean"), key.word(8 + k))
        precision = 1 + len(vectors) / variance  # μ ~ N(0, 1)
        z = normals(row_words(key.word(MEANS), np.arange(2 * variance.size).reshape(2, -1)[k]))
        found[f"{side}_variance"] = variance
        found[f"{side}_mean"] = vectors.sum(axis=0) / variance / precision + z / np.sqrt(precision)
    return replace(at, **found)


# -- the logistic part ---------------------------------------------------------------------------------------


def draw_logistic(work: Sweeping, at: JointState) -> JointState:
    """Levels and ω of all cells, (e, λ) of users, (f, ψ) of items, then their priors."""
    key, (s2, t2) = work.key, at.spread
    cells = augment(work.cells, at.ratings, at.observing, (key.word(LEVELS), key.word(OMEGA)))
    e, by_user = draw_blocks(cells, at.f, at.by_item, Prior(at.level_mean, float(s2)), key.word(USER_EFFECTS))
    none = np.zeros_like(at.level_mean)
    turned = cells.turned(len(at.f))
    f, by_item = draw_blocks(turned, e, by_user, Prior(none, float(t2)), key.word(ITEM_EFFECTS))
    return draw_spreads(replace(at, e=e, f=f, by_user=by_user, by_item=by_item), work.rows.prior, key)


def draw_spreads(at: JointState, prior: float, key: SweepKey) -> JointState:
    """m; a shift between ψ and (λ, m), which the cells cannot see; s² and t²."""
    (U, L), I = at.by_user.shape, len(at.by_item)
    s2, t2 = at.spread

    def normal(precision: float, total: Floats, role: int) -> Floats:
        return total / precision + normals(row_words(key.word(role), np.arange(L))) / np.sqrt(precision)

    m = normal(1 / VAGUE + U / s2, prior / VAGUE + at.by_user.sum(axis=0) / s2, M)
    # ψ - δ, λ + δ and m + δ have the same likelihood for every δ
    shift = normal(1 / VAGUE + I / t2, (prior - m) / VAGUE + at.by_item.sum(axis=0) / t2, SHIFT)
    m, by_user, by_item = m + shift, at.by_user + shift, at.by_item - shift
    squares = np.array([np.sum((by_user - m) ** 2), np.sum(by_item**2)])
    shape = SPREAD[0] + L * np.array([U, I]) / 2
    spread = (SPREAD[1] + squares / 2) / gammas(row_words(key.word(SPREADS), np.arange(2)), shape)
    return replace(at, level_mean=m, by_user=by_user, by_item=by_item, spread=spread)
