"""Moves of the joint model as a whole, by Metropolis steps with latent scores and unobserved levels summed out.

Vectors and effects are drawn given each other, which leaves three directions in which they move slowly together:
thresholds with the means of levels, all scores with all thresholds, and the size of both.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.special import ndtr

from openloop.core.feedback import Array, Floats
from openloop.kernels.joint_cells import observed_numpy
from openloop.kernels.ordinal import centres
from openloop.kernels.streams import normals, row_words, uniforms
from openloop.learners.solvers.joint_state import VAGUE, JointState, Sweeping
from openloop.learners.solvers.ordinal_gibbs import OTHERS, stretch_prior, stretched

WANTED = np.array([0.25, 0.44, 0.44])  # of proposals to be accepted, of many numbers and of one (Roberts & Rosenthal 2001)
EVERY = 20  # sweeps of burn-in: then the covariance of proposals is computed anew
SOME = 50_000  # cells from which it is computed
LEVELS, SHIFT, STRETCH = range(OTHERS + 10, OTHERS + 13)  # roles of random numbers


def move_whole(work: Sweeping) -> None:
    """(b, m); then b, u and μ_U, or b, v and μ_V in every second sweep, shifted; then b, u and v stretched."""
    if work.key.burning and work.key.sweep % EVERY == 1:
        work.at = replace(work.at, level_covariance=np.linalg.inv(information(work)))
    at = work.at
    z = normals(row_words(work.key.word(LEVELS), np.arange(2 * len(at.level_mean) - 1)))
    step = at.move_step[0] * (np.linalg.cholesky(at.level_covariance) @ z)
    _metropolis(work, 0, *_levels_moved(work, at, step), LEVELS)
    at = work.at
    c = at.move_step[1] * normals(row_words(work.key.word(SHIFT), np.arange(1)))[0]
    _metropolis(work, 1, *_shifted(at, float(c), "u" if work.key.sweep % 2 else "v"), SHIFT)
    at = work.at
    k = float(np.exp(at.move_step[2] * normals(row_words(work.key.word(STRETCH), np.arange(1)))[0]))
    _metropolis(work, 2, stretched(at, k), stretch_prior(at, k), STRETCH)  # pyright: ignore


def _metropolis(work: Sweeping, which: int, proposed: JointState, prior: float, role: int) -> None:
    """Take the proposed state or not; `prior` is the log of the priors' ratio, and of the Jacobian."""
    chance = 0.0
    if np.all(np.diff(proposed.b) > 0):
        logs = work.missing(proposed)
        gain = prior + work.observed(proposed) - work.observed(work.at)
        chance = float(np.exp(min(gain + work.cells.weight * float(np.sum(logs - work.logs)), 0.0)))
        if uniforms(row_words(work.key.word(role), np.array([2**20])))[0] < chance:
            work.at, work.logs = proposed, logs
    if work.key.burning:
        step = work.at.move_step.copy()
        step[which] *= np.exp((chance - WANTED[which]) * (work.key.sweep + 1) ** -0.5)
        work.at = replace(work.at, move_step=step)


# -- thresholds and means of levels --------------------------------------------------------------------------


def _levels_moved(work: Sweeping, at: JointState, step: Floats) -> tuple[JointState, float]:
    """b and m, with λ_{i,l} - m_l as they are."""
    db, dm = step[: len(at.b)], step[len(at.b) :]
    proposed = replace(at, b=at.b + db, by_user=at.by_user + dm, level_mean=at.level_mean + dm)
    return proposed, _log_prior(work, proposed) - _log_prior(work, at)


def _log_prior(work: Sweeping, at: JointState) -> float:
    away = np.sum((at.b - centres(len(at.b))) ** 2) + np.sum((at.level_mean - work.rows.prior) ** 2) / VAGUE
    return -float(away) / 2


def information(work: Sweeping) -> Floats:
    """Σ ggᵀ over cells, g the gradient of a cell's log-likelihood in (b, m), with the priors' precision: (2L - 1, 2L - 1)."""
    at, cells = work.at, work.cells
    every = max(1, len(cells.item) // SOME)
    user, item, code = cells.user[::every], cells.item[::every], cells.code[::every]
    g = cell_gradients(at, user, item, code)
    weight = every * np.where(code < 0, cells.weight, 1.0)
    precision = np.append(np.ones(len(at.b)), np.full(len(at.level_mean), 1 / VAGUE))
    return (g * weight[:, None]).T @ g + np.diag(precision)


def cell_gradients(at: JointState, user: Array, item: Array, code: Array) -> Floats:
    """∂/∂(b, m) of log P(r)p_r of observed cells and of log S of unobserved ones, (n, 2L - 1)."""
    L, seen = len(at.level_mean), code >= 0
    scale = 1 / np.sqrt(at.user_scale[user] * at.item_scale[item])[:, None]
    c = (at.b - np.sum(at.u[user] * at.v[item], axis=1)[:, None]) * scale  # (n, L - 1)
    P = np.diff(ndtr(c), axis=1, prepend=0, append=1)  # (n, L)
    p = observed_numpy(at.observing, user, item)
    own = np.eye(L)[np.where(seen, code, 0)]
    w = np.where(seen[:, None], own, 1 - p)  # log Σ_l P(l)w_l
    S = np.maximum(np.sum(P * w, axis=1, keepdims=True), 1e-12)
    by_threshold = np.exp(-(c**2) / 2) / np.sqrt(2 * np.pi) * scale * (w[:, :-1] - w[:, 1:]) / S
    by_mean = np.where(seen[:, None], own * (1 - p), -P * (1 - p) * p / S)
    return np.concatenate([by_threshold, by_mean], axis=1)


# -- a shift -------------------------------------------------------------------------------------------------


def _shifted(at: JointState, c: float, name: str) -> tuple[JointState, float]:
    """b + c, and u + ch and μ_U + ch with h such that hᵀv_j is near 1 for all j, so that few chances change much."""
    side, others = ("user", at.v) if name == "u" else ("item", at.u)
    h = np.linalg.lstsq(others, np.ones(len(others)))[0]
    mean = getattr(at, f"{side}_mean")
    moved = {"b": at.b + c, name: getattr(at, name) + c * h, f"{side}_mean": mean + c * h}
    centre = centres(len(at.b))
    prior = np.sum((at.b - centre) ** 2 - (at.b + c - centre) ** 2) + np.sum(mean**2 - (mean + c * h) ** 2)
    return replace(at, **moved), float(prior) / 2
