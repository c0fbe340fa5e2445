"""Sweeps of the joint model: what rows propose, accepted by unobserved cells, and the logistic part.

The ratings of unobserved cells are summed out wherever the rating part is drawn. What the observed rows propose for u,
γ_u, v and γ_v is reversible with respect to their own posterior, so it is accepted with the ratio of Π S over the cells
concerned (S of `kernels.joint_cells`). Levels of unobserved cells are drawn for the logistic part and then discarded.
"""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import replace
from typing import Any

import numpy as np

from openloop.core.feedback import Array, Floats
from openloop.kernels.joint_cells import GridCells
from openloop.kernels.logistic_blocks import Augmented, Prior, augment, draw_blocks
from openloop.kernels.ordinal import Near, draw_latent, draw_scales, draw_side, row_moments
from openloop.kernels.streams import gammas, normals, row_words, uniforms
from openloop.learners.chains import SweepKey
from openloop.learners.solvers.joint_moves import move_whole
from openloop.learners.solvers.joint_state import SPREAD, VAGUE, ChosenCells, JointRows, JointState, Sweeping
from openloop.learners.solvers.ordinal_gibbs import growth
from openloop.learners.solvers.roles import Role
from openloop.learners.solvers.thresholds import SCALE, draw_variance

# Of the proposals for vectors, to be accepted: a vector has few numbers, and the best share is 0.44 of a single one and
# falls to 0.23 of many (Gelman, Roberts & Gilks 1996).
WANTED = 0.4


def sweep(rows: JointRows, at: JointState, key: SweepKey, pool: Executor) -> JointState:
    """The whole; latent scores of the rows; u, γ_u, v, γ_v; their priors; the logistic part and its priors."""
    work = Sweeping.of(rows, at, key, pool)
    move_whole(work)
    moments = row_moments(rows.ordinal.users, work.at.u, work.at.v, work.at.scales, pool)
    a = draw_latent(rows.ordinal.code, work.at.b, moments, key.word(Role.JOINT_LATENT), pool)
    parts = rows.parts(key, pool)
    move_side(work, a, "u", parts[0])
    move_side(work, a, "v", parts[1])
    work.at = draw_beliefs(work.at, key)
    draw_effects(work, *parts)
    return draw_spreads(work.at, rows.prior, key)


# -- vectors and scales --------------------------------------------------------------------------------------
# With N(c, Λ⁻¹) what the rows say about u_i, the proposal c + ρ(u_i - c) + √(1 - ρ²)Λ^{-1/2}z is reversible with
# respect to it for every ρ. A reach √(1 - ρ²) of 1 forgets u_i; burn-in shortens it where draws are rarely accepted.


def move_side(work: Sweeping, a: Floats, name: str, part: ChosenCells) -> None:
    """u then γ_u of the chosen users, or v then γ_v of the chosen items, each accepted or not by itself."""
    work.turn_to(part.cells)
    users = name == "u"
    at, rows, own = work.at, work.rows.ordinal, "user" if users else "item"
    side, other = (rows.users, "v") if users else (rows.items, "u")
    scales = at.scales if users else (at.item_scale, at.user_scale)
    reach = getattr(at, f"{own}_reach")
    belief = at.user_belief if users else at.item_belief
    near = Near(at=getattr(at, name), reach=reach)
    word = work.key.word(Role.USER_VECTORS if users else Role.ITEM_VECTORS)
    drawn = draw_side(side, a, getattr(at, other), scales, belief, word, work.pool, near)
    taken = _accept(work, name, drawn, part.chosen, Role.USER_VECTORS_TAKEN if users else Role.ITEM_VECTORS_TAKEN)
    if work.key.burning:
        longer = reach * growth(part.chosen * (taken - WANTED), work.key.sweep)
        work.at = replace(work.at, **{f"{own}_reach": np.minimum(longer, 1.0)})
    vectors = (getattr(work.at, name), getattr(at, other))
    word = work.key.word(Role.JOINT_USER_SCALES if users else Role.JOINT_ITEM_SCALES)
    drawn = draw_scales(side, a, vectors, scales[1], SCALE, word, work.pool)
    role = Role.USER_SCALES_TAKEN if users else Role.ITEM_SCALES_TAKEN
    _accept(work, f"{own}_scale", drawn, part.chosen, role)


