"""Draws of the ordinal factor model: latent scores, vectors and scales, each given all others.

A row (i, j) has level l = 0 … L - 1 when b_l < a_ij ≤ b_{l+1} (b_0 = -∞, b_L = ∞), with a_ij ~ N(u_iᵀv_j, γ_i γ_j) and
the priors u_i ~ N(μ, diag σ²), likewise v_j, and γ ~ InvGamma. So P(level l) = Φ((b_{l+1} - m)/s) - Φ((b_l - m)/s)
with m = u_iᵀv_j and s² = γ_i γ_j.

Nothing is written in place: each function returns a draw, which the caller may accept or reject. The draw of a user or
row depends only on the word and its number (`kernels.streams`), not on threads. Plain reference versions are below.
"""

from __future__ import annotations

import math
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from openloop.kernels.cholesky import dot
from openloop.kernels.compiling import fix, njit
from openloop.kernels.gaussian import draw_normal
from openloop.kernels.parts import Parts, each_part, owner_parts, row_parts, sum_of_parts
from openloop.kernels.streams import (
    gamma,
    normal,
    normal_cdf,
    row_word,
    truncated_normal,
)

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]
Pointers = npt.NDArray[np.int64]
Ints = npt.NDArray[np.int32]
Codes = npt.NDArray[np.int16]

LEAST = 1e-300  # a level's probability beyond 37 standard deviations, which would be 0


@dataclass(frozen=True, slots=True, eq=False)
class SideRows:
    """The rows of one side: those of i are ptr[i] : ptr[i + 1], each with its partner and its place in the log."""

    ptr: Pointers
    partner: Ints
    row: Pointers
    parts: Parts = field(init=False)  # of owners, for threads

    def __post_init__(self) -> None:
        fix(self, "ptr", "partner", "row")
        object.__setattr__(self, "parts", owner_parts(self.ptr))

    def __len__(self) -> int:
        return len(self.ptr) - 1

    @property
    def counts(self) -> Pointers:
        """How many rows each has."""
        return np.diff(self.ptr)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Belief:
    """What is known of a vector before its rows are seen: N(mean, diag variance), (d,) each."""

    mean: Floats
    variance: Floats


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Near:
    """Where vectors are, (N, d), and how far from there they may be drawn, (N,): 1 forgets where they are."""

    at: Floats
    reach: Floats


def two_sides(user: Array, item: Array, shape: tuple[int, int]) -> tuple[SideRows, SideRows]:
    """The sides of rows that are sorted by user."""
    order = np.argsort(item, kind="stable").astype(np.int64)
    ends = [np.append(0, np.cumsum(np.bincount(c, minlength=n))) for c, n in zip((user, item), shape, strict=True)]
    users = SideRows(ends[0].astype(np.int64), item.astype(np.int32), np.arange(len(user), dtype=np.int64))
    return users, SideRows(ends[1].astype(np.int64), user.astype(np.int32)[order], order)


# -- m and s of rows -----------------------------------------------------------------------------------------


def row_moments(users: SideRows, u: Floats, v: Floats, scales: tuple[Floats, Floats], pool: Executor) -> Floats:
    """m = u_iᵀv_j and s = √(γ_i γ_j) of every row in the log's order, (2, n)."""
    out = np.empty((2, len(users.partner)))
    each_part(lambda a, b: _row_moments(a, b, users.ptr, users.partner, u, v, *scales, out), users.parts, pool)
    return out


@njit(cache=True, nogil=True)
def _row_moments(
    first: int, last: int, ptr: Pointers, partner: Ints, u: Floats, v: Floats, own: Floats, other: Floats, out: Floats
) -> None:
    for i in range(first, last):
        for r in range(ptr[i], ptr[i + 1]):
            j = partner[r]
            out[0, r] = dot(u[i], v[j])
            out[1, r] = math.sqrt(own[i] * other[j])


# -- latent scores -------------------------------------------------------------------------------------------


def draw_latent(code: Codes, b: Floats, moments: Floats, word: np.uint64, pool: Executor) -> Floats:
    """a of every row: N(m, s²) between the thresholds of its level, (n,)."""
    out, edges = np.empty(len(code)), bounds(b)
    each_part(
        lambda first, last: _draw_latent(first, last, code, edges, moments, word, out), row_parts(len(code)), pool
    )
    return out


def bounds(b: Floats) -> Floats:
    """b_0 = -∞, the thresholds, b_L = ∞."""
    return np.concatenate([[-np.inf], b, [np.inf]])


@njit(cache=True, nogil=True)
def _draw_latent(
    first: int, last: int, code: Codes, edges: Floats, moments: Floats, word: np.uint64, out: Floats
) -> None:
    for r in range(first, last):
        m, s = moments[0, r], moments[1, r]
        low, high = (edges[code[r]] - m) / s, (edges[code[r] + 1] - m) / s
        out[r] = m + s * truncated_normal(row_word(word, r), low, high)


