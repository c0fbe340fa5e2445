"""The largest weighted ratio of each user when every weight may be off by a factor: averaged over users.

With g_i = w_i δ_i, m_i = w_i a_i ≥ 0 and λ_i ∈ [1/Γ, Γ] free per row, user u has

    θ_u(Γ) = max_λ Σ λ_i g_i / Σ λ_i m_i,

a linear-fractional program, so its maximum is at a vertex: λ_i = Γ where g_i > θ_u m_i, 1/Γ elsewhere.

Kernels know nothing about metrics: what g and m are sums of is the caller's matter.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

Floats = npt.NDArray[np.float64]
Array = npt.NDArray[Any]


def highest_means(gain: Floats, mass: Floats, start: Array, gammas: Floats, most: float = np.inf) -> Floats:
    """The mean over users of min(θ_u(Γ), most), for each Γ; user u's rows are start[u] … start[u+1] - 1, Σm > 0."""
    totals = np.zeros(len(gammas))
    add_highest(gain, mass, start.astype(np.int64), 1.0 / np.square(gammas), most, totals)
    return totals / (len(start) - 1)


@njit(cache=True, nogil=True)
def add_highest(gain: Floats, mass: Floats, start: Array, smalls: Floats, most: float, totals: Floats) -> None:
    """Dinkelbach's iteration from below, θ ← Σλ(θ)g/Σλ(θ)m: it rises from vertex to vertex, and stands still at θ_u.

    Factors 1 and 1/Γ² (`smalls`) serve for Γ and 1/Γ, as only their quotient matters.
    """
    for u in range(start.size - 1):
        top, bottom = 0.0, 0.0
        for i in range(start[u], start[u + 1]):
            top += gain[i]
            bottom += mass[i]
        plain = top / bottom
        theta = plain
        for c in range(smalls.size):
            small = smalls[c]
            if c > 0 and small > smalls[c - 1]:
                theta = plain  # what a larger Γ reached may be out of this one's reach
            while True:
                top, bottom = 0.0, 0.0
                for i in range(start[u], start[u + 1]):
                    factor = 1.0 if gain[i] > theta * mass[i] else small
                    top += factor * gain[i]
                    bottom += factor * mass[i]
                value = top / bottom
                if not value > theta:
                    break
                theta = value
            totals[c] += min(theta, most)


def highest_means_numpy(gain: Floats, mass: Floats, start: Array, gammas: Floats, most: float = np.inf) -> Floats:
    """The definition: the best of all thresholds on g/m, in each user."""
    users = [slice(a, b) for a, b in pairwise(start)]
    best = [[min(_best_threshold(gain[u], mass[u], gamma), most) for u in users] for gamma in gammas]
    return np.array(best, np.float64).mean(axis=1)


def _best_threshold(gain: Floats, mass: Floats, gamma: float) -> float:
    at = np.copysign(np.inf, gain)
    np.divide(gain, mass, out=at, where=mass > 0)
    order = np.argsort(at)
    # Line t of the triangle gives 1/Γ to the t rows that stand lowest, Γ to the others.
    factor = np.where(np.tri(len(gain) + 1, len(gain), -1, dtype=bool), 1 / gamma, gamma)  # (n + 1, n)
    return float(np.max(factor @ gain[order] / (factor @ mass[order])))
