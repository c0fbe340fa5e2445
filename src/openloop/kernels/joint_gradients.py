"""How the likelihood of cells of a joint model rises with its thresholds b and the means m of levels.

In the letters of `joint_cells`, with s = 1/√(γ_i γ_j), the chance S of an unobserved cell has

    ∂log S/∂b_l = φ(c_l) s (q_l - q_{l+1})/S,  ∂log S/∂m_l = -P(l) q_l p_l/S,

m_l being added to all λ_{i,l}. The log of that of an observed one, P(r)p_r, rises by φ(c_r)s/P(r) with b_r, falls by
φ(c_{r-1})s/P(r) with b_{r-1}, and rises by 1 - p_r with m_r. Kernels know nothing about models.
"""

from __future__ import annotations

import math
from concurrent.futures import Executor

import numpy as np

from openloop.kernels.cholesky import dot
from openloop.kernels.compiling import SUMMING, inlined, njit
from openloop.kernels.joint_cells import (
    EDGE,
    STEPS,
    TABLE,
    Array,
    Codes,
    Floats,
    GridCells,
    Ints,
    Observing,
    Pointers,
    Ratings,
    between,
    fast_cdf,
    observed_chances,
    plain_odds,
    plain_ratings,
    standardised,
)
from openloop.kernels.parts import in_parts

LEAST = 1e-12  # a chance, by which gradients are divided


def missing_gradient(cells: GridCells, ratings: Ratings, observing: Observing, pool: Executor) -> tuple[Floats, Floats]:
    """log S of each unobserved cell, 0 of the others, and the gradient of their sum in (b, m), (2L - 1,)."""
    logs = np.empty(len(cells.item))
    given = (*plain_ratings(ratings), *plain_odds(observing))
    by_user = np.zeros((len(cells.ptr) - 1, 2 * observing.by_user.shape[1] - 1))  # summed in one order

    def work(first: int, last: int) -> None:
        _missing_slopes(first, last, cells.ptr, cells.item, cells.code, *given, logs, by_user)
        mine = logs[cells.ptr[first] : cells.ptr[last]]
        np.log(mine, out=mine)

    in_parts(cells.ptr, work, pool)
    return logs, by_user.sum(axis=0)


@njit(nogil=True, cache=True, fastmath=SUMMING)
def _missing_slopes(
    first: int, last: int, ptr: Pointers, item: Ints, code: Codes, u: Floats, v: Floats, a: Floats, b: Floats,
    cuts: Floats, e: Floats, f: Floats, user_odds: Floats, item_odds: Floats, out: Floats, gradient: Floats,
) -> None:  # fmt: skip
    L = cuts.size + 1
    slope, by_mean, missing = np.empty(L - 1), np.empty(L), np.empty(L)
    for i in range(first, last):
        for c in range(ptr[i], ptr[i + 1]):
            if code[c] >= 0:
                out[c] = 1.0
                continue
            j = item[c]
            mean, scale, common = dot(u[i], v[j]), a[i] * b[j], math.exp(dot(e[i], f[j]))
            below, total = 0.0, 0.0
            for l in range(L):
                upto = 1.0
                if l < L - 1:
                    x = (cuts[l] - mean) * scale
                    upto, slope[l] = fast_cdf(x), fast_density(x) * scale
                q = 1 / (1 + common * user_odds[i, l] * item_odds[j, l])
                total += (upto - below) * q
                by_mean[l], missing[l], below = (upto - below) * q * (1 - q), q, upto
            out[c] = total
            _add_slopes(slope, by_mean, missing, total, gradient[i])


@inlined
def _add_slopes(slope: Floats, by_mean: Floats, missing: Floats, total: float, gradient: Floats) -> None:
    """∂log S/∂(b, m) of a cell, from φ(c_l)s, P(l) q_l p_l, q_l and S."""
    L = missing.size
    for l in range(L):
        gradient[L - 1 + l] -= by_mean[l] / total
        if l < L - 1:
            gradient[l] += slope[l] * (missing[l] - missing[l + 1]) / total


@inlined
def fast_density(x: float) -> float:
    """φ(x), to 1e-9: the derivative of what `fast_cdf` sums."""
    x = min(max(x, -EDGE), EDGE)
    k = int(x * STEPS + EDGE * STEPS + 0.5)
    z = k / STEPS - EDGE
    d = x - z
    return TABLE[k, 1] * (1 + d * (-z + d * ((z * z - 1) / 2 + d * (z * (3 - z * z) / 6))))


def cell_gradients(ratings: Ratings, observing: Observing, user: Array, item: Array, code: Array) -> Floats:
    """The gradient of each cell's log-likelihood in (b, m), observed (code ≥ 0) or not, (n, 2L - 1)."""
    L, seen = len(ratings.thresholds) + 1, (code >= 0)[:, None]
    c, scale = standardised(ratings, user, item)
    P, p = between(c), observed_chances(observing, user, item)  # (n, L)
    own = np.eye(L)[np.maximum(code, 0)]
    w = np.where(seen, own, 1 - p)  # the likelihood is Σ_l P(l)w_l
    total = np.maximum(np.sum(P * w, axis=1, keepdims=True), LEAST)
    by_threshold = np.exp(-(c**2) / 2) / math.sqrt(2 * math.pi) * scale * (w[:, :-1] - w[:, 1:]) / total
    by_mean = np.where(seen, own * (1 - p), -P * (1 - p) * p / total)
    return np.concatenate([by_threshold, by_mean], axis=1)