def _accept(work: Sweeping, name: str, drawn: Floats, chosen: Array, role: Role) -> Array:
    """Take the drawn rows of a side, of those chosen, by the ratio of Π S over their cells; which were taken."""
    cells, users = work.cells, name.startswith("u")
    logs = work.missing(replace(work.at, **{name: drawn}))
    gain: Floats = (cells.by_user if users else cells.by_item)(logs - work.logs)
    taken = chosen & (np.log(uniforms(row_words(work.key.word(role), np.arange(len(drawn))))) < gain)
    before = getattr(work.at, name)
    kept = np.where(taken[:, None] if drawn.ndim > 1 else taken, drawn, before)
    work.at = replace(work.at, **{name: kept})
    np.copyto(work.logs, logs, where=np.repeat(taken, np.diff(cells.ptr)) if users else taken[cells.item])
    return taken


def draw_beliefs(at: JointState, key: SweepKey) -> JointState:
    """σ² and then μ of both sides, given the vectors."""
    found: dict[str, Any] = {}
    sides = (("user", at.u, Role.JOINT_USER_VARIANCE), ("item", at.v, Role.JOINT_ITEM_VARIANCE))
    for k, (side, vectors, role) in enumerate(sides):
        variance = draw_variance(vectors, getattr(at, f"{side}_mean"), key.word(role))
        precision = 1 + len(vectors) / variance  # μ ~ N(0, 1)
        z = normals(row_words(key.word(Role.MEANS), np.arange(2 * variance.size).reshape(2, -1)[k]))
        found[f"{side}_variance"] = variance
        found[f"{side}_mean"] = vectors.sum(axis=0) / variance / precision + z / np.sqrt(precision)
    return replace(at, **found)


# -- the logistic part ---------------------------------------------------------------------------------------


def draw_effects(work: Sweeping, users: ChosenCells, items: ChosenCells) -> None:
    """Levels and ω of cells, (e, λ) of the chosen users, and (f, ψ) of the chosen items, by the same ω if cells are."""
    at, (s2, t2) = work.at, work.at.spread
    cells = _augmented(work, users.cells, Role.LEVELS, Role.OMEGA)
    drawn = draw_blocks(
        cells, at.f, at.by_item, Prior(at.level_mean, float(s2)), work.key.word(Role.USER_EFFECTS), work.pool
    )
    e, by_user = (np.where(users.chosen[:, None], *pair) for pair in zip(drawn, (at.e, at.by_user), strict=True))
    work.at = at = replace(at, e=e, by_user=by_user)
    if items.cells is not users.cells:
        cells = _augmented(work, items.cells, Role.LEVELS_OF_ITEMS, Role.OMEGA_OF_ITEMS)
    none = Prior(np.zeros_like(at.level_mean), float(t2))
    drawn = draw_blocks(cells.turned(len(at.f)), at.e, at.by_user, none, work.key.word(Role.ITEM_EFFECTS), work.pool)
    f, by_item = (np.where(items.chosen[:, None], *pair) for pair in zip(drawn, (at.f, at.by_item), strict=True))
    work.at = replace(at, f=f, by_item=by_item)


def _augmented(work: Sweeping, cells: GridCells, levels: Role, omega: Role) -> Augmented:
    words = (work.key.word(levels), work.key.word(omega))
    return augment(cells, work.at.ratings, work.at.observing, words, work.pool)


def draw_spreads(at: JointState, prior: float, key: SweepKey) -> JointState:
    """m; a shift between ψ and (λ, m), which the cells cannot see; s² and t²."""
    (U, L), I = at.by_user.shape, len(at.by_item)
    s2, t2 = at.spread

    def normal(precision: float, total: Floats, role: Role) -> Floats:
        return total / precision + normals(row_words(key.word(role), np.arange(L))) / np.sqrt(precision)

    m = normal(1 / VAGUE + U / s2, prior / VAGUE + at.by_user.sum(axis=0) / s2, Role.LEVEL_MEANS)
    # ψ - δ, λ + δ and m + δ have the same likelihood for every δ
    shift = normal(1 / VAGUE + I / t2, (prior - m) / VAGUE + at.by_item.sum(axis=0) / t2, Role.EFFECT_SHIFT)
    m, by_user, by_item = m + shift, at.by_user + shift, at.by_item - shift
    squares = np.array([np.sum((by_user - m) ** 2), np.sum(by_item**2)])
    shape = SPREAD[0] + L * np.array([U, I]) / 2
    spread = (SPREAD[1] + squares / 2) / gammas(row_words(key.word(Role.SPREADS), np.arange(2)), shape)
    return replace(at, level_mean=m, by_user=by_user, by_item=by_item, spread=spread)
