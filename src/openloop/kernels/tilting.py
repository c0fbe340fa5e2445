"""The largest weighted ratio of each user when every propensity may be off: averaged over users.

With δ_i, n_i ≥ 0, weights a_i + b_i λ_i and λ_i ∈ [1/Γ, Γ] free per row, user u has

    θ_u(Γ) = max_λ Σ (a_i + b_i λ_i) δ_i / Σ (a_i + b_i λ_i) n_i,

a linear-fractional program, so its maximum is at a vertex: λ_i = Γ where δ_i > θ_u n_i, 1/Γ elsewhere.

Kernels know nothing about metrics: what δ and n are is the caller's matter.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from openloop.kernels.compiling import njit

Floats = npt.NDArray[np.float64]
Array = npt.NDArray[Any]


class TiltedRows(NamedTuple):
    """Rows sorted by user: δ, n, and the part of each weight that stays (a) and that moves (b)."""

    delta: Floats
    norm: Floats
    fixed: Floats
    moving: Floats


def highest_means(rows: TiltedRows, start: Array, gammas: Floats, most: float = np.inf) -> Floats:
    """The mean over users of min(θ_u(Γ), most), for each Γ; user u's rows are start[u] … start[u+1] - 1, Σwn > 0."""
    totals = np.zeros(len(gammas))
    add_highest(*rows, start.astype(np.int64), np.asarray(gammas, np.float64), most, totals)
    return totals / (len(start) - 1)


@njit(cache=True, nogil=True)
def add_highest(
    delta: Floats,
    norm: Floats,
    fixed: Floats,
    moving: Floats,
    start: Array,
    gammas: Floats,
    most: float,
    totals: Floats,
) -> None:
    """Dinkelbach's iteration from below, θ ← Σw(θ)δ/Σw(θ)n: it rises from vertex to vertex, until none is higher."""
    for u in range(start.size - 1):
        top, bottom = 0.0, 0.0
        for i in range(start[u], start[u + 1]):
            top += (fixed[i] + moving[i]) * delta[i]
            bottom += (fixed[i] + moving[i]) * norm[i]
        plain = top / bottom
        theta = plain
        for c in range(gammas.size):
            gamma = gammas[c]
            if c > 0 and gamma < gammas[c - 1]:
                theta = plain  # what a larger Γ reached may be out of this one's reach
            while True:
                top, bottom = 0.0, 0.0
                for i in range(start[u], start[u + 1]):
                    factor = gamma if delta[i] > theta * norm[i] else 1.0 / gamma
                    w = fixed[i] + moving[i] * factor
                    top += w * delta[i]
                    bottom += w * norm[i]
                value = top / bottom
                if not value > theta:
                    break
                theta = value
            totals[c] += min(theta, most)


def highest_means_numpy(rows: TiltedRows, start: Array, gammas: Floats, most: float = np.inf) -> Floats:
    """The definition: the best of all thresholds on δ/n, in each user."""
    users = [TiltedRows(*(column[a:b] for column in rows)) for a, b in pairwise(start)]
    best = [[min(_best_threshold(own, gamma), most) for own in users] for gamma in gammas]
    return np.array(best, np.float64).mean(axis=1)


def _best_threshold(rows: TiltedRows, gamma: float) -> float:
    at = np.copysign(np.inf, rows.delta)
    np.divide(rows.delta, rows.norm, out=at, where=rows.norm > 0)
    delta, norm, fixed, moving = (column[np.argsort(at)] for column in rows)
    n = len(delta)
    # Line t of the triangle gives 1/Γ to the t lowest rows, Γ to the others.
    factor = np.where(np.tri(n + 1, n, -1, dtype=bool), 1 / gamma, gamma)  # (n + 1, n)
    weight = fixed + moving * factor
    return float(np.max(weight @ delta / (weight @ norm)))
