"""Moves of the joint model as a whole, with latent scores and levels of unobserved cells summed out.

Vectors and effects are drawn given each other, which leaves directions in which they move slowly together: thresholds
with the means of levels, all scores with all thresholds, the size of both, and the size of all effects with its prior.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from openloop.core.feedback import Floats
from openloop.kernels.joint_gradients import cell_gradients, missing_gradient
from openloop.kernels.streams import normals, row_words, uniforms
from openloop.learners.solvers.joint_state import SPREAD, VAGUE, JointState, Sweeping
from openloop.learners.solvers.ordinal_gibbs import growth, stretch_prior, stretched
from openloop.learners.solvers.roles import Role
from openloop.learners.solvers.thresholds import centres

# Of proposals to be accepted: with a gradient (Roberts & Rosenthal 1998), and of a single number (Gelman, Roberts &
# Gilks 1996).
WANTED = (0.574, 0.44, 0.44, 0.44)
EVERY = 20  # sweeps of burn-in: then the covariance of proposals is computed anew
SOME = 50_000  # cells from which it is computed
LEVELS, SHIFT, STRETCH, SPREADING = range(4)  # the moves, by which their steps are numbered
ROLES = (Role.MOVE_LEVELS, Role.MOVE_SHIFT, Role.MOVE_STRETCH, Role.MOVE_SPREADS)
LAST = np.array([2**20])  # the number of a role that decides


def move_whole(work: Sweeping) -> None:
    """(b, m); b, u and v stretched; and in turn b with u shifted, λ, b with v shifted, and ψ."""
    key, turn = work.key, work.key.sweep % 4
    if key.burning and key.sweep % EVERY == 1:
        work.at = replace(work.at, level_covariance=np.linalg.inv(information(work)))
    move_levels(work)
    k = float(np.exp(_step(work, STRETCH)))
    longer: Any = stretched(work.at, k)
    _metropolis(work, (longer, stretch_prior(work.at, k)), STRETCH)
    if turn % 2:
        _metropolis(work, shifted(work.at, _step(work, SHIFT), "u" if turn == 1 else "v"), SHIFT)
    else:
        k = float(np.exp(_step(work, SPREADING)))
        _metropolis(work, spread_out(work.at, k, "by_user" if turn else "by_item"), SPREADING)


def _step(work: Sweeping, which: int) -> float:
    return float(work.at.move_step[which] * normals(row_words(work.key.word(ROLES[which]), np.arange(1)))[0])


def _metropolis(work: Sweeping, given: tuple[JointState, float], which: int) -> None:
    """Take a proposed state or not, given with the log of the priors' ratio and of the Jacobian."""
    proposed, prior = given
    logs = work.missing(proposed)
    gain = prior + work.observed(proposed) - work.observed(work.at)
    _decide(work, proposed, logs, gain + work.cells.weight * float(np.sum(logs - work.logs)), which)


def _decide(work: Sweeping, proposed: JointState, logs: Floats, gain: float, which: int) -> None:
    chance = float(np.exp(min(gain, 0.0)))
    if uniforms(row_words(work.key.word(ROLES[which]), LAST))[0] < chance:
        work.at, work.logs = proposed, logs
    _adapt(work, chance, which)


def _adapt(work: Sweeping, chance: float, which: int) -> None:
    if work.key.burning:
        step = work.at.move_step.copy()
        step[which] *= growth(chance - WANTED[which], work.key.sweep)
        work.at = replace(work.at, move_step=step)


# -- thresholds and means of levels --------------------------------------------------------------------------
# A level that is narrower and seen more often has as many ratings, so m_l and log(b_l - b_{l-1}) have straight ridges.
# The coordinates are θ = (b_1, log of the spacings, m), with λ_{i,l} - m_l as they are. With C a covariance like that
# of θ given the rest and τ a step, the proposal is N(θ + τ²/2 C∇, τ²C), ∇ the gradient of the log density (Roberts &
# Tweedie 1996).


@dataclass(frozen=True, slots=True, eq=False)
class _Slope:
    """log S of the cells, and the log density and its gradient in θ."""

    logs: Floats
    log: float
    gradient: Floats