# -- vectors -------------------------------------------------------------------------------------------------
# Given a, u_i is normal with precision Λ = diag 1/σ² + Σ_j v_j v_jᵀ/(γ_i γ_j) and mean Λ⁻¹g, where
# g = μ/σ² + Σ_j a_ij v_j/(γ_i γ_j). Near where it is, with a reach τ and ρ = √(1 - τ²), it is drawn from that law's
# autoregression Λ⁻¹g + ρ(u_i - Λ⁻¹g) + τΛ^{-1/2}z, which is reversible with respect to it; τ = 1 is a draw of the law.


def draw_side(
    side: SideRows, a: Floats, partners: Floats, scales: tuple[Floats, Floats], belief: Belief, word: np.uint64,
    pool: Executor, near: Near | None = None,
) -> Floats:  # fmt: skip
    """The vectors of a side given those of its partners, (N, d); `scales` are its own γ and its partners'."""
    out = np.zeros((len(side), partners.shape[1])) if near is None else near.at.copy()
    reach = np.ones(len(side)) if near is None else near.reach
    rows, prior = (side.ptr, side.partner, side.row), (belief.mean, belief.variance)
    each_part(lambda f, l: _draw_side(f, l, *rows, a, partners, *scales, *prior, word, reach, out), side.parts, pool)
    return out


@njit(cache=True, nogil=True)
def _draw_side(
    first: int, last: int, ptr: Pointers, partner: Ints, row: Pointers, a: Floats, partners: Floats,
    own: Floats, other: Floats, mean: Floats, variance: Floats, word: np.uint64, reach: Floats, out: Floats,
) -> None:  # fmt: skip
    d = mean.size
    A, g, z = np.empty((d, d)), np.empty(d), np.empty(d)
    for i in range(first, last):
        A[:] = 0.0
        for j in range(d):
            A[j, j], g[j] = 1 / variance[j], mean[j] / variance[j]
        for r in range(ptr[i], ptr[i + 1]):
            x, weight = partners[partner[r]], 1 / (own[i] * other[partner[r]])
            for j in range(d):
                target, scaled = A[j], weight * x[j]
                g[j] += scaled * a[row[r]]
                for k in range(j + 1):
                    target[k] += scaled * x[k]
        mine, stay = row_word(word, i), math.sqrt(1 - reach[i] ** 2)
        for j in range(d):
            z[j], g[j] = reach[i] * normal(mine, j), (1 - stay) * g[j]
        draw_normal(A, g, z)
        for j in range(d):
            out[i, j] = stay * out[i, j] + g[j]


# -- scales --------------------------------------------------------------------------------------------------


def draw_scales(
    side: SideRows, a: Floats, vectors: tuple[Floats, Floats], other: Floats, prior: tuple[float, float],
    word: np.uint64, pool: Executor,
) -> Floats:  # fmt: skip
    """γ_i ~ InvGamma(α + n_i/2, β + Σ_j (a_ij - u_iᵀv_j)²/(2γ_j)) of a side, (N,), given γ of the partners.

    `vectors` are its own and the partners', `prior` is (α, β).
    """
    out = np.empty(len(side))
    rows = (side.ptr, side.partner, side.row)
    each_part(lambda f, l: _draw_scales(f, l, *rows, a, *vectors, other, *prior, word, out), side.parts, pool)
    return out


@njit(cache=True, nogil=True)
def _draw_scales(
    first: int, last: int, ptr: Pointers, partner: Ints, row: Pointers, a: Floats, own: Floats, partners: Floats,
    other: Floats, shape: float, rate: float, word: np.uint64, out: Floats,
) -> None:  # fmt: skip
    for i in range(first, last):
        squares = 0.0
        for r in range(ptr[i], ptr[i + 1]):
            squares += (a[row[r]] - dot(own[i], partners[partner[r]])) ** 2 / other[partner[r]]
        out[i] = (rate + squares / 2) / gamma(row_word(word, i), shape + (ptr[i + 1] - ptr[i]) / 2)


# -- likelihoods ---------------------------------------------------------------------------------------------


def level_log_likelihoods(code: Codes, b: Floats, moments: Floats, pool: Executor) -> Floats:
    """Σ log P(level l) over the rows of each level, (L,); the rest of the model is given by m and s."""
    edges = bounds(b)
    return sum_of_parts(
        lambda first, last, sums: _log_likelihoods(first, last, code, edges, moments, sums),
        row_parts(len(code)), (len(b) + 1,), pool,
    )  # fmt: skip


@njit(cache=True, nogil=True)
def _log_likelihoods(first: int, last: int, code: Codes, edges: Floats, moments: Floats, out: Floats) -> None:
    for r in range(first, last):
        m, s = moments[0, r], moments[1, r]
        low, high = (edges[code[r]] - m) / s, (edges[code[r] + 1] - m) / s
        if low > 0:  # mirrored to the lower tail, where Φ keeps its relative precision
            low, high = -high, -low
        out[code[r]] += math.log(max(normal_cdf(high) - normal_cdf(low), LEAST))


# -- plain twins ---------------------------------------------------------------------------------------------


def row_moments_numpy(users: SideRows, u: Floats, v: Floats, scales: tuple[Floats, Floats]) -> Floats:
    """The definition."""
    i, j = np.repeat(np.arange(len(users)), users.counts), users.partner
    return np.array([np.sum(u[i] * v[j], axis=1), np.sqrt(scales[0][i] * scales[1][j])])
