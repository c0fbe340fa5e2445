"""A shift of latent scores and thresholds together, drawn with the vectors of one side summed out.

Thresholds hardly move while vectors are fixed, nor vectors while a is. But a + c and b + c have the same levels, and
with u summed out the likelihood of (μ, c) is normal: a_i + c ~ N(V_i μ, K_i) with K_i = V_i diag σ² V_iᵀ + D_i and
D_i = diag γ_i γ_j. With S = diag 1/σ², t_i = V_iᵀD_i⁻¹1, h_i = V_iᵀD_i⁻¹a_i and Λ_i = S + V_iᵀD_i⁻¹V_i (Woodbury)

    VᵀK⁻¹V = S - SΛ⁻¹S,  VᵀK⁻¹1 = SΛ⁻¹t,  1ᵀK⁻¹1 = Σ_j 1/(γ_i γ_j) - tᵀΛ⁻¹t, and with a in place of 1 likewise.

(μ, c) is one draw, to be followed by u given them (a generalised Gibbs step of Liu & Sabatti 2000).
"""

from __future__ import annotations

from concurrent.futures import Executor
from itertools import pairwise
from typing import Any

import numpy as np

from openloop.kernels.cholesky import dot, factor
from openloop.kernels.compiling import inlined, njit
from openloop.kernels.ordinal import Floats, Ints, Pointers, SideRows
from openloop.kernels.parts import sum_of_parts
from openloop.kernels.streams import normals, row_words


def draw_shift(
    side: SideRows, a: Floats, partners: Floats, scales: tuple[Floats, Floats], variance: Floats, off: Floats,
    word: np.uint64, pool: Executor,
) -> tuple[Floats, float]:  # fmt: skip
    """μ of a side, (d,), and c, by which a and b are to be shifted; its vectors must be drawn right after.

    `off` are the thresholds less their prior means, (L - 1,); μ ~ N(0, 1), b ~ N(prior means, 1).
    """
    A, g = shift_system(side, a, partners, scales, variance, pool)
    d = len(variance)
    A[range(d), range(d)] += 1
    A[d, d] += len(off)
    g[d] -= np.sum(off)
    z = normals(row_words(word, np.arange(d + 1)))
    found: Floats = np.linalg.solve(A, g) + np.linalg.solve(np.linalg.cholesky(A).T, z)
    return found[:d], float(found[d])


def shift_system(
    side: SideRows, a: Floats, partners: Floats, scales: tuple[Floats, Floats], variance: Floats, pool: Executor
) -> tuple[Floats, Floats]:
    """Precision (d + 1, d + 1) and linear term (d + 1,) of (μ, c), without their priors."""
    d, rows = len(variance), (side.ptr, side.partner, side.row)
    whole = sum_of_parts(
        lambda f, l, sums: _shift_system(f, l, *rows, a, partners, *scales, variance, sums),
        side.parts, (d + 2, d + 1), pool,
    )  # fmt: skip
    lower = whole[:-1]
    return lower + np.tril(lower, -1).T, whole[-1]


@njit(cache=True, nogil=True)
def _shift_system(
    first: int, last: int, ptr: Pointers, partner: Ints, row: Pointers, a: Floats, partners: Floats,
    own: Floats, other: Floats, variance: Floats, out: Floats,
) -> None:  # fmt: skip
    d = variance.size
    A, Z, t, h = np.empty((d, d)), np.empty((d, d)), np.empty(d), np.empty(d)
    for i in range(first, last):
        if ptr[i] == ptr[i + 1]:
            continue
        A[:], t[:], h[:], ones, sums = 0.0, 0.0, 0.0, 0.0, 0.0
        for j in range(d):
            A[j, j] = 1 / variance[j]
        for r in range(ptr[i], ptr[i + 1]):
            y, weight = a[row[r]], 1 / (own[i] * other[partner[r]])
            ones += weight
            sums += weight * y
            _add_row(partners[partner[r]], y, weight, A, t, h)
        _add_system(factor(A), t, h, variance, Z, out)
        out[d, d] += ones - dot(t, t)
        out[d + 1, d] -= sums - dot(t, h)


@inlined
def _add_row(x: Floats, y: Any, weight: float, A: Floats, t: Floats, h: Floats) -> None:
    """A row's part of Λ, its lower triangle, and of t and h."""
    for j in range(t.size):
        target, scaled = A[j], weight * x[j]
        t[j] += scaled
        h[j] += scaled * y
        for k in range(j + 1):
            target[k] += scaled * x[k]


@inlined
def _add_system(L: Floats, t: Floats, h: Floats, variance: Floats, Z: Floats, out: Floats) -> None:
    """L⁻¹t and L⁻¹h in place, and Z = (L⁻¹S)ᵀ. Then SΛ⁻¹S = ZZᵀ and SΛ⁻¹t = Z(L⁻¹t); the lower triangle."""
    d = t.size
    for j in range(d):
        t[j] = (t[j] - dot(L[j, :j], t[:j])) / L[j, j]
        h[j] = (h[j] - dot(L[j, :j], h[:j])) / L[j, j]
        Z[j, j] = 1 / (variance[j] * L[j, j])
        for k in range(j + 1, d):
            Z[j, k] = -dot(L[k, j:k], Z[j, j:k]) / L[k, k]
    for j in range(d):
        out[j, j] += 1 / variance[j]
        for k in range(j + 1):
            out[j, k] -= dot(Z[j, j:], Z[k, j:])
        out[d, j] -= dot(Z[j, j:], t[j:])
        out[d + 1, j] += dot(Z[j, j:], h[j:])


def shift_system_numpy(
    side: SideRows, a: Floats, partners: Floats, scales: tuple[Floats, Floats], variance: Floats
) -> tuple[Floats, Floats]:
    """One user after the other, by K itself: (V, -1)ᵀK⁻¹(V, -1) and (V, -1)ᵀK⁻¹a."""
    d = len(variance)
    precision, linear = np.zeros((d + 1, d + 1)), np.zeros(d + 1)
    for i, (first, last) in enumerate(pairwise(side.ptr)):
        V, targets = partners[side.partner[first:last]], a[side.row[first:last]]
        K = V @ np.diag(variance) @ V.T + np.diag(scales[0][i] * scales[1][side.partner[first:last]])
        X = np.column_stack([V, -np.ones(len(V))])
        precision += X.T @ np.linalg.solve(K, X)
        linear += X.T @ np.linalg.solve(K, targets)
    return precision, linear