def move_levels(work: Sweeping) -> None:
    """One step of (b, m), the first of a sweep."""
    at, L = work.at, len(work.at.level_mean)
    here = _slope(work, at, work.logs, work.gradient)
    tau, C = at.move_step[LEVELS], at.level_covariance
    z = normals(row_words(work.key.word(Role.MOVE_LEVELS), np.arange(2 * L - 1)))
    step = tau**2 / 2 * (C @ here.gradient) + tau * (np.linalg.cholesky(C) @ z)
    dm = step[L - 1 :]
    b = thresholds(coordinates(at.b) + step[: L - 1])
    moved = replace(at, b=b, by_user=at.by_user + dm, level_mean=at.level_mean + dm)
    there = _slope(work, moved, *missing_gradient(work.cells, moved.ratings, moved.observing, work.pool))
    way, back = step - tau**2 / 2 * (C @ here.gradient), -step - tau**2 / 2 * (C @ there.gradient)
    both = (way @ np.linalg.solve(C, way) - back @ np.linalg.solve(C, back)) / (2 * tau**2)
    _decide(work, moved, there.logs, there.log - here.log + float(both), LEVELS)


def coordinates(b: Floats) -> Floats:
    """b_1 and the logs of the spacings."""
    return np.append(b[:1], np.log(np.diff(b)))


def thresholds(x: Floats) -> Floats:
    """The thresholds of their coordinates."""
    return np.cumsum(np.append(x[:1], np.exp(x[1:])))


def jacobian(b: Floats) -> Floats:
    """∂b/∂(b_1, log spacings), (L - 1, L - 1)."""
    return np.tril(np.ones((len(b), len(b)))) * np.append(1.0, np.diff(b))


def _slope(work: Sweeping, at: JointState, logs: Floats, gradient: Floats) -> _Slope:
    seen = cell_gradients(at.ratings, at.observing, *work.rows.places).sum(axis=0)
    away, off = at.off, at.level_mean - work.rows.prior
    slope = work.cells.weight * gradient + seen - np.append(away, off / VAGUE)
    prior = np.sum(np.log(np.diff(at.b))) - np.sum(away**2) / 2 - np.sum(off**2) / VAGUE / 2
    log = work.cells.weight * float(logs.sum()) + work.observed(at) + float(prior)
    of_thresholds = jacobian(at.b).T @ slope[: len(at.b)]
    of_thresholds[1:] += 1  # of the sum of log spacings, the Jacobian
    return _Slope(logs, log, np.append(of_thresholds, slope[len(at.b) :]))


def information(work: Sweeping) -> Floats:
    """Σ ggᵀ over cells, g a cell's gradient in θ, with the priors' precision: (2L - 1, 2L - 1)."""
    at, cells = work.at, work.cells
    every = max(1, len(cells.item) // SOME)
    user, item, code = cells.user[::every], cells.item[::every], cells.code[::every]
    g = cell_gradients(at.ratings, at.observing, user, item, code)
    weight = every * np.where(code < 0, cells.weight, 1.0)
    n = len(at.b)
    precision = np.append(np.ones(n), np.full(len(at.level_mean), 1 / VAGUE))
    J = np.eye(len(precision))
    J[:n, :n] = jacobian(at.b)
    return J.T @ ((g * weight[:, None]).T @ g + np.diag(precision)) @ J


# -- a shift -------------------------------------------------------------------------------------------------


def shifted(at: JointState, c: float, name: str) -> tuple[JointState, float]:
    """b + c, and u + ch and μ_U + ch with h such that hᵀv_j is near 1 for all j; and the log of the priors' ratio."""
    side, others = ("user", at.v) if name == "u" else ("item", at.u)
    h = np.linalg.lstsq(others, np.ones(len(others)))[0]
    mean = getattr(at, f"{side}_mean")
    moved = {"b": at.b + c, name: getattr(at, name) + c * h, f"{side}_mean": mean + c * h}
    centre = centres(len(at.b))
    prior = np.sum((at.b - centre) ** 2 - (at.b + c - centre) ** 2) + np.sum(mean**2 - (mean + c * h) ** 2)
    return replace(at, **moved), float(prior) / 2


# -- the size of effects -------------------------------------------------------------------------------------
# (λ - m, s) → k(λ - m, s), or (ψ, t) → k(ψ, t): the prior of the effects changes by their Jacobian alone. That of s²
# has the density s⁻⁸ exp(-.5/s²) up to a factor, and s² → k²s² the Jacobian k².


def spread_out(at: JointState, k: float, name: str) -> tuple[JointState, float]:
    """Effects k times as far from their means, with their spread; and the log of the priors' ratio and the Jacobian."""
    which = 0 if name == "by_user" else 1
    centre = at.level_mean if name == "by_user" else 0.0
    spread = at.spread.copy()
    spread[which] *= k**2
    moved = {name: centre + k * (getattr(at, name) - centre), "spread": spread}
    shape, rate = SPREAD
    prior = -2 * shape * np.log(k) - rate * (1 / spread[which] - 1 / at.spread[which])
    return replace(at, **moved), float(prior)
